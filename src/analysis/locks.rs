//! Locks of windows: found in the event files, brought together by window, compared.
//!
//! A lock is requested, acquired and released. Where its acquisition is not recorded, it is taken as acquired when the call that requested it was left
//! (MPI allows that call to return before; the report says how many such locks there are). It is held at least until the call that releases it is
//! entered. Only traces that define windows and have such events cost anything.

use crate::analysis::lock_tracker::{TimedLock, Tracker, has_locks, of_process};
use crate::analysis::replay::timeline_waits::LockWait;
use crate::analysis::scan::mpi_regions;
use crate::analysis::stages::StagedTrace;
use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use crate::report::{EventPlace, LockStages, Locks, Overlap};
use clc_engine::comm::{AnalysisRank, Transport, agree, exchange_values, merge_to_first};
use clc_execution::locks::{Lock, befores};
use clc_execution::waiting::waits_until;
use clc_trace::{Correction, Event, LocationId, RegionId, Result, TimelineNumber};
use std::collections::{BTreeMap, HashSet};

/// The locks of all hosted processes, for nothing but their times.
fn find(stages: &StagedTrace<'_>, mpi: &HashSet<RegionId>) -> Result<Vec<TimedLock>> {
    let mut locks = Vec::new();
    let program = &stages.loaded.program;
    for process in program.shared_timelines().filter(|&process| stages.is_process(process)) {
        let mut trackers = Vec::new();
        for (timeline, number) in stages.loaded.locations_of(process) {
            let location = &stages.loaded.locations[timeline][number];
            if !has_locks(&location.summary.by_type) {
                continue;
            }
            let id = stages.opened.definitions.locations[location.index].id;
            let mut tracker = Tracker::new(timeline, id);
            let mut times = stages.times(timeline, number);
            let mut stack = Vec::new();
            let archive = &stages.opened.archive;
            let place = |error: clc_trace::Error| error.in_file(&archive.event_path(id)).at_location(id);
            let local = archive.local_definitions(id)?;
            let visit = |event_number, raw, event| {
                match event {
                    Event::Enter(region) => {
                        stack.push(mpi.contains(&region));
                        if mpi.contains(&region) {
                            tracker.enter(times.map(event_number, raw));
                        }
                    }
                    Event::Leave(_) if stack.pop().unwrap_or(false) => {
                        tracker.leave(times.map(event_number, raw));
                    }
                    Event::RmaRequestLock(_) | Event::RmaAcquireLock(_) | Event::RmaReleaseLock(_) => {
                        tracker.event(event_number, times.map(event_number, raw), &event, TimedLock::NO_OPERATION);
                    }
                    _ => {}
                }
                Ok(())
            };
            archive.scan_with(id, &local, visit).map_err(place)?;
            trackers.push(tracker);
        }
        locks.extend(of_process(program.process_of(program.number(process)).0, trackers));
    }
    Ok(locks)
}

/// Locks by window, each with the rank that it came from, and whether its acquisition is recorded.
type LocksByWindow = BTreeMap<u32, Vec<(Lock, AnalysisRank, bool)>>;

/// The locks of every window whose home is here, under the times of one stage, each with the rank that it came from. Collective over the analysis ranks.
fn meet(transport: &mut dyn Transport, locks: &[TimedLock], stage: usize) -> Result<LocksByWindow> {
    // Windows, their locks, and whether the acquisition is recorded.
    let mut outgoing: BTreeMap<AnalysisRank, Vec<(u32, Lock, bool)>> = BTreeMap::new();
    for (number, lock) in (0..).zip(locks) {
        let own = Lock {
            acquired: lock.acquired[stage],
            process: lock.process,
            held: lock.held[stage],
            released: lock.released[stage],
            target: lock.target,
            exclusive: lock.exclusive,
            locations: lock.locations.map(|location| location.0),
            events: lock.events,
            number,
        };
        let home = AnalysisRank::at(lock.window.0 as usize % transport.size());
        outgoing.entry(home).or_default().push((lock.window.0, own, lock.recorded));
    }
    let mut windows = LocksByWindow::new();
    for (rank, locks) in exchange_values(transport, outgoing)? {
        for (window, lock, recorded) in locks {
            windows.entry(window).or_default().push((lock, rank, recorded));
        }
    }
    // In an order that does not depend on the number of ranks.
    windows.values_mut().for_each(|locks| locks.sort_unstable_by_key(|(lock, _, _)| *lock));
    Ok(windows)
}

/// Who waited for a lock that another process held, under the times of one stage. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn contention(transport: &mut dyn Transport, locks: &[TimedLock], stage: usize) -> Result<Vec<LockWait>> {
    // Numbers of locks, and when and by whom the lock before was released.
    let mut answers: BTreeMap<AnalysisRank, Vec<(u32, i64, u32)>> = BTreeMap::new();
    for list in meet(transport, locks, stage)?.into_values() {
        let plain: Vec<Lock> = list.iter().map(|(lock, _, _)| *lock).collect();
        for before in befores(&plain) {
            let (lock, rank, _) = &list[before.lock];
            if let Some((released, cause)) = before.released {
                answers.entry(*rank).or_default().push((lock.number, released, plain[cause].process));
            }
        }
    }
    let mut waits = Vec::new();
    for (number, released, cause) in exchange_values(transport, answers)?.into_iter().flat_map(|(_, answers)| answers) {
        let lock = &locks[number as usize];
        let until = waits_until(lock.entered[stage], released, lock.acquired[stage]);
        if let Some(until) = until.filter(|_| lock.operation != TimedLock::NO_OPERATION) {
            waits.push(LockWait { timeline: lock.timeline, operation: lock.operation, until, cause });
        }
    }
    Ok(waits)
}

/// Whether the trace can have locks at all: the same on all ranks.
pub(crate) fn possible(opened: &TraceHandle) -> bool {
    !opened.definitions.windows.is_empty()
}

/// Locks that were held at the same time though they exclude each other: as loaded, or with `corrections` as a reader of the trace sees it and
/// corrected. The result is on rank 0; nothing if there are no locks. Collective over the analysis ranks.
///
/// # Errors
/// The event files cannot be read again, failures of the transport.
pub(crate) fn overlaps(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    corrections: Option<&[Correction]>,
) -> Result<Option<LockStages>> {
    if !possible(opened) {
        return Ok(None);
    }
    let stages = agree(transport, StagedTrace::new(opened, loaded, corrections))?;
    let found = find(&stages, &mpi_regions(&opened.definitions));
    let locks = agree(transport, found)?;
    let mut all = Vec::new();
    let origins: Vec<i64> = stages.windows(transport, 1)?.iter().map(|windows| windows.first).collect();
    for (stage, &origin) in origins.iter().enumerate() {
        all.push(of_stage(opened, meet(transport, &locks, stage)?, origin));
    }
    let whole = merge_to_first(transport, all, |sums, more| {
        sums.iter_mut().zip(more).for_each(|(sum, more)| sum.merge(more));
    })?;
    let mut stages = whole.unwrap_or_default().into_iter();
    let (Some(before), after) = (stages.next(), stages.next()) else { return Ok(None) };
    Ok((before.compared > 0).then_some(LockStages { before, after }))
}

fn of_stage(opened: &TraceHandle, windows: LocksByWindow, origin: i64) -> Locks {
    let resolution = opened.definitions.clock.resolution as f64;
    let mut result = Locks::default();
    for (window, list) in windows {
        let plain: Vec<Lock> = list.iter().map(|(lock, _, _)| *lock).collect();
        let mut own = Locks {
            compared: plain.len() as u64,
            assumed: list.iter().filter(|(_, _, recorded)| !recorded).count() as u64,
            ..Locks::default()
        };
        for before in befores(&plain) {
            let lock = &plain[before.lock];
            let Some((until, other)) = before.held.filter(|(until, _)| *until > lock.acquired) else { continue };
            own.overlapping += 1;
            let ticks = until.min(lock.held) - lock.acquired;
            let place = |lock: &Lock, which: usize, time: i64| EventPlace {
                process: TimelineNumber(lock.process),
                location: LocationId(lock.locations[which]),
                event: lock.events[which],
                ticks: time,
                seconds: (time - origin) as f64 / resolution,
                region: None,
            };
            if own.worst.as_ref().is_none_or(|worst| ticks > worst.ticks) {
                own.worst = Some(Overlap {
                    window,
                    target: Some(lock.target).filter(|&target| target != Lock::ALL),
                    held: place(&plain[other], 1, until),
                    acquired: place(lock, 0, lock.acquired),
                    ticks,
                    seconds: ticks as f64 / resolution,
                });
            }
        }
        result.merge(own);
    }
    result
}
