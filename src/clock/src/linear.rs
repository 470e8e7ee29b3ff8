//! Linear interpolation between measured clock offsets, in exact integer arithmetic.

use super::interval::Interval;
use super::stretch::Stretch;
use super::{ModelKind, RANGE};
use clc_trace::{ClockOffset, Error, Result, Ticks};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One measurement (t_k, o_k): the clock's offset at a local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct OffsetKnot {
    time: i64,
    offset: i64,
}

/// The clock of one location, from its recorded offsets (OTF2 `ClockOffset`: local time t_k, offset o_k).
///
/// - two or more records: piecewise linear, `T = t + o_k + round_half_even((o_{k+1} - o_k) (t - t_k) / (t_{k+1} - t_k))`
///   on t_k < t <= t_{k+1}; the first and the last interval extend to the times before and after all records;
/// - exactly one record: its offset everywhere (libotf2 ignores a single record);
/// - none: the identity.
///
/// This is the rule of libotf2, which evaluates it in floating point; here it is exact. The function is
/// continuous at the records and nondecreasing everywhere: every slope is checked to be over -1 tick per tick.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<OffsetKnot>", into = "Vec<OffsetKnot>")]
pub struct LinearClock {
    knots: Vec<OffsetKnot>,
}

/// How fast a clock drifts against global time between two measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Local time at which the interval begins.
    pub from: Ticks,
    /// Local time at which it ends.
    pub until: Ticks,
    /// Change of the offset in millionths of the elapsed time; positive if the local clock is slow.
    pub ppm: f64,
}

impl LinearClock {
    /// The clock that is global time already.
    pub fn identity() -> Self {
        LinearClock::default()
    }

    /// The clock with these measured offsets, in the order of the file.
    ///
    /// # Errors
    /// Times that do not strictly increase, times or offsets of 2^62 ticks or more, and an offset that falls so fast
    /// that corrected time would stand still or run backwards; the message names the records (counted from 1).
    pub fn new(offsets: &[ClockOffset]) -> Result<Self> {
        let knots = offsets.iter().enumerate().map(|(index, record)| {
            let time = i64::try_from(record.time).ok().filter(|&time| time < RANGE);
            time.map(|time| OffsetKnot { time, offset: record.offset }).ok_or_else(|| out_of_range(index, "time"))
        });
        knots.collect::<Result<Vec<OffsetKnot>>>()?.try_into()
    }

    /// The function through points (time, offset), in order of time; the times may be negative, but stay within half of
    /// [`RANGE`]. One point is a constant, none the identity.
    ///
    /// # Errors
    /// As [`LinearClock::new`].
    pub fn through(points: &[(Ticks, Ticks)]) -> Result<Self> {
        let knots: Vec<OffsetKnot> =
            points.iter().map(|&(time, offset)| OffsetKnot { time: time.0, offset: offset.0 }).collect();
        LinearClock::checked(knots, -RANGE / 2 + 1..RANGE / 2)
    }

    /// Global time at `local`, by binary search. The same result as that of [`LinearClock::cursor`].
    pub fn map(&self, local: Ticks) -> Ticks {
        let offset = match self.interval(self.locate(local.0)) {
            Some(interval) => interval.offset_plain(local.0),
            None => 0,
        };
        add(local, offset)
    }

    /// A reader of this clock for many times, best in nondecreasing order.
    pub fn cursor(&self) -> LinearClockCursor<'_> {
        let mut cursor = LinearClockCursor {
            clock: self,
            interval: IDENTITY,
            after: i64::MIN,
            until: i64::MIN,
            stretch: Stretch::EMPTY,
        };
        cursor.enter(0);
        cursor
    }

    /// What the clock does: all offsets zero is [`ModelKind::Identity`], all equal [`ModelKind::Constant`].
    pub fn kind(&self) -> ModelKind {
        match self.knots.split_first() {
            Some((first, rest)) if rest.iter().any(|knot| knot.offset != first.offset) => ModelKind::Piecewise,
            Some((first, _)) if first.offset != 0 => ModelKind::Constant,
            _ => ModelKind::Identity,
        }
    }

    /// Number of measurements.
    pub fn measurements(&self) -> usize {
        self.knots.len()
    }

    /// Local times and offsets there, between which it is a straight line.
    pub(crate) fn points(&self) -> impl ExactSizeIterator<Item = (i64, i64)> + '_ {
        self.knots.iter().map(|knot| (knot.time, knot.offset))
    }

    /// Drift of every interval between two measurements, in order of time.
    pub fn drifts(&self) -> impl Iterator<Item = Drift> + '_ {
        pairs(&self.knots).map(|(a, b)| Drift {
            from: Ticks(a.time),
            until: Ticks(b.time),
            ppm: 1e6 * (b.offset - a.offset) as f64 / (b.time - a.time) as f64,
        })
    }

    /// Checks that the times from `first` to `last` map into the range in which times can be represented, so that
    /// [`LinearClock::map`] clamps none of them. As the clock is nondecreasing, the two ends decide.
    ///
    /// # Errors
    /// A time leaves the range, which only a nonsensical drift can do.
    pub fn check_range(&self, first: Ticks, last: Ticks) -> Result<()> {
        for time in [first, last] {
            if self.map(time).0.unsigned_abs() >= RANGE.unsigned_abs() {
                let message = format!("the clock offsets map local time {time} outside the range of 62 bits");
                return Err(Error::new(message).hint("use `--presync none` to ignore the recorded clock offsets"));
            }
        }
        Ok(())
    }

    /// Times at least so far apart are mapped to times at least `distance` apart (wherever [`LinearClock::map`] clamps none of them).
    pub fn reach(&self, distance: u64) -> u64 {
        let intervals = 0..self.knots.len().saturating_sub(1).max(1);
        intervals.filter_map(|k| self.interval(k)).map(|interval| interval.reach(distance)).max().unwrap_or(distance)
    }

    /// Number of the interval that holds `time`: interval k ends with t_{k+1} inclusive.
    fn locate(&self, time: i64) -> usize {
        let ends = self.knots.len().saturating_sub(1);
        // The last record ends no interval that another one follows, and the first record ends none at all.
        self.knots.get(1..ends).map_or(0, |inner| inner.partition_point(|knot| knot.time < time))
    }

    /// Interval `k`; none only for the identity.
    fn interval(&self, k: usize) -> Option<Interval> {
        let start = self.knots.get(k)?;
        Some(match self.knots.get(k + 1) {
            Some(end) => Interval::new(start.time, start.offset, end.offset - start.offset, end.time - start.time),
            None => Interval::new(start.time, start.offset, 0, 1),
        })
    }
}

/// Checks every rule but the width of the times in the file.
impl TryFrom<Vec<OffsetKnot>> for LinearClock {
    type Error = Error;

    fn try_from(knots: Vec<OffsetKnot>) -> Result<Self> {
        LinearClock::checked(knots, 0..RANGE)
    }
}

impl LinearClock {
    /// Checks what makes the function nondecreasing and its numbers small enough.
    fn checked(knots: Vec<OffsetKnot>, times: Range<i64>) -> Result<Self> {
        for (index, knot) in knots.iter().enumerate() {
            if !times.contains(&knot.time) {
                return Err(out_of_range(index, "time"));
            }
            if knot.offset.unsigned_abs() >= RANGE.unsigned_abs() {
                return Err(out_of_range(index, "offset"));
            }
        }
        for (index, (a, b)) in pairs(&knots).enumerate() {
            let names = format!("clock offset records {} and {}", index + 1, index + 2);
            if b.time <= a.time {
                let message = format!("{names}: time does not increase ({}, then {} ticks)", a.time, b.time);
                return Err(Error::new(message).hint(
                    "the archive is damaged; use `--presync none` to ignore these \
                    records",
                ));
            }
            if b.offset - a.offset <= -(b.time - a.time) {
                let (fall, within) =
                    (i128::from(a.offset) - i128::from(b.offset), i128::from(b.time) - i128::from(a.time));
                let does = if fall == within { "stand still" } else { "run backwards" };
                let message =
                    format!("{names}: the offset falls by {fall} ticks within {within} ticks, so time would {does}");
                return Err(Error::new(message).hint(
                    "use `--presync auto`, which leaves such records out, or `--presync none` to ignore \
                    all of them",
                ));
            }
        }
        Ok(LinearClock { knots })
    }
}

impl From<LinearClock> for Vec<OffsetKnot> {
    fn from(clock: LinearClock) -> Self {
        clock.knots
    }
}

/// A [`LinearClock`] with a memory of the last interval: amortised constant time for nondecreasing times, and right
/// for times in any order.
#[derive(Debug, Clone)]
pub struct LinearClockCursor<'clock> {
    clock: &'clock LinearClock,
    interval: Interval,
    /// The interval holds the times `after < t <= until`; the outer intervals have no limit outwards.
    after: i64,
    until: i64,
    /// A part of it, on which most times are mapped.
    stretch: Stretch,
}

impl LinearClockCursor<'_> {
    /// Global time at `local`, as [`LinearClock::map`].
    #[inline(always)]
    pub fn map(&mut self, local: Ticks) -> Ticks {
        let (global, certain) = self.stretch.map(local.0);
        if certain { Ticks(global) } else { self.map_exactly(local) }
    }

    /// As [`LinearClockCursor::map`] for some times, in ticks: puts the global ones in `global`, which is as long. It is fastest for some tens of times.
    #[inline(always)]
    pub(crate) fn map_some(&mut self, local: &[i64], global: &mut [i64]) {
        let stretch = self.stretch;
        let mut all_certain = true;
        for (local, global) in local.iter().zip(&mut *global) {
            let (mapped, certain) = stretch.map(*local);
            *global = mapped;
            all_certain &= certain;
        }
        if !all_certain {
            local.iter().zip(global).for_each(|(local, global)| *global = self.map(Ticks(*local)).0);
        }
    }

    /// Of any time, by the formula; moves to another interval and another stretch if it is beyond these.
    #[inline(never)]
    fn map_exactly(&mut self, local: Ticks) -> Ticks {
        if !self.stretch.holds(local.0) {
            // `after` is i64::MIN for the first interval, which holds that very time too; `locate` confirms it.
            if local.0 > self.until || local.0 <= self.after {
                self.enter(self.clock.locate(local.0));
            }
            self.stretch = Stretch::around(local.0, self.after.saturating_add(1), self.until, &self.interval);
        }
        add(local, self.interval.offset(local.0))
    }

    /// Moves to interval `k`.
    #[cold]
    fn enter(&mut self, k: usize) {
        let knots = &self.clock.knots;
        self.interval = self.clock.interval(k).unwrap_or(IDENTITY);
        self.after = if k == 0 { i64::MIN } else { knots.get(k).map_or(i64::MIN, |knot| knot.time) };
        self.until = if k + 2 < knots.len() { knots.get(k + 1).map_or(i64::MAX, |knot| knot.time) } else { i64::MAX };
    }
}

/// Of a clock without measurements.
const IDENTITY: Interval = Interval::constant(0);

/// `local + offset`, clamped to the range of times.
#[inline]
fn add(local: Ticks, offset: i128) -> Ticks {
    let limit = i128::from(RANGE);
    Ticks((i128::from(local.0) + offset).clamp(-limit, limit) as i64)
}

/// Neighbouring records.
fn pairs(knots: &[OffsetKnot]) -> impl Iterator<Item = (&OffsetKnot, &OffsetKnot)> {
    knots.iter().zip(knots.iter().skip(1))
}

fn out_of_range(index: usize, what: &str) -> Error {
    Error::new(format!("clock offset record {}: {what} is outside the range of 62 bits", index + 1))
        .hint("the archive is damaged; use `--presync none` to ignore these records")
}

#[cfg(test)]
#[path = "linear_tests.rs"]
mod tests;
