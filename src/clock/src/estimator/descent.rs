//! Clocks that have settled in the wrong place.
//!
//! In fine windows messages count that agree with the clocks so far; those that were late by more lose their weight. Where few messages are prompt, clocks can therefore settle wherever late ones agree with each other.
//! So the settled clocks are corrected once more from long windows to short ones (the coarse-grid correction of multigrid methods; Brandt, Multi-level adaptive solutions to boundary-value problems, 1977): in each the quickest
//! messages by the clocks so far are looked for, the middles of round trips are the beginning, and what comes out is added to the clocks, so that what these do within a long window is kept. Where messages that the clocks were not
//! made from are predicted better, these are the clocks.

use super::Estimator;
use super::seen_by::whole;
use super::start::moved;
use crate::clock_map::ClockMap;
use crate::evidence::Gain;
use crate::grid::Grid;
use crate::network::Problem;
use crate::observations::Offsets;
use crate::sample::ClockSample;
use crate::selection::{Choice, HeldOut, Jury};
use crate::windows::BoundTable;

/// A look at messages in the finest windows.
#[derive(Clone, Copy)]
pub(super) struct FinestLook<'a> {
    /// The messages.
    pub(super) table: &'a BoundTable,
    /// The windows.
    pub(super) grid: &'a Grid,
    /// What they say in these.
    pub(super) problem: &'a Problem<'a>,
    /// The clocks.
    pub(super) map: &'a ClockMap,
}

/// Clocks that begin in one place, in the finest windows, and go by one model.
#[derive(Clone, Copy)]
struct Place<'a> {
    start: &'a Offsets,
    choice: Choice,
}

/// The longest windows are this many times as long as the finest ones, or what leaves [`FEWEST`] of them. Chosen by hand: where clocks are wrong for longer than that, the middles of round trips in these windows show it; longer
/// ones hold several swings.
const LONGEST: usize = 64;
const FEWEST: usize = 16;
/// Rounds of reweighting in each of them ([`crate::network::ROUNDS`]). Chosen by hand: the middles are nearer than clocks of a level before.
const ROUNDS: &[f64] = &[4.0, 2.0, 1.0];
/// The same for clocks that bend steadily.
const STEADY_ROUNDS: &[f64] = &[4.0, 2.0, 1.0, 1.0, 1.0, 1.0];
/// By how many times the precision of observations clocks have to be elsewhere to be judged. Chosen by hand: what long windows tell less well moves settled clocks by once or twice as much.
const APART: f64 = 2.0;

impl Estimator {
    /// Other clocks than the settled ones, which are `solved` in the finest windows, if they predict messages better that neither was made from.
    pub(super) fn elsewhere(&mut self, look: &FinestLook<'_>, solved: &Offsets) -> Option<Offsets> {
        let choice = self.choice.filter(|_| !std::mem::replace(&mut self.sought_again, true))?;
        let settled = Place { start: solved, choice };
        self.preferred(look, settled, settled, APART, Gain::is_certain_of_others)
    }

    /// Whether settled clocks that do not jump, `solved` in the finest windows, bend steadily, and if so in which windows. Returns where such clocks begin, if they are to be elsewhere.
    pub(super) fn choose_steadiness(&mut self, look: &FinestLook<'_>, solved: &Offsets) -> Option<Offsets> {
        let choice = self.choice?;
        let steady = self.steady(look, choice)?;
        let chosen = if steady.gain.is_no_chance() { steady.choice } else { choice };
        let [settled, steadily] = [chosen, steady.choice].map(|choice| Place { start: solved, choice });
        let elsewhere = match steady.gain.mean > 0.0 {
            true => self.preferred(look, settled, steadily, 1.0, Gain::is_no_chance),
            false => None,
        };
        self.choice = Some(if elsewhere.is_some() { steady.choice } else { chosen });
        self.ask_for_choice(look.grid);
        elsewhere
    }

    /// Clocks that come of `found` by correcting it from long windows on, if they are `apart` from the settled ones by so many times the precision and their gain is `enough`. If there are many clocks, some of them decide.
    fn preferred(
        &self,
        look: &FinestLook<'_>,
        settled: Place<'_>,
        found: Place<'_>,
        apart: f64,
        enough: fn(&Gain) -> bool,
    ) -> Option<Offsets> {
        // What comes back around cycles only, or not at all, has no middles.
        if self.one_way || self.around {
            return None;
        }
        let FinestLook { table, problem, .. } = *look;
        let sample = ClockSample::of(problem.observations, problem.fixed);
        let some = sample.as_ref().map(|sample| sample.table(table));
        let part = FinestLook { table: some.as_ref().unwrap_or(table), ..*look };
        let again = self.corrected(&part, found, sample.as_ref());
        let rows_of = |rows: &Offsets| sample.as_ref().map_or_else(|| rows.clone(), |sample| sample.rows(rows));
        let starts = [&again, settled.start].map(rows_of);
        if moved(&starts[0], &starts[1]) <= apart * self.precision {
            return None;
        }
        let view = self.as_seen(part.table, look.grid, problem, look.map);
        let of_sample = sample.as_ref().map(|sample| sample.view(&view));
        let view = of_sample.unwrap_or(view);
        let fixed = sample.as_ref().map(|sample| sample.rows(problem.fixed));
        let fixed = fixed.as_deref().unwrap_or(problem.fixed);
        let like = Problem { clocks: fixed.len(), fixed, ..*problem };
        let jury = Jury::of_all(&view);
        let held_out = |start, choice| HeldOut::from(start, &jury, &like, choice, self.workers).judge(&jury);
        let gain = held_out(&starts[0], found.choice).gain(&held_out(&starts[1], settled.choice));
        enough(&gain).then(|| if sample.is_some() { self.corrected(look, found, None) } else { again })
    }

    /// Clocks, corrected from long windows to those of their model; those of the `sample` only, if there is one, of whose messages the look is then.
    fn corrected(&self, look: &FinestLook<'_>, found: Place<'_>, sample: Option<&ClockSample>) -> Offsets {
        let &FinestLook { table, grid, problem, map } = look;
        let choice = found.choice;
        let before = self.interpolated(grid, map.bases.len());
        let mut now = found.start.clone();
        let lengths = std::iter::successors(Some(LONGEST), |length| (*length > 1).then_some(length / 2));
        let is_chosen = |length: &usize| {
            2 * grid.width.saturating_mul(*length as i64) > choice.width && grid.count / length >= FEWEST
        };
        for length in lengths.filter(is_chosen) {
            let changed = |clock: u32, time: i64| {
                let at = |rows: &Offsets| rows.get(clock as usize).map_or(0.0, |row| grid.at(row, time));
                time.saturating_add(whole(at(&now) - at(&before)))
            };
            let (table, longer) = table.through(grid.count.div_ceil(length), changed, self.workers);
            let view = self.view_by(on_grid(&now, grid, &longer), &table, longer, map);
            let view = match sample {
                Some(sample) => sample.view(&view),
                None => view,
            };
            let fixed = sample.map(|sample| sample.rows(problem.fixed));
            let fixed = fixed.as_deref().unwrap_or(problem.fixed);
            let part = Problem {
                clocks: fixed.len(),
                windows: longer.count,
                fixed,
                observations: &view.observations,
                anchors: &view.anchors,
                reading: choice.reading,
                roughness: choice.roughness_for(longer.width),
                trend: choice.trend_for(longer.width),
                afresh: length > 1,
                rounds: if choice.trend.is_some() { STEADY_ROUNDS } else { ROUNDS },
                ..*problem
            };
            let mut changes = part.solve(&view.now);
            changes.iter_mut().flatten().zip(view.now.iter().flatten()).for_each(|(change, now)| *change -= now);
            let changes = on_grid(&changes, &longer, grid);
            let rows = match sample {
                Some(sample) => sample.rows_of(&mut now),
                None => now.iter_mut().collect(),
            };
            let both = rows.into_iter().flatten().zip(changes.iter().flatten());
            both.for_each(|(now, change)| *now += change);
        }
        now
    }
}

/// Rows of the windows `from` in those of another grid.
pub(super) fn on_grid(rows: &Offsets, from: &Grid, to: &Grid) -> Offsets {
    rows.iter().map(|row| (0..to.count).map(|window| from.at(row, to.centre(window))).collect()).collect()
}
