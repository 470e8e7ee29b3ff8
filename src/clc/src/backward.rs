//! Backward amortisation: a curve in a tube.
//!
//! Forward replay leaves a staircase of jumps S on each timeline. The corrected time is `(LC - S) + A` with a nondecreasing
//! curve A that is nowhere under the staircase, passes under the upper bound of every logical send (so that no receive is
//! overtaken), arrives at every jump at full height, and climbs with slope m wherever the upper bounds leave room for that.
//!
//! Seen from the right end the curve is a string pulled taut between the corners of the staircase (from below) and the
//! upper bounds (from above), which falls with slope m where neither touches it. [`amortise`] is the funnel algorithm for
//! such strings (B. Chazelle, A theorem on polygon cutting with applications, FOCS 1982; D. T. Lee, F. P. Preparata, Euclidean shortest paths in
//! the presence of rectilinear barriers, Networks 14, 1984): every corner and upper bound enters and leaves each of two hulls at most once, so it is linear
//! in their number.

use clc_trace::{CurveStretch, Fraction, Shape, Ticks};
use std::collections::VecDeque;

/// A visited event of a timeline at which it jumps: from here on the staircase stands at a height, which the curve has to have reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corner {
    /// The height.
    pub level: Ticks,
    /// Index of the event, ascending.
    pub index: u32,
}

/// A stretch of the curve. It ends where the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Index of the event with which it begins (see [`Corner::index`]); `None`: from the beginning of the timeline.
    pub index: Option<u32>,
    /// Its shape, and the height of the curve at its beginning.
    pub stretch: CurveStretch,
}

/// A point of the string.
#[derive(Debug, Clone, Copy)]
struct Vertex {
    index: u32,
    time: i64,
    level: i64,
}

impl Vertex {
    /// Height at `time` (not after the vertex) of the ramp of slope m that ends here.
    fn ramp(&self, time: i64, slope: Fraction) -> i64 {
        self.level - slope.floor_of(self.time - time)
    }
}

/// Whether the string falls more steeply (to the left) from `a` to `b` than from `c` to `d`.
fn steeper((a, b): (&Vertex, &Vertex), (c, d): (&Vertex, &Vertex)) -> bool {
    let fall = |from: &Vertex, to: &Vertex| i128::from(from.level) - i128::from(to.level);
    let run = |from: &Vertex, to: &Vertex| i128::from(from.time) - i128::from(to.time);
    fall(a, b) * run(c, d) > fall(c, d) * run(a, b)
}

/// The amortisation curve for the corners of one timeline (ascending), with the pre-synchronised `time` C of its visited events by their index, into `segments`, from right to left; the last one begins
/// with the timeline.
///
/// `bound` tells of an event, and of the height of the staircase there, how high the curve may be if it is a logical send: U = S + min over its receives (LC - μ) - LC of the send. It
/// is asked from right to left, and only where the curve may be above the staircase. Upper bounds have to be at or above that, which every correct forward replay guarantees.
pub fn amortise(
    time: impl Fn(u32) -> i64,
    corners: &[Corner],
    mut bound: impl FnMut(u32, Ticks) -> Option<Ticks>,
    slope: Fraction,
    segments: &mut Vec<Segment>,
) {
    segments.clear();
    let mut string = TautString { slope, apex: None, bounds: VecDeque::new(), corners: VecDeque::new(), segments };
    for (place, corner) in corners.iter().enumerate().rev() {
        string.corner(Vertex { index: corner.index, time: time(corner.index), level: corner.level.0 });
        let before = place.checked_sub(1).map(|before| corners[before]);
        let (first, staircase) = before.map_or((0, Ticks::ZERO), |before| (before.index, before.level));
        for index in (first..corner.index).rev() {
            let time = time(index);
            if string.is_down(time, staircase) {
                // It stays there up to the next corner.
                break;
            }
            if let Some(level) = bound(index, staircase) {
                string.bound(Vertex { index, time, level: level.0 });
            }
        }
    }
    string.release(None);
}

/// The string while it is being pulled, from right to left.
struct TautString<'a> {
    slope: Fraction,
    /// The last point that is final.
    apex: Option<Vertex>,
    /// Lower hull of the upper bounds left of the apex that the string has to pass under; falls ever less steeply.
    bounds: VecDeque<Vertex>,
    /// Upper hull of the corners left of the apex that it has to pass over; falls ever more steeply.
    corners: VecDeque<Vertex>,
    /// Final pieces, right to left.
    segments: &'a mut Vec<Segment>,
}

impl TautString<'_> {
    /// The point from which the string falls freely with slope m, as long as nothing more is demanded.
    fn tail(&self) -> Option<Vertex> {
        self.bounds.back().copied().or(self.apex)
    }

    /// Whether the free end has come down to the staircase at `time`.
    fn is_down(&self, time: i64, staircase: Ticks) -> bool {
        self.tail().is_none_or(|tail| tail.ramp(time, self.slope) <= staircase.0)
    }

    /// A jump of the staircase, up to `corner.level`.
    fn corner(&mut self, corner: Vertex) {
        let Some(tail) = self.tail() else {
            self.release(Some(corner));
            return;
        };
        if tail.ramp(corner.time, self.slope) <= corner.level {
            // The free end has come down to the staircase: all before is final and the string starts anew here.
            self.release(Some(corner));
            return;
        }
        while let Some(last) = self.corners.back() {
            let before = if self.corners.len() > 1 { self.corners[self.corners.len() - 2] } else { self.start() };
            if steeper((last, &corner), (&before, last)) {
                break;
            }
            self.corners.pop_back();
        }
        if self.corners.is_empty() {
            // Over the corner and under the nearest upper bound: if the straight way is above it, the string bends there.
            while let Some(&bound) = self.bounds.front() {
                if !steeper((&self.start(), &bound), (&self.start(), &corner)) {
                    break;
                }
                self.line_to(bound);
                self.bounds.pop_front();
            }
        }
        self.corners.push_back(corner);
    }

    /// A logical send that may rise to `bound.level` at most.
    fn bound(&mut self, bound: Vertex) {
        let Some(tail) = self.tail() else { return };
        if tail.ramp(bound.time, self.slope) <= bound.level {
            return;
        }
        while let Some(last) = self.bounds.back() {
            let before = if self.bounds.len() > 1 { self.bounds[self.bounds.len() - 2] } else { self.start() };
            if steeper((&before, last), (last, &bound)) {
                break;
            }
            self.bounds.pop_back();
        }
        if self.bounds.is_empty() {
            while let Some(&corner) = self.corners.front() {
                if !steeper((&self.start(), &bound), (&self.start(), &corner)) {
                    break;
                }
                self.line_to(corner);
                self.corners.pop_front();
            }
        }
        self.bounds.push_back(bound);
    }

    /// The apex; hulls are only ever filled when there is one.
    fn start(&self) -> Vertex {
        self.apex.unwrap_or(Vertex { index: 0, time: 0, level: 0 })
    }

    /// Makes the straight piece from the apex to `vertex` final.
    fn line_to(&mut self, vertex: Vertex) {
        self.push(Some(vertex), Shape::Line);
        self.apex = Some(vertex);
    }

    fn push(&mut self, start: Option<Vertex>, shape: Shape) {
        let level = Ticks(start.map_or(0, |start| start.level));
        self.segments.push(Segment { index: start.map(|start| start.index), stretch: CurveStretch { level, shape } });
    }

    /// Makes everything final up to the free end, which falls down to the staircase; the string starts anew at `next`.
    fn release(&mut self, next: Option<Vertex>) {
        while let Some(bound) = self.bounds.pop_front() {
            self.line_to(bound);
        }
        self.corners.clear();
        self.push(next, if self.apex.is_some() { Shape::Ramp } else { Shape::Flat });
        self.apex = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::{Curve, EventNumber, OneSided, Position};
    use proptest::prelude::*;

    /// What an event demands of the curve.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Demand {
        /// To have reached this height.
        Corner,
        /// Not to be above it.
        UpperBound,
    }

    /// A time, and what an event there demands at which height.
    type Wanted = (i64, Demand, i64);

    /// The segments of what is demanded, in the order of time.
    fn segments(wanted: &[Wanted], slope: Fraction) -> Vec<Segment> {
        let corner = |(index, &(_, demand, level)): (u32, &Wanted)| {
            (demand == Demand::Corner).then_some(Corner { index, level: Ticks(level) })
        };
        let corners: Vec<Corner> = (0..).zip(wanted).filter_map(corner).collect();
        let mut segments = Vec::new();
        let bound = |index: u32, _| match wanted[index as usize] {
            (_, Demand::UpperBound, level) => Some(Ticks(level)),
            _ => None,
        };
        amortise(|index| wanted[index as usize].0, &corners, bound, slope, &mut segments);
        segments
    }

    /// The same from all upper bounds, whether they matter or not.
    fn segments_of_all(wanted: &[Wanted], slope: Fraction) -> Vec<Segment> {
        let mut segments = Vec::new();
        let (bounds, corners) = (VecDeque::new(), VecDeque::new());
        let mut string = TautString { slope, apex: None, bounds, corners, segments: &mut segments };
        for (index, &(time, demand, level)) in (0..wanted.len() as u32).zip(wanted).rev() {
            let vertex = Vertex { index, time, level };
            match demand {
                Demand::Corner => string.corner(vertex),
                Demand::UpperBound => string.bound(vertex),
            }
        }
        string.release(None);
        segments
    }

    /// The curve at every knot.
    fn heights(wanted: &[Wanted], slope: Fraction) -> Vec<i64> {
        let mut segments = segments(wanted, slope);
        segments.reverse();
        let mut correction = OneSided::identity();
        for segment in &segments {
            let start = |index: u32| Position {
                time: Ticks(wanted[index as usize].0),
                location: 0,
                number: EventNumber(u64::from(index)),
            };
            correction.push_stretch(segment.index.map(start), segment.stretch);
        }
        let curves: Vec<Curve> = correction.curves().collect();
        let mut jumps = 0;
        (0..)
            .zip(wanted)
            .map(|(index, &(time, demand, level))| {
                if demand == Demand::Corner {
                    jumps = level;
                }
                let segment = segments.iter().rposition(|s| s.index.is_none_or(|i| i <= index)).unwrap();
                curves[segment].value(Ticks(time), Ticks(jumps), slope).0
            })
            .collect()
    }

    #[test]
    fn a_single_jump_is_approached_with_the_slope() {
        let slope = Fraction::from_f64(0.125).unwrap();
        let knots = [(0, Demand::UpperBound, 1000), (960, Demand::UpperBound, 1000), (1000, Demand::Corner, 10)];
        assert_eq!(heights(&knots, slope), [0, 5, 10]);
    }

    #[test]
    fn a_cap_makes_the_ramp_steeper_behind_it_and_ordinary_before_it() {
        let slope = Fraction::from_f64(0.125).unwrap();
        let knots = [
            (970, Demand::UpperBound, 99),
            (980, Demand::UpperBound, 2),
            (990, Demand::UpperBound, 99),
            (1000, Demand::Corner, 10),
        ];
        assert_eq!(heights(&knots, slope), [1, 2, 6, 10]);
    }

    #[test]
    fn ramps_of_several_jumps_share_the_slope() {
        let slope = Fraction::from_f64(0.125).unwrap();
        let knots = [(960, Demand::UpperBound, 99), (1000, Demand::Corner, 10), (1008, Demand::Corner, 12)];
        assert_eq!(heights(&knots, slope), [6, 11, 12]);
    }

    /// The smallest curve of slope m above the staircase, by the definition.
    fn majorant(wanted: &[Wanted], slope: Fraction) -> Vec<i64> {
        let mut jumps = 0;
        (0..wanted.len())
            .map(|j| {
                let (now, demand, level) = wanted[j];
                if demand == Demand::Corner {
                    jumps = level;
                }
                wanted[j..]
                    .iter()
                    .filter(|(_, demand, _)| *demand == Demand::Corner)
                    .map(|(time, _, level)| level - slope.floor_of(time - now))
                    .fold(jumps, i64::max)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_curve_stays_in_the_tube(
            steps in prop::collection::vec((0i64..40, 0i64..60, 0i64..40, 0u8..3), 1..60),
            slope in 0.001f64..0.9,
        ) {
            let slope = Fraction::from_f64(slope).unwrap();
            let (mut time, mut jumps) = (0, 0);
            let mut knots = Vec::new();
            for (gap, room, jump, kind) in steps {
                time += gap;
                if kind == 0 {
                    jumps += jump + 1;
                    knots.push((time, Demand::Corner, jumps));
                } else {
                    let room = if kind == 1 { room } else { 1 << 30 };
                    knots.push((time, Demand::UpperBound, jumps + room));
                }
            }
            prop_assert_eq!(segments(&knots, slope), segments_of_all(&knots, slope));
            let heights = heights(&knots, slope);
            let ideal = majorant(&knots, slope);
            let mut stair = 0;
            let mut bound = false;
            for (j, &(_, demand, level)) in knots.iter().enumerate() {
                match demand {
                    Demand::Corner => stair = level,
                    Demand::UpperBound => {
                        prop_assert!(heights[j] <= level, "above the upper bound at {j}: {heights:?} {knots:?}");
                        bound |= level < 1 << 29;
                    }
                }
                prop_assert!(heights[j] >= stair, "under the staircase at {j}: {heights:?} {knots:?}");
                prop_assert!(heights[j] <= ideal[j], "above the ideal curve at {j}: {heights:?} {ideal:?} {knots:?}");
                prop_assert!(j == 0 || heights[j - 1] <= heights[j], "falls at {j}: {heights:?} {knots:?}");
            }
            if !bound {
                prop_assert_eq!(&heights, &ideal);
            }
        }
    }
}
