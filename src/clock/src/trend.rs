//! How clocks usually bend.
//!
//! A clock whose frequency makes a random walk bends around each window as chance has it; the second difference of its correction is held to zero. But where a clock swings, it bends around a window
//! about as it does around the windows beside it: then what it bends beside that is much less, and where messages say little, it goes on bending. What is usual is the mean over some windows on either side, of which those
//! that differ much from it lose weight, as where a clock jumps.

use std::ops::Range;

/// A model of clocks that bend as they do around the windows beside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trend {
    /// Standard deviation of what second differences are beside what is usual, in ticks.
    pub roughness: f64,
    /// Over how many windows on either side the mean is.
    pub around: usize,
}

/// The usual second differences of a row, around each window but the first and the last; `cuts` are windows that do not follow the one before. Differences from what is usual lose weight beyond `scale` ticks.
pub(crate) fn usual_bends(row: &[f64], cuts: &[usize], around: usize, scale: f64) -> Vec<f64> {
    let bends: Vec<f64> = row.windows(3).map(|three| three[0] - 2.0 * three[1] + three[2]).collect();
    let is_cut = |window: usize| cuts.binary_search(&window).is_ok();
    // The bend at a place is that around the window after it.
    let mut weights: Vec<f64> =
        (0..bends.len()).map(|at| if is_cut(at + 1) || is_cut(at + 2) { 0.0 } else { 1.0 }).collect();
    let stretches: Vec<Range<usize>> = (0..bends.len())
        .map(|at| {
            let behind = cuts.partition_point(|cut| *cut <= at + 1);
            let first = behind.checked_sub(1).map_or(0, |cut| cuts[cut]);
            let end = cuts.get(behind).map_or(row.len(), |cut| *cut).saturating_sub(2);
            at.saturating_sub(around).max(first)..(at + around + 1).min(end).max(at)
        })
        .collect();
    let mean = |weights: &[f64]| -> Vec<f64> {
        let mut sums = Vec::with_capacity(bends.len() + 1);
        sums.push((0.0, 0.0));
        let (mut sum, mut weight) = (0.0, 0.0);
        for (bend, own) in bends.iter().zip(weights) {
            (sum, weight) = (sum + bend * own, weight + own);
            sums.push((sum, weight));
        }
        let of = |part: &Range<usize>| {
            let ((before, lighter), (sum, weight)) = (sums[part.start.min(part.end)], sums[part.end]);
            if weight - lighter >= LEAST { KEPT * (sum - before) / (weight - lighter) } else { 0.0 }
        };
        stretches.iter().map(of).collect()
    };
    let usual = mean(&weights);
    weights.iter_mut().zip(&bends).zip(&usual).for_each(|((own, bend), usual)| *own *= cauchy(bend - usual, scale));
    mean(&weights)
}

/// A mean of fewer, by their weights, is no mean. Chosen by hand: with more, what is usual is not known where clocks bend sharply; with less, single windows say what is usual.
const LEAST: f64 = 2.0;

/// Part of it that is expected to go on. Chosen by hand: with all of it, a clock that no message holds bends for ever; with less, clocks that swing are held back.
const KEPT: f64 = 0.98;

/// Weight of a deviation in a Cauchy likelihood of this scale.
pub(super) fn cauchy(deviation: f64, scale: f64) -> f64 {
    1.0 / (1.0 + (deviation / scale) * (deviation / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_swings_bends_as_it_does_beside_and_one_that_jumps_does_not() {
        let swings: Vec<f64> = (0..200).map(|window| 1000.0 * (f64::from(window) / 20.0).sin()).collect();
        let usual = usual_bends(&swings, &[], 4, 100.0);
        for (at, usual) in usual.iter().enumerate().skip(4).take(190) {
            let bend = swings[at] - 2.0 * swings[at + 1] + swings[at + 2];
            assert!((usual - KEPT * bend).abs() < 0.25, "{at}: {usual}, {bend}");
        }
        // A corner in the middle of a parabola.
        let corner: Vec<f64> = (0..41).map(|window| f64::from(window * window + 5000 * (window - 20).max(0))).collect();
        for (at, usual) in usual_bends(&corner, &[], 8, 1.0).into_iter().enumerate() {
            // Around it little is usual.
            let none = usual.abs() < 0.01 && at.abs_diff(19) <= 8;
            assert!(none || (usual - KEPT * 2.0).abs() < 0.01, "{at}: {usual}");
        }
    }

    #[test]
    fn stretches_of_a_run_do_not_tell_of_each_other() {
        let row: Vec<f64> = (0..40)
            .map(|window: i32| f64::from(if window < 20 { window * window } else { -3 * window * window }))
            .collect();
        let usual = usual_bends(&row, &[20], 8, 1e9);
        for (at, usual) in usual.into_iter().enumerate() {
            match at {
                ..18 => assert!((usual - KEPT * 2.0).abs() < 1e-9, "{at}: {usual}"),
                20.. => assert!((usual + KEPT * 6.0).abs() < 1e-9, "{at}: {usual}"),
                _ => {}
            }
        }
        assert!(usual_bends(&[1.0, 2.0], &[], 8, 1.0).is_empty());
    }
}
