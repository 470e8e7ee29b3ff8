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

/// So many processes of which something is missing are named. Chosen by hand: with more, the other warnings are lost among them; the number of the
/// others follows.
const NAMED: usize = 8;

/// Nodes with their names.
type Nodes = Vec<(u64, String)>;

/// What is known of the counters of nodes.
type Counters = HashMap<u64, Counter>;

/// What is known of all processes after the first pass.
pub(super) struct Plan {
    pub(super) functions: Vec<Function<'static>>,
    pub(super) processes: BTreeMap<u32, Files>,
    pub(super) surveys: BTreeMap<u32, ProcessSurvey>,
    pub(super) counters: Counters,
    /// Those that each node has shown itself.
    own_counters: Counters,
    /// First and last event: nanoseconds since 1970.
    pub(super) base: i64,
    pub(super) end: i64,
    pub(super) clock: Option<ClockSpec>,
    pub(super) settings: RecordingSettings,
    /// Nodes in the order of the ranks, with their names.
    pub(super) nodes: Nodes,
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
        let size = size_of(&processes)?;
        let surveys = surveys(&processes, &functions, workers, progress)?;
        let (nodes, mut counters) = nodes(directory, &processes)?;
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
        let read = |rank| measured::read(directory, rank).map(Some);
        let mut batches: BTreeMap<u32, Vec<Batch>> = of_ranks(&processes, warnings, read);
        let shared = SharedClocks::take(&mut batches);
        let samples = of_ranks(&processes, warnings, |rank| samples::read(directory, rank));
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
            samples,
            sampled: METRICS.map(|(name, unit)| (name.to_owned(), unit.to_owned())).to_vec(),
            shared,
            offsets: BTreeMap::new(),
        };
        plan.missing(warnings);
        plan.inconsistent_cores(warnings);
        plan.find_ends(directory)?;
        if plan.samples.is_empty() {
            plan.take_notes(directory, warnings);
        }
        plan.find_offsets(directory, &batches, warnings);
        Ok(plan)
    }

    /// Says on which nodes the cores do not show the same time.
    fn inconsistent_cores(&self, warnings: &mut Vec<String>) {
        for (rank, ticks) in self.shared.apart() {
            let Some((counter, node)) = self.counter(rank).zip(self.node(rank)) else { continue };
            let host = self.nodes.get(node).map_or("", |(_, host)| host);
            warnings.push(format!(
                "the cores of {host} do not show the same time: the clock of rank {rank} differed by {:.0} ns or more from that of \
                 another process, so times of its processes are inconsistent; CLC_RECORDER_TIMER=clock may help",
                counter.length(ticks)
            ));
        }
    }

    /// Finds the first and the last event of all.
    fn find_ends(&mut self, directory: &Path) -> Result<()> {
        for (rank, survey) in &self.surveys {
            if let Some(((first, last), counter)) = survey.span.zip(self.counter(*rank)) {
                self.base = self.base.min(counter.nanoseconds(first));
                self.end = self.end.max(counter.nanoseconds(last));
            }
        }
        if self.base > self.end {
            return Err(Error::new("no process recorded anything").in_file(directory));
        }
        Ok(())
    }

    /// Offsets from what was measured, and from what agents have noted.
    fn find_offsets(&mut self, directory: &Path, batches: &BTreeMap<u32, Vec<Batch>>, warnings: &mut Vec<String>) {
        let measured =
            batches.iter().map(|(&rank, list)| (rank, relatives(rank, list, |rank| self.process_clock(rank))));
        self.offsets = composed(&measured.collect());
        for (node, offsets) in self.followed(directory, warnings) {
            let leader = self.processes.keys().copied().find(|&rank| self.node(rank) == Some(node));
            self.offsets.extend(leader.map(|leader| (leader, offsets)));
        }
    }

    /// Says what is missing.
    pub(super) fn missing(&self, warnings: &mut Vec<String>) {
        let (mut list, mut unnamed) = (Vec::new(), 0);
        for rank in 0..self.size {
            match self.surveys.get(&rank) {
                None if list.len() < NAMED => list.push(format!("rank {rank} is missing: it recorded nothing")),
                None => unnamed += 1,
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
        let more = list.len().saturating_sub(NAMED) + unnamed;
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

/// The size of `MPI_COMM_WORLD`, of which all processes have to be.
fn size_of(processes: &BTreeMap<u32, Files>) -> Result<u32> {
    let size = processes.values().flatten().map(|file| file.header.size).next().unwrap_or(0);
    if let Some(other) = processes.values().flatten().find(|file| file.header.size != size) {
        return Err(Error::new(format!(
            "processes of different applications: sizes of MPI_COMM_WORLD are {size} and {}",
            other.header.size
        ))
        .in_file(&other.path));
    }
    Ok(size)
}

/// Surveys all processes.
fn surveys(
    processes: &BTreeMap<u32, Files>,
    functions: &[Function<'static>],
    workers: Workers,
    progress: &dyn Progress,
) -> Result<BTreeMap<u32, ProcessSurvey>> {
    let ranks: Vec<u32> = processes.keys().copied().collect();
    progress.phase("read", ranks.len() as u64);
    let surveys = workers.run(ranks.len(), progress, |index, advance| {
        let files = ranks.get(index).and_then(|rank| processes.get(rank)).map_or(&[][..], Vec::as_slice);
        let found = survey(&files.iter().collect::<Vec<_>>(), functions);
        advance(1);
        found
    })?;
    Ok(ranks.into_iter().zip(surveys).collect())
}

/// Nodes in the order of the ranks, with their names, and what is known of their counters.
fn nodes(directory: &Path, processes: &BTreeMap<u32, Files>) -> Result<(Nodes, Counters)> {
    let mut counters = Counters::new();
    let mut nodes = Nodes::new();
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
    Ok((nodes, counters))
}

/// What the files of processes say, if they have some; what cannot be read is a warning.
fn of_ranks<T>(
    processes: &BTreeMap<u32, Files>,
    warnings: &mut Vec<String>,
    read: impl Fn(u32) -> Result<Option<T>>,
) -> BTreeMap<u32, T> {
    let mut all = BTreeMap::new();
    for &rank in processes.keys() {
        match read(rank) {
            Ok(found) => all.extend(found.map(|found| (rank, found))),
            Err(error) => warnings.push(error.to_string()),
        }
    }
    all
}
