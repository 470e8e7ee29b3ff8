//! Violations in detail: when, how far, between whom, and the worst ones with both their events.
//!
//! What [`crate::replay::clock_condition`] counts, looked at more closely. Costs one more exchange of bounds, so it is for reports that are
//! looked at.

use crate::comm::{AnalysisRank, Transport, broadcast_value, gather_values};
use crate::matching::collectives::instances::InstanceIndex;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::visited_times::TimelineTimes;
use crate::replay::advances::Advances;
use crate::replay::bounds::{collective_bounds, message_bounds};
use crate::replay::clock_condition::{Candidate, SenderQuery, Worst, place, sender_of};
use crate::replay::program::Program;
use clc_clock::grid::Grid;
use clc_trace::progress::Silent;
use clc_trace::workers::{Workers, shares};
use clc_trace::{CollectiveOp, Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// What is counted, and in which classes.
#[derive(Clone, Copy)]
pub struct Classes<'a> {
    /// Windows of pre-synchronised time.
    pub grid: &'a Grid,
    /// Row and column of every timeline in the matrix of pairs.
    pub group_of: &'a [u32],
    /// Class of a distance in ticks.
    pub distance: &'a (dyn Fn(i64) -> usize + Sync),
    /// Number of classes of distances.
    pub distances: usize,
    /// How many of the worst violations are wanted.
    pub worst: usize,
}

/// Messages from one group to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPair {
    /// Checked.
    pub messages: u64,
    /// Too early.
    pub violated: u64,
    /// The most that one is too early, in ticks.
    pub largest: i64,
}

/// The violations of a trace under given times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Logical receives by window.
    pub checked: Vec<u64>,
    /// Those too early.
    pub violated: Vec<u64>,
    /// Those too early by class of distance: messages, ends of collectives.
    pub distances: Vec<[u64; 2]>,
    /// Messages by group of sender and receiver.
    pub pairs: BTreeMap<(u32, u32), GroupPair>,
    /// The worst ones, at most one per pair of processes (of a collective: per operation and receiving process), worst first.
    pub worst: Vec<Worst>,
}

impl Profile {
    fn new(classes: &Classes<'_>) -> Profile {
        Profile {
            checked: vec![0; classes.grid.count],
            violated: vec![0; classes.grid.count],
            distances: vec![[0; 2]; classes.distances],
            ..Profile::default()
        }
    }

    fn merge(&mut self, other: Profile) {
        let add = |sums: &mut [u64], more: &[u64]| sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        add(&mut self.checked, &other.checked);
        add(&mut self.violated, &other.violated);
        for (sum, more) in self.distances.iter_mut().zip(&other.distances) {
            add(sum, more);
        }
        for (key, more) in other.pairs {
            let pair = self.pairs.entry(key).or_default();
            pair.messages += more.messages;
            pair.violated += more.violated;
            pair.largest = pair.largest.max(more.largest);
        }
    }
}

/// What only one candidate is kept of: operation (`None` for messages), sending timeline (of messages), receiving timeline.
type CandidateKey = (Option<u8>, Option<TimelineNumber>, TimelineNumber);

/// The worst violation of each key, its first if several are equally bad.
#[derive(Debug, Default)]
struct Worsts(BTreeMap<CandidateKey, EarlyReceive>);

/// A logical receive that comes too early.
#[derive(Debug, Clone, Copy)]
struct EarlyReceive {
    excess: i64,
    local: LocalTimeline,
    event: usize,
    op: Option<CollectiveOp>,
    question: SenderQuery,
}

impl Worsts {
    fn keep(&mut self, key: CandidateKey, early: EarlyReceive) {
        let order = |early: &EarlyReceive| (Reverse(early.excess), early.event);
        let kept = self.0.entry(key).or_insert(early);
        if order(&early) < order(kept) {
            *kept = early;
        }
    }
}

/// Looks at all matched pairs under `times` (one per visited event of the hosted timelines). The profile is on rank 0, but
/// [`Profile::worst`] is on all. Messages are shared out among `workers`. Collective over the analysis ranks; the same for any number of them.
///
/// # Errors
/// Failures of the transport.
pub fn profile<T: TimelineTimes>(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    times: &[T],
    classes: &Classes<'_>,
) -> Result<Profile> {
    let early = early(transport, program, times)?;
    let view = ProfileInput { program, early: &early, classes };
    let lengths: Vec<u64> = program.messages.incoming.iter().map(|channel| channel.receives.len() as u64).collect();
    let shares = shares(&lengths, workers.threads());
    // Collectives are one more job.
    let parts = workers.run(shares.len() + 1, &Silent, |job, _| {
        let (mut profile, mut worsts) = (Profile::new(classes), Worsts::default());
        match shares.get(job) {
            Some(channels) => view.messages(channels.clone(), &mut profile, &mut worsts),
            None => view.collectives(&mut profile, &mut worsts),
        }
        Ok((profile, worsts))
    })?;
    let (mut profile, mut worsts) = (Profile::new(classes), Worsts::default());
    for (part, more) in parts {
        profile.merge(part);
        more.0.into_iter().for_each(|(key, early)| worsts.keep(key, early));
    }
    let candidate = |EarlyReceive { excess: ticks, local, event, op, question }| {
        let receive = place(program, times, local, event);
        let order = (program.number(local), event as u32);
        Candidate { ticks, order, receive, op, question }
    };
    let mut candidates: Vec<Candidate> = worsts.0.into_values().map(candidate).collect();
    shorten(&mut candidates, classes.worst);
    let parts = gather_values(transport, AnalysisRank::FIRST, &(profile, candidates))?;
    let mut merged = Profile::new(classes);
    let mut candidates = Vec::new();
    for (part, more) in parts.into_iter().flatten() {
        merged.merge(part);
        candidates.extend(more);
    }
    shorten(&mut candidates, classes.worst);
    for Candidate { ticks, receive, op, question, .. } in broadcast_value(transport, AnalysisRank::FIRST, candidates)? {
        let send = sender_of(transport, program, times, question)?;
        merged.worst.push(Worst { op, ticks, send, receive });
    }
    Ok(merged)
}

/// By how much each logical receive of the hosted timelines is too early, 0 if it is not; other events have no bound. Collective over the analysis ranks.
fn early<T: TimelineTimes>(transport: &mut dyn Transport, program: &Program, times: &[T]) -> Result<Vec<Advances>> {
    let mut early: Vec<Advances> = program.timelines.iter().map(|timeline| Advances::awaited(timeline.len())).collect();
    message_bounds(transport, program, times, |channel, event, bound| {
        let local = program.messages.incoming[channel].destination;
        let (early, place) = (&mut early[local], event as usize);
        early.set(place, early.of(place).max(bound - times[local].at(event)));
    })?;
    collective_bounds(transport, program, times, |_, _, member, event, bound| {
        early[member.ended_on].set(event as usize, bound - times[member.ended_on].at(event));
    })?;
    Ok(early)
}

/// All that one look needs.
struct ProfileInput<'a> {
    program: &'a Program,
    /// By how much each logical receive is too early.
    early: &'a [Advances],
    classes: &'a Classes<'a>,
}

impl ProfileInput<'_> {
    /// Looks at the messages of some incoming channels.
    fn messages(&self, channels: Range<usize>, profile: &mut Profile, worsts: &mut Worsts) {
        let ProfileInput { program, early, classes } = *self;
        for channel in &program.messages.incoming[channels] {
            let local = channel.destination;
            let group = |timeline: TimelineNumber| classes.group_of[program.process_of(timeline)];
            let receiver = program.number(channel.destination);
            let groups = (group(channel.source), group(receiver));
            let mut pair = GroupPair { messages: channel.receives.len() as u64, ..GroupPair::default() };
            for (k, event) in channel.receives.each().enumerate() {
                let event = event as usize;
                let excess = early[local].of(event);
                profile.count(program, classes, local, event, excess, 0);
                if excess > 0 {
                    pair.violated += 1;
                    pair.largest = pair.largest.max(excess);
                    let question = SenderQuery::Message { host: channel.host, channel: channel.remote, k: k as u32 };
                    let op = channel.trust.op();
                    let key = (op.map(|op| op.0), Some(channel.source), receiver);
                    worsts.keep(key, EarlyReceive { excess, local, event, op, question });
                }
            }
            if channel.trust.op().is_some() {
                continue;
            }
            let sum = profile.pairs.entry(groups).or_default();
            sum.messages += pair.messages;
            sum.violated += pair.violated;
            sum.largest = sum.largest.max(pair.largest);
        }
    }

    /// Looks at the ends of all collective operations.
    fn collectives(&self, profile: &mut Profile, worsts: &mut Worsts) {
        let ProfileInput { program, early, classes } = *self;
        for comm in &program.collectives.comms {
            for member in &comm.members {
                let local = member.ended_on;
                for (instance, end) in (0..).map(InstanceIndex).zip(member.ends.each()) {
                    let event = end as usize;
                    let Some(excess) = early[local].known(event) else { continue };
                    profile.count(program, classes, local, event, excess, 1);
                    if excess > 0 {
                        let op = comm.instances[instance].op;
                        let question = SenderQuery::Instance { comm: comm.comm, instance, receiver: member.rank };
                        let key = (Some(op.0), None, program.number(local));
                        worsts.keep(key, EarlyReceive { excess, local, event, op: Some(op), question });
                    }
                }
            }
        }
    }
}

impl Profile {
    fn count(
        &mut self,
        program: &Program,
        classes: &Classes<'_>,
        local: LocalTimeline,
        event: usize,
        excess: i64,
        column: usize,
    ) {
        let window = classes.grid.window(program.timelines[local].time(event));
        self.checked[window] += 1;
        if excess > 0 {
            self.violated[window] += 1;
            self.distances[(classes.distance)(excess)][column] += 1;
        }
    }
}

/// The worst `most`, in an order that does not depend on who found them.
fn shorten(candidates: &mut Vec<Candidate>, most: usize) {
    candidates.sort_by_key(|candidate| {
        let at = &candidate.receive;
        (Reverse(candidate.ticks), at.process, at.location, at.number)
    });
    candidates.truncate(most);
}
