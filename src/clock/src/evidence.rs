//! How well clocks predict messages that they were not made from: the one measure by which models of clocks are compared.
//!
//! The windows of a trace are dealt out in blocks, every other block to either half. What is learned from one half (the clocks, the latency of
//! each pair, the density of the delays of each direction) is judged by the other half: the mean logarithm of the density of its messages.
//! A model that follows messages that were late together loses there, and so does one that cannot follow its clocks. The difference of
//! two models has a standard error, from stretches of the run.

use super::delays::Delays;
use super::latencies::{Latencies, Reading};
use super::observations::{Observations, OneWay};
use clc_trace::workers::Workers;
use serde::{Deserialize, Serialize};

/// What travel times look like with some clocks.
#[derive(Debug, Clone)]
pub struct DelayModel {
    latencies: Latencies,
    /// By direction.
    delays: Vec<Delays>,
}

/// A direction is learned to be no quicker than this many times the precision of the observations,
const QUICKEST: f64 = 2.0;
/// and a message may be too quick by so many before it counts as such. Chosen by hand: a smaller value holds the noise of single messages against the
/// clocks, a larger one overlooks clocks with which messages arrive too early.
const TOLERANCE: f64 = 3.0;

impl DelayModel {
    /// Learns them from `observations` with these corrections; `around` as in [`Latencies::new`].
    pub fn learn(
        observations: &Observations,
        offsets: &[f64],
        windows: usize,
        reading: Reading,
        around: Option<f64>,
        workers: Workers,
    ) -> DelayModel {
        let latencies = Latencies::new(observations, offsets, windows, reading, around, workers);
        DelayModel::with(latencies, observations, offsets, windows, workers)
    }

    /// The same with latencies that are known.
    pub(super) fn with(
        latencies: Latencies,
        observations: &Observations,
        offsets: &[f64],
        windows: usize,
        workers: Workers,
    ) -> DelayModel {
        let directions = observations.directions();
        let delays = directions.map(workers, |_, block| {
            let mut excesses = Vec::new();
            let learned = block.map(|at| {
                let direction = latencies.at(at);
                excesses.clear();
                let messages = &observations.one_way[directions.messages(at)];
                // The others would not be looked at.
                let stride = Delays::stride(OneWay::awaited(messages).count());
                let awaited = OneWay::awaited(messages).step_by(stride);
                excesses.extend(awaited.map(|seen| direction.excess(seen, offsets, windows)));
                Delays::learn(&excesses, QUICKEST * observations.precision)
            });
            learned.collect::<Vec<Delays>>()
        });
        DelayModel { latencies, delays: delays.into_iter().flatten().collect() }
    }

    /// The latencies.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// The density of the delays of the messages of a direction that were waited for, by its number among the observations that this was learned from.
    pub(super) fn delays(&self, direction: usize) -> &Delays {
        &self.delays[direction]
    }

    /// Judges clocks by `observations` that they were not made from; errors are told by these `stretches` of the run.
    pub fn judge(&self, observations: &Observations, offsets: &[f64], windows: usize, stretches: &Stretches) -> Score {
        let mut score = Score::default();
        let tolerance = TOLERANCE * observations.precision;
        let mut values = Vec::new();
        let directions = observations.directions();
        for (at, pair) in directions.pairs().iter().enumerate() {
            let Some(known) = self.latencies.find(*pair) else { continue };
            let (direction, delays) = (self.latencies.at(known), self.delays(known));
            let group = &observations.one_way[directions.messages(at)];
            values.clear();
            values.extend(group.iter().map(|seen| direction.excess(seen, offsets, windows)));
            delays.log_densities(&mut values, tolerance);
            for (seen, value) in group.iter().zip(&values) {
                let Some(sum) = score.sums.get_mut(stretches.of(seen.window)) else { continue };
                if seen.awaited {
                    sum.0 += value;
                    sum.1 += 1;
                } else {
                    // For how long it lay there says nothing, but it was not received before it was sent.
                    sum.0 -= Delays::missed(direction.excess(seen, offsets, windows), tolerance);
                }
            }
        }
        score
    }
}

/// Stretches of the run by which errors are told. Chosen by hand: more have few messages each, and those that are late together reach into several;
/// from fewer, the error of a mean is not known.
const STRETCHES: usize = 64;
/// The smallest and the largest gains of one in so many stretches are left out. Chosen by hand: with none left out, one bad stretch decides; with
/// more, clocks that are wrong in a part of the run pass.
const TRIMMED: usize = 16;

/// Stretches of a run, from whose differences the error of a mean is told.
#[derive(Debug, Clone)]
pub struct Stretches {
    /// By window.
    of: Vec<usize>,
}

impl Stretches {
    /// Those of a run of so many `windows` whose messages are in these `parts`, with messages in as many windows each: most programs begin with a time without any, and where all messages are in few
    /// stretches, nothing is known of errors.
    pub(crate) fn with_messages(parts: &[Observations], windows: usize) -> Stretches {
        let mut seen = vec![false; windows];
        for one in parts.iter().flat_map(|part| &part.one_way) {
            if let Some(window) = seen.get_mut(one.window as usize) {
                *window = true;
            }
        }
        let count = seen.iter().filter(|seen| **seen).count().max(1);
        let before = seen.iter().scan(0, |before, &seen| Some(std::mem::replace(before, *before + usize::from(seen))));
        Stretches { of: before.map(|before| before * STRETCHES / count).collect() }
    }

    /// Those of a run of so many `windows`, as long each.
    pub fn even(windows: usize) -> Stretches {
        Stretches { of: (0..windows).map(|window| window * STRETCHES / windows.max(1)).collect() }
    }

    /// That of a window.
    fn of(&self, window: u32) -> usize {
        self.of.get(window as usize).copied().unwrap_or(STRETCHES)
    }
}

/// Logarithms of densities, by stretch of the run: sum and number.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    sums: [(f64, u64); STRETCHES],
}

impl Default for Score {
    fn default() -> Self {
        Score { sums: [(0.0, 0); STRETCHES] }
    }
}

impl Score {
    /// Adds what another part of the messages says.
    pub fn merge(&mut self, other: &Score) {
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            sum.0 += more.0;
            sum.1 += more.1;
        }
    }

    /// The mean over all messages; minus infinity without any.
    pub fn mean(&self) -> f64 {
        let (sum, count) = self.sums.iter().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        if count == 0 { f64::NEG_INFINITY } else { sum / count as f64 }
    }

    /// By how much the mean is larger than that of another model, and the standard error of that, from the stretches that both have judged but the
    /// few that speak most for either: there may be one without messages around it, or one in which a clock jumps.
    pub fn gain(&self, other: &Score) -> Gain {
        let stretches = self.sums.iter().zip(&other.sums).filter(|(one, two)| one.1 > 0 && one.1 == two.1);
        let mut gains: Vec<(f64, f64)> = stretches.map(|(one, two)| (one.0 - two.0, one.1 as f64)).collect();
        gains.sort_by(|one, two| (one.0 / one.1).total_cmp(&(two.0 / two.1)));
        let trimmed = gains.len() / TRIMMED;
        let gains = gains.get(trimmed..gains.len() - trimmed).unwrap_or(&[]);
        let messages: f64 = gains.iter().map(|gain| gain.1).sum::<f64>().max(1.0);
        let mean = gains.iter().map(|gain| gain.0).sum::<f64>() / messages;
        let squares: f64 = gains.iter().map(|gain| (gain.0 - mean * gain.1).powi(2)).sum();
        let count = gains.len() as f64;
        let error = if count < 2.0 { f64::INFINITY } else { (squares * count / (count - 1.0)).sqrt() / messages };
        Gain { mean, error }
    }
}

/// By how much one model predicts messages better than another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Mean difference of the logarithms of their densities.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

/// Standard errors from which on a gain is no chance, and from how much on it matters: the order of a few messages comes right by the logical clock.
const SIGNIFICANT: f64 = 3.5;
const WORTHWHILE: f64 = 0.1;
/// Standard errors and size of a gain that decides by itself. With perfect clocks in 160 random runs the largest was 0.7.
const CERTAIN: f64 = 10.0;
const OVERWHELMING: f64 = 1.0;

/// Largest loss that is small, and largest standard error with which a loss can be told from none. Chosen by hand: with a larger loss, the simpler
/// model is taken where it predicts worse; with a smaller one, clocks bend by chance. A larger error demands a gain more seldom.
const SMALL_LOSS: f64 = 0.05;
const KNOWN: f64 = 0.1;

/// Standard errors from which on a gain or a loss is probably no chance. Chosen by hand: chance alone exceeds it in one case of 44, if errors are
/// normal; a larger value leaves more cases undecided.
const LIKELY: f64 = 2.0;

/// Standard errors by which other estimated clocks have to predict messages better to be taken. Chosen by hand: with two, a simulated random walk came out 1.13 times as far off.
const NO_CHANCE: f64 = 3.0;
/// The same if they are elsewhere by the same model. Chosen by hand: with three, a simulated clock of NTP came out five times as far off.
const ELSEWHERE: f64 = 4.0;
/// And by how much. Chosen by hand: it takes further looks at messages; of what was gained by less nothing was left in the end.
const WORTH_LOOKS: f64 = 0.01;

/// Largest loss, and in standard errors, that messages feign which are late together. In 206 recordings with known truth straight lines with losses up to this were better than the estimate in 22,
/// by 4 times in the median, and worse in 8, by 1.7; with larger ones, clocks of another generator and of ours did walk or were sines.
const FEIGNED_LOSS: f64 = 0.07;
const FEIGNED_ERRORS: f64 = 4.0;
/// Where nothing but messages tells clocks apart, lines that no message contradicts lose up to so many standard errors to curves that follow what is late together: of recordings of 12 programs without offsets, whose clocks drifted evenly
/// or walked, up to 6.3, and lines were up to 8 times as close to the truth. Of 15 generated traces whose clocks bend by less than messages are late they lost 7.3 to 32. Where nearly all messages are late, recordings lost up to 25.
const ALONE_ERRORS: f64 = 7.0;
/// The same where nearly all messages are late: of 12 recordings without offsets whose lines were possible ones, the loss was up to 0.12, and lines were better in 10 (up to nine times as close to the truth), worse in one (1.4 times as far).
const LATE_LOSS: f64 = 0.15;

impl Gain {
    /// Whether it is more than chance, and large enough to give up recorded clocks for it.
    pub fn is_significant(&self) -> bool {
        self.mean > SIGNIFICANT * self.error && self.mean > WORTHWHILE
    }

    /// Whether it is more than chance, however small: enough to prefer one estimate to another.
    pub(crate) fn is_no_chance(&self) -> bool {
        self.mean > NO_CHANCE * self.error
    }

    /// Whether it is a loss that is more than chance.
    pub(crate) fn is_loss_beyond_chance(&self) -> bool {
        Gain { mean: -self.mean, ..*self }.is_no_chance()
    }

    /// Whether it is enough to prefer one estimate to another by the same model.
    pub(crate) fn is_certain_of_others(&self) -> bool {
        self.mean > ELSEWHERE * self.error && self.mean > WORTH_LOOKS
    }

    /// Whether it is a loss that is more than chance, and large enough to matter.
    pub fn is_significant_loss(&self) -> bool {
        Gain { mean: -self.mean, ..*self }.is_significant()
    }

    /// Whether too little is known of it to speak against clocks that explain most violations.
    pub fn is_unclear(&self) -> bool {
        self.error > KNOWN && self.error.is_finite() && self.mean > -LIKELY * self.error
    }

    /// Whether it is probably no chance, and large enough to matter: enough for clocks that explain nearly all violations.
    pub fn is_likely(&self) -> bool {
        self.mean > LIKELY * self.error && self.mean > WORTHWHILE
    }

    /// Whether it is a loss that is probably no chance, and large enough to matter.
    pub fn is_likely_loss(&self) -> bool {
        Gain { mean: -self.mean, ..*self }.is_likely()
    }

    /// Whether it is a gain, or a loss that does not matter.
    pub(crate) fn is_slight_at_worst(&self) -> bool {
        self.mean >= -WORTHWHILE
    }

    /// Whether it is a gain, or a loss of a standard error at most, however large that is.
    pub(crate) fn is_hardly_a_loss(&self) -> bool {
        self.mean >= -self.error
    }

    /// Whether it is a loss of no more than a standard error, and a small one: then the simpler model is taken (the rule of one standard error of Breiman et al. 1984). Where the error is
    /// large, little is known of either, and it has to be a gain.
    pub(crate) fn is_no_loss(&self) -> bool {
        if self.error <= KNOWN {
            self.mean >= -self.error.min(SMALL_LOSS)
        } else {
            self.mean >= self.error && self.error.is_finite()
        }
    }

    /// Whether it is a loss that messages can feign which are late together: what bends follows them in either half of the messages. Straight lines that leave no violation are then as likely.
    pub(crate) fn is_feigned_loss(&self) -> bool {
        self.error <= KNOWN && self.mean >= -FEIGNED_LOSS && self.mean >= -FEIGNED_ERRORS * self.error
    }

    /// The same where nearly all messages are late.
    pub(crate) fn is_loss_of_late_messages(&self) -> bool {
        self.error <= KNOWN && self.mean >= -LATE_LOSS && self.mean >= -FEIGNED_ERRORS * self.error
    }

    /// Whether it is a loss that messages alone can feign, if that is all that tells clocks apart, to lines that none of them contradicts; `late` if nearly all of them are, or so many that they have pulled the other clocks away.
    pub(crate) fn is_loss_of_the_possible(&self, late: bool) -> bool {
        self.mean >= -ALONE_ERRORS * self.error || late && self.mean >= -OVERWHELMING
    }

    /// Whether it is beyond all doubt: the typical message is e times as likely.
    pub fn is_overwhelming(&self) -> bool {
        self.mean > CERTAIN * self.error && self.mean > OVERWHELMING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many messages per stretch, with these logarithms.
    fn score(values: impl Fn(usize) -> f64) -> Score {
        let mut score = Score::default();
        score.sums.iter_mut().enumerate().for_each(|(stretch, sum)| *sum = (10.0 * values(stretch), 10));
        score
    }

    #[test]
    fn a_loss_that_may_be_chance_is_none_if_it_is_small() {
        let gain = |mean, error| Gain { mean, error };
        assert!(gain(0.3, 0.2).is_no_loss() && gain(-0.01, 0.02).is_no_loss());
        assert!(!gain(-0.03, 0.02).is_no_loss() && !gain(-0.3, 5.0).is_no_loss());
        // Too few messages to tell.
        assert!(gain(0.8, 0.7).is_no_loss() && !gain(0.3, 0.7).is_no_loss() && !gain(0.0, f64::INFINITY).is_no_loss());
        assert!(!gain(f64::NAN, 0.1).is_no_loss());
    }

    #[test]
    fn a_small_loss_may_be_feigned() {
        let gain = |mean, error| Gain { mean, error };
        assert!(gain(-0.03, 0.01).is_feigned_loss() && gain(0.3, 0.02).is_feigned_loss());
        assert!(!gain(-0.03, 0.005).is_feigned_loss() && !gain(-0.08, 0.05).is_feigned_loss());
        assert!(!gain(0.5, 0.2).is_feigned_loss() && !gain(f64::NAN, 0.01).is_feigned_loss());
    }

    #[test]
    fn late_messages_feign_larger_losses() {
        let gain = |mean, error| Gain { mean, error };
        assert!(gain(-0.12, 0.04).is_loss_of_late_messages() && gain(0.3, 0.02).is_loss_of_late_messages());
        assert!(!gain(-0.12, 0.02).is_loss_of_late_messages() && !gain(-0.16, 0.08).is_loss_of_late_messages());
        assert!(!gain(0.5, 0.2).is_loss_of_late_messages() && !gain(f64::NAN, 0.01).is_loss_of_late_messages());
    }

    #[test]
    fn possible_lines_may_lose_more_where_messages_are_late() {
        let gain = |mean, error| Gain { mean, error };
        assert!(gain(-0.16, 0.026).is_loss_of_the_possible(false) && gain(-0.6, 0.025).is_loss_of_the_possible(true));
        assert!(!gain(-0.22, 0.03).is_loss_of_the_possible(false) && !gain(-1.1, 0.1).is_loss_of_the_possible(true));
        assert!(!gain(f64::NAN, 0.1).is_loss_of_the_possible(true));
    }

    #[test]
    fn a_gain_is_told_from_chance_by_the_stretches_of_the_run() {
        let recorded = score(|_| -5.0);
        let steady = score(|stretch| -4.0 + 0.1 * (stretch % 3) as f64);
        assert!(steady.gain(&recorded).is_significant());
        assert!(!recorded.gain(&steady).is_significant());
        // As large on average, but half of the run speaks against it.
        let fickle = score(|stretch| if stretch % 2 == 0 { 1.0 } else { -9.5 });
        let gain = fickle.gain(&recorded);
        assert!(gain.mean > 0.5 && !gain.is_significant(), "{gain:?}");
        assert!(!score(|stretch| -4.5 + 0.1 * (stretch % 3) as f64).gain(&recorded).is_overwhelming());
        assert!(score(|stretch| -3.0 + 0.1 * (stretch % 3) as f64).gain(&recorded).is_overwhelming());
        // Certain, but nothing to speak of.
        assert!(!score(|_| -4.95).gain(&recorded).is_significant());
        assert!(!recorded.gain(&recorded).is_significant());
    }

    #[test]
    fn stretches_have_messages_in_as_many_windows_each() {
        use crate::observations::OneWay;
        let seen = |windows: &mut dyn Iterator<Item = u32>| Observations {
            one_way: windows.map(|window| OneWay::new(0, 1, window, 0.0)).collect(),
            ..Observations::default()
        };
        // Everywhere: as long each.
        let everywhere = [seen(&mut (0..320)), seen(&mut (320..640))];
        let found = Stretches::with_messages(&everywhere, 640);
        assert!((0..640).all(|window| found.of(window) == window as usize / 10));
        assert_eq!(found.of, Stretches::even(640).of);
        // In two places of a long run, with the messages dealt out in halves.
        let windows = || (5000..5064).chain(9000..9064);
        let [even, odd] = [0, 1].map(|half| seen(&mut windows().filter(|window| window % 2 == half)));
        let stretches = Stretches::with_messages(&[even, odd], 10_000);
        assert!(windows().enumerate().all(|(at, window)| stretches.of(window) == at / 2));
    }

    #[test]
    fn a_gain_may_be_unclear_or_likely() {
        let gain = |mean, error| Gain { mean, error };
        assert!(gain(-0.06, 0.18).is_unclear() && gain(-0.9, 0.6).is_unclear() && gain(2.4, 0.7).is_unclear());
        // A loss; known well; not known at all.
        assert!(
            !gain(-0.5, 0.2).is_unclear() && !gain(-0.01, 0.05).is_unclear() && !gain(0.0, f64::INFINITY).is_unclear()
        );
        assert!(gain(2.4, 0.7).is_likely() && !gain(2.4, 1.3).is_likely() && !gain(0.08, 0.01).is_likely());
    }

    #[test]
    fn a_few_stretches_do_not_decide() {
        let recorded = score(|_| -5.0);
        let once = score(|stretch| if stretch < 3 { 900.0 } else { -5.0 });
        assert!(once.gain(&recorded).mean.abs() < 1e-9);
        assert!(!Score::default().gain(&recorded).is_significant());
    }
}
