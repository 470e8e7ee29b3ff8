//! Backward amortisation of the hosted timelines: from the forward replay to one correction per timeline.

use crate::comm::{ReduceOp, Transport};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::relative_times::RelativeTimes;
use crate::matching::sync::{MirroredLinks, ReplayTimeline, SyncTimeline};
use crate::matching::visited_times::VisitedTimes;
use crate::replay::canonical::{self, Groups};
use crate::replay::common::{CommonCorrection, common_times, synchronising};
use crate::replay::finish::{finish, visited};
use crate::replay::forward::{Forward, TimelineClock};
use crate::replay::in_place::{in_place, lock};
use crate::replay::passes::{Mirrored, Passes};
use crate::replay::program::{NO_UPPER_BOUND, Program};
use crate::replay::upper_bounds::UpperBounds;
use clc_trace::progress::Silent;
use clc_trace::workers::Workers;
use clc_trace::{CommonTime, Correction, EventNumber, Fraction, OneSided, Position, Result, Ticks};
use controlled_logical_clock::Parameters;
use controlled_logical_clock::backward::{Corner, Segment, amortise};
use controlled_logical_clock::forward::ForwardParameters;
use std::sync::{Arc, Mutex};

/// What becomes of the hosted timelines.
#[derive(Debug)]
pub struct Corrected {
    /// One correction per timeline.
    pub corrections: Vec<Correction>,
    /// By how much the corrected time of every visited event is later than the pre-synchronised one; none if nothing has to move.
    later: Option<Vec<RelativeTimes>>,
}

impl Corrected {
    /// Nothing has to move.
    pub fn nothing(program: &Program) -> Corrected {
        Corrected { corrections: program.timelines.iter().map(|_| Correction::identity()).collect(), later: None }
    }

    /// The corrected time of every visited event of the `program` that was corrected.
    pub fn times<'a>(&'a self, program: &'a Program) -> Vec<VisitedTimes<'a>> {
        self.later.as_ref().map_or_else(|| program.times(), |later| visited(program, later))
    }
}

/// Backward amortisation of the last pass: the upper bounds of the logical sends by the exchange that suits the replay, then the curves; the same for
/// the mirrored replay if there is one, and the average of both without their common motion. Takes
/// the logical times out of `passes`. Timelines are shared out among `workers`. No event of the trace is before `earliest` (pre-synchronised), and
/// none will be before 0. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn run(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    passes: &mut Passes,
    parameters: &Parameters,
    earliest: Ticks,
) -> Result<Corrected> {
    let Some((forward, decay)) = passes.result.take() else {
        return Ok(Corrected::nothing(program));
    };
    let constants = Constants {
        forward: ForwardParameters { decay, separation: parameters.minimum_separation },
        slope: parameters.slope.fraction(),
    };
    let groups = passes.groups.as_ref();
    let sides = one_sided(transport, workers, program, groups, forward, constants)?;
    let Some(Mirrored { program: mirror, groups: mirror_groups, forward: back, .. }) = passes.mirrored.take() else {
        let later = corrected(workers, program, &sides, None);
        let corrections = sides.into_iter().map(Correction::from).collect();
        return Ok(Corrected { corrections, later: Some(later) });
    };
    let backs = one_sided(transport, workers, &mirror, mirror_groups.as_ref(), back, constants)?;
    drop(mirror);
    let mut later = corrected(workers, program, &sides, Some(&backs));
    let average = |(forward, mirrored): (OneSided, OneSided)| Correction::average(forward, mirrored);
    let mut corrections: Vec<Correction> = sides.into_iter().zip(backs).map(average).collect();

    let mut common =
        common_times(transport, workers, program, &visited(program, &later), passes.least_advance, parameters.centre)?;
    // Where everything began, before it was corrected.
    let start = Position { time: earliest, location: 0, number: EventNumber::START };
    let moved = |(correction, common): (&Correction, &Option<Arc<CommonTime>>)| {
        let time = correction.map(start);
        common.as_ref().map_or(time, |common| common.map(time)).0
    };
    let mut least = [corrections.iter().zip(&common).map(moved).min().unwrap_or(0)];
    transport.all_reduce(ReduceOp::Min, &mut least)?;
    let mut shared = CommonCorrection::default();
    for common in common.iter().flatten() {
        let (largest, slope) = common.extent();
        shared = CommonCorrection { largest: shared.largest.max(largest), slope: shared.slope.max(slope), ..shared };
    }
    let shift = (-least[0]).max(0);
    if shift > 0 {
        let later = |common: Option<Arc<CommonTime>>| {
            let common = common.map_or_else(|| CommonTime::new(Ticks::ZERO, 1, vec![0]), |common| (*common).clone());
            Some(Arc::new(common.later(Ticks(shift))))
        };
        common = common.into_iter().map(later).collect();
    }
    in_place(workers, &mut later, |index, later| {
        if let Some(common) = &common[index] {
            without_motion(&program.timelines[index], later, common);
        }
    })?;
    let displacement = |index: usize| {
        let moves = synchronising(&program.timelines[index]).filter_map(|event| later[index].later_by(event));
        moves.map(|later| (later - shift).abs()).max().unwrap_or(0)
    };
    shared.displacement = Ticks(workers.map(later.len(), displacement).into_iter().max().unwrap_or(0));
    for (correction, common) in corrections.iter_mut().zip(common) {
        if let Some(common) = common {
            let own = std::mem::replace(correction, Correction::identity());
            *correction = own.without(common);
        }
    }
    if let Some(finishes) = finish(transport, workers, program, groups, parameters.minimum_separation, &mut later)? {
        for (correction, finish) in corrections.iter_mut().zip(finishes) {
            shared.finish = shared.finish.max(finish.largest());
            let own = std::mem::replace(correction, Correction::identity());
            *correction = own.finished(finish);
        }
    }
    let mut most = [shared.largest.0, shared.finish.0, shared.displacement.0, (shared.slope * SLOPE_UNIT) as i64];
    transport.all_reduce(ReduceOp::Max, &mut most)?;
    let [largest, finish, displacement] = [most[0], most[1], most[2]].map(Ticks);
    passes.shared = Some(CommonCorrection { largest, finish, displacement, slope: most[3] as f64 / SLOPE_UNIT });
    if let Some(pass) = passes.passes.last_mut() {
        pass.displacement = Some(displacement);
    }
    Ok(Corrected { corrections, later: Some(later) })
}

/// Events that are mapped at once. Chosen by hand: the time of a call is spread over so many of them, and they stay in the cache.
const TOGETHER: usize = 1 << 10;
/// In which slopes are compared among the ranks.
const SLOPE_UNIT: f64 = 1e12;

/// The constants of one replay and its amortisation.
#[derive(Debug, Clone, Copy)]
struct Constants {
    forward: ForwardParameters,
    slope: Fraction,
}

/// One replay with its amortisation: a correction per timeline. The logical times are not needed any more.
fn one_sided(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    groups: Option<&Groups>,
    forward: Forward,
    constants: Constants,
) -> Result<Vec<OneSided>> {
    let upper_bounds = match groups {
        Some(groups) => UpperBounds::Given(canonical::backward(transport, program, groups, &forward)?),
        None => UpperBounds::exchange(transport, program, &forward.times(program))?,
    };
    // As many as work at the same time.
    let scratches = Mutex::new(Vec::new());
    workers.run(program.timelines.len(), &Silent, |timeline, _| {
        let mut scratch: AmortiseScratch = lock(&scratches).pop().unwrap_or_default();
        let correction =
            correction(program, &forward, &upper_bounds, LocalTimeline::at(timeline), constants, &mut scratch);
        lock(&scratches).push(scratch);
        Ok(correction)
    })
}

/// By how much the times of the visited events are later under the corrections of one replay, or their mean with those of the mirrored one.
fn corrected(
    workers: Workers,
    program: &Program,
    sides: &[OneSided],
    backs: Option<&[OneSided]>,
) -> Vec<RelativeTimes> {
    workers.map(program.timelines.len(), |index| {
        let timeline = &program.timelines[index];
        let mut cursor = sides[index].replay_cursor();
        let mut later = RelativeTimes::with_capacity(timeline.len());
        for event in 0..timeline.len() {
            let time = Ticks(timeline.time(event));
            later.push(cursor.map_at(time, || timeline.position(event)).0 - time.0);
        }
        if let Some(backs) = backs {
            // The mirrored times are negated, and from the last event to the first.
            let nowhere = MirroredLinks::default();
            let mirrored = ReplayTimeline::new(timeline, Some(&nowhere));
            let mut cursor = backs[index].replay_cursor();
            for (event, own) in (0..timeline.len()).rev().enumerate() {
                let at = Ticks(mirrored.time(event));
                let back = cursor.map_at(at, || mirrored.position(event)).0;
                let time = -at.0;
                let forward = time + later.later_by(own).unwrap_or(0);
                later.set(own, ((forward - back) >> 1) - time);
            }
        }
        later
    })
}

/// Takes the motion that timelines share out of the times of a timeline, `later` than the pre-synchronised ones.
fn without_motion(timeline: &SyncTimeline, later: &mut RelativeTimes, common: &CommonTime) {
    let mut cursor = common.cursor();
    let mut times = [0; TOGETHER];
    for first in (0..timeline.len()).step_by(TOGETHER) {
        let times = &mut times[..TOGETHER.min(timeline.len() - first)];
        for (time, event) in times.iter_mut().zip(first..) {
            *time = timeline.time(event) + later.later_by(event).unwrap_or(0);
        }
        cursor.map_all(times);
        for (time, event) in times.iter().zip(first..) {
            later.set(event, time - timeline.time(event));
        }
    }
}

/// Memory that one timeline after the other uses.
#[derive(Default)]
struct AmortiseScratch {
    corners: Vec<Corner>,
    anchors: Vec<AdvanceStart>,
    segments: Vec<Segment>,
}

/// Where the advance starts anew.
struct AdvanceStart {
    event: u32,
    advance: Ticks,
    jumps: Ticks,
}

/// The correction of one timeline.
fn correction(
    program: &Program,
    forward: &Forward,
    upper_bounds: &UpperBounds,
    number: LocalTimeline,
    Constants { forward: parameters, slope }: Constants,
    scratch: &mut AmortiseScratch,
) -> OneSided {
    let (timeline, advances) = (program.timeline(number), &forward.advances[number]);
    // The forward replay again, for the jumps and anchors it did not store. Bounded by its own result, it gives just that.
    let mut clock = TimelineClock::new(parameters);
    let mut jumps = 0;
    let AmortiseScratch { corners, anchors, segments } = scratch;
    corners.clear();
    anchors.clear();
    for event in 0..timeline.len() {
        let (index, time) = (event as u32, timeline.time(event));
        let step = clock.step(timeline.location(event), time, time, time + advances.of(event));
        if step.jump > Ticks::ZERO {
            jumps += step.jump.0;
            corners.push(Corner { level: Ticks(jumps), index });
        }
        if step.anchored {
            anchors.push(AdvanceStart { event: index, advance: clock.advance(), jumps: Ticks(jumps) });
        }
    }
    if jumps == 0 {
        return OneSided::identity();
    }

    let mut upper_bounds = upper_bounds.reader(forward.times(program), number);
    let time = |index: u32| timeline.time(index as usize);
    let bound = |index: u32, staircase: Ticks| {
        let bound = upper_bounds.of(index as usize);
        // Never under the staircase after a correct forward replay.
        let room = || (bound - time(index) - advances.of(index as usize)).max(0);
        (bound != NO_UPPER_BOUND).then(|| staircase + Ticks(room()))
    };
    amortise(time, corners, bound, slope, segments);
    let mut correction = OneSided::with_capacity(parameters.decay, slope, anchors.len(), segments.len());
    for anchor in &*anchors {
        correction.push_advance(timeline.position(anchor.event as usize), anchor.advance, anchor.jumps);
    }
    for segment in segments.iter().rev() {
        correction.push_stretch(segment.index.map(|event| timeline.position(event as usize)), segment.stretch);
    }
    if program.mirrored.is_some() { correction.mirrored() } else { correction }
}
