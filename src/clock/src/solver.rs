//! The linear system of [`super::network`]: solved directly with few clocks ([`super::cholesky`]), else by conjugate gradients
//! ([`super::gradients`]). Its unknowns are by how much the corrections are to be changed. Everything is in a fixed order: the same bits every time.

use super::cholesky::{Symmetric, solve};
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
    /// What a direct solution needs.
    Direct(DirectTies),
    /// One by one.
    Ties(Vec<Tie>),
}

/// What ties clocks to each other, as sums by window.
#[derive(Debug)]
struct DirectTies {
    /// The place of each clock that is not fixed.
    places: Vec<Option<usize>>,
    /// The clocks at these places.
    free: Vec<usize>,
    /// Weights on the diagonal, a row of windows per place.
    own: Vec<f64>,
    /// By two places, the smaller one first: where their row is among the weights that join clocks. Each pair that is not tied has none.
    rows: Vec<Option<usize>>,
    /// A row of windows per pair.
    joint: Vec<f64>,
}

impl DirectTies {
    fn new(places: Vec<Option<usize>>, windows: usize) -> Self {
        let free: Vec<usize> = places.iter().enumerate().filter_map(|(clock, place)| place.map(|_| clock)).collect();
        let (own, rows) = (vec![0.0; free.len() * windows], vec![None; free.len() * free.len()]);
        DirectTies { places, free, own, rows, joint: Vec::new() }
    }

    /// The rows of two clocks, and of what joins them; empty where one of them is fixed.
    fn of_pair(&mut self, [a, b]: [u32; 2], windows: usize) -> Option<([&mut [f64]; 2], &mut [f64])> {
        let [a, b] = [a, b].map(|clock| self.places[clock as usize]);
        let row = |place: Option<usize>| place.map_or(0..0, |place| place * windows..(place + 1) * windows);
        let own = self.own.get_disjoint_mut([row(a), row(b)]).ok()?;
        let Some((a, b)) = a.zip(b) else { return Some((own, &mut [])) };
        let (joint, count) = (&mut self.joint, self.free.len());
        let begin = *self.rows[a.min(b) * count + a.max(b)].get_or_insert_with(|| {
            joint.resize(joint.len() + windows, 0.0);
            joint.len() - windows
        });
        Some((own, &mut joint[begin..begin + windows]))
    }
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
            ..=FEW => Joint::Direct(DirectTies::new(places, windows)),
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
            Joint::Direct(sums) => {
                let Some(([own_a, own_b], joint)) = sums.of_pair([a, b], self.windows) else { return };
                for (window, miss, weight) in ties {
                    pull(window, miss, weight);
                    for own in [own_a.get_mut(window as usize), own_b.get_mut(window as usize)].into_iter().flatten() {
                        *own += weight;
                    }
                    if let Some(joint) = joint.get_mut(window as usize) {
                        *joint -= weight;
                    }
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
            Joint::Direct(ties) => self.direct(&ties, x, workers),
            Joint::Ties(ties) => {
                let wide = self.clocks();
                let gradients = Gradients::new(
                    self.fixed,
                    wide,
                    [&self.own, &self.stiffness, &self.slopes, &self.right]
                        .map(|rows| turned(rows, wide, self.windows)),
                    ties,
                );
                let change = gradients.solve(tolerance, workers);
                x.iter_mut().zip(turned(&change, self.windows, wide)).for_each(|(x, change)| *x += change);
            }
        }
    }

    fn direct(&self, ties: &DirectTies, x: &mut [f64], workers: Workers) {
        let free = ties.free.len();
        let mut change = vec![0.0; free * self.windows];
        for (place, &clock) in ties.free.iter().enumerate() {
            let right = &self.right[self.place(clock, 0)..self.place(clock + 1, 0)];
            change.iter_mut().skip(place).step_by(free).zip(right).for_each(|(change, right)| *change = *right);
        }
        solve(&DirectMatrix::new(self, ties), 2 * free, &mut change, workers);
        for (place, &clock) in ties.free.iter().enumerate() {
            let row = &mut x[clock * self.windows..(clock + 1) * self.windows];
            row.iter_mut().zip(change.iter().skip(place).step_by(free)).for_each(|(x, change)| *x += change);
        }
    }
}

/// `count` rows of `length` values, column by column. In squares, of which the caches hold both sides.
fn turned(rows: &[f64], count: usize, length: usize) -> Vec<f64> {
    const SQUARE: usize = 16;
    let mut columns = vec![0.0; count * length];
    for row in (0..count).step_by(SQUARE) {
        for column in (0..length).step_by(SQUARE) {
            for i in row..count.min(row + SQUARE) {
                for j in column..length.min(column + SQUARE) {
                    columns[j * count + i] = rows[i * length + j];
                }
            }
        }
    }
    columns
}

/// The matrix of a direct solution: unknowns lie window by window, in each the clocks that are not fixed.
struct DirectMatrix<'a> {
    system: &'a System<'a>,
    ties: &'a DirectTies,
    /// Of each place, those with which it is tied, and where the row of their pair begins: ascending.
    tied: Vec<Vec<(usize, usize)>>,
}

impl<'a> DirectMatrix<'a> {
    fn new(system: &'a System<'a>, ties: &'a DirectTies) -> Self {
        let count = ties.free.len();
        let of_place = |place: usize| {
            let row = |other: usize| Some((other, ties.rows[place.min(other) * count + place.max(other)]?));
            (0..count).filter_map(row).collect()
        };
        DirectMatrix { system, ties, tied: (0..count).map(of_place).collect() }
    }

    /// The window, the place and the place in rows of clocks of an unknown.
    #[inline(always)]
    fn of_row(&self, row: usize) -> (usize, usize, usize) {
        let (window, place) = (row / self.ties.free.len(), row % self.ties.free.len());
        (window, place, self.system.place(self.ties.free[place], window))
    }

    /// The entry on the diagonal: as if those of one window after the other were added.
    #[inline(always)]
    fn diagonal(&self, window: usize, place: usize, at: usize) -> f64 {
        let System { windows, own, stiffness, slopes, .. } = self.system;
        let mut sum = self.ties.own[place * windows + window];
        if window > 0 {
            sum += slopes[at - 1];
            sum += stiffness[at - 1];
        }
        sum += own[at];
        let last = window + 1 == *windows;
        if !last {
            sum += slopes[at];
        }
        sum += 4.0 * stiffness[at];
        if last { sum } else { sum + stiffness[at + 1] }
    }

    /// What joins an unknown to that of the next window, which there is.
    #[inline(always)]
    fn next(&self, at: usize) -> f64 {
        let System { stiffness, slopes, .. } = self.system;
        0.0 - slopes[at] - 2.0 * stiffness[at] - 2.0 * stiffness[at + 1]
    }

    /// What joins it to the one after that, which there is.
    #[inline(always)]
    fn far(&self, at: usize) -> f64 {
        self.system.stiffness[at + 1]
    }
}

impl Symmetric for DirectMatrix<'_> {
    #[inline(always)]
    fn behind(&self, row: usize, mut put: impl FnMut(usize, f64)) {
        let (window, place, at) = self.of_row(row);
        let (free, windows) = (self.ties.free.len(), self.system.windows);
        put(row, self.diagonal(window, place, at));
        for &(other, begin) in self.tied[place].iter().filter(|tied| tied.0 > place) {
            put(row + other - place, self.ties.joint[begin + window]);
        }
        if window + 1 < windows {
            put(row + free, self.next(at));
        }
        if window + 2 < windows {
            put(row + 2 * free, self.far(at));
        }
    }

    #[inline(always)]
    fn before(&self, row: usize, mut put: impl FnMut(usize, f64)) {
        let (window, place, at) = self.of_row(row);
        let free = self.ties.free.len();
        put(row, self.diagonal(window, place, at));
        for &(other, begin) in self.tied[place].iter().filter(|tied| tied.0 < place) {
            put(row + other - place, self.ties.joint[begin + window]);
        }
        if window > 0 {
            put(row - free, self.next(at - 1));
        }
        if window > 1 {
            put(row - 2 * free, self.far(at - 2));
        }
    }
}
