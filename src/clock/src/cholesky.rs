//! Direct solution of symmetric, positive definite banded systems: L D Lᵀ, row by row.
//!
//! What ties clocks in a window and neighbouring windows of a clock has a half bandwidth of twice the number of clocks, if unknowns lie window by
//! window. With few clocks that is solved exactly in less time than a few dozen steps of conjugate gradients take.

/// A symmetric matrix of which the entries up to `width` right of the diagonal are kept.
#[derive(Debug)]
pub(super) struct Banded {
    width: usize,
    /// `width + 1` entries per row, the first one on the diagonal, and zeros up to `stride`.
    rows: Vec<f64>,
    stride: usize,
}

/// How many entries are worked on at once.
const LANES: usize = 4;

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

    /// Multiplications and additions that a decomposition takes.
    pub(super) fn cost(length: usize, width: usize) -> usize {
        length.saturating_mul(width).saturating_mul(width) / 2
    }

    /// Adds to the entry (i, j) and, being symmetric, (j, i). The two are no farther apart than the width.
    #[inline]
    pub(super) fn add(&mut self, i: usize, j: usize, value: f64) {
        let (low, high) = (i.min(j), i.max(j));
        self.rows[low * self.stride + (high - low)] += value;
    }

    /// Solves for `right`. Where the matrix is not positive definite, as far as rounding goes, the unknown is zero: a poor result, but never a wrong
    /// number.
    pub(super) fn solve(mut self, right: &mut [f64]) {
        let stride = self.stride;
        // The row in work, and zeros behind.
        let mut source = vec![0.0; 2 * stride];
        for i in 0..right.len() {
            let (row, below) = self.rows[i * stride..].split_at_mut(stride);
            let inverse = match 1.0 / row[0] {
                inverse if inverse.is_finite() && inverse > 0.0 => inverse,
                _ => 0.0,
            };
            source[..stride].copy_from_slice(row);
            let (own, after) = right[i..].split_at_mut(1);
            // What the rows below have in common with this one.
            for (k, (other, right)) in (1..=self.width).zip(below.chunks_exact_mut(stride).zip(after)) {
                let factor = source[k] * inverse;
                let others = other[..stride - (k - 1) / LANES * LANES].as_chunks_mut::<LANES>().0;
                let sources = source[k..].as_chunks::<LANES>().0;
                for (entries, sources) in others.iter_mut().zip(sources) {
                    entries.iter_mut().zip(sources).for_each(|(entry, source)| *entry -= factor * source);
                }
                *right -= factor * own[0];
            }
            row[0] = inverse;
        }
        for i in (0..right.len()).rev() {
            let row = &self.rows[i * stride..][..=self.width];
            let (own, after) = right[i..].split_at_mut(1);
            let known: f64 = row[1..].iter().zip(after).map(|(entry, x)| entry * *x).sum();
            own[0] = (own[0] - known) * row[0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_solved_satisfies_the_equations(
            width in 1usize..7, values in prop::collection::vec(-1.0f64..1.0, 1..200), wanted in prop::collection::vec(-9.0f64..9.0, 1..30)
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
            matrix.solve(&mut x);
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
        matrix.solve(&mut x);
        assert_eq!(x, [1.0, 0.0]);
    }
}
