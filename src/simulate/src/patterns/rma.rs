//! One-sided halo exchange in a chain of processes: between fences, and in epochs of groups; and a counter that everybody updates under a lock.

use super::Work;
use crate::engine::{CollectiveCall, Engine, Epoch, NO_ROOT, Op, Process};
use crate::sink::EventSink;
use clc_trace::{CollectiveOp, Result};

/// Puts to the neighbours of a process.
fn puts(work: &Work, rank: usize, process: &mut Process) {
    let neighbours = [rank.checked_sub(1), Some(rank + 1).filter(|&next| next < work.ranks())];
    process.program.extend(neighbours.into_iter().flatten().map(|peer| Op::Put(peer as u32, work.bytes)));
}

/// Compute, put, fence.
pub(super) fn fences(work: &Work, processes: &mut [Process]) {
    for (rank, process) in processes.iter_mut().enumerate() {
        work.compute(rank, process);
        puts(work, rank, process);
        process.program.push(Op::Fence);
    }
}

/// Post and start, compute, put, complete and wait.
pub(super) fn groups(work: &Work, processes: &mut [Process]) {
    for (rank, process) in processes.iter_mut().enumerate() {
        process.program.extend([Op::Epoch(Epoch::Post), Op::Epoch(Epoch::Start)]);
        work.compute(rank, process);
        puts(work, rank, process);
        process.program.extend([Op::Epoch(Epoch::Complete), Op::Epoch(Epoch::Wait)]);
    }
}

/// Locks of all targets.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// From when on each is free.
    free: Vec<i64>,
}

impl Targets {
    /// All compute, then lock the memory of one of them in the order in which they come, then meet in a barrier.
    pub(super) fn step<S: EventSink + ?Sized>(&mut self, work: &Work, engine: &mut Engine<'_, S>) -> Result<()> {
        self.free.resize(work.ranks(), 0);
        for rank in 0..work.ranks() {
            work.compute(rank, &mut engine.processes[rank]);
        }
        engine.run_step()?;
        let target = engine.processes[0].random.below(work.ranks() as u64) as u32;
        for rank in engine.in_order() {
            let free = self.free[target as usize];
            self.free[target as usize] = engine.locked_put(rank, target, 8, free)?;
        }
        for (rank, process) in engine.processes.iter_mut().enumerate() {
            let (op, rank) = (CollectiveOp::BARRIER, rank as u32);
            process.program.push(Op::Collective(CollectiveCall {
                op,
                comm: 0,
                rank,
                root: NO_ROOT,
                sent: 0,
                received: 0,
            }));
        }
        engine.run_step()
    }
}
