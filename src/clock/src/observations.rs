//! From bounds to observations: what the difference of two clocks must have been in a window, and how sure that is.
//!
//! With f the smallest distance from a to b and g the one from b to a, the correction of b minus that of a lies in
//! \[-f, g\]; if both directions have the same minimum latency and each had a message that met no delay, it is (g - f) / 2,
//! and (f + g) / 2 is that latency. That is what coarse windows go by. In fine windows often one direction only had such a
//! message (in the other one the receiver came late), so each direction is judged by itself: once the clocks are
//! roughly known, its quickest message took the pair's latency and a bit, which is an observation, or clearly longer,
//! which says nothing.

use super::anchor::RecordedLevels;
use super::directions::Directions;
use super::graph::components;
use super::grid::Grid;
use super::late::AwaitedMessages;
use super::windows::BoundTable;
use crate::bounds::{Bound, DirectedBounds};
use clc_trace::workers::Workers;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// Corrections of every clock at the centre of every window, in ticks: `[clock][window]`.
pub type Offsets = Vec<Vec<f64>>;

/// Both directions of a pair in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoWay {
    /// One clock.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// Window.
    pub window: u32,
    /// Most likely correction of b minus that of a, in ticks.
    pub middle: f64,
    /// Half the round trip, in ticks.
    pub half_trip: f64,
    /// [`OneWay::awaited`] of both messages.
    pub awaited: bool,
    /// Standard deviation assumed for `middle`.
    pub sigma: f64,
}

/// The quickest message of one direction of a pair in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneWay {
    /// The clock of the sender.
    pub a: u32,
    /// The clock of the receiver.
    pub b: u32,
    /// Window.
    pub window: u32,
    /// The correction of b minus that of a is at least this.
    pub least: f64,
    /// Whether it may have been received as soon as it arrived, as far as is known. If not, it lay there for who knows how long, and only says what cannot be.
    pub awaited: bool,
}

impl OneWay {
    /// One that was waited for.
    pub fn new(a: u32, b: u32, window: u32, least: f64) -> OneWay {
        OneWay { a, b, window, least, awaited: true }
    }

    /// Those of `all` that were waited for; all of them if none was.
    pub fn awaited(all: &[OneWay]) -> impl Iterator<Item = &OneWay> + Clone {
        let any = all.iter().any(|seen| seen.awaited);
        all.iter().filter(move |seen| seen.awaited || !any)
    }

    /// The time that the message took if these are the corrections, in ticks.
    pub fn travel(&self, offsets: &[f64], windows: usize) -> f64 {
        let at = |clock: u32| offsets.get(clock as usize * windows + self.window as usize).copied().unwrap_or(0.0);
        at(self.b) - at(self.a) - self.least
    }
}

/// What the messages of all windows say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observations {
    /// Pairs seen in both directions in the same window.
    pub two_way: Vec<TwoWay>,
    /// Every direction seen, by pair and then by window.
    pub one_way: Vec<OneWay>,
    /// For each clock the set of clocks that hold it from both sides, named by its smallest member.
    pub component: Vec<usize>,
    /// Directions of pairs that no way leads back from: nothing shows that their quickest messages met no delay, so they
    /// only say what cannot be.
    pub one_sided: BTreeSet<(u32, u32)>,
    /// Directions of which more is known by collective operations, or by what was waited for, than by messages.
    pub indirect: BTreeSet<(u32, u32)>,
    /// By how much the half round trips of each pair (a < b) with such a direction vary in the quicker ones of its windows, in ticks, if there are several.
    pub variations: BTreeMap<(u32, u32), f64>,
    /// Half the round trip that each pair (a < b) reaches in its better windows, in ticks.
    pub half_trips: BTreeMap<(u32, u32), f64>,
    /// The shortest half round trip of each pair (a < b), in ticks.
    pub shortest_trips: BTreeMap<(u32, u32), f64>,
    /// The shortest half round trip of any pair, in ticks; 0 without any. Neither is quite the shortest: in a window in which a
    /// clock jumps, round trips are nonsense.
    pub shortest: f64,
    /// The resolution of all this: no observation is better.
    pub floor: f64,
    /// The same by the quickest messages of the better pairs: what clocks can be known to where most messages are late.
    pub precision: f64,
    /// Round trips that were discarded because they took too long.
    pub discarded: u64,
    /// Recorded offsets, in the windows and by the clocks of these observations.
    pub levels: RecordedLevels,
    /// [`Observations::directions`].
    pub(crate) directions: OnceLock<Arc<Directions>>,
}

/// Part of the windows of a direction, at least, in which a message was the quickest, if messages are what tells it. Chosen by hand: a smaller part
/// trusts messages where collective operations told most, a larger one distrusts them for single windows.
const DIRECTLY: (usize, usize) = (9, 10);
/// Share of its windows in which a pair is taken to have been as quick as it gets. Chosen by hand: nearer to the minimum, single windows decide;
/// nearer to the median, delays do.
const QUICK_SHARE: usize = 10;
/// Share of a pair's windows whose round trips are not believed to be the shortest ones. Chosen by hand: with a smaller share, single windows that
/// are wrong decide; with a larger one, the minimum is too long.
const SHORTEST_SHARE: usize = 100;
/// Windows from which on it is told how round trips vary.
const SEVERAL: usize = 20;
/// Half round trips in better windows, in units of the shortest ones, from which on messages are late. Chosen by hand: a smaller value takes ordinary
/// delays for persistent ones, a larger one takes medians of messages that waited.
const LATE: f64 = 3.0;
/// Round trips are prompt that take no longer than this many of the shortest ones of their pair, and than so many times what observations are known to beside. Chosen by hand: with a larger value, those of a phase in which
/// messages are late count; with a smaller one, jitter leaves few.
const PROMPT: f64 = 1.2;
const PROMPT_NOISE: f64 = 3.0;
/// How much less is known from messages that lay there, in standard deviations. Chosen by hand: with a smaller value, many messages that lay outweigh
/// few that were waited for; with a larger one, clocks that nothing else ties are loose.
const LAIN: f64 = 30.0;
/// No observation is better than this part of the typical half round trip: minima of two directions are not that equal.
pub(super) const FLOOR: f64 = 0.02;

impl Observations {
    /// In which of so many windows there are messages of each of so many clocks.
    pub fn observed(&self, clocks: usize, windows: usize) -> Vec<Vec<bool>> {
        let mut observed = vec![vec![false; windows]; clocks];
        for seen in &self.one_way {
            for clock in [seen.a, seen.b] {
                let row = observed.get_mut(clock as usize);
                if let Some(window) = row.and_then(|row| row.get_mut(seen.window as usize)) {
                    *window = true;
                }
            }
        }
        observed
    }

    /// Half the shortest round trip of a pair that is quicker than three in four, in ticks: what clocks are known to; none without round trips.
    pub(crate) fn quick_half_trip(&self) -> Option<f64> {
        let mut trips: Vec<f64> = self.shortest_trips.values().copied().collect();
        trips.sort_by(f64::total_cmp);
        trips.get(trips.len() / 4).copied()
    }

    /// Half the round trip that a pair in the middle reaches in its better windows, in ticks; none without round trips.
    fn usual_half_trip(&self) -> Option<f64> {
        let mut trips: Vec<f64> = self.half_trips.values().copied().collect();
        trips.sort_by(f64::total_cmp);
        trips.get(trips.len() / 2).copied()
    }

    /// Whether messages are late nearly always: pairs of clocks are seldom as quick as they can be, whatever the clocks show.
    pub(crate) fn are_late(&self) -> bool {
        self.usual_half_trip().zip(self.quick_half_trip()).is_some_and(|(usual, quick)| usual > LATE * quick)
    }

    /// The observations of `table`, whose distances were measured with clocks corrected by `now`; what comes out are
    /// total corrections. Where no pair of clocks has messages in both directions, `unknown` is the floor, in ticks. A
    /// round trip of more than twice `delay` ticks is discarded, with both of its messages.
    pub fn new(
        table: &BoundTable,
        grid: &Grid,
        now: &Offsets,
        unknown: f64,
        delay: f64,
        workers: Workers,
    ) -> Observations {
        let waits = AwaitedMessages::of(table);
        let looked = Look { table, grid, now, delay, waits: &waits };
        let mut result = Observations::default();
        let found = table.map_pairs(workers, |pair, forward| looked.at(pair, forward));
        result.one_way.reserve_exact(found.iter().map(|of| of.one_way.len()).sum());
        result.two_way.reserve_exact(found.iter().map(|of| of.two_way.len()).sum());
        for (pair, of) in table.pairs.keys().zip(found) {
            if of.indirect {
                result.indirect.insert(*pair);
            }
            result.discarded += of.discarded;
            result.one_way.extend(of.one_way);
            result.two_way.extend(of.two_way);
            if let Some(variation) = of.variation {
                result.variations.insert(*pair, variation);
            }
            if let Some((quick, shortest)) = of.trips {
                result.half_trips.insert(*pair, quick);
                result.shortest_trips.insert(*pair, shortest);
                result.shortest = if result.half_trips.len() == 1 { shortest } else { result.shortest.min(shortest) };
            }
        }
        let component = components(now.len(), table.pairs.keys().copied());
        result.component.clone_from(&component);
        let of = |clock: u32| component.get(clock as usize);
        result.one_sided = table.pairs.keys().filter(|(a, b)| of(*a) != of(*b)).copied().collect();
        result.weigh(unknown);
        result
    }

    /// Fills in the standard deviations.
    fn weigh(&mut self, unknown: f64) {
        self.precision = self.quick_half_trip().map_or(unknown, |quick| FLOOR * quick).max(1.0);
        self.floor = self.usual_half_trip().map_or(unknown, |usual| FLOOR * usual).max(1.0);
        let least = self.half_trips.values().copied().reduce(f64::min).unwrap_or(0.0);
        for seen in &mut self.two_way {
            let quick = self.half_trips.get(&(seen.a, seen.b)).copied().unwrap_or(0.0);
            let waited = (seen.half_trip - quick).max(0.0);
            // A pair that is never as quick as others is farther away, or one of the two always waits.
            let far = (quick - least) / 2.0;
            seen.sigma = (self.floor * self.floor + waited * waited + far * far).sqrt();
            // What lies there does so for many windows in the same way: their mean is no better.
            if !seen.awaited {
                seen.sigma *= LAIN;
            }
        }
    }

    /// Joins clocks that have neither two-way messages nor recorded offsets in common (`held` says which have the latter) by
    /// their one-way messages, as if the quickest of them had taken no time: better than nothing, and never stronger
    /// than anything.
    pub fn tie(&mut self, held: &[bool]) {
        let mut group: Vec<usize> = (0..held.len()).collect();
        let mut join = |a: usize, b: usize| -> bool {
            let (from, to) = match (group.get(a), group.get(b)) {
                (Some(&a), Some(&b)) if a != b => (a.max(b), a.min(b)),
                _ => return false,
            };
            group.iter_mut().filter(|of| **of == from).for_each(|of| *of = to);
            true
        };
        let mut anchors = held.iter().enumerate().filter(|(_, held)| **held).map(|(clock, _)| clock);
        if let Some(first) = anchors.next() {
            anchors.for_each(|clock| _ = join(first, clock));
        }
        for seen in &self.two_way {
            join(seen.a as usize, seen.b as usize);
        }
        for seen in &self.one_way {
            if join(seen.a as usize, seen.b as usize) {
                let (a, b, window, middle) = (seen.a, seen.b, seen.window, seen.least);
                self.two_way.push(TwoWay {
                    a,
                    b,
                    window,
                    middle,
                    half_trip: 0.0,
                    awaited: true,
                    sigma: 1000.0 * self.floor,
                });
            }
        }
    }

    /// The messages by (sending clock, receiving clock). Asked for when all of them are there.
    pub fn directions(&self) -> &Arc<Directions> {
        self.directions.get_or_init(|| {
            let pairs = self.one_way.iter().map(|seen| (seen.a, seen.b));
            Arc::new(Directions::new(pairs, &self.one_sided))
        })
    }

    /// A copy with the windows that `keep` wants.
    pub fn part(&self, keep: impl Fn(u32) -> bool) -> Observations {
        Observations {
            two_way: self.two_way.iter().filter(|seen| keep(seen.window)).copied().collect(),
            one_way: self.one_way.iter().filter(|seen| keep(seen.window)).copied().collect(),
            component: self.component.clone(),
            one_sided: self.one_sided.clone(),
            indirect: self.indirect.clone(),
            half_trips: self.half_trips.clone(),
            shortest_trips: self.shortest_trips.clone(),
            variations: self.variations.clone(),
            levels: self.levels.clone(),
            directions: OnceLock::new(),
            ..*self
        }
    }

    /// A copy with the messages of prompt round trips. By how much a round trip takes longer than the shortest of its pair does not depend on the clocks, and two clocks are known to half of it there, whatever messages
    /// of other times do.
    pub(crate) fn prompt(&self) -> Observations {
        let is_prompt = |trip: &TwoWay| {
            let shortest = self.shortest_trips.get(&(trip.a, trip.b)).copied().unwrap_or(0.0);
            trip.half_trip <= PROMPT * shortest + PROMPT_NOISE * self.precision
        };
        let two_way: Vec<TwoWay> = self.two_way.iter().filter(|trip| is_prompt(trip)).copied().collect();
        let mut places: Vec<(u32, u32, u32)> = two_way.iter().map(|trip| (trip.a, trip.b, trip.window)).collect();
        // Mostly they are in order.
        places.sort_unstable();
        let mut one_way = Vec::new();
        for messages in self.one_way.chunk_by(|one, other| (one.a, one.b) == (other.a, other.b)) {
            let Some(&OneWay { a, b, .. }) = messages.first() else { continue };
            let pair = (a.min(b), a.max(b));
            let begin = places.partition_point(|&(a, b, _)| (a, b) < pair);
            let count = places[begin..].partition_point(|&(a, b, _)| (a, b) == pair);
            let of_pair = &places[begin..begin + count];
            let has = |seen: &&OneWay| of_pair.binary_search_by_key(&seen.window, |place| place.2).is_ok();
            one_way.extend(messages.iter().filter(has));
        }
        Observations { two_way, one_way, ..self.part(|_| false) }
    }

    /// A copy with the messages between the pairs of clocks that `keep` wants.
    pub(crate) fn of_pairs(&self, keep: impl Fn(u32, u32) -> bool) -> Observations {
        let two_way = self.two_way.iter().filter(|seen| keep(seen.a, seen.b)).copied().collect();
        let one_way = self.one_way.iter().filter(|seen| keep(seen.a, seen.b)).copied().collect();
        Observations { two_way, one_way, ..self.part(|_| false) }
    }
}

/// What observations are made from.
struct Look<'a> {
    table: &'a BoundTable,
    grid: &'a Grid,
    now: &'a Offsets,
    delay: f64,
    waits: &'a AwaitedMessages<'a>,
}

/// What the messages from one clock to another say.
#[derive(Default)]
struct OfPair {
    one_way: Vec<OneWay>,
    /// Empty unless the first clock is the smaller one, as what follows.
    two_way: Vec<TwoWay>,
    /// The half round trip that they reach in their better windows, and the shortest one.
    trips: Option<(f64, f64)>,
    /// By how much these vary, if that is told ([`Observations::variations`]).
    variation: Option<f64>,
    discarded: u64,
    /// Whether more is known by other things than by messages.
    indirect: bool,
}

/// Whether other things than messages tell a direction in more than a few windows.
fn is_indirect(windows: &[(u32, Bound)]) -> bool {
    let messages = windows.iter().filter(|(_, bound)| bound.kind.is_message()).count();
    messages * DIRECTLY.1 < windows.len() * DIRECTLY.0
}

impl Look<'_> {
    /// What the messages of this pair say, which are `forward`.
    fn at(&self, (a, b): (u32, u32), forward: &DirectedBounds) -> OfPair {
        let mut result = OfPair::default();
        let difference = |window: u32| {
            let x = |clock: u32| self.now.get(clock as usize).and_then(|x| x.get(window as usize));
            x(b).copied().unwrap_or(0.0) - x(a).copied().unwrap_or(0.0)
        };
        let backward = self.table.pairs.get(&(b, a)).map_or(&[][..], DirectedBounds::windows);
        result.indirect = is_indirect(forward.windows());
        let both = if a < b { forward.windows().len().min(backward.len()) } else { 0 };
        let mut trips = Vec::with_capacity(both);
        result.two_way.reserve_exact(both);
        result.one_way.reserve_exact(forward.windows().len());
        let mut others = backward.iter().peekable();
        for &(window, f) in forward.windows().iter().filter(|(window, _)| (*window as usize) < self.grid.count) {
            let now = difference(window);
            while others.next_if(|other| other.0 < window).is_some() {}
            let back = others.peek().filter(|other| other.0 == window).map(|other| other.1);
            let half_trip = back.map_or(0.0, |g| (g.distance as f64 + f.distance as f64) / 2.0);
            if half_trip > self.delay {
                result.discarded += u64::from(a < b);
                continue;
            }
            let awaited = self.waits.has((a, b), window);
            result.one_way.push(OneWay { awaited, ..OneWay::new(a, b, window, now - f.distance as f64) });
            if let Some(g) = back.filter(|_| a < b) {
                let middle = (g.distance as f64 - f.distance as f64) / 2.0 + now;
                trips.push(half_trip);
                let awaited = awaited && self.waits.has((b, a), window);
                result.two_way.push(TwoWay { a, b, window, middle, half_trip, awaited, sigma: 0.0 });
            }
        }
        if !trips.is_empty() {
            let [quick, shortest] = [QUICK_SHARE, SHORTEST_SHARE].map(|share| {
                let at = trips.len() / share;
                trips.select_nth_unstable_by(at, f64::total_cmp).1.max(0.0)
            });
            result.trips = Some((quick, shortest));
            let told = trips.len() >= SEVERAL && (result.indirect || is_indirect(backward));
            result.variation = told.then(|| {
                let [quarter, quick] = [4, 20].map(|share| {
                    let at = trips.len() / share;
                    *trips.select_nth_unstable_by(at, f64::total_cmp).1
                });
                quarter - quick
            });
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::BoundKind;

    #[test]
    fn round_trips_are_prompt_that_are_hardly_longer_than_the_shortest() {
        let trip = |a, window, half_trip| TwoWay { a, b: 2, window, middle: 0.0, half_trip, awaited: true, sigma: 1.0 };
        let all = [trip(0, 0, 100.0), trip(0, 1, 135.0), trip(0, 2, 151.0), trip(1, 0, 300.0), trip(1, 2, 389.0)];
        let one_way = all.iter().flat_map(|trip| {
            let there = OneWay::new(trip.a, 2, trip.window, 0.0);
            [there, OneWay { a: 2, b: trip.a, ..there }]
        });
        let seen = Observations {
            one_way: one_way.chain([OneWay::new(0, 1, 0, 0.0)]).collect(),
            two_way: all.to_vec(),
            shortest_trips: BTreeMap::from([((0, 2), 100.0), ((1, 2), 300.0)]),
            precision: 10.0,
            ..Observations::default()
        };
        let prompt = seen.prompt();
        let found: Vec<(u32, u32)> = prompt.two_way.iter().map(|trip| (trip.a, trip.window)).collect();
        assert_eq!(found, [(0, 0), (0, 1), (1, 0), (1, 2)]);
        assert_eq!(prompt.one_way.len(), 8, "both directions of each, and nothing without a round trip");
    }

    #[test]
    fn two_directions_give_offset_and_latency() {
        let grid = Grid::new(0, 999, 1);
        let mut table = BoundTable::default();
        // b is 100 late, messages take 30.
        table.pairs.entry((0, 1)).or_default().add(0, Bound { distance: -70, at: 5, kind: BoundKind::MESSAGE }, 1);
        table.pairs.entry((1, 0)).or_default().add(0, Bound { distance: 130, at: 6, kind: BoundKind::MESSAGE }, 1);
        table.pairs.entry((0, 2)).or_default().add(0, Bound { distance: -5, at: 6, kind: BoundKind::MESSAGE }, 1);
        let seen = Observations::new(&table, &grid, &vec![vec![0.0]; 3], 1.0, f64::INFINITY, Workers::ONE);
        assert_eq!((seen.two_way[0].middle, seen.two_way[0].half_trip), (100.0, 30.0));
        assert_eq!(seen.two_way.len(), 1);
        assert_eq!(seen.one_way[1], OneWay::new(0, 2, 0, 5.0));
        // The same messages seen through clocks that are corrected already.
        let total = Observations::new(&table, &grid, &vec![vec![0.0], vec![7.0], vec![0.0]], 1.0, 30.0, Workers::ONE);
        assert_eq!(total.two_way[0].middle, 107.0);
        // A round trip that took longer than is allowed; the one-way message says nothing about delays.
        let few = Observations::new(&table, &grid, &vec![vec![0.0]; 3], 1.0, 29.5, Workers::ONE);
        assert_eq!((few.discarded, few.two_way.len(), few.one_way.len()), (1, 0, 1));
    }
}
