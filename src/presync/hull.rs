//! The line between the convex hulls of what messages of both directions permit: no message violates it, where such a line exists.
//!
//! Messages from a to b say that the difference of the corrections, y(t), is at least some l(t); those from b to a that it is at
//! most some u(t). The line has the largest margin to all of them: max over the slope β of min(u - βt) - max(l - βt), a
//! concave function of which the upper hull of l and the lower hull of u decide.

use super::observations::Observations;
use super::reference::Line;
use std::collections::BTreeMap;

/// Points (window, value) of a pair: what the difference is at least, and at most.
type Limits = [Vec<(f64, f64)>; 2];

/// Steepest line, in ticks per window, is given by the caller as `steepest`. A line for each pair and segment of `segment` windows
/// with messages in both directions; its deviation is the margin, and a line with a negative one
/// ([`Line::deviation`]) violates messages: there is none that does not.
pub fn hulls(observations: &Observations, segment: u32, steepest: f64) -> Vec<Line> {
    let mut limits: BTreeMap<(u32, u32, u32), Limits> = BTreeMap::new();
    for seen in &observations.one_way {
        let (pair, side, value) =
            if seen.a < seen.b { ((seen.a, seen.b), 0, seen.least) } else { ((seen.b, seen.a), 1, -seen.least) };
        let limits = limits.entry((pair.0, pair.1, seen.window / segment.max(1))).or_default();
        limits[side].push((f64::from(seen.window), value));
    }
    let lines = limits.into_iter().filter_map(|((a, b, segment), [least, most])| {
        let samples = (least.len() + most.len()) as u64;
        let (intercept, slope, margin) = widest(&least, &most, steepest)?;
        let (slope_error, intercept_error) = (0.0, margin.abs());
        Some(Line { a, b, segment, intercept, slope, deviation: margin, slope_error, intercept_error, samples })
    });
    lines.collect()
}

/// Intercept, slope and margin of the line with the largest margin above all points of `least` and below all of `most`; none without
/// points on either side. Points are in order of time.
pub fn widest(least: &[(f64, f64)], most: &[(f64, f64)], steepest: f64) -> Option<(f64, f64, f64)> {
    if least.is_empty() || most.is_empty() {
        return None;
    }
    let below = hull(least, 1.0);
    let above = hull(most, -1.0);
    let ends = |slope: f64| {
        let floor = below.iter().map(|p| p.1 - slope * p.0).fold(f64::NEG_INFINITY, f64::max);
        let ceiling = above.iter().map(|p| p.1 - slope * p.0).fold(f64::INFINITY, f64::min);
        (floor, ceiling)
    };
    let gap = |slope: f64| ends(slope).1 - ends(slope).0;
    let (mut low, mut high) = (-steepest, steepest);
    for _ in 0..120 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if gap(a) < gap(b) {
            low = a;
        } else {
            high = b;
        }
    }
    let slope = (low + high) / 2.0;
    let (floor, ceiling) = ends(slope);
    Some(((floor + ceiling) / 2.0, slope, (ceiling - floor) / 2.0))
}

/// The upper hull (`side` 1) or the lower one (`side` -1) of points in order of time.
fn hull(points: &[(f64, f64)], side: f64) -> Vec<(f64, f64)> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &point in points {
        while let [.., a, b] = hull[..] {
            let turn = (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0);
            if side * turn < 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_message_violates_a_line_where_one_exists(
            slope in -20.0f64..20.0, intercept in -1e5f64..1e5, delays in prop::collection::vec((0.0f64..900.0, 0.0f64..900.0), 2..50)
        ) {
            let at = |k: usize| intercept + slope * k as f64;
            let least: Vec<_> = delays.iter().enumerate().map(|(k, d)| (k as f64, at(k) - 100.0 - d.0)).collect();
            let most: Vec<_> = delays.iter().enumerate().map(|(k, d)| (k as f64, at(k) + 100.0 + d.1)).collect();
            let (found, steep, margin) = widest(&least, &most, 1000.0).unwrap();
            prop_assert!(margin >= 99.9, "{margin}");
            prop_assert!(least.iter().all(|p| found + steep * p.0 >= p.1 + 99.0));
            prop_assert!(most.iter().all(|p| found + steep * p.0 <= p.1 - 99.0));
        }

        #[test]
        fn the_hull_decides(points in prop::collection::vec(-100.0f64..100.0, 1..40), slope in -50.0f64..50.0) {
            let points: Vec<_> = points.iter().enumerate().map(|(k, y)| (k as f64, *y)).collect();
            let most = |list: &[(f64, f64)]| list.iter().map(|p| p.1 - slope * p.0).fold(f64::NEG_INFINITY, f64::max);
            prop_assert!((most(&points) - most(&hull(&points, 1.0))).abs() < 1e-9);
        }
    }

    #[test]
    fn an_impossible_line_says_so() {
        assert!(widest(&[(0.0, 10.0)], &[(0.0, 4.0)], 1.0).unwrap().2 < 0.0);
        assert!(widest(&[], &[(0.0, 4.0)], 1.0).is_none());
    }
}
