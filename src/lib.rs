//! `clc-replay` corrects the timestamps of event traces of parallel programs after the run.
#![deny(missing_docs)]
#![deny(unsafe_code)]

pub mod clc;
pub mod cli;
pub mod presync;
pub mod report;
pub mod trace;
