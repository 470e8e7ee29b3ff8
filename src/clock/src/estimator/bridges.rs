//! Where nothing is observed for a while, an estimate only goes on ([`crate::extrapolation`]); recorded offsets there know better.

use crate::anchor::Anchor;
use crate::grid::Grid;
use crate::observations::Offsets;
use std::collections::BTreeMap;

/// Change of drift (a part of one) that a clock may have shown while nothing was observed of it. An offset that is further from the estimate than that explains contradicts its messages, not what was made of them.
/// Chosen by hand: a larger value lets a wrong offset bend a clock that nothing was observed of, a smaller one keeps a clock that drifts away from its right offsets.
const UNSEEN_DRIFT: f64 = 1e-3;

/// How many times as far as it did where it was observed, in as long, a clock may have gone astray while nothing was; what counts as much longer.
const LIKE_THAT: f64 = 4.0;
const LONGER: usize = 4;

/// Brings an estimate to the recorded offsets that are beyond or between its observations: by as much as it is off by more than these may be, linearly less towards the next window with messages of the clock; but by no more than
/// a clock may have gone astray in between, which is observed to `precision`.
/// Windows with messages stay as they are.
pub(super) fn bridge(rows: &mut Offsets, observed: &[Vec<bool>], anchors: &[Anchor], grid: &Grid, precision: f64) {
    for own in anchors.chunk_by(|one, other| one.clock == other.clock) {
        let clock = own.first().map_or(0, |anchor| anchor.clock as usize);
        let Some((row, observed)) = rows.get_mut(clock).zip(observed.get(clock)) else { continue };
        let misses: BTreeMap<usize, f64> =
            own.iter().filter_map(|anchor| miss(row, observed, anchor, grid, precision)).collect();
        if misses.is_empty() {
            continue;
        }
        let nothing = observed.iter().enumerate().filter(|(_, seen)| **seen).map(|(window, _)| (window, 0.0));
        add(row, &nothing.chain(misses).collect());
    }
}

/// By how much a row is to change at a recorded offset, if there is nothing observed there but elsewhere.
fn miss(row: &[f64], observed: &[bool], anchor: &Anchor, grid: &Grid, precision: f64) -> Option<(usize, f64)> {
    let window = anchor.window as usize;
    let before = observed.get(..=window)?.iter().rev().position(|seen| *seen);
    let after = observed.get(window..)?.iter().position(|seen| *seen);
    let gap = [before, after].into_iter().flatten().min().filter(|gap| *gap > 0)?;
    let miss = anchor.value - row.get(window)?;
    let known = if anchor.bound > 0.0 { anchor.bound } else { anchor.sigma };
    let beyond = miss.signum() * (miss.abs() - known).max(0.0);
    let most = UNSEEN_DRIFT * grid.width as f64 * gap as f64;
    let most = wandered(row, observed, gap).map_or(most, |wandered| most.min(LIKE_THAT * wandered + precision));
    Some((window, beyond.clamp(-most, most)))
}

/// How far a clock went astray from its mean drift in so many windows at most, as far as was observed; none if that was not for much longer.
fn wandered(row: &[f64], observed: &[bool], windows: usize) -> Option<f64> {
    let seen: Vec<usize> = (0..row.len()).filter(|&window| observed[window]).collect();
    let (first, last) = seen.first().copied().zip(seen.last().copied())?;
    if last - first < LONGER * windows {
        return None;
    }
    let drift = (row[last] - row[first]) / (last - first) as f64;
    let pairs = seen.iter().filter(|&&window| observed.get(window + windows) == Some(&true));
    let astray = pairs.map(|&window| (row[window + windows] - row[window] - drift * windows as f64).abs());
    astray.reduce(f64::max)
}

/// Adds a piecewise linear function through some points, constant beyond the last ones.
fn add(row: &mut [f64], points: &BTreeMap<usize, f64>) {
    for (window, value) in row.iter_mut().enumerate() {
        *value += match (points.range(..=window).next_back(), points.range(window..).next()) {
            (Some((before, one)), Some((after, other))) if before < after => {
                one + (window - before) as f64 / (after - before) as f64 * (other - one)
            }
            (Some((_, one)), _) | (None, Some((_, one))) => *one,
            (None, None) => 0.0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { first: 0, width: 1_000_000, count: 100 };

    /// Messages between clocks 0 and 1 in some windows.
    fn seen(windows: std::ops::Range<usize>) -> Vec<Vec<bool>> {
        vec![(0..100).map(|window| windows.contains(&window)).collect(); 2]
    }

    fn anchor(window: u32, value: f64, bound: f64) -> Anchor {
        Anchor { clock: 1, window, value, sigma: 1000.0, bound }
    }

    /// Clock 1 is corrected by this, clock 0 by nothing.
    fn rows(of: impl Fn(usize) -> f64) -> Offsets {
        vec![vec![0.0; 100], (0..100).map(of).collect()]
    }

    #[test]
    fn an_estimate_comes_to_recorded_offsets_where_nothing_else_is_known() {
        let mut found = rows(|_| 0.0);
        bridge(&mut found, &seen(50..60), &[anchor(0, 9000.0, 0.0), anchor(99, -500.0, 0.0)], &GRID, 0.0);
        // As far as the offset may be wrong; nothing where messages are, or where the offset agrees.
        assert_eq!((found[1][0], found[1][25]), (8000.0, 4000.0));
        assert!(found[1][50..].iter().all(|value| *value == 0.0));
        assert_eq!(found[0], vec![0.0; 100]);
    }

    #[test]
    fn recorded_bounds_say_how_wrong_an_offset_may_be() {
        let mut found = rows(|_| 0.0);
        bridge(&mut found, &seen(50..60), &[anchor(0, 9000.0, 100.0)], &GRID, 0.0);
        assert!((found[1][0] - 8900.0).abs() < 1e-6);
    }

    #[test]
    fn offsets_beside_messages_do_not_change_what_these_say() {
        let mut found = rows(|_| 0.0);
        bridge(&mut found, &seen(50..54), &[anchor(52, 9000.0, 0.0), anchor(49, 9000.0, 0.0)], &GRID, 0.0);
        // From window 49 to 50 the clock may have drifted by a thousandth.
        assert_eq!((found[1][52], found[1][49], found[1][48]), (0.0, 1000.0, 1000.0));
    }

    #[test]
    fn a_clock_goes_no_farther_astray_than_where_it_was_observed() {
        // It swings by 30 ticks around its drift.
        let swing = |window: usize| 500.0 * window as f64 + if window.is_multiple_of(2) { 15.0 } else { -15.0 };
        let (mut found, before) = (rows(swing), rows(swing));
        let far = [anchor(9, 4500.0 + 9000.0, 0.0)];
        bridge(&mut found, &seen(10..90), &far, &GRID, 5.0);
        let moved = found[1][9] - before[1][9];
        assert!((moved - (LIKE_THAT * 30.0 + 5.0)).abs() < 2.0, "{moved}");
        // Not observed for much longer than the gap: nobody knows how it wanders.
        let mut found = before.clone();
        bridge(&mut found, &seen(10..13), &far, &GRID, 5.0);
        assert_eq!(found[1][9] - before[1][9], 1000.0);
    }

    #[test]
    fn a_gap_is_bridged_from_both_sides() {
        let mut found = rows(|_| 0.0);
        let mut both = seen(0..10);
        both[1][90..].fill(true);
        bridge(&mut found, &both, &[anchor(49, 5000.0, 0.0)], &GRID, 0.0);
        assert_eq!((found[1][9], found[1][29], found[1][49], found[1][90]), (0.0, 2000.0, 4000.0, 0.0));
    }
}
