//! Fuzzes `fuzz::prober_table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::prober_table(data));
