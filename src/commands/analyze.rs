//! `clc-replay analyze TRACE`: what did the program wait for, what decided how long it took, and how much of that were the clocks?

use crate::analysis::{AnalysisOptions, analyse};
use crate::cli::AnalyzeOptions;
use crate::commands::examined::{Examined, Run, as_recorded};
use crate::commands::replayed::Replayed;
use crate::commands::{Outcome, summary};
use crate::details::regions::regions_of_worst;
use crate::output::conflicts::Content;
use crate::output::files;
use crate::pipeline::load::LoadOptions;
use crate::pipeline::open::open;
use crate::pipeline::timing::Timing;
use crate::report::{Analysis, Report, SCHEMA, Violations, analysis_csv};
use clc_engine::comm::{Transport, agree};
use clc_engine::replay::survey::survey;
use clc_trace::progress::Progress;
use clc_trace::{Result, Ticks};
use controlled_logical_clock::latency::MinimumLatency;

/// Analyses the trace with the times that a reader sees and with corrected ones; writes no trace. Collective over the analysis ranks; the
/// outcome is on rank 0.
///
/// # Errors
/// The trace cannot be read or changes meanwhile, it contradicts itself, the tables cannot be written.
pub fn analyze(
    transport: &mut dyn Transport,
    options: &AnalyzeOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let mut timing = Timing::start();
    progress.step("open");
    let mut opened = open(transport, &options.trace)?;
    opened.workers = options.common.workers(opened.workers);
    let mut warnings = std::mem::take(&mut opened.warnings);
    let resolution = opened.definitions.clock.resolution;
    timing.lap("open", 0);
    let synchronisation = &options.synchronisation;
    let mut run = Run { transport, opened: &opened, timing: &mut timing, progress, warnings: &mut warnings };
    // Before and after, or the trace as it is.
    let (examined, corrected) = if options.as_recorded {
        let load_options = LoadOptions { own_timelines: false, ..as_recorded(synchronisation, resolution)? };
        let examined = run.examine(load_options, synchronisation, false)?;
        timing.lap("check", examined.loaded.program.events());
        (examined, None)
    } else {
        let replayed = run.replay(&options.trace, &options.correction, synchronisation, false, false)?;
        let Replayed { examined, parameters, passes, result } = replayed;
        let program = &examined.loaded.program;
        let after = survey(transport, program, &result.times(program))?;
        (examined, Some((parameters, passes, after, result.corrections)))
    };
    let Examined { mut loaded, load_options, clocks, raw, presynchronised } = examined;
    let mut surveys = vec![&raw, &presynchronised];
    surveys.extend(corrected.iter().map(|(_, _, after, _)| after));
    let regions = regions_of_worst(transport, &opened, &loaded, &surveys)?;

    // A wait is no shorter for the time that a message takes at least.
    loaded.program.latency = MinimumLatency::default();
    loaded.program.index_communicators();
    let wanted =
        AnalysisOptions { windows: options.windows as usize, entries: Analysis::ENTRIES.max(options.top as usize) };
    let corrections = corrected.as_ref().map(|(.., corrections)| corrections.as_slice());
    let analysis = analyse(transport, &opened, &loaded, corrections, wanted, progress, &mut warnings)?;
    timing.lap("analyse", loaded.events());
    opened.unchanged(transport)?;
    let mut written = Ok(());
    if let (Some(directory), Some(analysis)) = (&options.csv, &analysis) {
        written = files::write_all(directory, &analysis_csv(analysis), Content::AnalysisTables, options.common.force);
    }
    agree(transport, written)?;

    let phases = timing.gather(transport)?;
    let memory = summary::memory_use(transport)?;
    let whole =
        summary::gather(transport, &options.trace, &opened, &loaded, load_options.presync, clocks.as_ref(), warnings)?;
    let Some(mut whole) = whole else { return Ok(None) };
    let origin = loaded.span.map_or(Ticks::ZERO, |(first, _)| first);
    let stage = |survey, origin| Some(summary::stage(survey, resolution, origin, load_options.alltoallv, &regions));
    let violations = Violations {
        raw: stage(&raw, loaded.raw_origin),
        presynchronised: stage(&presynchronised, origin),
        corrected: corrected.as_ref().and_then(|(_, _, after, _)| stage(after, origin)),
    };
    let left = presynchronised.violated();
    if options.as_recorded && left > 0 {
        whole.warnings.add(format!(
            "{left} communications violate the clock condition: waiting times are partly artefacts of the clocks \
             (leave out --as-recorded to see how much)"
        ));
    }
    let constants = corrected.as_ref().map(|(parameters, ..)| parameters);
    let (coverage, verdict) = summary::verdict(&whole, &violations);
    let used = summary::parameters(&load_options, loaded.latency_basis, whole.clocks, resolution, constants);
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
        replay: corrected.as_ref().map(|(_, passes, ..)| summary::replay(passes, resolution)),
        moves: None,
        phases,
        memory,
        warnings: whole.warnings.into_list(),
        output: None,
        details: None,
        locks: None,
        analysis,
    }))))
}
