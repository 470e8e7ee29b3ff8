//! Straight lines for all clocks together, where nothing but messages tells clocks apart.
//!
//! Without recorded offsets curves have nothing to hold on to: messages that are late together, as in a wavefront, bend them, and predict the other half of the messages as well as
//! these. Lines that no message contradicts are then the better clocks, since clocks that bend by more than messages take leave no such line.

use super::Estimator;
use super::straight::{EARLY, FEW, USUAL, are_drifts, steepest};
use crate::grid::Grid;
use crate::hull::{Limit, hulls};
use crate::joined_hulls::join;
use crate::observations::{Observations, Offsets};
use crate::reference::{PairLine, compose};
use crate::regression::regression;
use crate::relaxation::{Line, Run};
use crate::windows::BoundTable;
use std::borrow::Cow;

/// Most clocks that are joined: with more, it would take seconds where all talk to all.
const MOST: usize = 256;

/// What straight lines make of all clocks.
pub(super) struct JoinedClocks {
    /// What they were made from.
    limits: Vec<Limit>,
    /// The corrections without any step.
    pub offsets: Offsets,
    /// The same beside the steps that were found: what is to be added to these.
    pub beside_steps: Offsets,
}

/// Straight lines of all clocks, composed of those of pairs.
pub(super) struct LinesBesideSteps {
    /// What is to be added to the steps that were found.
    pub beside_steps: Offsets,
    /// The corrections without any step.
    whole: Offsets,
}

impl LinesBesideSteps {
    /// By how much the message arrives before it was sent that contradicts the lines most.
    pub(super) fn worst(&self, limits: &[Limit]) -> f64 {
        let value = |clock: u32, at: f64| self.whole.get(clock as usize).map_or(0.0, |row| along(row, at));
        limits.iter().map(|seen| seen.least - value(seen.b, seen.at) + value(seen.a, seen.at)).fold(0.0, f64::max)
    }
}

/// The value of a line at a time in windows.
fn along(row: &[f64], at: f64) -> f64 {
    let (Some(first), Some(last)) = (row.first(), row.last()) else { return 0.0 };
    first + (last - first) * at / (row.len() - 1).max(1) as f64
}

impl Estimator {
    /// The lines, by messages as they were measured; none if messages do not connect all clocks in both directions, or more than a few contradict the lines. Steps that were found do not count: where clocks
    /// jump by more than messages take, they contradict the lines.
    pub(super) fn joined(&self, measured: &BoundTable, grid: &Grid, clocks: usize) -> Option<JoinedClocks> {
        if clocks > MOST {
            return None;
        }
        let limits = self.whole_limits(measured, grid);
        let end = grid.count.saturating_sub(1) as f64;
        let run = Run { end, usual: USUAL * grid.width as f64, steepest: steepest(grid) };
        let joined = join(limits.iter().copied(), clocks, run)?;
        let lines = joined.lines;
        let value = |clock: u32, at: f64| lines[clock as usize].0 + lines[clock as usize].1 * at;
        let is_early =
            |seen: &&Limit| value(seen.b, seen.at) - value(seen.a, seen.at) < seen.least - EARLY * self.precision;
        if joined.margin < 0.0 && limits.iter().filter(is_early).count() as f64 > FEW * limits.len() as f64 {
            return None;
        }
        let origin = lines.get(self.reference)?;
        let row = |line: &Line| -> Vec<f64> {
            let (intercept, slope) = (line.0 - origin.0, line.1 - origin.1);
            (0..grid.count).map(|window| intercept + slope * window as f64).collect()
        };
        let offsets: Offsets = lines.iter().map(row).collect();
        let beside_steps = self.beside_steps(&offsets, grid);
        Some(JoinedClocks { limits, offsets, beside_steps })
    }

    /// Lines between hulls of pairs, composed, beside the steps that were found; none if messages do not connect all clocks, or the lines are as steep as no clock drifts.
    pub(super) fn hulls_beside_steps(&self, limits: &[Limit], grid: &Grid, clocks: usize) -> Option<LinesBesideSteps> {
        self.lines_beside_steps(&hulls(limits.iter().copied(), grid.count.max(2) as u32, steepest(grid)), grid, clocks)
    }

    /// Lines of regression of pairs, composed, beside the steps that were found; `solved` are the clocks beside them. None if round trips do not connect all clocks, or the lines are as steep as no clock drifts.
    pub(super) fn regression_beside_steps(
        &self,
        seen: &Observations,
        solved: &Offsets,
        grid: &Grid,
    ) -> Option<LinesBesideSteps> {
        let stepped = self.steps.iter().any(|steps| !steps.is_empty());
        let seen = if stepped { Cow::Owned(self.without_steps(seen, solved, grid)) } else { Cow::Borrowed(seen) };
        let lines = regression(&seen, grid.count.max(2) as u32, self.limits.confidence);
        self.lines_beside_steps(&lines, grid, solved.len())
    }

    /// Lines of pairs over the whole run, composed.
    fn lines_beside_steps(&self, lines: &[PairLine], grid: &Grid, clocks: usize) -> Option<LinesBesideSteps> {
        let composition = compose(lines, clocks, grid.count, grid.count.max(2), Some(self.reference as u32));
        let possible = composition.roots.len() == 1 && are_drifts(&composition.offsets, grid);
        possible.then(|| LinesBesideSteps {
            beside_steps: self.beside_steps(&composition.offsets, grid),
            whole: composition.offsets,
        })
    }

    /// Round trips as they are without any step.
    fn without_steps(&self, seen: &Observations, solved: &Offsets, grid: &Grid) -> Observations {
        let step = |clock: u32, window: u32| {
            let rest = solved.get(clock as usize).and_then(|row| row.get(window as usize)).copied();
            self.step_seen(clock, grid.centre(window as usize), rest.unwrap_or(0.0))
        };
        let mut two_way = seen.two_way.clone();
        two_way.iter_mut().for_each(|trip| trip.middle += step(trip.b, trip.window) - step(trip.a, trip.window));
        Observations { two_way, floor: seen.floor, shortest: seen.shortest, ..Observations::default() }
    }

    /// What all messages of a table say of clocks without steps, at the moments of their receives.
    pub(super) fn whole_limits(&self, table: &BoundTable, grid: &Grid) -> Vec<Limit> {
        let bounds = table.pairs.iter().flat_map(|(pair, bounds)| bounds.windows().iter().map(move |one| (*pair, one)));
        let limit = |((a, b), (window, bound)): ((u32, u32), &(u32, crate::bounds::Bound))| {
            let sent = bound.at.saturating_sub(bound.distance);
            Limit {
                a,
                b,
                window: *window,
                at: (bound.at - grid.centre(0)) as f64 / grid.width as f64,
                least: self.whole_correction(b, bound.at) - self.whole_correction(a, sent) - bound.distance as f64,
            }
        };
        bounds.map(limit).collect()
    }

    /// What is to be added to the steps that were found to make these corrections.
    fn beside_steps(&self, offsets: &Offsets, grid: &Grid) -> Offsets {
        let less_steps = |(clock, row): (u32, &Vec<f64>)| {
            let at = |window: usize| self.step_seen(clock, grid.centre(window), row[window]);
            (0..row.len()).map(|window| row[window] - at(window)).collect()
        };
        (0..).zip(offsets).map(less_steps).collect()
    }

    /// Has the report tell the lines of pairs, and along which of them clocks are compared with the reference.
    pub(super) fn tell_pairs(&mut self, joined: &JoinedClocks, grid: &Grid) {
        let whole = grid.count.max(2);
        let lines = hulls(joined.limits.iter().copied(), whole as u32, steepest(grid));
        let composition = compose(&lines, joined.offsets.len(), grid.count, whole, Some(self.reference as u32));
        (self.lines, self.towards) = (lines, composition.towards);
    }

    /// The correction of a clock at a time, with its steps, but for its constant.
    fn whole_correction(&self, clock: u32, time: i64) -> f64 {
        let own = self.offsets.get(clock as usize).map_or(0.0, |row| self.correction(row, time));
        own + self.step_seen(clock, time, own)
    }

    /// What the steps of a clock add at a time at which the rest of its correction, but for its constant, is `rest`.
    fn step_seen(&self, clock: u32, time: i64, rest: f64) -> f64 {
        let constant = self.constants.get(clock as usize).copied().unwrap_or(0);
        let stepped = time.saturating_sub(constant).saturating_sub(rest as i64);
        let step = self.step_at(clock as usize, stepped);
        // The recorded clock has not stepped yet.
        self.step_at(clock as usize, stepped.saturating_sub(step as i64))
    }
}
