//! Trace formats: stream events in, stream events out.

mod mmap;
pub mod otf2;
pub mod truth;

pub use mmap::MappedFile;
