//! Other clocks for a loaded trace.

use crate::pipeline::load::{Known, LoadOptions, LocalTrace, load_with};
use crate::pipeline::open::TraceHandle;
use crate::report::Warnings;
use clc_clock::{RANGE, RefinedClocks};
use clc_engine::comm::{ReduceOp, Transport, agree};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_trace::progress::Progress;
use clc_trace::{Result, Ticks};

/// Makes `refined` the clocks of `loaded`, which has their times already.
///
/// # Errors
/// Failures of the transport; the trace cannot be read a second time; times out of range.
pub(super) fn adopt(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &mut LocalTrace,
    options: &LoadOptions,
    refined: &RefinedClocks,
    progress: &dyn Progress,
) -> Result<()> {
    // Rounding can make equal what was apart, and then the order of a timeline's locations may be another one.
    let timelines = &loaded.program.timelines;
    let sorted = opened.workers.map(timelines.len(), |local| timelines[local].is_in_order());
    let mut disordered = [i64::from(sorted.contains(&false))];
    transport.all_reduce(ReduceOp::Max, &mut disordered)?;
    if disordered[0] != 0 {
        let latency = loaded.program.latency;
        // Its warnings are those of the first time.
        let fences = Some(std::mem::take(&mut loaded.program.taken_back));
        let known = Known { clocks: Some(refined), fences, ..Known::default() };
        *loaded = load_with(transport, opened, options, known, progress, &mut Warnings::default())?;
        loaded.program.set_latency(latency);
        return Ok(());
    }
    let mut outcome = Ok(());
    for (local, locations) in loaded.locations.iter_mut().enumerate() {
        let clock = refined.of(loaded.program.number(LocalTimeline::at(local)));
        for location in locations {
            if let Some((first, last)) = location.summary.time_span {
                outcome = outcome.and(clock.check_range(Ticks(first as i64), Ticks(last as i64)));
            }
            location.clock = clock.clone();
        }
    }
    agree(transport, outcome)?;
    let ends = span(transport, loaded, refined)?;
    let shift = ends.map_or(0, |(first, _)| (-first).max(0));
    loaded.program.shift(opened.workers, shift);
    loaded.shift = Ticks(shift);
    loaded.span = ends.map(|(first, last)| (Ticks(first + shift), Ticks(last + shift)));
    Ok(())
}

/// Earliest and latest time of any event of the trace under other clocks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn span(
    transport: &mut dyn Transport,
    loaded: &LocalTrace,
    refined: &RefinedClocks,
) -> Result<Option<(i64, i64)>> {
    // The latest is negated: one minimum for both.
    let mut ends = [i64::MAX; 2];
    for (local, locations) in loaded.locations.iter().enumerate() {
        let clock = refined.of(loaded.program.number(LocalTimeline::at(local)));
        for (first, last) in locations.iter().filter_map(|location| location.summary.time_span) {
            let map = |raw: u64| clock.map(Ticks(raw.min(RANGE as u64) as i64)).0;
            ends = [ends[0].min(map(first)), ends[1].min(-map(last))];
        }
    }
    transport.all_reduce(ReduceOp::Min, &mut ends)?;
    Ok((ends[0] != i64::MAX).then_some((ends[0], -ends[1])))
}
