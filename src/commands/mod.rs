//! One file per subcommand: what it does, top to bottom.

mod agent;
mod analyze;
mod check;
mod convert;
mod correct;
mod evaluate;
mod export;
mod generate;
mod info;
mod job;
mod jobs;
mod monitor;
mod perturb;
mod record;
mod recover;
mod report;
mod self_monitored;
mod simulate;
mod targets;
mod watch;

pub use analyze::analyze;
pub use check::check;
pub use convert::convert;
pub use correct::correct;
pub use evaluate::evaluate;
pub use export::export;
pub use generate::{completions_of, man};
pub use info::info;
pub use monitor::monitor;
pub use perturb::perturb;
pub use record::record;
pub use recover::recover;
pub use report::report;
pub use self_monitored::{check as check_monitored, finish as finish_monitored, start_anew};
pub use simulate::simulate;
pub use targets::check_targets;

use crate::cli::{CorrectionOptions, SynchronisationOptions};
use crate::pipeline::load::LoadOptions;
use crate::report::{Conversion, Evaluation, Generated, Info, Report};
use crate::session::Examination;
use clc_clock::Method;
use clc_trace::{Result, Ticks};
use controlled_logical_clock::Parameters;

/// What a command found, on rank 0; the other ranks only know how it ends.
#[derive(Debug)]
pub enum Outcome {
    /// A correction or a check.
    Report(Box<Report>),
    /// The description of a trace.
    Info(Box<Info>),
    /// The judgement of a trace.
    Evaluation(Box<Evaluation>),
    /// A trace that was made.
    Generated(Box<Generated>),
    /// A trace in another format.
    Converted(Box<Conversion>),
    /// Text to be printed as it is.
    Text(String),
}

impl Outcome {
    /// The trace that was written, if one was.
    pub fn output(&self) -> Option<&str> {
        match self {
            Outcome::Report(report) => report.output.as_deref(),
            Outcome::Generated(generated) => Some(&generated.output),
            Outcome::Converted(conversion) => Some(&conversion.output),
            Outcome::Info(_) | Outcome::Evaluation(_) | Outcome::Text(_) => None,
        }
    }
}

/// How the program was called.
fn command_line() -> Vec<String> {
    std::env::args_os().map(clc_trace::format::os_text).collect()
}

/// For what a reader of the trace sees, if nothing else is asked for.
///
/// # Errors
/// A latency is too long for a clock with `resolution` ticks per second.
fn as_recorded(synchronisation: &SynchronisationOptions, resolution: u64) -> Result<Examination> {
    examination(synchronisation, resolution, Method::Linear, Ticks::ZERO)
}

/// For the best clocks that there are, if nothing else is asked for, and the constants of the correction.
///
/// # Errors
/// A latency is too long for a clock with `resolution` ticks per second.
fn corrected(
    correction: &CorrectionOptions,
    synchronisation: &SynchronisationOptions,
    resolution: u64,
) -> Result<(Examination, Parameters)> {
    let parameters = correction.parameters(synchronisation, resolution)?;
    Ok((examination(synchronisation, resolution, Method::default(), parameters.minimum_separation)?, parameters))
}

/// For the best clocks that there are, if nothing else is asked for.
///
/// # Errors
/// A latency is too long for a clock with `resolution` ticks per second.
fn best_clocks(synchronisation: &SynchronisationOptions, resolution: u64) -> Result<Examination> {
    examination(synchronisation, resolution, Method::default(), Ticks::ZERO)
}

fn examination(
    synchronisation: &SynchronisationOptions,
    resolution: u64,
    presync: Method,
    separation: Ticks,
) -> Result<Examination> {
    let load = LoadOptions {
        presync: synchronisation.presync.unwrap_or(presync),
        latency: synchronisation.latency.to_ticks(resolution)?,
        alltoallv: synchronisation.alltoallv,
        handles: synchronisation.handles,
        fences: synchronisation.fences,
        separation,
    };
    Ok(Examination { load, clocks: synchronisation.wanted(), keep_recorded: false })
}
