//! Fuzzes `fuzz::workload_group`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::workload_group(data));
