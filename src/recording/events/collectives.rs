//! What a process sends and receives in a collective operation.

use crate::recording::raw::format::calls::Effect;
use crate::recording::raw::format::{NO_ROOT, OWN_GROUP, THIS_PROCESS};
use crate::recording::raw::records::Contribution;
use clc_trace::{Collective, CollectiveOp, CommId, Root};

/// Where a process takes part in a collective operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct CollectiveCaller {
    /// The communicator.
    pub comm: CommId,
    /// With how many processes it exchanges data.
    pub members: u64,
    /// Rank of the process.
    pub rank: u64,
    /// It is an inter-communicator.
    pub inter: bool,
}

/// The end of a collective operation, with the bytes that a process sends and receives as Score-P counts them: to and from every member,
/// itself included. None if the function is none.
pub(super) fn collective(effect: Effect, given: Contribution, place: CollectiveCaller) -> Option<Collective> {
    let CollectiveCaller { comm, members, rank, inter } = place;
    // On an inter-communicator, other roots are ranks of the remote group.
    let at_root = given.root == THIS_PROCESS || !inter && u64::try_from(given.root) == Ok(rank);
    let all = |bytes: u64| bytes.saturating_mul(members);
    let only_root = |bytes: u64| if at_root { bytes } else { 0 };
    // In place, the own data are in the buffer of the other direction.
    let sent = if given.in_place && given.sent == 0 { given.received } else { given.sent };
    let received = if given.in_place && given.received == 0 { given.sent } else { given.received };
    let (op, sent, received) = match effect {
        Effect::Barrier => (CollectiveOp::BARRIER, 0, 0),
        Effect::Bcast => (CollectiveOp::BCAST, only_root(all(sent)), received),
        Effect::Gather => (CollectiveOp::GATHER, sent, only_root(all(received))),
        Effect::Gatherv => (CollectiveOp::GATHERV, given.sent, only_root(received)),
        Effect::Scatter => (CollectiveOp::SCATTER, only_root(all(sent)), received),
        Effect::Scatterv => (CollectiveOp::SCATTERV, only_root(sent), given.received),
        Effect::Allgather => (CollectiveOp::ALLGATHER, all(sent), all(received)),
        Effect::Allgatherv => (CollectiveOp::ALLGATHERV, all(given.sent), received),
        Effect::Alltoall => (CollectiveOp::ALLTOALL, all(sent), all(received)),
        Effect::Alltoallv => (CollectiveOp::ALLTOALLV, sent, received),
        Effect::Alltoallw => (CollectiveOp::ALLTOALLW, sent, received),
        Effect::Allreduce => (CollectiveOp::ALLREDUCE, all(sent), all(received)),
        Effect::Reduce => (CollectiveOp::REDUCE, sent, only_root(all(received))),
        Effect::ReduceScatter => (CollectiveOp::REDUCE_SCATTER, sent, all(received)),
        Effect::ReduceScatterBlock => (CollectiveOp::REDUCE_SCATTER_BLOCK, all(sent), all(received)),
        Effect::Scan => {
            (CollectiveOp::SCAN, sent.saturating_mul(members.saturating_sub(rank)), received.saturating_mul(rank + 1))
        }
        Effect::Exscan => {
            (CollectiveOp::EXSCAN, sent.saturating_mul(members.saturating_sub(rank + 1)), received.saturating_mul(rank))
        }
        _ => return None,
    };
    let root = match given.root {
        NO_ROOT => Root::None,
        THIS_PROCESS => Root::ThisProcess,
        OWN_GROUP => Root::OwnGroup,
        root => Root::Rank(u32::try_from(root).ok()?),
    };
    Some(Collective { op, comm, root, sent, received })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(effect: Effect, root: i64, sent: u64, received: u64, rank: u64) -> (u64, u64) {
        let given = Contribution { comm: 0, root, sent, received, in_place: false };
        let place = CollectiveCaller { comm: CommId(0), members: 4, rank, inter: false };
        let end = collective(effect, given, place).unwrap();
        (end.sent, end.received)
    }

    #[test]
    fn bytes_are_those_to_and_from_every_member() {
        assert_eq!(bytes(Effect::Bcast, 2, 8, 8, 2), (32, 8));
        assert_eq!(bytes(Effect::Bcast, 2, 8, 8, 1), (0, 8));
        assert_eq!(bytes(Effect::Gather, 0, 8, 8, 0), (8, 32));
        assert_eq!(bytes(Effect::Allreduce, NO_ROOT, 8, 8, 3), (32, 32));
        assert_eq!(bytes(Effect::Alltoallv, NO_ROOT, 24, 40, 3), (24, 40));
        assert_eq!(bytes(Effect::Scan, NO_ROOT, 8, 8, 1), (24, 16));
        assert_eq!(bytes(Effect::Exscan, NO_ROOT, 8, 8, 1), (16, 8));
    }

    #[test]
    fn in_place_the_other_buffer_counts() {
        let given = Contribution { comm: 0, root: NO_ROOT, sent: 0, received: 8, in_place: true };
        let place = CollectiveCaller { comm: CommId(0), members: 4, rank: 0, inter: false };
        let end = collective(Effect::Allgather, given, place).unwrap();
        assert_eq!((end.sent, end.received), (32, 32));
    }

    #[test]
    fn the_root_of_the_other_group_is_nobody_here() {
        let given = Contribution { comm: 0, root: 1, sent: 8, received: 8, in_place: false };
        let place = CollectiveCaller { comm: CommId(0), members: 4, rank: 1, inter: true };
        assert_eq!(collective(Effect::Bcast, given, place).unwrap().sent, 0);
        let root = collective(Effect::Bcast, Contribution { root: THIS_PROCESS, ..given }, place).unwrap();
        assert_eq!((root.sent, root.root), (32, Root::ThisProcess));
    }
}
