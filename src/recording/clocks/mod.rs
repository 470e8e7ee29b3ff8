//! From the counters of the nodes to nanoseconds, and clocks that are wrong on purpose.
//!
//! The recorder writes counters only. Their rate follows from two anchors, readings of the counter together with `CLOCK_MONOTONIC_RAW`, at
//! the beginning and the end of the run: all processes of a node use those of one process, so that they do not disagree by what an anchor is wrong. Wrong
//! clocks are made here, after the run: the application has not noticed them, and the true times are known exactly.

pub(super) mod gossiped;
pub(super) mod measured;
pub(super) mod offsets;
pub(super) mod pauses;
pub(super) mod shared;

use crate::recording::raw::RawFileHeader;
use clc_simulate::ClockSpec;
use clc_simulate::clocks::SimulatedClock;
use clc_simulate::units::EPOCH;

/// Picoseconds in a nanosecond.
pub(super) const NANOSECOND: i64 = 1_000;

/// An hour in nanoseconds.
const HOUR: i64 = 3_600_000_000_000;

/// From the counter of a node to nanoseconds since 1970 by the node's own clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counter {
    first: u64,
    /// `CLOCK_MONOTONIC_RAW` at `first`.
    raw: u64,
    /// Nanoseconds at `first`, since 1970.
    start: i128,
    /// Nanoseconds per tick, as a fraction.
    nanoseconds: i128,
    ticks: i128,
}

impl Counter {
    /// Of a node, from the header of any of its files; none if the counter's rate is not known, since the process was killed at once.
    pub(super) fn new(header: &RawFileHeader) -> Option<Counter> {
        let [first, raw, real] = header.first;
        let start = i128::from(real);
        if header.nanoseconds {
            return Some(Counter { first, raw, start, nanoseconds: 1, ticks: 1 });
        }
        let [last, later, _] = header.latest?;
        let (ticks, nanoseconds) = (last.checked_sub(first)?, later.checked_sub(raw)?);
        (ticks > 0 && nanoseconds > 0).then(|| Counter {
            first,
            raw,
            start,
            nanoseconds: i128::from(nanoseconds),
            ticks: i128::from(ticks),
        })
    }

    /// One that has begun at `start`, with so many ticks to the nanosecond.
    #[cfg(test)]
    pub(super) fn of(ticks: i128, start: i64) -> Counter {
        Counter { first: 0, raw: 0, start: i128::from(start), nanoseconds: 1, ticks }
    }

    /// Time between the anchors: the longer, the better the rate is known.
    pub(super) fn span(&self) -> i128 {
        self.nanoseconds
    }

    /// What the counter shows when `CLOCK_MONOTONIC_RAW` of its node shows `raw`; none if it cannot.
    pub(super) fn reading(&self, raw: u64) -> Option<u64> {
        let ticks = (i128::from(raw) - i128::from(self.raw)) * self.ticks;
        u64::try_from(i128::from(self.first) + ticks.div_euclid(self.nanoseconds)).ok()
    }

    /// So many ticks in nanoseconds.
    pub(super) fn length(&self, ticks: u64) -> f64 {
        ticks as f64 * self.nanoseconds as f64 / self.ticks.max(1) as f64
    }

    /// Nanoseconds since 1970 at a reading.
    pub(super) fn nanoseconds(&self, reading: u64) -> i64 {
        let passed = (i128::from(reading) - i128::from(self.first)) * self.nanoseconds;
        i64::try_from(self.start + passed.div_euclid(self.ticks.max(1))).unwrap_or(i64::MAX)
    }
}

/// The clock that the events of a process are written with.
#[derive(Debug, Clone)]
pub(super) struct ProcessClock {
    counter: Counter,
    /// Start of the recording: nanoseconds since 1970.
    base: i64,
    /// No time is later, in nanoseconds after the start: a clock takes its time to get there.
    most: i64,
    wrong: Option<SimulatedClock>,
}

/// What the trace shows at the start of the recording, in nanoseconds.
pub(super) const START: i64 = EPOCH / NANOSECOND;

impl ProcessClock {
    /// Of clock `number` of those that `spec` describes, for a run of about so many nanoseconds.
    pub(super) fn new(
        counter: Counter,
        base: i64,
        spec: Option<(&ClockSpec, u64)>,
        number: u32,
        run: i64,
    ) -> ProcessClock {
        let wrong = spec.map(|(spec, seed)| spec.clock(number, seed, run.saturating_mul(NANOSECOND)));
        ProcessClock { counter, base, most: run.saturating_add(HOUR), wrong }
    }

    /// True and shown time at a reading of the counter, in nanoseconds, of which the trace begins with [`START`]. Readings must not decrease.
    pub(super) fn times(&mut self, reading: u64) -> (i64, i64) {
        let passed = self.counter.nanoseconds(reading).saturating_sub(self.base).clamp(0, self.most);
        let truth = START.saturating_add(passed);
        let shown = match &mut self.wrong {
            None => truth,
            Some(clock) => clock.read(passed.saturating_mul(NANOSECOND)) / NANOSECOND,
        };
        (truth, shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_run_at_the_rate_of_their_anchors() {
        let counter = Counter { first: 1_000, raw: 70, start: 50, nanoseconds: 1_000, ticks: 3_000 };
        assert_eq!(counter.nanoseconds(1_000), 50);
        assert_eq!(counter.nanoseconds(4_000), 1_050);
        assert_eq!(counter.nanoseconds(4_002), 1_050);
        assert_eq!(counter.nanoseconds(4_003), 1_051);
        assert_eq!(counter.nanoseconds(997), 49);
        assert_eq!(counter.length(4_500), 1_500.0);
        assert_eq!((counter.reading(70), counter.reading(1_070)), (Some(1_000), Some(4_000)));
    }
}
