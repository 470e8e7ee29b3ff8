//! What bounds on clocks come from.

use clc_trace::CollectiveOp;
use serde::{Deserialize, Serialize};

/// What a bound comes from. Kinds take different times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BoundKind(u16);

impl BoundKind {
    /// A message.
    pub const MESSAGE: BoundKind = BoundKind(0);
    /// Made of what was waited for on both sides, as if it were a message.
    pub const BOTH_SIDES: BoundKind = BoundKind(4 << 12);
    const COLLECTIVE: u16 = 1 << 12;
    const WAITED: u16 = 2 << 12;
    const BLOCKED: u16 = 3 << 12;

    /// A collective operation on a communicator of `size` members: the number of rounds is what its time depends on most.
    pub fn collective(op: CollectiveOp, size: u32) -> BoundKind {
        let rounds = u32::BITS - size.saturating_sub(1).leading_zeros();
        BoundKind(BoundKind::COLLECTIVE | u16::from(op.0 & 63) << 6 | rounds as u16)
    }

    /// A message of so many bytes for which its receiver waited: those of about the same length take the same time.
    pub fn waited(length: u64) -> BoundKind {
        BoundKind(BoundKind::WAITED | (u64::BITS - length.leading_zeros()) as u16)
    }

    /// From the post of a receive to the end of the send of so many bytes that was blocked until then.
    pub fn blocked(length: u64) -> BoundKind {
        BoundKind(BoundKind::BLOCKED | (u64::BITS - length.leading_zeros()) as u16)
    }
}
