//! Who waited for whom, by durations of calls: [`clc_clock::waits`], from all analysis ranks.

use crate::comm::{AnalysisRank, Transport, gather_values};
use crate::matching::collectives::instances::{CollectiveComm, HostedMember, InstanceIndex};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::visited_times::{TimelineTimes, VisitedTimes};
use crate::replay::bounds::{local_message_bounds, message_bounds, remote_message_bounds};
use crate::replay::homes::{self, OfInstances};
use crate::replay::latest::Begins;
use crate::replay::observe::{channel_shares, hosted_members};
use crate::replay::program::Program;
use clc_clock::bounds::Bound;
use clc_clock::grid::Grid;
use clc_clock::kind::BoundKind;
use clc_clock::waits::{Class, OneWayDirections, QuickestWaits, WaitsCollector};
use clc_trace::Result;
use clc_trace::workers::Workers;
use controlled_logical_clock::semantics::CollectiveClass;

/// The call around a send or receive, if nothing else happened in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingCall {
    /// The visited event.
    pub event: u32,
    /// Recorded time of the other end of the call: where a receive was entered, where a send was left.
    pub other: i64,
    /// Length of the message.
    pub length: u64,
    /// Whether the call is a blocking send or receive itself.
    pub blocking: bool,
    /// Whether it took long enough to have been a wait.
    pub waited: bool,
}

/// The calls of one timeline, in order of events.
pub type WaitingCalls = Vec<WaitingCall>;

/// A member of a collective operation has waited if its part took this long, in seconds.
const WAITED: f64 = 10e-6;

/// What is looked for, and what tells it.
#[derive(Debug, Clone, Copy)]
pub struct CallSearch<'a> {
    /// Between which clocks.
    pub wanted: &'a OneWayDirections,
    /// The calls of the hosted timelines.
    pub calls: &'a [WaitingCalls],
    /// The times of their other ends.
    pub others: &'a [Vec<i64>],
    /// Ticks per second.
    pub resolution: u64,
}

/// When events happened, as some clocks see them.
#[derive(Debug, Clone, Copy)]
pub struct ObservedTimes<'a> {
    /// One per visited event of the hosted timelines.
    pub times: &'a [VisitedTimes<'a>],
    /// The begins of collectives under these times.
    pub begins: &'a [Begins],
    /// The clock of every timeline of the trace.
    pub clocks: &'a [u32],
    /// Windows.
    pub grid: &'a Grid,
}

/// What is looked for, at these times; on rank 0 only. Collective over the analysis ranks; the same for any number of them.
///
/// # Errors
/// Failures of the transport.
pub fn observe_waits(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    seen: ObservedTimes<'_>,
    search: CallSearch<'_>,
) -> Result<Option<QuickestWaits>> {
    let CallSearch { wanted, resolution, .. } = search;
    let mut waits = QuickestWaits::default();
    if wanted.messages {
        waits.merge(messages(transport, workers, program, seen, search)?);
    }
    let long = (WAITED * resolution as f64) as i64;
    let comms = &program.collectives.comms;
    let of_members = |comm: &CollectiveComm| wanted.hub(comm.timelines().map(|timeline| seen.clocks[timeline]));
    let hubs: Vec<Option<u32>> = comms.iter().map(of_members).collect();
    let shares = shares_of_members(program, workers);
    let parts = workers.map(shares.len(), |share| {
        let mut waits = WaitsCollector::new(seen.grid);
        for &(comm, member) in &shares[share] {
            let of_comm = (&comms[comm], &seen.begins[comm], hubs[comm]);
            of_collectives(of_comm, member, seen, (wanted, long), &mut waits);
        }
        waits.finish()
    });
    parts.into_iter().for_each(|part| waits.merge(part));
    waits.merge(between_ends(transport, workers, program, seen, (wanted, long))?);
    let parts = gather_values(transport, AnalysisRank::FIRST, &waits)?;
    Ok(parts.map(|parts| {
        let mut merged = QuickestWaits::default();
        parts.into_iter().for_each(|part| merged.merge(part));
        merged
    }))
}

/// The members of collectives that are hosted here, communicator by communicator, in as many parts as there are threads: the number of the communicator, and the member.
fn shares_of_members(program: &Program, workers: Workers) -> Vec<Vec<(usize, &HostedMember)>> {
    let members = hosted_members(program);
    let size = members.len().div_ceil(workers.threads()).max(1);
    members.chunks(size).map(<[_]>::to_vec).collect()
}

/// What a member of a communicator has waited for in operations whose latest begin it is told.
fn of_collectives(
    (comm, begins, hub): (&CollectiveComm, &Begins, Option<u32>),
    member: &HostedMember,
    ObservedTimes { times, clocks, .. }: ObservedTimes<'_>,
    (wanted, long): (&OneWayDirections, i64),
    waits: &mut WaitsCollector<'_>,
) {
    // How long it took can be told on one clock only.
    if !member.is_of_one() {
        return;
    }
    let clock = clocks[comm.ended_on(member.rank)];
    let times = times[member.timeline];
    for instance in member.received() {
        let of_hub = match comm.instances[instance].class {
            CollectiveClass::OneToN | CollectiveClass::NToOne => false,
            CollectiveClass::NToN if hub.is_some() => true,
            _ => continue,
        };
        let own = times.at(member.begins.at(instance.place()));
        let at = times.at(member.ends.at(instance.place()));
        if at - own < long {
            continue;
        }
        let Some((begin, sender)) = begins.before(comm, instance, member.rank).of_all() else { continue };
        if (!of_hub || hub == Some(sender)) && wanted.one_way.contains(&(sender, clock)) {
            let kind = BoundKind::collective(comm.instances[instance].op, comm.size);
            let bound = Bound { distance: at - begin, at, kind };
            waits.add(Class { from: sender, to: clock, kind }, bound);
        }
    }
}

/// When the member on the hub's clock ended each instance of a communicator, if it waited in it.
struct HubEnds(Vec<i64>);

impl OfInstances for HubEnds {
    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.iter().map(|&end| end as u64));
    }

    fn merge<'w>(&mut self, words: &'w [u64]) -> &'w [u64] {
        let (own, rest) = words.split_at(self.0.len());
        self.0.iter_mut().zip(own).for_each(|(end, &word)| *end = (*end).max(word as i64));
        rest
    }
}

/// Those of N-to-N collective operations whose latest begin comes from the same few members again and again, so that no others are ever waited for: all members that
/// waited end at about the same time. Each clock is compared with one that is tied best, if nothing else ties the two; others if there is little but collective
/// operations, which tell them where to begin.
fn between_ends(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    ObservedTimes { times, clocks, grid, .. }: ObservedTimes<'_>,
    (wanted, long): (&OneWayDirections, i64),
) -> Result<QuickestWaits> {
    let mut waits = QuickestWaits::default();
    if wanted.group.is_empty() {
        return Ok(waits);
    }
    let comms = &program.collectives.comms;
    let hub_of = |comm: &CollectiveComm| {
        let several = comm.groups() == 1 && comm.instances.iter().any(|one| one.class == CollectiveClass::NToN);
        let of_members = comm.timelines().map(|timeline| clocks[timeline]);
        let hub = if several { wanted.hub(of_members.clone()) } else { None };
        hub.and_then(|hub| Some((hub, of_members.clone().position(|clock| clock == hub)?)))
    };
    let hubs: Vec<Option<(u32, usize)>> = comms.iter().map(hub_of).collect();
    let ended = |comm: &CollectiveComm, member: &HostedMember, instance: InstanceIndex| {
        if !member.is_of_one() {
            return None;
        }
        let times = times[member.timeline];
        let (begin, end) = (times.at(member.begins.at(instance.place())), times.at(member.ends.at(instance.place())));
        let class = comm.instances[instance].class;
        (class == CollectiveClass::NToN && end - begin >= long).then_some(end)
    };
    let mut ends: Vec<HubEnds> = Vec::with_capacity(comms.len());
    for (comm, hub) in comms.iter().zip(&hubs) {
        let Some((_, rank)) = hub else {
            ends.push(HubEnds(Vec::new()));
            continue;
        };
        let mut own = vec![NEVER; comm.instances.len()];
        for member in comm.members.iter().filter(|member| member.rank.0 as usize == *rank) {
            for instance in member.received() {
                if let Some(end) = ended(comm, member, instance) {
                    own[instance.0 as usize] = end;
                }
            }
        }
        ends.push(HubEnds(own));
    }
    homes::meet(transport, program, &mut ends)?;
    let ended = &ended;
    let shares = shares_of_members(program, workers);
    let parts = workers.map(shares.len(), |share| {
        // Ends of one member against the other's, and back.
        let [mut waits, mut waits_back] = [WaitsCollector::new(grid), WaitsCollector::new(grid)];
        for &(number, member) in &shares[share] {
            let (comm, ends) = (&comms[number], &ends[number]);
            let Some((hub, _)) = hubs[number] else { continue };
            let clock = clocks[comm.ended_on(member.rank)];
            if hub == clock {
                continue;
            }
            let tied = wanted.are_tied(hub, clock);
            for instance in member.received() {
                let of_hub = ends.0[instance.0 as usize];
                let Some(end) = ended(comm, member, instance).filter(|_| of_hub > NEVER) else { continue };
                let kind = match tied {
                    true => BoundKind::ENDS_OF_TIED,
                    false => BoundKind::ends(comm.instances[instance].op, comm.size),
                };
                let there = Bound { distance: end - of_hub, at: end, kind };
                let back = Bound { distance: of_hub - end, at: of_hub, kind };
                waits.add(Class { from: hub, to: clock, kind }, there);
                waits_back.add(Class { from: clock, to: hub, kind }, back);
            }
        }
        [waits.finish(), waits_back.finish()]
    });
    parts.into_iter().flatten().for_each(|part| waits.merge(part));
    Ok(waits)
}

/// No time.
const NEVER: i64 = i64::MIN / 2;

/// What is known of the messages of a channel.
#[derive(Debug, Clone, Copy)]
struct ChannelWaits {
    /// The clocks it goes between.
    pair: (u32, u32),
    /// Whether its messages are late more often than not.
    late: bool,
    /// Its latency in force.
    latency: i64,
    receiver: LocalTimeline,
}

/// Finds the calls of receives, channel by channel and in the order of each.
struct CallCursor<'a> {
    program: &'a Program,
    clocks: &'a [u32],
    search: CallSearch<'a>,
    /// The incoming channel that was looked at last; what is known of it, if its messages are looked for; and the calls before its next receive.
    channel: Option<usize>,
    known: Option<ChannelWaits>,
    before: usize,
}

impl<'a> CallCursor<'a> {
    fn new(program: &'a Program, clocks: &'a [u32], search: CallSearch<'a>) -> Self {
        CallCursor { program, clocks, search, channel: None, known: None, before: 0 }
    }

    /// The call around `event`, which receives on an incoming channel, and the time of its other end; none if it is not looked for, or tells nothing.
    #[inline]
    fn find(&mut self, channel: usize, event: u32) -> Option<(ChannelWaits, &'a WaitingCall, i64)> {
        if self.channel != Some(channel) {
            (self.channel, self.known, self.before) = (Some(channel), self.describe(channel), 0);
        }
        let known = self.known?;
        let calls = &self.search.calls[known.receiver];
        self.before = first_from(calls, self.before, event);
        let call = calls.get(self.before).filter(|call| call.event == event)?;
        Some((known, call, self.search.others[known.receiver][self.before]))
    }

    fn describe(&self, channel: usize) -> Option<ChannelWaits> {
        let CallSearch { wanted, .. } = self.search;
        let end = &self.program.messages.incoming[channel];
        let receiver = self.program.number(end.destination);
        let pair = (self.clocks[end.source], self.clocks[receiver]);
        (end.is_certain() && wanted.asks_for_messages(pair)).then(|| ChannelWaits {
            pair,
            late: wanted.late.contains(&pair),
            latency: self.program.message_latency(end.source, receiver),
            receiver: end.destination,
        })
    }
}

/// The first of `calls`, which are in order of events, at or after `event`: quick if the answer to the question before was `guess`, and that was about an event
/// shortly before.
fn first_from(calls: &[WaitingCall], guess: usize, event: u32) -> usize {
    let is_before = |call: &WaitingCall| call.event < event;
    let mut begin = if guess > 0 && !calls.get(guess - 1).is_some_and(is_before) { 0 } else { guess };
    let (mut end, mut step) = (begin, 1);
    while calls.get(end).is_some_and(is_before) {
        (begin, end, step) = (end + 1, end + step, 2 * step);
    }
    begin + calls[begin..end.min(calls.len())].partition_point(is_before)
}

/// Those of messages.
fn messages(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    ObservedTimes { times, clocks, grid, .. }: ObservedTimes<'_>,
    search: CallSearch<'_>,
) -> Result<QuickestWaits> {
    let here = transport.rank();
    let shares = channel_shares(program, workers.threads());
    let cursor = || CallCursor::new(program, clocks, search);
    let waited =
        |cursor: &mut CallCursor<'_>, (channel, event, bound): (usize, u32, i64), waits: &mut WaitsCollector<'_>| {
            let Some((of, call, _)) = cursor.find(channel, event).filter(|found| found.1.waited) else { return };
            let kind = if of.late { BoundKind::WAITED_OF_TIED } else { BoundKind::waited(call.length) };
            let (at, (from, to)) = (times[of.receiver].at(event), of.pair);
            waits.add(Class { from, to, kind }, Bound { distance: at - (bound - of.latency), at, kind });
        };
    let parts = workers.map(shares.len(), |share| {
        let (mut cursor, mut waits) = (cursor(), WaitsCollector::new(grid));
        local_message_bounds(here, program, times, shares[share].clone(), |channel, event, bound| {
            waited(&mut cursor, (channel, event, bound), &mut waits);
        });
        waits.finish()
    });
    let (mut remote, mut waits) = (cursor(), WaitsCollector::new(grid));
    remote_message_bounds(transport, program, times, |channel, event, bound| {
        waited(&mut remote, (channel, event, bound), &mut waits);
    })?;
    let all = |waits: WaitsCollector<'_>| {
        let mut all = waits.finish();
        parts.into_iter().for_each(|part| all.merge(part));
        all
    };
    // The rest is of traffic that goes one way.
    if search.wanted.one_way.is_empty() {
        return Ok(all(waits));
    }
    // The same with the ends of the sends that were blocked.
    let mut ends: Vec<Vec<i64>> = times.iter().map(|times| vec![NEVER; times.len()]).collect();
    for ((ends, calls), others) in ends.iter_mut().zip(search.calls).zip(search.others) {
        for (call, &other) in calls.iter().zip(others).filter(|(call, _)| call.blocking && call.waited) {
            ends[call.event as usize] = other;
        }
    }
    let mut cursor = cursor();
    message_bounds(transport, program, &ends, |channel, event, bound| {
        let blocked = cursor.find(channel, event).filter(|(of, call, _)| call.blocking && !of.late);
        let Some((of, call, posted)) = blocked else { return };
        let left = bound - of.latency;
        if left > NEVER / 2 {
            let (kind, (to, from)) = (BoundKind::blocked(call.length), of.pair);
            let bound = Bound { distance: left - posted, at: left, kind };
            waits.add(Class { from, to, kind }, bound);
        }
    })?;
    Ok(all(waits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_in_any_order_of_events() {
        let calls: Vec<WaitingCall> = [2, 3, 7, 8, 30, 31, 90]
            .map(|event| WaitingCall { event, other: 0, length: 0, blocking: true, waited: true })
            .to_vec();
        for some in [&calls[..], &calls[..1], &[]] {
            for guess in 0..=some.len() {
                for event in 0..100 {
                    let plain = some.iter().filter(|call| call.event < event).count();
                    assert_eq!(first_from(some, guess, event), plain, "{event} from {guess} of {}", some.len());
                }
            }
        }
    }
}
