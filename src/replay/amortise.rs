//! Backward amortisation of the hosted timelines: from the forward replay to one correction per timeline.

use crate::clc::Parameters;
use crate::clc::backward::{Demand, Knot, amortise};
use crate::clc::forward::ForwardParameters;
use crate::comm::Transport;
use crate::matching::sync::SyncTimeline;
use crate::replay::blocking;
use crate::replay::bounds::{Direction, bounds};
use crate::replay::forward::{Forward, TimelineClock};
use crate::replay::passes::Passes;
use crate::replay::program::{NO_UPPER_BOUND, Program};
use crate::trace::{Correction, Curve, Fraction, Piece, Position, Result, Ticks};

/// Backward amortisation of the last pass: the caps of the logical sends by the exchange that suits the replay, then the curves. One
/// correction per hosted timeline. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn run(
    transport: &mut dyn Transport,
    program: &Program,
    passes: &Passes,
    parameters: &Parameters,
) -> Result<Vec<Correction>> {
    let Some((forward, decay)) = &passes.result else {
        return Ok(program.timelines.iter().map(|_| Correction::identity()).collect());
    };
    let caps = match &passes.groups {
        Some(groups) => blocking::backward(transport, program, groups, forward)?,
        None => bounds(transport, program, &forward.logical, Direction::Backward)?,
    };
    let forward_parameters = ForwardParameters { decay: *decay, separation: parameters.minimum_separation };
    Ok(corrections(program, forward, &caps, forward_parameters, parameters.slope.fraction()))
}

/// The correction of every hosted timeline. `caps` are the bounds of the logical sends
/// ([`crate::replay::bounds::Direction::Backward`] of the logical times), `slope` is m.
fn corrections(
    program: &Program,
    forward: &Forward,
    caps: &[Vec<i64>],
    parameters: ForwardParameters,
    slope: Fraction,
) -> Vec<Correction> {
    let timelines = program.timelines.iter().zip(&forward.bounds).zip(caps);
    timelines.map(|((timeline, bounds), caps)| correction(timeline, bounds, caps, parameters, slope)).collect()
}

/// The correction of one timeline with the `bounds` of its logical receives and the `caps` of its logical sends.
fn correction(
    timeline: &SyncTimeline,
    bounds: &[i64],
    caps: &[i64],
    parameters: ForwardParameters,
    slope: Fraction,
) -> Correction {
    // The forward replay again, now with all bounds known, for the jumps and anchors it did not store.
    let mut clock = TimelineClock::new(parameters);
    let mut jumps = 0;
    let mut knots = Vec::new();
    let mut anchors: Vec<Piece> = Vec::new();
    for event in 0..timeline.len() {
        let time = timeline.time[event];
        let step = clock.step(timeline.location[event], time, bounds[event]);
        if step.jump > Ticks::ZERO {
            jumps += step.jump.0;
            knots.push(Knot { index: event, time: Ticks(time), demand: Demand::Corner(Ticks(jumps)) });
        }
        if step.anchored {
            let (anchor, advance) = clock.decay();
            let start = position(timeline, event);
            anchors.push(Piece { start, anchor, advance, jumps: Ticks(jumps), curve: Curve::Flat });
        }
        if caps[event] != NO_UPPER_BOUND {
            // U = S + min over the receives (LC - μ) - LC of the send; never under S after a correct forward replay.
            let room = (caps[event] - step.time.0).max(0);
            knots.push(Knot { index: event, time: Ticks(time), demand: Demand::Cap(Ticks(jumps + room)) });
        }
    }
    if jumps == 0 {
        return Correction::identity();
    }

    // One piece wherever the advance starts anew or the curve changes its shape.
    let mut pieces = Vec::with_capacity(anchors.len());
    let mut anchors = anchors.into_iter().peekable();
    let beginning = Position { time: Ticks::MIN, location: 0, number: 0 };
    let mut now =
        Piece { start: beginning, anchor: Ticks::ZERO, advance: Ticks::ZERO, jumps: Ticks::ZERO, curve: Curve::Flat };
    let push = |piece: Piece, pieces: &mut Vec<Piece>| match pieces.last_mut() {
        Some(last) if last.start == piece.start => *last = piece,
        _ => pieces.push(piece),
    };
    for segment in amortise(&knots, slope) {
        let start = segment.index.map_or(beginning, |event| position(timeline, event));
        while let Some(anchor) = anchors.next_if(|anchor| anchor.start <= start) {
            now = Piece { curve: now.curve, ..anchor };
            push(now, &mut pieces);
        }
        now = Piece { start, curve: segment.curve, ..now };
        push(now, &mut pieces);
    }
    for anchor in anchors {
        now = Piece { curve: now.curve, ..anchor };
        push(now, &mut pieces);
    }
    Correction { decay: parameters.decay, slope, pieces }
}

/// Where visited event `event` stands in its timeline.
pub fn position(timeline: &SyncTimeline, event: usize) -> Position {
    Position { time: Ticks(timeline.time[event]), location: timeline.location[event], number: timeline.number[event] }
}

/// The corrected time of every visited event.
pub fn corrected_times(program: &Program, corrections: &[Correction]) -> Vec<Vec<i64>> {
    let timelines = program.timelines.iter().zip(corrections);
    timelines
        .map(|(timeline, correction)| {
            let mut cursor = correction.cursor();
            (0..timeline.len()).map(|event| cursor.map(position(timeline, event)).0).collect()
        })
        .collect()
}
