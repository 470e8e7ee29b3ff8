//! See `tests/fuzz/targets/files.rs`.
#![no_main]

#[path = "../../reference/mod.rs"]
mod reference;
#[path = "../targets/mod.rs"]
mod targets;

/// Writes the recorded files that fuzzing begins with into the directory that `CLC_REPLAY_FUZZ_SEEDS` names.
fn write_seeds() {
    let Some(directory) = std::env::var_os("CLC_REPLAY_FUZZ_SEEDS").map(std::path::PathBuf::from) else { return };
    for (i, seed) in targets::files::seeds().iter().enumerate() {
        std::fs::write(directory.join(format!("recorded-{i}")), seed).expect("a directory for seeds");
    }
}

libfuzzer_sys::fuzz_target!(init: write_seeds(), |input: &[u8]| {
    if let Err(complaint) = targets::files::target(input) {
        panic!("{complaint}");
    }
});
