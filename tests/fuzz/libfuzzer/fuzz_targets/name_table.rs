//! Fuzzes `fuzz::name_table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::name_table(data));
