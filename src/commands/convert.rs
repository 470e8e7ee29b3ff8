//! `clc-replay convert TRACE TARGET`: the same trace in the other format.

use crate::cli::ConvertOptions;
use crate::commands::Outcome;
use crate::pipeline::convert::{convert_globals, convert_locations, event_directory};
use crate::pipeline::timing::Stopwatch;
use crate::report::{Conversion, LossCount, SCHEMA};
use crate::session::{OutputRequest, Session};
use clc_archive::{Archive, Lost, truth};
use clc_engine::comm::Transport;
use clc_trace::progress::Progress;
use clc_trace::{Definitions, Error, Result};

/// Converts a trace. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// The trace cannot be read, changes meanwhile, or has the format asked for already; the output exists or cannot be written.
pub fn convert(
    transport: &mut dyn Transport,
    options: &ConvertOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let mut watch = Stopwatch::start();
    let mut session = Session::open(transport, &options.trace, None, progress)?;
    let (from, to) = (session.opened.archive.format(), options.format()?);
    if from == to {
        return Err(Error::new(format!("the trace is already {}", from.name()))
            .in_file(&options.trace)
            .hint("a TARGET that ends in .clct selects the native format, any other name OTF2; --to overrides this"));
    }
    let with_truth = truth::directory(session.opened.archive.directory()).is_dir();
    let wanted =
        OutputRequest { path: &options.output, force: options.force, events: Some(event_directory(to)), with_truth };
    let prepared = session.prepare(wanted)?;
    let (ranks, making) = (&mut *session.transport, &prepared.making);
    let mut converted = convert_locations(ranks, &session.opened, making, progress, &mut session.warnings)?;
    let published = session.publish_with(prepared, |opened, making, _| {
        convert_globals(opened, making, &mut converted)?;
        let written = Archive::open(making)?;
        Ok((size(&opened.archive, &opened.definitions), size(&written, &opened.definitions)))
    })?;
    let locations = session.opened.definitions.locations.len() as u64;
    if converted.loss.of(Lost::Events) > 0 {
        session.warnings.add(
            "events without fields cannot be written as OTF2; without them, nearby times may be corrected differently",
        );
    }
    let Some(((path, sizes), finished)) = published.zip(session.finish()?) else { return Ok(None) };
    Ok(Some(Outcome::Converted(Box::new(Conversion {
        schema: SCHEMA,
        trace: options.trace.display().to_string(),
        from,
        output: path.display().to_string(),
        to,
        locations,
        events: converted.events.values().sum(),
        event_bytes_before: sizes.0,
        event_bytes: sizes.1,
        truth: with_truth,
        losses: converted
            .loss
            .iter()
            .map(|(thing, kind, count)| LossCount { what: thing, kind: kind.to_owned(), count })
            .collect(),
        seconds: watch.lap(),
        warnings: finished.warnings,
    }))))
}

/// Bytes of all event files.
fn size(archive: &Archive, definitions: &Definitions) -> u64 {
    let sizes = definitions.locations.iter().map(|location| archive.event_file_size(location.id).unwrap_or(0));
    sizes.fold(0, u64::saturating_add)
}
