//! Fuzzes `app_health::fuzz::discovery_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| app_health::fuzz::discovery_request(data));
