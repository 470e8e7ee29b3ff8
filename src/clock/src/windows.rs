//! What messages say about clocks: the tightest bounds per pair of clocks and window of time.
//!
//! A message from clock a to clock b that was sent at S and received at R (both in the times of some model) says that b's
//! time has to be corrected by at least S - R more than a's: the *distance* R - S, were both clocks right, is the time that the message
//! took, which is never negative. Of all messages of a window only the smallest distance of either direction counts, so
//! memory grows with pairs and windows, not with messages. All numbers are integers and are combined by
//! minimum and sum: the table is the same however the messages are spread over analysis ranks.

use super::bounds::DirectedBounds;
use super::grid::Grid;
use super::waits::QuickestWaits;
use clc_trace::workers::{Workers, blocks};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// All that messages and collectives say, by (sending clock, receiving clock).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundTable {
    /// Pairs of different clocks.
    pub pairs: BTreeMap<(u32, u32), DirectedBounds>,
    /// Messages between processes that share a clock: the smallest distance, by clock.
    pub shared: BTreeMap<u32, i64>,
    /// Bounds that hold from both sides, where they have been looked for.
    pub waits: QuickestWaits,
}

/// Windows of pairs that a thread takes at once, and that one thread has looked at before another has begun.
const BLOCK: usize = 4096;
const ALONE: usize = 8192;

impl BoundTable {
    /// What `work` makes of the pairs, in their order: block by block if there are many windows, shared out among `workers`.
    pub(crate) fn map_pairs<R: Send>(
        &self,
        workers: Workers,
        work: impl Fn((u32, u32), &DirectedBounds) -> R + Sync,
    ) -> Vec<R> {
        let pairs: Vec<_> = self.pairs.iter().collect();
        let windows = || pairs.iter().map(|(_, bounds)| bounds.windows().len());
        let workers = if windows().sum::<usize>() < ALONE { Workers::ONE } else { workers };
        let blocks = blocks(windows(), BLOCK);
        let of_block =
            |block: Range<usize>| pairs[block].iter().map(|(pair, bounds)| work(**pair, bounds)).collect::<Vec<R>>();
        workers.map(blocks.len(), |at| of_block(blocks[at].clone())).into_iter().flatten().collect()
    }

    /// Adds what another rank has seen.
    pub fn merge(&mut self, other: BoundTable) {
        for (pair, bounds) in other.pairs {
            self.pairs.entry(pair).or_default().merge(bounds);
        }
        for (clock, distance) in other.shared {
            self.share(clock, distance);
        }
        self.waits.merge(other.waits);
    }

    /// The same bounds as other clocks see them, `map` being what these make of a clock's times, in at most `count` windows over the
    /// times of the receives. The message that was the quickest of its window is taken to stay the quickest.
    pub fn through(&self, count: usize, map: impl Fn(u32, i64) -> i64 + Sync, workers: Workers) -> (BoundTable, Grid) {
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for (pair, bounds) in &self.pairs {
            // In order of windows, hence of time.
            for (_, bound) in bounds.windows().first().into_iter().chain(bounds.windows().last()) {
                let at = map(pair.1, bound.at);
                (first, last) = (first.min(at), last.max(at));
            }
        }
        let grid = if first <= last { Grid::new(first, last, count) } else { Grid::new(0, 0, 1) };
        (self.through_on(grid, map, workers), grid)
    }

    /// [`BoundTable::through`] in given windows.
    pub(crate) fn through_on(&self, grid: Grid, map: impl Fn(u32, i64) -> i64 + Sync, workers: Workers) -> BoundTable {
        let through = |pair, bounds: &DirectedBounds| bounds.through(pair, &grid, &map);
        let mut table = BoundTable { shared: self.shared.clone(), ..BoundTable::default() };
        table.pairs = self.map_pairs(workers, |pair, bounds| (pair, through(pair, bounds))).into_iter().collect();
        table.waits.measured = self.waits.measured;
        let waits = self.waits.classes.iter();
        table.waits.classes = waits.map(|(&class, bounds)| (class, through((class.from, class.to), bounds))).collect();
        table
    }

    /// Adds a message between two processes that share `clock`.
    pub fn share(&mut self, clock: u32, distance: i64) {
        self.shared.entry(clock).and_modify(|least| *least = (*least).min(distance)).or_insert(distance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bound;
    use crate::kind::BoundKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_time_is_in_the_window_around_it(
            first in -1_000_000i64..1_000_000, length in 0i64..10_000_000, count in 1usize..500, share in 0.0f64..1.0
        ) {
            let grid = Grid::new(first, first + length, count);
            prop_assert!(grid.count >= 1 && grid.count <= count);
            let time = first + (length as f64 * share) as i64;
            prop_assert!((time - grid.centre(grid.window(time))).abs() <= grid.width / 2 + 1);
            prop_assert!(grid.span(grid.window(time)).contains(&time));
            prop_assert_eq!(grid.window(first - 5), 0);
            prop_assert_eq!(grid.window(first + length), grid.count - 1);
        }

        #[test]
        fn any_times_have_windows(ends in any::<[i64; 2]>(), time in any::<i64>(), count in 1usize..2000) {
            let ends = ends.map(|end| end >> 1);
            let grid = Grid::new(ends[0].min(ends[1]), ends[0].max(ends[1]), count);
            for index in [0, grid.window(time), grid.count - 1] {
                prop_assert!(grid.span(index).contains(&grid.centre(index)));
            }
        }

        #[test]
        fn coarser_windows_keep_the_tightest_bounds(
            messages in prop::collection::vec((0usize..50, -50i64..50), 1..60), shift in -1000i64..1000
        ) {
            let fine = Grid { first: 0, width: 100, count: 50 };
            let mut table = BoundTable::default();
            for &(window, distance) in &messages {
                table.pairs.entry((0, 1)).or_default().add(window, Bound { distance, at: fine.centre(window), kind: BoundKind::MESSAGE }, 1);
            }
            // The receiver's clock is put forward.
            let (coarse, grid) = table.through(3, |clock, time| if clock == 1 { time + shift } else { time }, Workers::ONE);
            prop_assert!(grid.count <= 3);
            let bounds = &coarse.pairs[&(0, 1)];
            prop_assert_eq!(bounds.messages, messages.len() as u64);
            let least = messages.iter().map(|message| message.1).min().unwrap() + shift;
            prop_assert_eq!(bounds.windows().iter().map(|(_, bound)| bound.distance).min(), Some(least));
            for &(window, bound) in bounds.windows() {
                prop_assert_eq!(grid.window(bound.at), window as usize);
                prop_assert_eq!(fine.window(bound.at - shift) * 100 + 50, (bound.at - shift) as usize);
            }
        }

        #[test]
        fn tables_do_not_depend_on_who_saw_what(
            messages in prop::collection::vec((0u32..3, 0u32..3, 0usize..4, -50i64..50, 0i64..9, any::<bool>()), 0..60)
        ) {
            let (mut whole, mut halves) = (BoundTable::default(), [BoundTable::default(), BoundTable::default()]);
            for (a, b, window, distance, at, half) in messages {
                for table in [&mut whole, &mut halves[usize::from(half)]] {
                    match a == b {
                        true => table.share(a, distance),
                        false => table.pairs.entry((a, b)).or_default().add(window, Bound { distance, at, kind: BoundKind::MESSAGE }, 1),
                    }
                }
            }
            let [mut first, second] = halves;
            first.merge(second);
            prop_assert_eq!(first, whole);
        }
    }
}
