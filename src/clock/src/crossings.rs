//! Messages of a clock that may have jumped or stood still: how likely they are, and what they tell of the time at which it stood still.

/// A message of the clock in question with another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// When the clock sent or received it, in ticks of the recorded clock.
    pub own: i64,
    /// How long it took if the clock has not stepped yet, in ticks,
    pub before: f64,
    /// if it has stepped,
    pub after: f64,
    /// and as the clocks are estimated without a step.
    pub without: f64,
    /// Whether the clock received it.
    pub received: bool,
}

/// A message counts as quick that took no more than this many times what observations are known to. Chosen by hand: with a smaller value nearly all
/// messages are late, and few places differ; with a larger one, late messages place the step.
const QUICK: f64 = 10.0;
/// A message that takes less than no time is so many times as unlikely, as a logarithm, as one that is late by the height of the step. Chosen by
/// hand: with more, one wrong timestamp decides; with less, late messages outvote what cannot be.
const IMPOSSIBLE: f64 = 2.0;
/// Part of all messages that take no longer than a quick one.
const SHARE: f64 = 0.1;
/// Messages of a time at which a clock stood still that are tried at most.
const MOST: usize = 400;

/// What it costs that messages take so long: the later, the unlikelier, and impossible ones far more so.
pub(crate) struct TravelCost {
    scale: f64,
    /// Of one that is late by the height of the step.
    pub(crate) most: f64,
}

impl TravelCost {
    pub(crate) fn new(height: f64, precision: f64) -> TravelCost {
        let scale = QUICK * precision;
        TravelCost { scale, most: (1.0 + height.abs() / scale).ln() }
    }

    pub(crate) fn of(&self, travel: f64) -> f64 {
        if travel >= 0.0 {
            (1.0 + travel / self.scale).ln()
        } else {
            IMPOSSIBLE * self.most * (-travel / self.scale).min(1.0)
        }
    }

    /// What a step costs before each of these crossings, which are in order, and after the last one.
    pub(crate) fn before_each<'a>(
        &self,
        crossings: impl Iterator<Item = &'a Crossing> + Clone,
        (before, after): (f64, f64),
    ) -> Vec<f64> {
        let of = |crossing: &Crossing| {
            let forward = if crossing.received { 1.0 } else { -1.0 };
            (self.of(crossing.before + forward * before), self.of(crossing.after + forward * after))
        };
        let mut sum: f64 = crossings.clone().map(|crossing| of(crossing).1).sum();
        let mut costs = vec![sum];
        for (before, after) in crossings.map(of) {
            sum += before - after;
            costs.push(sum);
        }
        costs
    }
}

/// The time that a clock shows again and again next to a step before crossing `k`, while it stands still, if it does.
pub(crate) fn still_at(crossings: &[Crossing], k: usize) -> Option<i64> {
    let again = |k: usize| {
        let (one, other) = (crossings.get(k)?, crossings.get(k + 1)?);
        (one.own == other.own).then_some(one.own)
    };
    k.checked_sub(2).and_then(again).or_else(|| again(k))
}

/// How late events are, in ticks, for which a clock stood still at a `time`, but no more than `most`: so that messages are early by as little as possible in all, and as likely as possible then.
pub(crate) fn held(crossings: &[Crossing], time: i64, most: i64, cost: &TravelCost) -> i64 {
    let quick = quick(crossings).unwrap_or(0.0);
    let of_time = || crossings.iter().filter(|crossing| crossing.own == time);
    let travel = |crossing: &Crossing, late: f64| crossing.before + if crossing.received { late } else { -late };
    let early = |late: i64| of_time().map(|crossing| (-travel(crossing, late as f64)).max(0.0)).sum::<f64>();
    let sum = |late: i64| of_time().map(|crossing| cost.of(travel(crossing, late as f64))).sum::<f64>();
    let tried = of_time().take(MOST).map(|crossing| {
        let late = if crossing.received { quick - crossing.before } else { crossing.before - quick };
        (late.round() as i64).clamp(0, most.max(0))
    });
    tried
        .min_by(|one, other| early(*one).total_cmp(&early(*other)).then(sum(*one).total_cmp(&sum(*other))))
        .unwrap_or(0)
}

/// What a quick message takes, in ticks.
pub(crate) fn quick(crossings: &[Crossing]) -> Option<f64> {
    let mut taken: Vec<f64> =
        crossings.iter().map(|crossing| crossing.before).filter(|travel| *travel >= 0.0).collect();
    let place = (taken.len() as f64 * SHARE) as usize;
    (place < taken.len()).then(|| *taken.select_nth_unstable_by(place, f64::total_cmp).1)
}
