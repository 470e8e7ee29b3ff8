//! The options of `clc-replay simulate` and what they share with `perturb`.

use super::convert;
use super::options::LogOptions;
use super::values::{self, LatencyOption};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};
use clc_archive::Format;
use clc_simulate::units::{parse_count, parse_duration};
use clc_simulate::{ClockSpec, LatencyModel, MeasurementPlan, PairClass, PatternKind, Scenario};
use clc_trace::{Error, Result};
use std::path::PathBuf;
use std::str::FromStr;

const APPLICATION: &str = "Application";
const CLOCKS: &str = "Clocks";
const NETWORK: &str = "Network";
const OUTPUT: &str = "Output";

/// Options of `clc-replay simulate`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct SimulateOptions {
    /// Directory to write the trace to; the truth goes to DIR/truth
    #[arg(value_name = "DIR")]
    pub output: PathBuf,

    /// Format to write; by default native if the name of DIR ends in .clct, else OTF2
    #[arg(long, value_name = "FORMAT", help_heading = OUTPUT,
          value_parser = PossibleValuesParser::new(["otf2", "native"]).map(convert::format_of))]
    pub to: Option<Format>,

    /// Number of processes
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value = "16", value_parser = count, help_heading = APPLICATION)]
    pub ranks: u64,

    /// Processes per node, in blocks; locations of a node share a clock
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 4, value_parser = value_parser!(u32).range(1..), help_heading = APPLICATION)]
    pub ranks_per_node: u32,

    /// Locations per process: the first one calls MPI, the others only compute
    ///
    /// Of the pattern hybrid they form teams, of offload they are streams of an accelerator; these have at least 2.
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = value_parser!(u32).range(1..), help_heading = APPLICATION)]
    pub threads: u32,

    /// Give every thread but the first of a process a clock of its own; streams of accelerators always have one
    #[arg(long, help_heading = CLOCKS)]
    pub thread_clocks: bool,

    /// Events per process, on average: 5000, 100k, 2M
    ///
    /// The application ends with the first step that reaches this number.
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value = "10k", value_parser = count, help_heading = APPLICATION)]
    pub events: u64,

    /// What the application does
    ///
    /// solver exchanges with two neighbours and has several kinds of collective operations beside it; collectives has nothing else; mix uses every class of MPI operation, on the
    /// world and on sub-communicators; subsets has many small communicators; coupled has two groups
    /// and an inter-communicator; ssend-pipeline passes work on with synchronous sends; requests has short messages one way and long answers the other; rma-fence, rma-pscw and rma-lock access windows between
    /// fences, in post/start/complete/wait epochs, and under exclusive locks; hybrid computes in teams of OpenMP threads and offload on streams of
    /// accelerators; the others are communication skeletons of common kinds of programs.
    #[arg(long, default_value = "halo2d", help_heading = APPLICATION,
          value_parser = PossibleValuesParser::new(PatternKind::ALL.iter().map(|p| p.name())).try_map(|n| PatternKind::from_str(&n)))]
    pub pattern: PatternKind,

    /// Number of sub-communicators of the pattern `subsets`; other patterns ignore it
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 64, value_parser = value_parser!(u32).range(1..), help_heading = APPLICATION)]
    pub communicators: u32,

    /// Mean computation time between communication
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "50us", value_parser = duration, help_heading = APPLICATION)]
    pub compute: i64,

    /// A period without communication, once, in the middle of the run
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "0s", value_parser = duration, help_heading = APPLICATION)]
    pub idle: i64,

    /// Calls of a user function within each computation, which add events without communication
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 0, help_heading = APPLICATION)]
    pub calls: u32,

    /// Load imbalance, 0 to 1: the mean computation time of a process is longer or shorter by up to this fraction
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value_t = 0.2, help_heading = APPLICATION)]
    pub imbalance: f64,

    /// Size of a typical message in bytes
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, default_value = "4096", value_parser = count, help_heading = APPLICATION)]
    pub message_bytes: u64,

    /// Bandwidth of every connection in bytes per second
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, default_value = "10G", value_parser = count, help_heading = NETWORK)]
    pub bandwidth: u64,

    /// Size in bytes of the largest message that is sent eagerly, without waiting for its receive
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, default_value = "16384", value_parser = count, help_heading = NETWORK)]
    pub eager_limit: u64,

    /// Ticks per second of the timer, up to 10^12
    #[arg(long, value_name = "HZ", allow_hyphen_values = true, default_value = "1G", value_parser = count, help_heading = CLOCKS)]
    pub resolution: u64,

    /// Clocks and how they are measured.
    #[command(flatten)]
    pub clocks: ClockOptions,

    /// The network.
    #[command(flatten)]
    pub network: NetworkOptions,

    /// Where and how it is written.
    #[command(flatten)]
    pub generated: GeneratedOptions,
}

/// Options of `clc-replay perturb`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct PerturbOptions {
    /// The trace, whose times are taken as the truth: recorded on one node, or already corrected
    pub trace: PathBuf,

    /// Directory to write the disturbed trace to; the truth goes to DIR/truth
    #[arg(value_name = "DIR")]
    pub output: PathBuf,

    /// Number of clocks; the processes are distributed over them in blocks
    ///
    /// By default every node of the machine has its own clock, or every process if the trace has only one node.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value_parser!(u32).range(1..), help_heading = CLOCKS)]
    pub nodes: Option<u32>,

    /// Give every process its own clock
    #[arg(long, conflicts_with = "nodes", help_heading = CLOCKS)]
    pub per_process: bool,

    /// Continue even if the trace itself violates the clock condition
    ///
    /// Its times cannot all be true then, nor can an evaluation against them.
    #[arg(long, help_heading = CLOCKS)]
    pub anyway: bool,

    /// Clocks and how they are measured.
    #[command(flatten)]
    pub clocks: ClockOptions,

    /// The network of the measurements.
    #[command(flatten)]
    pub network: NetworkOptions,

    /// Where and how it is written.
    #[command(flatten)]
    pub generated: GeneratedOptions,
}

/// Clocks, and the measurements of their offsets: what `simulate` and `perturb` share.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ClockOptions {
    /// How wrong the clocks are: a preset, or a specification (docs/clocks.md)
    ///
    /// Presets: perfect, offset, drift, linear, sine, walk, ntp, jump, stuck, coarse, mixed, decentralised3,
    /// decentralised3-failing, decentralised12, decentralised12-failing. A specification combines parts, such as
    /// offset=5ms,drift=20ppm,sine=20us/0.5s, and applies to all nodes except node 0, the reference; 1+3-5:jump=1ms@50% selects nodes, all:
    /// selects every node, and ";" separates groups of nodes. all:sine also distorts the clock of node 0, as in reality; offsets are then measured
    /// against it.
    #[arg(long, value_name = "MODEL", default_value = "linear", value_parser = specification, help_heading = CLOCKS)]
    pub clock: String,

    /// Seed of all random numbers: the same seed gives the same bytes
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, help_heading = CLOCKS)]
    pub seed: u64,

    /// Number of clock offset measurements: 0 for none, 1 at the start, 2 at start and end, more at equal intervals
    ///
    /// Simulated the way tracers measure, by ping-pong with node 0, and recorded as OTF2 ClockOffset.
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 2, help_heading = CLOCKS)]
    pub measurements: u32,

    /// Ping-pong exchanges per measurement; the one with the shortest round trip counts
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 10, help_heading = CLOCKS)]
    pub exchanges: u32,
}

/// How long messages travel: minimum plus an exponential tail.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct NetworkOptions {
    /// Minimum delay of a message
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "same-node=300ns,other-node=2us", value_parser = values::latency, help_heading = NETWORK)]
    pub latency: LatencyOption,

    /// Mean of the exponentially distributed delay on top of the minimum
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "same-node=100ns,other-node=1us", value_parser = values::latency, help_heading = NETWORK)]
    pub tail: LatencyOption,

    /// How much longer the minimum delay is in one direction of each pair of nodes: 0.5 means 50 %
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value_t = 0.0, help_heading = NETWORK)]
    pub asymmetry: f64,
}

/// What every command that makes a trace from another or from nothing takes.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct GeneratedOptions {
    /// Replace DIR if it exists and clc-replay wrote everything in it, and an existing --report file
    #[arg(long, help_heading = OUTPUT)]
    pub force: bool,

    /// Write no truth files
    #[arg(long, help_heading = OUTPUT)]
    pub no_truth: bool,

    /// Also write the printed information as JSON to FILE ("-": standard output, instead of the text)
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub report: Option<PathBuf>,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

impl SimulateOptions {
    /// The scenario that is asked for, checked.
    ///
    /// # Errors
    /// A parameter is out of bounds, with what is allowed.
    pub fn scenario(&self) -> Result<Scenario> {
        let ranks = u32::try_from(self.ranks)
            .map_err(|_| Error::new(format!("{} ranks", self.ranks)).hint("allowed: 1 to 1048576"))?;
        let scenario = Scenario {
            ranks,
            ranks_per_node: self.ranks_per_node,
            threads: self.threads,
            thread_clocks: self.thread_clocks,
            events: self.events,
            pattern: self.pattern,
            communicators: self.communicators,
            latency: LatencyModel { eager_limit: self.eager_limit, ..self.network.model(self.bandwidth) },
            compute: self.compute,
            idle: self.idle,
            calls: self.calls,
            imbalance: self.imbalance,
            message_bytes: self.message_bytes,
            resolution: self.resolution,
            clock: self.clocks.clock.parse()?,
            seed: self.clocks.seed,
            measurements: self.clocks.plan(),
        };
        scenario.validate()?;
        Ok(scenario)
    }

    /// The format to write: `--to`, or what the target's name asks for.
    ///
    /// # Errors
    /// The target is named like an anchor file.
    pub(crate) fn format(&self) -> Result<Format> {
        convert::target_format(self.to, &self.output)
    }

    /// All parameters by name, as they would be given again.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut list = vec![
            ("ranks", self.ranks.to_string()),
            ("ranks-per-node", self.ranks_per_node.to_string()),
            ("threads", self.threads.to_string()),
            ("thread-clocks", self.thread_clocks.to_string()),
            ("events", self.events.to_string()),
            ("pattern", self.pattern.name().to_owned()),
            ("communicators", self.communicators.to_string()),
            ("compute", picoseconds(self.compute)),
            ("idle", picoseconds(self.idle)),
            ("calls", self.calls.to_string()),
            ("imbalance", self.imbalance.to_string()),
            ("message-bytes", self.message_bytes.to_string()),
            ("bandwidth", self.bandwidth.to_string()),
            ("eager-limit", self.eager_limit.to_string()),
            ("resolution", self.resolution.to_string()),
        ];
        list.extend(self.clocks.parameters());
        list.extend(self.network.parameters());
        list
    }
}

impl ClockOptions {
    /// How offsets are measured.
    pub(crate) fn plan(&self) -> MeasurementPlan {
        MeasurementPlan { count: self.measurements, exchanges: self.exchanges }
    }

    /// The parameters by name.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("clock", self.clock.clone()),
            ("seed", self.seed.to_string()),
            ("measurements", self.measurements.to_string()),
            ("exchanges", self.exchanges.to_string()),
        ]
    }
}

impl NetworkOptions {
    /// The latency model, with connections of `bandwidth` bytes per second.
    pub fn model(&self, bandwidth: u64) -> LatencyModel {
        let picoseconds = |duration: super::Duration| duration.picoseconds() as i64;
        let class = |minimum, tail| PairClass { minimum: picoseconds(minimum), tail: picoseconds(tail), bandwidth };
        LatencyModel {
            same_node: class(self.latency.same_node, self.tail.same_node),
            other_node: class(self.latency.other_node, self.tail.other_node),
            asymmetry: self.asymmetry,
            ..LatencyModel::default()
        }
    }

    /// The parameters by name.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("latency", self.latency.to_string()),
            ("tail", self.tail.to_string()),
            ("asymmetry", self.asymmetry.to_string()),
        ]
    }
}

fn picoseconds(time: i64) -> String {
    format!("{time}ps")
}

fn clause(error: Error) -> String {
    match error.hint {
        Some(hint) => format!("{} ({hint})", error.message),
        None => error.message,
    }
}

fn count(text: &str) -> std::result::Result<u64, String> {
    parse_count(text).map_err(clause)
}

fn duration(text: &str) -> std::result::Result<i64, String> {
    parse_duration(text).map_err(clause)
}

/// Checks a clock specification; it is kept as the user wrote it.
fn specification(text: &str) -> std::result::Result<String, String> {
    ClockSpec::from_str(text).map(|_| text.to_owned()).map_err(clause)
}
