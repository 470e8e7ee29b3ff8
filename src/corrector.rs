//! Correcting a trace from a program of one's own.

use crate::analysis::locks::overlaps;
use crate::clocks::refine::RefineOptions;
use crate::pipeline::load::LoadOptions;
use crate::report::Report;
use crate::session::{Examination, Findings, OutputRequest, Session};
use clc_clock::{MeasurementLimits, Method, reference::Reference};
use clc_engine::comm::Transport;
use clc_engine::comm::local::LocalTransport;
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::progress::{Progress, Silent};
use clc_trace::workers::Workers;
use clc_trace::{Error, Result};
use controlled_logical_clock::latency::MinimumLatency;
use controlled_logical_clock::{Centre, CorrectionForm, Parameters};
use std::num::NonZero;
use std::path::Path;

/// Corrects traces, as the program does: it reads no arguments, prints nothing, and installs no handlers of signals.
///
/// ```
/// use clc_archive::Format;
/// use clc_replay::corrector::Corrector;
/// use clc_replay::pipeline::generated::write_simulated;
/// use clc_replay::report::Verdict;
/// use clc_simulate::Scenario;
///
/// # fn main() -> clc_trace::Result<()> {
/// # let directory = tempfile::tempdir().expect("a directory");
/// let trace = directory.path().join("trace");
/// let scenario = Scenario { ranks: 8, events: 500, clock: "sine".parse()?, ..Scenario::default() };
/// write_simulated(&scenario, &trace, Format::Otf2, false)?;
///
/// let report = Corrector::builder().build().run(&trace, &directory.path().join("corrected"))?;
/// assert_eq!(report.verdict, Verdict::Corrected);
/// assert!(report.violations.raw.is_some_and(|stage| stage.point_to_point.violated > 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Corrector {
    options: Builder,
}

/// How [`Corrector`] works; everything has the default of the command line.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    presync: Method,
    reference: Reference,
    limits: MeasurementLimits,
    latency: MinimumLatency,
    latency_of_trace: bool,
    alltoallv: bool,
    handles: bool,
    fences: Fences,
    parameters: Parameters,
    threads: Option<NonZero<usize>>,
    force: bool,
    details: bool,
}

impl Builder {
    /// How recorded clocks become one global clock first.
    pub fn presync(self, presync: Method) -> Builder {
        Builder { presync, ..self }
    }

    /// What is global time.
    pub fn reference(self, reference: Reference) -> Builder {
        let centre = if reference == Reference::Median { Centre::Median } else { Centre::Mean };
        Builder { reference, parameters: Parameters { centre, ..self.parameters }, ..self }
    }

    /// Which measurements of clocks count.
    pub fn limits(self, limits: MeasurementLimits) -> Builder {
        Builder { limits, ..self }
    }

    /// Minimum latencies, in ticks of the trace's timer.
    pub fn latency(self, latency: MinimumLatency) -> Builder {
        Builder { latency, latency_of_trace: false, ..self }
    }

    /// Minimum latencies that the trace itself shows.
    pub fn latency_of_trace(self) -> Builder {
        Builder { latency: MinimumLatency::default(), latency_of_trace: true, ..self }
    }

    /// Whether Alltoallv and its like synchronise all members.
    pub fn alltoallv(self, alltoallv: bool) -> Builder {
        Builder { alltoallv, ..self }
    }

    /// Whether the creation of a communicator by all members of another one synchronises these.
    pub fn handles(self, handles: bool) -> Builder {
        Builder { handles, ..self }
    }

    /// Which fences of windows synchronise.
    pub fn fences(self, fences: Fences) -> Builder {
        Builder { fences, ..self }
    }

    /// What is done with what the replay finds.
    pub fn form(self, form: CorrectionForm) -> Builder {
        Builder { parameters: Parameters { form, ..self.parameters }, ..self }
    }

    /// The constants of the controlled logical clock; latency, form and centre of these are not used.
    pub fn parameters(self, parameters: Parameters) -> Builder {
        let Parameters { form, centre, .. } = self.parameters;
        Builder { parameters: Parameters { form, centre, ..parameters }, ..self }
    }

    /// Threads of each rank; else one per core for a single rank, one for each of several.
    pub fn threads(self, threads: NonZero<usize>) -> Builder {
        Builder { threads: Some(threads), ..self }
    }

    /// Whether an output of the program may be replaced.
    pub fn force(self, force: bool) -> Builder {
        Builder { force, ..self }
    }

    /// Whether the report has what pictures need ([`crate::report::html`]).
    pub fn details(self, details: bool) -> Builder {
        Builder { details, ..self }
    }

    /// Ready to work.
    pub fn build(self) -> Corrector {
        Corrector { options: self }
    }
}

impl Corrector {
    /// With every default.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Corrects the trace (a directory of OTF2 or its anchor file, or a native trace) and writes the result to `output`, which must not exist. It appears
    /// there complete, or not at all; the trace itself is never changed. In this process, without MPI.
    ///
    /// # Errors
    /// The trace cannot be read or changes meanwhile, the output cannot be written, the trace contradicts itself.
    pub fn run(&self, trace: &Path, output: &Path) -> Result<Report> {
        self.run_alone(trace, Some(output))
    }

    /// Does everything that [`Corrector::run`] does, including the verification of the corrected times, but writes no output. The report is that of a
    /// correction, without an output: violations as recorded, after pre-synchronisation and corrected, and how far events would move.
    ///
    /// # Errors
    /// The trace cannot be read or changes meanwhile, it contradicts itself.
    pub fn dry_run(&self, trace: &Path) -> Result<Report> {
        self.run_alone(trace, None)
    }

    fn run_alone(&self, trace: &Path, output: Option<&Path>) -> Result<Report> {
        let mut transport = LocalTransport::alone().with_workers(Workers::of_this_machine());
        let report = self.run_on(&mut transport, trace, output, &Silent)?;
        report.ok_or_else(|| Error::new("a single rank has no report; this is a bug"))
    }

    /// The same on the ranks of a transport, all of which have to call this; the report is on rank 0.
    ///
    /// # Errors
    /// As [`Corrector::run`]; a failure of one rank is everybody's.
    pub fn run_on(
        &self,
        transport: &mut dyn Transport,
        trace: &Path,
        output: Option<&Path>,
        progress: &dyn Progress,
    ) -> Result<Option<Report>> {
        let options = &self.options;
        let examination = Examination {
            load: LoadOptions {
                presync: options.presync,
                latency: options.latency,
                alltoallv: options.alltoallv,
                handles: options.handles,
                fences: options.fences,
                separation: options.parameters.minimum_separation,
            },
            clocks: RefineOptions {
                reference: options.reference,
                latency: options.latency_of_trace,
                limits: options.limits,
            },
            keep_recorded: options.details,
        };
        let parameters = Parameters { latency: options.latency, ..options.parameters };
        let session = Session::open(transport, trace, options.threads, progress)?;
        correct(session, examination, parameters, output.map(|path| (path, options.force)), &[])
    }
}

/// The whole way of a correction; the output and whether it may replace an earlier one, or none. Collective over the analysis ranks; the report is on
/// rank 0. If a violation is left in the times as written (which would be a bug), it says so and nothing is put into place.
///
/// # Errors
/// The trace cannot be read or changes meanwhile, the output cannot be written, the trace contradicts itself.
pub fn correct(
    mut session: Session<'_>,
    examination: Examination,
    parameters: Parameters,
    output: Option<(&Path, bool)>,
    command_line: &[String],
) -> Result<Option<Report>> {
    // Before any work: can the output be written at all?
    let wanted =
        output.map(|(path, force)| OutputRequest { path, force, events: None, with_truth: false, corrected: true });
    let prepared = wanted.map(|wanted| session.prepare(wanted)).transpose()?;
    session.lap("open", 0);
    session.progress.step("prepare");

    let replayed = session.replay(examination, parameters)?;
    let target = prepared.as_ref().map(|prepared| prepared.making.clone());
    let written = session.write(&replayed, target.as_deref())?;
    let verified = session.verify(&replayed, &written)?;
    let mut details = None;
    if examination.keep_recorded {
        details = session.details(&replayed.examined, Some((&replayed, &written, &verified)))?;
    }
    let loaded = &replayed.examined.loaded;
    let locks = overlaps(session.transport, &session.opened, loaded, Some(&replayed.result.corrections))?;
    let output = session.publish(prepared, &replayed, &written, &verified)?;
    let findings = Findings::of_corrected(replayed, written, verified, command_line);
    session.report(Findings { details, locks, output, ..findings })
}
