//! From when to when processes ran, by clocks that nobody has measured.

use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use clc_clock::RANGE;
use clc_engine::comm::{Transport, all_gather_values};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_trace::{Result, Ticks, TimelineNumber};
use std::collections::BTreeMap;

/// From the first to the last event of each process, by its recorded clock in ticks. Those without events have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lives {
    of: Vec<Option<(i64, i64)>>,
    /// By so much has one to have ended before another one began: a second, and more than any lasts.
    apart: i64,
}

impl Lives {
    fn new(of: Vec<Option<(i64, i64)>>, resolution: u64) -> Lives {
        let longest = of.iter().flatten().map(|(begin, end)| end.saturating_sub(*begin)).max().unwrap_or(0);
        Lives { of, apart: longest.max(i64::try_from(resolution).unwrap_or(i64::MAX)) }
    }

    pub(super) fn begins(&self) -> Vec<Option<i64>> {
        self.of.iter().map(|life| life.map(|(begin, _)| begin)).collect()
    }

    /// What some clocks, asked for a time of a timeline, make of them.
    pub(super) fn by(&self, shown: impl Fn(TimelineNumber, i64) -> i64) -> impl Iterator<Item = (i64, i64)> {
        let lives = self.of.iter().zip((0..).map(TimelineNumber));
        lives.filter_map(move |(life, number)| life.map(|(begin, end)| (shown(number, begin), shown(number, end))))
    }

    /// Whether clocks can be set so that all begin together.
    pub(super) fn are_in_range(&self) -> bool {
        self.of.iter().flatten().all(|(begin, _)| begin.saturating_abs() < RANGE / 2)
    }

    /// Whether some of these had ended before others began. MPI_Init returns when all have begun, and MPI_Finalize waits for all.
    pub(super) fn are_disjoint(&self, lives: impl Iterator<Item = (i64, i64)>) -> bool {
        let ends = lives.fold(None, |ends: Option<(i64, i64)>, (begin, end)| {
            Some(ends.map_or((end, begin), |(first_end, last_begin)| (first_end.min(end), last_begin.max(begin))))
        });
        ends.is_some_and(|(first_end, last_begin)| last_begin.saturating_sub(first_end) > self.apart)
    }

    /// The nodes whose own processes had ended before others of them began: their processes have a clock each.
    pub(super) fn nodes_apart(&self, nodes: &[u32]) -> Vec<u32> {
        let mut by_node: BTreeMap<u32, Vec<(i64, i64)>> = BTreeMap::new();
        for (node, life) in nodes.iter().zip(&self.of) {
            by_node.entry(*node).or_default().extend(life);
        }
        let apart = by_node.into_iter().filter(|(_, lives)| self.are_disjoint(lives.iter().copied()));
        apart.map(|(node, _)| node).collect()
    }
}

/// The lives of all processes, if some had ended before others began. Collective over the analysis ranks.
pub(super) fn disjoint(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    resolution: u64,
) -> Result<Option<Lives>> {
    let mut own: Vec<(u32, i64, i64)> = Vec::new();
    for (local, locations) in loaded.locations.iter().enumerate() {
        let Some(location) = locations.first() else { continue };
        if let Some(ends) = location.summary.time_span {
            let [begin, end] = [ends.0, ends.1].map(|raw| location.clock.map(Ticks(raw.min(RANGE as u64) as i64)).0);
            own.push((loaded.program.number(LocalTimeline::at(local)).0, begin, end));
        }
    }
    let mut of = vec![None; opened.timelines.processes];
    for (timeline, begin, end) in all_gather_values(transport, &own)?.into_iter().flatten() {
        if let Some(life) = of.get_mut(timeline as usize) {
            *life = Some((begin, end));
        }
    }
    let lives = Lives::new(of, resolution);
    let disjoint = lives.are_disjoint(lives.by(|_, time| time));
    Ok(disjoint.then_some(lives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_program_live_at_the_same_time() {
        let second = 1000;
        let lives = |of: &[Option<(i64, i64)>]| Lives::new(of.to_vec(), second);
        let apart = |of: &[Option<(i64, i64)>]| {
            let lives = lives(of);
            lives.are_disjoint(lives.by(|_, time| time))
        };
        // Begun after the other had ended, but by no more than it lasts, or than a second.
        assert!(!apart(&[Some((0, 5000)), Some((10_000, 14_000))]) && !apart(&[Some((0, 10)), Some((1010, 1020))]));
        assert!(apart(&[Some((0, 5000)), None, Some((10_001, 14_000))]) && apart(&[Some((0, 10)), Some((1011, 1020))]));
        assert!(!apart(&[]) && !apart(&[None, Some((5, i64::MAX))]));
        // Of three nodes one has processes that are apart by themselves.
        let three =
            lives(&[Some((0, 10)), Some((3, 12)), Some((5000, 5010)), Some((0, 9)), None, Some((90_000, 90_007))]);
        assert_eq!(three.nodes_apart(&[0, 0, 1, 1, 2, 2]), [1]);
        assert!(three.are_in_range() && !lives(&[Some((0, 9)), None, Some((RANGE / 2, RANGE))]).are_in_range());
        assert_eq!(three.begins(), [Some(0), Some(3), Some(5000), Some(0), None, Some(90_000)]);
    }
}
