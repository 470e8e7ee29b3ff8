//! Which messages and collective operations were found, and which take no part in the replay.

use crate::report::CollectiveKind;
use serde::{Deserialize, Serialize};

/// The outcome of matching.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matching {
    /// Messages with both ends, those of a process to itself not counted.
    pub messages: u64,
    /// Messages of a process to itself; they constrain nobody.
    pub self_messages: u64,
    /// Sends without a receive.
    pub unmatched_sends: u64,
    /// Receives without a send.
    pub unmatched_receives: u64,
    /// The pairs of processes with the most unmatched ends, in that order; at most [`Matching::PAIRS`].
    pub unmatched_pairs: Vec<UnmatchedPair>,
    /// Number of further pairs with unmatched ends.
    pub further_unmatched_pairs: u64,
    /// Sends that come before a receive which need not be theirs: what MPI's order leaves where records are missing. Checked and kept like messages.
    pub implied_orders: u64,
    /// Channels (sender, receiver, communicator, tag) of which records are missing, or which several threads share in an order that is not known.
    pub channels_in_doubt: u64,
    /// Those of them which several threads share.
    #[serde(default)]
    pub channels_of_several_threads: u64,
    /// Those that leave out most, in that order; at most ten.
    pub doubtful_channels: Vec<DoubtfulChannel>,
    /// Messages and implied orders of channels in doubt that contradict the rest of the trace and are not used.
    pub contradicted_orders: u64,
    /// Sends and receives whose other end is an undefined rank, or one that is not in the communicator; they count as neither matched
    /// nor unmatched.
    pub undefined_peers: u64,
    /// Receives that were posted and whose completion is not in the trace.
    pub receives_never_completed: u64,
    /// Requests that the application cancelled.
    pub cancelled_requests: u64,
    /// Where records of messages are missing: calls that send or receive in which there is none, by their number.
    #[serde(default)]
    pub calls_without_records: Vec<CallCount>,
    /// One-sided communication.
    #[serde(default)]
    pub windows: WindowUse,
    /// Steps of the threads of processes, those that occur only.
    #[serde(default)]
    pub threads: Vec<ThreadSteps>,
    /// Collective operations, those that occur only.
    pub collectives: Vec<CollectiveCounts>,
}

impl Matching {
    /// How many unmatched pairs a report names. Chosen by hand: with more, the list cannot be read; the counts are of all.
    pub const PAIRS: usize = 10;

    /// Sets the unmatched pairs: the worst [`Matching::PAIRS`] with names, the others as a number.
    pub fn set_unmatched_pairs(&mut self, mut pairs: Vec<UnmatchedPair>) {
        pairs.retain(|pair| pair.total() > 0);
        pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.total()), pair.sender, pair.receiver));
        self.further_unmatched_pairs = pairs.len().saturating_sub(Self::PAIRS) as u64;
        pairs.truncate(Self::PAIRS);
        self.unmatched_pairs = pairs;
    }
}

/// What threads of one process do with each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSteps {
    /// What the steps are.
    pub kind: CollectiveKind,
    /// Pairs (of barriers: barriers) of threads that share a timeline: in order as recorded, and in any correction.
    pub one_timeline: u64,
    /// Pairs of steps of different timelines, which the replay keeps in order.
    pub several_timelines: u64,
    /// Steps that are in no pair: those of their partners are not in the trace, or cannot be told from others.
    pub left_out: u64,
}

/// Calls of one region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCount {
    /// Its name.
    pub region: String,
    /// How many.
    pub count: u64,
    /// Whether no call of this region left a record: then not even a part of what it communicates was compared.
    pub never_recorded: bool,
}

impl CallCount {
    /// By decreasing number; calls that are as frequent in the order in which they are given.
    pub fn sorted(calls: impl Iterator<Item = CallCount>) -> Vec<CallCount> {
        let mut calls: Vec<CallCount> = calls.collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.count));
        calls
    }
}

/// What processes did on windows, beside collective operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowUse {
    /// Accesses between two fences.
    pub fence_accesses: u64,
    /// Accesses in epochs with a group.
    pub group_accesses: u64,
    /// Accesses under a lock: a trace does not tell in which order locks were held.
    pub lock_accesses: u64,
    /// Pairs of post and complete, and of complete and wait.
    pub steps: u64,
    /// Such steps without a partner.
    pub unmatched_steps: u64,
}

/// Messages between two processes of which one end is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmatchedPair {
    /// MPI rank (in the world) of the sender.
    pub sender: u32,
    /// MPI rank of the receiver.
    pub receiver: u32,
    /// Sends without a receive.
    pub sends: u64,
    /// Receives without a send.
    pub receives: u64,
}

impl UnmatchedPair {
    fn total(&self) -> u64 {
        self.sends.saturating_add(self.receives)
    }
}

/// Messages of one sender, receiver, communicator and tag, of some of which records are missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoubtfulChannel {
    /// MPI rank (in the world) of the sender.
    pub sender: u32,
    /// MPI rank of the receiver.
    pub receiver: u32,
    /// The communicator's id in the archive.
    pub communicator: u32,
    /// The tag.
    pub tag: u32,
    /// Recorded sends.
    pub sends: u64,
    /// Recorded receives.
    pub receives: u64,
    /// Messages that are certain all the same.
    pub matched: u64,
    /// Orders that hold whichever belong together.
    pub implied_orders: u64,
    /// No records need be missing: several threads of the sender or of the receiver share it.
    #[serde(default)]
    pub several_threads: bool,
}

/// Instances of one collective operation: each is counted in exactly one of the four columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveCounts {
    /// The operation, as MPI calls it, in lower case ("allreduce").
    pub operation: String,
    /// Complete, consistent and replayed.
    pub matched: u64,
    /// A member's part is missing.
    pub incomplete: u64,
    /// Members disagree about the operation or its root.
    pub inconsistent: u64,
    /// Complete, but known to synchronise nobody, or not known to synchronise anybody.
    pub unconstrained: u64,
    /// Why, with counts that add up to `unconstrained`.
    pub unconstrained_reasons: Vec<ReasonCount>,
}

/// A reason and how often it applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCount {
    /// The reason, as a clause.
    pub reason: String,
    /// How often it applies.
    pub count: u64,
}
