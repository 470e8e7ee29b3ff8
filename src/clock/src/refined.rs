//! Refined clocks of all timelines.

use crate::estimator::refinement;
use crate::{Clock, ClockMap, Knots, LinearClock};
use clc_trace::{OwnTimeline, Result, TimelineNumber};

/// Refined clocks of all timelines.
#[derive(Debug, Clone)]
pub struct RefinedClocks {
    of_timeline: Vec<u32>,
    clocks: Vec<Clock>,
    /// Of locations with timelines of their own, which come last.
    own: Vec<(OwnTimeline, Clock)>,
}

impl RefinedClocks {
    /// The recorded clocks, refined with `knots` for each of them, or not at all where there are none.
    ///
    /// # Errors
    /// As [`LinearClock::through`].
    pub fn new(map: &ClockMap, knots: &[Knots]) -> Result<Self> {
        let mut clocks = Vec::with_capacity(map.bases.len());
        for (clock, base) in map.bases.iter().enumerate() {
            let more = knots.get(clock).map_or(Ok(LinearClock::identity()), refinement)?;
            clocks.push(Clock::refined(base.clone(), more));
        }
        let mut own = Vec::with_capacity(map.own.len());
        for (timeline, base) in &map.own {
            let clock = map.of_timeline[timeline.of] as usize;
            let more = knots.get(clock).map_or(Ok(LinearClock::identity()), refinement)?;
            own.push((timeline.clone(), Clock::refined(base.clone(), more)));
        }
        Ok(RefinedClocks { of_timeline: map.of_timeline.clone(), clocks, own })
    }

    /// The clocks as they are, without recorded offsets.
    pub fn unmeasured(map: &ClockMap) -> Self {
        let identity = || Clock::from(LinearClock::identity());
        let own = map.own.iter().map(|(timeline, _)| (timeline.clone(), identity())).collect();
        RefinedClocks { of_timeline: map.of_timeline.clone(), clocks: vec![identity(); map.bases.len()], own }
    }

    /// The clock of a timeline of the trace.
    pub fn of(&self, timeline: TimelineNumber) -> &Clock {
        let others = self.of_timeline.len() - self.own.len();
        match timeline.place().checked_sub(others).and_then(|own| self.own.get(own)) {
            Some((_, clock)) => clock,
            None => &self.clocks[self.of_timeline[timeline] as usize],
        }
    }

    /// Whether a location of a process (by its place) has a clock of its own.
    pub fn has_own(&self, timeline: TimelineNumber, location: u32) -> bool {
        self.own_of(timeline, location).is_some()
    }

    /// The clock of a location of a process.
    pub fn of_location(&self, timeline: TimelineNumber, location: u32) -> &Clock {
        self.own_of(timeline, location).unwrap_or_else(|| self.of(timeline))
    }

    fn own_of(&self, timeline: TimelineNumber, location: u32) -> Option<&Clock> {
        let own = self.own.iter().find(|(own, _)| own.of == timeline && own.location == location);
        own.map(|(_, clock)| clock)
    }
}
