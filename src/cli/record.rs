//! The options of `clc-replay record` and `clc-replay recover`.

use super::monitored::MonitoredOptions;
use super::options::LogOptions;
use super::recorder::RecorderOptions;
use crate::recording::PublishOptions;
use clap::Args;
use clc_simulate::ClockSpec;
use clc_trace::{Duration, Error};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

pub(super) const ABOUT: &str = "\
Runs an MPI application and records it as an OTF2 archive: every MPI call, messages and collective operations, measured clock offsets, and the activity of OpenMP threads \
if the OpenMP runtime reports it (LLVM's does). The application need not be recompiled or relinked; it has to be dynamically linked with Open MPI, MPICH or an MPI library \
derived from MPICH. Its output and exit status are passed through unchanged.";

pub(super) const AFTER: &str = "\
Examples:
  clc-replay record -o run1 -- mpirun -n 4 ./app
      Run the launcher with the recorder, and write run1.
  mpirun -n 64 clc-replay record -o run1 -- ./app
      The same within a job: the launcher starts clc-replay once for each process.
  clc-replay record -o run1 --clock 'drift=20ppm,sine=20us/0.5s' -- mpirun -n 4 ./app
      Deliberately wrong clocks; the true times are stored with the trace.
  clc-replay run1 && clc-replay evaluate run1-clc --truth run1
      How close a correction gets to the true times.

While the application runs, its events are in run1.raw. They remain there if it is killed together with clc-replay; `clc-replay recover run1` \
then turns them into a trace.

Details: docs/recording.md";

pub(super) const RECOVER_ABOUT: &str = "\
Turns an unfinished recording into a trace: everything that the processes had recorded before they were killed. Reports what is missing.";

pub(super) const RECOVER_AFTER: &str = "\
Examples:
  clc-replay recover run1
      Create run1 from run1.raw, which `clc-replay record -o run1` left behind.";

/// Options of `clc-replay record`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct RecordOptions {
    /// Directory to write the trace to; until it is complete, raw files are in DIR.raw
    ///
    /// A name that ends in .clct selects the native format, which takes less than half the space; any other name selects OTF2.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    /// The application: an MPI launcher with its arguments, or the program itself if a launcher starts clc-replay
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,

    /// Add known clock errors, and keep the true times in DIR/truth
    ///
    /// A preset or a specification as for `simulate` (docs/clocks.md): walk, or drift=20ppm,sine=20us/0.5s. The times are changed after
    /// the run, so the application is not affected. Only possible if all processes run on one machine, whose counter shows the true times.
    #[arg(long, value_name = "MODEL", value_parser = specification, help_heading = "Clocks")]
    pub clock: Option<String>,

    /// With --clock: one wrong clock for each node instead of one for each process
    #[arg(long, requires = "clock", help_heading = "Clocks")]
    pub clock_per_node: bool,

    /// With --clock: one wrong clock for each thread
    ///
    /// Clock offsets are measured between processes, so all threads of a process get the same ones: only the synchronisation of the threads shows that their clocks differ.
    #[arg(long, requires = "clock", conflicts_with = "clock_per_node", help_heading = "Clocks")]
    pub clock_per_thread: bool,

    /// Seed of the random numbers of --clock: the same seed gives the same clock errors
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Clocks")]
    pub seed: u64,

    /// When the clocks of the nodes are measured: start-end, ring or every=TIME
    ///
    /// start-end: in MPI_Init and MPI_Finalize, along a tree of the nodes. ring: at the same times, around a ring of the nodes, which shows how far
    /// the measurements contradict each other. every=1s: as start-end, and once a second in between, by a thread of one process of each node.
    #[arg(long, value_name = "WHEN", default_value = "start-end", value_parser = schedule, help_heading = "Clocks")]
    pub offsets: String,

    /// What is recorded, and how.
    #[command(flatten)]
    pub recorder: RecorderOptions,

    /// Whether it is monitored.
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

    /// Keep the raw files in DIR.raw after the trace has been written
    #[arg(long, help_heading = "Output")]
    pub keep_raw: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

impl RecordedOptions {
    /// The same for who writes the archive.
    pub(crate) fn to_publish(&self) -> PublishOptions {
        PublishOptions { force: self.force, keep_raw: self.keep_raw }
    }
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
        return if known { Ok(text.to_owned()) } else { Err("expected start-end, ring or every=TIME".to_owned()) };
    };
    let picoseconds = Duration::parse(time)?.picoseconds();
    if picoseconds < SHORTEST {
        return Err("the period must be at least 10 ms".to_owned());
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

    #[test]
    fn options_of_the_application_are_its_own_and_unknown_ones_before_it_are_none() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            record: RecordOptions,
        }
        let parsed =
            |words: &str| <Line as clap::Parser>::try_parse_from(words.split(' ')).map(|line| line.record.command);
        let found = parsed("record -o out mpirun -n 4 ./app --seed 3 -- -x").expect("an application");
        assert_eq!(found, ["mpirun", "-n", "4", "./app", "--seed", "3", "--", "-x"]);
        assert_eq!(parsed("record -o out -- ./app -o 1").expect("an application"), ["./app", "-o", "1"]);
        assert!(parsed("record -o out --clock-seed 3 -- ./app").is_err());
    }
}
