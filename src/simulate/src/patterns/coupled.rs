//! Two groups of processes that are coupled by an inter-communicator: pairs exchange messages in every step, and now and then all take part in a
//! collective operation, of which each group waits for the other one only.

use super::Work;
use super::communicators::INTER;
use crate::engine::{CollectiveCall, NO_ROOT, Op, Process, Transfer};
use clc_trace::{CollectiveOp, MpiRank, Root};

/// State of the pattern.
#[derive(Debug)]
pub(crate) struct Coupled {
    /// Processes in the first group; the others are in the second one, which is as large or larger by one.
    first: usize,
}

impl Coupled {
    pub(super) fn new(ranks: u32) -> Self {
        Coupled { first: ranks as usize / 2 }
    }

    pub(super) fn step(&self, work: &Work, number: u64, processes: &mut [Process]) {
        for (rank, process) in processes.iter_mut().enumerate() {
            work.compute(rank, process);
            let own = if rank < self.first { rank } else { rank - self.first };
            if own < self.first {
                let other = if rank < self.first { rank + self.first } else { own };
                let (process_there, peer) = (MpiRank(other as u32), own as u32);
                let message = Transfer { process: process_there, peer, comm: INTER, tag: 3, bytes: work.bytes };
                process.program.push(Op::Sendrecv(message, message));
            }
            let operation = match number % 8 {
                1 => Some(CollectiveOp::BCAST),
                3 => Some(CollectiveOp::ALLREDUCE),
                7 => Some(CollectiveOp::BARRIER),
                _ => None,
            };
            process.program.extend(operation.map(|op| self.collective(op, rank)));
        }
    }

    /// The first process of the first group is the root of all.
    fn collective(&self, op: CollectiveOp, rank: usize) -> Op {
        let (sent, received, root, recorded) = match op {
            CollectiveOp::BARRIER => (0, 0, NO_ROOT, Root::None),
            CollectiveOp::BCAST if rank == 0 => (8, 0, 0, Root::ThisProcess),
            CollectiveOp::BCAST if rank < self.first => (0, 0, 0, Root::OwnGroup),
            CollectiveOp::BCAST => (0, 8, 0, Root::Rank(0)),
            _ => (8, 8, NO_ROOT, Root::None),
        };
        Op::Inter(CollectiveCall { op, comm: INTER, rank: rank as u32, root, sent, received }, recorded)
    }
}
