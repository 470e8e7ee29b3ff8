//! Clocks that are tied by collective operations more than by messages.
//!
//! An operation tells each of its members where the clock is of the one that came last. That is another one each time, so messages of single pairs of clocks are few
//! where there are many clocks; but together they tie all of them. Who came last is told by the clocks, and by others another one.

use super::seen_by::SeenBy;
use super::{Estimator, UNKNOWN};
use crate::both_sides::of_ends;
use crate::bounds::DirectedBounds;
use crate::graph::components;
use crate::grid::Grid;
use crate::network::Problem;
use crate::observations::{Observations, Offsets};
use crate::windows::BoundTable;

/// How collective operations tie the clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CollectiveTies {
    /// Windows in which the typical clock learns from a collective operation where it is, among clocks that these hold from both sides.
    pub moments: u64,
    /// Whether the typical clock learns in more windows from collective operations than from messages.
    pub prevail: bool,
}

impl CollectiveTies {
    /// As the windows of `table` show it.
    pub(crate) fn of(table: &BoundTable, clocks: usize) -> CollectiveTies {
        let mut received = Received::default();
        let mut tied: Vec<((u32, u32), &DirectedBounds)> = Vec::new();
        for (&pair, bounds) in &table.pairs {
            if received.add(pair.1, bounds, [Received::COLLECTIVE, Received::OTHER]) {
                tied.push((pair, bounds));
            }
        }
        if tied.is_empty() {
            return CollectiveTies::default();
        }
        // Those that nobody waits for are tied by the ends of others that waited.
        let ends = table.waits.classes.keys().filter(|class| class.kind.is_between_ends());
        let ends = ends.map(|class| (class.from, class.to));
        let component = components(clocks, tied.iter().map(|(pair, _)| *pair).chain(ends));
        let [collectives, messages] = [Received::COLLECTIVE, Received::OTHER].map(|bit| received.typical(bit, clocks));
        let moments = if component.iter().all(|name| *name == component[0]) {
            collectives
        } else {
            let held = |(from, to): (u32, u32)| component.get(from as usize) == component.get(to as usize);
            for ((_, to), bounds) in tied.into_iter().filter(|(pair, _)| held(*pair)) {
                received.add(to, bounds, [Received::HELD, 0]);
            }
            received.typical(Received::HELD, clocks)
        };
        CollectiveTies { moments, prevail: collectives > messages }
    }
}

/// What each clock received in each window, as bits.
#[derive(Default)]
struct Received {
    /// By clock; windows behind the last one in which it received something are left out.
    rows: Vec<Vec<u8>>,
}

impl Received {
    /// By a collective operation from a clock that these hold from both sides; by any collective operation; by anything else.
    const HELD: u8 = 1;
    const COLLECTIVE: u8 = 2;
    const OTHER: u8 = 4;

    /// Adds what a clock received from another one: bits for windows in which a collective operation tells most, and for others. Whether there are any of the former.
    fn add(&mut self, to: u32, bounds: &DirectedBounds, [collective, other]: [u8; 2]) -> bool {
        let to = to as usize;
        if self.rows.len() <= to {
            self.rows.resize_with(to + 1, Vec::new);
        }
        let row = &mut self.rows[to];
        let end = bounds.windows().last().map_or(0, |(window, _)| *window as usize + 1);
        if row.len() < end {
            row.resize(end, 0);
        }
        let mut any = false;
        for (window, bound) in bounds.windows() {
            let is_collective = bound.kind.is_collective();
            any |= is_collective;
            row[*window as usize] |= if is_collective { collective } else { other };
        }
        any
    }

    /// In how many windows the typical (median) of so many clocks received this.
    fn typical(&self, bit: u8, clocks: usize) -> u64 {
        let count = |row: &Vec<u8>| row.iter().filter(|all| **all & bit != 0).count() as u64;
        let mut counts: Vec<u64> = self.rows.iter().map(count).collect();
        counts.resize(clocks.max(counts.len()), 0);
        counts.sort_unstable();
        counts.get(counts.len() / 2).copied().unwrap_or(0)
    }
}

impl Estimator {
    /// Clocks by which the members of a collective operation that waited in it end it at the same time, to begin with. They are wrong by what an operation takes longer for some than
    /// for others, but not by more, whatever the clocks were before.
    pub(super) fn starting_from_ends(
        &self,
        table: &BoundTable,
        grid: &Grid,
        now: &Offsets,
        like: &Problem<'_>,
    ) -> Option<Offsets> {
        let takes = like.observations.quick_half_trip().unwrap_or(1.0).max(1.0);
        let ends = of_ends(table, takes as i64)?;
        let mut seen =
            Observations::new(&ends, grid, now, UNKNOWN * self.resolution as f64, f64::INFINITY, self.workers);
        seen.precision = self.precision;
        Some(Problem { observations: &seen, afresh: true, rounds: &[], ..*like }.solve(now))
    }

    /// Whether those that came last by the clocks before did so by those of now, as far as can be told: against each other clocks have moved by less than half of
    /// what quick messages take (root mean square).
    pub(super) fn came_last(&self, before: &SeenBy) -> bool {
        let Some(now) = &self.grid else { return true };
        let (mut squares, mut count) = (0.0, 0.0);
        for window in 0..now.count {
            let rows = self.offsets.iter().zip(&self.constants).enumerate();
            let moved = rows.map(|(clock, (row, constant))| {
                before.moved(clock, *constant, row.get(window).copied().unwrap_or(0.0), now.centre(window))
            });
            let all: Vec<f64> = moved.collect();
            let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
            squares += all.iter().map(|moved| (moved - mean) * (moved - mean)).sum::<f64>();
            count += all.len() as f64;
        }
        let quick = self.observations.quick_half_trip().unwrap_or(0.0).max(self.observations.floor);
        count == 0.0 || (squares / count).sqrt() <= quick / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bound;
    use crate::kind::BoundKind;
    use clc_trace::CollectiveOp;

    /// In each of 90 windows another of `last` clocks is waited for by the nine; clocks 7 and 8 exchange a message in `messages` windows besides.
    fn table(last: &[u32], messages: usize) -> BoundTable {
        let mut table = BoundTable::default();
        let mut add = |pair: (u32, u32), window: usize, kind: BoundKind| {
            table.pairs.entry(pair).or_default().add(window, Bound { distance: 5, at: 0, kind }, 1);
        };
        let allreduce = BoundKind::collective(CollectiveOp::ALLREDUCE, 9);
        for window in 0..90 {
            let from = last[window % last.len()];
            (0..9).filter(|to| *to != from).for_each(|to| add((from, to), window, allreduce));
        }
        for window in 90..90 + messages {
            for from in 0..9 {
                add((from, (from + 1) % 9), window, BoundKind::MESSAGE);
            }
        }
        table
    }

    #[test]
    fn operations_tie_all_clocks_at_once() {
        let all: Vec<u32> = (0..9).collect();
        // Each clock is another one's ten times, but waits for some other one in eighty windows.
        assert_eq!(CollectiveTies::of(&table(&all, 0), 9), CollectiveTies { moments: 80, prevail: true });
        assert_eq!(CollectiveTies::of(&table(&all, 100), 9), CollectiveTies { moments: 80, prevail: false });
        // Who is always waited for learns nothing, and nobody learns from both sides.
        assert_eq!(CollectiveTies::of(&table(&[3], 0), 9), CollectiveTies { moments: 0, prevail: true });
        assert_eq!(CollectiveTies::of(&BoundTable::default(), 9), CollectiveTies::default());
    }
}
