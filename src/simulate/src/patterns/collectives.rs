//! Nothing but collective operations: a sum in every step, an exchange of all with all in some, and parameters from the first process now and then. Where the
//! processes have different amounts of work, the same few of them always come last.

use super::Work;
use crate::engine::{CollectiveCall, NO_ROOT, Op, Process, collective_bytes};
use clc_trace::CollectiveOp;

/// Every so many steps all exchange with all, and the first process hands out parameters. Chosen by hand: rare, as in programs that redistribute data
/// and read input; often enough for short runs to have both.
const EXCHANGE: u64 = 5;
const PARAMETERS: u64 = 20;

pub(super) fn step(work: &Work, number: u64, processes: &mut [Process]) {
    let size = work.ranks() as u64;
    for (rank, process) in processes.iter_mut().enumerate() {
        work.compute(rank, process);
        let mut collective = |op: CollectiveOp, root: u32| {
            let rank = rank as u32;
            let (sent, received) = collective_bytes((op, root), rank, size, work.bytes, work.bytes, work.bytes * size);
            process.program.push(Op::Collective(CollectiveCall { op, comm: 0, rank, root, sent, received }));
        };
        collective(CollectiveOp::ALLREDUCE, NO_ROOT);
        if number % EXCHANGE == EXCHANGE - 1 {
            collective(CollectiveOp::ALLTOALL, NO_ROOT);
        }
        if number % PARAMETERS == PARAMETERS - 1 {
            collective(CollectiveOp::BCAST, 0);
        }
    }
}
