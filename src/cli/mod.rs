//! The command line: arguments, logging, progress bar. The top layer; it starts jobs and contains none.
//!
//! `clc-replay [OPTIONS] TRACE` is the main job and has no name of its own; other jobs are subcommands beside it. A new
//! subcommand is a variant of [`Invocation`] with its struct of options.

mod analyze;
mod convert;
mod evaluate;
mod export;
mod files;
mod generate;
mod help;
pub mod logging;
mod monitor;
mod monitored;
mod options;
mod pause;
pub mod progress;
mod record;
mod recorder;
mod report;
mod simulate;
mod stop;
mod time_window;
mod values;

pub use analyze::AnalyzeOptions;
pub use clc_trace::Duration;
pub use convert::ConvertOptions;
pub use evaluate::EvaluateOptions;
pub use export::{ExportFormat, ExportOptions};
pub use generate::{CompletionsOptions, ManOptions, completions, man};
pub use monitor::{AgentOptions, JobsOptions, MonitorJob, WatchOptions};
pub use monitored::MonitoredOptions;
pub use options::{
    CheckOptions, CommonOptions, CorrectOptions, CorrectionOptions, InfoOptions, LogOptions, SynchronisationOptions,
};
pub use pause::Pause;
pub use record::{RecordOptions, RecordedOptions, RecoverOptions};
pub use report::ReportOptions;
pub use simulate::{ClockOptions, GeneratedOptions, NetworkOptions, PerturbOptions, SimulateOptions};
pub use stop::Stop;
pub use time_window::TimeWindow;
pub use values::{LatencyOption, MaxDelay};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use std::ffi::OsString;
use std::path::Path;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// `clc-replay TRACE`: correct a trace.
    Correct(CorrectOptions),
    /// `clc-replay check TRACE`: count violations, write nothing.
    Check(CheckOptions),
    /// `clc-replay analyze TRACE`: waiting times, parallelism, critical path.
    Analyze(AnalyzeOptions),
    /// `clc-replay info TRACE`: describe a trace.
    Info(InfoOptions),
    /// `clc-replay simulate DIR`: make a trace whose true times are known.
    Simulate(SimulateOptions),
    /// `clc-replay perturb TRACE DIR`: a recorded trace with known clock errors.
    Perturb(PerturbOptions),
    /// `clc-replay evaluate TRACE --truth DIR`: how far a trace is from the truth.
    Evaluate(EvaluateOptions),
    /// `clc-replay record -o DIR -- COMMAND`: run and record an application.
    Record(RecordOptions),
    /// `clc-replay recover DIR`: a trace of a recording that was cut off.
    Recover(RecoverOptions),
    /// `clc-replay agent`, `jobs`, `watch`: jobs that run.
    Monitor(MonitorJob),
    /// `clc-replay convert TRACE TARGET`: the same trace in the other format.
    Convert(ConvertOptions),
    /// `clc-replay report FILE`: a stored report again.
    Report(ReportOptions),
    /// `clc-replay export TRACE`: a part of a trace for other tools.
    Export(ExportOptions),
    /// `clc-replay man DIR`: the manual.
    Man(ManOptions),
    /// `clc-replay completions SHELL`: completion of the command line.
    Completions(CompletionsOptions),
}

impl Invocation {
    /// Reads a command line, program name included.
    ///
    /// # Errors
    /// The arguments are wrong, or ask for help or the version only: the program stops with the text and exit
    /// status that [`Stop`] holds. Only one analysis rank should print it.
    pub fn parse<I>(arguments: I) -> Result<Invocation, Stop>
    where
        I: IntoIterator,
        I::Item: Into<OsString> + Clone,
    {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let meant = |stop: Stop| misspelt(&arguments).filter(|_| stop.status() != 0).unwrap_or(stop);
        let subcommand = subcommand(&arguments);
        let stop = |error: clap::Error| Stop::of_clap(subcommand.as_deref(), &error);
        let matches = command().try_get_matches_from(&arguments).map_err(|error| meant(stop(error)))?;
        // By hand rather than by a derived struct: without a subcommand the main job's options are all there, with
        // one none of them is, and derived code cannot express that for nested groups of options.
        match matches.subcommand_name() {
            Some(_) => match without_effect(&matches) {
                Some(stop) => Err(stop),
                None => Ok(Invocation::from(Subcommands::from_arg_matches(&matches).map_err(stop)?)),
            },
            None => match misspelt(&arguments) {
                Some(stop) => Err(stop),
                None => Ok(Invocation::Correct(CorrectOptions::from_arg_matches(&matches).map_err(stop)?)),
            },
        }
    }

    /// What to log, and whether to be quiet.
    pub fn log_options(&self) -> &LogOptions {
        match self {
            Invocation::Correct(options) => &options.common.log,
            Invocation::Check(options) => &options.common.log,
            Invocation::Analyze(options) => &options.common.log,
            Invocation::Info(options) => &options.log,
            Invocation::Simulate(options) => &options.generated.log,
            Invocation::Perturb(options) => &options.generated.log,
            Invocation::Evaluate(options) => &options.common.log,
            Invocation::Record(options) => &options.written.log,
            Invocation::Recover(options) => &options.written.log,
            Invocation::Monitor(job) => job.log_options(),
            Invocation::Convert(options) => &options.log,
            Invocation::Report(options) => &options.log,
            Invocation::Export(options) => &options.log,
            Invocation::Man(options) => &options.log,
            Invocation::Completions(options) => &options.log,
        }
    }
}

/// What to say if options of the correction were given to a command that makes none.
fn without_effect(matches: &ArgMatches) -> Option<Stop> {
    let (subcommand, given) = matches.subcommand()?;
    let why = match subcommand {
        "export" if !given.get_flag("corrected") => "without --corrected",
        "analyze" if given.get_flag("as_recorded") => "with --as-recorded",
        _ => return None,
    };
    let of_correction = CorrectionOptions::augment_args(Command::new(""));
    let mut of_correction = of_correction.get_arguments();
    let option =
        of_correction.find(|option| given.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine))?;
    Some(Stop::usage(Some(subcommand), &format!("--{} has no effect {why}", option.get_long()?)))
}

/// The subcommand that a command line begins with, if it does.
fn subcommand(arguments: &[OsString]) -> Option<String> {
    let word = arguments.get(1)?.to_str()?;
    command().get_subcommands().map(Command::get_name).find(|name| *name == word).map(str::to_owned)
}

/// What to say if the first argument is nearly the name of a subcommand, and that of no trace.
fn misspelt(arguments: &[OsString]) -> Option<Stop> {
    let word = arguments.get(1)?.to_str()?;
    if word.starts_with('-') || word.contains('/') || Path::new(word).exists() {
        return None;
    }
    let command = command();
    let names = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).map(Command::get_name);
    let names: Vec<&str> = names.collect();
    if names.contains(&word) {
        return None;
    }
    let meant = names.iter().find(|name| slips(word, name) <= 1 + word.len() / 6)?;
    Some(Stop::usage(None, &format!("there is no trace '{word}'; did you mean the subcommand '{meant}'?")))
}

/// How many characters have to be added, removed or replaced to make one word of the other (the distance of Levenshtein).
fn slips(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

/// The whole command line, for parsing and for generated documentation.
pub(crate) fn command() -> Command {
    // The texts come last: adding options would replace them by the description of the struct.
    CorrectOptions::augment_args(Subcommands::augment_subcommands(Command::new("clc-replay")))
        .version(env!("CARGO_PKG_VERSION"))
        .about("Corrects the timestamps of an MPI event trace, so that no message is received before it was sent")
        .long_about(help::ABOUT)
        .after_help(help::SHORT)
        .after_long_help(help::LONG)
        // A subcommand's name is one only in the first place; a TRACE of that name is given as ./NAME.
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .disable_help_subcommand(true)
        .max_term_width(100)
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Count the violations of the clock condition in a trace; write nothing
    #[command(long_about = help::CHECK, after_long_help = help::CHECK_AFTER, max_term_width = 100)]
    Check(CheckOptions),
    /// Find waiting times, parallelism and critical path, before and after the correction
    #[command(long_about = analyze::ABOUT, after_long_help = analyze::AFTER, max_term_width = 100)]
    Analyze(AnalyzeOptions),
    /// Describe a trace: processes, nodes, communicators, events, clock offsets
    #[command(long_about = help::INFO, after_long_help = help::INFO_AFTER, max_term_width = 100)]
    Info(InfoOptions),
    /// Generate a trace of a simulated application on a machine with wrong clocks, and its true times
    #[command(long_about = help::SIMULATE, after_long_help = help::SIMULATE_AFTER, max_term_width = 100)]
    Simulate(SimulateOptions),
    /// Add known clock errors to a recorded trace, and keep its times as the truth
    #[command(long_about = help::PERTURB, after_long_help = help::PERTURB_AFTER, max_term_width = 100)]
    Perturb(PerturbOptions),
    /// Compare the times of a trace with the true ones, after each phase of the correction
    #[command(long_about = help::EVALUATE, after_long_help = help::EVALUATE_AFTER, max_term_width = 100)]
    Evaluate(EvaluateOptions),
    /// Run an MPI application and record it as a trace
    #[command(long_about = record::ABOUT, after_long_help = record::AFTER, max_term_width = 100)]
    Record(RecordOptions),
    /// Turn an unfinished recording into a trace
    #[command(long_about = record::RECOVER_ABOUT, after_long_help = record::RECOVER_AFTER, max_term_width = 100)]
    Recover(RecoverOptions),
    /// Show a running job: who waits for whom, who is missing
    #[command(long_about = monitor::WATCH_ABOUT, after_long_help = monitor::WATCH_AFTER, max_term_width = 100)]
    Watch(WatchOptions),
    /// List the running jobs that are being monitored
    #[command(long_about = monitor::JOBS_ABOUT, max_term_width = 100)]
    Jobs(JobsOptions),
    /// Watch the processes of a job on this node
    #[command(long_about = monitor::AGENT_ABOUT, after_long_help = monitor::AGENT_AFTER, max_term_width = 100)]
    Agent(AgentOptions),
    /// Convert a trace between OTF2 and the native format
    #[command(long_about = convert::ABOUT, after_long_help = convert::AFTER, max_term_width = 100)]
    Convert(ConvertOptions),
    /// Show a stored report, as text or as a web page
    #[command(long_about = report::ABOUT, after_long_help = report::AFTER, max_term_width = 100)]
    Report(ReportOptions),
    /// Export part of a trace for other tools: Perfetto, violations as CSV
    #[command(long_about = export::ABOUT, after_long_help = export::AFTER, max_term_width = 100)]
    Export(ExportOptions),
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man(ManOptions),
    /// Print the completions for a shell
    #[command(hide = true)]
    Completions(CompletionsOptions),
}

impl From<Subcommands> for Invocation {
    fn from(subcommand: Subcommands) -> Invocation {
        match subcommand {
            Subcommands::Check(options) => Invocation::Check(options),
            Subcommands::Analyze(options) => Invocation::Analyze(options),
            Subcommands::Info(options) => Invocation::Info(options),
            Subcommands::Simulate(options) => Invocation::Simulate(options),
            Subcommands::Perturb(options) => Invocation::Perturb(options),
            Subcommands::Evaluate(options) => Invocation::Evaluate(options),
            Subcommands::Record(options) => Invocation::Record(options),
            Subcommands::Recover(options) => Invocation::Recover(options),
            Subcommands::Watch(options) => Invocation::Monitor(MonitorJob::Watch(options)),
            Subcommands::Jobs(options) => Invocation::Monitor(MonitorJob::Jobs(options)),
            Subcommands::Agent(options) => Invocation::Monitor(MonitorJob::Agent(options)),
            Subcommands::Convert(options) => Invocation::Convert(options),
            Subcommands::Report(options) => Invocation::Report(options),
            Subcommands::Export(options) => Invocation::Export(options),
            Subcommands::Man(options) => Invocation::Man(options),
            Subcommands::Completions(options) => Invocation::Completions(options),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
