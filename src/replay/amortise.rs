//! Backward amortisation of the hosted timelines: from the forward replay to one correction per timeline.

use crate::clc::Parameters;
use crate::clc::backward::{Demand, Knot, Segment, amortise};
use crate::clc::forward::ForwardParameters;
use crate::comm::Transport;
use crate::replay::blocking;
use crate::replay::caps::Caps;
use crate::replay::forward::{Forward, TimelineClock};
use crate::replay::passes::Passes;
use crate::replay::program::{NO_UPPER_BOUND, Program};
use crate::trace::progress::Silent;
use crate::trace::{Correction, Fraction, Result, Ticks};
use crate::workers::Workers;
use std::sync::{Mutex, PoisonError};

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
/// the logical times out of `passes`. Timelines are shared out among `workers`. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn run(
    transport: &mut dyn Transport,
    workers: Workers,
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
    // As many as work at the same time.
    let scratches = Mutex::new(Vec::new());
    let corrections = workers.run(program.timelines.len(), &Silent, |timeline, _| {
        let mut scratch: Scratch = lock(&scratches).pop().unwrap_or_default();
        let correction = correction(program, &forward, &caps, timeline, forward_parameters, slope, &mut scratch);
        lock(&scratches).push(scratch);
        Ok(correction)
    })?;
    drop((caps, scratches));
    let times: Vec<Mutex<Vec<i64>>> = forward.logical.into_iter().map(Mutex::new).collect();
    workers.run(times.len(), &Silent, |index, _| {
        let (timeline, correction) = (&program.timelines[index], &corrections[index]);
        let mut cursor = correction.cursor();
        let mut times = lock(&times[index]);
        times.iter_mut().enumerate().for_each(|(event, time)| *time = cursor.map(timeline.position(event)).0);
        Ok(())
    })?;
    let times = times.into_iter().map(|times| times.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
    Ok(Corrected { corrections, times: Some(times) })
}

/// A thread that panics ends the program.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that one timeline after the other uses.
#[derive(Default)]
struct Scratch {
    knots: Vec<Knot>,
    anchors: Vec<Anchor>,
    segments: Vec<Segment>,
}

/// Where the advance starts anew.
struct Anchor {
    event: u32,
    advance: Ticks,
    jumps: Ticks,
}

/// The correction of one timeline.
fn correction(
    program: &Program,
    forward: &Forward,
    caps: &Caps,
    number: usize,
    parameters: ForwardParameters,
    slope: Fraction,
    scratch: &mut Scratch,
) -> Correction {
    let (timeline, logical) = (&program.timelines[number], &forward.logical[number]);
    // The forward replay again, for the jumps and anchors it did not store. Bounded by its own result, it gives just that.
    let mut clock = TimelineClock::new(parameters);
    let mut jumps = 0;
    let mut caps = caps.reader(program, &forward.logical, number);
    let Scratch { knots, anchors, segments } = scratch;
    knots.clear();
    anchors.clear();
    for (event, (&time, &logical)) in timeline.time.iter().zip(logical).enumerate() {
        let index = event as u32;
        let step = clock.step(timeline.location(event), time, logical);
        if step.jump > Ticks::ZERO {
            jumps += step.jump.0;
            knots.push(Knot { level: Ticks(jumps), index, demand: Demand::Corner });
        }
        if step.anchored {
            anchors.push(Anchor { event: index, advance: clock.advance(), jumps: Ticks(jumps) });
        }
        let cap = caps.next(event);
        if cap != NO_UPPER_BOUND {
            // U = S + min over the receives (LC - μ) - LC of the send; never under S after a correct forward replay.
            let room = (cap - step.time.0).max(0);
            knots.push(Knot { level: Ticks(jumps + room), index, demand: Demand::Cap });
        }
    }
    if jumps == 0 {
        return Correction::identity();
    }

    amortise(&timeline.time, knots, slope, segments);
    let mut correction = Correction::with_capacity(parameters.decay, slope, anchors.len(), segments.len());
    for anchor in &*anchors {
        correction.push_advance(timeline.position(anchor.event as usize), anchor.advance, anchor.jumps);
    }
    for segment in segments.iter().rev() {
        correction.push_stretch(segment.index.map(|event| timeline.position(event as usize)), segment.stretch);
    }
    correction
}
