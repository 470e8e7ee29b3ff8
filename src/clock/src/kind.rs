//! What bounds on clocks come from.

use clc_trace::{CollectiveOp, LengthClass};
use serde::{Deserialize, Serialize};

/// What a bound comes from. Kinds take different times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BoundKind(u16);

impl BoundKind {
    /// A message of which the length is not known.
    pub const MESSAGE: BoundKind = BoundKind(0);
    /// Made of what was waited for on both sides, as if it were a message.
    pub(crate) const BOTH_SIDES: BoundKind = BoundKind(4 << 12);
    const ENDS: u16 = 5 << 12;
    /// [`BoundKind::ends`] of clocks that traffic ties anyway, by all operations alike: where to begin with them.
    pub const ENDS_OF_TIED: BoundKind = BoundKind(6 << 12);
    /// A message between clocks that traffic ties in both directions, for which its receiver waited.
    pub const WAITED_OF_TIED: BoundKind = BoundKind(7 << 12);
    const COLLECTIVE: u16 = 1 << 12;
    const WAITED: u16 = 2 << 12;
    const BLOCKED: u16 = 3 << 12;

    /// A message.
    #[inline]
    pub fn message(length: LengthClass) -> BoundKind {
        BoundKind(u16::from(length.number()))
    }

    /// Whether it comes from a message.
    #[inline]
    pub fn is_message(self) -> bool {
        self.0 >> 12 == 0
    }

    /// The length of the message that it comes from; not known for what comes from others.
    pub fn length(self) -> LengthClass {
        LengthClass::numbered(if self.is_message() { self.0 as u8 } else { 0 })
    }

    /// A collective operation on a communicator of `size` members: the number of rounds is what its time depends on most.
    pub fn collective(op: CollectiveOp, size: u32) -> BoundKind {
        BoundKind(BoundKind::COLLECTIVE | BoundKind::operation(op, size))
    }

    /// From the end of one member of such an operation to that of another one, both of which waited in it for somebody else: these come at about the same time,
    /// neither always before the other.
    pub fn ends(op: CollectiveOp, size: u32) -> BoundKind {
        BoundKind(BoundKind::ENDS | BoundKind::operation(op, size))
    }

    fn operation(op: CollectiveOp, size: u32) -> u16 {
        let rounds = u32::BITS - size.saturating_sub(1).leading_zeros();
        u16::from(op.0 & 63) << 6 | rounds as u16
    }

    /// Whether it is the time between two ends of a collective operation, which has no sign.
    pub(crate) fn is_between_ends(self) -> bool {
        self.0 >> 12 == BoundKind::ENDS >> 12 || self == BoundKind::ENDS_OF_TIED
    }

    /// Whether it comes from a collective operation.
    pub fn is_collective(self) -> bool {
        self.0 >> 12 == BoundKind::COLLECTIVE >> 12
    }

    /// A message of so many bytes for which its receiver waited: those of about the same length take the same time.
    pub fn waited(length: u64) -> BoundKind {
        BoundKind(BoundKind::WAITED | (u64::BITS - length.leading_zeros()) as u16)
    }

    /// So many bits has the length of a message for which its receiver waited; none for other kinds.
    pub(crate) fn length_of_waited(self) -> Option<u32> {
        (self.0 >> 12 == BoundKind::WAITED >> 12).then(|| u32::from(self.0 & 0xfff))
    }

    /// From the post of a receive to the end of the send of so many bytes that was blocked until then.
    pub fn blocked(length: u64) -> BoundKind {
        BoundKind(BoundKind::BLOCKED | (u64::BITS - length.leading_zeros()) as u16)
    }
}
