//! What an event says, as far as this program interprets it.

use crate::{CommId, GroupId, ParameterId, RegionId, ThreadEvent, WindowId};
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
    /// `MPI_Win_fence`. Collective operations on windows have numbers of their own: those of OTF2 and [`CollectiveOp::ON_WINDOW`].
    pub const WIN_FENCE: Self = Self(Self::ON_WINDOW);
    /// `MPI_Win_fence` at which no epoch with operations ends, so that all may have asserted that it need not synchronise; but it seems to.
    pub const WIN_FENCE_ASSUMED: Self = Self(0xFD);
    /// The same, but it need not have synchronised.
    pub const WIN_FENCE_UNORDERED: Self = Self(0xFE);
    /// Post, start, complete and wait on a window: no collective operation, and in no file.
    pub const WIN_GROUP: Self = Self(0xFC);
    /// The end of a synchronous send: no collective operation, and in no file.
    pub const SYNCHRONOUS_SEND: Self = Self(0x7E);
    /// Fork and begin of a team of threads, or its end and the join: no collective operation, and in no file.
    pub const THREAD_FORK: Self = Self(0x7D);
    /// A barrier of a team of threads, counted by pairs of timelines or, within one, by barriers.
    pub const THREAD_BARRIER: Self = Self(0x7C);
    /// Creation and begin of a thread, or its end and the wait for it.
    pub const THREAD_CREATE: Self = Self(0x7B);
    /// Creation of a task and the first time that a thread runs it.
    pub const THREAD_TASK: Self = Self(0x7A);
    /// The release of a lock by a thread and the next acquisition.
    pub const THREAD_LOCK: Self = Self(0x79);
    /// A call that issues work to a stream of an accelerator, and the begin of that work: no collective operation, and in no file.
    pub const ACCELERATOR_ISSUE: Self = Self(0x78);
    /// The end of work of a stream, and that of a call that has waited for it.
    pub const ACCELERATOR_WAIT: Self = Self(0x77);
    /// The creation of a handle that is taken to synchronise all members, as its region says (`MPI_Comm_split` and the like): in no file.
    pub const CREATE_HANDLE_OF_ALL: Self = Self(0x76);
    /// A collective operation that this program does not know.
    pub const UNKNOWN: Self = Self(0x7F);
    /// The bit that tells collective operations on windows from those on communicators. It occurs in no file.
    pub const ON_WINDOW: u8 = 0x80;

    /// An operation on a communicator with the number that a file has for it.
    pub fn on_communicator(self) -> Self {
        if self.0 < Self::CREATE_HANDLE_OF_ALL.0 { self } else { Self::UNKNOWN }
    }

    /// An operation on a window with the number that a file has for it.
    pub fn on_window(self) -> Self {
        match self.on_communicator().0 | Self::ON_WINDOW {
            number if number < Self::WIN_GROUP.0 => Self(number),
            _ => Self(Self::UNKNOWN.0 | Self::ON_WINDOW),
        }
    }

    /// Whether it is a step of threads or streams of one process.
    pub fn is_within_process(self) -> bool {
        (Self::ACCELERATOR_WAIT.0..=Self::THREAD_FORK.0).contains(&self.0)
    }

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
        const ON_WINDOWS: [(u8, &str); 10] = [
            (CollectiveOp::WIN_GROUP.0, "win_post_start_complete_wait"),
            (CollectiveOp::WIN_FENCE.0, "win_fence"),
            (CollectiveOp::WIN_FENCE_ASSUMED.0, "win_fence_without_operations"),
            (CollectiveOp::WIN_FENCE_UNORDERED.0, "win_fence_unordered"),
            (CollectiveOp::ON_WINDOW | 17, "win_create_handle"),
            (CollectiveOp::ON_WINDOW | 18, "win_destroy_handle"),
            (CollectiveOp::ON_WINDOW | 19, "win_allocate"),
            (CollectiveOp::ON_WINDOW | 20, "win_deallocate"),
            (CollectiveOp::ON_WINDOW | 21, "win_create_handle_and_allocate"),
            (CollectiveOp::ON_WINDOW | 22, "win_destroy_handle_and_deallocate"),
        ];
        match self {
            Self::SYNCHRONOUS_SEND => return "synchronous_send",
            Self::THREAD_FORK => return "thread_fork_join",
            Self::THREAD_BARRIER => return "thread_barrier",
            Self::THREAD_CREATE => return "thread_create_wait",
            Self::THREAD_TASK => return "thread_task",
            Self::THREAD_LOCK => return "thread_lock",
            Self::ACCELERATOR_ISSUE => return "accelerator_issue",
            Self::ACCELERATOR_WAIT => return "accelerator_wait",
            Self::CREATE_HANDLE_OF_ALL => return "create_handle_of_all",
            _ => {}
        }
        if self.0 >= Self::ON_WINDOW {
            let named = ON_WINDOWS.iter().find(|(op, _)| *op == self.0);
            return named.map_or("unknown_win_collective", |(_, name)| name);
        }
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
    /// Receiver (of a send) or sender (of a receive): its rank in the communicator. `u32::MAX` is undefined, [`Message::NOBODY`] nobody.
    pub peer: u32,
    /// The communicator, as a global definition id.
    pub comm: CommId,
    /// The message tag.
    pub tag: u32,
    /// Length in bytes.
    pub length: u64,
}

impl Message {
    /// `MPI_PROC_NULL` of Open MPI (-2), as EZTrace records it. (That of MPICH is -1, which is an undefined rank.)
    pub const NOBODY: u32 = u32::MAX - 1;

    /// Whether it is a message to or from nobody (`MPI_PROC_NULL`), which is none.
    pub fn is_null(&self) -> bool {
        self.peer == Message::NOBODY
    }
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

/// The end of a collective operation on a window (OTF2 `RmaCollectiveEnd`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCollective {
    /// The operation: `MPI_Win_fence` is a barrier.
    pub op: CollectiveOp,
    /// What it synchronises (OTF2 `RmaSyncLevel`, flags: 1 processes, 2 memory).
    pub level: u32,
    /// The window, as a global definition id.
    pub window: WindowId,
    /// Its root.
    pub root: Root,
    /// Bytes sent by this process.
    pub sent: u64,
    /// Bytes received by this process.
    pub received: u64,
}

/// A step of the synchronisation of a group of processes on a window (OTF2 `RmaGroupSync`): `MPI_Win_post`, `MPI_Win_start`,
/// `MPI_Win_complete`, `MPI_Win_wait`; the region around it tells which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowGroup {
    /// What it synchronises (OTF2 `RmaSyncLevel`, flags: 1 processes, 2 memory).
    pub level: u32,
    /// The window, as a global definition id.
    pub window: WindowId,
    /// The others, as a global definition id.
    pub group: GroupId,
}

/// A put or get (OTF2 `RmaPut`, `RmaGet`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowTransfer {
    /// The window, as a global definition id.
    pub window: WindowId,
    /// The target: its rank in the communicator of the window.
    pub remote: u32,
    /// How many bytes.
    pub bytes: u64,
    /// By which the event of its completion is found.
    pub matching: u64,
}

/// An atomic operation (OTF2 `RmaAtomic`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowAtomic {
    /// The window, as a global definition id.
    pub window: WindowId,
    /// The target: its rank in the communicator of the window.
    pub remote: u32,
    /// Which operation (OTF2 `RmaAtomicType`).
    pub kind: u8,
    /// Bytes sent to the target.
    pub sent: u64,
    /// Bytes received from it.
    pub received: u64,
    /// By which the event of its completion is found.
    pub matching: u64,
}

/// A step of a lock (OTF2 `RmaRequestLock`, `RmaAcquireLock`, `RmaTryLock`, `RmaReleaseLock`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowLock {
    /// The window, as a global definition id.
    pub window: WindowId,
    /// The target: its rank in the communicator of the window; `u32::MAX` for all of them.
    pub remote: u32,
    /// Which of its locks.
    pub lock: u64,
    /// OTF2 `LockType`: 0 exclusive, 1 shared; 0 where it is released.
    pub kind: u8,
}

/// A value that was recorded of the region that the location is in (OTF2 `ParameterUnsignedInt`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallParameter {
    /// What it is a value of, as a global definition id.
    pub parameter: ParameterId,
    /// The value.
    pub value: u64,
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
    /// OTF2 `RmaCollectiveBegin`.
    RmaCollectiveBegin,
    /// OTF2 `RmaCollectiveEnd`.
    RmaCollectiveEnd(WindowCollective),
    /// OTF2 `RmaGroupSync`.
    RmaGroupSync(WindowGroup),
    /// OTF2 `RmaRequestLock`.
    RmaRequestLock(WindowLock),
    /// OTF2 `RmaAcquireLock`.
    RmaAcquireLock(WindowLock),
    /// OTF2 `RmaTryLock`: a lock could not be acquired.
    RmaTryLock(WindowLock),
    /// OTF2 `RmaReleaseLock`.
    RmaReleaseLock(WindowLock),
    /// OTF2 `RmaPut`.
    RmaPut(WindowTransfer),
    /// OTF2 `RmaGet`.
    RmaGet(WindowTransfer),
    /// OTF2 `RmaAtomic`.
    RmaAtomic(WindowAtomic),
    /// OTF2 `RmaOpCompleteBlocking`: the operation on this window with that matching id is complete.
    RmaOpCompleteBlocking(WindowId, u64),
    /// OTF2 `NonBlockingCollectiveRequest` (3.0): a non-blocking collective begins, with its request id.
    NonBlockingCollectiveRequest(u64),
    /// OTF2 `NonBlockingCollectiveComplete` (3.0), with its request id.
    NonBlockingCollectiveComplete(Collective, u64),
    /// A step of a thread (OTF2 `ThreadFork` and others).
    Thread(ThreadEvent),
    /// OTF2 `ParameterUnsignedInt`.
    Parameter(CallParameter),
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

impl ClockOffset {
    /// By how much it is wrong at most, as recorded with it, in ticks: a bound of b to either side has a standard deviation of b / √3. 0 if nothing was recorded.
    pub fn bound(&self) -> f64 {
        3f64.sqrt() * self.standard_deviation
    }
}
