//! `clc-replay TRACE`: corrects a trace.

use crate::analysis::locks::overlaps;
use crate::cli::CorrectOptions;
use crate::commands::examined::{Examined, Run};
use crate::commands::output::{Wanted, prepare};
use crate::commands::replayed::Replayed;
use crate::commands::{Outcome, summary};
use crate::details::regions::regions_of_worst;
use crate::details::{Corrected, Seen, details as pipeline_details};
use crate::pipeline::open::open;
use crate::pipeline::timing::Timing;
use crate::pipeline::write::{map_markers, whole_span, write_globals, write_locations};
use crate::report::{Report, SCHEMA, Violations};
use clc_engine::comm::{ReduceOp, Transport, agree, merge_to_first};
use clc_engine::replay::survey::survey;
use clc_trace::progress::Progress;
use clc_trace::{Error, Result, Ticks};
use controlled_logical_clock::Form;

/// Corrects the trace and writes the result. Collective over the analysis ranks; the outcome is on rank 0.
///
/// If a violation is left in the times as written (which would be a bug), the report says so and nothing is put into place.
///
/// # Errors
/// The trace cannot be read or changes meanwhile, the output cannot be written, the trace contradicts itself.
pub fn correct(
    transport: &mut dyn Transport,
    options: &CorrectOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let mut timing = Timing::start();
    progress.step("open");
    let mut opened = open(transport, &options.trace)?;
    opened.workers = options.common.workers(opened.workers);
    let mut warnings = std::mem::take(&mut opened.warnings);
    let resolution = opened.definitions.clock.resolution;
    // Before anything else: do the options make sense for this trace?
    options.parameters(resolution)?;

    // Before any work: can the output be written at all?
    let mut prepared = None;
    if !options.dry_run {
        let path = options.output_directory()?;
        let events = opened.archive.event_directory();
        let wanted = Wanted { path: &path, force: options.common.force, events, with_truth: false };
        prepared = Some(prepare(transport, &opened, wanted, &mut warnings)?);
    }
    let target = prepared.as_ref().map(|prepared| prepared.making.clone());
    timing.lap("open", 0);
    progress.step("prepare");

    let keep = options.wants_details();
    let mut run = Run { transport, opened: &opened, timing: &mut timing, progress, warnings: &mut warnings };
    let replayed = run.replay(&options.trace, &options.correction, &options.synchronisation, keep, true)?;
    let Replayed { examined, parameters, passes, result } = replayed;
    let Examined { loaded, load_options, clocks, raw, presynchronised } = examined;
    let program = &loaded.program;

    let written = write_locations(transport, &opened, &loaded, &result, target.as_deref(), progress)?;
    let span = whole_span(transport, written.span)?;
    timing.lap(if options.dry_run { "map" } else { "write" }, loaded.events());

    // On what was written, not on what was meant to be.
    progress.step("verify");
    let mut deviating = [written.deviating as i64];
    transport.all_reduce(ReduceOp::Sum, &mut deviating)?;
    if deviating[0] > 0 {
        opened.unchanged(transport)?;
        return Err(Error::new(
            "the written times are not the computed ones; this is a bug, nothing was put into place",
        ));
    }
    let corrected = survey(transport, program, &result.times(program))?;
    let regions = regions_of_worst(transport, &opened, &loaded, &[&raw, &presynchronised, &corrected])?;
    timing.lap("verify", program.events());
    let origin = loaded.span.map_or(Ticks::ZERO, |(first, _)| first);
    let written_origin = span.map_or(Ticks::ZERO, |(first, _)| Ticks(first));
    let mut details = None;
    if options.wants_details() {
        let raw_times = program.times(|timeline| &timeline.raw);
        let times = program.times(|timeline| &timeline.time);
        let new_times = result.times(program);
        let stages = [
            Seen { name: "raw", survey: &raw, times: &raw_times, origin: loaded.raw_origin },
            Seen { name: "presynchronised", survey: &presynchronised, times: &times, origin },
            Seen { name: "corrected", survey: &corrected, times: &new_times, origin: written_origin },
        ];
        let done = Corrected { corrections: &result.corrections, moves: &written.by_location };
        details = pipeline_details(transport, &opened, &loaded, &stages, Some(done), load_options.alltoallv)?;
        timing.lap("details", program.events());
    }

    let locks = overlaps(transport, &opened, &loaded, Some(&result.corrections))?;
    let consistent = corrected.violated() == 0;
    let mut published = None;
    progress.step("publish");
    opened.unchanged(transport)?;
    if let (Some(target), Some(prepared)) = (&target, prepared) {
        let output = prepared.hand_over(transport)?;
        let markers = map_markers(transport, &opened, &loaded, &result.corrections)?;
        // Times that did not change leave the clock properties as they were, whatever the writer put into them.
        let mut unchanged = [i64::from(written.unchanged)];
        transport.all_reduce(ReduceOp::Min, &mut unchanged)?;
        let span = span.filter(|_| unchanged[0] == 0);
        let mut outcome = Ok(());
        if let Some(output) = output.filter(|_| consistent) {
            let path = output.path.clone();
            outcome = write_globals(&opened, target, span, markers.as_deref(), &mut warnings)
                .and_then(|()| opened.definitions_unchanged())
                .and_then(|()| output.publish());
            published = Some(path.display().to_string());
        }
        agree(transport, outcome)?;
        timing.lap("publish", 0);
    }

    let phases = timing.gather(transport)?;
    let memory = summary::memory_use(transport)?;
    let total = merge_to_first(transport, written.moves, |sum, part| sum.merge(&part))?;
    let whole =
        summary::gather(transport, &options.trace, &opened, &loaded, load_options.presync, clocks.as_ref(), warnings)?;
    let (Some(mut whole), Some(total)) = (whole, total) else { return Ok(None) };
    if !consistent {
        whole.warnings.add("violations are left in the corrected times; this is a bug, nothing was put into place");
    }
    if let Some(last) = passes.passes.last()
        && !last.accepted
    {
        let why = match parameters.form {
            Form::Common => "what was moved has moved others, whatever gamma",
            Form::Paper => "the clocks disagree more than the correction can forget",
        };
        let limit = parameters.max_error.value();
        whole.warnings.add(format!("the error is still above {limit} after the last pass: {why}"));
    }
    let stage = |survey, origin| Some(summary::stage(survey, resolution, origin, load_options.alltoallv, &regions));
    let violations = Violations {
        raw: stage(&raw, loaded.raw_origin),
        presynchronised: stage(&presynchronised, origin),
        corrected: stage(&corrected, written_origin),
    };
    let (coverage, verdict) = summary::verdict(&whole, &violations);
    let used = summary::parameters(&load_options, loaded.latency_basis, whole.clocks, resolution, Some(&parameters));
    Ok(Some(Outcome::Report(Box::new(Report {
        schema: SCHEMA,
        verdict,
        coverage,
        program: summary::program(transport),
        parameters: used,
        trace: whole.trace,
        clocks,
        matching: whole.matching,
        violations,
        replay: Some(summary::replay(&passes, resolution)),
        moves: Some(total.report(resolution)),
        phases,
        memory,
        warnings: whole.warnings.into_list(),
        output: published,
        details,
        locks,
        analysis: None,
    }))))
}
