//! Forward amortisation: the controlled logical clock of one timeline.

use clc_trace::{Fraction, Ticks};

/// The two constants of the forward formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardParameters {
    /// 1 - γ: how fast an advance decays, in ticks per tick.
    pub decay: Fraction,
    /// δ: distinct events of a location stay at least min(δ, original distance) apart.
    pub separation: Ticks,
}

impl ForwardParameters {
    /// The largest original distance at which δ can bind is below this: 8δ + 8, or 0 without δ.
    ///
    /// Events of a location that are closer have to be visited one by one; everything farther apart follows the closed form
    /// of [`ForwardClock::advance_at`]. γ is at least 1/2, so a replay leaves at least half of a distance, and the map to the common time
    /// half of that ([`clc_trace::CommonTime`]); rounding takes two ticks at most, and the finish half of the rest.
    pub fn close(separation: Ticks) -> Ticks {
        if separation.0 <= 0 { Ticks::ZERO } else { Ticks(separation.0.saturating_mul(8).saturating_add(8)) }
    }
}

/// Result of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardStep {
    /// LC of the event.
    pub time: Ticks,
    /// D: how far a receive was moved beyond what its own timeline demanded; 0 for everything else.
    pub jump: Ticks,
    /// Whether the advance starts anew here (a jump, or δ was binding).
    pub anchored: bool,
}

/// The clock of one timeline. With C the pre-synchronised time, it computes for each event
///
/// ```text
/// LC_j = max( R_j,                                  bound by the logical sends, if the event is a logical receive
///             LC_{j-1} + min(δ, C_j - C_{j-1}),     j-1: the event before on the same location
///             C_j + o(C_j) )
/// o(t) = max(0, o_k - ⌊(1-γ)(t - C_k)⌋)             k: the last event at which the second line or R was the larger
/// ```
///
/// The third line is the closed form of `max(LC_{j-1} + γ (C_j - C_{j-1}), C_j)` of the paper between two
/// jumps, with a rounding that does not depend on which events lie between. Hence only events that take part in
/// synchronisation, and pairs closer than [`ForwardParameters::close`], have to be visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardClock {
    parameters: ForwardParameters,
    anchor: Ticks,
    advance: Ticks,
}

impl ForwardClock {
    /// A clock without any advance.
    pub fn new(parameters: ForwardParameters) -> Self {
        ForwardClock { parameters, anchor: Ticks(0), advance: Ticks(0) }
    }

    /// o_k: the advance at the anchor.
    pub fn advance(&self) -> Ticks {
        self.advance
    }

    /// o(t): the advance that is left at `time`, which is not before the anchor.
    #[inline]
    pub fn advance_at(&self, time: Ticks) -> Ticks {
        if self.advance.0 == 0 {
            return Ticks::ZERO;
        }
        Ticks((self.advance.0 - self.parameters.decay.floor_of(time.0 - self.anchor.0)).max(0))
    }

    /// Visits the next event of the timeline: at `time` C, `previous` = (C, LC) of the visited event before on the same location,
    /// `bound` = R or [`Ticks::MIN`].
    #[inline]
    pub fn step(&mut self, time: Ticks, previous: Option<(Ticks, Ticks)>, bound: Ticks) -> ForwardStep {
        self.step_apart(time, time, previous, bound)
    }

    /// As [`ForwardClock::step`], where the distance of events is not that of the times `time`, but of the times `original` (and in `previous`).
    #[inline]
    pub fn step_apart(
        &mut self,
        time: Ticks,
        original: Ticks,
        previous: Option<(Ticks, Ticks)>,
        bound: Ticks,
    ) -> ForwardStep {
        let decayed = time + self.advance_at(time);
        let mut own = decayed;
        if let Some((before, logical)) = previous {
            own = own.max(logical + self.parameters.separation.min(original - before));
        }
        let logical = own.max(bound);
        let anchored = logical > decayed;
        if anchored {
            self.anchor = time;
            self.advance = logical - time;
        }
        ForwardStep { time: logical, jump: logical - own, anchored }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(decay: f64, separation: i64) -> ForwardClock {
        ForwardClock::new(ForwardParameters {
            decay: Fraction::from_f64(decay).unwrap(),
            separation: Ticks(separation),
        })
    }

    #[test]
    fn a_receive_before_its_send_jumps_and_the_advance_decays() {
        let mut clock = clock(0.25, 0);
        assert_eq!(
            clock.step(Ticks(10), None, Ticks(100)),
            ForwardStep { time: Ticks(100), jump: Ticks(90), anchored: true }
        );
        let next = clock.step(Ticks(50), Some((Ticks(10), Ticks(100))), Ticks::MIN);
        assert_eq!(next, ForwardStep { time: Ticks(130), jump: Ticks(0), anchored: false }); // 50 + 90 - 40/4
        let late = clock.step(Ticks(1000), Some((Ticks(50), Ticks(130))), Ticks::MIN);
        assert_eq!(late.time, Ticks(1000));
    }

    #[test]
    fn events_stay_apart_by_delta_but_equal_times_stay_equal() {
        let mut clock = clock(0.5, 1);
        clock.step(Ticks(0), None, Ticks(100));
        let one = clock.step(Ticks(1), Some((Ticks(0), Ticks(100))), Ticks::MIN);
        assert_eq!(one.time, Ticks(101));
        let two = clock.step(Ticks(2), Some((Ticks(1), one.time)), Ticks::MIN);
        assert_eq!(two, ForwardStep { time: Ticks(102), jump: Ticks(0), anchored: true });
        let tie = clock.step(Ticks(2), Some((Ticks(2), two.time)), Ticks::MIN);
        assert_eq!(tie.time, two.time);
    }

    #[test]
    fn without_violations_nothing_moves() {
        let mut clock = clock(1e-5, 1);
        let mut previous = None;
        for time in [5, 6, 6, 9, 400] {
            let step = clock.step(Ticks(time), previous, Ticks(time - 3));
            assert_eq!(step, ForwardStep { time: Ticks(time), jump: Ticks(0), anchored: false });
            previous = Some((Ticks(time), step.time));
        }
    }
}
