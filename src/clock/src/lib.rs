//! Clocks of parallel computers: from each location's own clock to one global time.
//!
//! A *clock model* is a nondecreasing function from the local to the global clock of one location. It is pure mathematics on [`Ticks`]: no
//! files, no MPI, no printing. [`LinearClock`] interpolates the clock offsets that a measurement system recorded; [`Clock`] may put a refinement on top of
//! it. [`estimate`] makes such refinements from a table of messages; [`estimator::Estimator`] is the same for callers who gather the bounds that messages
//! set ([`windows`]) themselves, from many ranks. `docs/clocks.md` of clc-replay explains the models, their sources, and how well they do.
//!
//! ```
//! use clc_clock::{ClockMessage, Options, estimate};
//! use clc_trace::Ticks;
//!
//! // Two clocks; the second is 70 us behind. A message takes 2 us.
//! let trip = |k: i64| {
//!     let begin = k * 1_000_000;
//!     [
//!         ClockMessage { from: 0, to: 1, sent: begin, received: begin + 2_000 - 70_000 },
//!         ClockMessage { from: 1, to: 0, sent: begin + 3_000 - 70_000, received: begin + 5_000 },
//!     ]
//! };
//! let messages: Vec<ClockMessage> = (0..100).flat_map(trip).collect();
//! let found = estimate(&messages, &Options::default())?;
//! let apart = found.clocks[1].map(Ticks(50_000_000 - 70_000)) - found.clocks[0].map(Ticks(50_000_000));
//! assert!(apart.0.abs() <= 1);
//! # Ok::<(), clc_trace::Error>(())
//! ```
#![deny(missing_docs)]
#![deny(clippy::cast_lossless)]

pub mod anchor;
mod band;
mod banded;
pub mod both_sides;
pub mod bounds;
mod cholesky;
mod clock;
mod clock_map;
mod collector;
mod crossings;
mod curves;
mod delays;
pub mod directions;
mod edge;
mod estimate;
pub mod estimator;
pub mod evidence;
mod exponential;
mod extrapolation;
mod fit;
mod gradients;
pub mod graph;
pub mod grid;
pub mod hull;
mod inspection;
mod interval;
mod joined_hulls;
pub mod kind;
mod kinds;
mod late;
pub mod latencies;
mod lengths;
mod linear;
pub mod network;
pub mod observations;
mod of_messages;
mod outlying;
mod prediction;
mod put_forward;
pub mod quickest;
pub mod reference;
mod refined;
pub mod regression;
mod relaxation;
mod sample;
mod selection;
mod solver;
mod standstills;
pub mod steps;
mod stretch;
mod trend;
mod view;
pub mod waits;
pub mod windows;

pub use clock::{Clock, ClockCursor};
pub use clock_map::{ClockMap, RecordedOffsets};
pub use collector::Collector;
pub use curves::{Told, curves};
pub use estimate::{ClockEstimate, ClockPair, ClockStep, FurtherClocks, NodeClock, ShortestMessages};
#[doc(hidden)]
pub use fit::example_fit;
pub use fit::{AtOffsets, ClockFit, Unmeasured};
pub use inspection::{ClockInterval, Inspected};
pub use linear::{Drift, LinearClock};
pub use of_messages::{ClockMessage, Estimated, Options, estimate};
pub use outlying::{CleanedOffsets, OutlyingOffset, Sought, without_impossible, without_outlying};
pub use put_forward::put_forward;
pub use refined::RefinedClocks;

/// What clocks are made from and what can go wrong: who only estimates clocks needs no other crate.
pub use clc_trace::{ClockOffset, Error, ErrorKind, Result, Ticks};

use serde::{Deserialize, Serialize};

/// Times and offsets of a clock model stay under this magnitude (2^62 ticks, 146 years of nanoseconds), so that
/// the difference of any two of them fits in an `i64`.
pub const RANGE: i64 = 1 << 62;

/// A refinement of a clock as (time, offset) points, in ticks.
pub type Knots = Vec<(i64, i64)>;

/// What a clock model does to the times of its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// Nothing: local time is global time.
    Identity,
    /// One offset is added to every time.
    Constant,
    /// The offset changes with time, linearly between measurements.
    Piecewise,
}

/// Which model pre-synchronises the clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Recorded clock offsets are ignored: local times are taken as global times.
    None,
    /// Linear interpolation between the recorded clock offsets (OTF2 `ClockOffset`).
    Linear,
    /// Straight lines through round trips of messages, per pair of nodes, composed along the best paths.
    Regression,
    /// Straight lines that no message violates, where there are any, composed along the best paths.
    Hull,
    /// A clock per node that changes with time, from all messages and collectives and the recorded offsets.
    Network,
    /// Whatever of these the trace supports and its messages confirm.
    #[default]
    Auto,
}

/// Which measurements count, and for how long a straight line holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasurementLimits {
    /// Share of the round trips that a line is put through; the slowest are left out.
    pub confidence: f64,
    /// Longest straight line, in seconds.
    pub segment: f64,
    /// Round trips that took longer than twice this (seconds) are discarded.
    pub delay: f64,
    /// The same as a share of the time between two estimates of a clock, which is a window.
    pub delay_share: f64,
}

impl MeasurementLimits {
    /// The longest transport delay that counts in windows of `window` seconds, in seconds.
    pub fn longest_delay(&self, window: f64) -> f64 {
        self.delay.min(self.delay_share * window)
    }
}

impl Default for MeasurementLimits {
    /// 90 %, 30 minutes, no limit.
    fn default() -> Self {
        MeasurementLimits { confidence: 0.9, segment: 1800.0, delay: f64::INFINITY, delay_share: f64::INFINITY }
    }
}

impl Method {
    /// The clock of a location with these recorded offsets, before anything is learnt from messages.
    ///
    /// # Errors
    /// As [`LinearClock::new`]; never for [`Method::None`].
    pub fn clock(self, offsets: &[ClockOffset]) -> Result<LinearClock> {
        match self {
            Method::None => Ok(LinearClock::identity()),
            _ => LinearClock::new(offsets),
        }
    }

    /// Whether the clocks are refined with what the messages tell.
    pub fn refines(self) -> bool {
        !matches!(self, Method::None | Method::Linear)
    }

    /// All of them.
    pub const ALL: [Method; 6] =
        [Method::Auto, Method::Linear, Method::Regression, Method::Hull, Method::Network, Method::None];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::Linear => "linear",
            Method::Regression => "regression",
            Method::Hull => "hull",
            Method::Network => "network",
            Method::Auto => "auto",
        }
    }
}
