//! All to all: MPI_Alltoall, and in every fourth step the same with one non-blocking message per pair.

use super::Work;
use crate::engine::{CollectiveCall, NO_ROOT, Op, Process, Transfer, WaitOrder, collective_bytes};
use clc_trace::CollectiveOp;

pub(super) fn step(work: &Work, number: u64, processes: &mut [Process]) {
    let ranks = work.ranks();
    let op = CollectiveOp::ALLTOALL;
    for (rank, process) in processes.iter_mut().enumerate() {
        work.compute(rank, process);
        if number % 4 != 3 {
            let (sent, received) = collective_bytes((op, NO_ROOT), rank as u32, ranks as u64, work.bytes, 0, 0);
            let call = CollectiveCall { op, comm: 0, rank: rank as u32, root: NO_ROOT, sent, received };
            process.program.push(Op::Collective(call));
            continue;
        }
        for distance in 1..ranks {
            process.program.push(Op::Irecv(Transfer::world((rank + distance) % ranks, 0, work.bytes)));
        }
        for distance in 1..ranks {
            process.program.push(Op::Isend(Transfer::world((rank + ranks - distance) % ranks, 0, work.bytes)));
        }
        process.program.push(Op::WaitAll(WaitOrder::Reversed));
    }
}
