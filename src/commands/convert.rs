//! `clc-replay convert TRACE TARGET`: the same trace in the other format.

use crate::cli::ConvertOptions;
use crate::commands::Outcome;
use crate::output::manifest::is_corrected;
use crate::pipeline::convert::{convert_globals, convert_locations, event_bytes, event_directory};
use crate::pipeline::timing::Stopwatch;
use crate::report::{Conversion, SCHEMA};
use crate::session::{OutputRequest, Session};
use clc_archive::truth;
use clc_engine::comm::Transport;
use clc_trace::format::os_text;
use clc_trace::progress::Progress;
use clc_trace::{Error, Result};

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
    let wanted = OutputRequest {
        path: &options.output,
        force: options.force,
        events: Some(event_directory(to)),
        with_truth,
        corrected: is_corrected(session.opened.archive.directory()),
    };
    let prepared = session.prepare(wanted)?;
    let (ranks, making) = (&mut *session.transport, &prepared.making);
    let mut converted = convert_locations(ranks, &session.opened, making, progress, &mut session.warnings)?;
    let published = session.publish_with(prepared, |opened, making, _| {
        convert_globals(opened, making, &mut converted)?;
        event_bytes(opened, making)
    })?;
    let locations = session.opened.definitions.locations.len() as u64;
    converted.warning().into_iter().for_each(|text| session.warnings.add(text));
    let Some(((path, [before, after]), finished)) = published.zip(session.finish()?) else { return Ok(None) };
    Ok(Some(Outcome::Converted(Box::new(Conversion {
        schema: SCHEMA,
        trace: os_text(&options.trace),
        from,
        output: os_text(path),
        to,
        locations,
        events: converted.events.values().sum(),
        event_bytes_before: before,
        event_bytes: after,
        truth: with_truth,
        losses: converted.losses(),
        seconds: watch.lap(),
        warnings: finished.warnings,
    }))))
}
