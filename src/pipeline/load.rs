//! Scanning the hosted timelines once and matching what they did with whom.

use crate::pipeline::open::TraceHandle;
use crate::pipeline::own_clocks::{differ, put_ahead};
use crate::pipeline::visits::{Only, SendsWithin, Visit, VisitKind, Visits};
use crate::report::Warnings;
use clc_archive::ScanSummary;
use clc_clock::{Clock, Method, RANGE, RefinedClocks, put_forward};
use clc_engine::comm::{ReduceOp, Transport, agree, all_gather_values};
use clc_engine::matching::accelerators::{AcceleratorCalls, ProcessAccelerators};
use clc_engine::matching::calls::Calls;
use clc_engine::matching::collectives::{Rules, match_collectives};
use clc_engine::matching::communicators::{CommTable, join_everywhere};
use clc_engine::matching::extract::Extractor;
use clc_engine::matching::extracted::{Extract, Leftovers};
use clc_engine::matching::fences::Fences;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::messages::match_messages;
use clc_engine::matching::split::{self, Numbers, SplitTimeline, TiedLocations};
use clc_engine::matching::sync::EventCoordinates;
use clc_engine::matching::threads::{Divided, ProcessThreadSteps};
use clc_engine::matching::undefined::UndefinedPeer;
use clc_engine::replay::program::{OwnTimelines, Program};
use clc_engine::replay::settle::settle;
use clc_trace::progress::Progress;
use clc_trace::workers::Advance;
use clc_trace::{
    ClockOffset, Event, EventNumber, LocationId, OwnTimeline, RegionId, Result, Ticks, Timeline, TimelineNumber,
};
use controlled_logical_clock::forward::ForwardParameters;
use controlled_logical_clock::latency::{LatencyBasis, MinimumLatency};
use std::collections::BTreeMap;

/// How to load.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions {
    /// Model of the clocks.
    pub presync: Method,
    /// Minimum latencies, in ticks.
    pub latency: MinimumLatency,
    /// Treat Alltoallv and its like as N-to-N.
    pub alltoallv: bool,
    /// Treat the creation of communicators by all members of another one as N-to-N.
    pub handles: bool,
    /// Which fences of windows synchronise.
    pub fences: Fences,
    /// δ: events closer than this allows for are kept.
    pub separation: Ticks,
}

/// One hosted location.
#[derive(Debug)]
pub struct LoadedLocation {
    /// Index into the definitions.
    pub index: usize,
    /// Its clock model.
    pub clock: Clock,
    /// Offsets that the model was made from: recorded, unless steps of threads contradict those.
    pub offsets: Vec<ClockOffset>,
    /// What was recorded instead, where steps of threads contradict it.
    pub recorded: Option<Vec<ClockOffset>>,
    /// What the scan counted.
    pub summary: ScanSummary,
}

/// The hosted part of a trace, ready for the replay.
#[derive(Debug)]
pub struct LocalTrace {
    /// Matched synchronisation events.
    pub program: Program,
    /// The timelines of single locations of the whole trace, in the order of their numbers, which follow those of [`TraceHandle::timelines`].
    pub own: Vec<OwnTimeline>,
    /// Locations of every hosted timeline, in the timeline's order.
    pub locations: Vec<Vec<LoadedLocation>>,
    /// Added to every pre-synchronised time, so that none is negative.
    pub shift: Ticks,
    /// Earliest and latest pre-synchronised time of the whole trace, shift included; `None` if there are no events.
    pub span: Option<(Ticks, Ticks)>,
    /// Earliest recorded time of the whole trace.
    pub raw_origin: Ticks,
    /// Unmatchable things, summed over the hosted timelines.
    pub leftovers: Leftovers,
    /// Communicators that turned out to be parts of others.
    pub joined_communicators: usize,
    /// Where the minimum latencies come from.
    pub latency_basis: LatencyBasis,
}

impl LoadedLocation {
    /// The clock that readers of the trace see, through the offsets as they were recorded.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn readers_clock(&self) -> Result<Clock> {
        let offsets = self.recorded.as_deref().unwrap_or(&self.offsets);
        let clock = Method::Linear.clock(offsets).map(Clock::from)?;
        let (first, last) = self.summary.time_span.unwrap_or((0, 0));
        clock.check_range(Ticks(first as i64), Ticks(last as i64))?;
        Ok(clock)
    }
}

impl LocalTrace {
    /// All locations of the process (or other location group) whose shared timeline is `process`, whatever timelines they have: the timeline of each, and its
    /// place in there. The main location comes first, the others in the order of their definitions.
    pub fn locations_of(&self, process: LocalTimeline) -> Vec<(LocalTimeline, usize)> {
        let places =
            |timeline: LocalTimeline| (0..self.locations[timeline].len()).map(move |number| (timeline, number));
        let mut all: Vec<_> = self.program.timelines_of(process).flat_map(places).collect();
        all.sort_by_key(|&(timeline, number)| {
            let main = (timeline, number) == (process, 0);
            (!main, self.locations[timeline][number].index)
        });
        all
    }

    /// Events of the hosted locations.
    pub fn events(&self) -> u64 {
        self.locations.iter().flatten().map(|location| location.summary.events).sum()
    }
}

/// Scans all hosted timelines and matches them. Collective over the analysis ranks; a failure is everybody's.
///
/// # Errors
/// Anything wrong with the event files or local definitions, references to undefined ids, failures of the transport.
pub fn load(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    options: &LoadOptions,
    progress: &dyn Progress,
    warnings: &mut Warnings,
) -> Result<LocalTrace> {
    load_with(transport, opened, options, None, progress, warnings)
}

/// [`load`] with clocks that are known already.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_with(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    options: &LoadOptions,
    refined: Option<&RefinedClocks>,
    progress: &dyn Progress,
    warnings: &mut Warnings,
) -> Result<LocalTrace> {
    let hosted = opened.placement.hosted_by(transport.rank());
    let table = CommTable::new(&opened.definitions);
    let first = TimelineNumber(hosted.start as u32);
    let expected: u64 = hosted
        .clone()
        .flat_map(|t| &opened.timelines.all[t].locations)
        .map(|&l| opened.definitions.locations[l].claimed_events)
        .fold(0, u64::saturating_add);
    progress.phase("scan", expected);
    let calls = match Calls::of(&opened.definitions) {
        calls if options.handles => calls.with_handles(&opened.definitions),
        calls => calls,
    };
    let accelerators = AcceleratorCalls::of(&opened.definitions);
    let run = |mpi: MpiCalls<'_>| {
        let calls = KnownCalls { mpi, accelerators: &accelerators };
        opened.workers.run(hosted.len(), progress, |job, advance| {
            let timeline = TimelineNumber((hosted.start + job) as u32);
            let clocks = refined.map(|refined| (refined, timeline));
            scan(opened, &opened.timelines.all[timeline], &table, options, clocks, calls, advance)
        })
    };
    let synchronous = calls.synchronous();
    let mut scanned = agree(transport, run(MpiCalls::Sought(&synchronous)))?;
    // Few traces have what only regions tell; those are read once more.
    let divided = |scanned: &TimelineScan| scanned.extract.part_of.iter().any(|&part| part > 0);
    let orders = calls.create_handles() || scanned.iter().any(TimelineScan::has_orders);
    let mut found = [i64::from(orders), i64::from(scanned.iter().any(divided))];
    transport.all_reduce(ReduceOp::Max, &mut found)?;
    let [with_orders, with_own] = found.map(|found| found != 0);
    if with_orders {
        scanned = agree(transport, run(MpiCalls::All(&calls)))?;
    }
    progress.finish();
    let (mut extracts, mut locations) = (Vec::with_capacity(hosted.len()), Vec::with_capacity(hosted.len()));
    for TimelineScan { extract, locations: own, warnings: odd } in scanned {
        extracts.push(extract);
        locations.push(own);
        warnings.merge(odd);
    }

    let (shift, span) = fit_to_zero(transport, &mut extracts, &locations)?;
    let raw_origin = raw_origin(transport, &locations)?;
    let joined_communicators = join_everywhere(transport, &table, first, &mut extracts)?;
    let mut nodes: Vec<u32> = opened.timelines.all.iter().map(|timeline| timeline.node).collect();
    let mut messages = match_messages(transport, &opened.placement, first, &mut extracts, with_orders)?;
    let node_of = |process: u32| nodes[process as usize];
    let rules = Rules { alltoallv: options.alltoallv, fences: options.fences };
    let mut collectives =
        match_collectives(transport, &opened.placement, &table, &node_of, first, &mut extracts, rules)?;
    let mut leftovers = Leftovers::default();
    extracts.iter().for_each(|extract| {
        leftovers.add(&extract.leftovers);
        messages.counts.threads.merge(&extract.threads);
    });
    let ids_of = |locations: &[Vec<LoadedLocation>]| -> Vec<Vec<LocationId>> {
        let id = |location: &LoadedLocation| opened.definitions.locations[location.index].id;
        locations.iter().map(|list| list.iter().map(id).collect()).collect()
    };
    let undefined_peers = undefined_peers(&extracts, &ids_of(&locations));
    let (mut own, mut own_timelines) = (Vec::new(), OwnTimelines::default());
    if with_own {
        let parts = split::parts(&extracts);
        (own, own_timelines) = number(transport, opened, first, &parts)?;
        let numbers = Numbers { first, shared: extracts.len() as u32, further: own_timelines.first };
        split::split(transport, numbers, &parts, &mut extracts, &mut messages, &mut collectives)?;
        divide(&parts, &mut locations);
        nodes.extend(own.iter().map(|own: &OwnTimeline| opened.timelines.all[own.of].node));
    }
    let mut program = Program {
        first,
        timelines: extracts.into_iter().map(|extract| extract.sync).collect(),
        messages,
        collectives,
        latency: options.latency,
        nodes,
        locations: ids_of(&locations),
        own: own_timelines,
        undefined_peers,
        ..Program::default()
    };
    program.index_communicators();
    settle(transport, &mut program)?;
    let latency_basis = LatencyBasis::default();
    Ok(LocalTrace { program, own, locations, shift, span, raw_origin, leftovers, joined_communicators, latency_basis })
}

/// Numbers the timelines of single locations of the whole trace. Collective over the analysis ranks.
fn number(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    first: TimelineNumber,
    parts: &[SplitTimeline],
) -> Result<(Vec<OwnTimeline>, OwnTimelines)> {
    let here: Vec<OwnTimeline> = parts
        .iter()
        .map(|part| OwnTimeline {
            of: part.of.numbered_from(first),
            location: part.locations.first().copied().unwrap_or(0),
        })
        .collect();
    let everywhere = all_gather_values(transport, &here)?;
    let before: usize = everywhere.iter().take(transport.rank().place()).map(Vec::len).sum();
    let own: Vec<OwnTimeline> = everywhere.into_iter().flatten().collect();
    let others = opened.timelines.all.len() as u32;
    let timelines = OwnTimelines {
        first: TimelineNumber(others + before as u32),
        here: parts.len() as u32,
        others,
        of: own.iter().map(|own| own.of).collect(),
    };
    Ok((own, timelines))
}

/// Moves the locations of `parts` to lists of their own.
fn divide(parts: &[SplitTimeline], locations: &mut Vec<Vec<LoadedLocation>>) {
    // From the last one on, so that places stay.
    let mut moved: Vec<Vec<LoadedLocation>> = Vec::with_capacity(parts.len());
    for part in parts.iter().rev() {
        let list = &mut locations[part.of];
        let mut own: Vec<LoadedLocation> =
            part.locations.iter().rev().map(|&location| list.remove(location as usize)).collect();
        own.reverse();
        moved.push(own);
    }
    locations.extend(moved.into_iter().rev());
}

/// The first events that name no partner.
fn undefined_peers(extracts: &[Extract], ids: &[Vec<LocationId>]) -> Vec<UndefinedPeer> {
    let of_timeline = |(extract, ids): (&Extract, &Vec<LocationId>)| -> Vec<UndefinedPeer> {
        let sync = &extract.sync;
        let name = |&(event, sends): &(u32, bool)| UndefinedPeer {
            sends,
            location: ids[sync.location(event as usize) as usize],
            event: sync.number(event as usize),
        };
        extract.undefined.iter().map(name).collect()
    };
    extracts.iter().zip(ids).flat_map(of_timeline).take(UndefinedPeer::EXAMPLES).collect()
}

/// What the scan of one timeline found.
struct TimelineScan {
    extract: Extract,
    locations: Vec<LoadedLocation>,
    warnings: Warnings,
}

/// What is known of calls when a timeline is scanned.
#[derive(Clone, Copy)]
struct KnownCalls<'a> {
    mpi: MpiCalls<'a>,
    accelerators: &'a AcceleratorCalls,
}

/// What is known of calls of MPI.
#[derive(Clone, Copy)]
enum MpiCalls<'a> {
    /// Only which regions (ascending) would be worth another scan.
    Sought(&'a [RegionId]),
    /// All of them matter.
    All(&'a Calls),
}

/// Record type of OTF2 `RmaGroupSync`.
const GROUP_SYNC: usize = 39;

impl TimelineScan {
    /// Whether regions tell more than was read.
    fn has_orders(&self) -> bool {
        let summaries = || self.locations.iter().map(|location| &location.summary);
        summaries().any(|summary| summary.sent_within || summary.by_type[GROUP_SYNC] > 0)
    }
}

/// Scans one timeline.
fn scan(
    opened: &TraceHandle,
    timeline: &Timeline,
    table: &CommTable<'_>,
    options: &LoadOptions,
    refined: Option<(&RefinedClocks, TimelineNumber)>,
    known: KnownCalls<'_>,
    advance: Advance<'_>,
) -> Result<TimelineScan> {
    let archive = &opened.archive;
    let mut warnings = Warnings::default();
    let mut locals = Vec::new();
    for &index in &timeline.locations {
        locals.push(archive.local_definitions(opened.definitions.locations[index].id)?);
    }
    // Locations of one process share its clock: one without records of its own uses those of another.
    let fallback: Vec<ClockOffset> = locals
        .iter()
        .map(|local| &local.clock_offsets)
        .find(|offsets| !offsets.is_empty())
        .cloned()
        .unwrap_or_default();
    let (calls, sought) = match known.mpi {
        MpiCalls::Sought(regions) => (None, regions),
        MpiCalls::All(calls) => (Some(calls), &[][..]),
    };
    let mut extractor = Extractor::new(table, timeline.process).with_calls(calls);
    // A refined clock can bring neighbours closer by a tick.
    let close = match ForwardParameters::close(options.separation).0 {
        close if close > 0 && options.presync.refines() => close.saturating_add(1),
        close => close,
    };
    let mut several: Option<Vec<Visit>> = (timeline.locations.len() > 1).then(Vec::new);
    let mut loaded: Vec<LoadedLocation> = Vec::new();
    let mut threads = Threads::new(opened, known.accelerators, &timeline.locations);
    for (number, (&index, local)) in timeline.locations.iter().zip(&locals).enumerate() {
        let id = opened.definitions.locations[index].id;
        let own = &local.clock_offsets;
        if own.is_empty() && !fallback.is_empty() && options.presync != Method::None {
            warnings.add("locations without clock offsets use those of another location of the same process");
        }
        let offsets = if own.is_empty() { fallback.clone() } else { own.clone() };
        let clock = match refined {
            Some((clocks, timeline)) => clocks.of_location(timeline, number as u32).clone(),
            None => options
                .presync
                .clock(&offsets)
                .map(Clock::from)
                .map_err(|error| error.in_file(&archive.local_definition_path(id)).at_location(id))?,
        };
        let mut visits = Visits::new(number as u32, &clock, close, calls);
        let mut within = SendsWithin { regions: sought, last: None, sent: false };
        let mut counted = 0u64;
        let mut count = |events: usize| {
            counted += events as u64;
            if counted >= 1 << 16 {
                advance(std::mem::take(&mut counted));
            }
        };
        let summary = match &mut several {
            // Regions tell when a location posted a receive that another location may have been ahead of.
            Some(list) => {
                let references = threads.steps.stream_references().unwrap_or_default();
                let mut visit = |event_number, raw, event: Event, stream| {
                    count(1);
                    within.look(&event);
                    if threads.takes(number, &event) {
                        threads.steps.add(visits.place(event_number, raw)?, &event);
                    }
                    if threads.steps.takes_of_accelerators(number as u32, &event) {
                        threads.steps.add_of_accelerators(visits.place(event_number, raw)?, &event, stream);
                    }
                    visits.collect(event_number, raw, &event, list)
                };
                match references {
                    [] => archive.scan_with(id, local, |number, raw, event| visit(number, raw, event, None)),
                    references => archive.scan_on_streams(id, local, references, visit),
                }
            }
            None if calls.is_some() => archive.scan_with(id, local, |event_number, raw, event| {
                count(1);
                visits.feed(event_number, raw, &event, &mut extractor)
            }),
            None => {
                let mut only = Only { visits: &mut visits, extractor: &mut extractor, within: &mut within, count };
                archive.scan_synchronisation(id, local, sought, &mut only)
            }
        };
        let sent_within = within.sent;
        let summary = summary.map(|summary| ScanSummary { sent_within: summary.sent_within || sent_within, ..summary });
        let summary = summary.map_err(|error| error.in_file(&archive.event_path(id)).at_location(id))?;
        advance(counted);
        if let Some((first, last)) = summary.time_span {
            clock
                .check_range(Ticks(first as i64), Ticks(last as i64))
                .map_err(|error| error.in_file(&archive.local_definition_path(id)).at_location(id))?;
        }
        summary.warnings.iter().for_each(|text| warnings.add(text.clone()));
        loaded.push(LoadedLocation { index, clock, offsets, recorded: None, summary });
    }
    let mut divided = Divided::default();
    let mut event_of: BTreeMap<(u32, EventNumber), u32> = BTreeMap::new();
    if let Some(mut visits) = several {
        divided = threads.divide(&loaded, refined, options, &mut warnings);
        if divided.is_divided() {
            if refined.is_none() && options.presync.refines() {
                put_right(&divided, options, &mut loaded, &mut visits, &mut threads.steps)?;
            }
            let step = |at: EventCoordinates| Visit { at, what: VisitKind::Step, near: false };
            visits.extend(threads.steps.places(&divided).into_iter().map(step));
        }
        visits.sort_unstable_by_key(|visit| (visit.at.time, visit.at.location, visit.at.number, visit.what.order()));
        for Visit { at, what, near } in visits {
            let index = timeline.locations[at.location as usize];
            let id = opened.definitions.locations[index].id;
            let visited = match what {
                VisitKind::Event(event) => extractor.event(at, &event),
                VisitKind::EnterReceive => extractor.enter_receive(at).map(|()| true),
                VisitKind::Step => extractor.once(at).map(|event| {
                    event_of.insert((at.location, at.number), event);
                    true
                }),
                VisitKind::Neighbour => Ok(false),
            };
            let visited =
                visited.map_err(|error| error.at_event(at.number).in_file(&archive.event_path(id)).at_location(id))?;
            if near && !visited {
                extractor.once(at)?;
            }
        }
    }
    let mut extract = extractor.finish();
    if divided.is_divided() {
        extract.thread_orders = threads.steps.orders(&divided, &event_of);
        extract.part_of = divided.part_of;
    }
    extract.threads = divided.counts;
    Ok(TimelineScan { extract, locations: loaded, warnings })
}

/// The steps of the threads of a process, while it is scanned.
struct Threads<'a> {
    steps: ProcessThreadSteps<'a>,
    /// Whether they are looked at.
    wanted: bool,
    /// Locations that stay with their process.
    bound: TiedLocations,
}

impl<'a> Threads<'a> {
    fn new(opened: &'a TraceHandle, calls: &'a AcceleratorCalls, locations: &[usize]) -> Self {
        let wanted = locations.len() > 1;
        let accelerators = wanted.then(|| ProcessAccelerators::new(calls, &opened.definitions, locations)).flatten();
        let steps = ProcessThreadSteps::new(&opened.definitions.thread_barriers, accelerators);
        Threads { steps, wanted, bound: TiedLocations::default() }
    }

    /// Whether an event is a step; takes note of what binds its location to the process.
    #[inline]
    fn takes(&mut self, location: usize, event: &Event) -> bool {
        self.bound.read(location as u32, event);
        self.wanted && self.steps.takes(event)
    }

    /// Which locations have timelines of their own: those whose recorded offsets are not those of the process, and those whose steps are out of order.
    fn divide(
        &self,
        loaded: &[LoadedLocation],
        refined: Option<(&RefinedClocks, TimelineNumber)>,
        options: &LoadOptions,
        warnings: &mut Warnings,
    ) -> Divided {
        let locations = loaded.len();
        let (mut apart, bound) = (vec![false; locations], self.bound.of(locations));
        for (number, location) in loaded.iter().enumerate().skip(1) {
            let differs = options.presync != Method::None && differ(&loaded[0].offsets, &location.offsets);
            apart[number] = match refined {
                Some((clocks, timeline)) => clocks.has_own(timeline, number as u32),
                None => differs,
            };
            if differs && bound[number] {
                warnings.add(
                    "the recorded clock offsets of some locations differ from those of their process; they still get \
                    its correction, because they share collective operations with other locations",
                );
            }
        }
        if !self.wanted {
            return Divided::default();
        }
        let divided = self.steps.divide(&apart, &bound);
        let own = divided.part_of.iter().filter(|&&part| part > 0).count() as u64;
        if own > 0 && refined.is_none() {
            warnings.add_many(
                "some locations have their own clocks: their recorded offsets differ from those of their process, or \
                thread events are out of order",
                own,
            );
        }
        divided
    }
}

/// Puts the clocks of locations with timelines of their own right, where their steps with other threads tell it.
fn put_right(
    divided: &Divided,
    options: &LoadOptions,
    loaded: &mut [LoadedLocation],
    visits: &mut [Visit],
    steps: &mut ProcessThreadSteps<'_>,
) -> Result<()> {
    for (&number, bounds) in &divided.bounds {
        let location = &mut loaded[number as usize];
        let knots = put_forward(&bounds.least, &bounds.most);
        if divided.part_of[number as usize] == 0 || knots.is_empty() {
            continue;
        }
        let (clock, offsets) = match put_ahead(options.presync, &location.offsets, &knots, location.summary.time_span) {
            Ok(ahead) => ahead,
            // Beyond the range of times, or backwards: it stays as it was recorded.
            Err(_) => continue,
        };
        location.recorded = Some(std::mem::replace(&mut location.offsets, offsets));
        location.clock = Clock::from(clock);
        let clock = &location.clock;
        let time = |raw: i64| clock.map(Ticks(raw)).0;
        visits.iter_mut().filter(|visit| visit.at.location == number).for_each(|v| v.at.time = time(v.at.raw));
        steps.map(number, time);
    }
    Ok(())
}

/// Earliest and latest pre-synchronised times of all ranks. If the earliest is negative (a clock offset can do that), everything
/// is shifted, since timestamps are not negative.
fn fit_to_zero(
    transport: &mut dyn Transport,
    extracts: &mut [Extract],
    locations: &[Vec<LoadedLocation>],
) -> Result<(Ticks, Option<(Ticks, Ticks)>)> {
    // The latest is negated: one minimum for both.
    let mut ends = [i64::MAX; 2];
    for location in locations.iter().flatten() {
        if let Some((first, last)) = location.summary.time_span {
            let map = |raw: u64| location.clock.map(Ticks(raw.min(RANGE as u64) as i64)).0;
            ends = [ends[0].min(map(first)), ends[1].min(-map(last))];
        }
    }
    transport.all_reduce(ReduceOp::Min, &mut ends)?;
    if ends[0] == i64::MAX {
        return Ok((Ticks::ZERO, None));
    }
    let shift = (-ends[0]).max(0);
    if shift > 0 {
        for extract in extracts {
            extract.sync.time.iter_mut().for_each(|time| *time += shift);
        }
    }
    Ok((Ticks(shift), Some((Ticks(ends[0] + shift), Ticks(-ends[1] + shift)))))
}

/// Earliest recorded time of all ranks; 0 without events.
fn raw_origin(transport: &mut dyn Transport, locations: &[Vec<LoadedLocation>]) -> Result<Ticks> {
    let spans = locations.iter().flatten().filter_map(|location| location.summary.time_span);
    let mut first = [spans.map(|(first, _)| first.min(RANGE as u64) as i64).min().unwrap_or(i64::MAX)];
    transport.all_reduce(ReduceOp::Min, &mut first)?;
    Ok(Ticks(if first[0] == i64::MAX { 0 } else { first[0] }))
}

/// Number of events by OTF2 record name, over the hosted locations.
pub(crate) fn events_by_kind(loaded: &LocalTrace) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for location in loaded.locations.iter().flatten() {
        for (kind, count) in location.summary.by_kind() {
            *counts.entry(kind.to_string()).or_default() += count;
        }
    }
    counts
}
