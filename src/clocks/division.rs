//! Which timelines of a trace share a clock.

use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use clc_clock::{ClockMap, RecordedOffsets};
use clc_engine::comm::{Transport, all_gather_values};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_trace::Result;

/// Two clock offsets of one node that are farther apart than this many seconds are not of one clock: measurements are off by
/// a round trip at most.
const SAME_CLOCK: f64 = 20e-6;

/// The clock of every timeline by its number, the same on all ranks: what the estimate of clocks found out, or what recorded offsets say. Every location with a
/// timeline of its own has a clock of its own. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn clocks_of_timelines(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
) -> Result<Vec<u32>> {
    if let Some(known) = &loaded.clock_of
        && known.len() == opened.timelines.all.len() + loaded.own.len()
    {
        return Ok(known.clone());
    }
    let recorded = recorded_offsets(transport, loaded)?;
    let apart = apart(opened.definitions.clock.resolution);
    Ok(with_own(&ClockMap::new(&nodes(opened), &recorded, &loaded.own, &[], apart)?))
}

/// The clocks of a map, with those that single locations have.
pub(super) fn with_own(map: &ClockMap) -> Vec<u32> {
    let mut clocks = map.of_timeline.clone();
    let processes = clocks.len() - map.own.len();
    for (clock, next) in clocks[processes..].iter_mut().zip(map.first_timeline.len() as u32..) {
        *clock = next;
    }
    clocks
}

/// How many ticks two clock offsets of one clock are apart at most.
pub(super) fn apart(resolution: u64) -> f64 {
    SAME_CLOCK * resolution as f64
}

/// The node of each timeline, without those of single locations.
pub(super) fn nodes(opened: &TraceHandle) -> Vec<u32> {
    opened.timelines.all.iter().map(|timeline| timeline.node).collect()
}

/// The recorded offsets of all timelines, on all ranks, in order of timelines.
pub(super) fn recorded_offsets(transport: &mut dyn Transport, loaded: &LocalTrace) -> Result<Vec<RecordedOffsets>> {
    let own: Vec<RecordedOffsets> = loaded
        .locations
        .iter()
        .enumerate()
        .filter_map(|(local, locations)| {
            let offsets = &locations.iter().find(|location| !location.offsets.is_empty())?.offsets;
            Some(RecordedOffsets {
                timeline: loaded.program.number(LocalTimeline::at(local)),
                offsets: offsets.clone(),
            })
        })
        .collect();
    let mut all: Vec<RecordedOffsets> = all_gather_values(transport, &own)?.into_iter().flatten().collect();
    all.sort_by_key(|record| record.timeline);
    Ok(all)
}
