//! `clc-replay export TRACE -o FILE`: a part of a trace for other tools.

use crate::cli::{ExportFormat, ExportOptions};
use crate::commands::{Outcome, best_clocks, corrected};
use crate::output::files;
use crate::pipeline::export::{Exported, ExportedTimes, perfetto, violations};
use crate::report::warnings_text;
use crate::session::{Replayed, Session};
use clc_engine::comm::{Transport, agree};
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
    let exported = match options.format {
        ExportFormat::Perfetto => perfetto(session.transport, &session.opened, &times, window)?,
        ExportFormat::ViolationsCsv => violations(session.transport, &session.opened, &times, window)?,
    };
    session.unchanged()?;
    let written = exported.map(|exported| write(options, &exported)).transpose();
    let written = agree(session.transport, written)?;
    Ok(written.zip(session.finish()?).map(|(said, finished)| {
        if options.to_stdout() {
            finished.warnings.iter().for_each(|warning| tracing::warn!("{}", warning.text));
            return Outcome::Text(said);
        }
        Outcome::Text(said + &warnings_text(&finished.warnings))
    }))
}

/// Writes the file; returns what to say about it.
fn write(options: &ExportOptions, Exported { text, contents }: &Exported) -> Result<String> {
    if options.to_stdout() {
        return files::print(text.as_bytes()).map(|()| String::new());
    }
    files::write(&options.output, text.as_bytes(), options.format.content(), options.force)?;
    Ok(format!("Wrote {contents} to {}\n", options.output.display()))
}
