//! What is written must not be in the way of what is read.

use crate::cli::{Invocation, Pause};
use crate::output::paths;
use clc_engine::comm::{AnalysisRank, Transport, broadcast_value, check_setting};
use clc_trace::{Error, Result};

/// Checks, before any work, that nothing that the job reads is in the way of what it writes. Rank 0 does it, for all.
///
/// # Errors
/// An output lies in the input, or where another one is.
pub fn check_targets(transport: &mut dyn Transport, job: &Invocation) -> Result<()> {
    let checked = if transport.rank() == AnalysisRank::FIRST { check(job) } else { Ok(()) };
    broadcast_value(transport, AnalysisRank::FIRST, checked)?
}

fn check(job: &Invocation) -> Result<()> {
    check_setting()?;
    Pause::check_setting()?;
    if let [one, other, ..] = job.to_stdout()[..] {
        return Err(
            Error::new(format!("{one} and {other} both go to standard output")).hint("choose a file for one of them")
        );
    }
    paths::check(&job.inputs(), &job.targets(), job.force())
}
