//! Scanning the hosted timelines once and matching what they did with whom.

use crate::archive::ScanSummary;
use crate::clc::forward::ForwardParameters;
use crate::clc::latency::{LatencyBasis, MinimumLatency};
use crate::comm::{ReduceOp, Transport, agree};
use crate::matching::calls::Calls;
use crate::matching::collectives::{Rules, match_collectives};
use crate::matching::communicators::{CommTable, join_everywhere};
use crate::matching::extract::{Extract, Extractor, Leftovers, Place};
use crate::matching::fences::Fences;
use crate::matching::messages::match_messages;
use crate::matching::undefined::UndefinedPeer;
use crate::pipeline::clocks::RefinedClocks;
use crate::pipeline::open::Opened;
use crate::presync::{Clock, Method, RANGE};
use crate::replay::program::Program;
use crate::replay::settle::settle;
use crate::report::Warnings;
use crate::trace::progress::Progress;
use crate::trace::{ClockOffset, Error, Event, LocationId, RegionId, Result, Ticks, Timeline};
use crate::workers::Advance;
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
    /// Number of recorded offsets that the model was made from.
    pub offsets: Vec<ClockOffset>,
    /// What the scan counted.
    pub summary: ScanSummary,
}

/// The hosted part of a trace, ready for the replay.
#[derive(Debug)]
pub struct Loaded {
    /// Matched synchronisation events.
    pub program: Program,
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

impl Loaded {
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
    opened: &Opened,
    options: &LoadOptions,
    progress: &dyn Progress,
    warnings: &mut Warnings,
) -> Result<Loaded> {
    load_with(transport, opened, options, None, progress, warnings)
}

/// [`load`] with clocks that are known already.
///
/// # Errors
/// As [`load`].
pub fn load_with(
    transport: &mut dyn Transport,
    opened: &Opened,
    options: &LoadOptions,
    refined: Option<&RefinedClocks>,
    progress: &dyn Progress,
    warnings: &mut Warnings,
) -> Result<Loaded> {
    let hosted = opened.placement.hosted_by(transport.rank());
    let table = CommTable::new(&opened.definitions);
    let first = hosted.start as u32;
    let expected: u64 = hosted
        .clone()
        .flat_map(|t| &opened.timelines.all[t].locations)
        .map(|&l| opened.definitions.locations[l].claimed_events)
        .fold(0, u64::saturating_add);
    progress.phase("scan", expected);
    let calls = Calls::of(&opened.definitions);
    let run = |calls: Known<'_>| {
        opened.workers.run(hosted.len(), progress, |job, advance| {
            let timeline = hosted.start + job;
            let clock = refined.map(|refined| refined.of(timeline));
            scan(opened, &opened.timelines.all[timeline], &table, options, clock, calls, advance)
        })
    };
    let synchronous = calls.synchronous();
    let mut scanned = agree(transport, run(Known::Sought(&synchronous)))?;
    // Few traces have what only regions tell; those are read once more.
    let mut with_orders = [i64::from(scanned.iter().any(Scanned::has_orders))];
    transport.all_reduce(ReduceOp::Max, &mut with_orders)?;
    let with_orders = with_orders[0] != 0;
    if with_orders {
        scanned = agree(transport, run(Known::All(&calls)))?;
    }
    progress.finish();
    let (mut extracts, mut locations) = (Vec::with_capacity(hosted.len()), Vec::with_capacity(hosted.len()));
    for Scanned { extract, locations: own, warnings: odd } in scanned {
        extracts.push(extract);
        locations.push(own);
        warnings.merge(odd);
    }

    let (shift, span) = fit_to_zero(transport, &mut extracts, &locations)?;
    let raw_origin = raw_origin(transport, &locations)?;
    let joined_communicators = join_everywhere(transport, &table, first, &mut extracts)?;
    let nodes: Vec<u32> = opened.timelines.all.iter().map(|timeline| timeline.node).collect();
    let messages = match_messages(transport, &opened.placement, first, &mut extracts, with_orders)?;
    let node_of = |process: u32| nodes[process as usize];
    let rules = Rules { alltoallv: options.alltoallv, fences: options.fences };
    let collectives = match_collectives(transport, &opened.placement, &table, &node_of, first, &mut extracts, rules)?;
    let mut leftovers = Leftovers::default();
    extracts.iter().for_each(|extract| leftovers.add(&extract.leftovers));
    let ids: Vec<Vec<LocationId>> =
        locations.iter().map(|list| list.iter().map(|l| opened.definitions.locations[l.index].id).collect()).collect();
    let undefined_peers = undefined_peers(&extracts, &ids);
    let mut program = Program {
        first,
        timelines: extracts.into_iter().map(|extract| extract.sync).collect(),
        messages,
        collectives,
        latency: options.latency,
        nodes,
        locations: ids,
        undefined_peers,
        ..Program::default()
    };
    program.index_communicators();
    settle(transport, &mut program)?;
    let latency_basis = LatencyBasis::default();
    Ok(Loaded { program, locations, shift, span, raw_origin, leftovers, joined_communicators, latency_basis })
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
struct Scanned {
    extract: Extract,
    locations: Vec<LoadedLocation>,
    warnings: Warnings,
}

/// What is known of calls of MPI when a timeline is scanned.
#[derive(Clone, Copy)]
enum Known<'a> {
    /// Only which regions (ascending) would be worth another scan.
    Sought(&'a [RegionId]),
    /// All of them matter.
    All(&'a Calls),
}

/// Record type of OTF2 `RmaGroupSync`.
const GROUP_SYNC: usize = 39;

impl Scanned {
    /// Whether regions tell more than was read.
    fn has_orders(&self) -> bool {
        let summaries = || self.locations.iter().map(|location| &location.summary);
        summaries().any(|summary| summary.sent_within || summary.by_type[GROUP_SYNC] > 0)
    }
}

/// Scans one timeline.
fn scan(
    opened: &Opened,
    timeline: &Timeline,
    table: &CommTable<'_>,
    options: &LoadOptions,
    refined: Option<&Clock>,
    known: Known<'_>,
    advance: Advance<'_>,
) -> Result<Scanned> {
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
    let (calls, sought) = match known {
        Known::Sought(regions) => (None, regions),
        Known::All(calls) => (Some(calls), &[][..]),
    };
    let mut extractor = Extractor::new(table, timeline.process).with_calls(calls);
    // A refined clock can bring neighbours closer by a tick.
    let close = match ForwardParameters::close(options.separation).0 {
        close if close > 0 && options.presync.refines() => close.saturating_add(1),
        close => close,
    };
    let mut several: Option<Vec<Visit>> = (timeline.locations.len() > 1).then(Vec::new);
    let mut loaded = Vec::new();
    for (number, (&index, local)) in timeline.locations.iter().zip(&locals).enumerate() {
        let id = opened.definitions.locations[index].id;
        let own = &local.clock_offsets;
        if own.is_empty() && !fallback.is_empty() && options.presync != Method::None {
            warnings.add("locations without clock offsets use those of another location of the same process");
        }
        let offsets = if own.is_empty() { fallback.clone() } else { own.clone() };
        let clock = match refined {
            Some(clock) => clock.clone(),
            None => options
                .presync
                .clock(&offsets)
                .map(Clock::from)
                .map_err(|error| error.in_file(&archive.local_definition_path(id)).at_location(id))?,
        };
        let mut visits = Visits::new(number as u32, &clock, close, calls);
        let mut within = Within { regions: sought, last: None, sent: false };
        let mut counted = 0u64;
        let mut count = || {
            counted += 1;
            if counted == 1 << 16 {
                advance(std::mem::take(&mut counted));
            }
        };
        let summary = match &mut several {
            // Regions tell when a location posted a receive that another location may have been ahead of.
            Some(list) => archive.scan_with(id, local, |event_number, raw, event| {
                count();
                within.look(&event);
                visits.collect(event_number, raw, &event, list)
            }),
            None if calls.is_some() => archive.scan_with(id, local, |event_number, raw, event| {
                count();
                visits.feed(event_number, raw, &event, &mut extractor)
            }),
            None => archive.scan_synchronisation(id, local, sought, |event_number, raw, event| {
                count();
                within.look(&event);
                visits.feed(event_number, raw, &event, &mut extractor)
            }),
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
        loaded.push(LoadedLocation { index, clock, offsets, summary });
    }
    if let Some(mut visits) = several {
        visits.sort_unstable_by_key(|visit| (visit.at.time, visit.at.location, visit.at.number));
        for Visit { at, what, near } in visits {
            let index = timeline.locations[at.location as usize];
            let id = opened.definitions.locations[index].id;
            let visited = match what {
                Visited::Event(event) => extractor.event(at, &event),
                Visited::EnterReceive => extractor.enter_receive(at).map(|()| true),
                Visited::Neighbour => Ok(false),
            };
            let visited =
                visited.map_err(|error| error.at_event(at.number).in_file(&archive.event_path(id)).at_location(id))?;
            if near && !visited {
                extractor.near(at)?;
            }
        }
    }
    Ok(Scanned { extract: extractor.finish(), locations: loaded, warnings })
}

/// An event to visit, where the events of several locations have to be merged first.
#[derive(Debug, Clone, Copy)]
struct Visit {
    at: Place,
    what: Visited,
    near: bool,
}

/// Why an event is visited.
#[derive(Debug, Clone, Copy)]
enum Visited {
    /// It matters.
    Event(Event),
    /// It enters the region in which the next blocking receive of the location is recorded. The same event may be visited as a neighbour, too.
    EnterReceive,
    /// It is only close to one that is visited.
    Neighbour,
}

/// Finds out whether a location sends in one of some regions, where enters and leaves are read.
struct Within<'a> {
    /// Ascending.
    regions: &'a [RegionId],
    /// The last event that entered or left a region entered this one.
    last: Option<RegionId>,
    sent: bool,
}

impl Within<'_> {
    #[inline]
    fn look(&mut self, event: &Event) {
        match event {
            Event::Enter(region) => self.last = Some(*region),
            Event::Leave(_) => self.last = None,
            Event::MpiSend(_) | Event::MpiIsend(..) => {
                self.sent |= self.last.is_some_and(|region| self.regions.binary_search(&region).is_ok());
            }
            _ => {}
        }
    }
}

/// Decides which events of a location are visited.
struct Visits<'a> {
    location: u32,
    cursor: crate::presync::Cursor<'a>,
    /// Neighbours that differ by less than this (and not by zero) are visited both.
    close: i64,
    /// Neighbours recorded so far apart, or at the same time, are not close: nearly all are, and need not be mapped for that.
    far: u64,
    /// Recorded time of the event before.
    before: u64,
    /// Whether that one has been visited.
    visited: bool,
    /// Regions that are open, outermost first: number and recorded time of the event that entered each. Of several locations only.
    open: Vec<(u64, u64)>,
    /// Number of the last event after which a receive can have been posted: a posted or completed one, or a collective operation.
    busy: u64,
    /// The regions that are visited.
    calls: Option<&'a Calls>,
}

impl<'a> Visits<'a> {
    fn new(location: u32, clock: &'a Clock, close: i64, calls: Option<&'a Calls>) -> Self {
        let far = clock.reach(close.max(0) as u64);
        Visits {
            location,
            cursor: clock.cursor(),
            close,
            far,
            before: 0,
            visited: false,
            open: Vec::new(),
            busy: 0,
            calls,
        }
    }

    #[inline]
    fn place(&mut self, number: u64, raw: u64) -> Result<Place> {
        let local = i64::try_from(raw).ok().filter(|&raw| raw < RANGE).ok_or_else(|| {
            Error::new(format!("timestamp {raw} is beyond 2^62 ticks, more than this program can compute with"))
                .at_event(number)
        })?;
        Ok(Place { time: self.cursor.map(Ticks(local)).0, raw: local, number, location: self.location })
    }

    /// Whether an event has to be looked at.
    #[inline]
    fn is_relevant(&self, event: &Event) -> bool {
        Extractor::is_relevant(event) || self.calls.is_some_and(|calls| is_call(calls, event))
    }

    /// Whether nothing is to be done for this event.
    #[inline]
    fn passes(&mut self, number: u64, raw: u64, event: &Event) -> bool {
        let distance = raw.wrapping_sub(self.before);
        let passes =
            (distance == 0 || distance >= self.far || number == 1) && !self.is_relevant(event) && raw < RANGE as u64;
        if passes {
            (self.before, self.visited) = (raw, false);
        }
        passes
    }

    /// The event before `at` if the two are close.
    #[inline]
    fn neighbour(&mut self, at: &Place) -> Result<Option<Place>> {
        let distance = (at.raw as u64).wrapping_sub(self.before);
        if at.number == 1 || distance == 0 || distance >= self.far {
            return Ok(None);
        }
        let before = self.place(at.number - 1, self.before)?;
        let distance = at.time - before.time;
        Ok((distance > 0 && distance < self.close).then_some(before))
    }

    /// Reads an event of the only location of a timeline.
    #[inline]
    fn feed(&mut self, number: u64, raw: u64, event: &Event, extractor: &mut Extractor<'_>) -> Result<()> {
        if self.passes(number, raw, event) {
            return Ok(());
        }
        let at = self.place(number, raw)?;
        let near = self.neighbour(&at)?;
        if let Some(before) = near.filter(|_| !self.visited) {
            extractor.near(before)?;
        }
        let mut visited = false;
        if self.is_relevant(event) {
            visited = extractor.event(at, event).map_err(|error| error.at_event(number))?;
        }
        if near.is_some() && !visited {
            extractor.near(at)?;
            visited = true;
        }
        (self.before, self.visited) = (raw, visited);
        Ok(())
    }

    /// Reads an event of one of several locations.
    fn collect(&mut self, number: u64, raw: u64, event: &Event, list: &mut Vec<Visit>) -> Result<()> {
        match event {
            Event::Enter(_) => self.open.push((number, raw)),
            Event::Leave(_) => drop(self.open.pop()),
            _ => {}
        }
        if self.passes(number, raw, event) {
            return Ok(());
        }
        let at = self.place(number, raw)?;
        let near = self.neighbour(&at)?;
        if let Some(before) = near.filter(|_| !self.visited) {
            // It may be in the list already, for an event that is read but not visited.
            match list.last_mut() {
                Some(last) if last.at.number == before.number && last.at.location == before.location => {
                    last.near = true
                }
                _ => list.push(Visit { at: before, what: Visited::Neighbour, near: true }),
            }
        }
        if let Some(at) = self.entered(number, event)? {
            list.push(Visit { at, what: Visited::EnterReceive, near: false });
        }
        let what = if self.is_relevant(event) { Visited::Event(*event) } else { Visited::Neighbour };
        if matches!(what, Visited::Event(_)) || near.is_some() {
            list.push(Visit { at, what, near: near.is_some() });
        }
        (self.before, self.visited) = (raw, near.is_some());
        Ok(())
    }
}

/// Whether an event enters or leaves a call that matters.
fn is_call(calls: &Calls, event: &Event) -> bool {
    match event {
        Event::Enter(region) | Event::Leave(region) => calls.get(*region).is_some(),
        _ => false,
    }
}

impl Visits<'_> {
    /// Where a blocking receive was posted: the event that entered the innermost region, unless the location has received something since
    /// (then the region is one of the application, since the trace has none of MPI).
    fn entered(&mut self, number: u64, event: &Event) -> Result<Option<Place>> {
        let entered = self.open.last().copied().filter(|&(entered, _)| entered > self.busy);
        match event {
            Event::MpiSend(_) | Event::MpiIsend(..) | Event::MpiIsendComplete(_) => return Ok(None),
            event if Extractor::is_relevant(event) => self.busy = number,
            _ => return Ok(None),
        }
        match (event, entered) {
            (Event::MpiRecv(_), Some((number, raw))) => self.place(number, raw).map(Some),
            _ => Ok(None),
        }
    }
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
pub fn events_by_kind(loaded: &Loaded) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for location in loaded.locations.iter().flatten() {
        for (kind, count) in location.summary.by_kind() {
            *counts.entry(kind.to_string()).or_default() += count;
        }
    }
    counts
}
