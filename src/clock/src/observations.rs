//! From bounds to observations: what the difference of two clocks must have been in a window, and how sure that is.
//!
//! With f the smallest distance from a to b and g the one from b to a, the correction of b minus that of a lies in
//! \[-f, g\]; if both directions have the same minimum latency and each had a message that met no delay, it is (g - f) / 2,
//! and (f + g) / 2 is that latency. That is what coarse windows go by. In fine windows often one direction only had such a
//! message (in the other one the receiver came late), so each direction is judged by itself: once the clocks are
//! roughly known, its quickest message took the pair's latency and a bit, which is an observation, or clearly longer,
//! which says nothing.

use super::graph::components;
use super::wide::widest;
use super::windows::{BoundTable, Grid};
use clc_trace::workers::Workers;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

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
}

impl OneWay {
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
}

/// Messages that one thread has looked at before another has begun.
const ALONE: usize = 8192;
/// Share of its windows in which a pair is taken to have been as quick as it gets.
const QUICK_SHARE: usize = 10;
/// Share of a pair's windows whose round trips are not believed to be the shortest ones.
const SHORTEST_SHARE: usize = 100;
/// No observation is better than this part of the typical half round trip: minima of two directions are not that equal.
const FLOOR: f64 = 0.02;

impl Observations {
    /// The observations of `table`, whose distances were measured with clocks corrected by `now`; what comes out are
    /// total corrections. Where no pair of clocks has messages in both directions, `unknown` is the floor, in ticks. A
    /// round trip of more than twice `delay` ticks is discarded, with both of its messages.
    pub fn new(table: &BoundTable, grid: &Grid, now: &Offsets, unknown: f64, delay: f64) -> Observations {
        let difference = |a: u32, b: u32, window: u32| {
            let at = |clock: u32| now.get(clock as usize).and_then(|x| x.get(window as usize)).copied().unwrap_or(0.0);
            at(b) - at(a)
        };
        let mut result = Observations::default();
        let nothing = Default::default();
        for (&(a, b), forward) in &table.pairs {
            let backward = table.pairs.get(&(b, a)).unwrap_or(&nothing);
            let mut trips = Vec::new();
            let mut others = backward.windows().iter().peekable();
            for &(window, f) in forward.windows().iter().filter(|(window, _)| (*window as usize) < grid.count) {
                let now = difference(a, b, window);
                while others.next_if(|other| other.0 < window).is_some() {}
                let back = others.peek().filter(|other| other.0 == window).map(|other| other.1);
                let half_trip = back.map_or(0.0, |g| (g.distance as f64 + f.distance as f64) / 2.0);
                if half_trip > delay {
                    result.discarded += u64::from(a < b);
                    continue;
                }
                result.one_way.push(OneWay { a, b, window, least: now - f.distance as f64 });
                if let Some(g) = back.filter(|_| a < b) {
                    let middle = (g.distance as f64 - f.distance as f64) / 2.0 + now;
                    trips.push(half_trip);
                    result.two_way.push(TwoWay { a, b, window, middle, half_trip, sigma: 0.0 });
                }
            }
            if !trips.is_empty() {
                let [quick, shortest] = [QUICK_SHARE, SHORTEST_SHARE].map(|share| {
                    let at = trips.len() / share;
                    trips.select_nth_unstable_by(at, f64::total_cmp).1.max(0.0)
                });
                result.half_trips.insert((a, b), quick);
                result.shortest_trips.insert((a, b), shortest);
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
        let mut shortest: Vec<f64> = self.shortest_trips.values().copied().collect();
        shortest.sort_by(f64::total_cmp);
        self.precision = shortest.get(shortest.len() / 4).map_or(unknown, |quick| FLOOR * quick).max(1.0);
        let mut trips: Vec<f64> = self.half_trips.values().copied().collect();
        trips.sort_by(f64::total_cmp);
        self.floor = trips.get(trips.len() / 2).map_or(unknown, |typical| FLOOR * typical).max(1.0);
        let least = trips.first().copied().unwrap_or(0.0);
        for seen in &mut self.two_way {
            let quick = self.half_trips.get(&(seen.a, seen.b)).copied().unwrap_or(0.0);
            let waited = (seen.half_trip - quick).max(0.0);
            // A pair that is never as quick as others is farther away, or one of the two always waits.
            let far = (quick - least) / 2.0;
            seen.sigma = (self.floor * self.floor + waited * waited + far * far).sqrt();
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
                self.two_way.push(TwoWay { a, b, window, middle, half_trip: 0.0, sigma: 1000.0 * self.floor });
            }
        }
    }

    /// The messages by (sending clock, receiving clock).
    pub fn directions(&self) -> impl Iterator<Item = ((u32, u32), &[OneWay])> {
        let groups = self.one_way.chunk_by(|one, other| (one.a, one.b) == (other.a, other.b));
        groups.filter_map(|group| group.first().map(|seen| ((seen.a, seen.b), group)))
    }

    /// The threads that looking at all messages is worth.
    pub(crate) fn worth(&self, workers: Workers) -> Workers {
        if self.one_way.len() < ALONE { Workers::ONE } else { workers }
    }

    /// A copy with the windows that `keep` wants.
    pub fn part(&self, keep: impl Fn(u32) -> bool) -> Observations {
        Observations {
            two_way: self.two_way.iter().filter(|seen| keep(seen.window)).copied().collect(),
            one_way: self.one_way.iter().filter(|seen| keep(seen.window)).copied().collect(),
            component: self.component.clone(),
            one_sided: self.one_sided.clone(),
            half_trips: self.half_trips.clone(),
            shortest_trips: self.shortest_trips.clone(),
            ..*self
        }
    }
}

/// How long messages travel that meet no delay, as seen with some clocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latencies {
    /// By direction of pair, in ticks; both directions of a pair have the same where there are both.
    pub of: BTreeMap<(u32, u32), f64>,
    /// By how much it varies.
    pub spread: f64,
}

/// Largest spread, in typical half round trips: what is farther above the latency was delayed.
const WIDEST: f64 = 0.5;
/// Largest latency of a pair, in latencies of the quickest pairs.
const FARTHEST: f64 = 2.0;
/// Up to so many windows are few.
const FEW: usize = 8;

/// The first tenth of the values: what the quickest pairs have, but not the one that is oddly quick.
fn usual(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 10).copied()
}

/// How latencies are told from travel times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Reading {
    /// Where the travel times of a direction are densest near their lower end: messages that were not delayed are measurements, the others
    /// say nothing.
    Mode,
    /// What this share of the quickest messages stays below: messages are bounds, and how tight they are is learned per direction
    /// (`clock/src/delays.rs`).
    Edge(f64),
}

impl Latencies {
    /// Estimates them for each direction, then takes the mean of both directions, which does not depend on the corrections.
    pub fn new(
        observations: &Observations,
        offsets: &[f64],
        windows: usize,
        reading: Reading,
        workers: Workers,
    ) -> Latencies {
        let workers = observations.worth(workers);
        let held = observations.directions().filter(|(pair, _)| !observations.one_sided.contains(pair));
        let directions: Vec<((u32, u32), &[OneWay])> = held.collect();
        let travels = workers.map(directions.len(), |at| {
            Travels::new(directions[at].1.iter().map(|seen| seen.travel(offsets, windows)).collect())
        });
        let travels: BTreeMap<(u32, u32), Travels> = directions.iter().map(|(pair, _)| *pair).zip(travels).collect();
        let mut spreads: Vec<f64> = travels.values().map(|travels| travels.quarter - travels.quick).collect();
        spreads.sort_by(f64::total_cmp);
        // Of the better half of the pairs: others may be delayed most of the time.
        let spread = spreads.get(spreads.len() / 4).copied().unwrap_or(0.0);
        let floor = observations.floor;
        let reference = usual(travels.iter().filter_map(|(&(a, b), there)| {
            let back = travels.get(&(b, a)).filter(|_| a < b)?;
            Some((there.quick + back.quick) / 2.0)
        }));
        let spread = spread.clamp(floor, (WIDEST * floor / FLOOR).max(floor));
        let (pairs, travels): (Vec<_>, Vec<_>) =
            travels.into_iter().map(|(pair, travels)| (pair, Mutex::new(travels))).unzip();
        let told = workers.map(travels.len(), |at| {
            let mut travels = travels[at].lock().unwrap_or_else(PoisonError::into_inner);
            match reading {
                Reading::Mode => travels.mode(spread),
                Reading::Edge(share) => travels.edge(share),
            }
        });
        let modes: BTreeMap<(u32, u32), f64> = pairs.into_iter().zip(told).collect();
        // A direction without the other one tells no latency, but a ring of them does: their mean.
        let alone: Vec<f64> =
            modes.iter().filter(|((a, b), _)| !modes.contains_key(&(*b, *a))).map(|(_, mode)| *mode).collect();
        let common = alone.iter().sum::<f64>() / alone.len().max(1) as f64;
        // A pair far above the others is not that much farther away: its messages are always delayed, who knows in which direction.
        // In a few long windows clocks drift too much to tell.
        let most =
            reference.filter(|_| windows > FEW).map_or(f64::MAX, |latency| FARTHEST * latency.max(floor) + spread);
        let of = modes.iter().map(|(&(a, b), &mode)| {
            let latency = modes.get(&(b, a)).map_or(common, |back| (mode + back) / 2.0);
            ((a, b), latency.clamp(0.0, most))
        });
        Latencies { of: of.collect(), spread }
    }

    /// What is known of the messages from one clock to another.
    pub fn direction(&self, pair: (u32, u32)) -> Direction {
        Direction { latency: self.of.get(&pair).copied() }
    }

    /// Mean cost of all observations, in spreads: messages that are too quick cost more than those that are delayed, and no
    /// message costs more than a limit. None without messages.
    pub fn misfit(&self, observations: &Observations, offsets: &[f64], windows: usize) -> Option<f64> {
        const DELAYED: f64 = 3.0;
        const TOO_QUICK: f64 = 12.0;
        let mut sum = 0.0;
        for (pair, seen) in observations.directions() {
            let direction = self.direction(pair);
            let cost = |seen: &OneWay| {
                let excess = direction.excess(seen, offsets, windows) / self.spread;
                if excess <= 0.0 {
                    return (-excess).min(TOO_QUICK);
                }
                if direction.latency.is_some() { excess.min(DELAYED) } else { 0.0 }
            };
            sum += seen.iter().map(cost).sum::<f64>();
        }
        let count = observations.one_way.len();
        (count > 0).then(|| sum / count as f64)
    }
}

/// The travel times of one direction.
#[derive(Debug)]
struct Travels {
    /// In no order.
    values: Vec<f64>,
    /// The twentieth part and the fourth part of them are shorter.
    quick: f64,
    quarter: f64,
}

impl Travels {
    fn new(mut values: Vec<f64>) -> Travels {
        if values.is_empty() {
            return Travels { values, quick: 0.0, quarter: 0.0 };
        }
        let [quick_at, quarter_at] = [5, 25].map(|percent| values.len() * percent / 100);
        let (below, &mut quarter, _) = values.select_nth_unstable_by(quarter_at, f64::total_cmp);
        let quick = match quick_at < quarter_at {
            true => *below.select_nth_unstable_by(quick_at, f64::total_cmp).1,
            false => quarter,
        };
        Travels { values, quick, quarter }
    }

    /// Where they are densest near their lower end.
    fn mode(&self, spread: f64) -> f64 {
        let mut mode = self.quick;
        for _ in 0..5 {
            let (chunks, rest) = self.values.as_chunks::<LANES>();
            let several = widest(
                #[inline(always)]
                || weighed(chunks, mode, spread),
            );
            let few = weighed(rest.as_chunks::<1>().0, mode, spread);
            let (weights, sum) = (several.0 + few.0, several.1 + few.1);
            mode = if weights > 0.0 { sum / weights } else { mode };
        }
        mode
    }

    /// What this share of them stays below.
    fn edge(&mut self, share: f64) -> f64 {
        let at = ((self.values.len() as f64 * share) as usize).min(self.values.len().saturating_sub(1));
        if self.values.is_empty() { 0.0 } else { *self.values.select_nth_unstable_by(at, f64::total_cmp).1 }
    }
}

/// The messages of one direction.
#[derive(Debug, Clone, Copy)]
pub struct Direction {
    /// How long they travel that meet no delay, in ticks, if that is known.
    latency: Option<f64>,
}

impl Direction {
    /// Whether messages are held from both sides; if not, they only say what cannot be.
    pub fn is_known(self) -> bool {
        self.latency.is_some()
    }

    /// How much longer than the latency (zero, if it is not known) the message took if these are the corrections; negative:
    /// it was too quick.
    pub fn excess(self, seen: &OneWay, offsets: &[f64], windows: usize) -> f64 {
        seen.travel(offsets, windows) - self.latency.unwrap_or(0.0)
    }

    /// How much a message with this excess counts: 1 near zero, vanishing if it was delayed by many `scale`s. One that would
    /// have been too quick is impossible and keeps pulling, but never with more force than from a few scales away: within a
    /// window a clock can do what its model cannot.
    pub fn weight(self, excess: f64, scale: f64) -> f64 {
        const FORCE: f64 = 4.0;
        if excess <= 0.0 {
            return (FORCE * scale / excess.abs()).min(1.0);
        }
        if self.latency.is_some() { redescending(excess, scale) } else { 0.0 }
    }
}

/// How many values are worked on at once.
const LANES: usize = 4;

/// Sum of the weights of values around `mode`, and of the weighted values.
#[inline(always)]
fn weighed<const N: usize>(values: &[[f64; N]], mode: f64, spread: f64) -> (f64, f64) {
    let (mut weights, mut sums) = ([0.0; N], [0.0; N]);
    for values in values {
        for lane in 0..N {
            let weight = redescending(values[lane] - mode, spread);
            weights[lane] += weight;
            sums[lane] += weight * values[lane];
        }
    }
    (weights.iter().sum(), sums.iter().sum())
}

/// Weight of an excess: 1 up to zero, and vanishing for messages that were delayed.
#[inline(always)]
fn redescending(excess: f64, scale: f64) -> f64 {
    let relative = excess.max(0.0) / (2.0 * scale);
    let root = 1.0 / (1.0 + relative * relative);
    root * root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kind;
    use crate::windows::Bound;

    #[test]
    fn two_directions_give_offset_and_latency() {
        let grid = Grid::new(0, 999, 1);
        let mut table = BoundTable::default();
        // b is 100 late, messages take 30.
        table.pairs.entry((0, 1)).or_default().add(0, Bound { distance: -70, at: 5, kind: Kind::MESSAGE }, 1);
        table.pairs.entry((1, 0)).or_default().add(0, Bound { distance: 130, at: 6, kind: Kind::MESSAGE }, 1);
        table.pairs.entry((0, 2)).or_default().add(0, Bound { distance: -5, at: 6, kind: Kind::MESSAGE }, 1);
        let seen = Observations::new(&table, &grid, &vec![vec![0.0]; 3], 1.0, f64::INFINITY);
        assert_eq!((seen.two_way[0].middle, seen.two_way[0].half_trip), (100.0, 30.0));
        assert_eq!(seen.two_way.len(), 1);
        assert_eq!(seen.one_way[1], OneWay { a: 0, b: 2, window: 0, least: 5.0 });
        let latencies = Latencies::new(&seen, &[0.0, 100.0, 5.0], 1, Reading::Mode, Workers::ONE);
        assert_eq!(latencies.of[&(0, 1)], 30.0);
        assert_eq!(latencies.of[&(1, 0)], 30.0);
        assert_eq!(latencies.misfit(&seen, &[0.0, 100.0, 5.0], 1), Some(0.0));
        // The same messages seen through clocks that are corrected already.
        let total = Observations::new(&table, &grid, &vec![vec![0.0], vec![7.0], vec![0.0]], 1.0, 30.0);
        assert_eq!(total.two_way[0].middle, 107.0);
        // A round trip that took longer than is allowed; the one-way message says nothing about delays.
        let few = Observations::new(&table, &grid, &vec![vec![0.0]; 3], 1.0, 29.5);
        assert_eq!((few.discarded, few.two_way.len(), few.one_way.len()), (1, 0, 1));
    }

    #[test]
    fn delayed_messages_do_not_move_the_latency() {
        let mut seen = Observations { floor: 1.0, ..Observations::default() };
        for window in 0..300 {
            // One window in three is quick from 0 to 1, another third from 1 to 0.
            let noise = f64::from(window % 7);
            let (there, back) = match window % 3 {
                0 => (50.0 + noise, 900.0),
                1 => (5000.0, 50.0 + noise),
                _ => (700.0, 800.0),
            };
            seen.one_way.push(OneWay { a: 0, b: 1, window, least: -there });
            seen.one_way.push(OneWay { a: 1, b: 0, window, least: -back });
        }
        seen.one_way.sort_by_key(|one| one.a);
        let latencies = Latencies::new(&seen, &vec![0.0; 600], 300, Reading::Mode, Workers::ONE);
        assert!((latencies.of[&(0, 1)] - 53.0).abs() < 2.0, "{latencies:?}");
    }
}
