//! The ids of requests in events.
//!
//! An id stands for a request from the event that begins it to the one that ends it. Afterwards it can stand for another one, as handles do in MPI:
//! small ids take fewer bytes, and most programs have few requests open at a time. Only the thread that has begun a request and ended it uses its id again: so the
//! two uses of it are events of one location, whose order is known whatever is done to the times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The ids of one process.
#[derive(Debug, Default)]
pub(super) struct RequestIds {
    /// The largest one so far.
    last: u64,
    /// For each thread those that it can use again.
    free: Vec<BinaryHeap<Reverse<u64>>>,
    /// Which thread has begun the open ones.
    open: HashMap<u64, usize>,
}

impl RequestIds {
    /// Of a process with so many threads.
    pub(super) fn new(threads: usize) -> RequestIds {
        RequestIds { free: vec![BinaryHeap::new(); threads], ..RequestIds::default() }
    }

    /// The id of a request that a thread begins.
    pub(super) fn begin(&mut self, thread: usize) -> u64 {
        let again = self.free.get_mut(thread).and_then(BinaryHeap::pop);
        let id = again.map_or_else(
            || {
                self.last += 1;
                self.last
            },
            |Reverse(id)| id,
        );
        self.open.insert(id, thread);
        id
    }

    /// A thread has written the last event of a request.
    pub(super) fn end(&mut self, thread: usize, id: u64) {
        if self.open.remove(&id) == Some(thread)
            && let Some(free) = self.free.get_mut(thread)
        {
            free.push(Reverse(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_free_id_is_used_again() {
        let mut ids = RequestIds::new(1);
        assert_eq!([(); 3].map(|()| ids.begin(0)), [1, 2, 3]);
        ids.end(0, 3);
        ids.end(0, 1);
        assert_eq!([(); 3].map(|()| ids.begin(0)), [1, 3, 4]);
    }

    #[test]
    fn an_id_that_another_thread_has_ended_is_not_used_again() {
        let mut ids = RequestIds::new(2);
        let id = ids.begin(0);
        ids.end(1, id);
        assert!(ids.begin(0) != id && ids.begin(1) != id);
    }

    #[test]
    fn what_ends_twice_is_free_once() {
        let mut ids = RequestIds::new(1);
        let id = ids.begin(0);
        ids.end(0, id);
        ids.end(0, id);
        assert_ne!(ids.begin(0), ids.begin(0));
    }
}
