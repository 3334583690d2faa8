//! Fuzzes `fuzz::explanations`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::explanations(data));
