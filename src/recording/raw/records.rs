//! What the records of a raw file say.

use crate::recording::raw::format::POLLS;
use clc_trace::MpiRank;
use std::sync::Arc;

/// What a status says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    /// The actual source; negative for nobody.
    pub source: i64,
    /// The actual tag.
    pub tag: i64,
    /// Length of the message in bytes.
    pub bytes: u64,
    /// The request was cancelled.
    pub cancelled: bool,
}

/// What a collective operation was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contribution {
    /// Handle of the communicator.
    pub comm: u64,
    /// See [`format::NO_ROOT`].
    pub root: i64,
    /// Bytes of the arguments for sending.
    pub sent: u64,
    /// Bytes of those for receiving.
    pub received: u64,
    /// It was in place.
    pub in_place: bool,
}

/// What `MPI_Isendrecv` is to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posted {
    /// See [`format::NOBODY`](crate::recording::raw::format::NOBODY).
    pub source: i64,
    /// Negative for any.
    pub tag: i64,
    /// Bytes that there is room for.
    pub bytes: u64,
}

/// What a call was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// Nothing of interest.
    Nothing,
    /// A message to send: peer (negative for nobody), tag, communicator, bytes.
    Send(i64, i64, u64, u64),
    /// A message to send, likewise, and what is to be received.
    SendReceive(i64, i64, u64, u64, Posted),
    /// A communicator.
    Comm(u64),
    /// A communicator, for one that is made of some of its members, and the tag that tells apart those that are made at the same time.
    Group(u64, i64),
    /// A receive in a communicator, or a probe for one, and whether it is from nobody.
    Receive(u64, bool),
    /// Requests; none for null handles.
    Requests(Vec<Option<u64>>),
    /// A matched message.
    Message(u64),
    /// A contribution to a collective operation.
    Collective(Contribution),
    /// A window, a target (negative for nobody, or all), and whether its lock is exclusive.
    Window(u64, i64, bool),
    /// A window and the members of a group.
    Epoch(u64, Vec<MpiRank>),
    /// A one-sided operation: window, target (negative for nobody), bytes sent, bytes received.
    Access(u64, i64, u64, u64),
}

/// What a call gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gave {
    /// Nothing of interest.
    Nothing,
    /// A request.
    Request(Option<u64>),
    /// Requests that are complete: their places among those given, and their statuses.
    Complete(Vec<(usize, Status)>),
    /// What was asked for has not happened yet.
    NotYet,
    /// A matched message.
    Message(u64),
    /// What was asked for has happened.
    Happened,
}

/// What the program tells of itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Own {
    /// The function at an address is entered.
    Function(u64),
    /// It is left.
    FunctionEnd(u64),
    /// A region begins.
    Region(Arc<str>),
    /// It ends.
    RegionEnd(Arc<str>),
    /// A marker.
    Marker(Arc<str>),
    /// A metric has a value.
    Metric(Arc<str>, f64),
}

/// A step of a thread of OpenMP; the fields are described in [`openmp`](crate::recording::raw::format::openmp). Places are addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMp {
    /// A parallel region begins.
    Fork {
        /// Its number.
        region: u64,
        /// Threads that are wanted.
        threads: u32,
        /// Where it is.
        place: u64,
    },
    /// It has ended.
    Join(u64),
    /// The thread is one of its team.
    TeamBegin {
        /// Its number.
        region: u64,
        /// Threads of the team.
        threads: u64,
        /// Which of them this is.
        index: u64,
    },
    /// It is so no more.
    TeamEnd(u64),
    /// A region of a kind begins, at a place or 0.
    Begin(u64, u64),
    /// It ends.
    End(u64),
    /// The thread has a lock.
    Acquired(u64),
    /// It has it no more.
    Released(u64),
    /// It has made a task, at a place.
    TaskCreate(u64, u64),
    /// It goes on with one, 0 for its own.
    TaskSwitch(u64),
    /// It has completed one.
    TaskComplete(u64),
}

/// A step of a thread that was made by `pthread_create`, or of one that makes or waits for it ([`pthread`](crate::recording::raw::format::pthread)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pthread {
    /// The thread makes the one with this number.
    Create(u64),
    /// The thread has begun: its number, and what the system calls it.
    Begin(u64, u64),
    /// It ends.
    End,
    /// The thread has made the one with this number, which the system calls so.
    Created(u64, u64),
    /// The thread has waited for the one that the system calls so.
    Waited(u64),
}

/// Polls in vain, with nothing else between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JoinedPolls {
    /// Ticks within them.
    pub within: u64,
    /// How many of each of the [`POLLS`].
    pub counts: [u64; POLLS.len()],
}

/// A communicator that a process has become a member of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewComm {
    /// Its handle in the process.
    pub handle: u64,
    /// Rank of the process.
    pub rank: u32,
    /// The members, if listed.
    pub members: Vec<MpiRank>,
    /// Its member with rank 0.
    pub leader: MpiRank,
    /// The remote group of an inter-communicator.
    pub remote: Option<Vec<MpiRank>>,
}

/// A record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RawRecord {
    /// A call of function `0` begins at a time.
    Enter(usize, u64, Given),
    /// It ends.
    Leave(u64, Gave),
    /// It ends with an error.
    Failed(u64),
    /// A communicator.
    Comm(NewComm),
    /// A window: its handle.
    Window(u64),
    /// The communicator with a handle has a name from now on.
    CommName(u64, String),
    /// The window with a handle has a name from now on.
    WindowName(u64, String),
    /// The program tells something of itself at a time.
    Own(u64, Own),
    /// A thread of OpenMP does something at a time.
    OpenMp(u64, OpenMp),
    /// A thread makes another one, begins, ends or waits at a time.
    Pthread(u64, Pthread),
    /// The first of polls in vain that were joined begins at a time.
    Polls(u64, Box<JoinedPolls>),
    /// The last one of them ends.
    PollsEnd(u64),
}

impl RawRecord {
    /// When it was; none for what belongs to the record before it.
    pub(crate) fn time(&self) -> Option<u64> {
        match self {
            RawRecord::Enter(_, time, _)
            | RawRecord::Leave(time, _)
            | RawRecord::Failed(time)
            | RawRecord::Own(time, _)
            | RawRecord::OpenMp(time, _)
            | RawRecord::Pthread(time, _)
            | RawRecord::Polls(time, _)
            | RawRecord::PollsEnd(time) => Some(*time),
            _ => None,
        }
    }
}
