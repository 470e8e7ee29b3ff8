//! Where messages that are late together pull a clock, and what it is there.
//!
//! Messages of a phase of a program in which all are late predict each other with clocks that follow them, and the equations have nothing against clocks that bend. But crystals bend alike throughout a run: a clock that bends by many times
//! as much where no round trip is prompt as where some are does not do so by itself. There it is taken to be straight, unless messages contradict that: then it has bent.

use super::straight::EARLY;
use super::tied::{LOOSE, SILENCE};
use crate::latencies::Latencies;
use crate::observations::{Observations, Offsets};
use crate::steps::quantile;
use std::collections::BTreeMap;
use std::ops::Range;

/// How many times as much as where round trips are prompt a clock bends that is pulled. Chosen by hand, with 621 traces of an independent generator (docs/history.md, "Sixteenth set"): with 5 a clock that walks and is pulled by
/// a phase of broadcasts stayed 3.7 us off instead of 0.9, and none came out better.
const PULLED: f64 = 3.0;
/// Part of half a round trip by which it is pulled at least. With a whole one, one of these traces was 0.88 us off instead of 0.56, and another one 3.74 instead of 3.79.
const LEAST: f64 = 0.5;
/// Part of what a clock is pulled by, by which messages contradict a straight one: then it has bent. Of these traces and 281 others, those with 0 to 0.31 came out up to 130 times as close to the truth (and a few up to three times as far); two with 0.35 and 0.45 were 1.4 and 1.8 times as far from it, and those with 0.8 and more
/// (jumps, swings) would have been up to 5 times as far.
const CONTRADICTED: f64 = 0.33;
/// How often clocks that have bent are put back at most, before all are. Chosen by hand: each time takes a look at all messages, and in the traces that were looked at closely three were enough.
const ROUNDS: usize = 32;
/// A straight deviation grows with time; that of a clock whose drift walks with this power of it.
const GROWS: f64 = 1.5;
/// Fewest places at which a clock shows how it bends where round trips are prompt. Chosen by hand: fewer are chance.
const FEWEST: usize = 8;

/// About as many places at most are looked at for that: the median of more is hardly known better.
const PLACES: usize = 1024;

/// Windows between two others with prompt round trips; none for the begin or the end of the run.
type Gap = (Option<usize>, Option<usize>);

/// Where messages pull a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch {
    clock: usize,
    gap: Gap,
}

impl Stretch {
    /// Its windows, of so many.
    fn windows(&self, count: usize) -> Range<usize> {
        self.gap.0.map_or(0, |at| at + 1)..self.gap.1.unwrap_or(count)
    }

    /// Makes the clock straight here. At the begin and the end of the run it is to go on as it does elsewhere, since nothing is `observed` of it here then.
    pub(super) fn straighten(&self, corrections: &mut Offsets, observed: &mut [Vec<bool>]) {
        let row = &mut corrections[self.clock];
        observed[self.clock][self.windows(row.len())].fill(false);
        if let (Some(before), Some(after)) = self.gap {
            let chord = Chord::new(row, before, after);
            (before + 1..after).for_each(|window| row[window] = chord.at(window));
        }
    }

    /// By how much the corrections differ from `straight` ones here at most.
    fn apart(&self, corrections: &Offsets, straight: &Offsets) -> f64 {
        let windows = self.windows(straight[self.clock].len());
        let both = corrections[self.clock][windows.clone()].iter().zip(&straight[self.clock][windows]);
        both.map(|(row, straight)| (row - straight).abs()).fold(0.0, f64::max)
    }
}

/// By how much the message arrives before it was sent that contradicts `straight` clocks most, of those of the clock of each stretch there.
fn worst(stretches: &[Stretch], straight: &Offsets, seen: &Observations) -> Vec<f64> {
    let count = straight.first().map_or(0, Vec::len);
    let flat: Vec<f64> = straight.iter().flatten().copied().collect();
    let mut of_clock: Vec<Vec<usize>> = vec![Vec::new(); straight.len()];
    stretches.iter().enumerate().for_each(|(at, stretch)| of_clock[stretch.clock].push(at));
    let mut worst = vec![0.0f64; stretches.len()];
    for one in &seen.one_way {
        let own = || [one.a, one.b].into_iter().filter_map(|clock| of_clock.get(clock as usize)).flatten();
        let mut here = own().filter(|at| stretches[**at].windows(count).contains(&(one.window as usize))).peekable();
        if here.peek().is_some() {
            let early = -one.travel(&flat, count);
            here.for_each(|at| worst[*at] = worst[*at].max(early));
        }
    }
    worst
}

/// A straight line between two windows of a row.
struct Chord {
    before: usize,
    from: f64,
    slope: f64,
}

impl Chord {
    fn new(row: &[f64], before: usize, after: usize) -> Chord {
        Chord { before, from: row[before], slope: (row[after] - row[before]) / (after - before) as f64 }
    }

    fn at(&self, window: usize) -> f64 {
        self.from + self.slope * (window - self.before) as f64
    }
}

/// Where messages pull clocks that are not `fixed`, with these corrections, and none contradicts straight ones. `finish` makes clocks go on where nothing is observed.
pub(super) fn stretches(
    corrections: &Offsets,
    observed: &[Vec<bool>],
    seen: &Observations,
    latencies: &Latencies,
    fixed: &[bool],
    finish: impl Fn(&mut Offsets, &[Vec<bool>]),
) -> Vec<Stretch> {
    let prompt = prompt(corrections, seen, latencies);
    let least = (2.0 * latencies.spread).max(LEAST * seen.quick_half_trip().unwrap_or(0.0));
    let clocks = (0..corrections.len()).filter(|clock| !fixed[*clock]);
    let of = |clock: usize| {
        let gaps = pulled(&corrections[clock], &observed[clock], &prompt[clock], least);
        gaps.into_iter().map(move |gap| Stretch { clock, gap })
    };
    let mut stretches: Vec<Stretch> = clocks.flat_map(of).collect();
    // Where one clock stays as it is, messages may contradict another straight one.
    for _ in 0..ROUNDS {
        if stretches.is_empty() {
            break;
        }
        let (mut straight, mut known) = (corrections.clone(), observed.to_vec());
        stretches.iter().for_each(|stretch| stretch.straighten(&mut straight, &mut known));
        finish(&mut straight, &known);
        let mut worst = worst(&stretches, &straight, seen).into_iter();
        let before = stretches.len();
        stretches.retain(|stretch| {
            let beyond = worst.next().unwrap_or(0.0) - EARLY * seen.precision;
            beyond <= CONTRADICTED * stretch.apart(corrections, &straight)
        });
        if stretches.len() == before {
            return stretches;
        }
    }
    Vec::new()
}

/// In which windows each clock has a round trip that is hardly longer than both latencies, which does not depend on what the clocks show.
fn prompt(corrections: &Offsets, seen: &Observations, latencies: &Latencies) -> Vec<Vec<bool>> {
    let mut prompt: Vec<Vec<bool>> = corrections.iter().map(|row| vec![false; row.len()]).collect();
    let latency = |a: u32, b: u32| latencies.direction((a, b)).latency();
    for own in seen.two_way.chunk_by(|one, other| (one.a, one.b) == (other.a, other.b)) {
        let Some((a, b)) = own.first().map(|trip| (trip.a, trip.b)) else { continue };
        let Some((there, back)) = latency(a, b).zip(latency(b, a)) else { continue };
        let most = (there + back + LOOSE * latencies.spread) / 2.0;
        for trip in own.iter().filter(|trip| trip.awaited && trip.half_trip <= most) {
            for clock in [a, b] {
                if let Some(prompt) = prompt.get_mut(clock as usize).and_then(|row| row.get_mut(trip.window as usize)) {
                    *prompt = true;
                }
            }
        }
    }
    prompt
}

/// By how much a row bends over so many windows, about each `stride`th of a range that has as many on both sides.
fn bends(row: &[f64], range: Range<usize>, step: usize, stride: usize) -> impl Iterator<Item = f64> {
    let middles = range.start + step..range.end.saturating_sub(step).max(range.start + step);
    middles.step_by(stride).map(move |window| (row[window - step] - 2.0 * row[window] + row[window + step]).abs())
}

/// Where messages pull a clock with these corrections by `least` or more: between which windows with `prompt` round trips, of those in which it is `observed`.
fn pulled(row: &[f64], observed: &[bool], prompt: &[bool], least: f64) -> Vec<Gap> {
    let tied: Vec<usize> = (0..prompt.len()).filter(|window| prompt[*window]).collect();
    let (Some(&first), Some(&last)) = (tied.first(), tied.last()) else { return Vec::new() };
    let begin = (first > SILENCE).then_some((None, Some(first)));
    let end = (last + SILENCE < row.len()).then_some((Some(last), None));
    let between = tied.windows(2).filter(|two| two[1] - two[0] > SILENCE).map(|two| (Some(two[0]), Some(two[1])));
    let gaps: Vec<Gap> = begin.into_iter().chain(between).chain(end).collect();
    let range = |gap: &Gap| gap.0.unwrap_or(0)..gap.1.map_or(row.len(), |after| after + 1);
    let held = between_all(gaps.iter().map(range), row.len());
    let longest = held.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    // By how much it bends where round trips are prompt.
    let stride = held.iter().map(ExactSizeIterator::len).sum::<usize>().div_ceil(PLACES).max(1);
    let mut known: BTreeMap<usize, Option<f64>> = BTreeMap::new();
    let mut usual = |step: usize| {
        *known.entry(step).or_insert_with(|| {
            let all: Vec<f64> = held.iter().flat_map(|range| bends(row, range.clone(), step, stride)).collect();
            (all.len() >= FEWEST).then(|| quantile(all, 0.5))
        })
    };
    let mut is_pulled = |gap: &Gap| {
        let range = range(gap);
        if observed[range.clone()].iter().filter(|seen| **seen).count() < 2 {
            return false;
        }
        let step = (range.len().min(longest) / 4).max(1);
        let here: Vec<f64> = bends(row, range.clone(), step, 1).collect();
        let Some(usual_bend) = usual(step).filter(|_| !here.is_empty()) else { return false };
        let here = quantile(here, 0.5);
        if here > PULLED * usual_bend && here > least {
            return true;
        }
        // One that was pulled all at once runs beside what it would be.
        let half = (longest / 4).min(range.len() / 2).max(1);
        let ends = gap.0.zip(gap.1).zip(usual(half));
        ends.is_some_and(|((before, after), usual)| {
            let chord = Chord::new(row, before, after);
            let off = (before + 1..after).map(|window| (row[window] - chord.at(window)).abs()).fold(0.0, f64::max);
            let longer = (after - before) as f64 / (2 * half) as f64;
            off > PULLED * usual / 2.0 * longer.powf(GROWS) && off > least
        })
    };
    gaps.iter().filter(|gap| is_pulled(gap)).copied().collect()
}

/// What is left of so many windows between ranges that are in order.
fn between_all(ranges: impl Iterator<Item = Range<usize>>, count: usize) -> Vec<Range<usize>> {
    let mut left = Vec::new();
    let mut from = 0;
    for range in ranges.chain(std::iter::once(count..count)) {
        if from < range.start {
            left.push(from..range.start);
        }
        from = from.max(range.end);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latencies::Reading;
    use crate::observations::{OneWay, TwoWay};
    use clc_trace::workers::Workers;

    const COUNT: usize = 300;
    const LATE: Range<usize> = 100..200;

    /// Prompt round trips but in [`LATE`] windows, and a clock that walks a little everywhere, and elsewhere by this.
    fn gaps(of: impl Fn(usize) -> f64) -> Vec<Gap> {
        let prompt: Vec<bool> = (0..COUNT).map(|window| !LATE.contains(&window)).collect();
        let row: Vec<f64> = (0..COUNT).map(|window| (window * 7919 % 97) as f64 / 10.0 + of(window)).collect();
        pulled(&row, &[true; COUNT], &prompt, 50.0)
    }

    fn hill(window: usize) -> f64 {
        if LATE.contains(&window) { 1000.0 * ((window - 100) as f64 / 100.0 * std::f64::consts::PI).sin() } else { 0.0 }
    }

    #[test]
    fn a_clock_is_pulled_that_bends_where_no_round_trip_is_prompt() {
        let late = vec![(Some(99), Some(200))];
        assert_eq!(gaps(hill), late);
        // At once at the begin and the end of a phase.
        assert_eq!(gaps(|window| if LATE.contains(&window) { 300.0 } else { 0.0 }), late);
        // As usual, or hardly.
        assert_eq!(gaps(|_| 0.0), []);
        assert_eq!(gaps(|window| hill(window) / 100.0), []);
        // A clock that swings does so throughout.
        assert_eq!(gaps(|window| 1000.0 * (window as f64 / 25.0).sin()), []);
    }

    #[test]
    fn a_clock_is_pulled_at_the_begin_and_the_end_as_well() {
        let bent = |window: usize| (window as f64 - 100.0).min(0.0).powi(2) / 10.0;
        let of = |from_end: bool| -> Vec<Gap> {
            let at = |window: usize| if from_end { COUNT - 1 - window } else { window };
            let row: Vec<f64> = (0..COUNT).map(|window| bent(at(window))).collect();
            let prompt: Vec<bool> = (0..COUNT).map(|window| at(window) >= 100).collect();
            pulled(&row, &[true; COUNT], &prompt, 50.0)
        };
        assert_eq!((of(false), of(true)), (vec![(None, Some(100))], vec![(Some(199), None)]));
        assert_eq!(pulled(&[0.0; COUNT], &[true; COUNT], &[false; COUNT], 50.0), []);
    }

    /// Two clocks, the second of which the estimate bends in the [`LATE`] windows, where messages take this long to it.
    fn straight(there: f64) -> Vec<Stretch> {
        let mut seen = Observations { precision: 20.0, floor: 20.0, component: vec![0, 0], ..Observations::default() };
        for window in 0..COUNT as u32 {
            let jitter = f64::from(window * 7919 % 50);
            let late = LATE.contains(&(window as usize));
            let (there, back) = if late { (there, 9000.0) } else { (1000.0 + jitter, 1000.0 + jitter) };
            seen.one_way.push(OneWay::new(0, 1, window, -there));
            seen.one_way.push(OneWay::new(1, 0, window, -back));
            let (middle, half_trip) = ((back - there) / 2.0, (there + back) / 2.0);
            seen.two_way.push(TwoWay { a: 0, b: 1, window, middle, half_trip, awaited: true, sigma: 20.0 });
        }
        seen.one_way.sort_by_key(|one| (one.a, one.window));
        seen.shortest_trips.insert((0, 1), 1000.0);
        let rows = vec![vec![0.0; COUNT], (0..COUNT).map(|window| -3.0 * hill(window)).collect()];
        let flat: Vec<f64> = rows.iter().flatten().copied().collect();
        let latencies = Latencies::new(&seen, &flat, COUNT, Reading::Mode, None, Workers::ONE);
        stretches(&rows, &vec![vec![true; COUNT]; 2], &seen, &latencies, &[true, false], |_, _| ())
    }

    #[test]
    fn a_pulled_clock_is_straight_unless_messages_contradict_that() {
        let stretch = Stretch { clock: 1, gap: (Some(99), Some(200)) };
        assert_eq!(straight(4000.0), [stretch]);
        // By a straight clock they would arrive 2.9 us before they were sent.
        assert_eq!(straight(-2900.0), []);
        let (mut rows, mut observed) = (vec![vec![0.0; COUNT]; 2], vec![vec![true; COUNT]; 2]);
        rows[1] = (0..COUNT).map(|window| 2.0 * window as f64 + hill(window)).collect();
        stretch.straighten(&mut rows, &mut observed);
        assert!((0..COUNT).all(|window| (rows[1][window] - 2.0 * window as f64).abs() < 1e-9));
        assert_eq!(observed[1].iter().filter(|seen| **seen).count(), COUNT - 100);
        assert!(observed[0].iter().all(|seen| *seen));
    }
}
