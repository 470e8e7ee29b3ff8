//! How many windows there are: as many as the messages support, and as the unknowns allow.

use super::{Estimator, FIRST};
use crate::Method;
use crate::bounds::DirectedBounds;
use crate::graph::{strongest_cycles, strongest_tree};
use crate::windows::BoundTable;

/// Most windows, and most unknowns (clocks times windows). Chosen by hand: with more, solutions take more time and memory in proportion; with fewer,
/// clocks that bend quickly are smoothed.
const MOST_WINDOWS: usize = 8192;
/// Most windows from which straight lines are made.
const MOST_SEGMENTED: usize = 1024;
const MOST_UNKNOWNS: usize = 1 << 16;
/// Cycles count instead of pairs that talk in both directions where they are so many times as strong: what is known around a ring adds up its errors.
/// Chosen by hand: with a smaller value, errors that add up around rings set the windows; with a larger one, windows are too long where rings are all
/// there is.
const AROUND: u64 = 16;
/// Messages per direction, pair and window that the typical pair should have. Chosen by hand: with fewer, many windows have no quick message; with
/// more, windows are longer and clocks that bend are followed less closely.
const PER_WINDOW: u64 = 2;
/// Moments at which a collective operation ties the clocks together that a window should have. Each is one message to a clock, from another clock each time, so they have
/// to be several. Of generated traces with nothing but collectives some are up to twice as exact with 4 as with 8, others the other way round; with 2, a recording of 4 processes
/// with fences gets a seventh worse.
const MOMENTS_PER_WINDOW: u64 = 4;
/// Of traffic that goes one way only messages count that were waited for, if they are at least that many. Chosen by hand: with a smaller value, a
/// handful of waits would set few, long windows; with a larger one, messages that tell little set too many.
const WAITS: u64 = 64;

/// Windows in which messages are to be observed with so many clocks: as many as there will be at most, of which coarser levels are made as well.
pub fn observed_windows(clocks: usize) -> usize {
    (MOST_UNKNOWNS / clocks.max(1)).clamp(FIRST, MOST_WINDOWS)
}

impl Estimator {
    /// How many windows there are to be, by what was observed.
    pub(super) fn set_finest(&mut self, table: &BoundTable, clocks: usize) {
        let (count, most) = finest(table, clocks, self.model, self.collectives.moments);
        self.finest = count.min(most);
        self.spare = (count / self.finest).max(1);
        self.supported = self.finest;
        // Known better, they may be fewer.
        self.asked = self.asked.min(self.finest);
    }
}

/// How many windows the messages support, and how many there may be: what the typical edge of the tree does that connects the clocks best, or of the cycles that do;
/// or the `moments` at which collective operations connect all of them.
fn finest(table: &BoundTable, clocks: usize, model: Method, moments: u64) -> (usize, usize) {
    let waits = table.waits.by_pair();
    let both = |(&(a, b), bounds): (&(u32, u32), &DirectedBounds)| {
        let back = table.pairs.get(&(b, a)).map_or(bounds.messages, |back| back.messages);
        // Of traffic that goes one way the messages count that were waited for.
        let weight = match waits.get(&(a.min(b), a.max(b))).copied().unwrap_or(0) {
            waits if waits < WAITS => bounds.messages.min(back),
            waits => waits,
        };
        (a < b || !table.pairs.contains_key(&(b, a))).then_some((weight, a, b))
    };
    let edges: Vec<(u64, u32, u32)> = table.pairs.iter().filter_map(both).collect();
    let (mut counts, most) = match model {
        Method::Network => (strongest_tree(clocks, edges), MOST_WINDOWS),
        // Straight lines belong to pairs.
        _ => (edges.into_iter().map(|edge| edge.0).collect(), MOST_SEGMENTED),
    };
    counts.sort_unstable();
    let mut typical = counts.get(counts.len() / 2).copied().unwrap_or(0);
    if model == Method::Network {
        let directed = table.pairs.iter().map(|(&(a, b), bounds)| (bounds.messages, a, b)).collect::<Vec<_>>();
        let around = strongest_cycles(clocks, &directed);
        if around > AROUND * typical {
            typical = around;
        }
        typical = typical.max(moments * PER_WINDOW / MOMENTS_PER_WINDOW);
    }
    (((typical / PER_WINDOW) as usize).max(1), most.min(MOST_UNKNOWNS / clocks.max(1)).max(1))
}
