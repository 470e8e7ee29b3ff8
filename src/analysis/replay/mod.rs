//! Waiting times and critical path by the exchanges of the replay, run once more: what travels are the times at which regions were
//! entered. Knows [`clc_execution`] for the mathematics.

pub(crate) mod delays;
pub(crate) mod details;
pub(crate) mod operations;
mod profiles;
pub(crate) mod timeline_waits;
pub(crate) mod waits;
pub(crate) mod walk;
