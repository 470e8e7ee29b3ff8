//! `clc-replay` corrects the timestamps of event traces of parallel programs after the run.
//!
//! This crate is the program as a library. Whoever wants to correct traces uses [`corrector::Corrector`]; the program's commands
//! ([`commands`]) are sessions like it. The parts that know neither MPI nor this program are crates of their own:
//!
//! | crate | what it is |
//! | --- | --- |
//! | [`clc_trace`] | ids, ticks, definitions, events, corrections |
//! | [`clc_otf2`] | OTF2 archives: read, write, rewrite times |
//! | [`clc_archive`] | traces of either format, and true times beside them |
//! | [`clc_clock`] | clocks from recorded offsets and from messages |
//! | [`controlled_logical_clock`] | forward and backward amortisation |
//! | [`clc_execution`] | waiting times, critical path |
//! | [`clc_simulate`] | traces of simulated applications |
//! | [`clc_engine`] | transport (MPI or threads), matching, replay |
#![deny(missing_docs)]
#![deny(clippy::cast_lossless)]

mod accuracy;
mod analysis;
pub mod cli;
mod clocks;
pub mod commands;
pub mod corrector;
mod details;
mod live;
pub mod output;
pub mod pipeline;
mod recording;
pub mod report;
mod session;

pub use clc_trace::{Error, ErrorKind, Result};
pub use corrector::Corrector;
