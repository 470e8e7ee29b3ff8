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

use super::exponential::{exp, exp_single, ln};
use clc_trace::vector::widest;

/// Density of the excess of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Delays {
    /// Share and mean of each part, the quickest first.
    parts: [(f64, f64); PARTS],
}

/// Messages that met no delay to speak of, that met some, that met a long one.
const PARTS: usize = 3;
/// Quantiles of the excesses from which the search for the means of all parts but the last begins. Chosen by hand: the search stays near its
/// beginning, so there is one part each for the quickest, the quick and the late messages.
const BEGIN: [f64; PARTS - 1] = [0.01, 0.15];
/// Shares from which it begins. Chosen by hand: most messages are late, few among the quickest; the search corrects the shares, not the order.
const SHARES: [f64; PARTS] = [0.05, 0.25, 0.7];
/// The mean of each part is at least this many times that of the one before. Chosen by hand: parts that are closer describe the same messages twice;
/// kept farther apart, they cannot follow a narrow distribution.
const APART: f64 = 2.0;
/// Values that a density is learned from at most. Chosen by hand: time grows in proportion; with fewer values, densities are noise.
const SAMPLE: usize = 128;
/// From fewer values nothing is learned but a mean: collective operations of many processes have as many directions as messages.
const TELLING: usize = 3;
/// Steps of expectation maximisation. Chosen by hand: each is a pass over the sample; with fewer, the parts stay where the search began.
const STEPS: usize = 8;
/// What a message costs at most that would have been too quick, as a logarithm: a clock that jumps is no reason to give up all others.
const MOST: f64 = 8.0;
/// Observations that a prior counts for: no part is made of less than that.
const PRIOR: f64 = 0.5;

impl Delays {
    /// The density of `excesses`, of which negative ones count as zero; the mean of no part is below `least`. All in ticks.
    pub(crate) fn learn(excesses: &[f64], least: f64) -> Delays {
        let stride = Delays::stride(excesses.len());
        let mut all = [0.0; SAMPLE];
        let picked = all.iter_mut().zip(excesses.iter().step_by(stride));
        let count = picked.map(|(place, excess)| *place = excess.max(0.0) as f32).count();
        let sample = &mut all[..count];
        let mean = sample.iter().map(|excess| f64::from(*excess)).sum::<f64>() / count.max(1) as f64;
        let mut parts = SHARES.map(|share| (share, mean));
        if !sample.is_empty() {
            for (part, share) in parts.iter_mut().zip(BEGIN) {
                let at = (count as f64 * share) as usize;
                part.1 = f64::from(*sample.select_nth_unstable_by(at, f32::total_cmp).1);
            }
        }
        let mut delays = Delays { parts };
        delays.spread_out(least);
        if sample.len() >= TELLING {
            widest(
                #[inline(always)]
                || delays.maximise(sample, least),
            );
        }
        delays
    }

    /// Of so many excesses every how many-th one is looked at.
    pub(crate) fn stride(count: usize) -> usize {
        count.div_ceil(SAMPLE).max(1)
    }

    /// The steps of expectation maximisation.
    #[inline(always)]
    fn maximise(&mut self, sample: &[f32], least: f64) {
        let count = sample.len().max(1) as f64;
        for _ in 0..STEPS {
            let (chunks, rest) = sample.as_chunks::<LANES>();
            let sums = self.expect(chunks, rest);
            for ((share, mean), (number, sum)) in self.parts.iter_mut().zip(sums) {
                *mean = (sum + PRIOR * *mean) / (number + PRIOR);
                *share = (number + PRIOR) / (count + PRIOR * PARTS as f64);
            }
            self.spread_out(least);
        }
    }

    /// How many of the excesses belong to each part, and their sum.
    #[inline(always)]
    fn expect(&self, excesses: &[[f32; LANES]], rest: &[f32]) -> [(f64, f64); PARTS] {
        let density = self.density();
        let mut totals = Totals::default();
        for excesses in excesses {
            add(&mut totals, &density.shares(excesses), excesses);
        }
        if !rest.is_empty() {
            let excesses = filled_up(rest);
            let mut shares = density.shares(&excesses);
            // The others count for nothing.
            shares.iter_mut().for_each(|part| part[rest.len()..].fill(0.0));
            add(&mut totals, &shares, &excesses);
        }
        totals.map(|(numbers, sums)| (f64::from(numbers.iter().sum::<f32>()), f64::from(sums.iter().sum::<f32>())))
    }

    /// Keeps means apart, and the first at least at `least`.
    fn spread_out(&mut self, least: f64) {
        let mut least = least.max(f64::MIN_POSITIVE);
        for (_, mean) in &mut self.parts {
            *mean = mean.max(least);
            least = APART * *mean;
        }
    }

    /// By how much the logarithm of its density is lower for a message that would have been too quick: half the square of the excess in units of `tolerance`, to a limit.
    #[inline(always)]
    pub(crate) fn missed(excess: f64, tolerance: f64) -> f64 {
        let missed = (-excess / tolerance).max(0.0);
        (0.5 * missed * missed).min(MOST)
    }

    fn density(&self) -> Density {
        let [quickest, quick, (share, mean)] = self.parts;
        let (others, height, rate) = ([quickest, quick], share / mean, 1.0 / mean);
        Density {
            height,
            rate,
            heights: others.map(|(share, mean)| share / mean / height),
            rates: others.map(|(_, mean)| 1.0 / mean - rate),
        }
    }

    /// By how much the logarithm of the density falls per tick at each excess, which it replaces: the force with which a message pulls its excess
    /// towards zero.
    pub(crate) fn forces(&self, excesses: &mut [f64]) {
        let density = self.density();
        all_at_once(
            excesses,
            #[inline(always)]
            |excesses| density.forces(excesses),
        );
    }

    /// Logarithms of the density at each excess, which they replace; below zero it falls with the square of the excess in units of `tolerance`, to a
    /// limit.
    pub(crate) fn log_densities(&self, excesses: &mut [f64], tolerance: f64) {
        let density = self.density();
        all_at_once(
            excesses,
            #[inline(always)]
            |excesses| density.logarithms(excesses, tolerance),
        );
    }
}

/// How many values are worked on at once: single ones fill a register of AVX2 ([`widest`]), double ones two.
const LANES: usize = 8;

/// By part, how many excesses belong to it, and their sum.
type Totals = [([f32; LANES], [f32; LANES]); PARTS];

/// Adds excesses, of which so much belongs to each part.
#[inline(always)]
fn add(totals: &mut Totals, shares: &[[f32; LANES]; PARTS], excesses: &[f32; LANES]) {
    for ((numbers, sums), shares) in totals.iter_mut().zip(shares) {
        for lane in 0..LANES {
            numbers[lane] += shares[lane];
            sums[lane] += shares[lane] * excesses[lane];
        }
    }
}

/// Fewer values than are worked on at once, with zeros behind them: all at once are hardly slower than one.
#[inline(always)]
fn filled_up<T: Copy + Default>(few: &[T]) -> [T; LANES] {
    let mut all = [T::default(); LANES];
    all[..few.len()].copy_from_slice(few);
    all
}

/// Replaces values by what `function` makes of them.
#[inline(always)]
fn all_at_once(values: &mut [f64], function: impl Fn(&mut [f64; LANES])) {
    let (chunks, rest) = values.as_chunks_mut::<LANES>();
    widest(
        #[inline(always)]
        || {
            for chunk in chunks {
                function(chunk);
            }
            if !rest.is_empty() {
                let mut last = filled_up(rest);
                function(&mut last);
                rest.copy_from_slice(&last[..rest.len()]);
            }
        },
    );
}

/// [`Delays`], ready to be evaluated: in units of the last part, which falls least,
///
/// ```text
///   f(e) = height · exp(-rate e) · (1 + Σ heights · exp(-rates e))
/// ```
///
/// so that ratios of parts need an exponential function less, and never are those of two numbers that are too small. They are told to seven digits, which are more than messages show.
#[derive(Debug, Clone, Copy)]
struct Density {
    height: f64,
    rate: f64,
    heights: [f64; PARTS - 1],
    rates: [f64; PARTS - 1],
}

/// Largest height of a part, in units of the last one: single numbers go no farther than a hundred million times that.
const HIGHEST: f64 = 1e30;
/// The logarithm of the density falls by no more than that: how late a message is that nobody expects is no evidence.
const LOWEST: f64 = 700.0;

impl Density {
    /// The parts of the density at these excesses, of which none is negative, but for the last one, which is 1.
    #[inline(always)]
    fn parts(&self, excesses: &[f32; LANES]) -> [[f32; LANES]; PARTS - 1] {
        let mut parts = [[0.0; LANES]; PARTS - 1];
        for (number, part) in parts.iter_mut().enumerate() {
            let (height, rate) = (self.heights[number].min(HIGHEST) as f32, self.rates[number] as f32);
            for lane in 0..LANES {
                part[lane] = height * exp_single(-rate * excesses[lane]);
            }
        }
        parts
    }

    /// How much of each excess belongs to each part.
    #[inline(always)]
    fn shares(&self, excesses: &[f32; LANES]) -> [[f32; LANES]; PARTS] {
        let [quickest, quick] = self.parts(excesses);
        let mut shares = [quickest, quick, [1.0; LANES]];
        for lane in 0..LANES {
            let all = 1.0 / (1.0 + quickest[lane] + quick[lane]);
            for part in &mut shares {
                part[lane] *= all;
            }
        }
        shares
    }

    #[inline(always)]
    fn forces(&self, excesses: &mut [f64; LANES]) {
        let [quickest, quick] = self.parts(&excesses.map(|excess| excess.max(0.0) as f32));
        let rates = self.rates.map(|rate| rate as f32);
        for (lane, force) in excesses.iter_mut().enumerate() {
            let more = quickest[lane] * rates[0] + quick[lane] * rates[1];
            *force = self.rate + f64::from(more / (1.0 + quickest[lane] + quick[lane]));
        }
    }

    #[inline(always)]
    fn logarithms(&self, excesses: &mut [f64; LANES], tolerance: f64) {
        let missed = excesses.map(|excess| Delays::missed(excess, tolerance));
        excesses.iter_mut().for_each(|excess| *excess = excess.max(0.0));
        for (lane, logarithm) in excesses.iter_mut().enumerate() {
            let excess = *logarithm;
            let mut all = 1.0;
            for part in 0..PARTS - 1 {
                all += self.heights[part] * exp(-self.rates[part] * excess);
            }
            *logarithm = ln(self.height * all) - (self.rate * excess).min(LOWEST) - missed[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The q-quantiles of an exponential distribution with this mean.
    fn exponential(mean: f64, count: usize) -> impl Iterator<Item = f64> {
        (0..count).map(move |k| -mean * (1.0 - (k as f64 + 0.5) / count as f64).ln())
    }

    fn force(delays: &Delays, excess: f64) -> f64 {
        // As many as are worked on at once, and one more.
        let mut all = [excess; LANES + 1];
        delays.forces(&mut all);
        assert!(all.iter().all(|force| *force == all[0]));
        all[0]
    }

    fn log_density(delays: &Delays, excess: f64, tolerance: f64) -> f64 {
        let mut all = [excess; LANES + 1];
        delays.log_densities(&mut all, tolerance);
        assert!(all.iter().all(|logarithm| *logarithm == all[0]));
        all[0]
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
        assert!(force(&late, 50.0) < 0.1 * force(&prompt, 5.0), "{late:?} {prompt:?}");
    }

    #[test]
    fn a_message_that_would_be_too_quick_costs_but_not_without_limit() {
        let delays = Delays::learn(&exponential(10.0, 100).collect::<Vec<_>>(), 1.0);
        let at = |excess| log_density(&delays, excess, 2.0);
        assert!(at(-1.0) < at(0.0) && at(-6.0) < at(-1.0));
        assert!((at(0.0) - at(-1e9) - MOST).abs() < 1e-9);
    }

    #[test]
    fn nothing_and_equal_values_have_a_density() {
        for excesses in [vec![], vec![0.0; 5], vec![7.0; 5], vec![-1e18, 1e18]] {
            let delays = Delays::learn(&excesses, 1.0);
            assert!(log_density(&delays, 3.0, 1.0).is_finite() && force(&delays, 3.0) > 0.0, "{delays:?}");
        }
    }
}
