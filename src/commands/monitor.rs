//! `clc-replay agent`, `jobs` and `watch`: jobs that run, as `clc-replay record --monitor` has started them.

use super::agent::agent;
use super::jobs::list;
use super::watch::watch;
use crate::cli::MonitorJob;
use clc_trace::Result;

/// Does what is asked; returns the exit status. This process must not have started MPI.
///
/// # Errors
/// There is no such job, or its agents do not answer.
pub fn monitor(job: &MonitorJob) -> Result<u8> {
    match job {
        MonitorJob::Agent(options) => agent(options),
        MonitorJob::Jobs(options) => list(options),
        MonitorJob::Watch(options) => watch(options),
    }
}
