//! The circumstances of a run: program, trace, parameters, passes, memory.

use clc_clock::Method;
use clc_engine::matching::collectives::fences::Fences;
use controlled_logical_clock::CorrectionForm;
use controlled_logical_clock::latency::LatencyBasis;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramInfo {
    /// Version of clc-replay.
    pub version: String,
    /// The arguments, program name first.
    pub command_line: Vec<String>,
    /// What the MPI library says about itself (`MPI_Get_library_version`, first line).
    pub mpi_library: String,
    /// Number of processes that clc-replay ran on.
    pub analysis_ranks: u64,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceSummary {
    /// The trace as it was given.
    pub path: String,
    /// Name of the archive.
    pub name: String,
    /// The measurement system that wrote it (OTF2 anchor file, "creator").
    pub creator: String,
    /// Ticks per second.
    pub timer_resolution: u64,
    /// Number of event streams.
    pub locations: u64,
    /// Number of MPI processes of the application.
    pub processes: u64,
    /// Number of nodes that they ran on.
    pub nodes: u64,
    /// Number of MPI communicators.
    pub communicators: u64,
    /// From the first to the last event after pre-synchronisation, in seconds.
    pub span_seconds: f64,
    /// Number of event records, all locations.
    pub events: u64,
    /// The same by kind of record, most frequent first.
    pub events_by_kind: Vec<EventCount>,
}

/// Number of event records of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCount {
    /// Name of the OTF2 record ("MpiSend"); "Other" for those that carry no communication.
    pub kind: String,
    /// How many there are.
    pub count: u64,
}

impl EventCount {
    /// Counts in the order of the report: most frequent first, equal ones by name; kinds that do not occur are left out.
    pub fn sorted(counts: impl IntoIterator<Item = (String, u64)>) -> Vec<EventCount> {
        let mut counts: Vec<EventCount> =
            counts.into_iter().filter(|(_, n)| *n > 0).map(|(kind, count)| EventCount { kind, count }).collect();
        counts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.kind.cmp(&b.kind)));
        counts
    }
}

/// How the program was told to work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParametersUsed {
    /// Model of the clocks.
    pub presync: Method,
    /// How many locations got which clock.
    pub clocks: ClockCounts,
    /// Minimum latency of a message.
    pub latency: LatencyUsed,
    /// Control variable of the first pass; null for `check`, like the next three.
    pub gamma: Option<f64>,
    /// Most forward passes.
    pub max_passes: Option<u32>,
    /// Error at which no further pass is made.
    pub max_error: Option<f64>,
    /// Slope of the backward amortisation.
    pub slope: Option<f64>,
    /// Whether Alltoallv and its like were taken as all-to-all.
    pub alltoallv: bool,
    /// Whether the creation of communicators was taken to synchronise.
    #[serde(default)]
    pub handles: bool,
    /// Which fences of windows were taken for barriers.
    #[serde(default)]
    pub fences: Fences,
}

impl TraceSummary {
    /// What a title calls the trace: its directory, since tracers give all their archives the same name; or, where the path does not tell (`.`), the archive.
    pub(crate) fn title(&self) -> String {
        let path = Path::new(&self.path);
        let directory = clc_archive::directory_of(path);
        directory.file_name().map_or_else(|| self.name.clone(), |name| name.to_string_lossy().into_owned())
    }
}

/// Number of locations by what pre-synchronisation does to their times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCounts {
    /// Nothing.
    pub identity: u64,
    /// One constant offset.
    pub constant: u64,
    /// An offset that changes with time.
    pub piecewise: u64,
}

/// Minimum latency in force, in seconds, after rounding to ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyUsed {
    /// Between two processes of one node.
    pub same_node_seconds: f64,
    /// Between processes of different nodes.
    pub other_node_seconds: f64,
    /// Where they come from.
    #[serde(default)]
    pub basis: LatencyBasis,
}

impl LatencyUsed {
    /// Why it is that, if the trace was asked.
    pub fn why(&self) -> Option<&'static str> {
        match self.basis {
            LatencyBasis::Given => None,
            LatencyBasis::RoundTrips => Some("from the quickest round trips and messages"),
            LatencyBasis::Limited => Some("limited to what every message takes"),
            LatencyBasis::Unclear => Some("the trace does not show a larger one"),
        }
    }
}

/// How timestamps travelled in the replay; the result is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayForm {
    /// One analysis rank per process; every operation was replayed by the MPI operation of its kind.
    Canonical,
    /// Timestamps in batches, on any number of analysis ranks.
    Dataflow,
}

/// The forward replay and its control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Which form of the replay ran.
    pub form: ReplayForm,
    /// D0, the largest advance that no gamma can avoid (that of the plain Lamport clock), in ticks.
    pub d0_ticks: i64,
    /// The same in seconds.
    pub d0_seconds: f64,
    /// Every pass; the last one counts.
    pub passes: Vec<Pass>,
    /// What is made of them.
    #[serde(default = "paper")]
    pub correction: CorrectionForm,
    /// What was done to all timelines together; null in the publication's form, and if nothing had to move.
    #[serde(default)]
    pub common_motion: Option<CommonMotion>,
}

/// Reports of earlier versions say nothing.
fn paper() -> CorrectionForm {
    CorrectionForm::Paper
}

/// The motion that all clocks shared after the replays, which was taken out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CommonMotion {
    /// The most that it moved any moment, in ticks.
    pub largest_ticks: i64,
    /// The same in seconds.
    pub largest_seconds: f64,
    /// Its steepest change, in seconds per second.
    pub steepest: f64,
    /// The most that an event was moved afterwards, to restore a minimum latency or the distance of two events, in ticks.
    pub restored_ticks: i64,
    /// The same in seconds.
    pub restored_seconds: f64,
}

/// One forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// Control variable.
    pub gamma: f64,
    /// Largest advance of any event, in ticks.
    pub largest_advance_ticks: i64,
    /// The same in seconds.
    pub largest_advance_seconds: f64,
    /// In the publication's form largest advance over D0; 1 if both are zero. Else the sum of all jumps over that of all violations.
    #[serde(deserialize_with = "crate::report::json::number_or_infinity")]
    pub error: f64,
    /// The mirrored replay of this pass; null in the publication's form, and if the forward replay was not good enough for it.
    #[serde(default)]
    pub mirrored: Option<MirroredPass>,
    /// Largest displacement of an event that takes part in communication by the correction that was made of this pass, in ticks; null in the publication's form, and if none was made.
    #[serde(default)]
    pub displacement_ticks: Option<i64>,
    /// The same in seconds.
    #[serde(default)]
    pub displacement_seconds: Option<f64>,
}

/// The mirrored replay of a pass, which moves sends before their receives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MirroredPass {
    /// Largest displacement of any event, backwards, in ticks.
    pub largest_move_ticks: i64,
    /// The same in seconds.
    pub largest_move_seconds: f64,
    /// As that of the forward replay.
    #[serde(deserialize_with = "crate::report::json::number_or_infinity")]
    pub error: f64,
}

/// Peak memory of the analysis ranks, in bytes; zero if the system does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Peak of the rank with the highest peak.
    pub largest_rank_bytes: u64,
    /// Sum of the peaks of all ranks.
    pub all_ranks_bytes: u64,
}
