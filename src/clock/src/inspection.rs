//! Single messages of a clock, asked for to find when it jumped.

use serde::{Deserialize, Serialize};

/// A clock and a time in which its messages are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockInterval {
    /// The clock.
    pub clock: u32,
    /// First time, in ticks.
    pub from: i64,
    /// Last time.
    pub until: i64,
}

/// A message of a clock in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Inspected {
    /// Which stretch.
    pub stretch: u32,
    /// When the clock of the stretch sent or received it.
    pub own: i64,
    /// The clock at the other end.
    pub partner: u32,
    /// When that received or sent it.
    pub other: i64,
    /// Whether the clock of the stretch received it.
    pub received: bool,
}
