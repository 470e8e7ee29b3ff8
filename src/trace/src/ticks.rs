//! Time as whole ticks of the archive's global clock.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

/// A point in time, or a duration, in ticks of the archive's timer (`ClockProperties.timerResolution`
/// ticks make one second). All arithmetic on time is exact integer arithmetic; products go through `i128`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(transparent)]
pub struct Ticks(pub i64);

impl Ticks {
    /// No time at all, and the origin of a clock.
    pub const ZERO: Ticks = Ticks(0);
    /// Earlier than every time of a trace; the neutral element of a maximum.
    pub const MIN: Ticks = Ticks(i64::MIN);
    /// Later than every time of a trace; the neutral element of a minimum.
    pub const MAX: Ticks = Ticks(i64::MAX);

    /// The duration in seconds for `resolution` ticks per second. For display only: never feed it back into a timestamp.
    pub fn seconds(self, resolution: u64) -> f64 {
        self.0 as f64 / resolution as f64
    }
}

impl Add for Ticks {
    type Output = Ticks;
    #[inline]
    fn add(self, other: Ticks) -> Ticks {
        Ticks(self.0 + other.0)
    }
}
impl Sub for Ticks {
    type Output = Ticks;
    #[inline]
    fn sub(self, other: Ticks) -> Ticks {
        Ticks(self.0 - other.0)
    }
}
impl Neg for Ticks {
    type Output = Ticks;
    #[inline]
    fn neg(self) -> Ticks {
        Ticks(-self.0)
    }
}
impl AddAssign for Ticks {
    #[inline]
    fn add_assign(&mut self, other: Ticks) {
        self.0 += other.0;
    }
}
impl SubAssign for Ticks {
    #[inline]
    fn sub_assign(&mut self, other: Ticks) {
        self.0 -= other.0;
    }
}
impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
