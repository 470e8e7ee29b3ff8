//! One clock per node, continuous in time, from everything that was observed: weighted least squares over the graph of clocks.
//!
//! Unknown are the corrections x(n, w) of clock n at the centre of window w. Minimised is
//!
//! ```text
//!   Σ ((x(b,w) - x(a,w) - least - latency(a,b)) / spread)²   quickest message of each direction, pair and window
//! + Σ ((x(n,w) - value) / sigma)²                            recorded offsets
//! + Σ (x(n,w-1) - 2 x(n,w) + x(n,w+1))² / q²                 the frequency changes slowly
//! ```
//!
//! Fixed clocks, the reference above all, are not corrected. It is done by reweighting a few times, with the clocks of the time before: messages that
//! were delayed lose their weight, those that would have been too quick keep it; smoothness and recorded offsets count
//! with Cauchy weights, so that a clock may bend sharply where messages show that it did. Where nothing is known yet, the
//! middles of both directions ([`super::observations::TwoWay`]) make the start. Everything runs on one rank in a fixed order: the
//! same bits every time (`presync/solver.rs`).

use super::observations::{Latencies, Observations, Offsets};
use super::solver::{System, Tolerance};

/// A recorded offset: the correction of a clock, known from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// Clock.
    pub clock: u32,
    /// Window.
    pub window: u32,
    /// Its correction, in ticks.
    pub value: f64,
    /// Standard deviation.
    pub sigma: f64,
}

/// What to estimate from.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Number of clocks.
    pub clocks: usize,
    /// Number of windows.
    pub windows: usize,
    /// Clocks that are not corrected: the reference, and others that nothing better is known of than what was recorded.
    pub fixed: &'a [bool],
    /// Messages.
    pub observations: &'a Observations,
    /// Recorded offsets.
    pub anchors: &'a [Anchor],
    /// q: standard deviation of the second difference of a clock's correction, in ticks.
    pub roughness: f64,
    /// Nothing is known yet: begin with the middles of both directions.
    pub afresh: bool,
    /// [`ROUNDS`] or [`LAST_ROUNDS`].
    pub rounds: &'a [f64],
}

/// Rounds of reweighting: how many spreads a message may be delayed and still count about half. From clocks of a coarser level,
/// and from clocks that are nearly right.
pub const ROUNDS: &[f64] = &[8.0, 4.0, 2.0, 1.0];
/// See [`ROUNDS`].
pub const LAST_ROUNDS: &[f64] = &[1.0, 1.0];
/// See [`ROUNDS`]: enough to tell latencies.
const ROUGH_ROUNDS: &[f64] = &[8.0, 1.0];
/// Most solutions of the start, and the part of the way that one leaves.
const LEAPS: usize = 5;
const RELATIVE: f64 = 1e-6;
/// Deviations over this many sigmas lose weight.
const TOLERATED: f64 = 3.0;

impl Problem<'_> {
    /// The estimate, by reweighting from `start`.
    pub fn solve(&self, start: &Offsets) -> Offsets {
        self.solve_to(Tolerance::RESULT, start)
    }

    fn solve_to(&self, tolerance: Tolerance, start: &Offsets) -> Offsets {
        let mut x = self.flat(start);
        self.clear_fixed(&mut x);
        if self.afresh {
            // A solution has an accuracy, relative to how far it is away: clocks that are decades off are found step by step.
            for _ in 0..LEAPS {
                let before = x.clone();
                let mut system = self.system(&x);
                for seen in &self.observations.two_way {
                    system.tie(seen.window, [seen.a, seen.b], seen.middle, 1.0 / (seen.sigma * seen.sigma));
                }
                self.hold_anchors(&mut system, None);
                self.stiffen(&mut system, &x, true);
                system.minimise(&mut x, Tolerance::RESULT);
                let leap = x.iter().zip(&before).map(|(x, before)| (x - before).abs()).fold(0.0, f64::max);
                if leap * RELATIVE <= self.observations.floor {
                    break;
                }
            }
        }
        for (round, &scale) in self.rounds.iter().enumerate() {
            let last = round + 1 == self.rounds.len();
            let latencies = Latencies::new(self.observations, &x, self.windows);
            let mut system = self.system(&x);
            self.tie(&mut system, &x, &latencies, scale);
            self.hold_anchors(&mut system, Some(&x));
            self.stiffen(&mut system, &x, false);
            system.minimise(&mut x, if last { tolerance } else { Tolerance::STEP });
        }
        x.chunks(self.windows.max(1)).map(<[f64]>::to_vec).collect()
    }

    /// One row after the other, zero where nothing is given.
    pub fn flat(&self, offsets: &Offsets) -> Vec<f64> {
        let mut x = Vec::with_capacity(self.clocks * self.windows);
        for clock in 0..self.clocks {
            for window in 0..self.windows {
                x.push(offsets.get(clock).and_then(|row| row.get(window)).copied().unwrap_or(0.0));
            }
        }
        x
    }

    /// Nothing yet, but a weight so small that it only decides what nothing else does: a clock nobody talks to stays where it is in `x`.
    fn system(&self, x: &[f64]) -> System<'_> {
        let ridge = 1e-9 / (self.observations.floor * self.observations.floor);
        let mut system = System::new(self.clocks, self.windows, self.fixed);
        for (k, &x) in x.iter().enumerate() {
            system.hold((k % self.windows) as u32, (k / self.windows) as u32, x, ridge);
        }
        system
    }

    /// One term per direction, pair and window.
    fn tie(&self, system: &mut System<'_>, x: &[f64], latencies: &Latencies, scale: f64) {
        const NEGLIGIBLE: f64 = 1e-4;
        for (pair, group) in self.observations.directions() {
            let direction = latencies.direction(pair);
            for seen in group {
                let excess = direction.excess(seen, x, self.windows);
                let trust = direction.weight(excess, scale * latencies.spread);
                if trust >= NEGLIGIBLE {
                    let target = seen.travel(x, self.windows) + seen.least - excess;
                    system.tie(seen.window, [seen.a, seen.b], target, trust / (latencies.spread * latencies.spread));
                }
            }
        }
    }

    /// Recorded offsets, less trusted where they are far off.
    fn hold_anchors(&self, system: &mut System<'_>, x: Option<&[f64]>) {
        for anchor in self.anchors {
            let at = anchor.clock as usize * self.windows + anchor.window as usize;
            let off = x.and_then(|x| x.get(at)).map_or(0.0, |x| x - anchor.value);
            let trust = cauchy(off, TOLERATED * anchor.sigma);
            system.hold(anchor.window, anchor.clock, anchor.value, trust / (anchor.sigma * anchor.sigma));
        }
    }

    /// Second differences.
    fn stiffen(&self, system: &mut System<'_>, x: &[f64], first: bool) {
        for (clock, row) in x.chunks(self.windows).enumerate() {
            for (before, three) in row.windows(3).enumerate() {
                if let [a, b, c] = three {
                    let trust = if first { 1.0 } else { cauchy(a - 2.0 * b + c, TOLERATED * self.roughness) };
                    system.stiffen(before + 1, clock, trust / (self.roughness * self.roughness));
                }
            }
        }
    }

    fn clear_fixed(&self, values: &mut [f64]) {
        for (row, _) in values.chunks_mut(self.windows).zip(self.fixed).filter(|(_, fixed)| **fixed) {
            row.fill(0.0);
        }
    }
}

/// Weight of a deviation in a Cauchy likelihood of this scale.
fn cauchy(deviation: f64, scale: f64) -> f64 {
    1.0 / (1.0 + (deviation / scale) * (deviation / scale))
}

/// Values of q to choose from, in units of the observations' floor, and the first to be tried.
const ROUGHNESSES: [f64; 6] = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0];
const FIRST_TRIED: usize = 3;

impl Problem<'_> {
    /// The q of [`Problem::roughness`] that predicts best what it was not told: fitted to every other window, judged by
    /// the windows between ([`Latencies::misfit`]).
    pub fn choose_roughness(&self, start: &Offsets) -> f64 {
        let even = self.observations.part(|window| window % 2 == 0);
        let odd = self.observations.part(|window| window % 2 == 1);
        // Something to judge by: with clocks that are far off, latencies are anything.
        let roughly = Problem { rounds: ROUGH_ROUNDS, ..*self }.solve_to(Tolerance::STEP, start);
        let latencies = Latencies::new(self.observations, &self.flat(&roughly), self.windows);
        let misfit = |choice: usize| {
            let roughness = ROUGHNESSES[choice] * self.observations.floor;
            let fitted = Problem { observations: &even, roughness, rounds: LAST_ROUNDS, ..*self }
                .solve_to(Tolerance::STEP, start);
            latencies.misfit(&odd, &self.flat(&fitted), self.windows).unwrap_or(f64::INFINITY)
        };
        ROUGHNESSES[valley(ROUGHNESSES.len(), FIRST_TRIED, misfit)] * self.observations.floor
    }
}

/// Where a function of 0 to `count - 1` is least that falls towards one or two places: from `first` downhill in both directions. Of equal
/// places the first.
fn valley(count: usize, first: usize, height: impl Fn(usize) -> f64) -> usize {
    let middle = height(first);
    let downhill = |places: &mut dyn Iterator<Item = usize>| {
        let mut least = (middle, first);
        for place in places {
            let here = height(place);
            if here > least.0 {
                break;
            }
            least = (here, place);
        }
        least
    };
    let (below, above) = (downhill(&mut (0..first).rev()), downhill(&mut (first + 1..count)));
    if above.0 < below.0 { above.1 } else { below.1 }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
