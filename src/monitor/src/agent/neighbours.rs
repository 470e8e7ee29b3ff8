//! The clocks of the nodes that this one gossips with: what they make together, and words about those that fail.

use crate::clocks::{ClockFault, ClockKeeper, Remark};
use crate::gossip::{NodeId, RoundTrip, SECOND, Time};
use crate::query::{ClockRemark, SystemClocks};
use crate::state::now;
use std::collections::VecDeque;

/// So many words are kept. Chosen by hand: more are for nobody to read; with fewer, what came first is forgotten sooner.
const MOST: usize = 64;
/// How long it takes at most until all nodes know what the system time of one is ahead by: it is read once a second.
const KNOWN: Time = 3 * SECOND;
/// What that changes by within this time if nobody sets the clock, in nanoseconds: by half a thousandth at most.
const SLEWED: u64 = 2_500_000;
/// Nanoseconds per second.
const NANOSECONDS: f64 = 1e9;

/// Both clocks of each node: the system time, which is set and slewed, and the raw one, by which recordings are made.
#[derive(Debug)]
pub(super) struct Neighbours {
    system: ClockKeeper,
    raw: ClockKeeper,
    /// Round trips with what the system time was ahead by there more than here, as far as it was known, until it is certain that it was.
    waiting: VecDeque<(RoundTrip, i64)>,
    remarks: Vec<ClockRemark>,
    /// When the job was started: seconds since 1970.
    begun: f64,
}

impl Neighbours {
    /// Of the agent of this number.
    pub(super) fn new(own: u32, begun: f64) -> Neighbours {
        let (system, raw) = (ClockKeeper::new(own), ClockKeeper::new(own));
        Neighbours { system, raw, waiting: VecDeque::new(), remarks: Vec::new(), begun }
    }

    /// Takes a round trip; `real_ahead` is what the system time is ahead of the raw clock there more than here, if that is known.
    pub(super) fn add(&mut self, trip: &RoundTrip, real_ahead: Option<i64>) {
        self.raw.add(trip, 0);
        if let Some(ahead) = real_ahead {
            self.waiting.push_back((*trip, ahead));
        }
    }

    /// Compares all clocks. Gives what is known of a node: what its system time is ahead of its raw clock more than here, and its name.
    pub(super) fn compare(
        &mut self,
        at: Time,
        real_ahead: impl Fn(NodeId) -> Option<i64>,
        name: impl Fn(NodeId) -> Option<String>,
    ) {
        while let Some(&(trip, ahead)) = self.waiting.front().filter(|(trip, _)| trip.t4 + KNOWN <= at) {
            self.waiting.pop_front();
            // One of the clocks was set in between, and nobody knows whether that was before the round trip.
            if real_ahead(trip.peer).is_some_and(|known| known.abs_diff(ahead) <= SLEWED) {
                self.system.add(&trip, ahead);
            }
        }
        let (system, raw) = (self.system.compare(at), self.raw.compare(at));
        let all = system.into_iter().map(|remark| ("system time", remark));
        for (clock, Remark { node, verdict, .. }) in all.chain(raw.into_iter().map(|remark| ("raw clock", remark))) {
            let remark = ClockRemark {
                time: now(),
                number: node,
                host: name(NodeId(node)).unwrap_or_default(),
                what: words(verdict),
                clock: clock.to_owned(),
            };
            if self.remarks.len() >= MOST {
                self.remarks.remove(0);
            }
            self.remarks.push(remark);
        }
    }

    /// The system time.
    pub(super) fn clocks(&self, at: Time) -> SystemClocks {
        let clocks = self.system.clocks(at, (now() - self.begun) * NANOSECONDS);
        let [median, mean, harmonic] = clocks.system.map(|ahead| ahead.map(|ahead| ahead / NANOSECONDS));
        let seconds = |&(node, distance, doubt): &(u32, f64, f64)| (node, distance / NANOSECONDS, doubt / NANOSECONDS);
        SystemClocks { median, mean, harmonic, distances: clocks.distances.iter().map(seconds).collect() }
    }

    /// Clocks that have failed, the latest last.
    pub(super) fn remarks(&self) -> Vec<ClockRemark> {
        self.remarks.clone()
    }
}

fn words(verdict: ClockFault) -> String {
    match verdict {
        ClockFault::Jumped(size) => {
            let direction = if size < 0.0 { "back" } else { "forward" };
            format!("jumped {direction} by {:.3} ms", size.abs() / 1e6)
        }
        ClockFault::RunsAway(rate) => format!("runs away: {:+.0} us per second", rate * 1e6),
        ClockFault::StandsStill => "stands still".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_time_that_was_set_is_not_the_raw_clock() {
        let mut neighbours = Neighbours::new(0, now());
        for step in 1..80_u64 {
            let set = |peer: NodeId| if peer == NodeId(2) && step > 30 { -3_000_000_000 } else { 0 };
            for peer in (1..4).map(NodeId) {
                let t1 = step * SECOND + u64::from(peer.0) * 1_000_000;
                let trip = RoundTrip { peer, t1, t2: t1 + 20_000, t3: t1 + 30_000, t4: t1 + 50_000 };
                neighbours.add(&trip, Some(set(peer)));
            }
            let name = |node| Some(format!("n{node}"));
            neighbours.compare(step * SECOND + 10_000_000, |peer| Some(set(peer)), name);
        }
        let [remark] = &neighbours.remarks()[..] else { panic!("{:?}", neighbours.remarks()) };
        assert_eq!((remark.host.as_str(), remark.clock.as_str()), ("n2", "system time"));
        assert_eq!(remark.what, "jumped back by 3000.000 ms");
        let clocks = neighbours.clocks(80 * SECOND);
        assert_eq!(clocks.distances.len(), 4);
        assert_eq!(clocks.median, Some(0.0));
        assert!((clocks.distances[2].1 + 3.0).abs() < 1e-3, "{:?}", clocks.distances);
    }

    #[test]
    fn a_raw_clock_that_jumps_is_not_the_system_time() {
        let mut neighbours = Neighbours::new(0, now());
        for step in 1..800_u64 {
            let (at, jumped) = (step * SECOND / 10, step > 305);
            // What its system time is ahead of it is known a second and a half later.
            let known = |peer: NodeId| if peer == NodeId(2) && step > 320 { -5_000_000 } else { 0 };
            for peer in (1..4).map(NodeId) {
                let there = if peer == NodeId(2) && jumped { 5_000_000 } else { 0 };
                let trip =
                    RoundTrip { peer, t1: at, t2: at + 20_000 + there, t3: at + 30_000 + there, t4: at + 50_000 };
                neighbours.add(&trip, Some(known(peer)));
            }
            neighbours.compare(at + 10_000_000, |peer| Some(known(peer)), |node| Some(format!("n{node}")));
        }
        let [remark] = &neighbours.remarks()[..] else { panic!("{:?}", neighbours.remarks()) };
        assert_eq!((remark.host.as_str(), remark.clock.as_str()), ("n2", "raw clock"));
    }
}
