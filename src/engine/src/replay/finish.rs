//! The last step of a correction: where taking out the common motion has made a minimum latency or the distance of two events shorter than it
//! may be, a forward replay of the times so far restores it.

use crate::comm::{ReduceOp, Transport};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::relative_times::RelativeTimes;
use crate::matching::sync::SyncTimeline;
use crate::matching::visited_times::{TimelineTimes, VisitedTimes};
use crate::replay::canonical::{self, Groups};
use crate::replay::dataflow;
use crate::replay::forward::{Forward, TimelineClock};
use crate::replay::in_place::in_place;
use crate::replay::program::Program;
use crate::replay::violation::Violation;
use clc_trace::workers::Workers;
use clc_trace::{Finish, Result, Ticks};
use controlled_logical_clock::controller::LARGEST_DECAY;
use controlled_logical_clock::forward::ForwardParameters;

/// The advances that the times of the visited events, `later` than the pre-synchronised ones, need so that latencies are kept and events are δ = `separation` apart (or as far as they
/// were); `None` if they are already. `later` becomes that of the final ones. Timelines and channels are shared out among `workers`. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn finish(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    groups: Option<&Groups>,
    separation: Ticks,
    later: &mut [RelativeTimes],
) -> Result<Option<Vec<Finish>>> {
    let times: Vec<VisitedTimes<'_>> = visited(program, later);
    let close = workers.map(times.len(), |local| is_too_close(&program.timelines[local], &later[local], separation));
    let mut lacking = [i64::from(close.contains(&true))];
    // Order is kept in any case.
    if program.latency.same_node > Ticks::ZERO || program.latency.other_node > Ticks::ZERO {
        lacking[0] |= i64::from(Violation::here(transport, workers, program, &times, |_| false)?.total > 0);
    }
    transport.all_reduce(ReduceOp::Max, &mut lacking)?;
    if lacking[0] == 0 {
        return Ok(None);
    }
    let parameters = ForwardParameters { decay: LARGEST_DECAY, separation };
    let forward = match groups {
        Some(groups) => canonical::forward_from(transport, program, &times, groups, parameters)?,
        None => dataflow::replay_from(transport, program, times.clone(), parameters)?,
    };
    let of_local = |local: usize| of_timeline(program, &forward, LocalTimeline::at(local), times[local], parameters);
    let finishes = workers.map(times.len(), of_local);
    in_place(workers, later, |local, later| {
        let advances = &forward.advances[local];
        (0..program.timelines[local].len()).for_each(|event| later.add(event, advances.of(event)));
    })?;
    Ok(Some(finishes))
}

/// The times that are `later` than the pre-synchronised ones, of each timeline.
pub(super) fn visited<'a>(program: &'a Program, later: &'a [RelativeTimes]) -> Vec<VisitedTimes<'a>> {
    program.timelines.iter().zip(later).map(|(timeline, later)| VisitedTimes::corrected(timeline, later)).collect()
}

/// Whether events of a location are closer than δ = `separation` in times `later` than the pre-synchronised ones, and closer than they were.
fn is_too_close(timeline: &SyncTimeline, later: &RelativeTimes, separation: Ticks) -> bool {
    let mut previous: Vec<Option<(i64, i64)>> = Vec::new();
    (0..timeline.len()).any(|event| {
        let original = timeline.time(event);
        let time = original + later.later_by(event).unwrap_or(0);
        let location = timeline.location(event) as usize;
        if location >= previous.len() {
            previous.resize(location + 1, None);
        }
        let before = previous[location].replace((original, time));
        before.is_some_and(|(before, then)| time - then < separation.0.min(original - before))
    })
}

/// The replay of one timeline again, for where its advance starts anew.
fn of_timeline(
    program: &Program,
    forward: &Forward,
    local: LocalTimeline,
    times: VisitedTimes<'_>,
    parameters: ForwardParameters,
) -> Finish {
    let timeline = &program.timelines[local];
    let mut clock = TimelineClock::new(parameters);
    let mut finish = Finish::new(parameters.decay);
    for event in 0..timeline.len() {
        let time = times.at(event as u32);
        let logical = time + forward.advances[local].of(event);
        let step = clock.step(timeline.location(event), time, timeline.time(event), logical);
        if step.anchored {
            finish.push(timeline.position(event), Ticks(time), clock.advance());
        }
    }
    finish
}
