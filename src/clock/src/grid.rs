//! Equal windows of time.

use serde::{Deserialize, Serialize};

/// Equal windows of global time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Where the first window begins, in ticks.
    pub first: i64,
    /// Length of a window, in ticks.
    pub width: i64,
    /// How many windows there are.
    pub count: usize,
}

impl Grid {
    /// Shortest window: knots of a clock stay distinct after rounding to ticks.
    const SHORTEST: i64 = 64;

    /// At most `count` windows over the times from `first` to `last`, both inclusive.
    pub fn new(first: i64, last: i64, count: usize) -> Grid {
        let length = last.saturating_sub(first).max(0).saturating_add(1);
        let width = (length / count.max(1) as i64).saturating_add(1).max(Grid::SHORTEST);
        Grid { first, width, count: (((length - 1) / width) + 1).max(1) as usize }
    }

    /// The window of `time`; times outside belong to the nearest one.
    #[inline]
    pub fn window(&self, time: i64) -> usize {
        let index = time.saturating_sub(self.first) / self.width;
        (index.max(0) as usize).min(self.count - 1)
    }

    /// The times that belong to window `index`.
    pub fn span(&self, index: usize) -> std::ops::Range<i64> {
        let begin = self.first + self.width * index as i64;
        let (first, last) = (index == 0, index + 1 == self.count);
        (if first { i64::MIN } else { begin })..(if last { i64::MAX } else { begin + self.width })
    }

    /// What has these values at the middles of the windows, at a time between or beyond them.
    pub fn at(&self, values: &[f64], time: i64) -> f64 {
        let exact = (time - self.centre(0)) as f64 / self.width as f64;
        let left = (exact.max(0.0) as usize).min(values.len().saturating_sub(2));
        match (values.get(left), values.get(left + 1)) {
            (Some(a), Some(b)) => a + (b - a) * (exact - left as f64),
            (Some(a), None) => *a,
            _ => 0.0,
        }
    }

    /// What has these values at the middles of the windows, row by row, at those of the windows of another grid.
    pub(crate) fn rows_on(&self, rows: &[Vec<f64>], other: &Grid) -> Vec<Vec<f64>> {
        let middles: Vec<i64> = (0..other.count).map(|window| other.centre(window)).collect();
        rows.iter().map(|row| middles.iter().map(|&middle| self.at(row, middle)).collect()).collect()
    }

    /// The middle of window `index`.
    pub fn centre(&self, index: usize) -> i64 {
        self.first + self.width * index as i64 + self.width / 2
    }
}
