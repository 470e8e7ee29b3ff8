//! The clocks of the nodes that this one gossips with: what they make together, and words about those that fail.

use super::leads::{Lead, LeadThen, Leads};
use crate::clocks::{ClockFault, ClockKeeper, Remark};
use crate::gossip::{NodeId, RoundTrip, SECOND, Time};
use crate::query::{ClockRemark, SystemClocks};
use crate::state::now;
use std::collections::BTreeMap;

/// So many words are kept. Chosen by hand: more are for nobody to read; with fewer, what came first is forgotten sooner.
const MOST: usize = 64;
/// So long a round trip waits until it is known what the system times were ahead by. Chosen by hand: news of a reading, and of the one after it, takes three seconds as a rule; longer keeps round trips with nodes
/// that do not tell it.
const PATIENCE: Time = 10 * SECOND;
/// Nanoseconds per second.
const NANOSECONDS: f64 = 1e9;

/// Both clocks of each node: the system time, which is set and slewed, and the raw one, by which recordings are made.
#[derive(Debug)]
pub(super) struct Neighbours {
    own: NodeId,
    system: ClockKeeper,
    raw: ClockKeeper,
    /// What the system time of each node is ahead of its raw clock, and round trips for which that is not known yet.
    leads: BTreeMap<NodeId, Leads>,
    waiting: Vec<RoundTrip>,
    remarks: Vec<ClockRemark>,
    /// When the job was started: seconds since 1970.
    begun: f64,
}

impl Neighbours {
    /// Of the agent of this number.
    pub(super) fn new(own: u32, begun: f64) -> Neighbours {
        let (system, raw) = (ClockKeeper::new(own), ClockKeeper::new(own));
        Neighbours {
            own: NodeId(own),
            system,
            raw,
            leads: BTreeMap::new(),
            waiting: Vec::new(),
            remarks: Vec::new(),
            begun,
        }
    }

    /// Takes a reading of a node, this one or another, which may be known already.
    pub(super) fn lead(&mut self, node: NodeId, lead: Lead) {
        self.leads.entry(node).or_default().add(lead);
    }

    /// What the system time of a node is ahead of its raw clock more than here, as of the latest readings.
    pub(super) fn leads_by(&self, node: NodeId) -> Option<i64> {
        let latest = |node: NodeId| self.leads.get(&node)?.latest();
        latest(node)?.checked_sub(latest(self.own)?)
    }

    /// Takes a round trip.
    pub(super) fn add(&mut self, trip: &RoundTrip) {
        self.raw.add(trip, 0);
        self.waiting.push(*trip);
    }

    /// Compares all clocks. Gives the names of nodes.
    pub(super) fn compare(&mut self, at: Time, name: impl Fn(NodeId) -> Option<String>) {
        let Neighbours { own, system, leads, waiting, .. } = self;
        let then = |node: NodeId, raw: Time| leads.get(&node).map_or(LeadThen::NotYet, |leads| leads.at(raw));
        waiting.retain(|trip| {
            let there = then(trip.peer, trip.t2 + trip.t3.saturating_sub(trip.t2) / 2);
            let here = then(*own, trip.t1 + trip.t4.saturating_sub(trip.t1) / 2);
            match (there, here) {
                (LeadThen::Known(there), LeadThen::Known(here)) => system.add(trip, there - here),
                (LeadThen::Never, _) | (_, LeadThen::Never) => {}
                _ => return trip.t4.saturating_add(PATIENCE) > at,
            }
            false
        });
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

    /// What is known after so many tenths of a second at node 0 of four that have a round trip with it in each of them: `raw` and `system` are what the clocks of a node show more than the true time, in
    /// nanoseconds, at that time. Readings are told a second and a half late.
    fn known_after(tenths: u64, raw: impl Fn(u32, u64) -> i64, system: impl Fn(u32, u64) -> i64) -> Neighbours {
        let mut neighbours = Neighbours::new(0, now());
        for step in 100..tenths + 100 {
            let at = step * SECOND / 10;
            let by_raw = |node: u32, time: u64| time.wrapping_add_signed(raw(node, time));
            for node in 0..4 {
                if step % 10 == u64::from(node) && step > 115 {
                    let read = at - 3 * SECOND / 2;
                    let lead = Lead { raw: by_raw(node, read), ahead: system(node, read) - raw(node, read) };
                    neighbours.lead(NodeId(node), lead);
                }
            }
            for peer in 1..4_u32 {
                let sent = at + u64::from(peer) * 1_000_000;
                let [t1, t4] = [sent, sent + 50_000].map(|time| by_raw(0, time));
                let [t2, t3] = [sent + 20_000, sent + 30_000].map(|time| by_raw(peer, time));
                neighbours.add(&RoundTrip { peer: NodeId(peer), t1, t2, t3, t4 });
            }
            if step.is_multiple_of(10) {
                neighbours.compare(by_raw(0, at + 10_000_000), |node| Some(format!("n{node}")));
            }
        }
        neighbours
    }

    fn only_remark(neighbours: &Neighbours) -> (String, String, String) {
        let [remark] = &neighbours.remarks()[..] else { panic!("{:?}", neighbours.remarks()) };
        (remark.host.clone(), remark.clock.clone(), remark.what.clone())
    }

    fn named(host: &str, clock: &str, what: &str) -> (String, String, String) {
        (host.to_owned(), clock.to_owned(), what.to_owned())
    }

    #[test]
    fn a_system_time_that_was_set_is_not_the_raw_clock() {
        let set = |node: u32, time: u64| if node == 2 && time > 40 * SECOND { -3_000_000_000 } else { 0 };
        let neighbours = known_after(800, |_, _| 0, set);
        assert_eq!(only_remark(&neighbours), named("n2", "system time", "jumped back by 3000.000 ms"));
        let clocks = neighbours.clocks(90 * SECOND);
        assert_eq!(clocks.distances.len(), 4);
        assert_eq!(clocks.median, Some(0.0));
        assert!((clocks.distances[2].1 + 3.0).abs() < 1e-3, "{:?}", clocks.distances);
    }

    #[test]
    fn a_raw_clock_that_jumps_is_not_the_system_time() {
        let jumped = |node: u32, time: u64| if node == 2 && time > 40 * SECOND { 5_000_000 } else { 0 };
        let (host, clock, what) = only_remark(&known_after(800, jumped, |_, _| 0));
        assert_eq!((host.as_str(), clock.as_str()), ("n2", "raw clock"));
        assert!(what.starts_with("jumped forward by "), "{what}");
    }

    /// Before, a round trip counted for the system times only if they were the same three seconds later: one that ran away by more than 0.8 ms per second, or stood still, was never compared any more.
    #[test]
    fn a_system_time_that_runs_away_or_stands_still_is_named_here_and_there() {
        for node in [0, 2] {
            for (gained, what) in [(0.001, "runs away: +1000 us per second"), (-1.0, "stands still")] {
                let from = 40 * SECOND;
                let wrong = |of: u32, time: u64| {
                    if of == node { (time.saturating_sub(from) as f64 * gained) as i64 } else { 0 }
                };
                let neighbours = known_after(900, |_, _| 0, wrong);
                assert_eq!(only_remark(&neighbours), named(&format!("n{node}"), "system time", what));
            }
        }
    }

    #[test]
    fn a_raw_clock_that_runs_away_is_not_the_system_time() {
        let runs = |node: u32, time: u64| if node == 2 { time.saturating_sub(40 * SECOND) as i64 / 1000 } else { 0 };
        let neighbours = known_after(900, runs, |_, _| 0);
        assert_eq!(only_remark(&neighbours), named("n2", "raw clock", "runs away: +1000 us per second"));
    }
}
