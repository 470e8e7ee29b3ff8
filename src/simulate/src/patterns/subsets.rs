//! Subsets: many communicators of few members, as programs have that split the world along several axes and again. Each step uses
//! a sixteenth of them, one after the other: a collective, and in every second step a message around its members.

use super::{Family, Work};
use crate::engine::{CollectiveCall, NO_ROOT, Op, Process, Transfer, collective_bytes};
use clc_trace::CollectiveOp;

/// The operations, in turns: one of every class that constrains.
const OPERATIONS: [CollectiveOp; 5] =
    [CollectiveOp::ALLREDUCE, CollectiveOp::BCAST, CollectiveOp::REDUCE, CollectiveOp::BARRIER, CollectiveOp::SCAN];
/// Steps in which every communicator is used once. Chosen by hand: with more, a short run leaves communicators unused; with fewer, a step holds too
/// many operations.
const STEPS: usize = 16;

/// State of the pattern.
#[derive(Debug)]
pub(crate) struct Subsets {
    /// The world is the first family, the subsets are the second.
    families: Vec<Family>,
}

impl Subsets {
    pub(super) fn new(families: Vec<Family>) -> Self {
        Subsets { families }
    }

    pub(super) fn step(&self, work: &Work, number: u64, processes: &mut [Process]) {
        for (rank, process) in processes.iter_mut().enumerate() {
            work.compute(rank, process);
        }
        let comms = self.families.get(1).map_or(&[][..], |family| &family.comms);
        let turn = number as usize % STEPS;
        let part = comms.len() * turn / STEPS..comms.len() * (turn + 1) / STEPS;
        for (comm, members) in &comms[part] {
            let op = OPERATIONS[(number as usize + *comm as usize) % OPERATIONS.len()];
            let size = members.len() as u32;
            let rooted = matches!(op, CollectiveOp::BCAST | CollectiveOp::REDUCE);
            let root = if rooted { (number as u32 + comm) % size } else { NO_ROOT };
            let bytes = if op == CollectiveOp::BARRIER { 0 } else { 8 };
            for (&process, rank) in members.iter().zip(0u32..) {
                let total = u64::from(size) * bytes;
                let (sent, received) = collective_bytes((op, root), rank, u64::from(size), bytes, bytes, total);
                let program = &mut processes[process].program;
                program.push(Op::Collective(CollectiveCall { op, comm: *comm, rank, root, sent, received }));
                if number % 2 == 1 {
                    let at = |peer: u32| Transfer {
                        process: members[peer as usize],
                        peer,
                        comm: *comm,
                        tag: 7,
                        bytes: work.bytes,
                    };
                    program.push(Op::Sendrecv(at((rank + 1) % size), at((rank + size - 1) % size)));
                }
            }
        }
    }
}
