//! Recorded offsets that others contradict are left out where that leaves no more violations.

use crate::clocks::division::{nodes, recorded_offsets};
use crate::pipeline::load::{Known, LoadOptions, LocalTrace, load_with};
use crate::pipeline::open::TraceHandle;
use crate::report::Warnings;
use clc_clock::{OutlyingOffset, Sought, without_outlying};
use clc_engine::comm::Transport;
use clc_engine::replay::clock_condition::{ClockConditionCheck, check_clock_condition};
use clc_trace::Result;
use clc_trace::format::{duration, plural};
use clc_trace::progress::Progress;
use clc_trace::{Ticks, TimelineNumber};

/// First or last measurements of clocks are errors if without them receives are early by no more than one part in so many of what they were early by in all. Chosen by hand: wrong
/// ones explain nearly everything, clocks that jump a third at most.
const VANISHING: u128 = 2;

/// Loads the trace again without recorded offsets that others contradict, if there are any; says what was left out. Collective over the analysis ranks, and the same on all of them.
///
/// # Errors
/// Failures of the transport; the trace cannot be read a second time.
pub(super) fn leave_out(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &mut LocalTrace,
    options: &LoadOptions,
    progress: &dyn Progress,
) -> Result<Option<String>> {
    let resolution = opened.definitions.clock.resolution;
    let recorded = recorded_offsets(transport, loaded)?;
    let find = |sought: Sought| without_outlying(&recorded, &nodes(opened), resolution, sought);
    let (certain, with_ends) = (find(Sought::Certain), find(Sought::AlsoEnds));
    // Whether the first or last measurement of a clock is wrong, or the clock has jumped, violations tell.
    let tried = [(with_ends != certain).then_some((with_ends, true)), Some((certain, false))];
    let mut before = None;
    for (cleaned, have_to_vanish) in tried.into_iter().flatten().filter(|(cleaned, _)| !cleaned.outlying.is_empty()) {
        let check = |transport: &mut dyn Transport, loaded: &LocalTrace| {
            check_clock_condition(transport, opened.workers, &loaded.program, &loaded.program.times())
        };
        let before = match &before {
            Some(before) => before,
            None => before.insert(check(transport, loaded)?),
        };
        let said = in_words(&cleaned.outlying, resolution);
        // Its warnings are those of the first time.
        let known = Known { offsets: cleaned.instead, ..Known::default() };
        *loaded = load_with(transport, opened, options, known, progress, &mut Warnings::default())?;
        let after = check(transport, loaded)?;
        let worst = |check: &ClockConditionCheck| check.worst.as_ref().map_or(0, |worst| worst.ticks);
        // A clock that has jumped, or stood still for a while, leaves receives as early, or earlier, if it is taken not to have.
        let vanish = after.violated() < before.violated() && after.early.ticks * VANISHING <= before.early.ticks;
        let are_no_more = after.violated() <= before.violated() && worst(&after) <= worst(before);
        let is_better = if have_to_vanish { vanish } else { are_no_more };
        if is_better {
            return Ok(Some(said));
        }
        *loaded = load_with(transport, opened, options, Known::default(), progress, &mut Warnings::default())?;
    }
    Ok(None)
}

/// What was left out, the largest by name.
fn in_words(outlying: &[OutlyingOffset], resolution: u64) -> String {
    let largest = outlying.iter().max_by_key(|one| (one.excess.unsigned_abs(), std::cmp::Reverse(one.timeline)));
    let (excess, TimelineNumber(process)) = largest.map_or_else(Default::default, |one| (one.excess, one.timeline));
    let by = duration(Ticks(excess.saturating_abs()).seconds(resolution));
    let count = plural(outlying.len() as u64, "recorded offset");
    match outlying.len() {
        1 => format!("{count} is left out: others contradict that of process {process} by {by}"),
        _ => format!("{count} are left out: others contradict them, one of process {process} by {by}"),
    }
}
