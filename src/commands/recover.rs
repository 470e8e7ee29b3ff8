//! `clc-replay recover DIR`: an archive of a recording that was cut off.

use super::raw_files::remove;
use crate::cli::{RecordedOptions, RecoverOptions};
use crate::commands::Outcome;
use crate::output::directory::Output;
use crate::pipeline::generated::write_parameters;
use crate::recording::{
    AssembledRecording, RecordingSettings, assemble, keep_logs, monitored, raw_directory, still_running,
};
use clc_archive::Format;
use clc_engine::comm::{AnalysisRank, Transport, broadcast_value};
use clc_trace::format::plural;
use clc_trace::progress::Progress;
use clc_trace::workers::Workers;
use clc_trace::{Error, Result};
use std::fmt::Write;
use std::path::Path;

/// Makes the archive on rank 0. Collective over the analysis ranks.
///
/// # Errors
/// There is no such recording, it is still being made, or the archive cannot be written.
pub fn recover(
    transport: &mut dyn Transport,
    options: &RecoverOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let made = if transport.rank() == AnalysisRank::FIRST { run(options, progress).map(Some) } else { Ok(None) };
    let told: Result<()> =
        broadcast_value(transport, AnalysisRank::FIRST, made.as_ref().map(|_| ()).map_err(Clone::clone))?;
    told?;
    Ok(made?.map(Outcome::Text))
}

fn run(options: &RecoverOptions, progress: &dyn Progress) -> Result<String> {
    let raw = raw_directory(&options.output);
    if !raw.is_dir() {
        return Err(Error::new("there is no unfinished recording").in_file(&raw).hint(
            "a complete recording is already \
            a trace",
        ));
    }
    if let Some(process) = still_running(&raw)? {
        return Err(Error::new(format!("process {process} is still recording")).in_file(&raw));
    }
    let settings = RecordingSettings::read(&raw)?;
    // There are none if the job was not watched.
    keep_logs(&monitored::monitor_directory(&options.output), &raw)?;
    finish(&options.output, &settings, &options.written, progress)
}

/// Makes the archive of the raw files of a recording, and removes them; returns the summary.
///
/// # Errors
/// There is nothing to make it from, or it cannot be written. The raw files are left.
pub(super) fn finish(
    path: &Path,
    settings: &RecordingSettings,
    options: &RecordedOptions,
    progress: &dyn Progress,
) -> Result<String> {
    let raw = raw_directory(path);
    let kept = |error: Error| error.hint(format!("the recorded data is in {}", raw.display()));
    let mut output = Output::fresh(path, options.force).map_err(kept)?;
    let workers = Workers::of_this_machine();
    let mut recorded =
        assemble(&raw, output.making(), Format::of_name(path), settings, workers, progress).map_err(kept)?;
    recorded.warnings.append(&mut output.warnings);
    if let Some(clock) = settings.clock.as_ref().filter(|_| recorded.largest_error.is_some()) {
        let parameters = [
            ("clock", clock.clone()),
            ("seed", settings.seed.to_string()),
            ("clock-per-node", (!settings.per_process).to_string()),
        ];
        write_parameters(output.making(), "record", &parameters).map_err(kept)?;
    }
    let place = output.path.clone();
    output.publish().map_err(kept)?;
    progress.finish();
    if !options.keep_raw {
        remove(&raw);
    }
    Ok(summary(&place, &recorded))
}

fn summary(path: &Path, recorded: &AssembledRecording) -> String {
    let mut text = format!(
        "clc-replay: recorded {}: {} on {}, {}, {}, {:.6} s\n",
        path.display(),
        plural(u64::from(recorded.processes), "process"),
        plural(recorded.nodes as u64, "node"),
        plural(recorded.locations as u64, "location"),
        plural(recorded.events, "event"),
        recorded.seconds
    );
    if let Some(error) = recorded.largest_error {
        // Writing to memory does not fail.
        let _ = writeln!(
            text,
            "  clock errors of up to {error:.9} s were added; the true times are in {}/truth",
            path.display()
        );
    }
    for warning in &recorded.warnings {
        let _ = writeln!(text, "  warning: {warning}");
    }
    text
}
