//! Trace formats: stream events in, stream events out.

mod mmap;
pub mod otf2;

pub use mmap::MappedFile;
