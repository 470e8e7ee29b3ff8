//! Equal windows of a span of time.

use serde::{Deserialize, Serialize};

/// `count` windows between `first` and `last`; their lengths differ by a tick at most, and add up to the span exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Where the first window begins.
    pub first: i64,
    /// Where the last window ends.
    pub last: i64,
    /// How many there are, at least 1.
    pub count: usize,
}

impl Windows {
    /// Windows of the span from `first` to `last` (which is no earlier).
    pub fn new(first: i64, last: i64, count: usize) -> Windows {
        Windows { first, last: last.max(first), count: count.max(1) }
    }

    /// Length of the span.
    pub fn length(&self) -> i64 {
        self.last - self.first
    }

    /// Where window `index` begins; for `index == count`, where the last one ends.
    pub(crate) fn begin(&self, index: usize) -> i64 {
        let part = i128::from(self.length()) * index as i128 / self.count as i128;
        // No more than the length, for windows that there are.
        self.first + i64::try_from(part).unwrap_or_else(|_| self.length())
    }

    /// The window that `time` is in; times outside belong to the nearest one.
    pub fn window(&self, time: i64) -> usize {
        let time = time.clamp(self.first, self.last);
        if self.length() == 0 {
            return 0;
        }
        let guess = i128::from(time - self.first) * self.count as i128 / i128::from(self.length());
        let mut index = usize::try_from(guess).unwrap_or(0).min(self.count - 1);
        // Boundaries are rounded down, so it may be the next one.
        while index + 1 < self.count && self.begin(index + 1) <= time {
            index += 1;
        }
        index
    }

    /// Calls `visit` with each window that the interval from `from` to `to` touches, and with the part of it in there.
    pub fn parts(&self, from: i64, to: i64, mut visit: impl FnMut(usize, i64, i64)) {
        let (from, to) = (from.max(self.first), to.min(self.last));
        if from >= to {
            return;
        }
        let (mut begin, mut index) = (from, self.window(from));
        while begin < to {
            let end = if index + 1 == self.count { to } else { self.begin(index + 1).min(to) };
            if end > begin {
                visit(index, begin, end);
            }
            (begin, index) = (end, index + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interval_is_cut_at_the_boundaries() {
        let windows = Windows::new(10, 20, 4);
        assert_eq!((0..=4).map(|k| windows.begin(k)).collect::<Vec<_>>(), [10, 12, 15, 17, 20]);
        let mut parts = Vec::new();
        windows.parts(0, 16, |index, from, to| parts.push((index, from, to)));
        assert_eq!(parts, [(0, 10, 12), (1, 12, 15), (2, 15, 16)]);
        assert_eq!([9, 11, 12, 20, 99].map(|time| windows.window(time)), [0, 0, 1, 3, 3]);
    }

    proptest! {
        #[test]
        fn parts_add_up(first in -50i64..50, length in 0i64..40, count in 1usize..90, a in -99i64..99, b in -99i64..99) {
            let windows = Windows::new(first, first + length, count);
            let (mut sum, mut previous) = (0, None);
            windows.parts(a, b, |index, from, to| {
                assert!(windows.begin(index) <= from && from < to && to <= windows.begin(index + 1));
                assert_eq!(windows.window(from), index);
                assert!(previous.is_none_or(|previous| previous == from));
                previous = Some(to);
                sum += to - from;
            });
            prop_assert_eq!(sum, (b.min(first + length) - a.max(first)).max(0));
        }
    }
}
