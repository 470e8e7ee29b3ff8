//! Least-squares lines through round trips (Clement and Dagenais, *Traces Synchronization in Distributed Networks*, 2009).
//!
//! A round trip is the quickest message of either direction of a pair in one short window: D = ((T2 - T1) + (T3 - T4)) / 2, the middle of
//! [`super::observations::TwoWay`]. The slowest ones (beyond the confidence level) are dropped, the others weighted
//! by how much they waited. The paper pairs consecutive messages instead; a window bounds the memory.

use super::observations::Observations;
use super::reference::Line;
use std::collections::BTreeMap;

/// A line per pair and segment of `segment` windows that has at least three round trips; its deviation is the standard deviation
/// of the residuals. Of the
/// round trips the quickest are taken, the part `confidence` of them.
pub fn regression(observations: &Observations, segment: u32, confidence: f64) -> Vec<Line> {
    // Half round trip, window, middle, weight.
    let mut samples: BTreeMap<(u32, u32, u32), Vec<[f64; 4]>> = BTreeMap::new();
    for seen in &observations.two_way {
        let samples = samples.entry((seen.a, seen.b, seen.window / segment.max(1))).or_default();
        samples.push([seen.half_trip, f64::from(seen.window), seen.middle, 1.0 / (seen.sigma * seen.sigma)]);
    }
    let lines = samples.into_iter().filter_map(|((a, b, segment), mut samples)| {
        samples.sort_by(|x, y| x[0].total_cmp(&y[0]).then(x[1].total_cmp(&y[1])));
        samples.truncate(((samples.len() as f64 * confidence).ceil() as usize).max(3));
        let points: Vec<[f64; 3]> = samples.iter().map(|s| [s[1], s[2], s[3]]).collect();
        let fit = fit(&points)?;
        Some(Line { a, b, segment, ..fit })
    });
    lines.collect()
}

/// The line through points (time, value, weight); none for fewer than three, or if they have all the same time.
pub fn fit(points: &[[f64; 3]]) -> Option<Line> {
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
    let variance = squares / total * points.len() as f64 / (points.len() - 2) as f64;
    Some(Line {
        a: 0,
        b: 0,
        segment: 0,
        intercept,
        slope,
        deviation: variance.sqrt(),
        slope_error: (variance * total / points.len() as f64 / spread).sqrt(),
        intercept_error: (variance * (1.0 / points.len() as f64 + time * time * total / points.len() as f64 / spread))
            .sqrt(),
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
            let line = fit(&points).unwrap();
            prop_assert!((line.slope - slope).abs() < 1e-6 && (line.intercept - intercept).abs() < 1e-5);
            prop_assert!(line.deviation < 1e-3);
        }
    }

    #[test]
    fn standard_errors_of_weighted_samples_are_those_of_the_textbook() {
        // A level line at 2 with residuals -2, +2, -2: Σwr² = 16, Σw = 4, Σw(t - 1)² = 2. With one degree of freedom the variances are
        // 16 / 2 for the slope, 16 (1/4 + 1/2) for the intercept, and 16 / 4 · 3 for a sample of mean weight.
        let line = fit(&[[0.0, 0.0, 1.0], [1.0, 4.0, 2.0], [2.0, 0.0, 1.0]]).unwrap();
        assert!(line.slope.abs() < 1e-12 && (line.intercept - 2.0).abs() < 1e-12);
        assert!((line.slope_error - 8f64.sqrt()).abs() < 1e-12);
        assert!((line.intercept_error - 12f64.sqrt()).abs() < 1e-12);
        assert!((line.deviation - 12f64.sqrt()).abs() < 1e-12);
        // Weights are relative, and time has no zero.
        let same = fit(&[[1e9, 0.0, 1e-12], [1e9 + 1.0, 4.0, 2e-12], [1e9 + 2.0, 0.0, 1e-12]]).unwrap();
        assert!((same.slope_error - line.slope_error).abs() < 1e-6 && (same.deviation - line.deviation).abs() < 1e-6);
    }

    #[test]
    fn too_few_or_equal_times_give_no_line_and_equal_values_no_error() {
        assert!(fit(&[[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]).is_none());
        assert!(fit(&[[5.0, 1.0, 1.0], [5.0, 2.0, 1.0], [5.0, 3.0, 1.0]]).is_none());
        let line = fit(&[[0.0, 7.0, 1.0], [1.0, 7.0, 1.0], [4.0, 7.0, 1.0]]).unwrap();
        assert_eq!([line.slope, line.slope_error, line.intercept_error, line.deviation], [0.0; 4]);
    }

    #[test]
    fn standard_errors_are_those_of_the_textbook() {
        // Residuals +1, -1, -1, +1 at 0, 1, 2, 3 leave the line alone: s^2 = 4 / 2.
        let line = fit(&[[0.0, 1.0, 1.0], [1.0, -1.0, 1.0], [2.0, -1.0, 1.0], [3.0, 1.0, 1.0]]).unwrap();
        assert!(line.slope.abs() < 1e-12 && line.intercept.abs() < 1e-12);
        assert!((line.deviation - 2f64.sqrt()).abs() < 1e-12);
        assert!((line.slope_error - (2.0f64 / 5.0).sqrt()).abs() < 1e-12);
        assert!((line.intercept_error - (2.0f64 * (0.25 + 2.25 / 5.0)).sqrt()).abs() < 1e-12);
    }
}
