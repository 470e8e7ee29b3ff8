//! Conjugate gradients for the systems of [`super::solver`] with many clocks, preconditioned by the exact solution per clock.
//!
//! Unknowns lie window by window, all clocks of a window side by side: what is done per clock is then done for
//! several clocks at once, and what joins two clocks stays within a window.

use super::banded::Pentadiagonals;
use clc_trace::vector::widest;

/// Most steps: up to 60 are usual, some hundred where clocks hold each other along a chain or a ring.
const STEPS: usize = 3000;
/// Preconditioned residual that ends them, squared, as a part of what it was at first.
const REDUCTION: f64 = 1e-12;

/// How well a system is solved: what is left of the residual, preconditioned, squared and per unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerance(f64);

impl Tolerance {
    /// A few thousandths of a standard deviation.
    pub(super) const RESULT: Tolerance = Tolerance(1e-7);
    /// A hundredth: enough to find the weights of the next round.
    pub(super) const STEP: Tolerance = Tolerance(1e-4);
}

/// A term weight · (x(j) - x(i))² between two clocks in a window, i < j.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tie {
    pub(super) i: u32,
    pub(super) j: u32,
    pub(super) weight: f64,
}

/// A system, window by window.
#[derive(Debug)]
pub(super) struct Gradients<'a> {
    fixed: &'a [bool],
    clocks: usize,
    windows: usize,
    own: Vec<f64>,
    stiffness: Vec<f64>,
    slopes: Vec<f64>,
    right: Vec<f64>,
    ties: Vec<Tie>,
}

impl<'a> Gradients<'a> {
    /// For so many clocks, with the weights of each unknown, of the second difference around it and of the difference to the window after it; the
    /// right-hand side; and ties between clocks.
    pub(super) fn new(
        fixed: &'a [bool],
        clocks: usize,
        [own, stiffness, slopes, right]: [Vec<f64>; 4],
        ties: Vec<Tie>,
    ) -> Gradients<'a> {
        let windows = own.len() / clocks.max(1);
        let ties = joined(ties, clocks, windows);
        let mut gradients = Gradients { fixed, clocks, windows, own, stiffness, slopes, right, ties };
        let mut right = std::mem::take(&mut gradients.right);
        gradients.clear_fixed(&mut right);
        gradients.right = right;
        gradients
    }

    fn clear_fixed(&self, values: &mut [f64]) {
        for row in values.chunks_mut(self.clocks) {
            row.iter_mut().zip(self.fixed).filter(|(_, fixed)| **fixed).for_each(|(value, _)| *value = 0.0);
        }
    }

    /// result = A x. Differences are taken first: clocks may be years apart, and differ by nanoseconds.
    #[inline(always)]
    fn apply(&self, x: &[f64], result: &mut [f64]) {
        for ((result, x), own) in result.iter_mut().zip(x).zip(&self.own) {
            *result = own * x;
        }
        let wide = self.clocks;
        for window in 1..self.windows {
            let begin = (window - 1) * wide;
            let (before, here) = result[begin..begin + 2 * wide].split_at_mut(wide);
            let (x0, x1) = x[begin..begin + 2 * wide].split_at(wide);
            let slopes = &self.slopes[begin..begin + wide];
            for clock in 0..wide {
                let pull = slopes[clock] * (x1[clock] - x0[clock]);
                before[clock] -= pull;
                here[clock] += pull;
            }
        }
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
            result[i] -= pull;
            result[j] += pull;
        }
        self.clear_fixed(result);
    }

    fn preconditioner(&self) -> Pentadiagonals {
        let wide = self.clocks;
        let mut diagonal = self.own.clone();
        let (mut next, mut far) = (vec![0.0; diagonal.len()], vec![0.0; diagonal.len()]);
        // None at the first and the last window.
        let end = diagonal.len().saturating_sub(wide);
        for (k, &slope) in self.slopes.iter().enumerate().take(end) {
            diagonal[k] += slope;
            diagonal[k + wide] += slope;
            next[k] -= slope;
        }
        for tie in &self.ties {
            diagonal[tie.i as usize] += tie.weight;
            diagonal[tie.j as usize] += tie.weight;
        }
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

    /// The solution, from zero.
    pub(super) fn solve(&self, tolerance: Tolerance) -> Vec<f64> {
        widest(
            #[inline(always)]
            || self.descend(tolerance),
        )
    }

    /// What is left, divided by the part of the matrix that is factored.
    #[inline(always)]
    fn condition(&self, factors: &Pentadiagonals, from: &[f64], to: &mut [f64]) {
        to.copy_from_slice(from);
        factors.solve(to);
        self.clear_fixed(to);
    }

    #[inline(always)]
    fn descend(&self, tolerance: Tolerance) -> Vec<f64> {
        let factors = self.preconditioner();
        let mut residual = self.right.clone();
        let mut x = vec![0.0; residual.len()];
        let mut product = x.clone();
        let mut conditioned = x.clone();
        self.condition(&factors, &residual, &mut conditioned);
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
            self.condition(&factors, &residual, &mut conditioned);
            let next = dot(&residual, &conditioned);
            let keep = next / energy;
            direction.iter_mut().zip(&conditioned).for_each(|(d, c)| *d = c + keep * *d);
            energy = next;
        }
        x
    }
}

/// Window by window, which is the order of memory, and one for each pair of clocks.
fn joined(ties: Vec<Tie>, clocks: usize, windows: usize) -> Vec<Tie> {
    let window = |tie: &Tie| tie.i as usize / clocks.max(1);
    let mut places = vec![0; windows + 1];
    ties.iter().for_each(|tie| places[window(tie) + 1] += 1);
    for at in 1..places.len() {
        places[at] += places[at - 1];
    }
    let mut ordered = ties.clone();
    for tie in ties {
        let place = &mut places[window(&tie)];
        ordered[*place] = tie;
        *place += 1;
    }
    // They mostly come pair by pair.
    if !ordered.is_sorted_by_key(|tie| (tie.i, tie.j)) {
        ordered
            .chunk_by_mut(|one, other| window(one) == window(other))
            .for_each(|ties| ties.sort_by_key(|tie| (tie.i, tie.j)));
    }
    ordered.dedup_by(|other, one| {
        let same = (one.i, one.j) == (other.i, other.j);
        one.weight += if same { other.weight } else { 0.0 };
        same
    });
    ordered
}

#[inline(always)]
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
