//! `clc-replay`: corrects the timestamps of event traces of parallel programs.

use clc_engine::comm::{self, AnalysisRank, Farewell, Transport};
use clc_replay::cli::{CorrectOptions, Invocation, Stop, logging, progress};
use clc_replay::commands::{self, Outcome};
use clc_replay::output::conflicts::Content;
use clc_replay::output::memory::{self, ReportingAllocator};
use clc_replay::output::{files, signals};
use clc_replay::report;
use clc_trace::progress::Silent;
use clc_trace::{Error, Result};
use std::process::ExitCode;
use std::time::Duration;

/// Stack of the program where that of its main thread is too small, in bytes: what most systems give a main thread.
const STACK: usize = 8 << 20;

fn main() -> ExitCode {
    if !memory::is_stack_small() {
        return program();
    }
    match std::thread::Builder::new().stack_size(STACK).spawn(program).map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => status,
        // What went wrong has been said.
        Ok(Err(_)) => ExitCode::from(Stop::ERROR),
        Err(error) => end(Some(&Stop::from(Error::new(format!("no thread can be started: {error}")))), Stop::ERROR),
    }
}

fn program() -> ExitCode {
    memory::expect_little();
    signals::expect_faults();
    // The application of a recording starts MPI, in this very process or in children of it; this program does not.
    if std::env::args_os().nth(1).is_some_and(|word| WITHOUT_MPI.iter().any(|job| word == *job)) {
        return beside_mpi();
    }
    // A correction that is to be monitored, too: the program is started anew. What is wrong with the arguments is said below.
    if std::env::args_os().any(|word| word == "--monitor")
        && let Ok(Invocation::Correct(options)) = Invocation::parse(std::env::args_os())
        && let Err(error) = commands::start_anew(&options)
    {
        return end(Some(&Stop::from(error)), Stop::ERROR);
    }
    let mut transport = match comm::start() {
        Ok(transport) => transport,
        Err(error) => return end(Some(&Stop::from(error)), Stop::ERROR),
    };
    // Again, since MPI libraries have their own ideas about some signals.
    signals::expect_faults();
    let first = transport.rank() == AnalysisRank::FIRST;
    let job = match Invocation::parse(std::env::args_os()) {
        Ok(job) => job,
        // Every rank has the same arguments; one of them says what is wrong.
        Err(stop) => return end(first.then_some(&stop), stop.status()),
    };
    logging::init(job.log_options(), transport.rank());
    if let Some(options) = first.then(|| corrects(&job)).flatten() {
        commands::check_monitored(options);
    }
    let ended = run(transport.as_mut(), &job);
    if let Some(options) = first.then(|| corrects(&job)).flatten() {
        commands::finish_monitored(options, ended.is_ok());
    }
    match ended {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let stop = Stop::from(error);
            match transport.leave(PATIENCE) {
                Farewell::Together => return end(first.then_some(&stop), Stop::ERROR),
                // An error of this rank alone: others may wait for it, for ever.
                Farewell::First => {}
                Farewell::Follows => std::thread::sleep(PATIENCE),
            }
            stop.print();
            transport.abort(i32::from(Stop::ERROR))
        }
    }
}

fn corrects(job: &Invocation) -> Option<&CorrectOptions> {
    if let Invocation::Correct(options) = job { Some(options) } else { None }
}

/// Jobs that start an application which starts MPI, or watch one.
const WITHOUT_MPI: [&str; 4] = ["record", "agent", "jobs", "watch"];

/// Runs and records an application, then the exit status is its own; or watches one.
fn beside_mpi() -> ExitCode {
    let job = match Invocation::parse(std::env::args_os()) {
        Ok(job) => job,
        Err(stop) => return end(Some(&stop), stop.status()),
    };
    logging::init(job.log_options(), AnalysisRank::FIRST);
    match &job {
        // No progress bar in between what the application says.
        Invocation::Record(options) => match commands::record(options, &Silent) {
            Ok(status) => ExitCode::from(status),
            Err(error) => end(Some(&Stop::from(error)), Stop::ERROR),
        },
        Invocation::Monitor(job) => match commands::monitor(job) {
            Ok(status) => ExitCode::from(status),
            Err(error) => end(Some(&Stop::from(error)), Stop::ERROR),
        },
        // No other job has this name.
        _ => ExitCode::from(Stop::ERROR),
    }
}

/// Ranks that fail together come to their end within this time: 5 s are promised (docs/reliability.md), and ending the job takes some of them.
const PATIENCE: Duration = Duration::from_secs(3);

/// So that running out of memory ends in one line.
#[global_allocator]
static MEMORY: ReportingAllocator = ReportingAllocator;

fn end(stop: Option<&Stop>, status: u8) -> ExitCode {
    ExitCode::from(stop.map_or(status, Stop::print))
}

/// Does the job and prints what came out; returns the exit status, which is the same on every rank.
fn run(transport: &mut dyn Transport, job: &Invocation) -> Result<u8> {
    let quiet = job.log_options().quiet;
    let progress = progress::watched(transport.progress(), transport.rank(), quiet);
    commands::check_targets(transport, job)?;
    let bar = progress.as_ref();
    let outcome = match job {
        Invocation::Correct(options) => commands::correct(transport, options, bar)?,
        Invocation::Check(options) => commands::check(transport, options, bar)?,
        Invocation::Analyze(options) => commands::analyze(transport, options, bar)?,
        Invocation::Info(options) => commands::info(transport, options, bar)?,
        Invocation::Perturb(options) => commands::perturb(transport, options, bar)?,
        Invocation::Evaluate(options) => commands::evaluate(transport, options, bar)?,
        Invocation::Simulate(options) => commands::simulate(transport, options, bar)?,
        Invocation::Convert(options) => commands::convert(transport, options, bar)?,
        Invocation::Recover(options) => commands::recover(transport, options, bar)?,
        // They do not get here: see `beside_mpi`.
        Invocation::Record(_) | Invocation::Monitor(_) => None,
        Invocation::Report(options) => commands::report(transport, options)?,
        Invocation::Export(options) => commands::export(transport, options, bar)?,
        Invocation::Man(options) => commands::man(transport, options)?,
        Invocation::Completions(options) => commands::completions_of(transport, options)?,
    };
    drop(progress);
    let printed = match &outcome {
        Some(outcome) => print(job, outcome, quiet).map_err(|error| after(job, outcome, error)),
        None => Ok(Stop::CONSISTENT),
    };
    // All ranks end alike: rank 0 knows how.
    comm::broadcast_value(transport, AnalysisRank::FIRST, printed)?
}

/// Says that the trace or the tables of an analysis were written, if they were: the status alone would deny it.
fn after(job: &Invocation, outcome: &Outcome, error: Error) -> Error {
    let tables = match job {
        Invocation::Analyze(options) => options.csv.as_ref(),
        _ => None,
    };
    let message = match (outcome.output(), tables) {
        (Some(output), _) => format!("{}; the trace itself was written to {output}", error.message),
        (None, Some(tables)) => format!("{}; the tables were written to {}", error.message, tables.display()),
        (None, None) => return error,
    };
    Error { message, ..error }
}

fn print(job: &Invocation, outcome: &Outcome, quiet: bool) -> Result<u8> {
    if let (Some(path), Outcome::Report(report)) = (job.html(), outcome) {
        files::write(path, report::html(report)?.as_bytes(), Content::Page, job.force())?;
    }
    let (text, machine, status) = match outcome {
        Outcome::Report(report) => {
            let text = match job {
                Invocation::Analyze(options) => report::analysis_text(report, options.top as usize),
                _ => report::text(report),
            };
            // An analysis says what there is; that is no failure.
            let status = if report.analysis.is_some() { Stop::CONSISTENT } else { report.verdict.exit_status() };
            (text, report::json(report.as_ref())?, status)
        }
        Outcome::Info(info) => {
            let all = matches!(job, Invocation::Info(options) if options.all);
            (report::info_text(info, all), report::json(info.as_ref())?, Stop::CONSISTENT)
        }
        Outcome::Evaluation(evaluation) => {
            (report::evaluation_text(evaluation), report::json(evaluation.as_ref())?, Stop::CONSISTENT)
        }
        Outcome::Converted(conversion) => {
            (report::conversion_text(conversion), report::json(conversion.as_ref())?, Stop::CONSISTENT)
        }
        Outcome::Text(text) => (text.clone(), String::new(), Stop::CONSISTENT),
        Outcome::Generated(generated) => {
            (report::generated_text(generated), report::json(generated.as_ref())?, Stop::CONSISTENT)
        }
    };
    let json = job.json();
    if let Some(path) = json {
        files::write(path, machine.as_bytes(), Content::Json, job.force())?;
    }
    if !quiet && job.to_stdout().is_empty() {
        files::print(clc_trace::format::printable(&text).as_bytes())?;
    }
    Ok(status)
}
