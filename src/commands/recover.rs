//! `clc-replay recover DIR`: an archive of a recording that was cut off.

use crate::cli::RecoverOptions;
use crate::commands::Outcome;
use crate::recording::{RecordingSettings, keep_logs, monitored, publish, raw_directory, still_running};
use clc_engine::comm::{AnalysisRank, Transport, broadcast_value};
use clc_trace::progress::Progress;
use clc_trace::{Error, Result};

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
    // There are none if the job was not monitored.
    keep_logs(&monitored::monitor_directory(&options.output), &raw)?;
    publish(&options.output, &settings, options.written.to_publish(), progress)
}
