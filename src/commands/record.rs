//! `clc-replay record -o DIR -- COMMAND`: runs an MPI application and records it.
//!
//! Started by hand, it starts the launcher, waits, and makes the archive. Started by the launcher, once for each process, it becomes the application; only that
//! of rank 0 waits for it and makes the archive: when its application ends, the files of all processes are complete.

use crate::cli::{RecordOptions, Stop};
use crate::output::directory::Output;
use crate::recording::{
    RecordingSettings, holds_records, keep_logs, launch, monitored, publish, raw_directory, remove, still_running,
    telling,
};
use clc_trace::progress::Progress;
use clc_trace::{Error, Result};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Agents notice within that time that the application has ended, and write down what they have logged.
const FLUSH: Duration = Duration::from_millis(250);

/// So long a process may outlive its launcher. Chosen by hand: Open MPI and MPICH end what is left of an application within a second, if they can.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs and records; returns the exit status of the application. This process must not have started MPI.
///
/// # Errors
/// The application cannot be started or there is no place for the recording: it has not run then. No archive can be made of what was recorded, and this was not started by a
/// launcher: the error says that it has run.
pub fn record(options: &RecordOptions, progress: &dyn Progress) -> Result<u8> {
    let raw = std::path::absolute(raw_directory(&options.output))
        .map_err(|error| Error::io(&options.output, "cannot resolve the path", &error))?;
    let per_process = options.clock.is_some() && !options.clock_per_node;
    let mut command = launch::command(&options.command, &raw, per_process, &options.offsets)?;
    launch::hand_on(&mut command, &options.recorder.environment());
    let directory = std::path::absolute(monitored::monitor_directory(&options.output))
        .map_err(|error| Error::io(&options.output, "cannot resolve the path", &error))?;
    let identity = options.monitored.monitor.then(|| monitored::identity(&directory, launch::rank().is_some()));
    if let Some(id) = &identity {
        launch::hand_on(&mut command, &monitored::environment(&directory, id)?);
    }
    if launch::rank().is_some_and(|rank| rank > 0) {
        // Rank 0 says why. Without it, an application would wait for it forever.
        if Output::is_in_the_way(&options.output, options.written.force) {
            return Ok(Stop::ERROR);
        }
        return Err(launch::become_application(command));
    }
    // Both places are tried before the application runs for hours.
    Output::fresh(&options.output, options.written.force)?;
    let settings = RecordingSettings {
        clock: options.clock.clone(),
        seed: options.seed,
        per_process,
        per_thread: options.clock_per_thread,
        command: words(options),
        environment: telling(std::env::vars_os()),
        begins_late: options.recorder.ring || options.recorder.start.is_some(),
        has_gaps: options.recorder.stop.is_some() || options.recorder.on_signal.is_some(),
    };
    prepare(&raw, &options.output, &settings)?;
    let monitored = &options.monitored;
    let how = monitored::MonitorSetup { alarm: monitored.alarm.clone(), interface: monitored.interface.clone() };
    let job = identity.map(|id| monitored::prepare(&options.output, &directory, id, words(options), &how)).transpose();
    let job = job.inspect_err(|_| remove(&raw))?;
    let ended = match launch::run(command) {
        Ok(ended) => ended,
        Err(error) => {
            // Nothing has run, so there is nothing in it.
            remove(&raw);
            return Err(error);
        }
    };
    let status = launch::status_of(ended);
    if let Some(job) = &job {
        std::thread::sleep(FLUSH);
        if let Err(error) = keep_logs(&job.directory, &raw) {
            tracing::warn!("the clock logs of the agents are not used: {error}");
        }
    }
    let seen = job.and_then(|job| monitored::finish(&job, status == 0));
    let ended = if status == 0 || launch::rank().is_some() { Ok(()) } else { wait_for_processes(&raw) };
    let made = ended.and_then(|()| publish(&options.output, &settings, options.written.to_publish(), progress));
    if made.is_err() && !options.written.keep_raw && !holds_records(&raw) {
        // There is nothing to recover, so it must not be in the way of the next recording.
        remove(&raw);
    }
    let text = match made {
        Ok(text) => text,
        // A launcher would end the other processes of the application, which may still be busy after MPI_Finalize.
        Err(error) if status == 0 && launch::rank().is_none() => {
            let message = format!("the application ran, but no trace was written: {}", error.message);
            return Err(Error { message, ..error });
        }
        // What the application says of itself is passed on.
        Err(error) => format!("clc-replay: error: no trace was written: {error}\n"),
    };
    if !options.written.log.quiet {
        let text = text + &seen.map(|seen| format!("clc-replay: {seen}\n")).unwrap_or_default();
        // Not on standard output, which is the application's. Nobody is left to be told if it fails.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
    Ok(status)
}

/// Waits until no process records any more: where a launcher was killed, its processes need not know of it yet.
fn wait_for_processes(raw: &Path) -> Result<()> {
    let begin = Instant::now();
    // What cannot be read is a matter of who makes the archive.
    while let Ok(Some(process)) = still_running(raw) {
        if begin.elapsed() > PATIENCE {
            return Err(Error::new(format!("process {process} is still recording"))
                .in_file(raw)
                .hint("when it has ended, `clc-replay recover` makes the trace"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn words(options: &RecordOptions) -> String {
    options.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Makes the directory for raw files, with the settings in it.
fn prepare(raw: &Path, output: &Path, settings: &RecordingSettings) -> Result<()> {
    match std::fs::create_dir(raw) {
        Ok(()) => settings.write(raw),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Error::new("there is an unfinished recording")
                .in_file(raw)
                .hint(format!("turn it into a trace with `clc-replay recover {}`, or remove it", output.display())))
        }
        Err(error) => Err(Error::io(raw, "cannot write the recording there", &error)),
    }
}
