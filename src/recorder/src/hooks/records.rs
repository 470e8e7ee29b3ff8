//! The record of a call: what it is given, and what it gives back.

use super::{HERE, collectives, monitored, windows};
use crate::abi::{Abi, Status};
use crate::arguments::Arguments;
use crate::calls::{Call, Subject};
use crate::format::calls::{Effect, Gives};
use crate::format::{ANYBODY, NAME_OF_COMMUNICATOR, NAME_OF_WINDOW, NOBODY, POLLS, WINDOW};
use crate::session::Session;
use crate::stream::Stream;

/// Integers that any record without lists has at most, and more.
pub(super) const ROOM: usize = 16;

/// Arguments of `MPI_Comm_create_group`: communicator, group, tag, and where the new one goes.
const CREATE_GROUP: usize = 4;

/// Statuses that a call writes: its argument, and their number.
type Statuses = (usize, usize);

/// Records what a call is given. Returns whether there was room.
pub(super) unsafe fn before(session: &Session, stream: &mut Stream, call: &Call, words: &mut [usize]) -> bool {
    let abi = &session.abi;
    let given = Arguments { words, mode: call.mode, abi };
    let mut needed: Option<Statuses> = None;
    // SAFETY: the arguments have the types that the effect says.
    unsafe {
        match call.effect {
            Effect::Region
            | Effect::Init
            | Effect::InitThread
            | Effect::Finalize
            | Effect::CommName
            | Effect::WinName => {}
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
            Effect::Isendrecv => {
                send(stream, &given, 10);
                posted(stream, &given, 8, (6, 7));
            }
            Effect::IsendrecvReplace => {
                send(stream, &given, 7);
                posted(stream, &given, 5, (1, 2));
            }
            Effect::Wait
            | Effect::Test
            | Effect::GetStatus
            | Effect::Waitall
            | Effect::Testall
            | Effect::Waitany
            | Effect::Testany
            | Effect::Waitsome
            | Effect::Testsome
            | Effect::Start
            | Effect::Startall
            | Effect::RequestFree => match of_requests(stream, call.effect, &given) {
                Some(statuses) => needed = statuses,
                None => return false,
            },
            // A message from nobody is none.
            Effect::Mprobe | Effect::Improbe => {
                stream.comm(given.comm(2));
                stream.unsigned(u64::from(abi.is_nobody(given.int(0))));
            }
            Effect::Mrecv => {
                stream.unsigned(given.message(3));
                needed = Some((4, 1));
            }
            Effect::Imrecv => stream.unsigned(given.message(3)),
            Effect::CommCreateGroup => {
                stream.comm(given.comm(0));
                // With sessions there is a text instead.
                let has_tag = words.len() == CREATE_GROUP;
                stream.signed(if has_tag { given.int(2) } else { 0 });
            }
            Effect::CommCreate | Effect::CommIdup | Effect::IntercommCreate | Effect::IntercommMerge => {
                stream.comm(given.comm(0));
            }
            Effect::CommFree => stream.comm(given.new_comm(0)),
            effect if windows::is_on_window(effect) => return windows::before(session, stream, effect, &given),
            _ => collectives::before(session, stream, call.effect, &given),
        }
    }
    needed.is_none_or(|statuses| provide(stream, abi, words, statuses))
}

/// Records the requests that a call is given. Returns the statuses that it writes, if any; nothing at all if there was no room.
#[inline]
unsafe fn of_requests(stream: &mut Stream, effect: Effect, given: &Arguments) -> Option<Option<Statuses>> {
    // SAFETY: the caller says so.
    unsafe {
        match effect {
            Effect::GetStatus => stream.request(given.request_itself(0)),
            Effect::Wait | Effect::Test | Effect::Start | Effect::RequestFree => stream.request(given.request(0, 0)),
            _ => {
                let count = requests(stream, given)?;
                return Some(match effect {
                    Effect::Waitall => Some((2, count)),
                    Effect::Testall => Some((3, count)),
                    Effect::Waitany => Some((3, 1)),
                    Effect::Testany => Some((4, 1)),
                    Effect::Waitsome | Effect::Testsome => Some((4, count)),
                    _ => None,
                });
            }
        }
    }
    Some(match effect {
        Effect::Wait => Some((1, 1)),
        Effect::Test | Effect::GetStatus => Some((2, 1)),
        _ => None,
    })
}

/// Gives a call a place for statuses that the program ignores. Returns whether there was room.
#[inline]
fn provide(stream: &mut Stream, abi: &Abi, words: &mut [usize], (argument, count): Statuses) -> bool {
    if let Some(word) = words.get_mut(argument)
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
        stream.unsigned(if peer >= 0 { given.bytes(1, 2) } else { 0 });
    }
}

/// What such a call is to receive: source and tag from an argument on, number and type of elements.
unsafe fn posted(stream: &mut Stream, given: &Arguments, from: usize, (count, datatype): (usize, usize)) {
    // SAFETY: all calls that send and receive have these arguments.
    unsafe {
        let source = given.int(from);
        let nobody = given.abi.is_nobody(source);
        stream.signed(match source {
            _ if nobody => NOBODY,
            ..0 => ANYBODY,
            rank => rank,
        });
        stream.signed(given.int(from + 1).max(-1));
        // Where nothing is received, the type need not be one.
        stream.unsigned(if nobody { 0 } else { given.bytes(count, datatype) });
    }
}

/// Number of requests and the requests: the first two arguments. None if there is no room.
unsafe fn requests(stream: &mut Stream, given: &Arguments) -> Option<usize> {
    // SAFETY: the caller says so.
    let count = unsafe { given.int(0) }.max(0) as usize;
    if !stream.reserve(count + ROOM) {
        return None;
    }
    stream.request_count(count);
    for k in 0..count {
        // SAFETY: the array has so many.
        stream.request(unsafe { given.request(1, k) });
    }
    // SAFETY: likewise.
    unsafe { given.note_active(count) };
    Some(count)
}

/// Records what a call gave back. Returns whether there was room.
pub(super) unsafe fn after(
    session: &Session,
    stream: &mut Stream,
    call: &Call,
    words: &[usize],
    now: u64,
    failed: bool,
) -> bool {
    let given = Arguments { words, mode: call.mode, abi: &session.abi };
    // SAFETY: the arguments have the types that the effect says, and what the function returns in them is there unless it failed.
    unsafe {
        if !failed && !described(session, stream, call, &given) {
            return false;
        }
        stream.leave(now, failed);
        failed || given_back(stream, call, &given)
    }
}

/// Records the name that a communicator or a window has now, and tells the state file. Returns whether there was room.
fn named(session: &Session, stream: &mut Stream, class: u64, handle: u64) -> bool {
    session.name(stream, class, handle, |name| {
        if let Some((board, _)) = HERE.with(|here| monitored(here, session)) {
            board.named(handle, name);
        }
    })
}

/// Records what a call has made or named, before its end: a communicator or a window. Returns whether there was room.
#[inline]
unsafe fn described(session: &Session, stream: &mut Stream, call: &Call, given: &Arguments) -> bool {
    let effect = call.effect;
    let last = given.words.len().saturating_sub(1);
    let made = match effect {
        Effect::CommCreate | Effect::CommCreateGroup | Effect::IntercommCreate | Effect::IntercommMerge => Some(last),
        Effect::CommIdup => last.checked_sub(1),
        _ => None,
    };
    // SAFETY: the caller says so.
    unsafe {
        if let Some(argument) = made {
            let new = given.new_comm(argument);
            // A duplicate that is being made cannot be asked, but has the group of the original.
            let like = if effect == Effect::CommIdup { given.comm(0) } else { new };
            let Some(member) = session.describe(stream, new, like, effect == Effect::CommCreateGroup) else {
                return false;
            };
            if let Some(member) = member
                && let Some((board, slot)) = HERE.with(|here| monitored(here, session))
            {
                board.joined(slot, effect, slot.comm(), &member);
            }
        }
        match effect {
            Effect::WinCreate | Effect::WinAllocate => {
                stream.unsigned(WINDOW);
                stream.win(given.new_win(last));
                if let Some((board, slot)) = HERE.with(|here| monitored(here, session)) {
                    board.window(slot, given.new_win(last));
                }
                true
            }
            Effect::CommName => named(session, stream, NAME_OF_COMMUNICATOR, given.comm(0)),
            Effect::WinName => named(session, stream, NAME_OF_WINDOW, given.win(0)),
            Effect::Region if call.subject == Subject::NewFile => {
                if let Some((board, slot)) = HERE.with(|here| monitored(here, session)) {
                    board.file(slot, given.new_file(last));
                }
                true
            }
            _ => true,
        }
    }
}

/// Records the results of a call, after its end. Returns whether there was room.
#[inline]
unsafe fn given_back(stream: &mut Stream, call: &Call, given: &Arguments) -> bool {
    let (abi, last) = (given.abi, given.words.len().saturating_sub(1));
    // Where the flag and the status of a test are.
    let (flag_at, status_at) = match call.effect {
        Effect::Test | Effect::GetStatus => (1, 2),
        Effect::Testall => (2, 3),
        Effect::Testany => (3, 4),
        Effect::WinTest => (1, 0),
        Effect::Improbe => (3, 5),
        _ => (0, last),
    };
    // SAFETY: the caller says so.
    unsafe {
        match call.effect.gives(call.form) {
            Gives::Nothing => {}
            Gives::Request => stream.request(given.request(last, 0)),
            Gives::Status => status(stream, abi, given.status(last, 0)),
            Gives::Statuses => return statuses(stream, given, 2),
            Gives::Indexed => {
                stream.unsigned(given.index(2, 0).map_or(0, |index| index as u64 + 1));
                status(stream, abi, given.status(3, 0));
            }
            Gives::Some => {
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
            Gives::Flag => {
                flag(stream, given, flag_at);
            }
            Gives::FlagStatus => {
                if flag(stream, given, flag_at) {
                    status(stream, abi, given.status(status_at, 0));
                }
            }
            Gives::FlagStatuses => {
                return !flag(stream, given, flag_at) || statuses(stream, given, status_at);
            }
            Gives::FlagIndexed => {
                if flag(stream, given, flag_at) {
                    stream.unsigned(given.index(2, 0).map_or(0, |index| index as u64 + 1));
                    status(stream, abi, given.status(status_at, 0));
                }
            }
            Gives::Message => stream.unsigned(given.message(3)),
            Gives::FlagMessage => {
                if flag(stream, given, flag_at) {
                    stream.unsigned(given.message(4));
                }
            }
        }
    }
    true
}

/// Whether a poll, which has not failed, has found nothing. One that had nothing to ask for, since all of its requests were null, has so among others only: it is not waiting.
#[inline]
pub(super) unsafe fn in_vain(stream: &Stream, call: &Call, given: &Arguments) -> bool {
    let of_requests = !matches!(call.effect, Effect::Region | Effect::Improbe | Effect::WinTest);
    if of_requests && !stream.has_requests() {
        return stream.polls_before();
    }
    let Some(&(_, says)) = POLLS.get(usize::from(call.poll).wrapping_sub(1)) else { return false };
    // SAFETY: the caller says that the arguments have the types that the effect says.
    unsafe {
        match call.effect {
            _ if call.waits => false,
            // Undefined, where no request was active.
            Effect::Testsome => given.result(usize::from(says), 0) <= 0,
            Effect::Testany => given.result(usize::from(says), 0) == 0 || given.index(2, 0).is_none(),
            _ => given.result(usize::from(says), 0) == 0,
        }
    }
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
