//! Symmetric positive definite systems with two diagonals on either side: L D Lᵀ in linear time.

/// A factored matrix.
#[derive(Debug, Clone)]
pub(super) struct Pentadiagonal {
    /// D.
    diagonal: Vec<f64>,
    /// First and second diagonal below the unit diagonal of L.
    below: Vec<[f64; 2]>,
}

impl Pentadiagonal {
    /// Factors the matrix with these entries (i, i), (i, i+1) and (i, i+2). Pivots that rounding has made useless are
    /// replaced by one, so that an indefinite matrix gives a poor result but never a wrong number.
    pub(super) fn factor(rows: &[[f64; 3]]) -> Self {
        let mut diagonal: Vec<f64> = Vec::with_capacity(rows.len());
        let mut below: Vec<[f64; 2]> = Vec::with_capacity(rows.len());
        // What the rows before have left for this one and for the next: their shares of D and of the first diagonal.
        let (mut here, mut next) = ([0.0f64; 2], 0.0f64);
        for row in rows {
            let pivot = row[0] - here[0];
            let pivot = if pivot > 0.0 && pivot.is_finite() { pivot } else { 1.0 };
            let first = (row[1] - here[1]) / pivot;
            let second = row[2] / pivot;
            here = [next + first * first * pivot, first * second * pivot];
            next = second * second * pivot;
            diagonal.push(pivot);
            below.push([first, second]);
        }
        Pentadiagonal { diagonal, below }
    }

    /// Solves in place.
    pub(super) fn solve(&self, values: &mut [f64]) {
        let (mut one, mut two) = (0.0f64, 0.0f64);
        for (value, [first, second]) in values.iter_mut().zip(&self.below) {
            *value -= one;
            one = two + first * *value;
            two = second * *value;
        }
        let (mut after, mut later) = (0.0, 0.0);
        let rows = self.diagonal.iter().zip(&self.below);
        for (value, (pivot, [first, second])) in values.iter_mut().zip(rows).rev() {
            *value = *value / pivot - first * after - second * later;
            (later, after) = (after, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_solution_solves(rows in prop::collection::vec((0.1f64..10.0, -3.0f64..3.0, -3.0f64..3.0, -9.0f64..9.0), 1..30)) {
            let n = rows.len();
            // Diagonally dominant, hence positive definite.
            let matrix: Vec<[f64; 3]> = rows.iter().map(|r| [r.0 + 12.0, r.1, r.2]).collect();
            let right: Vec<f64> = rows.iter().map(|r| r.3).collect();
            let mut x = right.clone();
            Pentadiagonal::factor(&matrix).solve(&mut x);
            for i in 0..n {
                let mut sum = matrix[i][0] * x[i];
                for k in 1..3 {
                    if i + k < n { sum += matrix[i][k] * x[i + k]; }
                    if i >= k { sum += matrix[i - k][k] * x[i - k]; }
                }
                prop_assert!((sum - right[i]).abs() < 1e-9);
            }
        }
    }
}
