//! When processes end: a thread waits for all of them at once, so that of several that end within a moment the first one is known.
#![allow(unsafe_code)]

use crate::state::now;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How soon a process that is new is waited for, in milliseconds. Chosen by hand: sooner wakes the agent more often, later notices the end of a new
/// process later.
const SOON: i32 = 50;

/// Descriptors of the processes that run, and when the others ended.
#[derive(Default)]
struct WatchedProcesses {
    waiting: BTreeMap<u32, Arc<OwnedFd>>,
    ended: BTreeMap<u32, f64>,
}

/// The processes that are waited for, and when those ended that have.
pub(super) struct ProcessEnds(Arc<Mutex<WatchedProcesses>>);

fn lock(known: &Mutex<WatchedProcesses>) -> MutexGuard<'_, WatchedProcesses> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProcessEnds {
    /// Starts the thread, which ends when nobody asks any more.
    pub(super) fn start() -> ProcessEnds {
        let known = Arc::new(Mutex::new(WatchedProcesses::default()));
        let weak = Arc::downgrade(&known);
        // Without it, ends are seen when somebody looks.
        let _ = std::thread::Builder::new().name("ends".into()).spawn(move || {
            while let Some(known) = weak.upgrade() {
                wait(&known);
            }
        });
        ProcessEnds(known)
    }

    /// Waits for one more; if the kernel cannot (before 5.3), its end is seen when somebody looks.
    pub(super) fn watch(&self, process: u32) {
        // SAFETY: takes two numbers, and returns a descriptor that is nobody else's, or an error.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0) };
        if let Ok(descriptor @ 0..) = i32::try_from(descriptor) {
            // SAFETY: see above.
            let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
            lock(&self.0).waiting.insert(process, Arc::new(descriptor));
        }
    }

    /// When it ended, if it has: seconds since 1970.
    pub(super) fn of(&self, process: u32) -> Option<f64> {
        lock(&self.0).ended.get(&process).copied()
    }
}

fn wait(known: &Mutex<WatchedProcesses>) {
    let waiting: Vec<(u32, Arc<OwnedFd>)> =
        lock(known).waiting.iter().map(|(&process, descriptor)| (process, Arc::clone(descriptor))).collect();
    if waiting.is_empty() {
        std::thread::sleep(Duration::from_millis(SOON as u64));
        return;
    }
    let mut list: Vec<libc::pollfd> = waiting
        .iter()
        .map(|(_, descriptor)| libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    // SAFETY: the list is as long as said, and its descriptors are open.
    unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, SOON) };
    let time = now();
    let mut known = lock(known);
    for ((process, _), found) in waiting.iter().zip(&list) {
        if found.revents != 0 {
            known.waiting.remove(process);
            known.ended.insert(*process, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_noticed_at_once() {
        let ends = ProcessEnds::start();
        let mut child = std::process::Command::new("sleep").arg("0.2").spawn().unwrap();
        ends.watch(child.id());
        assert_eq!(ends.of(child.id()), None);
        child.wait().unwrap();
        let ended = now();
        while ends.of(child.id()).is_none() {
            assert!(now() - ended < 5.0, "not noticed");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!((ends.of(child.id()).unwrap() - ended).abs() < 1.0);
    }
}
