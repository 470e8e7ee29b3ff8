//! What messages and collectives that were waited for add to the bounds of the others.

use super::{Estimator, UNKNOWN};
use crate::Method;
use crate::both_sides::from_both_sides;
use crate::clock_map::ClockMap;
use crate::grid::Grid;
use crate::kinds::levelled;
use crate::lengths::LengthTimes;
use crate::observations::{Observations, Offsets};
use crate::windows::BoundTable;

impl Estimator {
    /// The bounds with what was waited for, once clocks are roughly known: collectives as if they were messages, and observations from both sides
    /// where traffic goes one way.
    pub(super) fn prepared(
        &self,
        table: &BoundTable,
        grid: &Grid,
        now: &Offsets,
        map: &ClockMap,
    ) -> Option<BoundTable> {
        if self.is_rough() {
            return None;
        }
        let anchors = self.anchors(map, grid, 1.0);
        let lengths = LengthTimes::of(table, grid.count, now, &anchors, self.reference);
        let of_lengths = (!lengths.is_empty()).then(|| lengths.levelled(table.clone()));
        let levelled = levelled(of_lengths.as_ref().unwrap_or(table)).or(of_lengths);
        let both = from_both_sides(levelled.as_ref().unwrap_or(table), grid, now, &anchors, self.reference);
        both.or(levelled)
    }

    /// What messages alone say.
    pub(super) fn plain(&self, table: &BoundTable, grid: &Grid, now: &Offsets) -> Observations {
        let [unknown, delay] = [UNKNOWN, self.limits.delay].map(|seconds| seconds * self.resolution as f64);
        Observations::new(table, grid, now, unknown, delay, self.workers)
    }

    fn is_rough(&self) -> bool {
        self.asked < self.finest || self.grid.is_none() || self.model != Method::Network
    }
}
