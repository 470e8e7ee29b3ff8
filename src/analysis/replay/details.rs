//! What is told beside the waits of one stage: parts of them, and what operations take after the first process has left them.
//!
//! | detail | what it is |
//! | --- | --- |
//! | wrong order | a Late Sender, of a message that was sent after one that the receiver took later; by the first such message |
//! | Late Complete | the part of an Early Wait after the last access of the origin that was waited for |
//! | completion | of an N-to-N operation: from when the first of the others has left it, but not while waiting |

use crate::analysis::replay::operations::Operations;
use crate::analysis::replay::timeline_waits::{Detail, OperationWait, TimelineWaits, is_fence};
use clc_engine::comm::{ReduceOp, Transport};
use clc_engine::matching::channels::Trust;
use clc_engine::matching::hash::HashMap;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::replay::bounds::message_bounds;
use clc_engine::replay::contributions::{Contributions, Direction};
use clc_engine::replay::program::Program;
use clc_execution::waiting::{DetailKind, WaitKind};
use clc_trace::{CollectiveOp, Result, TimelineNumber};
use controlled_logical_clock::semantics::CollectiveClass;

/// The waits of one stage, to which their details are added.
pub(super) struct DetailInput<'a> {
    pub program: &'a Program,
    pub operations: &'a [Operations],
    pub stage: usize,
    /// When the operation of each visited event was entered.
    pub entered: &'a [Vec<i64>],
    pub waits: &'a mut [TimelineWaits],
}

/// A message that was received: the event, its sender, and when that entered its send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Received {
    event: u32,
    source: TimelineNumber,
    sent: i64,
}

impl DetailInput<'_> {
    /// Adds all details. Collective over the analysis ranks.
    pub(super) fn add(self, transport: &mut dyn Transport) -> Result<()> {
        let DetailInput { program, operations, stage, entered, waits } = self;
        let mut received: Vec<Vec<Received>> = vec![Vec::new(); operations.len()];
        message_bounds(transport, program, entered, |channel, event, sent| {
            let channel = &program.messages.incoming[channel];
            let own = &operations[channel.destination];
            if channel.is_certain() && own.of_event[event as usize] != Operations::NONE {
                let source = program.process_of(channel.source);
                received[channel.destination].push(Received { event, source, sent });
            }
        })?;
        for (timeline, mut received) in received.into_iter().enumerate() {
            received.sort_unstable_by_key(|message| message.event);
            let own = DetailedTimeline { operations: &operations[timeline], stage, waits: &waits[timeline].waits };
            let sync = &program.timelines[timeline];
            let mut locations: Vec<u32> =
                received.iter().map(|message| sync.location(message.event as usize)).collect();
            locations.sort_unstable();
            locations.dedup();
            for location in locations {
                let here = |message: &&Received| sync.location(message.event as usize) == location;
                let list: Vec<Received> = received.iter().filter(here).copied().collect();
                own.wrong_orders(&list, &mut waits[timeline].details);
            }
        }
        late_completes(transport, program, operations, (stage, entered), waits)?;
        completions(transport, program, operations, stage, waits)?;
        waits.iter_mut().for_each(|timeline| timeline.details.sort_unstable());
        Ok(())
    }
}

/// One timeline.
struct DetailedTimeline<'a> {
    operations: &'a Operations,
    stage: usize,
    waits: &'a [OperationWait],
}

/// The wait of an operation.
fn wait_of(waits: &[OperationWait], operation: u32) -> Option<&OperationWait> {
    waits.binary_search_by_key(&operation, |wait| wait.operation).ok().and_then(|at| waits.get(at))
}

impl DetailedTimeline<'_> {
    /// The late senders among `messages` of one location, in the order in which they were received, that were sent after one received later by
    /// another operation.
    fn wrong_orders(&self, messages: &[Received], into: &mut Vec<Detail>) {
        let operation = |message: &Received| self.operations.of_event[message.event as usize];
        // Messages that were received later: each was sent before those that come after it here, and received after them.
        let mut later: Vec<(i64, TimelineNumber)> = Vec::new();
        for group in messages.chunk_by(|a, b| operation(a) == operation(b)).rev() {
            let wait = group.first().and_then(|first| wait_of(self.waits, operation(first)));
            if let Some(wait) = wait.filter(|wait| wait.kind == WaitKind::LateSender)
                && let Some(cause) = self.cause(wait, group)
                && let Some(&(_, source)) =
                    later.partition_point(|(sent, _)| *sent < cause.sent).checked_sub(1).and_then(|at| later.get(at))
            {
                let kind = match source == cause.source {
                    true => DetailKind::WrongOrderSameSource,
                    false => DetailKind::WrongOrderDifferentSource,
                };
                into.push(Detail { operation: wait.operation, kind, ticks: wait.ticks });
            }
            for message in group.iter().rev() {
                while later.last().is_some_and(|(sent, _)| *sent >= message.sent) {
                    later.pop();
                }
                later.push((message.sent, message.source));
            }
        }
    }

    /// The message of a group that its operation waited for.
    fn cause<'m>(&self, wait: &OperationWait, group: &'m [Received]) -> Option<&'m Received> {
        let times = &self.operations.stages[self.stage];
        let until = times.enter[wait.operation as usize] + wait.ticks;
        group.iter().find(|message| {
            message.source.0 == wait.cause && message.sent.min(times.event[message.event as usize]) == until
        })
    }
}

/// Parts of Early Wait. Collective over the analysis ranks.
fn late_completes(
    transport: &mut dyn Transport,
    program: &Program,
    operations: &[Operations],
    (stage, entered): (usize, &[Vec<i64>]),
    waits: &mut [TimelineWaits],
) -> Result<()> {
    let grouped = program.messages.incoming.iter().any(|channel| channel.trust == Trust::Grouped);
    let mut any = [i64::from(grouped)];
    transport.all_reduce(ReduceOp::Max, &mut any)?;
    if any[0] == 0 {
        return Ok(());
    }
    let mut accessed = entered.to_vec();
    for (own, times) in operations.iter().zip(&mut accessed) {
        for (&event, at) in &own.accessed {
            times[event as usize] = at[stage];
        }
    }
    // The last accesses of those that completed last.
    let mut last: HashMap<(LocalTimeline, u32), i64> = HashMap::default();
    message_bounds(transport, program, &accessed, |channel, event, accessed| {
        let channel = &program.messages.incoming[channel];
        let own = &operations[channel.destination];
        if channel.trust != Trust::Grouped || own.partner[event as usize] != Operations::NONE {
            return;
        }
        let (operation, source) = (own.of_event[event as usize], program.process_of(channel.source).0);
        let wait = wait_of(&waits[channel.destination].waits, operation);
        if wait.is_some_and(|wait| wait.kind == WaitKind::EarlyWait && wait.cause == source) {
            last.insert((channel.destination, operation), accessed);
        }
    })?;
    for ((timeline, operation), accessed) in last {
        let timeline_waits = &mut waits[timeline];
        let Some(wait) = wait_of(&timeline_waits.waits, operation) else { continue };
        let enter = operations[timeline].stages[stage].enter[operation as usize];
        let ticks = wait.ticks - (accessed - enter).max(0);
        if ticks > 0 {
            timeline_waits.details.push(Detail { operation, kind: DetailKind::LateComplete, ticks });
        }
    }
    Ok(())
}

/// How long N-to-N operations took after the first process had left them. Collective over the analysis ranks.
fn completions(
    transport: &mut dyn Transport,
    program: &Program,
    operations: &[Operations],
    stage: usize,
    waits: &mut [TimelineWaits],
) -> Result<()> {
    let left: Vec<Vec<i64>> = operations.iter().map(|own| own.left(stage)).collect();
    let all = Contributions::meet(transport, program, &left[..], Direction::Backward)?;
    for (comm, contributions) in program.collectives.comms.iter().zip(all) {
        // Those who give nothing leave it as the others do.
        contributions.of_others(comm, &mut |member, instance, negated| {
            let (op, class) = (comm.instances[instance].op, comm.instances[instance].class);
            if !member.is_of_one() {
                return;
            }
            let own = &operations[member.timeline];
            let place = instance.place();
            let (begin, end) = (member.begins.at(place) as usize, member.ends.at(place) as usize);
            let operation = own.of_event[begin];
            let Some(negated) = negated.filter(|_| member.sends[instance] || member.receives[instance]) else { return };
            // One that is not complete when it is left says nothing about the others.
            if class != CollectiveClass::NToN || is_fence(op) || operation == Operations::NONE {
                return;
            }
            if own.of_event[end] != operation {
                return;
            }
            let times = &own.stages[stage];
            let enter = times.enter[operation as usize];
            let timeline = &mut waits[member.timeline];
            let waited = wait_of(&timeline.waits, operation).map_or(0, |wait| wait.ticks);
            let ticks = times.leave[operation as usize] - (-negated).max(enter + waited);
            if ticks > 0 {
                let kind = match op == CollectiveOp::BARRIER {
                    true => DetailKind::BarrierCompletion,
                    false => DetailKind::NxnCompletion,
                };
                timeline.details.push(Detail { operation, kind, ticks });
            }
        });
    }
    Ok(())
}
