//! The part of a trace that an analysis rank hosts, in memory.

use clc_archive::ScanSummary;
use clc_clock::{Clock, ClockCursor, Method, RefinedClocks, without_impossible};
use clc_engine::matching::collectives::fences::Fences;
use clc_engine::matching::extracted::Leftovers;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::sync::EventClock;
use clc_engine::replay::program::Program;
use clc_trace::workers::Workers;
use clc_trace::{ClockOffset, EventNumber, OwnTimeline, Places, Result, Ticks, TimelineNumber};
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
    /// Offsets that the model was made from: recorded, unless steps of threads or other offsets contradict those.
    pub offsets: Vec<ClockOffset>,
    /// What was recorded instead, where something contradicts it.
    pub recorded: Option<Vec<ClockOffset>>,
    /// What the scan counted.
    pub summary: ScanSummary,
    /// Where layers of events of one time begin, in order; mostly none.
    pub ties: Vec<LocationTie>,
}

/// From an event of a location on, those that have its time are in a layer ([`clc_trace::Position::in_layer`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocationTie {
    /// The event.
    pub number: EventNumber,
    /// Its recorded time.
    pub recorded: u64,
    /// The layer.
    pub layer: u32,
}

/// The hosted part of a trace, ready for the replay.
#[derive(Debug)]
pub struct LocalTrace {
    /// Matched synchronisation events.
    pub program: Program,
    /// The timelines of single locations of the whole trace, in the order of their numbers, which follow those of [`TraceHandle::timelines`](crate::pipeline::open::TraceHandle::timelines).
    pub own: Vec<OwnTimeline>,
    /// The clock of every timeline of the whole trace by its number, if the estimate of clocks found out which of them share one.
    pub clock_of: Option<Vec<u32>>,
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

/// The clocks of a timeline, each where its last time was.
struct LocationCursors<'a> {
    /// By location; one for all of them if there is one only.
    cursors: Vec<ClockCursor<'a>>,
    /// Added to their times, in ticks.
    shift: i64,
}

impl EventClock for LocationCursors<'_> {
    fn map(&mut self, places: &Places, first: usize, recorded: &[i64], times: &mut [i64]) {
        if let [one] = &mut self.cursors[..] {
            one.map_all(recorded, times);
        } else {
            for (event, (time, recorded)) in (first..).zip(times.iter_mut().zip(recorded)) {
                *time = self.cursors[places.location(event) as usize].map(Ticks(*recorded)).0;
            }
        }
        if self.shift != 0 {
            times.iter_mut().for_each(|time| *time += self.shift);
        }
    }
}

impl LoadedLocation {
    /// The clock that readers of the trace see, through the offsets as they were recorded, but for those by which time would run backwards.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn readers_clock(&self) -> Result<Clock> {
        let offsets = self.recorded.as_deref().unwrap_or(&self.offsets);
        let possible = without_impossible(offsets);
        let clock = Method::Linear.clock(possible.as_deref().unwrap_or(offsets)).map(Clock::from)?;
        let (first, last) = self.summary.time_span.unwrap_or((0, 0));
        clock.check_range(Ticks(first as i64), Ticks(last as i64))?;
        Ok(clock)
    }
}

impl LocalTrace {
    /// All locations of the process (or other location group) whose shared timeline is `process`, whatever timelines they have: the timeline of each, and its
    /// place in there. The main location comes first, the others in the order of their definitions.
    pub(crate) fn locations_of(&self, process: LocalTimeline) -> Vec<(LocalTimeline, usize)> {
        let places =
            |timeline: LocalTimeline| (0..self.locations[timeline].len()).map(move |number| (timeline, number));
        let mut all: Vec<_> = self.program.timelines_of(process).flat_map(places).collect();
        all.sort_by_key(|&(timeline, number)| {
            let main = (timeline, number) == (process, 0);
            (!main, self.locations[timeline][number].index)
        });
        all
    }

    /// Puts the times of visited events under other clocks, without a shift, in the place of the pre-synchronised ones.
    pub(crate) fn retime(&mut self, workers: Workers, clocks: &RefinedClocks) {
        let numbers: Vec<TimelineNumber> =
            (0..self.locations.len()).map(|local| self.program.number(LocalTimeline::at(local))).collect();
        self.program
            .retime(workers, |local| LocationCursors { cursors: vec![clocks.of(numbers[local]).cursor()], shift: 0 });
    }

    /// Whether times by these clocks are those by the clocks of the locations ([`LocalTrace::retime_by_locations`]).
    pub(crate) fn has_times_of(&self, clocks: &RefinedClocks) -> bool {
        self.shift == Ticks(0)
            && self.locations.iter().enumerate().all(|(local, locations)| {
                let clock = clocks.of(self.program.number(LocalTimeline::at(local)));
                locations.iter().all(|location| location.clock == *clock)
            })
    }

    /// Makes the pre-synchronised times those of the clocks of the locations again.
    pub(crate) fn retime_by_locations(&mut self, workers: Workers) {
        let (locations, shift) = (&self.locations, self.shift.0);
        self.program.retime(workers, |local| {
            let cursors = locations[local].iter().map(|location| location.clock.cursor()).collect();
            LocationCursors { cursors, shift }
        });
    }

    /// Events of the hosted locations.
    pub fn events(&self) -> u64 {
        self.locations.iter().flatten().map(|location| location.summary.events).sum()
    }
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
