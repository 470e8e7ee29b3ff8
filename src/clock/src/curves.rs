//! Curves through recorded offsets of clocks that swing, where there are many of them.
//!
//! Readers of traces join offsets by straight lines ([`LinearClock`]). A clock that bends between two of them is off these lines by up to an eighth of its acceleration times the square of the
//! time between; the cubic spline through all of them, which bends as little as a curve can that has no corners, is not. Whether a clock does bend like that, its own offsets tell: each is predicted from the others, by both.

use crate::LinearClock;
use crate::extrapolation::swings;
use crate::steps::quantile;
use clc_trace::{ClockOffset, Ticks};

/// Offsets of a clock from which on they tell how it bends. Each prediction needs two on either side, and few predictions happen to agree: with 8 offsets, curves were taken for a clock that walks.
const ENOUGH: usize = 9;
/// Offsets from which on a clock can be joined by a curve at all if something else tells that it bends.
const FEW: usize = 5;
/// How many times as large the squares of what straight lines miss are. Of a clock that does not bend, both miss as much (curves a little more); one that does is off lines twice as long by four times what it
/// is off those that would be used, so with this value curves are several times as close.
const BETTER: f64 = 4.0;
/// Straight pieces of a curve between two offsets: they are off it by one part in 256 of what one is off. More make the clock slower to apply.
const PIECES: usize = 16;
/// Over how many usual distances of two offsets it is a usual distance that one between them is predicted; of equal distances, two.
const FARTHEST: f64 = 2.5;
/// Offsets that are closer to the one before than this part of a usual distance are left out: the slope between the two would be that of their errors, and a curve goes on with it.
const CLOSE: f64 = 0.125;
/// By which part the second derivative of a curve changes in its first and last piece as in the next one. With all of it, curves of clocks that swing are closest there, with none of it those of clocks that walk.
const RUNOUT: f64 = 0.75;
/// From how many offsets before and after it one is predicted. A spline hardly depends on more (what is three away counts a fiftieth).
const AROUND: usize = 3;

/// What tells that clocks bend between their offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The offsets themselves: nine or more of a clock have to be predicted by curves.
    ByOffsets,
    /// Something else, such as violations that straight lines leave: five offsets will do, whatever they show.
    Otherwise,
}

/// The curve through the offsets of each clock, as a function of so short straight lines that it makes no difference; none for clocks with too few of them, or whose own offsets do not show that curves predict them much
/// better, if that is how it is `told`, and nothing at all if that are all. `span`: the first and the last time of the run, by the lines between the offsets. Before the first and after the last offset a clock that is seen to come and go does so by linear prediction; the lines of
/// others go on as they are.
pub fn curves(clocks: &[Vec<ClockOffset>], span: (i64, i64), told: Told) -> Option<Vec<Option<LinearClock>>> {
    let mut curves: Vec<Option<Curve>> = clocks.iter().map(|offsets| Curve::through(offsets, told)).collect();
    // At least as far as a piece: how a curve goes on tells how it bends in its first and last one, and that how it goes on.
    let count = |curve: &Curve| curve.beyond(span).map(|count| count.max(PIECES));
    let counts: Vec<[usize; 2]> = curves.iter().flatten().map(count).collect();
    let go_on = |curves: &[Option<Curve>]| {
        let rows: Vec<Vec<f64>> = curves.iter().flatten().map(Curve::values).collect();
        swings(&rows, &counts)
    };
    let leads = go_on(&curves);
    curves.iter_mut().flatten().zip(&leads).for_each(|(curve, leads)| curve.lead_to(leads));
    let mut beyond = go_on(&curves).into_iter();
    let clock = |curve: &Option<Curve>| curve.as_ref().and_then(|curve| curve.clock(&beyond.next()?));
    let clocks: Vec<Option<LinearClock>> = curves.iter().map(clock).collect();
    clocks.iter().any(Option::is_some).then_some(clocks)
}

/// The curve through the offsets of a clock.
struct Curve {
    spline: Spline,
    /// Whether the first point is one before the first offset, to which the curve leads.
    led: bool,
    /// How many points are offsets.
    count: usize,
    /// The local time and the offset of the first one.
    first: (i64, i64),
}

impl Curve {
    /// None if the offsets do not show that it is closer than straight lines.
    fn through(offsets: &[ClockOffset], told: Told) -> Option<Curve> {
        let enough = match told {
            Told::ByOffsets => ENOUGH,
            Told::Otherwise => FEW,
        };
        let first = offsets.first()?;
        // From the first one on, so that no digits are lost.
        let points: Vec<Point> = offsets
            .iter()
            .map(|one| Point {
                at: one.time.saturating_sub(first.time) as f64,
                value: one.offset.saturating_sub(first.offset) as f64,
            })
            .collect();
        if !points.is_sorted_by(|one, next| one.at < next.at) {
            return None;
        }
        let points = apart(points);
        let is_one = points.len() >= enough && (told == Told::Otherwise || bends(&points));
        is_one.then_some(Curve {
            led: false,
            count: points.len(),
            spline: Spline::through(points, RUNOUT),
            first: (i64::try_from(first.time).ok()?, first.offset),
        })
    }

    /// The offsets.
    fn points(&self) -> &[Point] {
        &self.spline.points[usize::from(self.led)..][..self.count]
    }

    /// Makes it lead to these values before the first and after the last offset, instead of bending there as it does within.
    fn lead_to(&mut self, [before, behind]: &[Vec<f64>; 2]) {
        let mut points = self.points().to_vec();
        let (step, end) = (self.step(), self.end());
        self.led = before.len() >= PIECES;
        if let Some(value) = before.len().checked_sub(PIECES).map(|place| before[place]) {
            points.insert(0, Point { at: -(PIECES as f64) * step, value });
        }
        if let Some(value) = behind.get(PIECES - 1) {
            points.push(Point { at: end + PIECES as f64 * step, value: *value });
        }
        self.spline = Spline::through(points, RUNOUT);
    }

    /// Where the last offset is.
    fn end(&self) -> f64 {
        self.points().last().map_or(0.0, |point| point.at)
    }

    /// How many values [`Curve::values`] are after the first one.
    fn pieces(&self) -> usize {
        (self.points().len() - 1) * PIECES
    }

    /// Time between two values of [`Curve::values`].
    fn step(&self) -> f64 {
        self.end() / self.pieces() as f64
    }

    /// As many values as there are pieces, and one, at equal distances.
    fn values(&self) -> Vec<f64> {
        (0..=self.pieces()).map(|number| self.spline.value(number as f64 * self.step())).collect()
    }

    /// How many values are before the first and after the last offset of a run.
    fn beyond(&self, (first, last): (i64, i64)) -> [usize; 2] {
        let count = |time: f64| (time / self.step()).ceil().max(0.0) as usize;
        let begin = self.first.0.saturating_add(self.first.1) as f64;
        let end = begin + self.end() + self.points().last().map_or(0.0, |point| point.value);
        [count(begin - first as f64), count(last as f64 - end)]
    }

    /// The clock, with these values before the first and after the last offset; none if it exceeds the range of times.
    fn clock(&self, [before, behind]: &[Vec<f64>; 2]) -> Option<LinearClock> {
        let (own, step) = (self.points(), self.step());
        let mut points = Vec::with_capacity(before.len() + self.pieces() + behind.len() + 3);
        points.extend(before.iter().enumerate().map(|(place, value)| {
            let at = (place as f64 - before.len() as f64) * step;
            Point { at, value: *value }
        }));
        for (pair, from) in own[..own.len() - 1].iter().enumerate() {
            let length = own[pair + 1].at - from.at;
            let parts = (0..PIECES).map(|piece| piece as f64 / PIECES as f64);
            points.extend(parts.map(|part| Point {
                at: from.at + part * length,
                value: self.spline.at(pair + usize::from(self.led), part),
            }));
        }
        points.extend(own.last());
        points.extend((1..).zip(behind).map(|(place, value)| {
            let at = self.end() + f64::from(place) * step;
            Point { at, value: *value }
        }));
        // Beyond that the lines go on as they are.
        let along = |at: Point, from: &Point, to: &Point, distance: f64| Point {
            at: at.at + distance,
            value: at.value + distance * secant(from, to),
        };
        if let ([first, second, ..], [.., before, last]) = (own, own) {
            points.insert(0, along(points[0], first, second, first.at - second.at));
            points.push(along(points[points.len() - 1], before, last, last.at - before.at));
        }
        let knot = |point: Point| {
            let time = self.first.0.checked_add(point.at.round() as i64)?;
            Some((Ticks(time), Ticks(self.first.1.checked_add(point.value.round() as i64)?)))
        };
        let mut knots = points.into_iter().map(knot).collect::<Option<Vec<(Ticks, Ticks)>>>()?;
        knots.dedup_by_key(|(time, _)| *time);
        LinearClock::through(&knots).ok()
    }
}

/// A moment and an offset, in ticks since those of the first one.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: f64,
    value: f64,
}

/// Those of these points that are not close to the one before; with the last one.
fn apart(points: Vec<Point>) -> Vec<Point> {
    let least = CLOSE * usual_distance(&points);
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    for point in &points {
        if kept.last().is_none_or(|last| point.at - last.at >= least) {
            kept.push(*point);
        }
    }
    if let ([_, .., last], Some(end)) = (&mut kept[..], points.last()) {
        *last = *end;
    }
    kept
}

/// The median of the times between two points.
fn usual_distance(points: &[Point]) -> f64 {
    quantile(points.windows(2).map(|pair| pair[1].at - pair[0].at).collect(), 0.5)
}

/// Whether a curve through the others predicts each of these points much better than straight lines. Where offsets are rare, a clock may go up and down while one of them is left out, and not between two: so it is enough if
/// this is seen where one is predicted over a usual distance.
fn bends(points: &[Point]) -> bool {
    let usual = usual_distance(points);
    // What lines and what curves miss of all points, and of these.
    let mut missed = [[0.0; 2]; 2];
    for number in 2..points.len() - 2 {
        let (from, one, to) = (&points[number - 1], &points[number], &points[number + 1]);
        let around = number.saturating_sub(AROUND)..=(number + AROUND).min(points.len() - 1);
        let others: Vec<Point> = around.filter(|other| *other != number).map(|other| points[other]).collect();
        let line = from.value + (one.at - from.at) * secant(from, to);
        let curve = Spline::through(others, 0.0).value(one.at);
        let counted = if to.at - from.at > FARTHEST * usual { &mut missed[..1] } else { &mut missed[..] };
        for [lines, curves] in counted {
            *lines += (line - one.value).powi(2);
            *curves += (curve - one.value).powi(2);
        }
    }
    missed.iter().any(|[lines, curves]| *lines > BETTER * curves)
}

/// The slope of the line through two points.
fn secant(from: &Point, to: &Point) -> f64 {
    (to.value - from.value) / (to.at - from.at)
}

/// The cubic spline through points.
struct Spline {
    points: Vec<Point>,
    /// Its second derivatives there.
    bends: Vec<f64>,
}

impl Spline {
    /// Through two points or more, in order of time. The second derivatives follow from continuous first ones: a tridiagonal system, which is solved by elimination. In the first and the last piece they change by the part `runout` of
    /// how they change in the next one; with none of it, these are parabolas.
    fn through(points: Vec<Point>, runout: f64) -> Spline {
        let count = points.len();
        let mut bends = vec![0.0; count];
        if count < 3 {
            return Spline { points, bends };
        }
        let length = |pair: usize| points[pair + 1].at - points[pair].at;
        // The bend at an end goes on from the next two as these differ: so many times the next one, less the one after that.
        let ratio = |end: usize, next: usize| if count > 3 { runout * length(end) / length(next) } else { 0.0 };
        let ends = [ratio(0, 1), ratio(count - 2, count - 3)];
        // What each bend is less than the next one, as a part of it: bend = value - part * next.
        let mut parts = vec![0.0; count];
        for at in 1..count - 1 {
            let (mut back, mut ahead) = (length(at - 1), length(at));
            let mut own = 2.0 * (back + ahead);
            let turn = 6.0 * (secant(&points[at], &points[at + 1]) - secant(&points[at - 1], &points[at]));
            if at == 1 {
                own += back * (1.0 + ends[0]);
                ahead -= back * ends[0];
                back = 0.0;
            }
            if at + 2 == count {
                own += length(at) * (1.0 + ends[1]);
                back -= length(at) * ends[1];
                ahead = 0.0;
            }
            let pivot = own - back * parts[at - 1];
            parts[at] = ahead / pivot;
            bends[at] = (turn - back * bends[at - 1]) / pivot;
        }
        for at in (1..count - 2).rev() {
            bends[at] -= parts[at] * bends[at + 1];
        }
        bends[0] = (1.0 + ends[0]) * bends[1] - ends[0] * bends[2];
        bends[count - 1] = (1.0 + ends[1]) * bends[count - 2] - ends[1] * bends[count - 3];
        Spline { points, bends }
    }

    /// Its value between two points.
    fn value(&self, at: f64) -> f64 {
        let pair = self.points.partition_point(|point| point.at <= at).clamp(1, self.points.len() - 1) - 1;
        let (from, to) = (&self.points[pair], &self.points[pair + 1]);
        self.at(pair, (at - from.at) / (to.at - from.at))
    }

    /// Its value at a part of the way from one point to the next.
    fn at(&self, pair: usize, part: f64) -> f64 {
        let (from, to) = (&self.points[pair], &self.points[pair + 1]);
        let (rest, length) = (1.0 - part, to.at - from.at);
        let weight = |part: f64| part * (part * part - 1.0);
        let bend = weight(rest) * self.bends[pair] + weight(part) * self.bends[pair + 1];
        from.value * rest + to.value * part + bend * length * length / 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn curves_of(offsets: Vec<ClockOffset>) -> Option<Vec<Option<LinearClock>>> {
        let span = within(&offsets);
        curves(&[offsets], span, Told::ByOffsets)
    }

    /// The only one of these curves, or the first one.
    fn first(curves: Option<Vec<Option<LinearClock>>>) -> LinearClock {
        curves.and_then(|curves| curves.into_iter().next()?).expect("a curve")
    }

    /// Largest error between the first and the last offset, with lines and with curves.
    fn errors(count: u64, of: impl Fn(f64) -> f64 + Copy) -> (f64, f64) {
        let offsets = offsets(count, of);
        let lines = LinearClock::new(&offsets).unwrap();
        let curved = first(curves(std::slice::from_ref(&offsets), within(&offsets), Told::ByOffsets));
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
    fn curves_follow_a_clock_that_swings_within_five_offsets() {
        let (lines, curves) = errors(30, |at| 2e5 * (std::f64::consts::TAU * at / 0.5).sin());
        assert!(lines > 35_000.0 && curves < lines / 6.0, "{lines} {curves}");
    }

    #[test]
    fn a_spline_bends_as_parabolas_do_and_has_no_corners() {
        let at = [0.0, 1.0, 2.5, 3.0, 5.0, 5.25];
        let through = |of: fn(f64) -> f64, count: usize, runout: f64| {
            let points = at[..count].iter().map(|&at| Point { at, value: of(at) }).collect();
            Spline::through(points, runout)
        };
        let parabola = |at: f64| 3.0 + 2.0 * at - 4.0 * at * at;
        for (count, runout) in [(3, 0.0), (4, 0.75), (5, 0.0), (6, 1.0)] {
            let spline = through(parabola, count, runout);
            let miss = |at: f64| (spline.value(at) - parabola(at)).abs();
            assert!([0.0, 0.3, 1.0, 1.7, 2.5].into_iter().all(|at| miss(at) < 1e-9), "{count} {runout}");
        }
        // With all of the runout, cubics too; two points make a line.
        let cubic = |at: f64| at * at * at - 3.0 * at;
        let spline = through(cubic, 6, 1.0);
        assert!([0.4, 2.0, 4.0, 5.1].into_iter().all(|at| (spline.value(at) - cubic(at)).abs() < 1e-9));
        assert!((through(cubic, 2, 1.0).value(0.5) - -1.0).abs() < 1e-12);
        let wave = through(f64::sin, 6, 0.5);
        for corner in [1.0, 2.5, 3.0, 5.0] {
            let slope = |from: f64| (wave.value(from + 1e-6) - wave.value(from)) / 1e-6;
            assert!((slope(corner) - slope(corner - 1e-6)).abs() < 1e-4, "{corner}");
        }
    }

    #[test]
    fn offsets_that_are_rare_for_a_while_are_joined_by_curves_as_well() {
        // A swing per second, of which every second, third or fourth offset is missing in the middle.
        let swing = |at: f64| 2e5 * (std::f64::consts::TAU * at).sin();
        let rare: Vec<ClockOffset> = offsets(40, swing)
            .into_iter()
            .enumerate()
            .filter(|(at, _)| !(12..28).contains(at) || at % 4 == 0)
            .map(|(_, one)| one)
            .collect();
        assert!(curves_of(rare).is_some());
    }

    #[test]
    fn two_offsets_that_are_close_together_do_not_bend_a_curve() {
        let swing = |at: f64| 2e5 * (std::f64::consts::TAU * at).sin();
        let (plain, mut twice) = (offsets(20, swing), offsets(20, swing));
        // Half a millisecond after one and before the last one, off by 2 us.
        for (at, time, off) in [(10, 1_001_000_500_000, 2000), (20, 1_001_899_500_000, -2000)] {
            let offset = swing((time - 1_000_000_000_000) as f64 / 1e9).round() as i64 + off;
            twice.insert(at, ClockOffset { time, offset, standard_deviation: 0.0 });
        }
        twice.sort_by_key(|one| one.time);
        let [plain, twice] = [plain, twice].map(|offsets| first(curves_of(offsets)));
        for local in (1_000_000_000_000..1_001_900_000_000).step_by(7_000_000).map(Ticks) {
            let off = plain.map(local).0 - twice.map(local).0;
            assert!(off.abs() < 100, "{local:?}: {off}");
        }
    }

    #[test]
    fn a_few_offsets_are_joined_by_curves_if_something_else_tells_that() {
        let of = |count: u64, told: Told| {
            let own = offsets(count, |at| 2e5 * (std::f64::consts::TAU * at / 0.33).sin());
            let span = within(&own);
            curves(&[own, Vec::new()], span, told)
        };
        assert_eq!(of(4, Told::Otherwise), None);
        assert_eq!(of(7, Told::ByOffsets), None);
        let found = of(7, Told::Otherwise).expect("curves");
        assert!(found[0].is_some() && found[1].is_none());
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
        let (begin, end) = within(&own);
        let curved = first(curves(&[own], (begin - 1_000_000_000, end + 400_000_000), Told::ByOffsets));
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
            let (begin, end) = within(&own);
            let clocks = [own.clone(), offsets(count, |at| 1e5 * at)];
            let found = curves(&clocks, (begin - 300_000_000, end + 300_000_000), Told::ByOffsets);
            assert!(found.as_ref().is_some_and(|found| found[1].is_none()), "a straight one goes on as it is");
            let curved = first(found);
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
