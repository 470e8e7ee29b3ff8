//! `clc-replay export TRACE -o FILE`: a part of a trace for other tools.

use crate::cli::{ExportFormat, ExportOptions};
use crate::commands::{Outcome, best_clocks, corrected};
use crate::output::files;
use crate::pipeline::export::{Exported, ExportedTimes, perfetto, violations};
use crate::report::warnings_text;
use crate::session::{Replayed, Session};
use clc_engine::comm::{Transport, agree};
use clc_trace::Result;
use clc_trace::format::plural;
use clc_trace::progress::Progress;
use std::path::Path;

/// Exports a part of a trace. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// The trace cannot be read, or changes meanwhile; the file cannot be written, or is none that may be overwritten.
pub fn export(
    transport: &mut dyn Transport,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let to_stdout = options.output == Path::new("-");
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
    let ticks = |bound: Option<crate::cli::Duration>| bound.map(|bound| bound.to_ticks(resolution)).transpose();
    let (from, to) = options.window.map_or((None, None), |window| (window.from, window.to));
    let window = times.window(ticks(from)?, ticks(to)?, resolution).map_err(|error| error.in_file(&options.trace))?;
    let exported = match options.format {
        ExportFormat::Perfetto => perfetto(session.transport, &session.opened, &times, window)?,
        ExportFormat::ViolationsCsv => violations(session.transport, &session.opened, &times, window)?,
    };
    session.unchanged()?;
    let mut said = None;
    let written = match exported {
        Some(exported) if to_stdout => {
            said = Some(String::new());
            files::print(exported.text.as_bytes())
        }
        Some(exported) => {
            said = Some(summary(options, &exported));
            files::write(&options.output, exported.text.as_bytes(), options.format.content(), options.force)
        }
        None => Ok(()),
    };
    agree(session.transport, written)?;
    let finished = session.finish()?;
    Ok(said.zip(finished).map(|(text, finished)| {
        if to_stdout {
            finished.warnings.iter().for_each(|warning| tracing::warn!("{}", warning.text));
            return Outcome::Text(text);
        }
        Outcome::Text(text + &warnings_text(&finished.warnings))
    }))
}

fn summary(options: &ExportOptions, exported: &Exported) -> String {
    let what = match options.format {
        ExportFormat::Perfetto => {
            format!("{} and {}", plural(exported.items, "region"), plural(exported.messages, "message"))
        }
        ExportFormat::ViolationsCsv => {
            format!("{}, {} of them", plural(exported.items, "violation"), plural(exported.messages, "message"))
        }
    };
    format!("Wrote {what} to {}\n", options.output.display())
}
