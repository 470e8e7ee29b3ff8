//! What hosted processes do in intervals between their operations: time by region without waiting, and waiting.

use crate::analysis::gaps::Gaps;
use crate::analysis::replay::operations::Operations;
use crate::analysis::replay::timeline_waits::TimelineWaits;
use clc_engine::matching::local_timeline::LocalTimeline;
use std::ops::Range;

/// So many operations make a block. Chosen by hand: every block takes a sum per region, every look at a profile adds up to two blocks of operations
/// one by one: larger blocks save memory, smaller ones time.
const BLOCK: u32 = 64;

/// The regions of all hosted processes under one numbering, ascending, so that a profile is a list with an element each.
#[derive(Debug, Default)]
pub(super) struct RegionPlaces {
    regions: Vec<u32>,
    processes: Vec<ProcessPlaces>,
}

/// Places of the regions of one process.
#[derive(Debug)]
struct ProcessPlaces {
    /// By those of its gaps.
    of_gaps: Vec<u32>,
    /// By the nodes of its call tree.
    of_nodes: Vec<u32>,
}

impl RegionPlaces {
    /// Of hosted processes: their gaps, and the innermost region of each node of their call trees. `canonical` gives one region for all that are the same.
    pub(super) fn new(processes: &[(&Gaps, Vec<u32>)], canonical: impl Fn(u32) -> u32) -> RegionPlaces {
        let all = processes.iter().flat_map(|(gaps, nodes)| gaps.regions.iter().chain(nodes));
        let all = all.map(|&region| canonical(region));
        let mut regions: Vec<u32> = all.collect();
        regions.sort_unstable();
        regions.dedup();
        let places = |of: &[u32]| {
            of.iter().map(|&region| regions.partition_point(|&other| other < canonical(region)) as u32).collect()
        };
        let processes = processes
            .iter()
            .map(|(gaps, nodes)| ProcessPlaces { of_gaps: places(&gaps.regions), of_nodes: places(nodes) })
            .collect();
        RegionPlaces { regions, processes }
    }

    /// The region at a place.
    pub(super) fn region(&self, place: u32) -> u32 {
        self.regions[place as usize]
    }

    /// The place of a region, if it is one of those here.
    pub(super) fn place(&self, region: u32) -> Option<u32> {
        self.regions.binary_search(&region).ok().map(|place| place as u32)
    }

    /// Nothing done yet.
    pub(super) fn profile(&self) -> ProcessProfile {
        ProcessProfile { ticks: vec![0; self.regions.len()], touched: Vec::new(), waited: 0 }
    }
}

/// What a process did. Made once and filled many times.
#[derive(Debug, Default)]
pub(super) struct ProcessProfile {
    /// Time without waiting by the place of a region.
    ticks: Vec<i64>,
    /// Places that may have time.
    touched: Vec<u32>,
    /// Waiting.
    pub(super) waited: i64,
}

impl ProcessProfile {
    /// Nothing again.
    pub(super) fn clear(&mut self) {
        self.touched.drain(..).for_each(|place| self.ticks[place as usize] = 0);
        self.waited = 0;
    }

    /// More time in the region at a place.
    #[inline]
    pub(super) fn add(&mut self, place: u32, ticks: i64) {
        if ticks == 0 {
            return;
        }
        let sum = &mut self.ticks[place as usize];
        if *sum == 0 {
            self.touched.push(place);
        }
        *sum += ticks;
    }

    /// Time in the region at a place.
    #[inline]
    pub(super) fn at(&self, place: u32) -> i64 {
        self.ticks[place as usize]
    }

    /// Places with time and how much, each once.
    pub(super) fn entries(&mut self) -> impl Iterator<Item = (u32, i64)> + Clone + '_ {
        // Sums that were nothing in between are there twice.
        self.touched.sort_unstable();
        self.touched.dedup();
        let ticks = &self.ticks;
        self.touched.iter().map(|&place| (place, ticks[place as usize])).filter(|&(_, ticks)| ticks != 0)
    }
}

/// Where an interval begins: in the operation in which a process was synchronised with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Since {
    pub(super) operation: u32,
    /// When the other one left its own operation: the rest of this one counts.
    pub(super) left: i64,
}

/// What the hosted processes have done under the times of one stage: an interval of any length takes no more work than two blocks of operations.
pub(super) struct Done<'a> {
    operations: &'a [Operations],
    gaps: &'a [&'a Gaps],
    places: &'a RegionPlaces,
    waits: &'a [TimelineWaits],
    /// When the first process was done with initialising MPI, but not before the last one had begun.
    initialised: i64,
    stage: usize,
    /// By process: time by place of the region, and waiting, before each block.
    blocks: Vec<Vec<Block>>,
}

type Block = (Vec<(u32, i64)>, i64);

impl<'a> Done<'a> {
    /// Of the hosted processes, which have these `gaps`; the other lists have an element for each hosted timeline.
    pub(super) fn new(
        operations: &'a [Operations],
        gaps: &'a [&'a Gaps],
        places: &'a RegionPlaces,
        waits: &'a [TimelineWaits],
        initialised: i64,
        stage: usize,
    ) -> Done<'a> {
        let mut done =
            Done { operations, gaps, places, waits, initialised, stage, blocks: Vec::with_capacity(gaps.len()) };
        let mut sums = places.profile();
        for (process, gaps) in (0..).map(LocalTimeline).zip(gaps) {
            let mut blocks = Vec::new();
            sums.clear();
            for first in (0..gaps.operations()).step_by(BLOCK as usize) {
                blocks.push((sums.entries().collect(), sums.waited));
                done.add(&mut sums, process, first..(first + BLOCK).min(gaps.operations()), false);
            }
            done.blocks.push(blocks);
        }
        done
    }

    /// Adds these operations of a hosted process and what it did before each of them; also what it did before the next one, if that is wanted.
    fn add(&self, sums: &mut ProcessProfile, process: LocalTimeline, operations: Range<u32>, and_then: bool) {
        let (own, places) = (&self.operations[process], &self.places.processes[process.place()]);
        let times = &own.stages[self.stage];
        let list = &self.waits[process].waits;
        let mut next = list.partition_point(|wait| wait.operation < operations.start);
        let mut gaps = self.gaps[process.place()].from(operations.start);
        for operation in operations {
            gaps.operation(|place, times| sums.add(places.of_gaps[place as usize], times[self.stage]));
            let mut rest = times.leave[operation as usize] - times.enter[operation as usize];
            if let Some(wait) = list.get(next).filter(|wait| wait.operation == operation) {
                rest -= wait.ticks;
                sums.waited += wait.ticks;
                next += 1;
            }
            sums.add(places.of_nodes[own.call_path[operation as usize] as usize], rest.max(0));
        }
        if and_then {
            gaps.operation(|place, times| sums.add(places.of_gaps[place as usize], times[self.stage]));
        }
    }

    /// What a hosted process did since it was synchronised in an operation, or since MPI was initialised, and before operation `until`, in the place of what
    /// `sums` had.
    pub(super) fn between(&self, sums: &mut ProcessProfile, process: LocalTimeline, since: Option<Since>, until: u32) {
        sums.clear();
        match since {
            Some(since) => self.add_rest(sums, process, since),
            None => {
                if let Some(call) = self.gaps[process.place()].initialised {
                    let place = self.places.processes[process.place()].of_gaps[call.place as usize];
                    sums.add(place, (call.leave[self.stage] - self.initialised).max(0));
                }
            }
        }
        let first = since.map_or(0, |since| since.operation + 1).min(until);
        let (from, to) = (first.div_ceil(BLOCK), until / BLOCK);
        let blocks = &self.blocks[process.place()];
        let (Some((before, waited_before)), Some((after, waited))) =
            (blocks.get(from as usize), blocks.get(to as usize))
        else {
            return self.add(sums, process, first..until, true);
        };
        if from >= to {
            return self.add(sums, process, first..until, true);
        }
        self.add(sums, process, first..from * BLOCK, false);
        self.add(sums, process, to * BLOCK..until, true);
        after.iter().for_each(|&(place, ticks)| sums.add(place, ticks));
        before.iter().for_each(|&(place, ticks)| sums.add(place, -ticks));
        sums.waited += waited - waited_before;
    }

    /// The first operation that a hosted process began after it was synchronised, and how long it waited in the rest of the one in which it was.
    pub(super) fn begin(&self, process: LocalTimeline, since: Option<Since>) -> (u32, i64) {
        since.map_or((0, 0), |since| (since.operation + 1, self.rest(process, since).0))
    }

    /// Waiting and other time in the rest of an operation in which a hosted process was synchronised.
    fn rest(&self, process: LocalTimeline, since: Since) -> (i64, i64) {
        let (times, operation) = (&self.operations[process].stages[self.stage], since.operation as usize);
        let (enter, leave) = (times.enter[operation], times.leave[operation]);
        let from = since.left.max(enter).min(leave);
        let waited = self.waits[process].of(since.operation).map_or(0, |wait| (enter + wait.ticks).min(leave) - from);
        let waited = waited.max(0);
        (waited, leave - from - waited)
    }

    /// Adds the rest of an operation in which a hosted process was synchronised.
    fn add_rest(&self, sums: &mut ProcessProfile, process: LocalTimeline, since: Since) {
        let (waited, other) = self.rest(process, since);
        sums.waited += waited;
        let node = self.operations[process].call_path[since.operation as usize];
        sums.add(self.places.processes[process.place()].of_nodes[node as usize], other);
    }
}
