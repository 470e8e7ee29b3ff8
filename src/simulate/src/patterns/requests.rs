//! Requests: in a chain of processes each asks the next one for data with a short message, and gets a long answer. So traffic one way takes longer than the
//! other way.

use super::Work;
use crate::engine::{Op, Process, Transfer, WaitOrder};

const REQUEST: u32 = 1;
const ANSWER: u32 = 2;
/// Length of a request in bytes.
const SHORT: u64 = 64;

pub(super) fn step(work: &Work, processes: &mut [Process]) {
    let ranks = work.ranks();
    for (rank, process) in processes.iter_mut().enumerate() {
        work.compute(rank, process);
        let (before, next) = (rank.checked_sub(1), Some(rank + 1).filter(|next| *next < ranks));
        if let Some(next) = next {
            process.program.push(Op::Send(Transfer::world(next, REQUEST, SHORT)));
        }
        if let Some(before) = before {
            process.program.push(Op::Recv(Transfer::world(before, REQUEST, SHORT)));
            process.program.push(Op::Isend(Transfer::world(before, ANSWER, work.bytes)));
        }
        if let Some(next) = next {
            process.program.push(Op::Recv(Transfer::world(next, ANSWER, work.bytes)));
        }
        if before.is_some() {
            process.program.push(Op::WaitAll(WaitOrder::Posted));
        }
    }
}
