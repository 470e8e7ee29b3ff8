//! How much longer than the latency of their pair messages take: a density per direction, learned from the trace itself.
//!
//! A message is never quicker than its latency, often a little slower, and now and then much slower, since its receiver came late or the network or
//! the scheduler was busy. So the excess e of a travel time has the density of a mixture of two exponential distributions,
//!
//! ```text
//!   f(e) = share / quick · exp(-e / quick) + (1 - share) / slow · exp(-e / slow)        e >= 0
//! ```
//!
//! and where a direction is hardly ever quick, `quick` is long and its messages pull hardly at all: they are bounds. That is what tells a clock that
//! moves from messages that are late together. The three numbers come from expectation maximisation (Dempster, Laird and Rubin 1977) in a
//! fixed number of steps.

/// Density of the excess of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delays {
    /// Share and mean of each part, the quickest first.
    parts: [(f64, f64); PARTS],
}

/// Messages that met no delay to speak of, that met some, that met a long one.
const PARTS: usize = 3;
/// Quantiles of the excesses from which the search for the means of all parts but the last begins.
const BEGIN: [f64; PARTS - 1] = [0.01, 0.15];
/// Shares from which it begins.
const SHARES: [f64; PARTS] = [0.05, 0.25, 0.7];
/// The mean of each part is at least this many times that of the one before.
const APART: f64 = 2.0;
/// Values that a density is learned from at most.
const SAMPLE: usize = 128;
/// Steps of expectation maximisation.
const STEPS: usize = 8;
/// What a message costs at most that would have been too quick, as a logarithm: a clock that jumps is no reason to give up all others.
const MOST: f64 = 8.0;
/// Observations that a prior counts for: no part is made of less than that.
const PRIOR: f64 = 0.5;

impl Delays {
    /// The density of `excesses`, of which negative ones count as zero; the mean of no part is below `least`. All in ticks.
    pub fn learn(excesses: &[f64], least: f64) -> Delays {
        let stride = excesses.len().div_ceil(SAMPLE).max(1);
        let mut sample: Vec<f64> = excesses.iter().step_by(stride).map(|excess| excess.max(0.0)).collect();
        sample.sort_by(f64::total_cmp);
        let count = sample.len().max(1) as f64;
        let mean = sample.iter().sum::<f64>() / count;
        let quantile = |share: f64| sample.get((count * share) as usize).copied().unwrap_or(0.0);
        let mut parts = SHARES.map(|share| (share, mean));
        parts.iter_mut().zip(BEGIN).for_each(|(part, share)| part.1 = quantile(share));
        let mut delays = Delays { parts };
        delays.spread_out(least);
        for _ in 0..STEPS {
            let mut sums = [(0.0, 0.0); PARTS];
            for &excess in &sample {
                let densities = delays.densities(excess);
                let all: f64 = densities.iter().sum();
                for (sum, density) in sums.iter_mut().zip(densities) {
                    sum.0 += density / all;
                    sum.1 += density / all * excess;
                }
            }
            for ((share, mean), (number, sum)) in delays.parts.iter_mut().zip(sums) {
                *mean = (sum + PRIOR * *mean) / (number + PRIOR);
                *share = (number + PRIOR) / (count + PRIOR * PARTS as f64);
            }
            delays.spread_out(least);
        }
        delays
    }

    /// Keeps means apart, and the first at least at `least`.
    fn spread_out(&mut self, least: f64) {
        let mut least = least.max(f64::MIN_POSITIVE);
        for (_, mean) in &mut self.parts {
            *mean = mean.max(least);
            least = APART * *mean;
        }
    }

    /// The parts of the density.
    fn densities(&self, excess: f64) -> [f64; PARTS] {
        self.parts.map(|(share, mean)| share / mean * (-excess / mean).exp() + f64::MIN_POSITIVE)
    }

    /// By how much the logarithm of the density falls per tick: the force with which a message pulls its excess towards zero.
    pub fn force(&self, excess: f64) -> f64 {
        let densities = self.densities(excess.max(0.0));
        let falls: f64 = densities.iter().zip(self.parts).map(|(density, (_, mean))| density / mean).sum();
        falls / densities.iter().sum::<f64>()
    }

    /// Logarithm of the density; below zero it falls with the square of the excess in units of `tolerance`, to a limit.
    pub fn log_density(&self, excess: f64, tolerance: f64) -> f64 {
        let missed = (-excess / tolerance).max(0.0);
        self.densities(excess.max(0.0)).iter().sum::<f64>().ln() - (0.5 * missed * missed).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The q-quantiles of an exponential distribution with this mean.
    fn exponential(mean: f64, count: usize) -> impl Iterator<Item = f64> {
        (0..count).map(move |k| -mean * (1.0 - (k as f64 + 0.5) / count as f64).ln())
    }

    #[test]
    fn the_parts_of_a_mixture_are_found() {
        // Mixed up, since a part of the values is enough to learn from.
        let mut excesses: Vec<f64> = exponential(10.0, 300).chain(exponential(2000.0, 700)).collect();
        (0..1000).for_each(|k| excesses.swap(k, k * 7919 % 1000));
        let delays = Delays::learn(&excesses, 1.0);
        let quick: f64 = delays.parts.iter().filter(|part| part.1 < 200.0).map(|part| part.0).sum();
        assert!((quick - 0.3).abs() < 0.1, "{delays:?}");
        assert!((delays.parts[PARTS - 1].1 - 2000.0).abs() < 700.0, "{delays:?}");
    }

    #[test]
    fn messages_that_are_always_late_hardly_pull() {
        let late: Vec<f64> = exponential(5000.0, 500).collect();
        let prompt: Vec<f64> = exponential(10.0, 500).collect();
        let (late, prompt) = (Delays::learn(&late, 1.0), Delays::learn(&prompt, 1.0));
        assert!(late.force(50.0) < 0.1 * prompt.force(5.0), "{late:?} {prompt:?}");
    }

    #[test]
    fn a_message_that_would_be_too_quick_costs_but_not_without_limit() {
        let delays = Delays::learn(&exponential(10.0, 100).collect::<Vec<_>>(), 1.0);
        let at = |excess| delays.log_density(excess, 2.0);
        assert!(at(-1.0) < at(0.0) && at(-6.0) < at(-1.0));
        assert_eq!(at(0.0) - at(-1e9), MOST);
    }

    #[test]
    fn nothing_and_equal_values_have_a_density() {
        for excesses in [vec![], vec![0.0; 5], vec![7.0; 5], vec![-1e18, 1e18]] {
            let delays = Delays::learn(&excesses, 1.0);
            assert!(delays.log_density(3.0, 1.0).is_finite() && delays.force(3.0) > 0.0, "{delays:?}");
        }
    }
}
