//! What `clc-replay info` tells about a trace.

use crate::report::{TraceSummary, Warning};
use clc_trace::{CommId, LocationId, MpiRank};
use serde::{Deserialize, Serialize};

/// The description of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// [`crate::report::SCHEMA`].
    pub schema: u32,
    /// The trace as a whole.
    pub trace: TraceSummary,
    /// The nodes, in the order of their definitions.
    pub nodes: Vec<NodeInfo>,
    /// The communicators, in the order of their definitions.
    pub communicators: Vec<CommunicatorInfo>,
    /// The event streams, in the order of their definitions.
    pub locations: Vec<LocationInfo>,
    /// What is odd about the trace, each text once.
    pub warnings: Vec<Warning>,
}

/// One node of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// Number of MPI processes on it.
    pub processes: u64,
    /// Number of event streams on it.
    pub locations: u64,
}

/// One MPI communicator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommunicatorInfo {
    /// Its global definition id.
    pub id: CommId,
    /// Its name, possibly empty.
    pub name: String,
    /// Number of members; of both groups for an inter-communicator.
    pub size: u64,
    /// Whether it connects two groups.
    pub inter: bool,
}

/// One event stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocationInfo {
    /// Its id.
    pub id: LocationId,
    /// Its name.
    pub name: String,
    /// Name of the process or accelerator it belongs to.
    pub group: String,
    /// Name of the node it runs on, if known.
    pub node: Option<String>,
    /// MPI rank (in the world), if it stands for a process.
    pub rank: Option<MpiRank>,
    /// Number of its events.
    pub events: u64,
    /// Its first event, in seconds after the first event of the trace (pre-synchronised); null without events.
    pub first_seconds: Option<f64>,
    /// Its last event, likewise.
    pub last_seconds: Option<f64>,
    /// Its clock.
    pub clock: ClockInfo,
}

/// The clock offsets recorded for one location (OTF2 `ClockOffset`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockInfo {
    /// Number of measurements.
    pub measurements: u64,
    /// Offset (global minus local time) of the first one, in ticks; null without measurements.
    pub first_offset_ticks: Option<i64>,
    /// Offset of the last one, in ticks.
    pub last_offset_ticks: Option<i64>,
    /// Drift from the first to the last one, in millionths; null with fewer than two measurements.
    pub drift_ppm: Option<f64>,
}
