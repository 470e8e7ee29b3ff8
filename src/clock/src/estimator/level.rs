//! One level: what the messages say in windows of one length, the clocks that this makes, and what comes next.

use super::descent::FinestLook;
use super::start::{begin, moved};
use super::waits::goes_one_way;
use super::{COARSE, Decision, Estimator, FIRST, STRAYED, UNKNOWN, groups, unmeasured, whole};
use crate::Method;
use crate::anchor::Anchor;
use crate::both_sides::are_never_so_slow;
use crate::clock_map::ClockMap;
use crate::estimator::observed_windows;
use crate::grid::Grid;
use crate::latencies::Reading;
use crate::network::{LAST_ROUNDS, Problem, ROUNDS, TREND_ROUNDS};
use crate::observations::{Observations, Offsets};
use crate::steps::may_step;
use crate::view::TrialData;
use crate::windows::BoundTable;

/// Each level has this many times the windows of the one before, up to [`COARSE`],
const FINER: usize = 8;
/// but never more than this many times as many at once. Chosen by hand: after a longer leap, solutions end in the wrong place; shorter ones take more
/// levels.
const LEAP: usize = 32;
/// Looks by which a model is chosen at most, and by how much (in units of what observations are known to) the clocks may have moved in the last of them.
/// Chosen by hand: each look takes trials and a solution; with fewer, or if clocks may move farther, the bounds in use are not the tightest for the
/// clocks that come out.
const MOST_LOOKS: usize = 4;
const SETTLED: f64 = 10.0;

/// With what the clocks of a level are looked for, beside its messages.
#[derive(Debug, Default)]
struct LevelPlan {
    /// Straight lines, if these are asked for: then there is nothing to solve.
    lines: Option<Offsets>,
    /// Clocks to begin with instead of those of the level before.
    fresh: Option<Offsets>,
    /// The same messages in the longer windows that the choice of a model wants.
    coarser: Option<TrialData>,
}

/// With what the next look begins, in the finest windows, if that is not what was solved.
enum Beginning {
    /// The same clocks, of which some seem to jump.
    Jumping(Offsets),
    /// Other clocks.
    Elsewhere(Offsets),
}

impl Estimator {
    /// One level.
    pub(super) fn step(&mut self, table: &BoundTable, grid: Grid, map: &ClockMap) -> Decision {
        let clocks = map.bases.len();
        if let Some(decision) = self.first_look(table, map) {
            return decision;
        }
        let now = self.interpolated(&grid, clocks);
        let prepared = self.prepared(table, &grid, &now, map);
        // Clocks that coarse windows tell nothing of begin with what waits tell.
        let first = !self.begun && prepared.is_some() && !table.waits.classes.is_empty();
        self.begun |= first;
        self.one_way |= first && goes_one_way(table);
        self.too_slow |= self.one_way && unmeasured(map) && are_never_so_slow(table, &now, self.resolution);
        let tables = (table, prepared.as_ref());
        let (seen, anchors) = self.observations(prepared.as_ref().unwrap_or(table), &grid, &now, map);
        let fixed = self.fixed(&seen, map);
        let afresh = self.asked <= FINER || first;
        let mut problem = Problem {
            clocks,
            windows: grid.count,
            fixed: &fixed,
            observations: &seen,
            anchors: &anchors,
            reading: Reading::Mode,
            roughness: 10.0 * seen.floor,
            trend: None,
            afresh,
            rounds: ROUNDS,
            leaning: self.model == Method::Network,
            // Chosen by hand: jumps are found less well with it (250 random scenarios: nine came closer to the truth, 14 did not).
            alike: false,
            cuts: &[],
            around: None,
            firm: false,
            workers: self.workers,
        };
        self.measure_rings(&mut problem, &grid, &now);
        let plan = match self.asked >= self.finest && !first {
            true => self.plan(&mut problem, tables, &grid, &now, map),
            false => LevelPlan::default(),
        };
        let LevelPlan { lines, fresh, coarser } = plan;
        let mut start = fresh.as_ref().unwrap_or(&now);
        if let Some(view) = &coarser {
            start = view.otherwise.as_ref().unwrap_or(&view.now);
            let (windows, observations, anchors) = (view.grid.count, &view.observations, &view.anchors[..]);
            problem = Problem { windows, observations, anchors, ..problem };
        }
        let unknown = (self.grid.is_none() && unmeasured(map)).then_some(&grid);
        let mut solved = lines.unwrap_or_else(|| begin(&mut problem, start, unknown));
        let done = self.settled;
        let finest = Problem { windows: grid.count, observations: &seen, anchors: &anchors, ..problem };
        let look = FinestLook { table, grid: &grid, problem: &finest, map, sample: None };
        let beginning = self.settle(&look, &solved, coarser.as_ref(), &now);
        if done {
            solved = self.conclude(&problem, solved, tables, &grid, &now, map);
        }
        (self.offsets, self.observations) = (solved, seen);
        let grid = match (beginning, coarser) {
            (Some(Beginning::Jumping(fine)), view) => {
                let chosen = std::mem::replace(&mut self.offsets, fine);
                self.without_jumps = view.map(|view| (view.grid, chosen));
                grid
            }
            (Some(Beginning::Elsewhere(clocks)), _) => {
                self.offsets = clocks;
                grid
            }
            (None, Some(view)) => {
                self.observations = view.observations;
                view.grid
            }
            (None, None) => grid,
        };
        self.keep_small(&grid);
        if done {
            self.groups = groups(&self.observations, clocks);
            self.centre_groups(map);
            self.synthesise(map, &grid);
        }
        if !self.doubtful.is_empty() {
            return Decision::Inspect(self.stretches(&grid));
        }
        if self.strayed {
            return Decision::Nothing(STRAYED.to_owned());
        }
        let knots = self.knots(&grid);
        if done {
            Decision::Done(knots, Box::new(self.fit(&anchors, &grid)))
        } else {
            self.refine_windows();
            Decision::Level(knots, observed_windows(clocks))
        }
    }

    /// What the messages of `table` and the recorded offsets say in the windows of `grid`, with the clocks so far.
    fn observations(
        &mut self,
        table: &BoundTable,
        grid: &Grid,
        now: &Offsets,
        map: &ClockMap,
    ) -> (Observations, Vec<Anchor>) {
        let resolution = self.resolution as f64;
        let delay = self.limits.longest_delay(grid.width as f64 / resolution) * resolution;
        let mut seen = Observations::new(table, grid, now, UNKNOWN * resolution, delay, self.workers);
        // In long windows clocks drift by more.
        if self.asked >= self.finest && !self.settled {
            self.precision = self.precision.max(seen.precision);
        }
        seen.precision = self.precision;
        let anchors = self.anchors(map, grid, seen.floor);
        seen.levels = self.levels(&anchors);
        if self.grid.is_none() {
            let mut held: Vec<bool> = vec![false; map.bases.len()];
            anchors.iter().for_each(|anchor| held[anchor.clock as usize] = true);
            held[self.reference] = true;
            seen.tie(&held);
        }
        (seen, anchors)
    }

    /// Where messages come back around cycles only, the latency that recorded offsets tell. Clocks of coarser windows may have gone wherever messages seem quick; and in longer windows they
    /// are not where they were measured.
    fn measure_rings(&mut self, problem: &mut Problem<'_>, grid: &Grid, now: &Offsets) {
        if self.asked >= self.finest && grid.count >= self.supported && problem.goes_around() {
            self.around = true;
            let contradicted = problem.contradicts_anchors(now);
            // Once jumps are looked for, clocks may be elsewhere for other reasons.
            problem.around = problem.latency_at_anchors(now).filter(|_| contradicted || self.searches == 0);
            problem.firm = problem.around.is_some() && contradicted;
        }
    }

    /// What the finest windows begin with; chooses the model the first time. `tables`: the bounds as they were measured, and, if that is not the same, with what was waited for.
    fn plan(
        &mut self,
        problem: &mut Problem<'_>,
        tables: (&BoundTable, Option<&BoundTable>),
        grid: &Grid,
        now: &Offsets,
        map: &ClockMap,
    ) -> LevelPlan {
        let (measured, prepared) = tables;
        let mut plan = LevelPlan::default();
        self.at_finest += 1;
        if self.at_finest == 1 && self.model == Method::Network && grid.count > FIRST {
            // Where windows before were so long that clocks bend in them by more than a latency, messages seem prompt in one direction and late in
            // the other. The middles of round trips do not depend on the clocks before.
            plan.fresh = Some(Problem { afresh: true, rounds: &[], ..*problem }.solve(now));
        }
        if self.at_finest == 1 && self.model == Method::Network && self.collectives.prevail {
            plan.fresh = self.starting_from_ends(measured, grid, now, problem).or(plan.fresh);
        }
        if self.model != Method::Network && self.grid.is_some() {
            plan.lines = self.lines(
                prepared.unwrap_or(measured),
                problem.observations,
                grid,
                problem.clocks,
                !problem.anchors.is_empty(),
            );
            if plan.lines.is_none() {
                self.model = Method::Network;
            }
        }
        if plan.lines.is_some() {
            return plan;
        }
        let choice = match self.choice.filter(|_| self.settled) {
            Some(choice) => {
                problem.rounds = LAST_ROUNDS;
                choice
            }
            None => {
                let selection = self.choose(measured, grid, problem, plan.fresh.as_ref(), map);
                plan.fresh = plan.fresh.filter(|_| selection.otherwise);
                selection.choice
            }
        };
        self.choice = Some(choice);
        // Of the last look all is in the windows that it was asked for, whatever length they came out with.
        if !self.settled && choice.width > grid.width.saturating_add(grid.width / 2) {
            plan.coarser = Some(self.coarser(measured, grid, choice.width, plan.fresh.as_ref(), map));
        }
        let width = plan.coarser.as_ref().map_or(grid.width, |view| view.grid.width);
        (problem.reading, problem.roughness) = (choice.reading, choice.roughness_for(width));
        problem.trend = choice.trend_for(width);
        if problem.trend.is_some() {
            problem.rounds = TREND_ROUNDS;
        }
        plan
    }

    /// Finds out whether these are the clocks: what was the quickest message of a window is another one with clocks that drift otherwise. If they are, it finds out whether they are elsewhere, jump or bend steadily;
    /// returns with what the next look begins if that is not what was `solved`, in `coarser` windows than the finest ones if these were chosen.
    fn settle(
        &mut self,
        look: &FinestLook<'_>,
        solved: &Offsets,
        coarser: Option<&TrialData>,
        now: &Offsets,
    ) -> Option<Beginning> {
        let &FinestLook { grid, problem: finest, .. } = look;
        if self.model != Method::Network {
            self.settled = self.at_finest > 0;
            return None;
        }
        if self.at_finest <= 1 || self.settled {
            return None;
        }
        let seen = finest.observations;
        let before = coarser.map_or(now, |view| &view.now);
        self.settled = self.at_finest >= MOST_LOOKS || moved(solved, before) <= SETTLED * seen.precision;
        if !self.settled {
            return None;
        }
        let in_finest = coarser.map(|view| view.grid.rows_on(solved, grid));
        let in_finest = in_finest.as_ref().unwrap_or(solved);
        // Jumps show in the finest windows, but something of them in the chosen ones as well.
        let least = self.jump_limits().clear * seen.precision;
        let fine = coarser.zip(self.choice).map(|(view, choice)| {
            let longer = grid.count / view.grid.count.max(1);
            if !solved.iter().any(|row| may_step(row, longer, least)) {
                return Offsets::new();
            }
            Problem { roughness: choice.roughness_for(grid.width), ..*finest }.solve(now)
        });
        self.suspect(fine.as_ref().unwrap_or(solved), &seen.component, grid, seen.precision);
        self.ask_for_choice(grid);
        if !self.doubtful.is_empty() {
            return fine.map(Beginning::Jumping);
        }
        if let Some(clocks) = self.elsewhere(look, in_finest) {
            (self.settled, self.at_finest, self.finest) = (false, 1, self.supported);
            return Some(Beginning::Elsewhere(clocks));
        }
        self.choose_steadiness(look, in_finest).map(Beginning::Elsewhere)
    }

    /// Of the last look, in the windows of `grid`, the windows that were chosen are asked for.
    pub(super) fn ask_for_choice(&mut self, grid: &Grid) {
        if let Some(choice) = self.choice {
            self.finest = (grid.width as f64 * grid.count as f64 / choice.width as f64).round() as usize;
        }
    }

    /// Takes the windows of `grid` as those of the clocks so far; in the first ones, whole parts of the corrections become constants.
    pub(super) fn keep_small(&mut self, grid: &Grid) {
        self.limit_drift(grid);
        if self.grid.is_none() {
            for (constant, row) in self.constants.iter_mut().zip(&mut self.offsets) {
                *constant = row.first().map_or(0, |offset| whole(*offset));
                row.iter_mut().for_each(|offset| *offset -= *constant as f64);
            }
        }
        self.grid = Some(*grid);
    }

    /// The windows of the next level. One step that is too long ends in the wrong place: windows in which clocks bend by more than a latency cannot tell them apart.
    fn refine_windows(&mut self) {
        let small = self.asked < COARSE || self.asked * LEAP < self.finest;
        let finer = if small { self.asked * FINER } else { self.finest };
        self.asked = finer.min(self.finest);
    }
}
