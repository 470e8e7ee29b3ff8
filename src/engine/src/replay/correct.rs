//! The correction of a trace: passes of the replay and what is made of the last one, with smaller γ if that moves events further than it should.

use crate::comm::Transport;
use crate::replay::amortise::{self, Corrected};
use crate::replay::passes::{self, Pass, Passes};
use crate::replay::program::Program;
use clc_trace::progress::Progress;
use clc_trace::workers::Workers;
use clc_trace::{Result, Ticks};
use controlled_logical_clock::controller::{is_near, is_nearer, next_decay};
use controlled_logical_clock::{Decay, Parameters};

/// A part of a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The passes of the replay.
    Forward,
    /// Backward amortisation, and the common time.
    Backward,
}

/// Corrects a `program` of which no event is before `earliest` (pre-synchronised); `ended` is told of every step. Where the correction moves events by far more than the violations need, those with smaller γ are tried as
/// well ([`is_near`], [`is_nearer`]), and the first one is made again if none is better. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport; a trace that contradicts itself.
pub fn correct(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    parameters: &Parameters,
    earliest: Ticks,
    progress: &dyn Progress,
    ended: &mut dyn FnMut(Step),
) -> Result<(Passes, Corrected)> {
    let mut attempt = |parameters: &Parameters| {
        let mut passes = passes::run(transport, workers, program, parameters, progress)?;
        ended(Step::Forward);
        let corrected = amortise::run(transport, workers, program, &mut passes, parameters, earliest)?;
        ended(Step::Backward);
        Ok((passes, corrected))
    };
    let (passes, corrected) = attempt(parameters)?;
    let near = |passes: &Passes, moved: Ticks| is_near(moved, passes.least_advance, parameters.max_error);
    let too_far = last_of(&passes).filter(|(_, moved)| !near(&passes, *moved));
    let next = too_far.and_then(|(first, _)| following(parameters, &first, passes.passes.len()));
    let (Some((first, moved)), Some(mut next)) = (too_far, next) else { return Ok((passes, corrected)) };
    drop(corrected);
    let mut tried = passes.passes;
    loop {
        let (passes, corrected) = attempt(&next)?;
        tried.extend(&passes.passes);
        let Some((last, displacement)) = last_of(&passes) else { break };
        if near(&passes, displacement) && is_nearer(displacement, moved) {
            return Ok((Passes { passes: tried, ..passes }, corrected));
        }
        let Some(following) = following(parameters, &last, tried.len()) else { break };
        next = following;
    }
    let (passes, corrected) = attempt(&alone(parameters, &first))?;
    tried.extend(&passes.passes);
    Ok((Passes { passes: tried, ..passes }, corrected))
}

/// The last pass, and by how much the correction that was made of it moves events.
fn last_of(passes: &Passes) -> Option<(Pass, Ticks)> {
    let last = passes.passes.last()?;
    Some((*last, last.displacement?))
}

/// Those for what follows after so many passes, of which this is the `last`; none if there is nothing left to try.
fn following(parameters: &Parameters, last: &Pass, tried: usize) -> Option<Parameters> {
    let left = parameters.max_passes.saturating_sub(u32::try_from(tried).unwrap_or(u32::MAX));
    let decay = next_decay(last.decay).filter(|_| left > 0)?;
    Some(Parameters { decay: Decay::from_units(decay.bits())?, max_passes: left, ..*parameters })
}

/// Those of nothing but this pass.
fn alone(parameters: &Parameters, pass: &Pass) -> Parameters {
    let decay = Decay::from_units(pass.decay.bits()).unwrap_or(parameters.decay);
    Parameters { decay, max_passes: 1, ..*parameters }
}
