//! The options of `clc-replay analyze`.

use super::options::{CommonOptions, CorrectionOptions, SynchronisationOptions};
use crate::report::Analysis;
use clap::{Args, value_parser};
use std::path::PathBuf;

pub(super) const ABOUT: &str = "\
Analyses a trace: which waiting times it has (Late Sender, Wait at Barrier, ...), how parallel it is, and its critical path; with \
the times that every reader of the trace sees, and with corrected ones. The difference is what its clocks only pretended. \
Nothing is written but the report.";

pub(super) const AFTER: &str = "\
Examples:
  clc-replay analyze traces/run1
      Waiting times before and after the correction, execution metrics, critical path.
  mpirun -n 64 clc-replay analyze --report run1.json --html run1.html traces/run1
      The same on 64 processes, number by number; also for scripts and as a page to look at.
  clc-replay analyze --as-recorded traces/run1-clc
      Take the times as they are: for a trace that is corrected already, or whose clocks are good.
  clc-replay analyze --csv tables traces/run1
      Every table as a file for a spreadsheet.

Exit status:
  0  the trace was analysed, whatever it says
  2  an error

Read on: docs/analysis.md has all definitions.";

const ANALYSIS: &str = "Analysis";
const OUTPUT: &str = "Output";

/// Options of `clc-replay analyze`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct AnalyzeOptions {
    /// The trace: the directory of an OTF2 archive or its anchor file (traces.otf2), or a native trace (NAME.clct)
    pub trace: PathBuf,

    /// Do not correct the times: analyse the trace as a reader sees it
    ///
    /// Recorded clock offsets are applied, as every reader does (another --presync is possible). Then there is only one stage.
    #[arg(long, help_heading = ANALYSIS)]
    pub as_recorded: bool,

    /// Rows of each printed table; lists of the report get longer, too, above 256
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..=100_000), help_heading = ANALYSIS)]
    pub top: u32,

    /// Windows of time for the degree of parallelism, the traffic and the weights of the critical path
    ///
    /// More of them resolve shorter phases. In each one the degree of parallelism is the exact average. A trace of fewer ticks has fewer.
    #[arg(long, value_name = "K", default_value_t = 1000, value_parser = value_parser!(u32).range(1..=Analysis::WINDOWS as i64), help_heading = ANALYSIS)]
    pub windows: u32,

    /// Also write every table as comma-separated values into DIR
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub csv: Option<PathBuf>,

    /// Also write the report as a page for a browser to FILE ("-": standard output, instead of the text)
    ///
    /// One file that needs nothing else. `clc-replay report` makes the same page from a stored --report.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,

    /// How the correction is made.
    #[command(flatten)]
    pub correction: CorrectionOptions,

    /// What the job shares with the correction.
    #[command(flatten)]
    pub synchronisation: SynchronisationOptions,

    /// What the job shares with every other.
    #[command(flatten)]
    pub common: CommonOptions,
}
