//! What waiting costs, and what it is blamed on.

use super::divided::DividedWaits;
use super::synchronised::Synchronised;
use super::{DelaySearch, DelayerSide, StageTicks};
use crate::analysis::largest::Largest;
use crate::analysis::replay::profiles::{Done, ProcessProfile};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_execution::delays::{Interval, blame};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a region or a process is blamed for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Costs {
    /// Waits for the process itself.
    pub short_term: StageTicks,
    /// Waits that these have led to.
    pub long_term: StageTicks,
}

impl Costs {
    /// Those of the stage in which they are larger.
    pub(crate) fn largest(&self) -> i128 {
        let of = |stage: usize| self.short_term[stage] + self.long_term[stage];
        of(0).max(of(1))
    }

    /// Adds others.
    pub(crate) fn add(&mut self, more: &Costs) {
        for stage in 0..2 {
            self.short_term[stage] += more.short_term[stage];
            self.long_term[stage] += more.long_term[stage];
        }
    }
}

/// What the waits of all processes are blamed on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DelaySums {
    /// Delays by region, [`Gaps::OUTSIDE`] outside of any.
    pub by_region: BTreeMap<u32, Costs>,
    /// Delays by process.
    pub by_process: Largest<(u32, Costs)>,
    /// Waiting of the delayers.
    pub propagated: StageTicks,
    /// Nothing that is known.
    pub unexplained: StageTicks,
    /// Waits of other kinds, or of other locations, that were not looked at.
    pub not_examined: StageTicks,
}

impl DelaySums {
    /// None yet; at most so many processes.
    pub(crate) fn new(entries: usize) -> DelaySums {
        DelaySums {
            by_region: BTreeMap::new(),
            by_process: Largest::new(entries),
            propagated: [0; 2],
            unexplained: [0; 2],
            not_examined: [0; 2],
        }
    }

    /// Adds those of another rank, or of another stage.
    pub(crate) fn merge(&mut self, other: DelaySums) {
        let add = |sum: &mut StageTicks, more: StageTicks| (0..2).for_each(|stage| sum[stage] += more[stage]);
        other.by_region.iter().for_each(|(&region, more)| self.by_region.entry(region).or_default().add(more));
        self.by_process.merge(other.by_process);
        add(&mut self.propagated, other.propagated);
        add(&mut self.unexplained, other.unexplained);
        add(&mut self.not_examined, other.not_examined);
    }
}

/// Adds up what waits for hosted processes cost in one stage.
pub(super) struct CostSums<'a> {
    pub(super) search: &'a DelaySearch<'a>,
    pub(super) done: &'a Done<'a>,
    pub(super) synchronised: &'a Synchronised,
    pub(super) stage: usize,
    pub(super) sums: DelaySums,
    pub(super) by_process: Vec<Costs>,
    /// What the delayer did.
    pub(super) delayer: ProcessProfile,
    /// How the waits for each hosted process were divided.
    pub(super) divided: Vec<DividedWaits>,
}

impl CostSums<'_> {
    pub(super) fn not_examined(&mut self, ticks: i64) {
        self.sums.not_examined[self.stage] += i128::from(ticks);
    }

    /// A wait for a hosted process; `waiter` is what the waiter did since both were synchronised.
    pub(super) fn add(&mut self, wait: &DelayerSide, waiter: &ProcessProfile) {
        let (search, stage) = (self.search, self.stage);
        let process = LocalTimeline(wait.delayer - search.program.first.0);
        let Some(until) = search.resolve(process, wait.until) else { return self.not_examined(wait.ticks) };
        let met = self.synchronised.before(process, wait.waiter, until);
        let collective = wait.collective.map(|named| search.since(process, named, self.synchronised));
        let since = match collective {
            None => met,
            Some(Some(since)) if since.operation < until => met.max(Some(since)),
            Some(_) => return self.not_examined(wait.ticks),
        };
        self.done.between(&mut self.delayer, process, since, until);
        let waited = self.delayer.waited.max(0);
        let (by_region, by_process) = (&mut self.sums.by_region, &mut self.by_process[process.place()]);
        let both = self.delayer.entries().map(|(place, ticks)| (place, ticks, waiter.at(place)));
        let costs = blame(wait.ticks, both.clone(), waited, wait.capped, |place, cost| {
            by_region.entry(search.places.region(place)).or_default().short_term[stage] += i128::from(cost);
            by_process.short_term[stage] += i128::from(cost);
        });
        self.sums.propagated[stage] += i128::from(costs.propagated);
        self.sums.unexplained[stage] += i128::from(costs.unexplained);
        let delays = both.map(|(place, ticks, waiter)| (place, ticks - waiter)).filter(|&(_, delay)| delay > 0);
        let (first, rest) = self.done.begin(process, since);
        let interval = Interval { since: first.min(until), until, rest };
        self.divided[process.place()].add(wait, interval, waited, (costs.propagated, costs.whole), delays);
    }

    /// Others have waited because a hosted process spent more time in the region at a place, and other processes waited for that.
    pub(super) fn long_term(&mut self, process: LocalTimeline, place: u32, ticks: i128) {
        let region = self.search.places.region(place);
        self.sums.by_region.entry(region).or_default().long_term[self.stage] += ticks;
        self.by_process[process.place()].long_term[self.stage] += ticks;
    }
}
