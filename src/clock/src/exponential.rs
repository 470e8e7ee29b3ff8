//! Exponential function and logarithm, without branches, so that compilers do several at once; the same bits on every machine.

/// exp(x) for x <= 0, to 1e-11; what is smaller than e⁻⁷⁰⁰ is that.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    /// Adding it rounds to an integer, which then is in the low bits.
    const ROUND: f64 = 6755399441055744.0;
    /// ln 2, its upper bits and the rest.
    const UPPER: f64 = 0.693_145_751_953_125;
    const LOWER: f64 = 1.428_606_820_309_417_3e-6;
    let inside = if x > -700.0 { x } else { -700.0 };
    let rounded = inside * std::f64::consts::LOG2_E + ROUND;
    let number = rounded - ROUND;
    let rest = (inside - number * UPPER) - number * LOWER;
    // Taylor's series; |rest| <= ln 2 / 2.
    let mut sum = 1.0 / 362_880.0;
    for factor in [1.0 / 40_320.0, 1.0 / 5_040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = sum * rest + factor;
    }
    let power = f64::from_bits((rounded.to_bits().wrapping_add(1023)) << 52);
    sum * power
}

/// The same in single precision, to 5e-7; what is smaller than e⁻⁸⁰ is that.
#[inline(always)]
pub(super) fn exp_single(x: f32) -> f32 {
    /// As above.
    const ROUND: f32 = 12_582_912.0;
    const UPPER: f32 = 0.693_359_4;
    const LOWER: f32 = -2.121_944_4e-4;
    let inside = if x > -80.0 { x } else { -80.0 };
    let rounded = inside * std::f32::consts::LOG2_E + ROUND;
    let number = rounded - ROUND;
    let rest = (inside - number * UPPER) - number * LOWER;
    let mut sum = 1.0 / 720.0;
    for factor in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = sum * rest + factor;
    }
    let power = f32::from_bits(rounded.to_bits().wrapping_add(127) << 23);
    sum * power
}

/// ln(x) of a normal positive number, to 1e-11.
#[inline(always)]
pub(super) fn ln(x: f64) -> f64 {
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    /// The bits of √½: from here on a mantissa belongs to the next power.
    const ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
    /// 2⁵²: an integer in the low bits of it is a floating point number.
    const INTEGER: u64 = 0x4330_0000_0000_0000;
    // The exponent that leaves a mantissa from √½ to √2.
    let shifted = x.to_bits().wrapping_sub(ROOT).wrapping_add(1023 << 52) & EXPONENT;
    let mantissa = f64::from_bits(x.to_bits().wrapping_sub(shifted).wrapping_add(1023 << 52));
    let exponent = f64::from_bits(INTEGER | (shifted >> 52)) - (f64::from_bits(INTEGER) + 1023.0);
    // Twice the inverse hyperbolic tangent.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 1.0 / 13.0;
    for factor in [1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
        sum = sum * square + factor;
    }
    exponent * std::f64::consts::LN_2 + 2.0 * s * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_what_they_should_be(
            x in -699.0f64..0.0, single in -79.9f32..0.0, small in -1e-3f64..0.0, power in -1000.0f64..1000.0
        ) {
            for x in [single, small as f32] {
                let exact = f64::from(x).exp();
                let found = f64::from(exp_single(x));
                prop_assert!((found / exact - 1.0).abs() < 5e-7, "{x}: {found} {exact}");
            }
            for x in [x, small] {
                prop_assert!((exp(x) / x.exp() - 1.0).abs() < 1e-11, "{x}: {} {}", exp(x), x.exp());
            }
            let y = power.exp2();
            prop_assert!((ln(y) - y.ln()).abs() <= 1e-11 * y.ln().abs().max(1.0), "{y}: {} {}", ln(y), y.ln());
        }
    }

    #[test]
    fn at_the_ends() {
        assert_eq!((exp(0.0), exp(-0.0)), (1.0, 1.0));
        assert_eq!([-701.0, f64::NEG_INFINITY, f64::NAN].map(exp), [exp(-700.0); 3]);
        assert_eq!((ln(1.0), ln(2.0)), (0.0, std::f64::consts::LN_2));
        assert!((ln(f64::MIN_POSITIVE) - f64::MIN_POSITIVE.ln()).abs() < 1e-12);
        assert_eq!((exp_single(0.0), exp_single(-0.0)), (1.0, 1.0));
        assert_eq!([-81.0, f32::NEG_INFINITY, f32::NAN].map(exp_single), [exp_single(-80.0); 3]);
        assert!(exp(-700.0) > 0.0 && exp(-700.0) < 1e-300);
    }
}
