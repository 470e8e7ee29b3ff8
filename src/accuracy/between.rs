//! The error between processes: what the timelines' errors differ by, whatever they have in common.
//!
//! A correction may move all processes together. That is an error against absolute time, and yet no message, wait or
//! overlap looks different for it. So the errors of a timeline's events are averaged in short windows of true time, and what
//! the timelines of a window have in common, the mean of their averages, is subtracted. What is left counts.
//!
//! All sums are integers and their order does not matter: the same bits for any number of ranks. Memory is windows that
//! have events, of which there are at most [`MOST_WINDOWS`]; what timelines there are is not stored.

use crate::report::BetweenProcesses;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longer runs get longer windows, so that there are no more than this many.
pub(crate) const MOST_WINDOWS: u64 = 1 << 16;
/// Averages are rounded down to this share of a tick, as a power of two: 1/256, so that rounding does not show even where errors are of a few ticks. Sums
/// have 128 bits, which leaves room for it.
const FRACTION: u32 = 8;

/// Equal windows of true time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrueTimeWindows {
    first: i64,
    ticks: u64,
    count: u64,
}

impl TrueTimeWindows {
    /// Windows of `ticks` for a run from `first` to `last`, or twice, four times, ... as long where these would be too many.
    pub(crate) fn new((first, last): (i64, i64), ticks: u64) -> Self {
        let length = last.abs_diff(first).saturating_add(1);
        let mut ticks = ticks.max(1);
        while length.div_ceil(ticks) > MOST_WINDOWS {
            ticks = ticks.saturating_mul(2);
        }
        TrueTimeWindows { first, ticks, count: length.div_ceil(ticks) }
    }

    /// The window of a true time.
    #[inline]
    pub(crate) fn of(&self, truth: i64) -> u32 {
        (truth.abs_diff(self.first) / self.ticks).min(self.count - 1) as u32
    }

    /// Length of a window in ticks.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count as u32
    }
}

/// Errors of one timeline, by window.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimelineErrors {
    windows: BTreeMap<u32, (u64, i128)>,
    /// The window that events come from, and its sums.
    current: (u32, u64, i128),
}

impl TimelineErrors {
    /// Adds the error of an event, in ticks.
    #[inline]
    pub(crate) fn add(&mut self, window: u32, error: i64) {
        if window != self.current.0 {
            self.store();
            self.current.0 = window;
        }
        self.current.1 += 1;
        self.current.2 += i128::from(error);
    }

    fn store(&mut self) {
        let (window, count, sum) = self.current;
        if count > 0 {
            let entry = self.windows.entry(window).or_default();
            *entry = (entry.0 + count, entry.1 + sum);
        }
        self.current = (window, 0, 0);
    }
}

/// The averages of a window's timelines, in shares of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WindowSums {
    timelines: u64,
    sum: i128,
    squares: u128,
    least: i128,
    most: i128,
}

impl WindowSums {
    fn of(average: i128) -> Self {
        let magnitude = average.unsigned_abs();
        WindowSums {
            timelines: 1,
            sum: average,
            squares: magnitude.saturating_mul(magnitude),
            least: average,
            most: average,
        }
    }

    fn merge(&mut self, other: &WindowSums) {
        self.timelines += other.timelines;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// Sum of the squared distances from the mean, and the largest distance.
    fn spread(&self) -> (f64, f64) {
        let timelines = i128::from(self.timelines);
        // n times the sum of squares, minus the square of the sum: exact, unless clocks are off by hours of picoseconds.
        let exact = u128::from(self.timelines)
            .checked_mul(self.squares)
            .zip(self.sum.unsigned_abs().checked_pow(2))
            .map(|(squares, square)| squares.saturating_sub(square) as f64);
        let scaled = exact.unwrap_or_else(|| {
            (self.timelines as f64 * self.squares as f64 - self.sum as f64 * self.sum as f64).max(0.0)
        });
        let above = self.most.saturating_mul(timelines) - self.sum;
        let below = self.sum - self.least.saturating_mul(timelines);
        (scaled / self.timelines as f64, above.max(below) as f64 / self.timelines as f64)
    }
}

/// The errors of all timelines, by window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Between {
    windows: BTreeMap<u32, WindowSums>,
}

impl Between {
    /// Adds a timeline, all of whose events were seen.
    pub(crate) fn timeline(&mut self, mut errors: TimelineErrors) {
        errors.store();
        for (window, (count, sum)) in errors.windows {
            let average = (sum << FRACTION).div_euclid(i128::from(count));
            self.merge([(window, WindowSums::of(average))]);
        }
    }

    /// Adds what others have counted.
    pub(crate) fn merge(&mut self, windows: impl IntoIterator<Item = (u32, WindowSums)>) {
        for (window, sums) in windows {
            self.windows.entry(window).and_modify(|own| own.merge(&sums)).or_insert(sums);
        }
    }

    /// The windows from `from` on, before `to`: what is sent in one go.
    pub(crate) fn part(&self, from: u32, to: u32) -> Vec<(u32, WindowSums)> {
        self.windows.range(from..to).map(|(&window, &sums)| (window, sums)).collect()
    }

    /// For the report, with `tick` seconds per tick. A window with events of one timeline only says nothing.
    pub(crate) fn report(&self, tick: f64) -> BetweenProcesses {
        let mut result = BetweenProcesses::default();
        let (mut squares, mut averages) = (0.0, 0u64);
        for sums in self.windows.values().filter(|sums| sums.timelines > 1) {
            let (own, largest) = sums.spread();
            squares += own;
            averages += sums.timelines;
            result.windows += 1;
            result.max_seconds = result.max_seconds.max(largest);
        }
        let unit = tick / f64::from(1u32 << FRACTION);
        result.rms_seconds = (squares / averages.max(1) as f64).sqrt() * unit;
        result.max_seconds *= unit;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn between(timelines: &[&[(u32, i64)]]) -> Between {
        let mut all = Between::default();
        for events in timelines {
            let mut errors = TimelineErrors::default();
            events.iter().for_each(|&(window, error)| errors.add(window, error));
            all.timeline(errors);
        }
        all
    }

    #[test]
    fn what_is_common_does_not_count() {
        // Window 0: averages 12 and 8 (however many events), window 1: 1000 and 1006, window 2 has one timeline only.
        let all = between(&[&[(0, 11), (0, 13), (1, 1000)], &[(0, 8), (1, 1000), (1, 1012), (2, 77)]]);
        let report = all.report(1.0);
        assert_eq!(report.windows, 2);
        assert_eq!(report.rms_seconds, ((4.0f64 + 4.0 + 9.0 + 9.0) / 4.0).sqrt());
        assert_eq!(report.max_seconds, 3.0);
        assert_eq!(between(&[]).report(1.0), BetweenProcesses::default());
    }

    #[test]
    fn long_runs_get_longer_windows() {
        let windows = TrueTimeWindows::new((100, 100 + 70_000 * 10 - 1), 10);
        assert_eq!((windows.ticks(), windows.count()), (20, 35_000));
        assert_eq!((windows.of(100), windows.of(119), windows.of(120)), (0, 0, 1));
        assert_eq!(windows.of(100 + 70_000 * 10 - 1), 34_999);
        let windows = TrueTimeWindows::new((-5, 4), 10);
        assert_eq!((windows.count(), windows.of(-5), windows.of(4)), (1, 0, 0));
        let whole = TrueTimeWindows::new((i64::MIN, i64::MAX), 1);
        assert!(u64::from(whole.count()) <= MOST_WINDOWS && whole.of(i64::MAX) < whole.count());
    }

    #[test]
    fn clocks_that_are_hours_apart_do_not_overflow() {
        let hours = 40_000_000_000_000_000;
        let report = between(&[&[(0, hours)], &[(0, -hours)]]).report(1e-12);
        assert!((report.rms_seconds / 40_000.0 - 1.0).abs() < 1e-9, "{report:?}");
        assert_eq!(report.max_seconds, 40_000.0);
    }

    proptest! {
        /// A shift of all timelines changes nothing, and neither does who counts what.
        #[test]
        fn shifts_and_ranks_do_not_matter(
            events in prop::collection::vec(prop::collection::vec((0u32..4, -1_000_000i64..1_000_000), 0..20), 1..8),
            shift in -1_000_000_000i64..1_000_000_000,
        ) {
            let views: Vec<&[(u32, i64)]> = events.iter().map(Vec::as_slice).collect();
            let whole = between(&views);
            let (one, other) = views.split_at(views.len() / 2);
            let mut merged = between(other);
            let one = between(one);
            merged.merge(one.part(2, 4));
            merged.merge(one.part(0, 2));
            prop_assert_eq!(&merged, &whole);
            let shifted: Vec<Vec<(u32, i64)>> =
                events.iter().map(|events| events.iter().map(|&(w, e)| (w, e + shift)).collect()).collect();
            let views: Vec<&[(u32, i64)]> = shifted.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(between(&views).report(1.0), whole.report(1.0));
        }
    }
}
