//! Delay costs of all waits: which regions of the processes that were waited for took so long.
//!
//! The waiter knows the last operations in which it communicated with the delayer, as places in the order of both; it tells the delayer's host what it did
//! since then and how long it waited, and that one compares ([`clc_execution::delays`]). Only the main locations of processes are looked at.

use crate::analysis::gaps::Gaps;
use crate::analysis::largest::Largest;
use crate::analysis::replay::operations::Operations;
use crate::analysis::replay::profiles::{Done, Profile, RegionPlaces};
use crate::analysis::replay::timeline_waits::{OperationWait, TimelineWaits};
use clc_engine::comm::{AnalysisRank, ReduceOp, Transport, exchange_values};
use clc_engine::matching::collectives::InstanceIndex;
use clc_engine::matching::comm_index::CommIndex;
use clc_engine::matching::hash::HashMap;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::placement::Placement;
use clc_engine::replay::bounds::remote_message_bounds;
use clc_engine::replay::caps::of_receives;
use clc_engine::replay::program::Program;
use clc_execution::delays::blame;
use clc_execution::waiting::WaitKind;
use clc_trace::{Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ticks by stage.
type Ticks = [i128; 2];

/// What the waits of all processes are blamed on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DelaySums {
    /// Delays by region, [`Gaps::OUTSIDE`] outside of any.
    pub by_region: BTreeMap<u32, Ticks>,
    /// Delays by process.
    pub by_process: Largest<(u32, Ticks)>,
    /// Waiting of the delayers.
    pub propagated: Ticks,
    /// Nothing that is known.
    pub unexplained: Ticks,
    /// Waits of other kinds, or of other locations, that were not looked at.
    pub not_examined: Ticks,
}

impl DelaySums {
    /// None yet; at most so many processes.
    pub fn new(entries: usize) -> DelaySums {
        DelaySums {
            by_region: BTreeMap::new(),
            by_process: Largest::new(entries),
            propagated: [0; 2],
            unexplained: [0; 2],
            not_examined: [0; 2],
        }
    }

    /// Adds those of another rank.
    pub fn merge(&mut self, other: DelaySums) {
        let add = |sum: &mut Ticks, more: Ticks| (0..2).for_each(|stage| sum[stage] += more[stage]);
        other.by_region.into_iter().for_each(|(region, more)| add(self.by_region.entry(region).or_default(), more));
        self.by_process.merge(other.by_process);
        add(&mut self.propagated, other.propagated);
        add(&mut self.unexplained, other.unexplained);
        add(&mut self.not_examined, other.not_examined);
    }
}

/// An operation of the delayer, as the waiter can name it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum DelayerOperation {
    /// By its place.
    Operation(u32),
    /// The one in which it takes part in an instance on a communicator: in which it begins, if it is where the wait ends, else in which it ends.
    Collective(CommIndex, InstanceIndex),
}

/// Messages between a hosted process and another one: the operations that they belong to there and there, ascending.
type Shared = Vec<(u32, u32)>;

/// Messages of a hosted process by the other one.
type ByProcess = BTreeMap<u32, Shared>;

/// What is known of a wait where the waiter is hosted.
struct Told {
    delayer: u32,
    /// The last collective operation and the last message that both took part in; none since the beginning.
    since: [Option<DelayerOperation>; 2],
    /// What was waited for.
    until: DelayerOperation,
    ticks: i64,
    /// The waiter's last operation that both took part in.
    own: Option<u32>,
}

/// For the host of a delayer, if that is another rank.
#[derive(Debug, Serialize, Deserialize)]
struct Wait {
    delayer: u32,
    since: [Option<DelayerOperation>; 2],
    until: DelayerOperation,
    ticks: i64,
    /// What the waiter did: time by region.
    waiter: Vec<(u32, i64)>,
}

/// So many waits are told in one round: their memory does not grow with the trace.
const ROUND: usize = 1 << 14;

/// What there is to know of the hosted part of a trace.
pub struct DelaySearch<'a> {
    program: &'a Program,
    operations: &'a [Operations],
    /// Of each hosted process: what it does between its operations.
    gaps: Vec<&'a Gaps>,
    places: RegionPlaces,
    /// By hosted process: the messages that it received.
    received: Vec<ByProcess>,
    /// The same of messages that it sent, and the other one received.
    sent: Vec<ByProcess>,
    /// The same with the operation that completes a send, and the one in which its receive was posted; of operations that have waited for a receiver.
    posted: Vec<ByProcess>,
    /// By hosted process: its operation, and the communicator (by its place here) and instance that end in it.
    collectives: Vec<Vec<Took>>,
    /// The members of each communicator here, ascending.
    members: Vec<Vec<u32>>,
    /// The place of each member among those hosted here.
    hosted: HashMap<(usize, LocalTimeline), usize>,
}

/// An operation, and the communicator (by its place) and instance that end in it.
type Took = (u32, u32, InstanceIndex);

impl<'a> DelaySearch<'a> {
    /// Finds out who communicated with whom in which operations. `processes` is what each hosted process does between its operations, and the innermost region of
    /// each node of its call tree; `waiting` the waits of all hosted timelines by stage. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn new(
        transport: &mut dyn Transport,
        program: &'a Program,
        operations: &'a [Operations],
        processes: Vec<(&'a Gaps, Vec<u32>)>,
        waiting: &[Vec<TimelineWaits>],
    ) -> Result<DelaySearch<'a>> {
        let places = RegionPlaces::new(&processes);
        let gaps: Vec<&Gaps> = processes.into_iter().map(|(gaps, _)| gaps).collect();
        let mut search = DelaySearch {
            program,
            operations,
            received: vec![ByProcess::new(); gaps.len()],
            sent: vec![ByProcess::new(); gaps.len()],
            posted: vec![ByProcess::new(); gaps.len()],
            collectives: vec![Vec::new(); gaps.len()],
            gaps,
            places,
            members: Vec::new(),
            hosted: HashMap::default(),
        };
        search.find_messages(transport, waiting)?;
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
        let (mut all_received, mut all_sent, mut all_posted) = (
            vec![ByProcess::new(); self.gaps.len()],
            vec![ByProcess::new(); self.gaps.len()],
            vec![ByProcess::new(); self.gaps.len()],
        );
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
            if channel.is_certain() && whole(channel.source) {
                let both = (received(channel.destination, event), sent as u32);
                enter(&mut all_received, channel.destination, channel.source.0, &mut std::iter::once(both));
            }
        })?;
        drop(own);
        let ends = of_receives(transport, program, |channel, event| received(channel.destination, event).into())?;
        let starts = of_receives(transport, program, |channel, event| posted(channel.destination, event).into())?;

        let late = late_receivers(operations, self.gaps.len(), waiting);
        for (index, channel) in program.messages.outgoing.iter().enumerate().filter(|(_, channel)| channel.is_certain())
        {
            let (source, destination, own) = (channel.source, channel.destination, &operations[channel.source]);
            let local = program.messages.incoming.get(channel.remote as usize).filter(|_| channel.host == here);
            if let Some(end) = local.filter(|end| whole(end.source)) {
                let sends = channel.sends.iter().map(|&send| own.of_event[send as usize]);
                let receives = end.receives.iter().map(|&event| received(end.destination, event));
                enter(&mut all_received, end.destination, end.source.0, &mut receives.zip(sends));
            }
            if !whole(destination) {
                continue;
            }
            let other = |k: usize, remote: &[Vec<i64>], of_event: &dyn Fn(LocalTimeline, u32) -> u32| match local {
                Some(end) => end.receives.get(k).map(|&event| of_event(end.destination, event)),
                None => remote[index].get(k).map(|&operation| operation as u32),
            };
            let sends = || channel.sends.iter().enumerate();
            let mut both =
                sends().filter_map(|(k, &send)| Some((own.of_event[send as usize], other(k, &ends, &received)?)));
            enter(&mut all_sent, source, destination.0, &mut both);
            let Some(late) = late.get(source.place()).filter(|late| !late.is_empty()) else { continue };
            let completed = sends().map(|(k, &send)| (k, own.partner[send as usize]));
            let completed = completed.filter(|&(_, operation)| late.get(operation as usize).is_some_and(|&late| late));
            let mut both = completed.filter_map(|(k, operation)| Some((operation, other(k, &starts, &posted)?)));
            enter(&mut all_posted, source, destination.0, &mut both);
        }
        for list in
            [&mut all_received, &mut all_sent, &mut all_posted].into_iter().flatten().flat_map(BTreeMap::values_mut)
        {
            list.sort_unstable();
            list.shrink_to_fit();
        }
        (self.received, self.sent, self.posted) = (all_received, all_sent, all_posted);
        Ok(())
    }

    fn find_collectives(&mut self) {
        for (place, comm) in self.program.collectives.comms.iter().enumerate() {
            let mut members: Vec<u32> = comm.processes.iter().map(|process| process.0).collect();
            members.sort_unstable();
            self.members.push(members);
            for (number, member) in comm.members.iter().enumerate() {
                self.hosted.insert((place, member.timeline), number);
                for (instance, &end) in (0..).map(InstanceIndex).zip(&member.ends) {
                    let operation = self.operations[member.timeline].of_event[end as usize];
                    if self.is_main(member.timeline, operation) {
                        self.collectives[member.timeline].push((operation, place as u32, instance));
                    }
                }
            }
        }
        self.collectives.iter_mut().for_each(|list| list.sort_unstable());
    }

    /// Blames the `waits` of all hosted timelines in one stage, and adds what they cost to `sums`; `by_process` has those of each hosted process. Collective
    /// over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn blame(
        &self,
        transport: &mut dyn Transport,
        placement: &Placement,
        waits: &[TimelineWaits],
        stage: usize,
        sums: &mut DelaySums,
        by_process: &mut [Ticks],
    ) -> Result<()> {
        let done = Done::new(self.operations, &self.gaps, &self.places, waits, stage);
        let here = transport.rank();
        let host = |wait: &OperationWait| placement.host_of(TimelineNumber(wait.cause));
        let remote = waits.iter().flat_map(|own| &own.waits).filter(|wait| host(wait) != here).count();
        let mut rounds = [remote.div_ceil(ROUND) as i64];
        transport.all_reduce(ReduceOp::Max, &mut rounds)?;
        let mut costs = CostSums { search: self, done: &done, stage, sums, by_process, delayer: self.places.profile() };
        let mut waiter = self.places.profile();
        let mut latest = Latest::default();
        let timelines = (0..).map(LocalTimeline).zip(waits);
        let mut all = timelines.flat_map(|(timeline, own)| own.waits.iter().map(move |wait| (timeline, wait)));
        loop {
            let mut told: BTreeMap<AnalysisRank, Vec<Wait>> = BTreeMap::new();
            let mut room = ROUND;
            for (timeline, wait) in all.by_ref() {
                let Some(own) = self.told(timeline, wait, &mut latest) else {
                    costs.not_examined(wait.ticks);
                    continue;
                };
                done.between(&mut waiter, timeline, own.own, wait.operation);
                let Told { delayer, since, until, ticks, .. } = own;
                if host(wait) == here {
                    costs.add(delayer, since, until, ticks, &waiter);
                    continue;
                }
                let of_region = |(place, ticks)| (self.places.region(place), ticks);
                let waiter = waiter.entries().map(of_region).collect();
                told.entry(host(wait)).or_default().push(Wait { delayer, since, until, ticks, waiter });
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
                let known = wait.waiter.iter().filter_map(|&(region, ticks)| Some((self.places.place(region)?, ticks)));
                known.for_each(|(place, ticks)| waiter.add(place, ticks));
                costs.add(wait.delayer, wait.since, wait.until, wait.ticks, &waiter);
            }
        }
    }

    /// What there is to tell the host of the delayer of a wait; nothing if it is not known what was waited for. The waits of a timeline come in the order of their
    /// operations.
    fn told(&self, timeline: LocalTimeline, wait: &OperationWait, latest: &mut Latest) -> Option<Told> {
        if !self.is_main(timeline, wait.operation) {
            return None;
        }
        latest.advance(timeline, &self.collectives[timeline], wait.operation);
        let (operation, delayer) = (wait.operation, wait.cause);
        let member = |place: u32| self.members[place as usize].binary_search(&delayer).is_ok();
        // The last operation of the delayer that belongs to this one.
        let last_of = |list: &ByProcess| {
            let list = list.get(&delayer)?;
            let to = list.partition_point(|&(own, _)| own <= operation);
            let last = to.checked_sub(1).and_then(|last| list.get(last));
            last.filter(|&&(own, _)| own == operation).map(|&(_, other)| other)
        };
        let until = match wait.kind {
            WaitKind::LateSender => DelayerOperation::Operation(last_of(&self.received[timeline])?),
            WaitKind::LateReceiver => DelayerOperation::Operation(last_of(&self.posted[timeline])?),
            WaitKind::LatePost | WaitKind::EarlyWait | WaitKind::LockContention => return None,
            _ => {
                let list = &self.collectives[timeline];
                let from = list.partition_point(|entry| entry.0 < operation);
                let own = list[from..].iter().take_while(|entry| entry.0 == operation);
                let (_, place, instance) = own.filter(|entry| member(entry.1)).last()?;
                self.named(*place, *instance)
            }
        };
        let collective = latest.collectives.iter().rev().find(|&&(_, place, _)| member(place));
        let from = collective.map_or(0, |&(own, ..)| own + 1);
        let before = match until {
            DelayerOperation::Operation(until) => until,
            DelayerOperation::Collective(..) => u32::MAX,
        };
        // The last message since that one both ends of which are before.
        let last_before = |list: &ByProcess| {
            let list = list.get(&delayer)?;
            let end = list.partition_point(|&(own, _)| own < operation);
            let since = list[..end].iter().rev().take_while(|&&(own, _)| own >= from);
            since.copied().find(|&(_, other)| other < before)
        };
        let messages = [last_before(&self.received[timeline]), last_before(&self.sent[timeline])];
        let message = messages.into_iter().flatten().map(|(_, other)| other).max();
        let own = messages.into_iter().flatten().map(|(own, _)| own).chain(collective.map(|&(own, ..)| own)).max();
        let since = [
            collective.map(|&(_, place, instance)| self.named(place, instance)),
            message.map(DelayerOperation::Operation),
        ];
        Some(Told { delayer, since, until, ticks: wait.ticks, own })
    }

    fn named(&self, place: u32, instance: InstanceIndex) -> DelayerOperation {
        DelayerOperation::Collective(self.program.collectives.comms[place as usize].comm, instance)
    }

    /// The operation of a hosted process, if it is one of its main location.
    fn resolve(&self, process: LocalTimeline, named: DelayerOperation, end: bool) -> Option<u32> {
        let operation = match named {
            DelayerOperation::Operation(operation) => operation,
            DelayerOperation::Collective(comm, instance) => {
                let place = self.program.comm_index.get(&comm)?.place();
                let member = &self.program.collectives.comms[place].members[*self.hosted.get(&(place, process))?];
                let events = if end { &member.ends } else { &member.begins };
                self.operations[process].of_event[*events.get(instance.place())? as usize]
            }
        };
        Some(operation).filter(|&operation| self.is_main(process, operation))
    }
}

/// Which operations of each hosted process have waited for a receiver in any stage; nothing of processes without such.
fn late_receivers(operations: &[Operations], processes: usize, waiting: &[Vec<TimelineWaits>]) -> Vec<Vec<bool>> {
    let mut late: Vec<Vec<bool>> = vec![Vec::new(); processes];
    for stage in waiting {
        for ((late, own), operations) in late.iter_mut().zip(stage).zip(operations) {
            for wait in own.waits.iter().filter(|wait| wait.kind == WaitKind::LateReceiver) {
                late.resize(operations.len(), false);
                late[wait.operation as usize] = true;
            }
        }
    }
    late
}

/// Adds up what waits for hosted processes cost in one stage.
struct CostSums<'a> {
    search: &'a DelaySearch<'a>,
    done: &'a Done<'a>,
    stage: usize,
    sums: &'a mut DelaySums,
    by_process: &'a mut [Ticks],
    /// What the delayer did.
    delayer: Profile,
}

impl CostSums<'_> {
    fn not_examined(&mut self, ticks: i64) {
        self.sums.not_examined[self.stage] += i128::from(ticks);
    }

    /// A wait of `ticks` for a hosted process, between two of its operations; `waiter` is what the waiter did meanwhile.
    fn add(
        &mut self,
        delayer: u32,
        since: [Option<DelayerOperation>; 2],
        until: DelayerOperation,
        ticks: i64,
        waiter: &Profile,
    ) {
        let (search, stage) = (self.search, self.stage);
        let process = LocalTimeline(delayer - search.program.first.0);
        let since = since.into_iter().flatten().map(|since| search.resolve(process, since, true));
        let since: Option<Vec<u32>> = since.collect();
        let since = since.map(|since| since.into_iter().max());
        let (Some(until), Some(since)) = (search.resolve(process, until, false), since) else {
            return self.not_examined(ticks);
        };
        if since.is_some_and(|since| since >= until) {
            return self.not_examined(ticks);
        }
        self.done.between(&mut self.delayer, process, since, until);
        let waited = self.delayer.waited;
        let (by_region, by_process) = (&mut self.sums.by_region, &mut self.by_process[process.place()]);
        let both = self.delayer.entries().map(|(place, ticks)| (place, ticks, waiter.at(place)));
        let costs = blame(ticks, both, waited, |place, cost| {
            by_region.entry(search.places.region(place)).or_default()[stage] += i128::from(cost);
            by_process[stage] += i128::from(cost);
        });
        self.sums.propagated[stage] += i128::from(costs.propagated);
        self.sums.unexplained[stage] += i128::from(costs.unexplained);
    }
}

/// The last collective operations of a process.
#[derive(Default)]
struct Latest {
    /// Which process.
    timeline: LocalTimeline,
    next: usize,
    /// The last one on each communicator, in their order.
    collectives: Vec<Took>,
}

impl Latest {
    /// Takes note of what was before `operation` of a timeline.
    fn advance(&mut self, timeline: LocalTimeline, collectives: &[Took], operation: u32) {
        if timeline != self.timeline {
            *self = Latest { timeline, ..Latest::default() };
        }
        while let Some(&took) = collectives.get(self.next).filter(|entry| entry.0 < operation) {
            self.next += 1;
            if let Some(known) = self.collectives.iter().rposition(|known| known.1 == took.1) {
                self.collectives.remove(known);
            }
            self.collectives.push(took);
        }
    }
}
