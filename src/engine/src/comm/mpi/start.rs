//! From a process to a rank: initialisation, the check for a launcher of another library, and what a panic does.

use crate::comm::backoff::Backoff;
use crate::comm::launch::{self, Launch};
use crate::comm::mpi::call::{self, MpiCommunicator};
use crate::comm::mpi::heartbeat::Heartbeat;
use crate::comm::mpi::mail::Mail;
use crate::comm::mpi::max_excluding::MaxExcludingReduction;
use crate::comm::mpi::{MpiTransport, Transport};
use clc_trace::{Error, Result};
use std::io::Write;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a run that ends in a panic, as of a Rust program that panics alone.
const PANIC_STATUS: i32 = 101;

impl MpiTransport {
    /// Initialises MPI; to be called from the main thread before others are started. A panic on any rank from now on ends
    /// all of them, with its message printed once.
    ///
    /// # Errors
    /// MPI is already initialised or refuses; the launcher of another MPI library has started this process, so that MPI sees one rank
    /// where there are several.
    pub fn initialise() -> Result<MpiTransport> {
        let launch = Launch::from_environment();
        if !launch.by_launcher {
            call::expect_no_launcher();
        }
        let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled)
            .ok_or_else(|| Error::new("MPI is already initialised"))?;
        // If something fails from here on, others may wait for this rank within MPI, and finalising would wait for them. A process that
        // ends without it ends the job.
        let universe = ManuallyDrop::new(universe);
        let world = MpiCommunicator::world()?;
        abort_on_panic(world.rank);
        let (traffic, votes, signs) = (world.duplicate()?, world.duplicate()?, world.duplicate()?);
        let reduction = MaxExcludingReduction::new()?;
        let heartbeat = Heartbeat::start(signs, mpi::environment::processor_name().unwrap_or_default())?;
        let transport = MpiTransport {
            world,
            traffic,
            votes,
            signs,
            groups: Vec::new(),
            reduction,
            mail: Mail::default(),
            vote: None,
            farewell: None,
            heartbeat,
            exchanges: 0,
            backoff: Backoff::default(),
            _universe: ManuallyDrop::into_inner(universe),
            _not_send: PhantomData,
        };
        match launch.ranks {
            // Each of them would correct the whole trace.
            Some(ranks) if ranks > 1 && transport.size() == 1 => Err(launch::foreign(ranks, &transport.library())),
            _ => Ok(transport),
        }
    }
}

/// Without this, a rank that panics finalises MPI while it unwinds and waits there for the others, who wait for it.
fn abort_on_panic(rank: usize) {
    static PANICKED: AtomicBool = AtomicBool::new(false);
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The first panic of this process tells what went wrong; others follow from it, or from the end of the job.
        if !PANICKED.swap(true, Ordering::SeqCst) {
            let _ = writeln!(std::io::stderr(), "analysis rank {rank} failed; this is a bug in clc-replay:");
            print(panic);
            call::abort(PANIC_STATUS);
        }
    }));
}
