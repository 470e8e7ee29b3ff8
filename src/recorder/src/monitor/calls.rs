//! The call that a thread is in: what it is given, and that it is over.

use super::{Board, Slot};
use crate::arguments::Arguments;
use crate::calls::{Call, Subject};
use crate::format::calls::{Effect, Form};
use crate::layout::{self, slot};
use std::sync::atomic::Ordering;

impl Board {
    /// A call begins, at a time; its communicator, if it has one, is `comm`. That the thread is inside of it is stored last.
    ///
    /// # Safety
    /// The arguments are those of the function.
    #[inline(always)]
    pub(crate) unsafe fn enter(&self, slot: Slot, call: &Call, given: &Arguments, comm: u64, now: u64) {
        // SAFETY: positions are those of the C binding, and of types that the effect says.
        unsafe {
            match call.effect {
                Effect::Send | Effect::Isend | Effect::SendInit | Effect::Recv | Effect::Irecv | Effect::RecvInit => {
                    envelope(slot, given, comm, 3)
                }
                Effect::Sendrecv | Effect::Isendrecv => envelope(slot, given, comm, 8),
                Effect::SendrecvReplace | Effect::IsendrecvReplace => envelope(slot, given, comm, 5),
                Effect::Mprobe | Effect::Improbe => envelope(slot, given, comm, 0),
                Effect::Region => self.subject(slot, call, given),
                Effect::WinFence | Effect::WinFree => {
                    let win = if call.effect == Effect::WinFence { given.win(1) } else { given.new_win(0) };
                    self.of_all(slot, win);
                }
                Effect::WinStart
                | Effect::WinPost
                | Effect::WinComplete
                | Effect::WinWait
                | Effect::WinTest
                | Effect::WinLock
                | Effect::WinUnlock
                | Effect::WinLockAll
                | Effect::WinUnlockAll
                | Effect::WinFlush
                | Effect::WinFlushLocal
                | Effect::WinFlushAll
                | Effect::WinFlushLocalAll => epoch(slot, call.effect, given),
                // Without a communicator nobody looks at peer and sequence number.
                Effect::Wait | Effect::Test | Effect::Start | Effect::RequestFree => {
                    slot.set(slot::COMM, 0);
                    slot.set(slot::WAITS, 1);
                    slot.set(slot::REQUESTS, given.request(0, 0).unwrap_or(0));
                }
                Effect::Waitall
                | Effect::Testall
                | Effect::Waitany
                | Effect::Testany
                | Effect::Waitsome
                | Effect::Testsome
                | Effect::Startall => {
                    slot.set(slot::COMM, 0);
                    slot.waits(given);
                }
                effect if is_collective(effect) => {
                    slot.set(slot::COMM, comm);
                    slot.set(slot::PEER, u64::from(root(effect, given) as u32) << 32);
                    slot.set(slot::SEQUENCE, self.count(comm));
                }
                Effect::IntercommCreate if call.subject == Subject::Leaders => self.of_all(slot, comm),
                Effect::CommCreateGroup | Effect::IntercommCreate => {
                    slot.set(slot::COMM, comm);
                    slot.set(slot::PEER, u64::from(layout::NOBODY as u32) << 32);
                    slot.set(slot::SEQUENCE, 0);
                }
                _ => slot.set(slot::COMM, 0),
            }
        }
        slot.set(slot::SINCE, now);
        let calls = slot.get(slot::CALL) & !((1 << layout::COUNT) - 1);
        slot.set(slot::CALL, calls | layout::INSIDE | (call.number + 1));
    }

    /// An operation without a root that all members of a communicator, a window or a file call.
    #[inline(always)]
    fn of_all(&self, slot: Slot, handle: u64) {
        slot.set(slot::COMM, handle);
        slot.set(slot::PEER, u64::from(layout::NOBODY as u32) << 32);
        slot.set(slot::SEQUENCE, self.count(handle));
    }

    /// A call of which nothing is recorded but that it was there.
    ///
    /// # Safety
    /// The arguments are those of the function.
    #[inline(always)]
    unsafe fn subject(&self, slot: Slot, call: &Call, given: &Arguments) {
        // SAFETY: positions are those of the C binding, and of types that the subject says.
        unsafe {
            match call.subject {
                // Who reads it knows that probes are no collective operations: one that is repeated is to cost little.
                Subject::Envelope => {
                    slot.set(slot::COMM, given.comm(2));
                    peer(slot, given, 0);
                }
                Subject::Neighbours => {
                    let behind = match call.form {
                        Form::Blocking => 1,
                        Form::Immediate => 2,
                        Form::Persistent => 3,
                    };
                    self.of_all(slot, given.comm(given.words.len().saturating_sub(behind)));
                }
                Subject::NewFile => self.of_all(slot, given.comm(0)),
                Subject::File => self.of_all(slot, given.file(0)),
                Subject::OldFile => self.of_all(slot, given.new_file(0)),
                Subject::Leaders | Subject::Other => slot.set(slot::COMM, 0),
            }
        }
    }

    /// The call has ended; it `did` something, or was a test in vain. `request` is the one that it has made.
    #[inline(always)]
    pub(crate) fn leave(&self, slot: Slot, did: bool, request: Option<u64>, now: u64) {
        let call = slot.get(slot::CALL) & !layout::INSIDE;
        if let Some(request) = request {
            let place = layout::REQUESTS + layout::place_of(request, layout::REQUEST_PLACES) * layout::REQUEST;
            let function = call & (layout::INSIDE - 1);
            for (i, value) in [request, function, slot.get(slot::COMM), slot.get(slot::PEER), slot.get(slot::SEQUENCE)]
                .into_iter()
                .enumerate()
            {
                self.word(place + 8 * i).store(value, Ordering::Relaxed);
            }
        }
        if did {
            slot.set(slot::MOVED, now);
            slot.set(slot::CALL, call.wrapping_add(1 << layout::COUNT));
        } else {
            slot.set(slot::VAIN, slot.get(slot::VAIN).wrapping_add(1));
            slot.set(slot::CALL, call);
        }
    }
}

/// Peer and tag, which are the arguments from this one on.
///
/// # Safety
/// They are those of a message.
#[inline(always)]
unsafe fn peer(slot: Slot, given: &Arguments, from: usize) {
    // SAFETY: the caller says so.
    let (rank, tag) = unsafe { (given.int(from), given.int(from + 1)) };
    let rank = if given.abi.is_nobody(rank) { layout::NOBODY } else { rank.max(-1) as i32 };
    slot.set(slot::PEER, (rank as u32 as u64) << 32 | u64::from(tag.max(-1) as u32));
}

/// The same, with the communicator of the message.
///
/// # Safety
/// As for [`peer`].
#[inline(always)]
unsafe fn envelope(slot: Slot, given: &Arguments, comm: u64, from: usize) {
    slot.set(slot::COMM, comm);
    // SAFETY: the caller says so.
    unsafe { peer(slot, given, from) };
    slot.set(slot::SEQUENCE, 0);
}

/// A call that begins or ends an epoch on a window. Who reads it knows which of these have a target, and that none is a collective operation.
///
/// # Safety
/// The arguments are those of the function.
#[inline(always)]
unsafe fn epoch(slot: Slot, effect: Effect, given: &Arguments) {
    // SAFETY: the caller says so.
    unsafe {
        match effect {
            Effect::WinStart | Effect::WinPost => slot.set(slot::COMM, given.win(2)),
            Effect::WinLockAll => slot.set(slot::COMM, given.win(1)),
            Effect::WinUnlock | Effect::WinFlush | Effect::WinFlushLocal => {
                slot.set(slot::COMM, given.win(1));
                slot.set(slot::PEER, target(given, 0) << 32);
            }
            Effect::WinLock => {
                slot.set(slot::COMM, given.win(3));
                let exclusive = given.abi.is_exclusive(given.int(0));
                slot.set(slot::PEER, target(given, 1) << 32 | u64::from(exclusive));
            }
            _ => slot.set(slot::COMM, given.win(0)),
        }
    }
}

/// The root of a collective operation, as it is stored: nobody, if it has none, or this process takes no part in it.
///
/// # Safety
/// The arguments are those of the function.
#[inline(always)]
unsafe fn root(effect: Effect, given: &Arguments) -> i32 {
    // SAFETY: the caller says so.
    let root = unsafe {
        match effect {
            Effect::Bcast => given.int(3),
            Effect::Gather | Effect::Scatter => given.int(6),
            Effect::Gatherv | Effect::Scatterv => given.int(7),
            Effect::Reduce => given.int(5),
            _ => -1,
        }
    };
    if root >= 0 { root as i32 } else { layout::NOBODY }
}

/// The target of a call on a window, as it is stored.
///
/// # Safety
/// The argument is a rank.
unsafe fn target(given: &Arguments, argument: usize) -> u64 {
    // SAFETY: the caller says so.
    let rank = unsafe { given.int(argument) };
    u64::from(if given.abi.is_nobody(rank) { layout::NOBODY } else { rank.max(-1) as i32 } as u32)
}

/// Whether all members of a communicator call it in the same order.
#[inline]
fn is_collective(effect: Effect) -> bool {
    matches!(
        effect,
        Effect::Barrier
            | Effect::Bcast
            | Effect::Gather
            | Effect::Gatherv
            | Effect::Scatter
            | Effect::Scatterv
            | Effect::Allgather
            | Effect::Allgatherv
            | Effect::Alltoall
            | Effect::Alltoallv
            | Effect::Alltoallw
            | Effect::Allreduce
            | Effect::Reduce
            | Effect::ReduceScatter
            | Effect::ReduceScatterBlock
            | Effect::Scan
            | Effect::Exscan
            | Effect::CommCreate
            | Effect::CommIdup
            | Effect::IntercommMerge
            | Effect::CommFree
            | Effect::WinCreate
            | Effect::WinAllocate
    )
}
