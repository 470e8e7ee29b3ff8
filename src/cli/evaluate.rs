//! The options of `clc-replay evaluate`.

use super::options::{CommonOptions, CorrectionOptions, SynchronisationOptions};
use clap::Args;
use std::path::PathBuf;

/// Options of `clc-replay evaluate`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct EvaluateOptions {
    /// The trace to judge: a corrected one, or the one with the truth itself
    pub trace: PathBuf,

    /// Directory of the simulated or perturbed trace that TRACE was made from, whose `truth` holds the true times
    #[arg(long, value_name = "DIR", help_heading = "Comparison")]
    pub truth: PathBuf,

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
