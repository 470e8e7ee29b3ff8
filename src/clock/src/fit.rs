//! How estimated clocks compare with recorded ones.

use crate::evidence::Gain;
use serde::{Deserialize, Serialize};

/// How the estimated clocks compare with the recorded ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Misfit of the estimated clocks relative to that of the recorded ones.
    pub misfit: f64,
    /// Largest difference of the two where offsets were recorded, or a part of that elsewhere, beyond a latency, in ticks.
    pub contradiction: f64,
    /// Largest difference of the two where offsets were recorded, in ticks; none if there are no recorded offsets.
    pub measured: Option<f64>,
    /// Largest difference anywhere, in ticks.
    pub anywhere: f64,
    /// Half the shortest round trip of a pair of clocks that is better than most, in ticks: what either is known to; 0 without any.
    pub half_trip: f64,
    /// By how much better they predict messages; none where there are too few.
    pub gain: Option<Gain>,
}

impl Fit {
    /// Whether the evidence is so strong that it needs no violation beside it: messages are predicted very much better, and recorded offsets are not
    /// contradicted beyond what both they and the estimate are known to.
    pub fn is_convincing(&self) -> bool {
        let measured = self.measured.unwrap_or(0.0);
        self.is_overwhelming() && measured <= BOTH * self.half_trip
    }

    /// Whether the evidence is so strong that recorded offsets may be wrong.
    pub fn is_overwhelming(&self) -> bool {
        self.gain.is_some_and(|gain| gain.is_overwhelming())
    }

    /// Whether the two differ by more than waiting messages can feign.
    pub fn matters(&self) -> bool {
        self.anywhere > FEIGNED * self.half_trip
    }
}

/// Half round trips that a measured offset and an estimated one may be apart: either is known to one.
const BOTH: f64 = 2.0;
/// With perfect clocks in 160 random runs the estimate was up to two half round trips off, where messages always wait.
const FEIGNED: f64 = 4.0;
