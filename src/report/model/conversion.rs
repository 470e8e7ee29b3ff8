//! What `convert` has written, and what it could not.

use crate::report::Warning;
use clc_archive::{Format, Lost};
use serde::{Deserialize, Serialize};

/// A trace in another format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversion {
    /// [`crate::report::SCHEMA`].
    pub schema: u32,
    /// The trace that was read.
    pub trace: String,
    /// Its format.
    pub from: Format,
    /// The trace that was written.
    pub output: String,
    /// Its format.
    pub to: Format,
    /// Event streams.
    pub locations: u64,
    /// Events that were written.
    pub events: u64,
    /// Size of all event files that were read.
    pub event_bytes_before: u64,
    /// Size of all event files that were written.
    pub event_bytes: u64,
    /// Whether true times were taken along.
    pub truth: bool,
    /// What the new format cannot hold.
    #[serde(rename = "left_out")]
    pub losses: Vec<LossCount>,
    /// Time that it took, in seconds.
    pub seconds: f64,
    /// What is odd about the trace.
    pub warnings: Vec<Warning>,
}

/// Things of one kind that were lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCount {
    /// What they are.
    pub what: Lost,
    /// Type of record, name of the property or file.
    pub kind: String,
    /// How many.
    pub count: u64,
}
