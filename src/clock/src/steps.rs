//! Clocks that jump: where, and by how much.
//!
//! A clock that is set forward leaves out readings, one that is set back repeats them or, since a trace knows no time that falls, stands still until it
//! has caught up. Either way its correction has a step, which estimates from windows of messages smear over the windows around. So it is found in
//! them as a change no clock is capable of, its height from the lines on both sides ([`find`]), and its place between two events of the clock from
//! single messages, as the one with which the fewest of them would have been received before they were sent ([`place`]).

use super::Knots;
pub use super::crossings::Crossing;
use super::crossings::{TravelCost, held, still_at};

/// A step of a clock's correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorrectionStep {
    /// The last time before it, in ticks of the recorded clock.
    pub at: i64,
    /// By how much the correction rises, in ticks: positive if the clock stood still or was set back, negative if it was set forward.
    pub height: i64,
    /// In how many ticks of the recorded clock after a rise the correction falls back to what it was, since the clock catches up by running fast: more than the height; 0 if it stays behind.
    pub catch_up: i64,
    /// What it adds at its last time before it, in ticks: a clock that stands still shows this time until it goes on, so its events were later than that; at most what it adds a tick later.
    pub held: i64,
}

impl CorrectionStep {
    /// A step of a clock that keeps what it makes of time.
    pub fn lasting(at: i64, height: i64) -> CorrectionStep {
        CorrectionStep { at, height, catch_up: 0, held: 0 }
    }

    /// How many ticks of the recorded clock it takes: a clock that was set forward shows no time in between, one that stood still may catch up.
    pub fn gap(&self) -> i64 {
        (-self.height).max(self.catch_up).max(1)
    }

    /// By how much the correction is higher when it is over, in ticks.
    pub fn rise(&self) -> i64 {
        if self.catch_up > 0 { 0 } else { self.height }
    }

    /// What it adds to the correction at a time.
    fn value(&self, time: i64) -> i64 {
        if time <= self.at {
            if time == self.at { self.held } else { 0 }
        } else if time - self.at >= self.gap() {
            self.height_kept()
        } else if self.catch_up > 0 {
            let left = i128::from(self.catch_up - (time - self.at));
            (i128::from(self.height) * left / i128::from(self.catch_up)) as i64
        } else {
            // The recorded time goes on while global time nearly stands still.
            -(time - self.at) + 1
        }
    }

    /// The rise without the tick that keeps times apart.
    fn height_kept(&self) -> i64 {
        if self.height < 0 { self.height + 1 } else { self.rise() }
    }

    /// When the clock, while it catches up, shows what `steps` make `stepped_time` of: the first time that becomes it.
    fn catching_up(&self, steps: &[CorrectionStep], stepped_time: i64) -> Option<i64> {
        let (mut from, mut until) = (self.at + 1, self.at + self.gap());
        if self.catch_up == 0 || !(stepped(steps, from)..stepped(steps, until)).contains(&stepped_time) {
            return None;
        }
        while from < until {
            let middle = from + (until - from) / 2;
            if stepped(steps, middle) < stepped_time { from = middle + 1 } else { until = middle }
        }
        Some(from)
    }

    /// Between which times what it adds changes evenly.
    fn ends(&self) -> impl Iterator<Item = i64> {
        let [still, goes_on] = [self.held > 0, self.catch_up > 0];
        let ends = [(still, -1), (true, 0), (goes_on, 1), (true, self.gap())];
        ends.into_iter().filter(|(is_one, _)| *is_one).map(|(_, after)| self.at + after)
    }
}

/// What steps, in order of time, make of a time of the recorded clock. Nondecreasing.
pub fn stepped(steps: &[CorrectionStep], time: i64) -> i64 {
    steps.iter().fold(time, |sum, step| sum.saturating_add(step.value(time)))
}

/// A correction on top of steps, both as (time, offset) points: `knots` are of the time that `steps` make of the recorded clock, the result is of
/// the recorded clock itself.
pub fn compose(steps: &[CorrectionStep], knots: &Knots) -> Knots {
    if steps.is_empty() {
        return knots.clone();
    }
    let offset = |time: i64| -> i64 {
        let right = knots.partition_point(|knot| knot.0 < time).clamp(1, knots.len().max(2) - 1);
        match (knots.get(right - 1), knots.get(right)) {
            (Some(a), Some(b)) => {
                let share = (time - a.0) as f64 / (b.0 - a.0).max(1) as f64;
                a.1 + ((b.1 - a.1) as f64 * share).round() as i64
            }
            (Some(a), None) => a.1,
            _ => 0,
        }
    };
    let mut points: Vec<i64> = steps.iter().flat_map(CorrectionStep::ends).collect();
    for knot in knots {
        // The time that becomes this one: between steps it is a constant away.
        let mut time = knot.0;
        for step in steps {
            if stepped(steps, step.at + step.gap()) <= knot.0 {
                time -= step.height_kept();
            }
        }
        let inside = steps.iter().any(|step| (step.at..=step.at + step.gap()).contains(&time));
        if !inside && stepped(steps, time) == knot.0 {
            points.push(time);
        }
        points.extend(steps.iter().filter_map(|step| step.catching_up(steps, knot.0)));
    }
    points.sort_unstable();
    points.dedup();
    let mut result: Knots = Vec::with_capacity(points.len());
    for time in points {
        let middle = stepped(steps, time);
        let global = middle.saturating_add(offset(middle));
        // Rounding never makes time run backwards.
        let global = result.last().map_or(global, |last| global.max(last.0 + last.1 + 1));
        result.push((time, global - time));
    }
    result
}

/// A stretch of windows within which a clock has a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Suspect {
    /// The last window before, and the first one after.
    pub windows: (usize, usize),
    /// The correction before it, continued to the middle of the stretch, and its change per window.
    pub before: (f64, f64),
    /// The same after it.
    pub after: (f64, f64),
    /// By how much the correction rises in between to fall again, where it has no step: the clock may stand still and catch up.
    pub bulge: f64,
}

impl Suspect {
    /// Middle of the stretch, in windows.
    pub fn middle(&self) -> f64 {
        (self.windows.0 + self.windows.1) as f64 / 2.0
    }

    /// By how much the correction rises.
    pub fn height(&self) -> f64 {
        self.after.0 - self.before.0
    }

    /// Whether the clock does not seem to jump, but to stand still.
    pub fn is_bulge(&self) -> bool {
        self.bulge > 0.0
    }

    /// By how much it departs from lines.
    pub fn size(&self) -> f64 {
        self.height().abs().max(self.bulge)
    }

    /// The line between those before and after, at a window.
    fn between(&self, window: usize) -> f64 {
        let from_middle = window as f64 - self.middle();
        let line = |(level, slope): (f64, f64)| level + slope * from_middle;
        (line(self.before) + line(self.after)) / 2.0
    }
}

/// From when on a change of a clock is a jump.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JumpLimits {
    /// From so many times on what observations are known to.
    pub clear: f64,
    /// From this part of the time of a window on: no drift changes by that.
    pub rate: f64,
    /// What all other clocks do, the reference did, unless messages say by so much that they did it at different times (`stepped_apart`).
    pub apart: f64,
}

impl Default for JumpLimits {
    /// Of messages that wait for their receivers, sometimes all of a stretch of time: five half round trips, and two thousand parts in a million. (With ten, jumps of 20 us were smeared over windows in 9 of 155 random scenarios with jumps,
    /// 1.4 to 6.5 times as far from the truth; two were 1.5 and 3.5 times as close. Of 900 others 11 changed like the former. 80 traces made from recordings by wrong clocks and 80 of another generator did not change.)
    fn default() -> Self {
        JumpLimits { clear: 250.0, rate: 2e-3, apart: 16.0 }
    }
}

impl JumpLimits {
    /// Of packets that nobody keeps waiting, in both directions all the time: two half round trips, and three hundred parts in a million.
    pub const PACKETS: JumpLimits = JumpLimits { clear: 100.0, rate: 3e-4, apart: 4.0 };

    /// Those of clocks that messages tie by cycles of several or by waits only: bends leave room there for steps that are none. (With half of that, two rings of 900 scenarios were 1.4 and 2.7 times as far from the truth; of ten pipelines whose clocks jump by 500 us
    /// three were 1.0 to 1.6 times as close between processes, and one was 16 times as far.)
    pub fn without_returns(self) -> JumpLimits {
        JumpLimits { clear: 2.0 * self.clear, ..self }
    }
}

/// Windows on each side by which the drift around a window is told: more than a step is smeared over.
const USUAL: usize = 48;
/// Windows within which a correction is compared with what it usually does. Chosen by hand: within fewer, what a correction usually does is little
/// and all passes for a step; within more, steps drown in it.
const AROUND: usize = 16;
/// Windows on each side from which a step has its height. Chosen by hand: more average out more noise, but a drift that changes tilts the height.
const BESIDE: usize = 40;
/// A change of that many typical ones is none of a drift. Chosen by hand: a smaller value finds steps in every clock that walks, a larger one leaves
/// small steps smeared.
const UNUSUAL: f64 = 20.0;
/// A step is so many times as high as what the correction often wanders off its drift within as many windows as are looked at. Chosen by hand:
/// smaller values find steps in clocks that walk, larger ones leave small steps smeared.
const DISTINCT: f64 = 4.0;
const OFTEN: f64 = 0.9;
/// and so many times as high as what a change of drift makes of the windows in between. Chosen by hand: a smaller value takes bends for steps, a
/// larger one steps of a clock that drifts otherwise afterwards for bends.
const BENT: f64 = 2.0;
/// Unusual changes at most so many windows apart belong to one step. Chosen by hand: with fewer, a step that is smeared counts twice; with more, two
/// steps count as one.
const TOGETHER: usize = 10;
/// Most windows that a step is smeared over. Chosen by hand: what takes longer is a drift; with fewer, steps at which few messages were sent are
/// missed.
const LONGEST: usize = 40;
/// Windows next to a step that are not looked at. Chosen by hand: they show a part of it: with fewer its height comes out too low, with more it is
/// told from farther away.
const SPARED: usize = 2;

/// The part of a step's height that is seen in longer windows next to it, and how many of them it is smeared over besides those of [`LONGEST`].
/// Chosen by hand: a smaller part looks at the finest windows for nothing, a larger one misses steps.
const SEEN: f64 = 0.25;
const SMEARED: usize = 2;

/// Whether the corrections of a clock in windows that are `longer` times as long as the finest ones leave room for a step as high as `least`, which [`find`] may see in those.
pub(crate) fn may_step(row: &[f64], longer: usize, least: f64) -> bool {
    let reach = LONGEST.div_ceil(longer.max(1)) + SMEARED;
    (1..row.len().saturating_sub(1)).any(|at| {
        let beside = reach.min(at).min(row.len() - 1 - at);
        (row[at - beside] - 2.0 * row[at] + row[at + beside]).abs() > SEEN * least
    })
}

/// Where the corrections of a clock, one per window of `width` ticks, have a step; `precision` is what they are known to.
pub fn find(row: &[f64], width: i64, precision: f64, limits: JumpLimits) -> Vec<Suspect> {
    if row.len() < 2 * AROUND {
        return Vec::new();
    }
    let changes: Vec<f64> = row.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let drift = |range: std::ops::Range<usize>| median(changes.get(range).unwrap_or(&[]).to_vec());
    let excess: Vec<f64> =
        running_medians(&changes, USUAL).zip(&changes).map(|(around, change)| change - around).collect();
    let usual = median(excess.iter().map(|change| change.abs()).collect());
    let least = (UNUSUAL * usual).max(limits.rate * width as f64).max(precision);
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for (at, _) in excess.iter().enumerate().filter(|(_, change)| change.abs() > least) {
        match stretches.last_mut() {
            Some((_, last)) if *last + TOGETHER >= at => *last = at,
            _ => stretches.push((at, at)),
        }
    }
    let mut suspects = Vec::new();
    for (index, &(first, last)) in stretches.iter().enumerate().filter(|(_, (first, last))| last - first <= LONGEST) {
        let (begin, end) = (first.saturating_sub(SPARED), (last + 1 + SPARED).min(row.len() - 1));
        // Up to the next one on either side.
        let from = stretches[..index].last().map_or(0, |before| before.1 + 1);
        let until = stretches.get(index + 1).map_or(row.len(), |next| next.0 + 1);
        let left = begin.saturating_sub(BESIDE).max(from)..begin + 1;
        let right = end..(end + BESIDE + 1).min(until);
        if left.len() < 3 || right.len() < 3 {
            continue;
        }
        let slopes = [drift(left.start..left.end - 1), drift(right.start..right.end - 1)];
        let middle = (begin + end) as f64 / 2.0;
        let level = |range: std::ops::Range<usize>, slope: f64| {
            median(range.map(|window| row[window] + slope * (middle - window as f64)).collect())
        };
        let far = |at: &usize| at + AROUND < begin || *at > end;
        let wander: Vec<f64> = (0..excess.len().saturating_sub(AROUND))
            .filter(far)
            .map(|at| excess[at..at + AROUND].iter().sum::<f64>().abs())
            .collect();
        let wanders = quantile(wander, OFTEN);
        let suspect = Suspect {
            windows: (begin, end),
            before: (level(left, slopes[0]), slopes[0]),
            after: (level(right, slopes[1]), slopes[1]),
            bulge: 0.0,
        };
        // A clock that begins to run away bends.
        let bend = (suspect.after.1 - suspect.before.1).abs() * (end - begin) as f64;
        let clear = (limits.clear * precision).max(least).max(DISTINCT * wanders).max(BENT * bend);
        let bulge = (begin..=end).map(|window| row[window] - suspect.between(window)).fold(0.0, f64::max);
        if suspect.height().abs() > clear {
            suspects.push(suspect);
        } else if bulge > clear {
            suspects.push(Suspect { bulge, ..suspect });
        }
    }
    suspects
}

/// The median of each value and of so many on either side of it, as [`median`] finds it: from one to the next, one value comes and one goes.
fn running_medians(values: &[f64], beside: usize) -> impl Iterator<Item = f64> + '_ {
    let mut sorted: Vec<f64> = values[..beside.min(values.len())].to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = |sorted: &[f64], value: f64| sorted.partition_point(|other| other.total_cmp(&value).is_lt());
    (0..values.len()).map(move |at| {
        if let Some(gone) = at.checked_sub(beside + 1) {
            sorted.remove(place(&sorted, values[gone]));
        }
        if let Some(&new) = values.get(at + beside) {
            sorted.insert(place(&sorted, new), new);
        }
        sorted[(sorted.len() as f64 * 0.5) as usize]
    })
}

fn median(values: Vec<f64>) -> f64 {
    quantile(values, 0.5)
}

pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    let at = (values.len() as f64 * share) as usize;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(at, f64::total_cmp).1 }
}

/// Places whose costs are as near as this are equally good. Chosen by hand: as a logarithm, a factor of 1.6: a larger value places steps less
/// closely, with a smaller one noise chooses the gap.
const EQUAL: f64 = 0.5;
/// The lines before and after a step are tried at so many places to either side, up to this part of its height. Chosen by hand: that makes 289 pairs
/// of lines, each with all crossings; finer or farther ones grow as the square.
const SHIFTS: i32 = 8;
const SHIFT: f64 = 0.08;
/// A forward step leaves a gap of this part of its height at least, since the height is an estimate.
const NEARLY: f64 = 0.9;

/// What a step costs before each of its crossings and after the last one, if the lines on both sides of it are as they fit best.
struct StepCosts {
    costs: Vec<f64>,
    height: f64,
    /// By how much the lines before and after it are off.
    shifts: (f64, f64),
}

/// Where a step is possible: between two crossings at different times.
fn places(crossings: &[Crossing]) -> impl Iterator<Item = usize> {
    (1..crossings.len()).filter(|k| crossings[*k].own > crossings[k - 1].own)
}

fn step_costs(crossings: &[Crossing], height: f64, cost: &TravelCost) -> StepCosts {
    // The lines on both sides are known less well than quick messages are.
    let shifts = || (-SHIFTS..=SHIFTS).map(|shift| f64::from(shift) / f64::from(SHIFTS) * SHIFT * height.abs());
    let mut best = (f64::INFINITY, StepCosts { costs: Vec::new(), height, shifts: (0.0, 0.0) });
    for before in shifts() {
        for after in shifts() {
            let costs = cost.before_each(crossings.iter(), (before, after));
            let least = places(crossings).map(|k| costs[k]).fold(f64::INFINITY, f64::min);
            if least < best.0 {
                best = (least, StepCosts { costs, height: height + after - before, shifts: (before, after) });
            }
        }
    }
    best.1
}

/// How much likelier it is that the clock's partners have stepped, each for itself, than that it has: the logarithm, as a number of messages that are late by the height of the
/// step. If it was the clock, its messages with all of them show that at the same time.
pub(crate) fn stepped_apart(crossings: &[(u32, Crossing)], height: f64, precision: f64) -> f64 {
    let mut crossings = crossings.to_vec();
    crossings.sort_by_key(|(partner, crossing)| (crossing.own, *partner));
    let all: Vec<Crossing> = crossings.iter().map(|(_, crossing)| *crossing).collect();
    let cost = TravelCost::new(height, precision);
    let found = step_costs(&all, height, &cost);
    let together = places(&all).filter_map(|k| found.costs.get(k).copied()).fold(f64::INFINITY, f64::min);
    let partners: std::collections::BTreeSet<u32> = crossings.iter().map(|(partner, _)| *partner).collect();
    let apart = |partner: u32| {
        let own = crossings.iter().filter(move |(other, _)| *other == partner).map(|(_, crossing)| crossing);
        cost.before_each(own, found.shifts).into_iter().fold(f64::INFINITY, f64::min)
    };
    let apart: f64 = partners.into_iter().map(apart).sum();
    if together.is_finite() { (together - apart) / cost.most } else { 0.0 }
}

/// The place of a step of this height that makes messages likely: as many as possible quick, and as few as possible quicker than that. `precision` is
/// what observations are known to. None if the clocks without the step make them as likely, unless it is `evident` that there is one.
pub fn place(mut crossings: Vec<Crossing>, height: f64, precision: f64, evident: bool) -> Option<CorrectionStep> {
    crossings.sort_by_key(|crossing| crossing.own);
    let cost = TravelCost::new(height, precision);
    let without: f64 = crossings.iter().map(|crossing| cost.of(crossing.without)).sum();
    let StepCosts { costs, height, .. } = step_costs(&crossings, height, &cost);
    let gap = |k: usize| crossings[k].own - crossings[k - 1].own;
    let least = places(&crossings).filter_map(|k| costs.get(k).copied()).fold(f64::INFINITY, f64::min);
    if least >= without && !evident {
        return None;
    }
    let good: Vec<usize> =
        places(&crossings).filter(|k| costs.get(*k).is_some_and(|cost| *cost <= least + EQUAL)).collect();
    let widest = good.iter().copied().max_by_key(|k| (gap(*k), std::cmp::Reverse(*k)))?;
    let repeated = good.iter().copied().find(|k| *k > 1 && gap(*k - 1) == 0);
    let k = match repeated {
        // A clock that was set forward leaves a gap, one that was set back or stood still shows a time again and again.
        _ if height < 0.0 && gap(widest) as f64 > NEARLY * -height => widest,
        Some(repeated) if height > 0.0 => repeated,
        _ => good[good.len() / 2],
    };
    let height = height.round() as i64;
    let last = crossings[k - 1].own;
    if height < 0 {
        return Some(CorrectionStep::lasting(last + (gap(k) + height).max(0) / 2, height));
    }
    if let Some(time) = still_at(&crossings, k) {
        return Some(CorrectionStep {
            held: held(&crossings, time, height - 1, &cost),
            ..CorrectionStep::lasting(time, height)
        });
    }
    // Other events are next to messages.
    Some(CorrectionStep::lasting(last + (gap(k) - 1) / 2, height))
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
