//! Straight lines of pairs of clocks by the sharp edge of what messages take, where all of them go one way and nobody has measured the clocks.
//!
//! Such messages say only what the difference of two corrections is at least. But many take about as long as the quickest, and few much longer: a line that is beside the clocks makes
//! the quickest of some part of the run late. Of all lines that no message contradicts, and which touch the quickest of two parts of the run, it is the one with the least sum of the
//! logarithms of what messages take, which many short times make smaller than a few long ones make it larger.

use super::hull::{Limit, hull};
use super::reference::PairLine;
use std::collections::BTreeMap;

/// Windows with messages from which on they show an edge. Chosen by hand: fewer touch some line by chance.
const FEWEST: usize = 16;

/// So many of them are on the edge: within so many of the shortest times that can be told apart. Chosen by hand: a queue that never empties has a quickest message as well, but hardly a second one that takes as long. (A
/// recorded pipeline on busy processors, whose quickest message waited for 1.5 ms: two in 2,000; where queues emptied, one in a hundred.)
const SHARP: usize = 8;
const ON_IT: f64 = 50.0;

/// What a slope has to bring per message, as a logarithm: otherwise the two clocks drift alike, as most do for a fraction of a second. Chosen by hand: with less, the quickest messages of two parts of a short run make
/// a slope; with more, drifts that show are ignored.
const TELLING: f64 = 0.1;

/// What is known of clocks and messages beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgePrior {
    /// By how much the drifts of two clocks usually differ, in ticks per window.
    pub usual: f64,
    /// By how much they can.
    pub steepest: f64,
    /// Times that are shorter than that are as good as each other, in ticks.
    pub known: f64,
}

/// Points (time in windows, value) of what messages say, by which of the two clocks sent them.
type OfDirections = [Vec<(f64, f64)>; 2];

/// A line over the whole run for each pair of clocks between which messages go one way only, and that is not among those `known` already. Its deviation is the mean of what messages take by it.
pub(crate) fn edges(seen: &[Limit], known: &[PairLine], prior: EdgePrior) -> Vec<PairLine> {
    let mut limits: BTreeMap<(u32, u32), OfDirections> = BTreeMap::new();
    for seen in seen {
        let (pair, side) = if seen.a < seen.b { ((seen.a, seen.b), 0) } else { ((seen.b, seen.a), 1) };
        limits.entry(pair).or_default()[side].push((seen.at, seen.least));
    }
    known.iter().for_each(|line| _ = limits.remove(&(line.a, line.b)));
    let lines = limits.into_iter().filter_map(|((a, b), sides)| {
        let (sign, points) = match sides {
            [points, back] if back.is_empty() => (1.0, points),
            [there, points] if there.is_empty() => (-1.0, points),
            _ => return None,
        };
        let samples = points.len() as u64;
        let (intercept, slope, takes) = edge(points, prior)?;
        #[rustfmt::skip]
        let line = PairLine {
            a, b, segment: 0, intercept: sign * intercept, slope: sign * slope, deviation: takes, centre: 0.0, centre_error: takes,
            slope_error: 0.0, intercept_error: takes, error: 0.0, samples,
        };
        Some(line)
    });
    lines.collect()
}

/// Intercept and slope of the line above points (time, value) whose sharp edge it is, and how far it is above them in the mean.
fn edge(mut points: Vec<(f64, f64)>, prior: EdgePrior) -> Option<(f64, f64, f64)> {
    if points.len() < FEWEST {
        return None;
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.total_cmp(&one.1)));
    points.dedup_by_key(|point| point.0.to_bits());
    let corners = hull(&points, 1.0);
    let sides = corners.windows(2).map(|two| (two[1].1 - two[0].1) / (two[1].0 - two[0].0));
    let slopes = sides.filter(|slope| slope.abs() <= prior.steepest).chain([0.0]);
    let lines = slopes.map(|slope| {
        let intercept = corners.iter().map(|point| point.1 - slope * point.0).fold(f64::NEG_INFINITY, f64::max);
        let above = |point: &(f64, f64)| (intercept + slope * point.0 - point.1).max(0.0);
        let logarithms: f64 = points.iter().map(|point| (above(point) / prior.known).ln_1p()).sum();
        let takes = points.iter().map(above).sum::<f64>() / points.len() as f64;
        let sharp = points.iter().filter(|point| above(point) <= ON_IT * prior.known).count();
        let telling = if slope == 0.0 { 0.0 } else { TELLING * points.len() as f64 };
        (logarithms + telling + (slope / prior.usual).powi(2) / 2.0, sharp, (intercept, slope, takes))
    });
    let sharp = lines.filter(|(_, sharp, _)| *sharp >= SHARP);
    sharp.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, _, line)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIOR: EdgePrior = EdgePrior { usual: 30.0, steepest: 200.0, known: 1000.0 };

    /// Messages in so many windows that take what `takes` says, with a clock of the receiver whose correction is a line.
    fn seen(a: u32, b: u32, windows: u32, takes: impl Fn(u32) -> f64) -> Vec<Limit> {
        let least = |window: u32| 70_000.0 + 25.0 * f64::from(window) - takes(window);
        let limit = |window| Limit { a, b, window, at: f64::from(window), least: least(window) };
        (0..windows).map(limit).collect()
    }

    /// One in three is as quick as it gets; the others wait in a queue, which grows.
    fn queue(window: u32) -> f64 {
        2000.0 + f64::from(window * 37 % 97) + if window.is_multiple_of(3) { 0.0 } else { 400.0 * f64::from(window) }
    }

    #[test]
    fn the_edge_is_where_many_messages_are_quick() {
        for (a, b, sign) in [(0, 1, 1.0), (1, 0, -1.0)] {
            let found = edges(&seen(a, b, 300, queue), &[], PRIOR);
            let [line] = found[..] else { panic!("{found:?}") };
            assert_eq!((line.a, line.b, line.samples), (0, 1, 300));
            let off = |window: f64| sign * (line.intercept + line.slope * window) - (70_000.0 + 25.0 * window - 2000.0);
            assert!([0.0, 150.0, 299.0].iter().all(|window| off(*window).abs() < 150.0), "{line:?}");
        }
    }

    #[test]
    fn no_message_contradicts_an_edge() {
        // The quickest of each part of the run are on a curve, as where a clock bends.
        let messages = seen(0, 1, 200, |window| 1000.0 + (f64::from(window) - 100.0).powi(2));
        let line = edges(&messages, &[], PRIOR)[0];
        let above = |one: &Limit| line.intercept + line.slope * one.at - one.least;
        assert!(messages.iter().all(|one| above(one) > -1e-6), "{line:?}");
    }

    #[test]
    fn little_evidence_and_what_is_known_already_make_no_edge() {
        let found = |messages: &[Limit], known: &[PairLine]| edges(messages, known, PRIOR).len();
        assert_eq!(found(&seen(0, 1, FEWEST as u32 - 1, queue), &[]), 0);
        let one_way = seen(0, 1, 300, queue);
        let known = edges(&one_way, &[], PRIOR);
        assert_eq!((known.len(), found(&one_way, &known)), (1, 0));
        // An answer is none of these messages, however late.
        let both = [one_way, seen(1, 0, 1, |_| 1e9)].concat();
        assert_eq!(found(&both, &[]), 0);
    }

    #[test]
    fn a_queue_that_never_empties_has_no_edge() {
        let long = |window: u32| 1_500_000.0 + f64::from(window * 7919 % 1009) * 20_000.0;
        let found = |most| {
            let messages = seen(0, 1, 300, |window| if window % 40 < most { 1_400_000.0 } else { long(window) });
            edges(&messages, &[], PRIOR).len()
        };
        assert_eq!((found(0), found(1)), (0, 1));
    }

    #[test]
    fn drifts_that_no_clock_has_are_none() {
        // They would drift by 300 per window.
        let steep = seen(0, 1, 100, |window| 40_000.0 - 275.0 * f64::from(window));
        assert_eq!(edges(&steep, &[], PRIOR)[0].slope, 0.0);
    }
}
