//! How far events move and what that does to local intervals, counted while events stream by.

use crate::report::{ChangeOctave, Displacement, IntervalChange};
use clc_trace::Ticks;
use clc_trace::vector::widest;
use serde::{Deserialize, Serialize};

/// Resolution of the histogram of interval changes: so many classes per doubling.
const PER_OCTAVE: u32 = 8;
/// The histogram begins at a change of 2^-40 (about 1e-10 per cent) and ends at 2^24.
const OCTAVES: u32 = 64;
const LOWEST: i32 = -40;

/// Counts over the events of one or more locations. Sums of integers only: the same for any distribution over ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisplacementCounts {
    events: u64,
    moved: u64,
    largest: i64,
    /// Sum of all moves, split into two words (sums of 64-bit values overflow).
    sum: (u64, u64),
    /// Events whose time is not the recorded one, and the largest difference.
    from_recorded: (u64, i64),
    intervals: u64,
    classes: [u64; 7],
    /// Largest change as a fraction change/before of an interval; before = 0 stands for "from zero to something".
    largest_change: (i64, i64),
    histogram: Vec<u64>,
}

/// Displacement of the events of one location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationSum {
    /// Events.
    pub events: u64,
    /// Those that were moved.
    pub moved: u64,
    /// Largest displacement, in ticks.
    pub largest: i64,
    /// Sum of all moves, in two words.
    sum: (u64, u64),
}

impl LocationSum {
    /// Mean displacement of the moved events, in ticks.
    pub(crate) fn mean_ticks(&self) -> f64 {
        if self.moved == 0 {
            return 0.0;
        }
        (self.sum.1 as f64 * 2f64.powi(64) + self.sum.0 as f64) / self.moved as f64
    }
}

/// Where in its doubling each class but the first begins: the fractional bits of 2^(k/8), k = 1 to 7.
const CLASS_BEGINS: [u64; PER_OCTAVE as usize - 1] = [
    0x1_72b8_3c7d_517b,
    0x3_06fe_0a31_b715,
    0x4_bfda_d536_2a27,
    0x6_a09e_667f_3bcd,
    0x8_ace5_422a_a0db,
    0xa_e89f_995a_d3ad,
    0xd_5818_dcfb_a487,
];

/// Bits of the fraction of a double.
const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
/// A doubling in so many parts (as a power of two) has at most one beginning of a class in each.
const PART: u32 = 5;

/// For each part of a doubling, the class at its beginning, and where within it the next class begins.
const CLASSES: [(u8, u64); 1 << PART] = {
    let mut classes = [(0, u64::MAX); 1 << PART];
    let mut part = 0;
    while part < classes.len() {
        let begin = (part as u64) << (FRACTION - PART);
        let mut class = 0;
        while class < CLASS_BEGINS.len() && CLASS_BEGINS[class] <= begin {
            class += 1;
        }
        classes[part] = (class as u8, if class < CLASS_BEGINS.len() { CLASS_BEGINS[class] } else { u64::MAX });
        part += 1;
    }
    classes
};

/// The class of a ratio in the histogram, from its bits: faster than a logarithm, and the same on every machine.
#[inline]
fn histogram_class(ratio: f64) -> usize {
    let octave = (ratio.to_bits() >> FRACTION) as i32 - (f64::MAX_EXP - 1) - LOWEST;
    let fraction = ratio.to_bits() & ((1 << FRACTION) - 1);
    let (class, next) = CLASSES[(fraction >> (FRACTION - PART)) as usize];
    let part = i32::from(class) + i32::from(fraction >= next);
    (octave * PER_OCTAVE as i32 + part).clamp(0, (OCTAVES * PER_OCTAVE) as i32 - 1) as usize
}

/// Memory for a list of intervals that change: their lengths before and after. It is used again and again, and never cleared.
#[derive(Debug, Default)]
pub struct ChangedIntervals(Vec<(i64, i64)>);

impl ChangedIntervals {
    /// Lists the changed ones of those that end at events with these times, before and after, which begin at the `previous` event or at one of them.
    fn of(&mut self, before: &[i64], after: &[i64], previous: Option<(i64, i64)>) -> &[(i64, i64)] {
        let most = before.len().min(after.len());
        if self.0.len() < most {
            self.0.resize(most, (0, 0));
        }
        let list = &mut self.0[..most];
        let mut count = 0;
        if let (Some(previous), Some(&before), Some(&after)) = (previous, before.first(), after.first()) {
            list[0] = (before - previous.0, after - previous.1);
            count = usize::from(list[0].0 != list[0].1);
        }
        // Which of them change follows no pattern: they are listed without a branch.
        for (before, after) in before.windows(2).zip(after.windows(2)) {
            let (old, new) = (before[1] - before[0], after[1] - after[0]);
            list[count] = (old, new);
            count += usize::from(old != new);
        }
        &list[..count]
    }
}

/// How times of one list differ from those of another.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Moves {
    /// How many do.
    moved: u64,
    /// The most, in ticks.
    largest: i64,
    /// Modulo 2⁶⁴.
    sum: u64,
}

impl Moves {
    /// Of lists of the same length. Times are below 2^62, so their differences fit.
    fn between(one: &[i64], other: &[i64]) -> Moves {
        widest(
            #[inline(always)]
            || {
                let mut moves = Moves::default();
                for (one, other) in one.iter().zip(other) {
                    let moved = other.wrapping_sub(*one).wrapping_abs();
                    moves.moved += u64::from(moved != 0);
                    moves.largest = moves.largest.max(moved);
                    moves.sum = moves.sum.wrapping_add(moved as u64);
                }
                moves
            },
        )
    }
}

impl Default for DisplacementCounts {
    fn default() -> Self {
        DisplacementCounts {
            events: 0,
            moved: 0,
            largest: 0,
            sum: (0, 0),
            from_recorded: (0, 0),
            intervals: 0,
            classes: [0; 7],
            largest_change: (0, 1),
            histogram: vec![0; (OCTAVES * PER_OCTAVE) as usize],
        }
    }
}

impl DisplacementCounts {
    /// `events` events of a location that does not change at all.
    pub(crate) fn unchanged(events: u64) -> Self {
        let mut counts =
            DisplacementCounts { events, intervals: events.saturating_sub(1), ..DisplacementCounts::default() };
        counts.classes[0] = counts.intervals;
        counts
    }

    /// The next events of a location: their times as recorded, before and after the correction, in three lists of the same length, and the
    /// last two of the event before them.
    pub fn events(
        &mut self,
        recorded: &[i64],
        before: &[i64],
        after: &[i64],
        previous: Option<(i64, i64)>,
        memory: &mut ChangedIntervals,
    ) {
        self.events += after.len() as u64;
        let from_recorded = Moves::between(recorded, after);
        self.from_recorded.0 += from_recorded.moved;
        self.from_recorded.1 = self.from_recorded.1.max(from_recorded.largest);
        let moves = Moves::between(before, after);
        self.moved += moves.moved;
        self.largest = self.largest.max(moves.largest);
        // As long as the sum of all of them fits into a word.
        if moves.largest < i64::MAX >> 32 && after.len() < 1 << 31 {
            self.add(moves.sum);
        } else {
            before.iter().zip(after).for_each(|(before, after)| self.add(before.abs_diff(*after)));
        }
        let intervals = (after.len() as u64).saturating_sub(u64::from(previous.is_none()));
        let changed = memory.of(before, after, previous);
        self.intervals += intervals;
        self.classes[0] += intervals - changed.len() as u64;
        let mut near = self.nearly_largest();
        for &(old, new) in changed {
            self.changed(old, new, &mut near);
        }
    }

    fn add(&mut self, moves: u64) {
        let (low, carry) = self.sum.0.overflowing_add(moves);
        self.sum = (low, self.sum.1 + u64::from(carry));
    }

    /// An interval of `old` ticks that has `new` ones now; `near` is [`DisplacementCounts::nearly_largest`], before and after it.
    #[inline]
    fn changed(&mut self, old: i64, new: i64, near: &mut f64) {
        self.classes[IntervalChange::class(old, new)] += 1;
        let change = (new - old).abs();
        let ratio = if old == 0 { f64::MAX } else { change as f64 / old as f64 };
        self.histogram[histogram_class(ratio)] += 1;
        if ratio >= *near {
            let (most, of) = self.largest_change;
            let larger = match (old, of) {
                (0, 0) => change > most,
                (0, _) => true,
                (_, 0) => false,
                _ => i128::from(change) * i128::from(of) > i128::from(most) * i128::from(old),
            };
            if larger {
                self.largest_change = (change, old);
                *near = self.nearly_largest();
            }
        }
    }

    /// A little less than the largest change so far, as a number: what is not above it need not be compared exactly.
    fn nearly_largest(&self) -> f64 {
        let (most, of) = self.largest_change;
        let ratio = if of == 0 { f64::MAX } else { most as f64 / of as f64 };
        ratio * (1.0 - 1e-9)
    }

    /// Adds the counts of other locations.
    pub(crate) fn merge(&mut self, other: &DisplacementCounts) {
        self.events += other.events;
        self.moved += other.moved;
        self.largest = self.largest.max(other.largest);
        let (low, carry) = self.sum.0.overflowing_add(other.sum.0);
        self.sum = (low, self.sum.1 + other.sum.1 + u64::from(carry));
        self.from_recorded.0 += other.from_recorded.0;
        self.from_recorded.1 = self.from_recorded.1.max(other.from_recorded.1);
        self.intervals += other.intervals;
        for (sum, count) in self.classes.iter_mut().zip(other.classes) {
            *sum += count;
        }
        let fraction = |(change, of): (i64, i64)| if of == 0 { (1, change, 1) } else { (0, change, of) };
        let (own, theirs) = (fraction(self.largest_change), fraction(other.largest_change));
        let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
        if (theirs.0, product(theirs.1, own.2)) > (own.0, product(own.1, theirs.2)) {
            self.largest_change = other.largest_change;
        }
        for (sum, count) in self.histogram.iter_mut().zip(&other.histogram) {
            *sum += count;
        }
    }

    /// The moves alone.
    pub(crate) fn sum(&self) -> LocationSum {
        LocationSum { events: self.events, moved: self.moved, largest: self.largest, sum: self.sum }
    }

    /// For the report.
    pub fn report(&self, resolution: u64) -> Displacement {
        let (change, of) = self.largest_change;
        Displacement {
            events: self.events,
            events_moved: self.moved,
            largest_ticks: self.largest,
            largest_seconds: Ticks(self.largest).seconds(resolution),
            mean_seconds: self.sum().mean_ticks() / resolution as f64,
            from_recorded_events: self.from_recorded.0,
            from_recorded_largest_ticks: self.from_recorded.1,
            from_recorded_largest_seconds: Ticks(self.from_recorded.1).seconds(resolution),
            interval_change: IntervalChange {
                largest_percent: if of == 0 { f64::INFINITY } else { change as f64 / of as f64 * 100.0 },
                median_percent: self.median() * 100.0,
                classes: IntervalChange::classes(self.classes),
                histogram: self.by_octave(),
            },
        }
    }

    /// Changed intervals by powers of two of their change, from the first class that occurs to the last.
    fn by_octave(&self) -> Vec<ChangeOctave> {
        let octaves: Vec<u64> =
            self.histogram.chunks(PER_OCTAVE as usize).map(|classes| classes.iter().sum()).collect();
        let first = octaves.iter().position(|&count| count > 0).unwrap_or(octaves.len());
        let last = octaves.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        let from = |octave: usize| f64::from(LOWEST + octave as i32).exp2() * 100.0;
        (first..last).map(|o| ChangeOctave { from_percent: from(o), intervals: octaves[o] }).collect()
    }

    /// Median change of an interval, from the histogram (to within one class, 9 per cent of itself).
    fn median(&self) -> f64 {
        let mut rest = self.intervals / 2;
        if rest < self.classes[0] {
            return 0.0;
        }
        rest -= self.classes[0];
        for (class, &count) in self.histogram.iter().enumerate() {
            if rest < count {
                return ((class as f64 + 0.5) / f64::from(PER_OCTAVE) + f64::from(LOWEST)).exp2();
            }
            rest -= count;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_and_intervals_are_counted() {
        let mut counts = DisplacementCounts::default();
        counts.events(&[0, 90, 260], &[0, 100, 200], &[0, 150, 250], None, &mut ChangedIntervals::default());
        let report = counts.report(1000);
        assert_eq!((report.events, report.events_moved, report.largest_ticks), (3, 2, 50));
        assert_eq!(report.mean_seconds, 0.05);
        assert_eq!((report.from_recorded_events, report.from_recorded_largest_ticks), (2, 60));
        assert_eq!(report.from_recorded_largest_seconds, 0.06);
        assert_eq!(report.interval_change.largest_percent, 50.0);
        assert!((report.interval_change.median_percent - 50.0).abs() < 5.0);
    }

    #[test]
    fn classes_of_the_histogram_are_eighths_of_a_doubling() {
        for class in 0..OCTAVES * PER_OCTAVE {
            let begin = (f64::from(class) / f64::from(PER_OCTAVE) + f64::from(LOWEST)).exp2();
            assert_eq!(histogram_class(begin * 1.0001), class as usize);
            assert_eq!(histogram_class(begin * 0.9999), class.saturating_sub(1) as usize);
        }
        assert_eq!(histogram_class(0.0), 0);
        assert_eq!(histogram_class(f64::MAX), (OCTAVES * PER_OCTAVE) as usize - 1);
    }

    #[test]
    fn counts_do_not_depend_on_how_they_are_split() {
        // One move is too large for sums in one word.
        let before = [0, 10, 17, 17, 1000, 2000, 1 << 61];
        let after = [0, 15, 15, 40, 1001, 2000, (1 << 60) + (1 << 61)];
        let recorded = before.map(|before| before - 3);
        let (mut whole, mut memory) = (DisplacementCounts::default(), ChangedIntervals::default());
        whole.events(&recorded, &before, &after, None, &mut memory);
        let mut parts = DisplacementCounts::default();
        for i in 0..before.len() {
            let mut part = DisplacementCounts::default();
            let previous = i.checked_sub(1).map(|i| (before[i], after[i]));
            part.events(&recorded[i..=i], &before[i..=i], &after[i..=i], previous, &mut memory);
            parts.merge(&part);
        }
        assert_eq!(whole, parts);
        assert_eq!((whole.events, whole.moved, whole.largest, whole.from_recorded.0), (7, 5, 1 << 60, 7));
        assert_eq!(whole.sum, ((1 << 60) + 5 + 2 + 23 + 1, 0));
    }
}
