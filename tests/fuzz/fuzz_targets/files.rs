//! See `tests/fuzz/targets/files.rs`.
#![no_main]

#[path = "../../reference/mod.rs"]
mod reference;
#[path = "../targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(init: targets::write_seeds(targets::files::seeds), |input: &[u8]| {
    if let Err(complaint) = targets::files::target(input) {
        panic!("{complaint}");
    }
});
