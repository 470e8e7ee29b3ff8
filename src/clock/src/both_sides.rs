//! Messages that hold clocks from both sides although they go one way.
//!
//! Durations within one clock need no synchronisation. A receiver that entered its call well before the message came waited for it:
//! the end of its receive is as long after the begin of the send as the network takes, not longer. A sender that was blocked
//! until its receiver was there leaves its call as long after the receive was posted as the network takes. The same holds for
//! the ends of collective operations with a root whose members waited.
//!
//! Each such *class* (direction, kind, length of messages) takes its own time, which is not known where no traffic goes back. It follows from recorded
//! offsets: where they were measured, the class has to agree with them. Between them it shows how the clocks go.

use super::anchor::Anchor;
use super::bounds::{Bound, DirectedBounds};
use super::estimator::CollectiveTies;
use super::grid::Grid;
use super::kind::BoundKind;
use super::late::late_directions;
use super::observations::Offsets;
use super::waits::OneWayDirections;
use super::windows::BoundTable;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A direction counts if it has this part of the traffic of the less busy one of its two clocks. Chosen by hand: with a smaller value, thin traffic
/// that is all that ties two clocks does not count; with a larger one, a few stray messages count as an answer.
const COUNTS: u64 = 16;
/// Points through which a line is put to where clocks are known, and the part of the run that may lie between. Chosen by hand: more points average
/// out more noise, but the line follows a clock that bends less closely; over longer gaps it would be a guess.
const NEAREST: usize = 8;
const FAR: usize = 8;
/// Windows that a class needs, and that two classes have to share to be compared. Chosen by hand: the median of fewer is noise; with larger values,
/// classes with little traffic are left out.
const FEWEST: usize = 8;
const SHARED: usize = 4;
/// Pairs of clocks that need to have a kind for it to be taken to take the same between all of them, and how many times as far it may differ as recorded offsets
/// are off. Chosen by hand: from fewer pairs or with a wider spread, what differs between pairs would pass for the same; stricter values leave more
/// pairs to the errors of their own offsets.
const ALIKE: usize = 3;
const EXPLAINED: f64 = 2.0;
/// An observation that is this many times the noise away from those around it was delayed, and says what cannot be only. Chosen by hand: a smaller
/// value drops sound observations, a larger one takes delayed ones for evidence from both sides.
const LATE: f64 = 4.0;
/// A class whose noise is more than this many times that of the best one says nothing more. Chosen by hand: a larger value lets noise into the mean
/// of all classes, a smaller one gives up observations.
const NOISIER: f64 = 5.0;

/// Where no clock was measured, a short message for which its receiver waited is taken to take this long, in seconds. Chosen by hand: networks of clusters take 1 to 3 us; on others clocks are off by the difference, and not by
/// what they were set to.
const USUAL: f64 = 2e-6;
/// It is short if its length has no more bits than that. Chosen by hand: how long 8 KiB and more take depends on how quick the network is.
const SHORT: u32 = 13;
/// How long a byte of longer ones is taken to take more than that, in seconds, and by how much that may be wrong: networks of clusters carry 1 to 25 GB/s.
const BYTE: f64 = 0.2e-9;
const BYTE_ERROR: f64 = 0.6e-9;
/// No network takes so long for a short message that somebody waits for, in seconds: clocks that say so of all of them are wrong. Chosen by hand: TCP takes up to 100 us; with more, clocks that are off by less than that stay.
const NEVER: f64 = 200e-6;

/// What is to be looked for in a trace with these bounds between `clocks` clocks; `resolution` in ticks per second.
pub fn wanted(table: &BoundTable, clocks: usize, resolution: u64) -> OneWayDirections {
    // There may be many pairs, each in a place of its own.
    let all: Vec<((u32, u32), u64)> = table.pairs.iter().map(|(pair, bounds)| (*pair, bounds.messages)).collect();
    let mut busiest = vec![0; clocks];
    for &((a, b), messages) in &all {
        for clock in [a, b] {
            if let Some(most) = busiest.get_mut(clock as usize) {
                *most = messages.max(*most);
            }
        }
    }
    let of = |clock: u32| busiest.get(clock as usize).copied().unwrap_or(0);
    let counts = |((a, b), messages): &&((u32, u32), u64)| messages * COUNTS >= of(*a).min(of(*b));
    let counting = || all.iter().filter(counts).map(|(pair, _)| *pair);
    let component = super::graph::components(clocks, counting());
    let group = |clock: u32| component.get(clock as usize);
    let one_way: BTreeSet<(u32, u32)> = counting().filter(|&(a, b)| group(a) != group(b)).collect();
    let is_message = |(_, bound): &(u32, Bound)| bound.kind.is_message();
    let has_messages =
        |pair: &(u32, u32)| table.pairs.get(pair).is_some_and(|all| all.windows().iter().any(is_message));
    let mut late = late_directions(table, resolution);
    late.retain(|pair| !one_way.contains(pair));
    let messages = !late.is_empty() || one_way.iter().any(has_messages);
    let collectives = CollectiveTies::of(table, clocks).prevail;
    if one_way.is_empty() && !collectives {
        return OneWayDirections { late, messages, ..OneWayDirections::default() };
    }
    let mut standing = vec![(0, 0); clocks];
    for &((from, _), messages) in &all {
        if let Some(standing) = standing.get_mut(from as usize) {
            standing.1 += messages;
        }
    }
    let mut sizes = vec![0; clocks];
    component.iter().for_each(|&name| sizes[name] += 1);
    standing.iter_mut().zip(&component).for_each(|(standing, &name)| standing.0 = sizes[name]);
    let group = component.into_iter().map(|name| name as u32).collect();
    OneWayDirections { one_way, late, messages, collectives, group, standing }
}

/// A class as a series: by window, what the correction of b minus that of a is if the class takes no time, in ticks.
struct Series {
    kind: BoundKind,
    /// 1 if it goes from a to b, else -1: what its time counts for.
    sign: f64,
    points: Vec<(u32, f64)>,
    noise: f64,
    /// What is added to it, once it is known relative to the other classes of the pair.
    level: Option<f64>,
}

/// A pair of clocks a < b with traffic in one direction.
struct OneWayPair {
    clocks: (u32, u32),
    classes: Vec<Series>,
    /// How far the level is from what recorded offsets say at most; none without them.
    error: Option<f64>,
}

impl Series {
    fn new(kind: BoundKind, sign: f64, bounds: &DirectedBounds, difference: impl Fn(u32) -> f64) -> Series {
        let point = |&(window, bound): &(u32, Bound)| (window, difference(window) - sign * bound.distance as f64);
        let points: Vec<(u32, f64)> = bounds.windows().iter().map(point).collect();
        let mut bends: Vec<f64> =
            points.windows(3).map(|three| (three[1].1 - (three[0].1 + three[2].1) / 2.0).abs()).collect();
        Series { kind, sign, noise: median(&mut bends).unwrap_or(f64::INFINITY).max(1.0), points, level: None }
    }
}

/// The value of points at a window: a line through those nearest to it; and how many windows the next one is away, if that is no more than `most`.
fn value_at(points: &[(u32, f64)], window: u32, most: u32) -> Option<(f64, u32)> {
    let middle = points.partition_point(|point| point.0 < window);
    let (mut from, mut to) = (middle, middle);
    while to - from < NEAREST.min(points.len()) {
        let before = from.checked_sub(1).and_then(|k| points.get(k)).map(|point| window - point.0);
        let after = points.get(to).map(|point| point.0 - window);
        match (before, after) {
            (Some(before), Some(after)) if before <= after => from -= 1,
            (Some(_), None) => from -= 1,
            _ => to += 1,
        }
    }
    let near = points.get(from..to)?;
    let distance = near.iter().map(|point| point.0.abs_diff(window)).min().filter(|distance| *distance <= most)?;
    let of = |point: &(u32, f64)| f64::from(point.0) - f64::from(window);
    let mut slopes = Vec::new();
    for (k, one) in near.iter().enumerate() {
        slopes.extend(near[k + 1..].iter().map(|two| (two.1 - one.1) / (of(two) - of(one))));
    }
    let slope = median(&mut slopes).unwrap_or(0.0);
    let mut values: Vec<f64> = near.iter().map(|point| point.1 - slope * of(point)).collect();
    Some((median(&mut values)?, distance))
}

/// The middle value; of an even number of them the mean of both.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().saturating_sub(1) / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

impl OneWayPair {
    /// Finds the levels of the classes relative to each other, in the windows that they share; those that are much noisier than the best have none.
    fn align(&mut self) {
        let least = self.classes.iter().map(|class| class.noise).fold(f64::INFINITY, f64::min);
        let useful = |class: &Series| class.noise <= NOISIER * least;
        let Some(first) = self.classes.iter_mut().filter(|class| useful(class)).max_by_key(|class| class.points.len())
        else {
            return;
        };
        first.level = Some(0.0);
        for _ in 0..self.classes.len() {
            let points: BTreeMap<u32, f64> = self.together().into_iter().collect();
            for class in self.classes.iter_mut().filter(|class| class.level.is_none() && useful(class)) {
                let shared = class.points.iter().filter_map(|(window, value)| Some(points.get(window)? - value));
                let mut shared: Vec<f64> = shared.collect();
                class.level = if shared.len() >= SHARED { median(&mut shared) } else { None };
            }
        }
    }

    /// What is to be added to the levels so that messages take as long as is `usual`: short ones, or the shortest. None without such messages.
    fn to_usual(&self, usual: Usual) -> Option<f64> {
        let lengths = || self.takes().filter_map(|(kind, sign, takes)| Some((kind.length_of_waited()?, sign, takes)));
        let shortest = lengths().map(|own| own.0).min()?.max(SHORT);
        let off = |(bits, sign, takes)| Some(sign * (usual.takes(bits)? - takes));
        let off: Vec<f64> = lengths().filter(|own| own.0 <= shortest).filter_map(off).collect();
        (!off.is_empty()).then(|| off.iter().sum::<f64>() / off.len() as f64)
    }

    /// Shifts all levels so that they agree with a known difference of the clocks, by window; without any in the trace, so that messages take what is `usual`, or else with what the clocks are `now`.
    fn fit(&mut self, known: &[(u32, f64)], usual: Option<Usual>, windows: usize, now: impl Fn(u32) -> f64) {
        let points = self.together();
        let mut found: Vec<(f64, f64)> = Vec::new();
        for &(window, value) in known {
            if let Some((own, distance)) = value_at(&points, window, (windows / FAR) as u32) {
                let far = f64::from(distance) / NEAREST as f64;
                found.push((value - own, 1.0 / (1.0 + far * far)));
            }
        }
        let weights: f64 = found.iter().map(|found| found.1).sum();
        let shift = if let Some(shift) = usual.and_then(|usual| self.to_usual(usual)) {
            Some(shift)
        } else if found.is_empty() {
            let mut off: Vec<f64> = points.iter().map(|&(window, value)| now(window) - value).collect();
            median(&mut off)
        } else {
            Some(found.iter().map(|(off, weight)| off * weight).sum::<f64>() / weights)
        };
        let shift = shift.unwrap_or(0.0);
        let error = found.iter().map(|(off, _)| (off - shift).abs()).reduce(f64::max);
        // One place alone shows no error.
        self.error = if found.len() == 1 { Some(f64::INFINITY) } else { error };
        self.shift(shift);
    }

    fn shift(&mut self, by: f64) {
        self.classes.iter_mut().filter_map(|class| class.level.as_mut()).for_each(|level| *level += by);
    }

    /// The mean of the classes whose level is known, by window.
    fn together(&self) -> Vec<(u32, f64)> {
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for class in &self.classes {
            let Some(level) = class.level else { continue };
            let weight = 1.0 / (class.noise * class.noise);
            for &(window, value) in &class.points {
                let sum = sums.entry(window).or_default();
                sum.0 += weight * (value + level);
                sum.1 += weight;
            }
        }
        sums.into_iter().map(|(window, (sum, weight))| (window, sum / weight)).collect()
    }

    /// Whether it tells clocks as long as messages are sent, but for gaps of a part of the run. In a longer one clocks would be guessed, about which recorded offsets tell more.
    fn covers(&self, table: &BoundTable, windows: usize) -> bool {
        let ((a, b), points) = (self.clocks, self.together());
        let messages = || [(a, b), (b, a)].into_iter().filter_map(|pair| Some(table.pairs.get(&pair)?.windows()));
        let first = messages().filter_map(|all| Some(all.first()?.0)).min();
        let last = messages().filter_map(|all| Some(all.last()?.0)).max();
        let all: Vec<u32> = first.into_iter().chain(points.iter().map(|point| point.0)).chain(last).collect();
        all.windows(2).all(|two| two[1].saturating_sub(two[0]) as usize <= (windows / FAR).max(FEWEST))
    }

    /// Adds observations from both sides to `table`, in which messages of the pair take `least`. Some of them were delayed, and say what cannot be only.
    fn add_to(&self, table: &mut BoundTable, grid: &Grid, now: &Offsets, least: f64) {
        let ((a, b), points, noise) = (self.clocks, self.together(), self.noise());
        for &(window, value) in &points {
            if value_at(&points, window, 0).is_none_or(|(around, _)| (value - around).abs() > LATE * noise) {
                continue;
            }
            let rest = value - difference(now, (a, b), window);
            for (pair, distance) in [((a, b), least - rest), ((b, a), least + rest)] {
                let at = grid.centre(window as usize);
                let bound = Bound { distance: distance.round() as i64, at, kind: BoundKind::BOTH_SIDES };
                table.pairs.entry(pair).or_default().add(window as usize, bound, 1);
            }
        }
    }

    /// The noise of the best class.
    fn noise(&self) -> f64 {
        self.classes.iter().filter(|class| class.level.is_some()).map(|class| class.noise).fold(f64::INFINITY, f64::min)
    }

    /// What each kind takes, with the direction for which that counts.
    fn takes(&self) -> impl Iterator<Item = (BoundKind, f64, f64)> + '_ {
        self.classes.iter().filter_map(|class| Some((class.kind, class.sign, class.level? * class.sign)))
    }
}

/// How long messages for which their receivers waited are taken to take, where no clock was measured.
#[derive(Debug, Clone, Copy)]
struct Usual {
    /// Ticks per second.
    resolution: f64,
    /// To what clocks are known without that, in ticks: half a round trip; without round trips, what no network takes ([`NEVER`]).
    known: f64,
}

impl Usual {
    /// So many ticks if their length has so many bits; none if clocks are known better than that.
    fn takes(self, bits: u32) -> Option<f64> {
        let usual = USUAL * self.resolution;
        if bits <= SHORT {
            return Some(usual);
        }
        // In the middle between the shortest and the longest one.
        let bytes = 0.75 * f64::from(bits).exp2();
        (BYTE_ERROR * bytes * self.resolution <= self.known).then_some(usual + BYTE * bytes * self.resolution)
    }
}

/// Makes what a kind takes the same between all clocks, if what it takes by recorded offsets differs by no more than these are off. Kinds that many pairs have
/// come first; others follow them.
fn pool(pairs: &mut [OneWayPair]) {
    let mut all: BTreeMap<BoundKind, usize> = BTreeMap::new();
    let measured = |pair: &&OneWayPair| pair.error.is_some();
    pairs.iter().filter(measured).flat_map(OneWayPair::takes).for_each(|takes| *all.entry(takes.0).or_default() += 1);
    let mut kinds: Vec<(BoundKind, usize)> = all.into_iter().collect();
    kinds.sort_by_key(|&(kind, count)| (Reverse(count), kind));
    let mut settled = vec![false; pairs.len()];
    for (kind, _) in kinds {
        // What it takes, and how far recorded offsets are off there.
        let of = |settled: &[bool], which: bool| -> Vec<(f64, f64)> {
            let pairs = pairs.iter().zip(settled).filter(|(_, settled)| **settled == which).map(|(pair, _)| pair);
            pairs.filter_map(|pair| Some((pair.takes().find(|takes| takes.0 == kind)?.2, pair.error?))).collect()
        };
        let (known, rest) = (of(&settled, true), of(&settled, false));
        let middle = |values: &[(f64, f64)]| median(&mut values.iter().map(|one| one.0).collect::<Vec<_>>());
        let takes = if known.is_empty() {
            let Some(middle) = middle(&rest).filter(|_| rest.len() >= ALIKE) else { continue };
            let off = median(&mut rest.iter().map(|one| (one.0 - middle).abs()).collect::<Vec<_>>());
            let error = median(&mut rest.iter().map(|one| one.1).collect::<Vec<_>>());
            if off.zip(error).is_none_or(|(off, error)| off > EXPLAINED * error) {
                continue;
            }
            middle
        } else {
            let Some(middle) = middle(&known) else { continue };
            middle
        };
        for (pair, settled) in
            pairs.iter_mut().zip(&mut settled).filter(|(pair, settled)| pair.error.is_some() && !**settled)
        {
            let own = pair.takes().find(|own| own.0 == kind).map(|(_, sign, own)| sign * (takes - own));
            if let Some(by) = own {
                pair.shift(by);
                *settled = true;
            }
        }
    }
}

/// The table with observations from both sides for pairs of clocks whose traffic goes one way, measured with clocks corrected by `now`. `anchors` are the recorded
/// offsets, of which the clock `reference` needs none.
pub(crate) fn from_both_sides(
    table: &BoundTable,
    grid: &Grid,
    now: &Offsets,
    anchors: &[Anchor],
    reference: usize,
    resolution: u64,
) -> Option<BoundTable> {
    let resolution = resolution as f64;
    let usual = Usual { resolution, known: usual_half_trip(table).unwrap_or(NEVER * resolution) };
    let usual = anchors.is_empty().then_some(usual);
    let mut pairs: BTreeMap<(u32, u32), Vec<Series>> = BTreeMap::new();
    let measured: BTreeSet<u32> = anchors.iter().map(|anchor| anchor.clock).chain([reference as u32]).collect();
    let often = table.pairs.iter().filter(|(_, bounds)| bounds.windows().len() >= FEWEST);
    let component = super::graph::components(now.len(), often.map(|(pair, _)| *pair));
    for (class, bounds) in &table.waits.classes {
        let of_tied = [BoundKind::ENDS_OF_TIED, BoundKind::WAITED_OF_TIED].contains(&class.kind);
        if bounds.windows().len() < FEWEST || of_tied {
            continue;
        }
        // Where no offset says by how much ends are apart, the little traffic in the other direction says it.
        let unmeasured = !measured.contains(&class.from) || !measured.contains(&class.to);
        let tied = component.get(class.from as usize) == component.get(class.to as usize);
        if class.kind.is_between_ends() && unmeasured && tied {
            continue;
        }
        let (a, b) = (class.from.min(class.to), class.from.max(class.to));
        let sign = if class.from == a { 1.0 } else { -1.0 };
        let series = Series::new(class.kind, sign, bounds, |window| difference(now, (a, b), window));
        pairs.entry((a, b)).or_default().push(series);
    }
    let pairs = pairs.into_iter().map(|(clocks, classes)| {
        let mut pair = OneWayPair { clocks, classes, error: None };
        pair.align();
        pair.fit(&known(anchors, reference, clocks), usual, grid.count, |window| difference(now, clocks, window));
        pair
    });
    let mut pairs: Vec<OneWayPair> = pairs.collect();
    pool(&mut pairs);
    // Both directions of all pairs are given the same time: no message is quicker than that.
    let takes = pairs.iter().flat_map(OneWayPair::takes).filter(|takes| !takes.0.is_between_ends());
    let takes = takes.map(|takes| takes.2).reduce(f64::min);
    if pairs.iter().all(|pair| pair.classes.iter().all(|class| class.level.is_none())) {
        return None;
    }
    let least = takes.filter(|takes| *takes > 1.0).or_else(|| usual_half_trip(table)).unwrap_or(1.0).max(1.0);
    let mut table = table.clone();
    for pair in &pairs {
        if pair.error.is_none() || pair.covers(&table, grid.count) {
            pair.add_to(&mut table, grid, now, least);
        }
    }
    Some(table)
}

/// Whether clocks that are not corrected say of all short messages between some two of them, for which the receivers waited, that they take longer than any network does. `now` are the corrections with which the
/// table was made.
pub(crate) fn are_never_so_slow(table: &BoundTable, now: &Offsets, resolution: u64) -> bool {
    table.waits.classes.iter().any(|(class, bounds)| {
        let short = class.kind.length_of_waited().is_some_and(|bits| bits <= SHORT);
        let takes =
            |&(window, bound): &(u32, Bound)| bound.distance as f64 - difference(now, (class.from, class.to), window);
        short
            // Clocks that are days apart have all messages in a few windows.
            && bounds.messages >= FEWEST as u64
            && bounds.windows().iter().map(takes).fold(f64::INFINITY, f64::min) > NEVER * resolution as f64
    })
}

/// What the ends of collective operations say if they all come at the same time, as if each were a message that took `takes` ticks; None if there are none.
pub(crate) fn of_ends(table: &BoundTable, takes: i64) -> Option<BoundTable> {
    let mut ends = BoundTable::default();
    for (class, bounds) in table.waits.classes.iter().filter(|(class, _)| class.kind.is_between_ends()) {
        ends.pairs.entry((class.from, class.to)).or_default().merge(bounds.clone());
    }
    ends.pairs.values_mut().for_each(|bounds| bounds.shorten(|_| -takes));
    (!ends.pairs.is_empty()).then_some(ends)
}

/// Half the shortest round trip, in one window, of a pair that is quicker than three in four, in ticks. None without round trips.
fn usual_half_trip(table: &BoundTable) -> Option<f64> {
    let shortest = |(&(a, b), there): (&(u32, u32), &DirectedBounds)| {
        let back = table.pairs.get(&(b, a)).filter(|_| a < b)?;
        let trips = there.beside(back).map(|(there, back)| there.distance.saturating_add(back.distance));
        trips.min().map(|trip| trip as f64 / 2.0)
    };
    let mut all: Vec<f64> = table.pairs.iter().filter_map(shortest).collect();
    let at = all.len() / 4;
    (at < all.len()).then(|| *all.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// Correction of b minus that of a.
fn difference(now: &Offsets, (a, b): (u32, u32), window: u32) -> f64 {
    let at = |clock: u32| now.get(clock as usize).and_then(|row| row.get(window as usize)).copied().unwrap_or(0.0);
    at(b) - at(a)
}

/// The differences of two clocks that recorded offsets tell, by window.
fn known(anchors: &[Anchor], reference: usize, (a, b): (u32, u32)) -> Vec<(u32, f64)> {
    let value = |clock: u32, window: u32| match clock as usize == reference {
        true => Some(0.0),
        false => {
            let own = anchors.iter().filter(|anchor| anchor.clock == clock);
            own.min_by_key(|anchor| anchor.window.abs_diff(window)).map(|anchor| anchor.value)
        }
    };
    let own = anchors.iter().filter(|anchor| anchor.clock == a || anchor.clock == b);
    let windows: BTreeSet<u32> = own.map(|anchor| anchor.window).collect();
    let known = |window| Some((window, value(b, window)? - value(a, window)?));
    windows.into_iter().filter_map(known).collect()
}

#[cfg(test)]
#[path = "both_sides_tests.rs"]
mod tests;
