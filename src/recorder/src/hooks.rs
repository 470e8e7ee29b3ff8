//! What is recorded of a call: before it what it was given, after it what came back. The contents are described with each [`Effect`].

mod collectives;

use crate::abi::{Abi, Status};
use crate::arguments::Arguments;
use crate::clock;
use crate::format::{Effect, Form};
use crate::session::{self, Session};
use crate::stream::Stream;
use crate::wrappers::Call;
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::null_mut;

/// What a thread knows.
struct Here {
    /// Within a wrapper: calls that the MPI library itself makes are not the program's.
    inside: Cell<bool>,
    /// Where its records go; null before the first one.
    stream: Cell<*mut Stream>,
    /// When `MPI_Init` was called.
    entered: Cell<u64>,
}

thread_local! {
    static HERE: Here = const { Here { inside: Cell::new(false), stream: Cell::new(null_mut()), entered: Cell::new(0) } };
}

/// Before a call. Returns whether it is recorded: then [`end`] has to follow it.
///
/// # Safety
/// The arguments are those of the function.
#[inline]
pub unsafe fn begin(call: &Call, arguments: &mut [usize]) -> bool {
    HERE.with(|here| {
        if here.inside.get() {
            return false;
        }
        if let Effect::Init | Effect::InitThread | Effect::Finalize = call.effect {
            // SAFETY: as for this function.
            return unsafe { begin_or_end_of_mpi(here, call) };
        }
        let Some(session) = session::recording() else { return false };
        if here.stream.get().is_null() {
            here.stream.set(session.new_stream());
        }
        // SAFETY: streams live as long as the process, and this one belongs to this thread.
        let Some(stream) = (unsafe { here.stream.get().as_mut() }) else { return false };
        if !stream.reserve(ROOM) {
            session::stop("there is no more room on the disk");
            return false;
        }
        stream.enter(call.number);
        // SAFETY: as for this function.
        if unsafe { before(session, stream, call, arguments) } {
            stream.commit();
            here.inside.set(true);
            return true;
        }
        session::stop("there is no more room");
        false
    })
}

/// After a call that is recorded.
///
/// # Safety
/// The arguments are those of the function, with those that [`begin`] has replaced.
#[inline]
pub unsafe fn end(call: &Call, arguments: &[usize], result: c_int) {
    HERE.with(|here| {
        let now = clock::after();
        if let Effect::Init | Effect::InitThread = call.effect {
            if result == 0 {
                here.stream.set(session::start(call.number, here.entered.get()));
            }
            here.inside.set(false);
            return;
        }
        here.inside.set(false);
        let Some(session) = session::recording() else { return };
        // SAFETY: streams live as long as the process, and this one belongs to this thread.
        let Some(stream) = (unsafe { here.stream.get().as_mut() }) else { return };
        // SAFETY: as for this function.
        let written = stream.reserve(ROOM) && unsafe { after(session, stream, call, arguments, now, result != 0) };
        if written {
            stream.commit();
        } else {
            session::stop("there is no more room on the disk");
        }
    })
}

/// # Safety
/// As for [`begin`].
#[cold]
unsafe fn begin_or_end_of_mpi(here: &Here, call: &Call) -> bool {
    here.inside.set(true);
    if call.effect == Effect::Finalize {
        // The recording ends before MPI does: what is measured now needs it.
        session::finish(here.stream.get(), call.number);
        here.inside.set(false);
        return false;
    }
    here.entered.set(session::first_time());
    true
}

/// Integers that any record without lists has at most, and more.
const ROOM: usize = 16;

/// Records what a call is given. Returns whether there was room.
unsafe fn before(session: &Session, stream: &mut Stream, call: &Call, words: &mut [usize]) -> bool {
    let abi = &session.abi;
    let given = Arguments { words, mode: call.mode, abi };
    // What replaces an ignored status: argument and number of statuses.
    let mut needed: Option<(usize, usize)> = None;
    // SAFETY: the arguments have the types that the effect says.
    unsafe {
        match call.effect {
            Effect::Region | Effect::Init | Effect::InitThread | Effect::Finalize => {}
            Effect::Send | Effect::Isend | Effect::SendInit => send(stream, &given, 5),
            Effect::Recv => {
                stream.comm(given.comm(5));
                needed = Some((6, 1));
            }
            Effect::Irecv | Effect::RecvInit => {
                stream.comm(given.comm(5));
                stream.unsigned(u64::from(abi.is_nobody(given.int(3))));
            }
            Effect::Sendrecv => {
                send(stream, &given, 10);
                needed = Some((11, 1));
            }
            Effect::SendrecvReplace => {
                send(stream, &given, 7);
                needed = Some((8, 1));
            }
            Effect::Isendrecv => send(stream, &given, 10),
            Effect::IsendrecvReplace => send(stream, &given, 7),
            Effect::Wait => {
                stream.request(given.request(0, 0));
                needed = Some((1, 1));
            }
            Effect::Test => {
                stream.request(given.request(0, 0));
                needed = Some((2, 1));
            }
            Effect::Waitall | Effect::Testall => {
                let Some(count) = requests(stream, &given) else { return false };
                needed = Some((if call.effect == Effect::Waitall { 2 } else { 3 }, count));
            }
            Effect::Waitany | Effect::Testany => {
                let Some(_) = requests(stream, &given) else { return false };
                needed = Some((if call.effect == Effect::Waitany { 3 } else { 4 }, 1));
            }
            Effect::Waitsome | Effect::Testsome => {
                let Some(count) = requests(stream, &given) else { return false };
                needed = Some((4, count));
            }
            Effect::Startall => {
                let Some(_) = requests(stream, &given) else { return false };
            }
            Effect::Start | Effect::RequestFree => stream.request(given.request(0, 0)),
            Effect::Mprobe | Effect::Improbe => stream.comm(given.comm(2)),
            Effect::Mrecv => {
                stream.unsigned(given.message(3));
                needed = Some((4, 1));
            }
            Effect::Imrecv => stream.unsigned(given.message(3)),
            Effect::CommCreate
            | Effect::CommIdup
            | Effect::CommCreateGroup
            | Effect::IntercommCreate
            | Effect::IntercommMerge => stream.comm(given.comm(0)),
            Effect::CommFree => stream.comm(given.new_comm(0)),
            _ => collectives::before(session, stream, call.effect, &given),
        }
    }
    if let Some((argument, count)) = needed
        && let Some(word) = words.get_mut(argument)
        && abi.ignores(*word)
    {
        let scratch = stream.scratch(count.max(1) * abi.status);
        if scratch.is_null() {
            return false;
        }
        *word = scratch as usize;
    }
    true
}

/// The send of a call: buffer, count, type, peer, tag, and the communicator somewhere.
unsafe fn send(stream: &mut Stream, given: &Arguments, comm: usize) {
    // SAFETY: all calls that send begin alike.
    unsafe {
        let peer = given.abi.peer_of(given.int(3));
        stream.signed(peer);
        stream.signed(given.int(4));
        stream.comm(given.comm(comm));
        // Where nothing is sent, the type need not be one.
        stream.unsigned(if peer >= 0 { given.count(1) * given.size(2) } else { 0 });
    }
}

/// Number of requests and the requests: the first two arguments. None if there is no room.
unsafe fn requests(stream: &mut Stream, given: &Arguments) -> Option<usize> {
    // SAFETY: the caller says so.
    let count = unsafe { given.int(0) }.max(0) as usize;
    if !stream.reserve(count + ROOM) {
        return None;
    }
    stream.unsigned(count as u64);
    for k in 0..count {
        // SAFETY: the array has so many.
        stream.request(unsafe { given.request(1, k) });
    }
    Some(count)
}

/// Records what a call gave back. Returns whether there was room.
unsafe fn after(session: &Session, stream: &mut Stream, call: &Call, words: &[usize], now: u64, failed: bool) -> bool {
    let abi = &session.abi;
    let given = Arguments { words, mode: call.mode, abi };
    let last = words.len().saturating_sub(1);
    // A communicator is described before the end of the call that makes it.
    let made = match call.effect {
        Effect::CommCreate | Effect::CommCreateGroup | Effect::IntercommCreate | Effect::IntercommMerge => Some(last),
        Effect::CommIdup => Some(1),
        _ => None,
    };
    // SAFETY: the arguments have the types that the effect says, and what the function returns in them is there unless it failed.
    unsafe {
        if let Some(argument) = made.filter(|_| !failed) {
            let new = given.new_comm(argument);
            // A duplicate that is being made cannot be asked, but has the group of the original.
            let like = if call.effect == Effect::CommIdup { given.comm(0) } else { new };
            if !session.describe(stream, new, like, call.effect == Effect::CommCreateGroup) {
                return false;
            }
        }
        stream.leave(now, failed);
        if failed {
            return true;
        }
        match call.effect {
            Effect::Isend
            | Effect::SendInit
            | Effect::Irecv
            | Effect::RecvInit
            | Effect::Isendrecv
            | Effect::IsendrecvReplace
            | Effect::Imrecv
            | Effect::CommIdup => stream.request(given.request(last, 0)),
            Effect::Recv | Effect::Sendrecv | Effect::SendrecvReplace | Effect::Wait | Effect::Mrecv => {
                status(stream, abi, given.status(last, 0));
            }
            Effect::Waitall => return statuses(stream, &given, 2),
            Effect::Waitany => {
                stream.unsigned(given.index(2, 0).map_or(0, |index| index as u64 + 1));
                status(stream, abi, given.status(3, 0));
            }
            Effect::Waitsome | Effect::Testsome => {
                let count = given.result(2, 0).max(0) as usize;
                if !stream.reserve(4 * count + ROOM) {
                    return false;
                }
                stream.unsigned(count as u64);
                for k in 0..count {
                    stream.unsigned(given.index(3, k).unwrap_or(0) as u64);
                    status(stream, abi, given.status(4, k));
                }
            }
            Effect::Test => {
                let set = flag(stream, &given, 1);
                if set {
                    status(stream, abi, given.status(2, 0));
                }
            }
            Effect::Testall => return !flag(stream, &given, 2) || statuses(stream, &given, 3),
            Effect::Testany => {
                let set = flag(stream, &given, 3);
                if set {
                    stream.unsigned(given.index(2, 0).map_or(0, |index| index as u64 + 1));
                    status(stream, abi, given.status(4, 0));
                }
            }
            Effect::Mprobe => stream.unsigned(given.message(3)),
            Effect::Improbe => {
                let set = flag(stream, &given, 3);
                if set {
                    stream.unsigned(given.message(4));
                }
            }
            _ if call.form != Form::Blocking => stream.request(given.request(last, 0)),
            _ => {}
        }
    }
    true
}

unsafe fn flag(stream: &mut Stream, given: &Arguments, i: usize) -> bool {
    // SAFETY: the caller says so.
    let flag = unsafe { given.result(i, 0) } != 0;
    stream.unsigned(u64::from(flag));
    flag
}

unsafe fn status(stream: &mut Stream, abi: &Abi, address: usize) {
    // SAFETY: the caller says so.
    let Status { source, tag, bytes, cancelled } = unsafe { abi.read_status(address) };
    stream.signed(source);
    stream.signed(tag);
    stream.unsigned(bytes.wrapping_mul(2) | u64::from(cancelled));
}

/// The statuses of all requests: their number is the first argument.
unsafe fn statuses(stream: &mut Stream, given: &Arguments, i: usize) -> bool {
    // SAFETY: the caller says so.
    let count = unsafe { given.int(0) }.max(0) as usize;
    if !stream.reserve(3 * count + ROOM) {
        return false;
    }
    for k in 0..count {
        // SAFETY: the array has so many.
        unsafe { status(stream, given.abi, given.status(i, k)) };
    }
    true
}
