//! Clocks that do not bend: straight lines over the whole run, as rivals of the estimate.
//!
//! Where clocks drift evenly, nothing is known better than a line through all that was seen, and an estimate that may bend follows whatever messages were late together. Whether
//! clocks drift evenly the messages tell ([`super::Estimator`] judges both by the same ones).

use super::{Estimator, STEEPEST};
use crate::Method;
use crate::grid::Grid;
use crate::hull::hulls;
use crate::observations::Observations;
use crate::reference::{Composition, PairLine, compose};
use crate::regression::regression;
use crate::windows::BoundTable;

/// Straight lines of pairs, and what they make of all clocks.
pub(super) struct StraightClocks {
    /// What the lines were made by: hull or regression.
    pub method: Method,
    /// The lines.
    pub lines: Vec<PairLine>,
    /// The corrections, and along which pairs they were composed.
    pub composition: Composition,
}

impl Estimator {
    /// The corrections of all clocks by lines between hulls and by regression, if lines connect all clocks. None where clocks jump.
    pub(super) fn straight(
        &self,
        table: &BoundTable,
        seen: &Observations,
        grid: &Grid,
        clocks: usize,
    ) -> Vec<StraightClocks> {
        if self.steps.iter().any(|steps| !steps.is_empty()) {
            return Vec::new();
        }
        let whole = grid.count.max(2);
        let limits = seen.one_way.iter().filter_map(|seen| self.limit(table, seen, grid));
        let hulls = hulls(limits, whole as u32, STEEPEST * grid.width as f64);
        let regression = regression(seen, whole as u32, self.limits.confidence);
        let rivals = [(Method::Hull, hulls), (Method::Regression, regression)];
        let rivals = rivals.into_iter().filter(|(_, lines)| !lines.is_empty());
        let composed = rivals.map(|(method, lines)| {
            let composition = compose(&lines, clocks, grid.count, whole, Some(self.reference as u32));
            StraightClocks { method, lines, composition }
        });
        composed.filter(|straight| straight.composition.roots.len() == 1).collect()
    }

    /// What the lines between pairs were made by, if there are any.
    pub(super) fn method_of_lines(&self) -> Method {
        self.straight.unwrap_or(self.model)
    }
}
