//! Which events of an operation are logical sends (S) and logical receives (R).

use clc_trace::{Collective, CollectiveOp, CommRank, Root};

/// How the members of a collective operation depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveClass {
    /// Everybody's end depends on the root's begin: Bcast, Scatter, Scatterv.
    OneToN,
    /// The root's end depends on everybody's begin: Reduce, Gather, Gatherv.
    NToOne,
    /// Every end depends on every begin: Allreduce, Allgather(v), Alltoall, Reduce_scatter(_block), Barrier, a fence of a window. On an
    /// inter-communicator on every begin of the other group.
    NToN,
    /// The end of rank i depends on the begins of ranks 0..i-1: Scan, Exscan.
    Prefix,
    /// The trace does not say who exchanged data with whom: no constraint.
    Unconstrained,
}

impl CollectiveClass {
    /// The class of `op`. Alltoallv, Alltoallw (and neighbourhood collectives, if a tracer records them under the same
    /// codes; most record none) are N-to-N only if `alltoallv` asks for it. Operations that create or destroy handles are unconstrained:
    /// how far they synchronise differs between libraries; those that matching has found to be [`CollectiveOp::CREATE_HANDLE_OF_ALL`] are N-to-N.
    pub fn of(op: CollectiveOp, alltoallv: bool) -> CollectiveClass {
        use CollectiveOp as Op;
        match op {
            Op::BCAST | Op::SCATTER | Op::SCATTERV => CollectiveClass::OneToN,
            Op::REDUCE | Op::GATHER | Op::GATHERV => CollectiveClass::NToOne,
            Op::BARRIER
            | Op::ALLREDUCE
            | Op::ALLGATHER
            | Op::ALLGATHERV
            | Op::ALLTOALL
            | Op::WIN_FENCE
            | Op::WIN_FENCE_ASSUMED
            | Op::CREATE_HANDLE_OF_ALL
            | Op::REDUCE_SCATTER
            | Op::REDUCE_SCATTER_BLOCK => CollectiveClass::NToN,
            Op::SCAN | Op::EXSCAN => CollectiveClass::Prefix,
            Op::ALLTOALLV | Op::ALLTOALLW if alltoallv => CollectiveClass::NToN,
            _ => CollectiveClass::Unconstrained,
        }
    }

    /// Whether the operation has a root.
    pub fn rooted(self) -> bool {
        matches!(self, CollectiveClass::OneToN | CollectiveClass::NToOne)
    }
}

/// The part of one member in one instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Role {
    /// Its begin is a logical send.
    pub sends: bool,
    /// Its end is a logical receive.
    pub receives: bool,
}

/// What decides the role of a member: of its record of an operation as much as is kept for each instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberRecord {
    /// The operation.
    pub op: CollectiveOp,
    /// Its root.
    pub root: Root,
    /// Whether this process sent any bytes.
    pub sent: bool,
    /// Whether it received any.
    pub received: bool,
    /// Whether it ends an epoch of a window in which this process accessed others.
    pub accessed: bool,
}

impl From<&Collective> for MemberRecord {
    fn from(collective: &Collective) -> Self {
        let Collective { op, root, sent, received, .. } = *collective;
        MemberRecord { op, root, sent: sent > 0, received: received > 0, accessed: false }
    }
}

/// The role of communicator rank `rank` of `size` that takes `part` in a collective operation.
///
/// A member that sends (receives) zero bytes is no logical sender (receiver); a barrier moves no bytes and counts for all. A process
/// never constrains itself, so the root is not a receiver of its own broadcast, and communicators of one member
/// synchronise nobody.
pub fn role(class: CollectiveClass, rank: CommRank, size: u32, part: &MemberRecord) -> Role {
    use CollectiveOp as Op;
    // No bytes are recorded of the creation of a handle either.
    let barrier = matches!(part.op, Op::BARRIER | Op::WIN_FENCE | Op::WIN_FENCE_ASSUMED | Op::CREATE_HANDLE_OF_ALL);
    let data_out = barrier || part.sent;
    let data_in = barrier || part.received;
    let is_root = part.root == Root::Rank(rank.0);
    let (sends, receives) = match class {
        CollectiveClass::OneToN => (is_root, !is_root),
        CollectiveClass::NToOne => (!is_root, is_root),
        CollectiveClass::NToN => (true, true),
        CollectiveClass::Prefix => (rank.0 + 1 < size, rank.0 > 0),
        CollectiveClass::Unconstrained => (false, false),
    };
    Role { sends: sends && data_out && size > 1, receives: receives && data_in && size > 1 }
}

/// As [`role`], also on an inter-communicator: there `first` of the `size` members are one group, the others the other one, and members exchange data
/// with the other group only. Elsewhere `first` is 0.
pub fn role_between(class: CollectiveClass, rank: CommRank, first: u32, size: u32, part: &MemberRecord) -> Role {
    let Role { sends, receives } = role(class, rank, size, part);
    if first == 0 {
        return Role { sends, receives };
    }
    let with_root = matches!(part.root, Root::Rank(root) if (rank.0 < first) == (root < first));
    match class {
        CollectiveClass::OneToN => Role { sends, receives: receives && !with_root },
        CollectiveClass::NToOne => Role { sends: sends && !with_root, receives },
        CollectiveClass::NToN => Role { sends, receives },
        CollectiveClass::Prefix | CollectiveClass::Unconstrained => Role { sends: false, receives: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::CommId;

    fn collective(op: CollectiveOp, root: Root, sent: u64, received: u64) -> MemberRecord {
        MemberRecord::from(&Collective { op, comm: CommId(0), root, sent, received })
    }

    #[test]
    fn roots_do_not_wait_for_themselves() {
        let bcast = collective(CollectiveOp::BCAST, Root::Rank(1), 24, 8);
        assert_eq!(role(CollectiveClass::OneToN, CommRank(1), 3, &bcast), Role { sends: true, receives: false });
        assert_eq!(role(CollectiveClass::OneToN, CommRank(0), 3, &bcast), Role { sends: false, receives: true });
    }

    #[test]
    fn zero_bytes_take_part_in_nothing_except_in_barriers() {
        let gather = collective(CollectiveOp::GATHERV, Root::Rank(0), 0, 0);
        assert_eq!(role(CollectiveClass::NToOne, CommRank(2), 3, &gather), Role { sends: false, receives: false });
        let barrier = collective(CollectiveOp::BARRIER, Root::None, 0, 0);
        assert_eq!(role(CollectiveClass::NToN, CommRank(2), 3, &barrier), Role { sends: true, receives: true });
        assert_eq!(role(CollectiveClass::NToN, CommRank(0), 1, &barrier), Role { sends: false, receives: false });
    }

    #[test]
    fn between_groups_data_goes_to_the_other_one() {
        // Two and three members; the root is the first one of the second group.
        let bcast = collective(CollectiveOp::BCAST, Root::Rank(2), 8, 8);
        let roles = |class, part: &MemberRecord| [0, 2, 4].map(|rank| role_between(class, CommRank(rank), 2, 5, part));
        let of = |sends, receives| Role { sends, receives };
        assert_eq!(roles(CollectiveClass::OneToN, &bcast), [of(false, true), of(true, false), of(false, false)]);
        let reduce = collective(CollectiveOp::REDUCE, Root::Rank(2), 8, 8);
        assert_eq!(roles(CollectiveClass::NToOne, &reduce), [of(true, false), of(false, true), of(false, false)]);
        let allreduce = collective(CollectiveOp::ALLREDUCE, Root::None, 8, 8);
        assert_eq!(roles(CollectiveClass::NToN, &allreduce), [of(true, true); 3]);
    }

    #[test]
    fn a_scan_passes_from_lower_to_higher_ranks() {
        let scan = collective(CollectiveOp::SCAN, Root::None, 8, 8);
        assert_eq!(role(CollectiveClass::Prefix, CommRank(0), 3, &scan), Role { sends: true, receives: false });
        assert_eq!(role(CollectiveClass::Prefix, CommRank(2), 3, &scan), Role { sends: false, receives: true });
    }
}
