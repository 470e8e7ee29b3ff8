//! Direct solution of symmetric, positive definite banded systems: L D Lᵀ, row by row.
//!
//! What ties clocks in a window and neighbouring windows of a clock has a half bandwidth of twice the number of clocks, if unknowns lie window by
//! window. With few clocks that is solved exactly in less time than a few dozen steps of conjugate gradients take.

use clc_trace::vector::widest;
use clc_trace::workers::Workers;

/// A symmetric matrix of which the entries up to `width` right of the diagonal are kept.
#[derive(Debug, Clone)]
pub(super) struct Banded {
    width: usize,
    /// `width + 1` entries per row, the first one on the diagonal, and zeros up to `stride`.
    rows: Vec<f64>,
    stride: usize,
}

/// What two unknowns of each block have in the matrix: the places of their entries in the rows of a block.
#[derive(Debug)]
pub(super) struct PairEntries<'a> {
    /// Entries of the rows of a block.
    block: usize,
    rows: &'a mut [f64],
    own: [Option<usize>; 2],
    joint: Option<usize>,
}

impl PairEntries<'_> {
    /// Adds `weight` to both on the diagonal, and takes it from what joins them.
    #[inline]
    pub(super) fn add(&mut self, block: usize, weight: f64) {
        let rows = &mut self.rows[block * self.block..];
        self.own.iter().flatten().for_each(|own| rows[*own] += weight);
        if let Some(joint) = self.joint {
            rows[joint] -= weight;
        }
    }
}

/// How many entries are worked on at once. Four doubles fill a register of AVX2 ([`widest`]).
const LANES: usize = 4;
/// How many rows of a wide system are eliminated at once: with more of them, factors leave the registers.
const BLOCK: usize = 4;
/// From this half bandwidth on a system is wide.
const NARROW: usize = BLOCK * BLOCK;
/// Unknowns, in widths, from which on a system is worth two halves. Chosen by hand: where a system is too small, a second thread costs more than it
/// saves.
const LARGE: usize = 32;

impl Banded {
    /// All zeros.
    pub(super) fn new(length: usize, width: usize) -> Self {
        let stride = (width + 1).next_multiple_of(LANES);
        Banded { width, rows: vec![0.0; length * stride], stride }
    }

    /// The half bandwidth.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Adds to the entry (i, j) and, being symmetric, (j, i). The two are no farther apart than the width.
    #[inline]
    pub(super) fn add(&mut self, i: usize, j: usize, value: f64) {
        let (low, high) = (i.min(j), i.max(j));
        self.rows[low * self.stride + (high - low)] += value;
    }

    /// The entries of two unknowns, or of one of them, and of what joins them, each in blocks of half the width.
    pub(super) fn pair(&mut self, a: Option<usize>, b: Option<usize>) -> PairEntries<'_> {
        let stride = self.stride;
        let joint = a.zip(b).map(|(a, b)| a.min(b) * stride + a.abs_diff(b));
        let [a, b] = [a, b].map(|own| own.map(|own| own * stride));
        PairEntries { block: self.width / 2 * stride, rows: &mut self.rows, own: [a, b], joint }
    }

    /// Solves for `right`. Where the matrix is not positive definite, as far as rounding goes, the unknown is zero: a poor result, but never a wrong
    /// number.
    ///
    /// Large systems are eliminated from both ends at once, down to the unknowns in the middle that keep the halves apart: by two threads, if
    /// `workers` has them, and with the same bits by one.
    pub(super) fn solve(mut self, right: &mut [f64], workers: Workers) {
        let (length, width, stride) = (right.len(), self.width, self.stride);
        if length < LARGE * (width + 1) {
            self.eliminate(right, length);
            self.substitute(right, length);
            return;
        }
        let front = (length - width) / 2;
        let behind = front + width;
        let back = length - behind;
        let far = self.rows.split_off(behind * stride);
        // What joins the middle to what is behind it belongs to the other half.
        let mut joints = vec![0.0; width * stride];
        for (i, (row, joint)) in
            self.rows[front * stride..].chunks_mut(stride).zip(joints.chunks_mut(stride)).enumerate()
        {
            joint[width - i..].copy_from_slice(&row[width - i..]);
            row[width - i..].fill(0.0);
        }
        let (near, beyond) = right.split_at_mut(behind);
        let turn = || {
            let mut turned = Banded { width, stride, rows: vec![0.0; (back + width) * stride] };
            // The last comes first, and the middle last.
            let rows = joints.chunks(stride).chain(far.chunks(stride)).enumerate();
            for (i, row) in rows {
                let first = back + width - 1 - i;
                row[..=width.min(first)]
                    .iter()
                    .enumerate()
                    .for_each(|(k, entry)| turned.rows[(first - k) * stride + k] = *entry);
            }
            let mut right: Vec<f64> = beyond.iter().rev().copied().chain(std::iter::repeat_n(0.0, width)).collect();
            turned.eliminate(&mut right, back);
            (turned, right)
        };
        let ((), (turned, mut other)) = workers.both(|| self.eliminate(near, front), turn);
        drop(far);

        // The middle, with what both halves say of it.
        let mut middle = Banded { width, stride, rows: self.rows[front * stride..].to_vec() };
        for i in 0..width {
            let mirrored = back + width - 1 - i;
            (0..width - i).for_each(|k| middle.rows[i * stride + k] += turned.rows[(mirrored - k) * stride + k]);
            near[front + i] += other[mirrored];
        }
        middle.eliminate(&mut near[front..], width);
        middle.substitute(&mut near[front..], width);
        other[back..].iter_mut().zip(near[front..].iter().rev()).for_each(|(other, middle)| *other = *middle);

        let behind = || {
            let mut found = other.clone();
            turned.substitute(&mut found, back);
            found
        };
        let ((), found) = workers.both(|| self.substitute(near, front), behind);
        beyond.iter_mut().zip(found[..back].iter().rev()).for_each(|(right, found)| *right = *found);
    }

    /// Eliminates the first `count` unknowns from all rows that are left: these are 1 / D and D Lᵀ then, the others and `right` what is
    /// left of the system.
    fn eliminate(&mut self, right: &mut [f64], count: usize) {
        // Widths are even: a clock is tied to others and to itself two windows on.
        match self.width {
            2 => self.eliminate_narrow::<2, 4>(right, count),
            4 => self.eliminate_narrow::<4, 8>(right, count),
            6 => self.eliminate_narrow::<6, 8>(right, count),
            8 => self.eliminate_narrow::<8, 12>(right, count),
            10 => self.eliminate_narrow::<10, 12>(right, count),
            12 => self.eliminate_narrow::<12, 16>(right, count),
            14 => self.eliminate_narrow::<14, 16>(right, count),
            // So narrow that most of a block would be zeros.
            0..NARROW => widest(
                #[inline(always)]
                || self.eliminate_by::<2>(right, count),
            ),
            _ => widest(
                #[inline(always)]
                || self.eliminate_by::<BLOCK>(right, count),
            ),
        }
    }

    /// [`Banded::eliminate`] of a system whose half bandwidth W and stride S the compiler knows: loops over a row are no loops then. The operations on an
    /// entry are those of [`Banded::eliminate_by`], in the same order.
    fn eliminate_narrow<const W: usize, const S: usize>(&mut self, right: &mut [f64], count: usize) {
        debug_assert!(self.width == W && self.stride == S);
        widest(
            #[inline(always)]
            || {
                let rows = self.rows.as_chunks_mut::<S>().0;
                // A row, with zeros behind it.
                let mut source = [0.0; 2 * NARROW];
                for i in 0..count.min(rows.len()) {
                    let (own, below) = rows[i..].split_at_mut(1);
                    source[..=W].copy_from_slice(&own[0][..=W]);
                    let inverse = usable_inverse(source[0]);
                    own[0][0] = inverse;
                    let known = right[i];
                    let reach = W.min(below.len());
                    for j in 0..reach {
                        let factor = source[j + 1] * inverse;
                        let Some(source) = source[j + 1..].first_chunk::<S>() else { return };
                        let row = &mut below[j];
                        for lane in 0..S {
                            row[lane] -= factor * source[lane];
                        }
                        right[i + 1 + j] -= factor * known;
                    }
                }
            },
        );
    }

    /// [`Banded::eliminate`], B rows at a time: each entry of the rows below is read and written once for all of them. The operations on an entry are
    /// the same, in the same order, for any B.
    #[inline(always)]
    fn eliminate_by<const B: usize>(&mut self, right: &mut [f64], count: usize) {
        let (stride, width, length) = (self.stride, self.width, right.len());
        // The rows of a block, each at its place, with zeros around.
        let span = (stride + B).next_multiple_of(LANES) + LANES;
        let mut sources = vec![0.0; B * span];
        for begin in (0..count).step_by(B) {
            let end = (begin + B).min(count);
            let (mut inverses, mut rights) = ([0.0; B], [0.0; B]);
            sources.fill(0.0);
            for b in 0..end - begin {
                let i = begin + b;
                let row = &mut self.rows[i * stride..][..=width];
                let (before, own) = sources.split_at_mut(b * span);
                for (source, (inverse, known)) in before.chunks_exact(span).zip(inverses.iter().zip(&rights)) {
                    let factor = source[b] * inverse;
                    row.iter_mut().zip(&source[b..]).for_each(|(entry, source)| *entry -= factor * source);
                    right[i] -= factor * known;
                }
                own[b..=b + width].copy_from_slice(row);
                rights[b] = right[i];
                inverses[b] = usable_inverse(row[0]);
                row[0] = inverses[b];
            }
            // What the rows below have in common with these. The last of the block reaches farthest.
            let last = (end + width).min(length);
            for (r, right) in (end..last).zip(&mut right[end..last]) {
                let at = r - begin;
                let factors: [f64; B] = std::array::from_fn(|b| sources[b * span + at] * inverses[b]);
                let reach = (end + width - r).next_multiple_of(LANES).min(stride);
                let row = self.rows[r * stride..][..reach].as_chunks_mut::<LANES>().0;
                let chunks = row.len();
                let sources: [&[[f64; LANES]]; B] =
                    std::array::from_fn(|b| &sources[b * span + at..][..reach].as_chunks::<LANES>().0[..chunks]);
                for (place, entries) in row.iter_mut().enumerate() {
                    let mut left = *entries;
                    for b in 0..B {
                        for lane in 0..LANES {
                            left[lane] -= factors[b] * sources[b][place][lane];
                        }
                    }
                    *entries = left;
                }
                factors.iter().zip(&rights).for_each(|(factor, known)| *right -= factor * known);
            }
        }
    }

    /// The first `count` unknowns, from the last to the first; `right` has those behind them already.
    fn substitute(&self, right: &mut [f64], count: usize) {
        for i in (0..count).rev() {
            let row = &self.rows[i * self.stride..][..=self.width];
            let (own, after) = right[i..].split_at_mut(1);
            let known: f64 = row[1..].iter().zip(after).map(|(entry, x)| entry * *x).sum();
            own[0] = (own[0] - known) * row[0];
        }
    }
}

/// 1 / pivot; zero, with which the unknown becomes zero, where rounding has left nothing to divide by.
fn usable_inverse(pivot: f64) -> f64 {
    match 1.0 / pivot {
        inverse if inverse.is_finite() && inverse > 0.0 => inverse,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZero;

    proptest! {
        #[test]
        fn what_is_solved_satisfies_the_equations(
            width in 1usize..7, values in prop::collection::vec(-1.0f64..1.0, 1..200), wanted in prop::collection::vec(-9.0f64..9.0, 1..400)
        ) {
            let length = wanted.len();
            // Gershgorin: diagonal entries outweigh their rows.
            let entry = |i: usize, j: usize| match i.abs_diff(j) {
                0 => 2.0 * width as f64 + 1.0,
                apart if apart <= width => values[(i.min(j) * 7 + apart) % values.len()],
                _ => 0.0,
            };
            let mut matrix = Banded::new(length, width);
            for i in 0..length {
                (i.saturating_sub(width)..=i).for_each(|j| matrix.add(i, j, entry(i, j)));
            }
            let mut x: Vec<f64> = (0..length).map(|i| (0..length).map(|j| entry(i, j) * wanted[j]).sum()).collect();
            let mut same = x.clone();
            matrix.clone().solve(&mut x, Workers::ONE);
            matrix.solve(&mut same, Workers::new(NonZero::new(2).unwrap()));
            prop_assert_eq!(&x, &same);
            for (found, wanted) in x.iter().zip(&wanted) {
                prop_assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
            }
        }
    }

    #[test]
    fn what_is_not_positive_definite_gives_numbers_all_the_same() {
        let mut matrix = Banded::new(2, 1);
        matrix.add(0, 0, 1.0);
        matrix.add(0, 1, 2.0);
        matrix.add(1, 1, 1.0);
        let mut x = [1.0, 1.0];
        matrix.solve(&mut x, Workers::ONE);
        assert_eq!(x, [1.0, 0.0]);
    }
}
