//! How long the calls around sends and receives took: a second look at the event files, where messages go one way only.

use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use clc_archive::RegionVisitor;
use clc_clock::RANGE;
use clc_clock::both_sides::wanted;
use clc_clock::waits::{OneWayDirections, QuickestWaits};
use clc_clock::windows::BoundTable;
use clc_clock::{ClockMap, RefinedClocks};
use clc_engine::comm::{AnalysisRank, Transport, agree, broadcast_value};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::sync::SyncKind;
use clc_engine::replay::calls::{CallSearch, ObservedTimes, WaitingCall, WaitingCalls, observe_waits};
use clc_trace::progress::Silent;
use clc_trace::workers::Workers;
use clc_trace::{Event, EventNumber, Result, Ticks};
use std::iter::Peekable;

/// A receive whose message was there takes about as long as the quickest ones of its timeline. It waited if it took this many times as long; at least and
/// at most so many seconds are asked for. Assumed, as is [`BLOCKED`]: calls that did not wait differ by cache misses and interrupts, which are below these
/// bounds; a smaller factor would take more of them for waits.
const WAITED: (i64, f64, f64) = (4, 1e-6, 20e-6);
/// Where receivers are often late, most messages are there, and the few calls that took long for other reasons would be as many as those that waited. Of 40 traces (four recordings in shared memory, ten
/// clocks each) 3 us made 17 worse and 3 better than 5 us; 10 us 10 worse and 9 better. No recording over a network was tried.
const WAITED_IF_LATE: f64 = 5e-6;
/// The same as [`WAITED`] for a send that was blocked.
const BLOCKED: (i64, f64, f64) = (8, 10e-6, 100e-6);
/// One in so many calls is quicker than the quick ones: 2 %, since the quickest of all may be a single odd one.
const QUICK: usize = 50;

/// An open region, and what communicates in it.
struct CommunicatingRegion {
    entered: u64,
    /// Events of communication in it.
    seen: u32,
    /// Receives among them.
    received: u32,
    /// The send or receive among them, and when it was recorded.
    call: Option<TimedCall>,
}

impl CommunicatingRegion {
    /// Whether it tells how long its call took: nothing else communicates in it, or no other receive where receivers are often late (MPI_Sendrecv; MPI_Waitall of a receive
    /// and a send, which is taken not to be what it waited for).
    fn tells(&self) -> bool {
        self.seen == 1 || self.received == 1 && self.call.as_ref().is_some_and(|call| call.late && !call.sends)
    }
}

/// A send or receive, and how long it took.
#[derive(Debug, Clone, Copy)]
struct TimedCall {
    sends: bool,
    /// Whether receivers are often late between its clocks.
    late: bool,
    /// When it was recorded.
    at: u64,
    /// From the beginning of its region if it receives, to the end if it sends, in ticks.
    took: i64,
    call: WaitingCall,
}

/// What is looked for beside the bounds of messages, and the calls that tell.
#[derive(Debug)]
pub(super) struct WaitingCallSearch {
    wanted: OneWayDirections,
    calls: Vec<WaitingCalls>,
    resolution: u64,
}

impl WaitingCallSearch {
    /// For a trace with the bounds of `table` (on rank 0). Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport; an event file cannot be read again.
    pub(super) fn new(
        transport: &mut dyn Transport,
        opened: &TraceHandle,
        loaded: &LocalTrace,
        map: &ClockMap,
        table: Option<&BoundTable>,
    ) -> Result<WaitingCallSearch> {
        let resolution = opened.definitions.clock.resolution;
        let wanted = table.map(|table| wanted(table, map.bases.len(), resolution));
        let wanted: OneWayDirections = broadcast_value(transport, AnalysisRank::FIRST, wanted)?.unwrap_or_default();
        let calls =
            if !wanted.messages { Ok(Vec::new()) } else { scan_calls(opened, loaded, &map.of_timeline, &wanted) };
        Ok(WaitingCallSearch { wanted, calls: agree(transport, calls)?, resolution })
    }

    /// Looks for what the bounds of `table` (on rank 0) call for: with better clocks, other members of collective operations come last. The calls stay those that were
    /// read. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(super) fn renew(
        &mut self,
        transport: &mut dyn Transport,
        map: &ClockMap,
        table: Option<&BoundTable>,
    ) -> Result<()> {
        let wanted = table.map(|table| wanted(table, map.bases.len(), self.resolution));
        let wanted: OneWayDirections = broadcast_value(transport, AnalysisRank::FIRST, wanted)?.unwrap_or_default();
        let messages = self.wanted.messages && (wanted.messages || !self.wanted.late.is_empty());
        // Whether messages are late does not depend on the clocks.
        let late = std::mem::take(&mut self.wanted.late);
        self.wanted = OneWayDirections { messages, late, ..wanted };
        Ok(())
    }

    /// What was waited for under `refined` clocks, with which events happened as `seen`; on rank 0, if there is anything to be looked for. Collective over the
    /// analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(super) fn observe(
        &self,
        transport: &mut dyn Transport,
        workers: Workers,
        loaded: &LocalTrace,
        refined: &RefinedClocks,
        seen: ObservedTimes<'_>,
    ) -> Result<Option<QuickestWaits>> {
        if self.wanted == OneWayDirections::default() {
            return Ok(None);
        }
        let mapped = self.calls.iter().enumerate().map(|(local, calls)| -> Vec<i64> {
            let clock = refined.of(loaded.program.number(LocalTimeline::at(local)));
            let mut clock = clock.cursor();
            calls.iter().map(|call| clock.map(Ticks(call.other)).0).collect()
        });
        let others: Vec<Vec<i64>> = mapped.collect();
        let WaitingCallSearch { wanted, calls, resolution } = self;
        let search = CallSearch { wanted, calls, others: &others, resolution: *resolution };
        observe_waits(transport, workers, &loaded.program, seen, search)
    }
}

/// The calls of the hosted timelines whose messages go between the pairs of clocks in `wanted`; `clocks` has the clock of every timeline of the trace.
///
/// # Errors
/// An event file cannot be read again.
fn scan_calls(
    opened: &TraceHandle,
    loaded: &LocalTrace,
    clocks: &[u32],
    wanted: &OneWayDirections,
) -> Result<Vec<WaitingCalls>> {
    let messages = &loaded.program.messages;
    let own = |timeline: LocalTimeline| clocks[loaded.program.number(timeline)];
    let sought = |pair: (u32, u32)| wanted.asks_for_messages(pair).then(|| wanted.late.contains(&pair));
    let channels = SoughtChannels {
        outgoing: messages.outgoing.iter().map(|end| sought((own(end.source), clocks[end.destination]))).collect(),
        incoming: messages.incoming.iter().map(|end| sought((clocks[end.source], own(end.destination)))).collect(),
    };
    opened.workers.run(loaded.locations.len(), &Silent, |local, _| {
        of_timeline(opened, loaded, &channels, LocalTimeline::at(local))
    })
}

/// By channel: whether its messages are looked for, and if so, whether messages between its clocks are often late.
struct SoughtChannels {
    outgoing: Vec<Option<bool>>,
    incoming: Vec<Option<bool>>,
}

impl SoughtChannels {
    /// The same of an event that communicates on a channel.
    fn of(&self, (kind, channel): (SyncKind, usize)) -> Option<bool> {
        match kind {
            SyncKind::Send => self.outgoing.get(channel).copied().flatten(),
            SyncKind::Receive => self.incoming.get(channel).copied().flatten(),
            _ => None,
        }
    }
}

fn of_timeline(
    opened: &TraceHandle,
    loaded: &LocalTrace,
    channels: &SoughtChannels,
    local: LocalTimeline,
) -> Result<WaitingCalls> {
    let program = &loaded.program;
    let timeline = &program.timelines[local];
    let events = timeline.parts().enumerate().filter_map(|(event, part)| Some((event, channels.of(part)?)));
    let mut events: Vec<(u32, EventNumber, u32, bool)> =
        events.map(|(event, late)| (timeline.location(event), timeline.number(event), event as u32, late)).collect();
    events.sort_unstable();
    let mut found: Vec<TimedCall> = Vec::new();
    for (number, location) in (0..).zip(&loaded.locations[local]) {
        let begin = events.partition_point(|event| event.0 < number);
        let events = events[begin..].iter().take_while(|event| event.0 == number);
        let wanted = events.map(|&(_, number, event, late)| WantedCall { number, event, late });
        let mut wanted = wanted.peekable();
        if wanted.peek().is_none() {
            continue;
        }
        let id = opened.definitions.locations[location.index].id;
        let definitions = opened.archive.local_definitions(id)?;
        let mut open = OpenRegions { regions: Vec::new(), wanted, found };
        let scanned = opened.archive.scan_regions(id, &definitions, &mut open);
        scanned.map_err(|error| error.in_file(&opened.archive.event_path(id)).at_location(id))?;
        found = open.found;
    }
    mark_those_that_waited(&mut found, opened.definitions.clock.resolution as f64);
    // A send that was not blocked says nothing.
    let mut calls: WaitingCalls =
        found.into_iter().filter(|found| !found.sends || found.call.waited).map(|found| found.call).collect();
    calls.sort_unstable_by_key(|call| call.event);
    calls.shrink_to_fit();
    Ok(calls)
}

/// An event whose message is looked for.
struct WantedCall {
    number: EventNumber,
    /// Its number in the timeline.
    event: u32,
    /// Whether such messages are often late.
    late: bool,
}

/// The regions that a location is in, the events to come whose messages are looked for, and what was found in the regions that it has left.
struct OpenRegions<W: Iterator<Item = WantedCall>> {
    regions: Vec<CommunicatingRegion>,
    wanted: Peekable<W>,
    found: Vec<TimedCall>,
}

/// A raw time that differences can be made of.
fn within_range(raw: u64) -> u64 {
    raw.min(RANGE as u64)
}

impl<W: Iterator<Item = WantedCall>> RegionVisitor for OpenRegions<W> {
    fn entered(&mut self, raw: u64) {
        let entered = within_range(raw);
        self.regions.push(CommunicatingRegion { entered, seen: 0, received: 0, call: None });
    }

    fn left(&mut self, raw: u64) {
        let closed = self.regions.pop().filter(CommunicatingRegion::tells);
        if let Some((entered, mut found)) = closed.and_then(|region| Some((region.entered, region.call?))) {
            let other = if found.sends { within_range(raw) } else { entered };
            found.call.other = other as i64;
            found.took = found.at.abs_diff(other) as i64;
            self.found.push(found);
        }
    }

    fn event(&mut self, number: EventNumber, raw: u64, event: Event) -> Result<()> {
        let wanted = self.wanted.next_if(|wanted| wanted.number == number);
        let Some(region) = self.regions.last_mut() else { return Ok(()) };
        region.seen += 1;
        let (message, blocking, sends) = match event {
            Event::MpiSend(message) => (message, true, true),
            Event::MpiRecv(message) => (message, true, false),
            Event::MpiIrecv(message, _) => (message, false, false),
            _ => return Ok(()),
        };
        region.received += u32::from(!sends);
        if sends && region.received > 0 {
            return Ok(());
        }
        region.call = wanted.map(|WantedCall { event, late, .. }| {
            let call = WaitingCall { event, other: 0, length: message.length, blocking, waited: false };
            TimedCall { sends, late, at: within_range(raw), took: 0, call }
        });
        Ok(())
    }
}

/// Marks the calls that took so much longer than the quickest ones of their kind that they waited; `resolution` is in ticks per second.
fn mark_those_that_waited(found: &mut [TimedCall], resolution: f64) {
    for (kind, (times, least, most)) in [(false, WAITED), (true, BLOCKED)] {
        let mut took: Vec<i64> = found.iter().filter(|found| found.sends == kind).map(|found| found.took).collect();
        if took.is_empty() {
            continue;
        }
        let at = took.len() / QUICK;
        let quick = *took.select_nth_unstable(at).1;
        let [least, most] = [least, most].map(|seconds| (seconds * resolution) as i64);
        let long = quick.saturating_mul(times).clamp(least, most);
        let long_if_late = long.max((WAITED_IF_LATE * resolution) as i64);
        for found in found.iter_mut().filter(|found| found.sends == kind) {
            found.call.waited = found.took >= if found.late { long_if_late } else { long };
        }
    }
}
