//! Fuzzes `fuzz::xds_cache`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::xds_cache(data));
