//! What an event says, as far as this program interprets it.

use crate::trace::{CommId, RegionId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A collective operation (OTF2 `CollectiveOp`, same numbers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CollectiveOp(pub u8);

#[allow(missing_docs)] // the names are those of MPI and of OTF2
impl CollectiveOp {
    pub const BARRIER: Self = Self(0);
    pub const BCAST: Self = Self(1);
    pub const GATHER: Self = Self(2);
    pub const GATHERV: Self = Self(3);
    pub const SCATTER: Self = Self(4);
    pub const SCATTERV: Self = Self(5);
    pub const ALLGATHER: Self = Self(6);
    pub const ALLGATHERV: Self = Self(7);
    pub const ALLTOALL: Self = Self(8);
    pub const ALLTOALLV: Self = Self(9);
    pub const ALLTOALLW: Self = Self(10);
    pub const ALLREDUCE: Self = Self(11);
    pub const REDUCE: Self = Self(12);
    pub const REDUCE_SCATTER: Self = Self(13);
    pub const SCAN: Self = Self(14);
    pub const EXSCAN: Self = Self(15);
    pub const REDUCE_SCATTER_BLOCK: Self = Self(16);
    pub const CREATE_HANDLE: Self = Self(17);
    pub const DESTROY_HANDLE: Self = Self(18);
    pub const ALLOCATE: Self = Self(19);
    pub const DEALLOCATE: Self = Self(20);
    pub const CREATE_HANDLE_AND_ALLOCATE: Self = Self(21);
    pub const DESTROY_HANDLE_AND_DEALLOCATE: Self = Self(22);

    /// The name MPI gives to the operation, in lower case without prefix ("allreduce").
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 23] = [
            "barrier",
            "bcast",
            "gather",
            "gatherv",
            "scatter",
            "scatterv",
            "allgather",
            "allgatherv",
            "alltoall",
            "alltoallv",
            "alltoallw",
            "allreduce",
            "reduce",
            "reduce_scatter",
            "scan",
            "exscan",
            "reduce_scatter_block",
            "create_handle",
            "destroy_handle",
            "allocate",
            "deallocate",
            "create_handle_and_allocate",
            "destroy_handle_and_deallocate",
        ];
        NAMES.get(usize::from(self.0)).copied().unwrap_or("unknown_collective")
    }
}

impl fmt::Display for CollectiveOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Root of a collective: its rank in the communicator, or one of the special values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Root {
    /// The operation has no root (all ones in the file).
    None,
    /// A rank of the communicator (of the remote group for an inter-communicator).
    Rank(u32),
    /// Inter-communicator: the event's own process is the root (`MPI_ROOT`).
    ThisProcess,
    /// Inter-communicator: another process of the event's own group is the root (`MPI_PROC_NULL`).
    OwnGroup,
}

/// One side of a point-to-point message (OTF2 `MpiSend`, `MpiIsend`, `MpiRecv`, `MpiIrecv`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Receiver (of a send) or sender (of a receive): its rank in the communicator. `u32::MAX` is undefined.
    pub peer: u32,
    /// The communicator, as a global definition id.
    pub comm: CommId,
    /// The message tag.
    pub tag: u32,
    /// Length in bytes.
    pub length: u64,
}

/// The end of a collective operation (OTF2 `MpiCollectiveEnd`, `NonBlockingCollectiveComplete`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collective {
    /// The operation.
    pub op: CollectiveOp,
    /// The communicator, as a global definition id.
    pub comm: CommId,
    /// Its root.
    pub root: Root,
    /// Bytes sent by this process.
    pub sent: u64,
    /// Bytes received by this process.
    pub received: u64,
}

/// The part of an event that this program interprets, with global definition ids. Everything else is [`Event::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A record that carries no communication; passes through.
    Other,
    /// OTF2 `Enter`.
    Enter(RegionId),
    /// OTF2 `Leave`.
    Leave(RegionId),
    /// OTF2 `MpiSend`: a blocking send.
    MpiSend(Message),
    /// OTF2 `MpiIsend`, with its request id.
    MpiIsend(Message, u64),
    /// OTF2 `MpiIsendComplete`, with the request id.
    MpiIsendComplete(u64),
    /// OTF2 `MpiIrecvRequest`: a receive is posted, with its request id.
    MpiIrecvRequest(u64),
    /// OTF2 `MpiRecv`: a blocking receive.
    MpiRecv(Message),
    /// OTF2 `MpiIrecv`: a non-blocking receive is complete, with its request id.
    MpiIrecv(Message, u64),
    /// OTF2 `MpiRequestTest`: a request was tested and is not complete.
    MpiRequestTest(u64),
    /// OTF2 `MpiRequestCancelled`.
    MpiRequestCancelled(u64),
    /// OTF2 `MpiCollectiveBegin`.
    MpiCollectiveBegin,
    /// OTF2 `MpiCollectiveEnd`.
    MpiCollectiveEnd(Collective),
    /// OTF2 `NonBlockingCollectiveRequest` (3.0): a non-blocking collective begins, with its request id.
    NonBlockingCollectiveRequest(u64),
    /// OTF2 `NonBlockingCollectiveComplete` (3.0), with its request id.
    NonBlockingCollectiveComplete(Collective, u64),
}

/// One measured clock offset (OTF2 local definition `ClockOffset`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Local clock at the measurement, in ticks.
    pub time: u64,
    /// Global minus local clock at that moment, in ticks.
    pub offset: i64,
    /// Standard deviation of the measurement, in ticks, as recorded.
    pub standard_deviation: f64,
}
