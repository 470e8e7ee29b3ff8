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
//! middles of both directions ([`super::observations::TwoWay`]) make the start. The system is solved by conjugate gradients,
//! preconditioned by the exact solution per clock (a pentadiagonal system). Everything runs on one rank in a fixed
//! order: the same bits every time.

use super::banded::Pentadiagonal;
use super::observations::{Latencies, Observations, Offsets};

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
/// Most conjugate-gradient steps of a round.
const STEPS: usize = 300;
/// Preconditioned residual that ends a round, squared and per unknown: this part of a standard deviation is left, or of what it
/// was at first.
const TOLERANCE: f64 = 1e-7;
const REDUCTION: f64 = 1e-12;
/// Deviations over this many sigmas lose weight.
const TOLERATED: f64 = 3.0;

/// A term (x(j) - x(i) - target)² · weight; without i: (x(j) - target)² · weight.
#[derive(Debug, Clone, Copy)]
struct Term {
    i: Option<usize>,
    j: usize,
    target: f64,
    weight: f64,
}

impl Problem<'_> {
    /// The estimate, by reweighting from `start`.
    pub fn solve(&self, start: &Offsets) -> Offsets {
        let mut x = self.flat(start);
        self.clear_fixed(&mut x);
        if self.afresh {
            let middles = self.observations.two_way.iter().map(|seen| {
                let (i, j) = (self.place(seen.a, seen.window), self.place(seen.b, seen.window));
                Term { i: Some(i), j, target: seen.middle, weight: 1.0 / (seen.sigma * seen.sigma) }
            });
            let terms: Vec<Term> = middles.chain(self.anchor_terms(None)).collect();
            let stiffness = self.stiffness(&x, true);
            self.conjugate_gradients(&terms, &stiffness, &mut x);
        }
        for &scale in self.rounds {
            let latencies = Latencies::new(self.observations, &x, self.windows);
            let mut terms = self.terms(&x, &latencies, scale);
            terms.extend(self.anchor_terms(Some(&x)));
            let stiffness = self.stiffness(&x, false);
            self.conjugate_gradients(&terms, &stiffness, &mut x);
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

    fn place(&self, clock: u32, window: u32) -> usize {
        clock as usize * self.windows + window as usize
    }

    /// One term per direction, pair and window.
    fn terms(&self, x: &[f64], latencies: &Latencies, scale: f64) -> Vec<Term> {
        const NEGLIGIBLE: f64 = 1e-4;
        let mut terms = Vec::with_capacity(self.observations.one_way.len() + self.anchors.len());
        for seen in &self.observations.one_way {
            let excess = latencies.excess(seen, x, self.windows);
            let trust = latencies.weight(seen, excess, scale * latencies.spread);
            if trust < NEGLIGIBLE {
                continue;
            }
            let (i, j) = (self.place(seen.a, seen.window), self.place(seen.b, seen.window));
            let target = seen.travel(x, self.windows) + seen.least - excess;
            terms.push(Term { i: Some(i), j, target, weight: trust / (latencies.spread * latencies.spread) });
        }
        terms
    }

    /// Recorded offsets, less trusted where they are far off.
    fn anchor_terms<'a>(&'a self, x: Option<&'a [f64]>) -> impl Iterator<Item = Term> + 'a {
        self.anchors.iter().map(move |anchor| {
            let j = self.place(anchor.clock, anchor.window);
            let off = x.and_then(|x| x.get(j)).map_or(0.0, |x| x - anchor.value);
            let trust = cauchy(off, TOLERATED * anchor.sigma);
            Term { i: None, j, target: anchor.value, weight: trust / (anchor.sigma * anchor.sigma) }
        })
    }

    /// Weight of the second difference around each place; 0 where there is none.
    fn stiffness(&self, x: &[f64], first: bool) -> Vec<f64> {
        let mut weights = vec![0.0; x.len()];
        for (row, weights) in x.chunks(self.windows).zip(weights.chunks_mut(self.windows)) {
            for (three, weight) in row.windows(3).zip(weights.iter_mut().skip(1)) {
                if let [a, b, c] = three {
                    let trust = if first { 1.0 } else { cauchy(a - 2.0 * b + c, TOLERATED * self.roughness) };
                    *weight = trust / (self.roughness * self.roughness);
                }
            }
        }
        weights
    }

    /// A weight so small that it only decides what nothing else does: a clock nobody talks to stays as it is.
    fn ridge(&self) -> f64 {
        1e-9 / (self.observations.floor * self.observations.floor)
    }

    /// result = A x.
    fn apply(&self, terms: &[Term], stiffness: &[f64], x: &[f64], result: &mut [f64]) {
        let ridge = self.ridge();
        for (result, x) in result.iter_mut().zip(x) {
            *result = ridge * x;
        }
        let rows = x.chunks(self.windows).zip(stiffness.chunks(self.windows)).zip(result.chunks_mut(self.windows));
        for ((x, stiffness), result) in rows {
            for k in 1..x.len().saturating_sub(1) {
                let pull = stiffness[k] * (x[k - 1] - 2.0 * x[k] + x[k + 1]);
                result[k - 1] += pull;
                result[k] -= 2.0 * pull;
                result[k + 1] += pull;
            }
        }
        for term in terms {
            let pull = term.weight * (x[term.j] - term.i.map_or(0.0, |i| x[i]));
            result[term.j] += pull;
            if let Some(i) = term.i {
                result[i] -= pull;
            }
        }
        self.clear_fixed(result);
    }

    fn clear_fixed(&self, values: &mut [f64]) {
        for (row, _) in values.chunks_mut(self.windows).zip(self.fixed).filter(|(_, fixed)| **fixed) {
            row.fill(0.0);
        }
    }

    fn preconditioner(&self, terms: &[Term], stiffness: &[f64]) -> Vec<Pentadiagonal> {
        let mut rows = vec![[self.ridge(), 0.0, 0.0]; stiffness.len()];
        for term in terms {
            rows[term.j][0] += term.weight;
            if let Some(i) = term.i {
                rows[i][0] += term.weight;
            }
        }
        let clocks = rows.chunks_mut(self.windows).zip(stiffness.chunks(self.windows));
        clocks
            .map(|(rows, stiffness)| {
                for k in 1..rows.len().saturating_sub(1) {
                    let v = stiffness[k];
                    rows[k - 1][0] += v;
                    rows[k - 1][1] -= 2.0 * v;
                    rows[k - 1][2] += v;
                    rows[k][0] += 4.0 * v;
                    rows[k][1] -= 2.0 * v;
                    rows[k + 1][0] += v;
                }
                Pentadiagonal::factor(rows)
            })
            .collect()
    }

    fn conjugate_gradients(&self, terms: &[Term], stiffness: &[f64], x: &mut [f64]) {
        let factors = self.preconditioner(terms, stiffness);
        let precondition = |from: &[f64], to: &mut [f64]| {
            to.copy_from_slice(from);
            for (values, factor) in to.chunks_mut(self.windows).zip(&factors) {
                factor.solve(values);
            }
            self.clear_fixed(to);
        };
        let mut product = vec![0.0; x.len()];
        let mut residual = vec![0.0; x.len()];
        for term in terms {
            residual[term.j] += term.weight * term.target;
            if let Some(i) = term.i {
                residual[i] -= term.weight * term.target;
            }
        }
        self.clear_fixed(&mut residual);
        self.apply(terms, stiffness, x, &mut product);
        residual.iter_mut().zip(&product).for_each(|(r, p)| *r -= p);
        let mut conditioned = vec![0.0; x.len()];
        precondition(&residual, &mut conditioned);
        let mut direction = conditioned.clone();
        let mut energy = dot(&residual, &conditioned);
        let enough = (energy * REDUCTION).max(x.len() as f64 * TOLERANCE);
        for _ in 0..STEPS {
            if energy <= enough || energy <= 0.0 {
                break;
            }
            self.apply(terms, stiffness, &direction, &mut product);
            let curvature = dot(&direction, &product);
            if curvature <= 0.0 || !curvature.is_finite() {
                break;
            }
            let step = energy / curvature;
            x.iter_mut().zip(&direction).for_each(|(x, d)| *x += step * d);
            residual.iter_mut().zip(&product).for_each(|(r, p)| *r -= step * p);
            precondition(&residual, &mut conditioned);
            let next = dot(&residual, &conditioned);
            let keep = next / energy;
            direction.iter_mut().zip(&conditioned).for_each(|(d, c)| *d = c + keep * *d);
            energy = next;
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Weight of a deviation in a Cauchy likelihood of this scale.
fn cauchy(deviation: f64, scale: f64) -> f64 {
    1.0 / (1.0 + (deviation / scale) * (deviation / scale))
}

/// Values of q to choose from, in units of the observations' floor.
const ROUGHNESSES: [f64; 6] = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0];

impl Problem<'_> {
    /// The q of [`Problem::roughness`] that predicts best what it was not told: fitted to every other window, judged by
    /// the windows between. Returns q and the misfit ([`Latencies::misfit`]).
    pub fn choose_roughness(&self, start: &Offsets) -> (f64, f64) {
        let even = self.observations.part(|window| window % 2 == 0);
        let odd = self.observations.part(|window| window % 2 == 1);
        // Something to judge by: with clocks that are far off, latencies are anything.
        let roughly = self.flat(&self.solve(start));
        let latencies = Latencies::new(self.observations, &roughly, self.windows);
        let mut best = (self.roughness, f64::INFINITY);
        for factor in ROUGHNESSES {
            let roughness = factor * self.observations.floor;
            let fitted = Problem { observations: &even, roughness, rounds: LAST_ROUNDS, ..*self }.solve(start);
            let misfit = latencies.misfit(&odd, &self.flat(&fitted), self.windows).unwrap_or(f64::INFINITY);
            if misfit < best.1 {
                best = (roughness, misfit);
            }
        }
        best
    }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
