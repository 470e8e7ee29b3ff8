//! All clocks that a node hears of, watched while a job runs: the time that they make together, what each is ahead of it, and a word about one that fails.

use super::{ClockFault, ClockLimits, ClockWatch, Difference, Nearest, STILL, SystemTime, system_time};
use crate::gossip::{RoundTrip, SECOND, Time};
use std::collections::{BTreeMap, VecDeque};

/// Of the round trips of so long a time the quickest counts, and so often clocks are compared. Chosen by hand: in a shorter time none may have been
/// quick; a longer one notices jumps later.
const WINDOW: Time = 2 * SECOND;
/// A difference that is older says nothing of now. Chosen by hand: at 10 ppm, a clock moves 200 µs meanwhile; with less, nodes that are seldom
/// compared drop out.
const OLDEST: Time = 20 * SECOND;

/// So long a word waits for others that have been compared in this time: members of a group that are no neighbours in its ring are compared some ten times a minute,
/// at random.
const PATIENCE: Time = 60 * SECOND;
/// Two words mean the same if what they say differs by no more than this part, or by so many nanoseconds, or nanoseconds per nanosecond. Chosen by
/// hand: smaller values take two words about one fault for two faults, larger ones make one of two.
const ALIKE: (f64, f64, f64) = (0.2, 100_000.0, 50e-6);
/// Differences until a jump has been told, and until a rate has: those of [`ClockWatch`].
const TELLING: (usize, usize) = (2, 4);
/// So many words about the own clock are remembered. Chosen by hand: with fewer, words of others about a fault may come when it is forgotten; with
/// more, old faults agree with new ones.
const REMEMBERED: usize = 8;

/// A word about a difference of clocks.
#[derive(Debug, Clone, Copy)]
struct DifferenceRemark {
    fault: ClockFault,
    /// The last difference before it, and the first one that it is about.
    between: (Time, Time),
    found: Time,
}

impl DifferenceRemark {
    /// Whether it may be about the same as another one.
    fn agrees(&self, other: &DifferenceRemark) -> bool {
        let near = |a: f64, b: f64, least: f64| (a - b).abs() <= least.max(ALIKE.0 * a.abs().max(b.abs()));
        match (self.fault, other.fault) {
            (ClockFault::Jumped(a), ClockFault::Jumped(b)) => {
                let at_once = self.between.0 <= other.between.1 && other.between.0 <= self.between.1;
                at_once && near(a, b, ALIKE.1)
            }
            (ClockFault::RunsAway(a), ClockFault::RunsAway(b)) => near(a, b, ALIKE.2),
            (ClockFault::StandsStill, ClockFault::StandsStill) => true,
            _ => false,
        }
    }
}

impl DifferenceRemark {
    /// Whether a word that agrees with this one may be about the same: of jumps it is known when they were, of rates only since when they are.
    fn may_still_show(&self, later: &DifferenceRemark) -> bool {
        matches!(self.fault, ClockFault::Jumped(_)) || later.between.1 < self.found + 2 * PATIENCE
    }
}

/// What is known of another clock: what it is ahead of this node's.
#[derive(Debug)]
struct Other {
    nearest: Nearest,
    latest: Option<Difference>,
    watch: ClockWatch,
    /// When the last differences were made.
    seen: [Time; TELLING.1],
    /// What has not been said yet.
    word: Option<DifferenceRemark>,
}

impl Other {
    fn new() -> Other {
        Other {
            nearest: Nearest::new(WINDOW),
            latest: None,
            watch: ClockWatch::new(ClockLimits::default()),
            seen: [0; TELLING.1],
            word: None,
        }
    }

    /// Takes the best difference of a window.
    fn observe(&mut self, best: Option<Difference>) {
        let Some(best) = best else { return };
        let [.., before, bad] = self.seen;
        if let Some(fault) = self.watch.observe(best.at, best.ahead as f64, best.uncertainty as f64) {
            // A jump is told by the difference after it.
            self.word.get_or_insert(DifferenceRemark { fault, between: (before, bad), found: best.at });
        }
        self.seen.rotate_left(1);
        self.seen[TELLING.1 - 1] = best.at;
        self.latest = Some(best);
    }

    /// Whether it would have said so by now.
    fn has_spoken(&self, word: &DifferenceRemark) -> bool {
        let needed = if matches!(word.fault, ClockFault::RunsAway(_)) { TELLING.1 } else { TELLING.0 };
        self.word.is_some() || self.seen[TELLING.1 - needed] >= word.between.1
    }
}

/// The clock of this node, number `own`, and the others.
#[derive(Debug)]
pub struct ClockKeeper {
    own: u32,
    others: BTreeMap<u32, Other>,
    /// What was said of the own clock: of some others it shows late.
    said: VecDeque<DifferenceRemark>,
}

/// A word about a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Remark {
    /// The number of its node.
    pub node: u32,
    /// When it was seen, by the clock of this node.
    pub at: Time,
    /// What is wrong.
    pub verdict: ClockFault,
}

/// All clocks at a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClockComparison {
    /// What the system time is ahead of this node's clock, in nanoseconds: median, mean, harmonic mean.
    pub system: [Option<f64>; 3],
    /// What each clock is ahead of the median, and what that can be wrong by, in nanoseconds: by number of the node, this one included.
    pub distances: Vec<(u32, f64, f64)>,
}

impl ClockKeeper {
    /// Of a node that has heard nothing.
    pub fn new(own: u32) -> ClockKeeper {
        ClockKeeper { own, others: BTreeMap::new(), said: VecDeque::new() }
    }

    /// Takes a round trip, with `correction` nanoseconds to be added to its difference: of clocks that gossip does not measure by.
    pub fn add(&mut self, trip: &RoundTrip, correction: i64) {
        let other = self.others.entry(trip.peer.0).or_insert_with(Other::new);
        let ended = other.nearest.add(trip, correction);
        other.observe(ended);
    }

    fn since(&self, now: Time, age: Time) -> impl Iterator<Item = (u32, &Other, Difference)> {
        self.others.iter().filter_map(move |(&node, other)| {
            let latest = other.latest.filter(|latest| now.saturating_sub(latest.at) <= age)?;
            Some((node, other, latest))
        })
    }

    /// All clocks as they are, at a time of this node's clock; `elapsed` is what it has counted since the clocks were set, for the harmonic mean.
    pub fn clocks(&self, now: Time, elapsed: f64) -> ClockComparison {
        let recent: Vec<(u32, f64, f64)> = self
            .since(now, OLDEST)
            .map(|(node, _, latest)| (node, latest.ahead as f64, latest.uncertainty as f64))
            .collect();
        if recent.is_empty() {
            return ClockComparison::default();
        }
        // Its own clock it knows exactly, but not those that it is compared with.
        let best = recent.iter().map(|clock| clock.2).fold(f64::INFINITY, f64::min);
        let all: Vec<(u32, f64, f64)> = [(self.own, 0.0, best)].into_iter().chain(recent).collect();
        let ahead: Vec<f64> = all.iter().map(|clock| clock.1).collect();
        let system =
            [SystemTime::Median, SystemTime::Mean, SystemTime::Harmonic].map(|how| system_time(&ahead, elapsed, how));
        let median = system[0].unwrap_or(0.0);
        let mut distances: Vec<_> = all.into_iter().map(|(node, ahead, doubt)| (node, ahead - median, doubt)).collect();
        distances.sort_by_key(|distance| distance.0);
        ClockComparison { system, distances }
    }

    /// What is new to say of any clock. Each difference is watched by itself, for they are made at different times: if the own clock jumps, all of them do, one
    /// after the other. So a word waits until all others have been compared with this clock since.
    pub fn compare(&mut self, now: Time) -> Vec<Remark> {
        for other in self.others.values_mut() {
            let ended = other.nearest.ended(now);
            other.observe(ended);
        }
        let mut remarks = Vec::new();
        while let Some(word) = self.ripe(now) {
            let agrees = |other: &Other| other.word.is_some_and(|own| own.agrees(&word));
            let agree: Vec<u32> =
                self.others.iter().filter(|(_, other)| agrees(other)).map(|(&node, _)| node).collect();
            let silent = self.since(now, PATIENCE).filter(|(_, other, _)| !agrees(other)).count();
            let all = agree.len() + silent;
            let late = self.said.iter().any(|said| said.agrees(&word) && said.may_still_show(&word));
            // Two clocks: which of them is wrong nobody knows. Then both are named.
            let two = self.others.len() == 1;
            let own = !late && (two || agree.len() > 1 && 2 * agree.len() > all);
            if own {
                remarks.push(Remark { node: self.own, at: now, verdict: opposite(word.fault) });
                self.said.push_front(word);
                self.said.truncate(REMEMBERED);
            }
            for node in agree {
                let Some(word) = self.others.get_mut(&node).and_then(|other| other.word.take()) else { continue };
                if !late && (!own || two) {
                    remarks.push(Remark { node, at: now, verdict: word.fault });
                }
            }
        }
        remarks
    }

    /// A word for which nothing more is waited.
    fn ripe(&self, now: Time) -> Option<DifferenceRemark> {
        let ripe = |word: &DifferenceRemark| {
            now.saturating_sub(word.found) > PATIENCE
                || self.since(now, PATIENCE).all(|(_, other, _)| other.has_spoken(word))
        };
        self.others.values().filter_map(|other| other.word).filter(ripe).min_by_key(|word| word.between.1)
    }
}

/// The same, of the clock that was compared with.
fn opposite(fault: ClockFault) -> ClockFault {
    match fault {
        ClockFault::Jumped(size) => ClockFault::Jumped(-size),
        // Who stands still sees all others gain all the time that passes.
        ClockFault::RunsAway(rate) if (rate - 1.0).abs() <= STILL => ClockFault::StandsStill,
        ClockFault::RunsAway(rate) => ClockFault::RunsAway(-rate),
        ClockFault::StandsStill => ClockFault::RunsAway(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gossip::NodeId;
    use crate::random::Random;

    const CLOCKS: u32 = 5;

    /// What is said in two minutes by node `own` of five clocks that show `clock(node, true time)`, both in nanoseconds.
    fn said(own: u32, clock: impl Fn(u32, u64) -> i64) -> (Vec<Remark>, ClockComparison) {
        let read = |node: u32, time: u64| (1_000_000_000_000 + time as i64 + clock(node, time)) as u64;
        let (mut keeper, mut remarks) = (ClockKeeper::new(own), Vec::new());
        let (mut seed, mut now) = (7_u64, 0);
        for step in 0..600_u64 {
            let time = step * SECOND / 5;
            let peer = (own + 1 + (step % u64::from(CLOCKS - 1)) as u32) % CLOCKS;
            // 20 us each way, and up to 50 more.
            let mut way = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                20_000 + (seed >> 33) % 50_000
            };
            let (there, back) = (way(), way());
            let (t1, t2) = (read(own, time), read(peer, time + there));
            let (t3, t4) = (read(peer, time + there + 10_000), read(own, time + there + 10_000 + back));
            keeper.add(&RoundTrip { peer: NodeId(peer), t1, t2, t3, t4 }, 0);
            now = t4;
            remarks.extend(keeper.compare(now));
        }
        (remarks, keeper.clocks(now, 1e12))
    }

    #[test]
    fn clocks_that_drift_are_none_to_speak_of() {
        let (remarks, clocks) =
            said(2, |node, time| i64::from(node) * 7_000_000 + (time as i64 / 1_000_000) * (20 * i64::from(node) - 40));
        assert_eq!(remarks, []);
        assert_eq!(clocks.distances.len(), CLOCKS as usize);
        for &(node, distance, doubt) in &clocks.distances {
            let expected = f64::from(node) * 7e6 + 120_000.0 * (20.0 * f64::from(node) - 40.0);
            let middle = 2.0 * 7e6;
            assert!((distance - expected + middle).abs() < doubt + 400_000.0, "{node}: {distance} {expected}");
        }
        assert!(clocks.system.iter().all(Option::is_some));
    }

    #[test]
    fn a_clock_that_jumps_is_named_by_all_its_own_node_too() {
        for own in 0..CLOCKS {
            let (remarks, _) = said(own, |node, time| if node == 3 && time > 60 * SECOND { 5_000_000 } else { 0 });
            let [Remark { node: 3, verdict: ClockFault::Jumped(size), .. }] = remarks[..] else {
                panic!("{own}: {remarks:?}")
            };
            assert!((size - 5e6).abs() < 1e6, "{own}: {size}");
        }
    }

    #[test]
    fn a_clock_that_runs_away_or_stands_still_is_named() {
        let (remarks, _) = said(1, |node, time| if node == 4 { time as i64 / 1_000 } else { 0 });
        assert!(matches!(remarks[..], [Remark { node: 4, verdict: ClockFault::RunsAway(_), .. }]), "{remarks:?}");
        let still = 60 * SECOND;
        let (remarks, _) = said(1, |node, time| if node == 0 { -(time.saturating_sub(still) as i64) } else { 0 });
        assert!(
            remarks.iter().any(|remark| (remark.node, remark.verdict) == (0, ClockFault::StandsStill)),
            "{remarks:?}"
        );
        assert!(remarks.iter().all(|remark| remark.node == 0), "{remarks:?}");
    }

    /// What is said in five minutes by node `own` of four clocks, which it meets once in so many tenths of a second: members of a group seldom that are no neighbours in its ring.
    fn said_by_few(own: u32, seed: u64, seldom: [u64; 3], clock: impl Fn(u32, u64) -> i64) -> Vec<Remark> {
        let mut random = Random::new(seed);
        let read = |node: u32, time: u64| (1_000_000_000_000 + time as i64 + clock(node, time)) as u64;
        let (mut keeper, mut remarks) = (ClockKeeper::new(own), Vec::new());
        for step in 0..3_000_u64 {
            let time = step * SECOND / 10 + random.below(1_000_000);
            for (near, seldom) in (1..).zip(seldom) {
                if random.below(seldom) > 0 {
                    continue;
                }
                let peer = (own + near) % 4;
                let (there, back) = (20_000 + random.below(50_000), 20_000 + random.below(50_000));
                let (t1, t2) = (read(own, time), read(peer, time + there));
                let (t3, t4) = (read(peer, time + there + 10_000), read(own, time + there + 10_000 + back));
                keeper.add(&RoundTrip { peer: NodeId(peer), t1, t2, t3, t4 }, 0);
            }
            remarks.extend(keeper.compare(read(own, time + 200_000)));
        }
        remarks
    }

    #[test]
    fn clocks_that_are_seldom_compared_are_watched_as_well() {
        for seed in 1..40 {
            for own in 0..4 {
                let jumps = |node, time| if node == 2 && time > 60 * SECOND { 50_000_000 } else { 0 };
                let remarks = said_by_few(own, seed, [20, 60, 60], jumps);
                let [Remark { node: 2, verdict: ClockFault::Jumped(size), at }] = remarks[..] else {
                    panic!("{seed}, {own}: {remarks:?}")
                };
                assert!((size - 5e7).abs() < 1e6, "{seed}, {own}: {size}");
                assert!(at < 1_000_000_000_000 + 120 * SECOND, "{seed}, {own}: {remarks:?}");
                assert_eq!(
                    said_by_few(own, seed, [20, 60, 60], |node, time| i64::from(node) * time as i64 / 50_000),
                    []
                );
                // One that is met too seldom shows it when the word has been said.
                let remarks = said_by_few(own, seed, [20, 60, 600], jumps);
                assert!(
                    remarks.len() <= 1 && remarks.iter().all(|remark| remark.node == 2),
                    "{seed}, {own}: {remarks:?}"
                );
            }
        }
    }

    #[test]
    fn who_comes_later_is_no_jump() {
        let mut keeper = ClockKeeper::new(0);
        let mut remarks = Vec::new();
        for step in 1..100_u64 {
            for peer in 1..(if step < 50 { 2 } else { 4 }) {
                let (t1, ahead) = (step * SECOND, u64::from(peer) * 3_600 * SECOND);
                let (t2, t3, t4) = (t1 + ahead + 20_000, t1 + ahead + 30_000, t1 + 50_000);
                keeper.add(&RoundTrip { peer: NodeId(peer), t1, t2, t3, t4 }, 0);
            }
            remarks.extend(keeper.compare(step * SECOND + 60_000));
        }
        assert_eq!(remarks, []);
    }
}
