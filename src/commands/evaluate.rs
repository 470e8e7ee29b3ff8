//! `clc-replay evaluate TRACE --truth DIR`: how far is this trace from the truth?

use crate::accuracy::compare::{Comparison, ErrorSurvey};
use crate::accuracy::judgement::Judgement;
use crate::accuracy::phase::CorrectionPhase;
use crate::cli::EvaluateOptions;
use crate::commands::{Outcome, corrected};
use crate::output::conflicts::Content;
use crate::output::files;
use crate::pipeline::open::open;
use crate::report::{Evaluation, SCHEMA, evaluation_plot};
use crate::session::{Replayed, Session};
use clc_archive::{directory_of, truth};
use clc_engine::comm::{ReduceOp, Transport, agree, all_gather_values};
use clc_trace::progress::Progress;
use clc_trace::{Error, Result};
use controlled_logical_clock::latency::MinimumLatency;
use std::path::Path;

/// Compares a trace with the truth. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// A trace or a truth file cannot be read, or they do not belong together; the plot cannot be written.
pub fn evaluate(
    transport: &mut dyn Transport,
    options: &EvaluateOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let truth = agree(transport, truth_directory(&options.truth))?;
    // The trace with the truth is the one before the correction, if it is another one: that is replayed, and what was written is beside it.
    let same = directory_of(&options.trace).canonicalize().ok() == truth.canonicalize().ok();
    let judged = if same || !holds_archive(&truth) { None } else { Some(open(transport, &options.trace)?) };
    let base = if judged.is_some() { &truth } else { &options.trace };
    let mut session = Session::open(transport, base, options.common.threads, progress)?;
    let resolution = session.resolution();
    let (examination, parameters) = corrected(&options.correction, &options.synchronisation, resolution)?;
    let (mut loaded, corrections) = match &judged {
        Some(judged) => {
            session.warnings.merge(judged.warnings.clone());
            let Replayed { examined, result, .. } = session.replay(examination, parameters)?;
            let parts = result.corrections.into_iter().map(|whole| (whole.forward_part(), whole));
            (examined.loaded, Some(parts.collect::<Vec<_>>()))
        }
        None => {
            let mut loaded = session.load(&examination.load)?;
            session.refine(&mut loaded, &examination.load, examination.clocks)?;
            (loaded, None)
        }
    };
    let comparison = Comparison {
        opened: &session.opened,
        loaded: &loaded,
        corrections: corrections.as_deref(),
        corrected: judged.as_ref(),
        truth: &truth,
    };
    progress.phase("compare", 2 * loaded.events());
    let own = agree(session.transport, comparison.survey())?;
    progress.advance(loaded.events());
    let mut whole = ErrorSurvey::new();
    all_gather_values(session.transport, &own)?.iter().for_each(|part| whole.merge(part));
    let mut phases = comparison.phases();
    if corrections.is_some() && !whole.same {
        phases.retain(|&phase| phase != CorrectionPhase::Forward);
        session.warnings.add("the corrected trace was made with different options, so the forward phase is omitted");
    }
    let windows = comparison.windows(&whole, options.window.to_ticks(resolution)?.0.unsigned_abs());
    let (errors, visited) = agree(session.transport, comparison.errors(&whole, &phases, &windows))?;
    progress.advance(loaded.events());
    progress.finish();

    // From here on, the clock condition is that of a latency of zero.
    loaded.program.set_latency(MinimumLatency::default());
    let tick = 1.0 / resolution as f64;
    let Session { transport: ranks, opened: base, .. } = &mut session;
    let mut judgement = Judgement { transport: *ranks, base, loaded: &loaded, survey: &whole, windows, tick };
    let mut results = Vec::new();
    let true_waits = judgement.late_sender(&visited, CorrectionPhase::Truth)?;
    for (errors, &phase) in errors.into_iter().zip(&phases) {
        if let Some(result) = judgement.phase(phase, errors, &visited, &true_waits)? {
            results.push(result);
        }
    }
    let mut totals = [loaded.events() as i64, 0, 0];
    for wait in true_waits.iter().flatten() {
        totals[1] += 1;
        totals[2] = totals[2].saturating_add(*wait);
    }
    session.transport.all_reduce(ReduceOp::Sum, &mut totals)?;
    let original = judged.as_ref().map(|_| session.opened.archive.directory().display().to_string());
    let evaluation = session.finish()?.map(|finished| Evaluation {
        schema: SCHEMA,
        trace: options.trace.display().to_string(),
        truth: options.truth.display().to_string(),
        original,
        events: totals[0] as u64,
        messages: totals[1] as u64,
        true_seconds: whole.span.map_or(0.0, |(first, last)| (last - first) as f64 * tick),
        late_sender_seconds: totals[2] as f64 * tick,
        window_seconds: windows.ticks() as f64 * tick,
        phases: results,
        warnings: finished.warnings,
    });
    let mut plotted = Ok(());
    if let (Some(evaluation), Some(path)) = (&evaluation, &options.plot) {
        plotted = evaluation_plot(evaluation)
            .and_then(|svg| files::write(path, svg.as_bytes(), Content::Plot, options.common.force));
    }
    agree(transport, plotted)?;
    Ok(evaluation.map(|evaluation| Outcome::Evaluation(Box::new(evaluation))))
}

/// The archive directory whose `truth` lies there, from what the user gave: it, an anchor file in it, or the `truth` directory.
fn truth_directory(given: &Path) -> Result<std::path::PathBuf> {
    let beside = |path: &Path| truth::directory(path).is_dir().then(|| path.to_path_buf());
    let parent = given.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    beside(given)
        .or_else(|| parent.filter(|_| given.is_file()).and_then(beside))
        .or_else(|| parent.filter(|_| given.file_name().is_some_and(|name| name == "truth")).and_then(beside))
        .ok_or_else(|| {
            Error::new("the directory `truth` with the true times is missing")
                .in_file(given)
                .hint("give the directory of a trace written by `clc-replay simulate`, `perturb` or `record --clock`")
        })
}

fn holds_archive(directory: &Path) -> bool {
    clc_archive::Archive::open(directory).is_ok()
}
