//! What every MPI call needs: checked return codes, communicators, and requests that own their buffers.
//!
//! Safety, for all immediate operations: MPI reads or writes a buffer between the start of an operation and its completion. A
//! [`ImmediateOperation`] owns its buffers on the heap (boxed slices do not move when the request does); nobody sees them before
//! the operation is complete. A request that is dropped while incomplete leaks its buffers rather than freeing them under MPI.
//! Counts are checked to fit a C int, element types are fixed by the types of the buffers.
#![allow(unsafe_code)]

use clc_trace::{Error, Result};
use mpi::ffi;
use std::ffi::c_int;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::time::Duration;

/// Turns a return code into an error that names the call and what the library says about it.
pub(super) fn check(what: &str, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let mut text = [0u8; 4096];
    let mut length: c_int = 0;
    // SAFETY: the buffer is larger than MPI_MAX_ERROR_STRING of any library (at most 1024).
    let told = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut length) };
    let text = if told == 0 {
        String::from_utf8_lossy(&text[..length.clamp(0, 4096) as usize]).into_owned()
    } else {
        format!("error {code}")
    };
    Err(Error::new(format!("{what} failed: {text}")))
}

/// A length as MPI takes it.
pub(super) fn count(length: usize, what: &str) -> Result<c_int> {
    c_int::try_from(length).map_err(|_| Error::new(format!("{what}: more than 2^31 elements in one message")))
}

/// A rank as MPI takes it.
pub(super) fn rank_number(rank: usize) -> c_int {
    // A rank that is too large for MPI does not exist, as -7 does not: MPI says so.
    c_int::try_from(rank).unwrap_or(-7)
}

/// How long an abort waits for the launcher to take the output. Chosen by hand: a shorter wait may lose the message that says why, a longer one only
/// delays the end.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Ends all ranks; returns only if MPI is not running.
pub(super) fn abort(status: i32) {
    let (mut begun, mut ended): (c_int, c_int) = (0, 0);
    // SAFETY: plain output arguments; both calls are allowed at any time, from any thread.
    let running = unsafe {
        ffi::MPI_Initialized(&mut begun) == 0 && ffi::MPI_Finalized(&mut ended) == 0 && begun != 0 && ended == 0
    };
    if running {
        // What this rank has printed travels through the launcher, which an abort can overtake: MPICH's then drops it.
        std::thread::sleep(LAST_WORDS);
        // SAFETY: no buffers; MPI is initialised and not finalised. The panic hook may call this from a thread that did not
        // initialise MPI: no library takes a lock for it that matters to a job which ends here.
        unsafe {
            ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, status);
        }
    }
}

/// Makes a process that no launcher has started a world of its own at once: Open MPI otherwise starts a daemon first.
pub(super) fn expect_no_launcher() {
    const ISOLATED: &str = "OMPI_MCA_ess_singleton_isolated";
    if std::env::var_os(ISOLATED).is_none() {
        // SAFETY: called before MPI is initialised, at the start of the program, while there is one thread.
        unsafe { std::env::set_var(ISOLATED, "1") }
    }
}

/// A communicator, with the calling process's place in it.
#[derive(Clone, Copy)]
pub(super) struct MpiCommunicator {
    /// The library's handle.
    pub raw: ffi::MPI_Comm,
    /// This process.
    pub rank: usize,
    /// Number of processes.
    pub size: usize,
}

impl MpiCommunicator {
    /// `MPI_COMM_WORLD`, told to return errors.
    pub(super) fn world() -> Result<MpiCommunicator> {
        // SAFETY: constants of the library; MPI is initialised.
        let raw = unsafe { ffi::RSMPI_COMM_WORLD };
        // SAFETY: as above.
        check("MPI_Comm_set_errhandler", unsafe { ffi::MPI_Comm_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN) })?;
        MpiCommunicator::describe(raw)
    }

    /// The same ranks with message and collective traffic of its own (`MPI_Comm_dup`).
    pub(super) fn duplicate(&self) -> Result<MpiCommunicator> {
        let mut new = MaybeUninit::uninit();
        // SAFETY: the handle is written by the call before it is read.
        unsafe {
            check("MPI_Comm_dup", ffi::MPI_Comm_dup(self.raw, new.as_mut_ptr()))?;
            MpiCommunicator::describe(new.assume_init())
        }
    }

    /// Gives the communicator back to the library; it must not be used any more, also not by operations under way.
    pub(super) fn free(mut self) {
        // SAFETY: a communicator made by `duplicate` or `subset`; a failure leaves it to MPI_Finalize.
        unsafe {
            ffi::MPI_Comm_free(&mut self.raw);
        }
    }

    fn describe(raw: ffi::MPI_Comm) -> Result<MpiCommunicator> {
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: plain output arguments.
        check("MPI_Comm_rank", unsafe { ffi::MPI_Comm_rank(raw, &mut rank) })?;
        // SAFETY: as above.
        check("MPI_Comm_size", unsafe { ffi::MPI_Comm_size(raw, &mut size) })?;
        Ok(MpiCommunicator { raw, rank: rank as usize, size: size as usize })
    }

    /// A communicator of `members` in that order; called by the members only (`MPI_Comm_create_group`).
    pub(super) fn subset(&self, members: &[usize], tag: u32) -> Result<MpiCommunicator> {
        let ranks: Vec<c_int> = members.iter().map(|&member| rank_number(member)).collect();
        let length = count(ranks.len(), "MPI_Group_incl")?;
        // Every library allows tags up to 32767 at least; equal tags only matter for groups made at the same time.
        let tag = (tag & 0x7fff) as c_int;
        let (mut all, mut group, mut new) = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: each handle is written by the call before it is read or freed; `ranks` outlives the call that reads it.
        unsafe {
            check("MPI_Comm_group", ffi::MPI_Comm_group(self.raw, all.as_mut_ptr()))?;
            let included = ffi::MPI_Group_incl(all.assume_init(), length, ranks.as_ptr(), group.as_mut_ptr());
            ffi::MPI_Group_free(all.as_mut_ptr());
            check("MPI_Group_incl", included)?;
            let created = ffi::MPI_Comm_create_group(self.raw, group.assume_init(), tag, new.as_mut_ptr());
            ffi::MPI_Group_free(group.as_mut_ptr());
            check("MPI_Comm_create_group", created)?;
            MpiCommunicator::describe(new.assume_init())
        }
    }
}

/// An immediate operation with the buffers it works on.
pub(super) struct ImmediateOperation<B> {
    raw: ffi::MPI_Request,
    /// Freed only when the operation is complete.
    buffers: ManuallyDrop<B>,
    done: bool,
    what: &'static str,
}

impl<B> ImmediateOperation<B> {
    /// Starts an operation: `start` makes the call with pointers into the (heap-allocated) buffers.
    pub(super) fn start(
        what: &'static str,
        buffers: B,
        start: impl FnOnce(&mut B, &mut ffi::MPI_Request) -> c_int,
    ) -> Result<ImmediateOperation<B>> {
        let mut request = ImmediateOperation {
            // SAFETY: a constant of the library.
            raw: unsafe { ffi::RSMPI_REQUEST_NULL },
            buffers: ManuallyDrop::new(buffers),
            done: false,
            what,
        };
        check(what, start(&mut request.buffers, &mut request.raw))?;
        Ok(request)
    }

    /// Whether it is complete.
    pub(super) fn test(&mut self) -> Result<bool> {
        if !self.done {
            let mut flag: c_int = 0;
            // SAFETY: the request was written by the call that started the operation.
            let tested = unsafe { ffi::MPI_Test(&mut self.raw, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
            check(self.what, tested)?;
            self.done = flag != 0;
        }
        Ok(self.done)
    }

    /// The buffers of a complete operation.
    pub(super) fn finish(mut self) -> Result<B> {
        if !self.done {
            return Err(Error::new(format!("{} was considered complete too early", self.what)));
        }
        // Nothing is left for `drop` to free.
        self.done = false;
        // SAFETY: MPI has finished with the buffers, and they are taken once, since `self` ends here.
        Ok(unsafe { ManuallyDrop::take(&mut self.buffers) })
    }
}

impl<B> Drop for ImmediateOperation<B> {
    fn drop(&mut self) {
        if self.done {
            // SAFETY: MPI has finished with the buffers, and nobody uses them after the drop.
            unsafe { ManuallyDrop::drop(&mut self.buffers) }
        }
    }
}
