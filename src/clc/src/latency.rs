//! Minimum latencies μ.

use clc_trace::{CommRank, Ticks};
use serde::{Deserialize, Serialize};

/// The smallest time that a message can take, by class of pair. 0 means: not received before it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinimumLatency {
    /// Between processes of one node.
    pub same_node: Ticks,
    /// Between processes of different nodes.
    pub other_node: Ticks,
}

impl MinimumLatency {
    /// μ of a pair.
    pub fn of_pair(&self, node_a: u32, node_b: u32) -> Ticks {
        if node_a == node_b { self.same_node } else { self.other_node }
    }

    /// The smallest μ of the pair classes that occur: what a maximum over several senders is entitled to.
    pub fn smallest(&self, same_node_occurs: bool, other_node_occurs: bool) -> Ticks {
        match (same_node_occurs, other_node_occurs) {
            (true, true) => self.same_node.min(self.other_node),
            (true, false) => self.same_node,
            (false, _) => self.other_node,
        }
    }
}

/// Where minimum latencies come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyBasis {
    /// They were given, or not asked for.
    #[default]
    Given,
    /// The shortest message within nodes, and between them the quickest round trips.
    RoundTrips,
    /// As before, but no more than what every message takes by clocks that leave no violation.
    Limited,
    /// Round trips are too few or begin nowhere sharply: zero.
    Unclear,
}

/// How the members of one communicator are spread over nodes, as far as μ depends on it.
#[derive(Debug, Clone)]
pub struct Spread {
    /// Node of each member, in communicator-rank order.
    nodes: Vec<u32>,
    /// Number of members on each member's node, itself included.
    mates: Vec<u32>,
}

impl Spread {
    /// From the node of each member, in communicator-rank order.
    pub fn new(nodes: Vec<u32>) -> Self {
        let mut count = std::collections::HashMap::new();
        for node in &nodes {
            *count.entry(*node).or_insert(0u32) += 1;
        }
        let mates = nodes.iter().map(|node| count[node]).collect();
        Spread { nodes, mates }
    }

    /// The same members in the opposite order.
    pub fn reversed(&self) -> Spread {
        let reversed = |list: &[u32]| list.iter().rev().copied().collect();
        Spread { nodes: reversed(&self.nodes), mates: reversed(&self.mates) }
    }

    /// μ where the members' times meet in one maximum (N-to-N, scan): the smallest over all pairs of distinct members.
    pub fn all_pairs(&self, latency: &MinimumLatency) -> Ticks {
        let same = self.mates.iter().any(|&mates| mates > 1);
        let other = self.mates.iter().any(|&mates| (mates as usize) < self.nodes.len());
        latency.smallest(same, other)
    }

    /// μ of an N-to-1 operation: the smallest over the pairs with `root`.
    pub fn pairs_with(&self, root: CommRank, latency: &MinimumLatency) -> Ticks {
        let mates = self.mates[root] as usize;
        latency.smallest(mates > 1, mates < self.nodes.len())
    }

    /// μ between two members.
    pub fn pair(&self, a: CommRank, b: CommRank, latency: &MinimumLatency) -> Ticks {
        latency.of_pair(self.nodes[a], self.nodes[b])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_latency_of_the_pairs_involved_counts() {
        let latency = MinimumLatency { same_node: Ticks(3), other_node: Ticks(10) };
        let spread = Spread::new(vec![0, 0, 1]);
        assert_eq!(spread.all_pairs(&latency), Ticks(3));
        assert_eq!(spread.pairs_with(CommRank(0), &latency), Ticks(3));
        assert_eq!(spread.pairs_with(CommRank(2), &latency), Ticks(10));
        assert_eq!(spread.pair(CommRank(0), CommRank(2), &latency), Ticks(10));
        assert_eq!(Spread::new(vec![4, 5]).all_pairs(&latency), Ticks(10));
        assert_eq!(Spread::new(vec![4, 4]).all_pairs(&latency), Ticks(3));
    }
}
