//! Makes messages of different lengths comparable.
//!
//! Of a request and its long answer the one takes longer than the other, and half of the difference would be taken for a difference of the clocks. What messages of a
//! class of lengths take, the trace shows in two ways: round trips show the sum of what those of two classes take, whatever the clocks are; and where offsets were recorded, the
//! difference. Where that is not enough, time is taken to grow evenly with length.

use super::anchor::Anchor;
use super::bounds::{Bound, DirectedBounds};
use super::observations::Offsets;
use super::windows::BoundTable;
use clc_trace::LengthClass;
use std::collections::BTreeMap;

/// Round trips of two classes between two clocks that tell what they take, at least, and messages in each direction where an offset was recorded.
const FEWEST: usize = 8;
const FEWEST_NEAR: usize = 4;
/// Windows around a recorded offset in which it holds: this part of the run, or that many.
const NEAR: usize = 16;
const NEAR_WINDOWS: usize = 8;
/// What varies by more than this part of itself was waited for. Chosen by hand: a larger part takes waiting for travel, a smaller one leaves few
/// classes on a busy network.
const WAITED: f64 = 0.25;
/// Classes count if they take longer than the quickest one by this part of it. Chosen by hand: half of what is left shifts the clocks; a smaller part
/// would correct for what is mostly noise.
const COUNTS: f64 = 0.5;
/// Messages of up to so many bytes take the same: they fit into a packet or two.
const SHORT: u32 = 1024;
/// Longer messages do not take less than shorter ones, but for this part of what the longest take, or the equations are of something else. Chosen by
/// hand: a smaller part gives up for a little noise, a larger one trusts equations that contradict it.
const DISORDER: f64 = 0.1;
/// A class takes no longer than so many times the quickest round trip with one of its messages: those differ in length by up to a factor of two. Where processes wait for a core, many messages take as long
/// as that does, and so evenly that they do not seem to have been waited for: of a recording with four processes on two cores, 1.9 ms where the quickest took microseconds.
const QUICKEST: f64 = 2.0;
/// Nothing is known better than this part of the shortest round trip. Chosen by hand: without it, a class of many even messages outweighs all others.
const FLOOR: f64 = 0.01;

/// What the messages of each class take longer than short ones, in ticks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LengthTimes {
    /// By middle length in bytes.
    of: Vec<(f64, f64)>,
}

/// That what two classes take is this together (or, with `sign` -1, the first less the second).
#[derive(Debug, Clone, Copy)]
struct Equation {
    classes: (usize, usize),
    sign: f64,
    value: f64,
    sigma: f64,
}

impl LengthTimes {
    /// As the messages of `table` tell it, whose distances were measured with clocks corrected by `now`; of the recorded offsets `anchors`, of which the clock
    /// `reference` needs none. Nothing if messages hardly differ in what they take.
    pub(crate) fn of(
        table: &BoundTable,
        windows: usize,
        now: &Offsets,
        anchors: &[Anchor],
        reference: usize,
    ) -> LengthTimes {
        if !differ(table) {
            return LengthTimes::default();
        }
        let (mut equations, quickest) = sums(table);
        let Some(least) = equations.values().map(|sum| sum.value).reduce(f64::min).filter(|least| *least > 0.0) else {
            return LengthTimes::default();
        };
        equations.extend(differences(table, windows, now, anchors, reference));
        let mut classes: Vec<LengthClass> = equations.keys().flat_map(|key| [key.0, key.1]).collect();
        classes.sort_unstable();
        classes.dedup();
        let place = |class: &LengthClass| classes.binary_search(class).unwrap_or(0);
        let equation = |(&(one, two, sign), told): (&(LengthClass, LengthClass, i8), &ClassComparison)| Equation {
            classes: (place(&one), place(&two)),
            sign: f64::from(sign),
            value: told.value,
            sigma: told.sigma.max(FLOOR * least),
        };
        let equations: Vec<Equation> = equations.iter().map(equation).collect();
        let bytes: Vec<f64> = classes.iter().map(|class| class.bytes().unwrap_or(0.0)).collect();
        let Some(takes) = solve(&bytes, &equations) else { return LengthTimes::default() };
        let Some(longer) = in_order(takes) else { return LengthTimes::default() };
        if longer.iter().all(|longer| *longer <= COUNTS * least / 2.0) {
            return LengthTimes::default();
        }
        let possible = |(&(one, two), &trip): (&(LengthClass, LengthClass), &f64)| {
            classes.binary_search(&one).is_err()
                || classes.binary_search(&two).is_err()
                || longer[place(&one)] + longer[place(&two)] <= QUICKEST * trip.max(0.0)
        };
        if !quickest.iter().all(possible) {
            return LengthTimes::default();
        }
        LengthTimes { of: bytes.into_iter().zip(longer).collect() }
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// By how many ticks a message takes longer than a short one; 0 if that is not known.
    fn extra(&self, bound: &Bound) -> i64 {
        let (Some(bytes), Some(first)) = (class(bound).and_then(LengthClass::bytes), self.of.first()) else { return 0 };
        let after = self.of.partition_point(|(known, _)| *known < bytes);
        let longer = match (after.checked_sub(1).and_then(|at| self.of.get(at)), self.of.get(after)) {
            (Some(low), Some(high)) => low.1 + (high.1 - low.1) * (bytes - low.0) / (high.0 - low.0),
            (Some(last), None) => last.1,
            (None, _) => first.1,
        };
        longer.round() as i64
    }

    /// The table as if all messages were as quick as short ones.
    pub(crate) fn levelled(&self, mut table: BoundTable) -> BoundTable {
        table.pairs.values_mut().for_each(|bounds| bounds.shorten(|bound| self.extra(bound)));
        table
    }
}

/// The class of a message; none if its length is not known.
fn class(bound: &Bound) -> Option<LengthClass> {
    let length = bound.kind.length();
    (length != LengthClass::default()).then(|| length.max(LengthClass::of(SHORT)))
}

/// What classes take longer than the first, if none takes clearly less than one before it.
fn in_order(takes: Vec<f64>) -> Option<Vec<f64>> {
    let most = takes.iter().copied().fold(0.0, f64::max);
    let first = takes.first()?.max(0.0);
    let mut before = first;
    let mut longer = Vec::with_capacity(takes.len());
    for takes in takes {
        if takes < before - DISORDER * most {
            return None;
        }
        before = before.max(takes);
        longer.push(before - first);
    }
    Some(longer)
}

/// Whether there are messages of more than one class.
fn differ(table: &BoundTable) -> bool {
    let all = table.pairs.values().flat_map(DirectedBounds::windows);
    let mut classes = all.filter_map(|(_, bound)| class(bound));
    classes.next().is_some_and(|first| classes.any(|class| class != first))
}

/// What is told of two classes.
#[derive(Debug, Clone, Copy)]
struct ClassComparison {
    value: f64,
    sigma: f64,
}

/// By the two classes and the sign of the second one.
type AllTold = BTreeMap<(LengthClass, LengthClass, i8), ClassComparison>;

/// The median of what pairs of clocks tell, and how well that is known.
fn combined(values: &[(f64, f64)]) -> ClassComparison {
    let mut middle: Vec<f64> = values.iter().map(|value| value.0).collect();
    let value = median(&mut middle);
    let spread = median(&mut values.iter().map(|one| (one.0 - value).abs()).collect::<Vec<_>>());
    let own = median(&mut values.iter().map(|one| one.1).collect::<Vec<_>>());
    ClassComparison { value, sigma: spread.hypot(own) / (values.len() as f64).sqrt() }
}

/// What round trips take, by both classes, and the quickest of them.
fn sums(table: &BoundTable) -> (AllTold, BTreeMap<(LengthClass, LengthClass), f64>) {
    let mut quickest = BTreeMap::new();
    let mut all: BTreeMap<(LengthClass, LengthClass), Vec<(f64, f64)>> = BTreeMap::new();
    for (&(a, b), there) in table.pairs.iter().filter(|((a, b), _)| a < b) {
        let Some(back) = table.pairs.get(&(b, a)) else { continue };
        let mut others = back.windows().iter().peekable();
        let mut trips: BTreeMap<(LengthClass, LengthClass), Vec<f64>> = BTreeMap::new();
        for (window, there) in there.windows() {
            while others.next_if(|other| other.0 < *window).is_some() {}
            let Some((_, back)) = others.peek().filter(|other| other.0 == *window) else { continue };
            if let (Some(one), Some(two)) = (class(there), class(back)) {
                let trip = there.distance.saturating_add(back.distance) as f64;
                trips.entry((one.min(two), one.max(two))).or_default().push(trip);
                let least = quickest.entry((one.min(two), one.max(two))).or_insert(trip);
                *least = trip.min(*least);
            }
        }
        for (classes, mut trips) in trips.into_iter().filter(|(_, trips)| trips.len() >= FEWEST) {
            let (quick, varies) = quick(&mut trips);
            if quick > 0.0 && varies <= WAITED * quick {
                all.entry(classes).or_default().push((quick, varies));
            }
        }
    }
    let all = all.into_iter().map(|((one, two), values)| ((one, two, 1), combined(&values)));
    (all.collect(), quickest)
}

/// What messages take one way and the other, where offsets were recorded.
fn differences(table: &BoundTable, windows: usize, now: &Offsets, anchors: &[Anchor], reference: usize) -> AllTold {
    // By how much a clock is off its recorded offsets, by window.
    let mut off: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
    for anchor in anchors {
        let row = now.get(anchor.clock as usize);
        let now = row.and_then(|row| row.get(anchor.window as usize)).copied().unwrap_or(0.0);
        off.entry(anchor.clock).or_default().push((anchor.window, anchor.value - now));
    }
    let near = (windows / NEAR).max(NEAR_WINDOWS) as u32;
    let nearest = |clock: u32, window: u32| {
        if clock as usize == reference {
            return Some(0.0);
        }
        let places = off.get(&clock)?.iter();
        places.filter(|at| at.0.abs_diff(window) <= near).min_by_key(|at| at.0.abs_diff(window)).map(|at| at.1)
    };
    let travels = |(a, b): (u32, u32), end: bool| {
        let mut of: BTreeMap<LengthClass, Vec<f64>> = BTreeMap::new();
        let all = table.pairs.get(&(a, b)).map_or(&[][..], DirectedBounds::windows);
        for (window, bound) in all.iter().filter(|(window, _)| (*window as usize >= windows / 2) == end) {
            if let (Some(class), Some(one), Some(two)) = (class(bound), nearest(a, *window), nearest(b, *window)) {
                of.entry(class).or_default().push(bound.distance as f64 + two - one);
            }
        }
        of.retain(|_, travels| travels.len() >= FEWEST_NEAR);
        of
    };
    let mut all: BTreeMap<(LengthClass, LengthClass), Vec<(f64, f64)>> = BTreeMap::new();
    let pairs = table.pairs.keys().filter(|(a, b)| a < b && table.pairs.contains_key(&(*b, *a)));
    for (&(a, b), end) in pairs.flat_map(|pair| [(pair, false), (pair, true)]) {
        let (there, back) = (travels((a, b), end), travels((b, a), end));
        for (one, there) in there {
            for (&two, back) in back.iter().filter(|(two, _)| **two != one) {
                let ((there, early), (back, late)) = (quick(&mut there.clone()), quick(&mut back.clone()));
                let (classes, difference) =
                    if one < two { ((one, two), there - back) } else { ((two, one), back - there) };
                all.entry(classes).or_default().push((difference, early.hypot(late)));
            }
        }
    }
    // One pair alone shows no error: what is told by two ends of it at least.
    let several = all.into_iter().filter(|(_, values)| values.len() > 1);
    several.map(|((one, two), values)| ((one, two, -1), combined(&values))).collect()
}

/// What a twentieth of the values stays below, and how far above that a quarter does.
fn quick(values: &mut [f64]) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: usize| values.get(values.len() / share).copied().unwrap_or(0.0);
    (at(20), at(4) - at(20))
}

/// The middle value.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// What each class takes, by least squares. Where the equations do not tell, as if it grew evenly with the length, of which `bytes` has the middle; and where that does not
/// tell either, about the same for all. None if longer messages seem to be quicker.
fn solve(bytes: &[f64], equations: &[Equation]) -> Option<Vec<f64>> {
    // Chosen by hand: weak enough for equations to decide where there are any, and not lost in the 53 bits of a number where there are none.
    const ALIKE: f64 = 100.0;
    let classes = bytes.len();
    let longest = bytes.iter().copied().fold(1.0, f64::max);
    let sums = equations.iter().filter(|equation| equation.sign > 0.0).map(|equation| equation.value / 2.0);
    let typical = median(&mut sums.collect::<Vec<_>>()).max(f64::MIN_POSITIVE);
    // Besides what classes take: what it begins with, and by how much it grows up to the longest.
    let (begin, slope) = (classes, classes + 1);
    let mut system = vec![vec![0.0; classes + 3]; classes + 2];
    let mut add = |terms: &[(usize, f64)], value: f64, sigma: f64| {
        for &(row, one) in terms {
            for &(column, two) in terms {
                system[row][column] += one * two / (sigma * sigma);
            }
            system[row][classes + 2] += one * value / (sigma * sigma);
        }
    };
    for equation in equations {
        add(&[(equation.classes.0, 1.0), (equation.classes.1, equation.sign)], equation.value, equation.sigma);
    }
    for (class, bytes) in bytes.iter().enumerate() {
        add(&[(class, 1.0), (begin, -1.0), (slope, -bytes / longest)], 0.0, typical);
    }
    add(&[(slope, 1.0)], 0.0, ALIKE * typical);
    add(&[(begin, 1.0)], typical, ALIKE * ALIKE * typical);
    let solved = eliminated(system)?;
    (solved.get(slope).is_some_and(|slope| *slope > 0.0)).then(|| solved[..classes].to_vec())
}

/// The solution of a linear system whose last column is the right side; none if it has none.
fn eliminated(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = rows.len();
    for step in 0..count {
        let pivot = (step..count).max_by(|a, b| rows[*a][step].abs().total_cmp(&rows[*b][step].abs()))?;
        rows.swap(step, pivot);
        let own = rows[step].clone();
        if !own[step].is_normal() {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != step) {
            let factor = row[step] / own[step];
            row.iter_mut().zip(&own).for_each(|(value, own)| *value -= factor * own);
        }
    }
    Some(rows.iter().enumerate().map(|(at, row)| row[count] / row[at]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::BoundKind;

    const WINDOWS: usize = 200;
    /// Clocks, of which each is this much ahead of the one before.
    const CLOCKS: u32 = 5;
    const AHEAD: i64 = 70_000;

    /// What a message of so many bytes takes: 2,000 ticks, and one for ten bytes.
    fn takes(bytes: u32) -> i64 {
        2_000 + i64::from(bytes) / 10
    }

    /// In each window neighbours exchange messages of the lengths that `lengths` says (to the next, and back), which wait for up to so many ticks besides.
    fn table(lengths: impl Fn(usize) -> [u32; 2], waits: usize) -> BoundTable {
        let mut table = BoundTable::default();
        for window in 0..WINDOWS {
            let [there, back] = lengths(window);
            for clock in 0..CLOCKS - 1 {
                for (pair, bytes, ahead) in [((clock, clock + 1), there, AHEAD), ((clock + 1, clock), back, -AHEAD)] {
                    let late = (window * 7919 + pair.0 as usize * 104_729) % (waits + 1);
                    let kind = BoundKind::message(LengthClass::of(bytes));
                    let bound = Bound { distance: takes(bytes) + late as i64 + ahead, at: 0, kind };
                    table.pairs.entry(pair).or_default().add(window, bound, 1);
                }
            }
        }
        table
    }

    /// Offsets recorded at both ends of the run, each off by up to 100 ticks.
    fn anchors() -> Vec<Anchor> {
        let at = |clock: u32, window: u32| {
            let off = f64::from((clock * 37 + window) % 201) - 100.0;
            Anchor { clock, window, value: -(AHEAD * i64::from(clock)) as f64 + off, sigma: 1.0, bound: 0.0 }
        };
        (1..CLOCKS).flat_map(|clock| [at(clock, 0), at(clock, WINDOWS as u32 - 1)]).collect()
    }

    fn found(table: &BoundTable, anchors: &[Anchor]) -> LengthTimes {
        LengthTimes::of(table, WINDOWS, &vec![vec![0.0; WINDOWS]; CLOCKS as usize], anchors, 0)
    }

    /// By how much the middles of round trips are off at most, once messages are made comparable.
    fn off(table: &BoundTable, times: &LengthTimes) -> i64 {
        let levelled = times.levelled(table.clone());
        let (there, back) = (&levelled.pairs[&(0, 1)], &levelled.pairs[&(1, 0)]);
        let both = there.windows().iter().filter_map(|(window, there)| Some((there, back.get(*window)?)));
        both.map(|(there, back)| ((there.distance - back.distance) / 2 - AHEAD).abs()).max().unwrap_or(0)
    }

    #[test]
    fn long_answers_are_told_by_recorded_offsets() {
        let table = table(|_| [64, 100_000], 200);
        let plain = off(&table, &LengthTimes::default());
        assert!(plain > 4_800, "{plain}");
        let times = found(&table, &anchors());
        assert!(off(&table, &times) < 250, "{} {times:?}", off(&table, &times));
        // One length each way and nothing measured: nobody can tell.
        assert_eq!(found(&table, &[]), LengthTimes::default());
    }

    #[test]
    fn without_recorded_offsets_round_trips_tell() {
        // Some answers are short.
        let mixed = table(|window| [64, if window % 4 == 0 { 64 } else { 100_000 }], 200);
        assert!(off(&mixed, &found(&mixed, &[])) < 250);
        // Answers have several lengths, all long: time grows with it.
        let several = table(|window| [64, [20_000, 80_000, 140_000][window % 3]], 200);
        let times = found(&several, &[]);
        assert!(off(&several, &times) < 600, "{} {times:?}", off(&several, &times));
    }

    #[test]
    fn what_waits_or_hardly_differs_stays_as_it_is() {
        let nothing = LengthTimes::default();
        // One length; short ones; all wait; longer ones are quicker.
        assert_eq!(found(&table(|_| [100_000; 2], 200), &anchors()), nothing);
        assert_eq!(found(&table(|_| [64, 1_000], 200), &anchors()), nothing);
        assert_eq!(found(&table(|_| [64, 100_000], 40_000), &[]), nothing);
        assert_eq!(found(&table(|window| [64, 100_000 - 400 * (window as u32 / 50)], 0), &[]), nothing);
        let mut odd = table(|window| if window % 2 == 0 { [64; 2] } else { [100_000; 2] }, 200);
        let shorter = |bound: &Bound| if bound.kind.length() > LengthClass::of(64) { 11_000 } else { 0 };
        odd.pairs.values_mut().for_each(|bounds| bounds.shorten(shorter));
        assert_eq!(found(&odd, &anchors()), nothing);
        // Most long ones wait for as long as each other, but for one in forty.
        let mut slow = table(|window| [64, if window % 4 == 0 { 64 } else { 100_000 }], 200);
        assert_ne!(found(&slow, &[]), nothing);
        for bounds in slow.pairs.values_mut() {
            let windows = bounds.windows().to_vec();
            *bounds = DirectedBounds::default();
            for (window, bound) in windows {
                let waits = bound.kind.length() > LengthClass::of(64) && window % 40 != 1;
                let distance = bound.distance + if waits { 190_000 } else { 0 };
                bounds.add(window as usize, Bound { distance, ..bound }, 1);
            }
        }
        assert_eq!(found(&slow, &[]), nothing);
        assert_eq!(found(&BoundTable::default(), &anchors()), nothing);
    }
}
