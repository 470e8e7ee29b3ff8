//! Random traces of valid MPI programs.
//!
//! Every process has a true time that only moves forward. Steps are drawn at random (computation, messages, collectives, unfinished
//! business) and append events to the processes they involve; whatever depends on another process gets a true time after it.
//! Dependencies are exactly those of the operations, so a root leaves its broadcast at once and may talk to members that
//! enter much later. Then each node's clock spoils the times.

use super::model::{Process, Recorded, Trace};
use clc_replay::trace::{Collective, CollectiveOp, CommId, CommMembers, Communicator, Event, Message, RegionId, Root};

/// Deterministic random numbers (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0..n
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn ticks(&mut self, most: i64) -> i64 {
        self.below(most as usize + 1) as i64
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A trace, and the true time of every event (`[process][location][number]`).
#[derive(Debug, Clone)]
pub struct Generated {
    pub trace: Trace,
    pub truth: Vec<Vec<Vec<i64>>>,
}

/// What a process has started and not finished.
#[derive(Debug, Clone, Copy)]
enum Unfinished {
    /// A non-blocking receive, its message, and when that arrives.
    Receive { request: u64, message: Message, arrival: i64 },
    /// A non-blocking collective, and the earliest time at which it can end.
    Collective { request: u64, collective: Collective, ready: i64 },
}

struct Run {
    random: Random,
    now: Vec<i64>,
    /// True times and events, per process and location.
    events: Vec<Vec<Vec<(i64, Event)>>>,
    communicators: Vec<(CommId, Vec<u32>)>,
    unfinished: Vec<Vec<Unfinished>>,
    requests: u64,
    /// Non-blocking collectives have to be complete before the next one on the same communicator ends elsewhere; simply:
    /// instances that not everybody has joined yet are never left behind, all members join in one step.
    ties: bool,
}

/// A trace of about `steps` steps from `seed`.
pub fn generate(seed: u64, steps: usize) -> Generated {
    let mut random = Random::new(seed);
    let processes = 1 + random.below(9);
    let threads = random.chance(30);
    let ties = !threads && random.chance(40);
    let nodes: Vec<u32> = {
        let count = 1 + random.below(processes);
        (0..processes).map(|_| random.below(count) as u32).collect()
    };
    let communicators = communicators(&mut random, processes as u32);
    let events = (0..processes).map(|_| vec![Vec::new(); if threads { 1 + random.below(3) } else { 1 }]).collect();
    let now = (0..processes).map(|_| 1000 + random.ticks(500)).collect();
    let unfinished = vec![Vec::new(); processes];
    let mut run = Run { random, now, events, communicators, unfinished, requests: 0, ties };
    for _ in 0..steps {
        run.step();
    }
    for process in 0..processes {
        run.complete(process, true);
    }
    run.spoil(&nodes)
}

/// World, reversed world, splits, subsets in any order, one-member communicators, self.
fn communicators(random: &mut Random, processes: u32) -> Vec<(CommId, Vec<u32>)> {
    let world: Vec<u32> = (0..processes).collect();
    let mut lists = vec![world.clone(), world.iter().rev().copied().collect()];
    lists.push(world.iter().copied().filter(|p| p % 2 == 0).collect());
    lists.push(world.iter().copied().filter(|p| p % 2 == 1).collect());
    for _ in 0..2 {
        let mut list: Vec<u32> = world.iter().copied().filter(|_| random.chance(60)).collect();
        for i in (1..list.len()).rev() {
            list.swap(i, random.below(i + 1));
        }
        lists.push(list);
    }
    lists.push(vec![random.below(processes as usize) as u32]);
    let named = lists.into_iter().enumerate().filter(|(_, list)| !list.is_empty());
    named.map(|(id, list)| (CommId(7 * id as u32 + 3), list)).collect()
}

impl Run {
    /// Lets a process work for a while.
    fn pass(&mut self, process: usize) {
        let least = if self.ties { 0 } else { 10 };
        let long = self.random.chance(20);
        self.now[process] += least + self.random.ticks(if long { 5000 } else { 60 });
    }

    fn emit(&mut self, process: usize, location: usize, event: Event) {
        self.pass(process);
        self.events[process][location].push((self.now[process], event));
    }

    fn location(&mut self, process: usize) -> usize {
        let count = self.events[process].len();
        if self.random.chance(80) { 0 } else { self.random.below(count) }
    }

    fn step(&mut self) {
        match self.random.below(10) {
            0 | 1 => {
                let process = self.random.below(self.now.len());
                let location = self.location(process);
                let region = RegionId(self.random.below(4) as u32);
                self.emit(process, location, Event::Enter(region));
                self.emit(process, location, Event::Leave(region));
            }
            2..=5 => self.messages(),
            6..=8 => self.collective(),
            _ => {
                let process = self.random.below(self.now.len());
                self.complete(process, false);
                self.oddities(process);
            }
        }
    }

    /// A few messages from one process to another (or to itself), of the same and of different tags.
    fn messages(&mut self) {
        let index = self.random.below(self.communicators.len());
        let (comm, members) = self.communicators[index].clone();
        let (from, to) = (self.random.below(members.len()), self.random.below(members.len()));
        let (sender, receiver) = (members[from] as usize, members[to] as usize);
        let count = 1 + self.random.below(4);
        let tags: Vec<u32> = (0..count).map(|_| self.random.below(2) as u32).collect();
        let length = self.random.ticks(2000) as u64;
        let side = |peer: usize, tag: u32| Message { peer: peer as u32, comm, tag, length };
        let blocking = self.random.chance(40) && self.waiting_for_nothing(receiver, sender, comm);
        let at = self.location(receiver);
        let mut requests = Vec::new();
        if !blocking {
            for _ in &tags {
                self.requests += 1;
                requests.push(self.requests);
                self.emit(receiver, at, Event::MpiIrecvRequest(self.requests));
            }
        }
        let mut arrivals = Vec::new();
        let sending_at = self.location(sender);
        for &tag in &tags {
            if self.random.chance(50) {
                self.emit(sender, sending_at, Event::MpiSend(side(to, tag)));
            } else {
                self.requests += 1;
                let request = self.requests;
                self.emit(sender, sending_at, Event::MpiIsend(side(to, tag), request));
                if self.random.chance(70) {
                    arrivals.push(self.now[sender] + self.random.ticks(400));
                    self.emit(sender, sending_at, Event::MpiIsendComplete(request));
                    continue;
                }
            }
            arrivals.push(self.now[sender] + self.random.ticks(400));
        }
        if blocking {
            for (&tag, arrival) in tags.iter().zip(arrivals) {
                self.now[receiver] = self.now[receiver].max(arrival);
                self.emit(receiver, at, Event::MpiRecv(side(from, tag)));
            }
        } else {
            for ((&tag, arrival), request) in tags.iter().zip(arrivals).zip(requests) {
                let message = side(from, tag);
                self.unfinished[receiver].push(Unfinished::Receive { request, message, arrival });
            }
            if self.random.chance(60) {
                self.complete(receiver, false);
            }
        }
    }

    /// Whether a blocking receive posted now would not overtake a receive that is still open.
    fn waiting_for_nothing(&self, receiver: usize, _sender: usize, comm: CommId) -> bool {
        !self.unfinished[receiver]
            .iter()
            .any(|u| matches!(u, Unfinished::Receive { message, .. } if message.comm == comm))
    }

    /// Completes some or all open requests of a process, in any order.
    fn complete(&mut self, process: usize, all: bool) {
        while !self.unfinished[process].is_empty() && (all || self.random.chance(75)) {
            let which = self.random.below(self.unfinished[process].len());
            let at = self.location(process);
            match self.unfinished[process].swap_remove(which) {
                Unfinished::Receive { request, message, arrival } => {
                    if self.random.chance(20) {
                        self.emit(process, at, Event::MpiRequestTest(request));
                    }
                    self.now[process] = self.now[process].max(arrival);
                    self.emit(process, at, Event::MpiIrecv(message, request));
                }
                Unfinished::Collective { request, collective, ready } => {
                    self.now[process] = self.now[process].max(ready);
                    self.emit(process, at, Event::NonBlockingCollectiveComplete(collective, request));
                }
            }
        }
    }

    fn collective(&mut self) {
        let index = self.random.below(self.communicators.len());
        let (comm, members) = self.communicators[index].clone();
        let op = CollectiveOp(self.random.below(19) as u8);
        let root = self.random.below(members.len());
        let to_root = matches!(op, CollectiveOp::REDUCE | CollectiveOp::GATHER | CollectiveOp::GATHERV);
        let from_root = matches!(op, CollectiveOp::BCAST | CollectiveOp::SCATTER | CollectiveOp::SCATTERV);
        let prefix = matches!(op, CollectiveOp::SCAN | CollectiveOp::EXSCAN);
        let silent = op == CollectiveOp::BARRIER || op.0 >= CollectiveOp::CREATE_HANDLE.0;
        let non_blocking = self.random.chance(25);
        let mut begins = Vec::new();
        let mut parts = Vec::new();
        for (rank, &member) in members.iter().enumerate() {
            let process = member as usize;
            let at = self.location(process);
            // Zero-byte participants now and then.
            let mut bytes =
                |most: i64| if silent || self.random.chance(15) { 0 } else { 1 + self.random.ticks(most) as u64 };
            let collective = Collective {
                op,
                comm,
                root: if to_root || from_root { Root::Rank(root as u32) } else { Root::None },
                sent: if from_root && rank != root { 0 } else { bytes(64) },
                received: if to_root && rank != root { 0 } else { bytes(64) },
            };
            if non_blocking {
                self.requests += 1;
                self.emit(process, at, Event::NonBlockingCollectiveRequest(self.requests));
            } else {
                self.emit(process, at, Event::MpiCollectiveBegin);
            }
            begins.push(self.now[process]);
            parts.push((process, at, collective, self.requests));
        }
        for (rank, (process, at, collective, request)) in parts.into_iter().enumerate() {
            let needed: Vec<i64> = if from_root {
                vec![begins[root]]
            } else if to_root {
                if rank == root { begins.clone() } else { vec![begins[rank]] }
            } else if prefix {
                begins[..=rank].to_vec()
            } else {
                begins.clone()
            };
            let ready = needed.into_iter().max().unwrap_or(0) + self.random.ticks(300);
            if non_blocking {
                self.unfinished[process].push(Unfinished::Collective { request, collective, ready });
                if self.random.chance(50) {
                    self.complete(process, false);
                }
            } else {
                self.now[process] = self.now[process].max(ready);
                self.emit(process, at, Event::MpiCollectiveEnd(collective));
            }
        }
    }

    /// Requests that lead to nothing.
    fn oddities(&mut self, process: usize) {
        if !self.random.chance(40) {
            return;
        }
        let at = self.location(process);
        self.requests += 1;
        let request = self.requests;
        match self.random.below(4) {
            0 => {
                self.emit(process, at, Event::MpiIrecvRequest(request));
                self.emit(process, at, Event::MpiRequestCancelled(request));
            }
            1 => self.emit(process, at, Event::MpiIrecvRequest(request)),
            kind => {
                // Tags of their own: a lost message must not shift the others.
                let (comm, members) = self.communicators[0].clone();
                let peer = self.random.below(members.len()) as u32;
                let message = Message { peer, comm, tag: 90 + kind as u32, length: 1 };
                self.emit(process, at, Event::MpiIsend(message, request));
                if kind == 2 {
                    self.emit(process, at, Event::MpiRequestCancelled(request));
                }
            }
        }
    }

    /// Reads all true times with the clocks of the nodes: offset, drift, a slow oscillation, jumps forward, coarse ticks.
    fn spoil(mut self, nodes: &[u32]) -> Generated {
        let coarse = if self.ties { [1, 1, 7, 100][self.random.below(4)] } else { 1 };
        let worst = [0, 50, 2000, 100_000][self.random.below(4)];
        let clocks: Vec<[i64; 5]> = (0..=nodes.iter().copied().max().unwrap_or(0))
            .map(|_| {
                let drift = self.random.ticks(200_000) - 100_000;
                let jump_at = 1000 + self.random.ticks(200_000);
                [self.random.ticks(worst), drift, self.random.ticks(worst) / 2, jump_at, self.random.ticks(worst) / 4]
            })
            .collect();
        let read = |node: u32, time: i64| {
            let [offset, drift, swing, jump_at, jump] = clocks[node as usize];
            // A triangle wave of the given height. Per unit of true time it falls by at most one tick, and so does the drift; three ticks
            // a unit keep the clock going forward.
            let period = (8 * swing).max(8);
            let phase = time.rem_euclid(period);
            let wave = (phase.min(period - phase)) * swing * 2 / period;
            let jumped = if time >= jump_at { jump } else { 0 };
            (10 + 3 * time + offset + time * drift / 1_000_000 + wave + jumped) / coarse * coarse
        };
        let mut trace = Trace { processes: Vec::new(), communicators: Vec::new() };
        let mut truth = Vec::new();
        for (process, &node) in nodes.iter().enumerate() {
            let locations = std::mem::take(&mut self.events[process]);
            truth.push(locations.iter().map(|events| events.iter().map(|(time, _)| *time).collect()).collect());
            let recorded = |(time, event)| Recorded { time: read(node, time), event };
            let locations = locations.into_iter().map(|events| events.into_iter().map(recorded).collect()).collect();
            trace.processes.push(Process { node, locations });
        }
        let named = self.communicators.into_iter();
        trace.communicators = named
            .map(|(id, members)| Communicator {
                id,
                name: format!("communicator {id}"),
                members: CommMembers::Intra(members),
                global_ranks: false,
            })
            .collect();
        Generated { trace, truth }
    }
}
