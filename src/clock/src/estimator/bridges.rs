//! Where nothing is observed for a while, an estimate goes on with the drift it had; recorded offsets there know better.

use crate::anchor::Anchor;
use crate::grid::Grid;
use crate::network::memory;
use crate::observations::Offsets;
use crate::steps::quantile;
use std::collections::BTreeMap;

/// Change of drift (a part of one) that a clock may have shown while nothing was observed of it. An offset that is further from the estimate than that explains contradicts its messages, not what was made of them.
/// Chosen by hand: a larger value lets a wrong offset bend a clock that nothing was observed of, a smaller one keeps a clock that drifts away from its right offsets.
const UNSEEN_DRIFT: f64 = 1e-3;

/// How many times as far as it did where it was observed, in as long, a clock may have gone astray while nothing was; what counts as much longer.
const LIKE_THAT: f64 = 4.0;
const LONGER: usize = 4;

/// Fewest windows with messages that tell the drift of a clock. Chosen by hand: from fewer, a drift is mostly noise, which would be continued; with a
/// larger number, more clocks are continued without any.
const FEWEST: usize = 8;
/// Drifts that are so many times as far from the median as most are count as if they were that far from it. Chosen by hand: a larger value lets what
/// is no drift, such as a jump, into the mean; a smaller one cuts off how a clock really wanders.
const ASTRAY: f64 = 3.0;
const MOST: f64 = 0.9;

/// Goes on before the first and after the last message of each clock with its mean drift; with the drift that it has there, which returns to the mean (an Ornstein-Uhlenbeck process), only if it is not seen
/// to come and go within the run: a clock that swings is back where it was after a while. If its messages are too close together to tell a drift, with that of the recorded clock.
/// The equations say such things, too, but where messages alone make a clock their weights are so small that rounding decides.
/// `observed`: in which windows there are messages of each clock.
pub(super) fn extrapolate(rows: &mut Offsets, observed: &[Vec<bool>], fixed: &[bool]) {
    for ((row, observed), fixed) in rows.iter_mut().zip(observed).zip(fixed) {
        let ends = observed.iter().position(|seen| *seen).zip(observed.iter().rposition(|seen| *seen));
        let Some((first, last)) = ends.filter(|_| !fixed) else { continue };
        let (begin, end) = (row[first], row[last]);
        if first + FEWEST > last {
            row[..first].fill(begin);
            row[last..].fill(end);
            continue;
        }
        let mut slopes: Vec<f64> = row[first..=last].windows(2).map(|pair| pair[1] - pair[0]).collect();
        let middle = quantile(slopes.clone(), 0.5);
        let usual = quantile(slopes.iter().map(|slope| (slope - middle).abs()).collect(), MOST);
        slopes.iter_mut().for_each(|slope| *slope = slope.clamp(middle - ASTRAY * usual, middle + ASTRAY * usual));
        let mean = slopes.iter().sum::<f64>() / slopes.len() as f64;
        let near = slopes.len() / 2;
        let now = match memory(&slopes, mean) {
            Some(_) => [mean, mean],
            None => [&slopes[..near], &slopes[near..]].map(|half| quantile(half.to_vec(), 0.5)),
        };
        let gone = |drift: f64, windows: usize| {
            let (windows, forgets) = (windows as f64, slopes.len() as f64);
            mean * windows + (drift - mean) * forgets * (1.0 - (-windows / forgets).exp())
        };
        for (window, value) in row.iter_mut().enumerate() {
            if window < first {
                *value = begin - gone(now[0], first - window);
            } else if window > last {
                *value = end + gone(now[1], window - last);
            }
        }
    }
}

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

    #[test]
    fn a_clock_goes_on_with_its_mean_drift() {
        let line = |window: usize| 7.0 * window as f64;
        // What rounding has left, and a clock that was set on the way.
        let set = |window: usize| line(window) + if window < 50 { 0.0 } else { 1e5 };
        let mut found = rows(|window| if (20..80).contains(&window) { set(window) } else { 1e6 });
        extrapolate(&mut found, &seen(20..80), &[true, false]);
        assert!((0..100).all(|window| (found[1][window] - set(window)).abs() < 1e-6));
    }

    #[test]
    fn a_clock_that_swings_is_not_thrown_off() {
        let swing = |window: usize| 1000.0 * (window as f64 / 2.0).sin();
        let mut found = rows(swing);
        extrapolate(&mut found, &seen(20..80), &[true, false]);
        assert!(found[1].iter().all(|value| value.abs() < 2000.0));
    }

    #[test]
    fn drift_that_has_changed_for_good_stays() {
        let turn = |window: usize| if window < 50 { 0.0 } else { 100.0 * (window - 50) as f64 };
        let mut found = rows(turn);
        extrapolate(&mut found, &seen(20..80), &[true, false]);
        assert!((found[1][99] - turn(99)).abs() < 400.0 && found[1][0].abs() < 400.0);
    }

    #[test]
    fn a_few_messages_tell_no_drift() {
        let mut found = rows(|window| window as f64 * window as f64);
        extrapolate(&mut found, &seen(20..24), &[true, false]);
        assert_eq!((found[1][0], found[1][19], found[1][21], found[1][99]), (400.0, 400.0, 441.0, 529.0));
    }

    #[test]
    fn the_reference_and_clocks_without_messages_stay() {
        let before = rows(|window| window as f64 * window as f64);
        for (fixed, windows) in [([true, true], 20..80), ([true, false], 20..20)] {
            let mut found = before.clone();
            extrapolate(&mut found, &seen(windows), &fixed);
            assert_eq!(found, before);
        }
    }
}
