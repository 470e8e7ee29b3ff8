//! Backward amortisation: for every timeline, a string in a tube.
//!
//! ```text
//! S_j = D_0 + ... + D_j                                              the staircase of jumps
//! U_s = S_s + min over the receives r of send s of (LC_r - mu) - LC_s     the upper bounds
//! F_j = (LC_j - S_j) + A_j                                           the corrected times
//! ```
//!
//! A is a nondecreasing curve over the axis C with A >= S everywhere and A <= U at the sends. It is laid from right to
//! left, from vertex to vertex, beginning at the last event with A = S. The *steepness* between a vertex v and an event
//! j on its left is the pair (A_v - level of j) over (C_v - C_j). From a vertex, look left:
//!
//! * an upper bound is *tight* if the line to it is steeper than m; the curve has to be at least as steep as the steepest
//!   tight bound seen so far;
//! * a corner (a jump event q with its level S_q) allows at most the line to it; the curve has to be at most as steep
//!   as the least steep corner seen so far.
//!
//! The first event that cannot be reconciled with what was seen before it decides:
//!
//! 1. no tight bound seen, and a corner lies on or above the ramp of slope m: the curve comes down the ramp, goes on along
//!    the staircase if it meets it, and the corner is the next vertex. A_j = max(S_j, A_v - floor(M (C_v - C_j) / 2^40)).
//! 2. a tight bound lies below the line to the least steep corner: that corner is the next vertex, by a straight line.
//! 3. a corner lies above the line to the steepest tight bound: that bound is the next vertex, by a straight line.
//! 4. the left end is reached: the steepest tight bound is the next vertex, by a straight line; without one, the curve
//!    comes down the ramp as in 1, to the end.
//!
//! A straight line between (t0, a0) and (t1, a1), t0 < t1, has the value a0 + floor((a1 - a0) (t - t0) / (t1 - t0)).
//! All comparisons are those of exact fractions; points on one line make no difference to any value.
//!
//! Events with the same C: a line between them is vertical and steeper than every other; of two vertical ones, the
//! longer is the steeper. On a vertical line all events left of its right (upper) vertex have the level of the lower one.
//! So the events of equal time before a vertex fall to the lowest of their bounds, but not below their S.

use super::forward::{Forward, ONE, scaled};
use super::matching::Dependency;
use super::model::PerEvent;
use std::cmp::Ordering;

/// How steep a line is: `rise` ticks of A over `run` ticks of C; `run` = 0 is vertical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steepness {
    pub rise: i64,
    pub run: i64,
}

impl Steepness {
    /// Order by steepness, exactly.
    pub(crate) fn compare(self, other: Steepness) -> Ordering {
        if self.run == 0 && other.run == 0 {
            return self.rise.cmp(&other.rise);
        }
        let (left, right) =
            (i128::from(self.rise) * i128::from(other.run), i128::from(other.rise) * i128::from(self.run));
        left.cmp(&right)
    }

    /// Whether this is strictly steeper than `other`.
    pub(crate) fn exceeds(self, other: Steepness) -> bool {
        self.compare(other) == Ordering::Greater
    }
}

/// What a vertex rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The last event of the timeline.
    End,
    /// A jump event, at the level of S.
    Corner,
    /// A logical send, at the level of its bound.
    UpperBound,
}

/// A vertex of the curve, and how the curve comes to it from the vertex on its right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vertex {
    pub index: usize,
    pub level: i64,
    pub rest: Rest,
    /// By a straight line; otherwise down the ramp of slope m and along the staircase.
    pub straight: bool,
}

/// The tube of one timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tube {
    /// C, the axis.
    pub times: Vec<i64>,
    /// S, the running sum of the jumps.
    pub stairs: Vec<i64>,
    /// U at the logical sends.
    pub bounds: Vec<Option<i64>>,
    /// m, in units of 2^-40.
    pub slope: i64,
}

/// The curve of one timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Curve {
    /// A.
    pub level: Vec<i64>,
    /// Its vertices, from right to left.
    pub vertices: Vec<Vertex>,
}

/// The result of the backward amortisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backward {
    /// The tube of every timeline.
    pub tubes: Vec<Tube>,
    /// The curve of every timeline.
    pub curves: Vec<Curve>,
    /// F, the corrected times.
    pub corrected: PerEvent,
}

/// Smooths the jumps of a forward pass into the events before them.
pub(crate) fn backward(times: &PerEvent, dependencies: &[Dependency], forward: &Forward, slope: i64) -> Backward {
    let tubes = tubes(times, dependencies, forward, slope);
    let curves: Vec<Curve> = tubes.iter().map(Tube::curve).collect();
    let corrected = (0..times.len()).map(|p| {
        let event = |j: usize| (forward.clock[p][j] - tubes[p].stairs[j]) + curves[p].level[j];
        (0..times[p].len()).map(event).collect()
    });
    Backward { corrected: corrected.collect(), tubes, curves }
}

/// The staircase and the bounds of every timeline.
pub(crate) fn tubes(times: &PerEvent, dependencies: &[Dependency], forward: &Forward, slope: i64) -> Vec<Tube> {
    let mut tubes: Vec<Tube> = Vec::new();
    for (times, jumps) in times.iter().zip(&forward.jumps) {
        let stairs = jumps.iter().scan(0, |sum, jump| {
            *sum += jump;
            Some(*sum)
        });
        tubes.push(Tube { times: times.clone(), stairs: stairs.collect(), bounds: vec![None; times.len()], slope });
    }
    for Dependency { send, receive, latency, .. } in dependencies {
        let latest = forward.clock[receive.process][receive.index] - latency;
        let tube = &mut tubes[send.process];
        let bound = tube.stairs[send.index] + latest - forward.clock[send.process][send.index];
        tube.bounds[send.index] = Some(tube.bounds[send.index].map_or(bound, |other| other.min(bound)));
    }
    tubes
}

impl Tube {
    /// Whether the event is a jump: a step of the staircase.
    pub(crate) fn is_corner(&self, index: usize) -> bool {
        self.stairs[index] > if index == 0 { 0 } else { self.stairs[index - 1] }
    }

    /// The slope m.
    pub(crate) fn ramp(&self) -> Steepness {
        Steepness { rise: self.slope, run: ONE }
    }

    /// The curve A.
    pub(crate) fn curve(&self) -> Curve {
        let mut curve = Curve { level: self.stairs.clone(), vertices: Vec::new() };
        let Some(last) = self.times.len().checked_sub(1) else { return curve };
        let mut vertex = Vertex { index: last, level: self.stairs[last], rest: Rest::End, straight: false };
        curve.vertices.push(vertex);
        while let Some(next) = self.next_vertex(vertex) {
            self.fill(&mut curve.level, vertex, next);
            curve.vertices.push(next);
            vertex = next;
        }
        for j in 0..vertex.index {
            curve.level[j] = self.ramp_level(vertex, j);
        }
        curve
    }

    /// The next vertex left of `from`, by the rules 1 to 4 above; `None` if the ramp goes to the left end.
    fn next_vertex(&self, from: Vertex) -> Option<Vertex> {
        let corner = |index: usize, straight| Vertex { index, level: self.stairs[index], rest: Rest::Corner, straight };
        let bound =
            |(index, level, _): (usize, i64, _)| Vertex { index, level, rest: Rest::UpperBound, straight: true };
        let mut steepest_cap: Option<(usize, i64, Steepness)> = None;
        let mut flattest_corner: Option<(usize, Steepness)> = None;
        for j in (0..from.index).rev() {
            let line_to =
                |level: i64| Steepness { rise: from.level - level, run: self.times[from.index] - self.times[j] };
            if let Some(level) =
                self.bounds[j].filter(|&level| level < from.level && line_to(level).exceeds(self.ramp()))
            {
                let demanded = line_to(level);
                if let Some((index, allowed)) = flattest_corner
                    && demanded.exceeds(allowed)
                {
                    return Some(corner(index, true)); // rule 2
                }
                if steepest_cap.is_none_or(|(_, _, other)| demanded.exceeds(other)) {
                    steepest_cap = Some((j, level, demanded));
                }
            }
            if self.is_corner(j) {
                let allowed = line_to(self.stairs[j]);
                match steepest_cap {
                    None if !allowed.exceeds(self.ramp()) => return Some(corner(j, false)), // rule 1
                    Some(tight) if tight.2.exceeds(allowed) => return Some(bound(tight)),   // rule 3
                    _ => {}
                }
                if flattest_corner.is_none_or(|(_, other)| other.exceeds(allowed)) {
                    flattest_corner = Some((j, allowed));
                }
            }
        }
        steepest_cap.map(bound) // rule 4
    }

    /// The levels of the events from vertex `left` up to, and without, vertex `right`.
    fn fill(&self, level: &mut [i64], right: Vertex, left: Vertex) {
        level[left.index] = left.level;
        for (j, level) in level.iter_mut().enumerate().take(right.index).skip(left.index + 1) {
            *level = if left.straight { self.line_level(right, left, j) } else { self.ramp_level(right, j) };
        }
    }

    /// The level of event j down the ramp from a vertex on its right.
    fn ramp_level(&self, right: Vertex, j: usize) -> i64 {
        let descent = scaled(self.slope, self.times[right.index] - self.times[j]);
        self.stairs[j].max(right.level - descent)
    }

    /// The level of event j on the straight line between two vertices.
    fn line_level(&self, right: Vertex, left: Vertex, j: usize) -> i64 {
        let (t0, t1) = (self.times[left.index], self.times[right.index]);
        if t0 == t1 {
            return left.level;
        }
        let product = i128::from(right.level - left.level) * i128::from(self.times[j] - t0);
        left.level + product.div_euclid(i128::from(t1 - t0)) as i64
    }
}
