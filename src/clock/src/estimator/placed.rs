//! Clocks that jump: from what windows show to the place between two events.

use super::jumps::Doubtful;
use super::{Decision, Estimator, observed_windows, refinement};
use crate::LinearClock;
use crate::grid::Grid;
use crate::inspection::{ClockInterval, Inspected};
use crate::observations::Offsets;
use crate::standstills::standstill;
use crate::steps::{CorrectionStep, Crossing, place, stepped, stepped_apart};
use clc_trace::Ticks;

/// What is left of a step that is known is seen at most so many windows from it. Chosen by hand: a larger value takes other steps for what is left of
/// one, a smaller one loses what was smeared.
const NEAR: usize = 8;
/// Windows with which clocks begin again once their steps are known, where messages come back around cycles only. Chosen by hand: in 45 rings whose clocks jump, errors fell to 0.97 of what they were with 8, 0.96 with 16 and 0.94 with 64 (geometric
/// means); a ring of `scripts/accuracy` has 1.5 us with 4 to 32, 2.6 with 64, and 6.0 if clocks go on as they are.
const AGAIN: usize = 32;
/// A jump and its place.
type Placed = (usize, CorrectionStep);

/// The clocks of now.
struct Clocks(Vec<LinearClock>);

impl Clocks {
    fn of(estimator: &Estimator, grid: &Grid) -> Clocks {
        Clocks(estimator.knots(grid).iter().map(|knots| refinement(knots).unwrap_or_default()).collect())
    }

    fn at(&self, clock: u32, time: i64) -> f64 {
        self.0.get(clock as usize).map_or(time, |map| map.map(Ticks(time)).0) as f64
    }
}

/// Takes steps, in the order of their jumps, into corrections: `offsets` without them, and `steps`.
fn take_in(
    doubtful: &[Doubtful],
    placed: &[Placed],
    reference: usize,
    (offsets, steps): (&mut Offsets, &mut [Vec<CorrectionStep>]),
) {
    // The last first: what is taken out of one stretch is out of all later ones.
    for (jump, step) in placed.iter().rev() {
        let Some(Doubtful { clock, suspect }) = doubtful.get(*jump) else { continue };
        let (Some(row), Some(steps)) = (offsets.get_mut(*clock as usize), steps.get_mut(*clock as usize)) else {
            continue;
        };
        // The reference has no corrections but its steps.
        let corrected = if *clock as usize == reference { row.len() } else { suspect.windows.0 + 1 };
        for (window, offset) in row.iter_mut().enumerate().skip(corrected) {
            if window >= suspect.windows.1 {
                *offset -= step.rise() as f64;
            } else {
                *offset = suspect.before.0 + suspect.before.1 * (window as f64 - suspect.middle());
            }
        }
        match steps.iter_mut().find(|known| known.at == step.at) {
            Some(known) => known.height += step.rise(),
            None => steps.push(*step),
        }
        steps.retain(|step| step.height != 0);
        steps.sort_by_key(|step| step.at);
    }
}

impl Estimator {
    /// Takes in the messages that [`Decision::Inspect`] asked for.
    pub fn inspected(&mut self, messages: &[Inspected]) -> Decision {
        let Some(grid) = self.grid else { return Decision::Nothing("no windows".to_owned()) };
        let stretches = self.stretches(&grid);
        let doubtful = std::mem::take(&mut self.doubtful);
        let otherwise = std::mem::take(&mut self.otherwise);
        let of_reference = doubtful.iter().find(|one| one.clock as usize == self.reference);
        let before = of_reference.map(|_| self.offsets.clone());
        if let Some(jump) = of_reference {
            self.take_out(&jump.suspect, &grid);
            if !otherwise.is_empty() && self.others_jumped(jump, messages, &grid) {
                self.offsets = before.unwrap_or_default();
                self.doubtful = otherwise;
                return Decision::Inspect(self.stretches(&grid));
            }
        }
        let placed = self.places(&doubtful, &stretches, messages, &grid);
        take_in(&doubtful, &placed, self.reference, (&mut self.offsets, &mut self.steps));
        if let Some(before) = before.filter(|_| placed.is_empty()) {
            self.offsets = before;
        }
        let without = self.without_jumps.take();
        if let Some((grid, offsets)) =
            without.filter(|_| placed.is_empty() && doubtful.iter().all(|one| one.suspect.is_bulge()))
        {
            // There is no standstill, and finer windows were for that.
            (self.offsets, self.asked) = (offsets, self.finest);
            self.keep_small(&grid);
            return Decision::Level(self.knots(&grid), observed_windows(self.offsets.len()));
        }
        if !placed.is_empty() {
            (self.settled, self.at_finest, self.finest) = (false, 1, self.supported);
        }
        self.asked = self.finest;
        if !placed.is_empty() && self.around {
            // What the steps of others have bent stays bent where no message contradicts it.
            (self.at_finest, self.asked) = (0, AGAIN.min(self.finest));
        }
        Decision::Level(self.knots(&grid), observed_windows(self.offsets.len()))
    }

    /// A message of a clock that may have jumped.
    fn crossing(&self, doubtful: &Doubtful, seen: &Inspected, clocks: &Clocks, grid: &Grid) -> Crossing {
        let suspect = &doubtful.suspect;
        let steps = self.steps.get(doubtful.clock as usize).map_or(&[][..], Vec::as_slice);
        let constant = self.constants.get(doubtful.clock as usize).copied().unwrap_or(0);
        let line = |(level, slope): (f64, f64)| {
            let time = stepped(steps, seen.own).saturating_add(constant) as f64 + level;
            time + slope * ((time - grid.centre(0) as f64) / grid.width as f64 - suspect.middle())
        };
        let other = clocks.at(seen.partner, seen.other);
        let travel = |own: f64| if seen.received { own - other } else { other - own };
        Crossing {
            own: seen.own,
            before: travel(line(suspect.before)),
            after: travel(line(suspect.after)),
            without: travel(clocks.at(doubtful.clock, seen.own)),
            received: seen.received,
        }
    }

    /// Whether what seems to be a jump of the reference, by which the corrections of now have been relieved, was one of each other clock: then its messages with them show it at several times.
    fn others_jumped(&self, jump: &Doubtful, messages: &[Inspected], grid: &Grid) -> bool {
        let clocks = Clocks::of(self, grid);
        let crossing = |seen: &Inspected| (seen.partner, self.crossing(jump, seen, &clocks, grid));
        let crossings: Vec<_> = messages.iter().map(crossing).collect();
        stepped_apart(&crossings, jump.suspect.height(), self.precision) > self.jumps.apart
    }

    /// Where each jump is, in their order. For one that is known, whose height was not quite right, it is there.
    fn places(
        &self,
        doubtful: &[Doubtful],
        stretches: &[ClockInterval],
        messages: &[Inspected],
        grid: &Grid,
    ) -> Vec<Placed> {
        let clocks = Clocks::of(self, grid);
        let near = NEAR as i64 * grid.width;
        let step = |(jump, one): (usize, &Doubtful)| {
            let stretch = stretches.get(jump)?;
            let close = stretch.from - near..=stretch.until + near;
            let known = self.steps.get(one.clock as usize).into_iter().flatten().find(|step| close.contains(&step.at));
            if let Some(known) = known {
                // What is left of a standstill has no height.
                let step = CorrectionStep::lasting(known.at, one.suspect.height().round() as i64);
                return (known.catch_up == 0 && !one.suspect.is_bulge()).then_some((jump, step));
            }
            let own = messages.iter().filter(|seen| seen.stretch as usize == jump);
            let crossings = own.map(|seen| self.crossing(one, seen, &clocks, grid)).collect();
            if one.suspect.is_bulge() {
                return standstill(crossings, one.suspect.bulge, self.precision).map(|step| (jump, step));
            }
            // That others show it is evidence enough: where a clock was set forward, no message of it shows what it was between.
            let evident = one.clock as usize == self.reference;
            place(crossings, one.suspect.height(), self.precision, evident).map(|step| (jump, step))
        };
        doubtful.iter().enumerate().filter_map(step).collect()
    }
}
