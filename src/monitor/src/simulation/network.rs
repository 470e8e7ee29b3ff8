//! The simulated network: who reaches whom, what is lost, how long it takes.

use super::GossipScenario;
use crate::gossip::Time;
use crate::random::Random;
use std::ops::Range;

/// Loss, delay, and cuts that end.
#[derive(Debug)]
pub(super) struct Network {
    random: Random,
    loss: u32,
    delay: Time,
    jitter: Time,
    cuts: Vec<(Range<u32>, Time)>,
}

impl Network {
    pub(super) fn new(scenario: &GossipScenario) -> Self {
        let GossipScenario { loss, delay, jitter, seed, .. } = *scenario;
        Network { random: Random::new(seed ^ 0x006e_6574), loss, delay, jitter, cuts: Vec::new() }
    }

    /// Separates nodes from all others until then.
    pub(super) fn cut(&mut self, nodes: Range<u32>, until: Time) {
        self.cuts.push((nodes, until));
    }

    /// When a packet that is sent now arrives, if it does.
    pub(super) fn arrival(&mut self, now: Time, from: u32, to: u32) -> Option<Time> {
        let severed =
            |(nodes, until): &(Range<u32>, Time)| now < *until && nodes.contains(&from) != nodes.contains(&to);
        if self.cuts.iter().any(severed) || self.random.below(1_000_000) < u64::from(self.loss) {
            return None;
        }
        Some(now + self.delay + exponential(&mut self.random, self.jitter))
    }
}

/// An exponentially distributed time.
pub(super) fn exponential(random: &mut Random, mean: Time) -> Time {
    let uniform = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
    (-(1.0 - uniform).ln() * mean as f64) as Time
}
