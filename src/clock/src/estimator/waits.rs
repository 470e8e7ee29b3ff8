//! What messages and collectives that were waited for add to the bounds of the others.

use super::{Estimator, UNKNOWN};
use crate::Method;
use crate::both_sides::from_both_sides;
use crate::clock_map::ClockMap;
use crate::grid::Grid;
use crate::kinds::levelled;
use crate::lengths::LengthTimes;
use crate::observations::{Observations, Offsets};
use crate::windows::BoundTable;
use std::collections::BTreeMap;

/// Part of the messages of the less busy clock of a pair from which on both directions are traffic, as for what is looked for among waits: a Barrier in the end is none.
const TO_SPEAK_OF: u64 = 16;

/// Whether no two clocks have traffic in both directions to speak of.
pub(super) fn goes_one_way(table: &BoundTable) -> bool {
    let mut of_clock: BTreeMap<u32, u64> = BTreeMap::new();
    for (&(a, b), bounds) in &table.pairs {
        [a, b].into_iter().for_each(|clock| *of_clock.entry(clock).or_default() += bounds.messages);
    }
    let back = |a: u32, b: u32| table.pairs.get(&(b, a)).map_or(0, |bounds| bounds.messages);
    table.pairs.iter().all(|(&(a, b), bounds)| {
        let less_busy = of_clock[&a].min(of_clock[&b]);
        TO_SPEAK_OF * bounds.messages.min(back(a, b)) < less_busy
    })
}

impl Estimator {
    /// The bounds with what was waited for, once clocks are roughly known: collectives as if they were messages, and observations from both sides
    /// where traffic goes one way.
    pub(super) fn prepared(
        &self,
        table: &BoundTable,
        grid: &Grid,
        now: &Offsets,
        map: &ClockMap,
    ) -> Option<BoundTable> {
        if self.is_rough() {
            return None;
        }
        let anchors = self.anchors(map, grid, 1.0);
        let lengths = LengthTimes::of(table, grid.count, now, &anchors, self.reference);
        let of_lengths = (!lengths.is_empty()).then(|| lengths.levelled(table.clone()));
        let levelled = levelled(of_lengths.as_ref().unwrap_or(table)).or(of_lengths);
        let table = levelled.as_ref().unwrap_or(table);
        let both = from_both_sides(table, grid, now, &anchors, self.reference, self.resolution);
        both.or(levelled)
    }

    /// What messages alone say.
    pub(super) fn plain(&self, table: &BoundTable, grid: &Grid, now: &Offsets) -> Observations {
        let [unknown, delay] = [UNKNOWN, self.limits.delay].map(|seconds| seconds * self.resolution as f64);
        Observations::new(table, grid, now, unknown, delay, self.workers)
    }

    fn is_rough(&self) -> bool {
        self.asked < self.finest || self.grid.is_none() || self.model != Method::Network
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bound;
    use crate::kind::BoundKind;

    #[test]
    fn a_barrier_is_no_traffic_back() {
        let table = |pairs: &[(u32, u32, u64)]| {
            let mut table = BoundTable::default();
            for &(a, b, count) in pairs {
                table.pairs.entry((a, b)).or_default().add(
                    0,
                    Bound { distance: 5, at: 9, kind: BoundKind::default() },
                    count,
                );
            }
            table
        };
        let pipeline = [(0, 1, 900), (1, 2, 900), (1, 0, 2), (2, 0, 2), (0, 2, 2), (2, 1, 2)];
        assert!(goes_one_way(&table(&pipeline)) && goes_one_way(&table(&[(0, 1, 5), (1, 2, 5), (2, 0, 5)])));
        let answered = [(0, 1, 900), (1, 2, 900), (2, 1, 80)];
        assert!(!goes_one_way(&table(&answered)));
    }
}
