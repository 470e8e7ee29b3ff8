//! What pictures need beside the numbers of the summary: curves, classes, matrices, and the worst cases with their
//! surroundings. Everything is bounded, however large the trace is.

use crate::report::{EventPlace, Stage, WorstKind};
use clc_trace::{LocationId, MpiRank};
use serde::{Deserialize, Serialize};

/// Everything that is computed for `--html`, `--report` and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// How far the clocks were off over time.
    pub clock_error: ClockError,
    /// Windows of time that [`StageDetails::checked`] and [`StageDetails::violated`] count in: the length of one, in seconds.
    pub window_seconds: f64,
    /// The stages that were looked at, in their order.
    pub stages: Vec<StageDetails>,
    /// Messages from whom to whom.
    pub pairs: PairMatrix,
    /// The worst violations, at most one per pair of processes (or operation and process).
    pub worst: Vec<Case>,
    /// How steep the corrections are; none for `check`.
    pub slopes: Option<Slopes>,
    /// How far the events of each location were moved, those with the largest displacements first; none for `check`.
    pub locations: Vec<LocationDisplacement>,
    /// Number of locations that are not in the list.
    pub further_locations: u64,
}

/// Differences between clocks and corrected time, in windows of equal length. There is a clock per node, but one per process on nodes whose processes turned
/// out not to share one, and one per location with a timeline of its own.
///
/// The parts add up: corrected minus recorded time of an event is presync + forward + backward. Positive: the clock is slow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockError {
    /// Length of a window, in seconds.
    pub window_seconds: f64,
    /// Number of windows, from the first event of the trace on.
    pub windows: u64,
    /// The clocks; if there are more than [`ClockError::NODES`], those with the largest corrections.
    pub nodes: Vec<NodeCurve>,
    /// Number of clocks that are left out.
    pub further_nodes: u64,
}

impl ClockError {
    /// Most clocks with a curve. Chosen by hand: curves grow with them; more cannot be told apart in a plot.
    pub const NODES: usize = 64;
    /// Most values of one part, over all clocks. Chosen by hand: bounds the report; with many clocks, each has fewer points.
    pub const VALUES: usize = 16_384;
    /// Most windows. Chosen by hand: about as many as a plot has pixels.
    pub const WINDOWS: usize = 1024;
}

/// One clock. Each list has one value per window: the mean, or the largest, of its communication events in it, in ticks;
/// null in a window without such events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCurve {
    /// Name of its node, possibly empty.
    pub name: String,
    /// The first process that has it.
    pub first_process: Option<MpiRank>,
    /// Number of processes that have it.
    pub processes: u64,
    /// The location that has it, if it is that of a single location beside its process.
    #[serde(default)]
    pub location: Option<LocationId>,
    /// What pre-synchronisation added.
    pub presync_ticks: Vec<Option<i64>>,
    /// What the forward replay added; empty for `check`, like the next three.
    pub forward_ticks: Vec<Option<i64>>,
    /// What the backward amortisation added.
    pub backward_ticks: Vec<Option<i64>>,
    /// The largest that the forward replay added.
    pub forward_largest_ticks: Vec<Option<i64>>,
    /// The largest that the backward amortisation added.
    pub backward_largest_ticks: Vec<Option<i64>>,
}

/// Violations of one stage in detail. They are counted by logical receives: of a collective, each end that comes too early.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageDetails {
    /// Which one.
    pub stage: Stage,
    /// By operation, messages first.
    pub operations: Vec<OperationCheck>,
    /// Logical receives by window of (pre-synchronised) time.
    pub checked: Vec<u64>,
    /// Those too early.
    pub violated: Vec<u64>,
    /// Those too early by how far, in rising order.
    pub distances: Vec<DistanceClass>,
}

/// Messages, or the instances of one collective operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCheck {
    /// `message`, or the operation as MPI calls it, in lower case.
    pub operation: String,
    /// How many were compared.
    pub checked: u64,
    /// How many violate the clock condition.
    pub violated: u64,
}

/// Receives that come too early by a distance within one class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DistanceClass {
    /// Where the class begins, exclusive; 0 for the first.
    pub over_seconds: f64,
    /// Its upper end, inclusive; null for the last class.
    pub up_to_seconds: Option<f64>,
    /// Messages.
    pub messages: u64,
    /// Ends of collective operations.
    pub collective_ends: u64,
}

/// What sender and receiver of [`PairMatrix`] are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairUnit {
    /// Processes.
    #[default]
    Process,
    /// Nodes.
    Node,
    /// Blocks of consecutive nodes.
    Block,
}

/// Messages by sender and receiver: a sparse matrix as lists of equal length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PairMatrix {
    /// What rows and columns are.
    pub unit: PairUnit,
    /// Number of rows and of columns.
    pub size: u64,
    /// Nodes in one block; 1 but for blocks.
    pub block: u64,
    /// Row of each entry.
    pub senders: Vec<u32>,
    /// Column of each entry.
    pub receivers: Vec<u32>,
    /// Messages of each entry.
    pub messages: Vec<u64>,
    /// By stage, in the order of [`Details::stages`].
    pub stages: Vec<PairStage>,
}

impl PairMatrix {
    /// Most rows. Chosen by hand: its square is in the report, and drawn; with fewer, more processes share a row.
    pub const SIZE: usize = 256;
}

/// Violations at one stage, by entry of a [`PairMatrix`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PairStage {
    /// Messages that violate the clock condition.
    pub violated: Vec<u64>,
    /// The most that one of them is too early, in ticks.
    pub largest_ticks: Vec<i64>,
}

/// One of the worst violations, with what happened around it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The stage at which it was found: [`Stage::Presynchronised`], or [`Stage::Raw`] where pre-synchronisation left none.
    pub stage: Stage,
    /// What kind of communication it is.
    pub kind: WorstKind,
    /// `message`, or the operation.
    pub operation: String,
    /// The logical send.
    pub from: EventPlace,
    /// The logical receive.
    pub to: EventPlace,
    /// How much later the receive would have to be, in ticks.
    pub ticks: i64,
    /// The same in seconds.
    pub seconds: f64,
    /// The two processes at that stage, and with corrected times (not for `check`).
    pub pictures: Vec<Picture>,
}

impl Case {
    /// Most cases. Chosen by hand: each is a picture of its own, from one more scan; the worst come first.
    pub const MOST: usize = 12;
}

/// Two locations during a short time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Which times it shows.
    pub stage: Stage,
    /// How long a time.
    pub seconds: f64,
    /// The sending and the receiving location.
    pub lanes: [Lane; 2],
}

/// One location in a [`Picture`]. Times count from the picture's beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// When the event happens that belongs to the violation.
    pub at_seconds: f64,
    /// Regions, outer ones first.
    pub bars: Vec<RegionBar>,
}

impl Lane {
    /// Most bars. Chosen by hand: with more, bars of a bounded picture are too narrow to be told apart.
    pub const BARS: usize = 60;
    /// Levels of regions that are kept: the innermost ones around the event.
    pub const LEVELS: u32 = 4;
}

/// A region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionBar {
    /// Its name.
    pub region: String,
    /// Nesting, 0 for the outermost level that is shown.
    pub level: u32,
    /// When it is entered, at most the beginning of the picture.
    pub from_seconds: f64,
    /// When it is left.
    pub to_seconds: f64,
}

/// How steep corrections rise before a corrected receive: the share by which backward amortisation stretches intervals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Slopes {
    /// Stretches that rise with the slope asked for (`parameters.slope`).
    pub ordinary: u64,
    /// Steeper ones: a send must not overtake its receive.
    pub steeper: u64,
    /// The steepest rise of a stretch that has a length, 0.01 for 1 %.
    pub steepest: f64,
    /// Stretches of no length: several events at one time.
    pub vertical: u64,
    /// Share by which the forward replay shortens intervals after a corrected receive, 1 minus gamma of the last pass.
    pub decay: f64,
}

/// Displacement of the events of one location.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocationDisplacement {
    /// The location.
    pub location: LocationId,
    /// MPI rank of its process, if it has one.
    pub process: Option<MpiRank>,
    /// Number of events.
    pub events: u64,
    /// Number of events whose time changed (against pre-synchronised time).
    pub events_moved: u64,
    /// Largest displacement, in ticks.
    pub largest_ticks: i64,
    /// The same in seconds.
    pub largest_seconds: f64,
    /// Mean displacement of the moved events.
    pub mean_seconds: f64,
}

impl LocationDisplacement {
    /// Most locations in a report.
    pub const MOST: usize = 256;
}
