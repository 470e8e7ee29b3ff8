//! Waiting times, execution metrics and critical path: what `clc-replay analyze` finds. Definitions: `docs/analysis.md`.
//!
//! Two stages stand side by side: *before* with the times that a reader of the trace sees, *after* with corrected times. Everything is
//! bounded, however large the trace is: lists hold the largest entries and say how many were left out; sums are over all.

use crate::report::PairUnit;
use clc_execution::threads::ThreadWaitKind;
use clc_execution::waiting::{DetailKind, WaitKind};
use serde::{Deserialize, Serialize};

/// Everything that the analysis found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Times of computation and communication, degree of parallelism.
    pub execution: Stages<Execution>,
    /// Waiting times, before against after.
    pub waits: WaitStates,
    /// The path through the execution graph that decides how long it takes.
    pub critical_path: Stages<CriticalPath>,
    /// Messages and bytes from whom to whom, and when.
    pub traffic: Traffic,
}

impl Analysis {
    /// Entries of a list, if no larger number is asked for. Chosen by hand: more make reports larger; the entries behind them add up to little.
    pub const ENTRIES: usize = 256;
    /// Most windows of time. Chosen by hand: memory and reports grow with them, per stage and rank.
    pub const WINDOWS: usize = 10_000;
    /// Most regions of a call path that are named: the outermost ones.
    pub const DEPTH: usize = 64;
}

/// The same of both stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages<T> {
    /// With the times that a reader of the trace sees.
    pub before: T,
    /// With corrected times; null with `--as-recorded`.
    pub after: Option<T>,
}

impl<T> Stages<T> {
    /// The stage that is nearest to the truth: after the correction, if there is one.
    pub fn last(&self) -> &T {
        self.after.as_ref().unwrap_or(&self.before)
    }
}

/// Metrics of the execution graph (Jiang 1990). A process computes while it is outside of MPI, between its first and its last event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// From the first to the last event of any process.
    pub seconds: f64,
    /// Number of processes, n.
    pub processes: u64,
    /// Time outside of MPI, summed over the processes.
    pub computation_seconds: f64,
    /// Time in MPI, summed over the processes.
    pub communication_seconds: f64,
    /// Time before the first and after the last event of each process, summed over the processes.
    pub idle_seconds: f64,
    /// Waiting time, all kinds, summed over the processes.
    pub waiting_seconds: f64,
    /// Computation over execution time: how many processes compute on average.
    pub speedup: f64,
    /// Speedup over number of processes: the mean of the degree of parallelism.
    pub efficiency: f64,
    /// Mean over longest computation of a process: 1 if all compute equally long; null without computation.
    pub load_balance: Option<f64>,
    /// Longest computation of a process over execution time: below 1 for what communication and idle processes cost even with perfect
    /// balance. Times load balance it is the efficiency.
    pub communication_efficiency: f64,
    /// Computation over communication time; null without communication.
    pub computation_to_communication: Option<f64>,
    /// Granularity: computation over number of matched messages, in seconds per message; null without messages.
    #[serde(default)]
    pub granularity_seconds: Option<f64>,
    /// Length of a window of time, in seconds; windows begin at the first event.
    pub window_seconds: f64,
    /// Degree of parallelism P by window: computing processes over n, the average in the window, 0 to 1.
    pub parallelism: Vec<f64>,
    /// Times of the processes in order of their numbers; if there are too many, of those with the longest communication.
    pub by_process: Vec<ProcessTimes>,
    /// Number of processes that are not in the list.
    pub further_processes: u64,
}

/// Where the time of one process went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessTimes {
    /// The process.
    pub process: u32,
    /// Time outside of MPI.
    pub computation_seconds: f64,
    /// Time in MPI.
    pub communication_seconds: f64,
    /// Time before its first and after its last event.
    pub idle_seconds: f64,
    /// Waiting time, all kinds; a part of the communication.
    pub waiting_seconds: f64,
    /// Computation over communication time; null without communication.
    pub computation_to_communication: Option<f64>,
}

/// Waiting times, before against after.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitStates {
    /// Region instances that were looked at: instances of MPI regions that communicate.
    pub operations: u64,
    /// Communication events outside of any region of MPI: nothing is known of their waiting.
    pub without_region: u64,
    /// All kinds together.
    pub total: Waiting,
    /// Each kind, also those that do not occur, in the order of [`WaitKind::ALL`].
    pub kinds: Vec<KindWaiting>,
    /// Parts of them, and what operations take beside them; nothing of it is added to the kinds. In the order of [`DetailKind::ALL`].
    #[serde(default)]
    pub details: Vec<DetailWaiting>,
    /// By kind and call path, those with the longest waiting time (of either stage) first.
    pub by_call_path: Vec<CallPathWaiting>,
    /// Number of entries that are not in that list.
    pub further_call_paths: u64,
    /// By kind and waiting process.
    pub by_process: Vec<ProcessWaiting>,
    /// Number of entries that are not in that list.
    pub further_processes: u64,
    /// By kind, waiting process and the process that it waited for.
    pub by_pair: Vec<PairWaiting>,
    /// Number of entries that are not in that list.
    pub further_pairs: u64,
    /// What made others wait: delay costs.
    #[serde(default)]
    pub delays: DelayCosts,
    /// Waiting of the threads of processes; none of it is added to the kinds above.
    #[serde(default)]
    pub threads: ThreadWaits,
}

/// Delay costs: how long others waited because a region took the process that they waited for longer than it took them. All short-term parts together are
/// all waiting of processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayCosts {
    /// By region of the processes that were waited for, largest costs (of either stage) first.
    pub by_region: Vec<RegionDelay>,
    /// Number of entries that are not in that list.
    pub further_regions: u64,
    /// By process that was waited for, largest costs first.
    pub by_process: Vec<ProcessDelay>,
    /// Number of entries that are not in that list.
    pub further_processes: u64,
    /// Caused by waiting of those that were waited for.
    pub propagated: DelayCost,
    /// What of that is long-term costs of a region: its causes are known.
    #[serde(default)]
    pub long_term: DelayCost,
    /// Not explained: those that were waited for did not take so much longer in any region.
    pub unexplained: DelayCost,
    /// Not examined: kinds of waiting, or threads, that are not looked at.
    pub not_examined: DelayCost,
}

/// Costs before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayCost {
    /// Before, in seconds.
    pub before_seconds: f64,
    /// After; null with `--as-recorded`.
    pub after_seconds: Option<f64>,
}

/// Delay costs of one region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionDelay {
    /// Its name; empty outside of any region.
    pub region: String,
    /// Its short-term costs: others waited for the process itself.
    pub cost: DelayCost,
    /// Its long-term costs: others waited for those, and so on.
    #[serde(default)]
    pub long_term: DelayCost,
}

/// Delay costs of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessDelay {
    /// The process.
    pub process: u32,
    /// Its short-term costs: others waited for it.
    pub cost: DelayCost,
    /// Its long-term costs: others waited for those, and so on.
    #[serde(default)]
    pub long_term: DelayCost,
}

/// Waiting of the threads of processes, summed over threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadWaits {
    /// Each kind, also those that do not occur, in the order of [`ThreadWaitKind::ALL`].
    pub kinds: Vec<ThreadKindWaiting>,
    /// By kind and call path, those with the longest waiting time (of either stage) first.
    pub by_call_path: Vec<ThreadCallPathWaiting>,
    /// Number of entries that are not in that list.
    pub further_call_paths: u64,
    /// By kind and process, those with the longest waiting time first.
    pub by_process: Vec<ThreadProcessWaiting>,
    /// Number of entries that are not in that list.
    pub further_processes: u64,
}

/// Waiting time of threads of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadKindWaiting {
    /// The kind.
    pub kind: ThreadWaitKind,
    /// Its times.
    pub waiting: Waiting,
}

/// Waiting time of threads of one kind at one call path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadCallPathWaiting {
    /// The kind.
    pub kind: ThreadWaitKind,
    /// Names of the regions, outermost first: of the thread that waited, or of the main thread while others had nothing to do.
    pub call_path: Vec<String>,
    /// Its times.
    pub waiting: Waiting,
}

/// Waiting time of one kind of the threads of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadProcessWaiting {
    /// The kind.
    pub kind: ThreadWaitKind,
    /// The process.
    pub process: u32,
    /// Its times.
    pub waiting: Waiting,
}

/// Waiting time before and after. `before - artefact + hidden = after`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// Waiting time before, in seconds.
    pub before_seconds: f64,
    /// Waiting time after; null with `--as-recorded`, like all that follow but `before_count`.
    pub after_seconds: Option<f64>,
    /// Part of the time before that was an artefact of the clocks: by how much region instances waited shorter after than before.
    pub artefact_seconds: Option<f64>,
    /// What the clocks had hidden: by how much region instances waited longer after than before.
    pub hidden_seconds: Option<f64>,
    /// `artefact_seconds` over `before_seconds`; null if there is no waiting time before.
    pub artefact_share: Option<f64>,
    /// Region instances that waited, before.
    pub before_count: u64,
    /// Region instances that waited, after.
    pub after_count: Option<u64>,
}

impl Waiting {
    /// Whether there is any of it, in any stage.
    pub fn occurs(&self) -> bool {
        self.before_count > 0 || self.after_count.unwrap_or(0) > 0
    }
}

/// Waiting time of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindWaiting {
    /// The kind.
    pub kind: WaitKind,
    /// Its times.
    pub waiting: Waiting,
}

/// A part of a kind of waiting, or what is told beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetailWaiting {
    /// What it is.
    pub kind: DetailKind,
    /// The kind of waiting that it is a part of; null if it is no waiting.
    pub part_of: Option<WaitKind>,
    /// Its times.
    pub waiting: Waiting,
}

/// Waiting time of one kind at one call path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallPathWaiting {
    /// The kind.
    pub kind: WaitKind,
    /// Names of the regions, outermost first; the last one is the operation.
    pub call_path: Vec<String>,
    /// Its times.
    pub waiting: Waiting,
}

/// Waiting time of one kind at one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessWaiting {
    /// The kind.
    pub kind: WaitKind,
    /// The process that waited.
    pub process: u32,
    /// Its times.
    pub waiting: Waiting,
}

/// Waiting time of one process for another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairWaiting {
    /// The kind.
    pub kind: WaitKind,
    /// The process that waited.
    pub process: u32,
    /// The process that it waited for.
    pub cause: u32,
    /// Waiting time before.
    pub before_seconds: f64,
    /// Waiting time after; null with `--as-recorded`.
    pub after_seconds: Option<f64>,
}

/// The longest path through the execution graph without waiting. Its length is the execution time; what it consists of decides where to
/// look for improvements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CriticalPath {
    /// Its length in seconds.
    pub seconds: f64,
    /// Its weight: each part of duration dt counts dt + (1 - P)(n - 1) dt, P being the degree of parallelism then.
    pub weight_seconds: f64,
    /// Part of the length outside of MPI.
    pub computation_seconds: f64,
    /// Part of the length in MPI.
    pub communication_seconds: f64,
    /// Part of the length before the first or after the last event of the process that the path is at.
    pub idle_seconds: f64,
    /// How often the path goes from one process to another.
    pub changes: u64,
    /// How often the path is broken: the cause of a wait comes later than its effect, which violates the clock condition.
    pub broken: u64,
    /// By call path, largest share of the weight first.
    pub by_call_path: Vec<CallPathShare>,
    /// Number of call paths that are not in the list.
    pub further_call_paths: u64,
    /// By region (the innermost one), largest share of the weight first.
    pub by_region: Vec<RegionShare>,
    /// Number of regions that are not in the list.
    pub further_regions: u64,
    /// By process, largest share of the weight first.
    pub by_process: Vec<ProcessShare>,
    /// Number of processes on the path that are not in the list.
    pub further_processes: u64,
    /// Length of a window of time, in seconds; windows begin at the first event.
    pub window_seconds: f64,
    /// The process that most of the path in each window belongs to; null if the path has no length there.
    pub windows: Vec<Option<u32>>,
    /// The longest stretches on one process, in order of time.
    pub stretches: Vec<PathStretch>,
    /// Number of stretches that are not in the list.
    pub further_stretches: u64,
}

/// A part of the critical path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Its length in seconds.
    pub seconds: f64,
    /// Its share of the length of the path, 0 to 1.
    pub share: f64,
    /// Its weight in seconds.
    pub weight_seconds: f64,
    /// Its share of the weight of the path, 0 to 1.
    pub weight_share: f64,
}

/// What of the critical path is at one call path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallPathShare {
    /// Names of the regions, outermost first; empty outside of any region.
    pub call_path: Vec<String>,
    /// Its part.
    pub share: Share,
}

/// What of the critical path is in one region, not counting the regions within it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionShare {
    /// Its name; empty outside of any region.
    pub region: String,
    /// Its part.
    pub share: Share,
}

/// What of the critical path is at one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessShare {
    /// The process.
    pub process: u32,
    /// Its part.
    pub share: Share,
}

/// The critical path stays at one process for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathStretch {
    /// The process.
    pub process: u32,
    /// When it begins, in seconds after the first event.
    pub from_seconds: f64,
    /// When it ends.
    pub to_seconds: f64,
    /// Its weight in seconds.
    pub weight_seconds: f64,
}

/// Matched messages by sender and receiver, and over time (that of the last stage, when they were sent).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// All messages.
    pub messages: u64,
    /// All their bytes.
    pub bytes: u64,
    /// What senders and receivers in `pairs` are.
    pub unit: PairUnit,
    /// Number of units.
    pub size: u64,
    /// Nodes in one block; 1 but for blocks.
    pub block: u64,
    /// By sender and receiver, in their order; at most [`Traffic::SIZE`] units squared.
    pub pairs: Vec<PairTraffic>,
    /// Length of a window of time, in seconds; windows begin at the first event.
    pub window_seconds: f64,
    /// All messages by window.
    pub messages_by_window: Vec<u64>,
    /// All their bytes by window.
    pub bytes_by_window: Vec<u64>,
    /// Pairs over time, in coarser units and windows.
    pub over_time: PairsOverTime,
}

impl Traffic {
    /// Most units of the matrix. Chosen by hand: its square is in the report, and drawn; with fewer, blocks of a large job hide who talks to whom.
    pub const SIZE: usize = 128;
}

/// Messages from one unit to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTraffic {
    /// Sending process, node or block.
    pub sender: u32,
    /// Receiving process, node or block.
    pub receiver: u32,
    /// Messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Messages by sender, receiver and window of time: a sparse matrix as lists of equal length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PairsOverTime {
    /// What senders and receivers are.
    pub unit: PairUnit,
    /// Number of units.
    pub size: u64,
    /// Nodes in one block; 1 but for blocks.
    pub block: u64,
    /// Length of a window of time, in seconds.
    pub window_seconds: f64,
    /// Number of windows.
    pub windows: u64,
    /// Window of each entry.
    pub window: Vec<u32>,
    /// Sender of each entry.
    pub senders: Vec<u32>,
    /// Receiver of each entry.
    pub receivers: Vec<u32>,
    /// Messages of each entry.
    pub messages: Vec<u64>,
    /// Bytes of each entry.
    pub bytes: Vec<u64>,
}

impl PairsOverTime {
    /// Most units.
    pub const SIZE: usize = 24;
    /// Most windows.
    pub const WINDOWS: usize = 64;
}
