//! One file per subcommand: what it does, top to bottom.

mod analyze;
mod check;
mod convert;
mod correct;
mod evaluate;
mod examined;
mod export;
mod generate;
mod info;
mod monitor;
mod output;
mod perturb;
mod record;
mod recover;
mod replayed;
mod report;
mod simulate;
mod summary;

pub use analyze::analyze;
pub use check::check;
pub use convert::convert;
pub use correct::correct;
pub use evaluate::evaluate;
pub use export::export;
pub use generate::{completions_of, man};
pub use info::info;
pub use monitor::monitor;
pub use output::check_targets;
pub use perturb::perturb;
pub use record::record;
pub use recover::recover;
pub use report::report;
pub use simulate::simulate;

use crate::report::{Conversion, Evaluation, Info, Made, Report};

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
    Made(Box<Made>),
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
            Outcome::Made(made) => Some(&made.output),
            Outcome::Converted(conversion) => Some(&conversion.output),
            Outcome::Info(_) | Outcome::Evaluation(_) | Outcome::Text(_) => None,
        }
    }
}
