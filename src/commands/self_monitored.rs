//! `clc-replay TRACE --monitor`: the correction is monitored as any job is (docs/monitor.md). The program starts itself anew, with the recorder before the MPI library,
//! which records nothing but tells what every rank does; that takes the place of the watchdog.

use crate::cli::CorrectOptions;
use crate::recording::{launch, monitored};
use clc_monitor::jobs::{Alarm, Job};
use clc_trace::{Error, Result};
use std::ffi::OsString;
use std::path::PathBuf;

/// Says that this is the program that was started anew.
const ANEW: &str = "CLC_REPLAY_MONITORED";
/// When nobody has moved for so many seconds, the alarm is raised, unless another time was asked for: as the watchdog does.
const PATIENCE: f64 = 10.0;

/// Starts the program anew if that is needed; returns otherwise. MPI must not have been started.
///
/// # Errors
/// The recorder is not there; the directory of the job cannot be made.
pub fn start_anew(options: &CorrectOptions) -> Result<()> {
    let how = &options.monitored;
    let Some(rank) = launch::rank().filter(|_| how.monitor && std::env::var_os(ANEW).is_none()) else { return Ok(()) };
    let output = options.output_directory()?;
    let directory = directory(options)?;
    let id = monitored::identity(&directory, true);
    let states = clc_monitor::jobs::state_directory(&id)
        .map_err(|error| Error::new(format!("cannot create the shared state of the processes: {error}")))?;
    let mut command = launch::monitored(&states)?;
    launch::hand_on(&mut command, &monitored::environment(&directory, &id)?);
    command.env(ANEW, &id).env("CLC_REPLAY_WATCH", "0");
    if rank == 0 {
        let alarm = how.alarm.clone().unwrap_or_else(|| Alarm { seconds: PATIENCE, file: "alarm.txt".into() });
        let setup = monitored::MonitorSetup { alarm: Some(alarm), interface: how.interface.clone() };
        let words: Vec<OsString> = std::env::args_os().collect();
        let words = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        monitored::prepare(&output, &directory, id, words, &setup)?;
    }
    Err(launch::become_application(command))
}

/// Whether this is the program that was started anew; else, why `--monitor` does nothing.
pub fn check(options: &CorrectOptions) {
    if options.monitored.monitor && std::env::var_os(ANEW).is_none() {
        tracing::warn!("--monitor has no effect: this run was not started by an MPI launcher");
    }
}

/// At the end, on rank 0: removes what belonged to watching, if the run has succeeded and no alarm was raised; else says where it is.
pub fn finish(options: &CorrectOptions, succeeded: bool) {
    let Some(job) = std::env::var(ANEW).ok().and_then(|id| {
        let job = Job::open(&directory(options).ok()?).ok()?;
        (job.about.id == id).then_some(job)
    }) else {
        return;
    };
    if let Some(seen) = monitored::finish(&job, succeeded) {
        tracing::warn!("{seen}");
    }
}

fn directory(options: &CorrectOptions) -> Result<PathBuf> {
    let output = options.output_directory()?;
    let directory = monitored::monitor_directory(&output);
    std::path::absolute(&directory).map_err(|error| Error::io(&output, "cannot resolve the path", &error))
}
