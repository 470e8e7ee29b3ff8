//! The clock condition and the consistency of a run, checked record by record, without any code of the simulator.

use super::{EventCollector, Record};
use crate::Scenario;
use clc_trace::{
    Collective, CollectiveOp, CommMembers, Definitions, Event, LocationKind, Message, MpiRank, Root, Ticks,
};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// What a run consisted of.
#[derive(Debug, Default)]
pub(super) struct ObservedRun {
    pub messages: usize,
    /// Receives that were complete in another order than posted.
    pub overtaken: usize,
    /// Instances of collectives by operation and whether they are non-blocking.
    pub collectives: BTreeMap<(u8, bool), usize>,
    /// Members of collectives that sent or received nothing although others did.
    pub silent: usize,
    pub cancelled: usize,
    pub tests: usize,
    /// Pairs of events of a process with equal true times.
    pub ties: usize,
    /// Orders between processes that are neither messages nor collectives of communicators.
    pub orders: usize,
    /// Smallest slack of a message above the minimum latency of its pair, in ticks.
    pub slack: i64,
}

#[derive(Debug, Clone, Copy)]
struct Posted {
    order: usize,
    done: Option<(Ticks, u64)>,
}

/// Sender, receiver, communicator, tag.
type Channel = (MpiRank, MpiRank, u32, u32);

/// One member's part: begin, end, what.
type Part = (Ticks, Ticks, Collective, bool);

/// What of a run has been checked so far.
struct Checker<'a> {
    scenario: &'a Scenario,
    definitions: Definitions,
    nodes: Vec<u32>,
    seen: ObservedRun,
    // Sends and receives, both in the order of MPI.
    sends: HashMap<Channel, VecDeque<(Ticks, u64)>>,
    receives: HashMap<Channel, Vec<(usize, Ticks, u64)>>,
    instances: HashMap<(u32, u32), Vec<Part>>,
}

/// Checks a run; panics with what is wrong.
pub(super) fn check(scenario: &Scenario, run: &EventCollector) -> ObservedRun {
    let mut checker = Checker {
        scenario,
        definitions: scenario.definitions(),
        nodes: scenario.nodes(),
        seen: ObservedRun { slack: i64::MAX, orders: super::orders::check(scenario, run), ..ObservedRun::default() },
        sends: HashMap::new(),
        receives: HashMap::new(),
        instances: HashMap::new(),
    };
    let threads = scenario.locations() as usize;
    assert_eq!(run.0.len(), checker.definitions.locations.len());
    for (location, records) in run.0.iter().enumerate() {
        let stream = checker.definitions.locations[location].kind == LocationKind::AcceleratorStream;
        check_order(records, stream);
        if location % threads > 0 {
            let of_threads = |event| matches!(event, Event::Enter(_) | Event::Leave(_) | Event::Thread(_));
            assert!(stream || records.iter().all(|r| of_threads(r.2)));
            continue;
        }
        let me = MpiRank((location / threads) as u32);
        let parts = checker.process(me, records);
        checker.operations(me, parts);
    }
    checker.check_messages();
    checker.check_collectives();
    checker.seen
}

impl Checker<'_> {
    fn members(&self, process: MpiRank, comm: u32) -> Vec<MpiRank> {
        match &self.definitions.communicators[comm as usize].members {
            CommMembers::Intra(members) => members.to_vec(),
            CommMembers::SelfOnly => vec![process],
            CommMembers::Inter(first, second) => [&**first, &**second].concat(),
            other => panic!("unexpected communicator {other:?}"),
        }
    }

    /// Of an inter-communicator, ranks are those of the other group.
    fn peer_of(&self, process: MpiRank, message: &Message) -> MpiRank {
        let (comm, peer) = (message.comm.0, message.peer as usize);
        match &self.definitions.communicators[comm as usize].members {
            CommMembers::Inter(first, second) if first.contains(&process) => second[peer],
            CommMembers::Inter(first, _) => first[peer],
            _ => self.members(process, comm)[peer],
        }
    }

    /// Minimum latency in picoseconds.
    fn minimum(&self, near: bool) -> i64 {
        let latency = &self.scenario.latency;
        if near { latency.same_node.minimum } else { latency.other_node.minimum }
    }

    fn receive(&mut self, me: MpiRank, message: &Message, order: usize, time: Ticks) {
        let from = self.peer_of(me, message);
        let channel = (from, me, message.comm.0, message.tag);
        self.receives.entry(channel).or_default().push((order, time, message.length));
    }

    /// Checks that what a process begins is completed once. Returns its parts of collective operations.
    fn process(&mut self, me: MpiRank, records: &[Record]) -> Vec<Option<Part>> {
        self.seen.ties += records.windows(2).filter(|w| w[0].0 == w[1].0).count();
        let mut posted: HashMap<u64, Posted> = HashMap::new();
        let mut open_sends: HashMap<u64, bool> = HashMap::new();
        let mut open_collectives: BTreeMap<u64, (Ticks, usize)> = BTreeMap::new();
        let mut parts: Vec<Option<Part>> = Vec::new();
        let mut begin = None;
        let mut known = std::collections::HashSet::new();
        for (order, &(time, _, event)) in records.iter().enumerate() {
            match event {
                Event::MpiSend(m) | Event::MpiIsend(m, _) => {
                    let to = self.peer_of(me, &m);
                    self.sends.entry((me, to, m.comm.0, m.tag)).or_default().push_back((time, m.length));
                    if let Event::MpiIsend(_, id) = event {
                        assert!(known.insert(id), "request id {id} is used twice");
                        open_sends.insert(id, false);
                    }
                }
                Event::MpiIsendComplete(id) => {
                    assert_eq!(open_sends.insert(id, true), Some(false), "send {id} completes");
                }
                Event::MpiRecv(m) => self.receive(me, &m, order, time),
                Event::MpiIrecvRequest(id) => {
                    assert!(known.insert(id), "request id {id} is used twice");
                    posted.insert(id, Posted { order, done: None });
                }
                Event::MpiIrecv(m, id) => {
                    let request = posted.get_mut(&id).expect("a posted receive");
                    assert!(request.done.is_none());
                    request.done = Some((time, m.length));
                    self.receive(me, &m, request.order, time);
                }
                Event::MpiRequestCancelled(id) => {
                    let request = posted.remove(&id).expect("a posted receive");
                    assert!(request.done.is_none());
                    self.seen.cancelled += 1;
                }
                Event::MpiRequestTest(id) => {
                    assert!(known.contains(&id));
                    self.seen.tests += 1;
                }
                Event::MpiCollectiveBegin => assert!(begin.replace(time).is_none()),
                Event::MpiCollectiveEnd(c) => {
                    parts.push(Some((begin.take().expect("a begin"), time, c, false)));
                }
                Event::NonBlockingCollectiveRequest(id) => {
                    assert!(known.insert(id), "request id {id} is used twice");
                    open_collectives.insert(id, (time, parts.len()));
                    parts.push(None);
                }
                Event::NonBlockingCollectiveComplete(c, id) => {
                    let (begin, index) = open_collectives.remove(&id).expect("a request");
                    parts[index] = Some((begin, time, c, true));
                }
                other => assert!(is_simulated(&other), "{other:?} is not simulated"),
            }
        }
        assert!(posted.values().all(|p| p.done.is_some()), "every receive is complete or cancelled");
        assert!(open_sends.values().all(|&done| done), "every send is complete");
        assert!(open_collectives.is_empty() && begin.is_none());
        parts
    }

    /// Adds the parts of a process to the instances of their communicators.
    fn operations(&mut self, me: MpiRank, parts: Vec<Option<Part>>) {
        let mut called: HashMap<u32, u32> = HashMap::new();
        for part in parts.into_iter().flatten() {
            let comm = part.2.comm.0;
            let members = self.members(me, comm);
            if members.len() < 2 {
                assert!(part.1 >= part.0);
                continue;
            }
            let number = called.entry(comm).or_default();
            let rank = members.iter().position(|&m| m == me).expect("a member");
            let instance = self.instances.entry((comm, *number)).or_default();
            instance.resize(members.len(), part);
            instance[rank] = part;
            *number += 1;
        }
    }

    /// Every message is received once, with its length, and no earlier than the minimum latency after it was sent.
    fn check_messages(&mut self) {
        for (key, mut list) in std::mem::take(&mut self.receives) {
            let completion: Vec<Ticks> = list.iter().map(|r| r.1).collect();
            list.sort_unstable();
            self.seen.overtaken += list.iter().zip(&completion).filter(|(r, c)| r.1 != **c).count();
            let mut queue = self.sends.remove(&key).expect("messages to receive");
            for (_, received, length) in list {
                let (sent, sent_length) = queue.pop_front().expect("a message to receive");
                assert_eq!(length, sent_length, "{key:?}");
                let least = self.minimum(self.nodes[key.0] == self.nodes[key.1]);
                let minimum = least * (self.scenario.resolution as i64 / 1000) / 1_000_000_000;
                self.seen.slack = self.seen.slack.min(received.0 - sent.0 - minimum);
                assert!(received.0 - sent.0 >= minimum - 1, "{key:?}: sent {sent}, received {received}");
                self.seen.messages += 1;
            }
            assert!(queue.is_empty(), "{key:?}: a message is never received");
        }
        assert!(self.sends.values().all(VecDeque::is_empty), "a message is never received");
    }

    fn check_collectives(&mut self) {
        for ((comm, _), parts) in std::mem::take(&mut self.instances) {
            let members = self.members(MpiRank(0), comm);
            let node = |rank: usize| self.nodes[members[rank]];
            let first_group = match &self.definitions.communicators[comm as usize].members {
                CommMembers::Inter(first, _) => Some(first.len()),
                _ => None,
            };
            check_instance(&parts, first_group, |a, b| self.minimum(node(a) == node(b)) / 1000 - 1);
            let active = parts.iter().any(|p| p.2.sent > 0);
            self.seen.silent += parts.iter().filter(|p| active && (p.2.sent == 0 || p.2.received == 0)).count();
            *self.seen.collectives.entry((parts[0].2.op.0, parts[0].3)).or_default() += 1;
        }
    }
}

/// Whether simulated programs have events of this kind, beside messages and collective operations.
fn is_simulated(event: &Event) -> bool {
    matches!(
        event,
        Event::Enter(_)
            | Event::Leave(_)
            | Event::Other
            | Event::Thread(_)
            | Event::Parameter(_)
            | Event::RmaOpCompleteBlocking(..)
            | Event::RmaCollectiveBegin
            | Event::RmaCollectiveEnd(_)
            | Event::RmaPut(_)
            | Event::RmaGroupSync(_)
            | Event::RmaRequestLock(_)
            | Event::RmaAcquireLock(_)
            | Event::RmaReleaseLock(_)
    )
}

/// Times never decrease, and regions nest; only streams do things outside of all.
fn check_order(records: &[Record], stream: bool) {
    let mut stack = Vec::new();
    for pair in records.windows(2) {
        assert!(pair[0].0 <= pair[1].0, "true time goes back: {pair:?}");
        assert!(pair[0].1 <= pair[1].1, "local time goes back: {pair:?}");
    }
    for (_, _, event) in records {
        match event {
            Event::Enter(region) => stack.push(*region),
            Event::Leave(region) => assert_eq!(stack.pop(), Some(*region)),
            _ => assert!(stream || !stack.is_empty()),
        }
    }
    assert!(stack.is_empty());
}

/// Every logical receive of a collective is later than every logical send that it depends on, by the minimum latency.
fn check_instance(parts: &[Part], first_group: Option<usize>, minimum: impl Fn(usize, usize) -> i64) {
    let op = parts[0].2.op;
    let root = match parts[0].2.root {
        Root::Rank(rank) => Some(rank as usize),
        _ => None,
    };
    for (me, part) in parts.iter().enumerate() {
        assert_eq!((part.2.op, part.3), (op, parts[0].3), "one operation for all");
        assert!(first_group.is_some() || part.2.root == parts[0].2.root, "one root for all");
        assert!(part.1 >= part.0);
        let barrier = op == CollectiveOp::BARRIER;
        assert!(!barrier || (part.2.sent, part.2.received) == (0, 0));
        if part.2.received == 0 && !barrier {
            continue;
        }
        for (other, sender) in parts.iter().enumerate() {
            let depends = match op {
                _ if first_group.is_some() => first_group.is_some_and(|first| (other < first) != (me < first)),
                CollectiveOp::BCAST | CollectiveOp::SCATTER | CollectiveOp::SCATTERV => Some(other) == root,
                CollectiveOp::REDUCE | CollectiveOp::GATHER | CollectiveOp::GATHERV => Some(me) == root,
                CollectiveOp::SCAN | CollectiveOp::EXSCAN => other < me,
                _ => true,
            };
            if depends && other != me && (sender.2.sent > 0 || barrier) {
                let least = sender.0.0 + minimum(other, me);
                assert!(part.1.0 >= least, "{op}: rank {me} ends before the data of {other} can be there: {parts:?}");
            }
        }
    }
}
