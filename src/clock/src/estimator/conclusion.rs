//! What the settled clocks are in the end, and how they compare with the recorded ones and with straight lines.

use super::joined::{JoinedClocks, LinesBesideSteps};
use super::prompt::PromptTrips;
use super::pulled::stretches;
use super::start::misfits;
use super::straight::{self, StraightClocks};
use super::tied::tied;
use super::{Estimator, bridges, levelled, recorded, unmeasured};
use crate::Method;
use crate::anchor::Anchor;
use crate::clock_map::ClockMap;
use crate::evidence::Score;
use crate::extrapolation;
use crate::fit::Unmeasured;
use crate::grid::Grid;
use crate::latencies::Latencies;
use crate::network::Problem;
use crate::observations::{Observations, Offsets};
use crate::quickest::half_trip;
use crate::selection::{Choice, HeldOut, Jury};
use crate::view::TrialData;
use crate::windows::BoundTable;
use clc_trace::Ticks;
use std::cell::OnceCell;

/// Part of the shortest latency that is taken for certain: within a window clocks are known less well than at its middle. Chosen by hand: a larger
/// part may keep messages longer than they took, a smaller one gives back less of their latency.
const CERTAIN: f64 = 0.875;

/// How many times as far from recorded offsets lines may be as these are usually wrong: beyond that there is another reason. (Of the 24 traces of [`super::prompt`] the six that were farther than once came closer to the truth by 1.1 to 21 times.)
const WRONG: f64 = 4.0;

/// For what straight lines may take the place of the estimate, if their score allows it.
#[derive(Clone, Copy)]
struct LineGrounds {
    /// They are near the estimate, or as possible where no offset was recorded.
    fits: bool,
    /// They hold recorded offsets, and hardly any message contradicts them.
    possible: bool,
    /// They fit messages that are late nearly always.
    waits: bool,
}

impl LineGrounds {
    fn any(self) -> bool {
        self.fits || self.possible || self.waits
    }
}

impl Estimator {
    /// The clocks that were `solved` from a `problem` with its windows on `grid`, or straight lines in their place, with what is known where nothing was observed. `tables`: the bounds as they were measured, and, if that
    /// is not the same, with what was waited for; `now`: the clocks by which they were seen.
    pub(super) fn conclude(
        &mut self,
        problem: &Problem<'_>,
        solved: Offsets,
        tables: (&BoundTable, Option<&BoundTable>),
        grid: &Grid,
        now: &Offsets,
        map: &ClockMap,
    ) -> Offsets {
        let (measured, prepared) = tables;
        let seen = problem.observations;
        let recorded = self.recorded(grid);
        let mut solved = solved;
        let joined =
            if self.choice.is_some() && unmeasured(map) { self.joined(measured, grid, problem.clocks) } else { None };
        let mut without_steps = None;
        if let Some(choice) = self.choice {
            let (observations, anchors) = (seen.clone(), problem.anchors.to_vec());
            let view = TrialData { grid: *grid, observations, now: solved, otherwise: None, anchors };
            let table = prepared.unwrap_or(measured);
            (solved, without_steps) = self.compare(problem, choice, view, &recorded, (table, joined), map);
        }
        if self.model == Method::Network {
            let flat = problem.flat(&solved);
            let latencies = Latencies::new(seen, &flat, grid.count, problem.reading, problem.around, self.workers);
            let mut observed = tied(seen, &solved, &latencies);
            if self.straight.is_none() {
                let lines = extrapolation::lines_between(&map.bases, grid);
                let finish = |rows: &mut Offsets, observed: &[Vec<bool>]| {
                    extrapolation::extrapolate(rows, observed, problem.fixed, &lines);
                    bridges::bridge(rows, observed, problem.anchors, grid, self.precision);
                };
                // A clock that jumps may look as if it bent where that was not found.
                let jumps = self.steps.iter().map(|steps| !steps.is_empty());
                let held: Vec<bool> = problem.fixed.iter().zip(jumps).map(|(fixed, jumps)| *fixed || jumps).collect();
                for stretch in stretches(&solved, &observed, seen, &latencies, &held, finish) {
                    stretch.straighten(&mut solved, &mut observed);
                }
                extrapolation::extrapolate(&mut solved, &observed, problem.fixed, &lines);
            }
            self.by_messages = Some(recorded::at_offsets(&solved, &[], problem.anchors, self.precision));
            if !self.one_way {
                levelled::level(&mut solved, seen, problem.anchors, problem.fixed, self.precision);
            }
            bridges::bridge(&mut solved, &observed, problem.anchors, grid, self.precision);
        }
        let flat = problem.flat(&solved);
        self.latencies = Latencies::new(seen, &flat, grid.count, problem.reading, problem.around, self.workers);
        self.misfits = misfits(problem, &flat, &problem.flat(&recorded));
        // With these clocks no message may have been quicker, or the latency would make violations of its own.
        let plain = prepared.map(|_| self.plain(measured, grid, now));
        let plain = plain.as_ref().unwrap_or(seen);
        let travel = plain.one_way.iter().map(|seen| seen.travel(&flat, grid.count));
        let shortest = travel.fold(plain.shortest, f64::min).max(0.0);
        self.shortest.other_node = Ticks((CERTAIN * shortest).floor() as i64);
        self.certain = half_trip(measured).map_or(0, |half| (CERTAIN * half).floor() as i64);
        match without_steps {
            Some(lines) => {
                self.steps.iter_mut().for_each(Vec::clear);
                lines
            }
            None => solved,
        }
    }

    /// Judges the clocks of `view` beside the `recorded` ones, without offsets as well, and straight lines, by messages that they were not made from. Returns them, or the lines that take their place; and what these are
    /// without the steps that were found, if there are none then. `rivals`: the bounds from which lines are made, and lines that no message contradicts.
    fn compare(
        &mut self,
        problem: &Problem<'_>,
        choice: Choice,
        view: TrialData,
        recorded: &Offsets,
        rivals: (&BoundTable, Option<JoinedClocks>),
        map: &ClockMap,
    ) -> (Offsets, Option<Offsets>) {
        let (table, joined) = rivals;
        let (seen, solved) = (problem.observations, &view.now);
        let jury = Jury::of_all(&view);
        let workers = self.workers;
        let held_out = HeldOut::new(solved, &jury, problem, choice, workers);
        let (mut estimated, measured) = (held_out.judge(&jury), jury.judge(recorded, workers));
        let judge = |offsets: &Offsets| jury.judge(offsets, workers);
        let own = OnceCell::new();
        let (prompt, one_way) = (OnceCell::new(), self.one_way);
        // What waits tell of messages that go one way are no round trips.
        let prompt = || {
            let new = || if one_way { None } else { PromptTrips::new(&jury, &held_out, solved, workers) };
            prompt.get_or_init(new).as_ref()
        };
        let is_better_when_prompt = |rows: &Offsets| prompt().is_some_and(|prompt| prompt.speak_for(rows));
        let rivals = self.straight(table, seen, &view.grid, problem.clocks);
        let excels = |rival: &StraightClocks| {
            let rows = &rival.composition.offsets;
            self.may_replace_recorded(rival, &view.anchors, seen)
                && prompt().is_some_and(|prompt| prompt.prefer(rows, recorded))
                && judge(rows).gain(&measured).is_hardly_a_loss()
        };
        // A tracer that knows of a common clock is believed where no message contradicts it: prompt round trips cannot tell how long either way takes.
        let shared = recorded::are_none(&map.offsets);
        let hulls_excel = !unmeasured(map) && !shared && rivals.iter().any(excels);
        let rivals = rivals.into_iter().map(|rival| (self.grounds(&rival, &view, seen, unmeasured(map)), rival));
        // Most lines are where no score helps them.
        let rivals = rivals.filter(|(grounds, _)| grounds.any());
        let mut rivals = rivals.map(|(grounds, rival)| (judge(&rival.composition.offsets), grounds, rival));
        let takes_its_place = |score: &Score, grounds: LineGrounds, rows: &Offsets| {
            let gain = score.gain(&estimated);
            let as_good = || gain.is_no_loss() && score.gain(own.get_or_init(|| judge(solved))).is_no_loss();
            grounds.fits && as_good()
                || grounds.possible && gain.is_feigned_loss()
                || grounds.waits && gain.is_loss_of_late_messages()
                || grounds.possible && is_better_when_prompt(rows)
        };
        let (mut taken, mut without_steps) = (None, None);
        let long = recorded::LONG * self.resolution as f64;
        let leaves_more = |rows: &Offsets| straight::leaves_more(solved, rows, seen, long);
        let differs = |rows: &Offsets| straight::differ(rows, solved, seen) || leaves_more(rows);
        let joined = joined.filter(|joined| differs(&joined.beside_steps));
        let joined = joined.map(|joined| (judge(&joined.beside_steps), joined));
        let joined = joined.filter(|(score, joined)| {
            // Curves that are elsewhere than lines throughout the run do not bend as clocks do: late messages of a part of it pull them.
            let pulled = !straight::are_near(&joined.beside_steps, solved, seen.precision);
            let feigned = score.gain(&estimated).is_loss_of_the_possible(seen.are_late() || pulled);
            let impossible = || !straight::are_possible(solved, seen) || leaves_more(&joined.beside_steps);
            feigned || impossible() || is_better_when_prompt(&joined.beside_steps)
        });
        let rival = rivals.find(|(score, grounds, rival)| takes_its_place(score, *grounds, &rival.composition.offsets));
        let rival = rival.map(|(score, _, rival)| (score, rival));
        // Of many clocks the mean of many round trips tells more than the quickest messages, if it tells about the same.
        let is_worse = |(score, joined): &(Score, JoinedClocks)| {
            rival.as_ref().is_some_and(|(other, rival)| {
                let near = straight::are_near(&rival.composition.offsets, &joined.beside_steps, seen.precision);
                near && other.mean() > score.mean()
            })
        };
        if let Some((score, joined)) = joined.filter(|joined| !is_worse(joined)) {
            self.tell_pairs(&joined, &view.grid);
            (taken, estimated, without_steps) = (Some(joined.beside_steps), score, Some(joined.offsets));
            self.straight = Some(Method::Hull);
        } else if let Some((score, rival)) = rival {
            (taken, estimated) = (Some(rival.composition.offsets), score);
            (self.lines, self.towards) = (rival.lines, rival.composition.towards);
            self.straight = Some(rival.method);
        }
        if unmeasured(map) {
            (self.strayed, self.instead) = self.beside_lines(table, &view, seen, taken.as_ref());
        }
        self.hulls_excel = hulls_excel;
        self.gain = Some(estimated.gain(&measured));
        let result = taken.as_ref().unwrap_or(solved);
        self.straight_when_prompt = taken.as_ref().is_some_and(is_better_when_prompt);
        self.prompt_gain = prompt().map(|prompt| prompt.gain(taken.as_ref(), recorded));
        self.unmeasured = self.without_offsets(map, &view.grid, result).map(|(rows, anywhere)| {
            let score = judge(&rows);
            let contradiction = recorded::largest_difference(&map.offsets);
            let [gain, estimated] = [score.gain(&measured), estimated.gain(&score)];
            let scatter = recorded::are_scatter(&map.offsets);
            let repeated = recorded::repeat_as_scatter(&map.offsets);
            let often = recorded::are_often(&map.offsets);
            let unsteady = recorded::are_unsteady(&map.offsets);
            let repeatability = recorded::repeatability(&map.offsets);
            let prompt_gain = prompt().map(|prompt| prompt.gain_of(&rows, recorded));
            Unmeasured {
                gain,
                prompt_gain,
                estimated,
                anywhere,
                contradiction,
                scatter,
                repeated,
                often,
                unsteady,
                repeatability,
            }
        });
        (taken.unwrap_or(view.now), without_steps)
    }

    /// Why a rival might take the place of the clocks of `view`, whatever it predicts; `unmeasured` if no offset was recorded.
    fn grounds(&self, rival: &StraightClocks, view: &TrialData, seen: &Observations, unmeasured: bool) -> LineGrounds {
        let (rows, solved) = (&rival.composition.offsets, &view.now);
        let (hull, no_offsets) = (rival.method == Method::Hull, view.anchors.is_empty());
        let near = straight::are_near(rows, solved, seen.precision);
        let at_offsets = || {
            let anchors = &view.anchors;
            let holds =
                || straight::hold(rows, anchors, seen.precision) || straight::hold_as_well(rows, solved, anchors);
            if no_offsets { near } else { holds() }
        };
        LineGrounds {
            fits: near || unmeasured && straight::are_as_possible(rows, solved, seen),
            possible: hull
                && at_offsets()
                && straight::differ(rows, solved, seen)
                && straight::are_possible(rows, seen),
            waits: hull && no_offsets && straight::fit_late_messages(rows, solved, seen),
        }
    }

    /// Whether lines may take the place of recorded clocks if messages speak for them: no message contradicts them, and they are not much farther from recorded offsets than those may be wrong.
    fn may_replace_recorded(&self, rival: &StraightClocks, anchors: &[Anchor], seen: &Observations) -> bool {
        let rows = &rival.composition.offsets;
        let off = recorded::at_offsets(rows, &[], anchors, seen.precision);
        let most = WRONG * recorded::offset_error(anchors, seen, self.resolution);
        rival.method == Method::Hull
            && straight::are_possible(rows, seen)
            && off.beyond_stated <= 0.0
            && off.most.is_some_and(|off| off <= most)
    }

    /// Whether the clocks of `view`, or the lines that were `taken` in their place, have run away from straight lines; and by what lines are made that are to be tried in their place.
    fn beside_lines(
        &self,
        table: &BoundTable,
        view: &TrialData,
        seen: &Observations,
        taken: Option<&Offsets>,
    ) -> (bool, Method) {
        let limits = self.whole_limits(table, &view.grid);
        let hulls = self.hulls_beside_steps(&limits, &view.grid, view.now.len());
        let regression = self.regression_beside_steps(seen, &view.now, &view.grid);
        let [of_hulls, of_regression] =
            [&hulls, &regression].map(|lines| lines.as_ref().map(|lines| &lines.beside_steps));
        let instead = straight::better_lines(of_hulls, of_regression, seen);
        let result = taken.unwrap_or(&view.now);
        let has_run_away = |lines: &Offsets| straight::has_run_away(&view.now, lines, seen);
        let follows = |lines: &Offsets| straight::follows_late_messages(result, lines, seen);
        // Lines that no message contradicts are none that follow late ones, nor are those that agree with the lines of single pairs.
        let sound = |taken: &Offsets| {
            straight::are_possible(taken, seen) || of_hulls.is_some_and(|hulls| straight::agree(taken, hulls, seen))
        };
        let may_follow = instead == Method::Regression && !taken.is_some_and(sound);
        let lines = if instead == Method::Regression { &regression } else { &hulls };
        // Curves show messages that contradict lines at other times; lines are seen as they are.
        let worst = |lines: &LinesBesideSteps| {
            let seen = taken.map_or(0.0, |_| straight::worst(&lines.beside_steps, seen));
            seen.max(lines.worst(&limits))
        };
        // Where all messages go one way, nothing tells the constants of lines.
        let is_worse =
            !self.one_way && lines.as_ref().is_some_and(|lines| straight::is_worse(result, worst(lines), seen));
        let strayed = taken.is_none() && of_hulls.is_some_and(has_run_away)
            || may_follow && of_regression.is_some_and(follows)
            || is_worse
            || taken.is_none() && straight::drift_away(&view.now, &view.grid, seen, self.resolution)
            || self.one_way && !straight::are_crystals(result, &view.grid);
        (strayed, instead)
    }
}
