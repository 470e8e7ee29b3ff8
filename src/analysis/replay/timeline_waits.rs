//! What is found out about the waits of a timeline.

use clc_engine::matching::collectives::instances::Instance;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_execution::path::PathWait;
use clc_execution::waiting::{DetailKind, WaitKind};
use clc_trace::CollectiveOp;
use controlled_logical_clock::semantics::CollectiveClass;

/// An operation waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperationWait {
    /// The operation.
    pub operation: u32,
    /// For what.
    pub kind: WaitKind,
    /// For which process.
    pub cause: u32,
    /// How long.
    pub ticks: i64,
}

/// Waits of one timeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimelineWaits {
    /// At most one per operation, in their order.
    pub waits: Vec<OperationWait>,
    /// What the critical path follows, sorted.
    pub path: Vec<PathWait>,
    /// What is told beside the waits, by operation and kind.
    pub details: Vec<Detail>,
}

impl TimelineWaits {
    /// The wait of an operation.
    pub(super) fn of(&self, operation: u32) -> Option<&OperationWait> {
        self.waits.binary_search_by_key(&operation, |wait| wait.operation).ok().and_then(|at| self.waits.get(at))
    }
}

/// An operation waited for a lock that another process held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockWait {
    /// The timeline.
    pub timeline: LocalTimeline,
    /// The operation.
    pub operation: u32,
    /// Until when.
    pub until: i64,
    /// Who held it.
    pub cause: u32,
}

/// A part of a wait of an operation, or what it took beside that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Detail {
    /// The operation.
    pub operation: u32,
    /// What it is.
    pub kind: DetailKind,
    /// How long.
    pub ticks: i64,
}

/// What members of a collective operation wait for; nothing if it is not known who waits for whom.
pub(super) fn kind_of(instance: &Instance) -> Option<WaitKind> {
    match instance.class {
        CollectiveClass::NToN if is_fence(instance.op) => Some(WaitKind::WaitAtFence),
        CollectiveClass::NToN if instance.op == CollectiveOp::BARRIER => Some(WaitKind::WaitAtBarrier),
        CollectiveClass::NToN => Some(WaitKind::WaitAtNxn),
        CollectiveClass::OneToN => Some(WaitKind::LateBroadcast),
        CollectiveClass::Prefix => Some(WaitKind::EarlyScan),
        CollectiveClass::NToOne => Some(WaitKind::EarlyReduce),
        CollectiveClass::Unconstrained => None,
    }
}

/// Whether an operation is a fence that counts as a barrier.
pub(super) fn is_fence(op: CollectiveOp) -> bool {
    matches!(op, CollectiveOp::WIN_FENCE | CollectiveOp::WIN_FENCE_ASSUMED)
}
