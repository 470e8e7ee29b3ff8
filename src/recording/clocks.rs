//! From the counters of the nodes to nanoseconds, and clocks that are wrong on purpose.
//!
//! The recorder writes counters only. Their rate follows from two anchors, readings of the counter together with `CLOCK_MONOTONIC_RAW`, at
//! the beginning and the end of the run: all processes of a node use those of one process, so that they do not disagree by what an anchor is wrong. Wrong
//! clocks are made here, after the run: the application has not noticed them, and the true times are known exactly.

use super::raw::Header;
use super::records::Exchange;
use crate::simulate::ClockSpec;
use crate::simulate::clocks::Clock;
use crate::simulate::units::EPOCH;
use crate::trace::ClockOffset;

/// Picoseconds in a nanosecond.
const NANOSECOND: i64 = 1_000;

/// An hour in nanoseconds.
const HOUR: i64 = 3_600_000_000_000;

/// From the counter of a node to nanoseconds since 1970 by the node's own clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    first: u64,
    /// Nanoseconds at `first`, since 1970.
    start: i128,
    /// Nanoseconds per tick, as a fraction.
    nanoseconds: i128,
    ticks: i128,
}

impl Counter {
    /// Of a node, from the header of any of its files; none if the counter's rate is not known, since the process was killed at once.
    pub fn new(header: &Header) -> Option<Counter> {
        let [first, raw, real] = header.first;
        let start = i128::from(real);
        if header.nanoseconds {
            return Some(Counter { first, start, nanoseconds: 1, ticks: 1 });
        }
        let [last, later, _] = header.latest?;
        let (ticks, nanoseconds) = (last.checked_sub(first)?, later.checked_sub(raw)?);
        (ticks > 0 && nanoseconds > 0).then(|| Counter {
            first,
            start,
            nanoseconds: i128::from(nanoseconds),
            ticks: i128::from(ticks),
        })
    }

    /// Time between the anchors: the longer, the better the rate is known.
    pub fn span(&self) -> i128 {
        self.nanoseconds
    }

    /// Nanoseconds since 1970 at a reading.
    pub fn nanoseconds(&self, reading: u64) -> i64 {
        let passed = (i128::from(reading) - i128::from(self.first)) * self.nanoseconds;
        i64::try_from(self.start + passed.div_euclid(self.ticks.max(1))).unwrap_or(i64::MAX)
    }
}

/// The clock that the events of a process are written with.
#[derive(Debug, Clone)]
pub struct ProcessClock {
    counter: Counter,
    /// Start of the recording: nanoseconds since 1970.
    base: i64,
    /// No time is later, in nanoseconds after the start: a clock takes its time to get there.
    most: i64,
    wrong: Option<Clock>,
}

/// What the trace shows at the start of the recording, in nanoseconds.
pub const START: i64 = EPOCH / NANOSECOND;

impl ProcessClock {
    /// Of clock `number` of those that `spec` describes, for a run of about so many nanoseconds.
    pub fn new(counter: Counter, base: i64, spec: Option<(&ClockSpec, u64)>, number: u32, run: i64) -> ProcessClock {
        let wrong = spec.map(|(spec, seed)| spec.clock(number, seed, run.saturating_mul(NANOSECOND)));
        ProcessClock { counter, base, most: run.saturating_add(HOUR), wrong }
    }

    /// True and shown time at a reading of the counter, in nanoseconds, of which the trace begins with [`START`]. Readings must not decrease.
    pub fn times(&mut self, reading: u64) -> (i64, i64) {
        let passed = self.counter.nanoseconds(reading).saturating_sub(self.base).clamp(0, self.most);
        let truth = START.saturating_add(passed);
        let shown = match &mut self.wrong {
            None => truth,
            Some(clock) => clock.read(passed.saturating_mul(NANOSECOND)) / NANOSECOND,
        };
        (truth, shown)
    }
}

/// Offset of a clock to that of rank 0, from a batch of exchanges.
///
/// The fastest message of each direction counts, whichever exchanges they belong to. If both took equally long, the offset is exact; it is
/// certainly wrong by no more than half of the time that both took together. The standard deviation is that of a
/// uniform distribution over this range: an upper bound, since nothing is known of the difference.
pub fn offset(exchanges: &[Exchange], own: &mut ProcessClock, reference: &mut ProcessClock) -> Option<ClockOffset> {
    let (mut there, mut back) = (i64::MAX, i64::MAX);
    let (mut first, mut last) = (None, 0);
    for exchange in exchanges {
        let (_, asked) = own.times(exchange.asked);
        let (_, came) = reference.times(exchange.came);
        let (_, left) = reference.times(exchange.left);
        let (_, answered) = own.times(exchange.answered);
        there = there.min(came - asked);
        back = back.min(answered - left);
        first.get_or_insert(asked);
        last = answered;
    }
    let middle = first?.midpoint(last);
    let uncertainty = there.saturating_add(back).max(0) as f64 / 2.0;
    Some(ClockOffset {
        time: u64::try_from(middle).ok()?,
        offset: (there - back).div_euclid(2),
        standard_deviation: uncertainty / 3.0_f64.sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(shift: i64) -> ProcessClock {
        let counter = Counter { first: 0, start: i128::from(shift), nanoseconds: 1, ticks: 2 };
        ProcessClock::new(counter, 0, None, 0, 0)
    }

    #[test]
    fn counters_run_at_the_rate_of_their_anchors() {
        let counter = Counter { first: 1_000, start: 50, nanoseconds: 1_000, ticks: 3_000 };
        assert_eq!(counter.nanoseconds(1_000), 50);
        assert_eq!(counter.nanoseconds(4_000), 1_050);
        assert_eq!(counter.nanoseconds(4_002), 1_050);
        assert_eq!(counter.nanoseconds(4_003), 1_051);
        assert_eq!(counter.nanoseconds(997), 49);
    }

    #[test]
    fn an_offset_comes_from_the_fastest_message_of_each_direction() {
        // Two ticks are a nanosecond. The reference is 1,000 ns ahead; messages take 100 to 300 ns.
        let exchanges = [(0, 100, 300), (10_000, 300, 100), (20_000, 250, 250)].map(|(asked, there, back)| {
            let came = asked + 2 * there;
            Exchange { asked, answered: came + 2 * back, came, left: came }
        });
        let found = offset(&exchanges, &mut clock(0), &mut clock(1_000)).unwrap();
        assert_eq!(found.offset, 1_000);
        assert!((found.standard_deviation - 100.0 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(offset(&[], &mut clock(0), &mut clock(0)), None);
    }
}
