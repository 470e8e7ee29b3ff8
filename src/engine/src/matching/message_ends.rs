//! One end of a message, and what belongs together by the rules of MPI.

use crate::matching::comm_index::CommIndex;
use clc_trace::MpiRank;

/// The rank with which OTF2 says "undefined".
pub(crate) const UNDEFINED_RANK: u32 = u32::MAX;

/// The process of a message whose peer is undefined or not in the communicator.
pub(crate) const NO_PROCESS: MpiRank = MpiRank(UNDEFINED_RANK);

/// What distinguishes the messages between two processes for the matching rules of MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey {
    /// The other process; [`NO_PROCESS`] within an [`Extractor`](crate::matching::extract::Extractor) only.
    pub peer: MpiRank,
    /// Communicator, as index into the definitions.
    pub comm: CommIndex,
    /// Message tag.
    pub tag: u32,
}

/// One end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageEnd {
    /// The visited event.
    pub event: u32,
    /// Its length in bytes, see [`short`]: good for comparing the two ends of a message, and for nothing else.
    pub length: u32,
}

/// A length in 32 bits: itself if it fits. Equal lengths stay equal.
pub(crate) fn short(length: u64) -> u32 {
    (length ^ length >> 32) as u32
}
