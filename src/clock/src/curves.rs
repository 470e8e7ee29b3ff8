//! Curves through recorded offsets of clocks that swing, where there are many of them.
//!
//! Readers of traces join offsets by straight lines ([`LinearClock`](crate::LinearClock)). A clock that bends between two of them is off these lines by up to an eighth of its acceleration times the square of the
//! time between; a curve that bends like its neighbours is not. Whether a clock does bend like that, its own offsets tell: each is predicted from the others, by both.

use crate::Knots;
use crate::extrapolation::swings;
use clc_trace::ClockOffset;

/// Offsets of a clock from which on they tell how it bends. Each prediction needs two on either side, and few predictions happen to agree: with 8 offsets, curves were taken for a clock that walks.
const ENOUGH: usize = 9;
/// How many times as large the squares of what straight lines miss are. Of a clock that does not bend, both miss as much (curves a little more); one that does is off lines twice as long by four times what it
/// is off those that would be used, so with this value curves are several times as close.
const BETTER: f64 = 4.0;
/// Straight pieces of a curve between two offsets: they are off it by a sixty-fourth of what one is off. More make the clock slower to apply.
const PIECES: usize = 8;

/// What is to be added to the straight lines between the offsets of each clock to make them curves; nothing for clocks whose own offsets do not show that curves predict them much better, and nothing at all if that
/// are all. The times are those that the lines give; `span`: the first and the last one of the run. Before the first and after the last offset a clock that is seen to come and go does so by linear prediction; the lines of others go on as they are.
pub fn curves(clocks: &[Vec<ClockOffset>], span: (i64, i64)) -> Option<Vec<Knots>> {
    let curves: Vec<Option<Curve>> = clocks.iter().map(|offsets| Curve::through(offsets)).collect();
    let bent = || curves.iter().flatten();
    let rows: Vec<Vec<f64>> = bent().map(Curve::values).collect();
    let counts: Vec<[usize; 2]> = bent().map(|curve| curve.beyond(span)).collect();
    let mut beyond = swings(&rows, &counts).into_iter();
    let knots =
        |curve: &Option<Curve>| curve.as_ref().and_then(|curve| curve.knots(&beyond.next()?)).unwrap_or_default();
    let knots: Vec<Knots> = curves.iter().map(knots).collect();
    knots.iter().any(|knots| !knots.is_empty()).then_some(knots)
}

/// The curve through the offsets of a clock.
struct Curve {
    points: Vec<Point>,
    /// The time of the first one by the lines.
    begin: i64,
}

impl Curve {
    /// None if the offsets do not show that it is closer than straight lines.
    fn through(offsets: &[ClockOffset]) -> Option<Curve> {
        if offsets.len() < ENOUGH {
            return None;
        }
        let first = offsets.first()?;
        // From the first one on, so that no digits are lost.
        let points: Vec<Point> = offsets
            .iter()
            .map(|one| Point {
                at: one.time.saturating_sub(first.time) as f64,
                value: one.offset.saturating_sub(first.offset) as f64,
            })
            .collect();
        let is_one = points.is_sorted_by(|one, next| one.at < next.at) && bends(&points);
        let begin = i64::try_from(first.time).ok()?.checked_add(first.offset)?;
        is_one.then_some(Curve { points, begin })
    }

    /// Where the last offset is.
    fn end(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.at)
    }

    /// Time between two values of [`Curve::values`].
    fn step(&self) -> f64 {
        self.end() / ((self.points.len() - 1) * PIECES) as f64
    }

    /// As many values as there are pieces, and one, at equal distances.
    fn values(&self) -> Vec<f64> {
        let value = |number: usize| {
            let at = number as f64 * self.step();
            let pair = self.points.partition_point(|point| point.at <= at).clamp(1, self.points.len() - 1) - 1;
            let (from, to) = (&self.points[pair], &self.points[pair + 1]);
            self.at(pair, (at - from.at) / (to.at - from.at))
        };
        (0..=(self.points.len() - 1) * PIECES).map(value).collect()
    }

    /// Its value at a part of the way from one point to the next.
    fn at(&self, pair: usize, part: f64) -> f64 {
        let slopes = [pair, pair + 1].map(|number| slope(&self.points, number));
        between(&self.points[pair], &self.points[pair + 1], slopes, part)
    }

    /// How many values are before the first and after the last offset of a run.
    fn beyond(&self, (first, last): (i64, i64)) -> [usize; 2] {
        let count = |time: f64| (time / self.step()).ceil().max(0.0) as usize;
        let begin = self.begin as f64;
        let end = begin + self.end() + self.points.last().map_or(0.0, |point| point.value);
        [count(begin - first as f64), count(last as f64 - end)]
    }

    /// What is to be added to the lines, with these values before the first and after the last offset; none if that exceeds the range of times.
    fn knots(&self, [before, behind]: &[Vec<f64>; 2]) -> Option<Knots> {
        let mut knots = Knots::new();
        // Where the line has a value, and what is to be added there.
        let mut add = |at: f64, line: f64, value: f64| {
            let passed = at + line;
            knots.push((self.begin.checked_add(passed.round() as i64)?, (value - line).round() as i64));
            Some(())
        };
        for (number, value) in before.iter().enumerate() {
            let at = (number as f64 - before.len() as f64) * self.step();
            add(at, self.line(0, at), *value)?;
        }
        for (pair, ends) in self.points.windows(2).enumerate() {
            for piece in 0..PIECES {
                let part = piece as f64 / PIECES as f64;
                let at = ends[0].at + part * (ends[1].at - ends[0].at);
                add(at, self.line(pair, at), self.at(pair, part))?;
            }
        }
        let last = self.points.last()?;
        add(last.at, last.value, last.value)?;
        for (number, value) in (1..).zip(behind) {
            let at = last.at + f64::from(number) * self.step();
            add(at, self.line(self.points.len() - 2, at), *value)?;
        }
        knots.dedup_by_key(|(time, _)| *time);
        // Beyond that the lines go on as they are.
        let (first, last) = (*knots.first()?, *knots.last()?);
        knots.insert(0, (first.0.checked_sub(1)?, first.1));
        knots.push((last.0.checked_add(1)?, last.1));
        knots.is_sorted_by(|one, next| one.0 < next.0).then_some(knots)
    }

    /// The value of the line through a point and the next one.
    fn line(&self, pair: usize, at: f64) -> f64 {
        let (from, to) = (&self.points[pair], &self.points[pair + 1]);
        from.value + (at - from.at) / (to.at - from.at) * (to.value - from.value)
    }
}

/// A moment and an offset, in ticks since those of the first one.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: f64,
    value: f64,
}

/// Whether a curve through the others predicts each of these points much better than straight lines.
fn bends(points: &[Point]) -> bool {
    let (mut lines, mut curves) = (0.0, 0.0);
    for number in 2..points.len() - 2 {
        let one = &points[number];
        let around: Vec<Point> = [2, 1]
            .map(|back| points[number - back])
            .into_iter()
            .chain(points[number + 1..=number + 2].iter().copied())
            .collect();
        let (from, to) = (&around[1], &around[2]);
        let part = (one.at - from.at) / (to.at - from.at);
        lines += (from.value + part * (to.value - from.value) - one.value).powi(2);
        curves += (between(from, to, [slope(&around, 1), slope(&around, 2)], part) - one.value).powi(2);
    }
    lines > BETTER * curves
}

/// The slope at a point, of the parabola through it and its neighbours, or at an end through the next two.
fn slope(points: &[Point], number: usize) -> f64 {
    let secant = |from: &Point, to: &Point| (to.value - from.value) / (to.at - from.at);
    match (number.checked_sub(1).map(|before| &points[before]), points.get(number + 1)) {
        (Some(before), Some(after)) => {
            let here = &points[number];
            let (back, ahead) = (here.at - before.at, after.at - here.at);
            (ahead * secant(before, here) + back * secant(here, after)) / (back + ahead)
        }
        (Some(before), None) => 2.0 * secant(before, &points[number]) - slope(&points[number - 2..=number], 1),
        (None, Some(after)) => 2.0 * secant(&points[number], after) - slope(&points[..3], 1),
        (None, None) => 0.0,
    }
}

/// The cubic through two points with these slopes, at a part of the way (Hermite).
fn between(from: &Point, to: &Point, slopes: [f64; 2], part: f64) -> f64 {
    let (length, rest) = (to.at - from.at, 1.0 - part);
    let values = from.value * (1.0 + 2.0 * part) * rest * rest + to.value * part * part * (3.0 - 2.0 * part);
    values + length * part * rest * (slopes[0] * rest - slopes[1] * part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, LinearClock};
    use clc_trace::Ticks;

    /// Offsets of a clock every tenth of a second, in ticks of a nanosecond.
    fn offsets(count: u64, of: impl Fn(f64) -> f64) -> Vec<ClockOffset> {
        let one = |number: u64| {
            let time = 1_000_000_000_000 + number * 100_000_000;
            ClockOffset { time, offset: of(number as f64 / 10.0).round() as i64, standard_deviation: 0.0 }
        };
        (0..count).map(one).collect()
    }

    /// The times of the first and the last offset, by the lines.
    fn within(offsets: &[ClockOffset]) -> (i64, i64) {
        let global = |one: Option<&ClockOffset>| one.map_or(0, |one| one.time as i64 + one.offset);
        (global(offsets.first()), global(offsets.last()))
    }

    /// Those of a run from its first offset to its last one.
    fn curves_of(offsets: Vec<ClockOffset>) -> Option<Vec<Knots>> {
        let span = within(&offsets);
        curves(&[offsets], span)
    }

    /// The clock of these knots on top of the lines.
    fn curved(lines: &LinearClock, knots: &Knots) -> Clock {
        let points: Vec<(Ticks, Ticks)> = knots.iter().map(|&(time, offset)| (Ticks(time), Ticks(offset))).collect();
        Clock::refined(lines.clone(), LinearClock::through(&points).unwrap())
    }

    /// Largest error between the first and the last offset, with lines and with curves.
    fn errors(count: u64, of: impl Fn(f64) -> f64 + Copy) -> (f64, f64) {
        let offsets = offsets(count, of);
        let lines = LinearClock::new(&offsets).unwrap();
        let knots = curves(std::slice::from_ref(&offsets), within(&offsets)).expect("a curve");
        let curved = curved(&lines, &knots[0]);
        let mut largest = (0f64, 0f64);
        for step in 0..(count - 1) * 20 {
            let local = Ticks(1_000_000_000_000 + step as i64 * 5_000_000);
            let truth = local.0 as f64 + of(step as f64 / 200.0);
            let miss = |found: Ticks| (found.0 as f64 - truth).abs();
            largest = (largest.0.max(miss(lines.map(local))), largest.1.max(miss(curved.map(local))));
        }
        largest
    }

    #[test]
    fn curves_follow_a_clock_that_swings() {
        // 200 us, a period of a second.
        let swing = |at: f64| -4e6 + 2e5 * (std::f64::consts::TAU * at).sin();
        let (lines, curves) = errors(20, swing);
        assert!(lines > 9_000.0 && curves < 3_000.0, "{lines} {curves}");
        // Times of a clock that drifts by a thousandth besides.
        let (lines, curves) = errors(20, |at| swing(at) + 1e6 * at);
        assert!(lines > 9_000.0 && curves < 3_000.0, "{lines} {curves}");
    }

    #[test]
    fn offsets_that_show_no_curve_are_joined_by_lines() {
        assert_eq!(curves_of(offsets(8, |at| 1e5 * at * at)), None);
        assert!(curves_of(offsets(9, |at| 1e5 * at * at)).is_some());
        assert_eq!(curves_of(offsets(30, |at| 1e5 * at)), None);
        // What is off is how offsets were measured, or the clock goes up and down from one to the next.
        let noise = |at: f64| f64::from((at * 10.0).round() as u32 * 7919 % 1000);
        assert_eq!(curves_of(offsets(30, noise)), None);
        // Where lines miss little, noise decides; a swing faster than offsets are measured is none that they show.
        assert_eq!(curves_of(offsets(30, |at| 3e2 * at * at + noise(at))), None);
        assert_eq!(curves_of(offsets(30, |at| 1e5 * (std::f64::consts::TAU * at * 4.7).sin())), None);
    }

    #[test]
    fn beyond_the_offsets_lines_of_a_clock_that_is_not_seen_to_come_and_go_stay() {
        let own = offsets(12, |at| 1e6 * at * at);
        let lines = LinearClock::new(&own).unwrap();
        let (first, last) = within(&own);
        let knots = curves(&[own], (first - 1_000_000_000, last + 400_000_000)).expect("a curve");
        let curved = curved(&lines, &knots[0]);
        for local in [999_000_000_000, 1_000_000_000_000, 1_001_100_000_000, 1_001_500_000_000].map(Ticks) {
            assert_eq!(curved.map(local), lines.map(local), "{local:?}");
        }
        assert_ne!(curved.map(Ticks(1_000_450_000_000)), lines.map(Ticks(1_000_450_000_000)));
    }

    #[test]
    fn a_clock_that_swings_does_so_before_the_first_and_after_the_last_offset() {
        // As in a recording: a third of a second passes before the first offset, in which the clock turns.
        let swing = |at: f64| 2e5 * (std::f64::consts::TAU * (at / 0.7 + 0.3)).sin() + 2e4 * at;
        for count in [14, 30] {
            let own = offsets(count, swing);
            let lines = LinearClock::new(&own).unwrap();
            let (first, last) = within(&own);
            let clocks = [own.clone(), offsets(count, |at| 1e5 * at)];
            let knots = curves(&clocks, (first - 300_000_000, last + 300_000_000)).expect("a curve");
            assert!(knots[1].is_empty(), "a straight one goes on as it is");
            let curved = curved(&lines, &knots[0]);
            let seconds = |from: f64| (1..=30).map(move |step| from + f64::from(step) / 100.0);
            let behind = (count - 1) as f64 / 10.0;
            for from in [-0.31, behind] {
                let worst = |clock: &dyn Fn(Ticks) -> Ticks| {
                    let miss = |at: f64| {
                        let local = 1_000_000_000_000.0 + 1e9 * at;
                        clock(Ticks(local as i64)).0 as f64 - local - swing(at)
                    };
                    seconds(from).map(|at| miss(at).abs()).fold(0.0, f64::max)
                };
                let [by_lines, by_curve] = [worst(&|at| lines.map(at)), worst(&|at| curved.map(at))];
                assert!(by_curve < 0.4 * by_lines, "{count} offsets, from {from}: {by_curve} {by_lines}");
            }
        }
    }
}
