//! Upper bounds of the logical sends, when the forward replay is done: how late each may be without overtaking a receive.
//!
//! They need no order of execution, and for messages within an analysis rank no memory: they are looked up when they are needed.

use crate::comm::Transport;
use crate::matching::channels::{InChannel, OutChannel};
use crate::matching::hash::HashMap;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::sync::SyncKind;
use crate::replay::advances::{EventTimes, LogicalTimes};
use crate::replay::contributions::{ContributedBounds, Contributions, Direction};
use crate::replay::program::{NO_UPPER_BOUND, Program, contribution_latency};
use crate::replay::rounds::{Rounds, TimeLists};
use clc_trace::Result;

/// What limits the logical sends of the hosted timelines.
#[derive(Debug)]
pub(crate) enum UpperBounds {
    /// Of every visited event of the hosted timelines; [`NO_UPPER_BOUND`] for those that are no logical sends.
    Given(Vec<Vec<i64>>),
    /// To be looked up.
    Wanted {
        /// Per outgoing channel to another rank: the earliest receives minus μ.
        remote: Vec<Vec<i64>>,
        /// By communicator: the latest that ends of others let begins be, negated.
        collectives: Vec<ContributedBounds>,
    },
}

impl UpperBounds {
    /// Exchanges what other ranks have to know of the logical times of the visited events. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn exchange(
        transport: &mut dyn Transport,
        program: &Program,
        times: &LogicalTimes<'_>,
    ) -> Result<UpperBounds> {
        let remote = of_receives(transport, program, |channel, event| {
            let latency = program.message_latency(channel.source, program.number(channel.destination));
            times.at(channel.destination, event) - latency
        })?;
        let contributions = Contributions::meet(transport, program, times, Direction::Backward)?;
        let comms = program.collectives.comms.iter().zip(contributions);
        let collectives = comms.map(|(comm, own)| own.into_bounds(comm, Direction::Backward)).collect();
        Ok(UpperBounds::Wanted { remote, collectives })
    }

    /// For going through the visited events of a hosted timeline once, from the last to the first.
    pub(crate) fn reader<'a>(&'a self, times: LogicalTimes<'a>, timeline: LocalTimeline) -> CapReader<'a> {
        let program = times.program;
        let channels = &program.messages.outgoing;
        debug_assert!(channels.is_sorted_by_key(|channel| channel.source));
        let first_channel = channels.partition_point(|channel| channel.source < timeline);
        let end = channels.partition_point(|channel| channel.source <= timeline);
        let sent = |channel: &OutChannel| Sent {
            left: channel.sends.len() as u32,
            latency: program.message_latency(program.number(channel.source), channel.destination),
        };
        CapReader {
            upper_bounds: self,
            program,
            times,
            timeline,
            first_channel,
            sent: channels[first_channel..end].iter().map(sent).collect(),
            begun: HashMap::default(),
        }
    }
}

/// Tells the senders on other ranks a `value` of each receive. Per outgoing channel to another rank: those of its messages, in order.
/// Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn of_receives(
    transport: &mut dyn Transport,
    program: &Program,
    value: impl Fn(&InChannel, u32) -> i64,
) -> Result<Vec<Vec<i64>>> {
    let here = transport.rank();
    let messages = &program.messages;
    let mut remote: Vec<Vec<i64>> = vec![Vec::new(); messages.outgoing.len()];
    let lengths = messages.incoming.iter().map(|channel| match channel.host {
        host if host == here => 0,
        _ => channel.receives.len(),
    });
    let mut rounds = Rounds::new(transport, lengths)?;
    while let Some(parts) = rounds.next() {
        let mut lists = TimeLists::default();
        for (channel, range) in parts {
            let channel = &messages.incoming[channel];
            let values = range.map(|place| value(channel, channel.receives.at(place)));
            lists.push(channel.host, channel.remote, values);
        }
        lists.exchange(transport, |channel, values| remote[channel].extend(values.iter()))?;
    }
    Ok(remote)
}

/// Gives the upper bounds of one event of a timeline after the other, from the last to the first.
#[derive(Debug)]
pub(crate) struct CapReader<'a> {
    upper_bounds: &'a UpperBounds,
    program: &'a Program,
    times: LogicalTimes<'a>,
    timeline: LocalTimeline,
    /// The first outgoing channel of the timeline.
    first_channel: usize,
    /// Per outgoing channel of the timeline.
    sent: Vec<Sent>,
    /// How many instances of each membership begin before the events that have been asked for; all of them if there is no entry.
    begun: HashMap<usize, u32>,
}

/// How far a channel is.
#[derive(Debug)]
struct Sent {
    /// How many of its messages are sent before the events that have been asked for.
    left: u32,
    /// μ of its messages.
    latency: i64,
}

/// The place of an `event` among the first `left` ones of an ascending list, the last one if it is there several times; then those before it are `left`. Nearly always it is the
/// last of them: others may have been left out.
#[inline]
fn place_of(event: u32, left: &mut u32, at: impl Fn(u32) -> u32) -> u32 {
    let mut place = left.saturating_sub(1);
    if at(place) != event {
        let (mut low, mut high) = (0, *left);
        while low < high {
            let middle = low.midpoint(high);
            if at(middle) <= event { low = middle + 1 } else { high = middle }
        }
        place = low.saturating_sub(1);
    }
    *left = place;
    place
}

impl CapReader<'_> {
    /// The upper bound of visited event `event`, which is before all that have been asked for; [`NO_UPPER_BOUND`] if it is no logical send.
    #[inline]
    pub(crate) fn of(&mut self, event: usize) -> i64 {
        let (remote, collectives) = match self.upper_bounds {
            UpperBounds::Given(upper_bounds) => return upper_bounds[self.timeline][event],
            UpperBounds::Wanted { remote, collectives } => (remote, collectives),
        };
        let sync = self.program.timeline(self.timeline);
        match sync.kind(event) {
            SyncKind::Send => self.of_send(event as u32, sync.link(event), remote),
            SyncKind::Fan => {
                let channels = &self.program.messages.fans[sync.link(event)];
                let bounds = channels.iter().map(|&channel| self.of_send(event as u32, channel as usize, remote));
                bounds.min().unwrap_or(NO_UPPER_BOUND)
            }
            SyncKind::Begin => {
                let index = sync.link(event);
                let (hosted, comm, member) = self.program.collectives.linked(index);
                let left = self.begun.entry(index).or_insert(member.begins.len() as u32);
                let begin = |count: u32| member.begins.at(member.begun(count).place());
                let instance = member.begun(place_of(event as u32, left, begin));
                let largest = collectives[hosted].of(comm, member, instance).filter(|_| member.sends[instance]);
                let latency = || contribution_latency(comm, instance, member, &self.program.latency);
                // Backward, times are negated.
                largest.map_or(NO_UPPER_BOUND, |largest| -largest - latency())
            }
            SyncKind::Local | SyncKind::Receive | SyncKind::Join | SyncKind::End => NO_UPPER_BOUND,
        }
    }

    /// The upper bound by the message of an outgoing channel that is sent at `event`.
    #[inline]
    fn of_send(&mut self, event: u32, index: usize, remote: &[Vec<i64>]) -> i64 {
        let channel = &self.program.messages.outgoing[index];
        let Sent { left, latency } = &mut self.sent[index - self.first_channel];
        let k = place_of(event, left, |place| channel.sends.at(place as usize)) as usize;
        if let Some(&bound) = remote[index].get(k) {
            return bound;
        }
        let Some(end) = self.program.messages.incoming.get(channel.remote as usize) else {
            return NO_UPPER_BOUND;
        };
        self.times.at(end.destination, end.receives.at(k)) - *latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_are_found_from_the_last_to_the_first(steps in prop::collection::vec((0u32..3, any::<bool>()), 1..60)) {
            // Some several times, which are asked for as often; the others of some are left out.
            let mut events: Vec<(u32, bool)> = Vec::new();
            let mut event = 0;
            for (step, asked) in steps {
                event += step;
                events.push((event, asked));
            }
            let asked: Vec<bool> = events.iter().map(|&(event, _)| events.contains(&(event, true))).collect();
            let mut left = events.len() as u32;
            for (place, &(event, _)) in (0..left).zip(&events).rev() {
                if asked[place as usize] {
                    prop_assert_eq!(place_of(event, &mut left, |place| events[place as usize].0), place);
                }
            }
        }
    }
}
