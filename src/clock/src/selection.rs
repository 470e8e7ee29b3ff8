//! Which model of the clocks: how messages are read, how stiff clocks are, how long windows are, by what predicts messages best that it was not
//! told ([`super::evidence`]).
//!
//! Models are tried on some stretches of the run, with all the messages of the finest windows or the quickest ones of longer windows. Longer windows have
//! surer bounds, finer ones follow the clocks. All are judged by the same messages, those of the *jury*.

use super::anchor::Anchor;
use super::evidence::{DelayModel, Gain, Score, Stretches};
use super::grid::Grid;
use super::latencies::{Latencies, Reading, Travels};
use super::network::{LAST_ROUNDS, Problem, TREND_ROUNDS};
use super::observations::{Observations, Offsets};
use super::sample::ClockSample;
use super::solver::Tolerance;
use super::trend::Trend;
use super::view::TrialData;
use clc_trace::workers::Workers;
use std::ops::Range;

/// What there is to choose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    /// How latencies are told, and what a message is.
    pub reading: Reading,
    /// q, in ticks, for windows of `width`.
    pub roughness: f64,
    /// Length of a window, in ticks.
    pub width: i64,
    /// What clocks bend beside what is usual, in windows of `width`; none if they bend as chance has it.
    pub trend: Option<Trend>,
}

impl Choice {
    /// The q of a clock whose frequency makes a random walk, for windows of another length.
    pub(crate) fn roughness_for(&self, width: i64) -> f64 {
        self.roughness * (width as f64 / self.width as f64).powf(1.5)
    }

    /// The trend for windows of another length.
    pub(crate) fn trend_for(&self, width: i64) -> Option<Trend> {
        let longer = width as f64 / self.width as f64;
        let of_width = |Trend { roughness, around }| Trend {
            roughness: roughness * longer.powf(1.5),
            around: ((around as f64 / longer).round() as usize).max(1),
        };
        self.trend.map(of_width)
    }

    /// The same in windows of another length.
    fn with_width(self, width: i64) -> Choice {
        Choice { roughness: self.roughness_for(width), trend: self.trend_for(width), width, ..self }
    }

    /// The same for clocks that bend steadily, by so many steps less beside what is usual.
    fn steadier(self, (around, steps): (usize, f64)) -> Choice {
        Choice { trend: Some(Trend { roughness: self.roughness * STEP.powf(-steps), around }), ..self }
    }
}

/// What was chosen.
#[derive(Debug)]
pub(crate) struct Selection {
    /// The model.
    pub choice: Choice,
    /// Whether it began with the other clocks.
    pub otherwise: bool,
}

/// Most windows that a model is tried on, and in how many stretches. Chosen by hand: trials take time in proportion; with fewer windows, or all in
/// one place, a quiet part of the run may decide.
const TRIED: usize = 768;
const STRETCHES: usize = 3;
/// Most windows by which estimated clocks are compared with the recorded ones, and in how many stretches.
const JUDGED: usize = 2048;
const PLACES: usize = 16;
/// A stretch has at least so many of the longest windows. Chosen by hand: in fewer, a stiff model cannot be told from a soft one; more make trials
/// longer.
const LEAST: usize = 16;
/// Windows are dealt out in blocks, of which there are this many at most: messages that are late together are so for longer than a fine window.
const BLOCKS: usize = 256;
/// But a block has no more windows than that where the run is long: clocks are not to be guessed through longer gaps than they will be.
const LONGEST_BLOCK: usize = 16;
/// Over how many windows on either side what is usual is the mean, and by how many steps of [`STEP`] clocks bend less beside it. Chosen by hand: the mean of fewer windows scatters, over more the bends of clocks that swing
/// differ; each takes trials of its own.
const STEADY: [(usize, f64); 4] = [(8, 0.5), (8, 1.0), (8, 2.0), (3, 1.0)];
/// Steps of q, as factors. Chosen by hand: finer steps take more trials; two of half a step follow around the best.
const STEP: f64 = 10.0;
/// Most steps away from the first q. Chosen by hand: seldom reached, since the climb ends where a step brings nothing; more steps take more trials.
const STEPS: i32 = 5;
/// The first q, in units of what observations are known to, for the longest windows. Chosen by hand: only where the search begins: one that is far
/// off takes more steps.
const FIRST: f64 = 1.0;
/// What a step has to bring. Chosen by hand: a smaller value goes on for noise, a larger one ends before the best.
const FLAT: f64 = 1e-3;
/// Shares of [`Reading::Edge`], and the first to be tried. Chosen by hand: each that is tried takes trials of its own; a tenth and a fifth are for
/// directions in which few messages are quick.
const EDGES: [f64; 5] = [0.01, 0.02, 0.05, 0.1, 0.2];
const FIRST_EDGE: usize = 1;
/// Of all models that are within so many standard errors of the best, the stiffest is taken (the rule of one standard error of Breiman et al. 1984):
/// what cannot be told from chance is no reason to let clocks bend.
const ERRORS: f64 = 1.0;
/// Rounds of reweighting ([`Problem::rounds`]). Chosen by hand: trials only compare models, so there are fewer than `network::ROUNDS`; with fewer
/// still, solutions would be ranked that are not finished.
const ROUNDS: &[f64] = &[4.0, 2.0, 1.0];
/// The same for clocks that bend steadily: what is usual has to be found as well.
const STEADY_ROUNDS: &[f64] = &[4.0, 2.0, 1.0, 1.0, 1.0];

/// A view cut down to some stretches of the run.
struct Trial<'a> {
    view: &'a TrialData,
    /// Windows of the view.
    stretches: Vec<Range<usize>>,
    /// First window of each stretch but the first, among those that are left.
    cuts: Vec<usize>,
    windows: usize,
    halves: [Observations; 2],
    anchors: Vec<Anchor>,
    now: Offsets,
}

/// What of a run is looked at: a share of it in some stretches; and the blocks of the whole run that are dealt out in halves.
#[derive(Debug, Clone, Copy)]
struct TrialScope {
    share: f64,
    stretches: usize,
    blocks: usize,
}

/// The blocks of a run with this many windows that are dealt out in halves.
fn half_of(window: usize, windows: usize, blocks: usize) -> usize {
    window * blocks / windows.max(1) % 2
}

impl<'a> Trial<'a> {
    fn new(view: &'a TrialData, start: &Offsets, part: TrialScope) -> Trial<'a> {
        let TrialScope { share, stretches, blocks } = part;
        let count = view.grid.count;
        let length = ((count as f64 * share / stretches as f64).ceil() as usize).max(1);
        let stretches: Vec<Range<usize>> = if share >= 1.0 || count <= stretches {
            std::iter::once(0..count).collect()
        } else {
            let begin = |k: usize| k * (count - length.min(count)) / (stretches - 1);
            (0..stretches).map(|k| begin(k)..begin(k) + length).collect()
        };
        let mut place: Vec<Option<u32>> = vec![None; count];
        let (mut cuts, mut windows) = (Vec::new(), 0);
        for stretch in &stretches {
            if windows > 0 {
                cuts.push(windows);
            }
            for window in stretch.clone() {
                place[window] = Some(windows as u32);
                windows += 1;
            }
        }
        let of = |window: u32| place.get(window as usize).copied().flatten();
        let anchors = view.anchors.iter().filter_map(|anchor| Some(Anchor { window: of(anchor.window)?, ..*anchor }));
        let anchors: Vec<Anchor> = anchors.collect();
        let halves = [0, 1].map(|half| {
            let mut part = view
                .observations
                .part(|window| of(window).is_some() && half_of(window as usize, count, blocks) == half);
            part.one_way.iter_mut().for_each(|seen| seen.window = of(seen.window).unwrap_or(0));
            part.two_way.iter_mut().for_each(|seen| seen.window = of(seen.window).unwrap_or(0));
            part.levels.anchors.clone_from(&anchors);
            part
        });
        let mut trial = Trial { view, cuts, windows, halves, anchors, now: Offsets::new(), stretches };
        trial.now = trial.picked(start);
        trial
    }

    /// Of rows of all windows of the view those that are tried.
    fn picked(&self, rows: &Offsets) -> Offsets {
        let pick = |row: &Vec<f64>| self.stretches.iter().flat_map(|stretch| row[stretch.clone()].to_vec()).collect();
        rows.iter().map(pick).collect()
    }

    /// Length of a window, in ticks.
    fn width(&self) -> i64 {
        self.view.grid.width
    }

    /// Rows of all windows of the view again: as they were where nothing was tried.
    fn whole(&self, rows: &Offsets) -> Offsets {
        let mut whole = self.view.now.clone();
        for (row, found) in whole.iter_mut().zip(rows) {
            let mut from = 0;
            for stretch in &self.stretches {
                row[stretch.clone()].copy_from_slice(&found[from..from + stretch.len()]);
                from += stretch.len();
            }
        }
        whole
    }
}

/// What clocks are judged by.
pub(crate) struct Jury<'a> {
    trial: Trial<'a>,
    /// By which errors are told.
    stretches: Stretches,
    /// The messages of some pairs of clocks, by which a reading is chosen if there are many; by half.
    some: Option<[Observations; 2]>,
}

/// Messages in either half from which on prompt round trips tell anything. Chosen by hand: fewer are in so few stretches that errors are not known.
const FEWEST_PROMPT: usize = 16;
/// From so many directions on, some pairs of clocks choose the reading: what is best for one pair in four is so for all.
const MANY: usize = 1024;

/// Whether a pair of clocks is among those by which a reading is chosen: one in four, in no pattern (the mixing function of splitmix64; Steele, Lea and Flood, Fast
/// splittable pseudorandom number generators, 2014).
fn is_chosen(a: u32, b: u32) -> bool {
    let pair = u64::from(a.min(b)) << 32 | u64::from(a.max(b));
    let mixed = (pair ^ pair >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 32).wrapping_mul(0x94d0_49bb_1331_11eb) >> 62 == 0
}

impl<'a> Jury<'a> {
    /// The messages of a part of `view`.
    fn new(view: &'a TrialData, part: TrialScope) -> Jury<'a> {
        let trial = Trial::new(view, &view.now, part);
        let stretches = Stretches::even(trial.windows);
        let many = trial.halves.iter().all(|half| half.directions().len() >= MANY);
        let some = many.then(|| [0, 1].map(|half| trial.halves[half].of_pairs(is_chosen)));
        Jury { trial, stretches, some }
    }

    /// All messages of `view`; of long runs enough of them.
    pub(crate) fn of_all(view: &'a TrialData) -> Jury<'a> {
        let count = view.grid.count;
        let blocks = count.clamp(1, BLOCKS.max(count / LONGEST_BLOCK));
        let jury = Jury::new(view, TrialScope { share: JUDGED as f64 / count as f64, stretches: PLACES, blocks });
        // Clocks are taken or refused by these errors. A choice of stiffness goes by those of stretches of equal length, which are larger: more clocks are as good as the best, and stiffer ones are taken.
        Jury { stretches: Stretches::with_messages(&jury.trial.halves, jury.trial.windows), ..jury }
    }

    /// The same with the messages of prompt round trips only. None if there are too few.
    pub(crate) fn of_prompt(&self, workers: Workers) -> Option<Jury<'a>> {
        let whole = &self.trial;
        let [one, other] = &whole.halves;
        let halves: [Observations; 2] = workers.both(|| one.prompt(), || other.prompt()).into();
        let is_enough = halves.iter().all(|half| half.one_way.len() >= FEWEST_PROMPT);
        is_enough.then(|| Jury {
            stretches: Stretches::with_messages(&halves, whole.windows),
            trial: Trial {
                view: whole.view,
                stretches: whole.stretches.clone(),
                cuts: whole.cuts.clone(),
                windows: whole.windows,
                halves,
                anchors: whole.anchors.clone(),
                now: whole.now.clone(),
            },
            some: None,
        })
    }

    /// The jury's windows, as seen by clocks on another grid.
    fn seen(&self, grid: &Grid, rows: &Offsets) -> Vec<f64> {
        let Trial { view, stretches, .. } = &self.trial;
        let windows = || stretches.iter().flat_map(|stretch| stretch.clone());
        rows.iter().flat_map(|row| windows().map(|window| grid.at(row, view.grid.centre(window)))).collect()
    }

    /// Learns travel times from one half of messages and judges the other.
    fn judge_half(
        &self,
        halves: &[Observations; 2],
        half: usize,
        flat: &[f64],
        reading: Reading,
        workers: Workers,
    ) -> Score {
        let travels = Travels::new(&halves[half], flat, self.trial.windows, workers);
        self.judge_by(&travels, halves, half, flat, reading, workers)
    }

    /// The same by the `travels` of the one half.
    fn judge_by(
        &self,
        travels: &Travels,
        halves: &[Observations; 2],
        half: usize,
        flat: &[f64],
        reading: Reading,
        workers: Workers,
    ) -> Score {
        let (windows, own) = (self.trial.windows, &halves[half]);
        let latencies = Latencies::of(travels, own, flat, windows, reading, None, workers);
        let learned = DelayModel::with(latencies, own, flat, windows, workers);
        learned.judge(&halves[1 - half], flat, windows, &self.stretches)
    }

    /// How well given clocks predict: by the best of all readings, which are tried at the same time if there are `workers`. Travel times of one half tell which that is.
    pub(crate) fn judge(&self, offsets: &Offsets, workers: Workers) -> Score {
        let flat = self.seen(&self.trial.view.grid, offsets);
        let reading = |at: usize| EDGES.get(at).map_or(Reading::Mode, |share| Reading::Edge(*share));
        let halves = self.some.as_ref().unwrap_or(&self.trial.halves);
        // All readings go by the same travel times.
        let travels = Travels::new(&halves[0], &flat, self.trial.windows, workers);
        let scores =
            workers.map(EDGES.len() + 1, |at| self.judge_by(&travels, halves, 0, &flat, reading(at), Workers::ONE));
        let best = scores.into_iter().enumerate().max_by(|one, other| one.1.mean().total_cmp(&other.1.mean()));
        let Some((at, mut score)) = best else { return Score::default() };
        let rest = if self.some.is_some() { 0..2 } else { 1..2 };
        if self.some.is_some() {
            score = Score::default();
        }
        let all = &self.trial.halves;
        workers
            .map(rest.len(), |half| self.judge_half(all, rest.start + half, &flat, reading(at), workers))
            .iter()
            .for_each(|half| score.merge(half));
        score
    }
}

/// Clocks that are estimated by `choice` from one half of what is tried, on all windows of the view; by one thread, since others are worked on.
fn estimate(
    trial: &Trial<'_>,
    start: &Offsets,
    like: &Problem<'_>,
    choice: Choice,
    rounds: &[f64],
    half: usize,
) -> Offsets {
    let problem = Problem {
        windows: trial.windows,
        observations: &trial.halves[half],
        anchors: &trial.anchors,
        reading: choice.reading,
        roughness: choice.roughness_for(trial.view.grid.width),
        trend: choice.trend_for(trial.view.grid.width),
        afresh: false,
        rounds,
        cuts: &trial.cuts,
        workers: Workers::ONE,
        ..*like
    };
    trial.whole(&problem.solve_to(Tolerance::STEP, start))
}

/// Clocks that are estimated by a choice, each half of the messages from the other.
pub(crate) struct HeldOut<'a> {
    grid: &'a Grid,
    estimates: Vec<Offsets>,
    reading: Reading,
    workers: Workers,
}

impl<'a> HeldOut<'a> {
    /// The clocks by the messages of a jury of all, beginning with those of `start`, which are in all windows of its view.
    pub(crate) fn new(
        start: &Offsets,
        jury: &Jury<'a>,
        like: &Problem<'_>,
        choice: Choice,
        workers: Workers,
    ) -> HeldOut<'a> {
        let start = &jury.trial.picked(start);
        // The last window of the run has messages in one half only. Sharp bends are where recorded offsets are joined.
        let like = &Problem { alike: !jury.trial.anchors.is_empty(), ..*like };
        let rounds = if choice.trend.is_some() { TREND_ROUNDS } else { LAST_ROUNDS };
        let estimates = workers.map(2, |half| estimate(&jury.trial, start, like, choice, rounds, half));
        HeldOut { grid: &jury.trial.view.grid, estimates, reading: choice.reading, workers }
    }

    /// How well they predict the messages of a jury that they were not made from.
    pub(crate) fn judge(&self, jury: &Jury<'_>) -> Score {
        let HeldOut { grid, estimates, reading, workers } = self;
        let half = |half: usize| {
            jury.judge_half(&jury.trial.halves, half, &jury.seen(grid, &estimates[half]), *reading, *workers)
        };
        let mut score = Score::default();
        workers.map(estimates.len(), half).iter().for_each(|half| score.merge(half));
        score
    }
}

/// Chooses among the windows of `views`, the finest first; `like` has what is the same for all of them. The search begins with the longest windows, and with
/// `before`, if there was a choice before. Both halves are worked on at once if there are `workers`.
pub(crate) fn select(
    views: &[TrialData],
    like: &Problem<'_>,
    before: Option<Choice>,
    workers: Workers,
) -> Option<Selection> {
    let Some(sample) = views.last().and_then(|longest| ClockSample::of(&longest.observations, like.fixed)) else {
        return select_by(views, like, before, workers);
    };
    let views: Vec<TrialData> = views.iter().map(|view| sample.view(view)).collect();
    let fixed = sample.rows(like.fixed);
    select_by(&views, &Problem { clocks: fixed.len(), fixed: &fixed, ..*like }, before, workers)
}

/// As [`select`], by all clocks.
fn select_by(views: &[TrialData], like: &Problem<'_>, before: Option<Choice>, workers: Workers) -> Option<Selection> {
    let longest = views.last()?;
    let (scope, jury) = scope_and_jury(views, like.windows)?;
    let mut search = ChoiceSearch { like, jury: &jury, scope, workers, tried: Vec::new() };
    let mut best = before.unwrap_or(Choice {
        reading: Reading::Edge(EDGES[FIRST_EDGE]),
        roughness: FIRST * longest.observations.precision,
        width: longest.grid.width,
        trend: None,
    });
    let mut otherwise = false;
    // What was too long before is too long with better clocks.
    let worth = |view: &&TrialData| before.is_none_or(|before| 2 * view.grid.width <= 3 * before.width);
    for view in views.iter().rev().filter(worth) {
        let width = view.grid.width;
        let roughness = before.map_or(FIRST * view.observations.precision, |before| before.roughness_for(width));
        (best, otherwise) = search.climb(view, Choice { roughness, width, ..best }, otherwise);
    }
    let choice = search.stiffest_of_the_best(longest.grid.width)?;
    Some(Selection { choice, otherwise })
}

/// How clocks bend steadily, and whether they do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steadiness {
    /// The model that predicts messages best of those of clocks that bend steadily.
    pub choice: Choice,
    /// How much better it does so than that of clocks that bend as chance has it.
    pub gain: Gain,
}

/// Of clocks that bend steadily the model that predicts messages best, beside the `choice`: in windows of the length that was chosen, which are those of the last of `views`, or in finer ones, as far as these are among them.
/// Works as [`select`] does.
pub(crate) fn steady(views: &[TrialData], like: &Problem<'_>, choice: Choice, workers: Workers) -> Option<Steadiness> {
    let Some(sample) = views.last().and_then(|chosen| ClockSample::of(&chosen.observations, like.fixed)) else {
        return steady_by(views, like, choice, workers);
    };
    let views: Vec<TrialData> = views.iter().map(|view| sample.view(view)).collect();
    let fixed = sample.rows(like.fixed);
    steady_by(&views, &Problem { clocks: fixed.len(), fixed: &fixed, ..*like }, choice, workers)
}

/// As [`steady`], by all clocks.
fn steady_by(views: &[TrialData], like: &Problem<'_>, choice: Choice, workers: Workers) -> Option<Steadiness> {
    let (scope, jury) = scope_and_jury(views, like.windows)?;
    let search = ChoiceSearch { like, jury: &jury, scope, workers, tried: Vec::new() };
    let trials: Vec<Trial<'_>> = views.iter().map(|view| Trial::new(view, &view.now, scope)).collect();
    let of_trial = |trial| {
        let choice = choice.with_width(Trial::width(trial));
        STEADY.iter().map(move |steady| (trial, choice.steadier(*steady)))
    };
    let plain = trials.last().map(|trial| (trial, choice));
    let all: Vec<_> = plain.into_iter().chain(trials.iter().flat_map(of_trial)).collect();
    let mut judged = search.judge(&all).into_iter();
    let (plain, _) = judged.next()?;
    let (best, choice) = judged.max_by(|one, other| one.0.mean().total_cmp(&other.0.mean()))?;
    Some(Steadiness { choice, gain: best.gain(&plain) })
}

/// What of a run models are tried on in these `views`, the finest first, and by what they are judged; in the finest windows of all there are so many.
fn scope_and_jury(views: &[TrialData], windows: usize) -> Option<(TrialScope, Jury<'_>)> {
    let longest = views.last()?;
    let most = views.first().map_or(1, |view| view.grid.count);
    let least = (STRETCHES * LEAST) as f64 / longest.grid.count as f64;
    let share = (TRIED as f64 / windows.max(most) as f64).max(least).min(1.0);
    let blocks = longest.grid.count.clamp(1, BLOCKS.max(most / LONGEST_BLOCK));
    let scope = TrialScope { share, stretches: STRETCHES, blocks };
    Some((scope, Jury::new(views.get(1).unwrap_or(longest), scope)))
}

/// Judges one choice after the other.
struct ChoiceSearch<'a> {
    like: &'a Problem<'a>,
    jury: &'a Jury<'a>,
    scope: TrialScope,
    workers: Workers,
    tried: Vec<(Score, Choice)>,
}

impl ChoiceSearch<'_> {
    /// How well choices predict messages. Each half of what is tried is a job of its own, of all of them at once.
    fn judge(&self, trials: &[(&Trial<'_>, Choice)]) -> Vec<(Score, Choice)> {
        let half = |job: usize| {
            let ((trial, choice), half) = (trials[job / 2], job % 2);
            let rounds = if choice.trend.is_some() { STEADY_ROUNDS } else { ROUNDS };
            let offsets = estimate(trial, &trial.now, self.like, choice, rounds, half);
            let seen = self.jury.seen(&trial.view.grid, &offsets);
            self.jury.judge_half(&self.jury.trial.halves, half, &seen, choice.reading, Workers::ONE)
        };
        let halves = self.workers.map(2 * trials.len(), half);
        let of_both = |(both, &(_, choice)): (&[Score], &(&Trial<'_>, Choice))| {
            let mut score = Score::default();
            both.iter().for_each(|half| score.merge(half));
            (score, choice)
        };
        halves.chunks(2).zip(trials).map(of_both).collect()
    }

    /// Keeps what was `judged`; how well each predicts messages, in the mean.
    fn consider(&mut self, judged: impl IntoIterator<Item = (Score, Choice)>) -> Vec<(f64, Choice)> {
        let begin = self.tried.len();
        self.tried.extend(judged);
        self.tried[begin..].iter().map(|(score, choice)| (score.mean(), *choice)).collect()
    }

    /// The best choice in the windows of `view`, uphill from `first`: stiffness, then half a step of it, then another reading. Says as well whether the other clocks of the view are the better
    /// ones to begin with; `otherwise` if it has none.
    fn climb(&mut self, view: &TrialData, first: Choice, otherwise: bool) -> (Choice, bool) {
        let mut trial = Trial::new(view, &view.now, self.scope);
        let other = view.otherwise.as_ref().map(|start| Trial::new(view, start, self.scope));
        let begins: Vec<_> = std::iter::once(&trial).chain(&other).map(|trial| (trial, first)).collect();
        let judged = self.judge(&begins);
        let means = self.consider(judged);
        let mut here = means[0].0;
        let mut otherwise = otherwise;
        if let Some((other, (mean, _))) = other.zip(means.get(1)) {
            otherwise = *mean > here;
            if otherwise {
                (here, trial) = (*mean, other);
            }
        }
        let higher = |top: (f64, Choice), found: (f64, Choice)| if found.0 > top.0 { found } else { top };
        let mut top = (here, first);
        for way in self.uphill(&trial, first, here) {
            top = self.consider(way).into_iter().fold(top, higher);
        }
        let others: [fn(Choice) -> Vec<Choice>; 2] =
            [beside, |best| neighbours(best.reading).into_iter().map(|reading| Choice { reading, ..best }).collect()];
        for others in others {
            let trials: Vec<_> = others(top.1).into_iter().map(|choice| (&trial, choice)).collect();
            let judged = self.judge(&trials);
            top = self.consider(judged).into_iter().fold(top, higher);
        }
        (top.1, otherwise)
    }

    /// What comes of stiffer and of softer clocks than those of the `first` choice, which predict messages as well as `here`: step by step, each way until one brings nothing.
    fn uphill(&self, trial: &Trial<'_>, first: Choice, here: f64) -> [Vec<(Score, Choice)>; 2] {
        let mut ways = [Vec::new(), Vec::new()];
        let (mut last, mut ended) = ([here; 2], [false; 2]);
        for step in 1..=STEPS {
            let going: Vec<usize> = (0..2).filter(|way| !ended[*way]).collect();
            let choice = |way: usize| {
                let direction = [-1.0, 1.0][way];
                Choice { roughness: first.roughness * STEP.powf(direction * f64::from(step)), ..first }
            };
            let trials: Vec<_> = going.iter().map(|way| (trial, choice(*way))).collect();
            for (way, judged) in going.into_iter().zip(self.judge(&trials)) {
                let mean = judged.0.mean();
                ended[way] = mean <= last[way] + FLAT;
                last[way] = mean;
                ways[way].push(judged);
            }
        }
        ways
    }

    /// Of the choices that are as good as the best one but for chance, the stiffest; `width` is that of the longest windows.
    fn stiffest_of_the_best(self, width: i64) -> Option<Choice> {
        let best = self.tried.iter().max_by(|one, other| one.0.mean().total_cmp(&other.0.mean()))?.0.clone();
        let as_good = self.tried.into_iter().filter(|(score, _)| {
            let gain = best.gain(score);
            gain.mean <= ERRORS * gain.error
        });
        let stiffer = |one: &(Score, Choice), other: &(Score, Choice)| {
            one.1.roughness_for(width).total_cmp(&other.1.roughness_for(width))
        };
        as_good.min_by(stiffer).map(|(_, choice)| choice)
    }
}

/// Clocks that are half a step stiffer, and softer.
fn beside(best: Choice) -> Vec<Choice> {
    [1.0 / STEP.sqrt(), STEP.sqrt()].map(|part| Choice { roughness: best.roughness * part, ..best }).to_vec()
}

/// The readings next to this one.
fn neighbours(reading: Reading) -> Vec<Reading> {
    let edge = match reading {
        Reading::Edge(share) => EDGES.iter().position(|edge| *edge == share),
        Reading::Mode => None,
    };
    let edges = edge.map_or(vec![FIRST_EDGE, FIRST_EDGE + 1], |edge| vec![edge.wrapping_sub(1), edge + 1]);
    let others = edges.iter().filter_map(|edge| EDGES.get(*edge)).map(|share| Reading::Edge(*share));
    others.chain(edge.map(|_| Reading::Mode)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_in_four_is_chosen_whoever_talks_to_whom() {
        // Neighbours of a chain, of a torus, the clocks of one clock, everybody.
        let chain = |step: u32| (0..1024 - step).map(move |clock| (clock, clock + step));
        let all = || (0..64).flat_map(|a| (a + 1..64).map(move |b| (a, b)));
        let of_one = |one: u32| (0..1024).filter(move |clock| *clock != one).map(move |clock| (one, clock));
        let kinds: [Vec<(u32, u32)>; 6] = [
            chain(1).collect(),
            chain(32).collect(),
            chain(512).collect(),
            all().collect(),
            of_one(0).collect(),
            of_one(513).collect(),
        ];
        for pairs in kinds {
            let share = pairs.iter().filter(|(a, b)| is_chosen(*a, *b)).count() as f64 / pairs.len() as f64;
            assert!((0.18..0.32).contains(&share), "{share} of {:?}", &pairs[..3]);
            assert!(pairs.iter().all(|&(a, b)| is_chosen(a, b) == is_chosen(b, a)));
        }
    }
}
