//! Locks of windows as the events of a process show them: requested, acquired, released.

use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::replay::program::Program;
use clc_trace::{Event, EventNumber, LocationId, WindowId, WindowLock};
use std::collections::HashMap;

/// Numbers of the OTF2 event records of locks.
const RECORDS: std::ops::RangeInclusive<usize> = 40..=43;

/// A lock with its times in both stages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedLock {
    pub(super) window: WindowId,
    pub(super) target: u32,
    pub(super) exclusive: bool,
    pub(super) process: u32,
    pub(super) location: LocationId,
    /// Events of the acquisition (or request) and of the release.
    pub(super) events: [EventNumber; 2],
    /// Its acquisition is recorded.
    pub(super) recorded: bool,
    pub(super) acquired: [i64; 2],
    pub(super) held: [i64; 2],
    pub(super) released: [i64; 2],
    /// The timeline and the operation that waits for it; [`TimedLock::NO_OPERATION`] if there is none.
    pub(super) timeline: LocalTimeline,
    pub(super) operation: u32,
    /// When that was entered.
    pub(super) entered: [i64; 2],
}

impl TimedLock {
    /// In the place of an operation.
    pub(crate) const NO_OPERATION: u32 = u32::MAX;
}

/// A lock that has been requested.
#[derive(Debug, Clone, Copy)]
struct RequestedLock {
    kind: u8,
    event: EventNumber,
    operation: u32,
    entered: [i64; 2],
    recorded: bool,
    /// None until it is acquired, or the call is left.
    acquired: Option<[i64; 2]>,
}

/// Follows the locks of one location.
#[derive(Debug)]
pub(super) struct Tracker {
    process: u32,
    location: LocationId,
    timeline: LocalTimeline,
    /// When the regions of MPI were entered that are open.
    calls: Vec<[i64; 2]>,
    open: HashMap<(WindowId, u32, u64), RequestedLock>,
    /// Locks that were requested in the present call.
    requested: Vec<(WindowId, u32, u64)>,
    /// Locks that are released.
    pub locks: Vec<TimedLock>,
}

impl Tracker {
    /// For a location of `timeline`.
    pub(super) fn new(program: &Program, timeline: LocalTimeline, location: LocationId) -> Tracker {
        let process = program.process_of(program.number(timeline)).0;
        let (calls, requested, locks) = (Vec::new(), Vec::new(), Vec::new());
        Tracker { process, location, timeline, calls, open: HashMap::new(), requested, locks }
    }

    /// A region of MPI is entered.
    pub(super) fn enter(&mut self, time: [i64; 2]) {
        self.calls.push(time);
    }

    /// A region of MPI is left.
    pub(super) fn leave(&mut self, time: [i64; 2]) {
        self.calls.pop();
        for key in self.requested.drain(..) {
            if let Some(open) = self.open.get_mut(&key) {
                open.acquired.get_or_insert(time);
            }
        }
    }

    /// A lock event, in `operation`.
    pub(super) fn event(&mut self, number: EventNumber, time: [i64; 2], event: &Event, operation: u32) {
        let entered = self.calls.last().copied().unwrap_or(time);
        let key = |lock: &WindowLock| (lock.window, lock.remote, lock.lock);
        let new = |lock: &WindowLock| RequestedLock {
            kind: lock.kind,
            event: number,
            operation,
            entered,
            recorded: false,
            acquired: None,
        };
        match event {
            Event::RmaRequestLock(lock) => {
                self.open.insert(key(lock), new(lock));
                self.requested.push(key(lock));
            }
            Event::RmaAcquireLock(lock) => {
                self.open.insert(key(lock), RequestedLock { recorded: true, acquired: Some(time), ..new(lock) });
            }
            Event::RmaReleaseLock(lock) => {
                let Some(open) = self.open.remove(&key(lock)) else { return };
                let held = self.calls.last().copied().unwrap_or(time);
                let Some(acquired) = open.acquired else { return };
                self.locks.push(TimedLock {
                    window: lock.window,
                    target: lock.remote,
                    exclusive: open.kind == 0,
                    process: self.process,
                    location: self.location,
                    events: [open.event, number],
                    recorded: open.recorded,
                    acquired,
                    held: [held[0].max(acquired[0]), held[1].max(acquired[1])],
                    released: time,
                    timeline: self.timeline,
                    operation: open.operation,
                    entered: open.entered,
                });
            }
            _ => {}
        }
    }
}

/// Whether a location has such events.
pub(super) fn has_locks(by_type: &[u64; 256]) -> bool {
    by_type.get(RECORDS).is_some_and(|counts| counts.iter().any(|&count| count > 0))
}
