//! Mix: every class of operation on every kind of communicator. Collectives of all kinds, blocking and not, with changing
//! roots and members that send or receive nothing; messages of one channel that overtake each other on completion; empty
//! messages, tests, cancelled receives; in every third step recording takes no time, so that events have equal times.

use super::{COMM_SELF, Family, Work};
use crate::engine::{CollectiveCall, NO_ROOT, Op, Process, Transfer, WaitOrder, collective_bytes};
use crate::random::Random;
use clc_trace::CollectiveOp;

/// Number of collective operations that move data or synchronise (OTF2 numbers 0 to 16).
const OPERATIONS: u64 = 17;
/// Collectives per step. Chosen by hand: with fewer, short runs do not come to all 17 operations; with more, messages between them are few.
const PER_STEP: u64 = 4;
/// A tag that nobody sends with.
const NEVER: u32 = 999;
/// Sizes of contributions to collectives. Chosen by hand: nothing, usual ones, and some that take longer than a latency.
const SIZES: [u64; 5] = [8, 4, 1024, 0, 100_000];

/// State of the pattern: the draws that all processes share.
#[derive(Debug)]
pub(crate) struct Mix {
    families: Vec<Family>,
    random: Random,
}

impl Mix {
    pub(super) fn new(families: Vec<Family>, random: Random) -> Self {
        Mix { families, random }
    }

    pub(super) fn step(&mut self, work: &Work, number: u64, processes: &mut [Process]) {
        for i in 0..PER_STEP {
            for (rank, process) in processes.iter_mut().enumerate() {
                work.compute(rank, process);
            }
            let op = CollectiveOp(((number * PER_STEP + i) % OPERATIONS) as u8);
            self.collective(op, processes);
        }
        let family = self.random.below(self.families.len() as u64) as usize;
        match number % 4 {
            0 => self.overtaking(work, family, processes),
            1 => self.shift(work, family, processes),
            2 => self.requests(work, processes),
            _ => self.on_self(processes),
        }
    }

    /// One collective on every communicator of a random family.
    fn collective(&mut self, op: CollectiveOp, processes: &mut [Process]) {
        let draw = self.random.next();
        let non_blocking = draw & 3 == 0;
        let bytes = SIZES[(draw >> 8) as usize % SIZES.len()];
        let family = &self.families[(draw >> 16) as usize % self.families.len()];
        let rooted = matches!(
            op,
            CollectiveOp::BCAST
                | CollectiveOp::GATHER
                | CollectiveOp::GATHERV
                | CollectiveOp::SCATTER
                | CollectiveOp::SCATTERV
                | CollectiveOp::REDUCE
        );
        let variable = matches!(
            op,
            CollectiveOp::GATHERV
                | CollectiveOp::SCATTERV
                | CollectiveOp::ALLGATHERV
                | CollectiveOp::ALLTOALLV
                | CollectiveOp::ALLTOALLW
                | CollectiveOp::REDUCE_SCATTER
        );
        for (comm, members) in &family.comms {
            let size = members.len() as u64;
            let root = if rooted { ((draw >> 32) % size) as u32 } else { NO_ROOT };
            // With variable counts, about a third of the members contribute nothing.
            let own = |rank: u64| if variable && (rank + (draw >> 40)).is_multiple_of(3) { 0 } else { bytes };
            let total = (0..size).map(own).sum();
            for (&process, rank) in members.iter().zip(0u32..) {
                let previous = own((u64::from(rank) + size - 1) % size);
                let (sent, received) = collective_bytes((op, root), rank, size, own(u64::from(rank)), previous, total);
                let call = CollectiveCall { op, comm: *comm, rank, root, sent, received };
                let program = &mut processes[process].program;
                if non_blocking {
                    program.extend([Op::NonBlocking(call), Op::Compute(3_000_000), Op::WaitAll(WaitOrder::Posted)]);
                } else {
                    program.push(Op::Collective(call));
                }
            }
        }
    }

    /// Two messages of one channel, a long one and a short one: the short one is complete first, though it matches the
    /// second receive.
    fn overtaking(&mut self, work: &Work, family: usize, processes: &mut [Process]) {
        let long = 200_000 + work.bytes;
        self.around(family, processes, |program, to, from| {
            program.extend([long, 8].map(|bytes| Op::Irecv(Transfer { bytes, ..from })));
            program.extend([long, 8].map(|bytes| Op::Isend(Transfer { bytes, ..to })));
            program.extend([Op::Wait(1), Op::WaitAll(WaitOrder::Completion)]);
        });
    }

    /// MPI_Sendrecv to the next rank of each communicator, now and then with an empty message.
    fn shift(&mut self, work: &Work, family: usize, processes: &mut [Process]) {
        let bytes = if self.random.below(3) == 0 { 0 } else { work.bytes };
        self.around(family, processes, |program, to, from| {
            program.push(Op::Sendrecv(Transfer { bytes, ..to }, Transfer { bytes, ..from }));
        });
    }

    /// Gives every process that has a neighbour in the family a piece of program: messages go to the next rank.
    fn around(&self, family: usize, processes: &mut [Process], add: impl Fn(&mut Vec<Op>, Transfer, Transfer)) {
        let family = &self.families[family];
        for (process, place) in processes.iter_mut().zip(&family.places) {
            let Some((comm, rank)) = *place else { continue };
            let Some((_, members)) = family.comms.iter().find(|(index, _)| *index == comm) else { continue };
            let size = members.len() as u32;
            if size < 2 {
                continue;
            }
            let at = |peer: u32| Transfer { process: members[peer as usize], peer, comm, tag: 42, bytes: 0 };
            add(&mut process.program, at((rank + 1) % size), at((rank + size - 1) % size));
        }
    }

    /// A receive that is cancelled and a test without success, beside an exchange between neighbours in pairs.
    fn requests(&mut self, work: &Work, processes: &mut [Process]) {
        let ranks = processes.len();
        for (rank, process) in processes.iter_mut().enumerate() {
            let partner = rank ^ 1;
            if partner >= ranks {
                continue;
            }
            process.program.extend([
                Op::Irecv(Transfer::world(partner, NEVER, 8)),
                Op::Irecv(Transfer::world(partner, 5, work.bytes)),
                Op::Test(1),
                Op::Isend(Transfer::world(partner, 5, work.bytes)),
                Op::Cancel(0),
                Op::WaitAll(WaitOrder::Reversed),
            ]);
        }
    }

    /// A collective on MPI_COMM_SELF, which synchronises nobody.
    fn on_self(&mut self, processes: &mut [Process]) {
        let op = CollectiveOp::ALLREDUCE;
        for process in processes {
            let call = CollectiveCall { op, comm: COMM_SELF, rank: 0, root: NO_ROOT, sent: 8, received: 8 };
            process.program.push(Op::Collective(call));
        }
    }
}
