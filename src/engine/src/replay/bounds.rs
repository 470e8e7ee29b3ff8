//! Bounds of the logical receives, when all times are known.
//!
//! Once every event has a time, what a logical receive must not precede follows without any order of execution: all messages of a pair
//! in one vector, all instances of a communicator in one vector reduction. This serves every check of the clock condition. The
//! other direction is [`crate::replay::caps`].

use crate::comm::{ReduceOp, Transport, sparse_exchange};
use crate::matching::collectives::Member;
use crate::replay::contributions::{Contributions, Direction};
use crate::replay::program::{NO_LOWER_BOUND, Program, instance_latency};
use clc_trace::Result;
use std::collections::BTreeMap;
use std::ops::Range;

/// Words that a rank sends at once.
const ROUND: usize = 1 << 20;

/// For each visited event of the hosted timelines its bound under the given `times`: the latest logical send plus μ for each logical
/// receive, [`NO_LOWER_BOUND`] for other events. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn bounds<T: AsRef<[i64]>>(transport: &mut dyn Transport, program: &Program, times: &[T]) -> Result<Vec<Vec<i64>>> {
    let mut bounds = program.filled(NO_LOWER_BOUND);
    message_bounds(transport, program, times, |channel, event, bound| {
        let latest = &mut bounds[program.messages.incoming[channel].destination as usize][event as usize];
        *latest = bound.max(*latest);
    })?;
    collective_bounds(transport, program, times, |_, _, member, event, bound| {
        bounds[member.timeline as usize][event as usize] = bound;
    })?;
    Ok(bounds)
}

/// Calls `visit` for every message received here: incoming channel, receive event and bound, in order within a channel. Collective
/// over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn message_bounds<T: AsRef<[i64]>>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    mut visit: impl FnMut(usize, u32, i64),
) -> Result<()> {
    local_message_bounds(transport.rank(), program, times, 0..program.messages.outgoing.len(), &mut visit);
    remote_message_bounds(transport, program, times, visit)
}

/// The part of [`message_bounds`] that needs no others: messages on those of the outgoing channels `among` that end on this rank, `here`.
pub(super) fn local_message_bounds<T: AsRef<[i64]>>(
    here: usize,
    program: &Program,
    times: &[T],
    among: Range<usize>,
    mut visit: impl FnMut(usize, u32, i64),
) {
    let messages = &program.messages;
    for channel in messages.outgoing[among].iter().filter(|channel| channel.host as usize == here) {
        let latency = program.message_latency(program.number(channel.source), channel.destination);
        let sender = times[channel.source as usize].as_ref();
        let receives = messages.incoming.get(channel.remote as usize).map_or(&[][..], |end| &end.receives);
        for (&send, &receive) in channel.sends.iter().zip(receives) {
            visit(channel.remote as usize, receive, sender[send as usize] + latency);
        }
    }
}

/// The other part of [`message_bounds`]: messages from other ranks. Collective over the analysis ranks.
pub(super) fn remote_message_bounds<T: AsRef<[i64]>>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    mut visit: impl FnMut(usize, u32, i64),
) -> Result<()> {
    let here = transport.rank() as u32;
    let messages = &program.messages;
    let lengths = messages.outgoing.iter().map(|channel| if channel.host == here { 0 } else { channel.sends.len() });
    let mut rounds = Rounds::new(transport, lengths)?;
    let mut arrived = vec![0usize; if rounds.any() { messages.incoming.len() } else { 0 }];
    while let Some(parts) = rounds.next() {
        let mut outgoing: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for (channel, range) in parts {
            let channel = &messages.outgoing[channel];
            let latency = program.message_latency(program.number(channel.source), channel.destination);
            let sender = times[channel.source as usize].as_ref();
            let words = outgoing.entry(channel.host as usize).or_default();
            words.extend([u64::from(channel.remote), range.len() as u64]);
            words.extend(channel.sends[range].iter().map(|&send| (sender[send as usize] + latency) as u64));
        }
        for (_, words) in sparse_exchange(transport, outgoing.into_iter().collect())? {
            let mut rest = &words[..];
            while let [channel, length, tail @ ..] = rest {
                let (values, next) = tail.split_at(*length as usize);
                let channel = *channel as usize;
                let receives = &messages.incoming[channel].receives[arrived[channel]..];
                for (&receive, &value) in receives.iter().zip(values) {
                    visit(channel, receive, value as i64);
                }
                arrived[channel] += values.len();
                rest = next;
            }
        }
    }
    Ok(())
}

/// Calls `visit` for every logical receive of a collective here: index of the communicator in the program, instance, member, end event
/// and bound. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn collective_bounds<T: AsRef<[i64]>>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    mut visit: impl FnMut(usize, usize, &Member, u32, i64),
) -> Result<()> {
    let contributions = Contributions::meet(transport, program, times, Direction::Forward)?;
    for (index, (comm, contributions)) in program.collectives.comms.iter().zip(&contributions).enumerate() {
        let shared = program.shared_latency[index];
        contributions.results(comm, Direction::Forward, &mut |member, instance, event, largest| {
            let bound = largest + instance_latency(comm, instance, member, &program.latency, shared);
            visit(index, instance, member, event, bound);
        });
    }
    Ok(())
}

/// Divides lists of values, one per channel, into rounds of limited size: memory for an exchange does not grow with the trace.
pub(super) struct Rounds {
    lengths: Vec<usize>,
    channel: usize,
    offset: usize,
    /// Rounds that all ranks still make.
    left: i64,
}

impl Rounds {
    /// For channels with these `lengths`. Collective over the analysis ranks, which all make the same number of rounds.
    pub(super) fn new(transport: &mut dyn Transport, lengths: impl Iterator<Item = usize>) -> Result<Rounds> {
        let lengths: Vec<usize> = lengths.collect();
        let mut left = [lengths.iter().sum::<usize>().div_ceil(ROUND) as i64];
        transport.all_reduce(ReduceOp::Max, &mut left)?;
        Ok(Rounds { lengths, channel: 0, offset: 0, left: left[0] })
    }

    /// What this rank sends next: parts of channels, in order. `None` after the last round of all ranks.
    pub(super) fn next(&mut self) -> Option<Vec<(usize, Range<usize>)>> {
        self.left -= 1;
        if self.left < 0 {
            return None;
        }
        let mut parts = Vec::new();
        let mut room = ROUND;
        while room > 0 && self.channel < self.lengths.len() {
            let end = self.lengths[self.channel].min(self.offset + room);
            if end > self.offset {
                parts.push((self.channel, self.offset..end));
                room -= end - self.offset;
            }
            self.offset = end;
            if end == self.lengths[self.channel] {
                (self.channel, self.offset) = (self.channel + 1, 0);
            }
        }
        Some(parts)
    }

    /// Whether anything is sent at all.
    pub(super) fn any(&self) -> bool {
        self.left > 0
    }
}
