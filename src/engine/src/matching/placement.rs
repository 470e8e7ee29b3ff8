//! Which analysis rank hosts which timelines.

use crate::comm::AnalysisRank;
use clc_trace::{MpiRank, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Timelines are hosted in contiguous blocks, balanced by the size of their event files. With as many analysis ranks as
/// processes, rank r hosts process r (and its share of what belongs to no process).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// `first[h]..first[h + 1]` are the timelines of analysis rank h.
    first: Vec<u32>,
}

impl Placement {
    /// Distributes timelines with the given event-file `sizes` (bytes) over `hosts` analysis ranks; the first `processes` of
    /// them are MPI processes.
    pub fn new(sizes: &[u64], processes: usize, hosts: usize) -> Placement {
        let hosts = hosts.max(1);
        if hosts >= sizes.len() || (hosts == processes && processes > 0) {
            // One each. Timelines beyond the last rank stay with it; ranks beyond the last timeline idle.
            let mut first: Vec<u32> = (0..=hosts).map(|h| h.min(sizes.len()) as u32).collect();
            first[hosts] = sizes.len() as u32;
            return Placement { first };
        }
        // Every timeline weighs at least something, so that empty ones spread too.
        let weights: Vec<u128> = sizes.iter().map(|&size| u128::from(size) + 64).collect();
        let total: u128 = weights.iter().sum();
        let mut first = vec![0];
        let (mut next, mut sum) = (0usize, 0u128);
        for host in 1..hosts {
            let goal = total * host as u128 / hosts as u128;
            // At least one timeline each, and enough left for the hosts that follow.
            let least = next + 1;
            let most = sizes.len() - (hosts - host);
            while next < most && (next < least || sum + weights[next] / 2 <= goal) {
                sum += weights[next];
                next += 1;
            }
            first.push(next as u32);
        }
        first.push(sizes.len() as u32);
        Placement { first }
    }

    /// Number of analysis ranks.
    pub fn hosts(&self) -> usize {
        self.first.len() - 1
    }

    /// Timelines of analysis rank `host`.
    pub fn hosted_by(&self, host: AnalysisRank) -> Range<usize> {
        self.first[host] as usize..self.first[host.place() + 1] as usize
    }

    /// The analysis rank that hosts `timeline`.
    pub fn host_of(&self, timeline: TimelineNumber) -> AnalysisRank {
        AnalysisRank::at(self.first.partition_point(|&first| first <= timeline.0) - 1)
    }

    /// The analysis rank that hosts the timeline of this process.
    pub(crate) fn host_of_process(&self, rank: MpiRank) -> AnalysisRank {
        self.host_of(TimelineNumber::of_process(rank))
    }

    /// Analysis ranks that host nothing.
    pub fn idle(&self) -> usize {
        AnalysisRank::all(self.hosts()).filter(|&host| self.hosted_by(host).is_empty()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_timeline_has_one_host(sizes in prop::collection::vec(0u64..1000, 0..40), hosts in 1usize..50) {
            let placement = Placement::new(&sizes, sizes.len(), hosts);
            prop_assert_eq!(placement.hosts(), hosts);
            let mut seen = 0;
            for host in AnalysisRank::all(hosts) {
                let range = placement.hosted_by(host);
                prop_assert_eq!(range.start, seen);
                prop_assert!(!range.is_empty() || hosts > sizes.len());
                for timeline in range.clone() {
                    prop_assert_eq!(placement.host_of(TimelineNumber(timeline as u32)), host);
                }
                seen = range.end;
            }
            prop_assert_eq!(seen, sizes.len());
        }
    }

    #[test]
    fn large_files_are_spread() {
        let placement = Placement::new(&[1000, 1000, 10, 10, 10, 2000], 6, 2);
        assert_eq!(placement.hosted_by(AnalysisRank(0)), 0..3);
        assert_eq!(Placement::new(&[1, 1, 1], 3, 3).hosted_by(AnalysisRank(2)), 2..3);
    }
}
