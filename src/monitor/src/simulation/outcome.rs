//! What a run showed.

use crate::gossip::Time;

/// A node that was killed, and when others said so, after its death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detection {
    /// The node.
    pub node: u32,
    /// When the first node called it dead.
    pub first: Option<Time>,
    /// When all living nodes of its group that do not stand still just then had, or, if none is left, all nodes had called the group dead.
    pub group: Option<Time>,
    /// When all living nodes of the job had that do not stand still just then.
    pub all: Option<Time>,
}

/// Figures of a run, of the time after `settle`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// One per killed node.
    pub detections: Vec<Detection>,
    /// How often a node called one dead that lived and was reachable, or had been again for longer than the cleanup time.
    pub false_deaths: u64,
    /// How often a node called one of its group suspect that lived and ran.
    pub false_suspicions: u64,
    /// Nodes that a living node takes for dead at the end though they live, over all living nodes.
    pub wrong_at_end: u64,
    /// Living nodes that do not know all living nodes of their group at the end.
    pub incomplete_at_end: u64,
    /// Bits per second that a node sent on average, headers of UDP and IPv4 included.
    pub bits_per_second: f64,
    /// The same of the node that sent most.
    pub most_bits_per_second: f64,
    /// Packets per second that a node sent on average.
    pub packets_per_second: f64,
    /// Mean age of the data of the members of a node's group, in seconds, sampled at the end.
    pub data_age: f64,
    /// Round trips that were measured.
    pub round_trips: u64,
    /// Packets that were delivered in all.
    pub delivered: u64,
    /// Packets that nodes refused: forged, replayed, misdirected or malformed.
    pub refused: u64,
}
