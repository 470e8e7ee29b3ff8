//! `clc-replay` corrects the timestamps of event traces of parallel programs after the run.
#![deny(missing_docs)]

pub mod accuracy;
pub mod analysis;
pub mod cli;
pub mod clocks;
pub mod commands;
pub mod details;
pub mod output;
pub mod pipeline;
pub mod recording;
pub mod report;
