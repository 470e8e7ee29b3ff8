//! What the simulated applications do. A pattern fills every process's program for one step; `mix` uses every kind of
//! operation, the others are the communication skeletons of well-known applications.

mod alltoall;
mod butterfly;
mod collectives;
mod communicators;
mod coupled;
mod halo;
mod master_worker;
mod mix;
mod pipeline;
mod random_sparse;
mod requests;
mod ring;
mod rma;
mod solver;
mod subsets;
mod wavefront;

pub(super) use communicators::{COMM_SELF, Family, communicators};

use crate::engine::{Engine, Op, Process};
use crate::random::Random;
use crate::sink::EventSink;
use clc_trace::{Error, Result};
use std::str::FromStr;

/// Domain of the random streams of patterns and of the imbalance.
const PATTERNS: u64 = 3;
const IMBALANCE: u64 = 4;

macro_rules! patterns {
    ($($(#[$doc:meta])* $kind:ident $name:literal $least:literal,)*) => {
        /// An application pattern.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum PatternKind { $($(#[$doc])* $kind,)* }

        impl PatternKind {
            /// All patterns.
            pub const ALL: &[PatternKind] = &[$(PatternKind::$kind,)*];

            /// Its name, as users write it.
            pub fn name(self) -> &'static str {
                match self { $(PatternKind::$kind => $name,)* }
            }

            /// The smallest number of ranks that it runs on.
            pub fn least_ranks(self) -> u32 {
                match self { $(PatternKind::$kind => $least,)* }
            }
        }
    };
}

patterns! {
    /// Blocking messages around a ring.
    Ring "ring" 2,
    /// Non-blocking exchange with two neighbours.
    Halo1d "halo1d" 2,
    /// Non-blocking exchange with four neighbours.
    Halo2d "halo2d" 4,
    /// Non-blocking exchange with six neighbours.
    Halo3d "halo3d" 8,
    /// An iterative solver: exchange with two neighbours and several kinds of collective operations.
    Solver "solver" 2,
    /// Nothing but collective operations.
    Collectives "collectives" 2,
    /// Sweeps over a two-dimensional grid from its corners.
    Wavefront "wavefront" 4,
    /// Rank 0 hands out tasks and takes results from any source.
    MasterWorker "master-worker" 2,
    /// Exchanges at doubling distances.
    Butterfly "butterfly" 2,
    /// Everyone asks a neighbour for data: short requests, long answers.
    Requests "requests" 2,
    /// Messages between random pairs.
    RandomSparse "random" 2,
    /// Everyone with everyone: collective and pairwise.
    Alltoall "alltoall" 2,
    /// Stages that pass work on.
    Pipeline "pipeline" 2,
    /// Every class of operation, on world and sub-communicators.
    Mix "mix" 2,
    /// Collectives and messages on many small communicators that overlap.
    Subsets "subsets" 2,
    /// Two groups of processes that work on their own and exchange data on an inter-communicator.
    Coupled "coupled" 2,
    /// Stages that pass work on by synchronous sends.
    SsendPipeline "ssend-pipeline" 2,
    /// Puts to two neighbours between fences.
    RmaFence "rma-fence" 2,
    /// Puts to two neighbours within post, start, complete and wait.
    RmaPscw "rma-pscw" 2,
    /// Puts to a common target under exclusive locks, and a barrier.
    RmaLock "rma-lock" 2,
    /// Non-blocking exchange with two neighbours; in between, teams of OpenMP threads compute.
    Hybrid "hybrid" 2,
    /// Non-blocking exchange with two neighbours; in between, accelerators compute.
    Offload "offload" 2,
}

impl PatternKind {
    /// Whether processes access each other's memory.
    pub(crate) fn has_window(self) -> bool {
        matches!(self, PatternKind::RmaFence | PatternKind::RmaPscw | PatternKind::RmaLock)
    }

    /// Whether there are synchronous sends or windows.
    pub(crate) fn is_beyond_messages(self) -> bool {
        self.has_window() || self == PatternKind::SsendPipeline
    }

    /// Whether further locations of a process do more than to compute.
    pub(crate) fn has_parts(self) -> bool {
        matches!(self, PatternKind::Hybrid | PatternKind::Offload)
    }
}

impl FromStr for PatternKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        PatternKind::ALL.iter().copied().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<&str> = PatternKind::ALL.iter().map(|kind| kind.name()).collect();
            Error::new(format!("unknown pattern '{text}'")).hint(format!("patterns: {}", names.join(", ")))
        })
    }
}

/// What all patterns know about the run.
#[derive(Debug, Clone)]
pub(super) struct Work {
    /// Mean computation per step of each process, in picoseconds: the static imbalance.
    compute: Vec<i64>,
    /// Size of a typical message.
    bytes: u64,
}

impl Work {
    /// `compute` picoseconds on average, up to the share `imbalance` more or less per process.
    pub(super) fn new(ranks: u32, compute: i64, imbalance: f64, bytes: u64, seed: u64) -> Self {
        let mut random = Random::new(seed, &[IMBALANCE]);
        let share = |random: &mut Random| (compute as f64 * (1.0 + imbalance * random.symmetric())) as i64;
        Work { compute: (0..ranks).map(|_| share(&mut random)).collect(), bytes }
    }

    fn ranks(&self) -> usize {
        self.compute.len()
    }

    /// The computation of one step of a process: 75 % to 125 % of its mean.
    fn duration(&self, rank: usize, random: &mut Random) -> i64 {
        let mean = self.compute[rank];
        mean - mean / 4 + random.below((mean / 2).max(0) as u64) as i64
    }

    fn compute(&self, rank: usize, process: &mut Process) {
        let duration = self.duration(rank, &mut process.random);
        process.program.push(Op::Compute(duration));
    }
}

/// A pattern in progress.
pub(super) enum Pattern {
    Ring,
    Halo(halo::ProcessGrid),
    Solver(solver::Solver),
    Collectives,
    Wavefront,
    MasterWorker(master_worker::Tasks),
    Butterfly,
    Requests,
    RandomSparse(random_sparse::Pairs),
    Alltoall,
    Pipeline,
    Mix(Box<mix::Mix>),
    Subsets(subsets::Subsets),
    Coupled(coupled::Coupled),
    SsendPipeline,
    RmaFence,
    RmaPscw,
    RmaLock(rma::Targets),
    /// The grid, and whether accelerators compute.
    Parts(halo::ProcessGrid, bool),
}

impl Pattern {
    pub(super) fn new(kind: PatternKind, ranks: u32, families: Vec<Family>, seed: u64) -> Self {
        let random = Random::new(seed, &[PATTERNS]);
        match kind {
            PatternKind::Ring => Pattern::Ring,
            PatternKind::Halo1d => Pattern::Halo(halo::ProcessGrid::new(ranks, 1)),
            PatternKind::Halo2d => Pattern::Halo(halo::ProcessGrid::new(ranks, 2)),
            PatternKind::Halo3d => Pattern::Halo(halo::ProcessGrid::new(ranks, 3)),
            PatternKind::Solver => Pattern::Solver(solver::Solver::new(ranks)),
            PatternKind::Collectives => Pattern::Collectives,
            PatternKind::Wavefront => Pattern::Wavefront,
            PatternKind::MasterWorker => Pattern::MasterWorker(master_worker::Tasks::default()),
            PatternKind::Butterfly => Pattern::Butterfly,
            PatternKind::Requests => Pattern::Requests,
            PatternKind::RandomSparse => Pattern::RandomSparse(random_sparse::Pairs::new(ranks, random)),
            PatternKind::Alltoall => Pattern::Alltoall,
            PatternKind::Pipeline => Pattern::Pipeline,
            PatternKind::Mix => Pattern::Mix(Box::new(mix::Mix::new(families, random))),
            PatternKind::Subsets => Pattern::Subsets(subsets::Subsets::new(families)),
            PatternKind::Coupled => Pattern::Coupled(coupled::Coupled::new(ranks)),
            PatternKind::SsendPipeline => Pattern::SsendPipeline,
            PatternKind::RmaFence => Pattern::RmaFence,
            PatternKind::RmaPscw => Pattern::RmaPscw,
            PatternKind::RmaLock => Pattern::RmaLock(rma::Targets::default()),
            PatternKind::Hybrid => Pattern::Parts(halo::ProcessGrid::new(ranks, 1), false),
            PatternKind::Offload => Pattern::Parts(halo::ProcessGrid::new(ranks, 1), true),
        }
    }

    /// Simulates step `number` of all processes.
    pub(super) fn step<S>(&mut self, work: &Work, number: u64, engine: &mut Engine<'_, S>) -> Result<()>
    where
        S: EventSink + ?Sized,
    {
        let processes = &mut engine.processes;
        match self {
            Pattern::Ring => ring::step(work, processes),
            Pattern::Halo(grid) => grid.step(work, number, processes, Work::compute),
            Pattern::Parts(grid, offload) => {
                let offload = *offload;
                grid.step(work, number, processes, |work, rank, process| {
                    let duration = work.duration(rank, &mut process.random);
                    let op = if offload { Op::Offload(duration, work.bytes) } else { Op::Team(duration) };
                    process.program.push(op);
                });
            }
            Pattern::Solver(solver) => solver.step(work, number, processes),
            Pattern::Collectives => collectives::step(work, number, processes),
            Pattern::Wavefront => wavefront::step(work, number, processes),
            Pattern::MasterWorker(tasks) => return tasks.step(work, engine),
            Pattern::Butterfly => butterfly::step(work, processes),
            Pattern::Requests => requests::step(work, processes),
            Pattern::RandomSparse(pairs) => pairs.step(work, processes),
            Pattern::Alltoall => alltoall::step(work, number, processes),
            Pattern::Pipeline => pipeline::step(work, number, processes, false),
            Pattern::SsendPipeline => pipeline::step(work, number, processes, true),
            Pattern::Coupled(coupled) => coupled.step(work, number, processes),
            Pattern::RmaFence => rma::fences(work, processes),
            Pattern::RmaPscw => rma::groups(work, processes),
            Pattern::RmaLock(targets) => return targets.step(work, engine),
            Pattern::Subsets(subsets) => subsets.step(work, number, processes),
            Pattern::Mix(mix) => {
                engine.ties = number % 3 == 2;
                mix.step(work, number, &mut engine.processes);
            }
        }
        engine.run_step()
    }

    /// Brings the pattern to its end after the last step.
    pub(super) fn finish<S>(&mut self, work: &Work, engine: &mut Engine<'_, S>) -> Result<()>
    where
        S: EventSink + ?Sized,
    {
        match self {
            Pattern::MasterWorker(tasks) => tasks.finish(work, engine),
            _ => Ok(()),
        }
    }
}
