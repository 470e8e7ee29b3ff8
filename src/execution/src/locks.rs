//! Locks of one window: who waited for whom, and which of them were held at the same time though they exclude each other.
//!
//! Two locks of one target exclude each other if one of them is exclusive. In which order they were held is recorded nowhere; by their times, the one
//! that was acquired earlier was held earlier. So of all that were acquired earlier by other processes and exclude a lock, the latest release is
//! what it had to wait for.

use clc_trace::EventNumber;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A lock from its request to its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lock {
    /// When it was held from on: as recorded, else when the call that requested it was left.
    pub acquired: i64,
    /// Until when it was held at least: the call that released it was entered. Of locks that were acquired in the same tick, the one that ended in
    /// that tick was held first.
    pub held: i64,
    /// The process that held it.
    pub process: u32,
    /// When its release was recorded.
    pub released: i64,
    /// The target: a rank in the communicator of the window, [`Lock::ALL`] for all of them.
    pub target: u32,
    /// It excludes others.
    pub exclusive: bool,
    /// The locations of the process that acquired and released the lock.
    pub locations: [u64; 2],
    /// By which events of these.
    pub events: [EventNumber; 2],
    /// What tells the lock apart where it came from.
    pub number: u32,
}

impl Lock {
    /// In the place of a target: all of them.
    pub const ALL: u32 = u32::MAX;
}

/// What a lock has to do with those that were acquired before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    /// Index of the lock in question.
    pub lock: usize,
    /// The one that was released last, and when that was recorded.
    pub released: Option<(i64, usize)>,
    /// The one that was certainly held longest, and until when.
    pub held: Option<(i64, usize)>,
}

/// The latest times of two different processes, each with its process and lock. Of equal times that of the lowest process counts as the latest.
#[derive(Debug, Clone, Copy, Default)]
struct LatestByProcess([Option<(i64, Reverse<u32>, usize)>; 2]);

impl LatestByProcess {
    fn add(&mut self, time: i64, process: u32, lock: usize) {
        let new = Some((time, Reverse(process), lock));
        match self.0 {
            [Some(first), _] if first.1.0 == process => self.0[0] = Some(first).max(new),
            [first, _] if first < new => self.0 = [new, first],
            [first, second] if second < new => self.0 = [first, new],
            _ => {}
        }
    }

    fn of_others(&self, process: u32) -> Option<(i64, Reverse<u32>, usize)> {
        self.0.into_iter().flatten().find(|latest| latest.1.0 != process)
    }
}

/// The latest releases and ends of what was acquired so far: of exclusive locks, and of all.
#[derive(Debug, Clone, Copy, Default)]
struct LatestLocks {
    released: [LatestByProcess; 2],
    held: [LatestByProcess; 2],
}

impl LatestLocks {
    fn add(&mut self, lock: &Lock, index: usize) {
        for at in usize::from(!lock.exclusive)..2 {
            self.released[at].add(lock.released, lock.process, index);
            self.held[at].add(lock.held, lock.process, index);
        }
    }
}

/// For each of the locks of one window, in the order in which they were acquired, what others held before that excludes it.
pub fn befores(locks: &[Lock]) -> Vec<Before> {
    let mut order: Vec<usize> = (0..locks.len()).collect();
    order.sort_unstable_by_key(|&index| locks[index]);
    let mut targets: std::collections::BTreeMap<u32, LatestLocks> = std::collections::BTreeMap::new();
    let mut of_all = LatestLocks::default();
    let mut any = LatestLocks::default();
    let mut result = Vec::with_capacity(locks.len());
    for index in order {
        let lock = &locks[index];
        // A shared lock is excluded by exclusive ones only.
        let kind = usize::from(lock.exclusive);
        let known: Vec<LatestLocks> = match lock.target {
            Lock::ALL => vec![any],
            target => vec![of_all, targets.get(&target).copied().unwrap_or_default()],
        };
        let latest = |of: &dyn Fn(&LatestLocks) -> LatestByProcess| {
            let latest = known.iter().filter_map(|target| of(target).of_others(lock.process)).max();
            latest.map(|(time, _, other)| (time, other))
        };
        let (released, held) = (latest(&|target| target.released[kind]), latest(&|target| target.held[kind]));
        result.push(Before { lock: index, released, held });
        any.add(lock, index);
        match lock.target {
            Lock::ALL => of_all.add(lock, index),
            target => targets.entry(target).or_default().add(lock, index),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lock(process: u32, target: u32, exclusive: bool, acquired: i64, released: i64) -> Lock {
        let (held, locations, events, number) = (released - 1, [0; 2], [EventNumber::FIRST; 2], 0);
        Lock { acquired, process, held, released, target, exclusive, locations, events, number }
    }

    /// By comparing all with all.
    fn literally(locks: &[Lock], index: usize) -> (Option<i64>, Option<i64>) {
        let own = &locks[index];
        let earlier = || {
            locks.iter().filter(|other| {
                let same = own.target == other.target || own.target == Lock::ALL || other.target == Lock::ALL;
                *other < own && same && other.process != own.process && (own.exclusive || other.exclusive)
            })
        };
        (earlier().map(|other| other.released).max(), earlier().map(|other| other.held).max())
    }

    proptest! {
        #[test]
        fn the_latest_of_all_that_exclude_it(
            list in prop::collection::vec((0u32..3, 0u32..3, any::<bool>(), 0i64..30, 1i64..9), 0..20)
        ) {
            let locks: Vec<Lock> = list
                .iter()
                .enumerate()
                .map(|(number, &(process, target, exclusive, from, length))| {
                    let target = if target == 2 { Lock::ALL } else { target };
                    Lock { number: number as u32, ..lock(process, target, exclusive, from, from + length) }
                })
                .collect();
            let found = befores(&locks);
            prop_assert_eq!(found.len(), locks.len());
            for before in found {
                let expected = literally(&locks, before.lock);
                prop_assert_eq!(before.released.map(|found| found.0), expected.0);
                prop_assert_eq!(before.held.map(|found| found.0), expected.1);
            }
        }
    }

    #[test]
    fn a_lock_that_ends_in_the_tick_in_which_another_begins_was_held_first() {
        // The timer is too coarse to show that the second one was acquired, and the call that released it entered, before the first one was acquired.
        let locks = [lock(0, 1, true, 10, 20), lock(3, 1, true, 10, 11)];
        let found = befores(&locks);
        let of = |index: usize| found.iter().find(|before| before.lock == index).unwrap();
        assert_eq!((of(1).released, of(1).held), (None, None));
        assert_eq!((of(0).released, of(0).held), (Some((11, 1)), Some((10, 1))));
    }

    #[test]
    fn of_locks_released_at_one_time_the_lowest_process_is_the_cause() {
        let shared = [lock(2, 1, false, 10, 20), lock(5, Lock::ALL, false, 11, 20), lock(1, 1, false, 12, 20)];
        let locks = [shared[0], shared[1], shared[2], lock(3, 1, true, 20, 30)];
        let found = befores(&locks);
        assert_eq!(found[3].released, Some((20, 2)));
        let own = [shared[0], shared[1], shared[2], lock(1, 1, true, 20, 30)];
        assert_eq!(befores(&own)[3].released, Some((20, 0)));
    }

    #[test]
    fn shared_locks_exclude_only_exclusive_ones() {
        let locks = [lock(0, 1, false, 10, 20), lock(1, 1, false, 12, 22), lock(2, 1, true, 23, 30)];
        let found = befores(&locks);
        assert_eq!(found[0].released, None);
        assert_eq!(found[1].released, None);
        assert_eq!((found[2].released, found[2].held), (Some((22, 1)), Some((21, 1))));
    }
}
