//! What a process can do in a step, and the regions in which a tracer would see it.

use clc_trace::{CollectiveOp, MpiRank, Region, RegionId, Root};

/// One side of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    /// The other process.
    pub(crate) process: MpiRank,
    /// Its rank in the communicator.
    pub(crate) peer: u32,
    /// Index and id of the communicator.
    pub(crate) comm: u32,
    pub(crate) tag: u32,
    pub(crate) bytes: u64,
}

impl Transfer {
    /// A message on the world communicator, where ranks are processes.
    pub(crate) fn world(process: usize, tag: u32, bytes: u64) -> Self {
        Transfer { process: MpiRank(process as u32), peer: process as u32, comm: 0, tag, bytes }
    }
}

/// Root of an operation that has none.
pub(crate) const NO_ROOT: u32 = u32::MAX;

/// One member's call of a collective operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CollectiveCall {
    pub(crate) op: CollectiveOp,
    /// Index and id of the communicator.
    pub(crate) comm: u32,
    /// The caller's rank in it.
    pub(crate) rank: u32,
    /// The root's rank in it, or [`NO_ROOT`].
    pub(crate) root: u32,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// How requests are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitOrder {
    /// One MPI_Waitall; completions are recorded in the order of the requests.
    Posted,
    /// One MPI_Waitall on the array of requests in reverse order.
    Reversed,
    /// MPI_Waitany until none is left: completions in the order in which they happen.
    Completion,
}

/// An operation of a process. Request numbers count the requests since the last `WaitAll`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    /// Computes for so many picoseconds.
    Compute(i64),
    Send(Transfer),
    Recv(Transfer),
    /// MPI_Sendrecv: to, from.
    Sendrecv(Transfer, Transfer),
    Isend(Transfer),
    Irecv(Transfer),
    Collective(CollectiveCall),
    NonBlocking(CollectiveCall),
    /// Completes all open requests.
    WaitAll(WaitOrder),
    /// Completes one request.
    Wait(u32),
    /// Tests a request, without success.
    Test(u32),
    /// Cancels a receive that no message matches.
    Cancel(u32),
    /// MPI_Ssend.
    Ssend(Transfer),
    /// A collective operation of an inter-communicator, with what the member says of its root.
    Inter(CollectiveCall, Root),
    /// MPI_Win_fence of all.
    Fence,
    /// MPI_Put of so many bytes to a process.
    Put(u32, u64),
    /// A step of the synchronisation of groups on the window with the neighbours of a process in a chain.
    Epoch(Epoch),
    /// The team of threads of the process computes for so many picoseconds.
    Team(i64),
    /// The accelerator of the process computes for so many picoseconds, and so many bytes are copied.
    Offload(i64, u64),
}

/// MPI_Win_post, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Epoch {
    Post,
    Start,
    Complete,
    Wait,
}

/// Region names by id; collectives follow, blocking ones from [`COLLECTIVES`] on, then non-blocking ones.
const NAMES: [&str; 17] = [
    "main",
    "MPI_Init",
    "MPI_Finalize",
    "compute",
    "MPI_Send",
    "MPI_Recv",
    "MPI_Sendrecv",
    "MPI_Isend",
    "MPI_Irecv",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Test",
    "MPI_Cancel",
    "thread",
    "!$omp parallel",
    "update_cell",
];
const COLLECTIVES: u32 = NAMES.len() as u32;
/// Names of regions of synchronous sends and windows, after those of the collectives: only patterns that use them define them.
const FURTHER: [&str; 9] = [
    "MPI_Ssend",
    "MPI_Win_fence",
    "MPI_Put",
    "MPI_Win_post",
    "MPI_Win_start",
    "MPI_Win_complete",
    "MPI_Win_wait",
    "MPI_Win_lock",
    "MPI_Win_unlock",
];
/// Names of regions of threads and accelerators, after those: only patterns that use them define them.
const PARTS: [&str; 5] =
    ["!$omp implicit barrier", "hipLaunchKernel", "stencil", "hipMemcpyDtoH", "hipDeviceSynchronize"];
/// Number of collective operations that have a region.
const OPERATIONS: u32 = 17;

/// Ids of regions.
pub(crate) mod region {
    use super::{COLLECTIVES, OPERATIONS};
    use clc_trace::{CollectiveOp, RegionId};

    pub(crate) const MAIN: RegionId = RegionId(0);
    pub(crate) const INIT: RegionId = RegionId(1);
    pub(crate) const FINALIZE: RegionId = RegionId(2);
    pub(crate) const COMPUTE: RegionId = RegionId(3);
    pub(crate) const SEND: RegionId = RegionId(4);
    pub(crate) const RECV: RegionId = RegionId(5);
    pub(crate) const SENDRECV: RegionId = RegionId(6);
    pub(crate) const ISEND: RegionId = RegionId(7);
    pub(crate) const IRECV: RegionId = RegionId(8);
    pub(crate) const WAIT: RegionId = RegionId(9);
    pub(crate) const WAITALL: RegionId = RegionId(10);
    pub(crate) const WAITANY: RegionId = RegionId(11);
    pub(crate) const TEST: RegionId = RegionId(12);
    pub(crate) const CANCEL: RegionId = RegionId(13);
    pub(crate) const THREAD: RegionId = RegionId(14);
    pub(crate) const PARALLEL: RegionId = RegionId(15);
    pub(crate) const USER: RegionId = RegionId(16);

    const FURTHER: u32 = COLLECTIVES + 2 * OPERATIONS;
    pub(crate) const SSEND: RegionId = RegionId(FURTHER);
    pub(crate) const FENCE: RegionId = RegionId(FURTHER + 1);
    pub(crate) const PUT: RegionId = RegionId(FURTHER + 2);
    pub(crate) const LOCK: RegionId = RegionId(FURTHER + 7);
    pub(crate) const UNLOCK: RegionId = RegionId(FURTHER + 8);

    const PARTS: u32 = FURTHER + super::FURTHER.len() as u32;
    pub(crate) const THREAD_BARRIER: RegionId = RegionId(PARTS);
    pub(crate) const LAUNCH: RegionId = RegionId(PARTS + 1);
    pub(crate) const KERNEL: RegionId = RegionId(PARTS + 2);
    pub(crate) const COPY: RegionId = RegionId(PARTS + 3);
    pub(crate) const DEVICE_WAIT: RegionId = RegionId(PARTS + 4);

    /// MPI_Win_post and so on.
    pub(crate) fn epoch(step: super::Epoch) -> RegionId {
        RegionId(FURTHER + 3 + step as u32)
    }

    /// MPI_Bcast and so on.
    pub(crate) fn blocking(op: CollectiveOp) -> RegionId {
        RegionId(COLLECTIVES + u32::from(op.0))
    }

    /// MPI_Ibcast and so on.
    pub(crate) fn non_blocking(op: CollectiveOp) -> RegionId {
        RegionId(COLLECTIVES + OPERATIONS + u32::from(op.0))
    }
}

/// The regions in which threads wait for each other.
pub(crate) fn thread_barriers() -> Vec<RegionId> {
    vec![region::THREAD_BARRIER]
}

/// The definitions of all regions; those of synchronous sends and windows only with `further`, those of threads and accelerators with `parts`.
pub(crate) fn regions(further: bool, parts: bool) -> Vec<Region> {
    let fixed = NAMES.iter().map(|name| (*name).to_string());
    let operations = |prefix: &'static str, capital: bool| {
        (0..OPERATIONS as u8).map(move |op| {
            let name = CollectiveOp(op).name();
            let (first, rest) = name.split_at(1);
            let first = if capital { first.to_uppercase() } else { first.to_string() };
            format!("{prefix}{first}{rest}")
        })
    };
    let names = fixed.chain(operations("MPI_", true)).chain(operations("MPI_I", false));
    let names = names.chain(FURTHER.iter().filter(|_| further || parts).map(|name| (*name).to_string()));
    let names = names.chain(PARTS.iter().filter(|_| parts).map(|name| (*name).to_string()));
    names.zip(0..).map(|(name, id)| Region { id: RegionId(id), name }).collect()
}
