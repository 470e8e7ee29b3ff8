//! Curves through recorded offsets of clocks that swing, where there are many of them.
//!
//! Readers of traces join offsets by straight lines ([`LinearClock`](crate::LinearClock)). A clock that bends between two of them is off these lines by up to an eighth of its acceleration times the square of the
//! time between; a curve that bends like its neighbours is not. Whether a clock does bend like that, its own offsets tell: each is predicted from the others, by both.

use crate::Knots;
use clc_trace::ClockOffset;

/// Offsets of a clock from which on they tell how it bends. Each prediction needs two on either side, and few predictions happen to agree: with 8 offsets, curves were taken for a clock that walks.
const ENOUGH: usize = 12;
/// How many times as large the squares of what straight lines miss are. Of a clock that does not bend, both miss as much (curves a little more); one that does is off lines twice as long by four times what it
/// is off those that would be used, so with this value curves are several times as close.
const BETTER: f64 = 4.0;
/// Straight pieces of a curve between two offsets: they are off it by a sixty-fourth of what one is off. More make the clock slower to apply.
const PIECES: i64 = 8;

/// What is to be added to the straight lines between the offsets of each clock to make them curves; nothing for clocks whose own offsets do not show that curves predict them much better, and nothing at all if that
/// are all. The times are those that the lines give.
pub fn curves(clocks: &[Vec<ClockOffset>]) -> Option<Vec<Knots>> {
    let knots: Vec<Knots> = clocks.iter().map(|offsets| curve(offsets).unwrap_or_default()).collect();
    knots.iter().any(|knots| !knots.is_empty()).then_some(knots)
}

/// Of one clock.
fn curve(offsets: &[ClockOffset]) -> Option<Knots> {
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
    if points.windows(2).any(|pair| pair[0].at >= pair[1].at) || !bends(&points) {
        return None;
    }
    let mut knots = Knots::new();
    for (pair, ends) in offsets.windows(2).zip(0..) {
        let (from, to) = (&points[ends], &points[ends + 1]);
        let slopes = [slope(&points, ends), slope(&points, ends + 1)];
        let length = to.at - from.at;
        for piece in 0..PIECES {
            let part = piece as f64 / PIECES as f64;
            let line = from.value + part * (to.value - from.value);
            let time = i64::try_from(pair[0].time).ok()?.checked_add(pair[0].offset)?;
            // Where the line has this value.
            let passed = part * (length + (to.value - from.value));
            knots.push((
                time.checked_add(passed.round() as i64)?,
                (between(from, to, slopes, part) - line).round() as i64,
            ));
        }
    }
    let last = offsets.last()?;
    let end = i64::try_from(last.time).ok()?.checked_add(last.offset)?;
    knots.dedup_by_key(|(time, _)| *time);
    // Beyond the offsets the lines go on as they are.
    let begin = knots.first()?.0;
    knots.insert(0, (begin.checked_sub(1)?, 0));
    knots.extend([(end, 0), (end.checked_add(1)?, 0)]);
    knots.is_sorted_by(|one, next| one.0 < next.0).then_some(knots)
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

    /// Largest error between the first and the last offset, with lines and with curves.
    fn errors(count: u64, of: impl Fn(f64) -> f64 + Copy) -> (f64, f64) {
        let offsets = offsets(count, of);
        let lines = LinearClock::new(&offsets).unwrap();
        let knots = curves(std::slice::from_ref(&offsets)).expect("a curve");
        let points: Vec<(Ticks, Ticks)> = knots[0].iter().map(|&(time, offset)| (Ticks(time), Ticks(offset))).collect();
        let curved = Clock::refined(lines.clone(), LinearClock::through(&points).unwrap());
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
        assert_eq!(curves(&[offsets(11, |at| 1e5 * at * at)]), None);
        assert!(curves(&[offsets(12, |at| 1e5 * at * at)]).is_some());
        assert_eq!(curves(&[offsets(30, |at| 1e5 * at)]), None);
        // What is off is how offsets were measured, or the clock goes up and down from one to the next.
        let noise = |at: f64| f64::from((at * 10.0).round() as u32 * 7919 % 1000);
        assert_eq!(curves(&[offsets(30, noise)]), None);
        // Where lines miss little, noise decides; a swing faster than offsets are measured is none that they show.
        assert_eq!(curves(&[offsets(30, |at| 3e2 * at * at + noise(at))]), None);
        assert_eq!(curves(&[offsets(30, |at| 1e5 * (std::f64::consts::TAU * at * 4.7).sin())]), None);
    }

    #[test]
    fn beyond_the_offsets_nothing_changes() {
        let own = offsets(12, |at| 1e6 * at * at);
        let lines = LinearClock::new(&own).unwrap();
        let knots = curves(&[own]).expect("a curve");
        let points: Vec<(Ticks, Ticks)> = knots[0].iter().map(|&(time, offset)| (Ticks(time), Ticks(offset))).collect();
        let curved = Clock::refined(lines.clone(), LinearClock::through(&points).unwrap());
        for local in [999_000_000_000, 1_000_000_000_000, 1_001_100_000_000, 1_001_500_000_000].map(Ticks) {
            assert_eq!(curved.map(local), lines.map(local), "{local:?}");
        }
        assert_ne!(curved.map(Ticks(1_000_450_000_000)), lines.map(Ticks(1_000_450_000_000)));
    }
}
