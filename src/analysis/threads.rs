//! Waiting of the threads of a process: at barriers of their teams, for locks, and because they have nothing to do. It is within a process, so both stages are
//! compared as soon as its files have been read, and nothing is exchanged.

use crate::analysis::stages::StageMapper;
use clc_engine::matching::sync::EventCoordinates;
use clc_engine::matching::within::threads::ProcessThreadSteps;
use clc_execution::call_tree::CallTree;
use clc_execution::threads::{ThreadWaitKind, barrier_waits, lock_wait};
use clc_execution::waiting::WaitingTally;
use clc_trace::{Event, EventNumber, RegionId, ThreadEvent};
use std::collections::BTreeMap;

/// Number of the OTF2 event record `ThreadFork`.
const FORK: usize = 53;

/// Waiting by kind and node of the call tree of the process.
pub(super) type ByNode = BTreeMap<(ThreadWaitKind, u32), WaitingTally>;

/// A step of a thread.
struct StepTimes {
    /// When it happened, by stage.
    at: [i64; 2],
    /// Of the acquisition of a lock: when it was asked for, by stage.
    asked: [i64; 2],
    /// Where: a node of the call tree.
    node: u32,
}

/// The threads of one process.
pub(super) struct ProcessThreads<'a> {
    steps: ProcessThreadSteps<'a>,
    /// One for each step.
    times: Vec<StepTimes>,
    /// What the main thread does outside of parallel regions, by node.
    serial: BTreeMap<u32, WaitingTally>,
    /// Those of the location that is being read.
    own: OwnSteps,
}

/// What is known of the location that is being read.
#[derive(Default)]
struct OwnSteps {
    location: u32,
    /// The last event that entered or left a region or was a step.
    before: Option<(EventNumber, u64)>,
    /// Of the main location.
    serial: Option<SerialSection>,
}

/// What the main thread has done since the last parallel region.
#[derive(Default)]
struct SerialSection {
    /// Parallel regions that are open.
    depth: u32,
    /// Until when time is accounted for; none before the first event.
    until: Option<[i64; 2]>,
    /// By node and stage.
    times: BTreeMap<u32, [i64; 2]>,
}

impl SerialSection {
    /// Until `time` the thread was at `node`.
    fn until(&mut self, node: u32, time: [i64; 2]) {
        if self.depth > 0 {
            return;
        }
        if let Some(since) = self.until.replace(time) {
            let sums = self.times.entry(node).or_default();
            (0..2).for_each(|stage| sums[stage] += (time[stage] - since[stage]).max(0));
        }
    }

    /// The section is over.
    fn add_to(&mut self, serial: &mut BTreeMap<u32, WaitingTally>) {
        for (node, [before, after]) in std::mem::take(&mut self.times) {
            serial.entry(node).or_default().add(before, after);
        }
    }
}

impl<'a> ProcessThreads<'a> {
    /// Nothing yet; the regions of `barriers` (ascending) are barriers of threads.
    pub(super) fn new(barriers: &'a [RegionId]) -> Self {
        let own = OwnSteps::default();
        ProcessThreads {
            steps: ProcessThreadSteps::new(barriers, None),
            times: Vec::new(),
            serial: BTreeMap::new(),
            own,
        }
    }

    /// The events of a location follow; those of the main one, 0, come first. `by_type` is how many of each record type it has.
    pub(super) fn location(&mut self, location: u32, by_type: &[u64; 256]) {
        let serial = (location == 0 && by_type[FORK] > 0).then(SerialSection::default);
        self.own = OwnSteps { location, before: None, serial };
    }

    /// The next event of the location, which is at `node` before it.
    #[inline]
    pub(super) fn event(
        &mut self,
        (number, raw): (EventNumber, u64),
        event: &Event,
        times: &mut StageMapper<'_>,
        tree: &mut CallTree,
        node: u32,
    ) {
        let own = &mut self.own;
        let takes = self.steps.takes(event);
        if let Some(serial) = &mut own.serial
            && serial.until.is_none()
        {
            serial.until = Some(times.map(number, raw));
        }
        if !matches!(event, Event::Enter(_) | Event::Leave(_) | Event::Thread(_)) {
            return;
        }
        let before = own.before.replace((number, raw));
        if !takes && own.serial.is_none() {
            return;
        }
        let asked = match (event, before) {
            (Event::Thread(ThreadEvent::AcquireLock(_)), Some((number, raw))) => Some(times.map(number, raw)),
            _ => None,
        };
        let at = times.map(number, raw);
        if let Some(serial) = &mut own.serial {
            serial.until(node, at);
            match event {
                Event::Thread(ThreadEvent::Fork { .. }) => {
                    serial.add_to(&mut self.serial);
                    serial.depth += 1;
                }
                Event::Thread(ThreadEvent::Join { .. }) => {
                    serial.depth = serial.depth.saturating_sub(1);
                    serial.until = Some(at);
                }
                _ => {}
            }
        }
        if takes {
            let node = match event {
                Event::Enter(region) => tree.call(node, region.0),
                _ => node,
            };
            // The orders between steps follow from their locations, not from their times.
            self.steps.add(EventCoordinates { time: 0, raw: 0, number, location: own.location }, event);
            self.times.push(StepTimes { at, asked: asked.unwrap_or(at), node });
        }
    }

    /// The location has ended at `time`, at `node`.
    pub(super) fn end(&mut self, node: u32, time: [i64; 2]) {
        if let Some(serial) = &mut self.own.serial {
            serial.until(node, time);
            serial.add_to(&mut self.serial);
        }
    }

    /// All waiting of the process.
    pub(super) fn finish(self) -> ByNode {
        let ProcessThreads { steps, times, serial, .. } = self;
        let constructs = steps.constructs();
        let mut found = ByNode::new();
        for barrier in constructs.barriers.iter() {
            let waits = |stage: usize| -> Vec<i64> {
                let threads = barrier.iter().map(|&(enter, leave)| (times[enter].at[stage], times[leave].at[stage]));
                barrier_waits(&threads.collect::<Vec<_>>()).collect()
            };
            for (&(enter, _), (before, after)) in barrier.iter().zip(waits(0).into_iter().zip(waits(1))) {
                let key = (ThreadWaitKind::WaitAtOpenMpBarrier, times[enter].node);
                found.entry(key).or_default().add(before, after);
            }
        }
        for &(released, acquired) in &constructs.locks {
            let (released, acquired) = (&times[released], &times[acquired]);
            let wait = |stage: usize| lock_wait(acquired.asked[stage], released.at[stage], acquired.at[stage]);
            found.entry((ThreadWaitKind::ThreadLockContention, acquired.node)).or_default().add(wait(0), wait(1));
        }
        for region in &constructs.regions {
            let (fork, join) = (&times[region.fork], &times[region.join]);
            let last = |stage: usize| (join.at[stage] - fork.at[stage]).max(0);
            let mut one = WaitingTally::default();
            one.add(last(0), last(1));
            let idle = constructs.workers.saturating_sub(region.others);
            let key = (ThreadWaitKind::LimitedParallelism, fork.node);
            found.entry(key).or_default().merge(&one.times(idle.into()));
        }
        for (node, one) in serial {
            let all = one.times(constructs.workers.into());
            found.entry((ThreadWaitKind::IdleThreads, node)).or_default().merge(&all);
        }
        found.retain(|_, tally| *tally != WaitingTally::default());
        found
    }
}
