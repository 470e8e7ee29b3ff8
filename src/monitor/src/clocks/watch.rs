//! Whether a clock does what clocks do: its distance from the system time is watched for jumps, for a rate that no oscillator has, and for
//! standing still.

use crate::gossip::{SECOND, Time};
use std::collections::VecDeque;

/// From when on a clock is remarked on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockLimits {
    /// Nanoseconds of a sudden change of the distance, beside uncertainty and the rate so far.
    pub jump: f64,
    /// Rate against the system time: 100e-6 is 100 us per second. Oscillators that work are good to some 10e-6.
    pub rate: f64,
    /// Over how long the rate is taken.
    pub window: Time,
}

impl Default for ClockLimits {
    fn default() -> Self {
        ClockLimits { jump: 100_000.0, rate: 200e-6, window: 5 * SECOND }
    }
}

/// What is wrong with a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClockFault {
    /// It went forward (or back) by so many nanoseconds at once.
    Jumped(f64),
    /// It runs at a rate of so much more (or less) than the others.
    RunsAway(f64),
    /// It does not move, while others do.
    StandsStill,
}

/// The clock of one node.
#[derive(Debug, Clone)]
pub struct ClockWatch {
    limits: ClockLimits,
    /// When, distance, uncertainty, since the last step that was none of a good clock.
    recent: VecDeque<(Time, f64, f64)>,
    /// Size and rate of such a step: whether it was a jump shows the next one.
    pending: Option<(f64, f64)>,
    /// Size of a step that was followed by a larger one in the same direction: a jump, unless a third one goes on at the rate of the second. Then the clock began to run away between two observations, and the
    /// first step shows a part of that.
    held: Option<f64>,
    /// That it runs away, or stands still, has been said.
    running: bool,
    still: bool,
}

/// A clock that goes at less than this rate of the others stands still: slewing and drift change a rate by less than a thousandth, so any small number would do.
pub(super) const STILL: f64 = 0.05;
/// Observations until a rate is known: two give one, further ones tell a jump from it.
const ENOUGH: usize = 4;

impl ClockWatch {
    /// A clock of which nothing is known yet.
    pub fn new(limits: ClockLimits) -> Self {
        ClockWatch { limits, recent: VecDeque::new(), pending: None, held: None, running: false, still: false }
    }

    /// Takes what the clock is ahead of the system time and what that can be wrong by, at a time of a good clock. Gives a verdict when it is a
    /// new one: that a clock runs away or stands still is said once; that it jumped each time, one observation later.
    pub fn observe(&mut self, at: Time, distance: f64, uncertainty: f64) -> Option<ClockFault> {
        let uncertainty = uncertainty.max(0.0);
        if !distance.is_finite() || self.recent.back().is_some_and(|last| at <= last.0) {
            return None;
        }
        let Some(&(last, before, unsure)) = self.recent.back() else {
            self.recent.push_back((at, distance, uncertainty));
            return None;
        };
        let (passed, step, noise) = ((at - last) as f64, distance - before, uncertainty + unsure);
        let rate = step / passed;
        let drift = self.drift().clamp(-self.limits.rate, self.limits.rate);
        let off = step - drift * passed;
        let bad = off.abs() > self.limits.jump + noise + self.limits.rate * passed;
        // What stands still falls behind by all the time that passes.
        let still = passed > 2.0 * noise && (rate + 1.0).abs() <= STILL;
        if bad {
            self.recent.clear();
        }
        self.recent.push_back((at, distance, uncertainty));
        while self.recent.front().is_some_and(|first| first.0 + self.limits.window < at) && self.recent.len() > ENOUGH {
            self.recent.pop_front();
        }
        if still {
            (self.pending, self.held) = (None, None);
            return (!std::mem::replace(&mut self.still, true)).then_some(ClockFault::StandsStill);
        }
        self.still = false;
        let held = self.held.take();
        if bad {
            return match self.pending.replace((off, rate)) {
                Some((_, before)) if (before - rate).abs() < 0.2 * rate.abs() => self.runs_away(rate),
                // It does not go on: they were jumps, of which this one is the next.
                Some((second, _)) if held.is_some() && !self.running => {
                    held.map(|first| ClockFault::Jumped(first + second))
                }
                Some((first, before)) if !self.running && before * rate > 0.0 && before.abs() < rate.abs() => {
                    self.held = Some(first);
                    None
                }
                // Back at once: that observation was wrong, not the clock.
                Some((jump, _)) if (jump + off).abs() <= self.limits.jump + noise => {
                    self.pending = None;
                    None
                }
                Some((jump, _)) if !self.running => Some(ClockFault::Jumped(jump)),
                _ => None,
            };
        }
        let jump = self.pending.take().filter(|_| !self.running).map(|(jump, _)| jump);
        // Two in a row, as it turns out: together they are what the clock is off by.
        let jump = jump.map(|jump| ClockFault::Jumped(jump + held.unwrap_or(0.0)));
        jump.or_else(|| self.slope())
    }

    fn runs_away(&mut self, rate: f64) -> Option<ClockFault> {
        (!std::mem::replace(&mut self.running, true)).then_some(ClockFault::RunsAway(rate))
    }

    /// A rate that shows over the window only.
    fn slope(&mut self) -> Option<ClockFault> {
        let (&first, &last) = (self.recent.front()?, self.recent.back()?);
        if self.recent.len() < ENOUGH || last.0 - first.0 < self.limits.window / 2 {
            return None;
        }
        let doubt = (first.2 + last.2) / (last.0 - first.0) as f64;
        let rate = self.drift();
        if rate.abs() > self.limits.rate + doubt {
            return self.runs_away(rate);
        }
        self.running = false;
        None
    }

    /// Rate over the window so far.
    fn drift(&self) -> f64 {
        match (self.recent.front(), self.recent.back()) {
            (Some(first), Some(last)) if last.0 > first.0 => (last.1 - first.1) / (last.0 - first.0) as f64,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
