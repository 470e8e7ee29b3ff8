//! `clc-replay export TRACE -o FILE`: a part of a trace for other tools.

use crate::cli::{ExportFormat, ExportOptions};
use crate::commands::{Outcome, best_clocks, corrected};
use crate::output::files::PendingFile;
use crate::pipeline::export::{ExportedTimes, perfetto, violations};
use crate::report::warnings_text;
use crate::session::{Replayed, Session};
use clc_engine::comm::{AnalysisRank, Transport, agree};
use clc_trace::Result;
use clc_trace::progress::Progress;

/// Exports a part of a trace. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// The trace cannot be read, or changes meanwhile; the file cannot be written, or is none that may be overwritten.
pub fn export(
    transport: &mut dyn Transport,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let mut session = Session::open(transport, &options.trace, None, progress)?;
    let resolution = session.resolution();
    let (loaded, correction) = if options.corrected {
        let (examination, parameters) = corrected(&options.correction, &options.synchronisation, resolution)?;
        let Replayed { examined, result, .. } = session.replay(examination, parameters)?;
        (examined.loaded, Some(result))
    } else {
        let examination = best_clocks(&options.synchronisation, resolution)?;
        let mut loaded = session.load(&examination.load)?;
        session.refine(&mut loaded, &examination.load, examination.clocks)?;
        (loaded, None)
    };
    let times = ExportedTimes::new(session.transport, &loaded, correction.as_ref())?;
    let (from, to) = options.bounds(resolution)?;
    let window = times.window(from, to, resolution).map_err(|error| error.in_file(&options.trace))?;
    let first = session.transport.rank() == AnalysisRank::FIRST;
    let file = first.then(|| PendingFile::begin(&options.output, options.format.content(), options.force));
    let file = agree(session.transport, file.transpose())?;
    let exported = match options.format {
        ExportFormat::Perfetto => perfetto(session.transport, &session.opened, &times, window, file)?,
        ExportFormat::ViolationsCsv => violations(session.transport, &session.opened, &times, window, file)?,
    };
    session.unchanged()?;
    let written = exported.map(|(file, contents)| {
        file.publish()?;
        let said = format!("Wrote {contents} to {}\n", options.output.display());
        Ok(if options.to_stdout() { String::new() } else { said })
    });
    let written = agree(session.transport, written.transpose())?;
    Ok(written.zip(session.finish()?).map(|(said, finished)| {
        if options.to_stdout() {
            finished.warnings.iter().for_each(|warning| tracing::warn!("{}", warning.text));
            return Outcome::Text(said);
        }
        Outcome::Text(said + &warnings_text(&finished.warnings))
    }))
}
