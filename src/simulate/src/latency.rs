//! How long messages travel: minimum plus exponential tail plus size over bandwidth, per class of process pair.
//!
//! delay = minimum * route + Exp(tail) + bytes / bandwidth, where `route` is 1, or 1 + asymmetry for the slower
//! direction of a pair of nodes. Messages above the eager limit start when the receive is posted and its
//! clear-to-send has travelled back (rendezvous).

use crate::random::Random;
use crate::units::{LONGEST, SECOND};
use clc_trace::{Error, Result};

/// The transport between one class of process pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairClass {
    /// Shortest delay of an empty message, in picoseconds.
    pub minimum: i64,
    /// Mean of the exponentially distributed delay on top of it, in picoseconds.
    pub tail: i64,
    /// Bytes per second.
    pub bandwidth: u64,
}

/// The transport of the whole machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyModel {
    /// Between processes of one node.
    pub same_node: PairClass,
    /// Between processes of different nodes.
    pub other_node: PairClass,
    /// Largest message, in bytes, that is sent without waiting for its receive.
    pub eager_limit: u64,
    /// How much longer the minimum delay is in one direction of each pair of nodes than in the other: 0 is a
    /// symmetric network, 0.5 is 50 % longer from the node with the higher number to the one with the lower.
    pub asymmetry: f64,
}

impl Default for LatencyModel {
    /// A cluster of today: 0.3 us within a node, 2 us between nodes, 10 GB/s each, eager up to 16 KiB.
    fn default() -> Self {
        LatencyModel {
            same_node: PairClass { minimum: 300_000, tail: 100_000, bandwidth: 10_000_000_000 },
            other_node: PairClass { minimum: 2_000_000, tail: 1_000_000, bandwidth: 10_000_000_000 },
            eager_limit: 16 * 1024,
            asymmetry: 0.0,
        }
    }
}

impl LatencyModel {
    /// Checks that all figures are possible.
    ///
    /// # Errors
    /// Negative or overlong delays, a bandwidth of less than 1 MB/s, an asymmetry outside 0 to 10.
    pub fn validate(&self) -> Result<()> {
        for (name, class) in [("within a node", self.same_node), ("between nodes", self.other_node)] {
            for (what, time) in [("minimum latency", class.minimum), ("latency tail", class.tail)] {
                if !(0..=SECOND).contains(&time) {
                    return Err(Error::new(format!("the {what} {name} is {time} ps")).hint("allowed: 0 to 1 s"));
                }
            }
            if class.bandwidth < 1_000_000 {
                return Err(Error::new(format!("the bandwidth {name} is {} bytes/s", class.bandwidth))
                    .hint("at least 1000000 bytes/s"));
            }
        }
        if !(0.0..=10.0).contains(&self.asymmetry) {
            return Err(Error::new(format!("the asymmetry of routes is {}", self.asymmetry)).hint("allowed: 0 to 10"));
        }
        Ok(())
    }
}

/// The model prepared for fast use.
#[derive(Debug, Clone)]
pub(super) struct PreparedLatencyModel {
    /// Minimum delays: same node, other node, other node in the slower direction.
    minimum: [i64; 3],
    tail: [i64; 3],
    /// Picoseconds per byte in units of 2^-16.
    per_byte: [i64; 3],
    pub(super) eager_limit: u64,
}

impl PreparedLatencyModel {
    pub(super) fn new(model: &LatencyModel) -> Self {
        let per_byte = |class: &PairClass| ((i128::from(SECOND) << 16) / i128::from(class.bandwidth.max(1))) as i64;
        let (near, far) = (&model.same_node, &model.other_node);
        let slow = far.minimum + (far.minimum as f64 * model.asymmetry) as i64;
        PreparedLatencyModel {
            minimum: [near.minimum, far.minimum, slow],
            tail: [near.tail, far.tail, far.tail],
            per_byte: [per_byte(near), per_byte(far), per_byte(far)],
            eager_limit: model.eager_limit,
        }
    }

    #[inline]
    fn class(from: u32, to: u32) -> usize {
        usize::from(from != to) + usize::from(from > to)
    }

    /// Shortest delay from node `from` to node `to`, in picoseconds.
    #[inline]
    pub(super) fn minimum(&self, from: u32, to: u32) -> i64 {
        self.minimum[Self::class(from, to)]
    }

    /// A random delay of a message of `bytes` from node `from` to node `to`, in picoseconds.
    #[inline]
    pub(super) fn delay(&self, from: u32, to: u32, bytes: u64, random: &mut Random) -> i64 {
        let class = Self::class(from, to);
        self.minimum[class] + random.exponential(self.tail[class]) + self.transfer_in(class, bytes)
    }

    /// How long `bytes` occupy the sender, in picoseconds.
    #[inline]
    pub(super) fn transfer(&self, from: u32, to: u32, bytes: u64) -> i64 {
        self.transfer_in(Self::class(from, to), bytes)
    }

    #[inline]
    fn transfer_in(&self, class: usize, bytes: u64) -> i64 {
        ((i128::from(bytes) * i128::from(self.per_byte[class])) >> 16).min(i128::from(LONGEST)) as i64
    }

    /// A random delay of one member's part in a collective over `hops` stages of messages, in picoseconds: never
    /// shorter than the longest minimum between any two members.
    pub(super) fn collective(&self, several_nodes: bool, hops: u32, bytes: u64, random: &mut Random) -> i64 {
        let class = if several_nodes { 2 } else { 0 };
        let minimum = self.minimum[class].max(self.minimum[0]);
        minimum * i64::from(hops.max(1)) + random.exponential(self.tail[class]) + self.transfer_in(class, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_follow_the_model() {
        let model = LatencyModel { asymmetry: 0.5, ..LatencyModel::default() };
        let network = PreparedLatencyModel::new(&model);
        let mut random = Random::new(3, &[]);
        assert_eq!(network.minimum(0, 0), 300_000);
        assert_eq!(network.minimum(0, 1), 2_000_000);
        assert_eq!(network.minimum(1, 0), 3_000_000);
        let n = 100_000;
        let mut sum = 0;
        for _ in 0..n {
            let delay = network.delay(0, 1, 1000, &mut random);
            assert!(delay >= 2_000_000 + 100_000);
            sum += delay;
        }
        // 2 us + 1 us mean tail + 1000 bytes at 100 ps
        assert!((sum as f64 / f64::from(n) - 3.1e6).abs() < 2e4);
    }

    #[test]
    fn impossible_models_are_refused() {
        let good = LatencyModel::default();
        assert!(good.validate().is_ok());
        let negative = LatencyModel { other_node: PairClass { minimum: -1, ..good.other_node }, ..good };
        let text = negative.validate().map_err(|e| e.to_string());
        assert!(text.is_err_and(|t| t.contains("minimum latency between nodes") && t.contains("0 to 1 s")));
        assert!(LatencyModel { asymmetry: f64::NAN, ..good }.validate().is_err());
        assert!(LatencyModel { same_node: PairClass { bandwidth: 0, ..good.same_node }, ..good }.validate().is_err());
    }
}
