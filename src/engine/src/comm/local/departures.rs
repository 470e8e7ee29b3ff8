//! Which ranks of an in-process world have left, and waiting for those that have not.

use clc_trace::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Locks, also after a panic of another rank: every change under these locks is complete when it is made.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Waits for a notification; see [`lock`].
pub(super) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The ranks that have dropped their transport, so that nobody waits for them.
#[derive(Debug)]
pub(super) struct Departures {
    gone: Vec<AtomicBool>,
    count: AtomicUsize,
    panicked: AtomicBool,
}

impl Departures {
    /// Of a world of `size` ranks, all of which are there.
    pub(super) fn new(size: usize) -> Departures {
        let gone = (0..size).map(|_| AtomicBool::new(false)).collect();
        Departures { gone, count: AtomicUsize::new(0), panicked: AtomicBool::new(false) }
    }

    /// The first of these ranks that has left.
    pub(super) fn first_of(&self, mut ranks: impl Iterator<Item = usize>) -> Option<usize> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        ranks.find(|&rank| self.gone.get(rank).is_some_and(|gone| gone.load(Ordering::SeqCst)))
    }

    /// Notes that `rank` has left.
    pub(super) fn note(&self, rank: usize, panicked: bool) {
        if let Some(gone) = self.gone.get(rank) {
            gone.store(true, Ordering::SeqCst);
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        if panicked {
            self.panicked.store(true, Ordering::SeqCst);
        }
    }

    /// # Errors
    /// A rank has panicked.
    pub(super) fn check(&self) -> Result<()> {
        if self.panicked.load(Ordering::SeqCst) {
            return Err(Error::new("another analysis rank panicked"));
        }
        Ok(())
    }
}

/// The failure of an operation that waits for a rank that has left.
pub(super) fn departed(rank: usize) -> Error {
    Error::new(format!("analysis rank {rank} ended while others wait for it"))
}
