//! The options of `clc-replay export`.

use super::options::{CorrectionOptions, LogOptions, SynchronisationOptions};
use super::time_window::TimeWindow;
use super::values;
use crate::output::conflicts::Content;
use crate::pipeline::export::VIOLATIONS_HEAD;
use clap::{Args, ValueEnum};
use clc_trace::{Duration, Result, Ticks};
use std::path::{Path, PathBuf};

pub(super) const ABOUT: &str = "\
Exports part of a trace to a format that other tools can read, with the times that the correction starts from: through \
the recorded clock offsets or estimated clocks, as --presync says, each location by its own clock. With --corrected, \
the times are those that the correction would write; the trace itself stays as it is.

perfetto: the regions within a time window, and arrows for messages and for what ends of collective operations, threads and accelerators wait for, as Chrome trace events (JSON), for ui.perfetto.dev, chrome://tracing and Speedscope. Keep the window short: browsers become slow beyond a million events.
violations-csv: one line for each message received too early and each collective operation that ends too early, for a spreadsheet or a script.";

pub(super) const AFTER: &str = "\
Examples:
  clc-replay export traces/run1-clc --window 1.2s:1.3s -o window.json
  clc-replay export traces/run1 --corrected --window 1.2s:1.3s -o window.json
      The same, without a corrected trace.
  clc-replay export traces/run1 --format violations-csv -o violations.csv
  clc-replay export traces/run1 --format violations-csv -o - | sort -t, -k11 -n

Exit status:
  0  the file is complete
  2  an error; nothing was written

The columns of the CSV: docs/formats.md";

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Chrome trace events
    Perfetto,
    /// Violations as comma-separated values
    ViolationsCsv,
}

impl ExportFormat {
    /// What the file holds.
    pub(crate) fn content(self) -> Content {
        match self {
            ExportFormat::Perfetto => Content::ChromeTrace,
            ExportFormat::ViolationsCsv => Content::Table(VIOLATIONS_HEAD),
        }
    }
}

/// Options of `clc-replay export`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ExportOptions {
    /// The trace: the directory of an OTF2 archive or its anchor file (traces.otf2), or a native trace (NAME.clct)
    pub trace: PathBuf,

    /// What to write
    #[arg(long, value_name = "FORMAT", default_value = "perfetto", value_enum, help_heading = "Output")]
    pub format: ExportFormat,

    /// Export corrected times: those that `clc-replay TRACE` with the same options would write
    ///
    /// Without it, options of the correction such as --gamma are errors.
    #[arg(long, help_heading = "Output")]
    pub corrected: bool,

    /// Time window relative to the first event, such as 1.2s:1.3s, 500us: or :2ms
    ///
    /// Units: min, s, ms, us, ns, ps. Regions that extend beyond it are cut. Violations are included if their receive lies in it.
    #[arg(long, value_name = "FROM:TO", allow_hyphen_values = true, value_parser = values::window, help_heading = "Output")]
    pub window: Option<TimeWindow>,

    /// File to write ("-": standard output)
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: PathBuf,

    /// Overwrite an existing file of any kind, unless it belongs to a trace; an earlier export of the same format is overwritten in any case
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    /// How the correction is made.
    #[command(flatten)]
    pub correction: CorrectionOptions,

    /// What the job shares with the correction.
    #[command(flatten)]
    pub synchronisation: SynchronisationOptions,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

impl ExportOptions {
    /// Whether the file is standard output.
    pub(crate) fn to_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    /// Both ends of the time window, where given, for a clock with `resolution` ticks per second.
    ///
    /// # Errors
    /// A time is too long for such a clock.
    pub(crate) fn bounds(&self, resolution: u64) -> Result<(Option<Ticks>, Option<Ticks>)> {
        let ticks = |bound: Option<Duration>| bound.map(|bound| bound.to_ticks(resolution)).transpose();
        let (from, to) = self.window.map_or((None, None), |window| (window.from, window.to));
        Ok((ticks(from)?, ticks(to)?))
    }
}
