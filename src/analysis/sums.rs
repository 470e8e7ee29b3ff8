//! What the analysis ranks sum up, each over its processes, and merge.

use crate::analysis::largest::Largest;
use crate::analysis::replay::delays::DelaySums;
use crate::analysis::replay::timeline_waits::TimelineWaits;
use crate::analysis::scanned::ScannedOperations;
use crate::analysis::traffic::TrafficCounts;
use crate::pipeline::load::LocalTrace;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_execution::call_tree::ByCallPath;
use clc_execution::threads::ThreadWaitKind;
use clc_execution::waiting::{DetailKind, WaitKind, WaitingTally};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Times of one process, by stage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ProcessSums {
    /// The process.
    pub process: u32,
    /// First and last event.
    pub span: Vec<(i64, i64)>,
    /// Time in MPI.
    pub communication: Vec<i64>,
    /// Time waited.
    pub waiting: Vec<i64>,
}

/// Length, and scaled weight, of a part of the critical path.
pub(super) type PathSum = [i128; 2];

/// Critical path of one stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PathPart {
    /// Length outside of MPI, in MPI, and beyond the events of the process.
    pub length: [i128; 3],
    /// By call path; there is no other key.
    pub by_call_path: ByCallPath<(), PathSum>,
    /// By process.
    pub by_process: Largest<(u32, PathSum)>,
    /// Per window: the length of the longest part of one process, and that process.
    pub windows: Vec<Option<(i64, u32)>>,
    /// The longest stretches: (from, to), process, scaled weight.
    pub stretches: Largest<((i64, i64), u32, i128)>,
}

/// Everything.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AnalysisSums {
    /// Number of operations.
    pub operations: u64,
    /// Communication events outside of MPI regions.
    pub without_region: u64,
    /// Sums over processes by stage: span, communication, waiting.
    pub times: Vec<[i128; 3]>,
    /// The longest time outside of MPI of a process, by stage.
    pub longest_computation: Vec<i64>,
    /// Times of processes with the longest communication.
    pub processes: Largest<ProcessSums>,
    /// Waiting by kind.
    pub kinds: BTreeMap<WaitKind, WaitingTally>,
    /// What is told beside the waiting.
    pub details: BTreeMap<DetailKind, WaitingTally>,
    /// By kind and call path.
    pub by_call_path: ByCallPath<WaitKind, WaitingTally>,
    /// By kind and process.
    pub by_process: Largest<(WaitKind, u32, WaitingTally)>,
    /// By kind, process and cause: waiting before and after.
    pub by_pair: Largest<(WaitKind, u32, u32, [i128; 2])>,
    /// Waiting of threads by kind.
    pub threads: BTreeMap<ThreadWaitKind, WaitingTally>,
    /// The same by kind and call path.
    pub threads_by_call_path: ByCallPath<ThreadWaitKind, WaitingTally>,
    /// The same by kind and process.
    pub threads_by_process: Largest<(ThreadWaitKind, u32, WaitingTally)>,
    /// What the waiting is blamed on.
    pub delays: DelaySums,
    /// By stage.
    pub paths: Vec<PathPart>,
    /// Messages.
    pub traffic: TrafficCounts,
    entries: usize,
}

impl AnalysisSums {
    /// Nothing yet; lists of at most `entries`.
    pub(super) fn new(entries: usize) -> AnalysisSums {
        AnalysisSums {
            operations: 0,
            without_region: 0,
            times: Vec::new(),
            longest_computation: Vec::new(),
            processes: Largest::new(entries),
            kinds: BTreeMap::new(),
            details: BTreeMap::new(),
            by_call_path: ByCallPath::default(),
            by_process: Largest::new(entries),
            by_pair: Largest::new(entries),
            threads: BTreeMap::new(),
            threads_by_call_path: ByCallPath::default(),
            threads_by_process: Largest::new(entries),
            delays: DelaySums::new(entries),
            paths: Vec::new(),
            traffic: TrafficCounts::default(),
            entries,
        }
    }

    /// The critical path of one stage; nothing of it yet.
    pub(super) fn new_path(&self, windows: usize) -> PathPart {
        PathPart {
            length: [0; 3],
            by_call_path: ByCallPath::default(),
            by_process: Largest::new(self.entries),
            windows: vec![None; windows],
            stretches: Largest::new(self.entries),
        }
    }

    /// Times of the hosted processes.
    pub(super) fn add_scan(
        &mut self,
        loaded: &LocalTrace,
        scanned: &ScannedOperations,
        waiting: &[Vec<TimelineWaits>],
    ) {
        self.operations = scanned.operations.iter().map(|own| own.len() as u64).sum();
        self.without_region = scanned.without_region;
        self.traffic = scanned.traffic.counts.clone();
        self.times = vec![[0; 3]; waiting.len()];
        self.longest_computation = vec![0; waiting.len()];
        for (process, scanned) in (0..).map(LocalTimeline).zip(&scanned.processes) {
            let Some(span) = &scanned.spans else { continue };
            let waited = |stage: &Vec<TimelineWaits>| {
                let timelines = loaded.program.timelines_of(process);
                timelines.flat_map(|timeline| &stage[timeline].waits).map(|wait| wait.ticks).sum()
            };
            let own = ProcessSums {
                process: loaded.program.number(process).0,
                span: span.clone(),
                communication: scanned.communication.clone(),
                waiting: waiting.iter().map(waited).collect(),
            };
            for (stage, sums) in self.times.iter_mut().enumerate() {
                let (from, to) = own.span[stage];
                sums[0] += i128::from(to - from);
                sums[1] += i128::from(own.communication[stage]);
                sums[2] += i128::from(own.waiting[stage]);
                let longest = &mut self.longest_computation[stage];
                *longest = (*longest).max(to - from - own.communication[stage]);
            }
            let longest = own.communication.last().copied().unwrap_or(0);
            self.processes.add(longest.into(), own);
        }
    }

    /// Waits of the hosted processes; compares both stages operation by operation.
    pub(super) fn add_waits(
        &mut self,
        loaded: &LocalTrace,
        scanned: &ScannedOperations,
        waiting: &[Vec<TimelineWaits>],
    ) {
        for (local, own) in (0..).map(LocalTimeline).zip(&scanned.processes) {
            let process = loaded.program.number(local).0;
            let mut by_node: BTreeMap<(WaitKind, u32), WaitingTally> = BTreeMap::new();
            let mut pairs: BTreeMap<(WaitKind, u32), [i128; 2]> = BTreeMap::new();
            for timeline in loaded.program.timelines_of(local) {
                let operations = &scanned.operations[timeline];
                let stages: Vec<&TimelineWaits> = waiting.iter().map(|stage| &stage[timeline]).collect();
                let details = |stage: &&TimelineWaits| -> Vec<(u32, DetailKind, i64)> {
                    stage.details.iter().map(|detail| (detail.operation, detail.kind, detail.ticks)).collect()
                };
                let all =
                    [stages.first().map(details).unwrap_or_default(), stages.get(1).map(details).unwrap_or_default()];
                compare(&all[0], &all[1], |_, kind, before, after| {
                    self.details.entry(kind).or_default().add(before, after);
                });
                let waits = |stage: &&TimelineWaits| -> Vec<(u32, WaitKind, i64)> {
                    stage.waits.iter().map(|wait| (wait.operation, wait.kind, wait.ticks)).collect()
                };
                let all = [stages.first().map(waits).unwrap_or_default(), stages.get(1).map(waits).unwrap_or_default()];
                compare(&all[0], &all[1], |operation, kind, before, after| {
                    let node = operations.call_path[operation as usize];
                    by_node.entry((kind, node)).or_default().add(before, after);
                });
                for (stage, waits) in stages.iter().enumerate() {
                    for wait in &waits.waits {
                        pairs.entry((wait.kind, wait.cause)).or_default()[stage] += i128::from(wait.ticks);
                    }
                }
            }
            let mut by_kind: BTreeMap<WaitKind, WaitingTally> = BTreeMap::new();
            for ((kind, node), tally) in by_node {
                self.by_call_path.at(&own.tree, node, kind).merge(&tally);
                by_kind.entry(kind).or_default().merge(&tally);
            }
            for (kind, tally) in by_kind {
                self.kinds.entry(kind).or_default().merge(&tally);
                self.by_process.add(tally.longest(), (kind, process, tally));
            }
            for ((kind, cause), ticks) in pairs {
                self.by_pair.add(ticks[0].max(ticks[1]), (kind, process, cause, ticks));
            }
        }
    }

    /// Waits of the threads of the hosted processes.
    pub(super) fn add_threads(&mut self, loaded: &LocalTrace, scanned: &ScannedOperations) {
        for (local, own) in (0..).map(LocalTimeline).zip(&scanned.processes) {
            let process = loaded.program.number(local).0;
            let mut by_kind: BTreeMap<ThreadWaitKind, WaitingTally> = BTreeMap::new();
            for (&(kind, node), tally) in &own.threads {
                self.threads_by_call_path.at(&own.tree, node, kind).merge(tally);
                by_kind.entry(kind).or_default().merge(tally);
            }
            for (kind, tally) in by_kind {
                self.threads.entry(kind).or_default().merge(&tally);
                self.threads_by_process.add(tally.longest(), (kind, process, tally));
            }
        }
    }

    /// Adds what the next ranks know.
    pub(super) fn merge(&mut self, other: AnalysisSums) {
        self.operations += other.operations;
        self.without_region += other.without_region;
        for (sums, more) in self.times.iter_mut().zip(other.times) {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        for (longest, more) in self.longest_computation.iter_mut().zip(other.longest_computation) {
            *longest = (*longest).max(more);
        }
        self.processes.merge(other.processes);
        for (kind, tally) in other.kinds {
            self.kinds.entry(kind).or_default().merge(&tally);
        }
        for (kind, tally) in other.details {
            self.details.entry(kind).or_default().merge(&tally);
        }
        self.by_call_path.merge(other.by_call_path, |sum, more| sum.merge(&more));
        self.by_process.merge(other.by_process);
        self.by_pair.merge(other.by_pair);
        for (kind, tally) in other.threads {
            self.threads.entry(kind).or_default().merge(&tally);
        }
        self.threads_by_call_path.merge(other.threads_by_call_path, |sum, more| sum.merge(&more));
        self.threads_by_process.merge(other.threads_by_process);
        self.delays.merge(other.delays);
        for (path, more) in self.paths.iter_mut().zip(other.paths) {
            path.merge(more);
        }
        self.traffic.merge(other.traffic);
    }
}

impl PathPart {
    /// Adds what others know of the same stage.
    pub(super) fn merge(&mut self, other: PathPart) {
        self.length.iter_mut().zip(other.length).for_each(|(sum, more)| *sum += more);
        self.by_call_path.merge(other.by_call_path, |sum, more| {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        });
        self.by_process.merge(other.by_process);
        for (longest, more) in self.windows.iter_mut().zip(other.windows) {
            *longest = longer(*longest, more);
        }
        self.stretches.merge(other.stretches);
    }
}

/// The longer of two parts of a window; of two equal ones that of the lower process.
pub(super) fn longer(a: Option<(i64, u32)>, b: Option<(i64, u32)>) -> Option<(i64, u32)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if (b.0, a.1) > (a.0, b.1) { b } else { a }),
        _ => a.or(b),
    }
}

/// Both lists of operation, kind and time side by side, sorted by operation and kind: operation, kind, time before and after. An operation that waits for
/// something else after than before appears twice.
fn compare<K: Copy + Ord>(before: &[(u32, K, i64)], after: &[(u32, K, i64)], mut visit: impl FnMut(u32, K, i64, i64)) {
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    loop {
        match (before.peek().copied(), after.peek().copied()) {
            (Some(&(operation, kind, ticks)), Some(&(other, of, later))) if (operation, kind) == (other, of) => {
                visit(operation, kind, ticks, later);
                before.next();
                after.next();
            }
            (Some(&(operation, kind, ticks)), next) if next.is_none_or(|next| (operation, kind) < (next.0, next.1)) => {
                visit(operation, kind, ticks, 0);
                before.next();
            }
            (_, Some(&(operation, kind, ticks))) => {
                visit(operation, kind, 0, ticks);
                after.next();
            }
            (_, None) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_compared_one_by_one() {
        let wait = |operation: u32, kind: WaitKind, ticks: i64| (operation, kind, ticks);
        let (sender, receiver) = (WaitKind::LateSender, WaitKind::LateReceiver);
        let before = [wait(1, sender, 10), wait(4, sender, 3), wait(6, sender, 5)];
        let after = [wait(0, sender, 2), wait(1, sender, 7), wait(6, receiver, 1)];
        let mut seen = Vec::new();
        compare(&before, &after, |operation, kind, before, after| seen.push((operation, kind, before, after)));
        let expected =
            [(0, sender, 0, 2), (1, sender, 10, 7), (4, sender, 3, 0), (6, sender, 5, 0), (6, receiver, 0, 1)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_lower_of_two_processes_owns_a_window() {
        assert_eq!(longer(Some((5, 2)), Some((5, 1))), Some((5, 1)));
        assert_eq!(longer(Some((5, 1)), Some((5, 2))), Some((5, 1)));
        assert_eq!(longer(Some((5, 1)), Some((6, 2))), Some((6, 2)));
        assert_eq!(longer(None, Some((6, 2))), Some((6, 2)));
    }
}
