//! Backward amortisation of the hosted timelines: from the forward replay to one correction per timeline.

use crate::clc::Parameters;
use crate::clc::backward::{Demand, Knot, amortise};
use crate::clc::forward::ForwardParameters;
use crate::comm::Transport;
use crate::matching::sync::SyncTimeline;
use crate::replay::blocking;
use crate::replay::caps::{Caps, Reader};
use crate::replay::forward::{Forward, TimelineClock};
use crate::replay::passes::Passes;
use crate::replay::program::{NO_UPPER_BOUND, Program};
use crate::trace::{Correction, Curve, Fraction, Piece, Position, Result, Ticks};

/// What becomes of the hosted timelines.
#[derive(Debug)]
pub struct Corrected {
    /// One correction per timeline.
    pub corrections: Vec<Correction>,
    /// The corrected time of every visited event; none if nothing has to move.
    times: Option<Vec<Vec<i64>>>,
}

impl Corrected {
    /// The corrected time of every visited event of the `program` that was corrected.
    pub fn times<'a>(&'a self, program: &'a Program) -> Vec<&'a [i64]> {
        match &self.times {
            Some(times) => times.iter().map(Vec::as_slice).collect(),
            None => program.times(|timeline| &timeline.time),
        }
    }
}

/// Backward amortisation of the last pass: the caps of the logical sends by the exchange that suits the replay, then the curves. Takes
/// the logical times out of `passes`. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn run(
    transport: &mut dyn Transport,
    program: &Program,
    passes: &mut Passes,
    parameters: &Parameters,
) -> Result<Corrected> {
    let Some((forward, decay)) = passes.result.take() else {
        return Ok(Corrected {
            corrections: program.timelines.iter().map(|_| Correction::identity()).collect(),
            times: None,
        });
    };
    let caps = match &passes.groups {
        Some(groups) => Caps::Given(blocking::backward(transport, program, groups, &forward)?),
        None => Caps::exchange(transport, program, &forward.logical)?,
    };
    let forward_parameters = ForwardParameters { decay, separation: parameters.minimum_separation };
    let slope = parameters.slope.fraction();
    let mut scratch = Scratch::default();
    let mut reader = caps.reader(program, &forward.logical);
    let corrections: Vec<Correction> = (0..program.timelines.len())
        .map(|timeline| correction(program, &forward, &mut reader, timeline, forward_parameters, slope, &mut scratch))
        .collect();
    drop((caps, scratch));
    let mut times = forward.logical;
    for ((timeline, correction), times) in program.timelines.iter().zip(&corrections).zip(&mut times) {
        let mut cursor = correction.cursor();
        times.iter_mut().enumerate().for_each(|(event, time)| *time = cursor.map(position(timeline, event)).0);
    }
    Ok(Corrected { corrections, times: Some(times) })
}

/// Memory that one timeline after the other uses.
#[derive(Default)]
struct Scratch {
    knots: Vec<Knot>,
    anchors: Vec<Piece>,
}

/// The correction of one timeline. `caps` has been read for all timelines before it.
fn correction(
    program: &Program,
    forward: &Forward,
    caps: &mut Reader<'_>,
    number: usize,
    parameters: ForwardParameters,
    slope: Fraction,
    scratch: &mut Scratch,
) -> Correction {
    let (timeline, logical) = (&program.timelines[number], &forward.logical[number]);
    // The forward replay again, for the jumps and anchors it did not store. Bounded by its own result, it gives just that.
    let mut clock = TimelineClock::new(parameters);
    let mut jumps = 0;
    let Scratch { knots, anchors } = scratch;
    knots.clear();
    anchors.clear();
    for (event, (&time, &logical)) in timeline.time.iter().zip(logical).enumerate() {
        let step = clock.step(timeline.location(event), time, logical);
        if step.jump > Ticks::ZERO {
            jumps += step.jump.0;
            knots.push(Knot { index: event, time: Ticks(time), demand: Demand::Corner(Ticks(jumps)) });
        }
        if step.anchored {
            let (anchor, advance) = clock.decay();
            let start = position(timeline, event);
            anchors.push(Piece { start, anchor, advance, jumps: Ticks(jumps), curve: Curve::Flat });
        }
        let cap = caps.next(number, event);
        if cap != NO_UPPER_BOUND {
            // U = S + min over the receives (LC - μ) - LC of the send; never under S after a correct forward replay.
            let room = (cap - step.time.0).max(0);
            knots.push(Knot { index: event, time: Ticks(time), demand: Demand::Cap(Ticks(jumps + room)) });
        }
    }
    if jumps == 0 {
        return Correction::identity();
    }

    // One piece wherever the advance starts anew or the curve changes its shape.
    let segments = amortise(knots, slope);
    let mut pieces = Vec::with_capacity(anchors.len() + segments.len());
    let mut anchors = anchors.iter().copied().peekable();
    let beginning = Position { time: Ticks::MIN, location: 0, number: 0 };
    let mut now =
        Piece { start: beginning, anchor: Ticks::ZERO, advance: Ticks::ZERO, jumps: Ticks::ZERO, curve: Curve::Flat };
    let push = |piece: Piece, pieces: &mut Vec<Piece>| match pieces.last_mut() {
        Some(last) if last.start == piece.start => *last = piece,
        _ => pieces.push(piece),
    };
    for segment in segments {
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
    Position { time: Ticks(timeline.time[event]), location: timeline.location(event), number: timeline.number(event) }
}
