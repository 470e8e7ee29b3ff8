//! What is recorded of a call: before it what it was given, after it what came back. The contents are described with each [`Effect`].

mod collectives;
mod ending;
mod records;
mod windows;

use crate::arguments::Arguments;
use crate::calls::{Call, notes};
use crate::clock;
use crate::control;
use crate::file;
use crate::format::calls::Effect;
use crate::helper;
use crate::layout::phase;
use crate::monitor::{self, Slot};
use crate::session::{self, Session};
use crate::stream::Stream;
use crate::thread_birth;
use ending::Ending;
use records::{ROOM, after, before, in_vain};
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::null_mut;

/// What a thread knows.
struct Here {
    /// Within a wrapper: calls that the MPI library itself makes are not the program's.
    inside: Cell<bool>,
    /// Where the stack was when that wrapper was called; 0 if that is not asked.
    frame: Cell<usize>,
    /// Within the recorder: a signal handler that interrupts it is not recorded.
    busy: Cell<bool>,
    /// Where its records go, and those that are kept in a ring; null before the first one.
    stream: Cell<*mut Stream>,
    kept: Cell<*mut Stream>,
    /// The one of both in which the last call began.
    last: Cell<*mut Stream>,
    /// Its number plus 1; 0 before the first record.
    number: Cell<u64>,
    /// When `MPI_Init` was called.
    entered: Cell<u64>,
    /// The call of `MPI_Finalize`; none before.
    ending: Cell<Option<Ending>>,
    /// The call that the thread is in is recorded, not only monitored.
    recorded: Cell<bool>,
    /// Its place in the state file; none before it was asked for.
    slot: Cell<Slot>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            inside: Cell::new(false),
            frame: Cell::new(0),
            busy: Cell::new(false),
            stream: Cell::new(null_mut()),
            kept: Cell::new(null_mut()),
            last: Cell::new(null_mut()),
            number: Cell::new(0),
            entered: Cell::new(0),
            ending: Cell::new(None),
            recorded: Cell::new(false),
            slot: Cell::new(Slot::UNKNOWN),
        }
    };
}

/// Before a call. Returns whether it is recorded: then [`end`] has to follow it.
///
/// # Safety
/// The arguments are those of the function.
#[inline]
pub(crate) unsafe fn begin(call: &Call, arguments: &mut [usize]) -> bool {
    HERE.with(|here| {
        let mark = 0_u8;
        let frame = std::hint::black_box(&raw const mark) as usize;
        if here.busy.get() || here.inside.get() && !left_by_jump(here, frame) {
            return false;
        }
        if let Effect::Init | Effect::InitThread | Effect::Finalize = call.effect {
            // SAFETY: as for this function.
            return unsafe { begin_or_end_of_mpi(here, call) };
        }
        let Some(session) = session::recording() else { return false };
        let skipped = control::paused() && !call.effect.is_kept(call.form);
        if skipped && session.board.is_none() {
            return false;
        }
        here.busy.set(true);
        // SAFETY: as for this function.
        let recorded = own_stream(here, session, call).is_some_and(|stream| unsafe {
            let mut joins = false;
            let written = stream.reserve(ROOM) && {
                here.last.set(stream);
                let is_poll = call.poll != 0 && session.control.joins_polls;
                let in_row = is_poll && stream.poll_begins();
                stream.enter(call.number);
                let written = before(session, stream, call, arguments);
                // What waits counts at once: it may wait forever.
                joins = in_row && !(call.waits && stream.has_requests());
                written
            };
            if !written {
                session::stop(file::why_not());
                return false;
            }
            if let Some((board, slot)) = monitored(here, session) {
                let given = Arguments { words: arguments, mode: call.mode, abi: &session.abi };
                let now = stream.inside_since.load(std::sync::atomic::Ordering::Relaxed);
                board.enter(slot, call, &given, stream.last_comm(), now);
                if let Effect::WinStart | Effect::WinPost = call.effect {
                    board.epoch_begins(slot, call.effect, stream.last_group(), now);
                }
            }
            if skipped {
                stream.roll_back();
            } else if !joins {
                stream.commit();
            }
            true
        });
        here.inside.set(recorded);
        here.frame.set(frame);
        here.recorded.set(!skipped);
        here.busy.set(false);
        recorded
    })
}

/// Of a thread within a wrapper that calls another one, with the stack at `frame`: whether the first one has been left without its end, by an exception or `longjmp` out of an error handler. What MPI calls
/// within it lies deeper in the stack (or far away, in another stack). So do calls with more arguments at the same place, until one with as few comes: where wrappers of Fortran call those of C (MPICH), the difference
/// is no larger. Its end is recorded then, as that of a call that has failed.
#[cold]
fn left_by_jump(here: &Here, frame: usize) -> bool {
    /// Callers of both calls are at most so many bytes apart. Chosen by hand: more than the locals of the functions between them take, less than any other stack is away.
    const NEAR: usize = 1 << 20;
    let begun = here.frame.get();
    if begun == 0 || !(begun..=begun.saturating_add(NEAR)).contains(&frame) {
        return false;
    }
    here.inside.set(false);
    // SAFETY: as for `stream_of`.
    let stream = unsafe { here.last.get().as_mut() };
    if let Some(stream) = stream.filter(|_| here.recorded.get() && session::recording().is_some()) {
        here.busy.set(true);
        if stream.reserve(ROOM) {
            stream.leave(clock::before(), true);
            stream.commit();
        }
        here.busy.set(false);
    }
    true
}

/// The state file of this process and the place of this thread in it, if there is one.
#[inline(always)]
fn monitored(here: &Here, session: &Session) -> Option<(&'static monitor::Board, Slot)> {
    let board = session.board?;
    let slot = here.slot.get();
    if slot.is_there() {
        return Some((board, slot));
    }
    if slot == Slot::UNKNOWN { first_slot(here, board) } else { None }
}

#[cold]
fn first_slot(here: &Here, board: &'static monitor::Board) -> Option<(&'static monitor::Board, Slot)> {
    let slot = board.new_slot();
    here.slot.set(slot);
    (slot != Slot::NONE).then_some((board, slot))
}

/// A region of the program begins, whose number in the state file is found by `number`; or one ends.
#[inline]
pub(crate) fn region(number: Option<impl FnOnce(&monitor::Board) -> u64>) {
    HERE.with(|here| {
        let session = session::recording().filter(|_| !here.busy.get());
        if let Some((board, slot)) = session.and_then(|session| monitored(here, session)) {
            match number {
                Some(number) => slot.region_begins(number(board)),
                None => slot.region_ends(),
            }
        }
    });
}

/// The stream of this thread for a call; none if there cannot be one.
#[inline]
fn own_stream<'a>(here: &Here, session: &'static Session, call: &Call) -> Option<&'a mut Stream> {
    let kept = session.control.ring && call.effect.is_kept(call.form);
    // SAFETY: as for `stream_of`.
    if kept && let Some(other) = unsafe { here.stream.get().as_mut() } {
        other.forget_polls();
    }
    stream_of(here, session, if kept { &here.kept } else { &here.stream }, kept)
}

#[inline]
fn stream_of<'a>(
    here: &Here,
    session: &'static Session,
    place: &Cell<*mut Stream>,
    kept: bool,
) -> Option<&'a mut Stream> {
    if place.get().is_null() {
        first_record(here, session, place, kept);
    }
    // SAFETY: streams live as long as the process, and this one belongs to this thread, which is here once at a time.
    unsafe { place.get().as_mut() }
}

/// Makes the stream of a thread that has none there.
#[cold]
fn first_record(here: &Here, session: &'static Session, place: &Cell<*mut Stream>, kept: bool) {
    let is_new = here.number.get() == 0;
    if is_new {
        here.number.set(session.new_thread() + 1);
    }
    place.set(session.new_stream(here.number.get() - 1, kept));
    // SAFETY: as for `stream_of`.
    if let Some(stream) = unsafe { place.get().as_mut() }.filter(|_| is_new) {
        thread_birth::begin_file(stream);
    }
}

/// Whether this thread has recorded something and is now in the program, neither in MPI nor in the recorder.
pub(crate) fn is_recorded() -> bool {
    HERE.with(|here| here.number.get() != 0 && !here.inside.get() && !here.busy.get() && session::recording().is_some())
}

/// Lets something else append a record of so many integers to the stream of this thread.
#[inline]
pub(crate) fn append(integers: usize, write: impl FnOnce(&mut Stream)) {
    HERE.with(|here| {
        let Some(session) = session::recording() else { return };
        if control::paused() || here.busy.replace(true) {
            return;
        }
        if let Some(stream) = stream_of(here, session, &here.stream, false) {
            if stream.reserve(integers) {
                write(stream);
                stream.commit();
            } else {
                session::stop(file::why_not());
            }
        }
        here.busy.set(false);
    });
}

/// After a call that is recorded.
///
/// # Safety
/// The arguments are those of the function, with those that [`begin`] has replaced.
#[inline]
pub(crate) unsafe fn end(call: &Call, arguments: &[usize], result: c_int) {
    HERE.with(|here| {
        let now = clock::after();
        if let Effect::Init | Effect::InitThread = call.effect {
            if result == 0 {
                let first = session::start(call.number, here.entered.get());
                ending::attach();
                let session = session::recording();
                if let Some(session) = session.filter(|_| !first.is_null()) {
                    helper::start(session);
                }
                let ring = session.is_some_and(|session| session.control.ring);
                (if ring { &here.kept } else { &here.stream }).set(first);
                here.number.set(u64::from(!first.is_null()));
            }
            if let Some(board) = monitor::board().filter(|_| session::recording().is_none()) {
                board.phase(phase::UNWATCHED);
            }
            here.inside.set(false);
            return;
        }
        if call.effect == Effect::Finalize {
            ending::end(here, result != 0);
            return;
        }
        here.inside.set(false);
        let Some(session) = session::recording() else { return };
        if let Some((board, slot)) = monitored(here, session) {
            // SAFETY: as for this function.
            unsafe { watch_end(session, board, slot, call, arguments, now, result != 0) };
            if !here.recorded.get() {
                return;
            }
        }
        let Some(stream) = own_stream(here, session, call) else { return };
        here.busy.set(true);
        // SAFETY: as for this function.
        let vain = call.poll != 0
            && (stream.polls_before() || !call.waits)
            && session.control.joins_polls
            && result == 0
            && unsafe { in_vain(stream, call, &Arguments { words: arguments, mode: call.mode, abi: &session.abi }) };
        let written = stream.reserve(ROOM)
            && (vain && stream.joins_poll(call.poll, now)
                // SAFETY: as for this function.
                || unsafe { after(session, stream, call, arguments, now, result != 0) });
        if written {
            stream.commit();
            if vain {
                stream.poll_was_in_vain();
            }
        } else {
            session::stop(file::why_not());
        }
        here.busy.set(false);
    })
}

/// # Safety
/// As for [`begin`].
#[cold]
unsafe fn begin_or_end_of_mpi(here: &Here, call: &Call) -> bool {
    if call.effect == Effect::Finalize {
        return ending::begin(here, call.number);
    }
    here.inside.set(true);
    here.frame.set(0);
    here.entered.set(session::first_time());
    monitor::begin();
    true
}

/// After a call: what the state file says of it.
///
/// # Safety
/// As for [`end`].
#[inline(always)]
unsafe fn watch_end(
    session: &Session,
    board: &monitor::Board,
    slot: Slot,
    call: &Call,
    words: &[usize],
    now: u64,
    failed: bool,
) {
    if call.notes == 0 {
        return board.leave(slot, failed || !call.probe, None, now);
    }
    let given = Arguments { words, mode: call.mode, abi: &session.abi };
    // SAFETY: the arguments have the types that the effect says, and what the function returns in them is there unless it failed.
    unsafe {
        let did = failed
            || call.notes & notes::TEST == 0
            || match given.result(call.flag.into(), 0) {
                // So many are complete, or it is undefined.
                count if call.effect == Effect::Testsome => count > 0,
                flag => flag != 0,
            };
        let made = !failed && call.notes & notes::REQUEST != 0;
        let request = if made { given.request(words.len().saturating_sub(1), 0) } else { None };
        if call.notes & notes::FREES != 0 && !failed {
            board.freed(slot.comm());
        }
        if call.notes & notes::EPOCH != 0 && did && !failed {
            board.epoch_changes(slot, call.effect, now);
        }
        board.leave(slot, did, request, now);
    }
}
