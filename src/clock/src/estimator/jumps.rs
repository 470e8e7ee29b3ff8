//! Clocks that jump: from what windows show to the place between two events.

use super::{Decision, Estimator, observed_windows, refinement};
use crate::Method;
use crate::grid::Grid;
use crate::inspection::{ClockInterval, Inspected};
use crate::observations::Offsets;
use crate::steps::{CorrectionStep, Crossing, Suspect, find, place, stepped};
use clc_trace::Ticks;

/// A clock that seems to jump.
#[derive(Debug, Clone)]
pub(super) struct Doubtful {
    clock: u32,
    suspect: Suspect,
}

/// How often jumps are looked for: one can hide another.
const SEARCHES: usize = 4;
/// Windows on each side of a suspected jump whose messages are looked at, at least.
const MARGIN: usize = 4;
/// What is left of a step that is known is seen at most so many windows from it.
const NEAR: usize = 8;
/// A jump hides others that are so many times smaller.
const HIDES: f64 = 4.0;
/// Most steps of all clocks together; more are no jumps.
const MOST: usize = 256;

impl Estimator {
    /// Looks for jumps in solved corrections.
    pub(super) fn suspect(&mut self, solved: &Offsets, grid: &Grid, precision: f64) {
        if self.model != Method::Network || self.searches >= SEARCHES {
            return;
        }
        self.searches += 1;
        let all = solved.iter().enumerate().flat_map(|(clock, row)| {
            let found = find(row, grid.width, precision, self.jumps);
            found.into_iter().map(move |suspect| Doubtful { clock: clock as u32, suspect })
        });
        let all: Vec<Doubtful> = all.collect();
        // One clock's jump shows in its neighbours as well, for as long as it is not known.
        let highest = all.iter().map(|one| one.suspect.height().abs()).fold(0.0, f64::max);
        self.doubtful = all.into_iter().filter(|one| HIDES * one.suspect.height().abs() >= highest).collect();
        if self.doubtful.len() > MOST {
            self.doubtful.clear();
        }
    }

    /// The times of the suspected jumps.
    pub(super) fn stretches(&self, grid: &Grid) -> Vec<ClockInterval> {
        let stretch = |doubtful: &Doubtful| {
            // The estimate may smear a step to one side only.
            let (first, last) = doubtful.suspect.windows;
            let beyond = (last - first).max(MARGIN);
            let (first, last) = (first.saturating_sub(beyond), (last + beyond).min(grid.count.saturating_sub(1)));
            let constant = self.constants.get(doubtful.clock as usize).copied().unwrap_or(0);
            let corrections = [doubtful.suspect.before.0, doubtful.suspect.after.0];
            let most = corrections.into_iter().fold(f64::MIN, f64::max).round() as i64 + constant;
            let least = corrections.into_iter().fold(f64::MAX, f64::min).round() as i64 + constant;
            let unstepped = |time: i64| time - self.step_at(doubtful.clock as usize, time) as i64;
            ClockInterval {
                clock: doubtful.clock,
                from: unstepped(grid.centre(first).saturating_sub(most)),
                until: unstepped(grid.centre(last).saturating_sub(least)),
            }
        };
        self.doubtful.iter().map(stretch).collect()
    }

    /// Takes in the messages that [`Decision::Inspect`] asked for.
    pub fn inspected(&mut self, messages: &[Inspected]) -> Decision {
        let Some(grid) = self.grid else { return Decision::Nothing("no windows".to_owned()) };
        let stretches = self.stretches(&grid);
        let doubtful = std::mem::take(&mut self.doubtful);
        let knots = self.knots(&grid);
        let clocks: Vec<_> = knots.iter().map(|knots| refinement(knots).unwrap_or_default()).collect();
        let global =
            |clock: u32, time: i64| clocks.get(clock as usize).map_or(time, |map| map.map(Ticks(time)).0) as f64;
        let precision = self.precision;
        // Where each is, and whether that is one that is known, whose height was not quite right.
        let mut placed: Vec<(&Doubtful, CorrectionStep)> = Vec::new();
        for (index, doubtful) in doubtful.iter().enumerate() {
            let suspect = &doubtful.suspect;
            let steps = self.steps.get(doubtful.clock as usize).map_or(&[][..], Vec::as_slice);
            let constant = self.constants.get(doubtful.clock as usize).copied().unwrap_or(0);
            let crossing = |seen: &Inspected| {
                let line = |(level, slope): (f64, f64)| {
                    let time = stepped(steps, seen.own).saturating_add(constant) as f64 + level;
                    time + slope * ((time - grid.centre(0) as f64) / grid.width as f64 - suspect.middle())
                };
                let other = global(seen.partner, seen.other);
                let travel = |own: f64| if seen.received { own - other } else { other - own };
                Crossing {
                    own: seen.own,
                    before: travel(line(suspect.before)),
                    after: travel(line(suspect.after)),
                    without: travel(global(doubtful.clock, seen.own)),
                    received: seen.received,
                }
            };
            let near = NEAR as i64 * grid.width;
            let known = steps
                .iter()
                .find(|step| (stretches[index].from - near..=stretches[index].until + near).contains(&step.at));
            if let Some(known) = known {
                placed.push((doubtful, CorrectionStep { at: known.at, height: suspect.height().round() as i64 }));
                continue;
            }
            let own = messages.iter().filter(|seen| seen.stretch as usize == index);
            placed.extend(place(own.map(crossing).collect(), suspect.height(), precision).map(|step| (doubtful, step)));
        }
        // The last first: what is taken out of one stretch is out of all later ones.
        for (Doubtful { clock, suspect }, step) in placed.iter().rev() {
            let (Some(row), Some(steps)) = (self.offsets.get_mut(*clock as usize), self.steps.get_mut(*clock as usize))
            else {
                continue;
            };
            for (window, offset) in row.iter_mut().enumerate().skip(suspect.windows.0 + 1) {
                if window >= suspect.windows.1 {
                    *offset -= step.height as f64;
                } else {
                    *offset = suspect.before.0 + suspect.before.1 * (window as f64 - suspect.middle());
                }
            }
            match steps.iter_mut().find(|known| known.at == step.at) {
                Some(known) => known.height += step.height,
                None => steps.push(*step),
            }
            steps.retain(|step| step.height != 0);
            steps.sort_by_key(|step| step.at);
        }
        if !placed.is_empty() {
            (self.settled, self.at_finest, self.finest) = (false, 1, self.supported);
        }
        self.asked = self.finest;
        Decision::Level(self.knots(&grid), observed_windows(self.offsets.len()))
    }
}
