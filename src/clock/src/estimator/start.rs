//! Where the solution of a level begins, and how it compares with others.

use crate::grid::Grid;
use crate::latencies::{Latencies, Reading};
use crate::network::Problem;
use crate::observations::Offsets;

/// Clocks that are apart by more than this part of the run are set once before windows are laid over it. Chosen by hand: a larger value sets clocks
/// anew that windows could cope with, a smaller one leaves what happened together in different windows.
const APART: f64 = 128.0;

/// Whether clocks that are corrected by so much are so far apart, compared with the run, that what happened together lies in different windows, or in a few of many.
pub(super) fn are_apart(corrections: impl Iterator<Item = f64>, grid: &Grid) -> bool {
    let ends = corrections.fold((f64::MAX, f64::MIN), |(least, most), at| (least.min(at), most.max(at)));
    ends.1 - ends.0 > grid.width as f64 * grid.count as f64 / APART
}

/// Solves from `now`, and on coarse levels also afresh: what agrees better with the messages. Clocks that are far apart in a run (its windows: `unknown`) for which
/// nobody has measured them are not asked: over the whole run they drift by so much that messages seem to arrive before they were sent, whatever the clocks.
pub(super) fn begin(problem: &mut Problem<'_>, now: &Offsets, unknown: Option<&Grid>) -> Offsets {
    let afresh = problem.afresh.then(|| problem.solve(now));
    problem.afresh = false;
    if let (Some(afresh), Some(grid)) = (&afresh, unknown)
        && are_apart(afresh.iter().filter_map(|row| row.first().copied()), grid)
    {
        return afresh.clone();
    }
    let continued = problem.solve(now);
    match afresh {
        Some(afresh) => match misfits(problem, &problem.flat(&afresh), &problem.flat(&continued)) {
            Some((new, old)) if new >= old => continued,
            _ => afresh,
        },
        None => continued,
    }
}

/// The misfit of two sets of clocks, each with the latencies that it shows, measured by the same spread.
pub(super) fn misfits(problem: &Problem<'_>, one: &[f64], other: &[f64]) -> Option<(f64, f64)> {
    let mut latencies = [one, other].map(|offsets| {
        Latencies::new(problem.observations, offsets, problem.windows, Reading::Mode, problem.around, problem.workers)
    });
    let spread = latencies.iter().map(|latencies| latencies.spread).fold(f64::INFINITY, f64::min);
    latencies.iter_mut().for_each(|latencies| latencies.spread = spread);
    let [first, second] = &latencies;
    let misfit = |latencies: &Latencies, x: &[f64]| latencies.misfit(problem.observations, x, problem.windows);
    misfit(first, one).zip(misfit(second, other))
}

/// By how much corrections have changed, root mean square.
pub(super) fn moved(one: &Offsets, other: &Offsets) -> f64 {
    let both = one.iter().flatten().zip(other.iter().flatten());
    let count = one.iter().map(Vec::len).sum::<usize>().max(1);
    (both.map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / count as f64).sqrt()
}
