//! Fuzzes `fuzz::dns_query`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::dns_query(data));
