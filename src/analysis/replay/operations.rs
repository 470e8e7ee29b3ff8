//! What a process does between two synchronisation events that can wait: instances of MPI regions, in up to two stages of time.

use clc_engine::matching::hash::{HashMap, HashSet};
use clc_engine::matching::sync::{SyncKind, SyncTimeline};
use clc_trace::{Error, Result};

/// Region instances of one timeline that communicate, and which visited events belong to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operations {
    /// Call path of each operation: a node of the timeline's call tree.
    pub call_path: Vec<u32>,
    /// Times by stage.
    pub stages: Vec<StageTimes>,
    /// The operation around each visited event; [`Operations::NONE`] outside of MPI regions and for events without a partner.
    pub of_event: Vec<u32>,
    /// For the receives among the visited events: the operation in which they were posted. For the sends: the one that completes them. For the end
    /// of an access epoch on a window: the operation that started it; none for the end of an exposure epoch.
    pub partner: Vec<u32>,
    /// For the begins of `MPI_Win_complete` among the visited events: when the last access of the epoch was over, by stage.
    pub accessed: HashMap<u32, [i64; 2]>,
    /// The non-blocking synchronous sends among the visited events: their completion waits for the receiver, whenever its call is left.
    pub acknowledged: HashSet<u32>,
}

/// Times of one stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct StageTimes {
    /// When each operation was entered.
    pub enter: Vec<i64>,
    /// When it was left.
    pub leave: Vec<i64>,
    /// When each visited event happened.
    pub event: Vec<i64>,
}

impl Operations {
    /// No operation.
    pub(crate) const NONE: u32 = u32::MAX;

    /// Without operations yet, for so many visited events and stages.
    pub(crate) fn new(events: usize, stages: usize) -> Operations {
        let times = StageTimes { event: vec![0; events], ..StageTimes::default() };
        Operations {
            call_path: Vec::new(),
            stages: vec![times; stages],
            of_event: vec![Self::NONE; events],
            partner: vec![Self::NONE; events],
            accessed: HashMap::default(),
            acknowledged: HashSet::default(),
        }
    }

    /// Number of operations.
    pub(crate) fn len(&self) -> usize {
        self.call_path.len()
    }

    /// A new operation that was entered at `enter` (by stage); left at the same time until [`Operations::leave`] says otherwise.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn enter(&mut self, call_path: u32, enter: [i64; 2]) -> Result<u32> {
        let index = u32::try_from(self.len()).ok().filter(|&index| index != Self::NONE);
        let index = index.ok_or_else(|| Error::new("more than 2^32 MPI calls in one process"))?;
        self.call_path.push(call_path);
        for (stage, time) in self.stages.iter_mut().zip(enter) {
            stage.enter.push(time);
            stage.leave.push(time);
        }
        Ok(index)
    }

    /// Operation `index` was left at `time` (by stage).
    pub(crate) fn leave(&mut self, index: u32, time: [i64; 2]) {
        for (stage, time) in self.stages.iter_mut().zip(time) {
            stage.leave[index as usize] = time;
        }
    }

    /// For each operation, whether it receives a message. `timeline` is the one of the visited events; the channels with these indexes are of messages.
    pub(crate) fn receiving(&self, timeline: &SyncTimeline, of_messages: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut receiving = vec![false; self.len()];
        for ((kind, link), &operation) in timeline.parts().zip(&self.of_event) {
            if kind == SyncKind::Receive && operation != Self::NONE && of_messages(link) {
                receiving[operation as usize] = true;
            }
        }
        receiving
    }

    /// When the operation around a visited event was entered; the event's own time without one.
    pub(crate) fn entered(&self, stage: usize, event: usize) -> i64 {
        let times = &self.stages[stage];
        match self.of_event[event] {
            Self::NONE => times.event[event],
            operation => times.enter[operation as usize],
        }
    }

    /// When the operation around each visited event was left; the events' own times without one.
    pub(crate) fn left(&self, stage: usize) -> Vec<i64> {
        let times = &self.stages[stage];
        let leave = |(event, &operation): (usize, &u32)| match operation {
            Self::NONE => times.event[event],
            operation => times.leave[operation as usize],
        };
        self.of_event.iter().enumerate().map(leave).collect()
    }

    /// When the operation in which a receive was posted was entered; the receive's own if that is not known.
    pub(crate) fn posted(&self, stage: usize, event: usize) -> i64 {
        match self.partner[event] {
            Self::NONE => self.entered(stage, event),
            operation => self.stages[stage].enter[operation as usize],
        }
    }
}
