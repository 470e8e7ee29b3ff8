//! What calls on windows are given: the window, the target, bytes, groups.

use crate::arguments::Arguments;
use crate::format::calls::Effect;
use crate::session::Session;
use crate::stream::Stream;

/// Records the arguments of a call on a window. Returns whether there was room.
///
/// # Safety
/// The arguments are those of the call.
pub(super) unsafe fn before(session: &Session, stream: &mut Stream, effect: Effect, given: &Arguments) -> bool {
    // SAFETY: positions are those of the C binding.
    unsafe {
        match effect {
            Effect::WinCreate => stream.comm(given.comm(given.words.len().saturating_sub(2))),
            Effect::WinAllocate => stream.comm(given.comm(3)),
            Effect::WinFree => stream.win(given.new_win(0)),
            Effect::WinComplete
            | Effect::WinWait
            | Effect::WinTest
            | Effect::WinUnlockAll
            | Effect::WinFlushAll
            | Effect::WinFlushLocalAll => stream.win(given.win(0)),
            Effect::WinFence | Effect::WinLockAll => stream.win(given.win(1)),
            Effect::WinStart | Effect::WinPost => {
                stream.win(given.win(2));
                return session.group(stream, given.group(0));
            }
            Effect::WinLock => {
                stream.win(given.win(3));
                stream.signed(given.abi.peer_of(given.int(1)));
                stream.unsigned(u64::from(given.abi.is_exclusive(given.int(0))));
            }
            Effect::WinUnlock | Effect::WinFlush | Effect::WinFlushLocal => {
                stream.win(given.win(1));
                stream.signed(given.abi.peer_of(given.int(0)));
            }
            _ => access(stream, effect, given),
        }
    }
    true
}

/// # Safety
/// As above.
unsafe fn access(stream: &mut Stream, effect: Effect, given: &Arguments) {
    // Positions of window, target, and the number (where there is one) and type of elements.
    let (win, target, count, datatype) = match effect {
        Effect::Put | Effect::Get => (7, 3, Some(1), 2),
        Effect::Accumulate => (8, 3, Some(1), 2),
        // What is returned has as many bytes as what is sent, which need not be valid (`MPI_NO_OP`).
        Effect::GetAccumulate => (11, 6, Some(4), 5),
        Effect::FetchAndOp => (6, 3, None, 2),
        _ => (6, 4, None, 3),
    };
    // SAFETY: as above. Where nothing is accessed, the type need not be one.
    unsafe {
        let target = given.abi.peer_of(given.int(target));
        let bytes = match count {
            _ if target < 0 => 0,
            Some(count) => given.bytes(count, datatype),
            None => given.size(datatype),
        };
        let (sent, received) = match effect {
            Effect::Put | Effect::Accumulate => (bytes, 0),
            Effect::Get => (0, bytes),
            Effect::GetAccumulate if given.no_op(10) => (0, bytes),
            Effect::FetchAndOp if given.no_op(5) => (0, bytes),
            _ => (bytes, bytes),
        };
        stream.win(given.win(win));
        stream.signed(target);
        stream.unsigned(sent);
        stream.unsigned(received);
    }
}

/// Whether it is a call on a window.
pub(super) fn is_on_window(effect: Effect) -> bool {
    matches!(
        effect,
        Effect::WinCreate
            | Effect::WinAllocate
            | Effect::WinFree
            | Effect::WinFence
            | Effect::WinStart
            | Effect::WinPost
            | Effect::WinComplete
            | Effect::WinWait
            | Effect::WinTest
            | Effect::WinLock
            | Effect::WinUnlock
            | Effect::WinLockAll
            | Effect::WinUnlockAll
            | Effect::WinFlush
            | Effect::WinFlushAll
            | Effect::WinFlushLocal
            | Effect::WinFlushLocalAll
            | Effect::Put
            | Effect::Get
            | Effect::Accumulate
            | Effect::GetAccumulate
            | Effect::FetchAndOp
            | Effect::CompareAndSwap
    )
}
