//! Delay costs of all waits: which regions of the processes that were waited for took so long.
//!
//! The waiter knows the last operations in which it communicated with the delayer, as places in the order of both; it tells the delayer's host what it did
//! since then and how long it waited, and that one compares ([`clc_execution::delays`]). Only the main locations of processes are looked at.

use crate::analysis::gaps::Gaps;
use crate::analysis::largest::Largest;
use crate::analysis::replay::operations::Operations;
use crate::analysis::replay::timeline_waits::{OperationWait, TimelineWaits};
use clc_engine::comm::{AnalysisRank, Transport, exchange_values};
use clc_engine::matching::collectives::InstanceIndex;
use clc_engine::matching::comm_index::CommIndex;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::placement::Placement;
use clc_engine::replay::bounds::message_bounds;
use clc_engine::replay::caps::of_receives;
use clc_engine::replay::program::Program;
use clc_execution::delays::{TimeProfile, blame};
use clc_execution::waiting::WaitKind;
use clc_trace::{Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

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

/// A message between a hosted process and another one, as the operations that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shared {
    /// The other process.
    process: u32,
    own: u32,
    other: u32,
}

/// For the host of a delayer.
#[derive(Debug, Serialize, Deserialize)]
struct Wait {
    delayer: u32,
    /// The last collective operation and the last message that both took part in; none since the beginning.
    since: [Option<DelayerOperation>; 2],
    /// What was waited for.
    until: DelayerOperation,
    ticks: i64,
    /// What the waiter did.
    waiter: TimeProfile,
}

/// What there is to know of the hosted part of a trace.
pub struct DelaySearch<'a> {
    program: &'a Program,
    operations: &'a [Operations],
    /// Of each hosted process: what it does between its operations, and the region of each.
    gaps: Vec<&'a Gaps>,
    regions: Vec<Vec<u32>>,
    /// By hosted process: the messages that it received, in order.
    received: Vec<Vec<Shared>>,
    /// The same of messages that it sent, and the other one received.
    sent: Vec<Vec<Shared>>,
    /// The same with the operation that completes a send, and the one in which its receive was posted.
    posted: Vec<Vec<Shared>>,
    /// By hosted process: its operation, and the communicator (by its place here) and instance that end in it.
    collectives: Vec<Vec<(u32, usize, InstanceIndex)>>,
    /// The members of each communicator here, ascending.
    members: Vec<Vec<u32>>,
    /// The place of each member among those hosted here.
    hosted: HashMap<(usize, LocalTimeline), usize>,
}

impl<'a> DelaySearch<'a> {
    /// Finds out who communicated with whom in which operations. `processes` is what each hosted process does between its operations, and the innermost region of
    /// each node of its call tree. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn new(
        transport: &mut dyn Transport,
        program: &'a Program,
        operations: &'a [Operations],
        processes: Vec<(&'a Gaps, Vec<u32>)>,
    ) -> Result<DelaySearch<'a>> {
        let (gaps, regions): (Vec<&Gaps>, Vec<Vec<u32>>) = processes.into_iter().unzip();
        let mut search = DelaySearch {
            program,
            operations,
            received: vec![Vec::new(); gaps.len()],
            sent: vec![Vec::new(); gaps.len()],
            posted: vec![Vec::new(); gaps.len()],
            collectives: vec![Vec::new(); gaps.len()],
            gaps,
            regions,
            members: Vec::new(),
            hosted: HashMap::new(),
        };
        search.find_messages(transport)?;
        search.find_collectives();
        Ok(search)
    }

    /// Whether an operation of a hosted timeline is one of the main location of a process.
    fn is_main(&self, timeline: LocalTimeline, operation: u32) -> bool {
        self.gaps.get(timeline.place()).is_some_and(|gaps| operation < gaps.operations())
    }

    fn find_messages(&mut self, transport: &mut dyn Transport) -> Result<()> {
        let (program, operations) = (self.program, self.operations);
        let whole = |number: TimelineNumber| program.process_of(number) == number;
        // Places of operations take the way of times.
        let own: Vec<Vec<i64>> =
            operations.iter().map(|own| own.of_event.iter().map(|&operation| i64::from(operation)).collect()).collect();
        let mut lists: [Vec<(LocalTimeline, Shared)>; 3] = Default::default();
        message_bounds(transport, program, &own, |channel, event, sent| {
            let channel = &program.messages.incoming[channel];
            if channel.is_certain() && whole(channel.source) {
                let received = operations[channel.destination].of_event[event as usize];
                let message = Shared { process: channel.source.0, own: received, other: sent as u32 };
                lists[0].push((channel.destination, message));
            }
        })?;
        let received = |timeline: LocalTimeline, event: u32| operations[timeline].of_event[event as usize];
        let posted = |timeline: LocalTimeline, event: u32| match operations[timeline].partner[event as usize] {
            Operations::NONE => received(timeline, event),
            operation => operation,
        };
        let ends = of_receives(transport, program, |channel, event| received(channel.destination, event).into())?;
        let starts = of_receives(transport, program, |channel, event| posted(channel.destination, event).into())?;
        let here = transport.rank();
        for (index, channel) in program.messages.outgoing.iter().enumerate() {
            if !channel.is_certain() || !whole(channel.destination) {
                continue;
            }
            let local = program.messages.incoming.get(channel.remote as usize).filter(|_| channel.host == here);
            let own = &operations[channel.source];
            for (k, &send) in channel.sends.iter().enumerate() {
                let other = match local {
                    Some(end) => end
                        .receives
                        .get(k)
                        .map(|&event| (received(end.destination, event), posted(end.destination, event))),
                    None => {
                        let both = ends[index].get(k).zip(starts[index].get(k));
                        both.map(|(&end, &start)| (end as u32, start as u32))
                    }
                };
                let Some((received, posted)) = other else { continue };
                let (process, send) = (channel.destination.0, send as usize);
                lists[1].push((channel.source, Shared { process, own: own.of_event[send], other: received }));
                lists[2].push((channel.source, Shared { process, own: own.partner[send], other: posted }));
            }
        }
        for (number, list) in lists.into_iter().enumerate() {
            for (timeline, entry) in list {
                if self.is_main(timeline, entry.own) && entry.other != Operations::NONE {
                    let into = [&mut self.received, &mut self.sent, &mut self.posted];
                    into.into_iter().skip(number).take(1).for_each(|into| into[timeline].push(entry));
                }
            }
        }
        let all = self.received.iter_mut().chain(&mut self.sent).chain(&mut self.posted);
        all.for_each(|list| list.sort_unstable());
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
                        self.collectives[member.timeline].push((operation, place, instance));
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
        let done = self.done(waits, stage);
        let mut told: BTreeMap<AnalysisRank, Vec<Wait>> = BTreeMap::new();
        for (timeline, own) in (0..).map(LocalTimeline).zip(waits) {
            let mut latest = Latest::default();
            for wait in &own.waits {
                match self.told(timeline, wait, &mut latest, &done) {
                    Some(wait) => told.entry(placement.host_of(TimelineNumber(wait.delayer))).or_default().push(wait),
                    None => sums.not_examined[stage] += i128::from(wait.ticks),
                }
            }
        }
        // The delayer's profile is the same for all that waited for it in a collective operation.
        let mut known: HashMap<(LocalTimeline, Option<u32>, u32), Activity> = HashMap::new();
        for wait in exchange_values(transport, told)?.into_iter().flat_map(|(_, waits)| waits) {
            let delayer = LocalTimeline(wait.delayer - self.program.first.0);
            let since = wait.since.into_iter().flatten().map(|since| self.resolve(delayer, since, true));
            let since: Option<Vec<u32>> = since.collect();
            let since = since.map(|since| since.into_iter().max());
            let (Some(until), Some(since)) = (self.resolve(delayer, wait.until, false), since) else {
                sums.not_examined[stage] += i128::from(wait.ticks);
                continue;
            };
            if since.is_some_and(|since| since >= until) {
                sums.not_examined[stage] += i128::from(wait.ticks);
                continue;
            }
            if known.len() > KNOWN {
                known.clear();
            }
            let own =
                known.entry((delayer, since, until)).or_insert_with(|| self.between(delayer, since, until, &done));
            let costs = blame(wait.ticks, &own.regions, &wait.waiter, own.waited);
            for (region, cost) in costs.delays {
                sums.by_region.entry(region).or_default()[stage] += i128::from(cost);
                by_process[delayer.place()][stage] += i128::from(cost);
            }
            sums.propagated[stage] += i128::from(costs.propagated);
            sums.unexplained[stage] += i128::from(costs.unexplained);
        }
        Ok(())
    }

    /// What the host of the delayer is told of a wait; nothing if it is not known what was waited for. The waits of a timeline come in the order of their
    /// operations.
    fn told(
        &self,
        timeline: LocalTimeline,
        wait: &OperationWait,
        latest: &mut Latest,
        done: &Done<'_>,
    ) -> Option<Wait> {
        if !self.is_main(timeline, wait.operation) {
            return None;
        }
        latest.advance(&self.collectives[timeline], wait.operation);
        let (operation, delayer) = (wait.operation, wait.cause);
        let member = |place: usize| self.members[place].binary_search(&delayer).is_ok();
        // The last operation of the delayer that belongs to this one.
        let last_of = |list: &[Shared]| {
            let to = list.partition_point(|entry| (entry.process, entry.own) <= (delayer, operation));
            let last = to.checked_sub(1).and_then(|last| list.get(last));
            last.filter(|entry| (entry.process, entry.own) == (delayer, operation)).map(|entry| entry.other)
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
        let shared = latest.collectives.iter().filter(|(place, _)| member(**place));
        let collective = shared.map(|(&place, &(own, instance))| (own, place, instance)).max();
        let from = collective.map_or(0, |(own, ..)| own + 1);
        let before = match until {
            DelayerOperation::Operation(until) => until,
            DelayerOperation::Collective(..) => u32::MAX,
        };
        // The last message since that one both ends of which are before.
        let last_before = |list: &[Shared]| {
            let begin = list.partition_point(|entry| (entry.process, entry.own) < (delayer, from));
            let end = list.partition_point(|entry| (entry.process, entry.own) < (delayer, operation));
            list[begin..end.max(begin)].iter().rev().find(|entry| entry.other < before).copied()
        };
        let messages = [last_before(&self.received[timeline]), last_before(&self.sent[timeline])];
        let message = messages.into_iter().flatten().map(|message| message.other).max();
        let own =
            messages.into_iter().flatten().map(|message| message.own).chain(collective.map(|(own, ..)| own)).max();
        let since = [
            collective.map(|(_, place, instance)| self.named(place, instance)),
            message.map(DelayerOperation::Operation),
        ];
        let waiter = self.between(timeline, own, operation, done).regions;
        Some(Wait { delayer, since, until, ticks: wait.ticks, waiter })
    }

    fn named(&self, place: usize, instance: InstanceIndex) -> DelayerOperation {
        DelayerOperation::Collective(self.program.collectives.comms[place].comm, instance)
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

    /// What the hosted processes have done up to every [`BLOCK`]-th operation, under the times of a stage.
    fn done<'w>(&self, waits: &'w [TimelineWaits], stage: usize) -> Done<'w> {
        let mut done = Done { waits, stage, blocks: Vec::with_capacity(self.gaps.len()) };
        for (process, gaps) in (0..).map(LocalTimeline).zip(&self.gaps) {
            let mut sums = Activity::default();
            let mut blocks = Vec::new();
            for first in (0..gaps.operations()).step_by(BLOCK as usize) {
                blocks.push((sums.regions.iter().map(|(&region, &ticks)| (region, ticks)).collect(), sums.waited));
                self.add(&mut sums, process, first..(first + BLOCK).min(gaps.operations()), &done);
            }
            done.blocks.push(blocks);
        }
        done
    }

    /// Adds these operations of a hosted process and what it did before each of them.
    fn add(&self, sums: &mut Activity, process: LocalTimeline, operations: Range<u32>, done: &Done<'_>) {
        let (own, times) = (&self.operations[process], &self.operations[process].stages[done.stage]);
        let list = &done.waits[process].waits;
        let mut next = list.partition_point(|wait| wait.operation < operations.start);
        for operation in operations {
            self.add_before(sums, process, operation, done);
            let mut rest = times.leave[operation as usize] - times.enter[operation as usize];
            if let Some(wait) = list.get(next).filter(|wait| wait.operation == operation) {
                rest -= wait.ticks;
                sums.waited += wait.ticks;
                next += 1;
            }
            let region = self.regions[process.place()][own.call_path[operation as usize] as usize];
            *sums.regions.entry(region).or_default() += rest.max(0);
        }
    }

    /// Adds what a hosted process did before one of its operations.
    fn add_before(&self, sums: &mut Activity, process: LocalTimeline, operation: u32, done: &Done<'_>) {
        for (region, times) in self.gaps[process.place()].before(operation) {
            *sums.regions.entry(*region).or_default() += times[done.stage];
        }
    }

    /// What a hosted process did after operation `since` and before operation `until`.
    fn between(&self, process: LocalTimeline, since: Option<u32>, until: u32, done: &Done<'_>) -> Activity {
        let mut sums = Activity::default();
        let first = since.map_or(0, |since| since + 1).min(until);
        let (from, to) = (first.div_ceil(BLOCK), until / BLOCK);
        let blocks = &done.blocks[process.place()];
        match (blocks.get(from as usize), blocks.get(to as usize)) {
            (Some((before, waited_before)), Some((after, waited))) if from < to => {
                self.add(&mut sums, process, first..from * BLOCK, done);
                self.add(&mut sums, process, to * BLOCK..until, done);
                after.iter().for_each(|(region, ticks)| *sums.regions.entry(*region).or_default() += ticks);
                before.iter().for_each(|(region, ticks)| *sums.regions.entry(*region).or_default() -= ticks);
                sums.waited += waited - waited_before;
            }
            _ => self.add(&mut sums, process, first..until, done),
        }
        self.add_before(&mut sums, process, until, done);
        sums
    }
}

/// So many operations make a block.
const BLOCK: u32 = 256;

/// What a process did.
#[derive(Default)]
struct Activity {
    /// Time without waiting.
    regions: TimeProfile,
    /// Waiting.
    waited: i64,
}

/// What the hosted processes have done under the times of one stage: an interval of any length takes no more work than two blocks of operations.
struct Done<'w> {
    waits: &'w [TimelineWaits],
    stage: usize,
    /// By process: time by region, and waiting, before each block.
    blocks: Vec<Vec<Block>>,
}

/// Time by region in order, and waiting.
type Block = (Vec<(u32, i64)>, i64);

/// So many profiles of delayers are kept.
const KNOWN: usize = 256;

/// The last collective operations of a process.
#[derive(Default)]
struct Latest {
    next: usize,
    /// By communicator: its operation, and the instance.
    collectives: HashMap<usize, (u32, InstanceIndex)>,
}

impl Latest {
    /// Takes note of what was before `operation`.
    fn advance(&mut self, collectives: &[(u32, usize, InstanceIndex)], operation: u32) {
        while let Some(&(own, comm, instance)) = collectives.get(self.next).filter(|entry| entry.0 < operation) {
            self.collectives.insert(comm, (own, instance));
            self.next += 1;
        }
    }
}
