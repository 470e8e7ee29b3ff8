//! Symmetric banded matrices, row by row, and their elimination: L D Lᵀ.
//!
//! Rows begin at multiples of [`LANES`], so that those of a group, and the rows that they are eliminated from, have their columns at the same places of
//! vector registers. The operations on an entry are the same, in the same order, however rows are grouped.

use clc_trace::vector::widest;

/// How many entries are worked on at once, and how many rows are a group. Four doubles fill a register of AVX2 ([`widest`]).
const LANES: usize = 4;

/// A vector register.
type Lanes = [f64; LANES];

/// A symmetric matrix, in the order in which it is eliminated.
pub(super) trait Rows {
    /// Calls `put` with the column and the value of the entries of a row that are on the diagonal or behind it, each once.
    fn row(&self, row: usize, put: impl FnMut(usize, f64));
}

/// A symmetric matrix of which the entries up to `width` right of the diagonal are kept.
#[derive(Debug)]
pub(super) struct Band {
    width: usize,
    /// Entries of a row: zeros up to its first column, which is a multiple of [`LANES`], and behind its last one.
    stride: usize,
    rows: Vec<f64>,
}

impl Band {
    /// Of a half bandwidth, with room for so many rows and none so far.
    fn with_capacity(width: usize, rows: usize) -> Band {
        let stride = (width + LANES).next_multiple_of(LANES);
        Band { width, stride, rows: Vec::with_capacity(rows.next_multiple_of(LANES) * stride) }
    }

    /// The matrix `of` so many rows.
    pub(super) fn new(width: usize, length: usize, of: &impl Rows) -> Band {
        let mut band = Band::with_capacity(width, length);
        band.append(length, length, of);
        band
    }

    /// The matrix `of` so many rows, of which the first `count` unknowns are eliminated ([`Band::eliminate`]).
    pub(super) fn eliminated(width: usize, right: &mut [f64], count: usize, of: &impl Rows) -> Band {
        let mut band = Band::with_capacity(width, right.len());
        band.eliminate_rows(right, count, of);
        band
    }

    /// Appends groups of rows until there are `wanted` of them, or all of `length`. A row is made while it is in the cache.
    fn append(&mut self, wanted: usize, length: usize, of: &impl Rows) {
        let mut row = self.rows.len() / self.stride;
        while row < wanted.min(length) {
            let end = row + LANES;
            self.rows.resize(end * self.stride, 0.0);
            for i in row..end.min(length) {
                let place = i * self.stride - i / LANES * LANES;
                let row = &mut self.rows[i * self.stride..(i + 1) * self.stride];
                let begin = i * self.stride;
                of.row(i, |column, value| {
                    if let Some(entry) = row.get_mut(place + column - begin) {
                        *entry = value;
                    }
                });
            }
            row = end;
        }
    }

    /// The place of an entry on the diagonal or behind it.
    #[inline(always)]
    fn place(&self, row: usize, column: usize) -> usize {
        row * self.stride + column - row / LANES * LANES
    }

    /// An entry on the diagonal or behind it.
    #[inline(always)]
    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        self.rows[self.place(row, column)]
    }

    /// The row of an unknown behind its diagonal.
    #[inline(always)]
    fn behind(&self, row: usize) -> &[f64] {
        let place = self.place(row, row);
        &self.rows[place + 1..=place + self.width]
    }

    /// Eliminates the first `count` unknowns from all rows that are left: these are 1 / D and D Lᵀ then, the others and `right` what is
    /// left of the system. Where the matrix is not positive definite, as far as rounding goes, the unknown becomes zero.
    pub(super) fn eliminate(&mut self, right: &mut [f64], count: usize) {
        self.eliminate_rows(right, count, &NoRows);
    }

    /// [`Band::eliminate`], of a matrix whose rows may have to be made before they are needed.
    fn eliminate_rows(&mut self, right: &mut [f64], count: usize, of: &impl Rows) {
        let length = right.len();
        widest(
            #[inline(always)]
            || {
                macro_rules! by_length {
                    ($($chunks:literal)*) => {
                        match self.stride / LANES {
                            $($chunks => self.eliminate_groups::<$chunks>(right, count, of),)*
                            // None of the systems that are solved directly is that wide.
                            _ => {
                                self.append(length, length, of);
                                (0..count).for_each(|row| self.eliminate_one(right, row));
                            }
                        }
                    };
                }
                by_length!(2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
            },
        );
    }

    /// [`Band::eliminate`] group by group, of rows of so many registers: what is read of a group serves all rows of another one.
    #[inline(always)]
    fn eliminate_groups<const CHUNKS: usize>(&mut self, right: &mut [f64], count: usize, of: &impl Rows) {
        let (stride, width, length) = (CHUNKS * LANES, self.width, right.len());
        debug_assert!(self.stride == stride);
        // The rows of a group before they are divided by their pivots.
        let mut sources = [[[0.0; LANES]; CHUNKS]; LANES];
        let whole = count - count % LANES;
        for begin in (0..whole).step_by(LANES) {
            self.append(begin + LANES + width, length, of);
            let rows = self.rows[begin * stride..].as_chunks_mut::<LANES>().0.as_chunks_mut::<CHUNKS>().0;
            let Some((group, below)) = rows.split_first_chunk_mut::<LANES>() else { return };
            let (mut inverses, mut knowns) = ([0.0; LANES], [0.0; LANES]);
            for pivot in 0..LANES {
                let row = &mut group[pivot];
                for before in 0..pivot {
                    let source = &sources[before];
                    let factor = source[0][pivot] * inverses[before];
                    for place in 0..CHUNKS {
                        // A copy of its own, or compilers do not keep it in a register.
                        let mut left = row[place];
                        for lane in 0..LANES {
                            left[lane] -= factor * source[place][lane];
                        }
                        row[place] = left;
                    }
                    right[begin + pivot] -= factor * knowns[before];
                }
                sources[pivot] = *row;
                inverses[pivot] = usable_inverse(row[0][pivot]);
                row[0][pivot] = inverses[pivot];
                knowns[pivot] = right[begin + pivot];
            }
            for (number, rows) in (1..CHUNKS).zip(below.as_chunks_mut::<LANES>().0) {
                let first = begin + number * LANES;
                for lane in 0..LANES {
                    let row = &mut rows[lane];
                    // No function of arrays: it may end up as one of its own, without the instructions of [`widest`].
                    let mut factors = [0.0; LANES];
                    for pivot in 0..LANES {
                        factors[pivot] = sources[pivot][number][lane] * inverses[pivot];
                    }
                    if let Some(right) = right.get_mut(first + lane) {
                        for pivot in 0..LANES {
                            *right -= factors[pivot] * knowns[pivot];
                        }
                    }
                    let [a, b, c, d] = &sources;
                    let others = [&a[number..], &b[number..], &c[number..], &d[number..]];
                    subtract(&mut row[..CHUNKS - number], factors, others);
                }
            }
        }
        self.append(length, length, of);
        (whole..count).for_each(|row| self.eliminate_one(right, row));
    }

    /// Eliminates one unknown.
    fn eliminate_one(&mut self, right: &mut [f64], pivot: usize) {
        let place = self.place(pivot, pivot);
        let inverse = usable_inverse(self.rows[place]);
        self.rows[place] = inverse;
        let end = (pivot + self.width + 1).min(right.len());
        for row in pivot + 1..end {
            let factor = self.rows[place + row - pivot] * inverse;
            for column in row..end {
                let entry = self.place(row, column);
                self.rows[entry] -= factor * self.rows[place + column - pivot];
            }
            right[row] -= factor * right[pivot];
        }
    }

    /// The first `count` unknowns, from the last to the first; `right` has those behind them already.
    pub(super) fn substitute(&self, right: &mut [f64], count: usize) {
        for row in (0..count).rev() {
            let (own, after) = right[row..].split_at_mut(1);
            let known = self.behind(row).iter().zip(after).fold(0.0, |sum, (entry, x)| sum + entry * *x);
            own[0] = (own[0] - known) * self.at(row, row);
        }
    }

    /// [`Band::substitute`] in two systems of one half bandwidth at once, behind whose first unknowns there are as many as it: each sum waits for the one before, but not for those of the other.
    pub(super) fn substitute_both(systems: [(&Band, &mut [f64], usize); 2]) {
        let [(one, one_right, one_count), (two, two_right, two_count)] = systems;
        let together = one_count.min(two_count);
        let (one_rest, two_rest) = (one_count - together, two_count - together);
        // The last of each come first.
        let mut rows = (one_rest..one_count).zip(two_rest..two_count).rev();
        let width = one.width;
        let whole = |right: &[f64], count: usize| right.len() >= count + width;
        if two.width == width && whole(one_right, one_count) && whole(two_right, two_count) {
            for (i, j) in &mut rows {
                let (own, after) = one_right[i..].split_at_mut(1);
                let (other, behind) = two_right[j..].split_at_mut(1);
                let entries = one.behind(i).iter().zip(two.behind(j));
                let (mut here, mut there) = (0.0, 0.0);
                for ((entry, other), (x, y)) in entries.zip(after.iter().zip(&*behind)) {
                    here += entry * x;
                    there += other * y;
                }
                own[0] = (own[0] - here) * one.at(i, i);
                other[0] = (other[0] - there) * two.at(j, j);
            }
            one.substitute(one_right, one_rest);
            two.substitute(two_right, two_rest);
        } else {
            one.substitute(one_right, one_count);
            two.substitute(two_right, two_count);
        }
    }
}

/// Takes from the entries of a row what each of four others has in common with it, one after the other, by its factor.
#[inline(always)]
fn subtract(entries: &mut [Lanes], factors: [f64; LANES], others: [&[Lanes]; LANES]) {
    let count = entries.len();
    let [a, b, c, d] = others;
    let others = [&a[..count], &b[..count], &c[..count], &d[..count]];
    for place in 0..count {
        let mut left = entries[place];
        for pivot in 0..LANES {
            for lane in 0..LANES {
                left[lane] -= factors[pivot] * others[pivot][place][lane];
            }
        }
        entries[place] = left;
    }
}

/// Of a matrix that is there.
struct NoRows;

impl Rows for NoRows {
    fn row(&self, _: usize, _: impl FnMut(usize, f64)) {}
}

/// 1 / pivot; zero, with which the unknown becomes zero, where rounding has left nothing to divide by.
fn usable_inverse(pivot: f64) -> f64 {
    match 1.0 / pivot {
        inverse if inverse.is_finite() && inverse > 0.0 => inverse,
        _ => 0.0,
    }
}
