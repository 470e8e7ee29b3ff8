//! Direct solution of symmetric, positive definite banded systems: L D Lᵀ, row by row ([`super::band`]).
//!
//! What ties clocks in a window and neighbouring windows of a clock has a half bandwidth of twice the number of clocks, if unknowns lie window by
//! window. With few clocks that is solved exactly in less time than a few dozen steps of conjugate gradients take.

use super::band::{Band, Rows};
use clc_trace::workers::Workers;

/// The entries of a symmetric matrix.
pub(super) trait Symmetric: Sync {
    /// Calls `put` with the column and the value of the entry of a row on the diagonal, and of those behind it, each once.
    fn behind(&self, row: usize, put: impl FnMut(usize, f64));

    /// The same of those before it.
    fn before(&self, row: usize, put: impl FnMut(usize, f64));
}

/// Unknowns, in widths, from which on a system is worth two halves. Chosen by hand: where a system is too small, a second thread costs more than it
/// saves.
const LARGE: usize = 32;

/// The first rows of a matrix, and the columns up to them.
struct Near<'a, M>(&'a M, usize);

impl<M: Symmetric> Rows for Near<'_, M> {
    #[inline(always)]
    fn row(&self, row: usize, mut put: impl FnMut(usize, f64)) {
        self.0.behind(row, |column, value| {
            if column < self.1 {
                put(column, value);
            }
        });
    }
}

/// The last rows of a matrix of so many, turned: the last comes first.
struct Turned<'a, M> {
    of: &'a M,
    length: usize,
    /// How many rows there are; those that follow are empty.
    count: usize,
}

impl<M: Symmetric> Rows for Turned<'_, M> {
    #[inline(always)]
    fn row(&self, row: usize, mut put: impl FnMut(usize, f64)) {
        if row < self.count {
            self.of.before(self.length - 1 - row, |column, value| put(self.length - 1 - column, value));
        }
    }
}

/// Solves the system of a matrix with this half bandwidth `width` for `right`. Where the matrix is not positive definite, as far as rounding goes, the unknown is zero: a poor result, but never a
/// wrong number.
///
/// Large systems are eliminated from both ends at once, down to the unknowns in the middle that keep the halves apart: by two threads, if
/// `workers` has them, and with the same bits by one.
pub(super) fn solve(matrix: &impl Symmetric, width: usize, right: &mut [f64], workers: Workers) {
    let length = right.len();
    if length < LARGE * (width + 1) {
        let band = Band::eliminated(width, right, length, &Near(matrix, length));
        band.substitute(right, length);
        return;
    }
    let front = (length - width) / 2;
    let behind = front + width;
    let back = length - behind;
    let (near, beyond) = right.split_at_mut(behind);
    // What joins the middle to what is behind it belongs to the other half.
    let turn = || {
        let mut right: Vec<f64> = beyond.iter().rev().copied().chain(std::iter::repeat_n(0.0, width)).collect();
        let rows = Turned { of: matrix, length, count: back };
        (Band::eliminated(width, &mut right, back, &rows), right)
    };
    let (own, (turned, mut other)) = workers.both(|| Band::eliminated(width, near, front, &Near(matrix, behind)), turn);

    // The middle, with what both halves say of it.
    let middle = Middle { own: &own, turned: &turned, front, back, width };
    for i in 0..width {
        near[front + i] += other[back + width - 1 - i];
    }
    let mut middle = Band::new(width, width, &middle);
    middle.eliminate(&mut near[front..], width);
    middle.substitute(&mut near[front..], width);
    other[back..].iter_mut().zip(near[front..].iter().rev()).for_each(|(other, middle)| *other = *middle);

    if workers == Workers::ONE {
        Band::substitute_both([(&own, &mut *near, front), (&turned, &mut other, back)]);
    } else {
        let behind = || {
            let mut found = other.clone();
            turned.substitute(&mut found, back);
            found
        };
        ((), other) = workers.both(|| own.substitute(near, front), behind);
    }
    beyond.iter_mut().zip(other[..back].iter().rev()).for_each(|(right, found)| *right = *found);
}

/// What is left of the unknowns in the middle when those of both halves are eliminated.
struct Middle<'a> {
    own: &'a Band,
    turned: &'a Band,
    front: usize,
    back: usize,
    width: usize,
}

impl Rows for Middle<'_> {
    fn row(&self, row: usize, mut put: impl FnMut(usize, f64)) {
        let turned = |row: usize| self.back + self.width - 1 - row;
        for column in row..self.width {
            let own = self.own.at(self.front + row, self.front + column);
            put(column, own + self.turned.at(turned(column), turned(row)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZero;

    /// A matrix given by its entries.
    struct Given<F> {
        length: usize,
        width: usize,
        entry: F,
    }

    impl<F: Fn(usize, usize) -> f64 + Sync> Symmetric for Given<F> {
        fn behind(&self, row: usize, mut put: impl FnMut(usize, f64)) {
            (row..self.length.min(row + self.width + 1)).for_each(|column| put(column, (self.entry)(row, column)));
        }

        fn before(&self, row: usize, mut put: impl FnMut(usize, f64)) {
            (row.saturating_sub(self.width)..=row).for_each(|column| put(column, (self.entry)(column, row)));
        }
    }

    /// L D Lᵀ entry by entry, unknown by unknown.
    fn plain(matrix: &impl Symmetric, length: usize, right: &mut [f64]) {
        let mut rows = vec![vec![0.0; length]; length];
        for (row, entries) in rows.iter_mut().enumerate() {
            matrix.behind(row, |column, value| entries[column] = value);
        }
        for pivot in 0..length {
            let (above, below) = rows.split_at_mut(pivot + 1);
            let source = &mut above[pivot];
            let inverse = 1.0 / source[pivot];
            for (row, entries) in (pivot + 1..).zip(below) {
                let factor = source[row] * inverse;
                (row..length).for_each(|column| entries[column] -= factor * source[column]);
                right[row] -= factor * right[pivot];
            }
            source[pivot] = inverse;
        }
        for row in (0..length).rev() {
            let known = (row + 1..length).fold(0.0, |sum, column| sum + rows[row][column] * right[column]);
            right[row] = (right[row] - known) * rows[row][row];
        }
    }

    proptest! {
        #[test]
        fn what_is_solved_satisfies_the_equations(
            width in prop_oneof![4 => 1usize..20, 1 => 20usize..72], values in prop::collection::vec(-1.0f64..1.0, 1..200), wanted in prop::collection::vec(-9.0f64..9.0, 1..700)
        ) {
            let length = wanted.len();
            // Gershgorin: diagonal entries outweigh their rows.
            let entry = |i: usize, j: usize| match i.abs_diff(j) {
                0 => 2.0 * width as f64 + 1.0,
                apart if apart <= width => values[(i.min(j) * 7 + apart) % values.len()],
                _ => 0.0,
            };
            let matrix = Given { length, width, entry };
            let mut x: Vec<f64> = (0..length).map(|i| (0..length).map(|j| entry(i, j) * wanted[j]).sum()).collect();
            let (mut same, mut expected) = (x.clone(), x.clone());
            solve(&matrix, width, &mut x, Workers::ONE);
            solve(&matrix, width, &mut same, Workers::new(NonZero::new(2).unwrap()));
            prop_assert_eq!(&x, &same);
            for (found, wanted) in x.iter().zip(&wanted) {
                prop_assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
            }
            if length < LARGE * (width + 1) {
                plain(&matrix, length, &mut expected);
                prop_assert_eq!(&x, &expected);
            }
        }
    }

    #[test]
    fn what_is_not_positive_definite_gives_numbers_all_the_same() {
        let matrix = Given { length: 2, width: 1, entry: |row, column| if row == column { 1.0 } else { 2.0 } };
        let mut x = [1.0, 1.0];
        solve(&matrix, 1, &mut x, Workers::ONE);
        assert_eq!(x, [1.0, 0.0]);
    }
}
