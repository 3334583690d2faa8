//! Fuzzes `fuzz::control_plane`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::control_plane(data));
