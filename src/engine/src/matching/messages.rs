//! Point-to-point messages: joining the sends of one process with the receives of another.
//!
//! Messages of one (sender, receiver, communicator, tag) form a *channel*: the k-th send belongs to the k-th receive in the order of
//! posting (MPI's non-overtaking rule). So it is enough that the two hosts agree on channels, on their numbers of messages, and on a checksum of
//! the messages' lengths; who is whose partner follows without any exchange per message. A channel whose ends disagree is *in doubt*: what is
//! known of it all the same is found out in [`crate::matching::doubts`].

use crate::comm::{ReduceOp, Transport, sparse_exchange};
use crate::matching::doubts::{Doubt, settle};
use crate::matching::extract::{Extract, MessageEnd, MessageKey};
use crate::matching::orders;
use crate::matching::placement::Placement;
use crate::matching::sync::{SyncKind, SyncTimeline};
use crate::matching::threads::ThreadCounts;
use crate::matching::undefined::Gaps;
use clc_trace::{CollectiveOp, Error, Result};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What the pairs of a channel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Trust {
    /// Messages: the two ends agree in number and lengths.
    Sound,
    /// No messages: the posting of a receive before the end of its synchronous send.
    Acknowledged,
    /// No messages: steps of post, start, complete and wait on a window.
    Grouped,
    /// Messages of a channel in which records are missing, where lengths leave no choice.
    Aligned,
    /// No messages: sends that come before receives because others do that are not known. To be respected, but they say nothing about the
    /// clocks or about waiting.
    Implied,
    /// No messages: fork and begin of a team of threads, its end and the join.
    Forked,
    /// No messages: arrival at a barrier of a team of threads, and departure of others.
    Barrier,
    /// No messages: creation and begin of a thread, its end and the wait for it.
    Created,
    /// No messages: creation of a task, and its first run.
    Tasked,
    /// No messages: release of a lock by a thread, and the next acquisition.
    Locked,
}

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
    /// What its pairs are.
    pub trust: Trust,
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
    /// What its pairs are.
    pub trust: Trust,
    /// Receive events in the order in which they were posted: the k-th belongs to the k-th send.
    pub receives: Vec<u32>,
}

impl Trust {
    /// Whether it may be wrong: records are missing, or the steps of threads were put together by their order.
    pub fn in_doubt(self) -> bool {
        matches!(self, Trust::Aligned | Trust::Implied) || self.of_threads()
    }

    /// Whether the pairs are of threads of one process, between which there is no minimum latency.
    pub fn of_threads(self) -> bool {
        matches!(self, Trust::Forked | Trust::Barrier | Trust::Created | Trust::Tasked | Trust::Locked)
    }

    /// Whether the pairs are messages.
    pub fn of_messages(self) -> bool {
        matches!(self, Trust::Sound | Trust::Aligned)
    }

    /// As what its pairs are counted, if not as messages.
    pub fn op(self) -> Option<CollectiveOp> {
        match self {
            Trust::Acknowledged => Some(CollectiveOp::SYNCHRONOUS_SEND),
            Trust::Grouped => Some(CollectiveOp::WIN_GROUP),
            Trust::Forked => Some(CollectiveOp::THREAD_FORK),
            Trust::Barrier => Some(CollectiveOp::THREAD_BARRIER),
            Trust::Created => Some(CollectiveOp::THREAD_CREATE),
            Trust::Tasked => Some(CollectiveOp::THREAD_TASK),
            Trust::Locked => Some(CollectiveOp::THREAD_LOCK),
            Trust::Sound | Trust::Aligned | Trust::Implied => None,
        }
    }
}

impl OutChannel {
    /// Whether its pairs are messages.
    pub fn is_certain(&self) -> bool {
        self.trust.of_messages()
    }
}

impl InChannel {
    /// Whether its pairs are messages.
    pub fn is_certain(&self) -> bool {
        self.trust.of_messages()
    }
}

/// Sends and receives between two processes that found no partner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// Sends without a receive.
    pub sends: u64,
    /// Receives without a send.
    pub receives: u64,
}

/// A channel in which records are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InDoubt {
    /// The process that sends.
    pub sender: u32,
    /// The process that receives.
    pub receiver: u32,
    /// The communicator, as index into the definitions.
    pub comm: u32,
    /// The tag.
    pub tag: u32,
    /// Recorded sends.
    pub sends: u64,
    /// Recorded receives.
    pub receives: u64,
    /// Messages that are certain all the same.
    pub matched: u64,
    /// Sends that come before a receive that need not be theirs.
    pub implied: u64,
}

/// What the messages of this analysis rank's timelines came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCounts {
    /// Matched messages received here.
    pub matched: u64,
    /// Orders of a send before a receive that need not be its own.
    pub implied: u64,
    /// Messages of a process to itself (they constrain nobody).
    pub to_self: u64,
    /// What stayed alone, by (sender, receiver).
    pub unmatched: BTreeMap<(u32, u32), Unmatched>,
    /// Channels in which records are missing.
    pub doubtful: u64,
    /// Those of them that leave out most; at most [`MessageCounts::EXAMPLES`].
    pub in_doubt: Vec<InDoubt>,
    /// What was taken back since it contradicts the rest of the trace, by (sender, receiver).
    pub contradicted: BTreeMap<(u32, u32), u64>,
    /// Synchronous sends of which it is known when their receives were posted.
    pub acknowledged: u64,
    /// Pairs of steps of post, start, complete and wait.
    pub grouped: u64,
    /// Such steps that found no partner.
    pub loose_steps: u64,
    /// Steps of threads.
    pub threads: ThreadCounts,
}

/// All channels with an end at this analysis rank.
#[derive(Debug, Default)]
pub struct Messages {
    /// Sending ends, in the order of their hosted timelines. Of a channel in doubt, messages and implied orders are two entries.
    pub outgoing: Vec<OutChannel>,
    /// Receiving ends.
    pub incoming: Vec<InChannel>,
    /// Outgoing channels of events that send on several.
    pub fans: Vec<Vec<u32>>,
    /// Incoming channels of events that receive on several.
    pub joins: Vec<Vec<u32>>,
    /// Counts for the report.
    pub counts: MessageCounts,
}

/// The sends of a channel, before it is known what belongs to them.
#[derive(Debug)]
pub(super) struct Offer {
    /// The local timeline that sends.
    pub source: u32,
    /// To whom.
    pub key: MessageKey,
    /// Analysis rank that hosts the receiver.
    pub host: u32,
    /// In order.
    pub sends: Vec<MessageEnd>,
    /// Index of the receiving end, where the two agree.
    pub remote: u32,
}

/// In the place of an index: the channel is in doubt.
const IN_DOUBT: u64 = u64::MAX;

/// Joins all sends and receives. Collective over the analysis ranks; `extracts` are those of this rank's timelines, the first of
/// which has the global number `first`; `with_orders` if any of them, on any rank, has orders that are no messages. Matched events are activated in their [`crate::matching::sync::SyncTimeline`].
///
/// # Errors
/// Failures of the transport.
pub fn match_messages(
    transport: &mut dyn Transport,
    placement: &Placement,
    first: u32,
    extracts: &mut [Extract],
    with_orders: bool,
) -> Result<Messages> {
    let mut messages = Messages::default();
    let (mut offers, announcements) = offers(placement, first, extracts, &mut messages.counts)?;
    let mut doubts = Vec::new();
    let mut answers: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (host, words) in sparse_exchange(transport, announcements.into_iter().collect())? {
        let mut rest = &words[..];
        // Sender, receiver, communicator, tag, number of sends, checksum of their lengths, number of the offer, gaps.
        while let [source, destination, comm, tag, announced, checksum, offer, missing, placed, tail @ ..] = rest {
            let (after, next) = tail.split_at(*placed as usize);
            rest = next;
            let key = MessageKey { peer: *source as u32, comm: *comm as u32, tag: *tag as u32 };
            let local = (*destination as u32 - first) as usize;
            let announced = *announced as usize;
            let receives = extracts[local].receives.remove(&key).unwrap_or_default();
            let unplaced = extracts[local].unplaced.remove(&key).unwrap_or_default();
            let answer = answers.entry(host).or_default();
            let nothing = announced == 0 || receives.len() + unplaced.len() == 0;
            let agree = receives.len() == announced && unplaced.is_empty() && checksum_of(&receives) == *checksum;
            if nothing || agree {
                let index = checked_index(messages.incoming.len())?;
                let matched = if agree { announced } else { 0 };
                messages.counts.matched += matched as u64;
                let alone = receives.len() + unplaced.len() - matched;
                messages.counts.leave(key.peer, *destination as u32, announced - matched, alone);
                answer.extend([*offer, u64::from(index), u64::from(agree)]);
                messages.incoming.push(InChannel {
                    source: key.peer,
                    host: host as u32,
                    remote: *offer as u32,
                    destination: local as u32,
                    trust: Trust::Sound,
                    receives: if agree { events_of(receives) } else { Vec::new() },
                });
            } else {
                answer.extend([*offer, IN_DOUBT, 0]);
                doubts.push(Doubt {
                    host: host as u32,
                    offer: *offer as u32,
                    key,
                    destination: local as u32,
                    receives,
                    unplaced,
                    send_gaps: Gaps { count: *missing, after: after.iter().map(|&after| after as u32).collect() },
                    receive_gaps: extracts[local].receive_gaps.remove(&key).unwrap_or_default(),
                    announced: announced as u64,
                    sends: Vec::new(),
                });
            }
        }
    }
    for (local, extract) in extracts.iter_mut().enumerate() {
        for (key, receives) in extract.receives.drain().chain(extract.unplaced.drain()) {
            messages.counts.leave(key.peer, first + local as u32, 0, receives.len());
        }
    }
    let mut asked = Vec::new();
    for (_, words) in sparse_exchange(transport, answers.into_iter().collect())? {
        for answer in words.chunks_exact(3) {
            let offer = &mut offers[answer[0] as usize];
            if answer[1] == IN_DOUBT {
                asked.push(answer[0] as u32);
                continue;
            }
            offer.remote = answer[1] as u32;
            if answer[2] == 0 {
                offer.sends = Vec::new();
            }
        }
    }
    let mut in_doubt = [doubts.len() as i64];
    transport.all_reduce(ReduceOp::Sum, &mut in_doubt)?;
    if in_doubt[0] == 0 {
        messages.outgoing = offers.into_iter().map(|offer| offer.into_channel(Trust::Sound)).collect();
    } else {
        asked.sort_unstable();
        let agreeing = messages.counts.matched as i64;
        settle(transport, first, &mut messages, offers, &asked, doubts, agreeing)?;
    }
    if with_orders {
        orders::add(transport, placement, first, extracts, &mut messages)?;
    }
    let Messages { incoming, outgoing, fans, joins, .. } = &mut messages;
    for (index, channel) in (0..).zip(incoming) {
        let sync = &mut extracts[channel.destination as usize].sync;
        channel.receives.iter().for_each(|&event| sync.link_to(event, SyncKind::Receive, index, joins));
    }
    for (index, channel) in (0..).zip(outgoing) {
        let sync = &mut extracts[channel.source as usize].sync;
        channel.sends.iter().for_each(|&event| sync.link_to(event, SyncKind::Send, index, fans));
    }
    Ok(messages)
}

/// Words for each analysis rank.
type Announcements = BTreeMap<usize, Vec<u64>>;

/// Takes all sends of `extracts`, and what the receivers' hosts have to know of them.
fn offers(
    placement: &Placement,
    first: u32,
    extracts: &mut [Extract],
    counts: &mut MessageCounts,
) -> Result<(Vec<Offer>, Announcements)> {
    let mut offers = Vec::new();
    let mut announcements = Announcements::new();
    for (local, extract) in extracts.iter_mut().enumerate() {
        let source = first + local as u32;
        let mut keys: Vec<(MessageKey, Vec<MessageEnd>)> = extract.sends.drain().collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        for (key, sends) in keys {
            // Of a process with several timelines, they go from one to another.
            if key.peer == source && extract.part_of.iter().all(|&part| part == 0) {
                let lists = [extract.receives.remove(&key), extract.unplaced.remove(&key)];
                let receives = lists.iter().flatten().map(Vec::len).sum::<usize>();
                let matched = sends.len().min(receives);
                counts.to_self += matched as u64;
                counts.leave(source, source, sends.len() - matched, receives - matched);
                continue;
            }
            let index = checked_index(offers.len())?;
            let host = placement.host_of(key.peer);
            let gaps = extract.send_gaps.remove(&key).unwrap_or_default();
            let announcement = announcements.entry(host).or_default();
            announcement.extend([
                u64::from(source),
                u64::from(key.peer),
                u64::from(key.comm),
                u64::from(key.tag),
                sends.len() as u64,
                checksum_of(&sends),
                u64::from(index),
                gaps.count,
                gaps.after.len() as u64,
            ]);
            announcement.extend(gaps.after.into_iter().map(u64::from));
            offers.push(Offer { source: local as u32, key, host: host as u32, sends, remote: u32::MAX });
        }
    }
    Ok((offers, announcements))
}

impl Offer {
    /// A channel of all its sends.
    pub(super) fn into_channel(self, trust: Trust) -> OutChannel {
        OutChannel {
            source: self.source,
            destination: self.key.peer,
            host: self.host,
            remote: self.remote,
            trust,
            sends: events_of(self.sends),
        }
    }
}

fn events_of(ends: Vec<MessageEnd>) -> Vec<u32> {
    // Collecting may keep the larger buffer.
    let mut events: Vec<u32> = ends.into_iter().map(|end| end.event).collect();
    events.shrink_to_fit();
    events
}

/// Of the lengths in their order. The hosts of the two ends may be different machines: no hash of the standard library.
fn checksum_of(ends: &[MessageEnd]) -> u64 {
    // The odd constant is 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    ends.iter().fold(0, |sum: u64, end| {
        (sum.rotate_left(23) ^ u64::from(end.length)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

impl InDoubt {
    /// Sends and receives that are in no message.
    pub fn left_out(&self) -> u64 {
        self.sends + self.receives - 2 * self.matched
    }
}

impl MessageCounts {
    /// How many channels in doubt are named.
    pub const EXAMPLES: usize = 10;

    pub(super) fn leave(&mut self, source: u32, destination: u32, sends: usize, receives: usize) {
        if sends + receives > 0 {
            let pair = self.unmatched.entry((source, destination)).or_default();
            pair.sends += sends as u64;
            pair.receives += receives as u64;
        }
    }

    /// Counts pairs of a timeline with itself as what they are.
    pub(super) fn keep_to_self(&mut self, trust: Trust, pairs: u64) {
        if trust.of_messages() {
            self.matched = self.matched.saturating_sub(pairs);
            self.to_self += pairs;
        } else if trust == Trust::Implied {
            self.implied = self.implied.saturating_sub(pairs);
        }
    }

    /// Names the channels that leave out most.
    pub fn keep_examples(&mut self) {
        self.in_doubt.sort_unstable_by_key(|doubt| {
            (Reverse(doubt.left_out()), doubt.sender, doubt.receiver, doubt.comm, doubt.tag)
        });
        self.in_doubt.truncate(Self::EXAMPLES);
    }

    /// Takes `count` pairs of a channel back.
    pub fn take_back(&mut self, (source, destination): (u32, u32), trust: Trust, count: usize) {
        if trust == Trust::Implied {
            self.implied -= count as u64;
        } else if trust.of_threads() {
            self.threads.leave(trust, count as u64);
        } else {
            self.matched -= count as u64;
            self.leave(source, destination, count, count);
        }
        *self.contradicted.entry((source, destination)).or_default() += count as u64;
    }

    /// Adds the counts of another analysis rank.
    pub fn merge(&mut self, other: &MessageCounts) {
        self.matched += other.matched;
        self.implied += other.implied;
        self.to_self += other.to_self;
        for (&(source, destination), pair) in &other.unmatched {
            self.leave(source, destination, pair.sends as usize, pair.receives as usize);
        }
        self.doubtful += other.doubtful;
        self.in_doubt.extend(&other.in_doubt);
        self.keep_examples();
        self.acknowledged += other.acknowledged;
        self.grouped += other.grouped;
        self.loose_steps += other.loose_steps;
        self.threads.merge(&other.threads);
        for (&pair, &count) in &other.contradicted {
            *self.contradicted.entry(pair).or_default() += count;
        }
    }
}

pub(super) fn checked_index(length: usize) -> Result<u32> {
    u32::try_from(length)
        .ok()
        .filter(|&index| (index as usize) < SyncTimeline::LINKS)
        .ok_or_else(|| Error::new(format!("more than {} message channels on one analysis rank", SyncTimeline::LINKS)))
}
