//! How long messages travel that meet no delay, told from the travel times that some clocks show ([`Latencies`]).

use super::anchor::{LevelError, RecordedLevels};
use super::directions::Directions;
use super::graph::Bottlenecks;
use super::observations::{FLOOR, Observations, OneWay};
use clc_trace::vector::widest;
use clc_trace::workers::Workers;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How long messages travel that meet no delay, as seen with some clocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latencies {
    directions: Arc<Directions>,
    /// By direction, in ticks; both directions of a pair have the same where there are both. None where no way leads back.
    of: Vec<Option<f64>>,
    /// What was told of each direction by itself.
    told: Vec<Option<f64>>,
    /// Mean latency of the directions without the other one.
    alone: f64,
    /// By how much it varies.
    pub spread: f64,
}

/// Largest spread, in typical half round trips: what is farther above the latency was delayed.
const WIDEST: f64 = 0.5;
/// Largest latency of a pair, in latencies of the quickest pairs; unless it is steady, and no quicker pairs join the two clocks. Chosen by hand: with
/// a larger value, pairs whose messages are always delayed pass for distant ones; with a smaller one, distant ones are taken for delayed.
const FARTHEST: f64 = 2.0;
/// Part of itself by which the latency of such a pair varies at most in the quickest quarter of its messages: messages that wait for somebody who
/// computes vary.
const STEADY: f64 = 0.03;
/// The same of the round trips of collective operations, and of what was waited for, which do not depend on the clocks; travel times vary by what clocks are off that follow late ones. Collective operations are timed by the last
/// member to come, and take longer the more members they have and the more they exchange. (Of 512 generated traces five are 4 to 100 times as close to the truth by it, one is twice as far,
/// 0.38 us, and the others hardly differ; with 0.03 four of the five. If round trips of messages counted as well with 0.015, three more would be 1.4 to 6 times as close, and two 1.6 and 6 times as far.)
const STEADY_TRIPS: f64 = 0.06;
/// Longest round trips that are believed because they are steady, in those of the quickest pairs: what takes longer waits, however steadily. (A tree whose processes of one node always come last, 3 ms later than others: 18 us off the
/// recorded offsets instead of 4. With 4 to 16 instead, hardly anything changes.)
const FAR: f64 = 8.0;
/// Fewest windows in which such a pair was seen.
const FEWEST: usize = 20;
/// Up to so many windows are few. Chosen by hand: with fewer, clocks that drift within a window pass for distant pairs; with more, coarse levels do
/// without a comparison that they could use.
const FEW: usize = 8;

/// The first tenth of the values: what the quickest pairs have, but not the one that is oddly quick.
fn usual(mut values: Vec<f64>) -> Option<f64> {
    let at = values.len() / 10;
    (at < values.len()).then(|| *values.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// By how much longer than `half` of the way there and back one way takes, as recorded offsets of its two clocks tell it, which seems to be `more` with the clocks so far.
/// The longer the way, the more they count: messages that take long wait, who knows in which direction.
fn unequal(
    levels: &RecordedLevels,
    errors: &[Option<LevelError>],
    (from, to): (u32, u32),
    half: f64,
    more: f64,
) -> f64 {
    let of = |clock: u32| errors.get(clock as usize).copied().flatten();
    let (Some(a), Some(b)) = (of(from), of(to)) else { return 0.0 };
    let doubt = (half - levels.long).max(0.0);
    let known = levels.long * levels.long + a.spread * a.spread + b.spread * b.spread;
    (more + b.mean - a.mean) * doubt * doubt / (doubt * doubt + known)
}

/// By how much travel times vary that are not delayed, of those that vary by `spreads` ticks per direction.
fn spread(mut spreads: Vec<f64>, floor: f64) -> f64 {
    // Of the better half of the pairs: others may be delayed most of the time.
    let quarter = spreads.len() / 4;
    let spread = if spreads.is_empty() { 0.0 } else { *spreads.select_nth_unstable_by(quarter, f64::total_cmp).1 };
    spread.clamp(floor, (WIDEST * floor / FLOOR).max(floor))
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
    /// Estimates them for each direction, then takes the mean of both directions, which does not depend on the corrections. `around` is the latency
    /// ([`Reading::Mode`]) of directions without the other one, if it is known.
    pub fn new(
        observations: &Observations,
        offsets: &[f64],
        windows: usize,
        reading: Reading,
        around: Option<f64>,
        workers: Workers,
    ) -> Latencies {
        let travels = Travels::new(observations, offsets, windows, workers);
        Latencies::of(&travels, observations, offsets, windows, reading, around, workers)
    }

    /// The same from the travel times that these corrections show.
    pub(super) fn of(
        travels: &Travels,
        observations: &Observations,
        offsets: &[f64],
        windows: usize,
        reading: Reading,
        around: Option<f64>,
        workers: Workers,
    ) -> Latencies {
        let directions = observations.directions();
        let travels = &travels.blocks;
        let each = || travels.iter().flat_map(|travels| &travels.of);
        let floor = observations.floor;
        let spread = spread(each().map(|travel| travel.quarter - travel.quick).collect(), floor);
        let mut quick: Vec<Option<f64>> = vec![None; directions.len()];
        let mut told = quick.clone();
        let held = || (0..directions.len()).filter(|direction| directions.is_held(*direction));
        held().zip(each()).for_each(|(direction, travel)| quick[direction] = Some(travel.quick));
        // By how much the travel times of a direction vary that messages tell.
        let mut varies: Vec<f64> = vec![f64::INFINITY; directions.len()];
        let steady = |direction: &usize| {
            directions.messages(*direction).len() >= FEWEST
                && !observations.indirect.contains(&directions.pairs()[*direction])
        };
        let direct = held().zip(each()).filter(|(direction, _)| steady(direction));
        direct.for_each(|(direction, travel)| varies[direction] = travel.quarter - travel.quick);
        let modes = || directions.map(workers, |block, _| travels[block].modes(spread)).into_iter().flatten();
        match reading {
            Reading::Mode => held().zip(modes()).for_each(|(direction, mode)| told[direction] = Some(mode)),
            Reading::Edge(share) => {
                let edges = travels.iter().flat_map(|travels| travels.edges(share));
                held().zip(edges).for_each(|(direction, edge)| told[direction] = Some(edge));
            }
        }
        let back = |of: &[Option<f64>], direction: usize| directions.back(direction).and_then(|back| of[back]);
        let trips = directions.pairs().iter().enumerate().filter_map(|(direction, &(a, b))| {
            let back = back(&quick, direction).filter(|_| a < b)?;
            Some(((quick[direction]? + back) / 2.0, a, b))
        });
        let trips: Vec<(f64, u32, u32)> = trips.collect();
        let reference = usual(trips.iter().map(|trip| trip.0).collect());
        let bottlenecks = Bottlenecks::new(trips);
        // A direction without the other one tells no latency, but a ring of them does: their mean.
        let alone = told.iter().enumerate().filter(|(direction, _)| back(&told, *direction).is_none());
        let alone: Vec<usize> = alone.filter(|(_, told)| told.is_some()).map(|(direction, _)| direction).collect();
        let mean = |of: &[Option<f64>]| {
            alone.iter().filter_map(|direction| of[*direction]).sum::<f64>() / alone.len().max(1) as f64
        };
        let common = around.filter(|_| !alone.is_empty()).map_or(mean(&told), |latency| {
            let mut mode = told.clone();
            if reading != Reading::Mode {
                held().zip(modes()).for_each(|(direction, of)| mode[direction] = Some(of));
            }
            latency + mean(&told) - mean(&mode)
        });
        // A pair far above the others is not that much farther away: its messages are always delayed, who knows in which direction. Unless no others tell what
        // it tells: then the middle is the best guess. In a few long windows clocks drift too much to tell.
        let reference = reference.filter(|_| windows > FEW);
        let most = |direction: usize| {
            let (a, b) = directions.pairs()[direction];
            let varies = varies[direction] + directions.back(direction).map_or(f64::INFINITY, |back| varies[back]);
            let trips = observations.variations.get(&(a.min(b), a.max(b)));
            let are_steady = |trip: f64, latency: f64| {
                trips.is_some_and(|varies| *varies <= STEADY_TRIPS * trip) && trip <= FAR * latency
            };
            let is_steady = |trip: f64, latency| varies <= STEADY * 2.0 * trip || are_steady(trip, latency);
            reference.map_or(f64::MAX, |latency| {
                let alone = bottlenecks.between(a, b).filter(|trip| is_steady(*trip, latency)).unwrap_or(0.0);
                (FARTHEST * latency.max(floor)).max(alone) + spread
            })
        };
        let errors = if windows > FEW { observations.levels.errors(offsets, windows) } else { Vec::new() };
        let latency = |(direction, mode): (usize, &Option<f64>)| {
            let mode = (*mode)?;
            let latency = back(&told, direction).map_or(common, |back| {
                let half = (mode + back) / 2.0;
                half + unequal(&observations.levels, &errors, directions.pairs()[direction], half, (mode - back) / 2.0)
            });
            Some(latency.clamp(0.0, most(direction)))
        };
        let of = told.iter().enumerate().map(latency).collect();
        Latencies { directions: Arc::clone(directions), of, told, alone: common, spread }
    }

    /// What the travel times of a direction tell by themselves, where a way leads back; it depends on the corrections.
    pub(super) fn mode(&self, direction: usize) -> Option<f64> {
        self.told[direction]
    }

    /// The mean latency of the directions without the other one; 0 if there are none.
    pub(super) fn alone(&self) -> f64 {
        self.alone
    }

    /// What is known of the messages from one clock to another.
    pub fn direction(&self, pair: (u32, u32)) -> Direction {
        self.find(pair).map_or(Direction { latency: None }, |direction| self.at(direction))
    }

    /// The number of a direction among those of the observations that this was learned from.
    pub(super) fn find(&self, pair: (u32, u32)) -> Option<usize> {
        self.directions.find(pair)
    }

    /// The same by this number.
    pub(super) fn at(&self, direction: usize) -> Direction {
        Direction { latency: self.of[direction] }
    }

    /// Mean cost of all observations, in spreads: messages that are too quick cost more than those that are delayed, and no
    /// message costs more than a limit. None without messages.
    pub fn misfit(&self, observations: &Observations, offsets: &[f64], windows: usize) -> Option<f64> {
        // Chosen by hand: with higher limits a few messages decide, with lower ones gross errors cost no more than small ones. Messages that are too
        // quick are impossible, so they may cost four times as much.
        const DELAYED: f64 = 3.0;
        const TOO_QUICK: f64 = 12.0;
        let mut sum = 0.0;
        let directions = observations.directions();
        for (at, pair) in directions.pairs().iter().enumerate() {
            let direction = self.direction(*pair);
            let cost = |seen: &OneWay| {
                let excess = direction.excess(seen, offsets, windows) / self.spread;
                if excess <= 0.0 {
                    return (-excess).min(TOO_QUICK);
                }
                if direction.latency.is_some() && seen.awaited { excess.min(DELAYED) } else { 0.0 }
            };
            sum += observations.one_way[directions.messages(at)].iter().map(cost).sum::<f64>();
        }
        let count = observations.one_way.len();
        (count > 0).then(|| sum / count as f64)
    }
}

/// The travel times of all directions that a way leads back from, as some clocks show them; in blocks of directions.
#[derive(Debug)]
pub(super) struct Travels {
    blocks: Vec<TravelTimes>,
}

impl Travels {
    pub(super) fn new(observations: &Observations, offsets: &[f64], windows: usize, workers: Workers) -> Travels {
        let directions = observations.directions();
        let blocks = directions.map(workers, |_, block| {
            let held = block.filter(|direction| directions.is_held(*direction));
            let messages = |direction: usize| &observations.one_way[directions.messages(direction)];
            TravelTimes::new(held.map(messages), offsets, windows)
        });
        Travels { blocks }
    }
}

/// The travel times of some directions.
#[derive(Debug)]
struct TravelTimes {
    /// Within a direction in the order of [`Travel`].
    values: Vec<f64>,
    of: Vec<Travel>,
}

/// What the travel times of one direction say. Those before a fourth part and before a twentieth part of them are the shortest; otherwise they are in no order.
#[derive(Debug)]
struct Travel {
    /// Where the values end.
    end: usize,
    /// The twentieth part and the fourth part of them are shorter.
    quick: f64,
    quarter: f64,
}

impl TravelTimes {
    fn new<'a>(directions: impl Iterator<Item = &'a [OneWay]>, offsets: &[f64], windows: usize) -> TravelTimes {
        let (mut values, mut of) = (Vec::new(), Vec::new());
        for messages in directions {
            let begin = values.len();
            values.reserve(messages.len());
            values.extend(OneWay::awaited(messages).map(|seen| seen.travel(offsets, windows)));
            of.push(Travel::new(&mut values[begin..], begin));
        }
        TravelTimes { values, of }
    }

    /// The directions and their values.
    fn each(&self) -> impl Iterator<Item = (&Travel, &[f64])> {
        let begins = std::iter::once(0).chain(self.of.iter().map(|travel| travel.end));
        self.of.iter().zip(begins).map(|(travel, begin)| (travel, &self.values[begin..travel.end]))
    }

    /// What this share of the values of each direction is below ([`Reading::Edge`]).
    fn edges(&self, share: f64) -> impl Iterator<Item = f64> {
        let mut some = Vec::new();
        self.each().map(move |(travel, values)| travel.edge(values, share, &mut some))
    }

    /// Where the values of each direction are densest near their lower end.
    fn modes(&self, spread: f64) -> Vec<f64> {
        self.each().map(|(travel, values)| travel.mode(values, spread)).collect()
    }
}

/// How many of so many values are before the twentieth part and the fourth part.
fn before(count: usize) -> [usize; 2] {
    [5, 25].map(|percent| count * percent / 100)
}

impl Travel {
    /// Of values, which are put into another order, and which begin at `begin` among others.
    fn new(values: &mut [f64], begin: usize) -> Travel {
        let end = begin + values.len();
        if values.is_empty() {
            return Travel { end, quick: 0.0, quarter: 0.0 };
        }
        let [quick_at, quarter_at] = before(values.len());
        let (below, &mut quarter, _) = values.select_nth_unstable_by(quarter_at, f64::total_cmp);
        let quick = match quick_at < quarter_at {
            true => *below.select_nth_unstable_by(quick_at, f64::total_cmp).1,
            false => quarter,
        };
        Travel { end, quick, quarter }
    }

    /// What this share of its values is below; `some` is room for a part of them.
    fn edge(&self, values: &[f64], share: f64, some: &mut Vec<f64>) -> f64 {
        let Some(last) = values.len().checked_sub(1) else { return 0.0 };
        let at = ((values.len() as f64 * share) as usize).min(last);
        let [quick_at, quarter_at] = before(values.len());
        let (begin, part) = match at {
            at if at < quick_at => (0, &values[..quick_at]),
            at if at == quick_at => return self.quick,
            at if at < quarter_at => (quick_at + 1, &values[quick_at + 1..quarter_at]),
            at if at == quarter_at => return self.quarter,
            _ => (quarter_at + 1, &values[quarter_at + 1..]),
        };
        some.clear();
        some.extend_from_slice(part);
        *some.select_nth_unstable_by(at - begin, f64::total_cmp).1
    }

    /// Where the values are densest near their lower end.
    fn mode(&self, values: &[f64], spread: f64) -> f64 {
        let mut mode = self.quick;
        for _ in 0..5 {
            let (chunks, rest) = values.as_chunks::<LANES>();
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

    /// How long messages travel that meet no delay, in ticks, if that is known.
    pub fn latency(self) -> Option<f64> {
        self.latency
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
        // Chosen by hand: with more, a few messages bend a clock; with less, it passes messages that are too quick.
        const FORCE: f64 = 4.0;
        if excess <= 0.0 {
            return (FORCE * scale / excess.abs()).min(1.0);
        }
        if self.latency.is_some() { redescending(excess, scale) } else { 0.0 }
    }
}

/// How many values are worked on at once. Four doubles fill a register of AVX2 ([`widest`]).
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
    use crate::anchor::Anchor;

    #[test]
    fn every_share_of_the_values_is_found() {
        for count in [1, 2, 3, 9, 21, 100, 257] {
            let mut values: Vec<f64> = (0..count).map(|k| (k * 7919 % count) as f64).collect();
            let travel = Travel::new(&mut values, 0);
            for share in [0.0, 0.01, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0] {
                let at = ((count as f64 * share) as usize).min(count - 1);
                assert_eq!(travel.edge(&values, share, &mut Vec::new()), at as f64, "{count} {share}");
            }
        }
    }

    #[test]
    fn the_latency_is_the_mean_of_both_directions() {
        // b is 100 late, messages take 30; nothing comes back from c.
        let one = |a, b, least| OneWay::new(a, b, 0, least);
        let one_way = vec![one(0, 1, 70.0), one(0, 2, 5.0), one(1, 0, -130.0)];
        let seen = Observations { one_way, one_sided: [(0, 2)].into(), floor: 1.0, ..Observations::default() };
        let offsets = [0.0, 100.0, 5.0];
        let latencies = Latencies::new(&seen, &offsets, 1, Reading::Mode, None, Workers::ONE);
        assert_eq!(latencies.direction((0, 1)).latency, Some(30.0));
        assert_eq!(latencies.direction((1, 0)).latency, Some(30.0));
        assert_eq!(latencies.direction((0, 2)).latency, None);
        assert_eq!(latencies.direction((2, 1)).latency, None);
        assert_eq!(latencies.misfit(&seen, &offsets, 1), Some(0.0));
    }

    #[test]
    fn recorded_offsets_tell_on_which_way_messages_wait() {
        // Messages take 30 there and `back` the other way, with clocks that agree; the second one was measured, and seems to be off by the middle of both.
        let latency = |back: f64, wrong: f64, spread: f64| {
            let (windows, middle) = (20, (back - 30.0) / 2.0);
            let one = |a, b, least| (0..windows as u32).map(move |window| OneWay::new(a, b, window, least));
            let one_way = one(0, 1, -30.0).chain(one(1, 0, -back)).collect();
            let anchor = |window, value| Anchor { clock: 1, window, value, sigma: 1.0, bound: 0.0 };
            let anchors = vec![anchor(0, wrong - spread), anchor(windows as u32 - 1, wrong + spread)];
            let levels = RecordedLevels { anchors, reference: 0, long: 40.0 };
            let seen = Observations { one_way, floor: 1.0, levels, ..Observations::default() };
            let offsets = [vec![0.0; windows], vec![middle; windows]].concat();
            let latencies = Latencies::new(&seen, &offsets, windows, Reading::Mode, None, Workers::ONE);
            [(0, 1), (1, 0)].map(|pair| latencies.direction(pair).latency.expect("a latency"))
        };
        let near = |[there, back]: [f64; 2], right: [f64; 2]| {
            assert!((there - right[0]).abs() < 5.0 && (back - right[1]).abs() < 5.0, "{there} {back} {right:?}");
        };
        near(latency(1030.0, 0.0, 0.0), [30.0, 1030.0]);
        // Messages that are quick know it better, and so do all where offsets do not agree.
        assert_eq!(latency(50.0, 0.0, 0.0), [40.0, 40.0]);
        near(latency(1030.0, 0.0, 1e4), [530.0, 530.0]);
        // No way takes less than no time.
        assert!(latency(1030.0, -400.0, 0.0)[0] == 0.0);
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
            seen.one_way.push(OneWay::new(0, 1, window, -there));
            seen.one_way.push(OneWay::new(1, 0, window, -back));
        }
        seen.one_way.sort_by_key(|one| one.a);
        let latencies = Latencies::new(&seen, &vec![0.0; 600], 300, Reading::Mode, None, Workers::ONE);
        assert!((latencies.direction((0, 1)).latency.unwrap() - 53.0).abs() < 2.0, "{latencies:?}");
    }

    #[test]
    fn steady_round_trips_keep_their_latency_whatever_the_clocks() {
        // Messages between the first two clocks take 10, between them and the third 33; its clock is off by up to 12, now to one side and now to the other.
        let windows = 40;
        let one = |a, b, took: f64| (0..windows as u32).map(move |window| OneWay::new(a, b, window, -took));
        let one_way: Vec<OneWay> =
            one(0, 1, 10.0).chain(one(0, 2, 33.0)).chain(one(1, 0, 10.0)).chain(one(2, 0, 33.0)).collect();
        let wrong = (0..windows).map(|window| [12.0, 4.0, -4.0, -12.0][window * 4 / windows]).collect();
        let offsets = [vec![0.0; 2 * windows], wrong].concat();
        let latency = |variation: Option<f64>| {
            let variations = variation.map(|variation| ((0, 2), variation)).into_iter().collect();
            let seen = Observations { one_way: one_way.clone(), variations, floor: 0.2, ..Observations::default() };
            let latencies = Latencies::new(&seen, &offsets, windows, Reading::Mode, None, Workers::ONE);
            latencies.direction((0, 2)).latency.expect("a latency")
        };
        // By these clocks a round trip takes 42, half of it in each direction.
        let keeps = |variation| (latency(variation) - 21.0).abs() < 0.1;
        assert!(keeps(Some(1.2)));
        // They wait for somebody who computes, or are messages, which may: no more than twice what the quicker pair takes.
        assert!(!keeps(Some(1.3)) && !keeps(None));
    }
}
