//! The last step of a recording: the archive takes its place, the raw files go, and a few lines say what there is.

use super::{AssembledRecording, RecordingSettings, assemble, raw_directory};
use crate::output::directory::Output;
use crate::output::truth::write_parameters;
use crate::recording::leftovers::remove;
use clc_archive::Format;
use clc_trace::format::plural;
use clc_trace::progress::Progress;
use clc_trace::workers::Workers;
use clc_trace::{Error, Result};
use std::fmt::Write;
use std::path::Path;

/// How the archive of a recording is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishOptions {
    /// A trace in its place is replaced if this program wrote everything in it.
    pub force: bool,
    /// The raw files stay.
    pub keep_raw: bool,
}

/// Makes the archive of the raw files of a recording, and removes them; returns the summary.
///
/// # Errors
/// There is nothing to make it from, or it cannot be written. The raw files are left.
pub(crate) fn publish(
    path: &Path,
    settings: &RecordingSettings,
    options: PublishOptions,
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
    for note in &recorded.notes {
        let _ = writeln!(text, "  {note}");
    }
    for warning in &recorded.warnings {
        let _ = writeln!(text, "  warning: {warning}");
    }
    text
}
