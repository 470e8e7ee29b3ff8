//! Clocks that do not bend: straight lines over the whole run, as rivals of the estimate.
//!
//! Where clocks drift evenly, nothing is known better than a line through all that was seen, and an estimate that may bend follows whatever messages were late together. Whether
//! clocks drift evenly the messages tell ([`super::Estimator`] judges both by the same ones).

use super::{Estimator, STEEPEST};
use crate::Method;
use crate::grid::Grid;
use crate::hull::hulls;
use crate::observations::{Observations, Offsets};
use crate::reference::{Composition, PairLine, compose};
use crate::regression::regression;
use crate::windows::BoundTable;

/// How far a line may be from the estimate in the mean over the run, in units of what the better observations are known to (a fiftieth of half a round trip): travel times are learned by direction, so that
/// messages do not tell clocks from others that are off by a constant. Recorded offsets do, and the estimate goes by them.
const NEAR: f64 = 100.0;

/// Whether no clock of two sets is farther from itself than that, in the mean over the run.
pub(super) fn are_near(one: &Offsets, other: &Offsets, precision: f64) -> bool {
    let apart = |(one, other): (&Vec<f64>, &Vec<f64>)| {
        let sum: f64 = one.iter().zip(other).map(|(one, other)| one - other).sum();
        (sum / one.len().max(1) as f64).abs()
    };
    one.iter().zip(other).map(apart).all(|apart| apart <= NEAR * precision)
}

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
