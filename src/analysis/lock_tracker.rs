//! Locks of windows as the events of a process show them: requested, acquired, released.

use clc_engine::matching::local_timeline::LocalTimeline;
use clc_trace::{Event, EventNumber, LocationId, WindowId, WindowLock};
use std::collections::{HashMap, HashSet};

/// Numbers of the OTF2 event records of locks.
const RECORDS: std::ops::RangeInclusive<usize> = 40..=43;

/// A lock with its times in both stages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedLock {
    pub(super) window: WindowId,
    pub(super) target: u32,
    pub(super) exclusive: bool,
    pub(super) process: u32,
    /// Locations and events of the acquisition (or request) and of the release.
    pub(super) locations: [LocationId; 2],
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

/// The window, the target and the number of a lock.
type LockKey = (WindowId, u32, u64);

/// A lock that has been requested.
#[derive(Debug, Clone, Copy)]
struct RequestedLock {
    kind: u8,
    event: EventNumber,
    operation: u32,
    entered: [i64; 2],
    recorded: bool,
}

/// What happens to a lock.
#[derive(Debug, Clone, Copy)]
enum LockChange {
    Acquired(RequestedLock),
    /// By this event, in a call that was entered at `held`. `elsewhere`: it was acquired on another location, if at all.
    Released {
        event: EventNumber,
        held: [i64; 2],
        elsewhere: bool,
    },
}

/// A step of one location.
#[derive(Debug, Clone, Copy)]
struct LockStep {
    key: LockKey,
    time: [i64; 2],
    timeline: LocalTimeline,
    location: LocationId,
    change: LockChange,
}

/// Follows the locks of one location.
#[derive(Debug)]
pub(super) struct Tracker {
    location: LocationId,
    timeline: LocalTimeline,
    /// When the regions of MPI were entered that are open.
    calls: Vec<[i64; 2]>,
    /// Locks that were requested in the present call.
    requested: Vec<(LockKey, RequestedLock)>,
    /// Locks that were acquired here and not released here.
    open: HashSet<LockKey>,
    steps: Vec<LockStep>,
}

impl Tracker {
    /// For a location of `timeline`.
    pub(super) fn new(timeline: LocalTimeline, location: LocationId) -> Tracker {
        let (calls, requested, open, steps) = (Vec::new(), Vec::new(), HashSet::new(), Vec::new());
        Tracker { location, timeline, calls, requested, open, steps }
    }

    /// A region of MPI is entered.
    pub(super) fn enter(&mut self, time: [i64; 2]) {
        self.calls.push(time);
    }

    /// A region of MPI is left.
    pub(super) fn leave(&mut self, time: [i64; 2]) {
        self.calls.pop();
        for (key, lock) in std::mem::take(&mut self.requested) {
            self.step(key, time, LockChange::Acquired(lock));
        }
    }

    /// A lock event, in `operation`.
    pub(super) fn event(&mut self, number: EventNumber, time: [i64; 2], event: &Event, operation: u32) {
        let entered = self.calls.last().copied().unwrap_or(time);
        let key = |lock: &WindowLock| (lock.window, lock.remote, lock.lock);
        let new = |lock: &WindowLock, recorded| RequestedLock {
            kind: lock.kind,
            event: number,
            operation,
            entered,
            recorded,
        };
        match event {
            Event::RmaRequestLock(lock) => self.requested.push((key(lock), new(lock, false))),
            Event::RmaAcquireLock(lock) => {
                self.requested.retain(|(requested, _)| *requested != key(lock));
                self.step(key(lock), time, LockChange::Acquired(new(lock, true)));
            }
            Event::RmaReleaseLock(lock) => {
                let key = key(lock);
                self.requested.retain(|(requested, _)| *requested != key);
                let elsewhere = !self.open.contains(&key);
                self.step(key, time, LockChange::Released { event: number, held: entered, elsewhere });
            }
            _ => {}
        }
    }

    fn step(&mut self, key: LockKey, time: [i64; 2], change: LockChange) {
        match change {
            LockChange::Acquired(_) => self.open.insert(key),
            LockChange::Released { .. } => self.open.remove(&key),
        };
        self.steps.push(LockStep { key, time, timeline: self.timeline, location: self.location, change });
    }
}

/// The locks of a process that are released, on whichever of its locations: what these did is brought together by the corrected times.
pub(super) fn of_process(process: u32, locations: Vec<Tracker>) -> Vec<TimedLock> {
    let several = locations.len() > 1;
    let mut steps: Vec<LockStep> = locations.into_iter().flat_map(|tracker| tracker.steps).collect();
    if several {
        // Within a tick, what was acquired before on another location is released first.
        let first = |change: &LockChange| !matches!(change, LockChange::Released { elsewhere: true, .. });
        steps.sort_by_key(|step| (step.time[1], first(&step.change)));
    }
    let mut open: HashMap<LockKey, (RequestedLock, LockStep)> = HashMap::new();
    let mut locks = Vec::new();
    for step in steps {
        let (event, held) = match step.change {
            LockChange::Acquired(lock) => {
                open.insert(step.key, (lock, step));
                continue;
            }
            LockChange::Released { event, held, .. } => (event, held),
        };
        let Some((lock, begin)) = open.remove(&step.key) else { continue };
        let acquired = begin.time;
        locks.push(TimedLock {
            window: step.key.0,
            target: step.key.1,
            exclusive: lock.kind == 0,
            process,
            locations: [begin.location, step.location],
            events: [lock.event, event],
            recorded: lock.recorded,
            acquired,
            held: [held[0].max(acquired[0]), held[1].max(acquired[1])],
            released: step.time,
            timeline: begin.timeline,
            operation: lock.operation,
            entered: lock.entered,
        });
    }
    locks
}

/// Whether a location has such events.
pub(super) fn has_locks(by_type: &[u64; 256]) -> bool {
    by_type.get(RECORDS).is_some_and(|counts| counts.iter().any(|&count| count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: WindowLock = WindowLock { window: WindowId(0), remote: 1, lock: 0, kind: 0 };

    fn trackers() -> [Tracker; 2] {
        [0, 1].map(|location| Tracker::new(LocalTimeline(0), LocationId(location)))
    }

    /// A call with a lock event at its end.
    fn call(tracker: &mut Tracker, from: i64, to: i64, event: Event) {
        tracker.enter([from; 2]);
        tracker.event(EventNumber(to as u64), [to; 2], &event, TimedLock::NO_OPERATION);
        tracker.leave([to; 2]);
    }

    /// From when to when the locks were held, and where they were acquired and released.
    fn spans(locks: &[TimedLock]) -> Vec<(i64, i64, [u64; 2])> {
        locks.iter().map(|lock| (lock.acquired[0], lock.held[0], lock.locations.map(|location| location.0))).collect()
    }

    #[test]
    fn one_thread_acquires_a_lock_and_another_releases_it() {
        let [mut first, mut second] = trackers();
        call(&mut first, 0, 10, Event::RmaRequestLock(LOCK));
        call(&mut second, 15, 20, Event::RmaReleaseLock(LOCK));
        call(&mut second, 30, 40, Event::RmaRequestLock(LOCK));
        call(&mut second, 45, 50, Event::RmaReleaseLock(LOCK));
        call(&mut second, 60, 70, Event::RmaRequestLock(LOCK));
        call(&mut first, 80, 90, Event::RmaReleaseLock(LOCK));
        let locks = of_process(7, vec![first, second]);
        assert_eq!(spans(&locks), [(10, 15, [0, 1]), (40, 45, [1, 1]), (70, 80, [1, 0])]);
        assert!(locks.iter().all(|lock| lock.process == 7 && !lock.recorded));
    }

    #[test]
    fn a_lock_is_released_before_another_thread_acquires_it_in_the_same_tick() {
        let [mut first, mut second] = trackers();
        call(&mut first, 0, 10, Event::RmaAcquireLock(LOCK));
        call(&mut second, 15, 20, Event::RmaReleaseLock(LOCK));
        call(&mut first, 16, 20, Event::RmaAcquireLock(LOCK));
        call(&mut first, 25, 30, Event::RmaReleaseLock(LOCK));
        let locks = of_process(0, vec![first, second]);
        assert_eq!(spans(&locks), [(10, 15, [0, 1]), (20, 25, [0, 0])]);
        assert!(locks.iter().all(|lock| lock.recorded));
    }

    #[test]
    fn of_a_lock_without_a_release_nothing_is_known() {
        let [mut first, _] = trackers();
        call(&mut first, 0, 10, Event::RmaRequestLock(LOCK));
        call(&mut first, 20, 30, Event::RmaRequestLock(LOCK));
        call(&mut first, 40, 50, Event::RmaReleaseLock(LOCK));
        call(&mut first, 60, 70, Event::RmaReleaseLock(LOCK));
        assert_eq!(spans(&of_process(0, vec![first])), [(30, 40, [0, 0])]);
    }
}
