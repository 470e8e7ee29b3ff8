//! Point-to-point messages: joining the sends of one process with the receives of another.
//!
//! Messages of one (sender, receiver, communicator, tag) form a *channel*: the k-th send belongs to the k-th receive in the order of
//! posting (MPI's non-overtaking rule). So it is enough that the two hosts agree on channels and on their lengths; who is
//! whose partner follows without any exchange per message. Where events of a channel may be missing, see
//! [`crate::matching::undefined`].

use crate::comm::{Transport, sparse_exchange};
use crate::matching::extract::{Extract, MessageKey};
use crate::matching::placement::Placement;
use crate::matching::sync::{SyncKind, SyncTimeline};
use crate::matching::undefined::{Fit, Gaps};
use crate::trace::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sending end of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutChannel {
    /// Local timeline (index into the host's timelines) that sends.
    pub source: u32,
    /// Global number of the timeline that receives.
    pub destination: u32,
    /// Analysis rank that hosts the receiver.
    pub host: u32,
    /// Index of the channel's receiving end at that rank.
    pub remote: u32,
    /// Send events, in order.
    pub sends: Vec<u32>,
}

/// The receiving end of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InChannel {
    /// Global number of the timeline that sends.
    pub source: u32,
    /// Analysis rank that hosts the sender.
    pub host: u32,
    /// Index of the channel's sending end at that rank.
    pub remote: u32,
    /// Local timeline that receives.
    pub destination: u32,
    /// Receive events in the order in which they were posted: the k-th belongs to the k-th send.
    pub receives: Vec<u32>,
}

/// Sends and receives between two processes that found no partner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// Sends without a receive.
    pub sends: u64,
    /// Receives without a send.
    pub receives: u64,
}

/// What the messages of this analysis rank's timelines came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCounts {
    /// Matched messages received here.
    pub matched: u64,
    /// Messages of a process to itself (they constrain nobody).
    pub to_self: u64,
    /// What stayed alone, by (sender, receiver).
    pub unmatched: BTreeMap<(u32, u32), Unmatched>,
}

/// All channels with an end at this analysis rank.
#[derive(Debug, Default)]
pub struct Messages {
    /// Sending ends, in the order of their hosted timelines.
    pub outgoing: Vec<OutChannel>,
    /// Receiving ends.
    pub incoming: Vec<InChannel>,
    /// Counts for the report.
    pub counts: MessageCounts,
}

/// Joins all sends and receives. Collective over the analysis ranks; `extracts` are those of this rank's timelines, the first of
/// which has the global number `first`. Matched events are activated in their [`crate::matching::sync::SyncTimeline`].
///
/// # Errors
/// Failures of the transport.
pub fn match_messages(
    transport: &mut dyn Transport,
    placement: &Placement,
    first: u32,
    extracts: &mut [Extract],
) -> Result<Messages> {
    let mut messages = Messages::default();
    let mut announcements: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (local, extract) in extracts.iter_mut().enumerate() {
        let source = first + local as u32;
        let mut keys: Vec<(MessageKey, Vec<u32>)> = extract.sends.drain().collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        for (key, sends) in keys {
            if key.peer == source {
                let receives = extract.receives.remove(&key).unwrap_or_default();
                let matched = sends.len().min(receives.len());
                messages.counts.to_self += matched as u64;
                messages.counts.leave(source, source, sends.len() - matched, receives.len() - matched);
                continue;
            }
            let index = checked_index(messages.outgoing.len())?;
            let host = placement.host_of(key.peer);
            let gaps = extract.send_gaps.remove(&key).unwrap_or_default();
            let announcement = announcements.entry(host).or_default();
            announcement.extend([
                u64::from(source),
                u64::from(key.peer),
                u64::from(key.comm),
                u64::from(key.tag),
                sends.len() as u64,
                u64::from(index),
                gaps.count,
                gaps.after.len() as u64,
            ]);
            announcement.extend(gaps.after.into_iter().map(u64::from));
            messages.outgoing.push(OutChannel {
                source: local as u32,
                destination: key.peer,
                host: host as u32,
                remote: u32::MAX,
                sends,
            });
        }
    }

    let mut answers: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (host, words) in sparse_exchange(transport, announcements.into_iter().collect())? {
        let mut rest = &words[..];
        // Sender, receiver, communicator, tag, number of sends, index at the sender's host, gaps.
        while let [source, destination, comm, tag, announced, remote, missing, placed, tail @ ..] = rest {
            let (after, next) = tail.split_at(*placed as usize);
            rest = next;
            let (source, destination, announced) = (*source as u32, *destination as u32, *announced as usize);
            let key = MessageKey { peer: source, comm: *comm as u32, tag: *tag as u32 };
            let local = (destination - first) as usize;
            let mut receives = extracts[local].receives.remove(&key).unwrap_or_default();
            let recorded = receives.len();
            let fit = if announced > recorded {
                Fit::new(announced, recorded, extracts[local].receive_gaps.get(&key))
            } else {
                let gaps = Gaps { count: *missing, after: after.iter().map(|&after| after as u32).collect() };
                Fit::new(recorded, announced, Some(&gaps))
            };
            let index = checked_index(messages.incoming.len())?;
            let answer = answers.entry(host).or_default();
            answer.extend([*remote, fit.matched as u64, u64::from(index)]);
            if announced > recorded {
                receives.truncate(fit.matched);
                answer.push(fit.skipped.len() as u64);
                answer.extend(fit.skipped.into_iter().map(u64::from));
            } else {
                fit.apply(&mut receives);
                answer.push(0);
            }
            let matched = receives.len();
            messages.counts.leave(source, destination, announced - matched, recorded - matched);
            messages.counts.matched += matched as u64;
            for &event in &receives {
                extracts[local].sync.activate(event, SyncKind::Receive, index);
            }
            messages.incoming.push(InChannel {
                source,
                host: host as u32,
                remote: *remote as u32,
                destination: local as u32,
                receives,
            });
        }
    }
    for (local, extract) in extracts.iter_mut().enumerate() {
        for (key, receives) in std::mem::take(&mut extract.receives) {
            messages.counts.leave(key.peer, first + local as u32, 0, receives.len());
        }
    }

    for (_, words) in sparse_exchange(transport, answers.into_iter().collect())? {
        let mut rest = &words[..];
        // Index at the sender's host, matched messages, index at the receiver's host, sends to be left out.
        while let [index, matched, remote, skipped, tail @ ..] = rest {
            let (skipped, next) = tail.split_at(*skipped as usize);
            rest = next;
            let channel = &mut messages.outgoing[*index as usize];
            let skipped = skipped.iter().map(|&position| position as u32).collect();
            Fit { skipped, matched: *matched as usize }.apply(&mut channel.sends);
            channel.remote = *remote as u32;
            let sync = &mut extracts[channel.source as usize].sync;
            for &event in &channel.sends {
                sync.activate(event, SyncKind::Send, *index as u32);
            }
        }
    }
    Ok(messages)
}

impl MessageCounts {
    fn leave(&mut self, source: u32, destination: u32, sends: usize, receives: usize) {
        if sends + receives > 0 {
            let pair = self.unmatched.entry((source, destination)).or_default();
            pair.sends += sends as u64;
            pair.receives += receives as u64;
        }
    }

    /// Adds the counts of another analysis rank.
    pub fn merge(&mut self, other: &MessageCounts) {
        self.matched += other.matched;
        self.to_self += other.to_self;
        for (&(source, destination), pair) in &other.unmatched {
            self.leave(source, destination, pair.sends as usize, pair.receives as usize);
        }
    }
}

fn checked_index(length: usize) -> Result<u32> {
    u32::try_from(length)
        .ok()
        .filter(|&index| (index as usize) < SyncTimeline::LINKS)
        .ok_or_else(|| Error::new(format!("more than {} message channels on one analysis rank", SyncTimeline::LINKS)))
}
