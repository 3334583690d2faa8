//! Fuzzes `app_health::fuzz::documents`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| app_health::fuzz::documents(data));
