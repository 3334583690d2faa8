//! Fuzzes `fuzz::probe_answers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::probe_answers(data));
