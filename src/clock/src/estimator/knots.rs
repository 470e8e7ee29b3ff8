//! From corrections by window to functions of the time of each recorded clock.

use super::seen_by::whole;
use super::{Estimator, unmeasured};
use crate::clock_map::ClockMap;
use crate::grid::Grid;
use crate::observations::Offsets;
use crate::reference::{Reference, synthesise};
use crate::steps::compose as compose_steps;
use crate::{Knots, LinearClock};
use clc_trace::{Result, Ticks};

/// Largest drift that a clock is given, as a part of one. Chosen by hand: more than clocks drift, and far enough below one that time never stands
/// still.
pub(super) const STEEPEST: f64 = 0.2;

impl Estimator {
    /// Makes global time from all clocks, or the one that is wanted.
    pub(super) fn synthesise(&mut self, map: &ClockMap, grid: &Grid) {
        if self.wanted == Reference::Auto && !unmeasured(map) {
            return;
        }
        let mut elapsed: Offsets = Vec::with_capacity(self.offsets.len());
        for ((row, constant), base) in self.offsets.iter().zip(&self.constants).zip(&map.bases) {
            let readings: Vec<i64> = (0..row.len()).map(|window| shows(grid, row, *constant, base, window)).collect();
            let first = readings.first().copied().unwrap_or(0);
            elapsed.push(readings.iter().map(|reading| reading.saturating_sub(first) as f64).collect());
        }
        let together = match self.wanted {
            // Recorded offsets may refer to another clock.
            Reference::Process(_) => elapsed.swap_remove(self.reference),
            _ => synthesise(&elapsed, self.wanted),
        };
        self.synthesis =
            together.iter().enumerate().map(|(w, time)| time - (grid.centre(w) - grid.centre(0)) as f64).collect();
    }

    /// Makes corrections follow no faster than clocks can drift.
    pub(super) fn limit_drift(&mut self, grid: &Grid) {
        let step = STEEPEST * grid.width as f64;
        for row in &mut self.offsets {
            let mut before: Option<f64> = None;
            for offset in row {
                if let Some(before) = before {
                    *offset = offset.clamp(before - step, before + step);
                }
                before = Some(*offset);
            }
        }
    }

    /// The refinements from the times of the recorded clocks: at global time g, a clock that is corrected by x shows g - x.
    pub(super) fn knots(&self, grid: &Grid) -> Vec<Knots> {
        let common = |window: usize| self.synthesis.get(window).map_or(0, |more| more.round() as i64);
        let clocks = self.offsets.iter().zip(&self.constants).zip(&self.steps);
        clocks
            .map(|((row, constant), steps)| {
                // Clocks that messages contradict by centuries are refused when a function is made of this.
                let offsets = row.iter().map(|offset| (whole(*offset)).saturating_add(*constant)).enumerate();
                let knot = |window: usize, offset: i64| {
                    (grid.centre(window).saturating_sub(offset), offset.saturating_add(common(window)))
                };
                compose_steps(steps, &offsets.map(|(window, offset)| knot(window, offset)).collect())
            })
            .collect()
    }
}

/// What a clock shows at the centre of a window, if it is corrected by `constant` and by `row` in each window.
pub(super) fn shows(grid: &Grid, row: &[f64], constant: i64, base: &LinearClock, window: usize) -> i64 {
    let offset = row.get(window).map_or(0, |offset| whole(*offset));
    let time = grid.centre(window).saturating_sub(constant).saturating_sub(offset);
    // The recorded clock backwards: its drift is small, so that a few steps are exact.
    let mut local = time;
    for _ in 0..4 {
        local = local.saturating_sub(base.map(Ticks(local)).0.saturating_sub(time));
    }
    local
}

/// The function through knots.
///
/// # Errors
/// Time would run backwards, or leave its range.
pub(crate) fn refinement(knots: &Knots) -> Result<LinearClock> {
    let points: Vec<(Ticks, Ticks)> = knots.iter().map(|&(time, offset)| (Ticks(time), Ticks(offset))).collect();
    LinearClock::through(&points)
}
