//! From the raw files of all processes to a trace.

use crate::recording::clocks::offsets::globally;
use crate::recording::clocks::{NANOSECOND, START};
use crate::recording::communicators::Catalogue;
use crate::recording::cut::{Filter, Groups, LeftOut, LeftOutCounts, Tally, without_counterparts};
use crate::recording::definitions::{RESOLUTION, location};
use crate::recording::events::{EventContext, EventsOf, Sink, UnplacedCalls, events};
use crate::recording::extra::EventOrExtra;
use crate::recording::nodes::samples;
use crate::recording::own::OwnNames;
use crate::recording::plan::Plan;
use crate::recording::polls::{JoinedPollsSum, PollNames};
use crate::recording::raw::RawFile;
use crate::recording::raw::merge::Merge;
use crate::recording::settings::RecordingSettings;
use crate::recording::survey::ProcessSurvey;
use crate::recording::target::TraceTarget;
use crate::recording::windows::WindowCatalogue;
use crate::recording::written::WrittenProcess;
use clc_archive::Format;
use clc_archive::truth::{self, TruthWriter};
use clc_otf2::CreateOptions;
use clc_simulate::ClockSpec;
use clc_trace::format::count;
use clc_trace::progress::Progress;
use clc_trace::workers::Workers;
use clc_trace::{Definitions, Error, LocationId, MpiRank, Region, RegionId, Result, Ticks};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// A recording that has become an archive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AssembledRecording {
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
    /// What there is to say besides.
    pub notes: Vec<String>,
    /// What is missing, and what is odd.
    pub warnings: Vec<String>,
}

/// Makes a trace in the empty directory `target` from the raw files in `directory`.
///
/// # Errors
/// There is nothing to make it from; files cannot be written.
pub(crate) fn assemble(
    directory: &Path,
    target: &Path,
    format: Format,
    settings: &RecordingSettings,
    workers: Workers,
    progress: &dyn Progress,
) -> Result<AssembledRecording> {
    let mut warnings = Vec::new();
    let plan = Plan::new(directory, settings, workers, progress, &mut warnings)?;
    let mut catalogue = Catalogue::default();
    for survey in plan.surveys.values() {
        for (identity, members) in &survey.communicators {
            catalogue.add(identity.clone(), members.clone(), plan.size);
        }
    }
    catalogue.number();
    let mut windows = WindowCatalogue::default();
    for survey in plan.surveys.values() {
        survey.comm_names.iter().for_each(|(identity, name)| catalogue.give_name(identity, name));
        for (key, name) in survey.windows.iter().filter(|((comm, _), _)| catalogue.id(comm).is_some()) {
            windows.add(key.clone());
            windows.name(key, name);
        }
        let known = |group: &&Arc<[MpiRank]>| group.iter().all(|rank| rank.0 < plan.size);
        survey.groups.iter().filter(known).for_each(|group| windows.group(Arc::clone(group)));
    }
    windows.number();
    let used = by_calls(plan.surveys.values());
    let regions: HashMap<usize, RegionId> =
        used.iter().zip(0..).map(|(&function, id)| (function, RegionId(id))).collect();
    let own = OwnNames::new(directory, &plan.surveys, used.len() as u32);
    let teams = plan.teams(&catalogue);
    let pthreads = plan.pthreads(&catalogue, &teams);
    let mut joined = JoinedPollsSum::default();
    plan.surveys.values().for_each(|survey| joined.add(&survey.joined));
    let polls = PollNames::new(&joined, RegionId((used.len() + own.definitions.len()) as u32));
    let shared = EventContext {
        functions: &plan.functions,
        catalogue: &catalogue,
        windows: &windows,
        own: &own,
        polls: &polls,
        regions: &regions,
        teams: &teams,
        pthreads: &pthreads,
    };

    let mut definitions = plan.definitions(&catalogue, &windows);
    definitions.communicators.extend(plan.team_definitions(&teams));
    definitions.communicators.extend(plan.pthread_definitions(&pthreads));
    definitions.thread_barriers = own.barriers.clone();
    definitions.regions = used
        .iter()
        .filter_map(|&function| {
            let name = format!("MPI_{}", plan.functions.get(function)?.name);
            Some(Region { id: *regions.get(&function)?, name })
        })
        .chain(own.definitions.iter().cloned())
        .chain(polls.definition())
        .collect();
    let cut = plan.left_out(&shared, &definitions, workers, progress)?;
    if let Some((_, counts)) = &cut
        && *counts != LeftOutCounts::default()
    {
        let LeftOutCounts { messages, collectives } = counts;
        warnings.push(format!(
            "{} ends of messages and {} of collective operations have no counterpart, since other processes began to record later; their calls are recorded without communication events",
            count(*messages),
            count(*collectives)
        ));
    } else if cut.is_none() && plan.settings.begins_late {
        warnings.push("recording began within the run, and not all of its processes and threads were recorded until its end, so that nobody knows which messages and collective operations belong together".into());
    }
    let metrics: Vec<String> = own.metrics().map(str::to_owned).collect();
    let node_metrics = plan.node_metrics(&definitions);
    let first_instance = node_metrics.first_instance(&metrics);
    let options = CreateOptions {
        properties: plan.properties(cut.is_some() || !plan.settings.begins_late),
        metrics,
        node_metrics,
        parameters: polls.parameters.clone(),
        ..CreateOptions::default()
    };
    let options = options.fitting(&definitions);
    let archive = TraceTarget::create(target, format, options)?;
    if plan.clock.is_some() {
        let path = truth::directory(target);
        std::fs::create_dir(&path).map_err(|error| Error::io(&path, "cannot create the directory", &error))?;
    }
    progress.phase("write", u64::from(plan.size));
    let written = workers.run(plan.size as usize, progress, |rank, advance| {
        let left_out = cut.as_ref().and_then(|(left_out, _)| left_out.get(rank));
        let mut written = plan.write(rank as u32, &shared, left_out, &archive, target)?;
        plan.write_samples(rank as u32, first_instance, &archive, target, &mut written)?;
        advance(1);
        Ok(written)
    })?;
    let recorded = plan.finish(written, archive, definitions, warnings)?;
    Ok(AssembledRecording { notes: joined.said().into_iter().collect(), ..recorded })
}

/// The functions that processes have called, the most frequent one first: its region gets the id that takes the fewest bytes.
fn by_calls<'a>(surveys: impl Iterator<Item = &'a ProcessSurvey>) -> Vec<usize> {
    let mut calls: BTreeMap<usize, u64> = BTreeMap::new();
    for (&function, &count) in surveys.flat_map(|survey| &survey.functions) {
        *calls.entry(function).or_default() += count;
    }
    let mut list: Vec<usize> = calls.keys().copied().collect();
    list.sort_by_key(|function| Reverse(calls.get(function).copied()));
    list
}

impl Plan {
    /// Hands the events of a process to `sink`.
    fn events<'b>(&self, rank: u32, shared: &EventContext, sink: &'b mut Sink<'b>) -> Result<UnplacedCalls> {
        let list: Vec<&RawFile> = self.processes.get(&rank).into_iter().flat_map(|files| files.iter()).collect();
        let Some(first) = list.first() else { return Ok(UnplacedCalls::default()) };
        let none = BTreeSet::new();
        let failed = self.surveys.get(&rank).map_or(&none, |survey| &survey.failed);
        let process = EventsOf { header: &first.header, threads: list.len(), failed, counter: self.counter(rank) };
        events(shared, process, &mut Merge::new(&list, shared.functions), sink)
    }

    /// Of a recording that begins within the run, what processes have recorded without its counterpart. None if that is not asked, or if nobody knows: recording has gaps, or did not go on to the end everywhere.
    fn left_out(
        &self,
        shared: &EventContext,
        definitions: &Definitions,
        workers: Workers,
        progress: &dyn Progress,
    ) -> Result<Option<(Vec<LeftOut>, LeftOutCounts)>> {
        let whole = |survey: &ProcessSurvey| survey.end.is_none() && survey.damage.is_empty();
        let to_the_end = self.surveys.len() == self.size as usize && self.surveys.values().all(whole);
        if !self.settings.begins_late || self.settings.has_gaps || !to_the_end {
            return Ok(None);
        }
        progress.phase("compare", u64::from(self.size));
        let groups = Groups::new(definitions);
        let tallies = workers.run(self.size as usize, progress, |rank, advance| {
            let mut tally = Tally::new(rank as u32, &groups);
            let mut sink = |thread: usize, _: u64, event: EventOrExtra| {
                tally.add(thread, &event);
                Ok(())
            };
            self.events(rank as u32, shared, &mut sink)?;
            advance(1);
            Ok(tally)
        })?;
        Ok((!tallies.iter().any(Tally::is_unclear)).then(|| without_counterparts(&tallies, &groups)))
    }

    /// Writes what a process has recorded.
    fn write(
        &self,
        rank: u32,
        shared: &EventContext,
        left_out: Option<&LeftOut>,
        archive: &TraceTarget,
        target: &Path,
    ) -> Result<WrittenProcess> {
        let ids: Vec<LocationId> = self.threads(rank).into_iter().map(|thread| location(rank, thread)).collect();
        let mut writers = ids.iter().map(|&id| archive.events(id)).collect::<Result<Vec<_>>>()?;
        let mut truths = match &self.clock {
            None => Vec::new(),
            Some(_) => {
                let create = |&id: &LocationId| TruthWriter::create(&truth::path(target, id), id, RESOLUTION);
                ids.iter().map(create).collect::<Result<_>>()?
            }
        };
        let mut written = WrittenProcess { offsets: self.offsets(rank), ..WrittenProcess::default() };
        // Readings of one thread do not decrease.
        let clocks: Option<Vec<_>> = self.threads(rank).into_iter().map(|thread| self.clock_of(rank, thread)).collect();
        let mut filter = left_out.map(Filter::new);
        if let Some(mut clocks) = clocks {
            let (span, largest) = (&mut written.span, &mut written.largest);
            let mut sink = |thread: usize, reading: u64, event: EventOrExtra| {
                if filter.as_mut().is_some_and(|filter| !filter.keeps(thread, &event)) {
                    return Ok(());
                }
                let Some((truth, shown)) = clocks.get_mut(thread).map(|clock| clock.times(reading)) else {
                    return Ok(());
                };
                if let Some(writer) = writers.get_mut(thread) {
                    writer.write(shown.max(0) as u64, event)?;
                }
                if let Some(writer) = truths.get_mut(thread) {
                    writer.push(Ticks(truth))?;
                }
                let (first, last) = span.unwrap_or((shown, shown));
                *span = Some((first.min(shown), last.max(shown)));
                *largest = (*largest).max((shown - truth).abs());
                Ok(())
            };
            written.unplaced = self.events(rank, shared, &mut sink)?;
        }
        for (id, writer) in ids.into_iter().zip(writers) {
            let (events, without_fields) = archive.end(id, writer, &written.offsets)?;
            written.threads.push((id, events));
            written.without_fields += without_fields;
        }
        for writer in truths {
            writer.finish()?;
        }
        Ok(written)
    }

    /// Times of the definitions, the definitions, and the summary.
    fn finish(
        &self,
        written: Vec<WrittenProcess>,
        archive: TraceTarget,
        mut definitions: Definitions,
        mut warnings: Vec<String>,
    ) -> Result<AssembledRecording> {
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
        let unknown: u64 = written.iter().map(|process| process.unplaced.on_unknown_communicators).sum();
        if unknown > 0 {
            warnings.push(format!(
                "{unknown} calls on communicators with unknown members were recorded without communication events"
            ));
        }
        let unknown: u64 = written.iter().map(|process| process.unplaced.on_unknown_windows).sum();
        if unknown > 0 {
            warnings.push(format!("{unknown} calls on unknown windows were recorded without communication events"));
        }
        let without_fields: u64 = written.iter().map(|process| process.without_fields).sum();
        if without_fields > 0 {
            warnings.push(format!(
                "{without_fields} events (values of metrics, completions of one-sided operations) have no fields in the native format"
            ));
        }
        warnings.extend(self.openmp_missing());
        warnings.extend(samples::missing(written.iter().filter_map(|process| process.sampled)));
        let incomplete = written.iter().enumerate().skip(1).find(|(rank, process)| {
            process.offsets.len() < 2
                && process.span.is_some()
                && self.nodes.len() + usize::from(self.apart()) > 1
                && *rank > 0
        });
        if let Some((rank, process)) = incomplete {
            warnings.push(format!(
                "clock offsets were measured {} for the clock of rank {rank}, so its drift is unknown",
                if process.offsets.is_empty() { "never" } else { "only once" }
            ));
        }
        let largest = written.iter().map(|process| process.largest).max().unwrap_or(0);
        if let Some(clock) = &self.clock {
            warnings.extend(clock.after_the_end((self.end - self.base).saturating_mul(NANOSECOND)));
            if largest == 0 && self.nodes.len() == 1 && !self.apart() && *clock != ClockSpec::default() {
                warnings.push(
                    "all clocks show true time: the only node is the reference (without --clock-per-node, \
                    each process has its own clock)"
                        .into(),
                );
            }
        }
        Ok(AssembledRecording {
            processes: self.size,
            nodes: self.nodes.len(),
            locations: definitions.locations.len(),
            events: events.values().sum(),
            seconds: (self.end - self.base) as f64 / RESOLUTION as f64,
            largest_error: self.clock.as_ref().map(|_| largest as f64 / RESOLUTION as f64),
            notes: Vec::new(),
            warnings,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nothing_comes_nothing() {
        let [directory, target] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let settings = RecordingSettings {
            clock: None,
            seed: 1,
            per_process: false,
            per_thread: false,
            command: String::new(),
            environment: String::new(),
            begins_late: false,
            has_gaps: false,
        };
        let made = assemble(
            directory.path(),
            target.path(),
            Format::Otf2,
            &settings,
            Workers::ONE,
            &clc_trace::progress::Silent,
        );
        assert!(made.unwrap_err().message.contains("no process recorded anything"));
        assert_eq!(target.path().read_dir().unwrap().count(), 0);
    }
}
