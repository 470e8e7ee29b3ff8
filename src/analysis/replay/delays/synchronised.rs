//! With whom processes were synchronised, and when.

use super::{DelaySearch, DelayerOperation, ROUND, is_message, of_timelines};
use crate::analysis::replay::profiles::Since;
use crate::analysis::replay::timeline_waits::{OperationWait, TimelineWaits};
use clc_engine::comm::{AnalysisRank, ReduceOp, Transport, exchange_values};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::placement::Placement;
use clc_engine::replay::contributions::{Contributions, Direction};
use clc_execution::waiting::WaitKind;
use clc_trace::{Result, TimelineNumber};
use controlled_logical_clock::semantics::CollectiveClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A wait for one process, by which both are synchronised: for the host of the delayer, if that is another rank.
#[derive(Debug, Serialize, Deserialize)]
struct Meeting {
    delayer: u32,
    waiter: u32,
    until: DelayerOperation,
    /// When the waiter left the operation that waited.
    left: i64,
}

/// An operation of a hosted process in which it was synchronised with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Met {
    partner: u32,
    operation: u32,
    /// When the partner left its own operation.
    left: i64,
}

/// With whom hosted processes were synchronised under the times of one stage.
pub(super) struct Synchronised {
    /// By hosted process: by waits of the two for each other, ascending.
    met: Vec<Vec<Met>>,
    /// By communicator, member and instance: when the first of the others left a collective operation of which all wait for all, but not while this one waited
    /// in it; `i64::MAX` if that is not known.
    pub(super) first_left: Vec<Vec<Vec<i64>>>,
}

impl Synchronised {
    /// The last time before `operation` of a hosted process that it was synchronised with `partner` by a wait.
    pub(super) fn before(&self, process: LocalTimeline, partner: u32, operation: u32) -> Option<Since> {
        let met = &self.met[process.place()];
        let end = met.partition_point(|met| (met.partner, met.operation) < (partner, operation));
        let last = end.checked_sub(1).and_then(|last| met.get(last)).filter(|met| met.partner == partner)?;
        Some(Since { operation: last.operation, left: last.left })
    }
}

/// Whether a wait synchronises the waiter with the one that it waited for, and nobody else.
fn is_meeting(kind: WaitKind) -> bool {
    is_message(kind) || matches!(kind, WaitKind::LateBroadcast | WaitKind::EarlyReduce)
}

impl DelaySearch<'_> {
    /// Who was synchronised with whom under the times of one stage, by its `waits`. Collective over the analysis ranks.
    pub(super) fn synchronised(
        &self,
        transport: &mut dyn Transport,
        placement: &Placement,
        waits: &[TimelineWaits],
        stage: usize,
    ) -> Result<Synchronised> {
        let here = transport.rank();
        let host = |wait: &OperationWait| placement.host_of(TimelineNumber(wait.cause));
        let meetings = waits.iter().flat_map(|own| &own.waits).filter(|wait| is_meeting(wait.kind));
        let mut rounds = [meetings.filter(|wait| host(wait) != here).count().div_ceil(ROUND) as i64];
        transport.all_reduce(ReduceOp::Max, &mut rounds)?;
        let mut met: Vec<Vec<Met>> = vec![Vec::new(); self.gaps.len()];
        let left =
            |process: LocalTimeline, operation: u32| self.operations[process].stages[stage].leave[operation as usize];
        let mut all = of_timelines(waits).filter(|(_, wait)| is_meeting(wait.kind));
        loop {
            let mut told: BTreeMap<AnalysisRank, Vec<Meeting>> = BTreeMap::new();
            let mut asked: BTreeMap<AnalysisRank, Vec<(LocalTimeline, u32, u32)>> = BTreeMap::new();
            let mut room = ROUND;
            for (timeline, wait) in all.by_ref() {
                let (delayer, operation) = (wait.cause, wait.operation);
                let Some(until) = self.waited_for(timeline, wait) else { continue };
                let waiter = self.program.number(timeline).0;
                let meeting = Meeting { delayer, waiter, until, left: left(timeline, operation) };
                if host(wait) == here {
                    let until = self.meet(&meeting, &mut met);
                    let partner = LocalTimeline(delayer - self.program.first.0);
                    met[timeline.place()].extend(until.map(|until| Met {
                        partner: delayer,
                        operation,
                        left: left(partner, until),
                    }));
                    continue;
                }
                told.entry(host(wait)).or_default().push(meeting);
                asked.entry(host(wait)).or_default().push((timeline, operation, delayer));
                room -= 1;
                if room == 0 {
                    break;
                }
            }
            rounds[0] -= 1;
            if rounds[0] < 0 {
                break;
            }
            let mut answers: BTreeMap<AnalysisRank, Vec<Option<i64>>> = BTreeMap::new();
            for (rank, meetings) in exchange_values(transport, told)? {
                let mut answer = |meeting: &Meeting| {
                    let until = self.meet(meeting, &mut met)?;
                    Some(left(LocalTimeline(meeting.delayer - self.program.first.0), until))
                };
                answers.insert(rank, meetings.iter().map(&mut answer).collect());
            }
            for (rank, answers) in exchange_values(transport, answers)? {
                let asked = asked.remove(&rank).unwrap_or_default();
                for ((timeline, operation, partner), left) in asked.into_iter().zip(answers) {
                    met[timeline.place()].extend(left.map(|left| Met { partner, operation, left }));
                }
            }
        }
        for met in &mut met {
            met.sort_unstable();
            met.shrink_to_fit();
        }
        Ok(Synchronised { met, first_left: self.first_left(transport, waits, stage)? })
    }

    /// Takes note at a hosted delayer that a process has waited for it; the operation that was waited for, if it is known.
    fn meet(&self, meeting: &Meeting, met: &mut [Vec<Met>]) -> Option<u32> {
        let process = LocalTimeline(meeting.delayer - self.program.first.0);
        let operation = self.resolve(process, meeting.until)?;
        met[process.place()].push(Met { partner: meeting.waiter, operation, left: meeting.left });
        Some(operation)
    }

    /// When the first of the others left each collective operation of which all wait for all. Collective over the analysis ranks.
    fn first_left(
        &self,
        transport: &mut dyn Transport,
        waits: &[TimelineWaits],
        stage: usize,
    ) -> Result<Vec<Vec<Vec<i64>>>> {
        let (program, operations) = (self.program, self.operations);
        let left: Vec<Vec<i64>> = operations.iter().map(|own| own.left(stage)).collect();
        let all = Contributions::meet(transport, program, &left[..], Direction::Backward)?;
        let mut first: Vec<Vec<Vec<i64>>> = Vec::with_capacity(all.len());
        for ((place, comm), contributions) in program.collectives.comms.iter().enumerate().zip(all) {
            let mut of_members = vec![Vec::new(); comm.members.len()];
            contributions.of_others(comm, &mut |member, instance, negated| {
                let operation = operations[member.ended_on].of_event[member.ends.at(instance.place()) as usize];
                let number = self.hosted.get(&(place, member.ended_on));
                let Some((&number, negated)) = number.zip(negated) else { return };
                if comm.instances[instance].class != CollectiveClass::NToN || !self.is_main(member.ended_on, operation)
                {
                    return;
                }
                let of_member: &mut Vec<i64> = &mut of_members[number];
                if of_member.is_empty() {
                    of_member.resize(comm.instances.len(), i64::MAX);
                }
                // Backward, times are negated.
                let wait = waits[member.ended_on].of(operation).filter(|wait| {
                    matches!(wait.kind, WaitKind::WaitAtNxn | WaitKind::WaitAtBarrier | WaitKind::WaitAtFence)
                });
                let enter = operations[member.ended_on].stages[stage].enter[operation as usize];
                of_member[instance.place()] = (-negated).max(enter + wait.map_or(0, |wait| wait.ticks));
            });
            first.push(of_members);
        }
        Ok(first)
    }
}
