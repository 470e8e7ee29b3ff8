//! Upper bounds of the logical sends, when the forward replay is done: how late each may be without overtaking a receive.
//!
//! They need no order of execution, and for messages within an analysis rank no memory: they are looked up when they are needed.

use crate::comm::Transport;
use crate::matching::channels::InChannel;
use crate::matching::collectives::instances::{HostedComm, MemberPlace};
use crate::matching::hash::HashMap;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::sync::SyncKind;
use crate::replay::advances::{EventTimes, LogicalTimes};
use crate::replay::contributions::{Contributions, Direction};
use crate::replay::program::{NO_UPPER_BOUND, Program, contribution_latency};
use crate::replay::rounds::{Rounds, TimeLists};
use clc_trace::Result;
use std::collections::BTreeMap;

/// What limits the logical sends of the hosted timelines.
#[derive(Debug)]
pub(crate) enum UpperBounds {
    /// Of every visited event of the hosted timelines; [`NO_UPPER_BOUND`] for those that are no logical sends.
    Given(Vec<Vec<i64>>),
    /// To be looked up.
    Wanted {
        /// Per outgoing channel to another rank: the earliest receives minus μ.
        remote: Vec<Vec<i64>>,
        /// Per membership and instance: the upper bound of the begin.
        collectives: Vec<Vec<i64>>,
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
        let mut collectives: Vec<Vec<i64>> = vec![Vec::new(); program.collectives.memberships.len()];
        let contributions = Contributions::meet(transport, program, times, Direction::Backward)?;
        let mut membership_of: BTreeMap<(HostedComm, MemberPlace), usize> = BTreeMap::new();
        for (index, membership) in program.collectives.memberships.iter().enumerate() {
            membership_of.insert((membership.comm, membership.member), index);
        }
        for ((index, comm), contributions) in program.collectives.numbered().zip(contributions) {
            contributions.results(comm, Direction::Backward, &mut |member, instance, _, largest| {
                let place = comm.members.binary_search_by_key(&member.rank, |member| member.rank).unwrap_or(0);
                let Some(&membership) = membership_of.get(&(index, MemberPlace(place as u32))) else { return };
                let upper_bounds = &mut collectives[membership];
                if upper_bounds.is_empty() {
                    upper_bounds.resize(comm.instances.len(), NO_UPPER_BOUND);
                }
                // Backward, times are negated.
                upper_bounds[instance] = -largest - contribution_latency(comm, instance, member, &program.latency);
            });
        }
        Ok(UpperBounds::Wanted { remote, collectives })
    }

    /// For going through the visited events of a hosted timeline once, in order.
    pub(crate) fn reader<'a>(&'a self, times: LogicalTimes<'a>, timeline: LocalTimeline) -> CapReader<'a> {
        let program = times.program;
        let channels = &program.messages.outgoing;
        debug_assert!(channels.is_sorted_by_key(|channel| channel.source));
        let first_channel = channels.partition_point(|channel| channel.source < timeline);
        let end = channels.partition_point(|channel| channel.source <= timeline);
        CapReader {
            upper_bounds: self,
            program,
            times,
            timeline,
            first_channel,
            sent: vec![0; end - first_channel],
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

/// Gives the upper bounds of one event of a timeline after the other.
#[derive(Debug)]
pub(crate) struct CapReader<'a> {
    upper_bounds: &'a UpperBounds,
    program: &'a Program,
    times: LogicalTimes<'a>,
    timeline: LocalTimeline,
    /// The first outgoing channel of the timeline.
    first_channel: usize,
    /// Next message per outgoing channel of the timeline.
    sent: Vec<u32>,
    /// Next instance per membership.
    begun: HashMap<usize, u32>,
}

/// The number that stands there, which is one more from now on.
fn take(next: &mut u32) -> u32 {
    *next += 1;
    *next - 1
}

impl CapReader<'_> {
    /// The upper bound of visited event `event`, all events before which have been asked for; [`NO_UPPER_BOUND`] if it is no logical send.
    #[inline]
    pub(crate) fn next(&mut self, event: usize) -> i64 {
        let (remote, collectives) = match self.upper_bounds {
            UpperBounds::Given(upper_bounds) => return upper_bounds[self.timeline][event],
            UpperBounds::Wanted { remote, collectives } => (remote, collectives),
        };
        let sync = self.program.timeline(self.timeline);
        match sync.kind(event) {
            SyncKind::Send => self.of_send(sync.link(event), remote),
            SyncKind::Fan => {
                let channels = &self.program.messages.fans[sync.link(event)];
                channels.iter().map(|&channel| self.of_send(channel as usize, remote)).min().unwrap_or(NO_UPPER_BOUND)
            }
            SyncKind::Begin => {
                let index = sync.link(event);
                let (_, _, member) = self.program.collectives.linked(index);
                let instance = member.begun(take(self.begun.entry(index).or_default()));
                collectives[index].get(instance.place()).copied().unwrap_or(NO_UPPER_BOUND)
            }
            SyncKind::Local | SyncKind::Receive | SyncKind::Join | SyncKind::End => NO_UPPER_BOUND,
        }
    }

    /// The upper bound by the next message of an outgoing channel.
    #[inline]
    fn of_send(&mut self, index: usize, remote: &[Vec<i64>]) -> i64 {
        let k = take(&mut self.sent[index - self.first_channel]) as usize;
        if let Some(&bound) = remote[index].get(k) {
            return bound;
        }
        let channel = &self.program.messages.outgoing[index];
        let Some(end) = self.program.messages.incoming.get(channel.remote as usize) else {
            return NO_UPPER_BOUND;
        };
        let latency = self.program.message_latency(end.source, channel.destination);
        self.times.at(end.destination, end.receives.at(k)) - latency
    }
}
