//! The options of `clc-replay analyze`.

use super::options::{CommonOptions, CorrectionOptions, SynchronisationOptions};
use crate::report::Analysis;
use clap::{Args, value_parser};
use std::path::PathBuf;

pub(super) const ABOUT: &str = "\
Analyses the waiting times of a trace (Late Sender, Wait at Barrier, ...), which regions made others wait (delay costs), \
the waiting of threads (Wait at OpenMP Barrier, Idle Threads, ...), the degree of parallelism and the critical path, \
all with the times that any reader of the trace sees and with corrected times. The difference is an artefact of the \
clocks. Only the report is written.";

pub(super) const AFTER: &str = "\
Examples:
  clc-replay analyze traces/run1
      Waiting times before and after the correction, execution metrics, critical path.
  mpirun -n 64 clc-replay analyze --report run1.json --html run1.html traces/run1
      The same on 64 processes, with identical numbers; the report as JSON and as a web page.
  clc-replay analyze --as-recorded traces/run1-clc
      Use the times as they are: for a trace that has already been corrected, or whose clocks agree.
  clc-replay analyze --csv tables traces/run1
      Every table as a CSV file.

Exit status:
  0  the trace was analysed, whatever the result
  2  an error

All definitions: docs/analysis.md";

const ANALYSIS: &str = "Analysis";
const OUTPUT: &str = "Output";

/// Options of `clc-replay analyze`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct AnalyzeOptions {
    /// The trace: the directory of an OTF2 archive or its anchor file (traces.otf2), or a native trace (NAME.clct)
    pub trace: PathBuf,

    /// Do not correct the times: analyse the trace as a reader of it sees it
    ///
    /// Recorded clock offsets are applied, as every reader does (unless --presync says otherwise). There is only one stage then.
    #[arg(long, help_heading = ANALYSIS)]
    pub as_recorded: bool,

    /// Rows of each printed table; above 256, lists in the report get longer as well
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..=100_000), help_heading = ANALYSIS)]
    pub top: u32,

    /// Number of time windows for the degree of parallelism, the traffic and the weights of the critical path
    ///
    /// More windows resolve shorter phases. The degree of parallelism of each window is its exact average. There are never more windows than ticks.
    #[arg(long, value_name = "K", default_value_t = 1000, value_parser = value_parser!(u32).range(1..=Analysis::WINDOWS as i64), help_heading = ANALYSIS)]
    pub windows: u32,

    /// Also write every table as comma-separated values into DIR
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub csv: Option<PathBuf>,

    /// Also write the report as a web page to FILE ("-": standard output, instead of the text)
    ///
    /// A single self-contained file. `clc-replay report` generates the same page from a stored --report.
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
