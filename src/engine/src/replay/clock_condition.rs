//! Every happened-before pair, checked against given times.

use crate::comm::{AnalysisRank, ReduceOp, Transport, broadcast_value, exchange_values, merge_values};
use crate::matching::collectives::instances::{HostedComm, InstanceIndex};
use crate::matching::comm_index::CommIndex;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::sync::SyncKind;
use crate::matching::visited_times::TimelineTimes;
use crate::replay::bounds::{collective_bounds, local_message_bounds, remote_message_bounds};
use crate::replay::observe::channel_shares;
use crate::replay::program::Program;
use clc_trace::workers::Workers;
use clc_trace::{CollectiveOp, CommRank, EventNumber, LocationId, Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many were looked at, and how many violate the clock condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Checked.
    pub checked: u64,
    /// Violated.
    pub violated: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.checked += other.checked;
        self.violated += other.violated;
    }
}

/// One event of a violated pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPlace {
    /// The timeline of its process, whose number is the global MPI rank.
    pub process: TimelineNumber,
    /// Location.
    pub location: LocationId,
    /// Which event of the location.
    pub number: EventNumber,
    /// Its time in the check, in ticks.
    pub time: i64,
}

/// The worst violation of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worst {
    /// `None` for a message, else the collective operation, or what else it is ([`crate::matching::channels::Trust::op`]).
    pub op: Option<CollectiveOp>,
    /// By how many ticks the receive is too early.
    pub ticks: i64,
    /// The logical send.
    pub send: Option<EventPlace>,
    /// The logical receive.
    pub receive: EventPlace,
}

/// Result of a check over all analysis ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockConditionCheck {
    /// Point-to-point messages.
    pub messages: Tally,
    /// Collective instances, by operation (OTF2 number); an instance is violated if any of its ends is too early. And orders of two processes that are no
    /// messages.
    pub collectives: BTreeMap<u8, Tally>,
    /// How early all logical receives are together.
    pub early: Earliness,
    /// The pair that is wrong by most; ties go to the lowest process and event.
    pub worst: Option<Worst>,
}

/// By how much logical receives (of messages, and ends of collective operations) are too early.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earliness {
    /// All that something bounds, early or not.
    pub receives: u64,
    /// Sum over those that are early, in ticks.
    pub ticks: u128,
}

impl Earliness {
    /// Bits of a part of the sum, so that the parts of a million ranks have a sum.
    const BITS: u32 = 40;

    fn add(&mut self, excess: i64) {
        self.receives += 1;
        self.ticks += u128::from(excess.max(0).cast_unsigned());
    }

    /// The mean over all of them, in ticks.
    pub fn mean(&self) -> f64 {
        self.ticks as f64 / self.receives.max(1) as f64
    }

    /// Number and sum as integers that can be added up.
    fn parts(&self) -> [i64; 4] {
        let part = |place: u32| (self.ticks >> (place * Self::BITS)) as i64 & ((1 << Self::BITS) - 1);
        [self.receives as i64, part(0), part(1), part(2)]
    }

    fn of_parts(parts: [i64; 4]) -> Earliness {
        let part = |place: usize| u128::from(parts[place + 1].cast_unsigned()) << (place as u32 * Self::BITS);
        Earliness { receives: parts[0].cast_unsigned(), ticks: part(0) + part(1) + part(2) }
    }
}

impl ClockConditionCheck {
    /// Violations of all kinds.
    pub fn violated(&self) -> u64 {
        self.messages.violated + self.collectives.values().map(|tally| tally.violated).sum::<u64>()
    }

    /// Checked messages and instances of all kinds.
    pub fn checked(&self) -> u64 {
        self.messages.checked + self.collectives.values().map(|tally| tally.checked).sum::<u64>()
    }
}

/// The worst violation on one analysis rank, before its sender is known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Candidate {
    pub ticks: i64,
    /// Timeline and visited event of the receive: of equally bad ones, the first is the worst.
    pub order: (TimelineNumber, u32),
    pub receive: EventPlace,
    pub op: Option<CollectiveOp>,
    pub question: SenderQuery,
}

/// Which send belongs to it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum SenderQuery {
    /// The k-th of a channel at a host.
    Message { host: AnalysisRank, channel: u32, k: u32 },
    /// The latest begin of an instance of a communicator that counts for a member of this rank.
    Instance { comm: CommIndex, instance: InstanceIndex, receiver: CommRank },
}

/// Messages that one thread has looked at before another has begun.
const ALONE: usize = 1 << 15;

/// What some messages amount to.
#[derive(Default)]
struct MessageCheck {
    messages: Tally,
    /// Orders that are no messages, by operation.
    orders: BTreeMap<u8, Tally>,
    early: Earliness,
    worst: Option<EarlyEvent>,
}

impl MessageCheck {
    /// Takes in one message: incoming channel, receive event and bound.
    #[inline(always)]
    fn add<T: TimelineTimes>(&mut self, program: &Program, times: &[T], (channel, event, bound): (usize, u32, i64)) {
        let end = &program.messages.incoming[channel];
        let timeline = end.destination;
        let excess = bound - times[timeline].at(event);
        let tally = match end.trust.op() {
            None => &mut self.messages,
            Some(op) => self.orders.entry(op.0).or_default(),
        };
        tally.checked += 1;
        self.early.add(excess);
        if excess > 0 {
            tally.violated += 1;
            EarlyEvent { excess, timeline, event, channel }.keep_if_worse(&mut self.worst);
        }
    }

    /// Takes in what comes behind.
    fn append(&mut self, other: MessageCheck) {
        self.messages.add(other.messages);
        other.orders.into_iter().for_each(|(op, tally)| self.orders.entry(op).or_default().add(tally));
        self.early.receives += other.early.receives;
        self.early.ticks += other.early.ticks;
        if let Some(worst) = other.worst {
            worst.keep_if_worse(&mut self.worst);
        }
    }
}

/// Checks all matched pairs under `times` (one per visited event of the hosted timelines). All ranks get the same result, with any number of `workers`.
///
/// # Errors
/// Failures of the transport.
pub fn check_clock_condition<T: TimelineTimes>(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    times: &[T],
) -> Result<ClockConditionCheck> {
    let here = transport.rank();
    let few = program.messages.outgoing.iter().map(|channel| channel.sends.len()).sum::<usize>() < ALONE;
    let workers = if few { Workers::ONE } else { workers };
    let shares = channel_shares(program, workers.threads());
    let parts = workers.map(shares.len(), |share| {
        let mut part = MessageCheck::default();
        let visit = |channel, event, bound| part.add(program, times, (channel, event, bound));
        local_message_bounds(here, program, times, shares[share].clone(), visit);
        part
    });
    let mut merged = MessageCheck::default();
    parts.into_iter().for_each(|part| merged.append(part));
    let visit = |channel, event, bound| merged.add(program, times, (channel, event, bound));
    remote_message_bounds(transport, program, times, visit)?;
    let MessageCheck { messages, mut orders, early: mut together, mut worst } = merged;
    let mut check = ClockConditionCheck { messages, ..ClockConditionCheck::default() };
    // Steps of threads with one timeline were compared when they were read, and no correction changes their order.
    for (kind, count) in &program.messages.counts.threads.0 {
        if let Some(op) = kind.op().filter(|_| count.shared > 0) {
            orders.entry(op.0).or_default().checked += count.shared;
        }
    }
    let comms = &program.collectives.comms;
    let mut early: Vec<Vec<bool>> = comms.iter().map(|comm| vec![false; comm.instances.len()]).collect();
    collective_bounds(transport, program, times, |comm, instance, member, event, bound| {
        let excess = bound - times[member.ended_on].at(event);
        together.add(excess);
        if excess > 0 {
            early[comm][instance] = true;
            EarlyEvent { excess, timeline: member.ended_on, event, channel: 0 }.keep_if_worse(&mut worst);
        }
    })?;
    collective_tallies(transport, program, &early, orders, &mut check)?;
    let [receives, low, middle, high] = together.parts();
    let mut sums = [check.messages.checked as i64, check.messages.violated as i64, receives, low, middle, high];
    transport.all_reduce(ReduceOp::Sum, &mut sums)?;
    let [checked, violated, receives, low, middle, high] = sums;
    check.messages = Tally { checked: checked as u64, violated: violated as u64 };
    check.early = Earliness::of_parts([receives, low, middle, high]);
    check.worst = find_worst(transport, program, times, worst)?;
    Ok(check)
}

/// A logical receive that comes too early.
#[derive(Debug, Clone, Copy)]
struct EarlyEvent {
    excess: i64,
    timeline: LocalTimeline,
    event: u32,
    /// Incoming channel, for a receive.
    channel: usize,
}

impl EarlyEvent {
    /// Of equal ones, the first in the order of timelines, events and channels stays.
    #[inline]
    fn keep_if_worse(self, worst: &mut Option<EarlyEvent>) {
        let better = |other: &EarlyEvent| {
            (other.excess, self.timeline, self.event, self.channel)
                >= (self.excess, other.timeline, other.event, other.channel)
        };
        if !worst.as_ref().is_some_and(better) {
            *worst = Some(self);
        }
    }
}

/// Counts instances at the home of their communicator: an instance is violated if any member anywhere is. `early` says which are, by
/// members of this rank.
fn collective_tallies(
    transport: &mut dyn Transport,
    program: &Program,
    early: &[Vec<bool>],
    orders: BTreeMap<u8, Tally>,
    check: &mut ClockConditionCheck,
) -> Result<()> {
    let here = transport.rank();
    // The violated instances of each communicator.
    let mut outgoing: BTreeMap<AnalysisRank, Vec<(CommIndex, Vec<InstanceIndex>)>> = BTreeMap::new();
    for (comm, early) in program.collectives.comms.iter().zip(early) {
        let violated =
            (0..).map(InstanceIndex).zip(early).filter_map(|(instance, &early)| early.then_some(instance)).collect();
        outgoing.entry(comm.home).or_default().push((comm.comm, violated));
    }
    let mut found: BTreeMap<HostedComm, Vec<bool>> = BTreeMap::new();
    for (comm, violated) in exchange_values(transport, outgoing)?.into_iter().flat_map(|(_, comms)| comms) {
        let index = program.comm_index[&comm];
        let instances = program.collectives.comms[index].instances.len();
        let flags = found.entry(index).or_insert_with(|| vec![false; instances]);
        violated.into_iter().for_each(|instance| flags[instance] = true);
    }
    // What is between two processes is counted by the one that receives.
    let mut tallies = orders;
    for (index, flags) in found {
        debug_assert_eq!(program.collectives.comms[index].home, here);
        for (instance, violated) in program.collectives.comms[index].instances.iter().zip(flags) {
            let tally = tallies.entry(instance.op.0).or_default();
            tally.checked += u64::from(instance.constrains);
            tally.violated += u64::from(violated);
        }
    }
    check.collectives = merge_values(transport, tallies, |sums, part| {
        for (op, tally) in part {
            let sum: &mut Tally = sums.entry(op).or_default();
            sum.add(tally);
        }
    })?;
    Ok(())
}

fn find_worst<T: TimelineTimes>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    worst: Option<EarlyEvent>,
) -> Result<Option<Worst>> {
    let candidate = worst.map(|EarlyEvent { excess: ticks, timeline: local, event, channel }| {
        let order = (program.number(local), event);
        let event = event as usize;
        let timeline = &program.timelines[local];
        let link = timeline.link(event);
        let (op, question) = match timeline.kind(event) {
            SyncKind::Receive | SyncKind::Join => {
                let channel = &program.messages.incoming[channel];
                let k = channel.receives.each().position(|receive| receive as usize == event).unwrap_or(0);
                (channel.trust.op(), SenderQuery::Message { host: channel.host, channel: channel.remote, k: k as u32 })
            }
            _ => {
                let (_, comm, member) = program.collectives.linked(link);
                let instance = member.ended_at(event);
                let question = SenderQuery::Instance { comm: comm.comm, instance, receiver: member.rank };
                (Some(comm.instances[instance].op), question)
            }
        };
        Candidate { ticks, order, receive: place(program, times, local, event), op, question }
    });
    let winner = merge_values(transport, candidate, |winner, candidate| {
        let rank = |candidate: &Option<Candidate>| candidate.as_ref().map(|one| (one.ticks, Reverse(one.order)));
        if rank(&candidate) > rank(winner) {
            *winner = candidate;
        }
    })?;
    let Some(winner) = winner else { return Ok(None) };
    let send = sender_of(transport, program, times, winner.question)?;
    Ok(Some(Worst { op: winner.op, ticks: winner.ticks, send, receive: winner.receive }))
}

/// The logical send that `question` asks for. Collective over the analysis ranks, which all ask the same.
pub(super) fn sender_of<T: TimelineTimes>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    question: SenderQuery,
) -> Result<Option<EventPlace>> {
    match question {
        SenderQuery::Message { host, channel, k } => {
            let mut answer = None;
            if transport.rank() == host {
                let channel = &program.messages.outgoing[channel as usize];
                answer = Some(place(program, times, channel.source, channel.sends.at(k as usize) as usize));
            }
            broadcast_value(transport, host, answer)
        }
        SenderQuery::Instance { comm, instance, receiver } => {
            let mut answers = Vec::new();
            if let Some(&index) = program.comm_index.get(&comm) {
                let comm = &program.collectives.comms[index];
                let prefix =
                    comm.instances[instance].class == controlled_logical_clock::semantics::CollectiveClass::Prefix;
                for member in comm.members.iter().filter(|m| m.sends[instance] && comm.constrains(m.rank, receiver)) {
                    if !prefix || member.rank < receiver {
                        let begin = member.begins.at(instance.place()) as usize;
                        answers.push(place(program, times, member.timeline, begin));
                    }
                }
            }
            let latest = |places: Vec<EventPlace>| places.into_iter().min_by_key(|place| (-place.time, place.process));
            merge_values(transport, latest(answers), |one, other| {
                *one = latest(one.iter().chain(&other).copied().collect());
            })
        }
    }
}

pub(super) fn place<T: TimelineTimes>(
    program: &Program,
    times: &[T],
    local: LocalTimeline,
    event: usize,
) -> EventPlace {
    let timeline = &program.timelines[local];
    EventPlace {
        process: program.process_of(program.number(local)),
        location: program.locations[local][timeline.location(event) as usize],
        number: timeline.number(event),
        time: times[local].at(event as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_many_ranks_are_added_up_in_parts() {
        let mut one = Earliness::default();
        [3, -5, i64::MAX, i64::MAX].into_iter().for_each(|excess| one.add(excess));
        assert_eq!(one, Earliness { receives: 4, ticks: 3 + 2 * (i64::MAX as u128) });
        let sum = one.parts().map(|part| 1_000_000 * part);
        assert_eq!(Earliness::of_parts(sum), Earliness { receives: 4_000_000, ticks: 1_000_000 * one.ticks });
        assert_eq!(Earliness { receives: 8, ticks: 4 }.mean(), 0.5);
        assert_eq!(Earliness::default().mean(), 0.0);
    }
}
