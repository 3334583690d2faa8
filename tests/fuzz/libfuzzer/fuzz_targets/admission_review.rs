//! Fuzzes `app_health::fuzz::admission_review`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| app_health::fuzz::admission_review(data));
