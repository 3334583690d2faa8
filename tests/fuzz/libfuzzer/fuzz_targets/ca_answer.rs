//! Fuzzes `fuzz::ca_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::ca_answer(data));
