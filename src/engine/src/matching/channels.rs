//! Channels between two processes: what the pairs of their events are, and both ends.

use crate::comm::AnalysisRank;
use crate::matching::event_list::EventList;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::message_ends::MessageEnd;
use crate::matching::sync::SyncTimeline;
use clc_trace::{CollectiveOp, Error, LengthClass, Result, TimelineNumber};
use serde::{Deserialize, Serialize};

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
    /// No messages: a call that issues work to a stream of an accelerator, and the begin of that work.
    Issued,
    /// No messages: the end of work of a stream, and that of a call that has waited for it.
    Awaited,
}

/// The sending end of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutChannel {
    /// The timeline that sends.
    pub source: LocalTimeline,
    /// The timeline that receives.
    pub destination: TimelineNumber,
    /// Analysis rank that hosts the receiver.
    pub host: AnalysisRank,
    /// Index of the channel's receiving end at that rank.
    pub remote: u32,
    /// What its pairs are.
    pub trust: Trust,
    /// Send events, in order.
    pub sends: EventList,
}

/// The receiving end of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InChannel {
    /// The timeline that sends.
    pub source: TimelineNumber,
    /// Analysis rank that hosts the sender.
    pub host: AnalysisRank,
    /// Index of the channel's sending end at that rank.
    pub remote: u32,
    /// The timeline that receives.
    pub destination: LocalTimeline,
    /// What its pairs are.
    pub trust: Trust,
    /// Receive events in the order in which they were posted: the k-th belongs to the k-th send.
    pub receives: EventList,
    /// Their lengths.
    pub lengths: Lengths,
}

/// How long the messages of a channel are, as far as that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lengths {
    /// All of them.
    All(LengthClass),
    /// Each of them, in their order.
    Each(Vec<LengthClass>),
}

impl Default for Lengths {
    /// Not known.
    fn default() -> Self {
        Lengths::All(LengthClass::default())
    }
}

impl Lengths {
    /// Of these messages.
    pub(crate) fn of(ends: &[MessageEnd]) -> Lengths {
        let class = |end: &MessageEnd| LengthClass::of(end.length);
        match ends.first().map(class) {
            Some(first) if ends.iter().any(|end| class(end) != first) => {
                Lengths::Each(ends.iter().map(class).collect())
            }
            first => Lengths::All(first.unwrap_or_default()),
        }
    }

    /// What is known of some of the messages, whichever they are.
    pub(crate) fn of_some(&self) -> Lengths {
        match self {
            Lengths::All(class) => Lengths::All(*class),
            Lengths::Each(_) => Lengths::default(),
        }
    }
}

impl Trust {
    /// Whether it may be wrong: records are missing, or the steps of threads were put together by their order.
    pub(crate) fn in_doubt(self) -> bool {
        matches!(self, Trust::Aligned | Trust::Implied) || self.of_threads()
    }

    /// What is taken back first where events wait for each other in a cycle: orders that only follow from numbers of records, then steps of threads, which were put
    /// together by their order, then messages that lengths tell.
    pub(crate) fn doubt(self) -> (u8, Trust) {
        let level = match self {
            Trust::Implied => 3,
            threads if threads.of_threads() => 2,
            Trust::Aligned => 1,
            _ => 0,
        };
        (level, self)
    }

    /// Whether the pairs are of threads or streams of one process, between which there is no minimum latency.
    pub(crate) fn of_threads(self) -> bool {
        matches!(self, Trust::Forked | Trust::Barrier | Trust::Created | Trust::Tasked | Trust::Locked)
            || self.of_accelerators()
    }

    /// Whether the pairs are of a process and a stream of an accelerator.
    pub(crate) fn of_accelerators(self) -> bool {
        matches!(self, Trust::Issued | Trust::Awaited)
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
            Trust::Issued => Some(CollectiveOp::ACCELERATOR_ISSUE),
            Trust::Awaited => Some(CollectiveOp::ACCELERATOR_WAIT),
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

/// The index of the next channel of an analysis rank that has `length`.
///
/// # Errors
/// There are too many.
pub(super) fn checked_index(length: usize) -> Result<u32> {
    u32::try_from(length)
        .ok()
        .filter(|&index| (index as usize) < SyncTimeline::LINKS)
        .ok_or_else(|| Error::new(format!("more than {} message channels on one analysis rank", SyncTimeline::LINKS)))
}
