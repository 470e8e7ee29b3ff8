//! A stretch of a clock on which offsets are found in a few operations on 64 bits, none of which is a division or depends on the time before.
//!
//! The exact line is followed in fixed point. Where that is clearly on one side of a half, the rounded offset is the exact one; elsewhere it says so,
//! and the formula has to be evaluated ([`super::interval`]).

use super::interval::{FRACTION, Interval};

/// Ticks of the longest stretch on which the offset changes, as a power of two. A longer one needs a larger [`MARGIN`].
const LENGTH: u32 = 26;

/// How far the fixed-point line may be off, in units of 2^-40 ticks: the slope and the offset at the beginning are off by less than 2 units each, and
/// the slope counts at most 2^26 times.
const MARGIN: i64 = 1 << (LENGTH + 1);

/// All bits of a fraction that are zero if it is less than twice [`MARGIN`].
const CLEAR: i64 = (1 << FRACTION) - 2 * MARGIN;

/// Times and offsets below this have a sum in the range of clocks, even if the offset changes on a stretch.
const LARGEST: i64 = super::RANGE / 2 - (1 << LENGTH);

/// A straight piece of a clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    /// Its first time.
    from: i64,
    /// How many ticks it has.
    ticks: u64,
    /// The offset at its first time, in whole ticks.
    whole: i64,
    /// The rest of that offset and half a tick, for rounding, in units of 2^-40 ticks.
    rest: i64,
    /// How much the offset changes per tick, in the same units, rounded downwards.
    slope: i32,
}

impl Stretch {
    /// Of no time.
    pub(super) const EMPTY: Stretch = Stretch { from: 0, ticks: 0, whole: 0, rest: 0, slope: 0 };

    /// Around `time`, within the times from `first` to `last` of an interval. Empty where numbers are too large, or the clock drifts by more than 2^-9.
    pub(super) fn around(time: i64, first: i64, last: i64, interval: &Interval) -> Stretch {
        let small = |number: i64| number > -LARGEST && number < LARGEST;
        if !small(time) {
            return Stretch::EMPTY;
        }
        let (from, end) = if interval.is_constant() {
            (first.clamp(-LARGEST, time), LARGEST)
        } else {
            // Most of it is later, since times mostly ascend.
            let from = (time - (1 << (LENGTH - 2))).clamp(first.min(time), time);
            (from, from + (1 << LENGTH))
        };
        match interval.line(from) {
            Some((whole, rest, slope)) if small(whole) => {
                let ticks = (end.min(last.saturating_add(1)) - from) as u64;
                Stretch { from, ticks, whole, rest: rest + (1 << (FRACTION - 1)), slope }
            }
            _ => Stretch::EMPTY,
        }
    }

    /// Whether `time` is on it.
    #[inline(always)]
    pub(super) fn holds(&self, time: i64) -> bool {
        (time.wrapping_sub(self.from) as u64) < self.ticks
    }

    /// Where `time` is mapped to, and whether that is certain.
    #[inline(always)]
    pub(super) fn map(&self, time: i64) -> (i64, bool) {
        // Numbers of half the width have a product that vector instructions can form.
        let elapsed = time.wrapping_sub(self.from) as i32;
        let line = self.rest + i64::from(self.slope) * i64::from(elapsed);
        let certain = self.holds(time) & ((line + MARGIN) & CLEAR != 0);
        (time.wrapping_add(self.whole).wrapping_add(line >> FRACTION), certain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn certain_times_are_the_exact_ones(
            start in -(1i64 << 60)..1 << 60, offset in -(1i64 << 40)..1 << 40, length in 1i64..1 << 45, millionths in -2000i64..2000,
            after in -(1i64 << 40)..1 << 50, before in 0i64..1 << 27, elapsed in prop::collection::vec(-(1i64 << 27)..1 << 27, 1..20),
        ) {
            // Some drift so little that the slope is zero in fixed point.
            let rise = (i128::from(length) * i128::from(millionths) / 1_000_000) as i64 + millionths.signum();
            let interval = Interval::new(start, offset, rise.max(1 - length), length);
            let time = start + after;
            let stretch = Stretch::around(time, time - before, time + before, &interval);
            for time in elapsed.iter().map(|elapsed| time + elapsed).chain([time]) {
                let (mapped, certain) = stretch.map(time);
                prop_assert!(!certain || i128::from(mapped) == i128::from(time) + interval.offset_plain(time));
                prop_assert!(!certain || stretch.holds(time));
            }
        }

        #[test]
        fn ties_are_not_certain(half in 1i64..1 << 20, elapsed in -1000i64..1000) {
            // Ties and what is next to them, with slopes of 1 / length.
            let interval = Interval::new(0, 0, 1, 2 * half + 1000);
            let time = half + 500 + elapsed;
            let (mapped, certain) = Stretch::around(time, i64::MIN, i64::MAX, &interval).map(time);
            prop_assert!(!certain || elapsed != 0);
            prop_assert!(!certain || i128::from(mapped) == i128::from(time) + interval.offset_plain(time));
        }
    }

    #[test]
    fn few_times_are_uncertain_and_stretches_are_long() {
        let interval = Interval::new(0, 0, 20_000, 1_000_000_000);
        let stretch = Stretch::around(1 << 40, i64::MIN, i64::MAX, &interval);
        let times = (1i64 << 40)..(1 << 40) + 100_000;
        assert!(times.clone().all(|time| stretch.holds(time)));
        assert!(times.filter(|&time| !stretch.map(time).1).count() < 100);
    }

    #[test]
    fn a_constant_has_no_end_and_a_fast_clock_no_stretch() {
        let constant = Stretch::around(1 << 50, i64::MIN, i64::MAX, &Interval::new(0, -7, 0, 1));
        for time in [-(1 << 60), 0, 1 << 60] {
            assert_eq!(constant.map(time), (time - 7, true));
        }
        let fast = Stretch::around(5, i64::MIN, i64::MAX, &Interval::new(0, 0, 1, 400));
        assert!(!fast.holds(5));
        let large = Stretch::around(super::super::RANGE - 1, i64::MIN, i64::MAX, &Interval::new(0, 0, 0, 1));
        assert!(!large.holds(super::super::RANGE - 1));
    }
}
