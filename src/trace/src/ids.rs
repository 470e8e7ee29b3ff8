//! Identifiers as distinct types, so that a rank can never be used as a location.

use crate::number;

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
    /// A member of a communicator by its rank there: from 0 up to but without the size. Of an inter-communicator the members of both groups are numbered together where they
    /// matter together, those of the first group first. It says nothing about the process, whose global MPI rank is the element of the list of members at this place.
    CommRank(u32), one per "member"
}
