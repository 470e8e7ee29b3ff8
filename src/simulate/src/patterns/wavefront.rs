//! Wavefront: a sweep over a two-dimensional process grid. Each process receives from its two upstream neighbours,
//! computes, and sends downstream; successive steps start from different corners.

use super::Work;
use super::halo::ProcessGrid;
use crate::engine::{Op, Process, Transfer};

pub(super) fn step(work: &Work, number: u64, processes: &mut [Process]) {
    let grid = ProcessGrid::new(work.ranks() as u32, 2);
    // Directions of the sweep in x and y.
    let forward = [number.is_multiple_of(2), (number / 2).is_multiple_of(2)];
    for (rank, process) in processes.iter_mut().enumerate() {
        let message = |peer: usize, axis: usize| Transfer::world(peer, axis as u32, work.bytes);
        for (axis, &up) in forward.iter().enumerate() {
            if let Some(peer) = grid.neighbour(rank, axis, !up) {
                process.program.push(Op::Recv(message(peer, axis)));
            }
        }
        work.compute(rank, process);
        for (axis, &up) in forward.iter().enumerate() {
            if let Some(peer) = grid.neighbour(rank, axis, up) {
                process.program.push(Op::Send(message(peer, axis)));
            }
        }
    }
}
