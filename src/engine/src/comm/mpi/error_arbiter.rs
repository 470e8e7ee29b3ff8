//! Which of several failed ranks says why, if others still wait for them.
//!
//! A failure that is not everybody's (of an MPI call, say) often hits several ranks, and each has something to say. The first one that fails
//! tells all others so; those that fail later, or at the same time with a higher rank, leave the last word to it.

use crate::comm::mpi::call::{ImmediateOperation, MpiCommunicator};
use std::time::Duration;

/// Tag of a complaint.
const TAG: i32 = 1;

/// Ranks that fail together need no complaints: they are sent after this time only.
const DELAY: Duration = Duration::from_millis(300);

/// Complaints sent and heard by one rank.
#[derive(Default)]
pub(super) struct ErrorArbiter {
    sent: bool,
    /// They keep their buffers if the run ends before they are delivered.
    sending: Vec<ImmediateOperation<Box<[u64]>>>,
    /// The lowest rank heard.
    lowest: Option<usize>,
    /// Whether one was heard before this rank sent its own.
    late: bool,
}

impl ErrorArbiter {
    /// Called again and again while this rank waits for the others to end, so far for `waited`. Failures do not matter any more.
    pub(super) fn turn(&mut self, on: &MpiCommunicator, waited: Duration) {
        while let Ok(Some(mut incoming)) = on.receive(TAG) {
            let _ = incoming.request.test();
            self.lowest = Some(self.lowest.map_or(incoming.source, |lowest| lowest.min(incoming.source)));
            self.late |= !self.sent;
        }
        if waited < DELAY || self.sent || self.late {
            self.sending.iter_mut().for_each(|request| drop(request.test()));
            return;
        }
        self.sent = true;
        for rank in (0..on.size).filter(|&rank| rank != on.rank) {
            self.sending.extend(on.send(rank, TAG, vec![0]).ok());
        }
    }

    /// Whether another rank says what went wrong, seen from rank `own`.
    pub(super) fn follows(&self, own: usize) -> bool {
        self.late || self.lowest.is_some_and(|lowest| lowest < own)
    }
}
