//! The plain Lamport clock (γ = 0, δ = 0), whose largest advance is D₀.

use crate::matching::hash::HashMap;
use crate::matching::local_timeline::LocalTimeline;
use crate::replay::program::NO_LOWER_BOUND;
use clc_trace::Ticks;

/// The plain Lamport clocks of the hosted timelines: LC_j = max(C_j, all bounds of the timeline so far).
///
/// A bound matters only if it is later than its event, and has to be known until the event is visited. Most of them are not; but if
/// senders run far ahead of receivers whose clocks are behind, there can be as many as messages. Beyond a limit the clock gives up.
#[derive(Debug)]
pub(super) struct Lamport {
    /// Per timeline: the largest bound of the events visited so far.
    level: Vec<i64>,
    /// Per timeline: bounds of events to come, where they are later than these.
    waiting: Vec<HashMap<u32, i64>>,
    /// How many bounds may still be added to these.
    room: usize,
    /// The largest advance LC - C, which some receive has: between receives it decreases.
    largest_advance: Ticks,
    given_up: bool,
}

impl Lamport {
    /// Before a replay of so many timelines, in which at most `most` bounds wait at the same time.
    pub(super) fn new(timelines: usize, most: usize) -> Lamport {
        Lamport {
            level: vec![NO_LOWER_BOUND; timelines],
            waiting: vec![HashMap::default(); timelines],
            room: most,
            largest_advance: Ticks::ZERO,
            given_up: false,
        }
    }

    /// An event at `time` gets its bound.
    #[inline]
    pub(super) fn bound(&mut self, timeline: LocalTimeline, event: u32, time: i64, bound: i64) {
        if bound > time {
            self.keep(timeline, event, time, bound);
        }
    }

    fn keep(&mut self, timeline: LocalTimeline, event: u32, time: i64, bound: i64) {
        if self.given_up {
            return;
        }
        if self.room == 0 {
            self.given_up = true;
            self.waiting.fill(HashMap::default());
            return;
        }
        self.room -= 1;
        self.largest_advance = self.largest_advance.max(Ticks(bound - time));
        self.waiting[timeline].insert(event, bound);
    }

    /// Visits an event, which has its bound; its logical time.
    #[inline]
    pub(super) fn step(&mut self, timeline: LocalTimeline, event: usize, time: i64) -> i64 {
        let (level, waiting) = (&mut self.level[timeline], &mut self.waiting[timeline]);
        if !waiting.is_empty()
            && let Some(bound) = waiting.remove(&(event as u32))
        {
            *level = bound.max(*level);
            self.room += 1;
        }
        time.max(*level)
    }

    /// After the replay: the largest advance LC - C, or `None` if the clock has given up.
    pub(super) fn largest_advance(&self) -> Option<Ticks> {
        (!self.given_up).then_some(self.largest_advance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_count_from_their_events_on() {
        let mut lamport = Lamport::new(2, 10);
        // In no order; one at its event's time, one before it; two events at one time.
        lamport.bound(LocalTimeline(0), 3, 20, 50);
        lamport.bound(LocalTimeline(0), 1, 10, 10);
        lamport.bound(LocalTimeline(0), 2, 20, 30);
        lamport.bound(LocalTimeline(0), 4, 45, 41);
        lamport.bound(LocalTimeline(1), 2, 7, 9);
        let times = [5, 10, 20, 20, 45, 60];
        let logical: Vec<i64> =
            (0..).zip(times).map(|(event, time)| lamport.step(LocalTimeline(0), event, time)).collect();
        assert_eq!(logical, [5, 10, 30, 50, 50, 60]);
        assert_eq!(lamport.largest_advance(), Some(Ticks(30)));
        assert!(lamport.waiting[0].is_empty());
        assert_eq!(lamport.waiting[1].len(), 1);
    }

    #[test]
    fn too_many_waiting_bounds_end_it() {
        let mut lamport = Lamport::new(1, 2);
        lamport.bound(LocalTimeline(0), 1, 0, 5);
        lamport.bound(LocalTimeline(0), 2, 0, 6);
        assert_eq!(lamport.step(LocalTimeline(0), 1, 0), 5);
        lamport.bound(LocalTimeline(0), 3, 0, 7);
        assert_eq!(lamport.largest_advance(), Some(Ticks(7)));
        lamport.bound(LocalTimeline(0), 4, 0, 4);
        assert_eq!(lamport.largest_advance(), None);
        assert!(lamport.waiting[0].is_empty());
    }
}
