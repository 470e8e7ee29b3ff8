//! `clc-replay` corrects the timestamps of event traces of parallel programs after the run.
//!
//! This crate is the program as a library. Whoever wants to correct traces uses [`corrector::Corrector`]; the program's commands
//! ([`commands`]) are sessions ([`session`]) like it. The parts that know neither MPI nor this program are crates of their own:
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

pub mod accuracy;
pub mod analysis;
pub mod cli;
pub mod clocks;
pub mod commands;
pub mod corrector;
pub mod details;
pub mod output;
pub mod pipeline;
pub mod recording;
pub mod report;
pub mod session;

pub use corrector::Corrector;
