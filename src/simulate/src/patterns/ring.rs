//! Ring: every process sends to its right neighbour and receives from its left one, with blocking calls. Even ranks send
//! first, so that messages above the eager limit do not block.

use super::Work;
use crate::engine::{Op, Process, Transfer};

pub(super) fn step(work: &Work, processes: &mut [Process]) {
    let ranks = work.ranks();
    for (rank, process) in processes.iter_mut().enumerate() {
        work.compute(rank, process);
        let send = Op::Send(Transfer::world((rank + 1) % ranks, 0, work.bytes));
        let receive = Op::Recv(Transfer::world((rank + ranks - 1) % ranks, 0, work.bytes));
        process.program.extend(if rank % 2 == 0 { [send, receive] } else { [receive, send] });
    }
}
