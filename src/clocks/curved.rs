//! Recorded offsets joined by curves, where they or violations show that their clocks bend between them.

use crate::clocks::adopted::{adopt, span};
use crate::pipeline::load::{LoadOptions, LocalTrace};
use crate::pipeline::open::TraceHandle;
use clc_clock::{ClockMap, LinearClock, RecordedOffsets, RefinedClocks, Told, curves};
use clc_engine::comm::Transport;
use clc_engine::replay::clock_condition::{ClockConditionCheck, check_clock_condition};
use clc_trace::Result;
use clc_trace::progress::Progress;

/// Violations from which on these can tell that clocks bend, and what part of them curves leave then at most, by number and by how much receives are early in all. Chosen by hand: curves through offsets of clocks that
/// jump or walk leave about as many as lines.
const SEVERAL: u64 = 4;
const FEWER: u64 = 4;

/// What the report says of curves.
pub(super) fn in_words(told: Told) -> String {
    let why = match told {
        Told::ByOffsets => "predict each of them better from the others than straight lines do",
        Told::Otherwise => "leave a fourth of the violations that straight lines do, or fewer",
    };
    format!("recorded offsets are joined by curves, which {why}")
}

/// Makes curves through recorded offsets the clocks of `loaded`, which has the times of straight lines, if these leave no fewer violations; or, unless the offsets themselves tell that clocks bend, far more. Returns the
/// clock of each process's timeline that has one, or nothing at all. `map`: its clocks by straight lines. Collective over the analysis ranks, and the same on all of them.
///
/// # Errors
/// Failures of the transport; the trace cannot be read a second time.
pub(super) fn join_by_curves(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &mut LocalTrace,
    options: &LoadOptions,
    (map, recorded, told): (&ClockMap, &[RecordedOffsets], Told),
    progress: &dyn Progress,
) -> Result<Vec<Option<LinearClock>>> {
    // Of locations with offsets of their own, each has its own lines.
    let alike = |record: &RecordedOffsets| record.offsets == map.offsets[map.of_timeline[record.timeline] as usize];
    if !(map.own.is_empty() && recorded.iter().all(alike)) {
        return Ok(Vec::new());
    }
    let workers = opened.workers;
    let Some(span) = span(transport, loaded, &RefinedClocks::new(map, &[])?)? else { return Ok(Vec::new()) };
    let Some(curves) = curves(&map.offsets, span, told) else { return Ok(Vec::new()) };
    let check = |transport: &mut dyn Transport, loaded: &LocalTrace| {
        check_clock_condition(transport, workers, &loaded.program, &loaded.program.times())
    };
    let lines = check(transport, loaded)?;
    if told == Told::Otherwise && lines.violated() < SEVERAL {
        return Ok(Vec::new());
    }
    let of_timeline = |clock: &u32| curves[*clock as usize].clone();
    let curves: Vec<Option<LinearClock>> = map.of_timeline.iter().map(of_timeline).collect();
    let mut curved = map.clone();
    curved.join_by_curves(&curves);
    let clocks = RefinedClocks::new(&curved, &[])?;
    loaded.retime(workers, &clocks);
    if !are_better(&check(transport, loaded)?, &lines, told) {
        loaded.retime_by_locations(workers);
        return Ok(Vec::new());
    }
    adopt(transport, opened, loaded, options, &clocks, progress)?;
    Ok(curves)
}

/// Whether curves that leave these violations take the place of `lines`.
fn are_better(left: &ClockConditionCheck, lines: &ClockConditionCheck, told: Told) -> bool {
    match told {
        Told::ByOffsets => left.violated() <= lines.violated(),
        Told::Otherwise => {
            left.violated().saturating_mul(FEWER) <= lines.violated()
                && left.early.ticks.saturating_mul(FEWER.into()) <= lines.early.ticks
        }
    }
}
