//! Collective instances, and what they constrain.

use super::super::halves::{Halves, settle};
use super::super::uneven::{Compared, numbered};
use super::*;

/// Where calls meet: a communicator, or a window.
struct Place {
    /// Of an inter-communicator both groups, one after the other.
    members: Vec<MpiRank>,
    /// Of an inter-communicator: how many members the first group has; else 0.
    first: usize,
    /// What each member called there.
    sequences: Vec<Vec<Call>>,
    /// So many of the calls have the same number with all members.
    numbered: usize,
}

impl Place {
    /// Whether one member can constrain another: on an inter-communicator, if it is in the other group.
    fn apart(&self, a: usize, b: usize) -> bool {
        a != b && (self.first == 0 || (a < self.first) != (b < self.first))
    }

    /// What the members say about the root of the k-th instance, as a rank among all members; `Err` if they contradict each other, or about
    /// the operation.
    fn root(&self, k: usize) -> Result<Root, ()> {
        let calls: Vec<Collective> = self.sequences.iter().map(|sequence| sequence[k].collective).collect();
        if calls.windows(2).any(|pair| pair[0].op != pair[1].op) {
            return Err(());
        }
        if self.first == 0 {
            let same = calls.windows(2).all(|pair| pair[0].root == pair[1].root);
            return if same { Ok(calls[0].root) } else { Err(()) };
        }
        let in_first = |rank: usize| rank < self.first;
        let named = |(rank, call): (usize, &Collective)| match call.root {
            Root::Rank(other) => Some(other as usize + if in_first(rank) { self.first } else { 0 }),
            Root::ThisProcess => Some(rank),
            Root::OwnGroup | Root::None => None,
        };
        let roots: Vec<usize> = calls.iter().enumerate().filter_map(named).collect();
        let Some(&root) = roots.first() else {
            let of_group = |first: bool| {
                calls.iter().enumerate().any(|(rank, call)| call.root == Root::OwnGroup && in_first(rank) == first)
            };
            return if of_group(true) && of_group(false) { Err(()) } else { Ok(Root::None) };
        };
        let own = calls.iter().enumerate().filter(|(_, call)| call.root == Root::OwnGroup);
        let agree = roots.iter().all(|other| *other == root)
            && own.into_iter().all(|(rank, _)| in_first(rank) == in_first(root));
        if agree { Ok(Root::Rank(root as u32)) } else { Err(()) }
    }
}

/// Everywhere that calls of the processes meet.
fn places(trace: &Trace, rules: &Rules, timelines: &[Timeline]) -> Vec<Place> {
    let calls: Vec<RecordedCalls> = timelines.iter().map(|timeline| recorded(timeline, rules.handles)).collect();
    let only_begins = calls.iter().all(|calls| calls.ends.is_empty()) && !windows::end_alone(trace, timelines);
    let mut places = Vec::new();
    for communicator in &trace.communicators {
        let (members, first) = match &communicator.members {
            CommMembers::Intra(members) => (members.to_vec(), 0),
            CommMembers::Inter(a, b) => ([&a[..], &b[..]].concat(), a.len()),
            CommMembers::SelfOnly | CommMembers::NotMpi | CommMembers::Undefined => continue,
        };
        let of_member = |&process: &MpiRank| -> Vec<Call> {
            let on_it = |call: &&Call| call.collective.comm == communicator.id;
            calls[process].calls.iter().filter(on_it).copied().collect()
        };
        let half = |&process: &MpiRank| Halves {
            ends: calls[process].ends.iter().filter(|end| end.0 == communicator.id).map(|end| end.1).collect(),
            begins: calls[process].begins.clone(),
        };
        let mut sequences: Vec<Vec<Call>> = members.iter().map(of_member).collect();
        let halves: Vec<Halves> = members.iter().map(half).collect();
        let settled = settle(&mut sequences, &halves, |call| (call.begin, call.end), only_begins);
        let mut place = Place { members, first, sequences, numbered: settled };
        if first == 0 {
            place.numbered = place.numbered.min(even(trace, rules, &place, timelines));
        }
        places.push(place);
    }
    for window in &trace.windows {
        let Some(CommMembers::Intra(members)) = trace.members(window.comm) else { continue };
        let (sequences, numbered) = windows::calls_on(window.id, timelines, members, (rules.fences, only_begins));
        places.push(Place { members: members.to_vec(), first: 0, sequences, numbered });
    }
    places
}

/// How many calls have the same number with all members of a communicator, who have perhaps recorded different numbers of them.
fn even(trace: &Trace, rules: &Rules, place: &Place, timelines: &[Timeline]) -> usize {
    let time = |event: EventRef| timelines[event.process][event.index].time;
    let compared = |member: &MpiRank, call: &Call| {
        let (process, Collective { op, root, sent, received, .. }) = (member.place(), call.collective);
        let at = |index| time(EventRef { process, index });
        let root = match (class(op, rules), root) {
            (Some(Kind::OneToAll | Kind::AllToOne), Root::Rank(rank)) => rank + 1,
            _ => 0,
        };
        let all_wait = class(op, rules) == Some(Kind::AllToAll) && (is_barrier(op) || sent > 0 && received > 0);
        Compared { kind: (op.0, root), begin: at(call.begin), end: at(call.end), all_wait }
    };
    let list = |(member, calls): (&MpiRank, &Vec<Call>)| calls.iter().map(|call| compared(member, call)).collect();
    let lists: Vec<Vec<Compared>> = place.members.iter().zip(&place.sequences).map(list).collect();
    let violated = |k: usize| {
        let Ok(root) = place.root(k) else { return false };
        let instance: Vec<Call> = place.sequences.iter().map(|sequence| sequence[k]).collect();
        let pairs = constraints(trace, rules, place, root, &instance).unwrap_or_default();
        pairs.iter().any(|pair| time(pair.send) > time(pair.receive))
    };
    numbered(&lists, violated)
}

/// Whether an operation has no data.
fn is_barrier(op: CollectiveOp) -> bool {
    matches!(op, CollectiveOp::BARRIER | windows::ASSUMED | CollectiveOp::CREATE_HANDLE_OF_ALL)
}

/// The k-th call of every member on a communicator or window is the k-th instance.
pub(super) fn match_collectives(trace: &Trace, rules: &Rules, timelines: &[Timeline], found: &mut Matching) {
    for place in places(trace, rules, timelines) {
        let Place { members, sequences, .. } = &place;
        let complete = place.numbered;
        // From the first instance on in which the members did different things, nobody knows what belongs together.
        let complete = (0..complete).take_while(|&k| place.root(k).is_ok()).count();
        for k in 0..complete {
            let instance: Vec<Call> = sequences.iter().map(|sequence| sequence[k]).collect();
            let root = place.root(k).unwrap();
            if found.no_barriers.contains(&end((&members[0], &instance[0]))) {
                continue;
            }
            match constraints(trace, rules, &place, root, &instance) {
                Some(pairs) => {
                    found.dependencies.extend(pairs.iter().copied());
                    let op = instance.first().map(|call| call.collective.op);
                    let between_groups = place.first > 0 && op.is_some_and(|op| class(op, rules) == Some(Kind::Prefix));
                    if members.len() > 1 && op.is_some_and(|op| class(op, rules).is_some()) && !between_groups {
                        for (&process, call) in members.iter().zip(&instance) {
                            let event = |index| EventRef { process: process.place(), index };
                            found.calls.extend([call.begin, call.end].map(event));
                        }
                        let first = end((&members[0], &instance[0]));
                        found.instances.push(Instance { assumed: op == Some(windows::ASSUMED), first, pairs });
                        found.groups.push(members.iter().map(|process| process.place()).collect());
                        let kind = op.and_then(|op| class(op, rules));
                        found.tells.extend(tells(kind, rank_of(root, members), &place));
                    }
                }
                None => found.incomplete_collectives.extend(members.iter().zip(&instance).map(end)),
            }
        }
        for (member, sequence) in members.iter().zip(sequences) {
            found.incomplete_collectives.extend(sequence[complete..].iter().map(|call| end((member, call))));
        }
    }
}

/// The end of a member's call.
fn end((member, call): (&MpiRank, &Call)) -> EventRef {
    EventRef { process: member.place(), index: call.end }
}

/// The constraints of one instance with this root; `None` if it needs one that it does not have.
fn constraints(trace: &Trace, rules: &Rules, place: &Place, root: Root, instance: &[Call]) -> Option<Vec<Dependency>> {
    let op = instance.first()?.collective.op;
    let members = &place.members[..];
    let ranks = 0..members.len();
    let mu = |from: usize, to: usize| latency(trace, rules, members[from].place(), members[to].place());
    let barrier = is_barrier(op);
    let sends = |rank: usize| barrier || instance[rank].collective.sent > 0;
    let receives = |rank: usize| barrier || instance[rank].collective.received > 0;
    let pair = |kind: Kind, from: usize, to: usize, latency: i64| Dependency {
        kind,
        send: EventRef { process: members[from].place(), index: instance[from].begin },
        receive: EventRef { process: members[to].place(), index: instance[to].end },
        latency,
    };
    let kind = class(op, rules);
    let mut pairs = Vec::new();
    match kind {
        None | Some(Kind::PointToPoint | Kind::Acknowledge | Kind::Group) => {}
        Some(Kind::OneToAll) => {
            let root = rank_of(root, members)?;
            for to in ranks.filter(|&to| place.apart(root, to) && sends(root) && receives(to)) {
                pairs.push(pair(Kind::OneToAll, root, to, mu(root, to)));
            }
        }
        Some(Kind::AllToOne) => {
            let root = rank_of(root, members)?;
            let others = || ranks.clone().filter(|&from| from != root);
            let least = others().map(|from| mu(from, root)).min();
            for from in others().filter(|&from| place.apart(from, root) && sends(from) && receives(root)) {
                pairs.push(pair(Kind::AllToOne, from, root, least?));
            }
        }
        Some(kind @ (Kind::AllToAll | Kind::Prefix)) => {
            let distinct = || ranks.clone().flat_map(|a| ranks.clone().map(move |b| (a, b))).filter(|(a, b)| a != b);
            let least = distinct().map(|(a, b)| mu(a, b)).min();
            let both = distinct().filter(|&(from, to)| sends(from) && receives(to));
            for (from, to) in both.filter(|&(from, to)| place.apart(from, to)) {
                if kind == Kind::AllToAll || (from < to && place.first == 0) {
                    pairs.push(pair(kind, from, to, least?));
                }
            }
        }
    }
    Some(pairs)
}

/// Who tells whom something by an operation of this class.
fn tells(kind: Option<Kind>, root: Option<usize>, place: &Place) -> Vec<(usize, usize)> {
    let members = &place.members[..];
    let ranks = 0..members.len();
    let pairs = ranks.clone().flat_map(|from| ranks.clone().map(move |to| (from, to)));
    let told = |&(from, to): &(usize, usize)| match kind {
        Some(Kind::OneToAll) => root == Some(from) && place.apart(from, to),
        Some(Kind::AllToOne) => root == Some(to) && place.apart(from, to),
        Some(Kind::AllToAll) => place.apart(from, to),
        Some(Kind::Prefix) => from < to,
        Some(Kind::PointToPoint | Kind::Acknowledge | Kind::Group) | None => false,
    };
    pairs.filter(told).map(|(from, to)| (members[from].place(), members[to].place())).collect()
}

/// A root as a rank of an intra-communicator.
fn rank_of(root: Root, members: &[MpiRank]) -> Option<usize> {
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
        | windows::ASSUMED
        | CollectiveOp::ALLREDUCE
        | CollectiveOp::ALLGATHER
        | CollectiveOp::ALLGATHERV
        | CollectiveOp::ALLTOALL
        | CollectiveOp::REDUCE_SCATTER
        | CollectiveOp::REDUCE_SCATTER_BLOCK
        | CollectiveOp::CREATE_HANDLE_OF_ALL => Some(Kind::AllToAll),
        CollectiveOp::ALLTOALLV | CollectiveOp::ALLTOALLW => rules.vector_all_to_all.then_some(Kind::AllToAll),
        CollectiveOp::SCAN | CollectiveOp::EXSCAN => Some(Kind::Prefix),
        _ => None,
    }
}
