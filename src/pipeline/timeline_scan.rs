//! The scan of one hosted timeline: what it does with others, and which of its locations have clocks of their own.

use crate::pipeline::local_trace::{LoadOptions, LoadedLocation, LocationTie};
use crate::pipeline::open::TraceHandle;
use crate::pipeline::own_clocks::{differ, put_ahead};
use crate::pipeline::visits::{Only, SendsWithin, Visit, VisitKind, Visits};
use crate::report::Warnings;
use clc_archive::ScanSummary;
use clc_clock::{Clock, Method, RefinedClocks, put_forward, without_impossible};
use clc_engine::matching::communicators::CommTable;
use clc_engine::matching::extract::Extractor;
use clc_engine::matching::extract::calls::Calls;
use clc_engine::matching::extracted::Extract;
use clc_engine::matching::sync::{EventCoordinates, LayerStart};
use clc_engine::matching::within::accelerators::{AcceleratorCalls, ProcessAccelerators};
use clc_engine::matching::within::operations::{Shared, SharedOperations};
use clc_engine::matching::within::steps::Steps;
use clc_engine::matching::within::threads::{Divided, ProcessThreadSteps};
use clc_engine::matching::within::ties::{Tie, layer_of};
use clc_otf2::LocalDefinitions;
use clc_trace::progress::BLOCK;
use clc_trace::workers::Advance;
use clc_trace::{ClockOffset, Event, LocationId, RegionId, Result, Ticks, Timeline, TimelineNumber};
use controlled_logical_clock::forward::ForwardParameters;
use std::collections::BTreeSet;

/// What the scan of one timeline found.
pub(super) struct TimelineScan {
    pub(super) extract: Extract,
    pub(super) locations: Vec<LoadedLocation>,
    pub(super) warnings: Warnings,
}

/// What is known of the clocks of a timeline when it is scanned.
#[derive(Clone, Copy)]
pub(super) struct KnownClocks<'a> {
    /// Those of all timelines, and which this is.
    pub(super) refined: Option<(&'a RefinedClocks, TimelineNumber)>,
    /// Offsets of its process in the place of the recorded ones.
    pub(super) offsets: Option<&'a Vec<ClockOffset>>,
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
    clocks: KnownClocks<'_>,
    known: KnownCalls<'_>,
    (scratch, advance): (&mut Scratch, Advance<'_>),
) -> Result<TimelineScan> {
    let mut locals = Vec::new();
    for &index in &timeline.locations {
        locals.push(opened.archive.local_definitions(opened.definitions.locations[index].id)?);
    }
    let (calls, sought) = match known.mpi {
        MpiCalls::Sought(regions) => (None, regions),
        MpiCalls::All(calls) => (Some(calls), &[][..]),
    };
    let memory = std::mem::take(&mut scratch.steps);
    let mut scan = OneScan {
        opened,
        timeline,
        options,
        refined: clocks.refined,
        offsets: clocks.offsets,
        calls,
        sought,
        // Locations of one process share its clock: one without records of its own uses those of another.
        fallback: locals
            .iter()
            .map(|local| &local.clock_offsets)
            .find(|offsets| !offsets.is_empty())
            .cloned()
            .unwrap_or_default(),
        // A refined clock can bring neighbours closer by a tick.
        close: match ForwardParameters::close(options.separation).0 {
            close if close > 0 && options.presync.refines() => close.saturating_add(1),
            close => close,
        },
        table,
        extractor: Extractor::new(table, timeline.process).with_calls(calls),
        several: (timeline.locations.len() > 1).then(|| std::mem::take(&mut scratch.visits)),
        threads: Threads::new(opened, known.accelerators, &timeline.locations, memory),
        loaded: Vec::new(),
        warnings: Warnings::default(),
    };
    for (number, local) in locals.iter().enumerate() {
        scan.location(number, local, advance)?;
    }
    scan.finish(scratch)
}

/// A timeline that is scanned.
struct OneScan<'a> {
    opened: &'a TraceHandle,
    timeline: &'a Timeline,
    options: &'a LoadOptions,
    refined: Option<(&'a RefinedClocks, TimelineNumber)>,
    offsets: Option<&'a Vec<ClockOffset>>,
    calls: Option<&'a Calls>,
    sought: &'a [RegionId],
    fallback: Vec<ClockOffset>,
    close: i64,
    table: &'a CommTable<'a>,
    extractor: Extractor<'a>,
    /// What several locations do, until it can be brought into one order.
    several: Option<Vec<Visit>>,
    threads: Threads<'a>,
    loaded: Vec<LoadedLocation>,
    warnings: Warnings,
}

/// The clock of a location.
struct LocationClock {
    clock: Clock,
    /// From which it was made.
    offsets: Vec<ClockOffset>,
    /// What was recorded instead of these.
    recorded: Option<Vec<ClockOffset>>,
}

impl OneScan<'_> {
    /// Clock and offsets of a location, and those that were recorded if these are others.
    fn clock(&mut self, number: usize, id: LocationId, own: &[ClockOffset]) -> Result<LocationClock> {
        if own.is_empty() && !self.fallback.is_empty() && self.options.presync != Method::None {
            self.warnings.add("locations without clock offsets use those of another location of the same process");
        }
        let recorded = if own.is_empty() { self.fallback.clone() } else { own.to_vec() };
        let (offsets, recorded) = match self.offsets.filter(|_| recorded == self.fallback) {
            Some(instead) => (instead.clone(), Some(recorded)),
            None => (recorded, None),
        };
        // Who asks for these clocks gets them, or an error.
        let possible = (self.options.presync == Method::Auto).then(|| without_impossible(&offsets)).flatten();
        let (offsets, recorded) = match possible {
            Some(possible) => {
                self.warnings.add("recorded clock offsets by which time would run backwards are left out");
                (possible, recorded.or(Some(offsets)))
            }
            None => (offsets, recorded),
        };
        let clock = match self.refined {
            Some((clocks, timeline)) => clocks.of_location(timeline, number as u32).clone(),
            None => self
                .options
                .presync
                .clock(&offsets)
                .map(Clock::from)
                .map_err(|error| error.in_file(&self.opened.archive.local_definition_path(id)).at_location(id))?,
        };
        Ok(LocationClock { clock, offsets, recorded })
    }

    /// Scans one location.
    fn location(&mut self, number: usize, local: &LocalDefinitions, advance: Advance<'_>) -> Result<()> {
        let archive = &self.opened.archive;
        let index = self.timeline.locations[number];
        let id = self.opened.definitions.locations[index].id;
        let LocationClock { clock, offsets, recorded } = self.clock(number, id, &local.clock_offsets)?;
        let (calls, sought) = (self.calls, self.sought);
        let (threads, extractor) = (&mut self.threads, &mut self.extractor);
        let mut visits = Visits::new(number as u32, &clock, self.close, calls);
        let mut within = SendsWithin { regions: sought, last: None, sent: false };
        let mut counted = 0u64;
        let mut count = |events: usize| {
            counted += events as u64;
            if counted >= BLOCK {
                advance(std::mem::take(&mut counted));
            }
        };
        let summary = match &mut self.several {
            // Regions tell when a location posted a receive that another location may have been ahead of.
            Some(list) => {
                let references = threads.steps.accelerator_attributes();
                let mut visit = |event_number, raw, event: Event, refers| {
                    count(1);
                    within.look(&event);
                    let step = match threads.wanted && threads.steps.takes(&event) {
                        true => Some(threads.steps.add(visits.place(event_number, raw)?, &event)),
                        false => None,
                    };
                    threads.operations.read(number as u32, &event, step);
                    if threads.steps.takes_of_accelerators(number as u32, &event) {
                        threads.steps.add_of_accelerators(visits.place(event_number, raw)?, &event, refers);
                    }
                    visits.collect(event_number, raw, &event, list)
                };
                match references {
                    None => {
                        archive.scan_with(id, local, |number, raw, event| visit(number, raw, event, Default::default()))
                    }
                    Some(references) => archive.scan_with_references(id, local, references, visit),
                }
            }
            None if calls.is_some() => archive.scan_with(id, local, |event_number, raw, event| {
                count(1);
                visits.feed(event_number, raw, &event, extractor)
            }),
            None => {
                let mut only = Only { visits: &mut visits, extractor, within: &mut within, count };
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
        summary.warnings.iter().for_each(|text| self.warnings.add(text.clone()));
        self.loaded.push(LoadedLocation { index, clock, offsets, recorded, summary, ties: Vec::new() });
        Ok(())
    }

    /// What was found, when all locations have been scanned.
    fn finish(mut self, scratch: &mut Scratch) -> Result<TimelineScan> {
        let mut divided = Divided::default();
        // Visited events of steps.
        let mut event_of: Vec<(usize, u32)> = Vec::new();
        if let Some(mut visits) = self.several.take() {
            divided = self.divide(&mut visits)?;
            self.visit_in_order(&mut visits, &divided.ties, &mut event_of)?;
            scratch.visits = visits;
        }
        let mut extract = self.extractor.finish();
        if !divided.ties.is_empty() {
            event_of.sort_unstable();
            let event = |step: usize| {
                let place = event_of.binary_search_by_key(&step, |&(step, _)| step).ok()?;
                Some(event_of[place].1)
            };
            let start = |tie: &Tie| Some(LayerStart { event: event(tie.step)?, layer: tie.layer });
            extract.sync.set_layers(divided.ties.iter().filter_map(start).collect());
            for tie in &divided.ties {
                let own = LocationTie { number: tie.number, recorded: tie.raw as u64, layer: tie.layer };
                self.loaded[tie.location as usize].ties.push(own);
            }
        }
        if divided.is_divided() {
            extract.thread_orders = self.threads.steps.orders(&divided, &event_of);
            extract.part_of = divided.part_of;
            for (on, begins) in &divided.operations {
                match on {
                    Shared::Communicator(comm) => extract.order_operations(self.table.index(*comm)?, begins),
                    Shared::Window(window) => {
                        let window = self.table.window(*window);
                        window.into_iter().for_each(|window| extract.order_operations(window, begins));
                    }
                    Shared::Epochs(window) => {
                        self.table.window(*window).into_iter().for_each(|window| extract.order_epochs(window, begins));
                    }
                }
            }
        }
        extract.threads = divided.counts;
        scratch.steps = self.threads.steps.into_memory();
        Ok(TimelineScan { extract, locations: self.loaded, warnings: self.warnings })
    }

    /// Finds the locations that have timelines of their own, puts their clocks right, and adds the steps that matter to `visits`.
    fn divide(&mut self, visits: &mut Vec<Visit>) -> Result<Divided> {
        let handed_on = self.threads.operations.finish();
        let divided = self.threads.divide(&self.loaded, self.refined, self.options, &mut self.warnings);
        // Threads of one clock complete nothing before it has begun.
        self.extractor.hand_on(if divided.is_divided() { handed_on } else { BTreeSet::new() });
        if divided.is_divided() && self.refined.is_none() && self.options.presync.refines() {
            put_right(&divided, self.options, &mut self.loaded, visits, &mut self.threads.steps)?;
        }
        if divided.is_divided() || !divided.ties.is_empty() {
            let step = |(step, at)| Visit { at, what: VisitKind::Step(step), near: false };
            visits.extend(self.threads.steps.places(&divided).map(step));
        }
        Ok(divided)
    }

    /// Reads what several locations did in the order of time. `event_of` becomes the visited events of steps.
    fn visit_in_order(
        &mut self,
        visits: &mut Vec<Visit>,
        ties: &[Tie],
        event_of: &mut Vec<(usize, u32)>,
    ) -> Result<()> {
        let (archive, extractor) = (&self.opened.archive, &mut self.extractor);
        visits.sort_unstable_by_key(|visit| (visit.at.time, visit.at.location, visit.at.number, visit.what.order()));
        sort_layers(visits, ties);
        for Visit { at, what, near } in visits.drain(..) {
            let index = self.timeline.locations[at.location as usize];
            let id = self.opened.definitions.locations[index].id;
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
        Ok(())
    }
}

/// Brings visits in the order of their times into that of their layers where they are tied.
fn sort_layers(visits: &mut [Visit], ties: &[Tie]) {
    let mut times: Vec<i64> = ties.iter().map(|tie| tie.time).collect();
    times.sort_unstable();
    times.dedup();
    let mut from = 0;
    for time in times {
        // Where ties are many, they are close.
        from += visits[from..].iter().take_while(|visit| visit.at.time < time).count();
        let tied = &mut visits[from..];
        let to = tied.iter().take_while(|visit| visit.at.time == time).count();
        // It is stable: what is in one layer stays as it is.
        tied[..to].sort_by_key(|visit| {
            let EventCoordinates { time, location, number, .. } = visit.at;
            layer_of(ties, location, number, time)
        });
    }
}

/// The steps of the threads of a process, while it is scanned.
struct Threads<'a> {
    steps: ProcessThreadSteps<'a>,
    /// Whether they are looked at.
    wanted: bool,
    /// Collective operations of several locations.
    operations: SharedOperations,
}

impl<'a> Threads<'a> {
    fn new(opened: &'a TraceHandle, calls: &'a AcceleratorCalls, locations: &[usize], memory: Steps) -> Self {
        let wanted = locations.len() > 1;
        let accelerators = wanted.then(|| ProcessAccelerators::new(calls, &opened.definitions, locations)).flatten();
        let steps = ProcessThreadSteps::new(&opened.definitions.thread_barriers, accelerators).with_memory(memory);
        Threads { steps, wanted, operations: SharedOperations::default() }
    }

    /// Which locations have timelines of their own: those whose recorded offsets are not those of the process, and those whose steps are out of order.
    fn divide(
        &self,
        loaded: &[LoadedLocation],
        refined: Option<(&RefinedClocks, TimelineNumber)>,
        options: &LoadOptions,
        warnings: &mut Warnings,
    ) -> Divided {
        let mut apart = vec![false; loaded.len()];
        let mut differs = vec![false; loaded.len()];
        for (number, location) in loaded.iter().enumerate().skip(1) {
            differs[number] = options.presync != Method::None && differ(&loaded[0].offsets, &location.offsets);
            apart[number] = match refined {
                Some((clocks, timeline)) => clocks.has_own(timeline, number as u32),
                None => differs[number],
            };
        }
        if !self.wanted {
            return Divided::default();
        }
        let divided = self.steps.divide(&apart, &self.operations);
        for _ in differs.iter().zip(&divided.bound).filter(|(differs, bound)| **differs && **bound) {
            warnings.add(
                "the recorded clock offsets of some locations differ from those of their process; they still get its \
                correction, because they share collective operations with other locations, the order of which cannot \
                be determined",
            );
        }
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
        let before = std::mem::replace(&mut location.offsets, offsets);
        location.recorded.get_or_insert(before);
        location.clock = Clock::from(clock);
        let clock = &location.clock;
        let time = |raw: i64| clock.map(Ticks(raw)).0;
        visits.iter_mut().filter(|visit| visit.at.location == number).for_each(|v| v.at.time = time(v.at.raw));
        steps.map(number, time);
    }
    Ok(())
}
