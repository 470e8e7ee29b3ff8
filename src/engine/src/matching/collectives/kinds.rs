//! Which kind of operation one is.

use crate::matching::extracted::Participation;
use clc_trace::{CollectiveOp, Root};
use controlled_logical_clock::semantics::CollectiveClass;

/// What all members have to agree on: the operation, and the root where there is one.
pub(super) fn signature(participation: &Participation) -> u64 {
    let part = &participation.part;
    let root = match part.root {
        Root::Rank(root) if CollectiveClass::of(part.op, false).rooted() => u64::from(root) + 1,
        _ => 0,
    };
    root << 8 | u64::from(part.op.0)
}

/// The class of an operation; `between` the groups of an inter-communicator there are no prefix operations.
pub(super) fn class_of(op: CollectiveOp, alltoallv: bool, between: bool) -> CollectiveClass {
    match CollectiveClass::of(op, alltoallv) {
        CollectiveClass::Prefix if between => CollectiveClass::Unconstrained,
        class => class,
    }
}
