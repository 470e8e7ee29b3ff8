//! Steps of the threads and streams of a process, and what of them is in order: pairs, barriers, and counts.

use crate::matching::channels::Trust;
use crate::matching::sync::EventCoordinates;
use clc_trace::{CommId, EventNumber, RegionId, ThreadEvent};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One step of a thread; there can be as many as events, so they are small.
#[derive(Debug, Clone, Copy)]
struct Step {
    time: i64,
    raw: i64,
    number: EventNumber,
    what: What,
}

/// What a step is.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// A team of so many threads is forked.
    Fork(u32),
    Join,
    TeamBegin(CommId),
    TeamEnd(CommId),
    Arrive(RegionId),
    Depart,
    /// Something else, see [`Steps::others`].
    Other,
    /// What the process does with an accelerator, or a stream of one.
    Accelerator,
    /// A collective operation begins.
    Operation,
    /// Windows are accessed, once or several times.
    Access,
}

/// The steps of all threads of a process, location after location, each in its order. Its memory can be used again for the next process
/// ([`crate::matching::within::threads::ProcessThreadSteps::into_memory`]).
#[derive(Debug, Default)]
pub struct Steps {
    list: Vec<Step>,
    /// Each location with its first step.
    locations: Vec<(u32, usize)>,
    /// Steps of threads that are neither of teams nor at barriers.
    others: Vec<(usize, ThreadEvent)>,
}

impl Steps {
    /// Forgets all steps, but keeps their memory.
    pub(super) fn clear(&mut self) {
        let Steps { list, locations, others } = self;
        list.clear();
        locations.clear();
        others.clear();
    }

    /// Adds a step, and says which one it is.
    #[inline]
    pub(super) fn push(&mut self, at: EventCoordinates, what: What) -> usize {
        let step = self.list.len();
        if self.locations.last().is_none_or(|&(location, _)| location != at.location) {
            self.locations.push((at.location, step));
        }
        self.list.push(Step { time: at.time, raw: at.raw, number: at.number, what });
        step
    }

    /// Adds an access to a window: of several that follow each other, one says it all.
    #[inline]
    pub(super) fn push_access(&mut self, at: EventCoordinates) -> usize {
        let of_same = self.locations.last().is_some_and(|&(location, _)| location == at.location);
        match self.list.last() {
            Some(Step { what: What::Access, .. }) if of_same => self.list.len() - 1,
            _ => self.push(at, What::Access),
        }
    }

    /// Adds a step of a thread.
    #[inline]
    pub(super) fn push_of_thread(&mut self, at: EventCoordinates, event: ThreadEvent) -> usize {
        let what = match event {
            ThreadEvent::Fork { threads, .. } => What::Fork(threads),
            ThreadEvent::Join { .. } => What::Join,
            ThreadEvent::TeamBegin(team) => What::TeamBegin(team),
            ThreadEvent::TeamEnd(team) => What::TeamEnd(team),
            _ => {
                self.others.push((self.list.len(), event));
                What::Other
            }
        };
        self.push(at, what)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// When a step was.
    #[inline]
    pub(super) fn time(&self, step: usize) -> i64 {
        self.list[step].time
    }

    /// Whose step it is.
    pub(super) fn location(&self, step: usize) -> u32 {
        let after = self.locations.partition_point(|&(_, first)| first <= step);
        self.locations[after - 1].0
    }

    /// Where and when a step was.
    pub(super) fn at(&self, step: usize) -> EventCoordinates {
        let Step { time, raw, number, .. } = self.list[step];
        EventCoordinates { time, raw, number, location: self.location(step) }
    }

    /// Gives the steps of a location the times that belong to their recorded ones.
    pub(super) fn map(&mut self, location: u32, time: impl Fn(i64) -> i64) {
        let of: Vec<Range<usize>> = self.by_location().filter(|(own, _)| *own == location).map(|(_, of)| of).collect();
        for of in of {
            self.list[of].iter_mut().for_each(|step| step.time = time(step.raw));
        }
    }

    /// The steps of each location.
    pub(super) fn by_location(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        let ends = self.locations.iter().skip(1).map(|&(_, first)| first).chain([self.list.len()]);
        self.locations.iter().zip(ends).map(|(&(location, first), end)| (location, first..end))
    }

    /// Those of some of the steps.
    pub(super) fn what(&self, steps: Range<usize>) -> impl Iterator<Item = (usize, What)> {
        steps.clone().zip(self.list[steps].iter().map(|step| step.what))
    }

    /// Steps of threads that are neither of teams nor at barriers, in their order.
    pub(super) fn others(&self) -> &[(usize, ThreadEvent)] {
        &self.others
    }
}

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
    pub(crate) fn leave(&mut self, kind: Trust, pairs: u64) {
        let count = self.of(kind);
        count.apart = count.apart.saturating_sub(pairs);
        count.left_out += pairs;
    }

    pub(super) fn of(&mut self, kind: Trust) -> &mut ThreadCount {
        self.0.entry(kind).or_default()
    }

    /// Leaves so many steps out that are in no count, and says why.
    pub(super) fn leave_out(&mut self, kind: Trust, why: Unpaired, steps: u64) {
        self.of(kind).left_out += steps;
        *self.1.entry(why).or_default() += steps;
    }
}

/// Why work of a stream, a call, or a step of a thread is left out.
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
    /// A region waits for an event of a stream, and the trace does not tell where that was put into which stream.
    UnknownEvent(RegionId),
    /// A region waits for a device, and the process has several.
    UnknownDevice(RegionId),
    /// A call waits for work whose own calls are not known.
    UnknownWork(RegionId),
    /// Steps of threads are out of order, but the threads cannot have timelines of their own.
    Bound,
}

/// Two steps of which the first is before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderedSteps {
    pub(super) kind: Trust,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Barriers of teams: where each of the threads arrives, and where it departs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Barriers {
    /// One barrier after the other.
    steps: Vec<(usize, usize)>,
    /// Where each of them ends in it.
    ends: Vec<usize>,
}

impl Barriers {
    /// Adds a barrier.
    pub(super) fn push(&mut self, steps: impl IntoIterator<Item = (usize, usize)>) {
        self.steps.extend(steps);
        self.ends.push(self.steps.len());
    }

    /// Arrival and departure of each thread, for each barrier.
    pub fn iter(&self) -> impl Iterator<Item = &[(usize, usize)]> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.steps[begin..end])
    }
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
    /// Barriers of teams.
    pub barriers: Barriers,
    /// A lock was released by one thread, and next acquired by another.
    pub locks: Vec<(usize, usize)>,
    /// Parallel regions of the main location that are not within others.
    pub regions: Vec<ParallelRegion>,
    /// How many other threads are in any team of the main location.
    pub workers: u32,
}

/// All pairs of a process.
#[derive(Debug, Default)]
pub(super) struct StepOrders<'a> {
    /// Where the pairs are only compared, and counted as those of one timeline, if they are in order: the steps.
    compares: Option<&'a Steps>,
    /// One of them was not in order, so the counts are not all.
    pub(super) contradicted: bool,
    /// Pairs of one kind that have been counted last.
    last: Option<(Trust, u64)>,
    /// If they are only compared, those of steps of one time.
    pub(super) pairs: Vec<OrderedSteps>,
    /// If they are only compared, those that the last thread enters when the first one leaves.
    pub(super) barriers: Barriers,
    /// Of the main location, whose teams are complete.
    pub(super) regions: Vec<ParallelRegion>,
    /// Other locations in teams of the main one.
    pub(super) workers: BTreeSet<u32>,
    pub(super) counts: ThreadCounts,
}

impl<'a> StepOrders<'a> {
    /// All are in order, as far as is known: what is found is compared, and not kept.
    pub(super) fn comparing(steps: &'a Steps) -> Self {
        StepOrders { compares: Some(steps), ..StepOrders::default() }
    }

    /// Adds a pair of steps of different locations.
    #[inline]
    pub(super) fn pair(&mut self, kind: Trust, from: usize, to: usize) {
        match self.compares {
            Some(steps) if steps.time(from) < steps.time(to) => self.count(kind),
            Some(steps) if steps.time(from) == steps.time(to) => {
                self.count(kind);
                self.pairs.push(OrderedSteps { kind, from, to });
            }
            Some(_) => self.contradicted = true,
            None => self.pairs.push(OrderedSteps { kind, from, to }),
        }
    }

    /// Adds a barrier of at least two threads.
    #[inline]
    pub(super) fn barrier(&mut self, steps: impl Iterator<Item = (usize, usize)> + Clone) {
        let Some(compares) = self.compares else { return self.barriers.push(steps) };
        let ends = |(latest, earliest): (i64, i64), (arrival, departure)| {
            (latest.max(compares.time(arrival)), earliest.min(compares.time(departure)))
        };
        let (latest, earliest) = steps.clone().fold((i64::MIN, i64::MAX), ends);
        if latest <= earliest {
            self.count(Trust::Barrier);
            if latest == earliest {
                self.barriers.push(steps);
            }
        } else {
            self.contradicted = true;
        }
    }

    #[inline]
    fn count(&mut self, kind: Trust) {
        match &mut self.last {
            Some((last, pairs)) if *last == kind => *pairs += 1,
            _ => {
                self.count_last();
                self.last = Some((kind, 1));
            }
        }
    }

    /// No more pairs follow.
    pub(super) fn count_last(&mut self) {
        if let Some((kind, pairs)) = self.last.take() {
            self.counts.of(kind).shared += pairs;
        }
    }

    /// Leaves so many steps out, and says why.
    pub(super) fn leave(&mut self, kind: Trust, why: Unpaired, steps: u64) {
        self.counts.leave_out(kind, why, steps);
    }
}
