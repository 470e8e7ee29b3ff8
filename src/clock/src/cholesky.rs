//! Direct solution of symmetric, positive definite banded systems: Cholesky's decomposition, row by row.
//!
//! What ties clocks in a window and neighbouring windows of a clock has a half bandwidth of twice the number of clocks, if unknowns lie window by
//! window. With few clocks that is solved exactly in less time than a few dozen steps of conjugate gradients take.

/// A symmetric matrix of which the entries up to `width` left of the diagonal are kept.
#[derive(Debug)]
pub(super) struct Banded {
    width: usize,
    /// `width + 1` entries per row, the last one on the diagonal.
    rows: Vec<f64>,
}

impl Banded {
    /// All zeros.
    pub(super) fn new(length: usize, width: usize) -> Self {
        Banded { width, rows: vec![0.0; length * (width + 1)] }
    }

    /// Multiplications and additions that a decomposition takes.
    pub(super) fn cost(length: usize, width: usize) -> usize {
        length.saturating_mul(width).saturating_mul(width) / 2
    }

    /// Adds to the entry (i, j) and, being symmetric, (j, i). The two are no farther apart than the width.
    pub(super) fn add(&mut self, i: usize, j: usize, value: f64) {
        let (low, high) = (i.min(j), i.max(j));
        self.rows[high * (self.width + 1) + self.width - (high - low)] += value;
    }

    /// Replaces the matrix by its factor and solves for `right`. False if it is not positive definite, as far as rounding goes.
    pub(super) fn solve(mut self, right: &mut [f64]) -> bool {
        let (width, stride) = (self.width, self.width + 1);
        for i in 0..right.len() {
            let first = i.saturating_sub(width);
            let (done, rest) = self.rows.split_at_mut(i * stride);
            let row = &mut rest[..stride];
            for j in first..i {
                // Entries left of both rows' bands are zero.
                let other = &done[j * stride..(j + 1) * stride];
                let reach = j - first;
                let own = width - (i - first);
                let sum = dot(&row[own..own + reach], &other[width - reach..width]);
                row[own + reach] = (row[own + reach] - sum) / other[width];
            }
            let own = &row[width - (i - first)..width];
            let diagonal = row[width] - dot(own, own);
            if diagonal.is_nan() || diagonal <= 0.0 {
                return false;
            }
            row[width] = diagonal.sqrt();
            let own = &row[width - (i - first)..width];
            right[i] = (right[i] - dot(own, &right[first..i])) / row[width];
        }
        for i in (0..right.len()).rev() {
            let first = i.saturating_sub(width);
            let row = &self.rows[i * stride..(i + 1) * stride];
            right[i] /= row[width];
            let value = right[i];
            for (target, factor) in right[first..i].iter_mut().zip(&row[width - (i - first)..width]) {
                *target -= value * factor;
            }
        }
        true
    }
}

/// In a fixed order on every machine, several sums at once.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a4.zip(b4) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f64>() + rest
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
            prop_assert!(matrix.solve(&mut x));
            for (found, wanted) in x.iter().zip(&wanted) {
                prop_assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
            }
        }
    }

    #[test]
    fn what_is_not_positive_definite_is_refused() {
        let mut matrix = Banded::new(2, 1);
        matrix.add(0, 0, 1.0);
        matrix.add(0, 1, 2.0);
        matrix.add(1, 1, 1.0);
        assert!(!matrix.solve(&mut [1.0, 1.0]));
    }
}
