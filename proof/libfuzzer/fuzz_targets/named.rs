//! See `steadfast_fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steadfast_fuzz::run("named", bytes));
