//! The options of `clc-replay agent`, `jobs` and `watch`.

use super::options::LogOptions;
use clap::{ArgGroup, Args};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(super) const AGENT_ABOUT: &str = "\
Runs an agent, which monitors the processes of a job on this node until all of them have ended: in which MPI call each is, and whether it is alive. \
`clc-replay record --monitor` starts an agent on each node; this command is for job scripts and prologs that start agents before the first process \
(srun --ntasks-per-node=1). It also changes what the agents of a running job know: a datum (put), a formula over the resources and data of their nodes (formula), \
or a sensor, a file on each node that contains a number (sensor).";

pub(super) const AGENT_AFTER: &str = "\
Examples:
  srun --ntasks-per-node=1 clc-replay agent run1.monitor &
      One agent on each node of an allocation, for the job that `clc-replay record -o run1 --monitor` starts there.
  clc-replay agent run1 put phase solve
      Set a datum, which `clc-replay watch run1` shows.
  clc-replay agent run1 formula imbalance 'load1_max / load1_mean'
      From now on all agents compute it; without an expression, it is removed. Names: a quantity with an aggregate (docs/monitor.md), data_KEY_max, nodes.
  clc-replay agent run1 sensor power /sys/class/hwmon/hwmon0/power1_input
      Each agent reads the file once a second; the number in it becomes a datum of the node.";

pub(super) const JOBS_ABOUT: &str = "\
Lists your jobs that are being monitored: those started by `clc-replay record --monitor` whose agents are running.";

pub(super) const WATCH_ABOUT: &str = "\
Shows a running job that was started by `clc-replay record --monitor`: what every rank does, for how long, and for which rank it waits. Processes that hang, are stopped or are dead need not \
respond: the last call of a process is in memory that it shares with the agent of its node.";

pub(super) const WATCH_AFTER: &str = "\
Examples:
  clc-replay record --monitor -o run1 -- mpirun -n 4 ./app
      Start a job with monitoring.
  clc-replay watch run1 --why
      If it hangs: which rank is missing where, in one sentence; then a line for each rank.
  clc-replay watch run1 --why --stacks
      Also the call stacks of the ranks to blame.
  clc-replay watch run1
      Live view; q quits. If the output is a pipe or a file: the table of --why, once.
  clc-replay watch run1 --why --json - | jq .sentence
      For scripts.
  clc-replay watch run1 --html run1.html
      A page for a browser, including what was logged since the job began.
  clc-replay watch run1 --metrics 9464
      Metrics for Prometheus: http://127.0.0.1:9464/metrics.

Exit status:
  0  the job makes progress or has finished
  1  no progress for a second or longer
  2  an error
  3  a process has ended without MPI_Finalize, a node is silent, or nothing is known

Details: docs/monitor.md";

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
    pub(crate) fn log_options(&self) -> &LogOptions {
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

    /// Instead of running an agent, pass something to the agents of a running job: put KEY VALUE, formula NAME FORMULA or sensor NAME FILE; without its last word, the formula or sensor is removed
    #[arg(value_name = "put|formula|sensor NAME VALUE", num_args = 0..=3, allow_hyphen_values = true)]
    pub words: Vec<String>,

    /// Run in the background, and return at once
    #[arg(long)]
    pub detach: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

/// Options of `clc-replay jobs`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct JobsOptions {
    /// Also list jobs that have ended and whose directories still exist
    #[arg(long)]
    pub all: bool,

    /// Write the list as JSON to FILE ("-": standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Overwrite an existing --json file of any kind, unless it belongs to a trace; an earlier list is overwritten in any case
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

    /// Print once, in one sentence, which rank is missing where, and what each rank does
    #[arg(long)]
    pub why: bool,

    /// With --why: also print the call stacks of all threads of these ranks
    ///
    /// The agents of their nodes unwind the stacks; the processes need not cooperate.
    #[arg(long, value_name = "RANK[,RANK..]", value_delimiter = ',', requires = "why", conflicts_with = "stacks")]
    pub stack: Vec<u32>,

    /// With --why: also print the call stacks of all ranks to blame
    #[arg(long, requires = "why")]
    pub stacks: bool,

    /// Serve metrics for Prometheus (GET /metrics) until the job has ended, on PORT of this node only, or on ADDRESS:PORT
    #[arg(long, value_name = "[ADDRESS:]PORT", conflicts_with = "why", value_parser = address)]
    pub metrics: Option<SocketAddr>,

    /// With --why: write JSON instead of text to FILE ("-": standard output)
    #[arg(long, value_name = "FILE", requires = "why")]
    pub json: Option<PathBuf>,

    /// Write a page for a browser to FILE ("-": standard output): the same information, and what the agents have logged since the job began
    ///
    /// Ranks by state, resources and clocks over time; also for a job that has ended, as long as its directory exists.
    #[arg(long, value_name = "FILE", conflicts_with = "metrics")]
    pub html: Option<PathBuf>,

    /// Overwrite existing --json and --html files of any kind, unless they belong to a trace; earlier ones of the same kind are overwritten in any case
    #[arg(long, requires = "written")]
    pub force: bool,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let here = text.parse::<u16>().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    here.or_else(|_| text.parse())
        .map_err(|_| "expected a port, or an address and a port (127.0.0.1:9464, [::1]:9464)".to_owned())
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
