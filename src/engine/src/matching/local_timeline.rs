//! Which of the timelines that an analysis rank hosts.

use clc_trace::TimelineNumber;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Index, IndexMut};

/// A timeline by its place among those that one analysis rank hosts: from 0 up to but without their number, those of processes first, then those that locations have
/// of their own. It means nothing on another rank: there, and in the definitions, the timeline is known by its [`TimelineNumber`], which
/// [`Program::number`](crate::replay::program::Program::number) knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(transparent)]
pub struct LocalTimeline(pub u32);

impl LocalTimeline {
    /// The timeline at a place of a list with one element per hosted timeline.
    #[inline]
    pub fn at(place: usize) -> LocalTimeline {
        LocalTimeline(place as u32)
    }

    /// The place in a list with one element per hosted timeline.
    #[inline]
    pub fn place(self) -> usize {
        self.0 as usize
    }

    /// Its number, as long as no location has a timeline of its own: `first` is that of the first hosted timeline.
    pub fn numbered_from(self, first: TimelineNumber) -> TimelineNumber {
        TimelineNumber(first.0 + self.0)
    }
}

impl fmt::Display for LocalTimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Index<LocalTimeline> for [T] {
    type Output = T;

    #[inline]
    fn index(&self, timeline: LocalTimeline) -> &T {
        &self[timeline.place()]
    }
}

impl<T> IndexMut<LocalTimeline> for [T] {
    #[inline]
    fn index_mut(&mut self, timeline: LocalTimeline) -> &mut T {
        &mut self[timeline.place()]
    }
}

impl<T> Index<LocalTimeline> for Vec<T> {
    type Output = T;

    #[inline]
    fn index(&self, timeline: LocalTimeline) -> &T {
        &self[timeline.place()]
    }
}

impl<T> IndexMut<LocalTimeline> for Vec<T> {
    #[inline]
    fn index_mut(&mut self, timeline: LocalTimeline) -> &mut T {
        &mut self[timeline.place()]
    }
}
