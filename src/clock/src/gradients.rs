//! Conjugate gradients for the systems of [`super::solver`] with many clocks, preconditioned by the exact solution per clock.
//!
//! Unknowns lie window by window, all clocks of a window side by side: what is done per clock is then done for
//! several clocks at once, and what joins two clocks stays within a window.

use super::banded::Pentadiagonals;
use clc_trace::vector::widest;
use clc_trace::workers::{Team, Workers, blocks};
use std::ops::Range;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Most steps: up to 60 are usual, some hundred where clocks hold each other along a chain or a ring.
const STEPS: usize = 3000;
/// Preconditioned residual that ends them, squared, as a part of what it was at first.
const REDUCTION: f64 = 1e-12;
/// Unknowns of the windows that a thread takes at least: with what belongs to them they fit into the nearest cache.
const PART: usize = 4096;
/// Clocks that a thread takes in all windows: two lines of a cache side by side.
const SIDE_BY_SIDE: usize = 16;
/// Unknowns from which on several threads work on a step. Chosen by hand: for fewer, waking threads twice a step costs more than it saves.
const LARGE: usize = 1 << 15;

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
pub(super) struct Gradients {
    /// Of each clock.
    fixed: Vec<bool>,
    clocks: usize,
    windows: usize,
    own: Vec<f64>,
    stiffness: Vec<f64>,
    slopes: Vec<f64>,
    right: Vec<f64>,
    ties: Vec<Tie>,
    /// Where the ties of each window begin, and where the last ones end.
    begins: Vec<usize>,
}

impl Gradients {
    /// For so many clocks, with the weights of each unknown, of the second difference around it and of the difference to the window after it; the
    /// right-hand side; and ties between clocks.
    pub(super) fn new(
        fixed: &[bool],
        clocks: usize,
        [own, stiffness, slopes, mut right]: [Vec<f64>; 4],
        ties: Vec<Tie>,
    ) -> Gradients {
        let windows = own.len() / clocks.max(1);
        let ties = joined(ties, clocks, windows);
        let begin = |window: usize| ties.partition_point(|tie| (tie.i as usize) < window * clocks);
        let begins = (0..=windows).map(begin).collect();
        let fixed: Vec<bool> = (0..clocks).map(|clock| fixed.get(clock).copied().unwrap_or(false)).collect();
        clear_fixed(&fixed, &mut right);
        Gradients { fixed, clocks, windows, own, stiffness, slopes, right, ties, begins }
    }

    /// `products` = A x in the windows of a slab. `x` has two windows more before and behind it. Differences are taken first: clocks may be years apart, and differ by
    /// nanoseconds.
    #[inline(always)]
    fn apply(&self, slab: &Range<usize>, x: &[f64], products: &mut [f64]) {
        let wide = self.clocks;
        let row = |window: usize| window * wide..(window + 1) * wide;
        for window in slab.clone() {
            let at = window - slab.start;
            let product = &mut products[row(at)];
            let (x0, x1, here) = (&x[row(at)], &x[row(at + 1)], &x[row(at + 2)]);
            let (x3, x4) = (&x[row(at + 3)], &x[row(at + 4)]);
            let own = &self.own[row(window)];
            if window > 1 && window + 2 < self.windows {
                let [slope_before, slope] = [window - 1, window].map(|window| &self.slopes[row(window)][..wide]);
                let [before, stiff, after] =
                    [window - 1, window, window + 1].map(|window| &self.stiffness[row(window)][..wide]);
                for k in 0..wide {
                    let mut sum = own[k] * here[k];
                    sum += slope_before[k] * (here[k] - x1[k]);
                    sum -= slope[k] * (x3[k] - here[k]);
                    sum += before[k] * (x0[k] - 2.0 * x1[k] + here[k]);
                    sum -= 2.0 * (stiff[k] * (x1[k] - 2.0 * here[k] + x3[k]));
                    sum += after[k] * (here[k] - 2.0 * x3[k] + x4[k]);
                    product[k] = sum;
                }
            } else {
                self.apply_at_end(window, [x0, x1, here, x3, x4], product);
            }
            self.apply_ties(window, here, product);
            clear_fixed(&self.fixed, product);
        }
    }

    /// What comes before the ties, in a window that has not two others on either side.
    fn apply_at_end(&self, window: usize, [x0, x1, here, x3, x4]: [&[f64]; 5], product: &mut [f64]) {
        let row = |window: usize| window * self.clocks..(window + 1) * self.clocks;
        product.iter_mut().zip(&self.own[row(window)]).zip(here).for_each(|((product, own), x)| *product = own * x);
        let last = window + 1 == self.windows;
        if window > 0 {
            pull(product, &self.slopes[row(window - 1)], [x1, here], 1.0);
        }
        if !last {
            pull(product, &self.slopes[row(window)], [here, x3], -1.0);
        }
        if window > 1 {
            bend(product, &self.stiffness[row(window - 1)], [x0, x1, here], 1.0);
        }
        if window > 0 && !last {
            bend(product, &self.stiffness[row(window)], [x1, here, x3], -2.0);
        }
        if window + 2 < self.windows {
            bend(product, &self.stiffness[row(window + 1)], [here, x3, x4], 1.0);
        }
    }

    /// Adds what ties between the clocks of a window make of `x`.
    #[inline(always)]
    fn apply_ties(&self, window: usize, x: &[f64], product: &mut [f64]) {
        let first = window * self.clocks;
        for tie in &self.ties[self.begins[window]..self.begins[window + 1]] {
            let (i, j) = (tie.i as usize - first, tie.j as usize - first);
            let pull = tie.weight * (x[j] - x[i]);
            product[i] -= pull;
            product[j] += pull;
        }
    }

    /// The matrix of each clock alone, with the weights of its ties: its diagonal and the two beside that.
    fn diagonals(&self) -> [Vec<f64>; 3] {
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
        [diagonal, next, far]
    }

    /// The values of some clocks, a row of them per window.
    fn columns(&self, values: &[f64], clocks: &Range<usize>) -> Vec<f64> {
        values.chunks_exact(self.clocks).flat_map(|row| &row[clocks.clone()]).copied().collect()
    }

    /// The solution, from zero. Steps go forth and back between windows, in each of which clocks are tied, and clocks, of each of which windows are: threads share either. They change no bit.
    pub(super) fn solve(&self, tolerance: Tolerance, workers: Workers) -> Vec<f64> {
        let workers = if self.own.len() < LARGE { Workers::ONE } else { workers };
        workers.together(|team| self.descend(tolerance, team))
    }

    fn descend(&self, tolerance: Tolerance, team: Team) -> Vec<f64> {
        let length = self.own.len();
        let slabs = blocks(std::iter::repeat_n(self.clocks, self.windows), PART);
        let columns = blocks(std::iter::repeat_n(1, self.clocks), SIDE_BY_SIDE);
        let diagonals = self.diagonals();
        let begun = team.map(columns.len(), |part| Columns::new(self, columns[part].clone(), &diagonals));
        drop(diagonals);
        let mut energy: f64 = begun.iter().map(|(_, _, energy)| energy).sum();
        let (parts, conditioned): (Vec<_>, Vec<_>) =
            begun.into_iter().map(|(part, conditioned, _)| (Mutex::new(part), RwLock::new(conditioned))).unzip();
        let empty = || slabs.iter().map(|slab| RwLock::new(vec![0.0; slab.len() * self.clocks])).collect();
        let mut descent = Descent {
            of: self,
            slabs: &slabs,
            columns: &columns,
            conditioned,
            before: empty(),
            directions: empty(),
            products: empty(),
        };
        let enough = (energy * REDUCTION).max(length as f64 * tolerance.0);
        let mut keep = 0.0;
        for _ in 0..STEPS {
            if energy <= enough || energy <= 0.0 {
                break;
            }
            std::mem::swap(&mut descent.before, &mut descent.directions);
            let curvature: f64 = team.map(slabs.len(), |slab| descent.turn(slab, keep)).into_iter().sum();
            if curvature <= 0.0 || !curvature.is_finite() {
                break;
            }
            let step = energy / curvature;
            let go =
                |part: usize| descent.go(part, &mut parts[part].lock().unwrap_or_else(PoisonError::into_inner), step);
            let next: f64 = team.map(columns.len(), go).into_iter().sum();
            keep = next / energy;
            energy = next;
        }
        let mut x = vec![0.0; length];
        for (part, clocks) in parts.into_iter().zip(&columns) {
            let part = part.into_inner().unwrap_or_else(PoisonError::into_inner);
            let rows = x.chunks_exact_mut(self.clocks).zip(part.x.chunks_exact(clocks.len()));
            rows.for_each(|(row, own)| row[clocks.clone()].copy_from_slice(own));
        }
        x
    }
}

/// Some clocks: what is known of them in all windows, a row of them per window.
struct Columns {
    /// Those that are fixed.
    fixed: Vec<bool>,
    factors: Pentadiagonals,
    x: Vec<f64>,
    residual: Vec<f64>,
}

impl Columns {
    /// At the beginning, with the residual divided by the part of the matrix that is factored, and the product of the two.
    fn new(of: &Gradients, clocks: Range<usize>, diagonals: &[Vec<f64>; 3]) -> (Columns, Vec<f64>, f64) {
        widest(
            #[inline(always)]
            || {
                let [diagonal, next, far] = diagonals.each_ref().map(|values| of.columns(values, &clocks));
                let factors = Pentadiagonals::factor(clocks.len(), &diagonal, &next, &far);
                let residual = of.columns(&of.right, &clocks);
                let fixed = of.fixed[clocks].to_vec();
                let columns = Columns { fixed, factors, x: vec![0.0; residual.len()], residual };
                let mut conditioned = columns.residual.clone();
                let energy = columns.condition(&mut conditioned);
                (columns, conditioned, energy)
            },
        )
    }

    /// Divides the residual in `conditioned` by the part of the matrix that is factored; the product of the two.
    #[inline(always)]
    fn condition(&self, conditioned: &mut [f64]) -> f64 {
        self.factors.solve(conditioned);
        clear_fixed(&self.fixed, conditioned);
        dot(&self.residual, conditioned)
    }
}

/// What the steps change that several threads read.
struct Descent<'a> {
    of: &'a Gradients,
    /// The windows of each slab, and the clocks of each of [`Columns`].
    slabs: &'a [Range<usize>],
    columns: &'a [Range<usize>],
    /// The residuals, divided by the part of the matrix that is factored, by [`Columns`].
    conditioned: Vec<RwLock<Vec<f64>>>,
    /// The directions of the step before and of this one, and what the matrix makes of these, by slab.
    before: Vec<RwLock<Vec<f64>>>,
    directions: Vec<RwLock<Vec<f64>>>,
    products: Vec<RwLock<Vec<f64>>>,
}

impl Descent<'_> {
    /// The new direction in the windows of a slab, with so much of the one before, and what the matrix makes of it; the product of the two.
    fn turn(&self, number: usize, keep: f64) -> f64 {
        let (wide, slab) = (self.of.clocks, &self.slabs[number]);
        let conditioned: Vec<_> = self.conditioned.iter().map(read).collect();
        // Two windows on either side belong to others; beyond the ends there is nothing.
        let mut near = vec![0.0; (slab.len() + 4) * wide];
        let (from, to) = (slab.start.saturating_sub(2), (slab.end + 2).min(self.of.windows));
        let place = |window: usize| (window + 2 - slab.start) * wide;
        for (other, before) in self.slabs.iter().zip(&self.before) {
            let windows = other.start.max(from)..other.end.min(to);
            if !windows.is_empty() {
                let own = (windows.start - other.start) * wide..(windows.end - other.start) * wide;
                near[place(windows.start)..place(windows.end)].copy_from_slice(&read(before)[own]);
            }
        }
        let (mut direction, mut product) = (write(&self.directions[number]), write(&self.products[number]));
        widest(
            #[inline(always)]
            || {
                for window in from..to {
                    let row = &mut near[place(window)..place(window) + wide];
                    for (clocks, conditioned) in self.columns.iter().zip(&conditioned) {
                        let some = clocks.len();
                        let (row, own) = (&mut row[clocks.clone()], &conditioned[window * some..(window + 1) * some]);
                        for k in 0..some {
                            row[k] = own[k] + keep * row[k];
                        }
                    }
                }
                direction.copy_from_slice(&near[2 * wide..(slab.len() + 2) * wide]);
                self.of.apply(slab, &near, &mut product);
                dot(&direction, &product)
            },
        )
    }

    /// Goes `step` times the direction with some clocks; the product of what is left of their residual and of that, conditioned.
    fn go(&self, number: usize, part: &mut Columns, step: f64) -> f64 {
        let (wide, clocks) = (self.of.clocks, &self.columns[number]);
        let mut conditioned = write(&self.conditioned[number]);
        widest(
            #[inline(always)]
            || {
                let some = clocks.len();
                for (slab, (direction, product)) in self.slabs.iter().zip(self.directions.iter().zip(&self.products)) {
                    let (direction, product) = (read(direction), read(product));
                    for window in slab.clone() {
                        let (own, begin) = (window * some..(window + 1) * some, (window - slab.start) * wide);
                        let there = begin + clocks.start..begin + clocks.end;
                        let (direction, product) = (&direction[there.clone()], &product[there]);
                        let (x, residual) = (&mut part.x[own.clone()], &mut part.residual[own.clone()]);
                        let conditioned = &mut conditioned[own];
                        for k in 0..some {
                            x[k] += step * direction[k];
                            residual[k] -= step * product[k];
                        }
                        conditioned.copy_from_slice(residual);
                    }
                }
                part.condition(&mut conditioned)
            },
        )
    }
}

fn read(values: &RwLock<Vec<f64>>) -> RwLockReadGuard<'_, Vec<f64>> {
    values.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(values: &RwLock<Vec<f64>>) -> RwLockWriteGuard<'_, Vec<f64>> {
    values.write().unwrap_or_else(PoisonError::into_inner)
}

/// Clears what belongs to fixed clocks, in a row or several.
#[inline(always)]
fn clear_fixed(fixed: &[bool], values: &mut [f64]) {
    for (clock, _) in fixed.iter().enumerate().filter(|(_, fixed)| **fixed) {
        values.iter_mut().skip(clock).step_by(fixed.len()).for_each(|value| *value = 0.0);
    }
}

/// Adds `times` the weighted slope between two windows.
fn pull(product: &mut [f64], slopes: &[f64], [one, other]: [&[f64]; 2], times: f64) {
    for (((product, slope), one), other) in product.iter_mut().zip(slopes).zip(one).zip(other) {
        *product += times * (slope * (other - one));
    }
}

/// Adds `times` the weighted second difference of three windows.
fn bend(product: &mut [f64], stiffness: &[f64], [before, here, after]: [&[f64]; 3], times: f64) {
    let near = before.iter().zip(here).zip(after);
    for ((product, stiffness), ((before, here), after)) in product.iter_mut().zip(stiffness).zip(near) {
        *product += times * (stiffness * (before - 2.0 * here + after));
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
    let ((a8, a_rest), (b8, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for k in 0..a8.len().min(b8.len()) {
        for lane in 0..8 {
            sums[lane] += a8[k][lane] * b8[k][lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZero;

    /// Stiff clocks that are tied along a chain and, with little weight, at random; the first is fixed.
    fn system(clocks: usize, windows: usize, per_window: usize, seed: u64) -> Gradients {
        let mut state = seed | 1;
        let mut random = move || {
            // Xorshift.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let length = clocks * windows;
        let mut values = |scale: f64| -> Vec<f64> { (0..length).map(|_| scale * random()).collect() };
        let [own, mut stiffness, mut slopes, right] = [values(1e-6), values(2.0), values(0.1), values(1.0)];
        stiffness[..clocks].fill(0.0);
        stiffness[length - clocks..].fill(0.0);
        slopes[length - clocks..].fill(0.0);
        let mut ties = Vec::new();
        for window in 0..windows {
            let first = (window * clocks) as u32;
            for clock in 1..clocks as u32 {
                ties.push(Tie { i: first + clock - 1, j: first + clock, weight: 0.5 + random() });
            }
            for _ in 0..per_window {
                let [a, b] = [0; 2].map(|_| (random() * clocks as f64) as u32);
                if a != b {
                    ties.push(Tie { i: first + a.min(b), j: first + a.max(b), weight: 0.1 * random() });
                }
            }
        }
        Gradients::new(&[true], clocks, [own, stiffness, slopes, right], ties)
    }

    /// The matrix times `x`, term by term.
    fn product(of: &Gradients, x: &[f64]) -> Vec<f64> {
        let wide = of.clocks;
        let mut product: Vec<f64> = of.own.iter().zip(x).map(|(own, x)| own * x).collect();
        for k in 0..x.len().saturating_sub(wide) {
            let pull = of.slopes[k] * (x[k + wide] - x[k]);
            product[k] -= pull;
            product[k + wide] += pull;
        }
        for k in wide..x.len().saturating_sub(wide) {
            let pull = of.stiffness[k] * (x[k - wide] - 2.0 * x[k] + x[k + wide]);
            product[k - wide] += pull;
            product[k] -= 2.0 * pull;
            product[k + wide] += pull;
        }
        for tie in &of.ties {
            let (i, j) = (tie.i as usize, tie.j as usize);
            let pull = tie.weight * (x[j] - x[i]);
            product[i] -= pull;
            product[j] += pull;
        }
        product
    }

    /// As exactly as it gets.
    const EXACT: Tolerance = Tolerance(0.0);

    fn assert_solved(of: &Gradients, x: &[f64]) {
        for (k, (product, right)) in product(of, x).iter().zip(&of.right).enumerate() {
            match of.fixed[k % of.clocks] {
                true => assert_eq!(x[k], 0.0),
                false => assert!((product - right).abs() < 1e-4, "{k}: {product} instead of {right}"),
            }
        }
    }

    #[test]
    fn large_systems_have_the_same_solution_with_any_number_of_threads() {
        // Several slabs and columns, of different widths.
        let system = system(70, LARGE / 70 + 1, 100, 7);
        let x = system.solve(EXACT, Workers::ONE);
        assert_solved(&system, &x);
        for threads in [2, 3] {
            let workers = Workers::new(NonZero::new(threads).unwrap());
            assert!(x == system.solve(EXACT, workers), "{threads} threads");
        }
    }

    proptest! {
        #[test]
        fn small_systems_are_solved(clocks in 2usize..40, windows in 1usize..8, ties in 0usize..30, seed in any::<u64>()) {
            let system = system(clocks, windows, ties, seed);
            assert_solved(&system, &system.solve(EXACT, Workers::ONE));
        }
    }
}
