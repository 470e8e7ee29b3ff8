//! What the threads of OpenMP of a process are doing, while its records are read ([`crate::recording::events::openmp`]).

use clc_trace::{CommId, ThreadTask};
use std::collections::HashMap;

/// A parallel region that a thread has begun.
#[derive(Debug)]
pub(crate) struct OpenParallel {
    pub(super) region: u64,
    pub(super) team: Option<CommId>,
    /// So many regions it was in before.
    pub(super) depth: usize,
}

/// A team that a thread is in.
#[derive(Debug)]
pub(crate) struct OpenTeam {
    pub(super) region: u64,
    pub(super) team: Option<CommId>,
    /// Its number in it.
    pub(super) index: u32,
    /// So many regions it was in before.
    pub(super) depth: usize,
}

#[derive(Debug, Default)]
pub(crate) struct OpenMpThread {
    pub(super) forks: Vec<OpenParallel>,
    pub(super) teams: Vec<OpenTeam>,
    /// Regions that are open: kind, and in how many regions the thread was before.
    pub(super) regions: Vec<(u64, usize)>,
    /// When it has left a barrier which may be the last one of its region.
    pub(super) barrier_end: Option<u64>,
    /// The first thread has ended this region; what the thread tells of it comes late.
    pub(super) over: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct OpenMpLock {
    pub(super) number: u32,
    pub(super) acquisitions: u32,
    pub(super) owner: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenTask {
    pub(super) task: ThreadTask,
    pub(super) place: u64,
    /// When it has begun: the thread, and in how many regions that was.
    pub(super) begun: Option<(usize, usize)>,
}

/// What the threads of a process are doing, while its records are read.
#[derive(Debug, Default)]
pub(crate) struct OpenMpState {
    pub(super) threads: Vec<OpenMpThread>,
    pub(super) locks: HashMap<u64, OpenMpLock>,
    pub(super) tasks: HashMap<u64, OpenTask>,
    /// How many tasks each thread of each team has made.
    pub(super) made: HashMap<(CommId, u32), u32>,
}

impl OpenMpState {
    /// Of so many threads.
    pub(crate) fn new(threads: usize) -> OpenMpState {
        OpenMpState { threads: (0..threads).map(|_| OpenMpThread::default()).collect(), ..OpenMpState::default() }
    }
}
