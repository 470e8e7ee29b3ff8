//! The options of `clc-replay report`.

use super::options::LogOptions;
use clap::Args;
use std::path::PathBuf;

pub(super) const ABOUT: &str = "\
Shows a report that a correction, check or analyze has stored with --report: as text, or with --html as a web page. The page is the same as the run \
itself would have written. The trace is not needed.";

pub(super) const AFTER: &str = "\
Examples:
  clc-replay --report result.json traces/run1
  clc-replay report result.json --html result.html      later, or on another machine
  clc-replay analyze --report waits.json traces/run1
  clc-replay report waits.json

Exit status:
  0  according to the report there are no violations, or all were corrected; an analysis
  1  according to the report violations remain
  2  an error; nothing was written
  3  according to the report less than 90 % of the communication in the trace was checked, and no violation was found";

/// Options of `clc-replay report`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ReportOptions {
    /// The stored report of a correction, of a check or of analyze
    #[arg(value_name = "FILE")]
    pub report: PathBuf,

    /// Write the page to FILE ("-": standard output, instead of the text)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,

    /// Overwrite an existing --html file of any kind, unless it belongs to a trace; an earlier page is overwritten in any case
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}
