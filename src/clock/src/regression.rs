//! Least-squares lines through round trips (Clement and Dagenais, *Traces Synchronization in Distributed Networks*, 2009).
//!
//! A round trip is the quickest message of either direction of a pair in one short window: D = ((T2 - T1) + (T3 - T4)) / 2, the middle of
//! [`super::observations::TwoWay`]. The slowest ones (beyond the confidence level) are dropped, the others weighted by what they took longer
//! than the quickest of all pairs: on which of the two ways they waited, nobody knows. The paper pairs consecutive messages instead; a window
//! bounds the memory.

use super::observations::Observations;
use super::reference::PairLine;
use std::collections::BTreeMap;

/// A line per pair and segment of `segment` windows that has at least three round trips; its deviation is the standard deviation
/// of the residuals. Of the round trips the quickest are taken, the part `confidence` of them. A slope that is less than its standard error
/// is no better than none: then the line is level.
pub fn regression(observations: &Observations, segment: u32, confidence: f64) -> Vec<PairLine> {
    // Half round trip, window, middle, weight.
    let mut samples: BTreeMap<(u32, u32, u32), Vec<[f64; 4]>> = BTreeMap::new();
    for seen in &observations.two_way {
        let samples = samples.entry((seen.a, seen.b, seen.window / segment.max(1))).or_default();
        let waited = (seen.half_trip - observations.shortest).max(0.0);
        let weight = 1.0 / (observations.floor * observations.floor + waited * waited);
        samples.push([seen.half_trip, f64::from(seen.window), seen.middle, weight]);
    }
    let lines = samples.into_iter().filter_map(|((a, b, number), mut samples)| {
        samples.sort_by(|x, y| x[0].total_cmp(&y[0]).then(x[1].total_cmp(&y[1])));
        samples.truncate(((samples.len() as f64 * confidence).ceil() as usize).max(3));
        let points: Vec<[f64; 3]> = samples.iter().map(|s| [s[1], s[2], s[3]]).collect();
        let mut line = fit(&points, 1.0)?;
        let ends = [number * segment, (number + 1) * segment - 1].map(f64::from);
        let (first, last) = points.iter().fold((f64::MAX, 0.0), |(x, y), p| (p[0].min(x), p[0].max(y)));
        let ends = [ends[0].max(first), ends[1].min(last)];
        if line.slope.abs() <= line.slope_error {
            level(&mut line, &points);
        }
        line.error = ends.into_iter().map(|at| line.error_at(at)).fold(0.0, f64::max);
        Some(PairLine { a, b, segment: number, ..line })
    });
    lines.collect()
}

/// Makes a line level, through the weighted mean of the points. Its errors stay those of the line that it was: that it has no slope is not
/// known any better.
fn level(line: &mut PairLine, points: &[[f64; 3]]) {
    let total: f64 = points.iter().map(|p| p[2]).sum();
    line.intercept = points.iter().map(|p| p[2] * p[1]).sum::<f64>() / total;
    line.slope = 0.0;
}

/// The line through points (time, value, weight); none for fewer than three, or if they have all the same time. Weights are relative to
/// each other. With `least` above 0 they are the inverse squares of standard deviations of which nothing is better than that many
/// (the square root of the smallest reduced chi-square): few points that happen to lie on a line do not make it exact.
pub fn fit(points: &[[f64; 3]], least: f64) -> Option<PairLine> {
    let total: f64 = points.iter().map(|p| p[2]).sum();
    if points.len() < 3 || total <= 0.0 {
        return None;
    }
    let mean = |k: usize| points.iter().map(|p| p[2] * p[k]).sum::<f64>() / total;
    let (time, value) = (mean(0), mean(1));
    let moment = |k: usize| points.iter().map(|p| p[2] * (p[0] - time) * (p[k] - [time, value][k])).sum::<f64>();
    let spread = moment(0);
    if spread <= 0.0 {
        return None;
    }
    let slope = moment(1) / spread;
    let intercept = value - slope * time;
    let squares: f64 = points.iter().map(|p| p[2] * (p[1] - intercept - slope * p[0]).powi(2)).sum();
    let chi_square = (squares / (points.len() - 2) as f64).max(least * least);
    Some(PairLine {
        a: 0,
        b: 0,
        segment: 0,
        intercept,
        slope,
        deviation: (chi_square * points.len() as f64 / total).sqrt(),
        centre: time,
        centre_error: (chi_square / total).sqrt(),
        slope_error: (chi_square / spread).sqrt(),
        intercept_error: (chi_square * (1.0 / total + time * time / spread)).sqrt(),
        error: 0.0,
        samples: points.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_line_is_recovered(slope in -50.0f64..50.0, intercept in -1e6f64..1e6, count in 3usize..60) {
            let points: Vec<[f64; 3]> = (0..count).map(|k| [k as f64, intercept + slope * k as f64, 1.0 + (k % 3) as f64]).collect();
            let line = fit(&points, 0.0).unwrap();
            prop_assert!((line.slope - slope).abs() < 1e-6 && (line.intercept - intercept).abs() < 1e-5);
            prop_assert!(line.deviation < 1e-3);
        }
    }

    #[test]
    fn standard_errors_of_weighted_samples_are_those_of_the_textbook() {
        // A level line at 2 with residuals -2, +2, -2: Σwr² = 16, Σw = 4, Σw(t - 1)² = 2. With one degree of freedom the variances are
        // 16 / 2 for the slope, 16 (1/4 + 1/2) for the intercept, and 16 / 4 · 3 for a sample of mean weight.
        let line = fit(&[[0.0, 0.0, 1.0], [1.0, 4.0, 2.0], [2.0, 0.0, 1.0]], 0.0).unwrap();
        assert!(line.slope.abs() < 1e-12 && (line.intercept - 2.0).abs() < 1e-12);
        assert!((line.slope_error - 8f64.sqrt()).abs() < 1e-12);
        assert!((line.intercept_error - 12f64.sqrt()).abs() < 1e-12);
        assert!((line.deviation - 12f64.sqrt()).abs() < 1e-12);
        // Weights are relative, and time has no zero.
        let same = fit(&[[1e9, 0.0, 1e-12], [1e9 + 1.0, 4.0, 2e-12], [1e9 + 2.0, 0.0, 1e-12]], 0.0).unwrap();
        assert!((same.slope_error - line.slope_error).abs() < 1e-6 && (same.deviation - line.deviation).abs() < 1e-6);
    }

    #[test]
    fn too_few_or_equal_times_give_no_line_and_equal_values_no_error() {
        assert!(fit(&[[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]], 0.0).is_none());
        assert!(fit(&[[5.0, 1.0, 1.0], [5.0, 2.0, 1.0], [5.0, 3.0, 1.0]], 0.0).is_none());
        let line = fit(&[[0.0, 7.0, 1.0], [1.0, 7.0, 1.0], [4.0, 7.0, 1.0]], 0.0).unwrap();
        assert_eq!([line.slope, line.slope_error, line.intercept_error, line.deviation], [0.0; 4]);
    }

    #[test]
    fn standard_errors_are_those_of_the_textbook() {
        // Residuals +1, -1, -1, +1 at 0, 1, 2, 3 leave the line alone: s^2 = 4 / 2.
        let line = fit(&[[0.0, 1.0, 1.0], [1.0, -1.0, 1.0], [2.0, -1.0, 1.0], [3.0, 1.0, 1.0]], 0.0).unwrap();
        assert!(line.slope.abs() < 1e-12 && line.intercept.abs() < 1e-12);
        assert!((line.deviation - 2f64.sqrt()).abs() < 1e-12);
        assert!((line.slope_error - (2.0f64 / 5.0).sqrt()).abs() < 1e-12);
        assert!((line.intercept_error - (2.0f64 * (0.25 + 2.25 / 5.0)).sqrt()).abs() < 1e-12);
    }

    /// Round trips of half a length `trip`, and what they say.
    fn round_trips(samples: &[(f64, f64)]) -> Observations {
        let seen = samples.iter().zip(0..).map(|(&(half_trip, middle), window)| super::super::observations::TwoWay {
            awaited: true,
            a: 0,
            b: 1,
            window,
            middle,
            half_trip,
            sigma: 1.0,
        });
        Observations { two_way: seen.collect(), floor: 1.0, shortest: 100.0, ..Observations::default() }
    }

    #[test]
    fn the_slowest_round_trips_do_not_count() {
        let mut samples: Vec<(f64, f64)> = (0..10).map(|k| (100.0, 5.0 * f64::from(k))).collect();
        samples[9] = (100.5, 900.0);
        let lines = |confidence| regression(&round_trips(&samples), 100, confidence);
        assert!((lines(0.9)[0].slope - 5.0).abs() < 1e-9 && lines(0.9)[0].samples == 9);
        assert!(lines(1.0)[0].slope > 6.0 && lines(1.0)[0].samples == 10);
    }

    #[test]
    fn round_trips_that_waited_count_less() {
        // All of the later ones are off by what they waited.
        let samples: Vec<(f64, f64)> = (0..20)
            .map(|k| (if k < 10 { 100.0 } else { 600.0 }, 5.0 * f64::from(k) + if k < 10 { 0.0 } else { 400.0 }))
            .collect();
        let line = regression(&round_trips(&samples), 100, 1.0)[0];
        assert!((line.slope - 5.0).abs() < 0.2, "{line:?}");
        // It is known where the quick ones are, and not so well elsewhere.
        assert!(line.error_at(4.5) < 1.0 && line.error_at(19.0) > 1.5 && line.error >= line.error_at(19.0), "{line:?}");
    }

    #[test]
    fn a_slope_that_is_not_known_is_none() {
        // One quick round trip, and others that say nothing: any slope would do.
        let mut samples: Vec<(f64, f64)> = (0..6).map(|k| (5000.0, 7000.0 * f64::from(k % 2))).collect();
        samples[2] = (100.0, 40.0);
        let line = regression(&round_trips(&samples), 100, 1.0)[0];
        assert_eq!(line.slope, 0.0);
        assert!((line.intercept - 40.0).abs() < 1.0 && line.deviation >= 1.0 && line.error > 1000.0, "{line:?}");
    }

    #[test]
    fn few_points_that_lie_on_a_line_by_chance_do_not_make_it_exact() {
        let line = regression(&round_trips(&[(100.0, 0.0), (100.0, 3.0), (100.0, 6.0)]), 100, 0.9)[0];
        assert_eq!(line.slope, 3.0);
        // Three deviations of 1, a tick, at -1, 0 and 1.
        assert!((line.slope_error - 0.5f64.sqrt()).abs() < 1e-12 && (line.deviation - 1.0).abs() < 1e-12, "{line:?}");
    }
}
