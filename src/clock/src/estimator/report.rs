//! What is reported of estimated clocks.

use super::Estimator;
use super::knots::shows;
use crate::Method;
use crate::clock_map::ClockMap;
use crate::estimate::{ClockEstimate, ClockPair, ClockStep, FurtherClocks, NodeClock};
use crate::grid::Grid;
use crate::observations::Offsets;
use crate::reference::{PairLine, Reference, skew_to_median};
use crate::steps::{CorrectionStep, quantile};
use clc_trace::format::duration;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Drift from which on a remark is made, in millionths: clocks of computers are good to some ten.
const UNUSUAL_DRIFT: f64 = 1000.0;

/// Jumps that are named one by one. Chosen by hand: with more, the sentence cannot be read; the report lists all.
const NAMED: usize = 3;

/// A word on clocks that jump by an estimate, which is `in_use` or not.
fn jumps(nodes: &[NodeClock], in_use: bool) -> String {
    let all = || nodes.iter().flat_map(|node| node.steps.iter().map(move |step| (node.first_process, step)));
    let mut text = String::new();
    for (process, step) in all().take(NAMED) {
        let how = if step.forward_seconds > 0.0 { "was set forward" } else { "was set back or stood still" };
        let (size, at) = (duration(step.forward_seconds.abs()), duration(step.at_seconds));
        let whose = if in_use || !text.is_empty() { "" } else { "by the estimate, which is not in use, " };
        text += &format!("; {whose}the clock of process {process} {how} by {size} at {at}");
    }
    let more = all().count().saturating_sub(NAMED);
    if more > 0 {
        text += &format!("; {} more", clc_trace::format::plural(more as u64, "jump"));
    }
    text
}

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

/// Messages that are off by less than this part of half a round trip always take as long. Chosen by hand: a larger part calls steady what varies, and
/// understates the doubt; a smaller one doubles the doubt for a little noise.
const STEADY: f64 = 0.05;

impl Estimator {
    /// How clocks are estimated: [`Method::Network`] if the best is wanted.
    pub fn method(&self) -> Method {
        self.model
    }

    /// For the report, by which clocks were `chosen` ([`Estimator::method`] for the estimated ones).
    pub fn report(&self, requested: Method, chosen: Method, reason: String, map: &ClockMap) -> ClockEstimate {
        let tick = 1.0 / self.resolution.max(1) as f64;
        let grid = self.grid.unwrap_or(Grid::new(0, 0, 1));
        let (sums, pairs) = self.residuals(&grid);
        let paths = self.paths(map.bases.len(), |pair| self.known_to(&pairs, pair));
        let length = (grid.width as f64 * (grid.count.saturating_sub(1)) as f64).max(1.0);
        // A time made from all clocks, or from one that recorded offsets are not measured against, has a drift of its own.
        let together = self.synthesis.last().zip(self.synthesis.first()).map_or(0.0, |(last, first)| last - first);
        let common = together / length * 1e6;
        let several = match self.wanted {
            Reference::Median | Reference::Mean | Reference::Harmonic => true,
            Reference::Auto => super::unmeasured(map),
            Reference::Process(_) => false,
        };
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
                    reference: clock == self.reference && !several,
                    observations: sums.count,
                    drift_ppm: drift + recorded_drift + common,
                    residual_seconds: sums.deviation() * tick,
                    uncertainty_seconds: paths.get(clock).copied().flatten().map(|(ticks, _)| ticks * tick),
                    hops: paths.get(clock).copied().flatten().map(|(_, hops)| hops),
                    steps: self.reported_steps(clock, &grid),
                }
            })
            .collect();
        let together = |clock: usize| map.together.get(clock).copied().unwrap_or(0);
        let corrections = self.constants.iter().enumerate();
        let constants: Vec<i64> =
            corrections.map(|(clock, constant)| constant.saturating_add(together(clock))).collect();
        let skew = self.skew(&pairs, &constants, &grid);
        let pairs = self.pairs(&grid, pairs, &nodes, map);
        ClockEstimate {
            requested,
            chosen,
            reason: reason + &self.remarks(requested, chosen, &nodes, &grid),
            reference: self.wanted,
            confidence: self.limits.confidence,
            segment_seconds: self.limits.segment,
            max_delay_seconds: Some(self.limits.longest_delay(grid.width as f64 * tick))
                .filter(|delay| delay.is_finite()),
            windows: grid.count as u64,
            window_seconds: grid.width as f64 * tick,
            latency_seconds: self.shortest.other_node.0 as f64 * tick,
            misfit_estimated: self.misfits.map(|(estimated, _)| estimated),
            misfit_recorded: self.misfits.map(|(_, recorded)| recorded),
            discarded: self.observations.discarded,
            skew_recorded_seconds: skew * tick,
            skew_estimated_seconds: pairs.iter().map(|pair| pair.residual_seconds).fold(0.0, |sum, off| sum + off),
            skew_median_recorded_seconds: skew_to_median(&self.with_steps(&grid), &constants) * tick,
            skew_median_estimated_seconds: nodes
                .iter()
                .map(|node| node.residual_seconds)
                .fold(0.0, |sum, off| sum + off),
            pairs,
            clocks: nodes,
            further: FurtherClocks::default(),
        }
    }

    /// What messages are off, by clock and by pair of clocks, the smaller one first.
    fn residuals(&self, grid: &Grid) -> (Vec<Sums>, BTreeMap<(u32, u32), Sums>) {
        let flat: Vec<f64> = self.offsets.iter().flatten().copied().collect();
        let mut sums = vec![Sums::default(); self.offsets.len()];
        let mut pairs: BTreeMap<(u32, u32), Sums> = BTreeMap::new();
        let directions = self.observations.directions();
        for (at, &(a, b)) in directions.pairs().iter().enumerate() {
            let direction = self.latencies.direction((a, b));
            let mut sum = Sums::default();
            for seen in &self.observations.one_way[directions.messages(at)] {
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
        (sums, pairs)
    }

    /// To what the two clocks of a pair in the middle are known against each other, in ticks: what its messages are off, and half its shortest round trip if that varies. (Messages that always wait for as long tell
    /// more than that, with recorded offsets.) 0 without round trips.
    pub(super) fn doubt(&self, grid: &Grid) -> f64 {
        let (_, pairs) = self.residuals(grid);
        let doubt = |(pair, sums): (&(u32, u32), &Sums)| {
            let (known, off) = (self.uncertainty(*pair)?, sums.deviation());
            Some(if off < STEADY * known { off } else { known + off })
        };
        let doubts: Vec<f64> = pairs.iter().filter_map(doubt).collect();
        if doubts.is_empty() { 0.0 } else { quantile(doubts, 0.5) }
    }

    /// To what clocks are known against the reference in the mean, in ticks: as [`Estimator::report`] says. 0 without round trips.
    pub(super) fn vagueness(&self, grid: &Grid) -> f64 {
        let (_, pairs) = self.residuals(grid);
        let paths = self.paths(self.offsets.len(), |pair| self.known_to(&pairs, pair));
        let others = paths.into_iter().flatten().filter(|(_, hops)| *hops > 0);
        let (sum, count) = others.fold((0.0, 0.0), |(sum, count), (ticks, _)| (sum + ticks, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// To what the clocks of a pair are known against each other, in ticks; none without a round trip.
    fn known_to(&self, pairs: &BTreeMap<(u32, u32), Sums>, pair: (u32, u32)) -> Option<f64> {
        let residual = pairs.get(&pair).map_or(0.0, Sums::deviation);
        Some(self.uncertainty(pair)? + residual)
    }

    /// What a reader has to know besides why the clocks were chosen.
    fn remarks(&self, requested: Method, chosen: Method, nodes: &[NodeClock], grid: &Grid) -> String {
        let mut text = String::new();
        if matches!(requested, Method::Regression | Method::Hull) && self.model == Method::Network {
            text += "; there are too few round trips for straight lines, so the network method was used";
        }
        if self.model == Method::Hull {
            let margins = self.lines.iter().map(|line| line.deviation);
            let infeasible = margins.clone().filter(|margin| *margin < 0.0).count();
            if infeasible > 0 {
                let worst = -margins.fold(0.0, f64::min) / self.resolution.max(1) as f64;
                text += &format!(
                    "; for {infeasible} of {} pairs and segments no line is feasible: messages contradict the best \
                    one by up to {}",
                    self.lines.len(),
                    duration(worst)
                );
            }
        }
        // Clocks that leave no violation as they are have not jumped.
        if chosen != Method::None {
            text += &jumps(nodes, chosen.refines());
        }
        let drift = nodes.iter().map(|node| node.drift_ppm.abs()).fold(0.0, f64::max);
        if chosen.refines() && drift > UNUSUAL_DRIFT && grid.count > 1 {
            text += &format!("; a drift of {drift:.0} ppm is unusual for a working clock");
        }
        if self.groups > 1 {
            text += &format!("; {} groups of nodes exchange no messages with each other", self.groups);
        }
        text
    }

    /// The steps of a clock.
    fn reported_steps(&self, clock: usize, grid: &Grid) -> Vec<ClockStep> {
        let tick = 1.0 / self.resolution.max(1) as f64;
        let steps = self.steps.get(clock).map_or(&[][..], Vec::as_slice);
        let step = |step: &CorrectionStep| ClockStep {
            at_seconds: step.at.saturating_sub(grid.first) as f64 * tick,
            forward_seconds: -step.height as f64 * tick,
        };
        steps.iter().map(step).collect()
    }

    /// The corrections of all windows with what steps add.
    fn with_steps(&self, grid: &Grid) -> Offsets {
        let rows = self.offsets.iter().enumerate();
        let of = |(clock, row): (usize, &Vec<f64>)| -> Vec<f64> {
            row.iter().enumerate().map(|(window, offset)| offset + self.step_at(clock, grid.centre(window))).collect()
        };
        rows.map(of).collect()
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
                residual_seconds: sums.deviation() * tick,
                deviation_seconds: sums.deviation() * tick,
                offset_error_seconds: None,
                drift_error_ppm: None,
            };
            let lines = self.lines_of((a, b));
            if let Some(first) = lines.first() {
                pair.samples = lines.iter().map(|line| line.samples).sum();
                let deviations = lines.iter().map(|line| line.deviation * tick);
                if self.method_of_lines() == Method::Hull {
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

    /// The sum over all pairs that exchange messages of the difference of their corrections, of which these are the `constants`, mean over the windows, in ticks: what the
    /// clocks disagree without the estimate.
    fn skew(&self, pairs: &BTreeMap<(u32, u32), Sums>, constants: &[i64], grid: &Grid) -> f64 {
        let (windows, offsets) = (grid.count, self.with_steps(grid));
        let pairs: Vec<[usize; 2]> = pairs.keys().map(|&(a, b)| [a as usize, b as usize]).collect();
        let clocks = pairs.iter().flatten().max().map_or(0, |last| last + 1);
        let (mut sum, mut now) = (0.0, vec![0.0; clocks]);
        for window in 0..windows {
            for (clock, now) in now.iter_mut().enumerate() {
                let row = offsets.get(clock).and_then(|row| row.get(window)).copied().unwrap_or(0.0);
                *now = row + constants.get(clock).map_or(0.0, |constant| *constant as f64);
            }
            sum = pairs.iter().fold(sum, |sum, &[a, b]| sum + (now[a] - now[b]).abs());
        }
        sum / windows.max(1) as f64
    }

    /// The lines of a pair, in order of segments, as all of them are in order of pairs.
    fn lines_of(&self, pair: (u32, u32)) -> &[PairLine] {
        let until =
            |end: fn((u32, u32), (u32, u32)) -> bool| self.lines.partition_point(|line| end((line.a, line.b), pair));
        &self.lines[until(|one, other| one < other)..until(|one, other| one <= other)]
    }

    /// How well the clocks of a pair (a < b) are known against each other, in ticks, apart from residuals: half its shortest round trip, which
    /// needs no estimate. Were all of it one way, the offset would be wrong by that much. Of a straight line also its standard error at the
    /// worst place, of a hull the margin if that is wider. None without a round trip.
    fn uncertainty(&self, pair: (u32, u32)) -> Option<f64> {
        let half_trip = *self.observations.shortest_trips.get(&pair)?;
        let lines = self.lines_of(pair).iter();
        Some(match self.method_of_lines() {
            Method::Hull => lines.map(|line| line.deviation.abs()).fold(half_trip, f64::max),
            _ => half_trip + lines.map(|line| line.error).fold(0.0, f64::max),
        })
    }

    /// The uncertainties (by the smaller and the larger clock) along the path from every clock to the reference, added up, in ticks; and how many
    /// pairs that path has. It is the path that the clock was composed along, or the one with the smallest sum. None where no path has messages
    /// in both directions.
    fn paths(&self, clocks: usize, uncertainty: impl Fn((u32, u32)) -> Option<f64>) -> Vec<Option<(f64, u32)>> {
        let all = self.observations.shortest_trips.keys().copied();
        let taken = |(a, b): &(u32, u32)| {
            let towards = |clock: u32| self.towards.get(clock as usize).copied().flatten();
            self.lines.is_empty() || towards(*a) == Some(*b) || towards(*b) == Some(*a)
        };
        let mut neighbours: Vec<Vec<(u32, f64)>> = vec![Vec::new(); clocks];
        for (a, b) in all.filter(taken) {
            let Some(length) = uncertainty((a, b)) else { continue };
            for (from, to) in [(a, b), (b, a)] {
                if let Some(list) = neighbours.get_mut(from as usize) {
                    list.push((to, length));
                }
            }
        }
        let mut best: Vec<Option<(f64, u32)>> = vec![None; clocks];
        // Sums are not negative, so their bits are in order.
        let mut open = BinaryHeap::from([Reverse((0u64, 0, self.reference))]);
        while let Some(Reverse((bits, hops, clock))) = open.pop() {
            let Some(slot) = best.get_mut(clock).filter(|slot| slot.is_none()) else { continue };
            let sum = f64::from_bits(bits);
            *slot = Some((sum, hops));
            for &(next, length) in &neighbours[clock] {
                open.push(Reverse(((sum + length).to_bits(), hops + 1, next as usize)));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_of_an_estimate_that_is_not_in_use_are_said_to_be_its_own() {
        let step = |forward_seconds| ClockStep { at_seconds: 0.25, forward_seconds };
        let node = |first_process, steps| NodeClock {
            first_process,
            reference: false,
            observations: 9,
            drift_ppm: 0.0,
            residual_seconds: 0.0,
            uncertainty_seconds: None,
            hops: None,
            steps,
        };
        let nodes = [node(3, vec![step(0.002)]), node(5, vec![step(-0.001), step(0.1), step(0.1)])];
        let own = "the clock of process 3 was set forward by 2.00 ms at 250 ms";
        let others = "; the clock of process 5 was set back or stood still by 1.00 ms at 250 ms; the clock of process 5 was set forward by 100 ms at 250 ms; 1 jump more";
        assert_eq!(jumps(&nodes, true), format!("; {own}{others}"));
        assert_eq!(jumps(&nodes, false), format!("; by the estimate, which is not in use, {own}{others}"));
        assert_eq!(jumps(&[node(1, Vec::new())], false), "");
    }
}
