//! The result of a run as plain data, and its renderings: text and a page for people, JSON for scripts.
//!
//! [`Report`] is the result of a correction or a check, [`Info`] the description of a trace. Both are filled by the
//! commands; nothing here computes a correction. Every JSON field is documented in `docs/report.md`. Ticks are
//! those of the trace's timer, times and durations are in seconds, sizes in bytes.

mod csv;
mod html;
mod json;
mod model;
mod text;

pub use clc_clock::{ClockEstimate, ClockPair, ClockStep, FurtherClocks, NodeClock};
pub use clc_execution::waiting::WaitKind;
pub(crate) use csv::{CsvTable, analysis_csv};
pub use html::evaluation_plot;
pub use html::html;
pub(crate) use html::{WatchedPage, watched_page};
pub use json::json;
pub(crate) use json::{GENERATOR, escaped};
pub use model::analysis::{
    Analysis, CallPathShare, CallPathWaiting, CriticalPath, DelayCost, DelayCosts, DetailWaiting, Execution,
    KindWaiting, PairTraffic, PairWaiting, PairsOverTime, PathStretch, ProcessDelay, ProcessShare, ProcessTimes,
    ProcessWaiting, RegionDelay, RegionShare, Share, Stages, ThreadCallPathWaiting, ThreadKindWaiting,
    ThreadProcessWaiting, ThreadWaits, Traffic, WaitStates, Waiting,
};
pub use model::conversion::{Conversion, LossCount};
pub use model::coverage::Coverage;
pub use model::details::{
    Case, ClockError, Details, DistanceClass, Lane, LocationDisplacement, NodeCurve, OperationCheck, PairMatrix,
    PairStage, PairUnit, Picture, RegionBar, Slopes, StageDetails,
};
pub use model::displacement::{ChangeClass, ChangeOctave, Displacement, IntervalChange};
pub use model::distances;
pub use model::evaluation::{
    BetweenProcesses, ErrorStatistics, Evaluation, IntervalAccuracy, LocationAccuracy, PhaseAccuracy, Slice,
    WaitAccuracy,
};
pub use model::generated::Generated;
pub use model::info::{ClockInfo, CommunicatorInfo, Info, LocationInfo, NodeInfo};
pub use model::locks::{LockStages, Locks, Overlap};
pub use model::matching::{
    CallCount, CollectiveCounts, DoubtfulChannel, Matching, ReasonCount, ThreadSteps, UnmatchedPair, WindowUse,
};
pub use model::phases::Phase;
pub use model::run::{
    ClockCounts, CommonMotion, EventCount, LatencyUsed, MemoryUse, MirroredPass, ParametersUsed, Pass, ProgramInfo,
    Replay, ReplayForm, TraceSummary,
};
pub use model::stage::Stage;
pub use model::violations::{
    CollectiveCheck, CollectiveKind, EventPlace, PointToPointCheck, StageViolations, Violations, WorstKind,
    WorstViolation,
};
pub use model::warnings::{Warning, Warnings};
pub use text::analysis::analysis_text;
pub use text::conversion::conversion_text;
pub(crate) use text::correction::warnings_text;
pub use text::evaluation::evaluation_text;
pub use text::generated::generated_text;
pub use text::info::info_text;
pub use text::text;

use serde::{Deserialize, Serialize};

/// Version of the JSON form. It grows when a field changes its meaning or disappears, not when one is added.
pub const SCHEMA: u32 = 1;

/// The outcome in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There was no violation to begin with.
    Consistent,
    /// There were violations, at the latest after pre-synchronisation none is left.
    Corrected,
    /// Violations are left.
    Violated,
    /// None is left in what was compared, but that is less than [`Coverage::ENOUGH`] of what communicates, or the archive says that it does not have all of it.
    PartlyChecked,
    /// Nothing could be compared.
    NothingToCheck,
}

impl Verdict {
    /// The exit status that goes with it: 0 only if (nearly) everything was compared and no violation is left.
    pub fn exit_status(self) -> u8 {
        match self {
            Verdict::Consistent | Verdict::Corrected => 0,
            Verdict::Violated => 1,
            Verdict::PartlyChecked | Verdict::NothingToCheck => 3,
        }
    }
}

/// The result of `clc-replay TRACE` or `clc-replay check TRACE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The outcome, see [`Verdict::new`].
    pub verdict: Verdict,
    /// How much the verdict covers.
    #[serde(default)]
    pub coverage: Coverage,
    /// What ran.
    pub program: ProgramInfo,
    /// What it read.
    pub trace: TraceSummary,
    /// How it was told to work.
    pub parameters: ParametersUsed,
    /// What was learnt about the clocks from messages; null unless `--presync` asks for it.
    pub clocks: Option<ClockEstimate>,
    /// Which messages and collective operations were found.
    pub matching: Matching,
    /// Violations of the clock condition before and after.
    pub violations: Violations,
    /// Locks of windows that were held at the same time though they exclude each other; null if there are none.
    #[serde(default)]
    pub locks: Option<LockStages>,
    /// The forward passes; none for `check`.
    pub replay: Option<Replay>,
    /// How far events were moved; none for `check`.
    #[serde(rename = "moves")]
    pub displacement: Option<Displacement>,
    /// Where the time went, in order.
    pub phases: Vec<Phase>,
    /// Where the memory went.
    pub memory: MemoryUse,
    /// What the user should know, each text once.
    pub warnings: Vec<Warning>,
    /// The corrected trace; none for `check` and `--dry-run`.
    pub output: Option<String>,
    /// What pictures need; none unless `--report` or `--html` is given.
    pub details: Option<Details>,
    /// Waiting times, execution metrics, critical path; only of `clc-replay analyze`.
    pub analysis: Option<Analysis>,
}

#[cfg(test)]
mod analysis_sample;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
