//! Clocks that jump: what windows show of it.

use super::Estimator;
use crate::Method;
use crate::grid::Grid;
use crate::inspection::ClockInterval;
use crate::observations::Offsets;
use crate::steps::{JumpLimits, Suspect, find};

/// A clock that seems to jump.
#[derive(Debug, Clone)]
pub(super) struct Doubtful {
    pub(super) clock: u32,
    pub(super) suspect: Suspect,
}

/// How often jumps are looked for: one can hide another. Chosen by hand: each takes another solution; with fewer, small jumps that large ones hide
/// stay smeared.
const SEARCHES: usize = 4;
/// Windows on each side of a suspected jump whose messages are looked at, at least. Chosen by hand: the estimate smears a step over its neighbours:
/// with fewer, messages that place it are missed; with more, messages are gathered that say nothing of it.
const MARGIN: usize = 4;
/// A jump hides others that are so many times smaller. Chosen by hand: a larger value takes what a jump smears for further jumps, a smaller one needs
/// more of the [`SEARCHES`].
const HIDES: f64 = 4.0;
/// Most steps of all clocks together; more are no jumps. Chosen by hand: a larger value cuts clocks that walk into steps, a smaller one gives up
/// machines of which many clocks do jump.
const MOST: usize = 256;
/// Steps of several clocks are one of the reference if they differ by no more than this part of their height. Chosen by hand: heights are estimates:
/// a smaller part misses jumps of the reference, a larger one makes one of different jumps.
const ALIKE: f64 = 0.2;
/// By this part of its height all others have to follow a jump of the reference, so that only it has jumped. Chosen by hand: estimates are smeared: a
/// larger part ascribes a jump of the reference to all others, a smaller one lets a clock pass that stays where it is.
const FOLLOWS: f64 = 0.5;

/// The jump of the reference that most of the `others` show as one of their own, at the same time and by as much: they are corrected to its time, whatever it does. Two at least, since of two
/// clocks nobody knows which has jumped. Both are in the order of clocks.
fn jump_of_reference(all: &[Doubtful], others: &[u32], rows: &Offsets) -> Option<Suspect> {
    let all = all.iter().filter(|one| !one.suspect.is_bulge() && others.binary_search(&one.clock).is_ok());
    let all: Vec<&Doubtful> = all.collect();
    // Where each clock seems to jump again and again, it is not the reference.
    if all.len() > MOST.max(2 * others.len()) {
        return None;
    }
    let like = |one: &Suspect| -> Vec<&Suspect> {
        let (first, last) = one.windows;
        let alike = |other: &&&Doubtful| {
            let (begin, end) = other.suspect.windows;
            let apart = (other.suspect.height() - one.height()).abs();
            begin <= last && end >= first && apart <= ALIKE * one.height().abs()
        };
        let mut found: Vec<&&Doubtful> = all.iter().filter(alike).collect();
        found.dedup_by_key(|one| one.clock);
        found.into_iter().map(|one| &one.suspect).collect()
    };
    let most = all.iter().map(|one| like(&one.suspect)).max_by_key(Vec::len)?;
    if most.len() < 2 || 2 * most.len() <= others.len() {
        return None;
    }
    // The time that they have in common, or else that of all.
    let begins = || most.iter().map(|one| one.windows.0);
    let ends = || most.iter().map(|one| one.windows.1);
    let common = (begins().max()?, ends().min()?);
    let windows = if common.0 < common.1 { common } else { (begins().min()?, ends().max()?) };
    let mut heights: Vec<f64> = most.iter().map(|one| one.height()).collect();
    let middle = heights.len() / 2;
    let height = *heights.select_nth_unstable_by(middle, f64::total_cmp).1;
    // If some stay where they are just then, or jump the other way, each has jumped for itself.
    let beside = (windows.1 - windows.0).max(MARGIN);
    let (first, last) = (windows.0.saturating_sub(beside), windows.1 + beside);
    let follows = |clock: &u32| {
        let row = rows.get(*clock as usize);
        let change = row.and_then(|row| Some(row.get(last.min(row.len() - 1))? - row.get(first)?));
        change.is_some_and(|change| change / height > FOLLOWS)
    };
    others.iter().all(follows).then_some(Suspect { windows, before: (0.0, 0.0), after: (-height, 0.0), bulge: 0.0 })
}

impl Estimator {
    /// Looks for jumps in solved corrections of clocks of these components.
    pub(super) fn suspect(&mut self, solved: &Offsets, component: &[usize], grid: &Grid, precision: f64) {
        if self.model != Method::Network || self.searches >= SEARCHES {
            return;
        }
        self.searches += 1;
        let limits = self.jump_limits();
        let all = solved.iter().enumerate().flat_map(|(clock, row)| {
            let found = find(row, grid.width, precision, limits);
            found.into_iter().map(move |suspect| Doubtful { clock: clock as u32, suspect })
        });
        let all: Vec<Doubtful> = all.collect();
        let of_reference = jump_of_reference(&all, &self.tied_to_reference(component), solved);
        // One clock's jump shows in its neighbours as well, for as long as it is not known.
        let highest = |of: fn(&Suspect) -> f64| all.iter().map(|one| of(&one.suspect)).fold(0.0, f64::max);
        let (steps, both) = (highest(|one| one.height().abs()), highest(Suspect::size));
        // What seems to be a standstill hides no step, since it may be none.
        let clear = |one: &Doubtful| match one.suspect.is_bulge() {
            true => HIDES * one.suspect.bulge >= both,
            false => HIDES * one.suspect.height().abs() >= steps,
        };
        self.doubtful = all.into_iter().filter(clear).collect();
        if self.doubtful.len() > MOST {
            self.doubtful.clear();
        }
        if let Some(suspect) = of_reference {
            let jump = Doubtful { clock: self.reference as u32, suspect };
            self.otherwise = std::mem::replace(&mut self.doubtful, vec![jump]);
        }
    }

    /// From when on a change of one of these clocks is a jump.
    pub(super) fn jump_limits(&self) -> JumpLimits {
        if self.around || self.one_way { self.jumps.without_returns() } else { self.jumps }
    }

    /// The other clocks of its component.
    fn tied_to_reference(&self, component: &[usize]) -> Vec<u32> {
        let own = component.get(self.reference);
        let tied = |clock: &usize| *clock != self.reference && component.get(*clock) == own;
        (0..component.len()).filter(tied).map(|clock| clock as u32).collect()
    }

    /// Takes a jump of the reference out of the corrections of all that are tied to it, which contain it so far; and out of global time, which was that of the reference.
    pub(super) fn take_out(&mut self, suspect: &Suspect, grid: &Grid) {
        let rise = -suspect.height();
        let (first, last) = (grid.centre(suspect.windows.0) as f64, grid.centre(suspect.windows.1) as f64 - rise);
        for clock in self.tied_to_reference(&self.observations.component) {
            let Some(row) = self.offsets.get_mut(clock as usize) else { continue };
            let old = std::mem::take(row);
            let before = old.get(suspect.windows.0).copied().unwrap_or(0.0);
            let after = old.get(suspect.windows.1).copied().unwrap_or(0.0) - rise;
            let corrected = |window: usize| {
                let time = grid.centre(window);
                if time as f64 <= first {
                    old[window]
                } else if time as f64 >= last {
                    grid.at(&old, time.saturating_add(rise.round() as i64)) - rise
                } else {
                    before + (after - before) * (time as f64 - first) / (last - first)
                }
            };
            *row = (0..old.len()).map(corrected).collect();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jump(clock: u32, windows: (usize, usize), height: f64) -> Doubtful {
        Doubtful { clock, suspect: Suspect { windows, before: (5.0, 0.1), after: (5.0 + height, 0.1), bulge: 0.0 } }
    }

    #[test]
    fn what_most_clocks_do_at_once_the_reference_did() {
        let all =
            [jump(1, (40, 46), 900.0), jump(2, (42, 48), 1000.0), jump(2, (90, 93), 700.0), jump(4, (41, 47), 1050.0)];
        // Corrections of six clocks that rise by this at window 44.
        let rows = |rises: [f64; 6]| -> Offsets {
            rises.iter().map(|rise| (0..100).map(|window| if window < 44 { 0.0 } else { *rise }).collect()).collect()
        };
        let rise = rows([0.0, 900.0, 1000.0, 950.0, 1050.0, 0.0]);
        let found = jump_of_reference(&all, &[1, 2, 3, 4], &rise).expect("three of four");
        assert_eq!((found.windows, found.height()), ((42, 46), -1000.0));
        // Another one stays where it is, or jumps the other way, though nobody suspects it.
        for other in [0.0, 300.0, -950.0] {
            assert_eq!(jump_of_reference(&all, &[1, 2, 3, 4], &rows([0.0, 900.0, 1000.0, other, 1050.0, 0.0])), None);
        }
        // Half of them, others' clocks, other times, and other heights do not tell.
        assert_eq!(jump_of_reference(&all[..3], &[1, 2, 3, 4], &rise), None);
        assert_eq!(jump_of_reference(&all, &[1, 3, 4, 5], &rise), None);
        assert_eq!(jump_of_reference(&[jump(1, (10, 12), 900.0), jump(2, (13, 15), 900.0)], &[1, 2], &rise), None);
        assert_eq!(jump_of_reference(&[jump(1, (40, 46), 900.0), jump(2, (40, 46), -900.0)], &[1, 2], &rise), None);
        // Of two clocks either may have jumped.
        assert_eq!(jump_of_reference(&all[..1], &[1], &rise), None);
        assert!(jump_of_reference(&all[..2], &[1, 2], &rise).is_some());
        assert!(
            jump_of_reference(&[], &[], &rise).is_none()
                && jump_of_reference(&all, &[1, 2, 3, 4], &rows([0.0; 6])[..1].to_vec()).is_none()
        );
    }

    #[test]
    fn no_room_for_a_step_is_seen_in_longer_windows() {
        use crate::steps::may_step;
        let sine = |window: usize| 800.0 * (window as f64 / 50.0).sin();
        let row = |height: f64| -> Vec<f64> {
            (0..400).map(|window| sine(window) + height * ((window as f64 - 200.0) / 6.0).clamp(0.0, 1.0)).collect()
        };
        assert!(
            !may_step(&row(0.0), 5, 1000.0) && may_step(&row(1000.0), 5, 1000.0) && may_step(&row(-1000.0), 5, 1000.0)
        );
        assert!(!may_step(&[], 5, 1.0) && !may_step(&[0.0, 9.0], 0, 1.0));
    }
}
