//! The discrete-event simulation: processes that compute and communicate in true time.
//!
//! A pattern gives every process a short program per step ([`Op`]s); the engine runs each process until it has to wait for
//! another one, matches messages and collectives as MPI does, and emits the events that a tracer would record, in the order
//! of each location. Memory per process is the program of one step and its open messages, whatever the length of the run.
//! True time is in picoseconds since the start of the simulation.

mod collective;
mod execute;
mod messages;
mod ops;
mod parts;
mod windows;

pub(super) use collective::cost_of as collective_bytes;
pub(super) use ops::{CollectiveCall, Epoch, NO_ROOT, Op, Transfer, WaitOrder, regions, thread_barriers};
pub(super) use parts::CALLSITE;
pub(super) use windows::{WINDOW, group_of};

use crate::clocks::SimulatedClock;
use crate::latency::PreparedLatencyModel;
use crate::random::Random;
use crate::sink::EventSink;
use crate::units::{EPOCH, TickRate};
use clc_trace::{Error, Event, MpiRank, RegionId, Result};
use collective::CommState;
use messages::{MessageInFlight, OpenRequest, PostedReceive};
use ops::region;
use std::collections::VecDeque;
use std::ops::Range;

/// Time that recording one event takes, in picoseconds: at least this, plus up to 65 ns at random.
const RECORDING: i64 = 60_000;
/// The simulation stops with an error beyond this true time, so that sums never overflow.
const END_OF_TIME: i64 = i64::MAX / 4;

/// What a blocked process waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockedOn {
    Nothing,
    /// All of its requests.
    All,
    /// The request at this index.
    One(u32),
    /// The end of its current blocking collective.
    Collective,
}

/// One process of the application.
#[derive(Debug)]
pub(super) struct Process {
    /// True time up to which it has run.
    now: i64,
    node: u32,
    /// Its draws of computation times and delays.
    pub(super) random: Random,
    /// What it does in this step, and how far it is.
    pub(super) program: Vec<Op>,
    next_op: usize,
    /// 1 while it waits inside an operation.
    stage: u8,
    waiting: BlockedOn,
    requests: Vec<OpenRequest>,
    /// Requests whose completion time is not known yet.
    unresolved: u32,
    /// Id of the next request, unique in the process.
    next_request: u64,
    /// End of the collective it waits for.
    collective_end: i64,
    /// Messages on their way to it without a receive, and receives without a message; each in its order.
    inbox: Vec<MessageInFlight>,
    posted: Vec<PostedReceive>,
}

/// The state of the simulation. `S` receives the events.
pub(super) struct Engine<'a, S: ?Sized> {
    sink: &'a mut S,
    rate: TickRate,
    network: PreparedLatencyModel,
    threads: usize,
    /// The further locations of a process are streams of its accelerator.
    streams: bool,
    /// Its threads work in teams only.
    teams: bool,
    /// Until when each location is busy, if it is a stream.
    busy: Vec<i64>,
    calls: u32,
    /// One clock per location.
    clocks: Vec<SimulatedClock>,
    pub(super) processes: Vec<Process>,
    comms: Vec<CommState>,
    ready: VecDeque<u32>,
    /// Events emitted per location, and by all of them.
    pub(super) counts: Vec<u64>,
    pub(super) emitted: u64,
    /// While set, recording takes no time, so that events of a process have equal times.
    pub(super) ties: bool,
    /// Latest time on any true or local clock so far, in picoseconds.
    pub(super) latest: i64,
}

/// What an engine is made of.
pub(super) struct Setup {
    pub(super) rate: TickRate,
    pub(super) network: PreparedLatencyModel,
    /// Locations per process.
    pub(super) threads: usize,
    /// All but the first one are streams of an accelerator.
    pub(super) streams: bool,
    /// Threads work in teams only.
    pub(super) teams: bool,
    pub(super) calls: u32,
    pub(super) clocks: Vec<SimulatedClock>,
    pub(super) nodes: Vec<u32>,
    /// Members of each communicator as processes, by communicator index, and how many of them are the first group of an inter-communicator; empty
    /// for a communicator of one's own.
    pub(super) comms: Vec<(Vec<MpiRank>, Option<usize>)>,
    pub(super) seed: u64,
    /// True time at which the application starts.
    pub(super) start: i64,
}

/// Domain of the random streams of processes.
const PROCESSES: u64 = 2;

impl<'a, S: EventSink + ?Sized> Engine<'a, S> {
    pub(super) fn new(setup: Setup, sink: &'a mut S) -> Self {
        let process = |(rank, &node): (usize, &u32)| {
            let mut random = Random::new(setup.seed, &[PROCESSES, rank as u64]);
            Process {
                now: setup.start + random.exponential(20_000_000),
                node,
                random,
                program: Vec::new(),
                next_op: 0,
                stage: 0,
                waiting: BlockedOn::Nothing,
                requests: Vec::new(),
                unresolved: 0,
                next_request: 0,
                collective_end: 0,
                inbox: Vec::new(),
                posted: Vec::new(),
            }
        };
        let processes: Vec<Process> = setup.nodes.iter().enumerate().map(process).collect();
        let nodes = &setup.nodes;
        Engine {
            sink,
            rate: setup.rate,
            network: setup.network,
            threads: setup.threads,
            streams: setup.streams,
            teams: setup.teams,
            busy: vec![0; setup.clocks.len()],
            calls: setup.calls,
            counts: vec![0; setup.clocks.len()],
            clocks: setup.clocks,
            comms: setup.comms.into_iter().map(|(members, first)| CommState::new(members, first, nodes)).collect(),
            processes,
            ready: VecDeque::new(),
            emitted: 0,
            ties: false,
            latest: 0,
        }
    }

    /// Records an event of a process on its first location, a little later than the last one.
    #[inline]
    pub(super) fn emit(&mut self, rank: usize, event: Event) -> Result<()> {
        let process = &mut self.processes[rank];
        if !self.ties {
            process.now += RECORDING + (process.random.next() >> 48) as i64;
        }
        let now = process.now;
        self.record(rank * self.threads, now, event)
    }

    /// Records an event of a location at true time `now`.
    #[inline]
    fn record(&mut self, location: usize, now: i64, event: Event) -> Result<()> {
        let local = self.clocks[location].read(now);
        self.counts[location] += 1;
        self.emitted += 1;
        self.latest = self.latest.max(local).max(EPOCH + now);
        self.sink.event(location, self.rate.ticks(EPOCH + now), self.rate.ticks(local), &event)
    }

    #[inline]
    pub(super) fn enter(&mut self, rank: usize, region: RegionId) -> Result<()> {
        self.emit(rank, Event::Enter(region))
    }

    #[inline]
    pub(super) fn leave(&mut self, rank: usize, region: RegionId) -> Result<()> {
        self.emit(rank, Event::Leave(region))
    }

    /// The threads of a process beside its first one.
    fn further_threads(&self) -> Range<usize> {
        1..if self.streams { 1 } else { self.threads }
    }

    /// Lets a process compute for `duration` picoseconds; its other threads join in for part of it.
    pub(super) fn compute(&mut self, rank: usize, duration: i64) -> Result<()> {
        self.enter(rank, region::COMPUTE)?;
        let start = self.processes[rank].now;
        let threads = if self.teams { 1..1 } else { self.further_threads() };
        for thread in threads {
            let location = rank * self.threads + thread;
            // Between half and all of the time: the rest is the imbalance of the threads.
            let share = (1 << 31) + (self.processes[rank].random.next() >> 33) as i64;
            let end = start + ((i128::from(duration) * i128::from(share)) >> 32) as i64;
            self.record(location, start, Event::Enter(region::PARALLEL))?;
            self.record(location, end, Event::Leave(region::PARALLEL))?;
        }
        let end = start + duration;
        let step = duration / (i64::from(self.calls) + 1);
        for _ in 0..self.calls {
            self.processes[rank].now += step / 2;
            self.enter(rank, region::USER)?;
            self.processes[rank].now += step / 2;
            self.leave(rank, region::USER)?;
        }
        // Recording takes time: many calls make a computation longer.
        let process = &mut self.processes[rank];
        process.now = process.now.max(end);
        self.leave(rank, region::COMPUTE)
    }

    /// Start of every process: `main` is entered and MPI initialised.
    pub(super) fn initialise(&mut self) -> Result<()> {
        for rank in 0..self.processes.len() {
            for thread in self.further_threads() {
                let now = self.processes[rank].now;
                self.record(rank * self.threads + thread, now, Event::Enter(region::THREAD))?;
            }
            self.enter(rank, region::MAIN)?;
            self.enter(rank, region::INIT)?;
            self.leave(rank, region::INIT)?;
        }
        Ok(())
    }

    /// End of every process, after all others have come to their end.
    pub(super) fn finalise(&mut self) -> Result<()> {
        self.ties = false;
        for rank in 0..self.processes.len() {
            self.enter(rank, region::FINALIZE)?;
        }
        let end = self.now();
        for rank in 0..self.processes.len() {
            self.processes[rank].now = end;
            self.leave(rank, region::FINALIZE)?;
            self.leave(rank, region::MAIN)?;
            for thread in self.further_threads() {
                let now = self.processes[rank].now;
                self.record(rank * self.threads + thread, now, Event::Leave(region::THREAD))?;
            }
        }
        Ok(())
    }

    /// All processes in the order of their times.
    pub(super) fn in_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.processes.len()).collect();
        order.sort_by_key(|&rank| self.processes[rank].now);
        order
    }

    /// True time of the process that has come furthest, in picoseconds.
    pub(super) fn now(&self) -> i64 {
        self.processes.iter().map(|process| process.now).max().unwrap_or(0)
    }

    /// Fails when the run has become so long that its times might overflow.
    pub(super) fn check_time(&self) -> Result<()> {
        if self.now() > END_OF_TIME || self.latest > END_OF_TIME {
            return Err(
                Error::new("the simulated run is longer than 26 days").hint("use fewer events or shorter computation")
            );
        }
        Ok(())
    }
}
