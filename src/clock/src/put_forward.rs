//! How far a clock has to be put forward, over time, where events of two clocks are known to come one after the other: a constant, a line or a piecewise
//! linear function, whichever the evidence supports.
//!
//! At some times it is at least so far, at others at most so far: a kernel begins after its launch, a thread has ended before its team is joined. As long as
//! a constant contradicts none of that, it is a constant. Else the function is found from one half of what is known and judged by how much it contradicts the other half.

use crate::hull::{Steepest, widest};

/// A time of the clock, and how far it has to be put forward at least, or at most, or is.
pub(crate) type Ahead = (i64, i64);

/// Clocks that differ in frequency by more than this are not taken for such. Chosen by hand: a larger value lets lines explain thread events by a
/// drift that no clock has, a smaller one gives up clocks that differ.
const STEEPEST: f64 = 1e-3;
/// Most windows of a piecewise linear function. Chosen by hand: more follow faster changes, from fewer bounds each.
const WINDOWS: usize = 64;
/// Bounds of either kind in each window of a function that is judged. Chosen by hand: with fewer, a single late event bends the function; with more,
/// few traces allow more than a line.
const EVIDENCE: usize = 4;
/// What is left of a contradiction, at most, if a function of more parts is to be preferred. Chosen by hand: a larger part prefers ever more parts
/// for little, a smaller one keeps a shape that contradicts events.
const LEFT: f64 = 0.8;

/// The knots, in order of time, of how far a clock has to be put forward, if that is `least` and `most`: one for a constant, none if it need not be. Between knots, and
/// beyond them, it is linear. The bounds may come in any order.
pub fn put_forward(least: &[Ahead], most: &[Ahead]) -> Vec<Ahead> {
    let constant = constant(least, most);
    let (Some(origin), Some(end)) =
        (least.iter().chain(most).map(|bound| bound.0).min(), least.iter().chain(most).map(|bound| bound.0).max())
    else {
        return Vec::new();
    };
    let constants = || if constant == 0 { Vec::new() } else { vec![(origin, constant)] };
    let (lowest, highest) = (least.iter().map(|bound| bound.1).max(), most.iter().map(|bound| bound.1).min());
    if lowest.zip(highest).is_none_or(|(lowest, highest)| lowest <= highest) {
        return constants();
    }
    // Floating point knows the distances from there.
    let relative = |bounds: &[Ahead]| -> Vec<(f64, f64)> {
        let near = |&(time, ahead): &Ahead| {
            ((i128::from(time) - i128::from(origin)) as f64, (i128::from(ahead) - i128::from(constant)) as f64)
        };
        let mut bounds: Vec<(f64, f64)> = bounds.iter().map(near).collect();
        bounds.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        bounds
    };
    let all =
        Bounds { least: relative(least), most: relative(most), length: (i128::from(end) - i128::from(origin)) as f64 };
    let halves = [all.half(0), all.half(1)];
    // The contradiction of each half with what the other half tells.
    let judged = |windows: usize| {
        let [one, other] = &halves;
        Some(one.fit(windows)?.contradiction(other) + other.fit(windows)?.contradiction(one))
    };
    let flat = ShiftKnots(vec![(0.0, 0.0)]);
    let mut best = (flat.contradiction(&all), 0);
    let shapes = std::iter::successors(Some(1), |windows| Some(2 * windows)).take_while(|&windows| windows <= WINDOWS);
    for windows in shapes {
        match judged(windows) {
            Some(left) if left < LEFT * best.0 => best = (left, windows),
            _ => {}
        }
    }
    let found = Some(best.1).filter(|&windows| windows > 0).and_then(|windows| all.fit(windows));
    let better = found.filter(|knots| knots.contradiction(&all) < flat.contradiction(&all));
    let Some(ShiftKnots(knots)) = better else { return constants() };
    let whole = |(time, ahead): (f64, f64)| {
        let time = i128::from(origin) + time.round() as i128;
        (time as i64, constant.saturating_add(ahead.round() as i64))
    };
    knots.into_iter().map(whole).collect()
}

/// The constant: in the middle of what both sides say, also where they contradict each other; no more than one side says, where there is one only.
fn constant(least: &[Ahead], most: &[Ahead]) -> i64 {
    let least = least.iter().map(|bound| bound.1).max();
    let most = most.iter().map(|bound| bound.1).min();
    match (least, most) {
        (Some(least), Some(most)) if least > 0 || most < 0 => ((i128::from(least) + i128::from(most)) / 2) as i64,
        (Some(least), None) => least.max(0),
        (None, Some(most)) => most.min(0),
        _ => 0,
    }
}

/// What is known, in order of time since the first bound.
struct Bounds {
    least: Vec<(f64, f64)>,
    most: Vec<(f64, f64)>,
    length: f64,
}

impl Bounds {
    /// About every second bound of either kind. Not exactly: kernels and copies may take turns, and say different things.
    fn half(&self, which: u64) -> Bounds {
        let half = |bounds: &[(f64, f64)]| {
            (0..).zip(bounds).filter(|&(place, _)| coin(place) == which).map(|(_, &bound)| bound).collect()
        };
        Bounds { least: half(&self.least), most: half(&self.most), length: self.length }
    }

    /// A line, and how far it is off in the middle of each of so many windows of the same length; nothing if one of them has too few bounds, or if clocks do not
    /// differ by so much.
    fn fit(&self, windows: usize) -> Option<ShiftKnots> {
        if self.length <= 0.0 || self.least.len() < EVIDENCE || self.most.len() < EVIDENCE {
            return None;
        }
        let steepest = Steepest { overlapping: STEEPEST, apart: STEEPEST };
        let (intercept, slope, _) =
            widest(&one_each(&self.least, f64::max), &one_each(&self.most, f64::min), steepest)?;
        let line = |time: f64| intercept + slope * time;
        if windows == 1 {
            return Some(ShiftKnots(vec![(0.0, line(0.0)), (self.length, line(self.length))]))
                .filter(ShiftKnots::is_clock);
        }
        let window = |time: f64| ((time / self.length * windows as f64) as usize).min(windows - 1);
        let mut found = vec![([0; 2], [f64::NEG_INFINITY, f64::INFINITY]); windows];
        for &(time, bound) in &self.least {
            let (counts, ends) = &mut found[window(time)];
            counts[0] += 1;
            ends[0] = ends[0].max(bound - line(time));
        }
        for &(time, bound) in &self.most {
            let (counts, ends) = &mut found[window(time)];
            counts[1] += 1;
            ends[1] = ends[1].min(bound - line(time));
        }
        if found.iter().any(|(counts, _)| counts.iter().any(|&count| count < EVIDENCE)) {
            return None;
        }
        let off: Vec<f64> = found.iter().map(|(_, [least, most])| (least + most) / 2.0).collect();
        let middle = |window: usize| (window as f64 + 0.5) / windows as f64 * self.length;
        let inner = (0..windows).map(|window| (middle(window), line(middle(window)) + off[window]));
        // Before the first and behind the last middle it goes on with the line.
        let first = (0.0, line(0.0) + off[0]);
        let last = (self.length, line(self.length) + off[windows - 1]);
        Some(ShiftKnots(std::iter::once(first).chain(inner).chain([last]).collect())).filter(ShiftKnots::is_clock)
    }
}

/// 0 or 1, for each number always the same (splitmix64; Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014).
fn coin(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits ^ (bits >> 31)) >> 63
}

/// One of the bounds of each time.
fn one_each(bounds: &[(f64, f64)], of: impl Fn(f64, f64) -> f64) -> Vec<(f64, f64)> {
    let mut each: Vec<(f64, f64)> = Vec::with_capacity(bounds.len());
    for &(time, bound) in bounds {
        match each.last_mut().filter(|last| last.0 == time) {
            Some(last) => last.1 = of(last.1, bound),
            None => each.push((time, bound)),
        }
    }
    each
}

/// A function, constant before the first and behind the last of its knots, which are in order of time.
struct ShiftKnots(Vec<(f64, f64)>);

impl ShiftKnots {
    /// Whether clocks differ by no more.
    fn is_clock(&self) -> bool {
        // Knots must not be at one time of the clock.
        self.0.windows(2).all(|pair| match pair {
            [a, b] => b.0 - a.0 >= 1.0 && (b.1 - a.1).abs() <= STEEPEST * (b.0 - a.0),
            _ => true,
        })
    }

    /// By how much it contradicts bounds, in all.
    fn contradiction(&self, bounds: &Bounds) -> f64 {
        let sum = |bounds: &[(f64, f64)], side: f64| -> f64 {
            let mut next = 1;
            let beyond = |&(time, bound): &(f64, f64)| {
                while self.0.get(next).is_some_and(|knot| knot.0 < time) && next + 1 < self.0.len() {
                    next += 1;
                }
                let ahead = match (self.0.get(next - 1), self.0.get(next)) {
                    (Some(from), Some(to)) => from.1 + (time - from.0) / (to.0 - from.0) * (to.1 - from.1),
                    (Some(only), None) => only.1,
                    _ => 0.0,
                };
                (side * (bound - ahead)).max(0.0)
            };
            bounds.iter().map(beyond).sum()
        };
        sum(&bounds.least, 1.0) + sum(&bounds.most, -1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The function through knots, at a time.
    fn at(knots: &[Ahead], time: i64) -> f64 {
        let after = knots.partition_point(|knot| knot.0 < time).clamp(1, knots.len().max(2) - 1);
        match (knots.get(after - 1), knots.get(after)) {
            (Some(from), Some(to)) => {
                from.1 as f64 + (time - from.0) as f64 / (to.0 - from.0) as f64 * (to.1 - from.1) as f64
            }
            (Some(only), None) => only.1 as f64,
            _ => 0.0,
        }
    }

    /// Bounds of a clock that is `ahead`, every thousandth of a run of 10^9 ticks, with delays of 1,000 ticks and up to `more`.
    fn bounds(ahead: impl Fn(f64) -> f64, more: i64) -> (Vec<Ahead>, Vec<Ahead>) {
        let at = |k: i64, side: i64| {
            let time = k * 1_000_000;
            (time, ahead(time as f64) as i64 + side * (1000 + (k * 7919 + side * 31) % 97 * more / 97))
        };
        ((0..1000).map(|k| at(k, -1)).collect(), (0..1000).map(|k| at(k, 1)).collect())
    }

    fn worst(knots: &[Ahead], ahead: impl Fn(f64) -> f64) -> f64 {
        (0..1000).map(|k| (at(knots, k * 1_000_000) - ahead((k * 1_000_000) as f64)).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn a_constant_that_contradicts_nothing_stays() {
        assert_eq!(put_forward(&[(5, 10)], &[(9, 20)]), [(5, 15)]);
        assert_eq!(put_forward(&[(5, -10)], &[(9, 20)]), []);
        assert_eq!(put_forward(&[(5, 10)], &[]), [(5, 10)]);
        assert_eq!(put_forward(&[], &[(9, -20), (7, 3)]), [(7, -20)]);
        assert_eq!(put_forward(&[], &[]), []);
        let (least, most) = bounds(|_| 5e6, 5000);
        assert_eq!(put_forward(&least, &most).len(), 1);
        // Too few to tell anything else.
        assert_eq!(put_forward(&[(0, 10), (100, 30)], &[(50, 20), (60, 40)]), [(0, 25)]);
    }

    #[test]
    fn a_drift_becomes_a_line() {
        let clock = |time: f64| 3e6 + 20e-6 * time;
        let (least, most) = bounds(clock, 5000);
        let found = put_forward(&least, &most);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(worst(&found, clock) < 1000.0, "{found:?}");
    }

    #[test]
    fn what_bends_becomes_several_parts() {
        let clock = |time: f64| -7e6 + 20e-6 * time + 30_000.0 * (time / 1e9 * 9.0).sin();
        let (least, most) = bounds(clock, 5000);
        let found = put_forward(&least, &most);
        assert!(found.len() > 4, "{found:?}");
        // A line is off by 30,000.
        assert!(worst(&found, clock) < 6000.0, "{} {found:?}", worst(&found, clock));
    }

    #[test]
    fn kernels_and_copies_that_take_turns_are_in_both_halves() {
        // Nobody waits for every second one for long.
        let clock = |time: f64| 3e6 + 20e-6 * time;
        let (least, mut most) = bounds(clock, 500);
        most.iter_mut().skip(1).step_by(2).for_each(|bound| bound.1 += 5_000_000);
        let found = put_forward(&least, &most);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(worst(&found, clock) < 1000.0, "{found:?}");
    }

    #[test]
    fn a_jump_is_no_frequency() {
        // Farther than any clock drifts within a window.
        let clock = |time: f64| if time < 4e8 { 0.0 } else { 3e9 };
        let (least, most) = bounds(clock, 5000);
        assert_eq!(put_forward(&least, &most).len(), 1);
    }

    proptest! {
        #[test]
        fn it_never_contradicts_more_than_a_constant(
            least in prop::collection::vec((0i64..1_000_000, -1000i64..1000), 0..60),
            most in prop::collection::vec((0i64..1_000_000, -1000i64..1000), 0..60),
            origin in -1i64 << 61..1 << 61, far in -1i64 << 61..1 << 61,
        ) {
            let moved = |bounds: &[Ahead]| -> Vec<Ahead> { bounds.iter().map(|b| (b.0 + origin, b.1 + far)).collect() };
            let (least, most) = (moved(&least), moved(&most));
            let knots = put_forward(&least, &most);
            prop_assert!(knots.is_sorted_by(|a, b| a.0 < b.0));
            if knots.len() > 1 {
                let contradiction = |ahead: &dyn Fn(i64) -> f64| -> f64 {
                    let least = least.iter().map(|b| (b.1 - far) as f64 - ahead(b.0));
                    let most = most.iter().map(|b| ahead(b.0) - (b.1 - far) as f64);
                    least.chain(most).map(|off| off.max(0.0)).sum()
                };
                let near: Vec<Ahead> = knots.iter().map(|knot| (knot.0, knot.1 - far)).collect();
                let flat = (constant(&least, &most) - far) as f64;
                let slack = (least.len() + most.len()) as f64;
                prop_assert!(contradiction(&|time| at(&near, time)) <= contradiction(&|_| flat) + slack);
            }
        }
    }
}
