//! Operations that several locations of a process share, in their places among them.

use clc_trace::EventNumber;

/// Where an operation begins on what several locations share.
#[derive(Debug, Clone, Copy)]
pub struct OperationBegin {
    /// The location.
    pub location: u32,
    /// The event.
    pub number: EventNumber,
    /// On a window: whether an access of this process is known to come between the operation before and this one.
    pub accessed: bool,
    /// Where the operation begins whose end is that of this one: another one only where their order is not known.
    pub ended: (u32, EventNumber),
    /// Which of both are certain.
    pub certain: CertainEnds,
}

/// Which ends of an operation say something, where the order of a process's operations on a communicator or window is not known. In its place among them a begin does if it comes
/// there at the latest, an end if it comes there at the earliest, in any order that is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertainEnds {
    /// The begin.
    pub begin: bool,
    /// The end.
    pub end: bool,
}

impl CertainEnds {
    /// The order is known.
    pub const BOTH: CertainEnds = CertainEnds { begin: true, end: true };
}

impl OperationBegin {
    /// Which event it is.
    pub(super) fn at(&self) -> (u32, EventNumber) {
        (self.location, self.number)
    }
}
