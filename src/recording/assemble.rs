//! From the raw files of all processes to an archive.

use super::clocks::{Counter, ProcessClock, START, offset};
use super::communicators::{Catalogue, Members, own, world};
use super::events::{LeftOut, Shared, events};
use super::format::Function;
use super::merge::Merge;
use super::raw::{RawFile, table};
use super::survey::{Survey, survey};
use crate::archive::otf2::{ArchiveWriter, CreateOptions};
use crate::archive::truth::{self, TruthWriter};
use crate::simulate::ClockSpec;
use crate::trace::progress::Progress;
use crate::trace::{
    ClockOffset, ClockProperties, CommMembers, Communicator, Definitions, Error, Location, LocationGroup,
    LocationGroupId, LocationId, LocationKind, Region, RegionId, Result, SystemTreeNode, SystemTreeNodeId, Ticks,
};
use crate::workers::Workers;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Name of an archive's files.
const NAME: &str = "traces";
/// Ticks per second: nanoseconds.
const RESOLUTION: u64 = 1_000_000_000;
/// The file in the raw directory with the [`Settings`].
const SETTINGS: &str = "settings.json";
/// So many processes of which something is missing are named.
const NAMED: usize = 8;

/// What a recording was asked to be; kept with the raw files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Clocks that are wrong on purpose: a specification.
    pub clock: Option<String>,
    /// What is random about them.
    pub seed: u64,
    /// Every process has a clock of its own, not every node.
    pub per_process: bool,
    /// The command that was started.
    pub command: String,
}

impl Settings {
    /// Keeps them in a raw directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(SETTINGS);
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::new(error.to_string()).in_file(&path))?;
        std::fs::write(&path, text).map_err(|error| Error::io(&path, "cannot write", &error))
    }

    /// Reads them again.
    ///
    /// # Errors
    /// There are none, or they cannot be read.
    pub fn read(directory: &Path) -> Result<Settings> {
        let path = directory.join(SETTINGS);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Error::io(&path, "cannot read the settings of the recording", &error))?;
        serde_json::from_str(&text).map_err(|error| Error::new(error.to_string()).in_file(&path))
    }
}

/// Where the raw files of a recording lie: beside it.
pub fn raw_directory(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".raw");
    output.with_file_name(name)
}

/// A recording that has become an archive.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Processes of the application.
    pub processes: u32,
    /// Nodes that they ran on.
    pub nodes: usize,
    /// Event streams.
    pub locations: usize,
    /// Events of all of them.
    pub events: u64,
    /// From the first to the last event, in seconds of true time.
    pub seconds: f64,
    /// Largest difference between the time that is shown and the true one, if clocks are wrong on purpose.
    pub largest_error: Option<f64>,
    /// What is missing, and what is odd.
    pub warnings: Vec<String>,
}

/// The files of one process, by thread.
type Files = Vec<RawFile>;

/// Raw files in a directory, by rank.
fn open_all(directory: &Path, warnings: &mut Vec<String>) -> Result<BTreeMap<u32, Files>> {
    let failed = |error: std::io::Error| Error::io(directory, "cannot read the recording", &error);
    let mut processes: BTreeMap<u32, Files> = BTreeMap::new();
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in directory.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "raw") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut first_error = None;
    for path in &paths {
        match RawFile::open(path) {
            Ok(file) => processes.entry(file.header.rank).or_default().push(file),
            Err(error) => {
                warnings.push(error.to_string());
                first_error.get_or_insert(error);
            }
        }
    }
    if processes.is_empty() {
        let nothing = Error::new("no process has recorded anything").in_file(directory);
        return Err(first_error.unwrap_or_else(|| {
            nothing.hint("is the application dynamically linked to Open MPI or an MPICH, and did it call MPI_Init?")
        }));
    }
    processes.values_mut().for_each(|files| files.sort_by_key(|file| file.header.thread));
    Ok(processes)
}

/// A process of a recording that may still run on this machine, if there is one: its id.
///
/// # Errors
/// The recording cannot be read.
pub fn still_running(directory: &Path) -> Result<Option<u32>> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let processes = open_all(directory, &mut Vec::new())?;
    let mut files = processes.values().flatten().map(|file| &file.header);
    Ok(files
        .find(|header| {
            let maps = PathBuf::from(format!("/proc/{}/maps", header.process));
            header.state == super::format::RUNNING
                && header.host == host.trim()
                && std::fs::read_to_string(maps).is_ok_and(|maps| maps.contains("libclc_recorder"))
        })
        .map(|header| header.process))
}

/// What is known of all processes after the first pass.
struct Plan {
    functions: Vec<Function<'static>>,
    processes: BTreeMap<u32, Files>,
    surveys: BTreeMap<u32, Survey>,
    counters: HashMap<u64, Counter>,
    /// First and last event: nanoseconds since 1970.
    base: i64,
    end: i64,
    clock: Option<ClockSpec>,
    settings: Settings,
    /// Nodes in the order of the ranks, with their names.
    nodes: Vec<(u64, String)>,
    size: u32,
}

/// What one process has become.
#[derive(Default)]
struct Written {
    threads: Vec<(LocationId, u64)>,
    offsets: Vec<ClockOffset>,
    /// First and last time that is shown.
    span: Option<(i64, i64)>,
    largest: i64,
    left_out: LeftOut,
}

/// Makes an archive in the empty directory `target` from the raw files in `directory`.
///
/// # Errors
/// There is nothing to make it from; files cannot be written.
pub fn assemble(
    directory: &Path,
    target: &Path,
    settings: &Settings,
    workers: Workers,
    progress: &dyn Progress,
) -> Result<Recorded> {
    let mut warnings = Vec::new();
    let plan = Plan::new(directory, settings, workers, progress, &mut warnings)?;
    let mut catalogue = Catalogue::default();
    for survey in plan.surveys.values() {
        for (identity, members) in &survey.communicators {
            catalogue.add(identity.clone(), members.clone(), plan.size);
        }
    }
    catalogue.number();
    let used: std::collections::BTreeSet<usize> =
        plan.surveys.values().flat_map(|survey| survey.functions.iter().copied()).collect();
    let regions: HashMap<usize, RegionId> =
        used.iter().zip(0..).map(|(&function, id)| (function, RegionId(id))).collect();
    let shared = Shared { functions: &plan.functions, catalogue: &catalogue, regions: &regions };

    let mut definitions = plan.definitions(&catalogue);
    definitions.regions = used
        .iter()
        .filter_map(|&function| {
            let name = format!("MPI_{}", plan.functions.get(function)?.name);
            Some(Region { id: *regions.get(&function)?, name })
        })
        .collect();
    let options = CreateOptions { properties: plan.properties(), ..CreateOptions::default() }.fitting(&definitions);
    let archive = ArchiveWriter::create(target, NAME, options)?;
    if plan.clock.is_some() {
        let path = truth::directory(target);
        std::fs::create_dir(&path).map_err(|error| Error::io(&path, "cannot make the directory", &error))?;
    }
    progress.phase("write", u64::from(plan.size));
    let written = workers.run(plan.size as usize, progress, |rank, advance| {
        let written = plan.write(rank as u32, &shared, &archive, target);
        advance(1);
        written
    })?;
    plan.finish(written, archive, definitions, warnings)
}

impl Plan {
    fn new(
        directory: &Path,
        settings: &Settings,
        workers: Workers,
        progress: &dyn Progress,
        warnings: &mut Vec<String>,
    ) -> Result<Plan> {
        let functions = table();
        let processes = open_all(directory, warnings)?;
        let size = processes.values().flatten().map(|file| file.header.size).next().unwrap_or(0);
        if let Some(other) = processes.values().flatten().find(|file| file.header.size != size) {
            return Err(Error::new(format!("processes of different applications: {size} and {}", other.header.size))
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
        let surveys: BTreeMap<u32, Survey> = ranks.iter().copied().zip(surveys).collect();
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
                    "the processes on {host} ended so early that the rate of their counter is not known"
                ))
                .in_file(directory));
            }
        }
        let clock: Option<ClockSpec> = settings.clock.as_deref().map(str::parse).transpose()?;
        let clock = clock.filter(|_| {
            if nodes.len() > 1 {
                warnings.push(
                    "the processes ran on several nodes, so their true times are not known: the clocks are left as they are"
                        .into(),
                );
            }
            nodes.len() == 1
        });
        let mut plan = Plan {
            functions,
            processes,
            surveys,
            counters,
            base: i64::MAX,
            end: i64::MIN,
            clock,
            settings: settings.clone(),
            nodes,
            size,
        };
        plan.missing(warnings);
        for (rank, survey) in &plan.surveys {
            if let Some(((first, last), counter)) = survey.span.zip(plan.counter(*rank)) {
                plan.base = plan.base.min(counter.nanoseconds(first));
                plan.end = plan.end.max(counter.nanoseconds(last));
            }
        }
        if plan.base > plan.end {
            return Err(Error::new("no process has recorded anything").in_file(directory));
        }
        Ok(plan)
    }

    /// Says what is missing.
    fn missing(&self, warnings: &mut Vec<String>) {
        let mut list = Vec::new();
        for rank in 0..self.size {
            match self.surveys.get(&rank) {
                None => list.push(format!("rank {rank} is missing: it has not recorded anything")),
                Some(survey) => {
                    list.extend(survey.damage.iter().cloned());
                    list.extend(survey.end.iter().map(|end| {
                        let after = survey.span.zip(self.counter(rank)).map(|((first, last), counter)| {
                            (counter.nanoseconds(last) - counter.nanoseconds(first)) as f64 / RESOLUTION as f64
                        });
                        format!("rank {rank} {end}; its events end {:.6} s after its first one", after.unwrap_or(0.0))
                    }));
                }
            }
        }
        let more = list.len().saturating_sub(NAMED);
        warnings.extend(list.into_iter().take(NAMED));
        if more > 0 {
            warnings.push(format!("and {more} more of this kind"));
        }
    }

    fn node(&self, rank: u32) -> Option<usize> {
        let header = &self.processes.get(&rank)?.first()?.header;
        self.nodes.iter().position(|(node, _)| *node == header.node)
    }

    fn counter(&self, rank: u32) -> Option<Counter> {
        self.counters.get(&self.processes.get(&rank)?.first()?.header.node).copied()
    }

    /// Whether every process has a clock of its own.
    fn apart(&self) -> bool {
        self.clock.is_some() && self.settings.per_process
    }

    /// The process that has measured the clock of this one.
    fn leader(&self, rank: u32) -> Option<u32> {
        if self.apart() {
            return Some(rank);
        }
        let node = self.node(rank)?;
        self.processes.keys().copied().find(|&other| self.node(other) == Some(node))
    }

    fn process_clock(&self, rank: u32) -> Option<ProcessClock> {
        let number = if self.apart() { rank } else { self.node(rank)? as u32 };
        let spec = self.clock.as_ref().map(|clock| (clock, self.settings.seed));
        Some(ProcessClock::new(self.counter(rank)?, self.base, spec, number, self.end - self.base))
    }

    /// The measured offsets of the clock of a process.
    fn offsets(&self, rank: u32) -> Vec<ClockOffset> {
        let Some(leader) = self.leader(rank) else { return Vec::new() };
        let Some(mut own) = self.process_clock(leader) else { return Vec::new() };
        if leader == 0 || self.node(leader) == self.node(0) && !self.apart() {
            // The reference itself.
            let ends = [self.base, self.end].map(|time| START.saturating_add(time - self.base) as u64);
            let zero = |time| ClockOffset { time, offset: 0, standard_deviation: 0.0 };
            return if ends[0] < ends[1] { ends.map(zero).to_vec() } else { Vec::new() };
        }
        let (Some(mut reference), Some(survey)) = (self.process_clock(0), self.surveys.get(&leader)) else {
            return Vec::new();
        };
        let measured = survey.measurements.iter().filter_map(|batch| offset(batch, &mut own, &mut reference));
        let mut offsets: Vec<ClockOffset> = measured.collect();
        offsets.dedup_by(|later, earlier| later.time <= earlier.time);
        offsets
    }

    /// Number of threads of a process; one that has recorded nothing has one that is empty.
    fn threads(&self, rank: u32) -> Vec<u32> {
        let threads = self.processes.get(&rank).map(|files| files.iter().map(|file| file.header.thread).collect());
        threads.unwrap_or_else(|| vec![0])
    }

    /// Writes what a process has recorded.
    fn write(&self, rank: u32, shared: &Shared, archive: &ArchiveWriter, target: &Path) -> Result<Written> {
        let ids: Vec<LocationId> = self.threads(rank).into_iter().map(|thread| location(rank, thread)).collect();
        let mut writers = ids.iter().map(|&id| archive.events(id)).collect::<Result<Vec<_>>>()?;
        let mut truths = match &self.clock {
            None => Vec::new(),
            Some(_) => {
                let create = |&id: &LocationId| TruthWriter::create(&truth::path(target, id), id, RESOLUTION);
                ids.iter().map(create).collect::<Result<_>>()?
            }
        };
        let mut written = Written { offsets: self.offsets(rank), ..Written::default() };
        let clock = self.process_clock(rank);
        if let (Some(files), Some(mut clock)) = (self.processes.get(&rank), clock) {
            let list: Vec<&RawFile> = files.iter().collect();
            let mut merge = Merge::new(&list, shared.functions);
            let (span, largest) = (&mut written.span, &mut written.largest);
            let mut sink = |thread: usize, reading: u64, event: &crate::trace::Event| {
                let (truth, shown) = clock.times(reading);
                if let Some(writer) = writers.get_mut(thread) {
                    writer.event(shown.max(0) as u64, event)?;
                }
                if let Some(writer) = truths.get_mut(thread) {
                    writer.push(Ticks(truth))?;
                }
                *span = Some((span.map_or(shown, |(first, _)| first), shown));
                *largest = (*largest).max((shown - truth).abs());
                Ok(())
            };
            if let Some(first) = list.first() {
                written.left_out = events(shared, &first.header, list.len(), &mut merge, &mut sink)?;
            }
        }
        for (id, writer) in ids.into_iter().zip(writers) {
            written.threads.push((id, writer.finish()?));
            archive.local_definitions(id, &written.offsets)?;
        }
        for writer in truths {
            writer.finish()?;
        }
        Ok(written)
    }

    fn properties(&self) -> Vec<(String, String)> {
        let header = self.processes.values().flatten().map(|file| &file.header).next();
        let mut list = vec![("CLC_REPLAY::COMMAND".to_owned(), self.settings.command.clone())];
        if let Some(header) = header {
            list.push(("CLC_REPLAY::APPLICATION".to_owned(), header.command.clone()));
            list.push(("CLC_REPLAY::MPI_LIBRARY".to_owned(), header.library.clone()));
        }
        if let Some(clock) = self.settings.clock.as_ref().filter(|_| self.clock.is_some()) {
            list.push(("CLC_REPLAY::CLOCK".to_owned(), clock.clone()));
            list.push(("CLC_REPLAY::CLOCK_SEED".to_owned(), self.settings.seed.to_string()));
        }
        // One line each.
        list.iter_mut().for_each(|(_, value)| *value = value.replace(char::is_control, " "));
        list
    }

    /// All definitions but the regions and the times.
    fn definitions(&self, catalogue: &Catalogue) -> Definitions {
        let mut system_tree = vec![SystemTreeNode {
            id: SystemTreeNodeId(0),
            name: "machine".into(),
            class: "machine".into(),
            parent: None,
        }];
        // With clocks of their own, processes are as those of different nodes.
        let mut places: Vec<Option<SystemTreeNodeId>> = Vec::new();
        let mut place_of: HashMap<(usize, u32), SystemTreeNodeId> = HashMap::new();
        for rank in 0..self.size {
            places.push(self.node(rank).map(|node| {
                let clock = if self.apart() { rank } else { 0 };
                *place_of.entry((node, clock)).or_insert_with(|| {
                    let id = SystemTreeNodeId(system_tree.len() as u32);
                    let host = self.nodes.get(node).map_or("", |(_, host)| host);
                    let name = if self.apart() { format!("{host} clock {rank}") } else { host.to_owned() };
                    system_tree.push(SystemTreeNode {
                        id,
                        name,
                        class: "node".into(),
                        parent: Some(SystemTreeNodeId(0)),
                    });
                    id
                })
            }));
        }
        let group = |(rank, parent): (u32, &Option<SystemTreeNodeId>)| LocationGroup {
            id: LocationGroupId(rank),
            name: format!("MPI Rank {rank}"),
            accelerator: false,
            parent: Some(parent.unwrap_or(SystemTreeNodeId(0))),
            creator: None,
        };
        let location_groups = (0..self.size).zip(&places).map(group).collect();
        let locations = (0..self.size)
            .flat_map(|rank| self.threads(rank).into_iter().map(move |thread| (rank, thread)))
            .map(|(rank, thread)| Location {
                id: location(rank, thread),
                name: if thread == 0 { "Master thread".into() } else { format!("MPI thread {thread}") },
                kind: LocationKind::CpuThread,
                group: LocationGroupId(rank),
                claimed_events: 0,
            })
            .collect();
        Definitions {
            clock: ClockProperties { resolution: RESOLUTION, global_offset: 0, trace_length: 0, realtime: None },
            locations,
            location_groups,
            system_tree,
            processes: (0..self.size).map(|rank| location(rank, 0)).collect(),
            communicators: self.communicators(catalogue),
            regions: Vec::new(),
        }
    }

    fn communicators(&self, catalogue: &Catalogue) -> Vec<Communicator> {
        let everybody = CommMembers::Intra((0..self.size).collect());
        let predefined = [(world(), "MPI_COMM_WORLD", everybody), (own(), "MPI_COMM_SELF", CommMembers::SelfOnly)];
        let mut list: Vec<Communicator> = Vec::new();
        let mut add = |id, name: &str, members| {
            list.push(Communicator { id, name: name.to_owned(), members, global_ranks: false });
        };
        for (identity, name, members) in predefined {
            if let Some(id) = catalogue.id(&identity) {
                add(id, name, members);
            }
        }
        for (identity, members) in &catalogue.members {
            if let (Some(id), Some(members)) = (catalogue.id(identity), members) {
                let members = match members {
                    Members::Intra(group) => CommMembers::Intra(group.clone()),
                    Members::Inter(one, other) => CommMembers::Inter(one.clone(), other.clone()),
                };
                add(id, "", members);
            }
        }
        list
    }

    /// Times of the definitions, the definitions, and the summary.
    fn finish(
        &self,
        written: Vec<Written>,
        archive: ArchiveWriter,
        mut definitions: Definitions,
        mut warnings: Vec<String>,
    ) -> Result<Recorded> {
        let ends = written.iter().filter_map(|process| {
            let (first, last) = process.span?;
            Some((globally(first, &process.offsets), globally(last, &process.offsets)))
        });
        let (first, last) = ends.fold((i64::MAX, i64::MIN), |(a, b), (c, d)| (a.min(c), b.max(d)));
        let first = first.min(last).max(0);
        definitions.clock.global_offset = first as u64;
        definitions.clock.trace_length = last.saturating_sub(first).max(0) as u64 + 1;
        let realtime = self.base.saturating_add(first - START);
        definitions.clock.realtime = u64::try_from(realtime).ok();
        let events: HashMap<LocationId, u64> = written.iter().flat_map(|process| process.threads.clone()).collect();
        for location in &mut definitions.locations {
            location.claimed_events = events.get(&location.id).copied().unwrap_or(0);
        }
        archive.finish(&definitions, &events)?;
        let unknown: u64 = written.iter().map(|process| process.left_out.on_unknown_communicators).sum();
        if unknown > 0 {
            warnings.push(format!(
                "{unknown} calls on communicators whose members are not known have no communication events"
            ));
        }
        let incomplete = written.iter().enumerate().skip(1).find(|(rank, process)| {
            process.offsets.len() < 2
                && process.span.is_some()
                && self.nodes.len() + usize::from(self.apart()) > 1
                && *rank > 0
        });
        if let Some((rank, process)) = incomplete {
            warnings.push(format!(
                "clock offsets were measured {} on the clock of rank {rank}: drift is not known",
                if process.offsets.is_empty() { "never" } else { "once only" }
            ));
        }
        let largest = written.iter().map(|process| process.largest).max().unwrap_or(0);
        Ok(Recorded {
            processes: self.size,
            nodes: self.nodes.len(),
            locations: definitions.locations.len(),
            events: events.values().sum(),
            seconds: (self.end - self.base) as f64 / RESOLUTION as f64,
            largest_error: self.clock.as_ref().map(|_| largest as f64 / RESOLUTION as f64),
            warnings,
        })
    }
}

/// Id of the location of a thread: that of the first one is the rank, as Score-P has it.
fn location(rank: u32, thread: u32) -> LocationId {
    LocationId(u64::from(thread) << 32 | u64::from(rank))
}

/// A time by the clock of rank 0: between measured offsets along a straight line, outside of them along that of the next two.
fn globally(time: i64, offsets: &[ClockOffset]) -> i64 {
    let index = offsets.partition_point(|offset| offset.time as i64 <= time);
    let start = index.saturating_sub(1).min(offsets.len().saturating_sub(2));
    match (offsets.get(start), offsets.get(start + 1)) {
        (Some(a), Some(b)) if b.time > a.time => {
            let passed = i128::from(time) - i128::from(a.time);
            let change = i128::from(b.offset - a.offset) * passed / i128::from(b.time - a.time);
            time.saturating_add(a.offset).saturating_add(i64::try_from(change).unwrap_or(0))
        }
        (Some(a), _) => time.saturating_add(a.offset),
        _ => time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_files_lie_beside_the_archive() {
        assert_eq!(raw_directory(Path::new("runs/one")), Path::new("runs/one.raw"));
    }

    #[test]
    fn offsets_are_interpolated() {
        let at = |time, offset| ClockOffset { time, offset, standard_deviation: 0.0 };
        let offsets = [at(100, 10), at(200, 20), at(300, 20)];
        assert_eq!(globally(150, &offsets), 165);
        assert_eq!(globally(50, &offsets), 55);
        assert_eq!(globally(400, &offsets), 420);
        assert_eq!(globally(150, &offsets[..1]), 160);
        assert_eq!(globally(150, &[]), 150);
    }

    #[test]
    fn settings_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let settings =
            Settings { clock: Some("walk".into()), seed: 7, per_process: true, command: "mpirun -n 2 a".into() };
        settings.write(directory.path()).unwrap();
        assert_eq!(Settings::read(directory.path()).unwrap(), settings);
        assert!(assemble_nothing(directory.path()).contains("no process has recorded anything"));
    }

    fn assemble_nothing(directory: &Path) -> String {
        let target = tempfile::tempdir().unwrap();
        let settings = Settings::read(directory).unwrap();
        assemble(directory, target.path(), &settings, Workers::ONE, &crate::trace::progress::Silent)
            .unwrap_err()
            .to_string()
    }
}
