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
use crate::view::TrialData;
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
    /// Those of them that decide for all, if that is not all of them. The table and the problem are then theirs, but for the observations.
    pub(super) sample: Option<&'a ClockSample>,
}

impl FinestLook<'_> {
    /// Of all clocks, what belongs to those that decide.
    fn rows(&self, of_all: &Offsets) -> Offsets {
        self.sample.map_or_else(|| of_all.clone(), |sample| sample.rows(of_all))
    }

    /// The same of observations.
    fn part(&self, view: TrialData) -> TrialData {
        match self.sample {
            Some(sample) => sample.view(&view),
            None => view,
        }
    }
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
        let (clocks, gain) = self.preferred(look, settled, settled, APART, Gain::is_certain_of_others);
        self.misled = gain.is_some_and(|gain| gain.is_loss_beyond_chance());
        clocks
    }

    /// Whether settled clocks that do not jump, `solved` in the finest windows, bend steadily, and if so in which windows. Returns where such clocks begin, if they are to be elsewhere.
    pub(super) fn choose_steadiness(&mut self, look: &FinestLook<'_>, solved: &Offsets) -> Option<Offsets> {
        let choice = self.choice?;
        let steady = self.steady(look, choice)?;
        let chosen = if steady.gain.is_no_chance() { steady.choice } else { choice };
        let [settled, steadily] = [chosen, steady.choice].map(|choice| Place { start: solved, choice });
        // Where long windows mislead, they nearly always do so whatever the model.
        let elsewhere = match steady.gain.mean > 0.0 && !self.misled {
            true => self.preferred(look, settled, steadily, 1.0, Gain::is_no_chance).0,
            false => None,
        };
        self.choice = Some(if elsewhere.is_some() { steady.choice } else { chosen });
        self.ask_for_choice(look.grid);
        elsewhere
    }

    /// Clocks that come of `found` by correcting it from long windows on, if they are `apart` from the settled ones by so many times the precision and their gain is `enough`; and their gain. If there are many clocks, some of
    /// them decide.
    fn preferred(
        &self,
        look: &FinestLook<'_>,
        settled: Place<'_>,
        found: Place<'_>,
        apart: f64,
        enough: fn(&Gain) -> bool,
    ) -> (Option<Offsets>, Option<Gain>) {
        // What comes back around cycles only, or not at all, has no middles.
        if self.one_way || self.around {
            return (None, None);
        }
        let gain = |look: &FinestLook<'_>, again: &Offsets| {
            let gain = self.gain(look, settled, Place { start: again, ..found }, apart);
            (gain.is_some_and(|gain| enough(&gain)), gain)
        };
        let Some(sample) = ClockSample::of(look.problem.observations, look.problem.fixed) else {
            let again = self.corrected(look, found);
            let (is_better, gain) = gain(look, &again);
            return (is_better.then_some(again), gain);
        };
        let (table, fixed) = (sample.table(look.table), sample.rows(look.problem.fixed));
        let problem = Problem { clocks: fixed.len(), fixed: &fixed, ..*look.problem };
        let part = FinestLook { table: &table, problem: &problem, sample: Some(&sample), ..*look };
        let (is_better, gain) = gain(&part, &self.corrected(&part, found));
        (is_better.then(|| self.corrected(look, found)), gain)
    }

    /// How much better the clocks of the second place predict messages that they are not made from than those of the first. None if these are not so many times the precision `apart`.
    fn gain(&self, look: &FinestLook<'_>, settled: Place<'_>, found: Place<'_>, apart: f64) -> Option<Gain> {
        let [one, other] = [settled, found].map(|place| (look.rows(place.start), place.choice));
        if moved(&one.0, &other.0) <= apart * self.precision {
            return None;
        }
        let view = look.part(self.as_seen(look.table, look.grid, look.problem, look.map));
        let jury = Jury::of_all(&view);
        let score = |(start, choice): &(Offsets, Choice)| {
            HeldOut::new(start, &jury, look.problem, *choice, self.workers).judge(&jury)
        };
        Some(score(&other).gain(&score(&one)))
    }

    /// Clocks, corrected from long windows to those of their model.
    fn corrected(&self, look: &FinestLook<'_>, found: Place<'_>) -> Offsets {
        let &FinestLook { table, grid, problem, map, sample } = look;
        let choice = found.choice;
        let before = self.interpolated(grid, map.bases.len());
        let mut now = found.start.clone();
        let lengths = std::iter::successors(Some(LONGEST), |length| (*length > 1).then_some(length / 2));
        let is_chosen = |length: &usize| {
            2 * grid.width.saturating_mul(*length as i64) > choice.width && grid.count / length >= FEWEST
        };
        for length in lengths.filter(is_chosen) {
            let changes = difference(&now, &before);
            let changed = |clock: u32, time: i64| {
                let change = changes.get(clock as usize).map_or(0.0, |row| grid.at(row, time));
                time.saturating_add(whole(change))
            };
            let (table, longer) = table.through(grid.count.div_ceil(length), changed, self.workers);
            let view = look.part(self.view_by(grid.rows_on(&now, &longer), &table, longer, map));
            let part = Problem {
                windows: longer.count,
                observations: &view.observations,
                anchors: &view.anchors,
                reading: choice.reading,
                roughness: choice.roughness_for(longer.width),
                trend: choice.trend_for(longer.width),
                afresh: length > 1,
                rounds: if choice.trend.is_some() { STEADY_ROUNDS } else { ROUNDS },
                ..*problem
            };
            let changes = longer.rows_on(&difference(&part.solve(&view.now), &view.now), grid);
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

/// By how much rows are more than others.
fn difference(rows: &Offsets, others: &Offsets) -> Offsets {
    let of_row = |(row, other): (&Vec<f64>, &Vec<f64>)| row.iter().zip(other).map(|(one, other)| one - other).collect();
    rows.iter().zip(others).map(of_row).collect()
}
