//! Clocks that do not bend: straight lines over the whole run, as rivals of the estimate.
//!
//! Where clocks drift evenly, nothing is known better than a line through all that was seen, and an estimate that may bend follows whatever messages were late together. Whether
//! clocks drift evenly the messages tell ([`super::Estimator`] judges both by the same ones).

use super::{Estimator, STEEPEST};
use crate::grid::Grid;
use crate::hull::hulls;
use crate::observations::{Observations, Offsets};
use crate::reference::compose;
use crate::regression::regression;
use crate::windows::BoundTable;

impl Estimator {
    /// The corrections of all clocks by lines between hulls and by regression, if lines connect all clocks. None where clocks jump.
    pub(super) fn straight(&self, table: &BoundTable, seen: &Observations, grid: &Grid, clocks: usize) -> Vec<Offsets> {
        if self.steps.iter().any(|steps| !steps.is_empty()) {
            return Vec::new();
        }
        let whole = grid.count.max(2);
        let limits = seen.one_way.iter().filter_map(|seen| self.limit(table, seen, grid));
        let hulls = hulls(limits, whole as u32, STEEPEST * grid.width as f64);
        let lines = [hulls, regression(seen, whole as u32, self.limits.confidence)];
        let composed = lines.iter().filter(|lines| !lines.is_empty());
        let composed = composed.map(|lines| compose(lines, clocks, grid.count, whole, Some(self.reference as u32)));
        composed.filter(|composition| composition.roots.len() == 1).map(|composition| composition.offsets).collect()
    }
}
