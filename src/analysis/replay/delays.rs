//! Delay costs of all waits: which regions of the processes that were waited for took so long.
//!
//! Every process knows in which of its operations it has synchronised with which other one: by a wait of one of them for the other, or in a collective operation
//! of which all members wait for all. The waiter tells the delayer's host what it did since its last such operation and how long it waited, and that one compares
//! ([`clc_execution::delays`]). Only the main locations of processes are looked at.

use crate::analysis::gaps::Gaps;
use crate::analysis::largest::Largest;
use crate::analysis::replay::operations::Operations;
use crate::analysis::replay::profiles::{Done, ProcessProfile, RegionPlaces, Since};
use crate::analysis::replay::timeline_waits::{OperationWait, TimelineWaits, kind_of};
use clc_engine::comm::{AnalysisRank, ReduceOp, Transport, exchange_values};
use clc_engine::matching::collectives::instances::InstanceIndex;
use clc_engine::matching::comm_index::CommIndex;
use clc_engine::matching::hash::HashMap;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::placement::Placement;
use clc_engine::replay::bounds::remote_message_bounds;
use clc_engine::replay::contributions::{Contributions, Direction};
use clc_engine::replay::program::Program;
use clc_engine::replay::upper_bounds::of_receives;
use clc_execution::delays::blame;
use clc_execution::waiting::WaitKind;
use clc_trace::{Result, TimelineNumber};
use controlled_logical_clock::semantics::CollectiveClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ticks by stage.
type StageTicks = [i128; 2];

/// What the waits of all processes are blamed on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DelaySums {
    /// Delays by region, [`Gaps::OUTSIDE`] outside of any.
    pub by_region: BTreeMap<u32, StageTicks>,
    /// Delays by process.
    pub by_process: Largest<(u32, StageTicks)>,
    /// Waiting of the delayers.
    pub propagated: StageTicks,
    /// Nothing that is known.
    pub unexplained: StageTicks,
    /// Waits of other kinds, or of other locations, that were not looked at.
    pub not_examined: StageTicks,
}

impl DelaySums {
    /// None yet; at most so many processes.
    pub(crate) fn new(entries: usize) -> DelaySums {
        DelaySums {
            by_region: BTreeMap::new(),
            by_process: Largest::new(entries),
            propagated: [0; 2],
            unexplained: [0; 2],
            not_examined: [0; 2],
        }
    }

    /// Adds those of another rank.
    pub(crate) fn merge(&mut self, other: DelaySums) {
        let add = |sum: &mut StageTicks, more: StageTicks| (0..2).for_each(|stage| sum[stage] += more[stage]);
        other.by_region.into_iter().for_each(|(region, more)| add(self.by_region.entry(region).or_default(), more));
        self.by_process.merge(other.by_process);
        add(&mut self.propagated, other.propagated);
        add(&mut self.unexplained, other.unexplained);
        add(&mut self.not_examined, other.not_examined);
    }
}

/// An instance on a communicator, as all ranks can name it.
type Named = (CommIndex, InstanceIndex);

/// The operation of the delayer that was waited for, as the waiter can name it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum DelayerOperation {
    /// By its place.
    Operation(u32),
    /// The one in which it begins an instance on a communicator.
    Collective(Named),
}

/// Messages between a hosted process and another one: the operations that they belong to there and there, ascending.
type SharedMessages = Vec<(u32, u32)>;

/// Messages of a hosted process by the other one.
type ByProcess = BTreeMap<u32, SharedMessages>;

/// What is known of a wait where the waiter is hosted.
struct WaiterSide {
    /// What was waited for.
    until: DelayerOperation,
    /// The last collective operation before in which both took part and all members wait for all.
    collective: Option<Named>,
    /// Since when the waiter's time counts; from its beginning if there is nothing.
    own: Option<Since>,
}

/// For the host of a delayer.
#[derive(Debug, Serialize, Deserialize)]
struct DelayerSide {
    delayer: u32,
    waiter: u32,
    collective: Option<Named>,
    until: DelayerOperation,
    ticks: i64,
    /// Whether no more is blamed on anything than it took.
    capped: bool,
    /// What the waiter did: time by region. Empty if it is hosted here.
    done: Vec<(u32, i64)>,
}

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
struct Synchronised {
    /// By hosted process: by waits of the two for each other, ascending.
    met: Vec<Vec<Met>>,
    /// By communicator, member and instance: when the first of the others left a collective operation of which all wait for all, but not while this one waited
    /// in it; `i64::MAX` if that is not known.
    first_left: Vec<Vec<Vec<i64>>>,
}

impl Synchronised {
    /// The last time before `operation` of a hosted process that it was synchronised with `partner` by a wait.
    fn before(&self, process: LocalTimeline, partner: u32, operation: u32) -> Option<Since> {
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

/// Whether a wait is one for the other end of a message.
fn is_message(kind: WaitKind) -> bool {
    matches!(kind, WaitKind::LateSender | WaitKind::LateReceiver)
}

/// So many waits are told in one round: their memory does not grow with the trace.
const ROUND: usize = 1 << 14;

/// What there is to know of the hosted part of a trace.
pub(crate) struct DelaySearch<'a> {
    program: &'a Program,
    operations: &'a [Operations],
    /// Of each hosted process: what it does between its operations.
    gaps: Vec<&'a Gaps>,
    places: RegionPlaces,
    /// By hosted process: the messages that it received in operations that have waited for a sender.
    received: Vec<ByProcess>,
    /// The same with the operation that completes a send, and the one in which its receive was posted; of operations that have waited for a receiver.
    posted: Vec<ByProcess>,
    /// By hosted process: its operation, and the communicator (by its place here) and instance that end in it; in the order in which they end.
    collectives: Vec<Vec<Took>>,
    /// The members of each communicator here, ascending.
    members: Vec<Vec<u32>>,
    /// The place of each member among those hosted here.
    hosted: HashMap<(usize, LocalTimeline), usize>,
    /// When the first process was done with initialising MPI, but not before the last one had begun, by stage.
    initialised: [i64; 2],
}

/// An operation, and the communicator (by its place) and instance that end in it.
type Took = (u32, u32, InstanceIndex);

impl<'a> DelaySearch<'a> {
    /// Finds out who communicated with whom in which operations. `processes` is what each hosted process does between its operations, and the innermost region of
    /// each node of its call tree; `canonical` gives one region for all that have a name; `waiting` the waits of all hosted timelines by stage. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn new(
        transport: &mut dyn Transport,
        program: &'a Program,
        operations: &'a [Operations],
        processes: Vec<(&'a Gaps, Vec<u32>)>,
        canonical: impl Fn(u32) -> u32,
        waiting: &[Vec<TimelineWaits>],
    ) -> Result<DelaySearch<'a>> {
        let places = RegionPlaces::new(&processes, canonical);
        let gaps: Vec<&Gaps> = processes.into_iter().map(|(gaps, _)| gaps).collect();
        let mut search = DelaySearch {
            program,
            operations,
            received: vec![ByProcess::new(); gaps.len()],
            posted: vec![ByProcess::new(); gaps.len()],
            collectives: vec![Vec::new(); gaps.len()],
            gaps,
            places,
            members: Vec::new(),
            hosted: HashMap::default(),
            initialised: [0; 2],
        };
        search.find_messages(transport, waiting)?;
        // When the last process entered, and negated when the first one left.
        let mut times = [i64::MIN; 4];
        for call in search.gaps.iter().filter_map(|gaps| gaps.initialised) {
            let own = [call.enter[0], call.enter[1], -call.leave[0], -call.leave[1]];
            times.iter_mut().zip(own).for_each(|(time, own)| *time = own.max(*time));
        }
        transport.all_reduce(ReduceOp::Max, &mut times)?;
        search.initialised = [0, 1].map(|stage| times[stage].max(times[stage + 2].wrapping_neg()));
        search.find_collectives();
        Ok(search)
    }

    /// Whether an operation of a hosted timeline is one of the main location of a process.
    fn is_main(&self, timeline: LocalTimeline, operation: u32) -> bool {
        self.gaps.get(timeline.place()).is_some_and(|gaps| operation < gaps.operations())
    }

    fn find_messages(&mut self, transport: &mut dyn Transport, waiting: &[Vec<TimelineWaits>]) -> Result<()> {
        let (program, operations) = (self.program, self.operations);
        let here = transport.rank();
        let whole = |number: TimelineNumber| program.process_of(number) == number;
        let received = |timeline: LocalTimeline, event: u32| operations[timeline].of_event[event as usize];
        let posted = |timeline: LocalTimeline, event: u32| match operations[timeline].partner[event as usize] {
            Operations::NONE => received(timeline, event),
            operation => operation,
        };
        let (mut all_received, mut all_posted) =
            (vec![ByProcess::new(); self.gaps.len()], vec![ByProcess::new(); self.gaps.len()]);
        let late_senders = have_waited(operations, self.gaps.len(), waiting, WaitKind::LateSender);
        let late_receivers = have_waited(operations, self.gaps.len(), waiting, WaitKind::LateReceiver);
        let late = |late: &[Vec<bool>], timeline: LocalTimeline, operation: u32| {
            late.get(timeline.place()).is_some_and(|late| late.get(operation as usize).is_some_and(|&late| late))
        };
        let enter = |lists: &mut [ByProcess],
                     timeline: LocalTimeline,
                     process: u32,
                     both: &mut dyn Iterator<Item = (u32, u32)>| {
            let mut both =
                both.filter(|&(own, other)| self.is_main(timeline, own) && other != Operations::NONE).peekable();
            if both.peek().is_some() {
                lists[timeline.place()].entry(process).or_default().extend(both);
            }
        };

        // From other ranks: places of operations take the way of times.
        let remote = program.messages.outgoing.iter().any(|channel| channel.host != here);
        let own: Vec<Vec<i64>> = match remote {
            true => operations.iter().map(|own| own.of_event.iter().map(|&of| i64::from(of)).collect()).collect(),
            false => vec![Vec::new(); operations.len()],
        };
        remote_message_bounds(transport, program, &own, |channel, event, sent| {
            let channel = &program.messages.incoming[channel];
            let both = (received(channel.destination, event), sent as u32);
            if channel.is_certain() && whole(channel.source) && late(&late_senders, channel.destination, both.0) {
                enter(&mut all_received, channel.destination, channel.source.0, &mut std::iter::once(both));
            }
        })?;
        drop(own);
        let starts = of_receives(transport, program, |channel, event| posted(channel.destination, event).into())?;

        for (index, channel) in program.messages.outgoing.iter().enumerate().filter(|(_, channel)| channel.is_certain())
        {
            let (source, destination, own) = (channel.source, channel.destination, &operations[channel.source]);
            let local = program.messages.incoming.get(channel.remote as usize).filter(|_| channel.host == here);
            if let Some(end) = local.filter(|end| whole(end.source)) {
                let sends = channel.sends.each().map(|send| own.of_event[send as usize]);
                let receives = end.receives.each().map(|event| received(end.destination, event));
                let mut both = receives.zip(sends).filter(|both| late(&late_senders, end.destination, both.0));
                enter(&mut all_received, end.destination, end.source.0, &mut both);
            }
            if !whole(destination) || late_receivers.get(source.place()).is_none_or(Vec::is_empty) {
                continue;
            }
            let start = |k: usize| match local {
                Some(end) => end.receives.get(k).map(|event| posted(end.destination, event)),
                None => starts[index].get(k).map(|&operation| operation as u32),
            };
            let completed = channel.sends.each().enumerate().map(|(k, send)| (k, own.partner[send as usize]));
            let completed = completed.filter(|&(_, operation)| late(&late_receivers, source, operation));
            let mut both = completed.filter_map(|(k, operation)| Some((operation, start(k)?)));
            enter(&mut all_posted, source, destination.0, &mut both);
        }
        for list in [&mut all_received, &mut all_posted].into_iter().flatten().flat_map(BTreeMap::values_mut) {
            list.sort_unstable();
            list.shrink_to_fit();
        }
        (self.received, self.posted) = (all_received, all_posted);
        Ok(())
    }

    fn find_collectives(&mut self) {
        let mut ended: Vec<Vec<(u32, u32, u32, InstanceIndex)>> = vec![Vec::new(); self.collectives.len()];
        for (place, comm) in self.program.collectives.comms.iter().enumerate() {
            let mut members: Vec<u32> = comm.processes.iter().map(|process| process.0).collect();
            members.sort_unstable();
            self.members.push(members);
            for (number, member) in comm.members.iter().enumerate() {
                self.hosted.insert((place, member.timeline), number);
                for (instance, end) in (0..).map(InstanceIndex).zip(member.ends.each()) {
                    let operation = self.operations[member.timeline].of_event[end as usize];
                    if self.is_main(member.timeline, operation) {
                        ended[member.timeline].push((operation, end, place as u32, instance));
                    }
                }
            }
        }
        for (list, mut ended) in self.collectives.iter_mut().zip(ended) {
            ended.sort_unstable();
            list.extend(ended.into_iter().map(|(operation, _, place, instance)| (operation, place, instance)));
        }
    }

    /// Blames the `waits` of all hosted timelines in one stage, and adds what they cost to `sums`; `by_process` has those of each hosted process. Collective
    /// over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn blame(
        &self,
        transport: &mut dyn Transport,
        placement: &Placement,
        waits: &[TimelineWaits],
        stage: usize,
        sums: &mut DelaySums,
        by_process: &mut [StageTicks],
    ) -> Result<()> {
        let done = Done::new(self.operations, &self.gaps, &self.places, waits, self.initialised[stage], stage);
        let synchronised = self.synchronised(transport, placement, waits, stage)?;
        let here = transport.rank();
        let host = |wait: &OperationWait| placement.host_of(TimelineNumber(wait.cause));
        let remote = waits.iter().flat_map(|own| &own.waits).filter(|wait| host(wait) != here).count();
        let mut rounds = [remote.div_ceil(ROUND) as i64];
        transport.all_reduce(ReduceOp::Max, &mut rounds)?;
        let delayer = self.places.profile();
        let mut costs =
            CostSums { search: self, done: &done, synchronised: &synchronised, stage, sums, by_process, delayer };
        let mut waiter = self.places.profile();
        let mut latest = LatestCollectives::default();
        let mut all = of_timelines(waits);
        loop {
            let mut told: BTreeMap<AnalysisRank, Vec<DelayerSide>> = BTreeMap::new();
            let mut room = ROUND;
            for (timeline, wait) in all.by_ref() {
                let Some(own) = self.told(timeline, wait, &synchronised, &mut latest) else {
                    costs.not_examined(wait.ticks);
                    continue;
                };
                done.between(&mut waiter, timeline, own.own, wait.operation);
                let mut about = DelayerSide {
                    delayer: wait.cause,
                    waiter: self.program.number(timeline).0,
                    collective: own.collective,
                    until: own.until,
                    ticks: wait.ticks,
                    capped: is_message(wait.kind),
                    done: Vec::new(),
                };
                if host(wait) == here {
                    costs.add(&about, &waiter);
                    continue;
                }
                about.done = waiter.entries().map(|(place, ticks)| (self.places.region(place), ticks)).collect();
                told.entry(host(wait)).or_default().push(about);
                room -= 1;
                if room == 0 {
                    break;
                }
            }
            rounds[0] -= 1;
            if rounds[0] < 0 {
                return Ok(());
            }
            for wait in exchange_values(transport, told)?.into_iter().flat_map(|(_, waits)| waits) {
                waiter.clear();
                // Regions that no process here is in took none of them longer.
                let known = wait.done.iter().filter_map(|&(region, ticks)| Some((self.places.place(region)?, ticks)));
                known.for_each(|(place, ticks)| waiter.add(place, ticks));
                costs.add(&wait, &waiter);
            }
        }
    }

    /// Who was synchronised with whom under the times of one stage, by its `waits`. Collective over the analysis ranks.
    fn synchronised(
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
                let operation = operations[member.timeline].of_event[member.ends.at(instance.place()) as usize];
                let number = self.hosted.get(&(place, member.timeline));
                let Some((&number, negated)) = number.zip(negated) else { return };
                if comm.instances[instance].class != CollectiveClass::NToN || !self.is_main(member.timeline, operation)
                {
                    return;
                }
                let of_member: &mut Vec<i64> = &mut of_members[number];
                if of_member.is_empty() {
                    of_member.resize(comm.instances.len(), i64::MAX);
                }
                // Backward, times are negated.
                let wait = waits[member.timeline].of(operation).filter(|wait| {
                    matches!(wait.kind, WaitKind::WaitAtNxn | WaitKind::WaitAtBarrier | WaitKind::WaitAtFence)
                });
                let enter = operations[member.timeline].stages[stage].enter[operation as usize];
                of_member[instance.place()] = (-negated).max(enter + wait.map_or(0, |wait| wait.ticks));
            });
            first.push(of_members);
        }
        Ok(first)
    }

    /// The operation of the delayer that a wait was for; nothing if it is not known, or not looked at.
    fn waited_for(&self, timeline: LocalTimeline, wait: &OperationWait) -> Option<DelayerOperation> {
        if !self.is_main(timeline, wait.operation) {
            return None;
        }
        let (operation, delayer) = (wait.operation, wait.cause);
        // The last operation of the delayer that belongs to this one.
        let last_of = |list: &ByProcess| {
            let list = list.get(&delayer)?;
            let to = list.partition_point(|&(own, _)| own <= operation);
            let last = to.checked_sub(1).and_then(|last| list.get(last));
            last.filter(|&&(own, _)| own == operation).map(|&(_, other)| other)
        };
        match wait.kind {
            WaitKind::LateSender => Some(DelayerOperation::Operation(last_of(&self.received[timeline])?)),
            WaitKind::LateReceiver => Some(DelayerOperation::Operation(last_of(&self.posted[timeline])?)),
            WaitKind::LatePost | WaitKind::EarlyWait | WaitKind::LockContention => None,
            _ => {
                let list = &self.collectives[timeline];
                let from = list.partition_point(|entry| entry.0 < operation);
                let own = list[from..].iter().take_while(|entry| entry.0 == operation);
                let instances = |place: u32| &self.program.collectives.comms[place as usize].instances;
                let of_kind = own.filter(|&&(_, place, instance)| {
                    kind_of(&instances(place)[instance]) == Some(wait.kind) && self.is_member(place, delayer)
                });
                let (_, place, instance) = of_kind.last()?;
                Some(DelayerOperation::Collective(self.named(*place, *instance)))
            }
        }
    }

    fn is_member(&self, place: u32, process: u32) -> bool {
        self.members[place as usize].binary_search(&process).is_ok()
    }

    /// What there is to tell the host of the delayer of a wait; nothing if it is not known what was waited for. The waits of a timeline come in the order of their
    /// operations.
    fn told(
        &self,
        timeline: LocalTimeline,
        wait: &OperationWait,
        synchronised: &Synchronised,
        latest: &mut LatestCollectives,
    ) -> Option<WaiterSide> {
        let until = self.waited_for(timeline, wait)?;
        latest.advance(self, timeline, wait.operation);
        let collective = latest.collectives.iter().rev().find(|&&(_, place, _)| self.is_member(place, wait.cause));
        let collective = collective.map(|&(_, place, instance)| self.named(place, instance));
        let own = [
            synchronised.before(timeline, wait.cause, wait.operation),
            collective.and_then(|collective| self.since(timeline, collective, synchronised)),
        ];
        Some(WaiterSide { until, collective, own: own.into_iter().flatten().max() })
    }

    /// Since when the time of a hosted process counts after a collective operation of which all wait for all.
    fn since(&self, process: LocalTimeline, named: Named, synchronised: &Synchronised) -> Option<Since> {
        let (place, number) = self.member(process, named.0)?;
        let member = &self.program.collectives.comms[place].members[number];
        let operation = self.operations[process].of_event[member.ends.get(named.1.place())? as usize];
        let left = synchronised.first_left[place][number].get(named.1.place()).copied().unwrap_or(i64::MAX);
        Some(Since { operation, left }).filter(|_| self.is_main(process, operation))
    }

    fn named(&self, place: u32, instance: InstanceIndex) -> Named {
        (self.program.collectives.comms[place as usize].comm, instance)
    }

    /// The place of a communicator here, and that of a hosted process among its members here.
    fn member(&self, process: LocalTimeline, comm: CommIndex) -> Option<(usize, usize)> {
        let place = self.program.comm_index.get(&comm)?.place();
        Some((place, *self.hosted.get(&(place, process))?))
    }

    /// The operation of a hosted process that was waited for, if it is one of its main location.
    fn resolve(&self, process: LocalTimeline, until: DelayerOperation) -> Option<u32> {
        let operation = match until {
            DelayerOperation::Operation(operation) => operation,
            DelayerOperation::Collective((comm, instance)) => {
                let (place, number) = self.member(process, comm)?;
                let member = &self.program.collectives.comms[place].members[number];
                self.operations[process].of_event[member.begins.get(instance.place())? as usize]
            }
        };
        Some(operation).filter(|&operation| self.is_main(process, operation))
    }
}

/// The waits of all hosted timelines.
fn of_timelines(waits: &[TimelineWaits]) -> impl Iterator<Item = (LocalTimeline, &OperationWait)> {
    let timelines = (0..).map(LocalTimeline).zip(waits);
    timelines.flat_map(|(timeline, own)| own.waits.iter().map(move |wait| (timeline, wait)))
}

/// Which operations of each hosted process have waited for this in any stage; nothing of processes without such.
fn have_waited(
    operations: &[Operations],
    processes: usize,
    waiting: &[Vec<TimelineWaits>],
    kind: WaitKind,
) -> Vec<Vec<bool>> {
    let mut have: Vec<Vec<bool>> = vec![Vec::new(); processes];
    for stage in waiting {
        for ((have, own), operations) in have.iter_mut().zip(stage).zip(operations) {
            for wait in own.waits.iter().filter(|wait| wait.kind == kind) {
                have.resize(operations.len(), false);
                have[wait.operation as usize] = true;
            }
        }
    }
    have
}

/// Adds up what waits for hosted processes cost in one stage.
struct CostSums<'a> {
    search: &'a DelaySearch<'a>,
    done: &'a Done<'a>,
    synchronised: &'a Synchronised,
    stage: usize,
    sums: &'a mut DelaySums,
    by_process: &'a mut [StageTicks],
    /// What the delayer did.
    delayer: ProcessProfile,
}

impl CostSums<'_> {
    fn not_examined(&mut self, ticks: i64) {
        self.sums.not_examined[self.stage] += i128::from(ticks);
    }

    /// A wait for a hosted process; `waiter` is what the waiter did since both were synchronised.
    fn add(&mut self, wait: &DelayerSide, waiter: &ProcessProfile) {
        let (search, stage) = (self.search, self.stage);
        let process = LocalTimeline(wait.delayer - search.program.first.0);
        let Some(until) = search.resolve(process, wait.until) else { return self.not_examined(wait.ticks) };
        let met = self.synchronised.before(process, wait.waiter, until);
        let collective = wait.collective.map(|named| search.since(process, named, self.synchronised));
        let since = match collective {
            None => met,
            Some(Some(since)) if since.operation < until => met.max(Some(since)),
            Some(_) => return self.not_examined(wait.ticks),
        };
        self.done.between(&mut self.delayer, process, since, until);
        let waited = self.delayer.waited;
        let (by_region, by_process) = (&mut self.sums.by_region, &mut self.by_process[process.place()]);
        let both = self.delayer.entries().map(|(place, ticks)| (place, ticks, waiter.at(place)));
        let costs = blame(wait.ticks, both, waited, wait.capped, |place, cost| {
            by_region.entry(search.places.region(place)).or_default()[stage] += i128::from(cost);
            by_process[stage] += i128::from(cost);
        });
        self.sums.propagated[stage] += i128::from(costs.propagated);
        self.sums.unexplained[stage] += i128::from(costs.unexplained);
    }
}

/// The last collective operations of a process of which all members wait for all.
#[derive(Default)]
struct LatestCollectives {
    /// Which process.
    timeline: LocalTimeline,
    next: usize,
    /// The last one on each communicator, in their order.
    collectives: Vec<Took>,
}

impl LatestCollectives {
    /// Takes note of what was before `operation` of a timeline.
    fn advance(&mut self, search: &DelaySearch<'_>, timeline: LocalTimeline, operation: u32) {
        if timeline != self.timeline {
            *self = LatestCollectives { timeline, ..LatestCollectives::default() };
        }
        let comms = &search.program.collectives.comms;
        while let Some(&took) = search.collectives[timeline].get(self.next).filter(|entry| entry.0 < operation) {
            self.next += 1;
            if comms[took.1 as usize].instances[took.2].class != CollectiveClass::NToN {
                continue;
            }
            if let Some(known) = self.collectives.iter().rposition(|known| known.1 == took.1) {
                self.collectives.remove(known);
            }
            self.collectives.push(took);
        }
    }
}
