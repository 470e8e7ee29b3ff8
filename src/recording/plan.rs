//! What is known of a recording after the first pass over its files: processes, nodes, clocks.

use crate::recording::clocks::measured::{self, Batch};
use crate::recording::clocks::offsets::{composed, relatives};
use crate::recording::clocks::shared::SharedClocks;
use crate::recording::clocks::{Counter, ProcessClock, START};
use crate::recording::nodes::samples::{self, METRICS, Samples};
use crate::recording::raw::files::{Files, open_all};
use crate::recording::raw::format::calls::Function;
use crate::recording::raw::table;
use crate::recording::settings::RecordingSettings;
use crate::recording::survey::{ProcessSurvey, survey};
use clc_simulate::ClockSpec;
use clc_trace::progress::Progress;
use clc_trace::workers::Workers;
use clc_trace::{ClockOffset, Error, Result};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// So many processes of which something is missing are named.
const NAMED: usize = 8;

/// What is known of all processes after the first pass.
pub(super) struct Plan {
    pub(super) functions: Vec<Function<'static>>,
    pub(super) processes: BTreeMap<u32, Files>,
    pub(super) surveys: BTreeMap<u32, ProcessSurvey>,
    pub(super) counters: HashMap<u64, Counter>,
    /// Those that each node has shown itself.
    own_counters: HashMap<u64, Counter>,
    /// First and last event: nanoseconds since 1970.
    pub(super) base: i64,
    pub(super) end: i64,
    pub(super) clock: Option<ClockSpec>,
    pub(super) settings: RecordingSettings,
    /// Nodes in the order of the ranks, with their names.
    pub(super) nodes: Vec<(u64, String)>,
    pub(super) size: u32,
    /// What the first process of each node has sampled.
    pub(super) samples: BTreeMap<u32, Samples>,
    /// Names and units of their values.
    pub(super) sampled: Vec<(String, String)>,
    /// What processes have seen of the counters of others that share a clock with them.
    pub(super) shared: SharedClocks,
    /// Offsets of the clocks of the processes that have measured them.
    offsets: BTreeMap<u32, Vec<ClockOffset>>,
}

impl Plan {
    pub(super) fn new(
        directory: &Path,
        settings: &RecordingSettings,
        workers: Workers,
        progress: &dyn Progress,
        warnings: &mut Vec<String>,
    ) -> Result<Plan> {
        let functions = table();
        let processes = open_all(directory, warnings)?;
        let size = processes.values().flatten().map(|file| file.header.size).next().unwrap_or(0);
        if let Some(other) = processes.values().flatten().find(|file| file.header.size != size) {
            return Err(Error::new(format!(
                "processes of different applications: sizes of MPI_COMM_WORLD are {size} and {}",
                other.header.size
            ))
            .in_file(&other.path));
        }
        let ranks: Vec<u32> = processes.keys().copied().collect();
        progress.phase("read", ranks.len() as u64);
        let surveys = workers.run(ranks.len(), progress, |index, advance| {
            let files = ranks.get(index).and_then(|rank| processes.get(rank)).map_or(&[][..], Vec::as_slice);
            let found = survey(&files.iter().collect::<Vec<_>>(), &functions);
            advance(1);
            found
        })?;
        let surveys: BTreeMap<u32, ProcessSurvey> = ranks.iter().copied().zip(surveys).collect();
        let mut counters: HashMap<u64, Counter> = HashMap::new();
        let mut nodes: Vec<(u64, String)> = Vec::new();
        for file in processes.values().flatten() {
            let node = file.header.node;
            if !nodes.iter().any(|(known, _)| *known == node) {
                nodes.push((node, file.header.host.clone()));
            }
            let better = Counter::new(&file.header)
                .filter(|counter| counters.get(&node).is_none_or(|known| counter.span() > known.span()));
            counters.extend(better.map(|counter| (node, counter)));
        }
        for (node, host) in &nodes {
            if !counters.contains_key(node) {
                return Err(Error::new(format!(
                    "the processes on {host} ended so early that the rate of their counter is unknown"
                ))
                .in_file(directory));
            }
        }
        let clock: Option<ClockSpec> = settings.clock.as_deref().map(str::parse).transpose()?;
        let clock = clock.filter(|_| {
            let known = nodes.len() == 1 || share_counter(&processes);
            if !known {
                warnings.push(
                    "the processes ran on several machines, so their true times are unknown; the clocks are left \
                    unchanged"
                        .into(),
                );
            }
            known
        });
        let own_counters = counters.clone();
        if let (Some(_), Some(&best)) = (&clock, counters.values().max_by_key(|counter| counter.span())) {
            // One counter for all of them, so that the only errors are those on purpose.
            counters.values_mut().for_each(|counter| *counter = best);
        }
        let mut batches: BTreeMap<u32, Vec<Batch>> = BTreeMap::new();
        for &rank in &ranks {
            match measured::read(directory, rank) {
                Ok(list) => drop(batches.insert(rank, list)),
                Err(error) => warnings.push(error.to_string()),
            }
        }
        let shared = SharedClocks::take(&mut batches);
        let mut sampled: BTreeMap<u32, Samples> = BTreeMap::new();
        for &rank in &ranks {
            match samples::read(directory, rank) {
                Ok(found) => sampled.extend(found.map(|found| (rank, found))),
                Err(error) => warnings.push(error.to_string()),
            }
        }
        let mut plan = Plan {
            functions,
            processes,
            surveys,
            counters,
            own_counters,
            base: i64::MAX,
            end: i64::MIN,
            clock,
            settings: settings.clone(),
            nodes,
            size,
            samples: sampled,
            sampled: METRICS.map(|(name, unit)| (name.to_owned(), unit.to_owned())).to_vec(),
            shared,
            offsets: BTreeMap::new(),
        };
        plan.missing(warnings);
        for (rank, ticks) in plan.shared.apart() {
            let Some((counter, node)) = plan.counter(rank).zip(plan.node(rank)) else { continue };
            let host = plan.nodes.get(node).map_or("", |(_, host)| host);
            warnings.push(format!(
                "the cores of {host} do not show the same time: the clock of rank {rank} differed by {:.0} ns or more from that of \
                 another process, so times of its processes are inconsistent; CLC_RECORDER_TIMER=clock may help",
                counter.length(ticks)
            ));
        }
        for (rank, survey) in &plan.surveys {
            if let Some(((first, last), counter)) = survey.span.zip(plan.counter(*rank)) {
                plan.base = plan.base.min(counter.nanoseconds(first));
                plan.end = plan.end.max(counter.nanoseconds(last));
            }
        }
        if plan.base > plan.end {
            return Err(Error::new("no process recorded anything").in_file(directory));
        }
        if plan.samples.is_empty() {
            plan.take_notes(directory, warnings);
        }
        let measured =
            batches.iter().map(|(&rank, list)| (rank, relatives(rank, list, |rank| plan.process_clock(rank))));
        plan.offsets = composed(&measured.collect());
        for (node, offsets) in plan.followed(directory, warnings) {
            let leader = plan.processes.keys().copied().find(|&rank| plan.node(rank) == Some(node));
            plan.offsets.extend(leader.map(|leader| (leader, offsets)));
        }
        Ok(plan)
    }

    /// Says what is missing.
    pub(super) fn missing(&self, warnings: &mut Vec<String>) {
        let mut list = Vec::new();
        for rank in 0..self.size {
            match self.surveys.get(&rank) {
                None => list.push(format!("rank {rank} is missing: it recorded nothing")),
                Some(survey) => {
                    list.extend(survey.damage.iter().cloned());
                    list.extend(survey.end.iter().map(|end| {
                        let after = survey.span.zip(self.counter(rank)).map(|((first, last), counter)| {
                            (counter.nanoseconds(last) - counter.nanoseconds(first)) as f64 / 1e9
                        });
                        format!("rank {rank} {end}; its events end {:.6} s after its first one", after.unwrap_or(0.0))
                    }));
                }
            }
        }
        let more = list.len().saturating_sub(NAMED);
        warnings.extend(list.into_iter().take(NAMED));
        if more > 0 {
            warnings.push(format!("and {more} more problems of this kind"));
        }
    }

    pub(super) fn node(&self, rank: u32) -> Option<usize> {
        let header = &self.processes.get(&rank)?.first()?.header;
        self.nodes.iter().position(|(node, _)| *node == header.node)
    }

    pub(super) fn counter(&self, rank: u32) -> Option<Counter> {
        self.counters.get(&self.processes.get(&rank)?.first()?.header.node).copied()
    }

    /// What the counter of a node has shown when its `CLOCK_MONOTONIC_RAW` was `raw`.
    pub(super) fn reading(&self, node: usize, raw: u64) -> Option<u64> {
        self.own_counters.get(&self.nodes.get(node)?.0)?.reading(raw)
    }

    /// Whether every process has a clock of its own.
    pub(super) fn apart(&self) -> bool {
        self.clock.is_some() && self.settings.per_process
    }

    /// The process that has measured the clock of this one.
    pub(super) fn leader(&self, rank: u32) -> Option<u32> {
        if self.apart() {
            return Some(rank);
        }
        let node = self.node(rank)?;
        self.processes.keys().copied().find(|&other| self.node(other) == Some(node))
    }

    pub(super) fn process_clock(&self, rank: u32) -> Option<ProcessClock> {
        self.clock_of(rank, 0)
    }

    /// The clock of a thread: that of its process, unless threads are to have their own ones.
    pub(super) fn clock_of(&self, rank: u32, thread: u32) -> Option<ProcessClock> {
        let own = if self.settings.per_thread { self.size.wrapping_mul(thread) } else { 0 };
        let number = if self.apart() { rank.wrapping_add(own) } else { self.node(rank)? as u32 };
        let spec = self.clock.as_ref().map(|clock| (clock, self.settings.seed));
        Some(ProcessClock::new(self.counter(rank)?, self.base, spec, number, self.end - self.base))
    }

    /// The measured offsets of the clock of a process.
    pub(super) fn offsets(&self, rank: u32) -> Vec<ClockOffset> {
        let Some(leader) = self.leader(rank) else { return Vec::new() };
        if leader == 0 || self.node(leader) == self.node(0) && !self.apart() {
            // The reference itself.
            let ends = [self.base, self.end].map(|time| START.saturating_add(time - self.base) as u64);
            let zero = |time| ClockOffset { time, offset: 0, standard_deviation: 0.0 };
            return if ends[0] < ends[1] { ends.map(zero).to_vec() } else { Vec::new() };
        }
        self.offsets.get(&leader).cloned().unwrap_or_default()
    }

    /// Number of threads of a process; one that has recorded nothing has one that is empty.
    pub(super) fn threads(&self, rank: u32) -> Vec<u32> {
        let threads = self.processes.get(&rank).map(|files| {
            let mut threads: Vec<u32> = files.iter().map(|file| file.header.thread).collect();
            threads.dedup();
            threads
        });
        threads.unwrap_or_else(|| vec![0])
    }
}

/// Whether the counter of all processes is the time stamp counter of one machine.
fn share_counter(processes: &BTreeMap<u32, Files>) -> bool {
    let mut headers = processes.values().flatten().map(|file| &file.header);
    let first = headers.next().map(|header| header.machine);
    processes.values().flatten().all(|file| Some(file.header.machine) == first && !file.header.nanoseconds)
}
