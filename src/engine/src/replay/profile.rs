//! Violations in detail: when, how far, between whom, and the worst ones with both their events.
//!
//! What [`crate::replay::survey`] counts, looked at more closely. Costs one more exchange of bounds, so it is for reports that are
//! looked at.

use crate::comm::{Transport, broadcast_value, gather_values};
use crate::replay::bounds::bounds;
use crate::replay::program::{NO_LOWER_BOUND, Program};
use crate::replay::survey::{Candidate, Question, Worst, place, sender_of};
use clc_clock::windows::Grid;
use clc_trace::{CollectiveOp, Result};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What is counted, and in which classes.
#[derive(Clone, Copy)]
pub struct Classes<'a> {
    /// Windows of pre-synchronised time.
    pub grid: &'a Grid,
    /// Row and column of every timeline in the matrix of pairs.
    pub group_of: &'a [u32],
    /// Class of a distance in ticks.
    pub distance: &'a dyn Fn(i64) -> usize,
    /// Number of classes of distances.
    pub distances: usize,
    /// How many of the worst violations are wanted.
    pub worst: usize,
}

/// Messages from one group to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
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
    pub pairs: BTreeMap<(u32, u32), Pair>,
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

/// What only one candidate is kept of: operation (`None` for messages), sending process (of messages), receiving process.
type Key = (Option<u8>, u32, u32);

/// Looks at all matched pairs under `times` (one per visited event of the hosted timelines). The profile is on rank 0, but
/// [`Profile::worst`] is on all. Collective over the analysis ranks; the same for any number of them.
///
/// # Errors
/// Failures of the transport.
pub fn profile<T: AsRef<[i64]>>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    classes: &Classes<'_>,
) -> Result<Profile> {
    let bounds = bounds(transport, program, times)?;
    let mut profile = Profile::new(classes);
    // The worst of each key, its first if several are equally bad.
    let mut worst: BTreeMap<Key, (i64, usize, usize, Option<CollectiveOp>, Question)> = BTreeMap::new();
    let mut keep = |key: Key, excess: i64, local: usize, event: usize, op, question: &dyn Fn() -> Question| {
        let kept = worst.get(&key);
        if kept.is_none_or(|&(most, _, first, ..)| (Reverse(excess), event) < (Reverse(most), first)) {
            worst.insert(key, (excess, local, event, op, question()));
        }
    };
    for channel in &program.messages.incoming {
        let local = channel.destination as usize;
        let group = |timeline: u32| classes.group_of[program.process_of(timeline) as usize];
        let receiver = program.number(channel.destination);
        let groups = (group(channel.source), group(receiver));
        let mut pair = Pair { messages: channel.receives.len() as u64, ..Pair::default() };
        for (k, &event) in channel.receives.iter().enumerate() {
            let event = event as usize;
            let excess = bounds[local][event] - times[local].as_ref()[event];
            profile.count(program, classes, local, event, excess, 0);
            if excess > 0 {
                pair.violated += 1;
                pair.largest = pair.largest.max(excess);
                let question = || Question::Message { host: channel.host, channel: channel.remote, k: k as u32 };
                let op = channel.trust.op();
                keep((op.map(|op| op.0), channel.source, receiver), excess, local, event, op, &question);
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
    for comm in &program.collectives.comms {
        for member in &comm.members {
            let local = member.timeline as usize;
            for (instance, &end) in member.ends.iter().enumerate() {
                let event = end as usize;
                let bound = bounds[local][event];
                if bound == NO_LOWER_BOUND {
                    continue;
                }
                let excess = bound - times[local].as_ref()[event];
                profile.count(program, classes, local, event, excess, 1);
                if excess > 0 {
                    let op = comm.instances[instance].op;
                    let question =
                        || Question::Instance { comm: comm.comm, instance: instance as u32, receiver: member.rank };
                    let key = (Some(op.0), u32::MAX, program.number(member.timeline));
                    keep(key, excess, local, event, Some(op), &question);
                }
            }
        }
    }
    let mut candidates: Vec<Candidate> = worst
        .into_values()
        .map(|(ticks, local, event, op, question)| {
            let receive = place(program, times, local, event);
            Candidate { ticks, receive, op, question }
        })
        .collect();
    shorten(&mut candidates, classes.worst);
    let parts = gather_values(transport, 0, &(profile, candidates))?;
    let mut whole = Profile::new(classes);
    let mut candidates = Vec::new();
    for (part, more) in parts.into_iter().flatten() {
        whole.merge(part);
        candidates.extend(more);
    }
    shorten(&mut candidates, classes.worst);
    for Candidate { ticks, receive, op, question } in broadcast_value(transport, 0, candidates)? {
        let send = sender_of(transport, program, times, question)?;
        whole.worst.push(Worst { op, ticks, send, receive });
    }
    Ok(whole)
}

impl Profile {
    fn count(
        &mut self,
        program: &Program,
        classes: &Classes<'_>,
        local: usize,
        event: usize,
        excess: i64,
        column: usize,
    ) {
        let window = classes.grid.window(program.timelines[local].time[event]);
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
