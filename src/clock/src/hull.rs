//! The line between the convex hulls of what messages of both directions permit: no message violates it, where such a line exists.
//!
//! Messages from a to b say that the difference of the corrections, y(t), is at least some l(t); those from b to a that it is at
//! most some u(t). The line has the largest margin to all of them: max over the slope β of min(u - βt) - max(l - βt), a
//! concave function of which the upper hull of l and the lower hull of u decide.

use super::reference::PairLine;
use std::collections::BTreeMap;

/// How steep lines may be, in units of value per unit of time.
#[derive(Debug, Clone, Copy)]
pub struct Steepest {
    /// Where messages of both directions overlap in time for half of the longer one of the two stretches, or more.
    pub overlapping: f64,
    /// Where they overlap for less, or one direction ends before the other one begins: then messages that waited make a steeper line the one with the larger margin, and two that contradict each other at nearly the same
    /// moment would make any slope. So would a clock that jumps: lines that messages contradict are not steeper either. (Two recordings of 0.4 s with a jump of 500 us and no offsets: 14,000 and 20,000 ppm, and clocks
    /// that were 561 and 1,095 us off.)
    pub apart: f64,
}

/// Points (window, value) of a pair: what the difference is at least, and at most.
type Limits = [Vec<(f64, f64)>; 2];

/// What a message says at the very moment of its receive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The clock of the sender.
    pub a: u32,
    /// The clock of the receiver.
    pub b: u32,
    /// Window.
    pub window: u32,
    /// When it was received: windows since the middle of the first one.
    pub at: f64,
    /// The correction of b minus that of a is at least this, then.
    pub least: f64,
}

/// A line for each pair and segment of `segment` windows
/// with messages in both directions, in order of windows; its deviation is the margin, and a line with a negative one
/// ([`PairLine::deviation`]) violates messages: there is none that does not.
pub fn hulls(seen: impl IntoIterator<Item = Limit>, segment: u32, steepest: Steepest) -> Vec<PairLine> {
    let mut limits: BTreeMap<(u32, u32, u32), Limits> = BTreeMap::new();
    for seen in seen {
        let (pair, side, value) =
            if seen.a < seen.b { ((seen.a, seen.b), 0, seen.least) } else { ((seen.b, seen.a), 1, -seen.least) };
        let limits = limits.entry((pair.0, pair.1, seen.window / segment.max(1))).or_default();
        limits[side].push((seen.at, value));
    }
    let lines = limits.into_iter().filter_map(|((a, b, segment), [least, most])| {
        let samples = (least.len() + most.len()) as u64;
        let (intercept, slope, margin) = widest(&least, &most, steepest)?;
        let (centre, centre_error, slope_error) = (0.0, margin.abs(), 0.0);
        let (deviation, intercept_error, error) = (margin, centre_error, 0.0);
        #[rustfmt::skip]
        let line = PairLine {
            a, b, segment, intercept, slope, deviation, centre, centre_error, slope_error, intercept_error, error, samples,
        };
        Some(line)
    });
    lines.collect()
}

/// Intercept, slope and margin of the line with the largest margin above all points of `least` and below all of `most`; none without
/// points on either side. Points are in order of time, one at a time. Where one side ends as the other one begins, or before,
/// a steeper line has the larger margin: then it is the slope nearest to zero that no point contradicts, and zero if points contradict all that are not too steep.
/// Where lines of several slopes fit as well as each other, it is the one in the middle.
pub fn widest(least: &[(f64, f64)], most: &[(f64, f64)], steepest: Steepest) -> Option<(f64, f64, f64)> {
    let (from, until) = (least.first()?.0, least.last()?.0);
    let (begin, end) = (most.first()?.0, most.last()?.0);
    let hulls = Hulls::of(least, most);
    let gap = |slope: f64| hulls.gap(slope);
    let common = (end - from).min(until - begin);
    let longer = (until - from).max(end - begin);
    let slope = if common <= 0.0 && gap(0.0) >= 0.0 {
        0.0
    } else if common >= 0.0 {
        let best = |steepest: f64| best_slope(&[&hulls.below, &hulls.above], steepest, gap);
        let overlap = 2.0 * common >= longer;
        Some(best(steepest.overlapping))
            .filter(|slope| overlap && gap(*slope) >= 0.0)
            .unwrap_or_else(|| best(steepest.apart))
    } else {
        // The gap grows towards positive slopes where the lower points come last.
        level_slope(if end < from { steepest.apart } else { -steepest.apart }, gap)
    };
    Some((hulls.middle(slope), slope, gap(slope) / 2.0))
}

/// The upper hull of what a difference is at least, and the lower one of what it is at most.
struct Hulls {
    below: Vec<(f64, f64)>,
    above: Vec<(f64, f64)>,
}

impl Hulls {
    fn of(least: &[(f64, f64)], most: &[(f64, f64)]) -> Hulls {
        Hulls { below: hull(least, 1.0), above: hull(most, -1.0) }
    }

    /// The lowest and the highest intercept of lines of a slope.
    fn ends(&self, slope: f64) -> (f64, f64) {
        let floor = self.below.iter().map(|p| p.1 - slope * p.0).fold(f64::NEG_INFINITY, f64::max);
        let ceiling = self.above.iter().map(|p| p.1 - slope * p.0).fold(f64::INFINITY, f64::min);
        (floor, ceiling)
    }

    fn gap(&self, slope: f64) -> f64 {
        let (floor, ceiling) = self.ends(slope);
        ceiling - floor
    }

    fn middle(&self, slope: f64) -> f64 {
        let (floor, ceiling) = self.ends(slope);
        (floor + ceiling) / 2.0
    }

    /// By how much a slope may be wrong, as the edges tell along which the quickest messages of either direction lie: where both have about the same slope, or one of them is straight.
    fn doubt(&self, slope: f64) -> Option<f64> {
        let ends = |hull: &[(f64, f64)]| Some((hull.first()?.0, hull.last()?.0));
        let (one, other) = (ends(&self.below)?, ends(&self.above)?);
        let (from, until) = (one.0.max(other.0), one.1.min(other.1));
        if until <= from {
            return None;
        }
        let edges = [&self.below, &self.above].map(|hull| Edge::of(hull, from, until));
        let apart = |edge: &Edge, slope: f64| (edge.slope - slope).abs() + edge.sag / (until - from);
        let straight = edges.iter().flatten().filter(|edge| edge.points >= STRAIGHT).map(|edge| apart(edge, slope));
        let parallel = match &edges {
            [Some(one), Some(other)] => Some(BY_CHANCE * apart(one, other.slope).max(apart(other, one.slope))),
            _ => None,
        };
        straight.chain(parallel).min_by(f64::total_cmp)
    }
}

/// Where the quickest messages of a direction lie, in the middle of the time that both directions have in common.
struct Edge {
    slope: f64,
    /// How far others are from it at most that are not near the ends.
    sag: f64,
    /// Points of the hull that are not near the ends.
    points: usize,
}

/// Points of an edge from which on it is known to be straight.
const STRAIGHT: usize = 3;
/// How many times as wrong as two edges say may a slope be that have the same one: if they tell nothing else of themselves, that may be by chance.
const BY_CHANCE: f64 = 2.0;
/// Part of the common time at either end that does not count: processes that begin or end wait otherwise.
const NEAR_ENDS: f64 = 0.125;

impl Edge {
    fn of(hull: &[(f64, f64)], from: f64, until: f64) -> Option<Edge> {
        let middle = (from + until) / 2.0;
        let edges = hull.iter().zip(hull.iter().skip(1)).filter(|(one, other)| one.0 < other.0);
        let steepness = |(one, other): (&(f64, f64), &(f64, f64))| (other.1 - one.1) / (other.0 - one.0);
        let along = |edge: (&(f64, f64), &(f64, f64)), time: f64| edge.0.1 + steepness(edge) * (time - edge.0.0);
        let edge = |time: f64| edges.clone().find(|(one, other)| one.0 <= time && time <= other.0);
        let own = edge(middle)?;
        let near = NEAR_ENDS * (until - from);
        let inner = [from + near, until - near];
        let sag = |time: f64| Some((along(edge(time)?, time) - along(own, time)).abs());
        let sag = sag(inner[0])?.max(sag(inner[1])?);
        let points = hull.iter().filter(|point| inner[0] <= point.0 && point.0 <= inner[1]).count();
        Some(Edge { slope: steepness(own), sag, points })
    }
}

/// A line that points permit, and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PossibleLine {
    /// Value at time 0.
    pub intercept: f64,
    /// Per unit of time.
    pub slope: f64,
    /// How far it is above the points of `least`, and below those of `most`, at least; negative if points contradict it.
    pub margin: f64,
    /// By how much it may be wrong at the beginning or at the end of the run; infinite if points contradict it.
    pub uncertainty: f64,
}

/// As [`widest`], of clocks whose drifts are known to differ by about `usual`: the less points tell of the slope, the nearer to zero it is. The run is from 0 to `end`.
pub(super) fn likeliest(
    least: &[(f64, f64)],
    most: &[(f64, f64)],
    end: f64,
    usual: f64,
    steepest: Steepest,
) -> Option<PossibleLine> {
    let (intercept, slope, margin) = widest(least, most, steepest)?;
    if margin < 0.0 {
        return Some(PossibleLine { intercept, slope, margin, uncertainty: f64::INFINITY });
    }
    let hulls = Hulls::of(least, most);
    // The gap is concave: it shrinks to both sides.
    let extreme = |steepest: f64| {
        let (mut possible, mut beyond) = (slope, steepest);
        if hulls.gap(steepest) >= 0.0 {
            return steepest;
        }
        for _ in 0..HALVED {
            let middle = (possible + beyond) / 2.0;
            if hulls.gap(middle) >= 0.0 { possible = middle } else { beyond = middle }
        }
        possible
    };
    let [low, high] = [-steepest.overlapping, steepest.overlapping].map(extreme);
    let range = (high - low) / 2.0 / RANGE;
    let known = hulls.doubt(slope).map_or(range, |doubt| range.min(doubt));
    let within = |slope: f64| slope.max(low).min(high);
    let slope = within(slope * usual * usual / (usual * usual + known * known));
    let at = |slope: f64, time: f64| hulls.middle(slope) + slope * time;
    let ends = [slope - range, slope + range].map(within);
    let apart = [0.0, end].map(|time| (at(ends[1], time) - at(ends[0], time)).abs() / 2.0);
    let margin = hulls.gap(slope) / 2.0;
    Some(PossibleLine { intercept: hulls.middle(slope), slope, margin, uncertainty: apart[0].max(apart[1]) + margin })
}

/// Half the range of possible slopes is taken for so many standard deviations: the quickest messages of both directions take about as long, so that the middle one is known better than to that.
const RANGE: f64 = 2.0;
/// Halvings by which the steepest possible line is found. They leave less than 10⁻¹² of the range.
const HALVED: usize = 40;

/// The slope at which `gap` is largest. It is concave and consists of straight parts that meet at the slopes of the hulls' edges.
fn best_slope(hulls: &[&[(f64, f64)]], steepest: f64, gap: impl Fn(f64) -> f64) -> f64 {
    let edges = hulls.iter().flat_map(|hull| hull.windows(2)).map(|edge| match edge {
        [a, b] => ((b.1 - a.1) / (b.0 - a.0)).clamp(-steepest, steepest),
        _ => 0.0,
    });
    let gaps: Vec<(f64, f64)> = edges.map(|slope| (slope, gap(slope))).collect();
    let most = gaps.iter().map(|(_, gap)| *gap).fold(f64::NEG_INFINITY, f64::max);
    // Rounding must not decide between slopes that are equally good.
    let enough = most - 1e-9 * most.abs();
    let good = gaps.iter().filter(|(_, gap)| *gap >= enough).map(|(slope, _)| *slope);
    let (low, high) = good.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), s| (low.min(s), high.max(s)));
    if low <= high { (low + high) / 2.0 } else { 0.0 }
}

/// The slope between zero and `steepest` from which on `gap`, which grows towards it, is not negative; zero if it is everywhere.
fn level_slope(steepest: f64, gap: impl Fn(f64) -> f64) -> f64 {
    if gap(steepest) < 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, steepest);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if gap(middle) >= 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The upper hull (`side` 1) or the lower one (`side` -1) of points in order of time.
pub(super) fn hull(points: &[(f64, f64)], side: f64) -> Vec<(f64, f64)> {
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

    fn steepest(slope: f64) -> Steepest {
        Steepest { overlapping: slope, apart: slope }
    }

    proptest! {
        #[test]
        fn no_message_violates_a_line_where_one_exists(
            slope in -20.0f64..20.0, intercept in -1e5f64..1e5, delays in prop::collection::vec((0.0f64..900.0, 0.0f64..900.0), 2..50)
        ) {
            let at = |k: usize| intercept + slope * k as f64;
            let least: Vec<_> = delays.iter().enumerate().map(|(k, d)| (k as f64, at(k) - 100.0 - d.0)).collect();
            let most: Vec<_> = delays.iter().enumerate().map(|(k, d)| (k as f64, at(k) + 100.0 + d.1)).collect();
            let (found, steep, margin) = widest(&least, &most, steepest(1000.0)).unwrap();
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

    proptest! {
        #[test]
        fn no_other_slope_has_a_larger_margin(
            least in prop::collection::vec(-100.0f64..0.0, 2..30), most in prop::collection::vec(-20.0f64..100.0, 2..30)
        ) {
            let points = |values: &[f64]| values.iter().enumerate().map(|(k, y)| (k as f64, *y)).collect::<Vec<_>>();
            let (least, most) = (points(&least), points(&most));
            let margin = |slope: f64| {
                let floor = least.iter().map(|p| p.1 - slope * p.0).fold(f64::NEG_INFINITY, f64::max);
                (most.iter().map(|p| p.1 - slope * p.0).fold(f64::INFINITY, f64::min) - floor) / 2.0
            };
            let (_, slope, found) = widest(&least, &most, steepest(1000.0)).unwrap();
            prop_assert!((margin(slope) - found).abs() < 1e-9);
            for step in -400..=400 {
                prop_assert!(margin(f64::from(step) / 2.0) <= found + 1e-6 && margin(slope + f64::from(step) * 1e-4) <= found + 1e-6);
            }
        }
    }

    #[test]
    fn a_jump_makes_no_steep_line() {
        let steepest = Steepest { overlapping: 200.0, apart: 1.0 };
        let limits = |value: &dyn Fn(f64) -> f64| {
            let times = || (0..110).map(|k| f64::from(k) / 10.0);
            let [least, most]: [Vec<_>; 2] = [-1.0, 1.0].map(|side| times().map(|at| (at, value(at) + side)).collect());
            widest(&least, &most, steepest).unwrap()
        };
        // Messages contradict any line.
        let (_, slope, margin) = limits(&|at| if at < 10.0 { 0.0 } else { 500.0 });
        assert!(slope.abs() <= 1.0 && margin < -200.0, "{slope} {margin}");
        // A clock that runs away does so evenly.
        let (_, slope, margin) = limits(&|at| 50.0 * at);
        assert!((slope - 50.0).abs() < 1e-6 && (margin - 1.0).abs() < 1e-6, "{slope} {margin}");
    }

    #[test]
    fn what_tells_no_slope_gives_none() {
        // One moment with both directions: every slope has the same margin.
        assert_eq!(widest(&[(3.0, 10.0)], &[(3.0, 30.0)], steepest(200.0)), Some((20.0, 0.0, 10.0)));
        // One direction after the other: the steeper the larger.
        assert_eq!(
            widest(&[(0.0, 10.0), (1.0, 10.0)], &[(5.0, 30.0), (6.0, 32.0)], steepest(200.0)),
            Some((20.0, 0.0, 10.0))
        );
        // A level line would be too high for the second direction: a falling one, no steeper than it has to be.
        let (height, slope, margin) =
            widest(&[(0.0, 10.0), (1.0, 10.0)], &[(5.0, -10.0), (6.0, 32.0)], steepest(200.0)).unwrap();
        assert!((slope + 5.0).abs() < 1e-9 && (height - 15.0).abs() < 1e-9 && margin.abs() < 1e-9);
        let (height, slope, margin) = widest(&[(5.0, 30.0)], &[(0.0, 10.0), (1.0, 10.0)], steepest(200.0)).unwrap();
        assert!((slope - 5.0).abs() < 1e-9 && (height - 5.0).abs() < 1e-9 && margin.abs() < 1e-9);
        // From -1 to 1 they are equal; the middle one.
        let least = [(0.0, -2.0), (1.0, -1.0), (2.0, -2.0)];
        assert_eq!(widest(&least, &least.map(|p| (p.0, -p.1)), steepest(200.0)), Some((0.0, 0.0, 1.0)));
    }

    #[test]
    fn one_message_between_two_of_the_other_direction_holds_the_slope() {
        // Drift of 1000 per window, messages take 100.
        let (height, slope, margin) =
            widest(&[(1.0, 900.0)], &[(0.0, 100.0), (2.0, 2100.0)], steepest(2000.0)).unwrap();
        assert!((height, slope, margin) == (0.0, 1000.0, 100.0), "{height} {slope} {margin}");
        let (height, slope, margin) =
            widest(&[(0.0, -100.0), (2.0, 1900.0)], &[(1.0, 1100.0)], steepest(2000.0)).unwrap();
        assert!((height, slope, margin) == (0.0, 1000.0, 100.0), "{height} {slope} {margin}");
    }

    #[test]
    fn directions_that_nearly_meet_tell_no_slope() {
        // A contradiction of 20 between messages that are a thousandth of a window apart.
        let line = |apart| widest(&[(3.0, 10.0)], &[(3.001, -10.0)], Steepest { overlapping: 1e5, apart });
        let (_, slope, margin) = line(1e5).unwrap();
        assert!((slope + 2e4).abs() < 1.0 && margin.abs() < 1e-9, "{slope} {margin}");
        assert_eq!(line(500.0), Some((0.0, 0.0, -10.0)));
    }

    #[test]
    fn directions_that_overlap_for_a_moment_tell_no_slope() {
        // Messages that have waited for some hundreds and more: the steeper the line, the farther it is from them.
        let least = [(106.3, -285.0), (108.3, -3348.0)];
        let most = [(21.0, 2377.0), (106.25, 600.0), (106.58, 5650.0)];
        let slope = |apart| widest(&least, &most, Steepest { overlapping: 1e5, apart }).unwrap().1;
        assert!((slope(10.0) - 10.0).abs() < 1e-9 && slope(1e5) > 1e4, "{} {}", slope(10.0), slope(1e5));
    }

    #[test]
    fn a_drift_is_drawn_to_zero_by_as_much_as_the_edges_leave_it_open() {
        // Messages of either direction take 80 to 80.4; the clocks drift by 1, and usually differ by 1.
        let points = |side: f64| -> Vec<(f64, f64)> {
            (0..60).map(|k| (f64::from(k), f64::from(k) + side * (80.0 + 0.1 * f64::from(k * 7 % 5)))).collect()
        };
        let line = likeliest(&points(-1.0), &points(1.0), 59.0, 1.0, steepest(1000.0)).unwrap();
        assert!((line.slope - 1.0).abs() < 0.02, "{}", line.slope);
        // Three in one direction say nothing that the others agree with, and are not straight.
        let bent = [(0.0, -80.0), (20.0, -20.0), (59.0, -81.0)];
        let line = likeliest(&bent, &[(0.0, 80.0), (59.0, 139.0)], 59.0, 1.0, steepest(1000.0)).unwrap();
        assert!(line.slope.abs() < 0.5, "{}", line.slope);
    }

    #[test]
    fn an_impossible_line_says_so() {
        // Directions that meet in one moment, where nothing fits.
        let (_, slope, margin) = widest(&[(3.0, 10.0)], &[(3.0, 4.0)], steepest(200.0)).unwrap();
        assert_eq!((slope, margin), (0.0, -3.0));
        assert!(widest(&[(0.0, 10.0)], &[(0.0, 4.0)], steepest(1.0)).unwrap().2 < 0.0);
        assert!(widest(&[], &[(0.0, 4.0)], steepest(1.0)).is_none());
    }
}
