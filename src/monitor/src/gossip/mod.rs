//! Failure detection by gossip with consensus, in layers, after GEMS (Raman, Raj, George et al. 2002), without sockets and
//! clocks: the caller hands in packets and times, and sends what it gets.
//!
//! Every node has a heartbeat. Once per interval it tells one other node which heartbeats it knows (the gossip list) and who
//! suspects whom (the suspect matrix). Who was silent for the cleanup time is suspected; who is suspected by all that are
//! not suspected themselves is dead, which all are told (the livelist's changes). Groups of nodes are entries of the
//! next layer, where the same happens with groups for nodes. Data travel along.

mod config;
mod identity;
mod intake;
mod layer;
mod message;
mod node;
mod outgoing;
mod peers;
mod records;
mod round;
mod seal;
mod sets;
mod shape;
mod status;
mod table;
mod types;

#[cfg(test)]
mod tests;

pub use config::{Choice, Config, MAX_DATUM, MAX_LAYERS, MAX_NAME, Unusable};
pub use node::{Node, NotPut};
pub use types::{
    Arrival, Counters, Event, EventKind, GroupView, KnownNode, Liveness, MILLISECOND, NodeId, Packet, RoundTrip,
    SECOND, Time,
};
