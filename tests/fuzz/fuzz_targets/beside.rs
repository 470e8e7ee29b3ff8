//! See `tests/fuzz/targets/beside.rs`.
#![no_main]

#[path = "../../reference/mod.rs"]
mod reference;
#[path = "../targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(init: targets::write_seeds(targets::beside::seeds), |input: &[u8]| {
    if let Err(complaint) = targets::beside::target(input) {
        panic!("{complaint}");
    }
});
