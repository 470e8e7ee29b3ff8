//! Logical times of visited events in few bytes: how far they are ahead of the times from which a replay starts.

use crate::matching::local_timeline::LocalTimeline;
use crate::matching::visited_times::TimelineTimes;
use crate::replay::program::Program;

/// What the visited events of one timeline have got: before an event is visited the bound by its logical sends, then its logical time. Either is an advance over the
/// time of the event, since a bound before that one says nothing; four bytes each as long as that is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advances {
    /// All bits are set in one that has not arrived.
    Narrow(Vec<u32>),
    /// One that has not arrived is negative.
    Wide(Vec<i64>),
}

impl Advances {
    /// A bound that has not arrived yet.
    const AWAITED: u32 = u32::MAX;

    /// Of so many events, none of which has a bound.
    pub(crate) fn none(events: usize) -> Advances {
        Advances::Narrow(vec![0; events])
    }

    /// Of so many events, all of which wait for a bound.
    pub(crate) fn awaited(events: usize) -> Advances {
        Advances::Narrow(vec![Advances::AWAITED; events])
    }

    /// Makes an event wait for its bound.
    pub(crate) fn wait(&mut self, event: usize) {
        match self {
            Advances::Narrow(advances) => advances[event] = Advances::AWAITED,
            Advances::Wide(advances) => advances[event] = -1,
        }
    }

    /// The advance of an event, or of its bound; `None` if the bound has not arrived yet.
    #[inline]
    pub(crate) fn known(&self, event: usize) -> Option<i64> {
        match self {
            Advances::Narrow(advances) => {
                let advance = advances[event];
                (advance != Advances::AWAITED).then_some(i64::from(advance))
            }
            Advances::Wide(advances) => Some(advances[event]).filter(|&advance| advance >= 0),
        }
    }

    /// The advance of an event that has been visited.
    #[inline]
    pub(crate) fn of(&self, event: usize) -> i64 {
        self.known(event).unwrap_or(0)
    }

    /// Gives an event its advance, or that of its bound.
    #[inline]
    pub(crate) fn set(&mut self, event: usize, advance: i64) {
        let advance = advance.max(0);
        match self {
            Advances::Narrow(advances) if advance < i64::from(Advances::AWAITED) => advances[event] = advance as u32,
            Advances::Wide(advances) => advances[event] = advance,
            Advances::Narrow(_) => self.set_far(event, advance),
        }
    }

    /// As [`Advances::set`], for one that is too far ahead for four bytes.
    #[cold]
    fn set_far(&mut self, event: usize, advance: i64) {
        let mut wide: Vec<i64> = (0..self.len()).map(|event| self.known(event).unwrap_or(-1)).collect();
        wide[event] = advance;
        *self = Advances::Wide(wide);
    }

    /// Number of events.
    fn len(&self) -> usize {
        match self {
            Advances::Narrow(advances) => advances.len(),
            Advances::Wide(advances) => advances.len(),
        }
    }
}

/// Times of the visited events of the hosted timelines.
pub trait EventTimes {
    /// Of an event.
    fn at(&self, timeline: LocalTimeline, event: u32) -> i64;
}

impl<T: TimelineTimes> EventTimes for [T] {
    #[inline]
    fn at(&self, timeline: LocalTimeline, event: u32) -> i64 {
        self[timeline].at(event)
    }
}

/// Logical times, which a replay of `program` from its own times has found.
#[derive(Debug, Clone, Copy)]
pub struct LogicalTimes<'a> {
    /// What was replayed.
    pub program: &'a Program,
    /// By hosted timeline.
    pub advances: &'a [Advances],
}

impl EventTimes for LogicalTimes<'_> {
    #[inline]
    fn at(&self, timeline: LocalTimeline, event: u32) -> i64 {
        let event = event as usize;
        self.program.timeline(timeline).time(event) + self.advances[timeline].of(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advances_are_kept_however_far_they_are() {
        let mut advances = Advances::none(5);
        advances.wait(1);
        advances.wait(2);
        advances.set(1, 7);
        advances.set(3, i64::from(u32::MAX) - 1);
        advances.set(4, -20);
        let all = |advances: &Advances| [0, 1, 2, 3, 4].map(|event| advances.known(event));
        let narrow = [Some(0), Some(7), None, Some(i64::from(u32::MAX) - 1), Some(0)];
        assert_eq!((all(&advances), matches!(advances, Advances::Narrow(_))), (narrow, true));
        advances.set(0, i64::from(u32::MAX));
        advances.wait(3);
        assert_eq!(all(&advances), [Some(i64::from(u32::MAX)), Some(7), None, None, Some(0)]);
        advances.set(2, 1 << 60);
        advances.set(1, -1);
        assert_eq!((advances.of(2), advances.of(1)), (1 << 60, 0));
    }
}
