//! When processes end: a thread waits for all of them at once, so that of several that end within a moment the first one is known. It sleeps until one ends or one comes.
#![allow(unsafe_code)]

use crate::state::now;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Without a descriptor that wakes it, the thread looks for new processes so often, in milliseconds. Chosen by hand: sooner wakes the agent more often, later notices the end
/// of a new process later.
const SOON: i32 = 50;

/// Descriptors of the processes that run, and when the others ended.
#[derive(Default)]
struct WatchedProcesses {
    waiting: BTreeMap<u32, Arc<OwnedFd>>,
    ended: BTreeMap<u32, f64>,
}

/// The processes that are waited for, and when those ended that have.
pub(super) struct ProcessEnds {
    known: Arc<Mutex<WatchedProcesses>>,
    /// Wakes the thread that waits.
    wakes: Option<Arc<OwnedFd>>,
}

impl Drop for ProcessEnds {
    fn drop(&mut self) {
        // The thread must not find it still there.
        self.known = Arc::default();
        self.wake();
    }
}

fn lock(known: &Mutex<WatchedProcesses>) -> MutexGuard<'_, WatchedProcesses> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProcessEnds {
    /// Starts the thread, which ends when nobody asks any more.
    pub(super) fn start() -> ProcessEnds {
        let known = Arc::new(Mutex::new(WatchedProcesses::default()));
        let weak = Arc::downgrade(&known);
        // SAFETY: takes two numbers, and returns a descriptor that is nobody else's, or an error.
        let wakes = match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) } {
            // SAFETY: see above.
            descriptor @ 0.. => Some(Arc::new(unsafe { OwnedFd::from_raw_fd(descriptor) })),
            _ => None,
        };
        let woken = wakes.clone();
        // Without it, ends are seen when somebody looks.
        let _ = std::thread::Builder::new().name("ends".into()).spawn(move || {
            while let Some(waiting) = weak.upgrade().map(|known| lock(&known).waiting()) {
                let ended = wait(&waiting, woken.as_deref());
                if let Some(known) = weak.upgrade() {
                    lock(&known).have_ended(&ended);
                }
            }
        });
        ProcessEnds { known, wakes }
    }

    /// Has the thread look what to wait for.
    fn wake(&self) {
        if let Some(wakes) = &self.wakes {
            let one = 1_u64.to_ne_bytes();
            // SAFETY: the descriptor is open, and the bytes are as many as said. If the counter is full, the thread is awake.
            unsafe { libc::write(wakes.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        }
    }

    /// Waits for one more; if the kernel cannot (before 5.3), its end is seen when somebody looks.
    pub(super) fn watch(&self, process: u32) {
        // SAFETY: takes two numbers, and returns a descriptor that is nobody else's, or an error.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0) };
        if let Ok(descriptor @ 0..) = i32::try_from(descriptor) {
            // SAFETY: see above.
            let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
            lock(&self.known).waiting.insert(process, Arc::new(descriptor));
            self.wake();
        }
    }

    /// When it ended, if it has: seconds since 1970.
    pub(super) fn of(&self, process: u32) -> Option<f64> {
        lock(&self.known).ended.get(&process).copied()
    }
}

impl WatchedProcesses {
    fn waiting(&self) -> Vec<(u32, Arc<OwnedFd>)> {
        self.waiting.iter().map(|(&process, descriptor)| (process, Arc::clone(descriptor))).collect()
    }

    fn have_ended(&mut self, processes: &[u32]) {
        let time = now();
        for process in processes {
            self.waiting.remove(process);
            self.ended.insert(*process, time);
        }
    }
}

/// Waits until some of these processes have ended, which it returns, or there may be others to wait for.
fn wait(waiting: &[(u32, Arc<OwnedFd>)], woken: Option<&OwnedFd>) -> Vec<u32> {
    if waiting.is_empty() && woken.is_none() {
        std::thread::sleep(Duration::from_millis(SOON as u64));
        return Vec::new();
    }
    let entry = |descriptor: &OwnedFd| libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut list: Vec<libc::pollfd> = waiting.iter().map(|(_, descriptor)| entry(descriptor)).collect();
    list.extend(woken.map(entry));
    let most = if woken.is_some() { -1 } else { SOON };
    // SAFETY: the list is as long as said, and its descriptors are open.
    unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, most) };
    if let Some(woken) = woken.filter(|_| list.last().is_some_and(|last| last.revents != 0)) {
        let mut count = [0_u8; 8];
        // SAFETY: the descriptor is open, and there is room for as many bytes as said. It does not wait.
        unsafe { libc::read(woken.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
    let ended = waiting.iter().zip(&list).filter(|(_, found)| found.revents != 0);
    ended.map(|((process, _), _)| *process).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_noticed_at_once() {
        let ends = ProcessEnds::start();
        // It sleeps already when the process comes.
        std::thread::sleep(Duration::from_millis(100));
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

    #[test]
    fn the_thread_ends_when_nobody_asks_any_more() {
        let ends = ProcessEnds::start();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        ends.watch(child.id());
        let woken = Arc::downgrade(ends.wakes.as_ref().unwrap());
        drop(ends);
        let begun = now();
        // The thread has it, too.
        while woken.strong_count() > 0 {
            assert!(now() - begun < 5.0, "it waits");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
