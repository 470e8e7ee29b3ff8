//! Butterfly: MPI_Sendrecv with the partner at distance 1, 2, 4, ... as recursive doubling does.

use super::Work;
use crate::engine::{Op, Process, Transfer};

pub(super) fn step(work: &Work, processes: &mut [Process]) {
    let ranks = work.ranks();
    for (rank, process) in processes.iter_mut().enumerate() {
        work.compute(rank, process);
        let mut distance = 1;
        while distance < ranks {
            let partner = rank ^ distance;
            // With a number of ranks that is no power of two, some have no partner in some stages.
            if partner < ranks {
                let exchange = Transfer::world(partner, distance as u32, work.bytes);
                process.program.push(Op::Sendrecv(exchange, exchange));
            }
            distance *= 2;
        }
    }
}
