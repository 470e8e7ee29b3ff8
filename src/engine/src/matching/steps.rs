//! Steps of the threads and streams of a process that are in order: pairs of them, barriers, and counts.

use crate::matching::channels::Trust;
use clc_trace::RegionId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How many pairs of steps were found, and how many steps found no partner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCount {
    /// Pairs whose threads share a timeline: in order as recorded, and in any correction.
    pub shared: u64,
    /// Pairs of steps of different timelines, which a replay keeps; of those that follow from others none.
    pub apart: u64,
    /// Steps without a partner.
    pub left_out: u64,
}

impl ThreadCount {
    fn add(&mut self, other: &ThreadCount) {
        self.shared += other.shared;
        self.apart += other.apart;
        self.left_out += other.left_out;
    }
}

/// Counts by kind of step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCounts(pub BTreeMap<Trust, ThreadCount>, pub BTreeMap<Unpaired, u64>);

impl ThreadCounts {
    /// Adds those of another process.
    pub fn merge(&mut self, other: &ThreadCounts) {
        for (&kind, count) in &other.0 {
            self.0.entry(kind).or_default().add(count);
        }
        for (why, count) in &other.1 {
            *self.1.entry(why.clone()).or_default() += count;
        }
    }

    /// Leaves out pairs of different timelines.
    pub fn leave(&mut self, kind: Trust, pairs: u64) {
        let count = self.of(kind);
        count.apart = count.apart.saturating_sub(pairs);
        count.left_out += pairs;
    }

    pub(super) fn of(&mut self, kind: Trust) -> &mut ThreadCount {
        self.0.entry(kind).or_default()
    }
}

/// Why work of a stream, or a call, is in no pair.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unpaired {
    /// There are as many calls as work, but that is of several streams, and the calls do not name theirs.
    Streams,
    /// Several locations issue work to one stream.
    Locations,
    /// There are not as many calls as work.
    Numbers,
    /// A region waits for a stream, and the trace does not tell which one.
    UnknownStream(RegionId),
    /// A region waits for a device, and the process has several.
    UnknownDevice(RegionId),
    /// A call waits for work whose own calls are not known.
    UnknownWork(RegionId),
}

/// Two steps of which the first is before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderedSteps {
    pub(super) kind: Trust,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// A barrier of a team: where its threads arrive, and where they depart.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    pub(super) arrivals: Vec<usize>,
    pub(super) departures: Vec<usize>,
}

/// A parallel region of the main location of a process, as the places of its steps, see [`ThreadConstructs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParallelRegion {
    /// Where it is forked.
    pub fork: usize,
    /// Where it is joined.
    pub join: usize,
    /// How many other threads are in its team.
    pub others: u32,
}

/// What the threads of a process do together, with steps as their places in the order in which they were added.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ThreadConstructs {
    /// Barriers: arrival and departure of each thread of the team.
    pub barriers: Vec<Vec<(usize, usize)>>,
    /// A lock was released by one thread, and next acquired by another.
    pub locks: Vec<(usize, usize)>,
    /// Parallel regions of the main location that are not within others.
    pub regions: Vec<ParallelRegion>,
    /// How many other threads are in any team of the main location.
    pub workers: u32,
}

/// All pairs of a process.
#[derive(Debug, Default)]
pub(super) struct StepOrders {
    pub(super) pairs: Vec<OrderedSteps>,
    pub(super) barriers: Vec<Barrier>,
    /// Of the main location, whose teams are complete.
    pub(super) regions: Vec<ParallelRegion>,
    /// Other locations in teams of the main one.
    pub(super) workers: BTreeSet<u32>,
    pub(super) counts: ThreadCounts,
}

impl StepOrders {
    /// Leaves so many steps out, and says why.
    pub(super) fn leave(&mut self, kind: Trust, why: Unpaired, steps: u64) {
        self.counts.of(kind).left_out += steps;
        *self.counts.1.entry(why).or_default() += steps;
    }
}
