//! Fixed-point fractions, so that products with times are exact and the same on every machine.

use serde::{Deserialize, Serialize};

/// A fraction between 0 and 1 (inclusive) in units of 2⁻⁴⁰. Used for the decay 1 - γ and for the amortisation slope.
///
/// 2⁻⁴⁰ is about 9·10⁻¹³: a decay is resolved to better than a part in ten million even for γ = 0.99999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fraction(u64);

impl Fraction {
    /// Number of fractional bits.
    pub const BITS: u32 = 40;
    /// 0.
    pub const ZERO: Fraction = Fraction(0);
    /// 1.
    pub const ONE: Fraction = Fraction(1 << Self::BITS);

    /// `bits` / 2⁴⁰, or `None` above 1.
    pub const fn from_bits(bits: u64) -> Option<Fraction> {
        if bits <= Self::ONE.0 { Some(Fraction(bits)) } else { None }
    }

    /// The fraction nearest to `value`, or `None` outside 0..=1. For constants and user input, never for times.
    pub fn from_f64(value: f64) -> Option<Fraction> {
        if (0.0..=1.0).contains(&value) { Some(Fraction((value * Self::ONE.0 as f64).round() as u64)) } else { None }
    }

    /// The numerator over 2⁴⁰.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// For display.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Self::ONE.0 as f64
    }

    /// ⌊self · ticks⌋ for `ticks >= 0`: exact, nondecreasing in `ticks`, and never more than `ticks`.
    #[inline]
    pub fn floor_of(self, ticks: i64) -> i64 {
        debug_assert!(ticks >= 0);
        // The fast form covers spans of up to 2^23 ticks at any fraction; both give the same number.
        if ticks as u64 >> (63 - Self::BITS) == 0 {
            ((ticks as u64 * self.0) >> Self::BITS) as i64
        } else {
            ((ticks as u128 * u128::from(self.0)) >> Self::BITS) as i64
        }
    }

    /// Whether [`Fraction::floor_of_near`] holds for spans up to `ticks`.
    #[inline]
    pub fn is_near(self, ticks: i64) -> bool {
        (ticks.max(0) as u64).checked_mul(self.0).is_some()
    }

    /// The same as [`Fraction::floor_of`] for spans that are near.
    #[inline(always)]
    pub fn floor_of_near(self, ticks: i64) -> i64 {
        ((ticks as u64).wrapping_mul(self.0) >> Self::BITS) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floor_of_is_the_floor(bits in 0u64..=1 << 40, ticks in 0i64..=i64::MAX) {
            let fraction = Fraction::from_bits(bits).unwrap();
            prop_assert_eq!(i128::from(fraction.floor_of(ticks)), (i128::from(ticks) * i128::from(bits)) >> 40);
            let near = ticks & ((1 << 24) - 1);
            for ticks in [near, ticks, ticks >> 20].into_iter().filter(|&ticks| fraction.is_near(ticks)) {
                prop_assert_eq!(fraction.floor_of_near(ticks), fraction.floor_of(ticks));
            }
            prop_assert!(fraction.is_near(near >> 1));
            prop_assert_eq!(i128::from(fraction.floor_of(near)), (i128::from(near) * i128::from(bits)) >> 40);
        }
    }
}
