//! How this process was started, and which transport follows from that.

use crate::comm::Transport;
use crate::comm::local::LocalTransport;
use crate::comm::mpi::MpiTransport;
use crate::trace::{Error, Result};

/// The transport for this process: MPI if a launcher started it, otherwise one rank without MPI, which starts at once and
/// works where MPI does not (login nodes). The environment variable `CLC_REPLAY_MPI` = `always` or `never` overrides that.
///
/// # Errors
/// MPI cannot be initialised; a launcher of another MPI library started this process.
pub fn start() -> Result<Box<dyn Transport>> {
    let wanted = match std::env::var("CLC_REPLAY_MPI").ok().as_deref() {
        Some("always") => true,
        Some("never") => false,
        None | Some("") => launched(),
        Some(other) => {
            return Err(Error::new(format!("CLC_REPLAY_MPI is '{other}'")).hint("it can be 'always' or 'never'"));
        }
    };
    if !wanted {
        return Ok(Box::new(LocalTransport::alone()));
    }
    let transport = MpiTransport::initialise()?;
    match expected_ranks() {
        // With one rank in the world although the launcher started several, each of them would correct the whole trace.
        Some(expected) if expected > 1 && transport.size() == 1 => Err(Error::new(format!(
            "the launcher started {expected} processes, but MPI sees only this one; clc-replay was built with {}",
            transport.library()
        ))
        .hint("start it with the mpirun of that library")),
        _ => Ok(Box::new(transport)),
    }
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Ranks in the world according to the launcher, if it says so.
fn expected_ranks() -> Option<usize> {
    number("OMPI_COMM_WORLD_SIZE").or_else(|| number("PMI_SIZE")).or_else(|| number("MPI_LOCALNRANKS"))
}

/// Whether a launcher of MPI processes started this one.
fn launched() -> bool {
    let signs =
        ["OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALRANKID", "ALPS_APP_PE", "PALS_RANKID"];
    signs.iter().any(|sign| std::env::var_os(sign).is_some()) || number("SLURM_STEP_NUM_TASKS").is_some_and(|n| n > 1)
}
