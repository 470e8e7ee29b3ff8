//! Clocks that stand still and catch up: when, for how long, and how fast.
//!
//! The correction of such a clock rises at once to what it was late by, and falls back as the clock runs fast. No drift is as steep as that, so estimates from windows smear
//! it over the windows around, and over the clocks that it talks to. Windows show that there is something ([`crate::steps::Suspect::bulge`]); single messages show what.

use crate::steps::{CorrectionStep, Crossing, TravelCost};

/// By what part of its time a clock that catches up is fast: at one and a half times its speed, two, and three times.
const FAST: [f64; 3] = [1.0 / 3.0, 0.5, 2.0 / 3.0];
/// A standstill makes messages likelier than the estimate without it by so many of those that are late by all of it. Chosen by hand: with fewer, a few late messages pass for a standstill; with more, short ones stay
/// smeared.
const EVIDENT: f64 = 4.0;
/// Part of all messages that take no longer than a quick one.
const QUICK: f64 = 0.1;
/// Ends of catching up that are tried at most: each is what one message says, with all messages.
const MOST_TRIED: usize = 400;

/// How late a clock is after a standstill: at each of its times before `end` by this part (`fast`) of the time until then.
#[derive(Debug, Clone, Copy)]
struct CatchUp {
    end: f64,
    fast: f64,
}

impl CatchUp {
    /// How long a message takes.
    fn travel(&self, crossing: &Crossing) -> f64 {
        let late = (self.end - crossing.own as f64) * self.fast;
        crossing.after + if crossing.received { late } else { -late }
    }

    /// With the end at which a message takes so long.
    fn at_travel(crossing: &Crossing, travel: f64, fast: f64) -> CatchUp {
        let late = if crossing.received { travel - crossing.after } else { crossing.after - travel };
        CatchUp { end: crossing.own as f64 + late / fast, fast }
    }
}

/// The standstill, and the catching up after it, that makes the messages of a clock likely: as many as possible quick, and as few as possible quicker than that. `bulge` is about how late the clock seems to be, and `precision`
/// what observations are known to, both in ticks. None if the estimate without it makes them nearly as likely, or if no messages share the time at which it stops.
pub(crate) fn standstill(mut crossings: Vec<Crossing>, bulge: f64, precision: f64) -> Option<CorrectionStep> {
    crossings.sort_by_key(|crossing| crossing.own);
    let cost = TravelCost::new(bulge, precision);
    let sums = |of: fn(&Crossing) -> f64| -> Vec<f64> {
        let begin = std::iter::once(0.0);
        let sums = crossings.iter().scan(0.0, |sum, crossing| {
            *sum += cost.of(of(crossing));
            Some(*sum)
        });
        begin.chain(sums).collect()
    };
    let (before, after) = (sums(|crossing| crossing.before), sums(|crossing| crossing.after));
    let without = *sums(|crossing| crossing.without).last()?;
    let steady = *before.last()?;
    let quick = quick(&crossings)?;
    let tried = crossings.iter().step_by(crossings.len().div_ceil(MOST_TRIED));
    let catch_ups = tried.flat_map(|crossing| FAST.map(|fast| CatchUp::at_travel(crossing, quick, fast)));
    let mut best: Option<(f64, usize, CatchUp)> = None;
    for catch_up in catch_ups {
        let end = crossings.partition_point(|crossing| (crossing.own as f64) < catch_up.end);
        let mut sum = after[crossings.len()] - after[end];
        for k in (1..end).rev() {
            sum += cost.of(catch_up.travel(&crossings[k]));
            let here = sum + before[k];
            if crossings[k - 1].own < crossings[k].own && best.is_none_or(|(least, ..)| here < least) {
                best = Some((here, k, catch_up));
            }
        }
    }
    let (least, k, catch_up) = best?;
    if least + EVIDENT * cost.most > without.min(steady) {
        return None;
    }
    // What shows no time again and again did not stand still; late messages may look as if it had.
    let at = still_at(&crossings, k)?;
    let left = catch_up.end - at as f64;
    let (height, catch_up) = ((left * catch_up.fast).round() as i64, left.round() as i64);
    if height <= 0 || height >= catch_up {
        return None;
    }
    let most = height - height / catch_up - 1;
    let held = held(&crossings, at, most, &cost);
    Some(CorrectionStep { at, height, catch_up, held })
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
    let tried = of_time().take(MOST_TRIED).map(|crossing| {
        let late = if crossing.received { quick - crossing.before } else { crossing.before - quick };
        (late.round() as i64).clamp(0, most.max(0))
    });
    tried
        .min_by(|one, other| early(*one).total_cmp(&early(*other)).then(sum(*one).total_cmp(&sum(*other))))
        .unwrap_or(0)
}

/// What a quick message takes, in ticks.
fn quick(crossings: &[Crossing]) -> Option<f64> {
    let mut taken: Vec<f64> =
        crossings.iter().map(|crossing| crossing.before).filter(|travel| *travel >= 0.0).collect();
    let place = (taken.len() as f64 * QUICK) as usize;
    (place < taken.len()).then(|| *taken.select_nth_unstable_by(place, f64::total_cmp).1)
}

#[cfg(test)]
#[path = "standstills_tests.rs"]
mod tests;
