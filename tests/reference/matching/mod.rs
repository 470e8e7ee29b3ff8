//! Who happened before whom: all pairs (logical send, logical receive) of a trace, by the rules of MPI.
//!
//! Point-to-point messages match in the order in which receives were posted, as far as the records tell ([`super::channel`]);
//! collective instances by the order in which a process started them on a communicator. A pair within one process is no
//! constraint: program order holds already.

mod collectives;

use super::calls;
use super::channel::{Channel, Found, tracer_records_buffers};
use super::halves::LoneEnd;
use super::model::{EventRef, Timeline, Trace};
use super::windows;
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::{Collective, CollectiveOp, CommId, CommMembers, Event, Message, MpiRank, Root};
use std::collections::{BTreeMap, BTreeSet};

/// What a constraint comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    PointToPoint,
    /// A receive is posted, its synchronous send is over.
    Acknowledge,
    /// Post, start, complete, wait.
    Group,
    /// Bcast, Scatter, Scatterv.
    OneToAll,
    /// Reduce, Gather, Gatherv.
    AllToOne,
    /// Allreduce, Allgather, Allgatherv, Alltoall, Reduce_scatter, Reduce_scatter_block, Barrier; Alltoallv and
    /// Alltoallw, and making communicators together, on demand.
    AllToAll,
    /// Scan, Exscan.
    Prefix,
}

/// `receive` happened at least `latency` (mu) ticks after `send`, on another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dependency {
    pub kind: Kind,
    pub send: EventRef,
    pub receive: EventRef,
    pub latency: i64,
}

/// The choices a user has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Minimum latency mu of two processes on the same node, in ticks.
    pub same_node: i64,
    /// Minimum latency mu of two processes on different nodes, in ticks.
    pub other_node: i64,
    /// Whether Alltoallv and Alltoallw count as N-to-N operations; otherwise they constrain nobody.
    pub vector_all_to_all: bool,
    /// Which fences are barriers.
    pub fences: Fences,
    /// Whether all members of a communicator wait for each other in a call by which they make another one of it.
    pub handles: bool,
}

/// All that is known about the communication of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Matching {
    /// All constraints, sorted.
    pub dependencies: Vec<Dependency>,
    /// All matched messages (send, receive), also those of a process to itself, sorted.
    pub messages: Vec<(EventRef, EventRef)>,
    /// Sends that come before a receive which need not be their own, sorted.
    pub implied: Vec<(EventRef, EventRef)>,
    /// Pairs of other orders between two processes, sorted.
    pub orders: Vec<(EventRef, EventRef)>,
    /// Sends that no receive matches, sorted.
    pub unmatched_sends: Vec<EventRef>,
    /// Completed receives that no send matches, sorted.
    pub unmatched_receives: Vec<EventRef>,
    /// Begins and ends of the calls in instances that constrain.
    pub calls: Vec<EventRef>,
    /// Those instances.
    pub instances: Vec<Instance>,
    /// Fences without operations that are no barriers, by their first ends.
    pub no_barriers: BTreeSet<EventRef>,
    /// Processes that took part in such an instance together.
    pub groups: Vec<Vec<usize>>,
    /// Who tells whom something in such an instance, whatever the number of bytes.
    pub tells: Vec<(usize, usize)>,
    /// Ends of collectives whose instance is not complete on all members, or whose members disagree on it, sorted.
    pub incomplete_collectives: Vec<EventRef>,
}

/// An instance that constrains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    /// A fence without operations.
    pub assumed: bool,
    /// The end of its first member.
    pub first: EventRef,
    /// What it constrains.
    pub pairs: Vec<Dependency>,
}

/// A completed receive: where it was posted, if that is known, where it was complete.
struct Receive {
    posted: Option<usize>,
    index: usize,
    message: Message,
}

/// A completed collective call of one process: where it began, where it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub begin: usize,
    pub end: usize,
    pub collective: Collective,
}

/// Finds all matches of a trace. Fences without operations that are all that is violated are no barriers, unless they are more than what holds.
pub(crate) fn matching(trace: &Trace, rules: &Rules) -> Matching {
    let found = matching_without(trace, rules, BTreeSet::new());
    let times = trace.times();
    let violated = |pair: &Dependency| {
        times[pair.receive.process][pair.receive.index] - times[pair.send.process][pair.send.index] < pair.latency
    };
    let broken = |instance: &&Instance| instance.pairs.iter().any(violated);
    let fences: BTreeSet<EventRef> =
        found.instances.iter().filter(|instance| instance.assumed).filter(broken).map(|fence| fence.first).collect();
    let single = |pair: &&Dependency| matches!(pair.kind, Kind::PointToPoint | Kind::Acknowledge | Kind::Group);
    let singles = || found.dependencies.iter().filter(single);
    let others = singles().filter(|pair| violated(pair)).count()
        + found.instances.iter().filter(|instance| !instance.assumed).filter(broken).count();
    let hold = singles().filter(|pair| !violated(pair)).count()
        + found.instances.iter().filter(|instance| !broken(instance)).count();
    if rules.fences == Fences::Auto && others == 0 && !fences.is_empty() && fences.len() <= hold {
        return matching_without(trace, rules, fences);
    }
    found
}

/// The same, with these fences known to be no barriers.
fn matching_without(trace: &Trace, rules: &Rules, no_barriers: BTreeSet<EventRef>) -> Matching {
    let timelines = trace.timelines();
    let mut found = Matching { no_barriers, ..Matching::default() };
    match_messages(trace, rules, &timelines, &mut found);
    match_steps(trace, rules, &timelines, &mut found);
    collectives::match_collectives(trace, rules, &timelines, &mut found);
    found.orders.sort_unstable();
    found.dependencies.sort_unstable();
    found.messages.sort_unstable();
    found.implied.sort_unstable();
    found.unmatched_sends.sort_unstable();
    found.unmatched_receives.sort_unstable();
    found.incomplete_collectives.sort_unstable();
    found
}

/// Minimum latency of one pair of processes.
fn latency(trace: &Trace, rules: &Rules, a: usize, b: usize) -> i64 {
    if trace.processes[a].node == trace.processes[b].node { rules.same_node } else { rules.other_node }
}

/// The process that has `rank` in `comm`, seen from process `own`.
fn process_of(trace: &Trace, own: usize, comm: CommId, rank: u32) -> Option<usize> {
    match trace.members(comm)? {
        CommMembers::Intra(members) => members.get(rank as usize).map(|process| process.place()),
        CommMembers::SelfOnly => (rank == 0).then_some(own),
        CommMembers::Inter(..) | CommMembers::NotMpi | CommMembers::Undefined => {
            panic!("the reference knows messages on intra-communicators only")
        }
    }
}

/// Everything that is known of each (sender, receiver, communicator, tag).
fn match_messages(trace: &Trace, rules: &Rules, timelines: &[Timeline], found: &mut Matching) {
    let mut channels: BTreeMap<(usize, usize, CommId, u32), Channel<EventRef>> = BTreeMap::new();
    for (process, timeline) in timelines.iter().enumerate() {
        let (sends, receives) = messages_of(timeline);
        for (index, message) in sends {
            let send = EventRef { process, index };
            match process_of(trace, process, message.comm, message.peer) {
                Some(peer) => {
                    let channel = channels.entry((process, peer, message.comm, message.tag)).or_default();
                    channel.sends.push((send, message.length));
                    channel.sent.push((timeline[index].time, timeline[index].location));
                }
                None => found.unmatched_sends.push(send),
            }
        }
        for Receive { index, message, posted } in receives {
            let receive = EventRef { process, index };
            match process_of(trace, process, message.comm, message.peer) {
                Some(peer) => {
                    let channel = channels.entry((peer, process, message.comm, message.tag)).or_default();
                    let at = (timeline[index].time, timeline[index].location);
                    if posted.is_some() {
                        channel.received.insert(channel.receives.len(), at);
                        channel.receives.push((receive, message.length));
                    } else {
                        channel.received.push(at);
                        channel.unplaced.push((receive, message.length));
                    }
                }
                None => found.unmatched_receives.push(receive),
            }
        }
    }
    let between_processes = channels.iter().filter(|((sender, receiver, ..), _)| sender != receiver);
    let lengths_count = !tracer_records_buffers(between_processes.map(|(_, channel)| channel));
    let in_order = !channels
        .iter()
        .any(|((sender, receiver, ..), channel)| sender != receiver && channel.is_called_in_wrong_order());
    for ((sender, receiver, ..), channel) in channels {
        let Found { messages, implied } = if sender == receiver {
            let receives = channel.receives.iter().chain(&channel.unplaced);
            let messages = channel.sends.iter().zip(receives).map(|(send, receive)| (send.0, receive.0)).collect();
            Found { messages, implied: Vec::new() }
        } else {
            channel.find(lengths_count, in_order)
        };
        if sender != receiver {
            let ends = calls::ends_of(&timelines[sender]);
            let posts = calls::posts_of(&timelines[receiver]);
            let known = |(send, receive): &(EventRef, EventRef)| (posts.get(&receive.index), ends.get(&send.index));
            let mut acknowledged: Vec<(Option<&usize>, Option<&usize>)> = messages.iter().map(known).collect();
            if channel.is_shared() {
                // Of threads the k-th end of a synchronous send is after the k-th posting.
                acknowledged = if in_order { channel.in_order_of_threads(acknowledged) } else { Vec::new() };
            }
            for (post, end) in acknowledged.into_iter().filter_map(|(post, end)| post.zip(end)) {
                let (send, receive) =
                    (EventRef { process: receiver, index: *post }, EventRef { process: sender, index: *end });
                let latency = latency(trace, rules, receiver, sender);
                found.dependencies.push(Dependency { kind: Kind::Acknowledge, send, receive, latency });
                found.orders.push((send, receive));
            }
            let latency = latency(trace, rules, sender, receiver);
            for &(send, receive) in messages.iter().chain(&implied) {
                found.dependencies.push(Dependency { kind: Kind::PointToPoint, send, receive, latency });
            }
        }
        let receives = channel.receives.iter().chain(&channel.unplaced).map(|(receive, _)| *receive);
        let sends = channel.sends.iter().map(|(send, _)| *send);
        found.unmatched_sends.extend(sends.filter(|send| messages.iter().all(|message| message.0 != *send)));
        found
            .unmatched_receives
            .extend(receives.filter(|receive| messages.iter().all(|message| message.1 != *receive)));
        found.messages.extend(messages);
        found.implied.extend(implied);
    }
}

/// The k-th step of one process on a window is the k-th of the other; where one has made more, the last ones of those who wait, and the first ones of those
/// who are waited for, are ordered all the same.
fn match_steps(trace: &Trace, rules: &Rules, timelines: &[Timeline], found: &mut Matching) {
    for ((from, to, ..), (mut sends, mut receives)) in calls::steps(trace, timelines) {
        sends.sort_unstable();
        receives.sort_unstable();
        let both = sends.len().min(receives.len());
        let event = |(process, index): (usize, usize)| EventRef { process, index };
        let latency = latency(trace, rules, from, to);
        let first_receive = receives.len() - both;
        for (send, receive) in sends.into_iter().zip(receives.split_off(first_receive)) {
            let (send, receive) = (event(send), event(receive));
            found.dependencies.push(Dependency { kind: Kind::Group, send, receive, latency });
            found.orders.push((send, receive));
        }
    }
}

/// The sends of one process in program order, and its completed receives in the order in which they were posted.
///
/// A request lives from its first record to its completion or cancellation; then its id is free for another one. A
/// cancelled request was no communication. A receive without a completion is left out, a send without one is a send.
/// A request id that is used again while still open leaves the older request without completion. Of a completion whose
/// request was not recorded nobody knows when it was posted.
///
/// A blocking receive is posted where the call was entered: the innermost region that is open on its location. If the location
/// did anything else of communication in that region but send, the region is not that of the call, and the receive counts as posted by itself.
fn messages_of(timeline: &Timeline) -> (Vec<(usize, Message)>, Vec<Receive>) {
    let mut sends: Vec<(usize, Message)> = Vec::new();
    let mut receives = Vec::new();
    let (mut sending, mut receiving): (BTreeMap<u64, usize>, BTreeMap<u64, usize>) = Default::default();
    // By location: where its open regions were entered, and whether it has communicated in them.
    let mut regions: BTreeMap<usize, Vec<(usize, bool)>> = BTreeMap::new();
    for (index, entry) in timeline.iter().enumerate() {
        let inside = regions.entry(entry.location).or_default();
        let call = inside.last().filter(|(_, used)| !used).map_or(index, |(entered, _)| *entered);
        match entry.event {
            Event::Enter(_) => inside.push((index, false)),
            Event::Leave(_) => drop(inside.pop()),
            Event::Other
            | Event::MpiRequestTest(_)
            | Event::Thread(_)
            | Event::Parameter(_)
            | Event::RmaOpCompleteBlocking(..) => {}
            Event::MpiSend(_) | Event::MpiIsend(..) | Event::MpiIsendComplete(_) => {}
            _ => inside.iter_mut().for_each(|region| region.1 = true),
        }
        match entry.event {
            Event::MpiSend(message) => sends.push((index, message)),
            Event::MpiIsend(message, request) => {
                sends.push((index, message));
                sending.insert(request, index);
            }
            Event::MpiIsendComplete(request) => {
                sending.remove(&request);
            }
            Event::MpiIrecvRequest(request) => {
                receiving.insert(request, index);
            }
            Event::MpiIrecv(message, request) => {
                receives.push(Receive { posted: receiving.remove(&request), index, message });
            }
            Event::MpiRequestCancelled(request) => {
                receiving.remove(&request);
                let cancelled = sending.remove(&request);
                sends.retain(|&(send, _)| Some(send) != cancelled);
            }
            Event::MpiRecv(message) => receives.push(Receive { posted: Some(call), index, message }),
            _ => {}
        }
    }
    receives.sort_by_key(|receive| receive.posted);
    (sends, receives)
}

/// The completed collective calls of one process, in the order in which they began.
///
/// Blocking calls nest on a location at most (an end belongs to the last open begin of its location); non-blocking
/// ones are paired by request. A call without end, or an end without begin, takes part in nothing.
pub(crate) fn calls_of(timeline: &Timeline) -> Vec<Call> {
    recorded(timeline, false).calls
}

/// Collective calls of one process, whole and half.
struct RecordedCalls {
    calls: Vec<Call>,
    ends: Vec<(CommId, LoneEnd)>,
    begins: Vec<usize>,
}

/// The same; with `handles`, those that make communicators by all members of another one are operations of their own.
fn recorded(timeline: &Timeline, handles: bool) -> RecordedCalls {
    let made = if handles { calls::made_by_all(timeline) } else { BTreeSet::new() };
    let (mut calls, mut ends, mut begins): (Vec<Call>, _, Vec<usize>) = (Vec::new(), Vec::new(), Vec::new());
    let mut begun: BTreeMap<usize, usize> = BTreeMap::new();
    let mut requested: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, entry) in timeline.iter().enumerate() {
        let mut call = |begin: Option<usize>, collective: Collective, immediate: bool| match begin {
            Some(begin) => calls.push(Call { begin, end: index, collective }),
            None => ends.push((collective.comm, LoneEnd { index, immediate })),
        };
        match entry.event {
            Event::MpiCollectiveBegin => begins.extend(begun.insert(entry.location, index)),
            Event::NonBlockingCollectiveRequest(request) => {
                begins.extend(requested.insert(request, index));
            }
            Event::MpiRequestCancelled(request) => {
                begins.extend(requested.remove(&request));
            }
            Event::MpiCollectiveEnd(mut collective) => {
                if collective.op == CollectiveOp::CREATE_HANDLE && made.contains(&index) {
                    collective.op = CollectiveOp::CREATE_HANDLE_OF_ALL;
                }
                call(begun.remove(&entry.location), collective, false);
            }
            Event::NonBlockingCollectiveComplete(collective, request) => {
                call(requested.remove(&request), collective, true);
            }
            _ => {}
        }
    }
    calls.sort_by_key(|call| call.begin);
    begins.extend(begun.into_values().chain(requested.into_values()));
    begins.sort_unstable();
    RecordedCalls { calls, ends, begins }
}
