//! What is reported of estimated clocks.

use super::{Estimator, shows};
use crate::pipeline::clocks::ClockMap;
use crate::presync::Method;
use crate::presync::windows::Grid;
use crate::report::{ClockEstimate, ClockPair, NodeClock};
use std::collections::BTreeMap;

/// Excesses of messages, in ticks.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u64,
    weights: f64,
    /// Weighted.
    squares: f64,
}

impl Sums {
    fn add(&mut self, excess: f64, weight: f64) {
        self.merge(&Sums { count: 1, weights: weight, squares: weight * excess * excess });
    }

    fn merge(&mut self, other: &Sums) {
        self.count += other.count;
        self.weights += other.weights;
        self.squares += other.squares;
    }

    /// Weighted root mean square.
    fn deviation(&self) -> f64 {
        if self.weights > 0.0 { (self.squares / self.weights).sqrt() } else { 0.0 }
    }
}

impl Estimator {
    /// For the report.
    pub fn report(&self, requested: Method, chosen: bool, reason: String, map: &ClockMap) -> ClockEstimate {
        let tick = 1.0 / self.resolution.max(1) as f64;
        let grid = self.grid.unwrap_or(Grid::new(0, 0, 1));
        let flat: Vec<f64> = self.offsets.iter().flatten().copied().collect();
        let mut sums = vec![Sums::default(); map.bases.len()];
        // By the smaller and the larger clock.
        let mut pairs: BTreeMap<(u32, u32), Sums> = BTreeMap::new();
        for ((a, b), seen) in self.observations.directions() {
            let direction = self.latencies.direction((a, b));
            let mut sum = Sums::default();
            for seen in seen {
                let excess = direction.excess(seen, &flat, grid.count);
                sum.add(excess, direction.weight(excess, self.latencies.spread));
            }
            for clock in [a, b] {
                if let Some(of) = sums.get_mut(clock as usize) {
                    of.merge(&sum);
                }
            }
            pairs.entry((a.min(b), a.max(b))).or_default().merge(&sum);
        }
        let paths = self.paths(map.bases.len());
        let length = (grid.width as f64 * (grid.count.saturating_sub(1)) as f64).max(1.0);
        let clocks = sums.iter().zip(&map.first_timeline).zip(&self.offsets).enumerate();
        let nodes: Vec<NodeClock> = clocks
            .map(|(clock, ((sums, first), row))| {
                let drift = row.last().zip(row.first()).map_or(0.0, |(last, first)| (last - first) / length * 1e6);
                let recorded = &map.offsets[clock];
                let recorded_drift = recorded
                    .first()
                    .zip(recorded.last())
                    .filter(|(a, b)| a.time < b.time)
                    .map_or(0.0, |(a, b)| 1e6 * (b.offset - a.offset) as f64 / (b.time - a.time) as f64);
                NodeClock {
                    first_process: *first,
                    reference: clock == self.reference,
                    observations: sums.count,
                    drift_ppm: drift + recorded_drift,
                    residual_seconds: sums.deviation() * tick,
                    uncertainty_seconds: paths.get(clock).copied().flatten().map(|(ticks, _)| ticks * tick),
                    hops: paths.get(clock).copied().flatten().map(|(_, hops)| hops),
                }
            })
            .collect();
        let pairs = self.pairs(&grid, pairs, &nodes, map);
        ClockEstimate {
            requested,
            chosen: if chosen { self.model } else { Method::Linear },
            reason: match self.groups {
                0 | 1 => reason,
                groups => format!("{reason}; {groups} groups of nodes exchange no messages with each other"),
            },
            windows: grid.count as u64,
            window_seconds: grid.width as f64 * tick,
            latency_seconds: self.shortest.other_node.0 as f64 * tick,
            misfit_estimated: self.misfits.map(|(estimated, _)| estimated),
            misfit_recorded: self.misfits.map(|(_, recorded)| recorded),
            discarded: self.observations.discarded,
            skew_recorded_seconds: self.skew(grid.count) * tick,
            // A margin that is not negative is no disagreement.
            skew_estimated_seconds: pairs
                .iter()
                .map(|pair| pair.deviation_seconds)
                .map(|off| if self.model == Method::Hull { (-off).max(0.0) } else { off })
                .sum(),
            pairs,
            clocks: nodes,
        }
    }

    /// Every pair of clocks that exchange messages.
    fn pairs(
        &self,
        grid: &Grid,
        sums: BTreeMap<(u32, u32), Sums>,
        nodes: &[NodeClock],
        map: &ClockMap,
    ) -> Vec<ClockPair> {
        let tick = 1.0 / self.resolution.max(1) as f64;
        let begin: Vec<i64> = (self.offsets.iter().zip(&self.constants).zip(&map.bases))
            .map(|((row, constant), base)| shows(grid, row, *constant, base, 0))
            .collect();
        let pairs = sums.into_iter().filter_map(|((a, b), sums)| {
            let (one, other) = (nodes.get(a as usize)?, nodes.get(b as usize)?);
            let mut pair = ClockPair {
                a: one.first_process,
                b: other.first_process,
                samples: sums.count,
                offset_seconds: begin.get(a as usize)?.saturating_sub(*begin.get(b as usize)?) as f64 * tick,
                drift_ppm: other.drift_ppm - one.drift_ppm,
                deviation_seconds: sums.deviation() * tick,
                offset_error_seconds: None,
                drift_error_ppm: None,
            };
            let lines = || self.lines.iter().filter(|line| (line.a, line.b) == (a, b));
            if let Some(first) = lines().next() {
                let deviations = lines().map(|line| line.deviation * tick);
                if self.model == Method::Hull {
                    pair.deviation_seconds = deviations.fold(f64::INFINITY, f64::min);
                } else {
                    pair.deviation_seconds = deviations.fold(0.0, f64::max);
                    pair.offset_error_seconds = Some(first.intercept_error * tick);
                    pair.drift_error_ppm = Some(1e6 * first.slope_error / grid.width as f64);
                }
            }
            Some(pair)
        });
        pairs.collect()
    }

    /// The sum over all pairs of clocks of the difference of their corrections, mean over the windows, in ticks: what the clocks
    /// disagree without the estimate.
    fn skew(&self, windows: usize) -> f64 {
        let at = |window: usize| {
            let clocks = self.offsets.iter().zip(&self.constants);
            let mut values: Vec<f64> =
                clocks.map(|(row, constant)| row.get(window).copied().unwrap_or(0.0) + *constant as f64).collect();
            disagreement(&mut values)
        };
        (0..windows).map(at).sum::<f64>() / windows.max(1) as f64
    }

    /// What messages cannot exclude: an error of every clock against the reference of the latencies along the best path to it, in
    /// ticks; and how many pairs that path has. None where no path has messages in both directions.
    fn paths(&self, clocks: usize) -> Vec<Option<(f64, u32)>> {
        let mut best: Vec<Option<(f64, u32)>> = vec![None; clocks];
        if let Some(own) = best.get_mut(self.reference) {
            *own = Some((0.0, 0));
        }
        // As many rounds as the longest path has edges, as in Bellman and Ford.
        for _ in 0..clocks {
            let mut changed = false;
            for (&(a, b), latency) in &self.latencies.of {
                if !self.latencies.of.contains_key(&(b, a)) {
                    continue;
                }
                let Some(through) =
                    best.get(a as usize).copied().flatten().map(|known| (known.0 + latency, known.1 + 1))
                else {
                    continue;
                };
                if let Some(known) = best.get_mut(b as usize)
                    && known.is_none_or(|known| through < known)
                {
                    *known = Some(through);
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        best
    }
}

/// The sum over all pairs of values of how far they are apart.
fn disagreement(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    // In order, the k-th value is above k others and below the rest.
    let above = |k: usize| 2.0 * k as f64 - (values.len() as f64 - 1.0);
    values.iter().enumerate().map(|(k, value)| above(k) * value).sum()
}

#[cfg(test)]
mod tests {
    use super::disagreement;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_disagreement_is_that_of_all_pairs(mut values in prop::collection::vec(-1e6f64..1e6, 0..12)) {
            let mut expected = 0.0;
            for (k, a) in values.iter().enumerate() {
                expected += values[..k].iter().map(|b| (a - b).abs()).sum::<f64>();
            }
            prop_assert!((disagreement(&mut values) - expected).abs() < 1e-6);
        }
    }
}
