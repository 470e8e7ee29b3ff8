//! The last step of a correction: where taking out the common motion has made a minimum latency or the distance of two events shorter than it
//! may be, a forward replay of the times so far restores it.

use crate::comm::{ReduceOp, Transport};
use crate::matching::local_timeline::LocalTimeline;
use crate::replay::canonical::{self, Groups};
use crate::replay::dataflow;
use crate::replay::forward::{Forward, TimelineClock};
use crate::replay::program::Program;
use crate::replay::violation::Violation;
use clc_trace::{Finish, Result, Ticks};
use controlled_logical_clock::controller::LARGEST_DECAY;
use controlled_logical_clock::forward::ForwardParameters;

/// The advances that `times` of the visited events need so that latencies are kept and events are δ = `separation` apart (or as far as they
/// were); `None` if they are already. `times` become the final ones. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn finish(
    transport: &mut dyn Transport,
    program: &Program,
    groups: Option<&Groups>,
    separation: Ticks,
    times: &mut Vec<Vec<i64>>,
) -> Result<Option<Vec<Finish>>> {
    let mut lacking = [i64::from(program.timelines.iter().zip(&*times).any(|(timeline, times)| {
        let mut previous: Vec<Option<(i64, i64)>> = Vec::new();
        timeline.times().iter().zip(times).enumerate().any(|(event, (&original, &time))| {
            let location = timeline.location(event) as usize;
            if location >= previous.len() {
                previous.resize(location + 1, None);
            }
            let before = previous[location].replace((original, time));
            before.is_some_and(|(before, then)| time - then < separation.0.min(original - before))
        })
    }))];
    // Order is kept in any case.
    if program.latency.same_node > Ticks::ZERO || program.latency.other_node > Ticks::ZERO {
        lacking[0] |= i64::from(Violation::here(transport, program, times, |_| false)?.total > 0);
    }
    transport.all_reduce(ReduceOp::Max, &mut lacking)?;
    if lacking[0] == 0 {
        return Ok(None);
    }
    let parameters = ForwardParameters { decay: LARGEST_DECAY, separation };
    let forward = match groups {
        Some(groups) => canonical::forward_from(transport, program, times, groups, parameters)?,
        None => dataflow::replay_from(transport, program, times.iter().map(Vec::as_slice).collect(), parameters)?,
    };
    let hosted = (0..times.len()).map(LocalTimeline::at);
    let finishes = hosted.map(|local| of_timeline(program, &forward, local, &times[local], parameters));
    let finishes = finishes.collect();
    for (times, advances) in times.iter_mut().zip(&forward.advances) {
        times.iter_mut().enumerate().for_each(|(event, time)| *time += advances.of(event));
    }
    Ok(Some(finishes))
}

/// The replay of one timeline again, for where its advance starts anew.
fn of_timeline(
    program: &Program,
    forward: &Forward,
    local: LocalTimeline,
    times: &[i64],
    parameters: ForwardParameters,
) -> Finish {
    let timeline = &program.timelines[local];
    let mut clock = TimelineClock::new(parameters);
    let mut finish = Finish::new(parameters.decay);
    for (event, &time) in times.iter().enumerate() {
        let logical = time + forward.advances[local].of(event);
        let step = clock.step(timeline.location(event), time, timeline.times()[event], logical);
        if step.anchored {
            finish.push(timeline.position(event), Ticks(time), clock.advance());
        }
    }
    finish
}
