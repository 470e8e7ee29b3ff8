//! The constants of the controlled logical clock, as exact fixed-point numbers.
//!
//! Every factor is a whole number of 2^-40, so that a product with a time is exact in `i128` and the same on every
//! machine. Decimal numbers are rounded to the nearest such unit once, when they are read.

use crate::latency::MinimumLatency;
use crate::{Centre, CorrectionForm};
use clc_trace::{Fraction, Ticks};
use serde::{Deserialize, Serialize};

/// Fraction bits of every factor in this module.
const FRACTION_BITS: u32 = 40;
const ONE: u64 = 1 << FRACTION_BITS;

/// `numerator / denominator` in units of 2^-40, to the nearest unit (ties up); none if it does not fit or divides by zero.
fn fixed_point(numerator: u64, denominator: u64) -> Option<u64> {
    let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
    let scaled = (numerator << FRACTION_BITS) + denominator / 2;
    u64::try_from(scaled.checked_div(denominator)?).ok()
}

/// For display: the factor rounded to nine decimals, so that 0.99999 prints as it was given.
fn display(units: u64) -> f64 {
    (units as f64 / ONE as f64 * 1e9).round() / 1e9
}

/// How fast an advance decays: 1 - gamma, where gamma is the control variable.
///
/// After a jump by `o`, forward amortisation leaves `o - (1 - gamma) t` at the distance `t` after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Decay(u64);

impl Decay {
    /// Fraction bits: [`Decay::units`] counts 2^-40.
    pub const FRACTION_BITS: u32 = FRACTION_BITS;
    /// gamma = 1: an advance never decays.
    pub const NONE: Decay = Decay(0);
    /// gamma = 0: an advance is gone as soon as the original times allow; the plain Lamport clock.
    pub const FULL: Decay = Decay(ONE);
    /// gamma = 0.99999, where the controller starts.
    pub const START: Decay = Decay(10_995_116);

    /// The decay in units of 2^-40; none over [`Decay::FULL`].
    pub fn from_units(units: u64) -> Option<Self> {
        (units <= ONE).then_some(Decay(units))
    }

    /// The decay for gamma = `numerator / denominator`; none outside 0..=1.
    ///
    /// It is 1 - gamma that is rounded, not gamma, which keeps the digits of a gamma near 1.
    pub fn from_gamma(numerator: u64, denominator: u64) -> Option<Self> {
        fixed_point(denominator.checked_sub(numerator)?, denominator).map(Decay)
    }

    /// 1 - gamma in units of 2^-40, at most 2^40.
    pub fn units(self) -> u64 {
        self.0
    }

    /// The same as a fraction to multiply times with.
    pub fn fraction(self) -> Fraction {
        // Never above 1 by construction.
        Fraction::from_bits(self.0).unwrap_or(Fraction::ONE)
    }

    /// gamma for display, rounded to nine decimals.
    pub fn gamma(self) -> f64 {
        display(ONE - self.0)
    }
}

impl Default for Decay {
    fn default() -> Self {
        Decay::START
    }
}

/// Slope of the backward amortisation: ticks of correction per tick of time.
///
/// A jump by `D` is spread over the `D / slope` ticks before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slope(u64);

impl Slope {
    /// Fraction bits: [`Slope::units`] counts 2^-40.
    pub const FRACTION_BITS: u32 = FRACTION_BITS;

    /// The slope `numerator / denominator`; none if it is under 2^-40 or over 1.
    pub fn from_ratio(numerator: u64, denominator: u64) -> Option<Self> {
        fixed_point(numerator, denominator).filter(|units| (1..=ONE).contains(units)).map(Slope)
    }

    /// The slope in units of 2^-40, from 1 to 2^40.
    pub fn units(self) -> u64 {
        self.0
    }

    /// The same as a fraction to multiply times with.
    pub fn fraction(self) -> Fraction {
        // Never above 1 by construction.
        Fraction::from_bits(self.0).unwrap_or(Fraction::ONE)
    }

    /// The slope for display, rounded to nine decimals.
    pub fn value(self) -> f64 {
        display(self.0)
    }
}

impl Default for Slope {
    /// 0.01: an amortisation interval of a hundred times the jump.
    fn default() -> Self {
        Slope(10_995_116_278)
    }
}

/// The error that ends the passes: largest advance of a pass over D0, the largest advance that is unavoidable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ErrorLimit(u64);

impl ErrorLimit {
    /// The limit `numerator / denominator`; none if it is under 1, which no pass could reach, or does not fit.
    pub fn from_ratio(numerator: u64, denominator: u64) -> Option<Self> {
        fixed_point(numerator, denominator).filter(|&units| units >= ONE).map(ErrorLimit)
    }

    /// Whether a pass whose largest advance is `advance` is good enough for the unavoidable advance `d0`:
    /// `advance / d0 <= limit`, exactly. A pass that advances nothing always is.
    pub fn allows(self, advance: Ticks, d0: Ticks) -> bool {
        // |i64| times a 40-bit fraction, and a 64-bit factor times |i64|: both fit in an i128.
        i128::from(advance.0) << FRACTION_BITS <= i128::from(self.0) * i128::from(d0.0)
    }

    /// The same for sums of many times.
    pub fn allows_sum(self, jumps: i128, violation: i128) -> bool {
        // Sums of up to 2^63 ticks are compared exactly; nobody has larger ones.
        let least = |sum: i128| sum.clamp(0, i128::from(i64::MAX));
        least(jumps) << FRACTION_BITS <= i128::from(self.0) * least(violation)
    }

    /// The limit for display, rounded to nine decimals.
    pub fn value(self) -> f64 {
        display(self.0)
    }
}

impl Default for ErrorLimit {
    /// 1.5
    fn default() -> Self {
        ErrorLimit(ONE + ONE / 2)
    }
}

/// All constants of a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Minimum latency mu of messages; zero by default, since a wrong one invents violations.
    pub latency: MinimumLatency,
    /// 1 - gamma of the first pass.
    pub decay: Decay,
    /// At most this many passes, at least 1. The default 5 lets 1 - gamma go 1e-5, 1e-4, 1e-3, 1e-2, 1e-1.
    pub max_passes: u32,
    /// The error at which no further pass is made.
    pub max_error: ErrorLimit,
    /// Slope of the backward amortisation.
    pub slope: Slope,
    /// delta: distinct events of one location stay at least this far apart, unless they were closer; 1 tick.
    pub minimum_separation: Ticks,
    /// Which correction is made.
    pub form: CorrectionForm,
    /// What is taken for the common time.
    pub centre: Centre,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            latency: MinimumLatency::default(),
            decay: Decay::default(),
            max_passes: 5,
            max_error: ErrorLimit::default(),
            slope: Slope::default(),
            minimum_separation: Ticks(1),
            form: CorrectionForm::default(),
            centre: Centre::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_documented_decimals() {
        assert_eq!(Decay::default(), Decay::from_gamma(99_999, 100_000).expect("in range"));
        assert_eq!(Decay::default().gamma(), 0.99999);
        assert_eq!(Slope::default(), Slope::from_ratio(1, 100).expect("in range"));
        assert_eq!(Slope::default().value(), 0.01);
        assert_eq!(ErrorLimit::default(), ErrorLimit::from_ratio(3, 2).expect("in range"));
    }

    #[test]
    fn ends_of_the_ranges() {
        assert_eq!(Decay::from_gamma(1, 1), Some(Decay::NONE));
        assert_eq!(Decay::from_gamma(0, 1), Some(Decay::FULL));
        assert_eq!(Decay::from_gamma(2, 1), None);
        assert_eq!(Decay::from_gamma(0, 0), None);
        assert_eq!(Decay::from_units(ONE + 1), None);
        assert_eq!(Slope::from_ratio(1, 1).map(Slope::units), Some(ONE));
        assert_eq!(Slope::from_ratio(0, 1), None);
        assert_eq!(Slope::from_ratio(3, 2), None);
        assert_eq!(Slope::from_ratio(1, 0), None);
        assert_eq!(ErrorLimit::from_ratio(999, 1000), None);
        assert_eq!(ErrorLimit::from_ratio(u64::MAX, 1), None);
    }

    #[test]
    fn the_error_limit_is_exact() {
        let limit = ErrorLimit::default();
        assert!(limit.allows(Ticks(3), Ticks(2)));
        assert!(!limit.allows(Ticks(3 * (1 << 60) + 1), Ticks(1 << 61)));
        assert!(limit.allows(Ticks(3 * (1 << 60)), Ticks(1 << 61)));
        assert!(limit.allows(Ticks(0), Ticks(0)));
        assert!(!limit.allows(Ticks(1), Ticks(0)));
    }
}
