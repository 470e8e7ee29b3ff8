//! What a node has to be told.

use super::types::{MILLISECOND, NodeId, Time};
use std::net::SocketAddr;

/// Largest number of bytes that one key can hold: a datum travels in one packet.
pub const MAX_DATUM: usize = 1_000;
/// Largest number of bytes of a name; longer ones are cut.
pub const MAX_NAME: usize = 64;
/// Most layers. Chosen by hand: even of groups of 8, that many layers hold more nodes than any machine has.
pub const MAX_LAYERS: usize = 8;

/// Members of a group that are not too many. Chosen by hand: in larger groups every node keeps and sends more, smaller ones take more layers, and
/// news longer.
const COMFORTABLE: u32 = 64;

/// Whether so many layers of groups of that size hold so many nodes.
fn holds(size: u32, layers: u32, nodes: u32) -> bool {
    u64::from(size).saturating_pow(layers) >= u64::from(nodes)
}

/// In which order a node picks those it gossips with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// At random.
    Random,
    /// At distances of 1, 2, 4, ... in the ring of live members, and every fourth time at random: what one node knows is
    /// with all after log2 of the group's size rounds if nothing is lost (Ranganathan, George, Todd, Chidester 2001).
    BinaryRoundRobin,
}

/// Parameters of a [`Node`](super::Node). All nodes of a job need the same `key`, `interval`, `group_sizes`, `nodes`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Number of this node.
    pub id: NodeId,
    /// Where others reach it.
    pub address: SocketAddr,
    /// What people call it, such as the host's name.
    pub name: String,
    /// Key of the job.
    pub key: [u8; 32],
    /// Larger at each start of the same node: the wall clock in nanoseconds will do.
    pub incarnation: u64,
    /// Seed of the choices at random.
    pub seed: u64,
    /// Time between two gossip messages of a node (T_gossip).
    pub interval: Time,
    /// Silence after which a node is suspected (T_cleanup). In layer l it is longer by
    /// 2 (l - 1) `upper_every` intervals for each doubling of the number of groups: for so long word of one is on its way.
    pub cleanup: Time,
    /// How long the consensus has to last before a node is dead.
    pub consensus: Time,
    /// How many must agree that a node is dead, this one included; half of a smaller group is enough. With 2, a node that is cut off alone calls nobody dead.
    pub witnesses: u32,
    /// Members of a group in each layer but the last: `[8]` makes groups of 8 nodes and one group of all these groups,
    /// `[46, 46]` three layers, an empty list a single layer.
    pub group_sizes: Vec<u32>,
    /// How many nodes the job has, 0 if that is not known: a last group of one or two members joins the group before it, in every layer.
    pub nodes: u32,
    /// Every how many intervals a node gossips in each higher layer too.
    pub upper_every: u32,
    /// One message in so many asks for an answer with times ([`RoundTrip`](super::RoundTrip)), in no pattern; 0 is never.
    pub probe_every: u32,
    /// So many empty packets follow each message within the group: whoever compares the times of packets finds them less disturbed than the first one after a pause.
    pub clock_packets: u32,
    /// An empty packet goes to the next living member of the group once in this time, whatever else is sent; 0 is never. The denser packets are, the better they tell when a clock has jumped.
    pub clock_every: Time,
    /// How long what has come may wait until the caller looks at it, while nobody is suspected and no nodes are meeting: see [`Node::may_wait`](super::Node::may_wait). 0 is not at all.
    pub gather: Time,
    /// Most bytes of data in a message, beside gossip list and matrix.
    pub budget: usize,
    /// Whether every node learns names and addresses of all nodes, not of its group alone.
    pub directory: bool,
    /// Order of targets.
    pub choice: Choice,
}

impl Config {
    /// The usual parameters: 100 ms gossip, 1 s until a node is suspected, all nodes in one group.
    pub fn new(id: NodeId, address: SocketAddr, key: [u8; 32]) -> Self {
        Config {
            id,
            address,
            name: format!("node {id}"),
            key,
            incarnation: 1,
            seed: u64::from(id.0),
            interval: 100 * MILLISECOND,
            cleanup: 1_000 * MILLISECOND,
            consensus: 100 * MILLISECOND,
            witnesses: 2,
            group_sizes: Vec::new(),
            nodes: 0,
            upper_every: 3,
            probe_every: 5,
            clock_packets: 0,
            clock_every: 0,
            gather: 50 * MILLISECOND,
            budget: 320,
            directory: true,
            choice: Choice::BinaryRoundRobin,
        }
    }

    /// Layers with groups of the same size, at most 64: one layer for up to 16 nodes; two, with groups of about the square root of the number of nodes, which is the cheapest
    /// size of two (see docs/monitor.md), for up to 4,096; three for up to 262,144, and so on. From three layers on nodes know names and addresses of
    /// their own group only (`directory`): those of all would take minutes to tell.
    pub fn layered(mut self, nodes: u32) -> Self {
        let layers = if nodes <= 16 { 1 } else { (2..).find(|&layers| holds(COMFORTABLE, layers, nodes)).unwrap_or(2) };
        let size = (2..COMFORTABLE).find(|&size| holds(size, layers, nodes)).unwrap_or(COMFORTABLE);
        self.group_sizes = vec![size; layers as usize - 1];
        self.nodes = nodes;
        self.directory &= layers < 3;
        self
    }

    /// The first thing that is wrong with these parameters.
    pub fn check(&self) -> Result<(), Unusable> {
        if self.id.0 == u32::MAX {
            Err(Unusable("the number of a node must be below 2^32 - 1"))
        } else if self.interval == 0 || self.cleanup < self.interval {
            Err(Unusable("the cleanup time must be at least one gossip interval, and the interval longer than zero"))
        } else if self.group_sizes.len() >= MAX_LAYERS {
            Err(Unusable("too many layers"))
        } else if self.group_sizes.iter().any(|&size| !(2..=4_096).contains(&size)) {
            Err(Unusable("a group has 2 to 4096 members"))
        } else if self.upper_every == 0 {
            Err(Unusable("higher layers must not gossip more often than the first"))
        } else if self.budget > 1_200 {
            Err(Unusable("the data of a message are at most 1200 bytes"))
        } else {
            Ok(())
        }
    }
}

/// Parameters that no node can work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub(crate) &'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_the_square_root_and_nonsense_is_refused() {
        let config = Config::new(NodeId(0), "10.0.0.1:1".parse().expect("an address"), [0; 32]);
        assert!(config.check().is_ok());
        assert!(config.clone().layered(16).group_sizes.is_empty());
        assert_eq!(config.clone().layered(64).group_sizes, [8]);
        assert_eq!(config.clone().layered(65).group_sizes, [9]);
        assert_eq!(config.clone().layered(4_096).group_sizes, [64]);
        assert!(config.clone().layered(4_096).directory);
        assert_eq!(config.clone().layered(4_097).group_sizes, [17, 17]);
        assert_eq!(config.clone().layered(100_000).group_sizes, [47, 47]);
        assert!(!config.clone().layered(100_000).directory);
        assert_eq!(config.clone().layered(u32::MAX).group_sizes, [41; 5]);
        assert!(Config { group_sizes: vec![1], ..config.clone() }.check().is_err());
        assert!(Config { interval: 0, ..config.clone() }.check().is_err());
        assert!(Config { upper_every: 0, ..config }.check().is_err());
    }
}
