//! Pipeline: every stage receives from the one before, computes, and passes on. Every 16th item is too large for eager
//! transfer, so that a fast stage cannot run away from a slow one. With synchronous sends none can, and none gives back a message.

use super::Work;
use crate::engine::{Op, Process, Transfer};

/// Above every eager limit that is in use.
const LARGE: u64 = 1 << 20;

pub(super) fn step(work: &Work, number: u64, processes: &mut [Process], synchronous: bool) {
    let ranks = work.ranks();
    let bytes = if number % 16 == 15 { LARGE.max(work.bytes) } else { work.bytes };
    for (rank, process) in processes.iter_mut().enumerate() {
        if rank > 0 {
            process.program.push(Op::Recv(Transfer::world(rank - 1, 7, bytes)));
        }
        work.compute(rank, process);
        if rank + 1 < ranks {
            let to = Transfer::world(rank + 1, 7, bytes);
            process.program.push(if synchronous { Op::Ssend(to) } else { Op::Send(to) });
        }
    }
}
