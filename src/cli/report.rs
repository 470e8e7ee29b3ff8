//! The options of `clc-replay report`.

use super::options::LogOptions;
use clap::Args;
use std::path::PathBuf;

pub(super) const ABOUT: &str = "\
Shows a report again that was stored with --report: as text, and with --html as a page for a browser. The page is the same \
that the run itself would have written. The trace is not needed.";

pub(super) const AFTER: &str = "\
Examples:
  clc-replay --report result.json traces/run1
  clc-replay report result.json --html result.html      later, or on another machine

Exit status:
  0  the report says that there are no violations (any more)
  1  it says that violations remain
  2  an error; nothing was written
  3  it says that less than 90 % of the communication in the trace was checked, and no violation found";

/// Options of `clc-replay report`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ReportOptions {
    /// The stored report of a correction or of a check
    #[arg(value_name = "FILE")]
    pub report: PathBuf,

    /// Write the page to FILE ("-": standard output, instead of the text)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,

    /// Overwrite the file in the place of --html, whatever it is, unless it belongs to a trace; a page is overwritten anyway
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}
