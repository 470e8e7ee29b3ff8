//! The quickest of what takes the same time, by window: [`super::both_sides`] makes measurements of them.

use super::bounds::{Bound, DirectedBounds};
use super::grid::Grid;
use super::kind::BoundKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What takes the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Class {
    /// The clock of the first event.
    pub from: u32,
    /// The clock of the second one.
    pub to: u32,
    /// What happens between them.
    pub kind: BoundKind,
}

/// The quickest of each class and window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuickestWaits {
    /// By class.
    pub classes: BTreeMap<Class, DirectedBounds>,
    /// Whether offsets were recorded, which hold the clocks as well.
    pub measured: bool,
}

/// Windows in which messages of a direction were waited for, at least, to tell that others were not. Chosen by hand: from fewer, a drift cannot be
/// told; with more, sparse traffic counts with all its messages.
const FEWEST: usize = 8;

/// What is to be looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneWayDirections {
    /// Directions of pairs of clocks that have no traffic back to speak of.
    pub one_way: BTreeSet<(u32, u32)>,
    /// Directions of pairs of clocks with traffic in both directions whose messages are late more often than not: that they were waited for tells which are not.
    pub late: BTreeSet<(u32, u32)>,
    /// Whether there are messages among that traffic, not only collective operations.
    pub messages: bool,
    /// Whether clocks are tied by collective operations more than by messages.
    pub collectives: bool,
    /// By clock: those that traffic in both directions ties together have the same number.
    pub group: Vec<u32>,
    /// By clock: how many clocks are in its group, and how many messages (of collective operations the latest begins) it has sent.
    pub standing: Vec<(u32, u64)>,
}

impl OneWayDirections {
    /// Of some clocks the one that others are compared with: of the largest group, and of these the one that has sent most. None if nothing is to be compared.
    pub fn hub(&self, clocks: impl Iterator<Item = u32> + Clone) -> Option<u32> {
        let group = |clock: u32| self.group.get(clock as usize).copied();
        let first = clocks.clone().next().map(group)?;
        if !self.collectives {
            clocks.clone().find(|&clock| group(clock) != first)?;
        }
        let standing = |clock: u32| self.standing.get(clock as usize).copied().unwrap_or_default();
        clocks.max_by_key(|&clock| (standing(clock), std::cmp::Reverse(clock)))
    }

    /// Whether it matters who waited for the messages of a direction.
    pub fn asks_for_messages(&self, direction: (u32, u32)) -> bool {
        self.one_way.contains(&direction) || self.late.contains(&direction)
    }

    /// Whether traffic ties two clocks from both sides.
    pub fn are_tied(&self, a: u32, b: u32) -> bool {
        self.group.get(a as usize) == self.group.get(b as usize)
    }
}

impl QuickestWaits {
    /// Adds what others have seen.
    pub fn merge(&mut self, other: QuickestWaits) {
        self.measured |= other.measured;
        for (class, bounds) in other.classes {
            self.classes.entry(class).or_default().merge(bounds);
        }
    }

    /// Adds one.
    #[cfg(test)]
    pub(crate) fn add(&mut self, class: Class, window: usize, bound: Bound) {
        self.classes.entry(class).or_default().add(window, bound, 1);
    }

    /// Messages of a direction that were waited for, if it is one of those with traffic in both directions and there are enough of them.
    pub fn awaited(&self, (from, to): (u32, u32)) -> Option<&DirectedBounds> {
        let all = self.classes.get(&Class { from, to, kind: BoundKind::WAITED_OF_TIED });
        all.filter(|all| all.windows().len() >= FEWEST)
    }

    /// How many there are that tell what one way does not, by pair of clocks (a < b), but for those between ends of collective operations.
    pub fn by_pair(&self) -> BTreeMap<(u32, u32), u64> {
        let mut counts = BTreeMap::new();
        let tells = |class: &Class| !class.kind.is_between_ends() && class.kind != BoundKind::WAITED_OF_TIED;
        for (class, bounds) in self.classes.iter().filter(|(class, _)| tells(class)) {
            *counts.entry((class.from.min(class.to), class.from.max(class.to))).or_default() += bounds.messages;
        }
        counts
    }
}

/// Collects [`QuickestWaits`]: what follows each other in one class and one window, as most of them do, is combined first.
#[derive(Debug)]
pub struct WaitsCollector<'a> {
    grid: &'a Grid,
    waits: QuickestWaits,
    /// Of what was added last and is not among `waits` yet: class, quickest, number, and the times of its window.
    class: Class,
    quickest: Bound,
    count: u64,
    window: usize,
    span: Range<i64>,
}

impl<'a> WaitsCollector<'a> {
    /// Nothing yet; windows are those of `grid`.
    pub fn new(grid: &'a Grid) -> Self {
        let kind = BoundKind::MESSAGE;
        let (class, quickest) = (Class { from: 0, to: 0, kind }, Bound { distance: i64::MAX, at: i64::MAX, kind });
        WaitsCollector { grid, waits: QuickestWaits::default(), class, quickest, count: 0, window: 0, span: 0..0 }
    }

    /// Adds one.
    #[inline]
    pub fn add(&mut self, class: Class, bound: Bound) {
        if class != self.class || !self.span.contains(&bound.at) {
            self.flush();
            self.class = class;
            self.window = self.grid.window(bound.at);
            self.span = self.grid.span(self.window);
            self.quickest = bound;
        }
        self.count += 1;
        self.quickest = self.quickest.min(bound);
    }

    fn flush(&mut self) {
        if self.count > 0 {
            let bounds = self.waits.classes.entry(self.class).or_default();
            bounds.add(self.window, self.quickest, std::mem::take(&mut self.count));
        }
    }

    /// All that was added.
    pub fn finish(mut self) -> QuickestWaits {
        self.flush();
        self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::BoundKind;
    use clc_trace::CollectiveOp;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_combined_first_is_what_was_added_one_by_one(
            added in prop::collection::vec((0u32..2, any::<bool>(), 0i64..900, -9i64..9), 0..30), in_order in any::<bool>()
        ) {
            let grid = Grid { first: 0, width: 100, count: 9 };
            let mut added = added;
            if in_order {
                added.sort_unstable();
            }
            let (mut collector, mut expected) = (WaitsCollector::new(&grid), QuickestWaits::default());
            for (from, message, at, distance) in added {
                let kind = if message { BoundKind::MESSAGE } else { BoundKind::WAITED_OF_TIED };
                let (class, bound) = (Class { from, to: 7, kind }, Bound { distance, at, kind });
                collector.add(class, bound);
                expected.add(class, grid.window(at), bound);
            }
            prop_assert_eq!(collector.finish(), expected);
        }
    }

    #[test]
    fn the_hub_is_of_the_largest_group_and_has_sent_most() {
        let standing = vec![(2, 7), (2, 9), (3, 1), (3, 4), (3, 4)];
        let mut wanted = OneWayDirections { group: vec![0, 0, 2, 2, 2], standing, ..OneWayDirections::default() };
        assert_eq!(wanted.hub(0..5), Some(3));
        assert_eq!(wanted.hub([0, 1, 2].into_iter()), Some(2));
        // Messages tie the two; operations need a place to begin with.
        assert_eq!(wanted.hub(0..2), None);
        wanted.collectives = true;
        assert_eq!(wanted.hub(0..2), Some(1));
        assert_eq!(wanted.hub(0..0), None);
        assert!(wanted.are_tied(0, 1) && !wanted.are_tied(1, 2));
    }

    #[test]
    fn ends_of_operations_are_not_counted_as_traffic() {
        let mut waits = QuickestWaits::default();
        for (kind, count) in
            [(BoundKind::waited(8), 3), (BoundKind::ends(CollectiveOp::BARRIER, 4), 50), (BoundKind::ENDS_OF_TIED, 50)]
        {
            for window in 0..count {
                waits.add(Class { from: 1, to: 0, kind }, window, Bound { distance: 1, at: 0, kind });
            }
        }
        assert_eq!(waits.by_pair(), BTreeMap::from([((0, 1), 3)]));
    }
}
