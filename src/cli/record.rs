//! The options of `clc-replay record` and `clc-replay recover`.

use super::monitored::MonitoredOptions;
use super::options::LogOptions;
use super::recorder::RecorderOptions;
use clap::Args;
use clc_simulate::ClockSpec;
use clc_trace::{Duration, Error};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

pub(super) const ABOUT: &str = "\
Runs an MPI application and records what it does: an OTF2 archive with every call of MPI, its messages and collective operations, and \
measured clock offsets, and what the threads of OpenMP do if its runtime tells it (that of LLVM). The application need not be compiled or linked anew; it has to be linked dynamically to Open MPI, MPICH or a relative of MPICH. \
Its output and its exit status are its own.";

pub(super) const AFTER: &str = "\
Examples:
  clc-replay record -o run1 -- mpirun -n 4 ./app
      Start the launcher of the MPI library with the recorder; write run1.
  mpirun -n 64 clc-replay record -o run1 -- ./app
      The same inside of a job: the launcher starts clc-replay once for each process.
  clc-replay record -o run1 --clock 'drift=20ppm,sine=20us/0.5s' -- mpirun -n 4 ./app
      Wrong clocks on purpose, and the true times beside them: what does a correction make of it?
  clc-replay run1 && clc-replay evaluate run1-clc --truth run1
      That.

While the application runs, its events are in run1.raw, and stay there if it is killed together with clc-replay: `clc-replay recover run1` makes \
an archive of them. docs/recording.md says more.";

pub(super) const RECOVER_ABOUT: &str = "\
Makes an archive of a recording that was cut off: of what the processes had recorded when they were killed. Says what is missing.";

pub(super) const RECOVER_AFTER: &str = "\
Examples:
  clc-replay recover run1
      Make run1 of run1.raw, which `clc-replay record -o run1` has left.";

/// Options of `clc-replay record`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct RecordOptions {
    /// Directory to write the trace to; raw files go to DIR.raw meanwhile
    ///
    /// A name that ends in .clct selects the native format, which takes less than half of the space, any other name OTF2.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    /// The application: a launcher of MPI processes, or the program if this is started by one
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,

    /// Make the clocks wrong, in a known way, and keep the true times in DIR/truth
    ///
    /// A preset or a specification as for `simulate` (docs/clocks.md): walk, or drift=20ppm,sine=20us/0.5s. The times are changed after
    /// the run; the application notices nothing. Only where all processes run on one machine, whose counter tells the true times.
    #[arg(long, value_name = "MODEL", value_parser = specification, help_heading = "Clocks")]
    pub clock: Option<String>,

    /// With --clock: one wrong clock for each node instead of one for each process
    #[arg(long, requires = "clock", help_heading = "Clocks")]
    pub clock_per_node: bool,

    /// With --clock: one wrong clock for each thread
    ///
    /// Clock offsets are measured between processes, so those of the threads of a process are the same: only their synchronisation tells that they have other clocks.
    #[arg(long, requires = "clock", conflicts_with = "clock_per_node", help_heading = "Clocks")]
    pub clock_per_thread: bool,

    /// What is random about wrong clocks follows from it
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Clocks")]
    pub seed: u64,

    /// When the clocks of the nodes are measured: start-end, ring, or every=TIME
    ///
    /// In MPI_Init and MPI_Finalize along a tree of the nodes (start-end), or around a ring, which shows how far the measurements contradict
    /// each other; every=1s: along the tree, and once a second in between, by a thread of one process of each node.
    #[arg(long, value_name = "WHEN", default_value = "start-end", value_parser = schedule, help_heading = "Clocks")]
    pub offsets: String,

    /// What is recorded, and how.
    #[command(flatten)]
    pub recorder: RecorderOptions,

    /// Whether it is watched.
    #[command(flatten)]
    pub monitored: MonitoredOptions,

    /// How it is written.
    #[command(flatten)]
    pub written: RecordedOptions,
}

/// Options of `clc-replay recover`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct RecoverOptions {
    /// The directory that was given to `clc-replay record` as --output
    #[arg(value_name = "DIR")]
    pub output: PathBuf,

    /// How it is written.
    #[command(flatten)]
    pub written: RecordedOptions,
}

/// What `record` and `recover` share.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct RecordedOptions {
    /// Replace DIR if it exists and clc-replay wrote everything in it
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    /// Leave the raw files in DIR.raw when the trace is written
    #[arg(long, help_heading = "Output")]
    pub keep_raw: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// Checks a clock specification; it is kept as the user wrote it.
fn specification(text: &str) -> std::result::Result<String, String> {
    let clause = |error: Error| match error.hint {
        Some(hint) => format!("{} ({hint})", error.message),
        None => error.message,
    };
    ClockSpec::from_str(text).map(|_| text.to_owned()).map_err(clause)
}

/// Checks when clocks are measured; returns it as the recorder reads it.
fn schedule(text: &str) -> std::result::Result<String, String> {
    let Some(time) = text.strip_prefix("every=") else {
        let known = matches!(text, "start-end" | "ring");
        return if known { Ok(text.to_owned()) } else { Err("start-end, ring or every=TIME".to_owned()) };
    };
    let picoseconds = Duration::parse(time)?.picoseconds();
    if picoseconds < SHORTEST {
        return Err("at least 10 ms".to_owned());
    }
    // No equals sign: Open MPI would not hand it on to other nodes.
    Ok(format!("{}", picoseconds as f64 / 1e12))
}

/// Picoseconds between two measurements of a clock, at least: one takes some milliseconds.
const SHORTEST: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_checked() {
        assert_eq!(schedule("ring").as_deref(), Ok("ring"));
        assert_eq!(schedule("every=500ms").as_deref(), Ok("0.5"));
        assert_eq!(schedule("every=10min").as_deref(), Ok("600"));
        for wrong in ["", "end", "every", "every=", "every=0s", "every=1ms", "every=-1s", "every=soon"] {
            assert!(schedule(wrong).is_err(), "{wrong}");
        }
    }
}
