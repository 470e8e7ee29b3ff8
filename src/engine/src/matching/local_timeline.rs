//! Which of the timelines that an analysis rank hosts.

use clc_trace::{TimelineNumber, number};

number! {
    /// A timeline by its place among those that one analysis rank hosts: from 0 up to but without their number, those of processes first, then those that locations have
    /// of their own. It means nothing on another rank: there, and in the definitions, the timeline is known by its [`TimelineNumber`], which
    /// [`Program::number`](crate::replay::program::Program::number) knows.
    LocalTimeline(u32), one per "hosted timeline"
}

impl LocalTimeline {
    /// The timeline at a place of a list with one element per hosted timeline.
    #[inline]
    pub fn at(place: usize) -> LocalTimeline {
        LocalTimeline(place as u32)
    }

    /// Its number, as long as no location has a timeline of its own: `first` is that of the first hosted timeline.
    pub fn numbered_from(self, first: TimelineNumber) -> TimelineNumber {
        TimelineNumber(first.0 + self.0)
    }
}
