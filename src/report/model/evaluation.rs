//! How far a trace is from the truth, as plain data. Rendered by `evaluation_text` and `evaluation_plot`.

use crate::report::{ChangeClass, Warning};
use clc_trace::{LocationId, MpiRank};
use serde::{Deserialize, Serialize};

/// The result of `clc-replay evaluate`. It contains no time of day and no run time: the same input gives the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// [`crate::report::SCHEMA`].
    pub schema: u32,
    /// The trace that is judged.
    pub trace: String,
    /// Directory of the truth files.
    pub truth: String,
    /// The trace before its correction, if it was there.
    pub original: Option<String>,
    /// Events of all locations.
    pub events: u64,
    /// Matched messages.
    pub messages: u64,
    /// True time from the first event to the last, in seconds.
    pub true_seconds: f64,
    /// True Late Sender waiting time of all messages, in seconds.
    pub late_sender_seconds: f64,
    /// Length of the windows in which the error between processes is taken, in seconds of true time: the one asked for, or
    /// two, four, ... times that where the run is so long that there would be more than 65,536 windows.
    pub window_seconds: f64,
    /// The phases of the correction, in their order.
    pub phases: Vec<PhaseAccuracy>,
    /// What is odd, each text once.
    pub warnings: Vec<Warning>,
}

/// How far the times after one phase are from the truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseAccuracy {
    /// `raw`, `presync`, `forward` or `final`.
    pub phase: String,
    /// The common offset that was removed from the times of all events: their mean distance from the truth, in seconds,
    /// rounded to ticks.
    pub offset_seconds: f64,
    /// Error of the events' times.
    pub clock: ErrorStatistics,
    /// Error between the processes, without what all have in common.
    pub between_processes: BetweenProcesses,
    /// Error of the messages' latencies (receive minus send).
    pub latency: ErrorStatistics,
    /// Error of the messages' Late Sender waiting times.
    pub late_sender: WaitAccuracy,
    /// Messages and collective instances that violate the clock condition (with a minimum latency of zero).
    pub violations: u64,
    /// Messages and collective instances.
    pub checked: u64,
    /// Change of the intervals between neighbouring events of a location against the truth.
    pub intervals: IntervalAccuracy,
    /// Root mean square of the clock error over true time, in equal slices of the run.
    pub over_time: Vec<Slice>,
    /// Every location by itself.
    pub locations: Vec<LocationAccuracy>,
}

/// Distribution of the magnitude of an error, in seconds. Percentiles are exact to 0.1 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorStatistics {
    /// Root mean square.
    pub rms_seconds: f64,
    /// Mean magnitude.
    pub mean_seconds: f64,
    /// Median.
    pub p50_seconds: f64,
    /// 95th percentile.
    pub p95_seconds: f64,
    /// 99th percentile.
    pub p99_seconds: f64,
    /// Largest.
    pub max_seconds: f64,
}

/// Error between the processes. The errors of each timeline's events are averaged in windows of true time, and the mean of a
/// window's averages is subtracted from each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BetweenProcesses {
    /// Root mean square over timelines and windows, in seconds.
    pub rms_seconds: f64,
    /// Largest magnitude, in seconds.
    pub max_seconds: f64,
    /// Windows with events of at least two timelines; others do not count.
    pub windows: u64,
}

/// Late Sender: how long receives wait for a send that has not begun yet (time from entering the receiving region to
/// entering the sending one, at most to the receive).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitAccuracy {
    /// Sum over all messages, in seconds.
    pub total_seconds: f64,
    /// Mean magnitude of the error per message, in seconds.
    pub mean_error_seconds: f64,
    /// Largest error of a message, in seconds.
    pub max_error_seconds: f64,
}

/// Change of local intervals against the truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalAccuracy {
    /// Number of intervals by change.
    pub classes: Vec<ChangeClass>,
    /// Share of the total true duration in each of these classes, in percent.
    pub duration_percent: Vec<f64>,
    /// Largest relative change of an interval of at least a microsecond, in percent: how steep the clock got.
    pub largest_slope_percent: f64,
}

/// A slice of the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Middle of the slice, in seconds since the first event in true time.
    pub at_seconds: f64,
    /// Root mean square of the clock error, in seconds; 0 in a slice without events.
    pub rms_seconds: f64,
}

/// The clock error of one location.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocationAccuracy {
    /// Its id.
    pub location: LocationId,
    /// MPI rank of its process, if it has one.
    pub rank: Option<MpiRank>,
    /// Number of events.
    pub events: u64,
    /// Mean error with its sign, in seconds: fast clocks are positive.
    pub mean_seconds: f64,
    /// Root mean square of the error.
    pub rms_seconds: f64,
    /// Largest magnitude of the error.
    pub max_seconds: f64,
    /// Mean error in each slice of the run, in seconds; none without events. Left out for more than 64 locations.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub over_time: Vec<Option<f64>>,
}
