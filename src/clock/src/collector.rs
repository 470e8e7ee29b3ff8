//! Many messages, reduced to the tightest bounds of pairs and windows.

use crate::bounds::{Bound, DirectedBounds};
use crate::grid::Grid;
use crate::kind::BoundKind;
use crate::windows::BoundTable;
use std::ops::Range;

/// Adds messages to a table, most of them in order of time: those of one pair in one window are combined first.
#[derive(Debug)]
pub struct Collector<'a> {
    grid: &'a Grid,
    table: BoundTable,
    /// The pair of clocks whose messages are coming, and what of it is not yet in the table.
    pair: (u32, u32),
    bounds: DirectedBounds,
    /// Messages of the pair that are in neither, the window they are in, its times, and the tightest of them.
    count: u64,
    window: usize,
    span: Range<i64>,
    least: Bound,
}

/// No message.
const NONE: Bound = Bound { distance: i64::MAX, at: i64::MAX, kind: BoundKind::MESSAGE };

impl<'a> Collector<'a> {
    /// Nothing yet.
    pub fn new(grid: &'a Grid) -> Self {
        let (table, bounds) = (BoundTable::default(), DirectedBounds::default());
        Collector { grid, table, pair: (0, 0), bounds, count: 0, window: 0, span: 0..0, least: NONE }
    }

    /// The messages that follow are of this pair of clocks.
    pub fn pair(&mut self, pair: (u32, u32)) {
        if pair != self.pair {
            self.store();
            self.pair = pair;
        }
    }

    /// A message (or collective) of that pair.
    #[inline]
    pub fn message(&mut self, bound: Bound) {
        if !self.span.contains(&bound.at) {
            self.flush();
            self.window = self.grid.window(bound.at);
            self.span = self.grid.span(self.window);
        }
        self.count += 1;
        self.least = self.least.min(bound);
    }

    fn flush(&mut self) {
        let (count, least) = (std::mem::take(&mut self.count), std::mem::replace(&mut self.least, NONE));
        if count == 0 {
            return;
        }
        if self.pair.0 == self.pair.1 {
            self.table.share(self.pair.0, least.distance);
        } else {
            self.bounds.add(self.window, least, count);
        }
    }

    /// Adds what has been collected elsewhere.
    pub fn merge(&mut self, other: BoundTable) {
        self.table.merge(other);
    }

    /// Puts all that is known of the pair into the table.
    fn store(&mut self) {
        self.flush();
        let bounds = std::mem::take(&mut self.bounds);
        if bounds.messages > 0 {
            self.table.pairs.entry(self.pair).or_default().merge(bounds);
        }
    }

    /// All that was added.
    pub fn finish(mut self) -> BoundTable {
        self.store();
        self.table
    }
}
