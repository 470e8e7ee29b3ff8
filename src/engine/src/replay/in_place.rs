//! Lists of timelines that several threads change, one each.

use clc_trace::Result;
use clc_trace::progress::Silent;
use clc_trace::workers::Workers;
use std::sync::{Mutex, PoisonError};

/// Changes the lists of all timelines, each by one of the `workers`.
///
/// # Errors
/// None of its own.
pub(super) fn in_place<T: Send>(workers: Workers, lists: &mut [T], work: impl Fn(usize, &mut T) + Sync) -> Result<()> {
    let lists: Vec<Mutex<&mut T>> = lists.iter_mut().map(Mutex::new).collect();
    let run = |index: usize| -> Result<()> {
        work(index, &mut lock(&lists[index]));
        Ok(())
    };
    workers.run(lists.len(), &Silent, |index, _| run(index)).map(|_| ())
}

/// What a mutex guards: a thread that panics ends the program.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
