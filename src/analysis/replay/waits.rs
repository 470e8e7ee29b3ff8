//! Waiting times of all operations under the times of one stage.
//!
//! Senders tell receivers when they entered the send, members of a communicator when they entered the operation: the exchanges are those
//! of the bounds ([`clc_engine::replay::bounds`]), with other times. Receivers tell senders when they posted, as for the upper bounds.
//! The minimum latency of the program has to be zero.
//!
//! An operation waits once: for whoever comes last. If it completes several messages, only the wait that ends last counts, so that no time
//! is counted twice. What is told beside that is in [`super::details`].

use crate::analysis::replay::details;
use crate::analysis::replay::operations::Operations;
use crate::analysis::replay::timeline_waits::{LockWait, OperationWait, TimelineWaits, kind_of};
use clc_engine::comm::Transport;
use clc_engine::matching::channels::Trust;
use clc_engine::matching::hash::HashMap;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::replay::bounds::message_bounds;
use clc_engine::replay::contributions::{Contributions, Direction};
use clc_engine::replay::program::Program;
use clc_engine::replay::upper_bounds::of_receives;
use clc_execution::path::PathWait;
use clc_execution::waiting::{WaitKind, send_waits_until, waits_until};
use clc_trace::Result;
use std::cmp::Reverse;

/// What is known of the waits of one operation so far.
#[derive(Debug, Clone, Copy, Default)]
struct OperationWaits {
    /// The wait that ends last; of several, the first in the order of kinds and processes.
    wait: Option<(i64, Reverse<(WaitKind, u32)>)>,
    /// The same for the critical path; broken ones count as earlier.
    path: Option<(i64, Reverse<(bool, u32)>)>,
    /// A message that it received was waited for.
    late_sender: bool,
}

/// The waits of every hosted timeline under the times of `stage`, those for `locks` included. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn waits(
    transport: &mut dyn Transport,
    program: &Program,
    operations: &[Operations],
    locks: &[LockWait],
    stage: usize,
) -> Result<Vec<TimelineWaits>> {
    let mut search = SearchWaits { program, operations, stage, found: vec![HashMap::default(); operations.len()] };
    let entered: Vec<Vec<i64>> = operations
        .iter()
        .map(|timeline| (0..timeline.of_event.len()).map(|event| timeline.entered(stage, event)).collect())
        .collect();
    message_bounds(transport, program, &entered, |channel, event, ready| {
        let channel = &program.messages.incoming[channel];
        let (timeline, source) = (channel.destination, program.process_of(channel.source).0);
        match channel.trust {
            Trust::Sound | Trust::Aligned => {
                search.until(timeline, event, ready, Some(WaitKind::LateSender), Some(source));
            }
            Trust::Acknowledged => search.until(timeline, event, ready, Some(WaitKind::LateReceiver), Some(source)),
            Trust::Grouped => search.epoch(timeline, event, ready, source),
            Trust::Implied => {}
            // Of threads, and only of those that have timelines of their own.
            Trust::Forked | Trust::Barrier | Trust::Created | Trust::Tasked | Trust::Locked => {}
            Trust::Issued | Trust::Awaited => {}
        }
    })?;
    search.late_receivers(transport)?;
    let comms = &program.collectives.comms;
    for (comm, contributions) in
        comms.iter().zip(Contributions::meet(transport, program, &entered[..], Direction::Forward)?)
    {
        contributions.latest(comm, &mut |member, instance, event, latest, rank| {
            let (cause, kind) = (comm.processes[rank].0, kind_of(&comm.instances[instance]));
            search.until(member.ended_on, event, latest, kind, Some(cause));
        });
    }
    for lock in locks {
        search.wait(lock.timeline, lock.operation, lock.until, WaitKind::LockContention, lock.cause);
    }
    let mut all = search.finish();
    let found = details::DetailInput { program, operations, stage, entered: &entered, waits: &mut all };
    found.add(transport)?;
    Ok(all)
}

/// Collects the waits of one stage.
struct SearchWaits<'a> {
    program: &'a Program,
    operations: &'a [Operations],
    stage: usize,
    /// By operation of each timeline.
    found: Vec<HashMap<u32, OperationWaits>>,
}

impl SearchWaits<'_> {
    /// The operation around `event` could not end before `ready`, when `cause` was ready.
    fn until(&mut self, timeline: LocalTimeline, event: u32, ready: i64, kind: Option<WaitKind>, cause: Option<u32>) {
        let own = &self.operations[timeline];
        let (Some(cause), operation) = (cause, own.of_event[event as usize]) else { return };
        if operation == Operations::NONE {
            return;
        }
        let times = &own.stages[self.stage];
        let end = times.event[event as usize];
        let Some(until) = waits_until(times.enter[operation as usize], ready, end) else { return };
        let found = self.found[timeline].entry(operation).or_default();
        found.path = found.path.max(Some((until, Reverse((ready > end, cause)))));
        if let Some(kind) = kind {
            found.wait = found.wait.max(Some((until, Reverse((kind, cause)))));
            found.late_sender |= kind == WaitKind::LateSender;
        }
    }

    /// The end of an epoch of a group on a window: an origin could not complete before `cause` had posted, a target could not go on before `cause`
    /// completed. Where the call that started the epoch was left after the post only, it was there that the origin waited.
    fn epoch(&mut self, timeline: LocalTimeline, event: u32, ready: i64, cause: u32) {
        let own = &self.operations[timeline];
        let start = own.partner[event as usize];
        if start == Operations::NONE {
            return self.until(timeline, event, ready, Some(WaitKind::EarlyWait), Some(cause));
        }
        self.until(timeline, event, ready, Some(WaitKind::LatePost), Some(cause));
        let times = &own.stages[self.stage];
        let (enter, leave) = (times.enter[start as usize], times.leave[start as usize]);
        if start != own.of_event[event as usize]
            && let Some(until) = send_waits_until(enter, ready, leave)
        {
            self.wait(timeline, start, until, WaitKind::LatePost, cause);
        }
    }

    /// `operation` waited until then.
    fn wait(&mut self, timeline: LocalTimeline, operation: u32, until: i64, kind: WaitKind, cause: u32) {
        let found = self.found[timeline].entry(operation).or_default();
        found.wait = found.wait.max(Some((until, Reverse((kind, cause)))));
        found.path = found.path.max(Some((until, Reverse((false, cause)))));
    }

    fn late_receivers(&mut self, transport: &mut dyn Transport) -> Result<()> {
        let (program, operations, stage) = (self.program, self.operations, self.stage);
        let posted = |timeline: LocalTimeline, event: u32| operations[timeline].posted(stage, event as usize);
        let remote = of_receives(transport, program, |channel, event| posted(channel.destination, event))?;
        let here = transport.rank();
        let channels = program.messages.outgoing.iter().zip(&remote);
        let of_messages = |channel: usize| program.messages.incoming[channel].is_certain();
        let timelines = operations.iter().zip(&program.timelines);
        let receives: Vec<Vec<bool>> = timelines.map(|(own, timeline)| own.receiving(timeline, of_messages)).collect();
        for (channel, remote) in channels.filter(|(channel, _)| channel.is_certain()) {
            let own = &operations[channel.source];
            let times = &own.stages[stage];
            let end = program.messages.incoming.get(channel.remote as usize).filter(|_| channel.host == here);
            for (k, send) in channel.sends.each().enumerate() {
                let local = end.and_then(|end| Some(posted(end.destination, end.receives.get(k)?)));
                let Some(posted) = local.or_else(|| remote.get(k).copied()) else { continue };
                let operation = own.partner[send as usize];
                if operation == Operations::NONE || own.acknowledged.contains(&send) {
                    continue;
                }
                // One that waited for what it receives lasted for that reason: the sends in it may have been complete long before. A call that begins
                // the send and receives as well takes as long as it receives.
                let late_sender = || self.found[channel.source].get(&operation).is_some_and(|found| found.late_sender);
                let both = own.of_event[send as usize] == operation;
                if receives[channel.source][operation as usize] && (both || late_sender()) {
                    continue;
                }
                let (enter, leave) = (times.enter[operation as usize], times.leave[operation as usize]);
                if let Some(until) = send_waits_until(enter, posted, leave) {
                    let cause = program.process_of(channel.destination).0;
                    self.wait(channel.source, operation, until, WaitKind::LateReceiver, cause);
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Vec<TimelineWaits> {
        let SearchWaits { operations, stage, found, .. } = self;
        let timelines = found.into_iter().zip(operations);
        let waits_of = |(found, own): (HashMap<u32, OperationWaits>, &Operations)| {
            let mut all = TimelineWaits::default();
            for (operation, found) in found {
                let enter = own.stages[stage].enter[operation as usize];
                if let Some((until, Reverse((kind, cause)))) = found.wait {
                    all.waits.push(OperationWait { operation, kind, cause, ticks: until - enter });
                }
                if let Some((end, Reverse((broken, cause)))) = found.path {
                    all.path.push(PathWait { end, cause, broken });
                }
            }
            all.waits.sort_unstable_by_key(|wait| wait.operation);
            all.path.sort_unstable();
            all
        };
        timelines.map(waits_of).collect()
    }
}
