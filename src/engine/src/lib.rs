//! Matching and replay of the communication that a trace records.
#![deny(missing_docs)]

pub mod comm;
pub mod matching;
pub mod replay;
