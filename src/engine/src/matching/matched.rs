//! All channels of an analysis rank, and what its messages came to.

use crate::matching::channels::{InChannel, OutChannel, Trust};
use crate::matching::comm_index::CommIndex;
use crate::matching::within::steps::ThreadCounts;
use clc_trace::TimelineNumber;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Sends and receives between two processes that found no partner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// Sends without a receive.
    pub sends: u64,
    /// Receives without a send.
    pub receives: u64,
}

/// A channel in which records are missing, or which several threads share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InDoubt {
    /// The process that sends.
    pub sender: TimelineNumber,
    /// The process that receives.
    pub receiver: TimelineNumber,
    /// The communicator, as index into the definitions.
    pub comm: CommIndex,
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
    /// Several threads of the sender or of the receiver share it, between which MPI knows no order.
    pub shared: bool,
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
    pub unmatched: BTreeMap<(TimelineNumber, TimelineNumber), Unmatched>,
    /// Channels in which records are missing, or which several threads share.
    pub doubtful: u64,
    /// Those of them which several threads share.
    pub shared: u64,
    /// Those of them that leave out most; at most [`MessageCounts::EXAMPLES`].
    pub in_doubt: Vec<InDoubt>,
    /// What was taken back since it contradicts the rest of the trace, by (sender, receiver).
    pub contradicted: BTreeMap<(TimelineNumber, TimelineNumber), u64>,
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
    /// Whether threads that share a channel may have been served in the order of their calls, as far as the trace shows.
    pub calls_in_order: bool,
    /// Counts for the report.
    pub counts: MessageCounts,
}

impl InDoubt {
    /// Sends and receives that are in no message.
    pub(crate) fn left_out(&self) -> u64 {
        self.sends + self.receives - 2 * self.matched
    }
}

impl MessageCounts {
    /// How many channels in doubt are named. Chosen by hand: with more, the list cannot be read; the counts are of all.
    pub const EXAMPLES: usize = 10;

    pub(super) fn leave(&mut self, source: TimelineNumber, destination: TimelineNumber, sends: usize, receives: usize) {
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
    pub(crate) fn take_back(
        &mut self,
        (source, destination): (TimelineNumber, TimelineNumber),
        trust: Trust,
        count: usize,
    ) {
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
        self.shared += other.shared;
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
