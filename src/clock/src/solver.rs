//! The linear system of [`super::network`]: solved directly with few clocks ([`super::cholesky`]), else by conjugate gradients
//! ([`super::gradients`]). Its unknowns are by how much the corrections are to be changed. Everything is in a fixed order: the same bits every time.

use super::cholesky::Banded;
pub(super) use super::gradients::Tolerance;
use super::gradients::{Gradients, Tie};
use clc_trace::workers::Workers;

/// Most unknown clocks with which a system is solved directly: the cost of an unknown grows with the square of their number, that of a step of conjugate
/// gradients hardly does. Measured with rings: about equal with 12 clocks, conjugate gradients 2 times as fast with 32, 3 with 64. But where clocks are hardly
/// held (a ring of 24 with messages one way), those stop microseconds away from what is solved exactly.
const FEW: usize = 32;

/// A sum of squares to be minimised, of the changes d(clock, window) of all corrections. Those of fixed clocks are zero.
#[derive(Debug)]
pub(super) struct System<'a> {
    windows: usize,
    fixed: &'a [bool],
    /// Weight of the square of each unknown, a row per clock, as all that follows.
    own: Vec<f64>,
    /// Weight of the square of the second difference around each unknown.
    stiffness: Vec<f64>,
    /// Weight of the square of the difference to the next window.
    slopes: Vec<f64>,
    right: Vec<f64>,
    /// What joins two clocks.
    joint: Joint,
}

#[derive(Debug)]
enum Joint {
    /// The matrix, and the place of each clock that is not fixed.
    Direct(Banded, Vec<Option<usize>>),
    /// One by one.
    Ties(Vec<Tie>),
}

impl<'a> System<'a> {
    /// Nothing yet.
    pub(super) fn new(clocks: usize, windows: usize, fixed: &'a [bool]) -> Self {
        // Fixed clocks are no unknowns.
        let is_fixed = |clock: usize| fixed.get(clock).copied().unwrap_or(false);
        let mut free = 0;
        let mut places: Vec<Option<usize>> = Vec::with_capacity(clocks);
        for clock in 0..clocks {
            places.push((!is_fixed(clock)).then_some(free));
            free += usize::from(!is_fixed(clock));
        }
        let joint = match free {
            ..=FEW => Joint::Direct(Banded::new(free * windows, 2 * free), places),
            _ => Joint::Ties(Vec::new()),
        };
        let [own, stiffness, slopes, right] = [0; 4].map(|_| vec![0.0; clocks * windows]);
        System { windows, fixed, own, stiffness, slopes, right, joint }
    }

    fn clocks(&self) -> usize {
        self.own.len() / self.windows.max(1)
    }

    fn place(&self, clock: usize, window: usize) -> usize {
        clock * self.windows + window
    }

    /// Adds (d(b) - d(a) - miss)² · weight.
    pub(super) fn tie(&mut self, window: u32, pair: [u32; 2], miss: f64, weight: f64) {
        self.tie_all(pair, std::iter::once((window, miss, weight)));
    }

    /// The same for several windows of two clocks, given as window, miss and weight.
    #[inline]
    pub(super) fn tie_all(&mut self, [a, b]: [u32; 2], ties: impl Iterator<Item = (u32, f64, f64)>) {
        let clocks = self.clocks();
        let row = |clock: u32| clock as usize * self.windows..(clock as usize + 1) * self.windows;
        let (a_row, b_row) = (row(a), row(b));
        let Ok([right_a, right_b]) = self.right.get_disjoint_mut([a_row, b_row]) else { return };
        let mut pull = |window: u32, miss: f64, weight: f64| {
            right_a[window as usize] -= weight * miss;
            right_b[window as usize] += weight * miss;
        };
        match &mut self.joint {
            Joint::Direct(matrix, places) => {
                let mut of_pair = matrix.pair(places[a as usize], places[b as usize]);
                for (window, miss, weight) in ties {
                    pull(window, miss, weight);
                    of_pair.add(window as usize, weight);
                }
            }
            Joint::Ties(all) => all.extend(ties.map(|(window, miss, weight)| {
                pull(window, miss, weight);
                let begin = window * clocks as u32;
                Tie { i: begin + a.min(b), j: begin + a.max(b), weight }
            })),
        }
    }

    /// Adds (d(clock, window + 1) - d(clock, window) - miss)² · weight.
    pub(super) fn lean(&mut self, window: usize, clock: usize, miss: f64, weight: f64) {
        let i = self.place(clock, window);
        self.right[i] -= weight * miss;
        self.right[i + 1] += weight * miss;
        self.slopes[i] += weight;
    }

    /// Adds (d(clock, window) - miss)² · weight.
    pub(super) fn hold(&mut self, window: u32, clock: u32, miss: f64, weight: f64) {
        let j = self.place(clock as usize, window as usize);
        self.own[j] += weight;
        self.right[j] += weight * miss;
    }

    /// Adds d² · weight for every unknown.
    pub(super) fn hold_all(&mut self, weight: f64) {
        self.own.iter_mut().for_each(|own| *own += weight);
    }

    /// Adds (d(window - 1) - 2 d(window) + d(window + 1) - miss)² · weight.
    pub(super) fn stiffen(&mut self, window: usize, clock: usize, miss: f64, weight: f64) {
        let j = self.place(clock, window);
        self.stiffness[j] = weight;
        self.right[j - 1] += weight * miss;
        self.right[j] -= 2.0 * weight * miss;
        self.right[j + 1] += weight * miss;
    }

    /// Changes `x`, which has one row per clock, by the solution.
    pub(super) fn minimise(mut self, x: &mut [f64], tolerance: Tolerance, workers: Workers) {
        if x.is_empty() {
            return;
        }
        match std::mem::replace(&mut self.joint, Joint::Ties(Vec::new())) {
            Joint::Direct(matrix, places) => self.direct(matrix, &places, x, workers),
            Joint::Ties(ties) => {
                let wide = self.clocks();
                let turned = |rows: &[f64]| -> Vec<f64> {
                    (0..rows.len()).map(|k| rows[(k % wide) * self.windows + k / wide]).collect()
                };
                let gradients = Gradients::new(
                    self.fixed,
                    wide,
                    [&self.own, &self.stiffness, &self.slopes, &self.right].map(|rows| turned(rows)),
                    ties,
                );
                let change = gradients.solve(tolerance);
                for (k, value) in x.iter_mut().enumerate() {
                    *value += change[(k % self.windows) * wide + k / self.windows];
                }
            }
        }
    }

    fn direct(&self, mut matrix: Banded, places: &[Option<usize>], x: &mut [f64], workers: Workers) {
        let narrow = matrix.width() / 2;
        let mut change = vec![0.0; narrow * self.windows];
        let free = || places.iter().enumerate().filter_map(|(clock, place)| Some((clock, (*place)?)));
        for (clock, place) in free() {
            for window in 0..self.windows {
                let (k, here) = (self.place(clock, window), window * narrow + place);
                change[here] = self.right[k];
                matrix.add(here, here, self.own[k]);
                if window + 1 < self.windows {
                    let slope = self.slopes[k];
                    matrix.add(here, here, slope);
                    matrix.add(here + narrow, here + narrow, slope);
                    matrix.add(here, here + narrow, -slope);
                }
                let weight = self.stiffness[k];
                if weight != 0.0 {
                    let (before, after) = (here - narrow, here + narrow);
                    matrix.add(before, before, weight);
                    matrix.add(here, here, 4.0 * weight);
                    matrix.add(after, after, weight);
                    matrix.add(before, here, -2.0 * weight);
                    matrix.add(here, after, -2.0 * weight);
                    matrix.add(before, after, weight);
                }
            }
        }
        matrix.solve(&mut change, workers);
        for (clock, place) in free() {
            let row = &mut x[clock * self.windows..(clock + 1) * self.windows];
            row.iter_mut().zip(change.iter().skip(place).step_by(narrow)).for_each(|(x, change)| *x += change);
        }
    }
}
