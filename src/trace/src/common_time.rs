//! The common time: one nondecreasing map of the time axis, which takes out the motion that the corrected clocks share.

use crate::Ticks;
use crate::vector::leading;

/// The map h(t) = t - m(t): m is a mean (or median) advance, known at the ends of windows of 2ⁿ ticks and linear between them.
///
/// `h(t) = t - m_k - ⌊(m_{k+1} - m_k)(t - t_k) / 2ⁿ⌋` in window k; before the first and after the last one m is constant. No two ends of
/// a window come closer than half of its width, so h keeps every order, and ties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonTime {
    origin: i64,
    /// n: a window has 2ⁿ ticks.
    bits: u32,
    /// m at the ends of the windows; at least one.
    advances: Vec<i64>,
}

impl CommonTime {
    /// From the `advances` at `origin` and every 2^`bits` ticks after it (`bits` below 62). Where they grow by more than half a window within one,
    /// the rest comes later: an interval is never shorter than half of what it was, and the last ones may be wrong by what is then left.
    pub fn new(origin: Ticks, bits: u32, mut advances: Vec<i64>) -> CommonTime {
        let most = (1_i64 << bits) / 2;
        for index in 1..advances.len() {
            advances[index] = advances[index].min(advances[index - 1].saturating_add(most));
        }
        if advances.is_empty() {
            advances.push(0);
        }
        CommonTime { origin: origin.0, bits, advances }
    }

    /// The same, `ticks` later.
    pub fn later(mut self, ticks: Ticks) -> CommonTime {
        self.advances.iter_mut().for_each(|advance| *advance -= ticks.0);
        self
    }

    /// Whether nothing moves.
    pub fn is_identity(&self) -> bool {
        self.advances.iter().all(|&advance| advance == 0)
    }

    /// Where a moment goes.
    #[inline]
    pub fn map(&self, time: Ticks) -> Ticks {
        self.window(time).map(time)
    }

    /// For times that mostly ascend.
    pub fn cursor(&self) -> CommonCursor<'_> {
        CommonCursor { common: self, window: self.window(Ticks(i64::MIN)) }
    }

    /// The most that any moment is moved, and the steepest change of that: in ticks per tick.
    pub fn extent(&self) -> (Ticks, f64) {
        let most = self.advances.iter().map(|advance| advance.abs()).max().unwrap_or(0);
        let width = (1_i64 << self.bits) as f64;
        let slope = self.advances.windows(2).map(|ends| (ends[1] - ends[0]).abs() as f64 / width).fold(0.0, f64::max);
        (Ticks(most), slope)
    }

    #[inline]
    fn window(&self, time: Ticks) -> MapSegment {
        let last = self.advances.len() - 1;
        let distance = i128::from(time.0) - i128::from(self.origin);
        let index = distance >> self.bits;
        let flat = |from: i64, until: i64, advance: i64| MapSegment { from, until, advance, rise: 0, bits: self.bits };
        let start = |index: usize| (i128::from(self.origin) + ((index as i128) << self.bits)) as i64;
        if index < 0 {
            return flat(i64::MIN, self.origin, self.advances[0]);
        }
        if index >= last as i128 {
            return flat(start(last), i64::MAX, self.advances[last]);
        }
        let index = index as usize;
        let advance = self.advances[index];
        let rise = self.advances[index + 1] - advance;
        MapSegment { from: start(index), until: start(index + 1), advance, rise, bits: self.bits }
    }
}

/// A stretch of the map.
#[derive(Debug, Clone, Copy)]
struct MapSegment {
    from: i64,
    /// Its end, which belongs to the next one.
    until: i64,
    advance: i64,
    rise: i64,
    bits: u32,
}

impl MapSegment {
    #[inline]
    fn map(&self, time: Ticks) -> Ticks {
        if self.rise == 0 {
            return Ticks(time.0 - self.advance);
        }
        let part = (i128::from(self.rise) * i128::from(time.0 - self.from)) >> self.bits;
        Ticks(time.0 - self.advance - part as i64)
    }

    /// The same for the first of some times, which ascend, and for those that follow it as long as they are within; they are replaced. Returns how many there were.
    #[inline(always)]
    fn map_while(&self, times: &mut [i64]) -> usize {
        let MapSegment { from, advance, rise, bits, .. } = *self;
        let width = self.until.wrapping_sub(from) as u64;
        let count = leading(times, |time| (time.wrapping_sub(from) as u64) < width).clamp(1, times.len());
        let within = &mut times[..count];
        // The product with a distance below 2^bits fits into 63 bits.
        let narrow = rise.unsigned_abs() >> (63 - bits) == 0;
        if rise == 0 {
            for time in within {
                *time -= advance;
            }
        } else if narrow {
            for time in within {
                *time = *time - advance - ((rise * (*time - from)) >> bits);
            }
        } else {
            for time in within {
                *time = self.map(Ticks(*time)).0;
            }
        }
        count
    }
}

/// Remembers the window of the last time.
#[derive(Debug, Clone)]
pub struct CommonCursor<'a> {
    common: &'a CommonTime,
    window: MapSegment,
}

impl CommonCursor<'_> {
    /// Where a moment goes.
    #[inline]
    pub fn map(&mut self, time: Ticks) -> Ticks {
        if time.0 < self.window.from || time.0 >= self.window.until {
            self.window = self.common.window(time);
        }
        self.window.map(time)
    }

    /// As [`CommonCursor::map`] for many times, in ticks, which ascend; they are replaced.
    #[inline(always)]
    pub fn map_all(&mut self, mut times: &mut [i64]) {
        while let Some(&first) = times.first() {
            if first < self.window.from || first >= self.window.until {
                self.window = self.common.window(Ticks(first));
            }
            let window = self.window;
            let done = window.map_while(times);
            times = &mut times[done..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_and_half_of_every_distance_stay(
            origin in -50i64..50, bits in 1u32..6, advances in prop::collection::vec(-40i64..40, 0..12), times in prop::collection::vec(-100i64..500, 2..40),
        ) {
            let common = CommonTime::new(Ticks(origin), bits, advances);
            let mut times = times;
            times.sort_unstable();
            let mut all = times.clone();
            common.cursor().map_all(&mut all);
            prop_assert_eq!(all, times.iter().map(|&time| common.map(Ticks(time)).0).collect::<Vec<i64>>());
            let mut cursor = common.cursor();
            for pair in times.windows(2) {
                let (a, b) = (common.map(Ticks(pair[0])).0, common.map(Ticks(pair[1])).0);
                prop_assert_eq!(cursor.map(Ticks(pair[0])).0, a);
                prop_assert!(2 * (b - a) + 2 >= pair[1] - pair[0], "{:?} -> {} {}", pair, a, b);
                prop_assert!(b >= a);
                prop_assert!(pair[0] != pair[1] || a == b);
            }
        }
    }

    #[test]
    fn advances_at_the_ends_of_windows_are_taken_off() {
        let common = CommonTime::new(Ticks(100), 4, vec![2, 6, 5]);
        let moved = |time: i64| time - common.map(Ticks(time)).0;
        assert_eq!([0, 100, 104, 116, 120, 132, 900].map(moved), [2, 2, 3, 6, 5, 5, 5]);
        assert_eq!(common.extent(), (Ticks(6), 0.25));
        assert!(!common.is_identity());
        assert!(CommonTime::new(Ticks(0), 3, vec![0, 0]).is_identity());
    }
}
