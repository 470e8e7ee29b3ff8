//! Identifiers as distinct types, so that a rank can never be used as a location.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Index;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A location: one stream of events (OTF2 `Location`, its 64-bit id, not necessarily dense).
    LocationId(u64)
}
id! {
    /// A location group: a process or an accelerator (OTF2 `LocationGroup`).
    LocationGroupId(u32)
}
id! {
    /// A node of the system tree (OTF2 `SystemTreeNode`).
    SystemTreeNodeId(u32)
}
id! {
    /// A communicator by its *global* definition id (OTF2 `Comm` or `InterComm`), local ids already mapped.
    CommId(u32)
}
id! {
    /// A window of one-sided communication by its *global* definition id (OTF2 `RmaWin`), local ids already mapped.
    WindowId(u32)
}
id! {
    /// A group of processes by its *global* definition id (OTF2 `Group`), local ids already mapped.
    GroupId(u32)
}
id! {
    /// A region by its global definition id (OTF2 `Region`).
    RegionId(u32)
}

/// A member of a communicator by its rank there: from 0 up to but without the size. Of an inter-communicator the members of both groups are numbered together where they
/// matter together, those of the first group first. It says nothing about the process, whose global MPI rank is the element of the list of members at this place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(transparent)]
pub struct CommRank(pub u32);

impl CommRank {
    /// The place in a list with one element per member.
    #[inline]
    pub fn place(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CommRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Index<CommRank> for [T] {
    type Output = T;

    #[inline]
    fn index(&self, rank: CommRank) -> &T {
        &self[rank.place()]
    }
}

impl<T> Index<CommRank> for Vec<T> {
    type Output = T;

    #[inline]
    fn index(&self, rank: CommRank) -> &T {
        &self[rank.place()]
    }
}
