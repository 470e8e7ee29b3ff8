//! The plain Lamport clock (γ = 0, δ = 0), whose largest advance is D₀.

use crate::replay::program::NO_LOWER_BOUND;
use crate::trace::Ticks;
use std::collections::HashMap;

/// Bounds by event.
type Bounds = HashMap<u32, i64, foldhash::fast::FixedState>;

/// The plain Lamport clocks of the hosted timelines: LC_j = max(C_j, all bounds of the timeline so far).
#[derive(Debug)]
pub struct Lamport {
    /// Per timeline: the largest bound of the events visited so far.
    level: Vec<i64>,
    /// Per timeline: bounds of events to come, where they are later than these.
    waiting: Vec<Bounds>,
    /// The largest advance LC - C, which some receive has: between receives it decreases.
    pub largest_advance: Ticks,
}

impl Lamport {
    /// Before a replay of so many timelines.
    pub fn new(timelines: usize) -> Lamport {
        Lamport {
            level: vec![NO_LOWER_BOUND; timelines],
            waiting: vec![Bounds::default(); timelines],
            largest_advance: Ticks::ZERO,
        }
    }

    /// An event at `time` gets its bound.
    #[inline]
    pub fn bound(&mut self, timeline: usize, event: u32, time: i64, bound: i64) {
        if bound > time {
            self.largest_advance = self.largest_advance.max(Ticks(bound - time));
            self.waiting[timeline].insert(event, bound);
        }
    }

    /// Visits an event, which has its bound; its logical time.
    #[inline]
    pub fn step(&mut self, timeline: usize, event: usize, time: i64) -> i64 {
        let (level, waiting) = (&mut self.level[timeline], &mut self.waiting[timeline]);
        if !waiting.is_empty()
            && let Some(bound) = waiting.remove(&(event as u32))
        {
            *level = bound.max(*level);
        }
        time.max(*level)
    }
}
