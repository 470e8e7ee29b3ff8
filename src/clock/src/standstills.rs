//! Clocks that stand still and catch up: when, for how long, and how fast.
//!
//! The correction of such a clock rises at once to what it was late by, and falls back as the clock runs fast. No drift is as steep as that, so estimates from windows smear
//! it over the windows around, and over the clocks that it talks to. Windows show that there is something ([`crate::steps::Suspect::bulge`]); single messages show what.

use crate::crossings::{Crossing, TravelCost, held, quick, still_at};
use crate::steps::CorrectionStep;

/// By what part of its time a clock that catches up is fast: at one and a half times its speed, two, and three times.
const FAST: [f64; 3] = [1.0 / 3.0, 0.5, 2.0 / 3.0];
/// A standstill makes messages likelier than the estimate without it by so many of those that are late by all of it. Chosen by hand: with fewer, a few late messages pass for a standstill; with more, short ones stay
/// smeared.
const EVIDENT: f64 = 4.0;
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

#[cfg(test)]
#[path = "standstills_tests.rs"]
mod tests;
