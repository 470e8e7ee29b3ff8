//! What the second scan of the hosted event files finds ([`super::scan`]), and how the parts of several threads are put together.

use crate::analysis::gaps::Gaps;
use crate::analysis::lock_tracker::TimedLock;
use crate::analysis::replay::operations::Operations;
use crate::analysis::stages::{Spans, StagedTrace};
use crate::analysis::threads::ByNode;
use crate::analysis::traffic::TrafficSums;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_execution::call_tree::CallTree;
use clc_execution::windows::Windows;
use std::ops::Range;

/// What the scan found.
pub(super) struct ScannedOperations {
    /// Operations of every hosted timeline.
    pub operations: Vec<Operations>,
    /// The rest of every hosted process, by its shared timeline.
    pub processes: Vec<ScannedProcess>,
    /// Time that the hosted processes compute, by stage and window.
    pub computing: Vec<Vec<i128>>,
    /// Locks of windows.
    pub locks: Vec<TimedLock>,
    /// Messages sent here.
    pub traffic: TrafficSums,
    /// Communication events outside of MPI regions.
    pub without_region: u64,
    /// The trace defines no regions of MPI, but communicates.
    pub no_regions: bool,
}

/// What the scan found at one process, whatever timelines its locations have.
#[derive(Default)]
pub(super) struct ScannedProcess {
    /// Its call paths.
    pub tree: CallTree,
    /// Its first and last event by stage; `None` without events, and for timelines that are no processes.
    pub spans: Option<Spans>,
    /// Time in MPI by stage.
    pub communication: Vec<i64>,
    /// Waiting of its threads.
    pub threads: ByNode,
    /// What its main location does between its operations.
    pub gaps: Gaps,
}

impl ScannedOperations {
    /// Of nothing yet.
    pub(super) fn new(stages: &StagedTrace<'_>, windows: &[Windows]) -> ScannedOperations {
        let timelines = stages.loaded.program.timelines.iter();
        ScannedOperations {
            operations: timelines.map(|_| Operations::new(0, windows.len())).collect(),
            processes: Vec::new(),
            computing: windows.iter().map(|windows| vec![0; windows.count]).collect(),
            traffic: TrafficSums::new(stages.opened, windows.last().copied().unwrap_or(Windows::new(0, 0, 1))),
            locks: Vec::new(),
            without_region: 0,
            no_regions: false,
        }
    }

    /// Adds the `part` of the processes that follow those so far.
    pub(super) fn merge(&mut self, stages: &StagedTrace<'_>, processes: Range<usize>, mut part: ScannedOperations) {
        for process in processes.map(LocalTimeline::at) {
            for timeline in stages.loaded.program.timelines_of(process) {
                self.operations[timeline] = std::mem::take(&mut part.operations[timeline]);
            }
        }
        self.processes.extend(part.processes);
        for (sums, more) in self.computing.iter_mut().zip(part.computing) {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        self.traffic.counts.merge(part.traffic.counts);
        self.locks.extend(part.locks);
        self.without_region += part.without_region;
    }

    /// Counts a process as computing for as long as it runs, by window.
    pub(super) fn add_spans(&mut self, process: &ScannedProcess, windows: &[Windows]) {
        for (stage, (from, to)) in process.spans.iter().flatten().copied().enumerate() {
            let computing = &mut self.computing[stage];
            windows[stage].parts(from, to, |index, from, to| computing[index] += i128::from(to - from));
        }
    }
}
