//! Random sparse communication: in every step each process sends to up to three random others, without blocking.

use super::Work;
use crate::engine::{Op, Process, Transfer, WaitOrder};
use crate::random::Random;

/// Most messages that a process sends per step. Chosen by hand: few, so that most pairs of processes have no messages in a step; more synchronise all
/// with all.
const DEGREE: u32 = 3;

/// The random partners of a step.
#[derive(Debug)]
pub(crate) struct Pairs {
    random: Random,
    /// Receiver of each sender and sender of each receiver: permutations, so that all have the same work.
    to: Vec<usize>,
    from: Vec<usize>,
}

impl Pairs {
    pub(super) fn new(ranks: u32, random: Random) -> Self {
        let identity: Vec<usize> = (0..ranks as usize).collect();
        Pairs { random, to: identity.clone(), from: identity }
    }

    pub(super) fn step(&mut self, work: &Work, processes: &mut [Process]) {
        let ranks = processes.len();
        for (rank, process) in processes.iter_mut().enumerate() {
            work.compute(rank, process);
        }
        for tag in 0..DEGREE {
            for i in (1..ranks).rev() {
                self.to.swap(i, self.random.below(i as u64 + 1) as usize);
            }
            for (sender, &receiver) in self.to.iter().enumerate() {
                self.from[receiver] = sender;
            }
            // Every fourth message is left out, sizes vary from 0 to the typical size.
            let salt = self.random.next();
            let size = |sender: usize| {
                let draw = Random::new(salt, &[sender as u64]).next();
                (draw & 3 != 0).then(|| ((u128::from(work.bytes + 1) * u128::from(draw >> 32)) >> 32) as u64)
            };
            for (rank, process) in processes.iter_mut().enumerate() {
                let (to, from) = (self.to[rank], self.from[rank]);
                if let Some(bytes) = size(from).filter(|_| from != rank) {
                    process.program.push(Op::Irecv(Transfer::world(from, tag, bytes)));
                }
                if let Some(bytes) = size(rank).filter(|_| to != rank) {
                    process.program.push(Op::Isend(Transfer::world(to, tag, bytes)));
                }
            }
        }
        for process in processes.iter_mut() {
            if process.program.len() > 1 {
                process.program.push(Op::WaitAll(WaitOrder::Completion));
            }
        }
    }
}
