//! What recorded offsets say, and by how much an estimate contradicts them.

use super::Estimator;
use super::knots::shows;
use super::straight::{are_steep, drift_of_crystals};
use super::tied::tied;
use crate::anchor::{Anchor, RecordedLevels};
use crate::clock_map::ClockMap;
use crate::extrapolation::BENT;
use crate::fit::{AtOffsets, ClockFit};
use crate::grid::Grid;
use crate::observations::{Observations, Offsets};
use crate::steps::{quantile, stepped};
use crate::{Method, RANGE};
use clc_trace::{ClockOffset, Ticks};
use std::collections::BTreeMap;
use std::ops::Range;

/// Recorded offsets are trusted to this many floors of the observations. Chosen by hand: a smaller value draws clocks to offsets that are off, a
/// larger one takes little notice of sound ones.
const ANCHOR: f64 = 3.0;
/// Observations per clock from which on it matters no longer how little each of them tells. Assumed: with fewer, no more than a handful of windows tell anything of a clock.
const FEW: usize = 8;
/// Part of what lines from late messages are known to, in the mean, which violations show that speak for them: of nine traces made from recordings without offsets, those with a seventh or less were up to six times as far from the truth with lines, those with a
/// quarter or more up to 30 times as close.
const HINTED: f64 = 0.2;
/// Between measurements and beyond them, recorded clocks may be off by this many times what they are where offsets were measured. Chosen by hand: a
/// smaller value takes the way in which clocks usually wander for a contradiction, a larger one overlooks contradictions.
const ELSEWHERE: f64 = 3.0;

/// Recorded offsets are taken to be wrong by no more than that (seconds), however long the messages of the trace take: where they take longer, they may wait. docs/history.md ("Recorded offsets
/// where messages take longer than 40 us there and back") has what that changed.
pub(super) const LONG: f64 = 20e-6;
/// A clock whose frequency changes by more than this part of itself from window to window again and again, and that is off by more than a message takes for that, is none: docs/history.md ("Clocks that bend
/// back and forth").
const WILDEST: f64 = 1e-3;
/// A row is not counted into a mean that is this many times as far from the median as is typical. Chosen by hand: a smaller value leaves out sound
/// rows, a larger one lets clocks that went astray into the mean.
const ASTRAY: f64 = 5.0;

/// Offsets of one clock that confirm an estimate: those at begin and end of a run do not, since messages are elsewhere. Chosen by hand: with fewer,
/// the two at begin and end would do; with more, few traces have any that confirm.
const SEVERAL: usize = 4;

/// By how much recorded offsets differ at most, in ticks; clocks without any have none.
pub(super) fn largest_difference(offsets: &[Vec<ClockOffset>]) -> f64 {
    let none = offsets.iter().any(Vec::is_empty).then_some(0.0);
    let all = || offsets.iter().flatten().map(|offset| offset.offset as f64).chain(none);
    (all().fold(f64::NEG_INFINITY, f64::max) - all().fold(f64::INFINITY, f64::min)).max(0.0)
}

/// Whether recorded offsets are no larger than what their measurements scatter by: none is larger than the standard deviation that was recorded with it, nor is the mean of those of a clock larger than its error by that.
/// (The quickest of several round trips is off by a third of that, as a rule.)
pub(super) fn are_scatter(offsets: &[Vec<ClockOffset>]) -> bool {
    let scatter = |offsets: &Vec<ClockOffset>| {
        let within = |one: &ClockOffset| (one.offset as f64).abs() <= one.standard_deviation;
        let units = offsets.iter().filter(|one| one.offset != 0).map(|one| one.offset as f64 / one.standard_deviation);
        offsets.iter().all(within) && units.sum::<f64>().abs() <= (offsets.len() as f64).sqrt()
    };
    offsets.iter().all(|offsets| !offsets.is_empty() && scatter(offsets))
}

/// The windows in which an estimate of each clock is compared with recorded offsets: all of them, or of clocks whose lines between recorded offsets bend, those from the first with messages to the last. Where it only goes on, and these lines
/// with the drift between two offsets, neither says anything of the other.
fn told(known: &[EstimateBasis], windows: usize, anchors: &[Anchor]) -> Vec<Range<usize>> {
    let mut offsets = vec![0; known.len()];
    for anchor in anchors {
        offsets.get_mut(anchor.clock as usize).into_iter().for_each(|count| *count += 1);
    }
    let of_clock = |(known, offsets): (&EstimateBasis, usize)| {
        known.span.filter(|_| offsets >= BENT).map_or(0..windows, |(first, last)| first..last + 1)
    };
    known.iter().zip(offsets).map(of_clock).collect()
}

/// Differences between successive offsets of the same clock, over all clocks, from which on these tell what a measurement is off by. Assumed: of fewer, some agree by chance.
const REPEATED: usize = 3;
/// Standard errors of the mean of the offsets of a clock and of the slope of a line through them, and standard deviations of a single one, up to which they may be chance; and the mean square of the former over all clocks, which is one by chance.
const BY_CHANCE: f64 = 3.0;
const SINGLE: f64 = 4.0;
const TOGETHER: f64 = 2.0;

/// Whether offsets that were measured repeatedly say themselves that they are no larger than what measurements scatter by: those of the same clock differ from each other by as much as from zero.
pub(super) fn repeat_as_scatter(offsets: &[Vec<ClockOffset>]) -> bool {
    let values = |own: &Vec<ClockOffset>| -> Vec<f64> { own.iter().map(|one| one.offset as f64).collect() };
    let measured: Vec<Vec<f64>> = offsets.iter().map(values).filter(|own| own.iter().any(|one| *one != 0.0)).collect();
    let differences = || measured.iter().flat_map(|own| own.windows(2).map(|two| two[1] - two[0]));
    let (count, squares) = (differences().count(), differences().map(|one| one * one).sum::<f64>());
    let deviation = (squares / (2 * count.max(1)) as f64).sqrt();
    let units = |own: &Vec<f64>| own.iter().sum::<f64>() / (own.len() as f64).sqrt() / deviation;
    // Of the slope of a line through them.
    let drifts = |own: &Vec<f64>| {
        let places = || (0..own.len()).map(|k| k as f64 - (own.len() - 1) as f64 / 2.0);
        let squares: f64 = places().map(|place| place * place).sum();
        places().zip(own).map(|(place, one)| place * one).sum::<f64>()
            / squares.sqrt().max(f64::MIN_POSITIVE)
            / deviation
    };
    let by_chance = measured.iter().all(|own| {
        let small = own.iter().all(|one| one.abs() <= SINGLE * deviation);
        small && [units(own), drifts(own)].iter().all(|errors| errors.abs() <= BY_CHANCE)
    });
    let together = measured.iter().map(|own| units(own).powi(2)).sum::<f64>() <= TOGETHER * measured.len() as f64;
    // What varies by more than measurements may be wrong is a clock that moves.
    let bounds: Vec<f64> = offsets.iter().flatten().filter(|one| one.offset != 0).map(ClockOffset::bound).collect();
    let widest = bounds.iter().copied().fold(0.0, f64::max);
    let moves = bounds.iter().all(|bound| *bound > 0.0) && deviation > widest;
    count >= REPEATED && !moves && deviation > 0.0 && by_chance && together && offsets.iter().all(|own| !own.is_empty())
}

/// Offsets of a clock from which on a drift shows in them: a line from zero is then more than [`BY_CHANCE`] standard errors of its slope, told by its own steps.
const OFTEN: usize = 5;

/// Whether each clock that was measured at all was measured that often.
pub(super) fn are_often(offsets: &[Vec<ClockOffset>]) -> bool {
    offsets.iter().all(|own| own.len() >= OFTEN || own.iter().all(|one| one.offset == 0))
}

/// Of values that are off by chance, so many standard deviations are half of them off at most.
const HALF_OF_ALL: f64 = 0.6745;

/// What measurements of offsets are off by, in ticks (standard deviation): how far each is from the line through its neighbours, where every clock was measured [`OFTEN`]; none otherwise. What clocks bend between the measurements is in it.
pub(super) fn repeatability(offsets: &[Vec<ClockOffset>]) -> Option<f64> {
    let miss = |three: &[ClockOffset]| -> Option<f64> {
        let [before, here, after] = three else { return None };
        let part = here.time.abs_diff(before.time) as f64 / after.time.abs_diff(before.time).max(1) as f64;
        let line = before.offset as f64 + part * (after.offset as f64 - before.offset as f64);
        Some((here.offset as f64 - line).abs() / (1.0 + part.powi(2) + (1.0 - part).powi(2)).sqrt())
    };
    let measured = || offsets.iter().filter(|own| own.iter().any(|one| one.offset != 0));
    let misses: Vec<f64> = measured().flat_map(|own| own.windows(3).filter_map(miss)).collect();
    let enough = are_often(offsets) && misses.len() >= REPEATED;
    enough.then(|| quantile(misses, 0.5) / HALF_OF_ALL)
}

/// Whether some offsets were recorded, and all of them are zero: what a tracer writes that takes processes to share a clock. No measurement is that exact, on clocks that count nanoseconds.
pub(super) fn are_none(offsets: &[Vec<ClockOffset>]) -> bool {
    let recorded = || offsets.iter().flatten();
    recorded().next().is_some() && recorded().all(|one| one.offset == 0)
}

/// How many times as large as what they change by offsets are at most that are hardly larger: those of 16 generated traces whose clocks show the same time were 0.7 to 1.3 times as large, those of simulated clocks that are 1 us apart 4.6 times.
const UNSTEADY: f64 = 1.5;

/// Whether recorded offsets are hardly larger, in the root mean square, than what measurements of the same clock differ by (which tells of one of them, if they are independent): those of clocks that show another time are about the same again and again.
pub(super) fn are_unsteady(offsets: &[Vec<ClockOffset>]) -> bool {
    // Those of the reference are zero.
    let measured = || offsets.iter().filter(|own| own.is_empty() || own.iter().any(|one| one.offset != 0));
    let changes = || measured().flat_map(|own| own.windows(2).map(|two| two[1].offset as f64 - two[0].offset as f64));
    let values = || measured().flatten().map(|one| one.offset as f64);
    let mean_square = |sum: f64, count: usize| sum / count.max(1) as f64;
    let size = mean_square(values().map(|one| one * one).sum(), values().count());
    let change = mean_square(changes().map(|one| one * one).sum(), changes().count());
    measured().all(|own| own.len() > 1) && change > 0.0 && size <= UNSTEADY.powi(2) * change / 2.0
}

/// By how much a row bends in a window at least in a quarter of its windows.
fn bends_often(row: &[f64]) -> f64 {
    let mut bends: Vec<f64> = row.windows(3).map(|three| (three[0] - 2.0 * three[1] + three[2]).abs()).collect();
    let at = bends.len() - bends.len() / 4;
    if at < bends.len() { *bends.select_nth_unstable_by(at, f64::total_cmp).1 } else { 0.0 }
}

/// The mean of all rows that are not far from the median of all.
fn mean_of_agreeing(rows: &[Vec<f64>]) -> Vec<f64> {
    let windows = rows.first().map_or(0, Vec::len);
    let median = |values: &mut Vec<f64>| -> f64 {
        values.sort_by(f64::total_cmp);
        (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
    };
    let middle: Vec<f64> = (0..windows).map(|w| median(&mut rows.iter().map(|row| row[w]).collect())).collect();
    let off = |row: &Vec<f64>| {
        let squares = row.iter().zip(&middle).map(|(value, middle)| (value - middle).powi(2));
        (squares.sum::<f64>() / windows.max(1) as f64).sqrt()
    };
    let off: Vec<f64> = rows.iter().map(off).collect();
    let typical = median(&mut off.clone());
    let agree: Vec<&Vec<f64>> =
        rows.iter().zip(&off).filter(|(_, off)| **off <= ASTRAY * typical).map(|(row, _)| row).collect();
    (0..windows).map(|w| agree.iter().map(|row| row[w]).sum::<f64>() / agree.len().max(1) as f64).collect()
}

/// By how much a recorded offset may be wrong, in ticks ([`ClockFit::offset_error`]).
pub(super) fn offset_error(anchors: &[Anchor], seen: &Observations, resolution: u64) -> f64 {
    let mut bounds: Vec<f64> = anchors.iter().map(|anchor| anchor.bound).filter(|bound| *bound > 0.0).collect();
    bounds.sort_by(f64::total_cmp);
    let bound = bounds.get(bounds.len() / 2).copied().unwrap_or(f64::INFINITY);
    seen.quick_half_trip().unwrap_or(0.0).min(LONG * resolution as f64).min(bound)
}

/// Whether an estimate agrees with at least [`SEVERAL`] offsets of each measured clock that were recorded between windows with messages of it, with most of them to the bounds that were
/// recorded with them, or to `error` ticks. Where nothing was `observed`, an estimate may have been brought to its offsets, so the windows with messages next to them count.
fn are_confirmed(rows: &Offsets, observed: &[Vec<bool>], anchors: &[Anchor], error: f64) -> bool {
    let miss = |anchor: &Anchor| {
        let (row, seen) = (rows.get(anchor.clock as usize)?, observed.get(anchor.clock as usize)?);
        let window = anchor.window as usize;
        let before = window - seen.get(..=window)?.iter().rev().position(|seen| *seen)?;
        let after = window + seen.get(window..)?.iter().position(|seen| *seen)?;
        let part = if before < after { (window - before) as f64 / (after - before) as f64 } else { 0.0 };
        let off = (row[before] + part * (row[after] - row[before]) - anchor.value).abs();
        Some(off - if anchor.bound > 0.0 { anchor.bound } else { error })
    };
    let agrees = |own: &[Anchor]| {
        let misses: Vec<f64> = own.iter().filter_map(miss).collect();
        misses.len() >= SEVERAL && quantile(misses, 0.5) <= 0.0
    };
    !anchors.is_empty() && anchors.chunk_by(|one, other| one.clock == other.clock).all(agrees)
}

/// What an estimate of a clock rests on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EstimateBasis {
    /// The first and the last window with messages of it.
    span: Option<(usize, usize)>,
    /// Standard deviation of its drift, in ticks per window.
    wanders: f64,
}

impl EstimateBasis {
    /// How far off an estimate may be in a window since nothing was observed there: it goes on with the mean drift.
    fn doubt(&self, window: usize) -> f64 {
        let Some((first, last)) = self.span else { return 0.0 };
        self.wanders * (first.saturating_sub(window) + window.saturating_sub(last)) as f64
    }
}

/// In which windows each clock was `observed`, and how its drift changes, if these are the corrections.
fn bases(rows: &Offsets, observed: &[Vec<bool>]) -> Vec<EstimateBasis> {
    let ends = |seen: &Vec<bool>| seen.iter().position(|seen| *seen).zip(seen.iter().rposition(|seen| *seen));
    let basis = |seen: &Vec<bool>| EstimateBasis { span: ends(seen), ..EstimateBasis::default() };
    let mut known: Vec<EstimateBasis> = observed.iter().map(basis).collect();
    for (known, row) in known.iter_mut().zip(rows) {
        let Some(row) = known.span.and_then(|(first, last)| row.get(first..=last)) else { continue };
        let changes: Vec<f64> = row.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let count = changes.len().max(1) as f64;
        let mean = changes.iter().sum::<f64>() / count;
        known.wanders = (changes.iter().map(|change| (change - mean).powi(2)).sum::<f64>() / count).sqrt();
    }
    known
}

/// How an estimate compares with recorded offsets, of clocks that rest on `known`. `precision`: what observations are known to, in ticks.
pub(super) fn at_offsets(rows: &Offsets, known: &[EstimateBasis], anchors: &[Anchor], precision: f64) -> AtOffsets {
    let off = |anchor: &Anchor| {
        let (clock, window) = (anchor.clock as usize, anchor.window as usize);
        let there = (rows.get(clock)?.get(window)? - anchor.value).abs();
        let off = (there - known.get(clock).map_or(0.0, |known| known.doubt(window))).max(0.0);
        Some((off, (anchor.bound > 0.0).then_some(off - anchor.bound - precision)))
    };
    let off: Vec<(f64, Option<f64>)> = anchors.iter().filter_map(off).collect();
    let mut there: Vec<f64> = off.iter().map(|off| off.0).collect();
    there.sort_by(f64::total_cmp);
    let middle = there.get(there.len() / 2).zip(there.get(there.len().saturating_sub(1) / 2));
    AtOffsets {
        most: there.last().copied(),
        typical: middle.map(|(a, b)| (a + b) / 2.0),
        beyond_stated: off.iter().filter_map(|off| off.1).fold(0.0, f64::max),
    }
}

impl Estimator {
    /// Recorded offsets as observations. A clock goes through its own already: its correction there is zero, or what a jump of the reference has made of its time since.
    pub(super) fn anchors(&self, map: &ClockMap, grid: &Grid, floor: f64) -> Vec<Anchor> {
        let mut anchors = Vec::new();
        for (clock, offsets) in map.offsets.iter().enumerate().filter(|(clock, _)| *clock != self.reference) {
            let constant = self.constants.get(clock).copied().unwrap_or(0);
            for offset in offsets {
                let time = map.bases[clock].map(Ticks(offset.time.min(RANGE as u64) as i64)).0;
                anchors.push(Anchor {
                    clock: clock as u32,
                    window: grid.window(time) as u32,
                    value: self.step_at(self.reference, time) - constant as f64 - self.step_at(clock, time),
                    sigma: (ANCHOR * floor).max(offset.standard_deviation),
                    bound: offset.bound(),
                });
            }
        }
        anchors
    }

    /// These anchors beside messages.
    pub(super) fn levels(&self, anchors: &[Anchor]) -> RecordedLevels {
        RecordedLevels {
            anchors: anchors.to_vec(),
            reference: self.reference as u32,
            long: LONG * self.resolution as f64,
        }
    }

    /// What the steps of a clock add to its correction at a time of the recorded clock, in ticks.
    pub(super) fn step_at(&self, clock: usize, time: i64) -> f64 {
        self.steps.get(clock).map_or(0.0, |steps| (stepped(steps, time) - time) as f64)
    }

    /// What corrections would be that change nothing.
    pub(super) fn recorded(&self, grid: &Grid) -> Offsets {
        let value = |clock: usize, window: usize| {
            let constant = self.constants.get(clock).copied().unwrap_or(0);
            -(constant as f64) - self.step_at(clock, grid.centre(window))
        };
        (0..self.constants.len()).map(|clock| (0..grid.count).map(|window| value(clock, window)).collect()).collect()
    }

    /// What corrections would be without recorded offsets, and by how much those of an estimate differ from them at most. None if no offset was recorded, or some of a
    /// location that has a clock of its own.
    pub(super) fn without_offsets(&self, map: &ClockMap, grid: &Grid, estimated: &Offsets) -> Option<(Offsets, f64)> {
        if map.offsets.iter().flatten().all(|offset| offset.offset == 0) || !map.own.is_empty() {
            return None;
        }
        let mut rows = self.recorded(grid);
        for (row, base) in rows.iter_mut().zip(&map.bases) {
            for (window, value) in row.iter_mut().enumerate() {
                *value += shows(grid, &[], 0, base, window).saturating_sub(grid.centre(window)) as f64;
            }
        }
        let both = rows.iter().flatten().zip(estimated.iter().flatten());
        let anywhere = both.map(|(row, estimated)| (row - estimated).abs()).fold(0.0, f64::max);
        Some((rows, anywhere))
    }

    /// Clocks that no message ties to the reference are known against each other only; what they are off it together, each of their recorded clocks tells
    /// with errors of its own, or where nobody has measured any, the clock as it was recorded. One of them was held so far; here the mean takes its place, of those that agree with the others.
    pub(super) fn centre_groups(&mut self, map: &ClockMap) {
        let component = &self.observations.component;
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let unmeasured = map.offsets.iter().all(Vec::is_empty);
        for (clock, group) in component.iter().enumerate() {
            let measured = unmeasured || map.offsets.get(clock).is_some_and(|offsets| !offsets.is_empty());
            if component.get(self.reference) != Some(group) && measured && self.steps[clock].is_empty() {
                groups.entry(*group).or_default().push(clock);
            }
        }
        for (group, measured) in groups.into_iter().filter(|(_, measured)| measured.len() > 1) {
            let rows: Vec<Vec<f64>> = measured
                .iter()
                .map(|&clock| self.offsets[clock].iter().map(|offset| offset + self.constants[clock] as f64).collect())
                .collect();
            let common = mean_of_agreeing(&rows);
            for clock in (0..self.offsets.len()).filter(|clock| self.observations.component[*clock] == group) {
                self.offsets[clock].iter_mut().zip(&common).for_each(|(offset, common)| *offset -= common);
            }
        }
    }

    /// The largest difference of what two clocks are corrected by in one window, beside those that would change nothing, where the clocks are `known`.
    fn moved_apart(&self, recorded: &Offsets, known: &[Range<usize>]) -> f64 {
        let windows = self.offsets.first().map_or(0, Vec::len);
        let apart = |window: usize| {
            let rows = self.offsets.iter().zip(recorded).zip(known).filter(|(_, known)| known.contains(&window));
            let moves = rows.filter_map(|((row, own), _)| Some(row.get(window)? - own.get(window)?));
            let (least, most) = moves.fold((f64::MAX, f64::MIN), |(least, most), by| (least.min(by), most.max(by)));
            (most - least).max(0.0)
        };
        (0..windows).map(apart).fold(0.0, f64::max)
    }

    /// By how much clocks bend in a window at least in a quarter of their windows: of the one that does so most.
    fn bends(&self) -> f64 {
        self.offsets.iter().map(|row| bends_often(row)).fold(0.0, f64::max)
    }

    /// [`ClockFit::vague`].
    fn vague(&self, grid: &Grid) -> f64 {
        if self.observations.one_way.len() < FEW * self.offsets.len() {
            self.vagueness(grid)
        } else if self.model != Method::Network && self.observations.are_late() {
            HINTED * self.vagueness(grid)
        } else {
            0.0
        }
    }

    /// How the estimate compares with the recorded clocks, as far as it can be told without their violations.
    pub(super) fn fit(&self, anchors: &[Anchor], grid: &Grid) -> ClockFit {
        let recorded = self.recorded(grid);
        let observed = tied(&self.observations, &self.offsets, &self.latencies);
        let known = bases(&self.offsets, &observed);
        let told = told(&known, grid.count, anchors);
        let apart = |clock: usize| -> f64 {
            let (row, own) = (&self.offsets[clock], &recorded[clock]);
            let apart = row.iter().zip(own).map(|(offset, own)| (offset - own).abs()).enumerate();
            let apart = apart.filter(|(window, _)| told[clock].contains(window));
            apart.map(|(window, apart)| apart - known[clock].doubt(window)).fold(0.0, f64::max)
        };
        // Once per clock: a long run may have thousands of recorded offsets.
        let apart: Vec<f64> = (0..self.offsets.len()).map(apart).collect();
        let measured = anchors.iter().filter_map(|anchor| apart.get(anchor.clock as usize).copied());
        let anywhere = measured.fold(0.0, f64::max);
        let offsets = at_offsets(&self.offsets, &known, anchors, self.precision);
        let once = anchors.chunk_by(|one, other| one.clock == other.clock).all(|own| own.len() == 1)
            && anywhere <= drift_of_crystals(grid);
        let elsewhere = if once && self.observations.are_late() { 0.0 } else { anywhere / ELSEWHERE };
        let half_trip = self.observations.quick_half_trip();
        let long = LONG * self.resolution as f64;
        let offset_error = offset_error(anchors, &self.observations, self.resolution);
        let possible = (WILDEST * grid.width as f64).max(half_trip.unwrap_or(long / 2.0));
        ClockFit {
            misfit: self.misfits.map_or(1.0, |(estimated, recorded)| estimated / recorded.max(f64::MIN_POSITIVE)),
            // Beyond a latency, since round trips are all that either is known by.
            contradiction: offsets.most.unwrap_or(0.0).max(elsewhere) - (self.shortest.other_node.0 as f64).min(long),
            offsets,
            by_messages: self.by_messages.unwrap_or(offsets),
            confirmed: are_confirmed(&self.offsets, &observed, anchors, offset_error),
            anywhere,
            once,
            crystals: drift_of_crystals(grid),
            moved_apart: self.moved_apart(&recorded, &told),
            wild: Some(self.bends()).filter(|bends| *bends > possible).unwrap_or(0.0),
            stated: !anchors.is_empty() && anchors.iter().all(|anchor| anchor.bound > 0.0),
            half_trip: half_trip.unwrap_or(0.0),
            doubt: if anywhere > long {
                Some(self.doubt(grid)).filter(|doubt| *doubt > long).unwrap_or(0.0)
            } else {
                0.0
            },
            late: self.observations.are_late(),
            offset_error,
            one_way: self.one_way,
            too_slow: self.too_slow,
            disjoint: false,
            round_trips: half_trip.is_some(),
            gain: self.gain,
            prompt_gain: self.prompt_gain,
            straight_when_prompt: self.straight_when_prompt,
            straight: self.straight.is_some(),
            steep: self.method_of_lines() == Method::Network
                && are_steep(&self.offsets, grid, &self.observations, self.resolution),
            vague: self.vague(grid),
            unmeasured: self.unmeasured,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_within_their_scatter_are_none() {
        let offsets = |values: &[i64], standard_deviation: f64| -> Vec<ClockOffset> {
            (0..).zip(values).map(|(time, &offset)| ClockOffset { time, offset, standard_deviation }).collect()
        };
        let are = |values: &[i64], deviation: f64| are_scatter(&[offsets(&[0, 0], 0.0), offsets(values, deviation)]);
        assert!(are(&[60, -90], 100.0) && are(&[60, 70], 100.0));
        assert!(!are(&[60, -120], 100.0), "one is larger");
        assert!(!are(&[80, 80, 80], 100.0), "all have the same error");
        assert!(
            !are(&[60, -90], 0.0) && !are_scatter(&[Vec::new(), offsets(&[1, -1], 9.0)]),
            "nothing is known of some"
        );
    }

    #[test]
    fn where_a_clock_with_bent_lines_is_only_continued_nothing_is_compared() {
        let known = [EstimateBasis { span: Some((2, 6)), wanders: 1.0 }; 3];
        let anchor = |clock, window| Anchor { clock, window, value: 0.0, sigma: 1.0, bound: 0.0 };
        let anchors = [anchor(1, 0), anchor(1, 9), anchor(2, 0), anchor(2, 5), anchor(2, 9)];
        assert_eq!(told(&known, 10, &anchors), [0..10, 0..10, 2..7]);
        assert_eq!(told(&[EstimateBasis::default()], 4, &[anchor(0, 1); 3]).first(), Some(&(0..4)));
    }

    #[test]
    fn offsets_that_are_all_zero_are_none() {
        let of = |offset: i64| vec![ClockOffset { time: 5, offset, standard_deviation: 0.0 }];
        assert!(are_none(&[of(0), of(0)]) && are_none(&[of(0), Vec::new()]));
        assert!(!are_none(&[of(0), of(1)]) && !are_none(&[Vec::new(), Vec::new()]));
    }

    #[test]
    fn offsets_that_were_measured_repeatedly_tell_themselves_whether_they_are_scatter() {
        let offsets = |values: &[i64]| -> Vec<ClockOffset> {
            (0..).zip(values).map(|(time, &offset)| ClockOffset { time, offset, standard_deviation: 0.0 }).collect()
        };
        let are = |of: [&[i64]; 2]| repeat_as_scatter(&[offsets(&[0, 0]), offsets(of[0]), offsets(of[1])]);
        assert!(are([&[60, -90, 20, 40], &[-70, 80, 10, -20]]));
        assert!(!are([&[60, -90], &[-70, 80]]), "too few");
        assert!(!are([&[1060, 910, 1020, 1040], &[-70, 80, 10, -20]]), "one clock shows another time");
        assert!(!are([&[-600, -200, 200, 600], &[-70, 80, 10, -20]]), "one drifts");
        assert!(!are([&[120, 110, 130, 120], &[-70, 80, 10, -20]]), "all have the same error");
        assert!(!repeat_as_scatter(&[Vec::new(), offsets(&[60, -90, 20, 40])]), "nothing is known of some");
        assert!(!are([&[0, 0, 0, 0], &[0, 0, 0, 0]]));
        // A clock that swings between measurements, of which bounds were recorded.
        let stated = |deviation: f64| {
            let bounded = |one: ClockOffset| ClockOffset { standard_deviation: deviation, ..one };
            let measured = offsets(&[60, -90, 20, 40]).into_iter().map(bounded).collect();
            repeat_as_scatter(&[offsets(&[0, 0]), measured])
        };
        assert!(stated(80.0) && !stated(20.0));
    }

    #[test]
    fn a_drift_shows_in_five_offsets() {
        let offsets = |values: &[i64]| -> Vec<ClockOffset> {
            (0..).zip(values).map(|(time, &offset)| ClockOffset { time, offset, standard_deviation: 0.0 }).collect()
        };
        let drifts = [offsets(&[0, 0]), offsets(&[0, 250, 500, 750, 1000]), offsets(&[0, -250, -500, -750, -1000])];
        assert!(are_often(&drifts) && !repeat_as_scatter(&drifts));
        assert!(!are_often(&[offsets(&[0, 0]), offsets(&[5, 7, -9, 3])]));
    }

    #[test]
    fn offsets_that_were_measured_often_tell_what_measurements_scatter_by() {
        let offsets = |values: &[i64]| -> Vec<ClockOffset> {
            let one = |(time, &offset)| ClockOffset { time, offset, standard_deviation: 0.0 };
            (1..).map(|k| 1000 * k).zip(values).map(one).collect()
        };
        let reference = offsets(&[0; 6]);
        // On a line; and every other one 30 off it, which is 60 off the line through its neighbours.
        let (line, off) = (offsets(&[500, 600, 700, 800, 900, 1000]), offsets(&[530, 570, 730, 770, 930, 970]));
        let scatter =
            |of: &[&Vec<ClockOffset>]| repeatability(&of.iter().map(|own| (*own).clone()).collect::<Vec<_>>());
        assert_eq!(scatter(&[&reference, &line]), Some(0.0));
        let expected = 60.0 / 1.5f64.sqrt() / HALF_OF_ALL;
        assert!(scatter(&[&reference, &off]).is_some_and(|found| (found - expected).abs() < 1e-9));
        // One clock was measured twice only.
        assert_eq!(scatter(&[&reference, &off, &offsets(&[5, 6])]), None);
        assert_eq!(scatter(&[&reference]), None);
    }

    #[test]
    fn offsets_that_change_by_as_much_as_they_are_large_are_unsteady() {
        let offsets = |values: &[i64]| -> Vec<ClockOffset> {
            (0..).zip(values).map(|(time, &offset)| ClockOffset { time, offset, standard_deviation: 0.0 }).collect()
        };
        let are = |of: [&[i64]; 2]| are_unsteady(&[offsets(&[0, 0]), offsets(of[0]), offsets(of[1])]);
        assert!(are([&[-400, 300], &[-200, -700]]) && are([&[100, -100], &[0, 0]]));
        assert!(!are_unsteady(&[Vec::new(), offsets(&[-400, 300])]), "one was not measured");
        assert!(!are([&[-400, -350], &[500, 420]]), "they repeat");
        assert!(!are([&[-400], &[300]]) && !are([&[-400, 300], &[300]]), "measured once");
        assert!(!are([&[0, 0], &[0, 0]]));
    }

    #[test]
    fn clocks_that_jump_or_run_away_do_not_bend_often() {
        let row = |of: fn(f64) -> f64| -> Vec<f64> { (0..100).map(|window| of(f64::from(window))).collect() };
        assert_eq!(bends_often(&row(|w| if w < 40.0 { w } else { 500.0 + 9.0 * w })), 0.0);
        assert_eq!(bends_often(&row(|w| if w % 3.0 == 0.0 { 50.0 } else { 0.0 })), 100.0);
        assert_eq!(bends_often(&[1.0, 2.0]), 0.0);
    }

    #[test]
    fn offsets_confirm_an_estimate_where_there_are_messages() {
        let observed: Vec<Vec<bool>> = vec![(0..100).map(|window| (10..90).contains(&window)).collect(); 2];
        let rows = vec![vec![0.0; 100], vec![7.0; 100]];
        let within = |windows: &[u32], value: f64, bound: f64| {
            let anchor = |window: &u32| Anchor { clock: 1, window: *window, value, sigma: 1.0, bound };
            let anchors: Vec<Anchor> = windows.iter().map(anchor).collect();
            are_confirmed(&rows, &observed, &anchors, 5.0)
        };
        let is_confirmed = |windows: &[u32], value: f64| within(windows, value, 0.0);
        assert!(is_confirmed(&[0, 20, 40, 60, 80, 99], 11.0));
        assert!(within(&[20, 40, 60, 80], 13.0, 7.0) && !within(&[20, 40, 60, 80], 11.0, 3.0), "bounds count");
        assert!(!is_confirmed(&[0, 20, 40, 60, 80, 99], 13.0), "too far off");
        assert!(!is_confirmed(&[0, 5, 40, 60, 80, 99], 11.0), "three only between messages");
        assert!(!is_confirmed(&[], 11.0));
    }

    #[test]
    fn a_clock_that_is_astray_does_not_count_into_the_mean_of_a_group() {
        let rows = [vec![1.0, 3.0], vec![3.0, 5.0], vec![2.0, 4.0], vec![900.0, -700.0]];
        assert_eq!(mean_of_agreeing(&rows), [2.0, 4.0]);
        assert_eq!(mean_of_agreeing(&rows[..2]), [2.0, 4.0]);
        assert_eq!(mean_of_agreeing(&rows[..1]), [1.0, 3.0]);
    }
}
