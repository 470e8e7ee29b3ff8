//! The passes of the forward replay.

use crate::comm::local::LocalTransport;
use crate::comm::{ReduceOp, Transport};
use crate::replay::canonical::{self, Groups};
use crate::replay::common::{CommonCorrection, sum};
use crate::replay::dataflow;
use crate::replay::forward::Forward;
use crate::replay::mirror::mirrored;
use crate::replay::program::Program;
use crate::replay::violation::Violation;
use clc_trace::progress::Progress;
use clc_trace::workers::Workers;
use clc_trace::{Fraction, Result, Ticks};
use controlled_logical_clock::controller::{ONE_WAY_DECAY, error, next_decay, within};
use controlled_logical_clock::forward::ForwardParameters;
use controlled_logical_clock::{CorrectionForm, Parameters};

/// One pass, for the report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pass {
    /// 1 - γ.
    pub decay: Fraction,
    /// The largest advance LC - C over all events of the trace.
    pub largest_advance: Ticks,
    /// What the next pass depends on: in the publication's form the same as a multiple of D₀; else the sum of all jumps as a multiple of that
    /// of all violations.
    pub error: f64,
    /// Whether that is small enough.
    pub accepted: bool,
    /// The mirrored replay with the same γ, if the forward one was good enough for it.
    pub mirrored: Option<MirroredPass>,
    /// The most that the correction that was made of it moves any event that takes part in communication, but for a shift of the whole trace; none in the publication's form, and if none was made.
    pub displacement: Option<Ticks>,
}

/// The mirrored replay of a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MirroredPass {
    /// The largest move C - LC, backwards, over all events of the trace.
    pub largest_advance: Ticks,
    /// As that of the pass.
    pub error: f64,
}

/// Outcome of the forward replay.
#[derive(Debug)]
pub struct Passes {
    /// D₀: the largest advance of the plain Lamport clock.
    pub least_advance: Ticks,
    /// Which correction the passes were made for.
    pub form: CorrectionForm,
    /// What was done to all timelines together, when the passes were made into corrections; none in the publication's form.
    pub shared: Option<CommonCorrection>,
    /// What was tried, in order; empty if nothing has to move.
    pub passes: Vec<Pass>,
    /// The communicators of the canonical replay, if it was used: one analysis rank per process, blocking operations.
    pub groups: Option<Groups>,
    /// The mirrored replay with the γ of the last pass; none in the publication's form.
    pub mirrored: Option<Mirrored>,
    /// Logical times of the last pass, and the decay it was made with; `None` if nothing has to move.
    pub result: Option<(Forward, Fraction)>,
}

/// A mirrored replay.
#[derive(Debug)]
pub struct Mirrored {
    /// The mirrored program.
    pub program: Program,
    /// The communicators of its canonical replay.
    pub groups: Option<Groups>,
    /// Logical times, on its negated axis.
    pub forward: Forward,
    /// 1 - γ of its last replay.
    decay: Option<Fraction>,
}

impl Mirrored {
    /// Of `program`, whose canonical replay has these `groups`, before its replay. Collective over the analysis ranks.
    fn new(transport: &mut dyn Transport, program: &Program, groups: Option<&Groups>) -> Result<Mirrored> {
        let program = mirrored(transport, program)?;
        let groups = groups.map(|groups| groups.mirrored(&program));
        Ok(Mirrored { program, groups, forward: Forward::default(), decay: None })
    }

    /// Replays it, if that was not yet done. Collective over the analysis ranks.
    fn replay(&mut self, transport: &mut dyn Transport, parameters: ForwardParameters) -> Result<()> {
        if self.decay == Some(parameters.decay) {
            return Ok(());
        }
        self.forward = match &self.groups {
            Some(groups) => canonical::forward(transport, &self.program, groups, parameters)?,
            None => dataflow::replay(transport, &self.program, parameters)?,
        };
        self.decay = Some(parameters.decay);
        Ok(())
    }

    /// That of `program`, all of which is on this rank, with its replay.
    fn alone(program: &Program, parameters: ForwardParameters) -> Result<Mirrored> {
        let transport = &mut LocalTransport::alone();
        let mut mirrored = Mirrored::new(transport, program, None)?;
        mirrored.replay(transport, parameters)?;
        Ok(mirrored)
    }
}

impl Passes {
    /// Of a trace without violations: with every send before its receives already, LC = C is the least solution of the formula, and there is
    /// nothing to replay.
    pub fn of_consistent(form: CorrectionForm) -> Passes {
        Passes {
            form,
            shared: None,
            least_advance: Ticks::ZERO,
            passes: Vec::new(),
            groups: None,
            mirrored: None,
            result: None,
        }
    }
}

/// Whether the forward and the mirrored replay run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Simultaneity {
    /// One after the other.
    No,
    /// No others to talk to, and a thread for each.
    OnThreads,
    /// Several ranks: one goes on while timestamps of the other are under way.
    InTurns,
}

/// Replays until the error is small enough. Forward and mirrored at the same time: by several ranks in turns, by one on two of its `workers`. Collective over
/// the analysis ranks.
///
/// # Errors
/// Failures of the transport; a trace that contradicts itself.
pub fn run(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    parameters: &Parameters,
    progress: &dyn Progress,
) -> Result<Passes> {
    progress.phase("replay", program.events() * u64::from(parameters.max_passes));
    let outcome = replay(transport, workers, program, parameters, progress);
    progress.finish();
    outcome
}

fn replay(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    parameters: &Parameters,
    progress: &dyn Progress,
) -> Result<Passes> {
    let groups = canonical::prepare(transport, program)?;
    let violation = match parameters.form {
        CorrectionForm::Common => Violation::of(transport, workers, program)?,
        CorrectionForm::Paper => Violation::default(),
    };
    let mut decay = parameters.decay.fraction();
    if violation.is_one_way() && decay < ONE_WAY_DECAY {
        decay = ONE_WAY_DECAY;
    }
    let together = match (parameters.form, &groups) {
        (CorrectionForm::Common, None) if transport.size() > 1 => Simultaneity::InTurns,
        (CorrectionForm::Common, None) if workers.threads() > 1 => Simultaneity::OnThreads,
        _ => Simultaneity::No,
    };
    let violation = violation.total;
    let mut replays = Replays { workers, program, parameters, violation, together, groups, mirror: None };
    let (mut first, least_advance) = replays.least_advance(transport, decay)?;
    if least_advance == Ticks::ZERO {
        return Ok(Passes::of_consistent(parameters.form));
    }
    let mut passes = Vec::new();
    loop {
        progress.step("pass");
        let forward = match first.take() {
            Some(forward) => forward,
            None => replays.forward(transport, decay)?,
        };
        let next = next_decay(decay).filter(|_| passes.len() as u32 + 1 < parameters.max_passes);
        let mut pass = replays.judged(transport, &forward, decay, least_advance)?;
        progress.advance(program.events());
        // Where even the forward replay is not good enough, there is no need of the mirrored one.
        if parameters.form == CorrectionForm::Common && (pass.accepted || next.is_none()) {
            replays.mirror(transport, &mut pass)?;
        }
        passes.push(pass);
        tracing::info!(
            pass = passes.len(),
            gamma = 1.0 - decay.to_f64(),
            largest_advance = pass.largest_advance.0,
            error = pass.error
        );
        if pass.accepted || next.is_none() {
            let Replays { groups, mirror: mirrored, .. } = replays;
            let result = Some((forward, decay));
            return Ok(Passes { least_advance, form: parameters.form, shared: None, passes, groups, mirrored, result });
        }
        decay = next.unwrap_or(decay);
    }
}

/// What the passes are made of.
struct Replays<'a> {
    workers: Workers,
    program: &'a Program,
    parameters: &'a Parameters,
    /// The sum of all violations.
    violation: i128,
    together: Simultaneity,
    /// The communicators of the canonical replay, if it is used.
    groups: Option<Groups>,
    /// The mirrored replay, once there is one.
    mirror: Option<Mirrored>,
}

impl Replays<'_> {
    fn constants(&self, decay: Fraction) -> ForwardParameters {
        ForwardParameters { decay, separation: self.parameters.minimum_separation }
    }

    /// D₀, and the first pass if it came with that.
    fn least_advance(&mut self, transport: &mut dyn Transport, decay: Fraction) -> Result<(Option<Forward>, Ticks)> {
        let mut first = None;
        let mut least = None;
        match &self.groups {
            Some(groups) => {
                tracing::info!("canonical replay: one process per analysis rank, blocking operations");
                if let Some(advance) = groups.lamport_advance {
                    least = Some(largest(transport, advance)?);
                }
            }
            None => {
                tracing::info!("dataflow replay: batched timestamps");
                let (forward, advance) = self.forward_with_lamport(transport, decay)?;
                let advance = largest(transport, advance.unwrap_or(GIVEN_UP))?;
                if advance != GIVEN_UP {
                    (first, least) = (Some(forward), Some(advance));
                }
            }
        }
        let least = match least {
            Some(least) => least,
            // Its times are not needed any more when those of the passes take their memory.
            None => {
                let advance = dataflow::replay(transport, self.program, dataflow::LAMPORT)?.largest_advance;
                largest(transport, advance)?
            }
        };
        Ok((first, least))
    }

    /// A replay by the dataflow form, together with the plain Lamport clock's advance here, if that did not give up.
    fn forward_with_lamport(
        &mut self,
        transport: &mut dyn Transport,
        decay: Fraction,
    ) -> Result<(Forward, Option<Ticks>)> {
        let (program, constants) = (self.program, self.constants(decay));
        let mut replayed = || dataflow::replay_with_lamport(transport, program, constants);
        match self.together {
            Simultaneity::OnThreads => {
                let (replayed, mirrored) = self.workers.both(&mut replayed, || Mirrored::alone(program, constants));
                let replayed = replayed?;
                self.mirror = Some(mirrored?);
                Ok(replayed)
            }
            Simultaneity::InTurns => {
                let own = Mirrored::new(transport, program, None)?;
                let (forward, advance, back) =
                    dataflow::replay_both_with_lamport(transport, program, &own.program, constants)?;
                self.mirror = Some(Mirrored { forward: back, decay: Some(decay), ..own });
                Ok((forward, advance))
            }
            Simultaneity::No => replayed(),
        }
    }

    /// The forward replay of a pass, if need be with the mirrored one.
    fn forward(&mut self, transport: &mut dyn Transport, decay: Fraction) -> Result<Forward> {
        let (program, constants) = (self.program, self.constants(decay));
        match &self.groups {
            Some(groups) => canonical::forward(transport, program, groups, constants),
            None if self.together == Simultaneity::InTurns => {
                let own = match self.mirror.take() {
                    Some(own) => own,
                    None => Mirrored::new(transport, program, None)?,
                };
                // What is there was replayed with another γ, and takes memory.
                let own = Mirrored { forward: Forward::default(), ..own };
                let (forward, back) = dataflow::replay_both(transport, program, &own.program, constants)?;
                self.mirror = Some(Mirrored { forward: back, decay: Some(decay), ..own });
                Ok(forward)
            }
            None if self.together == Simultaneity::OnThreads => {
                // What is there was replayed with another γ, and takes memory.
                drop(self.mirror.take());
                let replayed = || dataflow::replay(transport, program, constants);
                let (forward, mirrored) = self.workers.both(replayed, || Mirrored::alone(program, constants));
                let forward = forward?;
                self.mirror = Some(mirrored?);
                Ok(forward)
            }
            None => dataflow::replay(transport, program, constants),
        }
    }

    /// A pass by its forward replay, without the mirrored one.
    fn judged(&self, transport: &mut dyn Transport, forward: &Forward, decay: Fraction, least: Ticks) -> Result<Pass> {
        let largest_advance = largest(transport, forward.largest_advance)?;
        let max_error = self.parameters.max_error;
        let (error, accepted) = match self.parameters.form {
            CorrectionForm::Paper => (error(largest_advance, least), max_error.allows(largest_advance, least)),
            CorrectionForm::Common => {
                let jumps = sum(transport, &[forward.jumps])?[0];
                within(jumps, self.violation, max_error)
            }
        };
        Ok(Pass { decay, largest_advance, error, accepted, mirrored: None, displacement: None })
    }

    /// Adds the mirrored replay to a pass.
    fn mirror(&mut self, transport: &mut dyn Transport, pass: &mut Pass) -> Result<()> {
        let mut mirrored = match self.mirror.take() {
            Some(mirrored) => mirrored,
            None => Mirrored::new(transport, self.program, self.groups.as_ref())?,
        };
        mirrored.replay(transport, self.constants(pass.decay))?;
        let largest_advance = largest(transport, mirrored.forward.largest_advance)?;
        let jumps = sum(transport, &[mirrored.forward.jumps])?[0];
        let (error, accepted) = within(jumps, self.violation, self.parameters.max_error);
        pass.accepted &= accepted;
        pass.mirrored = Some(MirroredPass { largest_advance, error });
        self.mirror = Some(mirrored);
        Ok(())
    }
}

/// Larger than every advance: a rank does not know its own.
const GIVEN_UP: Ticks = Ticks::MAX;

/// The largest advance of all ranks.
fn largest(transport: &mut dyn Transport, here: Ticks) -> Result<Ticks> {
    let mut largest = [here.0];
    transport.all_reduce(ReduceOp::Max, &mut largest)?;
    Ok(Ticks(largest[0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::AnalysisRank;
    use crate::matching::channels::{InChannel, Lengths, OutChannel, Trust};
    use crate::matching::local_timeline::LocalTimeline;
    use crate::matching::sync::{SyncKind, SyncTimeline};
    use clc_trace::progress::Silent;
    use clc_trace::{EventNumber, TimelineNumber};
    use std::sync::Arc;

    /// Processes 0 and 1 send `count` messages each to process 2, whose clock is behind by more and more.
    fn fan_in(count: u32) -> Program {
        let mut program = Program { nodes: vec![0, 1, 2], ..Program::default() };
        let [mut first, mut second, mut receiver] = [(); 3].map(|()| SyncTimeline::default());
        for k in 0..i64::from(count) {
            for (source, sender) in [&mut first, &mut second].into_iter().enumerate() {
                let send = sender.push(1_000 * k + 500_000, 0, EventNumber::after(k as u64), 0).unwrap();
                sender.activate(send, SyncKind::Send, source as u32);
                let receive = receiver
                    .push(990 * k + source as i64, 0, EventNumber::after(2 * k as u64 + source as u64), 0)
                    .unwrap();
                receiver.activate(receive, SyncKind::Receive, source as u32);
            }
        }
        program.timelines = [first, second, receiver].map(Arc::new).into();
        for source in 0..2 {
            let sends = (0..count).collect();
            program.messages.outgoing.push(OutChannel {
                source: LocalTimeline(source),
                destination: TimelineNumber(2),
                host: AnalysisRank(0),
                remote: source,
                trust: Trust::Sound,
                sends,
            });
            let receives = (0..count).map(|k| 2 * k + source).collect();
            program.messages.incoming.push(InChannel {
                source: TimelineNumber(source),
                host: AnalysisRank(0),
                remote: source,
                destination: LocalTimeline(2),
                trust: Trust::Sound,
                receives,
                lengths: Lengths::default(),
            });
        }
        program
    }

    #[test]
    fn the_least_advance_is_the_same_if_the_lamport_clock_gives_up() {
        for (count, gives_up) in [(1_000, false), (60_000, true)] {
            let (program, transport) = (fan_in(count), &mut LocalTransport::alone());
            let parameters = Parameters { max_passes: 2, ..Parameters::default() };
            let constants =
                ForwardParameters { decay: parameters.decay.fraction(), separation: parameters.minimum_separation };
            let (_, told) = dataflow::replay_with_lamport(transport, &program, constants).unwrap();
            assert_eq!(told.is_none(), gives_up, "{count} messages");
            // The last message of process 0 is late by most.
            let expected =
                program.message_latency(TimelineNumber(0), TimelineNumber(2)) + 500_000 + 10 * i64::from(count - 1);
            let passes = run(transport, Workers::ONE, &program, &parameters, &Silent).unwrap();
            assert_eq!(passes.least_advance, Ticks(expected));
            let (forward, decay) = passes.result.unwrap();
            let constants = ForwardParameters { decay, ..constants };
            assert_eq!(forward.advances, dataflow::replay(transport, &program, constants).unwrap().advances);
        }
    }
}
