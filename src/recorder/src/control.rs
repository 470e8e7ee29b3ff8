//! What is to be recorded, and with how much memory: the environment of `clc-replay record`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of the buffers of a thread, unless the user wants another number.
const MEMORY: usize = 4 << 20;
/// Buffers of a thread, and of one of which only the latest events are kept.
const BUFFERS: usize = 2;
const RING: usize = 8;
/// Smallest size of a buffer, in bytes.
const SMALLEST: usize = 16 << 10;

/// A moment of the run.
#[derive(Debug, Clone, PartialEq)]
enum RunMoment {
    /// So many nanoseconds after `MPI_Init`.
    Time(u64),
    /// The beginning or end of a region of this name, so many times.
    Region(Vec<u8>, u64),
}

/// What the user wants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Control {
    memory: usize,
    /// Only the latest events are kept.
    pub ring: bool,
    /// Polls in vain that follow each other are joined.
    pub joins_polls: bool,
    /// Full buffers are written at once.
    pub at_once: bool,
    /// Weights of the load of cores and links, and the limit of a light load.
    pub load: [f64; 3],
    /// On this signal, what a ring holds is written.
    pub signal: Option<i32>,
    start: Option<RunMoment>,
    stop: Option<RunMoment>,
}

/// Nothing is recorded for the moment, but what later records need.
static PAUSED: AtomicBool = AtomicBool::new(false);
/// How often the regions have begun and ended that recording starts and stops with.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);
/// The signal has come.
static SIGNALLED: AtomicBool = AtomicBool::new(false);

/// Whether nothing is recorded for the moment.
#[inline]
pub(crate) fn paused() -> bool {
    PAUSED.load(Ordering::Relaxed)
}

/// Whether the signal has come since this was asked before.
pub(crate) fn signalled() -> bool {
    SIGNALLED.swap(false, Ordering::Relaxed)
}

extern "C" fn note(_: libc::c_int) {
    SIGNALLED.store(true, Ordering::Relaxed);
}

impl Control {
    /// What the environment says; what makes no sense there counts as nothing, since `clc-replay record` has checked it.
    pub(crate) fn of_environment() -> Control {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let mut load = [1.0, 1.0, 0.8];
        for (place, word) in load.iter_mut().zip(text("CLC_RECORDER_LOAD").unwrap_or_default().split(',')) {
            *place = word.trim().parse().unwrap_or(*place);
        }
        Control {
            memory: text("CLC_RECORDER_MEMORY").and_then(|text| text.parse().ok()).unwrap_or(MEMORY),
            ring: text("CLC_RECORDER_RING").is_some(),
            joins_polls: text("CLC_RECORDER_POLLS").is_none_or(|text| text != "all"),
            at_once: text("CLC_RECORDER_WRITE").is_some_and(|text| text == "static"),
            load,
            signal: text("CLC_RECORDER_SIGNAL").and_then(|text| text.parse().ok()),
            start: text("CLC_RECORDER_START").and_then(|text| moment(&text)),
            stop: text("CLC_RECORDER_STOP").and_then(|text| moment(&text)),
        }
    }

    /// Number and size in bytes of the buffers of a thread. In a ring, `kept` records, which are few, have buffers of their own.
    pub(crate) fn buffers(&self, kept: bool) -> (usize, usize) {
        let page = |bytes: usize| bytes.max(SMALLEST).next_multiple_of(4096);
        match (self.ring, kept) {
            (true, true) => (BUFFERS, page(SMALLEST)),
            (true, false) => (RING, page(self.memory / RING)),
            _ => (BUFFERS, page(self.memory / BUFFERS)),
        }
    }

    /// Recording begins, or waits for its start.
    pub(crate) fn begin(&self) {
        PAUSED.store(self.start.is_some(), Ordering::Relaxed);
        if let Some(signal) = self.signal.filter(|_| self.ring) {
            // SAFETY: the handler only sets a flag. A handler that the program installs later takes its place.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }

    /// So many nanoseconds have passed since `MPI_Init`; there were so many before.
    pub(crate) fn passed(&self, before: u64, now: u64) {
        let is_now =
            |moment: &Option<RunMoment>| matches!(moment, Some(RunMoment::Time(time)) if (before..now).contains(time));
        if is_now(&self.start) {
            PAUSED.store(false, Ordering::Relaxed);
        }
        if is_now(&self.stop) {
            PAUSED.store(true, Ordering::Relaxed);
        }
    }

    /// A region of the program's own begins.
    pub(crate) fn begun(&self, name: &[u8]) {
        if let Some(RunMoment::Region(wanted, number)) = &self.start
            && wanted == name
            && BEGUN.fetch_add(1, Ordering::Relaxed) + 1 == *number
        {
            PAUSED.store(false, Ordering::Relaxed);
        }
    }

    /// It has ended.
    pub(crate) fn ended(&self, name: &[u8]) {
        if let Some(RunMoment::Region(wanted, number)) = &self.stop
            && wanted == name
            && ENDED.fetch_add(1, Ordering::Relaxed) + 1 == *number
        {
            PAUSED.store(true, Ordering::Relaxed);
        }
    }
}

/// `time:NANOSECONDS`, `region:NAME` or `iteration:NAME:NUMBER`.
fn moment(text: &str) -> Option<RunMoment> {
    match text.split_once(':')? {
        ("time", time) => Some(RunMoment::Time(time.parse().ok()?)),
        ("region", name) => Some(RunMoment::Region(name.as_bytes().to_vec(), 1)),
        ("iteration", text) => {
            let (name, number) = text.rsplit_once(':')?;
            Some(RunMoment::Region(name.as_bytes().to_vec(), number.parse().ok()?))
        }
        _ => None,
    }
}
