//! What is reported of estimated clocks.

use super::Estimator;
use crate::pipeline::clocks::ClockMap;
use crate::presync::Method;
use crate::presync::windows::Grid;
use crate::report::{ClockEstimate, NodeClock};

impl Estimator {
    /// For the report.
    pub fn report(&self, requested: Method, chosen: bool, reason: String, map: &ClockMap) -> ClockEstimate {
        let tick = 1.0 / self.resolution.max(1) as f64;
        let grid = self.grid.unwrap_or(Grid::new(0, 0, 1));
        let flat: Vec<f64> = self.offsets.iter().flatten().copied().collect();
        let mut sums = vec![(0u64, 0.0f64, 0.0f64); map.bases.len()];
        for seen in &self.observations.one_way {
            let excess = self.latencies.excess(seen, &flat, grid.count);
            let weight = self.latencies.weight(seen, excess, self.latencies.spread);
            for clock in [seen.a, seen.b] {
                if let Some((count, weights, squares)) = sums.get_mut(clock as usize) {
                    *count += 1;
                    *weights += weight;
                    *squares += weight * excess * excess;
                }
            }
        }
        let uncertainties = self.uncertainties(map.bases.len());
        let length = (grid.width as f64 * (grid.count.saturating_sub(1)) as f64).max(1.0);
        let clocks = sums.iter().zip(&map.first_timeline).zip(&self.offsets).enumerate();
        let nodes = clocks.map(|(clock, (((count, weights, squares), first), row))| {
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
                observations: *count,
                drift_ppm: drift + recorded_drift,
                residual_seconds: if *weights > 0.0 { (squares / weights).sqrt() * tick } else { 0.0 },
                uncertainty_seconds: uncertainties.get(clock).copied().flatten().map(|ticks| ticks * tick),
            }
        });
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
            clocks: nodes.collect(),
        }
    }

    /// What messages cannot exclude: an error of every clock against the reference of the latencies along the best path to it, in
    /// ticks. None where no path has messages in both directions.
    fn uncertainties(&self, clocks: usize) -> Vec<Option<f64>> {
        let mut best: Vec<Option<f64>> = vec![None; clocks];
        if let Some(own) = best.get_mut(self.reference) {
            *own = Some(0.0);
        }
        // As many rounds as the longest path has edges, as in Bellman and Ford.
        for _ in 0..clocks {
            let mut changed = false;
            for (&(a, b), latency) in &self.latencies.of {
                if !self.latencies.of.contains_key(&(b, a)) {
                    continue;
                }
                let Some(through) = best.get(a as usize).copied().flatten().map(|known| known + latency) else {
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
