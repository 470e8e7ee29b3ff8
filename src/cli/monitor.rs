//! The options of `clc-replay agent`, `jobs` and `watch`.

use super::options::LogOptions;
use clap::{ArgGroup, Args};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(super) const AGENT_ABOUT: &str = "\
Watches the processes of a job on this node until they are gone: what they do in MPI, whether they live. `clc-replay record --monitor` starts one on each node by itself; \
this command is for a job script or a prolog that wants them before the first process (srun --ntasks-per-node=1), and for telling something to the agents of a job: a datum (put), a formula over what their nodes have and do (formula), a file with a number in it that is on each node (sensor).";

pub(super) const AGENT_AFTER: &str = "\
Examples:
  srun --ntasks-per-node=1 clc-replay agent run1.monitor &
      One agent on each node of an allocation, for the job that `clc-replay record -o run1 --monitor` starts there.
  clc-replay agent run1 put phase solve
      A datum of yours, which `clc-replay watch run1` shows.
  clc-replay agent run1 formula imbalance 'load1_max / load1_mean'
      All agents compute it from now on; without a text, no longer. Names are quantity and aggregate (docs/monitor.md), data_KEY_max, nodes.
  clc-replay agent run1 sensor power /sys/class/hwmon/hwmon0/power1_input
      Each agent reads the file once a second; its number becomes a datum of the node.";

pub(super) const JOBS_ABOUT: &str = "\
Lists the jobs of this user that are being watched: those started by `clc-replay record --monitor` whose agents run.";

pub(super) const WATCH_ABOUT: &str = "\
Shows a running job that was started by `clc-replay record --monitor`: what every rank does, for how long, and for whom it waits. A process that hangs, is stopped or dead need not \
answer: its last call is in memory that it shares with the agent of its node.";

pub(super) const WATCH_AFTER: &str = "\
Examples:
  clc-replay record --monitor -o run1 -- mpirun -n 4 ./app
      Start a job that is watched.
  clc-replay watch run1 --why
      It hangs: who is missing in what, in one sentence; then a line for each rank.
  clc-replay watch run1 --why --stacks
      Also in which functions those are that the sentence names.
  clc-replay watch run1
      Live, until q is pressed. With its output in a pipe or a file: the same table as --why, once.
  clc-replay watch run1 --why --json - | jq .sentence
      For programs.
  clc-replay watch run1 --html run1.html
      A page for a browser: also what was seen since the job began.
  clc-replay watch run1 --metrics 9464
      For Prometheus: http://127.0.0.1:9464/metrics.

Exit status: 0 the job moves or has finished, 1 nothing has moved for a second or longer, 3 a process has ended without MPI_Finalize, a node is silent, or nothing is known, 2 an error. \
docs/monitor.md says more.";

/// What is asked of the monitor.
#[derive(Debug, Clone, PartialEq)]
pub enum MonitorJob {
    /// `clc-replay agent JOB`.
    Agent(AgentOptions),
    /// `clc-replay jobs`.
    Jobs(JobsOptions),
    /// `clc-replay watch JOB`.
    Watch(WatchOptions),
}

impl MonitorJob {
    /// What to log, and whether to be quiet.
    pub fn log_options(&self) -> &LogOptions {
        match self {
            MonitorJob::Agent(options) => &options.log,
            MonitorJob::Jobs(options) => &options.log,
            MonitorJob::Watch(options) => &options.log,
        }
    }
}

/// Options of `clc-replay agent`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct AgentOptions {
    /// The job: its directory (run1.monitor), its recording (run1) or its name in `clc-replay jobs`
    #[arg(value_name = "JOB")]
    pub job: PathBuf,

    /// put KEY VALUE, formula NAME FORMULA or sensor NAME FILE: tell the agents of a running job, instead of being one; without its last word, a formula or sensor is taken back
    #[arg(value_name = "put|formula|sensor NAME VALUE", num_args = 0..=3, allow_hyphen_values = true)]
    pub words: Vec<String>,

    /// Go on as a process of its own, and return at once
    #[arg(long)]
    pub detach: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// Options of `clc-replay jobs`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct JobsOptions {
    /// Also those that have ended and left what they knew
    #[arg(long)]
    pub all: bool,

    /// Write the list as JSON into a file, or to standard output (-)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Overwrite the file in the place of --json, whatever it is, unless it belongs to a trace; one that clc-replay wrote is overwritten anyway
    #[arg(long, requires = "json")]
    pub force: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// Options of `clc-replay watch`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(group = ArgGroup::new("written").args(["json", "html"]).multiple(true))]
pub struct WatchOptions {
    /// The job: its name in `clc-replay jobs`, its recording (run1) or its directory (run1.monitor)
    #[arg(value_name = "JOB")]
    pub job: PathBuf,

    /// Say once who is missing where, in one sentence, and what each rank does
    #[arg(long)]
    pub why: bool,

    /// With --why: the call stacks of these ranks too, of each of their threads
    ///
    /// The agents of their nodes look at the processes, which need not do anything for it.
    #[arg(long, value_name = "RANK[,RANK..]", value_delimiter = ',', requires = "why", conflicts_with = "stacks")]
    pub stack: Vec<u32>,

    /// With --why: the call stacks of all ranks that are to blame
    #[arg(long, requires = "why")]
    pub stacks: bool,

    /// Serve metrics for Prometheus there (GET /metrics), until the job has ended: PORT, on this node only, or ADDRESS:PORT
    #[arg(long, value_name = "[ADDRESS:]PORT", conflicts_with = "why", value_parser = address)]
    pub metrics: Option<SocketAddr>,

    /// With --why: write it as JSON into a file, or to standard output (-)
    #[arg(long, value_name = "FILE", requires = "why")]
    pub json: Option<PathBuf>,

    /// Write a page for a browser into a file, or to standard output (-): the same, and what the agents have noted since the job began
    ///
    /// Ranks by state, resources and clocks over time; also of a job that has ended, as long as its directory is there.
    #[arg(long, value_name = "FILE", conflicts_with = "metrics")]
    pub html: Option<PathBuf>,

    /// Overwrite the files in the place of --json and --html, whatever they are, unless they belong to a trace; one that clc-replay wrote is overwritten anyway
    #[arg(long, requires = "written")]
    pub force: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let here = text.parse::<u16>().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    here.or_else(|_| text.parse())
        .map_err(|_| "a port, or an address and a port (127.0.0.1:9464, [::1]:9464)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_for_this_node_unless_asked_otherwise() {
        assert!(address("9464").unwrap().ip().is_loopback());
        assert_eq!(address("0.0.0.0:9464").unwrap().to_string(), "0.0.0.0:9464");
        for wrong in ["", "70000", "here", "127.0.0.1", ":9464"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
