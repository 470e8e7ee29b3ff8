//! What fuzzing tries: files of any contents, those beside a trace as well, and traces of any events. Each target takes bytes and returns
//! what is wrong, if anything.
//!
//! `tests/fuzz_corpus.rs` runs them on the stored inputs and on changed ones.

#![allow(dead_code)]

mod bench;
pub(crate) mod beside;
pub(crate) mod files;
mod seal;
pub(crate) mod traces;

/// One target: bytes in, a complaint out.
pub(crate) type Target = fn(&[u8]) -> Result<(), String>;

/// Inputs to begin with that are made when they are needed.
pub(crate) type Seeds = fn() -> Vec<Vec<u8>>;

/// All of them by name.
pub(crate) const TARGETS: [(&str, Target, Seeds); 3] = [
    ("files", files::target, files::seeds),
    ("beside", beside::target, beside::seeds),
    ("traces", traces::target, Vec::new),
];

/// Writes the inputs to begin with into the directory that `CLC_REPLAY_FUZZ_SEEDS` names, if it is set.
pub(crate) fn write_seeds(seeds: Seeds) {
    let Some(directory) = std::env::var_os("CLC_REPLAY_FUZZ_SEEDS").map(std::path::PathBuf::from) else { return };
    for (i, seed) in seeds().iter().enumerate() {
        std::fs::write(directory.join(format!("recorded-{i}")), seed).expect("a directory for seeds");
    }
}

/// Reads choices from the bytes of an input; zeroes after its end.
pub(crate) struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    pub(crate) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// A number below `end`, which is at most 256.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
