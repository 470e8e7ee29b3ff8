//! Identifiers as distinct types, so that a rank can never be used as a location.

use crate::number;
use std::ops::Add;

number! {
    /// A location: one stream of events (OTF2 `Location`, its 64-bit id, not necessarily dense).
    LocationId(u64)
}
number! {
    /// A location group: a process or an accelerator (OTF2 `LocationGroup`).
    LocationGroupId(u32)
}
number! {
    /// A node of the system tree (OTF2 `SystemTreeNode`).
    SystemTreeNodeId(u32)
}
number! {
    /// A communicator by its *global* definition id (OTF2 `Comm` or `InterComm`), local ids already mapped.
    CommId(u32)
}
number! {
    /// A window of one-sided communication by its *global* definition id (OTF2 `RmaWin`), local ids already mapped.
    WindowId(u32)
}
number! {
    /// A group of processes by its *global* definition id (OTF2 `Group`), local ids already mapped.
    GroupId(u32)
}
number! {
    /// A region by its global definition id (OTF2 `Region`).
    RegionId(u32)
}
number! {
    /// A parameter of calls by its global definition id (OTF2 `Parameter`).
    ParameterId(u32)
}
number! {
    /// An attribute of events by its global definition id (OTF2 `Attribute`).
    AttributeId(u32)
}
number! {
    /// An event of a location by its place in the location's order: 1 is the first one, as otf2-print and libotf2 count.
    EventNumber(u64)
}
number! {
    /// A process of the application by its global MPI rank: its place in the archive's `COMM_LOCATIONS` group of paradigm MPI
    /// ([`Definitions::processes`](crate::Definitions::processes)), which is its rank in `MPI_COMM_WORLD` unless the application spawned processes.
    MpiRank(u32), one per "MPI process"
}
number! {
    /// A member of a communicator by its rank there: from 0 up to but without the size. Of an inter-communicator the members of both groups are numbered together where they
    /// matter together, those of the first group first. It says nothing about the process, whose [`MpiRank`] is the element of the list of members at this place.
    CommRank(u32), one per "member"
}

impl EventNumber {
    /// The first event of a location.
    pub const FIRST: EventNumber = EventNumber(1);
    /// Ahead of every event of a location.
    pub const START: EventNumber = EventNumber(0);
    /// Behind every event of a location.
    pub const END: EventNumber = EventNumber(u64::MAX);

    /// The event that follows the first `count` ones.
    #[inline]
    pub const fn after(count: u64) -> EventNumber {
        EventNumber(count + 1)
    }

    /// How many events of the location precede it.
    #[inline]
    pub const fn preceding(self) -> u64 {
        self.0 - 1
    }

    /// This event and those that follow it, without end.
    #[inline]
    pub fn and_following(self) -> impl Iterator<Item = EventNumber> {
        (self.0..).map(EventNumber)
    }
}

/// So many events later.
impl Add<u64> for EventNumber {
    type Output = EventNumber;

    #[inline]
    fn add(self, events: u64) -> EventNumber {
        EventNumber(self.0 + events)
    }
}
