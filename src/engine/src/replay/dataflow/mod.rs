//! Forward replay on any number of analysis ranks.
//!
//! Every rank runs each of its timelines until it waits for a timestamp that is not there yet. Timestamps for other ranks are
//! collected and sent in batches, when a batch is full or when nothing local can run. Dependencies are exactly those of
//! `clc::semantics`, nothing waits for more; since a timeline's result depends only on the values it receives (a
//! Kahn process network: G. Kahn, The semantics of a simple language for parallel programming, IFIP 1974), it is the same for every number of ranks
//! and every schedule. `schedule` runs it to its end, alone or together with the mirrored one.
//!
//! A replay carries one logical time per event, or two: the plain Lamport clock gives D₀, and running beside the first pass it needs no
//! messages of its own, whose latency is what a replay on several ranks waits for.
//!
//! Contributions to a collective are combined on each host first; those of several hosts meet at the communicator's home,
//! which hands the result back. No MPI communicator is needed for that, however many the application had.

mod collectives;
mod flight;
mod lamport;
pub mod outbox;
pub mod schedule;

use crate::comm::Transport;
use crate::matching::collectives::instances::{InstanceIndex, Slot};
use crate::matching::comm_index::CommIndex;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::sync::SyncKind;
use crate::matching::visited_times::{TimelineTimes, VisitedTimes};
use crate::replay::forward::{Forward, TimelineClock};
use crate::replay::program::Program;
use crate::replay::stall::{self, Stopped};
use clc_trace::{CommRank, Fraction, Result, Ticks};
use controlled_logical_clock::forward::ForwardParameters;
use flight::{OpenInstances, Times, damaged, maxima_in, times_in};
use lamport::Lamport;
use outbox::Outbox;
use schedule::{Turns, WHICH};
use std::collections::{BTreeMap, VecDeque};

/// Visited events of one timeline between two looks at the network. Chosen by hand: after longer ones, other ranks have waited for timestamps that
/// were known; with shorter ones, more of the time goes into looking.
const BURST: usize = 1 << 16;

/// Bounds that may wait for the plain Lamport clock: one per so many visited events, about two bytes each,
const WAITING_PART: usize = 16;
/// but so many in any case.
const FEW: usize = 1 << 16;

/// What the first word of an entry of a batch says (in its lowest bits, then [`WHICH`] replay it belongs to; the rest is the channel or communicator).
const MESSAGE: u64 = 0;
const PARTIAL: u64 = 1;
const RESULT: u64 = 2;
const PREFIX_PARTIAL: u64 = 3;
const PREFIX_RESULT: u64 = 4;
const TAGS: u64 = WHICH - 1;
const TAG_BITS: u32 = 4;

/// Replays all timelines once. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport; a cycle of waiting events, which only a contradictory trace can have.
pub fn replay(transport: &mut dyn Transport, program: &Program, parameters: ForwardParameters) -> Result<Forward> {
    complete::<1>(transport, program, None, parameters).map(|(forward, _)| forward)
}

/// As [`replay`], but from the times `base` of the visited events.
///
/// # Errors
/// As [`replay`].
pub(crate) fn replay_from(
    transport: &mut dyn Transport,
    program: &Program,
    base: Vec<VisitedTimes<'_>>,
    parameters: ForwardParameters,
) -> Result<Forward> {
    complete::<1>(transport, program, Some(base), parameters).map(|(forward, _)| forward)
}

/// As [`replay`], and the largest advance that the plain Lamport clock (γ = 0, δ = 0) has on the hosted timelines; `None` if that took too
/// much memory.
///
/// # Errors
/// As [`replay`].
pub(crate) fn replay_with_lamport(
    transport: &mut dyn Transport,
    program: &Program,
    parameters: ForwardParameters,
) -> Result<(Forward, Option<Ticks>)> {
    complete::<2>(transport, program, None, parameters)
}

/// Two programs replayed at the same time, from their own times: the first as by [`replay_with_lamport`], the second as by [`replay`]. What one waits for
/// is under way while the other one goes on.
///
/// # Errors
/// As [`replay`].
pub(crate) fn replay_both_with_lamport(
    transport: &mut dyn Transport,
    program: &Program,
    other: &Program,
    parameters: ForwardParameters,
) -> Result<(Forward, Option<Ticks>, Forward)> {
    both::<2>(transport, program, other, parameters)
}

/// As [`replay_both_with_lamport`], without the plain Lamport clock.
///
/// # Errors
/// As [`replay`].
pub(crate) fn replay_both(
    transport: &mut dyn Transport,
    program: &Program,
    other: &Program,
    parameters: ForwardParameters,
) -> Result<(Forward, Forward)> {
    let (forward, _, back) = both::<1>(transport, program, other, parameters)?;
    Ok((forward, back))
}

fn both<const CLOCKS: usize>(
    transport: &mut dyn Transport,
    program: &Program,
    other: &Program,
    parameters: ForwardParameters,
) -> Result<(Forward, Option<Ticks>, Forward)> {
    let mut first = DataflowReplay::<CLOCKS>::new(program, None, parameters, false);
    let mut second = DataflowReplay::<1>::new(other, None, parameters, false);
    let finished = schedule::run(&mut [&mut first, &mut second], &mut Outbox::new(transport))?;
    let (forward, lamport) = first.complete(transport, finished[0])?;
    let (back, _) = second.complete(transport, finished[1])?;
    Ok((forward, lamport, back))
}

fn complete<const CLOCKS: usize>(
    transport: &mut dyn Transport,
    program: &Program,
    base: Option<Vec<VisitedTimes<'_>>>,
    parameters: ForwardParameters,
) -> Result<(Forward, Option<Ticks>)> {
    let mut replay = DataflowReplay::<CLOCKS>::new(program, base, parameters, false);
    let finished = replay.run(transport)?;
    replay.complete(transport, finished)
}

/// The constants of the plain Lamport clock, whose largest advance is D₀.
pub const LAMPORT: ForwardParameters = ForwardParameters { decay: Fraction::ONE, separation: Ticks::ZERO };

/// Whether a replay would get through if every collective operation synchronised all its members, as blocking MPI calls may: then the
/// largest advance of the plain Lamport clock on the hosted timelines, in which prefix operations are left out. Collective over the
/// analysis ranks; all get through or none.
///
/// # Errors
/// Failures of the transport.
pub fn rehearse(transport: &mut dyn Transport, program: &Program) -> Result<Option<Ticks>> {
    let mut replay = DataflowReplay::<1>::new(program, None, LAMPORT, true);
    let through = replay.run(transport)?;
    Ok(through.then(|| replay.largest_advance()))
}

/// Where a replay stops, if it does not get to the end. Collective over the analysis ranks; all get through or none.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn stopped_at(transport: &mut dyn Transport, program: &Program) -> Result<Option<Stopped>> {
    let mut replay = DataflowReplay::<1>::new(program, None, LAMPORT, false);
    let finished = replay.run(transport)?;
    let DataflowReplay { position, forward, arrived, .. } = replay;
    Ok((!finished).then_some(Stopped { position, bounds: forward.advances, arrived }))
}

/// Replays `CLOCKS` clocks at once: the one of the formula, and the plain Lamport clock.
struct DataflowReplay<'a, const CLOCKS: usize> {
    /// Every collective synchronises all members.
    synchronising: bool,
    /// [`WHICH`] or 0: which of the replays that run at the same time it is.
    which: u64,
    program: &'a Program,
    /// The times from which it starts, if these are not those of the program.
    base: Option<Vec<VisitedTimes<'a>>>,
    clocks: Vec<TimelineClock>,
    /// Used if there are two clocks.
    lamport: Lamport,
    /// Next event per timeline.
    position: Vec<usize>,
    forward: Forward,
    /// Timelines that can go on.
    runnable: VecDeque<LocalTimeline>,
    /// Those of them that send messages to other ranks: they go first, and the others run while their timestamps are under way.
    urgent: VecDeque<LocalTimeline>,
    /// Whether a timeline is one of these.
    sends_away: Vec<bool>,
    /// Whether a timeline is in one of the two.
    queued: Vec<bool>,
    /// Next message per incoming channel.
    arrived: Vec<u32>,
    /// What has arrived for events that wait for several timestamps: how many, and the latest.
    joining: BTreeMap<(LocalTimeline, u32), (usize, Times<CLOCKS>)>,
    /// Next instance per membership.
    begun: Vec<u32>,
    /// Instances in flight, per communicator: combined on this host.
    local: Vec<OpenInstances<CLOCKS>>,
    /// The same at their home, where the hosts' contributions meet.
    home: Vec<OpenInstances<CLOCKS>>,
}

impl<'a, const CLOCKS: usize> DataflowReplay<'a, CLOCKS> {
    fn new(
        program: &'a Program,
        base: Option<Vec<VisitedTimes<'a>>>,
        parameters: ForwardParameters,
        synchronising: bool,
    ) -> Self {
        let timelines = program.timelines.len();
        let comms = program.collectives.comms.len();
        let mut forward = Forward::new(program);
        if synchronising {
            forward.wait_at_every_end(program);
        }
        let waiting = (program.events() as usize / WAITING_PART).max(FEW);
        DataflowReplay {
            lamport: Lamport::new(if CLOCKS > 1 { timelines } else { 0 }, waiting),
            synchronising,
            which: 0,
            program,
            base,
            clocks: (0..timelines).map(|_| TimelineClock::new(parameters)).collect(),
            position: vec![0; timelines],
            forward,
            runnable: VecDeque::new(),
            urgent: VecDeque::new(),
            sends_away: vec![false; timelines],
            queued: vec![false; timelines],
            arrived: vec![0; program.messages.incoming.len()],
            joining: BTreeMap::new(),
            begun: vec![0; program.collectives.memberships.len()],
            local: (0..comms).map(|_| OpenInstances::default()).collect(),
            home: (0..comms).map(|_| OpenInstances::default()).collect(),
        }
    }

    /// Runs until no rank can go on; returns whether all timelines of all ranks have ended.
    fn run(&mut self, transport: &mut dyn Transport) -> Result<bool> {
        let finished = schedule::run(&mut [self], &mut Outbox::new(transport))?;
        Ok(finished == [true])
    }

    /// Its result, and that of the plain Lamport clock. It has run; `finished` is what came out.
    fn complete(mut self, transport: &mut dyn Transport, finished: bool) -> Result<(Forward, Option<Ticks>)> {
        self.forward.largest_advance = self.largest_advance();
        self.forward.jumps = self.clocks.iter().map(TimelineClock::jumps).sum();
        let DataflowReplay { program, position, forward, arrived, lamport, .. } = self;
        if !finished {
            let stopped = Stopped { position, bounds: forward.advances, arrived };
            return Err(stall::contradiction(transport, program, &stopped)?);
        }
        Ok((forward, lamport.largest_advance()))
    }

    /// Of the clock of the formula on the hosted timelines.
    fn largest_advance(&self) -> Ticks {
        self.clocks.iter().map(TimelineClock::largest_advance).max().unwrap_or(Ticks::ZERO)
    }

    /// Runs one timeline until it waits, ends, or has had its turn.
    fn advance(&mut self, timeline: LocalTimeline, out: &mut Outbox<'_>) -> Result<()> {
        let program = self.program;
        let sync = program.timeline(timeline);
        let base = self.base.as_ref().map(|base| base[timeline]);
        let turn = (self.position[timeline] + BURST).min(sync.len());
        let mut at = self.position[timeline];
        while at < turn {
            let Some(bound) = self.forward.advances[timeline].known(at) else { break };
            let own = sync.time(at);
            let time = base.map_or(own, |base| base.at(at as u32));
            let step = self.clocks[timeline].step(sync.location(at), time, own, time + bound);
            self.forward.advances[timeline].set(at, step.time.0 - time);
            let mut times = [step.time.0; CLOCKS];
            if let [_, lamport] = times.as_mut_slice() {
                *lamport = self.lamport.step(timeline, at, own);
            }
            match sync.kind(at) {
                SyncKind::Local | SyncKind::Receive | SyncKind::Join | SyncKind::End => {}
                SyncKind::Fan => {
                    for &channel in &program.messages.fans[sync.link(at)] {
                        self.send(channel as usize, times, out)?;
                    }
                }
                SyncKind::Send => self.send(sync.link(at), times, out)?,
                SyncKind::Begin => self.begin(sync.link(at), times, out)?,
            }
            at += 1;
        }
        self.position[timeline] = at;
        if at == turn && at < sync.len() {
            self.wake(timeline);
        }
        Ok(())
    }

    fn wake(&mut self, timeline: LocalTimeline) {
        if !std::mem::replace(&mut self.queued[timeline], true) {
            let queue = if self.sends_away[timeline] { &mut self.urgent } else { &mut self.runnable };
            queue.push_back(timeline);
        }
    }

    /// Gives an event its bound, and its timeline a turn if it waits for just that.
    #[inline]
    fn bound(&mut self, timeline: LocalTimeline, event: u32, bounds: Times<CLOCKS>) {
        let own = self.program.timeline(timeline).time(event as usize);
        let time = self.base.as_ref().map_or(own, |base| base[timeline].at(event));
        self.forward.advances[timeline].set(event as usize, bounds[0].saturating_sub(time));
        if let [_, lamport] = *bounds.as_slice() {
            self.lamport.bound(timeline, event, own, lamport);
        }
        if self.position[timeline] == event as usize {
            self.wake(timeline);
        }
    }

    fn send(&mut self, channel: usize, times: Times<CLOCKS>, out: &mut Outbox<'_>) -> Result<()> {
        let end = &self.program.messages.outgoing[channel];
        if end.host == out.here {
            self.deliver(end.remote as usize, times);
            Ok(())
        } else {
            let head = [self.head(end.remote, MESSAGE)];
            out.post(end.host, &head, &times.map(i64::cast_unsigned))
        }
    }

    fn deliver(&mut self, channel: usize, times: Times<CLOCKS>) {
        let program = self.program;
        let end = &program.messages.incoming[channel];
        let k = self.arrived[channel] as usize;
        self.arrived[channel] += 1;
        let latency = program.message_latency(end.source, program.number(end.destination));
        let (timeline, event, bounds) = (end.destination, end.receives.at(k), times.map(|time| time + latency));
        if program.messages.joins.is_empty() {
            return self.bound(timeline, event, bounds);
        }
        if let Some(bounds) = self.join(timeline, event, bounds) {
            self.bound(timeline, event, bounds);
        }
    }

    /// A timestamp for an event that may wait for several: the latest of all, when it is the last one.
    fn join(&mut self, timeline: LocalTimeline, event: u32, bounds: Times<CLOCKS>) -> Option<Times<CLOCKS>> {
        let sync = self.program.timeline(timeline);
        if sync.kind(event as usize) != SyncKind::Join {
            return Some(bounds);
        }
        let all = self.program.messages.joins[sync.link(event as usize)].len();
        let (count, latest) = self.joining.entry((timeline, event)).or_insert((0, bounds));
        *count += 1;
        latest.iter_mut().zip(bounds).for_each(|(latest, bound)| *latest = bound.max(*latest));
        if *count < all { None } else { self.joining.remove(&(timeline, event)).map(|(_, latest)| latest) }
    }

    /// The first word of an entry.
    #[inline]
    fn head(&self, what: u32, tag: u64) -> u64 {
        u64::from(what) << TAG_BITS | self.which | tag
    }
}

impl<const CLOCKS: usize> Turns for DataflowReplay<'_, CLOCKS> {
    fn begin_turns(&mut self, which: u64, out: &mut Outbox<'_>) -> Result<()> {
        self.which = which * WHICH;
        let here = out.here;
        for channel in self.program.messages.outgoing.iter().filter(|channel| channel.host != here) {
            self.sends_away[channel.source] = true;
        }
        (0..self.position.len()).map(LocalTimeline::at).for_each(|timeline| self.wake(timeline));
        self.contribute_silence(out)
    }

    fn urgent(&mut self, out: &mut Outbox<'_>) -> Result<()> {
        while let Some(timeline) = self.urgent.pop_front() {
            self.queued[timeline] = false;
            self.advance(timeline, out)?;
        }
        Ok(())
    }

    fn turn(&mut self, out: &mut Outbox<'_>) -> Result<bool> {
        let Some(timeline) = self.runnable.pop_front() else { return Ok(false) };
        self.queued[timeline] = false;
        self.advance(timeline, out).map(|()| true)
    }

    fn has_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    fn has_runnable(&self) -> bool {
        !self.runnable.is_empty()
    }

    fn take<'w>(&mut self, words: &'w [u64], out: &mut Outbox<'_>) -> Result<&'w [u64]> {
        let program = self.program;
        let [head, rest @ ..] = words else { return Err(damaged()) };
        let what = head >> TAG_BITS;
        let comm = || program.comm_index[&CommIndex(what as u32)];
        let (which, rest) = match (head & TAGS, rest) {
            (MESSAGE, _) => (0, rest),
            (_, [which, rest @ ..]) => (*which, rest),
            _ => return Err(damaged()),
        };
        let (high, low) = ((which >> 32) as u32, which as u32);
        match head & TAGS {
            MESSAGE => {
                let (times, next) = times_in(rest)?;
                self.deliver(what as usize, times);
                Ok(next)
            }
            PARTIAL => {
                let (top, next) = maxima_in(rest)?;
                self.at_home(comm(), Slot(high), top, low, out)?;
                Ok(next)
            }
            RESULT => {
                let (top, next) = maxima_in(rest)?;
                self.result(comm(), Slot(low), top);
                Ok(next)
            }
            PREFIX_PARTIAL => {
                let (times, next) = times_in(rest)?;
                self.prefix_at_home(comm(), InstanceIndex(high), CommRank(low), times, out)?;
                Ok(next)
            }
            PREFIX_RESULT => {
                let (times, next) = times_in(rest)?;
                self.prefix_result(comm(), InstanceIndex(high), CommRank(low), times);
                Ok(next)
            }
            _ => Err(damaged()),
        }
    }

    fn unfinished(&self) -> i64 {
        let timelines = self.program.timelines.iter().zip(&self.position);
        timelines.filter(|(timeline, position)| **position < timeline.len()).count() as i64
    }
}
