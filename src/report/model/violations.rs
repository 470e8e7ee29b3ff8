//! Violations of the clock condition (a receive earlier than its send plus the minimum latency), at three stages.

use crate::report::Stage;
use clc_trace::{EventNumber, LocationId, TimelineNumber};
use serde::{Deserialize, Serialize};

/// Violations before, between and after.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Violations {
    /// With the recorded times.
    pub raw: Option<StageViolations>,
    /// After pre-synchronisation. With recorded offsets alone (`linear`) it is what a reader of the original trace sees.
    pub presynchronised: Option<StageViolations>,
    /// With the corrected times as written; none for `check`.
    pub corrected: Option<StageViolations>,
}

impl Violations {
    /// Those that were looked at, in the order of a correction.
    pub fn by_stage(&self) -> impl Iterator<Item = (Stage, &StageViolations)> {
        Stage::ALL
            .into_iter()
            .zip([&self.raw, &self.presynchronised, &self.corrected])
            .filter_map(|(stage, found)| Some((stage, found.as_ref()?)))
    }

    /// Number of messages and collective instances compared; the same at every stage.
    pub fn checked(&self) -> u64 {
        let stages = [&self.corrected, &self.presynchronised, &self.raw];
        stages.into_iter().flatten().next().map_or(0, StageViolations::checked)
    }
}

/// Violations at one stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageViolations {
    /// Messages.
    pub point_to_point: PointToPointCheck,
    /// Collective operations by kind, those that occur only.
    pub collectives: Vec<CollectiveCheck>,
    /// The worst violation, if there is one.
    pub worst: Option<WorstViolation>,
}

impl StageViolations {
    /// Number of messages and collective instances compared.
    pub fn checked(&self) -> u64 {
        let collectives = self.collectives.iter().map(|kind| kind.instances_checked);
        collectives.fold(self.point_to_point.checked, u64::saturating_add)
    }

    /// Number of those that violate the clock condition.
    pub fn violated(&self) -> u64 {
        self.collectives.iter().map(|kind| kind.violated).fold(self.point_to_point.violated, u64::saturating_add)
    }

    /// The counts of one kind of collective, zero if it does not occur.
    pub fn collective(&self, kind: CollectiveKind) -> CollectiveCheck {
        let zero = CollectiveCheck { kind, instances_checked: 0, violated: 0 };
        self.collectives.iter().copied().find(|check| check.kind == kind).unwrap_or(zero)
    }
}

/// Messages compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointToPointCheck {
    /// How many were compared.
    pub checked: u64,
    /// How many violate the clock condition.
    pub violated: u64,
}

/// Collective instances compared. An instance counts once, however many of its pairs are reversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveCheck {
    /// Who waits for whom.
    pub kind: CollectiveKind,
    /// How many were compared.
    pub instances_checked: u64,
    /// How many violate the clock condition.
    pub violated: u64,
}

/// Who waits for whom in a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectiveKind {
    /// Everybody waits for the root: Bcast, Scatter, Scatterv.
    OneToN,
    /// The root waits for everybody: Reduce, Gather, Gatherv.
    NToOne,
    /// Everybody waits for everybody: Barrier, Allreduce, Allgather, Alltoall and so on.
    NToN,
    /// Everybody waits for the lower ranks: Scan, Exscan.
    Prefix,
    /// Everybody waits for everybody at a fence of a window.
    Fence,
    /// On a window, an origin that completes waits for a target that posts, or a target for an origin that completes; counted by pairs.
    Group,
    /// The end of a synchronous send waits for the posting of its receive; counted by sends.
    SynchronousSend,
    /// The threads of a team begin after the fork, and end before the join; counted by pairs.
    Fork,
    /// Nobody leaves a barrier of the threads of a team before all have arrived.
    ThreadBarrier,
    /// A thread begins after it was created, and ends before somebody has waited for it.
    ThreadCreation,
    /// A task runs after it was created.
    Task,
    /// A thread acquires a lock after the one before has released it.
    ThreadLock,
    /// A kernel of an accelerator, or a copy, begins after the call that issues it; counted by pairs.
    AcceleratorIssue,
    /// A call that waits for a stream of an accelerator ends after the work that it has waited for; counted by pairs.
    AcceleratorWait,
}

impl CollectiveKind {
    /// All kinds, in the order of the report.
    pub const ALL: [CollectiveKind; 14] = [
        Self::OneToN,
        Self::NToOne,
        Self::NToN,
        Self::Prefix,
        Self::Fence,
        Self::Group,
        Self::SynchronousSend,
        Self::Fork,
        Self::ThreadBarrier,
        Self::ThreadCreation,
        Self::Task,
        Self::ThreadLock,
        Self::AcceleratorIssue,
        Self::AcceleratorWait,
    ];

    /// The name in the text.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneToN => "1-to-N collectives",
            Self::NToOne => "N-to-1 collectives",
            Self::NToN => "N-to-N collectives",
            Self::Prefix => "scans",
            Self::Fence => "fences",
            Self::Group => "posts, completions",
            Self::SynchronousSend => "synchronous sends",
            Self::Fork => "forks, joins",
            Self::ThreadBarrier => "thread barriers",
            Self::ThreadCreation => "thread creations",
            Self::Task => "tasks",
            Self::ThreadLock => "thread locks",
            Self::AcceleratorIssue => "kernels, copies",
            Self::AcceleratorWait => "waits for streams",
        }
    }
}

/// What kind of communication the worst violation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorstKind {
    /// A message.
    Message,
    /// See [`CollectiveKind::OneToN`].
    OneToN,
    /// See [`CollectiveKind::NToOne`].
    NToOne,
    /// See [`CollectiveKind::NToN`].
    NToN,
    /// See [`CollectiveKind::Prefix`].
    Prefix,
    /// See [`CollectiveKind::Fence`].
    Fence,
    /// See [`CollectiveKind::Group`].
    Group,
    /// See [`CollectiveKind::SynchronousSend`].
    SynchronousSend,
    /// See [`CollectiveKind::Fork`].
    Fork,
    /// See [`CollectiveKind::ThreadBarrier`].
    ThreadBarrier,
    /// See [`CollectiveKind::ThreadCreation`].
    ThreadCreation,
    /// See [`CollectiveKind::Task`].
    Task,
    /// See [`CollectiveKind::ThreadLock`].
    ThreadLock,
    /// See [`CollectiveKind::AcceleratorIssue`].
    AcceleratorIssue,
    /// See [`CollectiveKind::AcceleratorWait`].
    AcceleratorWait,
}

impl From<CollectiveKind> for WorstKind {
    fn from(kind: CollectiveKind) -> Self {
        match kind {
            CollectiveKind::OneToN => Self::OneToN,
            CollectiveKind::NToOne => Self::NToOne,
            CollectiveKind::NToN => Self::NToN,
            CollectiveKind::Prefix => Self::Prefix,
            CollectiveKind::Fence => Self::Fence,
            CollectiveKind::Group => Self::Group,
            CollectiveKind::SynchronousSend => Self::SynchronousSend,
            CollectiveKind::Fork => Self::Fork,
            CollectiveKind::ThreadBarrier => Self::ThreadBarrier,
            CollectiveKind::ThreadCreation => Self::ThreadCreation,
            CollectiveKind::Task => Self::Task,
            CollectiveKind::ThreadLock => Self::ThreadLock,
            CollectiveKind::AcceleratorIssue => Self::AcceleratorIssue,
            CollectiveKind::AcceleratorWait => Self::AcceleratorWait,
        }
    }
}

/// The violation that is short of the clock condition by most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorstViolation {
    /// What it is.
    pub kind: WorstKind,
    /// The logical send.
    pub from: EventPlace,
    /// The logical receive.
    pub to: EventPlace,
    /// How much later the receive would have to be, in ticks.
    pub ticks: i64,
    /// The same in seconds.
    pub seconds: f64,
}

/// One event, in words that find it in the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventPlace {
    /// Its process: MPI rank (in the world).
    pub process: TimelineNumber,
    /// Its location.
    pub location: LocationId,
    /// Its number in the location.
    pub event: EventNumber,
    /// Its time at this stage, in ticks.
    pub ticks: i64,
    /// The same in seconds after the first event of the trace at this stage.
    pub seconds: f64,
    /// The innermost region that it happens in, if known.
    pub region: Option<String>,
}
