//! All clocks that a node hears of, watched while a job runs: the time that they make together, what each is ahead of it, and a word about one that fails.

use super::{ClockFault, ClockLimits, ClockWatch, Difference, Nearest, SystemTime, system_time};
use crate::gossip::{RoundTrip, SECOND, Time};
use std::collections::BTreeMap;

/// Of the round trips of so long a time the quickest counts, and so often clocks are compared.
const WINDOW: Time = 2 * SECOND;
/// A difference that is older says nothing of now.
const OLDEST: Time = 20 * SECOND;

/// What is known of another clock.
#[derive(Debug)]
struct Other {
    nearest: Nearest,
    latest: Option<Difference>,
    /// What it was ahead by when clocks were compared for the first time.
    first: i64,
    watch: ClockWatch,
    /// When the difference was made that was looked at last.
    seen: Time,
}

impl Other {
    fn new() -> Other {
        Other {
            nearest: Nearest::new(WINDOW),
            latest: None,
            first: 0,
            watch: ClockWatch::new(ClockLimits::default()),
            seen: 0,
        }
    }
}

/// The clock of this node, number `own`, and the others.
#[derive(Debug)]
pub struct ClockKeeper {
    own: u32,
    others: BTreeMap<u32, Other>,
    watch: ClockWatch,
    /// When clocks were compared last, and which there were.
    compared: Option<(Time, Vec<u32>)>,
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
        ClockKeeper { own, others: BTreeMap::new(), watch: ClockWatch::new(ClockLimits::default()), compared: None }
    }

    /// Takes a round trip, with `correction` nanoseconds to be added to its difference: of clocks that gossip does not measure by.
    pub fn add(&mut self, trip: &RoundTrip, correction: i64) {
        let other = self.others.entry(trip.peer.0).or_insert_with(Other::new);
        if let Some(mut difference) = other.nearest.add(trip) {
            difference.ahead = difference.ahead.saturating_add(correction);
            other.latest = Some(difference);
        }
    }

    fn recent(&self, now: Time) -> impl Iterator<Item = (u32, &Other, Difference)> {
        self.others.iter().filter_map(move |(&node, other)| {
            let latest = other.latest.filter(|latest| now.saturating_sub(latest.at) <= OLDEST)?;
            Some((node, other, latest))
        })
    }

    /// All clocks as they are, at a time of this node's clock; `elapsed` is what it has counted since the clocks were set, for the harmonic mean.
    pub fn clocks(&self, now: Time, elapsed: f64) -> ClockComparison {
        let recent: Vec<(u32, f64, f64)> =
            self.recent(now).map(|(node, _, latest)| (node, latest.ahead as f64, latest.uncertainty as f64)).collect();
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

    /// Compares the clocks if it is time: what is new to say of any.
    pub fn compare(&mut self, now: Time) -> Vec<Remark> {
        if self.compared.as_ref().is_some_and(|(at, _)| now.saturating_sub(*at) < WINDOW) {
            return Vec::new();
        }
        let there: Vec<u32> = self.recent(now).map(|(node, ..)| node).collect();
        // Two clocks: which of them is wrong nobody knows. Then both are far from the middle, and both are named.
        let same = self.compared.as_ref().is_some_and(|(_, before)| *before == there);
        self.compared = Some((now, there.clone()));
        if there.is_empty() {
            return Vec::new();
        }
        if !same {
            // Another set of clocks has another middle, which is no jump of any: it begins anew.
            self.watch = ClockWatch::new(ClockLimits::default());
            for (_, other) in self.others.iter_mut().filter(|(node, _)| there.contains(node)) {
                other.watch = ClockWatch::new(ClockLimits::default());
                other.first = other.latest.map_or(0, |latest| latest.ahead);
            }
        }
        let moved = |other: &Other, latest: &Difference| latest.ahead.saturating_sub(other.first) as f64;
        let mut ahead: Vec<f64> = self.recent(now).map(|(_, other, latest)| moved(other, &latest)).collect();
        ahead.push(0.0);
        let Some(median) = system_time(&ahead, 0.0, SystemTime::Median) else { return Vec::new() };
        let doubts: Vec<f64> = self.recent(now).map(|(_, _, latest)| latest.uncertainty as f64).collect();
        let doubt = doubts.iter().copied().fold(f64::INFINITY, f64::min);
        let mut remarks = Vec::new();
        if let Some(verdict) = self.watch.observe(now, -median, doubt) {
            remarks.push(Remark { node: self.own, at: now, verdict });
        }
        for (&node, other) in self.others.iter_mut().filter(|(node, _)| there.contains(node)) {
            // One that is looked at again would seem to stand, and to make up for it later.
            let Some(latest) = other.latest.filter(|latest| latest.at > other.seen) else { continue };
            let distance = moved(other, &latest) - median;
            other.seen = latest.at;
            if let Some(verdict) = other.watch.observe(latest.at, distance, latest.uncertainty as f64) {
                remarks.push(Remark { node, at: now, verdict });
            }
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gossip::NodeId;

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
