//! Epochs of groups on windows: which operation of an origin started the one that another operation completes, and when the last access in it was over.
//!
//! An epoch belongs to a process: one thread may start it, others access the window and complete it.

use crate::analysis::replay::operations::Operations;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_trace::WindowId;
use std::collections::HashMap;

/// What an origin does on a window.
#[derive(Debug, Clone, Copy)]
pub(super) enum EpochChange {
    /// `MPI_Win_start`, which is this operation.
    Started(u32),
    /// It accesses the window.
    Accessed,
    /// `MPI_Win_complete`, which is this operation, with its two visited events.
    Completed { operation: u32, entered: Option<u32>, left: Option<u32> },
}

/// One of these steps, when its call is left.
#[derive(Debug, Clone, Copy)]
pub(super) struct EpochStep {
    window: WindowId,
    time: [i64; 2],
    /// Whose operations and events the step names.
    pub(super) timeline: LocalTimeline,
    change: EpochChange,
}

/// The epochs of a process, step by step.
#[derive(Debug, Default)]
pub(super) struct OpenEpochs {
    /// The operation that has started the present epoch on a window, its timeline, and when it was left.
    starts: HashMap<WindowId, (u32, LocalTimeline, [i64; 2])>,
    /// When the last access to a window was over.
    accesses: HashMap<WindowId, [i64; 2]>,
}

impl OpenEpochs {
    /// Takes the next step, of a location whose timeline has these `operations`.
    pub(super) fn apply(&mut self, step: &EpochStep, operations: &mut Operations) {
        match step.change {
            EpochChange::Started(operation) => {
                self.starts.insert(step.window, (operation, step.timeline, step.time));
                self.accesses.remove(&step.window);
            }
            EpochChange::Accessed => drop(self.accesses.insert(step.window, step.time)),
            EpochChange::Completed { operation, entered, left } => {
                let start = self.starts.remove(&step.window);
                let last = self.accesses.remove(&step.window).or(start.map(|(_, _, left)| left));
                if let Some((entered, last)) = entered.zip(last) {
                    operations.accessed.insert(entered, last);
                }
                if let Some(left) = left {
                    let here = start.filter(|(_, timeline, _)| *timeline == step.timeline);
                    operations.partner[left as usize] = here.map_or(operation, |(start, _, _)| start);
                }
            }
        }
    }
}

/// Follows the epochs of one location.
#[derive(Debug)]
pub(super) struct EpochTracker {
    timeline: LocalTimeline,
    /// Those of the process, if it has no other location.
    open: Option<OpenEpochs>,
    /// Else what the location did.
    steps: Vec<EpochStep>,
}

impl EpochTracker {
    /// For a location of `timeline`; whether its process has `several` of them.
    pub(super) fn new(timeline: LocalTimeline, several: bool) -> EpochTracker {
        EpochTracker { timeline, open: (!several).then(OpenEpochs::default), steps: Vec::new() }
    }

    /// The location has done that, at this time.
    pub(super) fn step(&mut self, window: WindowId, time: [i64; 2], change: EpochChange, operations: &mut Operations) {
        let step = EpochStep { window, time, timeline: self.timeline, change };
        match &mut self.open {
            Some(open) => open.apply(&step, operations),
            None => self.steps.push(step),
        }
    }

    /// What is left to do when all locations have been read.
    pub(super) fn into_steps(self) -> Vec<EpochStep> {
        self.steps
    }
}

/// The steps of all locations of a process in the order of the corrected times.
pub(super) fn in_order(mut steps: Vec<EpochStep>) -> Vec<EpochStep> {
    steps.sort_by_key(|step| step.time[1]);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: WindowId = WindowId(3);

    fn complete(operation: u32) -> EpochChange {
        EpochChange::Completed { operation, entered: Some(0), left: Some(1) }
    }

    #[test]
    fn another_thread_accesses_the_window_and_completes_the_epoch() {
        let mut operations = Operations::new(2, 2);
        let timeline = LocalTimeline(0);
        let [mut first, mut second] = [0, 1].map(|_| EpochTracker::new(timeline, true));
        first.step(WINDOW, [10; 2], EpochChange::Started(5), &mut operations);
        first.step(WINDOW, [20; 2], EpochChange::Accessed, &mut operations);
        second.step(WINDOW, [5; 2], EpochChange::Accessed, &mut operations);
        second.step(WINDOW, [30; 2], EpochChange::Accessed, &mut operations);
        second.step(WINDOW, [40; 2], complete(7), &mut operations);
        assert!(operations.accessed.is_empty());
        let steps = in_order([second, first].into_iter().flat_map(EpochTracker::into_steps).collect());
        let mut open = OpenEpochs::default();
        steps.iter().for_each(|step| open.apply(step, &mut operations));
        assert_eq!(operations.accessed[&0], [30; 2]);
        assert_eq!(operations.partner[1], 5);
    }

    #[test]
    fn without_an_access_the_start_counts() {
        let mut operations = Operations::new(2, 2);
        let mut only = EpochTracker::new(LocalTimeline(0), false);
        only.step(WINDOW, [5; 2], EpochChange::Accessed, &mut operations);
        only.step(WINDOW, [10; 2], EpochChange::Started(5), &mut operations);
        only.step(WINDOW, [40; 2], complete(7), &mut operations);
        assert_eq!((operations.accessed[&0], operations.partner[1]), ([10; 2], 5));
        // An operation of another timeline cannot be told from here.
        let mut open = OpenEpochs::default();
        let step =
            |timeline, change| EpochStep { window: WINDOW, time: [50; 2], timeline: LocalTimeline(timeline), change };
        open.apply(&step(1, EpochChange::Started(9)), &mut operations);
        open.apply(&step(0, complete(7)), &mut operations);
        assert_eq!((operations.accessed[&0], operations.partner[1]), ([50; 2], 7));
    }
}
