//! Who happened before whom: all pairs (logical send, logical receive) of a trace, by the rules of MPI.
//!
//! Point-to-point messages match in the order in which receives were posted, as far as the records tell ([`super::channel`]);
//! collective instances by the order in which a process started them on a communicator. A pair within one process is no
//! constraint: program order holds already.

use super::channel::{Channel, Found, tracer_records_buffers};
use super::model::{EventRef, Timeline, Trace};
use clc_replay::trace::{Collective, CollectiveOp, CommId, CommMembers, Event, Message, Root};
use std::collections::BTreeMap;

/// What a constraint comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    PointToPoint,
    /// Bcast, Scatter, Scatterv.
    OneToAll,
    /// Reduce, Gather, Gatherv.
    AllToOne,
    /// Allreduce, Allgather, Allgatherv, Alltoall, Reduce_scatter, Reduce_scatter_block, Barrier; Alltoallv and
    /// Alltoallw on demand.
    AllToAll,
    /// Scan, Exscan.
    Prefix,
}

/// `receive` happened at least `latency` (mu) ticks after `send`, on another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    pub kind: Kind,
    pub send: EventRef,
    pub receive: EventRef,
    pub latency: i64,
}

/// The choices a user has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Minimum latency mu of two processes on the same node, in ticks.
    pub same_node: i64,
    /// Minimum latency mu of two processes on different nodes, in ticks.
    pub other_node: i64,
    /// Whether Alltoallv and Alltoallw count as N-to-N operations; otherwise they constrain nobody.
    pub vector_all_to_all: bool,
}

/// All that is known about the communication of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matching {
    /// All constraints, sorted.
    pub dependencies: Vec<Dependency>,
    /// All matched messages (send, receive), also those of a process to itself, sorted.
    pub messages: Vec<(EventRef, EventRef)>,
    /// Sends that come before a receive which need not be their own, sorted.
    pub implied: Vec<(EventRef, EventRef)>,
    /// Sends that no receive matches, sorted.
    pub unmatched_sends: Vec<EventRef>,
    /// Completed receives that no send matches, sorted.
    pub unmatched_receives: Vec<EventRef>,
    /// Begins and ends of the calls in instances that constrain.
    pub calls: Vec<EventRef>,
    /// Processes that took part in such an instance together.
    pub groups: Vec<Vec<usize>>,
    /// Who tells whom something in such an instance, whatever the number of bytes.
    pub tells: Vec<(usize, usize)>,
    /// Ends of collectives whose instance is not complete on all members, or whose members disagree on it, sorted.
    pub incomplete_collectives: Vec<EventRef>,
}

/// A completed receive: where it was posted, if that is known, where it was complete.
struct Receive {
    posted: Option<usize>,
    index: usize,
    message: Message,
}

/// A completed collective call of one process: where it began, where it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub begin: usize,
    pub end: usize,
    pub collective: Collective,
}

/// Finds all matches of a trace.
pub fn matching(trace: &Trace, rules: &Rules) -> Matching {
    let timelines = trace.timelines();
    let mut found = Matching::default();
    match_messages(trace, rules, &timelines, &mut found);
    match_collectives(trace, rules, &timelines, &mut found);
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
        CommMembers::Intra(members) => members.get(rank as usize).map(|&process| process as usize),
        CommMembers::SelfOnly => (rank == 0).then_some(own),
        CommMembers::Inter(..) | CommMembers::NotMpi | CommMembers::Undefined => {
            panic!("the reference knows intra-communicators only")
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
                }
                None => found.unmatched_sends.push(send),
            }
        }
        for Receive { index, message, posted } in receives {
            let receive = EventRef { process, index };
            match process_of(trace, process, message.comm, message.peer) {
                Some(peer) => {
                    let channel = channels.entry((peer, process, message.comm, message.tag)).or_default();
                    let list = if posted.is_some() { &mut channel.receives } else { &mut channel.unplaced };
                    list.push((receive, message.length));
                }
                None => found.unmatched_receives.push(receive),
            }
        }
    }
    let between_processes = channels.iter().filter(|((sender, receiver, ..), _)| sender != receiver);
    let lengths_count = !tracer_records_buffers(between_processes.map(|(_, channel)| channel));
    for ((sender, receiver, ..), channel) in channels {
        let Found { messages, implied } = if sender == receiver {
            let receives = channel.receives.iter().chain(&channel.unplaced);
            let messages = channel.sends.iter().zip(receives).map(|(send, receive)| (send.0, receive.0)).collect();
            Found { messages, implied: Vec::new() }
        } else {
            channel.find(lengths_count)
        };
        if sender != receiver {
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
            Event::Other | Event::MpiRequestTest(_) => {}
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
pub fn calls_of(timeline: &Timeline) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut begun: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut requested: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, entry) in timeline.iter().enumerate() {
        let call = |begin: Option<usize>, collective| begin.map(|begin| Call { begin, end: index, collective });
        match entry.event {
            Event::MpiCollectiveBegin => begun.entry(entry.location).or_default().push(index),
            Event::NonBlockingCollectiveRequest(request) => {
                requested.insert(request, index);
            }
            Event::MpiRequestCancelled(request) => {
                requested.remove(&request);
            }
            Event::MpiCollectiveEnd(collective) => {
                calls.extend(call(begun.entry(entry.location).or_default().pop(), collective));
            }
            Event::NonBlockingCollectiveComplete(collective, request) => {
                calls.extend(call(requested.remove(&request), collective));
            }
            _ => {}
        }
    }
    calls.sort_by_key(|call| call.begin);
    calls
}

/// The k-th call of every member on a communicator is the k-th instance.
fn match_collectives(trace: &Trace, rules: &Rules, timelines: &[Timeline], found: &mut Matching) {
    let calls: Vec<Vec<Call>> = timelines.iter().map(calls_of).collect();
    for communicator in &trace.communicators {
        let CommMembers::Intra(members) = &communicator.members else { continue };
        let of_member = |&process: &u32| -> Vec<Call> {
            let on_it = |call: &&Call| call.collective.comm == communicator.id;
            calls[process as usize].iter().filter(on_it).copied().collect()
        };
        let sequences: Vec<Vec<Call>> = members.iter().map(of_member).collect();
        let complete = sequences.iter().map(Vec::len).min().unwrap_or(0);
        // From the first instance on in which the members did different things, nobody knows what belongs together.
        let same = |k: &usize| {
            let what = |sequence: &Vec<Call>| (sequence[*k].collective.op, sequence[*k].collective.root);
            sequences.windows(2).all(|pair| what(&pair[0]) == what(&pair[1]))
        };
        let complete = (0..complete).take_while(same).count();
        for k in 0..complete {
            let instance: Vec<Call> = sequences.iter().map(|sequence| sequence[k]).collect();
            match constraints(trace, rules, members, &instance) {
                Some(pairs) => {
                    found.dependencies.extend(pairs);
                    let op = instance.first().map(|call| call.collective.op);
                    if members.len() > 1 && op.is_some_and(|op| class(op, rules).is_some()) {
                        for (&process, call) in members.iter().zip(&instance) {
                            let event = |index| EventRef { process: process as usize, index };
                            found.calls.extend([call.begin, call.end].map(event));
                        }
                        found.groups.push(members.iter().map(|&process| process as usize).collect());
                        let (kind, root) = (op.and_then(|op| class(op, rules)), instance[0].collective.root);
                        found.tells.extend(tells(kind, rank_of(root, members), members));
                    }
                }
                None => found.incomplete_collectives.extend(members.iter().zip(&instance).map(end)),
            }
        }
        for (member, sequence) in members.iter().zip(&sequences) {
            found.incomplete_collectives.extend(sequence[complete..].iter().map(|call| end((member, call))));
        }
    }
}

/// The end of a member's call.
fn end((member, call): (&u32, &Call)) -> EventRef {
    EventRef { process: *member as usize, index: call.end }
}

/// The constraints of one instance; `None` if its members disagree on the operation or the root.
fn constraints(trace: &Trace, rules: &Rules, members: &[u32], instance: &[Call]) -> Option<Vec<Dependency>> {
    let op = instance.first()?.collective.op;
    let root = instance.first()?.collective.root;
    if instance.iter().any(|call| (call.collective.op, call.collective.root) != (op, root)) {
        return None;
    }
    let ranks = 0..members.len();
    let mu = |from: usize, to: usize| latency(trace, rules, members[from] as usize, members[to] as usize);
    let sends = |rank: usize| op == CollectiveOp::BARRIER || instance[rank].collective.sent > 0;
    let receives = |rank: usize| op == CollectiveOp::BARRIER || instance[rank].collective.received > 0;
    let pair = |kind: Kind, from: usize, to: usize, latency: i64| Dependency {
        kind,
        send: EventRef { process: members[from] as usize, index: instance[from].begin },
        receive: EventRef { process: members[to] as usize, index: instance[to].end },
        latency,
    };
    let kind = class(op, rules);
    let mut pairs = Vec::new();
    match kind {
        None | Some(Kind::PointToPoint) => {}
        Some(Kind::OneToAll) => {
            let root = rank_of(root, members)?;
            for to in ranks.filter(|&to| to != root && sends(root) && receives(to)) {
                pairs.push(pair(Kind::OneToAll, root, to, mu(root, to)));
            }
        }
        Some(Kind::AllToOne) => {
            let root = rank_of(root, members)?;
            let others = || ranks.clone().filter(|&from| from != root);
            let least = others().map(|from| mu(from, root)).min();
            for from in others().filter(|&from| sends(from) && receives(root)) {
                pairs.push(pair(Kind::AllToOne, from, root, least?));
            }
        }
        Some(kind @ (Kind::AllToAll | Kind::Prefix)) => {
            let distinct = || ranks.clone().flat_map(|a| ranks.clone().map(move |b| (a, b))).filter(|(a, b)| a != b);
            let least = distinct().map(|(a, b)| mu(a, b)).min();
            for (from, to) in distinct().filter(|&(from, to)| sends(from) && receives(to)) {
                if kind == Kind::AllToAll || from < to {
                    pairs.push(pair(kind, from, to, least?));
                }
            }
        }
    }
    Some(pairs)
}

/// Who tells whom something by an operation of this class.
fn tells(kind: Option<Kind>, root: Option<usize>, members: &[u32]) -> Vec<(usize, usize)> {
    let ranks = 0..members.len();
    let pairs = ranks.clone().flat_map(|from| ranks.clone().map(move |to| (from, to)));
    let told = |&(from, to): &(usize, usize)| match kind {
        Some(Kind::OneToAll) => root == Some(from),
        Some(Kind::AllToOne) => root == Some(to),
        Some(Kind::AllToAll) => true,
        Some(Kind::Prefix) => from < to,
        Some(Kind::PointToPoint) | None => false,
    };
    pairs.filter(told).map(|(from, to)| (members[from] as usize, members[to] as usize)).collect()
}

/// A root as a rank of an intra-communicator.
fn rank_of(root: Root, members: &[u32]) -> Option<usize> {
    match root {
        Root::Rank(rank) if (rank as usize) < members.len() => Some(rank as usize),
        _ => None,
    }
}

/// The class of an operation; `None` for those that synchronise nobody.
fn class(op: CollectiveOp, rules: &Rules) -> Option<Kind> {
    match op {
        CollectiveOp::BCAST | CollectiveOp::SCATTER | CollectiveOp::SCATTERV => Some(Kind::OneToAll),
        CollectiveOp::REDUCE | CollectiveOp::GATHER | CollectiveOp::GATHERV => Some(Kind::AllToOne),
        CollectiveOp::BARRIER
        | CollectiveOp::ALLREDUCE
        | CollectiveOp::ALLGATHER
        | CollectiveOp::ALLGATHERV
        | CollectiveOp::ALLTOALL
        | CollectiveOp::REDUCE_SCATTER
        | CollectiveOp::REDUCE_SCATTER_BLOCK => Some(Kind::AllToAll),
        CollectiveOp::ALLTOALLV | CollectiveOp::ALLTOALLW => rules.vector_all_to_all.then_some(Kind::AllToAll),
        CollectiveOp::SCAN | CollectiveOp::EXSCAN => Some(Kind::Prefix),
        _ => None,
    }
}
