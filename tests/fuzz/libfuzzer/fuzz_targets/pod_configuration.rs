//! Fuzzes `fuzz::pod_configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::pod_configuration(data));
