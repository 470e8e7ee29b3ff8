//! `clc-replay export TRACE -o FILE`: a part of a trace for other tools.

use crate::cli::{ExportFormat, ExportOptions};
use crate::clocks::refine::refine;
use crate::commands::Outcome;
use crate::output::files;
use crate::pipeline::export::{Exported, Window, perfetto, violations};
use crate::pipeline::load::{LoadOptions, load};
use crate::pipeline::open::open;
use clc_engine::comm::{Transport, agree};
use clc_trace::format::plural;
use clc_trace::progress::Progress;
use clc_trace::{Result, Ticks};
use controlled_logical_clock::latency::MinimumLatency;
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
    let mut opened = open(transport, &options.trace)?;
    let mut warnings = std::mem::take(&mut opened.warnings);
    let resolution = opened.definitions.clock.resolution;
    let latency: MinimumLatency = options.synchronisation.latency.to_ticks(resolution)?;
    let load_options = LoadOptions {
        presync: options.synchronisation.presync.unwrap_or_default(),
        latency,
        alltoallv: options.synchronisation.alltoallv,
        fences: options.synchronisation.fences,
        separation: Ticks::ZERO,
        own_timelines: false,
    };
    let mut loaded = load(transport, &opened, &load_options, progress, &mut warnings)?;
    refine(transport, &opened, &mut loaded, &load_options, options.synchronisation.wanted(), progress)?;
    let ticks = |bound: Option<crate::cli::Duration>| bound.map(|bound| bound.to_ticks(resolution)).transpose();
    let (from, to) = options.window.map_or((None, None), |window| (window.from, window.to));
    let window =
        Window::new(&loaded, ticks(from)?, ticks(to)?, resolution).map_err(|error| error.in_file(&options.trace))?;
    let exported = match options.format {
        ExportFormat::Perfetto => perfetto(transport, &opened, &loaded, window)?,
        ExportFormat::ViolationsCsv => violations(transport, &opened, &loaded, window)?,
    };
    opened.unchanged(transport)?;
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
    agree(transport, written)?;
    Ok(said.map(Outcome::Text))
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
