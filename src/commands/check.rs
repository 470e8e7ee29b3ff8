//! `clc-replay check TRACE`: is this trace broken, where, how badly?

use crate::analysis::locks::overlaps;
use crate::cli::CheckOptions;
use crate::commands::examined::{Examined, Run, as_recorded};
use crate::commands::{Outcome, summary};
use crate::details::regions::regions_of_worst;
use crate::details::{Seen, details as pipeline_details};
use crate::pipeline::open::open;
use crate::pipeline::timing::Timing;
use crate::report::{Report, SCHEMA, Violations};
use clc_engine::comm::Transport;
use clc_trace::progress::Progress;
use clc_trace::{Result, Ticks};

/// Counts the violations with the recorded and with the pre-synchronised times. Collective over the analysis ranks; the outcome is
/// on rank 0.
///
/// # Errors
/// The trace cannot be read, or changes meanwhile.
pub fn check(
    transport: &mut dyn Transport,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let mut timing = Timing::start();
    let mut opened = open(transport, &options.trace)?;
    opened.workers = options.common.workers(opened.workers);
    let mut warnings = std::mem::take(&mut opened.warnings);
    timing.lap("open", 0);
    let resolution = opened.definitions.clock.resolution;
    let load_options = as_recorded(&options.synchronisation, resolution)?;
    let mut run = Run { transport, opened: &opened, timing: &mut timing, progress, warnings: &mut warnings };
    let examined = run.examine(load_options, &options.synchronisation, options.wants_details())?;
    let Examined { loaded, load_options, clocks, raw, presynchronised } = examined;
    let regions = regions_of_worst(transport, &opened, &loaded, &[&raw, &presynchronised])?;
    timing.lap("check", loaded.program.events());
    let origin = loaded.span.map_or(Ticks::ZERO, |(first, _)| first);
    let mut details = None;
    if options.wants_details() {
        let raw_times = loaded.program.times(|timeline| &timeline.raw);
        let times = loaded.program.times(|timeline| &timeline.time);
        let stages = [
            Seen { name: "raw", survey: &raw, times: &raw_times, origin: loaded.raw_origin },
            Seen { name: "presynchronised", survey: &presynchronised, times: &times, origin },
        ];
        details = pipeline_details(transport, &opened, &loaded, &stages, None, load_options.alltoallv)?;
        timing.lap("details", loaded.program.events());
    }

    let locks = overlaps(transport, &opened, &loaded, None)?;
    opened.unchanged(transport)?;
    let phases = timing.gather(transport)?;
    let memory = summary::memory_use(transport)?;
    let whole =
        summary::gather(transport, &options.trace, &opened, &loaded, load_options.presync, clocks.as_ref(), warnings)?;
    let Some(whole) = whole else { return Ok(None) };
    let stage = |survey, origin| Some(summary::stage(survey, resolution, origin, load_options.alltoallv, &regions));
    let violations = Violations {
        raw: stage(&raw, loaded.raw_origin),
        presynchronised: stage(&presynchronised, origin),
        corrected: None,
    };
    let (coverage, verdict) = summary::verdict(&whole, &violations);
    Ok(Some(Outcome::Report(Box::new(Report {
        schema: SCHEMA,
        verdict,
        coverage,
        program: summary::program(transport),
        parameters: summary::parameters(&load_options, loaded.latency_basis, whole.clocks, resolution, None),
        trace: whole.trace,
        clocks,
        matching: whole.matching,
        violations,
        replay: None,
        moves: None,
        phases,
        memory,
        warnings: whole.warnings.into_list(),
        output: None,
        details,
        locks,
        analysis: None,
    }))))
}
