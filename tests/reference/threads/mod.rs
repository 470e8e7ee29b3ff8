//! Hybrid programs: random traces of processes with threads, of which some have clocks of their own, and what follows from them.
//!
//! The generator knows who waits for whom, so nothing has to be matched here.

pub(crate) mod own_clocks;

use super::matching::{Dependency, Kind, Matching};
use super::model::{
    BARRIER, CALLSITE, COPY_TO_HOST, CU_LAUNCH, DEVICE_WAIT, EVENT_WAIT, EventRef, HIP_LAUNCH, IDLE, KERNEL,
    PLACE_EVENT, Process, Recorded, STREAM_WAIT, Trace,
};
use clc_trace::{
    CallParameter, Collective, CollectiveOp, CommId, CommMembers, Communicator, Event, Message, MpiRank, ParameterId,
    RegionId, Root, ThreadEvent, ThreadLock, ThreadStart, ThreadTask, WindowId, WindowTransfer,
};
use std::collections::{BTreeMap, BTreeSet};

/// An event: process, location, number.
pub(crate) type At = (usize, usize, usize);

/// A hybrid program that has run, with correct clocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hybrid {
    /// With true times.
    pub trace: Trace,
    /// Two events of one process of which the first is before the second.
    pub pairs: Vec<(At, At)>,
    /// Barriers: arrivals and departures.
    pub barriers: Vec<(Vec<At>, Vec<At>)>,
    /// Threads take turns at collective operations, in an order that barriers, forks and joins tell.
    pub turns: bool,
}

/// Numbers that look random.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    fn below(&mut self, end: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % end.max(1)) as i64
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// How calls of a process and the kernels of its streams are known to belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Both tell the call site.
    Callsite,
    /// The calls name their streams.
    Reference,
    /// There is one stream only, of one thread.
    OneStream,
}

/// What a process does with its accelerator.
#[derive(Debug, Clone)]
struct Streams {
    known: Known,
    /// For each stream its location, and the thread that uses it.
    of: Vec<(usize, usize)>,
    /// The end of the last work of each.
    last: Vec<Option<At>>,
    /// What was put into them: the address of each event, the thread, and the end of the work before it.
    events: BTreeMap<u64, (usize, Option<At>)>,
}

/// The communicator of the team of a process.
fn team(process: usize) -> CommId {
    CommId(10 + process as u32)
}

struct Run {
    numbers: Numbers,
    hybrid: Hybrid,
    /// The moment of each location.
    now: Vec<Vec<i64>>,
    /// How many threads each process has; its streams follow.
    threads: Vec<usize>,
    streams: Vec<Streams>,
    orders: u32,
}

impl Run {
    /// Records an event a moment after the last one of its location, and not before `least`.
    fn record(&mut self, (p, l): (usize, usize), least: i64, event: Event) -> At {
        let time = (self.now[p][l] + 1 + self.numbers.below(40)).max(least);
        self.now[p][l] = time;
        let events = &mut self.hybrid.trace.processes[p].locations[l];
        events.push(Recorded { time, event });
        (p, l, events.len() - 1)
    }

    fn time(&self, (p, l, number): At) -> i64 {
        self.hybrid.trace.processes[p].locations[l][number].time
    }

    fn step(&mut self, place: (usize, usize), least: i64, step: ThreadEvent) -> At {
        self.record(place, least, Event::Thread(step))
    }

    /// Each of `threads` (of all processes) sends to the next process, and then receives.
    fn messages(&mut self, threads: &[(usize, usize)], tag: u32) {
        let processes = self.now.len();
        // Where threads take turns, each two of them have a tag of their own: nothing else tells which message is whose.
        let of_both = |from: usize, to: usize| 100 + 10 * threads[from].1 as u32 + threads[to].1 as u32;
        let turns = self.hybrid.turns;
        let message = |from: usize, to: usize, peer: usize| {
            let tag = if turns { of_both(from, to) } else { tag };
            Message { peer: peer as u32, comm: CommId(0), tag, length: 8 }
        };
        let mut sent = BTreeMap::new();
        for &(p, l) in threads {
            let next = (p + 1) % processes;
            let at = self.record((p, l), 0, Event::MpiSend(message(p, next, next)));
            sent.insert(next, self.time(at));
        }
        for &(p, l) in threads {
            let (before, least) = ((p + processes - 1) % processes, sent[&p] + 1 + self.numbers.below(20));
            self.record((p, l), least, Event::MpiRecv(message(before, p, before)));
        }
    }

    /// One parallel region of all processes.
    fn region(&mut self, round: u32) {
        let processes = self.now.len();
        let mut forks = Vec::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        for p in 0..processes {
            let all = self.threads[p] - 1;
            // A team of all threads, or of the first ones.
            let size = if self.numbers.chance(4) { 1 + self.numbers.below(all as u64) as usize } else { all };
            members.push((0..size).collect());
            forks.push(self.step((p, 0), 0, ThreadEvent::Fork { model: 3, threads: size as u32 }));
            let fork = self.time(forks[p]);
            for l in 0..size {
                let begin = self.step((p, l), fork, ThreadEvent::TeamBegin(team(p)));
                self.pair(forks[p], begin);
            }
        }
        if self.numbers.chance(2) {
            // The last threads send, as many as have a partner.
            let threads: Vec<(usize, usize)> = (0..processes).map(|p| (p, members[p].len() - 1)).collect();
            self.messages(&threads, 7 + round % 2);
        }
        if self.hybrid.turns {
            self.turns(&members);
        }
        for (p, members) in members.iter().enumerate() {
            if self.numbers.chance(2) {
                self.tasks(p, members, round);
            }
            if self.numbers.chance(3) {
                self.within(p, members);
            }
            for _ in 0..self.numbers.below(3) {
                self.barrier(p, members);
                self.locks(p, members);
            }
            for _ in 0..self.numbers.below(4) {
                self.offload(p);
            }
        }
        for (p, members) in members.iter().enumerate() {
            let ends: Vec<At> = members.iter().map(|&l| self.step((p, l), 0, ThreadEvent::TeamEnd(team(p)))).collect();
            let last = ends.iter().map(|&end| self.time(end)).max().unwrap_or(0);
            let join = self.step((p, 0), last, ThreadEvent::Join { model: 3 });
            ends.into_iter().for_each(|end| self.pair(end, join));
        }
    }

    /// A thread of a process sends to another one of it.
    fn within(&mut self, p: usize, members: &[usize]) {
        let [sender, receiver] = [0; 2].map(|_: i32| members[self.numbers.below(members.len() as u64) as usize]);
        let message = Message { peer: p as u32, comm: CommId(0), tag: 99, length: 4 };
        let sent = self.record((p, sender), 0, Event::MpiSend(message));
        let least = self.time(sent) + 1;
        self.record((p, receiver), least, Event::MpiRecv(message));
    }

    /// All processes meet, each by one of its threads.
    fn meet(&mut self, threads: &[usize]) {
        let places: Vec<(usize, usize)> = threads.iter().copied().enumerate().collect();
        let begins: Vec<At> = places.iter().map(|&at| self.record(at, 0, Event::MpiCollectiveBegin)).collect();
        let last = begins.iter().map(|&at| self.time(at)).max().unwrap_or(0);
        let (op, comm, root) = (CollectiveOp::BARRIER, CommId(0), Root::None);
        for at in places {
            self.record(at, last + 1, Event::MpiCollectiveEnd(Collective { op, comm, root, sent: 0, received: 0 }));
        }
    }

    /// All processes meet several times, each time by any one of their threads, which wait for each other in between.
    fn turns(&mut self, members: &[Vec<usize>]) {
        for _ in 0..self.numbers.below(4) {
            let who: Vec<usize> =
                members.iter().map(|all| all[self.numbers.below(all.len() as u64) as usize]).collect();
            self.meet(&who);
            members.iter().enumerate().for_each(|(p, members)| self.barrier(p, members));
        }
    }

    fn barrier(&mut self, p: usize, members: &[usize]) {
        let region = RegionId(BARRIER);
        let arrivals: Vec<At> = members.iter().map(|&l| self.record((p, l), 0, Event::Enter(region))).collect();
        let last = arrivals.iter().map(|&at| self.time(at)).max().unwrap_or(0);
        let departures = members.iter().map(|&l| self.record((p, l), last, Event::Leave(region))).collect();
        self.hybrid.barriers.push((arrivals, departures));
    }

    fn locks(&mut self, p: usize, members: &[usize]) {
        let mut released: Option<At> = None;
        for _ in 0..self.numbers.below(3) {
            let l = members[self.numbers.below(members.len() as u64) as usize];
            self.orders += 1;
            let lock = ThreadLock { model: 3, lock: self.orders / 8, order: self.orders };
            let least = released.map_or(0, |at| self.time(at));
            let acquired = self.step((p, l), least, ThreadEvent::AcquireLock(lock));
            // The next number of the same lock is the next acquisition, if it is of the same process.
            if let Some(before) = released.filter(|_| !self.orders.is_multiple_of(8)) {
                self.pair(before, acquired);
            }
            released = Some(self.step((p, l), 0, ThreadEvent::ReleaseLock(lock)));
        }
        // Nobody else takes this lock.
        self.orders = (self.orders / 8 + 1) * 8;
    }

    fn tasks(&mut self, p: usize, members: &[usize], generation: u32) {
        let [creator, runner] = [0; 2].map(|_: i32| members[self.numbers.below(members.len() as u64) as usize]);
        let task = ThreadTask { team: team(p), creator: creator as u32, generation };
        let created = self.step((p, creator), 0, ThreadEvent::TaskCreate(task));
        let created_at = self.time(created);
        let run = self.step((p, runner), created_at, ThreadEvent::TaskSwitch(task));
        self.pair(created, run);
        self.step((p, runner), 0, ThreadEvent::TaskComplete(task));
    }

    /// The thread of a stream launches a kernel or copies, and may wait.
    fn offload(&mut self, p: usize) {
        let Streams { known, of, .. } = self.streams[p].clone();
        if of.is_empty() {
            return;
        }
        let chosen = self.numbers.below(of.len() as u64) as usize;
        let (stream, thread) = of[chosen];
        let (host, stream) = ((p, thread), (p, stream));
        let region =
            |id: u32, enters: bool| if enters { Event::Enter(RegionId(id)) } else { Event::Leave(RegionId(id)) };
        let callsite = CallParameter { parameter: ParameterId(CALLSITE), value: 70 + chosen as u64 };
        // Only names and single streams tell whose copy it is.
        let copies = known != Known::Callsite && self.numbers.chance(3);
        let call = if copies { COPY_TO_HOST } else { [CU_LAUNCH, HIP_LAUNCH][p % 2] };
        let issued = self.record(host, 0, region(call, true));
        if known == Known::Callsite {
            self.record(host, 0, Event::Parameter(callsite));
        }
        let least = self.time(issued);
        let (first, last) = if copies {
            let matching = 42;
            let transfer = WindowTransfer { window: WindowId(0), remote: 0, bytes: 9, matching };
            let first = self.record(stream, least, Event::RmaPut(transfer));
            (first, self.record(stream, 0, Event::RmaOpCompleteBlocking(WindowId(0), matching)))
        } else {
            if self.numbers.chance(4) {
                self.record(stream, 0, region(IDLE, true));
                self.record(stream, least, region(IDLE, false));
            }
            let first = self.record(stream, least, region(KERNEL, true));
            if known == Known::Callsite {
                self.record(stream, 0, Event::Parameter(callsite));
            }
            (first, self.record(stream, 0, region(KERNEL, false)))
        };
        self.pair(issued, first);
        let ended = self.time(last);
        let left = self.record(host, if copies { ended } else { 0 }, region(call, false));
        if copies {
            self.pair(last, left);
        }
        if known == Known::Reference {
            // Copies are named as they are left.
            let named = if copies { left } else { issued };
            self.hybrid.trace.references.insert(named, stream.1);
        }
        self.streams[p].last[chosen] = Some(last);
        if self.numbers.chance(3) {
            let one = known == Known::Reference && self.numbers.chance(2);
            let wait = if one { STREAM_WAIT } else { DEVICE_WAIT };
            self.record(host, 0, region(wait, true));
            let waited = |&(place, &(_, user)): &(usize, &(usize, usize))| user == thread && (!one || place == chosen);
            let places: Vec<usize> = of.iter().enumerate().filter(waited).map(|(place, _)| place).collect();
            let ends: Vec<At> = places.iter().filter_map(|&place| self.streams[p].last[place]).collect();
            let least = ends.iter().map(|&end| self.time(end)).max().unwrap_or(0);
            let left = self.record(host, least, region(wait, false));
            if one {
                self.hybrid.trace.references.insert(left, stream.1);
            }
            ends.into_iter().for_each(|end| self.pair(end, left));
        }
        if known == Known::Reference {
            self.events(host, (chosen, stream.1));
        }
    }

    /// A thread puts an event into a stream (its place and location), or waits for one that it has put into any.
    fn events(&mut self, host: (usize, usize), (chosen, stream): (usize, usize)) {
        let (p, thread) = host;
        let region = |id: u32| [Event::Enter(RegionId(id)), Event::Leave(RegionId(id))];
        if self.numbers.chance(2) {
            let [_, left] = region(PLACE_EVENT).map(|event| self.record(host, 0, event));
            let (address, last) = (500 + chosen as u64, self.streams[p].last[chosen]);
            self.hybrid.trace.references.insert(left, stream);
            self.hybrid.trace.event_references.insert(left, address);
            self.streams[p].events.insert(address, (thread, last));
        }
        let of_thread = self.streams[p].events.iter().filter(|(_, placed)| placed.0 == thread);
        let waited = of_thread.map(|(&address, placed)| (address, placed.1)).next_back();
        if let Some((address, end)) = waited.filter(|_| self.numbers.chance(2)) {
            let least = end.map_or(0, |end| self.time(end));
            let [enter, leave] = region(EVENT_WAIT);
            self.record(host, 0, enter);
            let left = self.record(host, least, leave);
            self.hybrid.trace.event_references.insert(left, address);
            end.into_iter().for_each(|end| self.pair(end, left));
        }
    }

    fn pair(&mut self, from: At, to: At) {
        if from.1 != to.1 {
            self.hybrid.pairs.push((from, to));
        }
    }
}

/// A program of several processes, each with a team of threads and one thread that is created and waited for.
pub(crate) fn hybrid(seed: u64) -> Hybrid {
    let mut numbers = Numbers(seed ^ 0x9e37_79b9_7f4a_7c15);
    let processes = 2 + numbers.below(3) as usize;
    let threads: Vec<usize> = (0..processes).map(|_| 3 + numbers.below(3) as usize).collect();
    let mut hybrid = Hybrid::default();
    let streams: Vec<Streams> = threads
        .iter()
        .map(|&count| {
            let known = [Known::Callsite, Known::Reference, Known::OneStream][numbers.below(3) as usize];
            let most = if known == Known::OneStream { 2 } else { 3 };
            let streams = numbers.below(most) as usize;
            let mut user = |place| (count + place, numbers.below(count as u64 - 1) as usize);
            let of: Vec<(usize, usize)> = (0..streams).map(&mut user).collect();
            Streams { known, last: vec![None; of.len()], of, events: BTreeMap::new() }
        })
        .collect();
    let count_of = |(p, &count): (usize, &usize)| count + streams[p].of.len();
    let locations: Vec<usize> = threads.iter().enumerate().map(count_of).collect();
    hybrid.trace.streams = (0..).zip(&streams).flat_map(|(p, s)| s.of.iter().map(move |&(l, _)| ((p, l), 0))).collect();
    let process = |(p, &count): (usize, &usize)| Process { node: p as u32 / 2, locations: vec![Vec::new(); count] };
    hybrid.trace.processes = locations.iter().enumerate().map(process).collect();
    let world: Vec<MpiRank> = (0..processes as u32).map(MpiRank).collect();
    let communicator = |id, members| Communicator { id, name: String::new(), members, global_ranks: false };
    hybrid.trace.communicators.push(communicator(CommId(0), CommMembers::Intra(world.into())));
    hybrid.trace.communicators.extend((0..processes).map(|p| communicator(team(p), CommMembers::NotMpi)));
    let now = locations.iter().map(|&count| vec![20_000; count]).collect();
    let mut run = Run { numbers, hybrid, now, threads: threads.clone(), streams, orders: 0 };
    let created: Vec<(At, ThreadStart)> = (0..processes)
        .map(|p| {
            let start = ThreadStart { contingent: team(p), sequence: 1 };
            let at = run.step((p, 0), 0, ThreadEvent::Create(start));
            let created = run.time(at);
            let begin = run.step((p, threads[p] - 1), created, ThreadEvent::Begin(start));
            run.pair(at, begin);
            (at, start)
        })
        .collect();
    run.hybrid.turns = run.numbers.chance(2);
    // The same one of its threads every time; where threads take turns, the main one, whose order with them is recorded.
    let mut of_process = |&count: &usize| match run.hybrid.turns {
        true => 0,
        false => run.numbers.below(count as u64) as usize,
    };
    let who: Vec<usize> = threads.iter().map(&mut of_process).collect();
    let meets = run.numbers.chance(2);
    for round in 0..1 + run.numbers.below(4) as u32 {
        let mains: Vec<(usize, usize)> = (0..processes).map(|p| (p, 0)).collect();
        run.messages(&mains, 1);
        run.region(round);
        if meets {
            run.meet(&who);
        }
    }
    for (p, (_, start)) in created.into_iter().enumerate() {
        let end = run.step((p, threads[p] - 1), 0, ThreadEvent::End(start));
        let ended = run.time(end);
        let wait = run.step((p, 0), ended, ThreadEvent::Wait(start));
        run.pair(end, wait);
    }
    run.hybrid
}

/// Wrong clocks: all locations of a process by as much, and some of them by more.
pub(crate) fn disturb(hybrid: &mut Hybrid, seed: u64) {
    let mut numbers = Numbers(seed);
    for process in &mut hybrid.trace.processes {
        let common = numbers.below(600) - 300;
        for location in &mut process.locations {
            let own = if numbers.chance(3) { numbers.below(600) - 300 } else { 0 };
            let drift = if numbers.chance(4) { numbers.below(41) - 20 } else { 0 };
            for recorded in location {
                recorded.time += common + own + recorded.time * drift / 1000;
            }
        }
    }
}
