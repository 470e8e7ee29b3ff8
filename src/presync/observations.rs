//! From bounds to observations: what the difference of two clocks must have been in a window, and how sure that is.
//!
//! With f the smallest distance from a to b and g the one from b to a, the correction of b minus that of a lies in
//! \[-f, g\]; if both directions have the same minimum latency it is (g - f) / 2, and (f + g) / 2 is that latency plus what
//! even the quickest messages of the window waited. What is above the latency that the pair is known to reach is the
//! uncertainty.

use super::windows::{BoundTable, Grid};
use std::collections::BTreeMap;

/// Corrections of every clock at the centre of every window, in ticks: `[clock][window]`.
pub type Offsets = Vec<Vec<f64>>;

/// Both directions of a pair in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoWay {
    /// One clock.
    pub a: u32,
    /// The other, a < b.
    pub b: u32,
    /// Window.
    pub window: u32,
    /// Most likely correction of b minus that of a, in ticks.
    pub middle: f64,
    /// Half the round trip, in ticks.
    pub half_trip: f64,
    /// Standard deviation assumed for `middle`.
    pub sigma: f64,
    /// The difference is within this of the middle, if no message is quicker than the quickest of all pairs.
    pub slack: f64,
}

/// One direction of a pair in one window, without the other one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneWay {
    /// The clock of the sender.
    pub a: u32,
    /// The clock of the receiver.
    pub b: u32,
    /// Window.
    pub window: u32,
    /// The correction of b minus that of a is at least this.
    pub least: f64,
}

/// What the messages of all windows say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observations {
    /// Pairs seen in both directions.
    pub two_way: Vec<TwoWay>,
    /// Pairs seen in one.
    pub one_way: Vec<OneWay>,
    /// Half round trip of the quickest pair, in ticks: the estimate of the minimum latency between clocks.
    pub latency: f64,
    /// Half round trips that each pair reaches in its better windows.
    pub latency_of: BTreeMap<(u32, u32), f64>,
    /// The resolution of all this: no observation is better.
    pub floor: f64,
}

/// Share of its windows in which a pair is taken to have been as quick as it gets.
const QUICK_SHARE: usize = 10;
/// No observation is better than this part of the typical half round trip: minima of two directions are not that equal.
const FLOOR: f64 = 0.02;

impl Observations {
    /// The observations of `table`, whose distances were measured with clocks corrected by `now`; what comes out are
    /// total corrections.
    pub fn new(table: &BoundTable, grid: &Grid, now: &Offsets) -> Observations {
        let difference = |a: u32, b: u32, window: u32| {
            let at = |clock: u32| now.get(clock as usize).and_then(|x| x.get(window as usize)).copied().unwrap_or(0.0);
            at(b) - at(a)
        };
        let mut result = Observations::default();
        let nothing = Default::default();
        for (&(a, b), forward) in &table.pairs {
            let backward = table.pairs.get(&(b, a)).unwrap_or(&nothing);
            let mut trips = Vec::new();
            for (&window, f) in forward.windows.iter().filter(|(window, _)| (**window as usize) < grid.count) {
                let now = difference(a, b, window);
                match backward.windows.get(&window) {
                    Some(g) if a < b => {
                        let middle = (g.distance as f64 - f.distance as f64) / 2.0 + now;
                        let half_trip = (g.distance as f64 + f.distance as f64) / 2.0;
                        trips.push(half_trip);
                        result.two_way.push(TwoWay { a, b, window, middle, half_trip, sigma: 0.0, slack: 0.0 });
                    }
                    Some(_) => {}
                    None => result.one_way.push(OneWay { a, b, window, least: now - f.distance as f64 }),
                }
            }
            if !trips.is_empty() {
                trips.sort_by(f64::total_cmp);
                let quick = trips.get(trips.len() / QUICK_SHARE).copied().unwrap_or(0.0).max(0.0);
                result.latency_of.insert((a, b), quick);
            }
        }
        result.weigh();
        result
    }

    /// Fills in sigma and slack.
    fn weigh(&mut self) {
        self.latency = self.latency_of.values().copied().fold(f64::INFINITY, f64::min);
        if !self.latency.is_finite() {
            self.latency = 0.0;
        }
        let mut trips: Vec<f64> = self.latency_of.values().copied().collect();
        trips.sort_by(f64::total_cmp);
        let typical = trips.get(trips.len() / 2).copied().unwrap_or(0.0);
        self.floor = (FLOOR * typical).max(1.0);
        for seen in &mut self.two_way {
            let quick = self.latency_of.get(&(seen.a, seen.b)).copied().unwrap_or(0.0);
            let waited = (seen.half_trip - quick).max(0.0);
            // A pair that is never as quick as others is farther away, or one of the two always waits.
            let far = (quick - self.latency) / 2.0;
            seen.sigma = (self.floor * self.floor + waited * waited + far * far).sqrt();
            seen.slack = (seen.half_trip - self.latency).max(0.0);
        }
    }

    /// Joins clocks that have neither two-way messages nor recorded offsets in common (`held` says which are held by
    /// something else) by their one-way messages, as if the quickest of them had taken the minimum latency: better than
    /// nothing, and never stronger than anything.
    pub fn tie(&mut self, held: &[bool]) {
        let mut group: Vec<usize> = (0..held.len()).collect();
        let mut join = |a: usize, b: usize| -> bool {
            let (from, to) = match (group.get(a), group.get(b)) {
                (Some(&a), Some(&b)) if a != b => (a.max(b), a.min(b)),
                _ => return false,
            };
            group.iter_mut().filter(|of| **of == from).for_each(|of| *of = to);
            true
        };
        let mut anchors = held.iter().enumerate().filter(|(_, held)| **held).map(|(clock, _)| clock);
        if let Some(first) = anchors.next() {
            anchors.for_each(|clock| _ = join(first, clock));
        }
        for seen in &self.two_way {
            join(seen.a as usize, seen.b as usize);
        }
        for seen in &self.one_way {
            if join(seen.a as usize, seen.b as usize) {
                let (a, b, sign) = if seen.a < seen.b { (seen.a, seen.b, 1.0) } else { (seen.b, seen.a, -1.0) };
                let middle = sign * (seen.least + self.latency);
                let (half_trip, sigma) = (self.latency, 1000.0 * self.floor);
                self.two_way.push(TwoWay { a, b, window: seen.window, middle, half_trip, sigma, slack: f64::MAX });
            }
        }
    }

    /// A copy with the two-way observations that `keep` wants.
    pub fn part(&self, keep: impl Fn(&TwoWay) -> bool) -> Observations {
        let two_way = self.two_way.iter().filter(|seen| keep(seen)).copied().collect();
        Observations { two_way, ..self.clone() }
    }

    /// Mean deviation of the differences from the middles, each in units of its sigma and counted up to `MOST`: 0 is
    /// perfect, 1 as expected. None without observations.
    pub fn misfit(&self, offsets: &Offsets) -> Option<f64> {
        const MOST: f64 = 10.0;
        let mut sum = 0.0;
        for seen in &self.two_way {
            sum += (residual(seen, offsets).abs() / seen.sigma).min(MOST);
        }
        (!self.two_way.is_empty()).then(|| sum / self.two_way.len() as f64)
    }
}

/// How far the difference of two clocks is from what was observed.
pub fn residual(seen: &TwoWay, offsets: &Offsets) -> f64 {
    let at = |clock: u32| {
        offsets.get(clock as usize).and_then(|x| x.get(seen.window as usize)).copied().unwrap_or(0.0)
    };
    at(seen.b) - at(seen.a) - seen.middle
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presync::windows::Bound;

    #[test]
    fn two_directions_give_offset_and_latency() {
        let grid = Grid::new(0, 999, 1);
        let mut table = BoundTable::default();
        // b is 100 late, messages take 30.
        table.pairs.entry((0, 1)).or_default().add(0, Bound { distance: -70, at: 5 });
        table.pairs.entry((1, 0)).or_default().add(0, Bound { distance: 130, at: 6 });
        table.pairs.entry((0, 2)).or_default().add(0, Bound { distance: -5, at: 6 });
        let seen = Observations::new(&table, &grid, &vec![vec![0.0]; 3]);
        assert_eq!((seen.two_way[0].middle, seen.two_way[0].half_trip), (100.0, 30.0));
        assert_eq!((seen.latency, seen.two_way.len()), (30.0, 1));
        assert_eq!(seen.one_way, [OneWay { a: 0, b: 2, window: 0, least: 5.0 }]);
        assert_eq!(seen.misfit(&vec![vec![0.0], vec![100.0], vec![0.0]]), Some(0.0));
        // The same messages seen through clocks that are corrected already.
        let total = Observations::new(&table, &grid, &vec![vec![0.0], vec![7.0], vec![0.0]]);
        assert_eq!(total.two_way[0].middle, 107.0);
    }
}
