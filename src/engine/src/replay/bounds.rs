//! Bounds of the logical receives, when all times are known.
//!
//! Once every event has a time, what a logical receive must not precede follows without any order of execution: all messages of a pair
//! in one vector, all instances of a communicator in one vector reduction. This serves every check of the clock condition. The
//! other direction is [`crate::replay::upper_bounds`].

use crate::comm::{AnalysisRank, Transport};
use crate::matching::collectives::instances::{HostedComm, HostedMember, InstanceIndex};
use crate::matching::visited_times::TimelineTimes;
use crate::replay::contributions::{Contributions, Direction};
use crate::replay::program::{NO_LOWER_BOUND, Program, instance_latency};
use crate::replay::rounds::{Rounds, TimeLists};
use clc_trace::Result;
use std::ops::Range;

/// For each visited event of the hosted timelines its bound under the given `times`: the latest logical send plus μ for each logical
/// receive, [`NO_LOWER_BOUND`] for other events. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn bounds<T: TimelineTimes>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
) -> Result<Vec<Vec<i64>>> {
    let mut bounds = program.filled(NO_LOWER_BOUND);
    message_bounds(transport, program, times, |channel, event, bound| {
        let latest = &mut bounds[program.messages.incoming[channel].destination][event as usize];
        *latest = bound.max(*latest);
    })?;
    collective_bounds(transport, program, times, |_, _, member, event, bound| {
        bounds[member.ended_on][event as usize] = bound;
    })?;
    Ok(bounds)
}

/// Calls `visit` for every message received here: incoming channel, receive event and bound, in order within a channel. Collective
/// over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn message_bounds<T: TimelineTimes>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    mut visit: impl FnMut(usize, u32, i64),
) -> Result<()> {
    local_message_bounds(transport.rank(), program, times, 0..program.messages.outgoing.len(), &mut visit);
    remote_message_bounds(transport, program, times, visit)
}

/// The part of [`message_bounds`] that needs no others: messages on those of the outgoing channels `among` that end on this rank, `here`.
pub(super) fn local_message_bounds<T: TimelineTimes>(
    here: AnalysisRank,
    program: &Program,
    times: &[T],
    among: Range<usize>,
    mut visit: impl FnMut(usize, u32, i64),
) {
    let messages = &program.messages;
    for channel in messages.outgoing[among].iter().filter(|channel| channel.host == here) {
        let latency = program.message_latency(program.number(channel.source), channel.destination);
        let sender = &times[channel.source];
        let Some(end) = messages.incoming.get(channel.remote as usize) else { continue };
        match (channel.sends.as_slice(), end.receives.as_slice()) {
            (Some(sends), Some(receives)) => {
                for (&send, &receive) in sends.iter().zip(receives) {
                    visit(channel.remote as usize, receive, sender.at(send) + latency);
                }
            }
            _ => {
                for (send, receive) in channel.sends.each().zip(end.receives.each()) {
                    visit(channel.remote as usize, receive, sender.at(send) + latency);
                }
            }
        }
    }
}

/// The other part of [`message_bounds`]: messages from other ranks. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn remote_message_bounds<T: TimelineTimes>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    mut visit: impl FnMut(usize, u32, i64),
) -> Result<()> {
    let here = transport.rank();
    let messages = &program.messages;
    let lengths = messages.outgoing.iter().map(|channel| if channel.host == here { 0 } else { channel.sends.len() });
    let mut rounds = Rounds::new(transport, lengths)?;
    let mut arrived = vec![0usize; if rounds.any() { messages.incoming.len() } else { 0 }];
    while let Some(parts) = rounds.next() {
        let mut lists = TimeLists::default();
        for (channel, range) in parts {
            let channel = &messages.outgoing[channel];
            let latency = program.message_latency(program.number(channel.source), channel.destination);
            let sender = &times[channel.source];
            let sends = channel.sends.some(range);
            lists.push(channel.host, channel.remote, sends.map(|send| sender.at(send) + latency));
        }
        lists.exchange(transport, |channel, times| {
            let receives = &messages.incoming[channel].receives;
            let places = arrived[channel]..receives.len();
            arrived[channel] += times.len();
            for (receive, time) in receives.some(places).zip(times.iter()) {
                visit(channel, receive, time);
            }
        })?;
    }
    Ok(())
}

/// Calls `visit` for every logical receive of a collective here: index of the communicator in the program, instance, member, end event
/// and bound. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn collective_bounds<T: TimelineTimes>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    mut visit: impl FnMut(HostedComm, InstanceIndex, &HostedMember, u32, i64),
) -> Result<()> {
    let contributions = Contributions::meet(transport, program, times, Direction::Forward)?;
    for ((index, comm), contributions) in program.collectives.numbered().zip(&contributions) {
        let shared = program.shared_latency[index];
        contributions.results(comm, Direction::Forward, &mut |member, instance, event, largest| {
            let bound = largest + instance_latency(comm, instance, member, &program.latency, shared);
            visit(index, instance, member, event, bound);
        });
    }
    Ok(())
}
