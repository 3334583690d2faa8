//! Fuzzes `fuzz::admission_review`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::admission_review(data));
