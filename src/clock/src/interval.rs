//! The exact offset inside one interval between two measurements.
//!
//! `offset(t) = o_k + round_half_even((o_{k+1} - o_k) (t - t_k) / (t_{k+1} - t_k))`, twice: literally, in `i128`
//! with a division, and without any division for the numbers that occur in practice.

/// `numerator / denominator` rounded to the nearest integer, ties to the even one. `denominator` must be positive.
pub(super) fn divide_half_even(numerator: i128, denominator: i128) -> i128 {
    let quotient = numerator.div_euclid(denominator);
    let twice = 2 * numerator.rem_euclid(denominator);
    let up = twice > denominator || (twice == denominator && quotient % 2 != 0);
    quotient + i128::from(up)
}

/// One interval, prepared for many evaluations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    /// `t_k`.
    start: i64,
    /// `o_k`.
    offset: i64,
    /// `o_{k+1} - o_k`; zero for a constant clock.
    rise: i64,
    /// `t_{k+1} - t_k`, at least 1.
    length: i64,
    /// `floor(rise * 2^62 / length)`, or none where the quick way is not exact.
    slope: Option<i64>,
}

/// Fractional bits of [`Interval::line`].
pub(super) const FRACTION: u32 = 40;
/// Fraction bits of the fixed-point slope.
const SLOPE_FRACTION: u32 = 62;
/// The quick way holds for `length` and `|t - t_k|` below this: a remainder of a few lengths then fits in an `i64`.
const QUICK: i64 = 1 << 60;

impl Interval {
    /// The interval from `(start, offset)` that rises by `rise` over `length` ticks.
    ///
    /// `|start|`, `|offset|` < 2^62, 0 < `length` < 2^62, and `rise` > -`length`, as [`super::LinearClock`] has checked.
    pub(super) fn new(start: i64, offset: i64, rise: i64, length: i64) -> Self {
        // With |rise| < length the fixed-point slope is under 2^62 in magnitude and so fits.
        let quick = length < QUICK && rise.unsigned_abs() < length.unsigned_abs();
        let slope = quick.then(|| (i128::from(rise) << SLOPE_FRACTION).div_euclid(i128::from(length)) as i64);
        Interval { start, offset, rise, length, slope }
    }

    /// An offset that is the same at all times.
    pub(super) const fn constant(offset: i64) -> Self {
        Interval { start: 0, offset, rise: 0, length: 1, slope: None }
    }

    /// Times of this interval at least so far apart are mapped to times at least `distance` apart.
    pub(super) fn reach(&self, distance: u64) -> u64 {
        // The exact line rises by (length + rise) / length per tick, and rounding takes less than a tick off a difference.
        let wanted = (u128::from(distance) + 1) * self.length as u128;
        let rate = (i128::from(self.length) + i128::from(self.rise)) as u128;
        u64::try_from(wanted.div_ceil(rate)).unwrap_or(u64::MAX)
    }

    /// The offset at `time`, as the formula says it.
    ///
    /// No overflow: |rise| < 2^63 and |time - start| < 2^63 + 2^62, so the product is under 1.5 * 2^126.
    pub(super) fn offset_plain(&self, time: i64) -> i128 {
        let elapsed = i128::from(time) - i128::from(self.start);
        i128::from(self.offset) + divide_half_even(i128::from(self.rise) * elapsed, i128::from(self.length))
    }

    /// The same number as [`Interval::offset_plain`], without a division where the numbers are moderate.
    pub(super) fn offset(&self, time: i64) -> i128 {
        let Some((quotient, remainder)) = self.divide(time) else { return self.offset_plain(time) };
        let twice = 2 * remainder;
        let up = twice > self.length || (twice == self.length && quotient & 1 != 0);
        i128::from(self.offset) + i128::from(quotient) + i128::from(up)
    }

    /// Whether the offset is the same at all times.
    pub(super) fn is_constant(&self) -> bool {
        self.rise == 0
    }

    /// The offset at `time` in whole ticks, and the rest and the change per tick in units of 2^-[`FRACTION`] ticks, each less than 2 units off. None
    /// where the numbers are too large, or the change is.
    pub(super) fn line(&self, time: i64) -> Option<(i64, i64, i32)> {
        if self.is_constant() {
            return Some((self.offset, 0, 0));
        }
        let slope = i32::try_from(self.slope? >> (SLOPE_FRACTION - FRACTION)).ok()?;
        let (quotient, remainder) = self.divide(time)?;
        let rest = remainder as f64 / self.length as f64 * (1_i64 << FRACTION) as f64;
        Some((self.offset + quotient, rest as i64, slope))
    }

    /// `rise (time - t_k) / length`, rounded downwards, and the remainder. None where the numbers are too large for 64 bits.
    fn divide(&self, time: i64) -> Option<(i64, i64)> {
        let (slope, elapsed) = (self.slope?, time.checked_sub(self.start)?);
        if elapsed.unsigned_abs() >= QUICK.unsigned_abs() {
            return None;
        }
        // The slope is low by less than 2^-62, so the estimate is off by less than 1/4 before it is floored: the true
        // floor differs from it by at most 1, and the remainder by at most one length.
        let mut quotient = ((i128::from(slope) * i128::from(elapsed)) >> SLOPE_FRACTION) as i64;
        // Exact although both products may wrap: their true difference is within two lengths, under 2^61.
        let mut remainder = self.rise.wrapping_mul(elapsed).wrapping_sub(quotient.wrapping_mul(self.length));
        if remainder < 0 {
            quotient -= 1;
            remainder += self.length;
        } else if remainder >= self.length {
            quotient += 1;
            remainder -= self.length;
        }
        Some((quotient, remainder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_to_the_even_neighbour() {
        let halves: Vec<i128> = (-5..=5).map(|n| divide_half_even(n, 2)).collect();
        assert_eq!(halves, [-2, -2, -2, -1, 0, 0, 0, 1, 2, 2, 2]);
    }

    /// Mixes every magnitude, small numbers (ties are frequent there) and extremes.
    fn any_magnitude() -> impl Strategy<Value = i64> {
        prop_oneof![(-9i64..10), (any::<i64>(), 1u32..63).prop_map(|(n, bits)| n >> bits), any::<i64>()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn quick_offset_equals_the_plain_one(
            start in any_magnitude(), offset in any_magnitude(), rise in any_magnitude(),
            length in any_magnitude(), time in any_magnitude()
        ) {
            let limit = super::super::RANGE;
            let length = (length.unsigned_abs() >> 2).max(1) as i64;
            let interval = Interval::new(start % limit, offset % limit, rise.max(1 - length), length);
            prop_assert_eq!(interval.offset(time), interval.offset_plain(time));
        }

        #[test]
        fn quick_offset_equals_the_plain_one_with_many_ties(
            rise in -40i64..40, half in 1i64..40, elapsed in -1000i64..1000
        ) {
            let interval = Interval::new(7, 3, rise.max(1 - 2 * half), 2 * half);
            prop_assert_eq!(interval.offset(7 + elapsed), interval.offset_plain(7 + elapsed));
        }
    }
}
