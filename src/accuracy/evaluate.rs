//! The stages of an evaluation: open what is compared, measure the errors of each phase, judge them.

use crate::accuracy::between::TrueTimeWindows;
use crate::accuracy::compare::{Comparison, OverallErrors, PhaseErrors, VisitedTimes};
use crate::accuracy::judgement::Judgement;
use crate::accuracy::phase::CorrectionPhase;
use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::{TraceHandle, open};
use crate::report::PhaseAccuracy;
use crate::session::{Examination, Replayed, Session};
use clc_archive::{Archive, directory_of, truth};
use clc_engine::comm::{ReduceOp, Transport, agree, all_gather_values};
use clc_trace::{Correction, Error, Result};
use controlled_logical_clock::Parameters;
use controlled_logical_clock::latency::MinimumLatency;
use std::path::{Path, PathBuf};

/// The traces that the user named.
pub(crate) struct EvaluatedTraces {
    /// Archive directory whose `truth` holds the true times.
    pub truth: PathBuf,
    /// The trace before its correction, or the only one.
    pub base: PathBuf,
    /// The corrected trace, if that is what is evaluated.
    corrected: Option<TraceHandle>,
}

impl EvaluatedTraces {
    /// Finds out what is compared with what. The trace with the truth is the one before the correction, if it is another one than `trace`: that is
    /// replayed, and what was written is beside it. Collective over the analysis ranks.
    ///
    /// # Errors
    /// There are no true times; a corrected trace cannot be opened.
    pub(crate) fn open(transport: &mut dyn Transport, trace: &Path, given_truth: &Path) -> Result<EvaluatedTraces> {
        let truth = agree(transport, truth_directory(given_truth))?;
        let same = directory_of(trace).canonicalize().ok() == truth.canonicalize().ok();
        if same || Archive::open(&truth).is_err() {
            return Ok(EvaluatedTraces { truth, base: trace.to_path_buf(), corrected: None });
        }
        Ok(EvaluatedTraces { base: truth.clone(), truth, corrected: Some(open(transport, trace)?) })
    }

    /// Scans the trace and refines its clocks; replays it if what was corrected is compared as well.
    ///
    /// # Errors
    /// A trace cannot be read, or contradicts itself.
    pub(crate) fn load(
        self,
        session: &mut Session<'_>,
        examination: Examination,
        parameters: Parameters,
    ) -> Result<Evaluated> {
        let (loaded, corrections) = match &self.corrected {
            Some(corrected) => {
                session.warnings.merge(corrected.warnings.clone());
                let Replayed { examined, result, .. } = session.replay(examination, parameters)?;
                let parts = result.corrections.into_iter().map(|whole| (whole.forward_part(), whole));
                (examined.loaded, Some(parts.collect()))
            }
            None => {
                let mut loaded = session.load(&examination.load)?;
                session.refine(&mut loaded, &examination.load, examination.clocks)?;
                (loaded, None)
            }
        };
        Ok(Evaluated { traces: self, loaded, corrections })
    }
}

/// A trace beside its true times.
pub(crate) struct Evaluated {
    traces: EvaluatedTraces,
    /// The trace before its correction, scanned and matched.
    loaded: LocalTrace,
    /// Forward part and whole of the correction of each hosted timeline, if a corrected trace is evaluated.
    corrections: Option<Vec<(Correction, Correction)>>,
}

/// The errors of the hosted timelines.
pub(crate) struct MeasuredErrors {
    /// Of all ranks.
    overall: OverallErrors,
    windows: TrueTimeWindows,
    phases: Vec<CorrectionPhase>,
    /// By phase.
    errors: Vec<PhaseErrors>,
    visited: VisitedTimes,
}

/// What the errors amount to, over all ranks.
pub(crate) struct JudgedErrors {
    /// On rank 0.
    pub phases: Vec<PhaseAccuracy>,
    /// Events of the trace.
    pub events: u64,
    /// Messages with a receive.
    pub messages: u64,
    /// From the first to the last true time.
    pub true_seconds: f64,
    /// Late Sender waiting time under the true times.
    pub late_sender_seconds: f64,
    /// Windows of true time over which errors between processes are averaged.
    pub window_seconds: f64,
}

impl Evaluated {
    /// Whether a corrected trace is evaluated, beside the trace that it was made from.
    pub(crate) fn has_original(&self) -> bool {
        self.traces.corrected.is_some()
    }

    /// Streams all events beside their true times, twice: common offsets first, then what remains, averaged over windows of so many ticks.
    ///
    /// # Errors
    /// A file cannot be read, or the traces do not belong together.
    pub(crate) fn measure(&self, session: &mut Session<'_>, window: u64) -> Result<MeasuredErrors> {
        let comparison = Comparison {
            opened: &session.opened,
            loaded: &self.loaded,
            corrections: self.corrections.as_deref(),
            corrected: self.traces.corrected.as_ref(),
            truth: &self.traces.truth,
        };
        session.progress.phase("compare", 2 * self.loaded.events());
        let own = agree(session.transport, comparison.overall())?;
        session.progress.advance(self.loaded.events());
        let mut overall = OverallErrors::new();
        all_gather_values(session.transport, &own)?.iter().for_each(|part| overall.merge(part));
        let mut phases = comparison.phases();
        if self.corrections.is_some() && !overall.same {
            phases.retain(|&phase| phase != CorrectionPhase::Forward);
            session
                .warnings
                .add("the corrected trace was made with different options, so the forward phase is omitted");
        }
        let windows = comparison.windows(&overall, window);
        let (errors, visited) = agree(session.transport, comparison.errors(&overall, &phases, &windows))?;
        session.progress.advance(self.loaded.events());
        session.progress.finish();
        Ok(MeasuredErrors { overall, windows, phases, errors, visited })
    }

    /// Puts the errors of all ranks together, phase by phase.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn judge(mut self, session: &mut Session<'_>, measured: MeasuredErrors) -> Result<JudgedErrors> {
        let MeasuredErrors { overall, windows, phases, errors, visited } = measured;
        // From here on, the clock condition is that of a latency of zero.
        self.loaded.program.set_latency(MinimumLatency::default());
        let tick = 1.0 / session.resolution() as f64;
        let Session { transport, opened: base, .. } = session;
        let mut judgement =
            Judgement { transport: &mut **transport, base, loaded: &self.loaded, overall: &overall, windows, tick };
        let mut results = Vec::new();
        let true_waits = judgement.late_sender(&visited, CorrectionPhase::Truth)?;
        for (errors, &phase) in errors.into_iter().zip(&phases) {
            results.extend(judgement.phase(phase, errors, &visited, &true_waits)?);
        }
        let mut totals = [self.loaded.events() as i64, 0, 0];
        for wait in true_waits.iter().flatten() {
            totals[1] += 1;
            totals[2] = totals[2].saturating_add(*wait);
        }
        session.transport.all_reduce(ReduceOp::Sum, &mut totals)?;
        Ok(JudgedErrors {
            phases: results,
            events: totals[0].unsigned_abs(),
            messages: totals[1].unsigned_abs(),
            true_seconds: overall.span.map_or(0.0, |(first, last)| (last - first) as f64 * tick),
            late_sender_seconds: totals[2] as f64 * tick,
            window_seconds: windows.ticks() as f64 * tick,
        })
    }
}

/// The archive directory whose `truth` lies there, from what the user gave: it, an anchor file in it, or the `truth` directory.
fn truth_directory(given: &Path) -> Result<PathBuf> {
    let beside = |path: &Path| truth::directory(path).is_dir().then(|| path.to_path_buf());
    let parent = given.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    beside(given)
        .or_else(|| parent.filter(|_| given.is_file()).and_then(beside))
        .or_else(|| parent.filter(|_| given.file_name().is_some_and(|name| name == "truth")).and_then(beside))
        .ok_or_else(|| {
            Error::new("the directory `truth` with the true times is missing")
                .in_file(given)
                .hint("pass the directory of a trace written by `clc-replay simulate`, `perturb` or `record --clock`")
        })
}
