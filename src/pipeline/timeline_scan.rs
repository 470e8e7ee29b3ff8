//! The scan of one hosted timeline: what it does with others, and which of its locations have clocks of their own.

use crate::pipeline::local_trace::{LoadOptions, LoadedLocation};
use crate::pipeline::open::TraceHandle;
use crate::pipeline::own_clocks::{differ, put_ahead};
use crate::pipeline::visits::{Only, SendsWithin, Visit, VisitKind, Visits};
use crate::report::Warnings;
use clc_archive::ScanSummary;
use clc_clock::{Clock, Method, RefinedClocks, put_forward};
use clc_engine::matching::communicators::CommTable;
use clc_engine::matching::extract::Extractor;
use clc_engine::matching::extract::calls::Calls;
use clc_engine::matching::extracted::Extract;
use clc_engine::matching::split::TiedLocations;
use clc_engine::matching::within::accelerators::{AcceleratorCalls, ProcessAccelerators};
use clc_engine::matching::within::steps::Steps;
use clc_engine::matching::within::threads::{Divided, ProcessThreadSteps};
use clc_trace::workers::Advance;
use clc_trace::{ClockOffset, Event, RegionId, Result, Ticks, Timeline, TimelineNumber};
use controlled_logical_clock::forward::ForwardParameters;

/// What the scan of one timeline found.
pub(super) struct TimelineScan {
    pub(super) extract: Extract,
    pub(super) locations: Vec<LoadedLocation>,
    pub(super) warnings: Warnings,
}

/// What is known of calls when a timeline is scanned.
#[derive(Clone, Copy)]
pub(super) struct KnownCalls<'a> {
    pub(super) mpi: MpiCalls<'a>,
    pub(super) accelerators: &'a AcceleratorCalls,
}

/// What is known of calls of MPI.
#[derive(Clone, Copy)]
pub(super) enum MpiCalls<'a> {
    /// Only which regions (ascending) would be worth another scan.
    Sought(&'a [RegionId]),
    /// All of them matter.
    All(&'a Calls),
}

/// Record type of OTF2 `RmaGroupSync`.
const GROUP_SYNC: usize = 39;

impl TimelineScan {
    /// Whether regions tell more than was read.
    pub(super) fn has_orders(&self) -> bool {
        let summaries = || self.locations.iter().map(|location| &location.summary);
        summaries().any(|summary| summary.sent_within || summary.by_type[GROUP_SYNC] > 0)
    }
}

/// Memory that is needed while a timeline of several locations is scanned, and can be used again for the next one.
#[derive(Default)]
pub(super) struct Scratch {
    visits: Vec<Visit>,
    steps: Steps,
}

/// Scans one timeline.
pub(super) fn scan(
    opened: &TraceHandle,
    timeline: &Timeline,
    table: &CommTable<'_>,
    options: &LoadOptions,
    refined: Option<(&RefinedClocks, TimelineNumber)>,
    known: KnownCalls<'_>,
    (scratch, advance): (&mut Scratch, Advance<'_>),
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
    let mut several: Option<Vec<Visit>> = (timeline.locations.len() > 1).then(|| std::mem::take(&mut scratch.visits));
    let mut loaded: Vec<LoadedLocation> = Vec::new();
    let memory = std::mem::take(&mut scratch.steps);
    let mut threads = Threads::new(opened, known.accelerators, &timeline.locations, memory);
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
    // Visited events of steps.
    let mut event_of: Vec<(usize, u32)> = Vec::new();
    if let Some(mut visits) = several {
        divided = threads.divide(&loaded, refined, options, &mut warnings);
        if divided.is_divided() {
            if refined.is_none() && options.presync.refines() {
                put_right(&divided, options, &mut loaded, &mut visits, &mut threads.steps)?;
            }
            let step = |(step, at)| Visit { at, what: VisitKind::Step(step), near: false };
            visits.extend(threads.steps.places(&divided).map(step));
        }
        visits.sort_unstable_by_key(|visit| (visit.at.time, visit.at.location, visit.at.number, visit.what.order()));
        for Visit { at, what, near } in visits.drain(..) {
            let index = timeline.locations[at.location as usize];
            let id = opened.definitions.locations[index].id;
            let visited = match what {
                VisitKind::Event(event) => extractor.event(at, &event),
                VisitKind::EnterReceive => extractor.enter_receive(at).map(|()| true),
                VisitKind::Step(step) => extractor.once(at).map(|event| {
                    event_of.push((step, event));
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
        scratch.visits = visits;
    }
    let mut extract = extractor.finish();
    if divided.is_divided() {
        extract.thread_orders = threads.steps.orders(&divided, &event_of);
        extract.part_of = divided.part_of;
    }
    extract.threads = divided.counts;
    scratch.steps = threads.steps.into_memory();
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
    fn new(opened: &'a TraceHandle, calls: &'a AcceleratorCalls, locations: &[usize], memory: Steps) -> Self {
        let wanted = locations.len() > 1;
        let accelerators = wanted.then(|| ProcessAccelerators::new(calls, &opened.definitions, locations)).flatten();
        let steps = ProcessThreadSteps::new(&opened.definitions.thread_barriers, accelerators).with_memory(memory);
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
