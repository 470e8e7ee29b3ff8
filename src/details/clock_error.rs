//! How far the clocks were off over time, in the parts that the phases of the correction removed.

use crate::clocks::division::clocks_of_timelines;
use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use crate::report::{ClockError, NodeCurve};
use clc_clock::grid::Grid;
use clc_engine::comm::{AnalysisRank, Transport, all_gather_values, gather_values};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_trace::progress::Silent;
use clc_trace::{Correction, EventNumber, Result, Ticks};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// By clock, the windows.
type Cells = BTreeMap<u32, Vec<Cell>>;

/// The events of a clock in one window.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Cell {
    events: u64,
    /// Sums of the parts: presync, forward, backward.
    sums: [i128; 3],
    /// Largest forward and backward part.
    largest: [i64; 2],
}

impl Cell {
    fn add(&mut self, parts: [i64; 3]) {
        self.merge(&Cell { events: 1, sums: parts.map(i128::from), largest: [parts[1], parts[2]] });
    }

    fn merge(&mut self, other: &Cell) {
        self.events += other.events;
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum += more;
        }
        for (most, other) in self.largest.iter_mut().zip(other.largest) {
            *most = (*most).max(other);
        }
    }
}

/// Curves of the clocks from `first` to `last`, on rank 0. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn clock_error(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    corrections: Option<&[Correction]>,
    first: i64,
    last: i64,
) -> Result<Option<ClockError>> {
    let clocks = clocks_of_timelines(transport, opened, loaded)?;
    let count = clocks.iter().map(|clock| *clock as usize + 1).max().unwrap_or(0);
    let windows = (ClockError::VALUES / count.clamp(1, ClockError::NODES)).min(ClockError::WINDOWS);
    let grid = Grid::new(first, last, windows);
    let chosen = choose(transport, opened, loaded, (&clocks, count), corrections)?;
    let parts = shared_out(opened, loaded, &clocks, |cells: &mut Cells, local, clock| {
        if chosen.contains(&clock) {
            let cells = cells.entry(clock).or_insert_with(|| vec![Cell::default(); grid.count]);
            samples(loaded, corrections, local, |time, parts| cells[grid.window(time)].add(parts));
        }
    })?;
    let mut cells = Cells::new();
    for (clock, more) in parts.into_iter().flatten() {
        let cells = cells.entry(clock).or_insert_with(|| vec![Cell::default(); grid.count]);
        cells.iter_mut().zip(&more).for_each(|(cell, more)| cell.merge(more));
    }
    let Some(parts) = gather_values(transport, AnalysisRank::FIRST, &cells)? else { return Ok(None) };
    let mut whole: Cells = chosen.iter().map(|&clock| (clock, vec![Cell::default(); grid.count])).collect();
    for (clock, more) in parts.into_iter().flatten() {
        if let Some(cells) = whole.get_mut(&clock) {
            cells.iter_mut().zip(&more).for_each(|(cell, more)| cell.merge(more));
        }
    }
    let curves = whole
        .iter()
        .map(|(&clock, cells)| with_values(labelled(opened, loaded, &clocks, clock), cells, corrections.is_some()));
    Ok(Some(ClockError {
        window_seconds: Ticks(grid.width).seconds(opened.definitions.clock.resolution),
        windows: grid.count as u64,
        nodes: curves.collect(),
        further_nodes: (count - chosen.len()) as u64,
    }))
}

/// The clocks to be shown: all, or those that were corrected most.
fn choose(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    (clocks, count): (&[u32], usize),
    corrections: Option<&[Correction]>,
) -> Result<BTreeSet<u32>> {
    if count <= ClockError::NODES {
        return Ok((0..count as u32).collect());
    }
    // Largest move by the correction, then by pre-synchronisation.
    type Largest = BTreeMap<u32, (i64, i64)>;
    let parts = shared_out(opened, loaded, clocks, |largest: &mut Largest, local, clock| {
        let most = largest.entry(clock).or_default();
        samples(loaded, corrections, local, |_, [presync, forward, backward]| {
            *most = (most.0.max(forward + backward), most.1.max(presync.saturating_abs()));
        });
    })?;
    let mut largest = Largest::new();
    for (clock, (moved, presync)) in parts.into_iter().flatten() {
        let most = largest.entry(clock).or_default();
        *most = (most.0.max(moved), most.1.max(presync));
    }
    let mut whole: BTreeMap<u32, (i64, i64)> = (0..count as u32).map(|clock| (clock, (0, 0))).collect();
    for (clock, (moved, presync)) in all_gather_values(transport, &largest)?.into_iter().flatten() {
        let most = whole.entry(clock).or_default();
        *most = (most.0.max(moved), most.1.max(presync));
    }
    let mut order: Vec<(Reverse<(i64, i64)>, u32)> =
        whole.into_iter().map(|(clock, most)| (Reverse(most), clock)).collect();
    order.sort_unstable();
    Ok(order.into_iter().take(ClockError::NODES).map(|(_, clock)| clock).collect())
}

/// Calls `work` with every timeline and its clock; timelines are shared out among the workers. One result for each share.
fn shared_out<T: Default + Send>(
    opened: &TraceHandle,
    loaded: &LocalTrace,
    clocks: &[u32],
    work: impl Fn(&mut T, LocalTimeline, u32) + Sync,
) -> Result<Vec<T>> {
    let timelines = loaded.program.timelines.len();
    let shares = opened.workers.threads().min(timelines);
    opened.workers.run(shares, &Silent, |share, _| {
        let mut result = T::default();
        // Neighbours may all have much to do.
        for local in (share..timelines).step_by(shares).map(LocalTimeline::at) {
            work(&mut result, local, clocks[loaded.program.number(local)]);
        }
        Ok(result)
    })
}

/// Calls `visit` with pre-synchronised time and parts of the correction of every visited event of a timeline, and of the first and
/// last event of its locations.
fn samples(
    loaded: &LocalTrace,
    corrections: Option<&[Correction]>,
    local: LocalTimeline,
    mut visit: impl FnMut(i64, [i64; 3]),
) {
    let timeline = &loaded.program.timelines[local];
    let whole = corrections.map(|corrections| &corrections[local]).filter(|correction| !correction.is_identity());
    let parts = |raw: i64, time: i64, forward: Ticks, whole: Ticks| [time - raw, forward.0 - time, whole.0 - forward.0];
    let forward = whole.map(Correction::forward_part);
    let both = whole.zip(forward.as_ref());
    match both {
        Some((whole, forward)) => {
            let (mut forwards, mut wholes) = (forward.cursor(), whole.cursor());
            for event in 0..timeline.len() {
                let at = timeline.position(event);
                let raw = timeline.recorded_time(event).unwrap_or(at.time.0);
                visit(at.time.0, parts(raw, at.time.0, forwards.map(at), wholes.map(at)));
            }
        }
        None => timeline
            .times()
            .iter()
            .zip(timeline.recorded_times())
            .for_each(|(time, raw)| visit(time, [time - raw, 0, 0])),
    }
    for (number, location) in loaded.locations[local].iter().enumerate() {
        let Some((first, last)) = location.summary.time_span else { continue };
        let clock = loaded.clock(local, number);
        for (raw, event) in [(first, EventNumber::FIRST), (last, EventNumber(location.summary.events))] {
            let at = clock.position(event, raw);
            let mapped = |by: Option<&Correction>| by.map_or(at.time, |by| by.map(at));
            visit(at.time.0, parts(raw as i64, at.time.0, mapped(forward.as_ref()), mapped(whole)));
        }
    }
}

/// Whose clock it is, and no values.
fn labelled(opened: &TraceHandle, loaded: &LocalTrace, clocks: &[u32], clock: u32) -> NodeCurve {
    let (shared, own) = clocks.split_at(opened.timelines.all.len());
    let timelines = || opened.timelines.all.iter().zip(shared).filter(|(_, of)| **of == clock).map(|(own, _)| own);
    let own = own.iter().zip(&loaded.own).find(|(of, _)| **of == clock).map(|(_, own)| own);
    let process = own.map(|own| &opened.timelines.all[own.of]);
    let first = process.or_else(|| timelines().next());
    let location = own.zip(process).map(|(own, process)| process.locations[own.location as usize]);
    NodeCurve {
        name: first.and_then(|timeline| opened.node_name(timeline)).unwrap_or_default(),
        first_process: process.map_or_else(|| timelines().find_map(|timeline| timeline.process), |own| own.process),
        processes: timelines().filter(|timeline| timeline.process.is_some()).count() as u64,
        location: location.map(|index| opened.definitions.locations[index].id),
        ..NodeCurve::default()
    }
}

/// The same with the values of `cells`.
fn with_values(label: NodeCurve, cells: &[Cell], corrected: bool) -> NodeCurve {
    let list = |wanted: bool, value: &dyn Fn(&Cell) -> i64| -> Vec<Option<i64>> {
        if !wanted {
            return Vec::new();
        }
        cells.iter().map(|cell| (cell.events > 0).then(|| value(cell))).collect()
    };
    let mean = |part: usize| move |cell: &Cell| cell.sums[part].div_euclid(i128::from(cell.events.max(1))) as i64;
    NodeCurve {
        presync_ticks: list(true, &mean(0)),
        forward_ticks: list(corrected, &mean(1)),
        backward_ticks: list(corrected, &mean(2)),
        forward_largest_ticks: list(corrected, &|cell| cell.largest[0]),
        backward_largest_ticks: list(corrected, &|cell| cell.largest[1]),
        ..label
    }
}
