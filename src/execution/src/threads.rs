//! Waiting of the threads of one process, by the definitions of the literature.

use crate::waiting::waits_until;
use serde::{Deserialize, Serialize};

/// Kinds of waiting of threads. None of it is in MPI, and none is added to the waiting of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadWaitKind {
    /// A thread of a team waited at a barrier, explicit or implicit, for the last one.
    WaitAtOpenMpBarrier,
    /// A thread waited for a lock that another thread of the process held.
    ThreadLockContention,
    /// Worker threads had nothing to do while the main thread was outside of parallel regions.
    IdleThreads,
    /// Worker threads had nothing to do during a parallel region whose team they were not in.
    LimitedParallelism,
}

impl ThreadWaitKind {
    /// All of them, in the order of reports.
    pub const ALL: [ThreadWaitKind; 4] = [
        ThreadWaitKind::WaitAtOpenMpBarrier,
        ThreadWaitKind::ThreadLockContention,
        ThreadWaitKind::IdleThreads,
        ThreadWaitKind::LimitedParallelism,
    ];

    /// The name in the literature.
    pub fn name(self) -> &'static str {
        match self {
            ThreadWaitKind::WaitAtOpenMpBarrier => "Wait at OpenMP Barrier",
            ThreadWaitKind::ThreadLockContention => "Thread Lock Contention",
            ThreadWaitKind::IdleThreads => "Idle Threads",
            ThreadWaitKind::LimitedParallelism => "Limited Parallelism",
        }
    }
}

/// How long each thread of a team waited at one barrier: from when it entered it until the last one had, but no longer than until it left. `threads` has
/// when each of them entered and left, in ticks.
pub fn barrier_waits(threads: &[(i64, i64)]) -> impl Iterator<Item = i64> + '_ {
    let last = threads.iter().map(|&(enter, _)| enter).max().unwrap_or(i64::MIN);
    threads.iter().map(move |&(enter, leave)| waits_until(enter, last, leave).map_or(0, |until| until - enter))
}

/// How long a thread waited for a lock that it asked for at `asked`, got at `acquired`, and that another one had `released`.
pub fn lock_wait(asked: i64, released: i64, acquired: i64) -> i64 {
    waits_until(asked, released, acquired).map_or(0, |until| until - asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_waits_for_the_last_thread() {
        // The last one enters at 30. The fourth has left before, which only wrong clocks can show.
        let waits: Vec<i64> = barrier_waits(&[(10, 35), (30, 31), (20, 33), (5, 12)]).collect();
        assert_eq!(waits, [20, 0, 10, 7]);
        assert_eq!(barrier_waits(&[(4, 9)]).collect::<Vec<_>>(), [0]);
        assert_eq!(barrier_waits(&[]).count(), 0);
    }

    #[test]
    fn a_lock_waits_for_its_release() {
        assert_eq!(lock_wait(10, 25, 27), 15);
        assert_eq!(lock_wait(10, 10, 27), 0);
        assert_eq!(lock_wait(10, 5, 12), 0);
        // Released after it was acquired: no longer than until then.
        assert_eq!(lock_wait(10, 25, 20), 10);
    }
}
