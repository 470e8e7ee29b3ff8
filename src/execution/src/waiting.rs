//! Waiting times of one region instance, by the definitions of the literature.

use serde::{Deserialize, Serialize};

/// Kinds of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A receive was entered before the send.
    LateSender,
    /// A send was entered before the receive was posted, and could not end before.
    LateReceiver,
    /// A member of an N-to-N operation waited for the last one.
    WaitAtNxn,
    /// A member of a barrier waited for the last one.
    WaitAtBarrier,
    /// A member of a 1-to-N operation waited for the root.
    LateBroadcast,
    /// The root of an N-to-1 operation waited until the last of the others had entered.
    EarlyReduce,
    /// A member of a prefix operation waited for a lower rank.
    EarlyScan,
    /// A member of a fence of a window waited for the last one.
    WaitAtFence,
    /// An origin waited for the post of a target, when it started its epoch on a window or when it completed it.
    LatePost,
    /// A target waited at the end of its epoch on a window until the last of its origins completed.
    EarlyWait,
    /// A process waited for a lock of a window that another one held.
    LockContention,
}

/// What is told beside the kinds of waiting. None of it is added to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetailKind {
    /// A part of Late Sender: a message of another process, which was sent earlier, was received later.
    WrongOrderDifferentSource,
    /// The same with an earlier message of the same process.
    WrongOrderSameSource,
    /// A part of Early Wait: the origin that was waited for had made its last access before.
    LateComplete,
    /// Not waiting: what members of a barrier take after the first one has left it.
    BarrierCompletion,
    /// The same of other N-to-N operations.
    NxnCompletion,
}

impl DetailKind {
    /// All of them, in the order of reports.
    pub const ALL: [DetailKind; 5] = [
        DetailKind::WrongOrderDifferentSource,
        DetailKind::WrongOrderSameSource,
        DetailKind::LateComplete,
        DetailKind::BarrierCompletion,
        DetailKind::NxnCompletion,
    ];

    /// The name in the literature, or near to it.
    pub fn name(self) -> &'static str {
        match self {
            DetailKind::WrongOrderDifferentSource => "Wrong order: different",
            DetailKind::WrongOrderSameSource => "Wrong order: same",
            DetailKind::LateComplete => "Late Complete",
            DetailKind::BarrierCompletion => "Barrier Completion",
            DetailKind::NxnCompletion => "N-to-N Completion",
        }
    }

    /// The kind of waiting that it is a part of; none if it is no waiting.
    pub fn part_of(self) -> Option<WaitKind> {
        match self {
            DetailKind::WrongOrderDifferentSource | DetailKind::WrongOrderSameSource => Some(WaitKind::LateSender),
            DetailKind::LateComplete => Some(WaitKind::EarlyWait),
            DetailKind::BarrierCompletion | DetailKind::NxnCompletion => None,
        }
    }
}

impl WaitKind {
    /// All of them, in the order of reports.
    pub const ALL: [WaitKind; 11] = [
        WaitKind::LateSender,
        WaitKind::LateReceiver,
        WaitKind::WaitAtNxn,
        WaitKind::WaitAtBarrier,
        WaitKind::LateBroadcast,
        WaitKind::EarlyReduce,
        WaitKind::EarlyScan,
        WaitKind::WaitAtFence,
        WaitKind::LatePost,
        WaitKind::EarlyWait,
        WaitKind::LockContention,
    ];

    /// The name in the literature.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::LateSender => "Late Sender",
            WaitKind::LateReceiver => "Late Receiver",
            WaitKind::WaitAtNxn => "Wait at NxN",
            WaitKind::WaitAtBarrier => "Wait at Barrier",
            WaitKind::LateBroadcast => "Late Broadcast",
            WaitKind::EarlyReduce => "Early Reduce",
            WaitKind::EarlyScan => "Early Scan",
            WaitKind::WaitAtFence => "Wait at Fence",
            WaitKind::LatePost => "Late Post",
            WaitKind::EarlyWait => "Early Wait",
            WaitKind::LockContention => "Lock Contention",
        }
    }
}

/// When a region instance that was entered at `enter` stops waiting for something that is there at `ready`, if it cannot wait longer
/// than until `end`. `None` if it does not wait at all.
pub fn waits_until(enter: i64, ready: i64, end: i64) -> Option<i64> {
    Some(ready.min(end)).filter(|&until| until > enter)
}

/// When a send (or the operation that completes it) stops waiting for its receive to be posted: it was entered before, and left after.
/// One that was left before did not wait, its message was buffered.
pub fn send_waits_until(enter: i64, posted: i64, leave: i64) -> Option<i64> {
    Some(posted).filter(|&posted| enter < posted && posted < leave)
}

/// Sums of waiting times before and after the correction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WaitingTally {
    /// Waiting time before, and after.
    pub ticks: [i128; 2],
    /// How many waited before, and after.
    pub counts: [u64; 2],
    /// By how much some waited shorter after than before: that was an artefact of the clocks.
    pub artefact: i128,
    /// By how much some waited longer after than before: that the clocks had hidden.
    pub hidden: i128,
}

impl WaitingTally {
    /// Adds one region instance that waited so long before and after.
    pub fn add(&mut self, before: i64, after: i64) {
        for (stage, ticks) in [before, after].into_iter().enumerate() {
            self.ticks[stage] += i128::from(ticks);
            self.counts[stage] += u64::from(ticks > 0);
        }
        let difference = i128::from(before) - i128::from(after);
        self.artefact += difference.max(0);
        self.hidden += (-difference).max(0);
    }

    /// So many region instances that waited equally long, for each one of these.
    pub fn times(self, number: u64) -> WaitingTally {
        let all = i128::from(number);
        WaitingTally {
            ticks: self.ticks.map(|ticks| ticks * all),
            counts: self.counts.map(|count| count * number),
            artefact: self.artefact * all,
            hidden: self.hidden * all,
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &WaitingTally) {
        for stage in 0..2 {
            self.ticks[stage] += other.ticks[stage];
            self.counts[stage] += other.counts[stage];
        }
        self.artefact += other.artefact;
        self.hidden += other.hidden;
    }

    /// What lists are sorted by: the longer one of both waiting times.
    pub fn longest(&self) -> i128 {
        self.ticks[0].max(self.ticks[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sender() {
        // Receive entered at 10, sent at 25, received at 30.
        assert_eq!(waits_until(10, 25, 30), Some(25));
        // Sent before.
        assert_eq!(waits_until(10, 10, 30), None);
        // The send seems to come after the receive: no longer than until the receive.
        assert_eq!(waits_until(10, 45, 30), Some(30));
        assert_eq!(waits_until(10, 45, 10), None);
    }

    #[test]
    fn a_late_receiver_needs_a_send_that_lasts() {
        assert_eq!(send_waits_until(10, 15, 20), Some(15));
        assert_eq!(send_waits_until(10, 20, 20), None);
        assert_eq!(send_waits_until(10, 25, 20), None);
        assert_eq!(send_waits_until(10, 10, 20), None);
    }

    #[test]
    fn artefacts_and_hidden_times_do_not_cancel() {
        let mut tally = WaitingTally::default();
        tally.add(10, 4);
        tally.add(0, 5);
        assert_eq!((tally.ticks, tally.counts), ([10, 9], [1, 2]));
        assert_eq!((tally.artefact, tally.hidden), (6, 5));
        assert_eq!(tally.ticks[0] - tally.artefact + tally.hidden, tally.ticks[1]);
        let mut twice = tally;
        twice.merge(&tally);
        assert_eq!(tally.times(2), twice);
    }
}
