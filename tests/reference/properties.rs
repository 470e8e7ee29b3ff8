//! What a correct result satisfies, however it was computed. Every function returns the first thing that is wrong.

use super::backward::{Backward, Curve, Rest, Steepness, Tube};
use super::forward::{Forward, scaled};
use super::matching::Dependency;
use super::model::PerEvent;
use super::violations::violations;

/// Checks the corrected times F against the forward result, and every curve against its tube.
pub(crate) fn check(dependencies: &[Dependency], forward: &Forward, backward: &Backward) -> Result<(), String> {
    check_times(dependencies, forward, &backward.corrected)?;
    for (process, (tube, curve)) in backward.tubes.iter().zip(&backward.curves).enumerate() {
        let on = |message: String| format!("process {process}: {message}");
        check_tube(tube, &curve.level).map_err(on)?;
        check_slope(tube, &curve.level).map_err(on)?;
        check_taut(tube, curve).map_err(on)?;
    }
    Ok(())
}

/// F is nondecreasing per timeline, never before LC, and satisfies every pair.
pub(crate) fn check_times(dependencies: &[Dependency], forward: &Forward, corrected: &PerEvent) -> Result<(), String> {
    let found = violations(dependencies, corrected);
    if found.total() > 0 {
        return Err(format!("violations remain: {found:?}"));
    }
    for (process, (clock, corrected)) in forward.clock.iter().zip(corrected).enumerate() {
        if let Some(index) = (0..clock.len()).find(|&j| corrected[j] < clock[j]) {
            return Err(format!("process {process}, event {index}: corrected to before its logical clock"));
        }
    }
    Ok(())
}

/// A is nondecreasing, not below S, not above a bound.
pub(crate) fn check_tube(tube: &Tube, level: &[i64]) -> Result<(), String> {
    for j in 0..level.len() {
        if j > 0 && level[j] < level[j - 1] {
            return Err(format!("event {j}: the curve falls from {} to {}", level[j - 1], level[j]));
        }
        if level[j] < tube.stairs[j] {
            return Err(format!("event {j}: the curve is at {}, below the staircase {}", level[j], tube.stairs[j]));
        }
        if tube.bounds[j].is_some_and(|bound| level[j] > bound) {
            return Err(format!("event {j}: the curve is at {}, above its bound {:?}", level[j], tube.bounds[j]));
        }
    }
    Ok(())
}

/// The smallest curve above the staircase that nowhere rises faster than m:
/// A_j = max( S_j, max over later jumps r of S_r - floor(M (C_r - C_j) / 2^40) ).
pub(crate) fn majorant(tube: &Tube) -> Vec<i64> {
    let from = |r: usize, j: usize| tube.stairs[r] - scaled(tube.slope, tube.times[r] - tube.times[j]);
    let ramps = |j: usize| (j..tube.times.len()).filter(|&r| tube.is_corner(r)).map(move |r| from(r, j)).max();
    (0..tube.times.len()).map(|j| ramps(j).unwrap_or(0).max(tube.stairs[j])).collect()
}

/// Without bounds in the way, A is the smallest curve with slope m; bounds only ever lower it. So an event that no later
/// ramp reaches, in particular a receive with a jump, stays where the forward replay put it.
pub(crate) fn check_slope(tube: &Tube, level: &[i64]) -> Result<(), String> {
    let majorant = majorant(tube);
    let free = (0..level.len()).all(|j| tube.bounds[j].is_none_or(|bound| majorant[j] <= bound));
    for j in 0..level.len() {
        if level[j] > majorant[j] || (free && level[j] != majorant[j]) {
            return Err(format!("event {j}: the curve is at {}, the smallest free curve at {}", level[j], majorant[j]));
        }
    }
    Ok(())
}

/// A string is taut if it bends only where it rests: towards flatter (seen from the right) at a bound, towards steeper at
/// a corner. It is nowhere steeper than some corner and some bound on its left demand together.
pub(crate) fn check_taut(tube: &Tube, curve: &Curve) -> Result<(), String> {
    let mut before = tube.ramp();
    for pair in curve.vertices.windows(2) {
        let (right, left) = (pair[0], pair[1]);
        let run = tube.times[right.index] - tube.times[left.index];
        let line = Steepness { rise: right.level - left.level, run };
        let slope = if left.straight { line } else { tube.ramp() };
        let bend_is_wrong = match right.rest {
            Rest::End => left.straight && !tube.is_corner(right.index),
            Rest::Corner => steeper(before, slope),
            Rest::UpperBound => steeper(slope, before),
        };
        if bend_is_wrong {
            return Err(format!("the curve bends the wrong way at {right:?}, on the way to {left:?}"));
        }
        if left.straight && !is_demanded(tube, line) {
            return Err(format!("nothing demands the slope from {right:?} to {left:?}"));
        }
        before = slope;
    }
    Ok(())
}

/// Strictly steeper, as directions: all vertical lines have the same.
fn steeper(a: Steepness, b: Steepness) -> bool {
    a.exceeds(b) && (a.run, b.run) != (0, 0)
}

/// Whether some corner and some bound on its left demand a line at least as steep.
fn is_demanded(tube: &Tube, line: Steepness) -> bool {
    (0..tube.times.len()).filter(|&q| tube.is_corner(q)).any(|q| {
        let demanded =
            |s: usize, bound: i64| Steepness { rise: tube.stairs[q] - bound, run: tube.times[q] - tube.times[s] };
        (0..q).any(|s| tube.bounds[s].is_some_and(|bound| bound < tube.stairs[q] && !steeper(line, demanded(s, bound))))
    })
}
