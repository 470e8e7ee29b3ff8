//! Messages that were observed with some clocks, as better clocks see them: as long as these do not bend much within a window of the messages, those that
//! were the quickest of their windows still are, and need not be looked for again.

use super::Estimator;
use crate::LinearClock;
use crate::grid::Grid;
use crate::observations::Offsets;
use clc_trace::Ticks;
use clc_trace::workers::Workers;

/// By how much of the precision of observations clocks may have moved within a window (root mean square) until messages are looked at again. Chosen
/// by hand: a smaller part costs further looks at all messages, with a larger one bounds are no longer the tightest ones.
const QUICK_ENOUGH: f64 = 0.25;
/// Windows of clocks that one thread has looked at before another has begun.
const ALONE: usize = 8192;

/// The clocks by which messages were seen.
pub(super) struct SeenBy {
    /// The windows of the messages.
    grid: Grid,
    /// The corrections at their middles, and the whole part of each clock's.
    offsets: Offsets,
    constants: Vec<i64>,
}

impl SeenBy {
    pub(super) fn new(estimator: &Estimator, grid: Grid, clocks: usize) -> SeenBy {
        SeenBy { grid, offsets: estimator.interpolated(&grid, clocks), constants: estimator.constants.clone() }
    }

    /// What a clock was corrected by at a time, but for its constant.
    fn rest(&self, clock: u32, time: i64) -> f64 {
        self.offsets.get(clock as usize).map_or(0.0, |row| self.grid.at(row, time))
    }

    /// By how much the correction of a clock has changed at a time, now that it is `constant` and `offset`.
    pub(super) fn moved(&self, clock: usize, constant: i64, offset: f64, time: i64) -> f64 {
        let before = self.constants.get(clock).copied().unwrap_or(0);
        constant.saturating_sub(before) as f64 + offset - self.rest(clock as u32, time)
    }

    pub(super) fn correction(&self, clock: u32, time: i64) -> i64 {
        whole(self.rest(clock, time)) + self.constants.get(clock as usize).copied().unwrap_or(0)
    }

    /// What other clocks make of these times, each from the times of the recorded clock.
    pub(super) fn changes(&self, clocks: &[LinearClock], workers: Workers) -> Changes {
        let workers = if clocks.len() * self.grid.count < ALONE { Workers::ONE } else { workers };
        let of = |clock: usize| {
            let refined = &clocks[clock];
            let change = |window: usize| {
                let time = self.grid.centre(window);
                let own = time.saturating_sub(self.correction(clock as u32, time));
                refined.map(Ticks(own)).0.saturating_sub(time)
            };
            let constant = change(0);
            (constant, (0..self.grid.count).map(|window| change(window).saturating_sub(constant) as f64).collect())
        };
        Changes { grid: self.grid, rows: workers.map(clocks.len(), of) }
    }
}

/// By how much the times of clocks change: a whole number and the rest at the middles of windows.
pub(super) struct Changes {
    grid: Grid,
    rows: Vec<(i64, Vec<f64>)>,
}

impl Changes {
    pub(super) fn at(&self, clock: u32, time: i64) -> i64 {
        let change = |(constant, row): &(i64, Vec<f64>)| constant.saturating_add(whole(self.grid.at(row, time)));
        self.rows.get(clock as usize).map_or(0, change)
    }
}

/// The nearest whole number, halves away from zero; for numbers beyond those of 64 bits the last one of these.
pub(super) fn whole(x: f64) -> i64 {
    (x + 0.5f64.copysign(x)) as i64
}

impl Estimator {
    /// Whether messages that were the quickest of their windows with the clocks before are so with those of now, which have windows like `now`, as far as it
    /// matters: within a window of the messages clocks have moved against each other by less than what observations are known to.
    pub(super) fn are_still_the_quickest(&self, before: &SeenBy, now: &Grid) -> bool {
        let part = before.grid.width as f64 / now.width as f64;
        let (mut squares, mut count) = (0.0, 0.0);
        for (clock, row) in self.offsets.iter().enumerate() {
            let moved = |window: usize, offset: f64| offset - before.rest(clock as u32, now.centre(window));
            let mut last: Option<f64> = None;
            for (window, offset) in row.iter().enumerate() {
                let here = moved(window, *offset);
                if let Some(last) = last {
                    squares += (here - last) * (here - last) * part * part;
                    count += 1.0;
                }
                last = Some(here);
            }
        }
        count > 0.0 && (squares / count).sqrt() <= QUICK_ENOUGH * self.observations.precision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn other_clocks_see_the_times_that_they_would_have_given(
            before in prop::collection::vec(-50.0f64..50.0, 8), after in prop::collection::vec(-50i64..50, 8),
            whole in -1_000_000_000_000i64..1_000_000_000_000, own in 0i64..7_000
        ) {
            let grid = Grid { first: whole, width: 1000, count: 8 };
            let seen_by = SeenBy { grid, offsets: vec![before], constants: vec![whole] };
            // Both go through the middles of the windows, in times of the recorded clock.
            let middle = |window: usize| grid.centre(window) - seen_by.correction(0, grid.centre(window));
            let knots = after.iter().enumerate().map(|(window, offset)| (Ticks(middle(window)), Ticks(whole + offset)));
            let refined = LinearClock::through(&knots.collect::<Vec<_>>()).unwrap();
            let seen = own + whole;
            let recorded = seen - seen_by.correction(0, seen);
            let changed = seen + seen_by.changes(std::slice::from_ref(&refined), Workers::ONE).at(0, seen);
            // Three roundings to ticks.
            prop_assert!((changed - refined.map(Ticks(recorded)).0).abs() <= 3, "{changed} {:?}", refined.map(Ticks(recorded)));
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        assert_eq!([1.5, -1.5, 0.4, -0.4, 1e300].map(whole), [2, -2, 0, 0, i64::MAX]);
    }
}
