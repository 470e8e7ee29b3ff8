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
    /// A little less than `1 / (2 |rise|)`; infinite for a constant clock.
    per_rise: f64,
}

/// Below 1 by more than rounding can add in two multiplications and a conversion.
const SHORT: f64 = 1.0 - 4.0 * f64::EPSILON;

/// Fraction bits of the fixed-point slope.
const FRACTION: u32 = 62;
/// The quick way holds for `length` and `|t - t_k|` below this: a remainder of a few lengths then fits in an `i64`.
const QUICK: i64 = 1 << 60;

impl Interval {
    /// The interval from `(start, offset)` that rises by `rise` over `length` ticks.
    ///
    /// `|start|`, `|offset|` < 2^62, 0 < `length` < 2^62, and `rise` > -`length`, as [`super::LinearClock`] has checked.
    pub(super) fn new(start: i64, offset: i64, rise: i64, length: i64) -> Self {
        // With |rise| < length the fixed-point slope is under 2^62 in magnitude and so fits.
        let quick = length < QUICK && rise.unsigned_abs() < length.unsigned_abs();
        let slope = quick.then(|| (i128::from(rise) << FRACTION).div_euclid(i128::from(length)) as i64);
        let per_rise = SHORT / (2.0 * rise.unsigned_abs() as f64);
        Interval { start, offset, rise, length, slope, per_rise }
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
    #[cfg(test)]
    pub(super) fn offset(&self, time: i64) -> i128 {
        self.hold(time).map_or_else(|| self.offset_plain(time), |(offset, _)| i128::from(offset))
    }

    /// The same number as [`Interval::offset_plain`], and how many ticks longer it certainly stays the same: drifts are small, so
    /// that the rounded offset is the same for many events. None where the numbers are too large for 64 bits.
    pub(super) fn hold(&self, time: i64) -> Option<(i64, u64)> {
        let (slope, elapsed) = (self.slope?, time.checked_sub(self.start)?);
        if elapsed.unsigned_abs() >= QUICK.unsigned_abs() {
            return None;
        }
        // The slope is low by less than 2^-62, so the estimate is off by less than 1/4 before it is floored: the true
        // floor differs from it by at most 1, and the remainder by at most one length.
        let mut quotient = ((i128::from(slope) * i128::from(elapsed)) >> FRACTION) as i64;
        // Exact although both products may wrap: their true difference is within two lengths, under 2^61.
        let mut remainder = self.rise.wrapping_mul(elapsed).wrapping_sub(quotient.wrapping_mul(self.length));
        if remainder < 0 {
            quotient -= 1;
            remainder += self.length;
        } else if remainder >= self.length {
            quotient += 1;
            remainder -= self.length;
        }
        let twice = 2 * remainder;
        let up = twice > self.length || (twice == self.length && quotient & 1 != 0);
        // Twice what the exact line is above the rounded one, in units of 1 / length: from -length to length. Strictly between
        // the two, the rounded one is the same.
        let above = if up { twice - 2 * self.length } else { twice };
        let room = if self.rise > 0 { self.length - above } else { self.length + above };
        // (room - 1) / 2 |rise| without a division, which would take longer than all the rest; it may be a tick too short.
        let longer = if self.rise == 0 { u64::MAX } else { ((room - 1).max(0) as f64 * self.per_rise) as u64 };
        // Under 2^62 + 2^60.
        Some((self.offset + quotient + i64::from(up), longer))
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
        fn the_offset_holds_as_long_as_it_says(
            start in any_magnitude(), offset in any_magnitude(), rise in any_magnitude(),
            length in any_magnitude(), time in any_magnitude(), share in 0u64..=8
        ) {
            let limit = super::super::RANGE;
            let length = (length.unsigned_abs() >> 2).max(1) as i64;
            let interval = Interval::new(start % limit, offset % limit, rise.max(1 - length), length);
            if let Some((offset, longer)) = interval.hold(time) {
                let later = time.saturating_add((longer / 8).saturating_mul(share).min(i64::MAX as u64) as i64);
                prop_assert_eq!(interval.offset_plain(later), i128::from(offset));
                let last = time.saturating_add(longer.min(i64::MAX as u64) as i64);
                prop_assert_eq!(interval.offset_plain(last), i128::from(offset));
            }
        }

        #[test]
        fn the_offset_holds_no_shorter_than_up_to_a_tie(rise in -40i64..40, length in 1i64..90, elapsed in -1000i64..1000) {
            let interval = Interval::new(7, 3, rise.clamp(1 - length, length - 1), length);
            let (offset, longer) = interval.hold(7 + elapsed).unwrap();
            let mut same = 0;
            while same < 2000 && interval.offset_plain(8 + elapsed + same) == i128::from(offset) {
                same += 1;
            }
            // By a tick it may be.
            prop_assert!(longer.min(2000) as i64 <= same && same <= longer.saturating_add(2).min(2000) as i64);
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
