//! What fuzzing tries: files of any contents, and traces of any events. Each target takes bytes and returns what is wrong, if anything.
//!
//! `tests/fuzz_corpus.rs` runs them on the stored inputs and on changed ones.

#![allow(dead_code)]

pub mod files;
pub mod traces;

/// One target: bytes in, a complaint out.
pub type Target = fn(&[u8]) -> Result<(), String>;

/// All of them by name.
pub const TARGETS: [(&str, Target); 2] = [("files", files::target), ("traces", traces::target)];

/// Reads choices from the bytes of an input; zeroes after its end.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// A number below `end`, which is at most 256.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
