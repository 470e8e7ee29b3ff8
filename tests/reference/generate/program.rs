//! A random MPI program, run in true time.
//!
//! Every location has a cursor, its own true time. The program is a sequence of global steps; a step moves the cursors of
//! the locations that take part in it, and nobody else's. So processes run ahead of each other as far as the
//! dependencies let them. Since steps are taken one after the other and wait only for earlier ones, nothing can deadlock.
//!
//! All calls of a process on one communicator with one tag, and all its collectives on one communicator, happen on one
//! location: otherwise MPI would not define which of them comes first.

use super::super::model::{REGION_NAMES, REGIONS};
use super::{Options, rng::Rng};
use clc_trace::{
    Collective, CommId, CommMembers, Communicator, Event, GroupId, Message, MpiRank, RegionId, Window, WindowId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the program did: per process and location the events in true time.
pub(super) struct Run {
    pub streams: Vec<Vec<Vec<(i64, Event)>>>,
    pub nodes: Vec<u32>,
    pub communicators: Vec<Communicator>,
    pub windows: Vec<Window>,
    pub groups: Vec<(GroupId, Arc<[MpiRank]>)>,
}

/// A stream of messages in which order is kept: sender, receiver, communicator, tag.
pub(super) type Channel = (usize, usize, CommId, u32);

/// An event stream: process and location.
pub(super) type Thread = (usize, usize);

/// A request that is not complete.
pub(super) enum Pending {
    Send {
        request: u64,
    },
    /// The `index`-th send of a channel, not complete before its receive is posted.
    SynchronousSend {
        request: u64,
        channel: Channel,
        index: usize,
    },
    /// The `index`-th posted receive of a channel. A lost one is complete without a record of it.
    Receive {
        request: u64,
        channel: Channel,
        source_rank: u32,
        index: usize,
        lost: bool,
    },
    Collective {
        request: u64,
        collective: Collective,
        not_before: i64,
    },
}

/// The state of the running program.
pub(super) struct Program<'a> {
    pub rng: &'a mut Rng,
    pub options: &'a Options,
    pub run: Run,
    cursors: Vec<Vec<i64>>,
    requests: Vec<Vec<Requests>>,
    pub pending: Vec<Vec<Vec<Pending>>>,
    /// True time and length of every message sent so far.
    pub sent: BTreeMap<Channel, Vec<(i64, u64)>>,
    /// Number of receives posted so far.
    pub posted: BTreeMap<Channel, usize>,
    /// When receives were posted, by channel and index, where a trace tells that.
    pub posts: BTreeMap<(Channel, usize), i64>,
    /// Receives that the program will make later: their channels, and the rank of the source.
    pub deferred: Vec<(Channel, u32)>,
    pub messages: u64,
    salt: u64,
}

/// The request ids of one location; completed ones are used again.
#[derive(Clone, Default)]
struct Requests {
    free: Vec<u64>,
    used: u64,
}

/// Runs a random program.
pub(super) fn run(rng: &mut Rng, options: &Options) -> Run {
    let nodes: Vec<u32> = (0..options.processes).map(|_| rng.below(options.nodes as usize) as u32).collect();
    let locations: Vec<usize> = (0..options.processes).map(|_| 1 + rng.below(options.locations)).collect();
    let communicators = communicators(rng, options.processes);
    let windows = windows(rng, &communicators);
    let salt = rng.bits();
    let mut program = Program {
        rng,
        options,
        run: Run {
            streams: locations.iter().map(|&n| vec![Vec::new(); n]).collect(),
            nodes,
            windows,
            groups: Vec::new(),
            communicators,
        },
        cursors: locations.iter().map(|&n| vec![0; n]).collect(),
        requests: locations.iter().map(|&n| vec![Requests::default(); n]).collect(),
        pending: locations.iter().map(|&n| (0..n).map(|_| Vec::new()).collect()).collect(),
        sent: BTreeMap::new(),
        posted: BTreeMap::new(),
        posts: BTreeMap::new(),
        deferred: Vec::new(),
        messages: 0,
        salt,
    };
    for _ in 0..options.steps {
        program.step();
    }
    program.finish();
    program.run
}

/// Two windows on any communicators but those of two groups.
fn windows(rng: &mut Rng, communicators: &[Communicator]) -> Vec<Window> {
    let fit: Vec<CommId> =
        communicators.iter().filter(|c| !matches!(c.members, CommMembers::Inter(..))).map(|c| c.id).collect();
    let window = |id: u32| Window { id: WindowId(id), name: String::new(), comm: fit[0] };
    vec![window(5), Window { comm: rng.pick(&fit), ..window(2) }]
}

/// World, MPI_COMM_SELF, the world in reverse, a split in two, a random part in random order, and a single member; last two groups that split the
/// world, if there are members for both.
fn communicators(rng: &mut Rng, processes: usize) -> Vec<Communicator> {
    let world: Vec<MpiRank> = (0..processes as u32).map(MpiRank).collect();
    let mut members = vec![world.clone(), world.iter().rev().copied().collect()];
    for parity in 0..2 {
        members.push(world.iter().copied().filter(|rank| rank.0 % 2 == parity).collect());
    }
    let mut part = world.clone();
    rng.shuffle(&mut part);
    part.truncate(1 + rng.below(processes));
    members.push(part);
    members.push(vec![rng.pick(&world)]);
    members.retain(|members| !members.is_empty());
    let mut kinds: Vec<CommMembers> = members.into_iter().map(|members| CommMembers::Intra(members.into())).collect();
    kinds.insert(1, CommMembers::SelfOnly);
    if processes > 1 {
        let mut all = world;
        rng.shuffle(&mut all);
        let (a, b) = all.split_at(1 + rng.below(processes - 1));
        kinds.push(CommMembers::Inter(a.into(), b.into()));
    }
    let communicator = |(i, members): (usize, CommMembers)| Communicator {
        id: CommId(3 * i as u32 + 1),
        name: format!("communicator {i}"),
        members,
        global_ranks: false,
    };
    kinds.into_iter().enumerate().map(communicator).collect()
}

impl Program<'_> {
    fn step(&mut self) {
        match self.rng.below(11) {
            10 if self.rng.percent(40) => self.epoch_step(),
            10 => self.window_step(),
            0..4 => self.message_batch(),
            4..6 => self.blocking_collective(),
            6 => self.staggered_collective(),
            7 => self.non_blocking_collective(),
            8 => self.receive_deferred(),
            _ => self.local_work(),
        }
    }

    /// Completes whatever is open.
    fn finish(&mut self) {
        self.receive_deferred();
        for process in 0..self.pending.len() {
            for location in 0..self.pending[process].len() {
                self.complete((process, location), 100);
                self.local((process, location));
            }
        }
    }

    /// A communicator with its members; for MPI_COMM_SELF, of a random process.
    pub(super) fn pick_communicator(&mut self) -> (CommId, Vec<usize>) {
        let among = self.run.communicators.iter().filter(|c| !matches!(c.members, CommMembers::Inter(..))).count();
        let picked = if self.rng.percent(40) { 0 } else { self.rng.below(among) };
        let communicator = &self.run.communicators[picked];
        let id = communicator.id;
        match &communicator.members {
            CommMembers::Intra(members) => (id, members.iter().map(|process| process.place()).collect()),
            _ => (id, vec![self.rng.below(self.options.processes)]),
        }
    }

    /// A communicator for a collective, with its members, and the number of those in the first group of an inter-communicator.
    pub(super) fn pick_for_collective(&mut self) -> (CommId, Vec<usize>, usize) {
        if let Some(Communicator { id, members: CommMembers::Inter(a, b), .. }) = self.run.communicators.last()
            && self.rng.percent(25)
        {
            return (*id, a.iter().chain(b.iter()).map(|process| process.place()).collect(), a.len());
        }
        let (id, members) = self.pick_communicator();
        (id, members, 0)
    }

    /// The location on which a process makes its calls on a communicator, with a tag or for collectives: mostly the first.
    pub(super) fn thread(&self, process: usize, comm: CommId, tag: Option<u32>) -> Thread {
        let locations = self.cursors[process].len();
        let key = (process as u64) << 40 | u64::from(comm.0) << 20 | u64::from(tag.map_or(0, |tag| tag + 1));
        let mut dice = Rng(self.salt ^ key);
        (process, if dice.percent(60) { 0 } else { dice.below(locations) })
    }

    /// The true minimum latency of a message.
    pub(super) fn latency(&self, from: usize, to: usize) -> i64 {
        let rules = &self.options.rules;
        if self.run.nodes[from] == self.run.nodes[to] { rules.same_node } else { rules.other_node }
    }

    /// Lets time pass on a location: often none at all, seldom much.
    fn pass(&mut self, (process, location): Thread) {
        let time = match self.rng.below(10) {
            0..3 => 0,
            3..8 => self.rng.between(1, 30),
            _ => self.rng.between(1, 2_000),
        };
        self.cursors[process][location] += time;
    }

    /// Lets time pass, at least until `not_before`, and records an event. Returns its true time.
    pub(super) fn record(&mut self, thread: Thread, not_before: i64, event: Event) -> i64 {
        self.pass(thread);
        let cursor = &mut self.cursors[thread.0][thread.1];
        *cursor = not_before.max(*cursor);
        self.run.streams[thread.0][thread.1].push((*cursor, event));
        *cursor
    }

    /// Records a call: `Enter`, the events inside, `Leave`.
    pub(super) fn call<T>(&mut self, thread: Thread, inside: impl FnOnce(&mut Self) -> T) -> T {
        let region = RegionId(self.rng.below(REGIONS as usize) as u32);
        self.call_of(thread, region, 0, inside).1
    }

    /// Records a call of the region with this name. It is not left before `not_before`. Returns when it was entered, too.
    pub(super) fn call_named<T>(
        &mut self,
        thread: Thread,
        name: &str,
        not_before: i64,
        inside: impl FnOnce(&mut Self) -> T,
    ) -> (i64, T) {
        let region = REGION_NAMES.iter().position(|known| *known == name).expect("a region of this name");
        self.call_of(thread, RegionId(region as u32), not_before, inside)
    }

    fn call_of<T>(
        &mut self,
        thread: Thread,
        region: RegionId,
        not_before: i64,
        inside: impl FnOnce(&mut Self) -> T,
    ) -> (i64, T) {
        let entered = self.record(thread, 0, Event::Enter(region));
        let result = inside(self);
        self.record(thread, not_before, Event::Leave(region));
        (entered, result)
    }

    /// A few events that communicate nothing.
    fn local(&mut self, thread: Thread) {
        for _ in 0..self.rng.below(4) {
            self.call(thread, |program| program.record(thread, 0, Event::Other));
        }
    }

    fn local_work(&mut self) {
        for process in 0..self.cursors.len() {
            let location = self.rng.below(self.cursors[process].len());
            self.local((process, location));
        }
    }

    /// A request id that no open request of the process has.
    pub(super) fn new_request(&mut self, (process, location): Thread) -> u64 {
        let requests = &mut self.requests[process][location];
        requests.free.pop().unwrap_or_else(|| {
            requests.used += 1;
            1_000 * location as u64 + requests.used
        })
    }

    /// The id of a complete request may be used again.
    pub(super) fn free_request(&mut self, (process, location): Thread, request: u64) {
        self.requests[process][location].free.push(request);
    }

    /// Completes each pending request of a location with so many percent probability, in random order.
    pub(super) fn complete(&mut self, thread: Thread, percent: usize) {
        let mut pending = std::mem::take(&mut self.pending[thread.0][thread.1]);
        self.rng.shuffle(&mut pending);
        for open in pending {
            let posted = match open {
                Pending::SynchronousSend { channel, index, .. } => {
                    self.posted.get(&channel).is_some_and(|n| *n > index)
                }
                _ => true,
            };
            if posted && self.rng.percent(percent) {
                self.call(thread, |program| program.complete_one(thread, open));
            } else {
                self.pending[thread.0][thread.1].push(open);
            }
        }
    }

    /// When a synchronous send may be over whose receive has been posted, as far as a trace tells.
    pub(super) fn acknowledged(&self, channel: Channel, index: usize) -> i64 {
        self.posts.get(&(channel, index)).map_or(0, |posted| posted + self.latency(channel.1, channel.0))
    }

    fn complete_one(&mut self, thread: Thread, open: Pending) {
        let (request, not_before, event) = match open {
            Pending::Send { request } => (request, 0, Event::MpiIsendComplete(request)),
            Pending::SynchronousSend { request, channel, index } => {
                (request, self.acknowledged(channel, index), Event::MpiIsendComplete(request))
            }
            Pending::Receive { lost: true, .. } => return,
            Pending::Receive { request, channel, source_rank, index, .. } => {
                let (arrival, length) = self.arrival(channel, index);
                let message = Message { peer: source_rank, comm: channel.2, tag: channel.3, length };
                (request, arrival, Event::MpiIrecv(message, request))
            }
            Pending::Collective { request, collective, not_before } => {
                (request, not_before, Event::NonBlockingCollectiveComplete(collective, request))
            }
        };
        if self.rng.percent(20) {
            self.record(thread, 0, Event::MpiRequestTest(request));
        }
        self.record(thread, not_before, event);
        self.free_request(thread, request);
    }
}
