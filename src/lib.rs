//! `clc-replay` corrects the timestamps of event traces of parallel programs after the run.
#![deny(missing_docs)]

pub mod archive;
pub mod cli;
pub mod comm;
pub mod commands;
pub mod execution;
pub mod matching;
pub mod pipeline;
pub mod recording;
pub mod replay;
pub mod report;
