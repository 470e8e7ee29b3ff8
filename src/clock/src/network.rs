//! One clock per node, continuous in time, from everything that was observed: weighted least squares over the graph of clocks.
//!
//! Unknown are the corrections x(n, w) of clock n at the centre of window w. Minimised is
//!
//! ```text
//!   Σ ((x(b,w) - x(a,w) - least - latency(a,b)) / spread)²   quickest message of each direction, pair and window
//! + Σ ((x(n,w) - value) / sigma)²                            recorded offsets
//! + Σ (x(n,w-1) - 2 x(n,w) + x(n,w+1))² / q²                 the frequency changes slowly
//! ```
//!
//! Fixed clocks, the reference above all, are not corrected. It is done by reweighting a few times, with the clocks of the time before: messages that
//! were delayed lose their weight, those that would have been too quick keep it; smoothness and recorded offsets count
//! with Cauchy weights, so that a clock may bend sharply where messages show that it did. Where nothing is known yet, the
//! middles of both directions ([`super::observations::TwoWay`]) make the start. Everything runs on one rank in a fixed order: the
//! same bits every time (`clock/src/solver.rs`).

use super::anchor::Anchor;
use super::evidence::DelayModel;
use super::graph::components;
use super::latencies::{Latencies, Reading};
use super::observations::{Observations, Offsets, OneWay};
use super::solver::{System, Tolerance};
use super::trend::{Trend, cauchy, usual_bends};
use clc_trace::workers::Workers;
use std::ops::Range;

/// What to estimate from.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Number of clocks.
    pub clocks: usize,
    /// Number of windows.
    pub windows: usize,
    /// Clocks that are not corrected: the reference, and others that nothing better is known of than what was recorded.
    pub fixed: &'a [bool],
    /// Messages.
    pub observations: &'a Observations,
    /// Recorded offsets.
    pub anchors: &'a [Anchor],
    /// How latencies are told, and what a message is.
    pub reading: Reading,
    /// q: standard deviation of the second difference of a clock's correction, in ticks.
    pub roughness: f64,
    /// Whether clocks bend as they do around the windows beside; else they bend as chance has it.
    pub(crate) trend: Option<Trend>,
    /// Nothing is known yet: begin with the middles of both directions.
    pub afresh: bool,
    /// `ROUNDS` or `LAST_ROUNDS`.
    pub rounds: &'a [f64],
    /// Whether drift returns to its mean where nothing is observed.
    pub leaning: bool,
    /// Whether it does so only if drifts differ by about as much as by their changes (`UNLIKE`).
    pub alike: bool,
    /// Windows that do not follow the one before: only some stretches of the run are looked at.
    pub cuts: &'a [usize],
    /// The latency of directions that are not answered, if it is known (`Problem::latency_at_anchors`).
    pub around: Option<f64>,
    /// Whether recorded offsets hold clocks whatever messages say until the last rounds.
    pub firm: bool,
    /// Threads. They change no bit.
    pub workers: Workers,
}

/// Rounds of reweighting: how many spreads a message may be delayed and still count about half. From clocks of a coarser level,
/// and from clocks that are nearly right.
pub(crate) const ROUNDS: &[f64] = &[8.0, 4.0, 2.0, 1.0, 1.0];
/// See [`ROUNDS`].
pub(crate) const LAST_ROUNDS: &[f64] = &[1.0, 1.0, 1.0];
/// The same where what is usual has to be found as well.
pub(crate) const TREND_ROUNDS: &[f64] = &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Most solutions of the start, and the part of the way that one leaves. Chosen by hand: three leaps lead from decades to a nanosecond, as each
/// leaves a millionth; more cost a solution each.
const LEAPS: usize = 5;
const RELATIVE: f64 = 1e-6;
/// Windows from which on a clock has a mean drift. Chosen by hand: the mean of fewer is noise, which silent windows would continue; with more, short
/// stretches have none.
const LEANING: usize = 8;
/// How many times as much as by their changes drifts may differ to be alike. Chosen by hand: of a wave with a period of P windows it is a third of P, of the bends where recorded offsets are joined around a jump
/// more than a million.
const UNLIKE: f64 = 1e5;
/// Least q, in units of what observations are known to: clocks that are stiffer than that are straight for thousands of windows, but the weights of bends and of
/// messages are then so far apart that the system cannot be solved with the 53 bits of a number.
const STIFFEST: f64 = 4e-6;
/// Weight that holds every clock where it is, in units of that of a bend: what is held by less is lost in rounding, and would run away. With ten times as much and
/// more clocks that jump settle too slowly.
const ROUNDING: f64 = 1e-16;
/// Windows with messages in one direction per window with messages in the other one, from which on those are no answer to speak of. Chosen by hand: a
/// larger value takes a few stray messages for answers, a smaller one ignores sparse answers.
const ANSWERED: usize = 16;
/// Travel times between clocks as they were measured are those of messages that were not late up to so many standard deviations of the offsets.
const PROMPT: f64 = 3.0;
/// Steps to the mean of these. Chosen by hand: each is a pass over the values; with fewer, the mean stays near the quarter at which it begins.
const STEPS: usize = 5;
/// Another latency is one that differs by more than this part of it. Chosen by hand: a smaller part solves again for noise, a larger one leaves that
/// much of a latency in the clocks.
const OTHER: f64 = 0.15;
/// Deviations over this many sigmas lose weight. Chosen by hand: one deviation of 370 is larger by chance, if they are normal; a smaller value
/// distrusts sound ones, a larger one lets gross ones pull.
const TOLERATED: f64 = 3.0;

impl Problem<'_> {
    /// The estimate, by reweighting from `start`.
    pub fn solve(&self, start: &Offsets) -> Offsets {
        self.solve_to(Tolerance::RESULT, start)
    }

    pub(super) fn solve_to(&self, tolerance: Tolerance, start: &Offsets) -> Offsets {
        let mut x = self.flat(start);
        self.clear_fixed(&mut x);
        if self.afresh {
            // A solution has an accuracy, relative to how far it is away: clocks that are decades off are found step by step.
            for _ in 0..LEAPS {
                let before = x.clone();
                let mut system = self.system(self.q());
                for seen in &self.observations.two_way {
                    let miss = seen.middle - difference(&x, self.windows, seen.window, [seen.a, seen.b]);
                    system.tie(seen.window, [seen.a, seen.b], miss, 1.0 / (seen.sigma * seen.sigma));
                }
                self.hold_anchors(&mut system, &x, true);
                self.stiffen(&mut system, &x, true, None);
                system.minimise(&mut x, Tolerance::STEP, self.workers);
                let leap = x.iter().zip(&before).map(|(x, before)| (x - before).abs()).fold(0.0, f64::max);
                if leap * RELATIVE <= self.observations.floor {
                    break;
                }
            }
        }
        let sightings = if self.leaning { self.sightings() } else { Vec::new() };
        for (round, &scale) in self.rounds.iter().enumerate() {
            let last = round + 1 == self.rounds.len();
            let rest = 1.0 - (round + 1) as f64 / self.rounds.len() as f64;
            // What is usual is told by clocks that bend as chance has it.
            let trend = self.trend.filter(|_| round > 0);
            let mut system = self.system(trend.map_or(self.q(), |trend| self.at_least(trend.roughness)));
            match self.reading {
                Reading::Mode => self.tie_measurements(&mut system, &x, scale),
                Reading::Edge(_) => self.tie_bounds(&mut system, &x, if scale > 1.0 { rest } else { 0.0 }),
            }
            self.hold_anchors(&mut system, &x, self.firm && scale > 1.0);
            self.stiffen(&mut system, &x, false, trend);
            if self.leaning {
                self.lean(&mut system, &x, &sightings);
            }
            system.minimise(&mut x, if last { tolerance } else { Tolerance::STEP }, self.workers);
        }
        x.chunks(self.windows.max(1)).map(<[f64]>::to_vec).collect()
    }

    /// One row after the other, zero where nothing is given.
    pub fn flat(&self, offsets: &Offsets) -> Vec<f64> {
        let mut x = Vec::with_capacity(self.clocks * self.windows);
        for clock in 0..self.clocks {
            for window in 0..self.windows {
                x.push(offsets.get(clock).and_then(|row| row.get(window)).copied().unwrap_or(0.0));
            }
        }
        x
    }

    /// Nothing yet, but a weight so small that it only decides what nothing else does: a clock nobody talks to stays where it is.
    fn system(&self, q: f64) -> System<'_> {
        let mut system = System::new(self.clocks, self.windows, self.fixed);
        let floor = self.observations.floor;
        system.hold_all((1e-9 / (floor * floor)).max(ROUNDING / (q * q)));
        system
    }

    /// One term per direction, pair and window: messages that were not delayed are measurements.
    fn tie_measurements(&self, system: &mut System<'_>, x: &[f64], scale: f64) {
        // Chosen by hand: what pulls less only takes time; a larger value drops messages that matter.
        const NEGLIGIBLE: f64 = 1e-4;
        let latencies = Latencies::new(self.observations, x, self.windows, self.reading, self.around, self.workers);
        let directions = self.observations.directions();
        let terms = directions.map(self.workers, |_, block| {
            let mut terms = Vec::new();
            for at in block {
                let direction = latencies.at(at);
                let term = |seen: &OneWay| {
                    let excess = direction.excess(seen, x, self.windows);
                    let trust = if seen.awaited || excess <= 0.0 {
                        direction.weight(excess, scale * latencies.spread)
                    } else {
                        0.0
                    };
                    let weight = trust / (latencies.spread * latencies.spread);
                    (-excess, if trust >= NEGLIGIBLE { weight } else { 0.0 })
                };
                terms.extend(self.observations.one_way[directions.messages(at)].iter().map(term));
            }
            terms
        });
        self.tie_terms(system, &terms.concat());
    }

    /// Ties the clocks of every message by its term: miss and weight, if that is more than zero.
    fn tie_terms(&self, system: &mut System<'_>, terms: &[(f64, f64)]) {
        let directions = self.observations.directions();
        for at in directions.by_pair() {
            let messages = directions.messages(at);
            let seen = self.observations.one_way[messages.clone()].iter().zip(&terms[messages]);
            let ties = seen.map(|(seen, (miss, weight))| (seen.window, *miss, *weight));
            let (a, b) = directions.pairs()[at];
            system.tie_all([a, b], ties.filter(|(_, _, weight)| *weight > 0.0));
        }
    }

    /// One term per direction, pair and window: messages are bounds that pull with the force of the density of their delays, and push if they
    /// would have been too quick. A term is the square that has this force at the place where the clocks are now.
    fn tie_bounds(&self, system: &mut System<'_>, x: &[f64], rest: f64) {
        /// A message that would have been too quick by more scales than that pushes no harder. Chosen by hand: with more, a few messages bend a
        /// clock; with less, it passes messages that are too quick.
        const FORCE: f64 = 6.0;
        let travels = DelayModel::learn(self.observations, x, self.windows, self.reading, self.around, self.workers);
        let precision = self.observations.precision;
        let scale = precision * (travels.latencies().spread.max(precision) / precision).powf(rest);
        let directions = self.observations.directions();
        let terms = directions.map(self.workers, |_, block| {
            let (mut terms, mut forces) = (Vec::new(), Vec::new());
            for at in block {
                let direction = travels.latencies().at(at);
                let group = &self.observations.one_way[directions.messages(at)];
                let excess = |seen: &OneWay| direction.excess(seen, x, self.windows);
                forces.clear();
                forces.extend(group.iter().map(excess));
                travels.delays(at).forces(&mut forces);
                let term = |(seen, force): (&OneWay, &f64)| {
                    let excess = excess(seen);
                    let weight = if excess <= 0.0 {
                        (FORCE * scale / excess.abs()).min(1.0) / (scale * scale)
                    } else if direction.is_known() && seen.awaited {
                        force / excess.max(scale)
                    } else {
                        0.0
                    };
                    (-excess, weight)
                };
                terms.extend(group.iter().zip(&forces).map(term));
            }
            terms
        });
        self.tie_terms(system, &terms.concat());
    }

    /// Whether some clocks are tied to others by messages that come back around a cycle of several clocks (a ring) only. Then only recorded offsets know the
    /// latency: unless there are moments at which no message of the cycle is late, clocks can bend so that all messages are as quick as any latency wants.
    pub(crate) fn goes_around(&self) -> bool {
        let directions = self.observations.directions();
        let count = |direction: usize| directions.messages(direction).len();
        let held = || (0..directions.len()).filter(|&direction| directions.is_held(direction));
        let pair = |direction: usize| directions.pairs()[direction];
        let answered = |&direction: &usize| {
            directions.back(direction).is_some_and(|back| ANSWERED * count(back) >= count(direction))
        };
        components(self.clocks, held().filter(answered).map(pair)) != components(self.clocks, held().map(pair))
    }

    /// Whether most recorded offsets say that these are not the clocks.
    pub(crate) fn contradicts_anchors(&self, offsets: &Offsets) -> bool {
        let at = |anchor: &Anchor| offsets.get(anchor.clock as usize)?.get(anchor.window as usize).copied();
        let far = |anchor: &Anchor| at(anchor).is_some_and(|at| (at - anchor.value).abs() > TOLERATED * anchor.sigma);
        2 * self.anchors.iter().filter(|anchor| far(anchor)).count() > self.anchors.len()
    }

    /// The latency ([`Reading::Mode`]) that recorded offsets show of directions that are not answered, if the clocks so far have another one: the mean travel time in
    /// the windows where both clocks were measured. Along a chain of messages the errors of offsets nearly cancel out in it. What messages are usually late is taken
    /// off, unless these are not the clocks and nothing is known of that.
    pub(crate) fn latency_at_anchors(&self, offsets: &Offsets) -> Option<f64> {
        let mut known: Vec<Option<f64>> = vec![None; self.clocks * self.windows];
        for anchor in self.anchors {
            if let Some(known) = known.get_mut(anchor.clock as usize * self.windows + anchor.window as usize) {
                *known = Some(anchor.value);
            }
        }
        let at = |clock: u32, window: u32| match self.fixed.get(clock as usize) {
            Some(true) => Some(0.0),
            _ => known.get(clock as usize * self.windows + window as usize).copied().flatten(),
        };
        let x = self.flat(offsets);
        let now = Latencies::new(self.observations, &x, self.windows, Reading::Mode, None, self.workers);
        let directions = self.observations.directions();
        let (mut measured, mut late) = (Vec::new(), Vec::new());
        for direction in 0..directions.len() {
            if !directions.is_held(direction) || directions.back(direction).is_some() {
                continue;
            }
            let mode = now.mode(direction).unwrap_or(0.0);
            for seen in &self.observations.one_way[directions.messages(direction)] {
                late.push(seen.travel(&x, self.windows) - mode);
                if let (Some(from), Some(to)) = (at(seen.a, seen.window), at(seen.b, seen.window)) {
                    measured.push(to - from - seen.least);
                }
            }
        }
        let sigma = self.anchors.iter().map(|anchor| anchor.sigma).sum::<f64>() / self.anchors.len().max(1) as f64;
        let measured = mean_of_prompt(&mut measured, sigma)?;
        if self.contradicts_anchors(offsets) {
            return Some(measured.max(0.0));
        }
        let latency = (measured - mean_of_prompt(&mut late, sigma)?).max(0.0);
        ((now.alone() - latency).abs() > OTHER * latency).then_some(latency)
    }

    /// Recorded offsets, less trusted where they are far off, unless nothing is known yet.
    fn hold_anchors(&self, system: &mut System<'_>, x: &[f64], first: bool) {
        for anchor in self.anchors {
            let at = anchor.clock as usize * self.windows + anchor.window as usize;
            let miss = anchor.value - x.get(at).copied().unwrap_or(0.0);
            let trust = if first { 1.0 } else { cauchy(miss, TOLERATED * anchor.sigma) };
            system.hold(anchor.window, anchor.clock, miss, trust / (anchor.sigma * anchor.sigma));
        }
    }

    /// Second differences, or what they are beside what is usual.
    fn stiffen(&self, system: &mut System<'_>, x: &[f64], first: bool, trend: Option<Trend>) {
        let q = trend.map_or(self.q(), |trend| self.at_least(trend.roughness));
        for (clock, row) in x.chunks(self.windows).enumerate() {
            let usual = trend.map(|trend| usual_bends(row, self.cuts, trend.around, TOLERATED * self.q()));
            for (before, three) in row.windows(3).enumerate() {
                if self.is_cut(before + 1) || self.is_cut(before + 2) {
                    continue;
                }
                if let [a, b, c] = three {
                    let bend = a - 2.0 * b + c - usual.as_ref().map_or(0.0, |usual| usual[before]);
                    let trust = if first { 1.0 } else { cauchy(bend, TOLERATED * q) };
                    system.stiffen(before + 1, clock, -bend, trust / (q * q));
                }
            }
        }
    }

    /// Slopes: where nothing is observed, a clock's drift returns to its mean. A frequency whose changes per window have the deviation q and that
    /// itself varies by ρ (of an Ornstein-Uhlenbeck process) has, besides the term of its changes, one of its size: q² / 4 ρ⁴ times its square.
    fn lean(&self, system: &mut System<'_>, x: &[f64], seen: &[Sighting]) {
        let whole = |window: &usize| !self.is_cut(window + 1);
        let mut slopes = Vec::new();
        for (clock, (row, seen)) in x.chunks(self.windows).zip(seen.chunks(self.windows)).enumerate() {
            let Some(observed) = Sighting::stretch(seen) else { continue };
            if self.fixed.get(clock).copied().unwrap_or(false) {
                continue;
            }
            let known = Sighting::known(seen, &observed);
            slopes.clear();
            let known_slopes = observed.filter(|window| whole(window) && known[*window]);
            slopes.extend(known_slopes.map(|window| row[window + 1] - row[window]));
            if slopes.len() < LEANING {
                continue;
            }
            let count = slopes.len() as f64;
            let mean = slopes.iter().sum::<f64>() / count;
            let squares: f64 = slopes.iter().map(|slope| (slope - mean) * (slope - mean)).sum();
            let varies = (squares / count).max(self.q() * self.q());
            let weight = self.q() * self.q() / (4.0 * varies * varies);
            // Of such a process ρ² is q² / 2 times what it remembers. Where drifts differ by far more, they do not change by q: between a few sharp bends the clock is straight.
            let is_like = |windows: &f64| !self.alike || varies <= UNLIKE * self.q() * self.q() * windows / 2.0;
            let remembers = memory(&slopes, mean).filter(is_like);
            let forgets = remembers.map_or(0.0, |windows| (self.q() * windows).powi(-2));
            for window in (0..row.len().saturating_sub(1)).filter(whole) {
                let miss = mean - (row[window + 1] - row[window]);
                system.lean(window, clock, miss, if known[window] { weight } else { weight.max(forgets) });
            }
        }
    }

    /// What messages say of each clock in each window, one row of windows after the other.
    fn sightings(&self) -> Vec<Sighting> {
        let mut seen = vec![Sighting::Nothing; self.clocks * self.windows];
        for one in &self.observations.one_way {
            let now = if one.awaited { Sighting::Awaited } else { Sighting::Lain };
            for clock in [one.a, one.b] {
                let at = clock as usize * self.windows + one.window as usize;
                if let Some(seen) = seen.get_mut(at).filter(|_| (one.window as usize) < self.windows) {
                    *seen = now.max(*seen);
                }
            }
        }
        seen
    }

    /// [`Problem::roughness`], but not so small that nothing could be solved.
    fn q(&self) -> f64 {
        self.at_least(self.roughness)
    }

    fn at_least(&self, roughness: f64) -> f64 {
        roughness.max(STIFFEST * self.observations.precision)
    }

    fn is_cut(&self, window: usize) -> bool {
        self.cuts.binary_search(&window).is_ok()
    }

    fn clear_fixed(&self, values: &mut [f64]) {
        for (row, _) in values.chunks_mut(self.windows).zip(self.fixed).filter(|(_, fixed)| **fixed) {
            row.fill(0.0);
        }
    }
}

/// The mean of the values but for those of late messages, where values that are not are off by `sigma`.
fn mean_of_prompt(values: &mut [f64], sigma: f64) -> Option<f64> {
    let quarter = values.len() / 4;
    let mut mean = (quarter < values.len()).then(|| *values.select_nth_unstable_by(quarter, f64::total_cmp).1)?;
    for _ in 0..STEPS {
        let near = values.iter().filter(|value| (**value - mean).abs() <= PROMPT * sigma);
        let (count, sum) = near.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
        mean = if count > 0.0 { sum / count } else { mean };
    }
    Some(mean)
}

/// By how much more clock b is corrected than clock a.
fn difference(x: &[f64], windows: usize, window: u32, [a, b]: [u32; 2]) -> f64 {
    let at = |clock: u32| x.get(clock as usize * windows + window as usize).copied().unwrap_or(0.0);
    at(b) - at(a)
}

/// What the messages of a window say of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sighting {
    /// There are none.
    Nothing,
    /// What cannot be: [`OneWay::awaited`] is true of none of them.
    Lain,
    /// What is.
    Awaited,
}

impl Sighting {
    /// From the first window in which anything was seen to the last one, which is not part of it; none if that is hardly more than nothing.
    fn stretch(seen: &[Sighting]) -> Option<Range<usize>> {
        let is_seen = |seen: &Sighting| *seen != Sighting::Nothing;
        let (first, last) = (seen.iter().position(is_seen)?, seen.iter().rposition(is_seen)?);
        (first + LEANING <= last).then_some(first..last)
    }

    /// The windows from which the drift to the next one is known: those of `observed`, without stretches of several windows with messages none of which was waited for.
    fn known(seen: &[Sighting], observed: &Range<usize>) -> Vec<bool> {
        let mut known = vec![false; seen.len()];
        known[observed.clone()].fill(true);
        let mut begin = observed.start;
        while begin < observed.end {
            let length = seen[begin..observed.end].iter().take_while(|seen| **seen != Sighting::Awaited).count();
            let unknown = begin..begin + length;
            if seen[unknown.clone()].iter().filter(|seen| **seen == Sighting::Lain).count() >= LEANING {
                known[unknown.clone()].fill(false);
            }
            begin = unknown.end + 1;
        }
        known
    }
}

/// In how many windows the correlation of drift with itself falls to one half. None if that takes a sixth of the run or more: a drift that changed
/// once and for all is not to be forgotten.
pub(super) fn memory(slopes: &[f64], mean: f64) -> Option<f64> {
    let apart: Vec<f64> = slopes.iter().map(|slope| slope - mean).collect();
    let product = |lag: usize| -> f64 {
        let pairs = apart.iter().zip(apart.get(lag..).unwrap_or_default());
        pairs.map(|(one, other)| one * other).sum::<f64>() / (apart.len() - lag).max(1) as f64
    };
    let all = product(0);
    let mut lag = 1;
    while 6 * lag < slopes.len() && all > 0.0 {
        if product(lag) < all / 2.0 {
            return Some(lag as f64);
        }
        // In steps of a quarter.
        lag += 1 + lag / 4;
    }
    None
}

#[cfg(test)]
#[path = "network_tests.rs"]
pub(crate) mod tests;
