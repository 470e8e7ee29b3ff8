//! The clocks of the nodes that this one gossips with: what they make together, and words about those that fail.

use crate::clocks::{ClockFault, ClockKeeper, Remark};
use crate::gossip::{RoundTrip, Time};
use crate::query::{ClockRemark, SystemClocks};
use crate::state::now;

/// So many words are kept.
const MOST: usize = 64;
/// Nanoseconds per second.
const NANOSECONDS: f64 = 1e9;

/// Both clocks of each node: the system time, which is set and slewed, and the raw one, by which recordings are made.
#[derive(Debug)]
pub struct Neighbours {
    system: ClockKeeper,
    raw: ClockKeeper,
    remarks: Vec<ClockRemark>,
    /// When the job was started: seconds since 1970.
    begun: f64,
}

impl Neighbours {
    /// Of the agent of this number.
    pub fn new(own: u32, begun: f64) -> Neighbours {
        Neighbours { system: ClockKeeper::new(own), raw: ClockKeeper::new(own), remarks: Vec::new(), begun }
    }

    /// Takes a round trip; `real_ahead` is what the system time is ahead of the raw clock there more than here, if that is known.
    pub fn add(&mut self, trip: &RoundTrip, real_ahead: Option<i64>) {
        self.raw.add(trip, 0);
        if let Some(ahead) = real_ahead {
            self.system.add(trip, ahead);
        }
    }

    /// Compares all clocks if it is time.
    pub fn compare(&mut self, at: Time, name: impl Fn(u32) -> String) {
        let (system, raw) = (self.system.compare(at), self.raw.compare(at));
        let all = system.into_iter().map(|remark| ("system time", remark));
        for (clock, Remark { node, verdict, .. }) in all.chain(raw.into_iter().map(|remark| ("raw clock", remark))) {
            let remark = ClockRemark {
                time: now(),
                number: node,
                host: name(node),
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
    pub fn clocks(&self, at: Time) -> SystemClocks {
        let clocks = self.system.clocks(at, (now() - self.begun) * NANOSECONDS);
        let [median, mean, harmonic] = clocks.system.map(|ahead| ahead.map(|ahead| ahead / NANOSECONDS));
        let seconds = |&(node, distance, doubt): &(u32, f64, f64)| (node, distance / NANOSECONDS, doubt / NANOSECONDS);
        SystemClocks { median, mean, harmonic, distances: clocks.distances.iter().map(seconds).collect() }
    }

    /// Clocks that have failed, the latest last.
    pub fn remarks(&self) -> Vec<ClockRemark> {
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
    use crate::gossip::{NodeId, SECOND};

    #[test]
    fn a_system_time_that_was_set_is_not_the_raw_clock() {
        let mut neighbours = Neighbours::new(0, now());
        for step in 1..60_u64 {
            for peer in 1..4 {
                let t1 = step * SECOND + u64::from(peer) * 1_000_000;
                let trip = RoundTrip { peer: NodeId(peer), t1, t2: t1 + 20_000, t3: t1 + 30_000, t4: t1 + 50_000 };
                let set = if peer == 2 && step > 30 { -3_000_000_000 } else { 0 };
                neighbours.add(&trip, Some(set));
            }
            neighbours.compare(step * SECOND + 10_000_000, |node| format!("n{node}"));
        }
        let [remark] = &neighbours.remarks()[..] else { panic!("{:?}", neighbours.remarks()) };
        assert_eq!((remark.host.as_str(), remark.clock.as_str()), ("n2", "system time"));
        assert_eq!(remark.what, "jumped back by 3000.000 ms");
        let clocks = neighbours.clocks(60 * SECOND);
        assert_eq!(clocks.distances.len(), 4);
        assert_eq!(clocks.median, Some(0.0));
        assert!((clocks.distances[2].1 + 3.0).abs() < 1e-3, "{:?}", clocks.distances);
    }
}
