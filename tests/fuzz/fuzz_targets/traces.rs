//! See `tests/fuzz/targets/traces.rs`.
#![no_main]

#[path = "../../reference/mod.rs"]
mod reference;
#[path = "../targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Err(complaint) = targets::traces::target(input) {
        panic!("{complaint}");
    }
});
