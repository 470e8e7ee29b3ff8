//! Polls in vain: a program that asks again and again whether something has happened makes millions of calls that say nothing but this. The first ones in a row are recorded like any
//! other call. Those that follow, with nothing else recorded between them, are joined: they share one record, which is changed where it is. A call costs no more for it.

use super::{JoinedPolls, Stream};
use crate::format::{JOINED, POLLS};
use std::sync::atomic::Ordering;

/// So many in a row are recorded as they are. Chosen by hand: with fewer, loops that ask for several things in turn are not seen once as a whole; with more, programs that wait
/// often have more records of this than of anything else.
const KEPT: u32 = 8;

/// The values of a record of joined polls.
const VALUES: usize = 2 + POLLS.len();
/// Time until the last one ended.
const UNTIL: usize = 0;
/// Time within them.
const WITHIN: usize = 1;
/// How often the first of [`POLLS`] was called.
const COUNTS: usize = 2;

impl JoinedPolls {
    /// Adds to a value of the record, and returns what it is then.
    ///
    /// # Safety
    /// There is a record, in the buffer that is being filled.
    #[inline]
    unsafe fn add(&self, value: usize, more: u64) -> u64 {
        debug_assert!(value < VALUES);
        // SAFETY: the caller says that it is there; it need not be aligned.
        unsafe {
            let place = self.values.add(value);
            let sum = place.read_unaligned().wrapping_add(more);
            place.write_unaligned(sum);
            sum
        }
    }
}

impl Stream {
    /// A poll begins, whose record is about to be written. Returns whether it would be joined: then that record does not count before it is known.
    #[inline]
    pub(crate) fn poll_begins(&mut self) -> bool {
        if self.polls.row > 0 && self.position != self.polls.end {
            self.forget_polls();
        }
        self.polls.requests = false;
        self.polls.row >= KEPT
    }

    /// Whether the poll that has begun last is about requests that are not null.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        self.polls.requests
    }

    /// Whether there were others in vain directly before it.
    #[inline]
    pub(crate) fn polls_before(&self) -> bool {
        self.polls.row > 0
    }

    /// The poll that the last record has begun was in vain and is over. Returns whether it is joined with those before it; otherwise, its end has to be recorded. There is room
    /// for a record.
    #[inline(never)]
    pub(crate) fn joins_poll(&mut self, poll: u8, now: u64) -> bool {
        if self.polls.row < KEPT {
            return false;
        }
        // Something that MPI has called has recorded something.
        if self.committed != self.polls.end {
            self.forget_polls();
            return false;
        }
        let began = self.state.time;
        self.position = self.committed;
        self.state = self.kept;
        if self.polls.values.is_null() {
            self.begin_joined(began);
        }
        let ended = now.max(began);
        // SAFETY: the record is in this buffer, since `turn` forgets it.
        let (within, elapsed) = unsafe {
            self.polls.add(COUNTS + usize::from(poll) - 1, 1);
            (self.polls.add(WITHIN, ended - began), self.polls.add(UNTIL, ended - self.state.time))
        };
        let waits = within > elapsed / 2;
        self.polled[1].store(if waits { ended } else { 0 }, Ordering::Relaxed);
        self.state.time = ended;
        self.inside_since.store(0, Ordering::Relaxed);
        true
    }

    /// Begins the record of joined polls, the first of which began then.
    #[cold]
    fn begin_joined(&mut self, began: u64) {
        self.unsigned(JOINED);
        self.stamp(began);
        // SAFETY: there is room for a record, which is longer.
        unsafe {
            let values = self.base.add(self.position).cast::<u64>();
            (0..VALUES).for_each(|value| values.add(value).write_unaligned(0));
            self.polls.values = values;
        }
        self.polled[0].store(began, Ordering::Relaxed);
        self.position += VALUES * size_of::<u64>();
    }

    /// The poll whose record was just written was in vain.
    #[inline]
    pub(crate) fn poll_was_in_vain(&mut self) {
        self.polls.row += u32::from(self.polls.values.is_null());
        self.polls.end = self.position;
    }

    /// The next poll is the first one in a row.
    pub(crate) fn forget_polls(&mut self) {
        self.polls = JoinedPolls { requests: self.polls.requests, ..JoinedPolls::NONE };
    }
}
