//! `clc-replay convert TRACE TARGET`: the same trace in the other format.

use crate::cli::ConvertOptions;
use crate::commands::Outcome;
use crate::commands::output::{Wanted, prepare};
use crate::pipeline::convert::{convert_globals, convert_locations, event_directory};
use crate::pipeline::open::open;
use crate::report::{Conversion, LeftOutCount, SCHEMA, Stopwatch, Warnings};
use clc_archive::{Archive, Thing, truth};
use clc_engine::comm::{Transport, agree, gather_values};
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
    let mut opened = open(transport, &options.trace)?;
    let mut warnings = std::mem::take(&mut opened.warnings);
    let (from, to) = (opened.archive.format(), options.format()?);
    if from == to {
        return Err(Error::new(format!("the trace is {} already", from.name()))
            .in_file(&options.trace)
            .hint("a TARGET that ends in .clct asks for the native format, every other name for OTF2; or give --to"));
    }
    let with_truth = truth::directory(opened.archive.directory()).is_dir();
    let wanted = Wanted { path: &options.output, force: options.force, events: event_directory(to), with_truth };
    let prepared = prepare(transport, &opened, wanted, &mut warnings)?;
    let target = prepared.making.clone();

    let mut converted = convert_locations(transport, &opened, &target, progress, &mut warnings)?;
    progress.step("publish");
    opened.unchanged(transport)?;
    let mut sizes = (0, 0);
    let mut path = None;
    let mut outcome = Ok(());
    if let Some(output) = prepared.hand_over(transport)? {
        path = Some(output.path.clone());
        outcome = convert_globals(&opened, &target, &mut converted)
            .and_then(|()| {
                let written = Archive::open(&target)?;
                sizes = (size(&opened.archive, &opened.definitions), size(&written, &opened.definitions));
                Ok(())
            })
            .and_then(|()| opened.definitions_unchanged())
            .and_then(|()| output.publish());
    }
    agree(transport, outcome)?;
    let all_warnings = gather_values(transport, 0, &warnings)?;
    let (Some(path), Some(all_warnings)) = (path, all_warnings) else { return Ok(None) };
    let mut warnings = Warnings::default();
    all_warnings.into_iter().for_each(|part| warnings.merge(part));
    if converted.left_out.of(Thing::Events) > 0 {
        warnings.add(
            "events without fields cannot be written as OTF2; without them, times near theirs may be corrected differently",
        );
    }
    Ok(Some(Outcome::Converted(Box::new(Conversion {
        schema: SCHEMA,
        trace: options.trace.display().to_string(),
        from,
        output: path.display().to_string(),
        to,
        locations: opened.definitions.locations.len() as u64,
        events: converted.events.values().sum(),
        event_bytes_before: sizes.0,
        event_bytes: sizes.1,
        truth: with_truth,
        left_out: converted
            .left_out
            .iter()
            .map(|(thing, kind, count)| LeftOutCount { what: thing, kind: kind.to_owned(), count })
            .collect(),
        seconds: watch.lap(),
        warnings: warnings.into_list(),
    }))))
}

/// Bytes of all event files.
fn size(archive: &Archive, definitions: &Definitions) -> u64 {
    let sizes = definitions.locations.iter().map(|location| archive.event_file_size(location.id).unwrap_or(0));
    sizes.fold(0, u64::saturating_add)
}
