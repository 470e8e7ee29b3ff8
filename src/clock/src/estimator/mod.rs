//! What rank 0 does with the bounds of all ranks: level by level to better clocks.

mod bridges;
mod collectives;
mod conclusion;
mod descent;
mod finest;
mod joined;
mod jumps;
mod knots;
mod level;
mod levelled;
mod placed;
mod prompt;
mod pulled;
mod recorded;
mod report;
mod seen_by;
mod start;
mod straight;
mod tied;
mod trials;
mod waits;

use crate::clock_map::ClockMap;
use crate::estimate::ShortestMessages;
use crate::evidence::Gain;
use crate::fit::{AtOffsets, ClockFit, Unmeasured};
use crate::graph::components;
use crate::grid::Grid;
use crate::inspection::ClockInterval;
use crate::latencies::Latencies;
use crate::observations::{Observations, Offsets};
use crate::reference::{PairLine, Reference};
use crate::selection::Choice;
use crate::steps::{CorrectionStep, JumpLimits};
use crate::windows::BoundTable;
use crate::{Knots, LinearClock, MeasurementLimits, Method};
use clc_trace::workers::Workers;
use clc_trace::{ClockOffset, Result, Ticks};
pub(super) use collectives::CollectiveTies;
pub use finest::observed_windows;
use jumps::Doubtful;
pub(crate) use knots::refinement;
use seen_by::{SeenBy, whole};
use serde::{Deserialize, Serialize};
use start::are_apart;

/// What comes after a level.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Decision {
    /// These clocks do not hold for a whole node: begin again with a clock per process there.
    Split(Vec<u32>),
    /// Another level with these refinements, and messages in that many windows.
    Level(Vec<Knots>, usize),
    /// Single messages of some clocks are asked for, to find where these jumped ([`Estimator::inspected`]).
    Inspect(Vec<ClockInterval>),
    /// These are the refinements, and how they compare with the recorded clocks.
    Done(Vec<Knots>, Box<ClockFit>),
    /// There is nothing to refine the clocks with.
    Nothing(String),
}

/// From one window on, levels get finer step by step up to so many of them, after which comes the finest one. Chosen by hand: with fewer, the leap to
/// the finest may end in the wrong place; more take another level of many windows.
const COARSE: usize = 64;
/// Windows of the first observation at least, from which all coarse levels are made: within one, recorded clocks drift by less than is looked for there.
const FIRST: usize = 512;
/// A message within a node that arrives this long before it was sent (seconds) shows that the node has no common clock. Chosen by hand: a smaller
/// value splits nodes because of the noise of reading a clock, a larger one keeps together what differs by more than short latencies.
const SHARED_CLOCK: f64 = 0.5e-6;
/// What observations are trusted to (seconds) where no round trip tells. Chosen by hand: a smaller value makes clocks follow noise, a larger one
/// makes them stiff.
const UNKNOWN: f64 = 100e-9;

/// Why there is no estimate if that is so.
const STRAYED: &str = "the estimate has run away from all that messages show";

/// The state between levels.
#[derive(Debug)]
pub struct Estimator {
    resolution: u64,
    /// Threads.
    workers: Workers,
    model: Method,
    wanted: Reference,
    limits: MeasurementLimits,
    /// Lines between pairs of clocks, if that is the model, by pair and segment; and the neighbour on every clock's way to the reference.
    lines: Vec<PairLine>,
    towards: Vec<Option<u32>>,
    reference: usize,
    /// Whether recorded offsets or the user name the reference.
    reference_given: bool,
    /// Groups of clocks that messages do not connect.
    groups: usize,
    /// Added to global time by a time that all clocks make together, or that one makes that recorded offsets do not refer to, by window.
    synthesis: Vec<f64>,
    /// Whole part of every clock's correction, so that the rest stays small.
    constants: Vec<i64>,
    /// Grid of the level before, and the rest of every correction on it.
    grid: Option<Grid>,
    offsets: Offsets,
    /// Windows that the level in work is asked to have (a short trace has room for fewer), and those of the last level.
    asked: usize,
    finest: usize,
    at_finest: usize,
    /// Whether the model is chosen and the clocks are nearly right.
    settled: bool,
    /// Whether it was found out if they are elsewhere.
    sought_again: bool,
    /// Whether clocks that were corrected from long windows on predicted messages worse.
    misled: bool,
    /// [`Observations::precision`] in the finest windows.
    precision: f64,
    jumps: JumpLimits,
    choice: Option<Choice>,
    /// Steps of each clock's correction, in order of time, in the time of the recorded clock: `offsets` come on top of what they make of that.
    steps: Vec<Vec<CorrectionStep>>,
    /// Where clocks seem to jump, while messages are asked for; how often that was done; and the windows that the messages support.
    doubtful: Vec<Doubtful>,
    /// The same if those that follow the reference have jumped for themselves.
    otherwise: Vec<Doubtful>,
    /// The corrections in the chosen windows, with these, while it is looked for jumps in finer ones.
    without_jumps: Option<(Grid, Offsets)>,
    searches: usize,
    supported: usize,
    /// How collective operations tie the clocks.
    collectives: CollectiveTies,
    /// How many times as many windows the messages would support.
    spare: usize,
    /// Whether there has been a look at traffic that goes one way.
    begun: bool,
    /// Whether waits tell the clocks of traffic that goes one way only.
    one_way: bool,
    /// Whether recorded clocks without offsets say of messages between some of them, which go one way, that they take longer than any network does.
    too_slow: bool,
    /// Whether some clocks are tied by messages that come back around cycles of several clocks only.
    around: bool,
    /// How much better than the recorded clocks the estimated ones predict messages.
    gain: Option<Gain>,
    /// The same for messages of prompt round trips.
    prompt_gain: Option<Gain>,
    /// Whether straight lines that took the place of curves predict messages of prompt round trips better.
    straight_when_prompt: bool,
    /// How the estimate compares with recorded offsets before it is brought to them.
    by_messages: Option<AtOffsets>,
    /// How clocks without recorded offsets compare, if there are any.
    unmeasured: Option<Unmeasured>,
    /// By what straight lines were made that have taken the place of the estimate, if they have.
    straight: Option<Method>,
    /// Whether the estimate has run away from all that messages show.
    strayed: bool,
    /// By what lines are made that are to be tried where the estimate is not taken.
    instead: Method,
    /// Whether messages speak for lines between hulls instead of recorded offsets, if the estimate is not taken.
    hulls_excel: bool,
    observations: Observations,
    latencies: Latencies,
    shortest: ShortestMessages,
    /// Latency between clocks that is certain enough to be relied on, in ticks; 0 if none is.
    certain: i64,
    /// Misfit of the estimated and of the recorded clocks.
    misfits: Option<(f64, f64)>,
}

impl Estimator {
    /// For the clocks of `map` in a trace with `resolution` ticks per second. The reference, if it is to be found, is the clock to
    /// which recorded offsets refer (the first one whose offsets are all zero), else that of process 0 (for straight lines:
    /// the one with the shortest paths to all others).
    pub fn new(
        map: &ClockMap,
        resolution: u64,
        model: Method,
        wanted: Reference,
        limits: MeasurementLimits,
    ) -> Estimator {
        let master = |offsets: &Vec<ClockOffset>| !offsets.is_empty() && offsets.iter().all(|o| o.offset == 0);
        let given = match wanted {
            Reference::Process(process) => map.of_timeline.get(process as usize).map(|clock| *clock as usize),
            _ => map.offsets.iter().position(master),
        };
        Estimator {
            resolution,
            workers: Workers::ONE,
            model: if matches!(model, Method::Regression | Method::Hull) { model } else { Method::Network },
            wanted,
            limits,
            lines: Vec::new(),
            towards: Vec::new(),
            reference: given.unwrap_or(0),
            reference_given: given.is_some(),
            groups: 1,
            synthesis: Vec::new(),
            constants: vec![0; map.bases.len()],
            grid: None,
            offsets: Vec::new(),
            asked: 1,
            finest: 1,
            at_finest: 0,
            settled: false,
            sought_again: false,
            misled: false,
            precision: 1.0,
            jumps: JumpLimits::default(),
            choice: None,
            steps: vec![Vec::new(); map.bases.len()],
            doubtful: Vec::new(),
            otherwise: Vec::new(),
            without_jumps: None,
            searches: 0,
            supported: 1,
            collectives: CollectiveTies::default(),
            spare: 1,
            begun: false,
            one_way: false,
            too_slow: false,
            around: false,
            gain: None,
            prompt_gain: None,
            straight_when_prompt: false,
            by_messages: None,
            unmeasured: None,
            straight: None,
            strayed: false,
            instead: Method::Hull,
            hulls_excel: false,
            observations: Observations::default(),
            latencies: Latencies::default(),
            shortest: ShortestMessages::default(),
            certain: 0,
            misfits: None,
        }
    }

    /// The same with threads to work with; they change no bit.
    pub fn with_workers(self, workers: Workers) -> Estimator {
        Estimator { workers, ..self }
    }

    /// The same with other limits for jumps of clocks.
    pub(crate) fn with_jumps(self, jumps: JumpLimits) -> Estimator {
        Estimator { jumps, ..self }
    }

    /// Takes in the bounds of a level on `grid`, measured with the clocks that the decision before has named; in [`observed_windows`]; the
    /// first time with the recorded clocks. Makes as many levels of them as they are good for.
    pub fn level(&mut self, table: &BoundTable, grid: Grid, map: &ClockMap) -> Decision {
        let seen_by = SeenBy::new(self, grid, map.bases.len());
        // The coarsest levels need no more than that.
        let few = self.grid.is_none().then(|| table.through(FIRST, |_, time| time, self.workers).0);
        if self.at_finest == 0 {
            self.collectives = CollectiveTies::of(table, map.bases.len());
            if self.grid.is_some() && self.collectives.prevail && self.steps.iter().all(Vec::is_empty) {
                self.set_finest(table, map.bases.len());
            }
        }
        let mut decision = match &few {
            None if self.asked >= grid.count => self.step(table, grid, map),
            few => self.seen(few.as_ref().unwrap_or(table), grid, |_, time| time, map),
        };
        // Begins tell only roughly what happened together.
        let roughly = !map.together.is_empty();
        if few.is_some() && (roughly || are_apart(self.constants.iter().map(|constant| *constant as f64), &grid)) {
            return decision;
        }
        // With clocks that are far off, others seem to have come last.
        if few.is_some() && self.collectives.prevail && !self.came_last(&seen_by) {
            return decision;
        }
        loop {
            let Decision::Level(knots, _) = &decision else { return decision };
            let clocks: Result<Vec<LinearClock>> = knots.iter().map(refinement).collect();
            // What is wrong with them is found again, and reported, when all ranks make clocks of them.
            let (Ok(clocks), Some(now)) = (clocks, self.grid) else { return decision };
            let coarse = few.is_some() && self.asked <= FIRST && self.asked < self.finest;
            let stepped = self.steps.iter().any(|steps| !steps.is_empty());
            let others = self.collectives.prevail && !self.came_last(&seen_by);
            if stepped || !coarse && (others || !self.are_still_the_quickest(&seen_by, &now)) {
                return decision;
            }
            let table = few.as_ref().filter(|_| self.asked <= COARSE).unwrap_or(table);
            decision = if now.width < grid.width {
                let changed = |clock: u32, time: i64| {
                    let own = time.saturating_sub(seen_by.correction(clock, time));
                    clocks.get(clock as usize).map_or(time, |refined| refined.map(Ticks(own)).0)
                };
                self.seen(table, grid, changed, map)
            } else {
                let changes = seen_by.changes(&clocks, self.workers);
                self.seen(table, grid, |clock, time| time.saturating_add(changes.at(clock, time)), map)
            };
        }
    }

    /// A level of as many windows as are asked for, with messages on `grid` as other clocks see them.
    fn seen(
        &mut self,
        table: &BoundTable,
        grid: Grid,
        changed: impl Fn(u32, i64) -> i64 + Sync,
        map: &ClockMap,
    ) -> Decision {
        let count = self.asked.min(grid.count);
        // Clocks that are decades apart are known to begin with where messages are only.
        if self.grid.is_none() || self.asked <= FIRST && self.asked < self.finest {
            let (table, grid) = table.through(count, changed, self.workers);
            return self.step(&table, grid, map);
        }
        let ends = [grid.first, grid.centre(grid.count - 1).saturating_add(grid.width / 2)];
        let clocks = || 0..map.bases.len() as u32;
        let first = clocks().map(|clock| changed(clock, ends[0])).min().unwrap_or(ends[0]);
        let last = clocks().map(|clock| changed(clock, ends[1])).max().unwrap_or(ends[1]);
        let grid = Grid::new(first, last, count);
        self.step(&table.through_on(grid, changed, self.workers), grid, map)
    }

    /// At the first look: whether there is nothing to estimate, or clocks do not hold for whole nodes; else how many windows there will be.
    fn first_look(&mut self, table: &BoundTable, map: &ClockMap) -> Option<Decision> {
        if self.grid.is_some() {
            return None;
        }
        let early = -SHARED_CLOCK * self.resolution as f64;
        let early = table.shared.iter().filter(|(_, least)| (**least as f64) < early).map(|(clock, _)| *clock);
        // What threads of one process with clocks of their own tell of each other is no reason to look again.
        let split: Vec<u32> = early.filter(|&clock| map.can_be_split(clock)).collect();
        if !split.is_empty() {
            return Some(Decision::Split(split));
        }
        // Rounding can take a tick from it.
        self.shortest.same_node = Ticks((table.shared.values().copied().min().unwrap_or(0) - 1).max(0));
        if table.pairs.is_empty() {
            let reason = "there are no messages between nodes to estimate clocks from";
            return Some(Decision::Nothing(reason.into()));
        }
        self.set_finest(table, map.bases.len());
        None
    }

    /// By what straight lines are made that may do where the estimate is not taken and no offset was recorded.
    pub fn lines_instead(&self) -> Method {
        self.instead
    }

    /// Whether lines between hulls are to be tried where recorded offsets would be taken: messages of prompt round trips are predicted so much better by them that these are probably errors of measurement.
    pub fn hulls_excel(&self) -> bool {
        self.hulls_excel
    }

    /// The minimum latencies that the messages show: half the quickest round trip between clocks, if it is clear; the shortest message within one.
    pub fn latency(&self) -> ShortestMessages {
        ShortestMessages { other_node: Ticks(self.certain), ..self.shortest }
    }

    /// The corrections so far at the windows of a new grid.
    fn interpolated(&self, grid: &Grid, clocks: usize) -> Offsets {
        match &self.grid {
            Some(own) => own.rows_on(&self.offsets, grid),
            None => vec![vec![0.0; grid.count]; clocks],
        }
    }

    /// The correction so far at a time of a clock with these corrections by window.
    fn correction(&self, row: &[f64], time: i64) -> f64 {
        self.grid.as_ref().map_or(0.0, |grid| grid.at(row, time))
    }

    /// Clocks that stay as recorded: the reference; and of other clocks that no messages hold from both sides against it, one per
    /// group that hold each other, if it has recorded offsets.
    fn fixed(&self, seen: &Observations, map: &ClockMap) -> Vec<bool> {
        let mut fixed = vec![false; map.bases.len()];
        let mut taken = std::collections::BTreeSet::new();
        let own = |clock: usize| seen.component.get(clock).copied();
        taken.insert(own(self.reference));
        fixed[self.reference] = true;
        for (clock, offsets) in map.offsets.iter().enumerate() {
            if !offsets.is_empty() && taken.insert(own(clock)) {
                fixed[clock] = true;
            }
        }
        fixed
    }
}

/// How many groups of clocks there are that no messages connect.
fn groups(seen: &Observations, clocks: usize) -> usize {
    let both = seen.one_way.iter().flat_map(|seen| [(seen.a, seen.b), (seen.b, seen.a)]);
    let group = components(clocks, both);
    group.iter().enumerate().filter(|(clock, group)| clock == *group).count()
}

/// Whether no recorded offset says what global time is.
fn unmeasured(map: &ClockMap) -> bool {
    map.offsets.iter().all(Vec::is_empty)
}

#[cfg(test)]
mod tests;
