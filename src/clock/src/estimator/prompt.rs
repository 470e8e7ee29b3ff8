//! What the messages of prompt round trips say of clocks: those of a phase of a program in which all are late predict each other with clocks that follow them, and are no evidence of clocks.
//!
//! By how much longer a round trip takes than the shortest of its pair does not depend on the clocks. Where it is hardly longer, two clocks are known to the difference.

use crate::evidence::{Gain, Score};
use crate::observations::Offsets;
use crate::selection::{HeldOut, Jury};
use clc_trace::workers::Workers;

/// Gain, and standard errors of it, from which on messages of prompt round trips speak for lines between hulls instead of recorded offsets where no estimate is taken. Of 796 traces of a generator that is not ours and of perturbed recordings, 24 with recorded clocks
/// were such: 21 came closer to the truth with the lines (by up to 27 times), three were 1.05, 1.15 and 2.7 times as far from it; 2.0 times as close in the geometric mean.
const EVIDENT: f64 = 0.25;
const EVIDENTLY: f64 = 5.0;

/// How well an estimate predicts the messages of prompt round trips.
pub(super) struct PromptTrips<'a> {
    jury: Jury<'a>,
    /// Estimates from one half of all messages, by the other half of these.
    estimated: Score,
    /// The estimate from all messages.
    own: Score,
    workers: Workers,
}

impl<'a> PromptTrips<'a> {
    /// Those among the messages of `jury`, for an estimate that is `solved` from all messages, and `held_out` from either half of them. None if there are too few.
    pub(super) fn new(
        jury: &Jury<'a>,
        held_out: &HeldOut<'_>,
        solved: &Offsets,
        workers: Workers,
    ) -> Option<PromptTrips<'a>> {
        let jury = jury.of_prompt(workers)?;
        let (estimated, own) = (held_out.judge(&jury), jury.judge(solved, workers));
        Some(PromptTrips { jury, estimated, own, workers })
    }

    /// Whether other clocks predict them significantly better than the estimate does, even if that was made from them.
    pub(super) fn speak_for(&self, others: &Offsets) -> bool {
        let score = self.jury.judge(others, self.workers);
        [&self.estimated, &self.own].iter().all(|own| score.gain(own).is_significant())
    }

    /// By how much better other clocks predict them than the `recorded` ones do.
    pub(super) fn gain_of(&self, others: &Offsets, recorded: &Offsets) -> Gain {
        let [others, recorded] = [others, recorded].map(|rows| self.jury.judge(rows, self.workers));
        others.gain(&recorded)
    }

    /// Whether they speak for other clocks instead of the `recorded` ones beyond doubt.
    pub(super) fn prefer(&self, others: &Offsets, recorded: &Offsets) -> bool {
        let gain = self.gain_of(others, recorded);
        gain.mean > EVIDENT && gain.mean > EVIDENTLY * gain.error
    }

    /// By how much better the estimate predicts them than the `recorded` clocks do; or the clocks that were `taken` in its place.
    pub(super) fn gain(&self, taken: Option<&Offsets>, recorded: &Offsets) -> Gain {
        let taken = taken.map(|taken| self.jury.judge(taken, self.workers));
        taken.as_ref().unwrap_or(&self.estimated).gain(&self.jury.judge(recorded, self.workers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::observations::{Observations, OneWay, TwoWay};
    use crate::view::TrialData;
    use std::collections::BTreeMap;

    /// Two clocks that are the same; in three of four stretches messages are late by 5 us, and by 20 us to the second clock.
    fn view() -> TrialData {
        let grid = Grid::new(0, 511_999, 512);
        let mut observations = Observations {
            shortest_trips: BTreeMap::from([((0, 1), 2000.0)]),
            half_trips: BTreeMap::from([((0, 1), 2000.0)]),
            component: vec![0, 0],
            precision: 40.0,
            floor: 40.0,
            ..Observations::default()
        };
        for window in 0..512u32 {
            let jitter = |k: u32| f64::from((window * 37 + k * 17) % 101);
            let (there, back) =
                if window / 8 % 4 == 0 { (0.0, 0.0) } else { (20_000.0 + jitter(2), 5000.0 + jitter(3)) };
            let (there, back) = (2000.0 + jitter(0) + there, 2000.0 + jitter(1) + back);
            observations.one_way.push(OneWay::new(0, 1, window, -there));
            observations.one_way.push(OneWay::new(1, 0, window, -back));
            let (middle, half_trip) = ((back - there) / 2.0, (there + back) / 2.0);
            observations.two_way.push(TwoWay { a: 0, b: 1, window, middle, half_trip, awaited: true, sigma: 40.0 });
        }
        observations.one_way.sort_by_key(|seen| (seen.a, seen.window));
        TrialData { grid, observations, now: rows(|_| 0.0), otherwise: None, anchors: Vec::new() }
    }

    fn rows(second: impl Fn(usize) -> f64) -> Offsets {
        vec![vec![0.0; 512], (0..512).map(second).collect()]
    }

    #[test]
    fn clocks_that_follow_late_messages_are_told_from_right_ones_where_messages_are_prompt() {
        let view = view();
        let all = Jury::of_all(&view);
        let right = rows(|_| 0.0);
        let of = |estimate: &Offsets| {
            let jury = all.of_prompt(Workers::ONE).expect("prompt round trips");
            let estimated = jury.judge(estimate, Workers::ONE);
            PromptTrips { own: estimated.clone(), estimated, jury, workers: Workers::ONE }
        };
        let slope = rows(|window| window as f64 * 5.0);
        let follows = of(&slope);
        assert!(follows.speak_for(&right) && !follows.speak_for(&slope));
        assert!(!of(&right).speak_for(&slope));
        assert!(follows.prefer(&right, &slope) && !follows.prefer(&slope, &right) && !follows.prefer(&right, &right));
        assert!(
            follows.gain(None, &right).is_significant_loss() && follows.gain(Some(&right), &slope).is_significant()
        );
    }

    #[test]
    fn too_few_prompt_round_trips_tell_nothing() {
        let mut view = view();
        view.observations.two_way.retain(|trip| trip.window / 8 % 4 != 0 || trip.window < 24);
        assert!(Jury::of_all(&view).of_prompt(Workers::ONE).is_none());
    }
}
