//! What a command that makes a trace has made.

use crate::report::Warning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A trace that was simulated or perturbed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// [`crate::report::SCHEMA`].
    pub schema: u32,
    /// The subcommand: `simulate` or `perturb`.
    pub command: String,
    /// Directory of the trace.
    pub output: String,
    /// Whether the true times lie in its `truth` directory.
    pub truth: bool,
    /// MPI processes.
    pub processes: u64,
    /// Nodes; each has a clock of its own.
    pub nodes: u64,
    /// Event streams.
    pub locations: u64,
    /// Events of all locations.
    pub events: u64,
    /// Length of the run in true time, in seconds.
    pub true_seconds: f64,
    /// Largest difference between a local and the true time, in seconds; none if it was not measured.
    pub largest_error_seconds: Option<f64>,
    /// The parameters by the name of their option.
    pub parameters: BTreeMap<String, String>,
    /// Time that making it took, in seconds.
    pub seconds: f64,
    /// What is odd about it.
    pub warnings: Vec<Warning>,
}
