//! What a caller of the protocol sees: nodes, what became of them, packets, round trips, counters.

use std::fmt;
use std::net::SocketAddr;

/// Nanoseconds of the caller's clock. Only differences count, except in [`RoundTrip`], which hands the readings on.
pub type Time = u64;

/// One millisecond as [`Time`].
pub const MILLISECOND: Time = 1_000_000;
/// One second as [`Time`].
pub const SECOND: Time = 1_000_000_000;

/// Number of a node in its job. The caller gives it (rank among the nodes of a job, `SLURM_NODEID`); which group a node
/// belongs to in each layer follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What is known of whether a node, or a group of a higher layer, lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Liveness {
    /// Heard of within the cleanup time.
    Alive,
    /// This node has not heard of it for the cleanup time; others may have.
    Suspect,
    /// All nodes that are not suspected themselves suspect it, or some node told that they do.
    Dead,
    /// It said that it goes.
    Left,
}

impl Liveness {
    /// Whether the node counts as a member: it is alive as far as this node knows, or only suspected.
    pub fn is_there(self) -> bool {
        matches!(self, Liveness::Alive | Liveness::Suspect)
    }
}

/// A node as this node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNode<'a> {
    /// Its number in the job.
    pub id: NodeId,
    /// Where it receives packets.
    pub address: SocketAddr,
    /// The name that it gave itself, empty until it is known.
    pub name: &'a str,
    /// Whether it lives. Of nodes in other groups only deaths by consensus are known, not suspicions.
    pub liveness: Liveness,
    /// The newest counter heard of it: one more per gossip interval. Of nodes in other groups, that of its newest datum.
    pub heartbeat: u64,
    /// Since when `liveness` is what it is, by the caller's clock.
    pub since: Time,
    /// When the heartbeat rose last, by the caller's clock.
    pub heard: Time,
    /// Its data that are here, by key: what it gave to `put`.
    pub data: Vec<(u16, &'a [u8])>,
}

/// A group of a layer above the first, as this node knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupView {
    /// The layer in which the group is one entry: 2 for groups of nodes, 3 for groups of those, ...
    pub layer: u8,
    /// Its number among all groups of its size in the job.
    pub index: u32,
    /// Whether any node in it lives.
    pub liveness: Liveness,
    /// Since when.
    pub since: Time,
}

/// Something that happened to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When this node noticed, by the caller's clock.
    pub at: Time,
    /// What.
    pub kind: EventKind,
}

/// Kinds of [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A node was heard of for the first time.
    Joined(NodeId),
    /// This node has not heard of a node of its group for the cleanup time.
    Suspected(NodeId),
    /// A suspicion of this node was wrong.
    Cleared(NodeId),
    /// A node is dead by consensus, found here or told by another node.
    Dead(NodeId),
    /// A node that was dead, or had left, or was started anew, is there.
    Rejoined(NodeId),
    /// A node said that it goes.
    Left(NodeId),
    /// All nodes of a group are silent: layer and number as in [`GroupView`].
    GroupDead(u8, u32),
    /// A group that was dead is heard again.
    GroupBack(u8, u32),
}

/// A datagram to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Where to.
    pub to: SocketAddr,
    /// Its content, sealed.
    pub bytes: Vec<u8>,
    /// Its number among all packets of this node.
    pub sequence: u64,
}

/// A packet that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The sender.
    pub peer: NodeId,
    /// The sender's start.
    pub incarnation: u64,
    /// Its number among all packets of the sender.
    pub sequence: u64,
}

/// The four times of a request and its answer, as NTP names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Who answered.
    pub peer: NodeId,
    /// When this node sent the request, by its clock.
    pub t1: Time,
    /// When the peer received it, by the peer's clock.
    pub t2: Time,
    /// When the peer sent the answer, by the peer's clock.
    pub t3: Time,
    /// When this node received it, by its clock.
    pub t4: Time,
}

impl RoundTrip {
    /// Time on the way, there and back, in nanoseconds.
    pub fn delay(&self) -> i64 {
        (self.t4.wrapping_sub(self.t1) as i64).wrapping_sub(self.t3.wrapping_sub(self.t2) as i64)
    }

    /// What the peer's clock is ahead by, in nanoseconds, if both ways took the same time.
    pub fn offset(&self) -> i64 {
        let there = i128::from(self.t2) - i128::from(self.t1);
        let back = i128::from(self.t3) - i128::from(self.t4);
        ((there + back) / 2) as i64
    }
}

/// What came, went and was thrown away. Bytes are those of the datagrams' contents, without headers of UDP and IP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets given to the caller to send.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that were taken.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets without a valid seal of this job: of another key, changed on the way, or no packets of this protocol at all.
    pub forged: u64,
    /// Sealed packets that had been received already, or were older than what is remembered.
    pub replayed: u64,
    /// Sealed packets for another node, or for this node before it was started anew.
    pub misdirected: u64,
    /// Sealed packets whose content could not be read.
    pub malformed: u64,
    /// Times this node itself stood still for longer than its patience, as seen by the times of its calls.
    pub pauses: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_tells_delay_and_offset() {
        let trip = RoundTrip { peer: NodeId(1), t1: 100, t2: 5_110, t3: 5_130, t4: 140 };
        assert_eq!((trip.delay(), trip.offset()), (20, 5_000));
        let trip = RoundTrip { peer: NodeId(1), t1: 5_000, t2: 10, t3: 30, t4: 5_040 };
        assert_eq!((trip.delay(), trip.offset()), (20, -5_000));
    }
}
