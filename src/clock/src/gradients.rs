//! Conjugate gradients for the systems of [`super::solver`] with many clocks, preconditioned by the exact solution per clock.
//!
//! Unknowns lie window by window, all clocks of a window side by side: what is done per clock is then done for
//! several clocks at once, and what joins two clocks stays within a window. Threads take some windows each, and for the solution per clock some clocks each;
//! sums over all unknowns are added up by one of them in the order of memory, so that the bits are the same for any number of threads.

use super::banded::Pentadiagonals;
use clc_trace::vector::widest;
use clc_trace::workers::Workers;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Most steps: up to 60 are usual, some hundred where clocks hold each other along a chain or a ring.
const STEPS: usize = 3000;
/// Preconditioned residual that ends them, squared, as a part of what it was at first. Chosen by hand.
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

/// Unknowns that a thread takes at once, in whole windows: several for each thread, and enough that it does not wait for the next one.
const BLOCK: usize = 8192;
/// Unknowns from which on there is more than one thread: a step takes as long as some exchanges between threads.
const ALONE: usize = 2 * BLOCK;
/// Clocks that are solved side by side.
const GROUP: usize = 16;

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
    /// Where the ties of each window begin, and where the last ones end.
    begins: Vec<usize>,
}

/// Some clocks, with the part of the matrix that is factored.
struct Group {
    clocks: Range<usize>,
    factors: Pentadiagonals,
    values: Vec<f64>,
}

/// Does all jobs: on the threads that it is called from one of, if they are `shared` out.
fn each<J: Send>(shared: bool, jobs: impl Iterator<Item = J>, work: impl Fn(J) + Send + Sync) {
    if shared {
        jobs.collect::<Vec<J>>().into_par_iter().for_each(work);
    } else {
        jobs.for_each(work);
    }
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
        let begin = |window: usize| ties.partition_point(|tie| (tie.i as usize) < window * clocks);
        let begins = (0..=windows).map(begin).collect();
        let mut gradients = Gradients { fixed, clocks, windows, own, stiffness, slopes, right, ties, begins };
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

    /// How many unknowns a block has.
    fn block(&self) -> usize {
        let wide = self.clocks.max(1);
        BLOCK.div_ceil(wide) * wide
    }

    /// The windows of a block.
    fn windows_of(&self, block: usize) -> Range<usize> {
        let long = self.block() / self.clocks.max(1);
        block * long..((block + 1) * long).min(self.windows)
    }

    /// result = A x in some windows. Differences are taken first: clocks may be years apart, and differ by nanoseconds.
    #[inline(always)]
    fn apply(&self, x: &[f64], within: Range<usize>, result: &mut [f64]) {
        let wide = self.clocks;
        let from = within.start * wide;
        for ((result, x), own) in result.iter_mut().zip(&x[from..]).zip(&self.own[from..]) {
            *result = own * x;
        }
        // What joins a window within to one outside is worked out on both sides.
        for window in within.start.max(1)..(within.end + 1).min(self.windows) {
            let begin = (window - 1) * wide;
            let (x0, x1) = x[begin..begin + 2 * wide].split_at(wide);
            let slopes = &self.slopes[begin..begin + wide];
            let pull = |clock: usize| slopes[clock] * (x1[clock] - x0[clock]);
            if window > within.start && window < within.end {
                let (before, here) = result[begin - from..begin - from + 2 * wide].split_at_mut(wide);
                for clock in 0..wide {
                    let pull = pull(clock);
                    before[clock] -= pull;
                    here[clock] += pull;
                }
            } else if window > within.start {
                let before = &mut result[begin - from..begin - from + wide];
                (0..wide).for_each(|clock| before[clock] -= pull(clock));
            } else {
                let here = &mut result[..wide];
                (0..wide).for_each(|clock| here[clock] += pull(clock));
            }
        }
        for window in within.start.max(2) - 1..(within.end + 1).min(self.windows.saturating_sub(1)) {
            let begin = (window - 1) * wide;
            let x = &x[begin..begin + 3 * wide];
            let (x0, x1, x2) = (&x[..wide], &x[wide..2 * wide], &x[2 * wide..]);
            let stiffness = &self.stiffness[begin + wide..begin + 2 * wide];
            let pull = |clock: usize| stiffness[clock] * (x0[clock] - 2.0 * x1[clock] + x2[clock]);
            if window > within.start && window + 1 < within.end {
                let (before, rest) = result[begin - from..begin - from + 3 * wide].split_at_mut(wide);
                let (here, after) = rest.split_at_mut(wide);
                for clock in 0..wide {
                    let pull = pull(clock);
                    before[clock] += pull;
                    here[clock] -= 2.0 * pull;
                    after[clock] += pull;
                }
                continue;
            }
            for (window, factor) in [(window - 1, 1.0), (window, -2.0), (window + 1, 1.0)] {
                if within.contains(&window) {
                    let row = &mut result[window * wide - from..(window + 1) * wide - from];
                    (0..wide).for_each(|clock| row[clock] += factor * pull(clock));
                }
            }
        }
        for tie in &self.ties[self.begins[within.start]..self.begins[within.end]] {
            let (i, j) = (tie.i as usize, tie.j as usize);
            let pull = tie.weight * (x[j] - x[i]);
            result[i - from] -= pull;
            result[j - from] += pull;
        }
        self.clear_fixed(result);
    }

    fn preconditioner(&self) -> Vec<Group> {
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
        let groups = (0..wide).step_by(GROUP).map(|first| first..(first + GROUP).min(wide));
        let group = |clocks: Range<usize>| {
            let of = |all: &[f64]| all.chunks(wide).flat_map(|row| &row[clocks.clone()]).copied().collect::<Vec<f64>>();
            let factors = Pentadiagonals::factor(clocks.len(), &of(&diagonal), &of(&next), &of(&far));
            Group { factors, values: vec![0.0; clocks.len() * self.windows], clocks }
        };
        groups.map(group).collect()
    }

    /// The solution, from zero.
    pub(super) fn solve(&self, tolerance: Tolerance, workers: Workers) -> Vec<f64> {
        let workers = if self.own.len() < ALONE { Workers::ONE } else { workers };
        workers.within(|shared| self.descend(tolerance, shared))
    }

    /// What is left, divided by the part of the matrix that is factored.
    fn condition(&self, shared: bool, groups: &mut [Group], from: &[f64], to: &mut [f64]) {
        let wide = self.clocks;
        each(shared, groups.iter_mut(), |group| {
            let of = |row: usize| &from[row * wide..][group.clocks.clone()];
            let rows = group.values.chunks_mut(group.clocks.len()).enumerate();
            rows.for_each(|(row, values)| values.copy_from_slice(of(row)));
            widest(
                #[inline(always)]
                || group.factors.solve(&mut group.values),
            );
        });
        each(shared, to.chunks_mut(self.block()).enumerate(), |(block, to)| {
            for (row, to) in self.windows_of(block).zip(to.chunks_mut(wide)) {
                for group in &*groups {
                    let many = group.clocks.len();
                    to[group.clocks.clone()].copy_from_slice(&group.values[row * many..(row + 1) * many]);
                }
                self.clear_fixed(to);
            }
        });
    }

    fn descend(&self, tolerance: Tolerance, shared: bool) -> Vec<f64> {
        let mut groups = self.preconditioner();
        let mut residual = self.right.clone();
        let mut x = vec![0.0; residual.len()];
        let mut product = x.clone();
        let mut conditioned = x.clone();
        self.condition(shared, &mut groups, &residual, &mut conditioned);
        let mut direction = conditioned.clone();
        let mut energy = dot(&residual, &conditioned);
        let enough = (energy * REDUCTION).max(x.len() as f64 * tolerance.0);
        let block = self.block();
        for _ in 0..STEPS {
            if energy <= enough || energy <= 0.0 {
                break;
            }
            each(shared, product.chunks_mut(block).enumerate(), |(at, product)| {
                widest(
                    #[inline(always)]
                    || self.apply(&direction, self.windows_of(at), product),
                );
            });
            let curvature = dot(&direction, &product);
            if curvature <= 0.0 || !curvature.is_finite() {
                break;
            }
            let step = energy / curvature;
            let blocks = x.chunks_mut(block).zip(residual.chunks_mut(block));
            each(shared, blocks.zip(direction.chunks(block).zip(product.chunks(block))), |((x, r), (d, p))| {
                x.iter_mut().zip(d).for_each(|(x, d)| *x += step * d);
                r.iter_mut().zip(p).for_each(|(r, p)| *r -= step * p);
            });
            self.condition(shared, &mut groups, &residual, &mut conditioned);
            let next = dot(&residual, &conditioned);
            let keep = next / energy;
            each(shared, direction.chunks_mut(block).zip(conditioned.chunks(block)), |(d, c)| {
                d.iter_mut().zip(c).for_each(|(d, c)| *d = c + keep * *d);
            });
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

fn dot(a: &[f64], b: &[f64]) -> f64 {
    widest(
        #[inline(always)]
        || sum_of_products(a, b),
    )
}

#[inline(always)]
fn sum_of_products(a: &[f64], b: &[f64]) -> f64 {
    // Several sums at once; in this order on every machine.
    let mut sums = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a8.zip(b8) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;

    /// Numbers from 0 to 1 that look random.
    fn number(k: usize) -> f64 {
        (k as f64 * 0.754_877_666_246_692_7).fract()
    }

    #[test]
    fn any_number_of_threads_finds_the_same_solution() {
        let (clocks, windows) = (37, 700);
        let unknowns = clocks * windows;
        assert!(unknowns > ALONE);
        let fixed: Vec<bool> = (0..clocks).map(|clock| clock == 5).collect();
        let of = |from: usize| (0..unknowns).map(|k| number(from + k)).collect::<Vec<f64>>();
        let mut stiffness = of(2);
        (0..windows).for_each(|window| stiffness[window * clocks + 9] *= 100.0);
        // Neighbours of a ring, but not in every window, and some others.
        let tie = |k: usize| {
            let (window, clock) = (k / clocks, k % clocks);
            let other = if number(3 * k) < 0.1 { (clock + 11) % clocks } else { (clock + 1) % clocks };
            let begin = (window * clocks) as u32;
            let (a, b) = (clock.min(other) as u32, clock.max(other) as u32);
            (number(7 * k) < 0.7).then(|| Tie { i: begin + a, j: begin + b, weight: 5.0 * number(k) })
        };
        let ties: Vec<Tie> = (0..unknowns).filter_map(tie).collect();
        let system = Gradients::new(&fixed, clocks, [of(1), stiffness, of(3), of(4)], ties);
        let threads = |count| Workers::new(NonZero::new(count).unwrap());
        let alone = system.solve(Tolerance(1e-16), Workers::ONE);
        for count in [2, 3] {
            assert!(system.solve(Tolerance(1e-16), threads(count)) == alone, "{count} threads");
        }
        // It solves the whole system at once.
        let mut product = vec![0.0; unknowns];
        system.apply(&alone, 0..windows, &mut product);
        let far = product.iter().zip(&system.right).map(|(product, right)| (product - right).abs());
        assert!(far.fold(0.0, f64::max) < 1e-4);
        assert!(alone.iter().skip(5).step_by(clocks).all(|fixed| *fixed == 0.0));
        // Blocks of windows make the same of it.
        let mut parts = vec![0.0; unknowns];
        for within in [0..1, 1..2, 2..4, 4..699, 699..700] {
            system.apply(&alone, within.clone(), &mut parts[within.start * clocks..within.end * clocks]);
        }
        assert!(parts == product);
    }
}
