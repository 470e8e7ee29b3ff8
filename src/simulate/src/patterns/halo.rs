//! Halo exchange on a grid of one to three dimensions: receives and sends are non-blocking, receives are posted in an
//! order that changes from step to step, and complete in another order than posted.

use super::Work;
use crate::engine::{Op, Process, Transfer, WaitOrder};

/// A process grid, filled row by row; the last row and plane may be incomplete, so any number of ranks will do.
#[derive(Debug, Clone)]
pub(crate) struct ProcessGrid {
    ranks: usize,
    dimensions: usize,
    /// Distance in ranks between neighbours of each axis.
    strides: [usize; 4],
}

impl ProcessGrid {
    pub(super) fn new(ranks: u32, dimensions: usize) -> Self {
        let ranks = ranks as usize;
        // The smallest width whose power holds all ranks.
        let mut width = 1usize;
        while dimensions > 1 && width.saturating_pow(dimensions as u32) < ranks {
            width += 1;
        }
        let strides = if dimensions == 1 { [1, ranks, ranks, ranks] } else { [1, width, width * width, ranks] };
        ProcessGrid { ranks, dimensions, strides }
    }

    /// The neighbour of a process along an axis, if there is one; the grid has open boundaries.
    pub(super) fn neighbour(&self, rank: usize, axis: usize, up: bool) -> Option<usize> {
        let stride = self.strides[axis];
        // The last axis ends where the ranks end, the others at the next stride.
        let last = axis + 1 == self.dimensions;
        let row = if last { 0 } else { rank / self.strides[axis + 1] * self.strides[axis + 1] };
        let end = if last { self.ranks } else { (row + self.strides[axis + 1]).min(self.ranks) };
        if up {
            Some(rank + stride).filter(|&peer| peer < end)
        } else {
            rank.checked_sub(stride).filter(|&peer| peer >= row)
        }
    }

    /// Posts receives, does what `compute` adds to the program, sends, waits.
    pub(super) fn step(
        &self,
        work: &Work,
        number: u64,
        processes: &mut [Process],
        compute: impl Fn(&Work, usize, &mut Process),
    ) {
        let directions = 2 * self.dimensions;
        for (rank, process) in processes.iter_mut().enumerate() {
            let turn = process.random.below(directions as u64) as usize;
            let mut any = false;
            for i in 0..directions {
                let direction = (i + turn) % directions;
                if let Some(peer) = self.neighbour(rank, direction / 2, direction % 2 == 1) {
                    // Tags name the direction in which the data travel, so what comes from above travels down.
                    let message = Transfer::world(peer, (direction ^ 1) as u32, work.bytes);
                    process.program.push(Op::Irecv(message));
                    any = true;
                }
            }
            compute(work, rank, process);
            for direction in 0..directions {
                if let Some(peer) = self.neighbour(rank, direction / 2, direction % 2 == 1) {
                    process.program.push(Op::Isend(Transfer::world(peer, direction as u32, work.bytes)));
                }
            }
            if any {
                let order = [WaitOrder::Reversed, WaitOrder::Completion, WaitOrder::Posted][(number % 3) as usize];
                process.program.push(Op::WaitAll(order));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_mutual_and_all_ranks_are_connected() {
        for ranks in 1..70u32 {
            for dimensions in 1..=3 {
                let grid = ProcessGrid::new(ranks, dimensions);
                for rank in 0..ranks as usize {
                    let mut lower = false;
                    for axis in 0..dimensions {
                        if let Some(peer) = grid.neighbour(rank, axis, true) {
                            assert!(peer > rank && peer < ranks as usize);
                            assert_eq!(grid.neighbour(peer, axis, false), Some(rank));
                        }
                        if let Some(peer) = grid.neighbour(rank, axis, false) {
                            lower = true;
                            assert_eq!(grid.neighbour(peer, axis, true), Some(rank));
                        }
                    }
                    assert!(lower || rank == 0, "{ranks} ranks in {dimensions}d: rank {rank} is cut off");
                }
            }
        }
        assert_eq!(ProcessGrid::new(27, 3).neighbour(13, 2, true), Some(22));
    }
}
