//! Collective operations: who waits for whom, how long it takes, and the byte counts that a tracer records.

use super::messages::NOBODY;
use super::{BlockedOn, CollectiveCall, Engine};
use crate::sink::EventSink;
use clc_trace::{CollectiveOp, MpiRank};
use std::collections::VecDeque;

/// One member's part in an instance of a collective.
#[derive(Debug, Clone, Copy)]
struct JoinedMember {
    call: CollectiveCall,
    /// The open request of a non-blocking call, [`NOBODY`] for a blocking one.
    request: u32,
    begin: i64,
}

/// A collective that not all members have joined yet.
#[derive(Debug, Default)]
struct OpenInstance {
    members: Vec<Option<JoinedMember>>,
    joined: usize,
}

/// A communicator and its open collectives, in the order in which the members call them.
#[derive(Debug)]
pub(super) struct CommState {
    /// Processes by rank; empty for MPI_COMM_SELF.
    members: Vec<MpiRank>,
    /// How many of them are the first group of an inter-communicator.
    first_group: Option<usize>,
    several_nodes: bool,
    /// Number of collectives that each member has called.
    called: Vec<u64>,
    /// Number of the first instance in `open`.
    first: u64,
    open: VecDeque<OpenInstance>,
    /// Instances to be used again, so that no memory is allocated per collective.
    spare: Vec<OpenInstance>,
}

impl CommState {
    pub(super) fn new(members: Vec<MpiRank>, first_group: Option<usize>, nodes: &[u32]) -> Self {
        let node = |process: &MpiRank| nodes.get(process.place()).copied();
        let several_nodes = members.iter().any(|member| node(member) != members.first().and_then(node));
        let called = vec![0; members.len()];
        CommState { members, first_group, several_nodes, called, first: 0, open: VecDeque::new(), spare: Vec::new() }
    }
}

impl<S: EventSink + ?Sized> Engine<'_, S> {
    /// A member begins a collective now. When it is the last one, all ends are known and waiting members wake up.
    pub(super) fn join(&mut self, rank: usize, call: &CollectiveCall, request: u32) {
        let begin = self.processes[rank].now;
        let comm = &mut self.comms[call.comm as usize];
        let member = JoinedMember { call: *call, request, begin };
        if comm.members.is_empty() {
            self.end(rank, &member, begin);
            return;
        }
        let size = comm.members.len();
        let own = call.rank as usize;
        let number = (comm.called[own] - comm.first) as usize;
        comm.called[own] += 1;
        while comm.open.len() <= number {
            let mut instance = comm.spare.pop().unwrap_or_default();
            instance.members.clear();
            instance.members.resize(size, None);
            instance.joined = 0;
            comm.open.push_back(instance);
        }
        let instance = &mut comm.open[number];
        instance.members[own] = Some(member);
        instance.joined += 1;
        // Members join in the same order, so the first open instance is always the first to be complete.
        if instance.joined == size
            && let Some(instance) = comm.open.pop_front()
        {
            comm.first += 1;
            self.complete_collective(call.comm as usize, &instance);
            self.comms[call.comm as usize].spare.push(instance);
        }
    }

    /// Computes the ends of all members: nobody leaves before the data of everyone it needs has arrived.
    fn complete_collective(&mut self, comm: usize, instance: &OpenInstance) {
        let state = &self.comms[comm];
        let several_nodes = state.several_nodes;
        let hops = usize::BITS - (state.members.len() - 1).leading_zeros();
        let groups = state.first_group.map(|first| {
            let (first, second) = instance.members.split_at(first);
            [second, first].map(|others| others.iter().flatten().map(|member| member.begin).max())
        });
        let first_group = state.first_group.unwrap_or(0);
        let needs = NeededBegins::of(instance);
        let mut before = None;
        for (rank, member) in instance.members.iter().enumerate() {
            let Some(member) = member else { continue };
            let process = self.comms[comm].members[rank].place();
            let needed = match &groups {
                Some(others) => needs.of_groups(member, others[usize::from(rank >= first_group)], first_group),
                None => needs.of_member(member, before),
            };
            let end = match needed {
                Some(begin) => {
                    let bytes = member.call.sent.max(member.call.received);
                    let random = &mut self.processes[process].random;
                    member.begin.max(begin + self.network.collective(several_nodes, hops, bytes, random))
                }
                None => member.begin,
            };
            if member.call.sent > 0 {
                before = before.max(Some(member.begin));
            }
            self.end(process, member, end);
        }
    }

    /// The end of a member's part is known.
    fn end(&mut self, process: usize, member: &JoinedMember, end: i64) {
        if member.request != NOBODY {
            self.resolve(process, member.request, end);
            return;
        }
        let state = &mut self.processes[process];
        state.collective_end = end;
        if state.waiting == BlockedOn::Collective {
            state.waiting = BlockedOn::Nothing;
            // The member that joins last goes on by itself; everybody else is blocked in stage 1.
            if state.stage == 1 {
                self.ready.push_back(process as u32);
            }
        }
    }
}

/// The begins that ends depend on.
struct NeededBegins {
    op: CollectiveOp,
    /// The two latest begins among the members that send, and the rank of the latest: a member never waits for itself.
    latest: Option<(i64, u32)>,
    second: Option<i64>,
    /// The root's begin, if it sends anything.
    root: Option<i64>,
}

impl NeededBegins {
    fn of(instance: &OpenInstance) -> Self {
        let mut needs = NeededBegins { op: CollectiveOp::BARRIER, latest: None, second: None, root: None };
        for member in instance.members.iter().flatten() {
            let call = &member.call;
            needs.op = call.op;
            if call.sent == 0 && call.op != CollectiveOp::BARRIER {
                continue;
            }
            if call.root == call.rank {
                needs.root = Some(member.begin);
            }
            let candidate = Some((member.begin, call.rank));
            if candidate > needs.latest {
                needs.second = needs.latest.map(|(begin, _)| begin);
                needs.latest = candidate;
            } else {
                needs.second = needs.second.max(Some(member.begin));
            }
        }
        needs
    }

    /// As [`NeededBegins::of_member`] on an inter-communicator, where data go from one group to the other; `others` is the latest begin of the other one.
    fn of_groups(&self, member: &JoinedMember, others: Option<i64>, first_group: usize) -> Option<i64> {
        let call = &member.call;
        match self.op {
            CollectiveOp::BCAST => {
                let group = |rank: u32| rank as usize >= first_group;
                self.root.filter(|_| group(call.rank) != group(call.root))
            }
            _ => others,
        }
    }

    /// The latest begin that a member's end has to wait for; `before` is the latest one of the senders with lower ranks.
    fn of_member(&self, member: &JoinedMember, before: Option<i64>) -> Option<i64> {
        let call = &member.call;
        if call.received == 0 && call.op != CollectiveOp::BARRIER {
            return None;
        }
        match self.op {
            CollectiveOp::BCAST | CollectiveOp::SCATTER | CollectiveOp::SCATTERV => {
                self.root.filter(|_| call.rank != call.root)
            }
            CollectiveOp::REDUCE | CollectiveOp::GATHER | CollectiveOp::GATHERV if call.rank != call.root => None,
            CollectiveOp::SCAN | CollectiveOp::EXSCAN => before,
            _ => match self.latest {
                Some((_, rank)) if rank == call.rank => self.second,
                latest => latest.map(|(begin, _)| begin),
            },
        }
    }
}

/// Bytes sent and received by one member as Score-P counts them. `own` is the member's contribution in bytes, `previous`
/// that of the rank before it (cyclic), `total` the sum over all members; without variable counts all are equal.
pub(crate) fn cost_of(
    call: (CollectiveOp, u32),
    rank: u32,
    size: u64,
    own: u64,
    previous: u64,
    total: u64,
) -> (u64, u64) {
    let (op, root) = call;
    let is_root = rank == root;
    let at_root = |bytes| if is_root { bytes } else { 0 };
    let rank = u64::from(rank);
    match op {
        CollectiveOp::BARRIER => (0, 0),
        CollectiveOp::BCAST => (at_root(own * size), own),
        CollectiveOp::SCATTER | CollectiveOp::SCATTERV => (at_root(total), own),
        CollectiveOp::GATHER | CollectiveOp::GATHERV => (own, at_root(total)),
        CollectiveOp::REDUCE => (own, at_root(own * size)),
        CollectiveOp::ALLGATHERV => (own * size, total),
        CollectiveOp::REDUCE_SCATTER => (total, own * size),
        // Each member sends its contribution to the next rank only.
        CollectiveOp::ALLTOALLV | CollectiveOp::ALLTOALLW => (own, previous),
        CollectiveOp::SCAN => (own * (size - rank), own * (rank + 1)),
        CollectiveOp::EXSCAN => (own * (size - rank - 1), own * rank),
        _ => (own * size, own * size),
    }
}
