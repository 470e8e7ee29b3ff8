//! What waiting costs, and what it is blamed on.

use super::synchronised::Synchronised;
use super::{DelaySearch, DelayerSide, StageTicks};
use crate::analysis::largest::Largest;
use crate::analysis::replay::profiles::{Done, ProcessProfile};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_execution::delays::blame;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the waits of all processes are blamed on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DelaySums {
    /// Delays by region, [`Gaps::OUTSIDE`] outside of any.
    pub by_region: BTreeMap<u32, StageTicks>,
    /// Delays by process.
    pub by_process: Largest<(u32, StageTicks)>,
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

    /// Adds those of another rank.
    pub(crate) fn merge(&mut self, other: DelaySums) {
        let add = |sum: &mut StageTicks, more: StageTicks| (0..2).for_each(|stage| sum[stage] += more[stage]);
        other.by_region.into_iter().for_each(|(region, more)| add(self.by_region.entry(region).or_default(), more));
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
    pub(super) sums: &'a mut DelaySums,
    pub(super) by_process: &'a mut [StageTicks],
    /// What the delayer did.
    pub(super) delayer: ProcessProfile,
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
        let waited = self.delayer.waited;
        let (by_region, by_process) = (&mut self.sums.by_region, &mut self.by_process[process.place()]);
        let both = self.delayer.entries().map(|(place, ticks)| (place, ticks, waiter.at(place)));
        let costs = blame(wait.ticks, both, waited, wait.capped, |place, cost| {
            by_region.entry(search.places.region(place)).or_default()[stage] += i128::from(cost);
            by_process[stage] += i128::from(cost);
        });
        self.sums.propagated[stage] += i128::from(costs.propagated);
        self.sums.unexplained[stage] += i128::from(costs.unexplained);
    }
}
