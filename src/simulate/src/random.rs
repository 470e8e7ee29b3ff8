//! Random numbers and the few transcendental functions behind them, the same bits on every machine.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood 2014): eight bytes of state, one multiplication chain per number.
//! Functions of the platform's `libm` differ in the last bit between systems, so logarithm and sine are computed here
//! with additions, multiplications and divisions only, which IEEE 754 defines exactly.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

/// ln 2 in units of 2^-32.
const LN_2: u64 = 2_977_044_472;
/// ln(1 + i/256) in units of 2^-32.
static LN_TABLE: [u64; 257] = ln_table();

impl Random {
    /// The stream that belongs to `seed` and the place `path` in the simulation (what for, which node, ...), so that
    /// every consumer has its own stream and adding one changes no other.
    pub(super) fn new(seed: u64, path: &[u64]) -> Self {
        let mut stream = Random(seed);
        for &step in path {
            stream = Random(stream.next() ^ step.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        }
        Random(stream.next())
    }

    /// 64 random bits.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A whole number in `0..bound` (0 for a bound of 0).
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `[0, 1)`.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `[-1, 1)`.
    pub(super) fn symmetric(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    /// Exponentially distributed with the given mean, at least 0. The logarithm is interpolated between 256 points
    /// (error below 2e-6 of the mean): this is drawn for every message.
    #[inline]
    pub(super) fn exponential(&mut self, mean: i64) -> i64 {
        let bits = self.next() | 1;
        let zeros = bits.leading_zeros();
        // bits / 2^64 = (1 + fraction / 2^64) / 2^(zeros + 1)
        let fraction = if zeros == 63 { 0 } else { bits << (zeros + 1) };
        let i = (fraction >> 56) as usize;
        let low = LN_TABLE[i];
        let ln = low + (((LN_TABLE[i + 1] - low) * ((fraction >> 24) & 0xFFFF_FFFF)) >> 32);
        let minus_ln = ((u64::from(zeros) + 1) * LN_2).saturating_sub(ln);
        ((i128::from(mean) * i128::from(minus_ln)) >> 32) as i64
    }

    /// Gaussian with mean 0 and standard deviation 1 (Marsaglia's polar method).
    pub(super) fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.symmetric(), self.symmetric());
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return x * (-2.0 * ln(s) / s).sqrt();
            }
        }
    }
}

/// ln of a number in `[1, 2]`, by the series of the inverse hyperbolic tangent.
const fn ln_near_one(x: f64) -> f64 {
    let z = (x - 1.0) / (x + 1.0);
    let square = z * z;
    let mut power = z;
    let mut sum = 0.0;
    let mut k = 1;
    while k < 37 {
        sum += power / k as f64;
        power *= square;
        k += 2;
    }
    2.0 * sum
}

const fn ln_table() -> [u64; 257] {
    let mut table = [0; 257];
    let mut i = 0;
    while i < 257 {
        table[i] = (ln_near_one(1.0 + i as f64 / 256.0) * 4_294_967_296.0 + 0.5) as u64;
        i += 1;
    }
    table
}

/// Natural logarithm of a positive, normal number.
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mantissa = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) | 0x3FF0_0000_0000_0000);
    exponent as f64 * std::f64::consts::LN_2 + ln_near_one(mantissa)
}

/// sin(2 pi x): the argument counts turns.
pub(super) fn sine_of_turns(x: f64) -> f64 {
    let turn = x - x.floor();
    let (sign, half) = if turn < 0.5 { (1.0, turn) } else { (-1.0, turn - 0.5) };
    let angle = std::f64::consts::TAU * if half > 0.25 { 0.5 - half } else { half };
    let square = angle * angle;
    let mut term = angle;
    let mut sum = 0.0;
    let mut k = 1.0;
    while k < 22.0 {
        sum += term;
        term *= -square / ((k + 1.0) * (k + 2.0));
        k += 2.0;
    }
    sign * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_and_logarithm_agree_with_the_platform() {
        for i in 0..1000 {
            let x = f64::from(i) / 250.0 - 2.0;
            assert!((sine_of_turns(x) - (std::f64::consts::TAU * x).sin()).abs() < 1e-13, "{x}");
            let y = (f64::from(i) + 0.5) / 1000.0;
            assert!((ln(y) - y.ln()).abs() < 1e-13, "{y}");
        }
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut random = Random::new(1, &[2, 3]);
        let n = 200_000;
        let (mut sum, mut squares, mut above) = (0.0, 0.0, 0);
        let mut exponential_sum = 0i64;
        for _ in 0..n {
            let x = random.normal();
            sum += x;
            squares += x * x;
            let e = random.exponential(1_000_000);
            assert!(e >= 0);
            exponential_sum += e;
            above += u32::from(e > 1_000_000);
        }
        assert!((sum / f64::from(n)).abs() < 0.01);
        assert!((squares / f64::from(n) - 1.0).abs() < 0.02);
        assert!((exponential_sum as f64 / f64::from(n) / 1e6 - 1.0).abs() < 0.01);
        assert!((f64::from(above) / f64::from(n) - (-1.0f64).exp()).abs() < 0.005);
    }

    #[test]
    fn streams_are_fixed_and_distinct() {
        // Known bits: a change here changes every simulated trace.
        let mut zero = Random(0);
        assert_eq!(zero.next(), 0xE220_A839_7B1D_CDAF);
        assert_ne!(Random::new(7, &[1, 0]).next(), Random::new(7, &[1, 1]).next());
        assert_ne!(Random::new(7, &[1]).next(), Random::new(8, &[1]).next());
    }
}
