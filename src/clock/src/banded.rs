//! Symmetric positive definite systems with two diagonals on either side: L D Lᵀ in linear time, many of one size at once.
//!
//! The k-th rows of all systems lie side by side, so that the processor can work on several of them at a time: each
//! step depends on the one before within a system, but on no other system.

/// Factored matrices.
#[derive(Debug, Clone)]
pub(super) struct Pentadiagonals {
    systems: usize,
    /// 1 / D, row by row.
    inverse: Vec<f64>,
    /// First and second diagonal below the unit diagonal of L, at the row of D that they were divided by.
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Pentadiagonals {
    /// Factors `systems` matrices with these entries (k, k), (k, k+1) and (k, k+2), row by row. Pivots that rounding has made useless
    /// are replaced by one, so that an indefinite matrix gives a poor result but never a wrong number.
    pub(super) fn factor(systems: usize, diagonal: &[f64], next: &[f64], far: &[f64]) -> Self {
        let length = diagonal.len();
        let (mut first, mut second, mut inverse) = (vec![0.0; length], vec![0.0; length], vec![0.0; length]);
        let mut pivots = vec![0.0; length];
        for k in 0..length {
            // What the two rows before take from this one.
            let (mut here, mut aside) = (0.0, 0.0);
            if let Some(one) = k.checked_sub(systems) {
                here += first[one] * first[one] * pivots[one];
                aside = first[one] * second[one] * pivots[one];
            }
            if let Some(two) = k.checked_sub(2 * systems) {
                here += second[two] * second[two] * pivots[two];
            }
            let pivot = diagonal[k] - here;
            let pivot = if pivot > 0.0 && pivot.is_finite() { pivot } else { 1.0 };
            pivots[k] = pivot;
            inverse[k] = 1.0 / pivot;
            first[k] = (next[k] - aside) / pivot;
            second[k] = far[k] / pivot;
        }
        Pentadiagonals { systems, inverse, first, second }
    }

    /// Solves in place.
    #[inline(always)]
    pub(super) fn solve(&self, values: &mut [f64]) {
        // Few systems: a row fits into registers. The same operations in the same order.
        match self.systems {
            0 => {}
            1 => self.solve_few::<1>(values),
            2 => self.solve_few::<2>(values),
            3 => self.solve_few::<3>(values),
            4 => self.solve_few::<4>(values),
            6 => self.solve_few::<6>(values),
            8 => self.solve_few::<8>(values),
            16 => self.solve_few::<16>(values),
            wide => self.solve_many(wide, values),
        }
    }

    /// [`Pentadiagonals::solve`] for N systems.
    #[inline(always)]
    fn solve_few<const N: usize>(&self, values: &mut [f64]) {
        let rows = values.as_chunks_mut::<N>().0;
        let [inverse, first, second] = [&self.inverse, &self.first, &self.second].map(|all| all.as_chunks::<N>().0);
        let (mut one, mut two) = ([0.0; N], [0.0; N]);
        for (row, here) in rows.iter_mut().enumerate() {
            if row > 0 {
                subtract(here, &first[row - 1], &one);
            }
            if row > 1 {
                subtract(here, &second[row - 2], &two);
            }
            (one, two) = (*here, one);
        }
        let count = rows.len();
        for (row, here) in rows.iter_mut().enumerate().rev() {
            for k in 0..N {
                here[k] *= inverse[row][k];
            }
            if row + 1 < count {
                subtract(here, &first[row], &one);
            }
            if row + 2 < count {
                subtract(here, &second[row], &two);
            }
            (one, two) = (*here, one);
        }
    }

    /// [`Pentadiagonals::solve`] for any number of systems.
    #[inline(always)]
    fn solve_many(&self, wide: usize, values: &mut [f64]) {
        let rows = values.len() / wide;
        for row in 1..rows {
            let (before, here) = values.split_at_mut(row * wide);
            let one = before.len() - wide;
            subtract(&mut here[..wide], &self.first[one..one + wide], &before[one..]);
            if let Some(two) = one.checked_sub(wide) {
                subtract(&mut here[..wide], &self.second[two..two + wide], &before[two..one]);
            }
        }
        for row in (0..rows).rev() {
            let (here, after) = values[row * wide..].split_at_mut(wide);
            let place = row * wide..(row + 1) * wide;
            here.iter_mut().zip(&self.inverse[place.clone()]).for_each(|(value, inverse)| *value *= inverse);
            if row + 1 < rows {
                subtract(here, &self.first[place.clone()], &after[..wide]);
            }
            if row + 2 < rows {
                subtract(here, &self.second[place], &after[wide..2 * wide]);
            }
        }
    }
}

/// values -= factors · others, element by element.
#[inline(always)]
fn subtract(values: &mut [f64], factors: &[f64], others: &[f64]) {
    // No chain of iterators: it may end up as a function of its own, without the instructions of [`clc_trace::vector::widest`].
    let wide = values.len().min(factors.len()).min(others.len());
    let (values, factors, others) = (&mut values[..wide], &factors[..wide], &others[..wide]);
    for k in 0..wide {
        values[k] -= factors[k] * others[k];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_solutions_solve(
            rows in prop::collection::vec((0.1f64..10.0, -3.0f64..3.0, -3.0f64..3.0, -9.0f64..9.0), 1..60), systems in 1usize..10
        ) {
            let n = rows.len() / systems;
            let rows = &rows[..n * systems];
            // Diagonally dominant, hence positive definite.
            let matrix: Vec<[f64; 3]> = rows.iter().map(|r| [r.0 + 12.0, r.1, r.2]).collect();
            let band = |k: usize| matrix.iter().map(|row| row[k]).collect::<Vec<f64>>();
            let right: Vec<f64> = rows.iter().map(|r| r.3).collect();
            let mut x = right.clone();
            let factored = Pentadiagonals::factor(systems, &band(0), &band(1), &band(2));
            factored.solve(&mut x);
            let mut same = right.clone();
            factored.solve_many(systems, &mut same);
            prop_assert_eq!(&x, &same);
            for system in 0..systems {
                let at = |row: usize| row * systems + system;
                for i in 0..n {
                    let mut sum = matrix[at(i)][0] * x[at(i)];
                    for k in 1..3 {
                        if i + k < n { sum += matrix[at(i)][k] * x[at(i + k)]; }
                        if i >= k { sum += matrix[at(i - k)][k] * x[at(i - k)]; }
                    }
                    prop_assert!((sum - right[at(i)]).abs() < 1e-9);
                }
            }
        }
    }
}
