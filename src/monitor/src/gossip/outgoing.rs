//! What waits to be sent.

use super::message::{Contact, RecordKey};
use super::types::Time;
use std::net::SocketAddr;

/// A packet that is made when the caller asks for it, so that its time is that of sending.
#[derive(Debug, Clone)]
pub(crate) enum Outgoing {
    /// Asks whoever is there.
    Join(SocketAddr),
    /// Answers that.
    Welcome(Contact),
    /// Gossip to somebody who does not know this node yet.
    Hello(Contact),
    Gossip(Contact),
    /// Gossip to a node of a group that has been silent, which is to answer with its own.
    Question(Contact),
    /// Gossip list and suspect matrix of the group alone.
    Suspicions(Contact),
    /// Records for a newcomer, and others whom it should know.
    Everything(Contact, Vec<RecordKey>),
    /// These records at once.
    News(Contact, Vec<RecordKey>),
    /// The times of a probe: t1, t2.
    Answer(Contact, Time, Time),
}
