//! The options of `clc-replay evaluate`.

use super::Duration;
use super::options::{CommonOptions, CorrectionOptions, SynchronisationOptions};
use super::values;
use clap::Args;
use std::path::PathBuf;

/// Options of `clc-replay evaluate`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct EvaluateOptions {
    /// The trace to evaluate: a corrected one, or the one with the truth itself
    pub trace: PathBuf,

    /// Directory of the trace that TRACE was made from (by `simulate`, `perturb` or `record --clock`), whose `truth` holds the true times
    #[arg(long, value_name = "DIR", help_heading = "Comparison")]
    pub truth: PathBuf,

    /// Length of the windows of true time for the error between processes
    ///
    /// The errors of each process are averaged over a window, and what all processes have in common is subtracted. Short windows show how far
    /// clocks are apart at any moment, long ones how much of that remains on average.
    #[arg(long, value_name = "DURATION", default_value = "10ms", help_heading = "Comparison", value_parser = values::averaging)]
    pub window: Duration,

    /// Draw the clock error over time, per location, as SVG
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub plot: Option<PathBuf>,

    /// How the correction was made.
    #[command(flatten)]
    pub correction: CorrectionOptions,

    /// What the job shares with the correction.
    #[command(flatten)]
    pub synchronisation: SynchronisationOptions,

    /// What the job shares with every other.
    #[command(flatten)]
    pub common: CommonOptions,
}
