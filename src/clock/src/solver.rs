//! The linear system of [`super::network`]: solved directly with few clocks ([`super::cholesky`]), else by conjugate gradients, preconditioned by
//! the exact solution per clock.
//!
//! Unknowns lie window by window, all clocks of a window side by side: what is done per clock is then done for
//! several clocks at once, and what joins two clocks stays within a window. Everything is in a fixed order: the same bits
//! every time.

use super::banded::Pentadiagonals;
use super::cholesky::Banded;

/// Most steps.
const STEPS: usize = 300;
/// Preconditioned residual that ends them, squared, as a part of what it was at first.
const REDUCTION: f64 = 1e-12;

/// Multiplications and additions up to which a system is solved directly.
const DIRECT: usize = 200_000_000;

/// How well a system is solved: what is left of the residual, preconditioned, squared and per unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerance(f64);

impl Tolerance {
    /// A few thousandths of a standard deviation.
    pub(super) const RESULT: Tolerance = Tolerance(1e-7);
    /// A hundredth: enough to find the weights of the next round.
    pub(super) const STEP: Tolerance = Tolerance(1e-4);
}

/// A term weight · (x(j) - x(i))², whose target is in the right-hand side.
#[derive(Debug, Clone, Copy)]
struct Tie {
    i: u32,
    j: u32,
    weight: f64,
}

/// A sum of squares to be minimised.
#[derive(Debug)]
pub(super) struct System<'a> {
    clocks: usize,
    windows: usize,
    fixed: &'a [bool],
    /// Weight of the square of each unknown by itself.
    own: Vec<f64>,
    /// Weight of the square of the second difference around each unknown.
    stiffness: Vec<f64>,
    ties: Vec<Tie>,
    right: Vec<f64>,
}

impl<'a> System<'a> {
    /// Nothing yet. The unknowns of `fixed` clocks are zero.
    pub(super) fn new(clocks: usize, windows: usize, fixed: &'a [bool]) -> Self {
        let length = clocks * windows;
        let (own, stiffness, right) = (vec![0.0; length], vec![0.0; length], vec![0.0; length]);
        System { clocks, windows, fixed, own, stiffness, ties: Vec::new(), right }
    }

    fn place(&self, clock: usize, window: usize) -> usize {
        window * self.clocks + clock
    }

    /// Adds (x(b) - x(a) - target)² · weight.
    pub(super) fn tie(&mut self, window: u32, [a, b]: [u32; 2], target: f64, weight: f64) {
        let (i, j) = (self.place(a as usize, window as usize), self.place(b as usize, window as usize));
        self.right[i] -= weight * target;
        self.right[j] += weight * target;
        self.ties.push(Tie { i: i as u32, j: j as u32, weight });
    }

    /// Adds (x(clock, window + 1) - x(clock, window) - target)² · weight.
    pub(super) fn lean(&mut self, window: usize, clock: usize, target: f64, weight: f64) {
        let (i, j) = (self.place(clock, window), self.place(clock, window + 1));
        self.right[i] -= weight * target;
        self.right[j] += weight * target;
        self.ties.push(Tie { i: i as u32, j: j as u32, weight });
    }

    /// Adds (x(clock) - target)² · weight.
    pub(super) fn hold(&mut self, window: u32, clock: u32, target: f64, weight: f64) {
        let j = self.place(clock as usize, window as usize);
        self.own[j] += weight;
        self.right[j] += weight * target;
    }

    /// Adds (x(window - 1) - 2 x(window) + x(window + 1))² · weight.
    pub(super) fn stiffen(&mut self, window: usize, clock: usize, weight: f64) {
        let j = self.place(clock, window);
        self.stiffness[j] = weight;
    }

    /// Exchanges rows and columns: from one row per clock to one per window.
    fn turned(&self, x: &[f64]) -> Vec<f64> {
        (0..x.len()).map(|k| x[(k % self.clocks) * self.windows + k / self.clocks]).collect()
    }

    fn clear_fixed(&self, values: &mut [f64]) {
        for row in values.chunks_mut(self.clocks) {
            row.iter_mut().zip(self.fixed).filter(|(_, fixed)| **fixed).for_each(|(value, _)| *value = 0.0);
        }
    }

    /// result = A x.
    fn apply(&self, x: &[f64], result: &mut [f64]) {
        for ((result, x), own) in result.iter_mut().zip(x).zip(&self.own) {
            *result = own * x;
        }
        let wide = self.clocks;
        for window in 1..self.windows.saturating_sub(1) {
            let begin = (window - 1) * wide;
            let (before, rest) = result[begin..begin + 3 * wide].split_at_mut(wide);
            let (here, after) = rest.split_at_mut(wide);
            let x = &x[begin..begin + 3 * wide];
            let (x0, x1, x2) = (&x[..wide], &x[wide..2 * wide], &x[2 * wide..]);
            let stiffness = &self.stiffness[begin + wide..begin + 2 * wide];
            for clock in 0..wide {
                let pull = stiffness[clock] * (x0[clock] - 2.0 * x1[clock] + x2[clock]);
                before[clock] += pull;
                here[clock] -= 2.0 * pull;
                after[clock] += pull;
            }
        }
        for tie in &self.ties {
            let (i, j) = (tie.i as usize, tie.j as usize);
            let pull = tie.weight * (x[j] - x[i]);
            result[j] += pull;
            result[i] -= pull;
        }
        self.clear_fixed(result);
    }

    fn preconditioner(&self) -> Pentadiagonals {
        let wide = self.clocks;
        let mut diagonal = self.own.clone();
        let (mut next, mut far) = (vec![0.0; diagonal.len()], vec![0.0; diagonal.len()]);
        for tie in &self.ties {
            diagonal[tie.i as usize] += tie.weight;
            diagonal[tie.j as usize] += tie.weight;
        }
        // None at the first and the last window.
        let end = diagonal.len().saturating_sub(wide);
        for (k, &v) in self.stiffness.iter().enumerate().take(end).skip(wide) {
            diagonal[k - wide] += v;
            diagonal[k] += 4.0 * v;
            diagonal[k + wide] += v;
            next[k - wide] -= 2.0 * v;
            next[k] -= 2.0 * v;
            far[k - wide] += v;
        }
        Pentadiagonals::factor(wide, &diagonal, &next, &far)
    }

    /// Improves `x`, which has one row per clock.
    pub(super) fn minimise(mut self, x: &mut [f64], tolerance: Tolerance) {
        if x.is_empty() {
            return;
        }
        self.order_ties();
        let mut found = self.turned(x);
        if !self.direct(&mut found) {
            self.conjugate_gradients(&mut found, tolerance);
        }
        for (k, value) in x.iter_mut().enumerate() {
            *value = found[(k % self.windows) * self.clocks + k / self.windows];
        }
    }

    /// Window by window, which is the order of memory; within one as they came.
    fn order_ties(&mut self) {
        let window = |tie: &Tie| tie.i as usize / self.clocks;
        let mut places = vec![0; self.windows + 1];
        self.ties.iter().for_each(|tie| places[window(tie) + 1] += 1);
        for at in 1..places.len() {
            places[at] += places[at - 1];
        }
        let mut ordered = self.ties.clone();
        for tie in &self.ties {
            let place = &mut places[window(tie)];
            ordered[*place] = *tie;
            *place += 1;
        }
        self.ties = ordered;
    }

    /// Solves exactly for what `x` has to be changed by, if that is no more work than it should be.
    fn direct(&self, x: &mut [f64]) -> bool {
        let wide = self.clocks;
        // Fixed clocks are no unknowns.
        let fixed = |clock: usize| self.fixed.get(clock).copied().unwrap_or(false);
        let free: Vec<usize> = (0..wide).filter(|clock| !fixed(*clock)).collect();
        let (narrow, length) = (free.len(), free.len() * self.windows);
        if Banded::cost(length, 2 * narrow) > DIRECT {
            return false;
        }
        let mut places = vec![None; wide];
        free.iter().enumerate().for_each(|(place, clock)| places[*clock] = Some(place));
        let place = |k: usize| places[k % wide].map(|place| k / wide * narrow + place);
        let mut matrix = Banded::new(length, 2 * narrow);
        for tie in &self.ties {
            let (i, j) = (place(tie.i as usize), place(tie.j as usize));
            [i, j].into_iter().flatten().for_each(|k| matrix.add(k, k, tie.weight));
            if let Some((i, j)) = i.zip(j) {
                matrix.add(i, j, -tie.weight);
            }
        }
        for window in 0..self.windows {
            let inner = window >= 1 && window + 1 < self.windows;
            for (place, clock) in free.iter().enumerate() {
                let (k, here) = (self.place(*clock, window), window * narrow + place);
                matrix.add(here, here, self.own[k]);
                let weight = self.stiffness[k];
                if inner && weight != 0.0 {
                    let (before, after) = (here - narrow, here + narrow);
                    let entries = [(before, before, 1.0), (here, here, 4.0), (after, after, 1.0)];
                    let mixed = [(before, here, -2.0), (here, after, -2.0), (before, after, 1.0)];
                    entries.into_iter().chain(mixed).for_each(|(i, j, factor)| matrix.add(i, j, factor * weight));
                }
            }
        }
        let residual = self.residual(x);
        let mut change: Vec<f64> =
            residual.chunks_exact(wide).flat_map(|row| free.iter().map(|clock| row[*clock])).collect();
        if !matrix.solve(&mut change) {
            return false;
        }
        for (row, change) in x.chunks_exact_mut(wide).zip(change.chunks_exact(narrow.max(1))) {
            free.iter().zip(change).for_each(|(clock, change)| row[*clock] += change);
        }
        true
    }

    /// The right-hand side minus A x.
    fn residual(&self, x: &[f64]) -> Vec<f64> {
        let mut residual = self.right.clone();
        self.clear_fixed(&mut residual);
        let mut product = vec![0.0; x.len()];
        self.apply(x, &mut product);
        residual.iter_mut().zip(&product).for_each(|(r, p)| *r -= p);
        residual
    }

    fn conjugate_gradients(&self, x: &mut [f64], tolerance: Tolerance) {
        let factors = self.preconditioner();
        let precondition = |from: &[f64], to: &mut [f64]| {
            to.copy_from_slice(from);
            factors.solve(to);
            self.clear_fixed(to);
        };
        let mut product = vec![0.0; x.len()];
        let mut residual = self.residual(x);
        let mut conditioned = vec![0.0; x.len()];
        precondition(&residual, &mut conditioned);
        let mut direction = conditioned.clone();
        let mut energy = dot(&residual, &conditioned);
        let enough = (energy * REDUCTION).max(x.len() as f64 * tolerance.0);
        for _ in 0..STEPS {
            if energy <= enough || energy <= 0.0 {
                break;
            }
            self.apply(&direction, &mut product);
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
    // Several sums at once; in this order on every machine.
    let mut sums = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a8.zip(b8) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f64>() + rest
}
