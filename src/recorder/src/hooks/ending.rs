//! The end of MPI. `MPI_Finalize` first deletes the attributes of `MPI_COMM_SELF`: a program may have functions called then, and these may do what other processes wait
//! for before they get there. So the recording does not end, and nobody waits for the others, before they have been called: the recorder has an attribute of its own, and
//! the one that was attached first is deleted last (MPI 4.0, 11.2.4).

use super::{HERE, Here};
use crate::clock;
use crate::layout::phase;
use crate::monitor::{self, Board};
use crate::session;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// A call of `MPI_Finalize`.
#[derive(Clone, Copy)]
pub(super) struct Ending {
    /// Number of the function, and when it was called.
    call: (u64, u64),
    /// The state file says of this process what it does.
    board: Option<&'static Board>,
}

/// MPI has agreed to tell.
static ATTACHED: AtomicBool = AtomicBool::new(false);

/// After `MPI_Init`: has [`told`] called.
#[cold]
pub(super) fn attach() {
    let Some(abi) = session::begun().map(|session| &session.abi) else { return };
    let mut key: c_int = 0;
    let (copy, delete) = (is_not_copied as *const () as usize, told as *const () as usize);
    // SAFETY: the functions have the types that MPI expects, and the key has room.
    let attached = unsafe {
        (abi.mpi.comm_create_keyval)(copy, delete, &raw mut key as usize, 0) == 0
            && (abi.mpi.comm_set_attr)(abi.own as usize, key as usize, 0) == 0
    };
    ATTACHED.store(attached, Ordering::Release);
}

/// A duplicate of `MPI_COMM_SELF` may be freed at any time.
unsafe extern "C" fn is_not_copied(_: usize, _: c_int, _: usize, _: usize, _: usize, flag: *mut c_int) -> c_int {
    // SAFETY: MPI passes the address of a flag.
    unsafe { *flag = 0 };
    0
}

extern "C" fn told(_: usize, _: c_int, _: usize, _: usize) -> c_int {
    HERE.with(|here| last(here, true));
    0
}

/// Before `MPI_Finalize`, which is function `number`. Returns whether [`end`] has to follow it.
pub(super) fn begin(here: &Here, number: u64) -> bool {
    // Its Fortran form calls that of C.
    if here.ending.get().is_some() || !session::has_begun() {
        return false;
    }
    let board = session::recording().and_then(|_| monitor::board());
    if let Some(board) = board {
        board.phase(phase::FINALIZING);
    }
    here.ending.set(Some(Ending { call: (number, clock::before()), board }));
    if !ATTACHED.load(Ordering::Acquire) {
        last(here, true);
    }
    true
}

/// After `MPI_Finalize`.
pub(super) fn end(here: &Here, failed: bool) {
    // MPI goes on, and has not told yet, where the program has a session (MPICH 4.0).
    last(here, !failed);
    here.inside.set(false);
    if let Some(board) = here.ending.get().and_then(|ending| ending.board) {
        board.phase(phase::FINALIZED);
    }
}

/// Ends the recording, if it has not ended; `measure` says whether MPI can still be used.
#[cold]
fn last(here: &Here, measure: bool) {
    let Some(Ending { call, .. }) = here.ending.get() else { return };
    here.inside.set(true);
    here.frame.set(0);
    let ring = session::recording().is_some_and(|session| session.control.ring);
    session::finish(if ring { here.kept.get() } else { here.stream.get() }, call, measure);
}
