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
    /// A member of a barrier, or of a fence of a window, waited for the last one.
    WaitAtBarrier,
    /// A member of a 1-to-N operation waited for the root.
    LateBroadcast,
    /// The root of an N-to-1 operation waited until the last of the others had entered.
    EarlyReduce,
    /// A member of a prefix operation waited for a lower rank.
    EarlyScan,
}

impl WaitKind {
    /// All of them, in the order of reports.
    pub const ALL: [WaitKind; 7] = [
        WaitKind::LateSender,
        WaitKind::LateReceiver,
        WaitKind::WaitAtNxn,
        WaitKind::WaitAtBarrier,
        WaitKind::LateBroadcast,
        WaitKind::EarlyReduce,
        WaitKind::EarlyScan,
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
pub struct Tally {
    /// Waiting time before, and after.
    pub ticks: [i128; 2],
    /// How many waited before, and after.
    pub counts: [u64; 2],
    /// By how much some waited shorter after than before: that was an artefact of the clocks.
    pub artefact: i128,
    /// By how much some waited longer after than before: that the clocks had hidden.
    pub hidden: i128,
}

impl Tally {
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

    /// Adds another sum.
    pub fn merge(&mut self, other: &Tally) {
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
        let mut tally = Tally::default();
        tally.add(10, 4);
        tally.add(0, 5);
        assert_eq!((tally.ticks, tally.counts), ([10, 9], [1, 2]));
        assert_eq!((tally.artefact, tally.hidden), (6, 5));
        assert_eq!(tally.ticks[0] - tally.artefact + tally.hidden, tally.ticks[1]);
    }
}
