//! Waiting times and critical path by the exchanges of the replay, run once more: what travels are the times at which regions were
//! entered. Knows [`clc_execution`] for the mathematics.

pub mod details;
pub mod operations;
pub mod timeline_waits;
pub mod waits;
pub mod walk;
