//! Messages in windows of several lengths, by which a model is chosen.

use super::descent::FinestLook;
use super::{Estimator, UNKNOWN};
use crate::clock_map::ClockMap;
use crate::grid::Grid;
use crate::latencies::Reading;
use crate::network::Problem;
use crate::observations::{Observations, Offsets};
use crate::selection::{Choice, Selection, Steadiness, select, steady};
use crate::view::TrialData;
use crate::windows::BoundTable;

/// Besides the finest, windows are tried that are this many times as long, unless they are fewer than that. Chosen by hand: each of them takes trials
/// of its own; in fewer windows, models cannot be told apart.
const COARSER: [usize; 2] = [4, 16];
const FEWEST: usize = 64;

impl Estimator {
    /// The model that predicts messages best; at the first of the finest looks with longer windows only, which are surer from where nothing is known.
    pub(super) fn choose(
        &self,
        table: &BoundTable,
        grid: &Grid,
        like: &Problem<'_>,
        fresh: Option<&Offsets>,
        map: &ClockMap,
    ) -> Selection {
        // Windows that are longer than messages need are that many times as long already.
        let longer = COARSER.iter().map(|factor| factor / self.spare);
        let mut factors: Vec<usize> = longer.filter(|factor| *factor > 1 && grid.count / factor >= FEWEST).collect();
        if self.at_finest > 1 || factors.is_empty() {
            factors.insert(0, 1);
        }
        let views: Vec<TrialData> = factors
            .into_iter()
            .map(|factor| match factor {
                1 => TrialData { otherwise: fresh.cloned(), ..self.as_seen(table, grid, like, map) },
                _ => self.coarser(table, grid, grid.width.saturating_mul(factor as i64), fresh, map),
            })
            .collect();
        let usual = Choice { reading: Reading::Mode, roughness: like.roughness, width: grid.width, trend: None };
        select(&views, like, self.choice, self.workers).unwrap_or(Selection { choice: usual, otherwise: false })
    }

    /// Of clocks that bend steadily the model that predicts messages best, in the windows of the `choice` or finer ones.
    pub(super) fn steady(&self, look: &FinestLook<'_>, choice: Choice) -> Option<Steadiness> {
        let &FinestLook { table, grid, problem: like, map, .. } = look;
        let chosen = (choice.width as f64 / grid.width as f64).round().max(1.0) as usize;
        let between = COARSER.iter().map(|factor| factor / self.spare).filter(|factor| *factor > 1);
        let finer = std::iter::once(1).chain(between).filter(|factor| *factor < chosen);
        let factors: Vec<usize> = finer.chain(std::iter::once(chosen)).collect();
        let views: Vec<TrialData> = factors
            .into_iter()
            .map(|factor| match factor {
                1 => self.as_seen(table, grid, like, map),
                _ => self.coarser(table, grid, grid.width.saturating_mul(factor as i64), None, map),
            })
            .collect();
        steady(&views, like, choice, self.workers)
    }

    /// The messages of `table` in the windows of `grid`: those of the problem, unless fewer of them count in windows so short.
    pub(super) fn as_seen(&self, table: &BoundTable, grid: &Grid, problem: &Problem<'_>, map: &ClockMap) -> TrialData {
        let window = grid.width as f64 / self.resolution as f64;
        if self.grid.is_none() || self.limits.longest_delay(window) != self.limits.delay {
            return self.view(table, *grid, map);
        }
        let (observations, anchors) = (problem.observations.clone(), problem.anchors.to_vec());
        TrialData { grid: *grid, observations, now: self.interpolated(grid, map.bases.len()), otherwise: None, anchors }
    }

    /// Messages in windows of about this `width` instead of those of `grid`; `fresh` are other clocks to begin with, on `grid`.
    pub(super) fn coarser(
        &self,
        table: &BoundTable,
        grid: &Grid,
        width: i64,
        fresh: Option<&Offsets>,
        map: &ClockMap,
    ) -> TrialData {
        let count = (grid.width as f64 * grid.count as f64 / width as f64).ceil().max(1.0) as usize;
        let (table, coarse) = table.through(count, |_, time| time, self.workers);
        let mut view = self.view(&table, coarse, map);
        view.otherwise = fresh.map(|fresh| grid.rows_on(fresh, &coarse));
        view
    }

    /// Messages in some windows, and the clocks so far.
    pub(super) fn view(&self, table: &BoundTable, grid: Grid, map: &ClockMap) -> TrialData {
        self.view_by(self.interpolated(&grid, map.bases.len()), table, grid, map)
    }

    /// Messages in some windows, and the clocks by which they were seen.
    pub(super) fn view_by(&self, now: Offsets, table: &BoundTable, grid: Grid, map: &ClockMap) -> TrialData {
        let prepared = self.prepared(table, &grid, &now, map);
        let table = prepared.as_ref().unwrap_or(table);
        let [unknown, delay] = [UNKNOWN, self.limits.delay].map(|seconds| seconds * self.resolution as f64);
        let mut observations = Observations::new(table, &grid, &now, unknown, delay, self.workers);
        observations.precision = self.precision;
        let anchors = self.anchors(map, &grid, observations.floor);
        observations.levels = self.levels(&anchors);
        TrialData { grid, observations, now, otherwise: None, anchors }
    }
}
