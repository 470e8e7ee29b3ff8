//! `clc-replay evaluate TRACE --truth DIR`: how far is this trace from the truth?

use crate::accuracy::evaluate::EvaluatedTraces;
use crate::cli::EvaluateOptions;
use crate::commands::{Outcome, corrected};
use crate::output::conflicts::Content;
use crate::output::files;
use crate::report::{Evaluation, SCHEMA, evaluation_plot};
use crate::session::Session;
use clc_engine::comm::{Transport, agree};
use clc_trace::Result;
use clc_trace::format::os_text;
use clc_trace::progress::Progress;

/// Compares a trace with the truth. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// A trace or a truth file cannot be read, or they do not belong together; the plot cannot be written.
pub fn evaluate(
    transport: &mut dyn Transport,
    options: &EvaluateOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let traces = EvaluatedTraces::open(transport, &options.trace, &options.truth)?;
    let mut session = Session::open(transport, &traces.base, options.common.threads, progress)?;
    let resolution = session.resolution();
    let (examination, parameters) = corrected(&options.correction, &options.synchronisation, resolution)?;
    let window = options.window.to_ticks(resolution)?.0.unsigned_abs();
    let evaluated = traces.load(&mut session, examination, parameters)?;
    let original = evaluated.has_original().then(|| os_text(session.opened.archive.directory()));
    let measured = evaluated.measure(&mut session, window)?;
    let judged = evaluated.judge(&mut session, measured)?;
    let evaluation = session.finish()?.map(|finished| Evaluation {
        schema: SCHEMA,
        trace: os_text(&options.trace),
        truth: os_text(&options.truth),
        original,
        events: judged.events,
        messages: judged.messages,
        true_seconds: judged.true_seconds,
        late_sender_seconds: judged.late_sender_seconds,
        window_seconds: judged.window_seconds,
        phases: judged.phases,
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
