//! Times of visited events, in whatever form they are kept.

use crate::matching::relative_times::RelativeTimes;
use crate::matching::sync::SyncTimeline;

/// Times of the visited events of a timeline, in ticks.
pub trait TimelineTimes: Sync {
    /// That of an event.
    fn at(&self, event: u32) -> i64;
}

impl TimelineTimes for Vec<i64> {
    #[inline(always)]
    fn at(&self, event: u32) -> i64 {
        self[event as usize]
    }
}

impl TimelineTimes for &[i64] {
    #[inline(always)]
    fn at(&self, event: u32) -> i64 {
        self[event as usize]
    }
}

/// The times that a timeline has or had, or is to have.
#[derive(Debug, Clone, Copy)]
pub struct VisitedTimes<'a> {
    timeline: &'a SyncTimeline,
    stage: Stage<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Stage<'a> {
    Recorded,
    Presynchronised,
    Corrected(&'a RelativeTimes),
}

impl<'a> VisitedTimes<'a> {
    /// As recorded; the pre-synchronised ones where these were forgotten.
    pub fn recorded(timeline: &'a SyncTimeline) -> VisitedTimes<'a> {
        VisitedTimes { timeline, stage: Stage::Recorded }
    }

    /// Pre-synchronised.
    pub fn presynchronised(timeline: &'a SyncTimeline) -> VisitedTimes<'a> {
        VisitedTimes { timeline, stage: Stage::Presynchronised }
    }

    /// Corrected: later than the pre-synchronised ones by what `later` says.
    pub(crate) fn corrected(timeline: &'a SyncTimeline, later: &'a RelativeTimes) -> VisitedTimes<'a> {
        VisitedTimes { timeline, stage: Stage::Corrected(later) }
    }

    /// Number of events.
    pub fn len(self) -> usize {
        self.timeline.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.timeline.is_empty()
    }
}

impl TimelineTimes for VisitedTimes<'_> {
    #[inline(always)]
    fn at(&self, event: u32) -> i64 {
        let (event, timeline) = (event as usize, self.timeline);
        match self.stage {
            Stage::Presynchronised => timeline.time(event),
            Stage::Recorded => timeline.recorded_time(event).unwrap_or_else(|| timeline.time(event)),
            Stage::Corrected(later) => timeline.time(event).wrapping_add(later.later_by(event).unwrap_or(0)),
        }
    }
}
