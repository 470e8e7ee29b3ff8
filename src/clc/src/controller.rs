//! The controller of the control variable γ: which passes of the forward replay are made.
//!
//! γ near 1 keeps local intervals but never lets an advance decay: every cycle of a periodic drift then pushes the common time
//! line further (the ratchet). A small γ forgets quickly but squeezes intervals. Each pass starts again from the pre-synchronised
//! times; 1 - γ grows tenfold from pass to pass. In the publication's form that goes on until the largest advance is within the allowed
//! multiple of D₀, the largest advance that the plain Lamport clock (γ = 0, δ = 0) needs on the same times. Where the common motion is taken out
//! there is no ratchet, and it goes on until what was moved makes no others wrong ([`within`]).

use crate::ErrorLimit;
use clc_trace::{Fraction, Ticks};

/// γ is never below 1/2: a local interval is never squeezed to less than half.
pub const LARGEST_DECAY: Fraction = match Fraction::from_bits(1 << (Fraction::BITS - 1)) {
    Some(half) => half,
    None => Fraction::ONE,
};

/// 1 - γ is at least this, 10⁻⁴, where violations are mostly by messages to processes that tell the senders nothing, not even through others: nobody
/// could contradict what an advance of the receivers assumes, so it has to fade.
pub const ONE_WAY_DECAY: Fraction = match Fraction::from_bits(Fraction::ONE.bits() / 10_000) {
    Some(decay) => decay,
    None => Fraction::ONE,
};

/// 1 - γ of the pass after one with `decay`: ten times as much, at most [`LARGEST_DECAY`]; `None` if that was the last.
pub fn next_decay(decay: Fraction) -> Option<Fraction> {
    if decay >= LARGEST_DECAY {
        return None;
    }
    // γ = 1 (no decay at all) is followed by the default start value 1 - 10⁻⁵.
    let next = if decay == Fraction::ZERO { Fraction::ONE.bits() / 100_000 } else { decay.bits().saturating_mul(10) };
    Fraction::from_bits(next.min(LARGEST_DECAY.bits()))
}

/// Error of a pass: its largest advance as a multiple of D₀ (1 if nothing has to move).
pub fn error(largest_advance: Ticks, least_advance: Ticks) -> f64 {
    if largest_advance.0 <= 0 {
        return 1.0;
    }
    largest_advance.0 as f64 / least_advance.0.max(1) as f64
}

/// The error of a pass whose common motion is taken out: the sum of its `jumps` as a multiple of that of all violations; and whether it is
/// within `limit`.
///
/// Where clocks are off for longer than a moment, a process that was moved once needs not be moved again, and there are fewer jumps than there were
/// violations. More of them show that what was corrected has made others wrong: that its cause did not last as long as the advance.
pub fn within(jumps: i128, violation: i128, limit: ErrorLimit) -> (f64, bool) {
    let error = if jumps <= 0 { 0.0 } else { jumps as f64 / violation.max(1) as f64 };
    (error, limit.allows_sum(jumps, violation))
}

/// Whether a correction whose common motion is taken out moves events no further than their violations call for: its largest `displacement` is at most two
/// thirds of `limit` times D₀ = `least_advance`, which the two replays share.
///
/// Where clocks go back and forth faster than an advance decays, and it takes long until what one process is moved by reaches another, there are few jumps,
/// and yet both replays drift away from the clocks, by other amounts in each process.
pub fn is_near(displacement: Ticks, least_advance: Ticks, limit: ErrorLimit) -> bool {
    limit.allows_sum(3 * i128::from(displacement.0), 2 * i128::from(least_advance.0))
}

/// Whether another correction has to be preferred to a `first` one that is not near: it moves events by at most two thirds of what that does. Chosen by hand: where a
/// smaller γ hardly displaces less, the clocks differ by as much for long, and forgetting that loses it. (Of eleven generated traces ten were displaced by 0.11 to 0.53 times as much, and came out 1.3 to 13
/// times as close to the truth; one by 0.78 times, and would have been eight times as far.)
pub fn is_nearer(displacement: Ticks, first: Ticks) -> bool {
    3 * i128::from(displacement.0) <= 2 * i128::from(first.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decay_grows_tenfold_up_to_one_half() {
        let mut decay = Fraction::from_f64(1e-5).unwrap();
        let mut passes = vec![decay.to_f64()];
        while let Some(next) = next_decay(decay) {
            decay = next;
            passes.push(decay.to_f64());
        }
        for (got, want) in passes.iter().zip([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.5]) {
            assert!((got - want).abs() < 1e-6 * want, "{passes:?}");
        }
        assert_eq!(passes.len(), 6);
    }

    #[test]
    fn error_is_relative_to_the_lamport_clock() {
        assert_eq!(error(Ticks(30), Ticks(20)), 1.5);
        assert_eq!(error(Ticks(0), Ticks(0)), 1.0);
    }
}
