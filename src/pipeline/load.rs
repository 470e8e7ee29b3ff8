//! Scanning the hosted timelines once and matching what they did with whom.

use crate::pipeline::local_trace::LoadedLocation;
use crate::pipeline::open::TraceHandle;
use crate::pipeline::timeline_scan::{KnownCalls, KnownClocks, MpiCalls, Scratch, TimelineScan, scan};
use crate::report::Warnings;
use clc_clock::{RANGE, RefinedClocks};
use clc_engine::comm::{ReduceOp, Transport, agree, all_gather_values};
use clc_engine::matching::collectives::{Rules, match_collectives};
use clc_engine::matching::communicators::{CommTable, join_everywhere};
use clc_engine::matching::extract::calls::Calls;
use clc_engine::matching::extracted::{Extract, Leftovers};
use clc_engine::matching::messages::match_messages;
use clc_engine::matching::split::{self, Numbers, SplitTimeline};
use clc_engine::matching::undefined::UndefinedPeer;
use clc_engine::matching::within::accelerators::AcceleratorCalls;
use clc_engine::replay::program::{OwnTimelines, Program, TakenBack};
use clc_engine::replay::settle::{SettledFences, settle};
use clc_trace::progress::Progress;
use clc_trace::{ClockOffset, LocationId, MpiRank, OwnTimeline, Result, Ticks, TimelineNumber};
use controlled_logical_clock::latency::LatencyBasis;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::pipeline::local_trace::{LoadOptions, LocalTrace};

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
    load_with(transport, opened, options, Known::default(), progress, warnings)
}

/// What is known of a trace that is loaded a second time.
#[derive(Debug, Default)]
pub(crate) struct Known<'a> {
    /// Its clocks.
    pub clocks: Option<&'a RefinedClocks>,
    /// Offsets of processes by timeline, in the place of recorded ones that others contradict.
    pub offsets: BTreeMap<TimelineNumber, Vec<ClockOffset>>,
    /// Fences that are no barriers.
    pub fences: Option<TakenBack>,
}

/// [`load`] with what is known already.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_with(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    options: &LoadOptions,
    known: Known<'_>,
    progress: &dyn Progress,
    warnings: &mut Warnings,
) -> Result<LocalTrace> {
    let hosted = opened.placement.hosted_by(transport.rank());
    let table = CommTable::new(&opened.definitions);
    let first = TimelineNumber(hosted.start as u32);
    let scanned = scan_hosted(transport, opened, hosted, &table, options, &known, progress)?;
    let Scanned { mut extracts, mut locations, warnings: odd, with_orders, with_own } = scanned;
    odd.into_iter().for_each(|odd| warnings.merge(odd));

    let (shift, span) = fit_to_zero(transport, &mut extracts, &locations)?;
    let raw_origin = raw_origin(transport, &locations)?;
    let joined_communicators = join_everywhere(transport, &table, first, &mut extracts)?;
    let mut nodes: Vec<u32> = opened.timelines.all.iter().map(|timeline| timeline.node).collect();
    let mut messages = match_messages(transport, &opened.placement, first, &mut extracts, with_orders, opened.workers)?;
    let node_of = |process: MpiRank| nodes[process];
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
        split::split(transport, numbers, table.unused(), &parts, &mut extracts, &mut messages, &mut collectives)?;
        divide(&parts, &mut locations);
        nodes.extend(own.iter().map(|own: &OwnTimeline| opened.timelines.all[own.of].node));
    }
    let mut program = Program {
        first,
        timelines: extracts.into_iter().map(|extract| Arc::new(extract.sync)).collect(),
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
    let fences = known.fences.map_or(SettledFences::Sought(options.fences), SettledFences::Known);
    settle(transport, &mut program, fences)?;
    let latency_basis = LatencyBasis::default();
    Ok(LocalTrace {
        program,
        own,
        clock_of: None,
        locations,
        shift,
        span,
        raw_origin,
        leftovers,
        joined_communicators,
        latency_basis,
    })
}

/// What the scans of all hosted timelines found.
struct Scanned {
    extracts: Vec<Extract>,
    locations: Vec<Vec<LoadedLocation>>,
    warnings: Vec<Warnings>,
    /// Whether any timeline, on any rank, has orders that are no messages.
    with_orders: bool,
    /// Whether any location, on any rank, has a timeline of its own.
    with_own: bool,
}

/// Scans the hosted timelines, twice if regions tell more. Collective over the analysis ranks.
fn scan_hosted(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    hosted: Range<usize>,
    table: &CommTable<'_>,
    options: &LoadOptions,
    known: &Known<'_>,
    progress: &dyn Progress,
) -> Result<Scanned> {
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
        // As many as there are threads at work.
        let spare: Mutex<Vec<Scratch>> = Mutex::default();
        let spares = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        opened.workers.run(hosted.len(), progress, |job, advance| {
            let timeline = TimelineNumber((hosted.start + job) as u32);
            let clocks = KnownClocks {
                refined: known.clocks.map(|refined| (refined, timeline)),
                offsets: known.offsets.get(&timeline),
            };
            let mut scratch = spares().pop().unwrap_or_default();
            let timeline = &opened.timelines.all[timeline];
            let scanned = scan(opened, timeline, table, options, clocks, calls, (&mut scratch, advance));
            spares().push(scratch);
            scanned
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
    let (extracts, locations) = (Vec::with_capacity(hosted.len()), Vec::with_capacity(hosted.len()));
    let mut all = Scanned { extracts, locations, warnings: Vec::new(), with_orders, with_own };
    for TimelineScan { extract, locations, warnings } in scanned {
        all.extracts.push(extract);
        all.locations.push(locations);
        all.warnings.push(warnings);
    }
    Ok(all)
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
            extract.sync.shift(shift);
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
