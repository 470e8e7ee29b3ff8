//! The options of every job, and the groups that jobs share.
//!
//! The comment of a field is its help text: what it changes and when to touch it (clap adds the default).

use super::monitored::MonitoredOptions;
use super::values::{self, LatencyOption, MaxDelay};
use crate::clocks::refine::RefineOptions;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use clap::{Args, value_parser};
use clc_archive::{directory_of, native};
use clc_clock::reference::Reference;
use clc_clock::{MeasurementLimits, Method};
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::Duration;
use clc_trace::{Error, Result};
use controlled_logical_clock::{Centre, CorrectionForm, Decay, ErrorLimit, Parameters, Slope};
use std::num::NonZero;
use std::path::{Path, PathBuf};

const CLOCK_CORRECTION: &str = "Correction";
const OUTPUT: &str = "Output";
const MODEL: &str = "Clock condition";

/// Options of the main job, `clc-replay TRACE`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct CorrectOptions {
    /// The trace: the directory of an OTF2 archive or its anchor file (traces.otf2), or a native trace (NAME.clct)
    ///
    /// It is never modified. Write ./NAME for a directory that has the name of a subcommand.
    pub trace: PathBuf,

    /// Directory to write the corrected trace to [default: TRACE-clc]
    ///
    /// It appears only once it is complete. By default it is placed next to the trace, with "-clc" added to the name (run-clc.clct for run.clct).
    /// It has the same format as the trace.
    #[arg(short, long, value_name = "DIR", help_heading = OUTPUT)]
    pub output: Option<PathBuf>,

    /// Do everything but write the corrected trace
    ///
    /// Violations, passes and displacements are reported as if it had been written. Useful for trying parameters.
    #[arg(long, help_heading = OUTPUT, conflicts_with = "output")]
    pub dry_run: bool,

    /// Also write the report as a web page to FILE ("-": standard output, instead of the text)
    ///
    /// A single self-contained file: clock errors over time, violations by pair, time and operation, pictures of the worst ones, what was changed,
    /// and how to repeat the run. `clc-replay report` generates the same page from a stored --report.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,

    /// Whether the run is monitored.
    #[command(flatten)]
    pub monitored: MonitoredOptions,

    /// How the correction is made.
    #[command(flatten)]
    pub correction: CorrectionOptions,

    /// What the job shares with `check`.
    #[command(flatten)]
    pub synchronisation: SynchronisationOptions,

    /// What the job shares with every other.
    #[command(flatten)]
    pub common: CommonOptions,
}

impl CorrectOptions {
    /// Whether anybody looks at what takes longer to find out than the summary.
    pub(crate) fn wants_details(&self) -> bool {
        self.html.is_some() || self.common.report.is_some()
    }

    /// The constants of the clock for a trace with `resolution` ticks per second.
    ///
    /// # Errors
    /// A latency is too long for the clock.
    pub fn parameters(&self, resolution: u64) -> Result<Parameters> {
        self.correction.parameters(&self.synchronisation, resolution)
    }

    /// Where the corrected trace goes: `--output`, or the trace directory's name with `-clc`, beside it.
    ///
    /// # Errors
    /// The trace is given as a path without a name (`.`, `..`) that cannot be resolved, or as the root directory.
    pub(crate) fn output_directory(&self) -> Result<PathBuf> {
        match &self.output {
            Some(output) => Ok(output.clone()),
            None => default_output(&self.trace),
        }
    }
}

/// How the correction is made: options of every job that makes one.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct CorrectionOptions {
    /// How corrections are derived from the replay: common or paper
    ///
    /// common: the average of two replays, one that delays receives and one that moves sends earlier, minus the displacement that the clocks
    /// of all processes share. Processes agree better, and the trace stays where it was recorded.
    /// paper: the first of these replays alone, as published for the controlled logical clock.
    #[arg(long, value_name = "FORM", default_value = "common", help_heading = CLOCK_CORRECTION,
          value_parser = PossibleValuesParser::new(CorrectionForm::ALL.map(CorrectionForm::name)).map(form))]
    pub correction: CorrectionForm,

    /// Control variable of the first pass, 0.5 to 1
    ///
    /// Close to 1, local intervals keep their lengths, but an advance decays slowly. If it outlasts its cause, the next pass uses a smaller value
    /// automatically; start with a lower one only to save passes on a trace known to be bad.
    #[arg(long, value_name = "GAMMA", default_value = "0.99999", allow_negative_numbers = true, value_parser = values::gamma, help_heading = CLOCK_CORRECTION)]
    pub gamma: Decay,

    /// Maximum number of forward passes, 1 to 100
    ///
    /// Each pass starts over from the pre-synchronised times with a faster decay: 1-gamma = 1e-5, 1e-4, ... 1e-1 in five passes. With 1, the first
    /// gamma is always used.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=100), help_heading = CLOCK_CORRECTION)]
    pub max_passes: u32,

    /// Error below which no further pass is made, 1 or more
    ///
    /// The error of a pass is the sum of all its jumps divided by the sum of all violations: above 1, moved events caused further violations. With
    /// --correction paper it is the largest advance of any event divided by the largest that no gamma can avoid. Otherwise, passes also go on if
    /// the correction moves an event by more than two thirds of this times that advance, until one moves less. Lower it towards 1 to stay closer to
    /// the recorded times, at the price of compressed intervals.
    #[arg(long, value_name = "RATIO", default_value = "1.5", allow_negative_numbers = true, value_parser = values::max_error, help_heading = CLOCK_CORRECTION)]
    pub max_error: ErrorLimit,

    /// Slope of the backward amortisation, 1e-6 to 1
    ///
    /// The jump D at a corrected receive is spread over the interval D/slope before it: 0.01 stretches intervals there by 1 %. Lower it if short
    /// intervals before receives matter; raise it to keep corrections local.
    #[arg(long, value_name = "SLOPE", default_value = "0.01", allow_negative_numbers = true, value_parser = values::slope, help_heading = CLOCK_CORRECTION)]
    pub slope: Slope,
}

impl CorrectionOptions {
    /// The constants of the clock for a trace with `resolution` ticks per second.
    ///
    /// # Errors
    /// A latency is too long for the clock.
    pub fn parameters(&self, synchronisation: &SynchronisationOptions, resolution: u64) -> Result<Parameters> {
        Ok(Parameters {
            latency: synchronisation.latency.to_ticks(resolution)?,
            decay: self.gamma,
            max_passes: self.max_passes,
            max_error: self.max_error,
            slope: self.slope,
            form: self.correction,
            centre: if synchronisation.reference == Reference::Median { Centre::Median } else { Centre::Mean },
            ..Parameters::default()
        })
    }
}

/// Options of `clc-replay check`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct CheckOptions {
    /// The trace: the directory of an OTF2 archive or its anchor file (traces.otf2), or a native trace (NAME.clct)
    pub trace: PathBuf,

    /// Also write the report as a web page to FILE ("-": standard output, instead of the text)
    ///
    /// A single self-contained file: clock errors over time, violations by pair, time and operation, pictures of the worst ones, what was changed,
    /// and how to repeat the run. `clc-replay report` generates the same page from a stored --report.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,

    /// What the job shares with the correction.
    #[command(flatten)]
    pub synchronisation: SynchronisationOptions,

    /// What the job shares with every other.
    #[command(flatten)]
    pub common: CommonOptions,
}

impl CheckOptions {
    /// Whether anybody looks at what takes longer to find out than the summary.
    pub(crate) fn wants_details(&self) -> bool {
        self.html.is_some() || self.common.report.is_some()
    }
}

/// Options of `clc-replay info`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct InfoOptions {
    /// The trace: the directory of an OTF2 archive or its anchor file (traces.otf2), or a native trace (NAME.clct)
    pub trace: PathBuf,

    /// List every location and communicator
    ///
    /// By default long tables are truncated after the most significant rows.
    #[arg(long, help_heading = OUTPUT)]
    pub all: bool,

    /// Also write the printed information as JSON to FILE ("-": standard output, instead of the text)
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub report: Option<PathBuf>,

    /// Overwrite an existing --report file of any kind, unless it belongs to a trace; an earlier report is overwritten in any case
    #[arg(long, help_heading = OUTPUT)]
    pub force: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// What makes a violation: options of every job that compares clocks.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct SynchronisationOptions {
    /// Minimum latency of a message, such as 1us, or same-node=300ns,other-node=1.2us, or auto
    ///
    /// A receive earlier than its send plus this latency is a violation, and is corrected. Units: min, s, ms, us, ns, ps; rounded up to whole
    /// ticks of the trace's timer. Only specify a latency that the network certainly has: too large a value invents violations. auto: half the
    /// shortest round trip between nodes, which needs no synchronised clocks, and the shortest message within a node, where the distribution of
    /// round trips begins sharply; otherwise 0. Never more than clocks without violations permit.
    #[arg(long, value_name = "DURATION", default_value = "0", allow_hyphen_values = true, value_parser = values::latency, help_heading = MODEL)]
    pub latency: LatencyOption,

    /// How recorded times are first mapped to one global clock [default: auto; for check linear]
    ///
    /// auto: none, if recorded times leave no violations and predict messages significantly better than with recorded offsets, or these are no more than errors of measurement; linear, if that leaves no
    /// violations and the evidence against it is not strong; network, if its clocks predict held-out messages significantly better or do no more than violations demand, leave no more
    /// violations, and contradict no recorded offset by far; otherwise linear, or hull, if its straight lines predict messages that did not wait significantly better than recorded offsets. Where no offset was recorded and the estimate runs away, straight lines as of hull or, where messages are late, of regression take its place (also with network); and where it leaves violations, lines that leave less; and where by the recorded times some processes had ended before others began, they may first be taken to begin together (also with network, regression and hull). Nine or more recorded offsets of a clock are joined by curves first if they themselves show that it bends between them; five or more, where an estimate was refused, if curves leave a quarter of the violations or fewer. The report gives the reason.
    /// linear: interpolate the clock offsets that the measurement system recorded, as every reader of the archive does. This is the default of
    /// check, which asks whether the trace is broken as it stands.
    /// network: estimate a time-varying clock for each node from all messages and collectives in both directions; recorded offsets count as
    /// further observations. The stiffness of the clocks and the interpretation of messages are chosen by how well they predict held-out messages.
    /// For clocks with varying drift, and for traces without offsets.
    /// regression: one straight line per pair of nodes through round trips of messages, for clocks with constant drift.
    /// hull: the straight line that no message violates, if one exists.
    /// none: use the recorded times unchanged; for archives whose recorded offsets are wrong.
    #[arg(long, value_name = "MODEL", help_heading = MODEL,
          value_parser = PossibleValuesParser::new(Method::ALL.map(Method::name)).map(presync_method))]
    pub presync: Option<Method>,

    /// The reference for global time: auto, the number of a process, median, mean or harmonic
    ///
    /// auto: the node that the recorded offsets refer to; where none are recorded, the mean of the clocks that agree. A process: the clock of its
    /// node. The others combine the clocks of all nodes, for when no single one can be trusted; with the median, a clock that fails or jumps does
    /// not affect the others, neither before nor during the correction, which removes the displacement that all clocks share. It is for estimated
    /// clocks: where --presync auto keeps the recorded ones, time remains that of the recorded offsets.
    #[arg(long, value_name = "CLOCK", default_value = "auto", help_heading = MODEL, value_parser = values::reference)]
    pub reference: Reference,

    /// Fraction of the round trips that regression fits a line to: 0.9 discards the slowest tenth
    #[arg(long, value_name = "SHARE", default_value = "0.9", help_heading = MODEL, value_parser = values::confidence)]
    pub confidence: f64,

    /// Maximum length of a straight line of regression and hull
    ///
    /// The drift of a quartz clock changes with its temperature; half an hour is short enough for most, and long enough for many round trips.
    #[arg(long, value_name = "DURATION", default_value = "1800s", help_heading = MODEL, value_parser = values::segment)]
    pub segment: Duration,

    /// Discard round trips with a longer transport delay than this, which would give poor clock estimates
    ///
    /// The delay is half the round trip of the fastest messages of a pair of nodes in one window, which needs no synchronised clocks. A percentage
    /// refers to the window, the time between two estimates of a clock: Umansky and Leontev discard round trips longer than 10%. By default slow
    /// ones get a lower weight, but are not discarded.
    #[arg(long, value_name = "DURATION|SHARE", help_heading = MODEL, value_parser = values::delay)]
    pub max_delay: Option<MaxDelay>,

    /// Treat Alltoallv and Alltoallw as all-to-all
    ///
    /// A trace does not show which pairs of processes exchanged data in them, so by default they impose no constraints and are only counted. Set
    /// this if all members exchange data with all others in your program.
    #[arg(long, help_heading = MODEL)]
    pub alltoallv: bool,

    /// Treat the creation of communicators as all-to-all: MPI_Comm_split, MPI_Comm_dup, MPI_Comm_create, MPI_Cart_create and so on
    ///
    /// MPI does not require these calls to synchronise, but in most libraries nobody leaves them before all members of the old communicator have
    /// entered. Not those that only some members call or that do not block (MPI_Comm_create_group, MPI_Comm_idup). Event files are read twice.
    #[arg(long, help_heading = MODEL)]
    pub handles: bool,

    /// Which fences of windows synchronise all processes
    ///
    /// A fence is a barrier unless the program asserts that no operations precede it, which a trace does not show. auto: those that end an epoch
    /// with operations, and others whose times agree with the fences around them; all; operations: only those that end an epoch with operations;
    /// none.
    #[arg(long, value_name = "WHICH", default_value = "auto", help_heading = MODEL,
          value_parser = PossibleValuesParser::new(Fences::ALL.map(Fences::name)).map(fences))]
    pub fences: Fences,
}

impl SynchronisationOptions {
    /// What the clocks are to be refined to.
    pub(crate) fn wanted(&self) -> RefineOptions {
        let seconds = |duration: Duration| duration.picoseconds() as f64 * 1e-12;
        let limits = MeasurementLimits {
            confidence: self.confidence,
            segment: seconds(self.segment),
            delay: self.max_delay.and_then(MaxDelay::duration).map_or(f64::INFINITY, seconds),
            delay_share: self.max_delay.and_then(MaxDelay::share).unwrap_or(f64::INFINITY),
        };
        RefineOptions { reference: self.reference, latency: self.latency.automatic, limits }
    }
}

fn form(name: String) -> CorrectionForm {
    // The parser has refused every other name.
    CorrectionForm::ALL.into_iter().find(|form| form.name() == name).unwrap_or_default()
}

fn fences(name: String) -> Fences {
    // The parser has refused every other name.
    Fences::ALL.into_iter().find(|fences| fences.name() == name).unwrap_or_default()
}

fn presync_method(name: String) -> Method {
    // The parser has refused every other name.
    Method::ALL.into_iter().find(|method| method.name() == name).unwrap_or_default()
}

/// Options of every job that reports.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct CommonOptions {
    /// Also write the report as JSON to FILE ("-": standard output, instead of the text)
    ///
    /// Its fields are explained in docs/report.md. Use this in scripts; the printed summary may change.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub report: Option<PathBuf>,

    /// Replace existing outputs
    ///
    /// A file that clc-replay wrote as the same kind of output is overwritten in any case; any other file requires --force, and files that
    /// belong to a trace are never overwritten. A directory is replaced only with --force, and only if clc-replay wrote everything in it and
    /// nothing has changed since, according to the list `.clc-replay` in it: recordings and other files are never deleted. The old
    /// output remains until the new one is complete.
    #[arg(long, help_heading = OUTPUT)]
    pub force: bool,

    /// Threads for reading and writing event files, at most 1024 and 32 per core [default: one per core, up to 16; 1 under mpirun]
    ///
    /// They are also used for clock estimation, for the corrections of the processes and by analyze; a replay is done by one thread, and its mirror image at the same time by another one. The result does
    /// not depend on their number. Under a launcher the ranks already share the cores of a node; specify more if each has several cores.
    #[arg(long, value_name = "N", help_heading = OUTPUT, value_parser = values::threads)]
    pub threads: Option<NonZero<usize>>,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// What is printed beside the result.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct LogOptions {
    /// What to log to standard error: off, error, warn, info, debug or trace [default: RUST_LOG, or warn]
    ///
    /// Filters such as warn,clc_engine::replay=debug are accepted as well. Raise the level to follow a run, or for a bug report.
    #[arg(long = "log", value_name = "LEVEL", value_parser = values::log_filter, help_heading = OUTPUT)]
    pub filter: Option<String>,

    /// Print no summary, progress or warnings
    ///
    /// Errors are still printed. The exit status, --log and the files that are asked for are not affected.
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,
}

/// The trace directory's name with `-clc`, beside it; before the ending of a native trace.
fn default_output(trace: &Path) -> Result<PathBuf> {
    let directory = directory_of(trace);
    // "." and ".." have no name to add to.
    let directory = match directory.file_name() {
        Some(_) => directory.to_path_buf(),
        None => directory.canonicalize().map_err(|error| Error::io(directory, "cannot resolve the path", &error))?,
    };
    let Some(name) = directory.file_name() else {
        return Err(Error::new("the output cannot be placed next to the root directory").hint("pass --output DIR"));
    };
    let is_native = native::is_named_so(&directory);
    let mut name = if is_native { directory.file_stem().unwrap_or(name) } else { name }.to_os_string();
    name.push("-clc");
    if is_native {
        name.push(".");
        name.push(native::EXTENSION);
    }
    Ok(directory.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_lies_beside_the_trace() {
        let output = |trace: &str| default_output(Path::new(trace)).expect(trace);
        assert_eq!(output("a/lulesh"), Path::new("a/lulesh-clc"));
        assert_eq!(output("lulesh/"), Path::new("lulesh-clc"));
        assert_eq!(output("./check"), Path::new("./check-clc"));
        assert_eq!(output("a/lulesh.64/traces.otf2"), Path::new("a/lulesh.64-clc"));
        assert_eq!(output("a/lulesh.64"), Path::new("a/lulesh.64-clc"));
        assert_eq!(output("a/lulesh.64.clct"), Path::new("a/lulesh.64-clc.clct"));
        assert_eq!(output("a/lulesh.clct/definitions.clcd"), Path::new("a/lulesh-clc.clct"));
        let above = tempfile::tempdir().expect("a directory");
        let directory = above.path().join("run.otf2");
        std::fs::create_dir(&directory).expect("a directory");
        assert_eq!(
            default_output(&directory).expect("a directory that is named like a file"),
            above.path().join("run.otf2-clc")
        );
        let here = std::env::current_dir().expect("a current directory");
        let beside = format!("{}-clc", here.display());
        assert_eq!(output("."), Path::new(&beside));
        assert_eq!(output("traces.otf2"), Path::new(&beside));
        assert!(default_output(Path::new("/")).expect_err("root").to_string().contains("--output"));
    }
}
