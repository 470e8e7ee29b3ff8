//! What collective operations are given: communicator, root, and bytes.

use crate::arguments::Arguments;
use crate::format::calls::Effect;
use crate::format::{NO_ROOT, OWN_GROUP, THIS_PROCESS};
use crate::session::Session;
use crate::stream::Stream;

/// Bytes of the arguments for sending and for receiving, and whether the operation is in place.
struct TransferredBytes(u64, u64, bool);

/// Records the arguments of a collective operation. Nothing is looked at that MPI ignores in this process: it need not be valid.
///
/// # Safety
/// The arguments are those of the operation.
pub(super) unsafe fn before(session: &Session, stream: &mut Stream, effect: Effect, given: &Arguments) {
    // SAFETY: positions are those of the C binding, and all arguments that are looked at are significant here.
    unsafe {
        let (comm, root) = match effect {
            Effect::Bcast => (4, Some(3)),
            Effect::Gather | Effect::Scatter => (7, Some(6)),
            Effect::Gatherv | Effect::Scatterv => (8, Some(7)),
            Effect::Reduce => (6, Some(5)),
            Effect::Allgather | Effect::Alltoall => (6, None),
            Effect::Allgatherv => (7, None),
            Effect::Alltoallv | Effect::Alltoallw => (8, None),
            Effect::Allreduce | Effect::ReduceScatter | Effect::ReduceScatterBlock | Effect::Scan | Effect::Exscan => {
                (5, None)
            }
            _ => (0, None),
        };
        let comm = given.comm(comm);
        let root = root.map_or(NO_ROOT, |i| given.abi.root_of(given.int(i)));
        let TransferredBytes(sent, received, in_place) = bytes(session, effect, given, comm, root);
        stream.comm(comm);
        stream.signed(root);
        stream.unsigned(sent);
        stream.unsigned(received);
        stream.unsigned(u64::from(in_place));
    }
}

/// # Safety
/// As above.
unsafe fn bytes(session: &Session, effect: Effect, given: &Arguments, comm: u64, root: i64) -> TransferredBytes {
    // SAFETY: as above.
    unsafe {
        let block = |count: usize, datatype: usize| given.bytes(count, datatype);
        let sum = |counts: usize, datatype: usize, per_type: bool| {
            // With an inter-communicator, the members of the other group, but those of this one where what they reduce is scattered.
            let reduced = effect == Effect::ReduceScatter;
            let members = if reduced { session.size_of(comm) } else { session.peers(comm) };
            if per_type {
                let one = |k: usize| match given.count_at(counts, k) {
                    0 => 0,
                    count => count * given.size_at(datatype, k),
                };
                return (0..members).map(one).sum();
            }
            match (0..members).map(|k| given.count_at(counts, k)).sum::<u64>() {
                0 => 0,
                sum => sum * given.size(datatype),
            }
        };
        let am_root = || root == THIS_PROCESS || root >= 0 && session.is_rank(comm, root);
        match effect {
            // In the group of the root of an inter-communicator, the others do nothing.
            Effect::Bcast | Effect::Gather | Effect::Gatherv | Effect::Scatter | Effect::Scatterv | Effect::Reduce
                if root == OWN_GROUP =>
            {
                TransferredBytes(0, 0, false)
            }
            Effect::Bcast => TransferredBytes(block(1, 2), block(1, 2), false),
            Effect::Gather | Effect::Gatherv => {
                let is_root = am_root();
                let in_place = is_root && given.in_place(0);
                let received = match (is_root, effect) {
                    (false, _) => 0,
                    (true, Effect::Gather) => block(4, 5),
                    (true, _) => sum(4, 6, false),
                };
                // There, the root only receives.
                TransferredBytes(if in_place || root == THIS_PROCESS { 0 } else { block(1, 2) }, received, in_place)
            }
            Effect::Scatter | Effect::Scatterv => {
                let is_root = am_root();
                let receive = if effect == Effect::Scatter { 3 } else { 4 };
                let in_place = is_root && given.in_place(receive);
                let sent = match (is_root, effect) {
                    (false, _) => 0,
                    (true, Effect::Scatter) => block(1, 2),
                    (true, _) => sum(1, 3, false),
                };
                let nothing = in_place || root == THIS_PROCESS;
                TransferredBytes(sent, if nothing { 0 } else { block(receive + 1, receive + 2) }, in_place)
            }
            Effect::Allgather | Effect::Alltoall => {
                let in_place = given.in_place(0);
                TransferredBytes(if in_place { 0 } else { block(1, 2) }, block(4, 5), in_place)
            }
            Effect::Allgatherv => {
                let in_place = given.in_place(0);
                TransferredBytes(if in_place { 0 } else { block(1, 2) }, sum(4, 6, false), in_place)
            }
            Effect::Alltoallv | Effect::Alltoallw => {
                let in_place = given.in_place(0);
                let per_type = effect == Effect::Alltoallw;
                TransferredBytes(if in_place { 0 } else { sum(1, 3, per_type) }, sum(5, 7, per_type), in_place)
            }
            Effect::ReduceScatter => {
                let mine = match given.count_at(2, session.rank_in(comm)) {
                    0 => 0,
                    count => count * given.size(3),
                };
                TransferredBytes(sum(2, 3, false), mine, given.in_place(0))
            }
            Effect::Reduce | Effect::Allreduce | Effect::ReduceScatterBlock | Effect::Scan | Effect::Exscan => {
                // A reduction whose buffers are of no use here (Reduce on another than the root) has both all the same.
                TransferredBytes(block(2, 3), block(2, 3), given.in_place(0))
            }
            _ => TransferredBytes(0, 0, false),
        }
    }
}
