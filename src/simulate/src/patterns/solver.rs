//! An iterative solver: exchange with two neighbours in every step, and the collective operations such programs have beside it. The residual is
//! summed every few steps, roots that change hand out parameters, the first process gathers results, and sometimes all meet.

use super::Work;
use super::halo::ProcessGrid;
use crate::engine::{CollectiveCall, NO_ROOT, Op, Process, collective_bytes};
use clc_trace::CollectiveOp;

/// Every so many steps: the residual, parameters, results, all at one point.
const RESIDUAL: u64 = 10;
const PARAMETERS: u64 = 40;
const RESULTS: u64 = 100;
const MEETING: u64 = 200;
/// Bytes of a residual and of the parameters.
const NUMBER: u64 = 8;
const TABLE: u64 = 1024;

/// The chain of processes.
#[derive(Debug, Clone)]
pub(crate) struct Solver(ProcessGrid);

impl Solver {
    pub(super) fn new(ranks: u32) -> Self {
        Solver(ProcessGrid::new(ranks, 1))
    }

    pub(super) fn step(&self, work: &Work, number: u64, processes: &mut [Process]) {
        self.0.step(work, number, processes, Work::compute);
        let size = processes.len() as u64;
        let mut collective = |op: CollectiveOp, root: u32, bytes: u64| {
            for (rank, process) in (0..).zip(processes.iter_mut()) {
                let (sent, received) = collective_bytes((op, root), rank, size, bytes, bytes, bytes * size);
                process.program.push(Op::Collective(CollectiveCall { op, comm: 0, rank, root, sent, received }));
            }
        };
        if number.is_multiple_of(RESIDUAL) {
            collective(CollectiveOp::ALLREDUCE, NO_ROOT, NUMBER);
        }
        if number % PARAMETERS == PARAMETERS / 2 {
            collective(CollectiveOp::BCAST, (number / PARAMETERS % size) as u32, TABLE);
        }
        if number % RESULTS == RESULTS / 2 {
            collective(CollectiveOp::REDUCE, 0, NUMBER);
            collective(CollectiveOp::GATHER, 0, TABLE);
        }
        if number % MEETING == MEETING - 1 {
            collective(CollectiveOp::BARRIER, NO_ROOT, 0);
        }
    }
}
