//! Refining the clocks of a loaded trace with what its messages tell.
//!
//! Level by level, from one window over the whole trace to as many as the messages support, each level with the clocks that
//! the one before has found: all ranks observe bounds (one exchange, memory by pairs of clocks and windows), rank 0 solves
//! ([`Estimator`]), all ranks hear of the new clocks. In the end the better of the recorded and the refined clocks stays.

use crate::clocks::adopted::{adopt, span};
use crate::clocks::curved::{in_words, join_by_curves};
use crate::clocks::division::{apart, nodes, recorded_offsets, with_own};
use crate::clocks::latency::settle_latency;
use crate::clocks::lives::{Lives, disjoint};
use crate::clocks::model_selection::{Selected, SelectedClocks, choose, undisturbed};
use crate::clocks::outlying::leave_out;
use crate::clocks::waiting_calls::WaitingCallSearch;
use crate::pipeline::load::{LoadOptions, LocalTrace};
use crate::pipeline::open::TraceHandle;
use crate::report::ClockEstimate;
use clc_clock::estimator::{Decision, Estimator, observed_windows};
use clc_clock::grid::Grid;
use clc_clock::reference::Reference;
use clc_clock::waits::QuickestWaits;
use clc_clock::{
    Clock, ClockFit, ClockInterval, ClockMap, Knots, LinearClock, MeasurementLimits, Method, RANGE, RecordedOffsets,
    RefinedClocks, Told,
};
use clc_engine::comm::{AnalysisRank, ReduceOp, Transport, broadcast_value};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::replay::calls::ObservedTimes;
use clc_engine::replay::latest::Begins;
use clc_engine::replay::observe::{inspect, observe};
use clc_trace::progress::Progress;
use clc_trace::{Error, OwnTimeline, Result, Ticks};

/// A measurement within a node is off by no more than this many seconds, however long the shortest message of the trace waited: those that are implied by a few broadcasts take
/// hundreds of microseconds.
const WITHIN_NODE: f64 = 5e-6;
/// What is wanted beside the model of [`LoadOptions::presync`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RefineOptions {
    /// What is global time.
    pub reference: Reference,
    /// Minimum latencies from the trace.
    pub latency: bool,
    /// Which measurements count.
    pub limits: MeasurementLimits,
}

/// Looks at the messages with the same division of nodes, at most: no estimate goes on for ever. Levels and jumps take some thirty.
const MOST_LOOKS: usize = 200;

/// Estimated clocks have run away that make the longest location, from its first event to its last, last longer than recorded ones do by more than a twentieth and a thousandth of a second: messages do not tell the rate that
/// clocks have in common, and crystals differ by less than 0.1 %. Those that are set apart make the run longer without that: each may count from the begin of its process. One that stood still makes its own locations longer.
const LONGER: i64 = 20;
const LONGER_PER_SECOND: u64 = 1000;
/// Why estimated clocks cannot be used that [`LinearClock::through`] refuses.
const OUT_OF_RANGE: &str = "the estimated clocks would exceed the range of times";

/// Replaces the clocks of `loaded` if the method says so and the messages give better ones; sets the minimum latency if
/// that is wanted. Returns what was found and why it was or was not used, on rank 0. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport; the trace cannot be read a second time.
pub(crate) fn refine(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &mut LocalTrace,
    options: &LoadOptions,
    wanted: RefineOptions,
    progress: &dyn Progress,
) -> Result<Option<ClockEstimate>> {
    check_options(opened, options.presync, &wanted)?;
    if !options.presync.refines() && !wanted.latency {
        return Ok(None);
    }
    let left_out = match options.presync {
        Method::Auto => leave_out(transport, opened, loaded, options, progress)?,
        _ => None,
    };
    let mut inputs = EstimationInputs::new(transport, opened, loaded, options.presync, wanted)?;
    if options.presync == Method::Auto {
        let lines = (&inputs.map(&Division::default())?, &inputs.recorded[..], Told::ByOffsets);
        inputs.curves = join_by_curves(transport, opened, loaded, options, lines, progress)?;
    }
    let mut attempt = Attempt::make(transport, &inputs, loaded, options, Division::default())?;
    if let Some(lives) = inputs.disjoint.as_ref().filter(|lives| options.presync.refines() && lives.are_in_range())
        && !(attempt.is_possible(lives) && attempt.selected.as_ref().is_some_and(Selected::leaves_none))
    {
        loaded.retime_by_locations(opened.workers);
        let division = Division { split: lives.nodes_apart(&inputs.nodes), together: true };
        let together = Attempt::make(transport, &inputs, loaded, options, division)?;
        attempt = if together.is_better_than(&attempt, lives) {
            together.because("all were first taken to begin together")
        } else {
            Attempt { current: false, ..attempt }
        };
    }
    let Attempt { mut estimation, mut selected, mut current } = attempt;
    let keeps_recorded = |selected: &Option<Selected>| {
        let recorded = selected.as_ref().filter(|selected| selected.clocks == SelectedClocks::Recorded);
        recorded.filter(|_| options.presync == Method::Auto).map(|recorded| recorded.reason.clone())
    };
    if let Some(reason) = keeps_recorded(&selected)
        && broadcast_value(transport, AnalysisRank::FIRST, estimation.estimator.hulls_excel())?
    {
        let lines = Estimation::begin(&inputs, Method::Hull, estimation.division.clone())?;
        let mut lines = Estimation { judged_as: Method::Hull, ..lines };
        let straight = lines.settle(transport, loaded, options)?;
        current = false;
        if let Some(straight) = straight.filter(|straight| straight.clocks == SelectedClocks::Estimated) {
            let reason = format!(
                "{reason}; but straight lines predict messages of prompt round trips better than recorded offsets do, and leave no more violations"
            );
            (estimation, selected, current) = (lines, Some(Selected { reason, ..straight }), true);
        }
    }
    match &estimation.taken {
        Some(refined) => {
            if !current {
                loaded.retime(opened.workers, refined);
            }
            adopt(transport, opened, loaded, options, refined, progress)?;
        }
        None if !current => loaded.retime_by_locations(opened.workers),
        None => {}
    }
    let mut curves = (!inputs.curves.is_empty()).then_some(Told::ByOffsets);
    if curves.is_none() && keeps_recorded(&selected).is_some() {
        let lines = (&estimation.map, &inputs.recorded[..], Told::Otherwise);
        let found = join_by_curves(transport, opened, loaded, options, lines, progress)?;
        curves = (!found.is_empty()).then_some(Told::Otherwise);
    }
    let Estimation { estimator, map, .. } = estimation;
    loaded.clock_of = Some(with_own(&map));
    if wanted.latency {
        let found = broadcast_value(transport, AnalysisRank::FIRST, estimator.latency())?;
        settle_latency(transport, opened.workers, loaded, found)?;
    }
    Ok(selected.filter(|_| transport.rank() == AnalysisRank::FIRST).map(|selected| {
        let curves = curves.filter(|_| selected.clocks != SelectedClocks::Unmeasured).map(in_words);
        let reason = [selected.reason].into_iter().chain(curves).chain(left_out).collect::<Vec<_>>().join("; ");
        let chosen = match selected.clocks {
            SelectedClocks::Recorded => Method::Linear,
            SelectedClocks::Estimated => estimator.method(),
            SelectedClocks::Unmeasured => Method::None,
        };
        estimator.report(options.presync, chosen, reason, &map)
    }))
}

/// Refuses options that would have no effect, and a reference that the trace does not have.
fn check_options(opened: &TraceHandle, presync: Method, wanted: &RefineOptions) -> Result<()> {
    let usual = MeasurementLimits::default();
    let delay = wanted.limits.longest_delay(1.0) != usual.longest_delay(1.0);
    let given = [
        ("--reference", wanted.reference != Reference::Auto),
        ("--confidence", wanted.limits.confidence != usual.confidence),
        ("--segment", wanted.limits.segment != usual.segment),
        ("--max-delay", delay && !wanted.latency),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given && !presync.refines()) {
        let message = format!("{option} has no effect with --presync {}", presync.name());
        return Err(Error::new(message).hint("use it with auto, network, regression or hull"));
    }
    match wanted.reference {
        Reference::Process(process) if process as usize >= opened.timelines.processes => {
            Err(Error::new(format!("--reference {process}: the trace has {} processes", opened.timelines.processes)))
        }
        _ => Ok(()),
    }
}

/// What was made of the messages, and what was selected.
struct Attempt<'a> {
    estimation: Estimation<'a>,
    selected: Option<Selected>,
    /// Whether the times of the loaded trace are those of what was selected.
    current: bool,
}

impl<'a> Attempt<'a> {
    /// Estimates clocks, and lines where curves are refused or leave much. The times of `loaded` are those of the recorded clocks. Collective over the analysis ranks.
    fn make(
        transport: &mut dyn Transport,
        inputs: &'a EstimationInputs<'a>,
        loaded: &mut LocalTrace,
        options: &LoadOptions,
        division: Division,
    ) -> Result<Self> {
        let mut estimation = Estimation::begin(inputs, options.presync, division)?;
        let mut selected = estimation.settle(transport, loaded, options)?;
        let mut current = true;
        if let Some(refused) = selected
            .as_ref()
            .filter(|selected| inputs.recorded.is_empty() && may_be_straight(options.presync, selected))
        {
            let method = broadcast_value(transport, AnalysisRank::FIRST, estimation.estimator.lines_instead())?;
            let mut lines = Estimation::begin(inputs, method, estimation.division.clone())?;
            let straight = lines.settle(transport, loaded, options)?;
            current = false;
            match straight {
                Some(straight) if straight.clocks == SelectedClocks::Estimated => {
                    let reason = format!("{}; with straight lines {}", refused.reason, straight.reason);
                    (estimation, selected, current) = (lines, Some(Selected { reason, ..straight }), true);
                }
                // The same is often said of both.
                Some(straight) if straight.reason != refused.reason => {
                    let reason = format!("{}; of straight lines: {}", refused.reason, straight.reason);
                    selected = selected.map(|recorded| Selected { reason, ..recorded });
                }
                _ => {}
            }
        }
        // A few messages let curves follow any of them: lines are simpler, if they leave less. And where recorded clocks cannot be right, the better of all is taken.
        let hopeless = selected.as_ref().is_some_and(|selected| selected.hopeless) && !inputs.recorded.is_empty();
        if (inputs.recorded.is_empty() || hopeless) && options.presync == Method::Auto {
            for method in [Method::Hull, Method::Regression] {
                let untried = estimation.method != method;
                let wanting = |selected: &&Selected| selected.leaves_some() || hopeless;
                let Some(taken) = selected.as_ref().filter(|_| untried).filter(wanting) else { continue };
                loaded.retime_by_locations(inputs.opened.workers);
                let lines = Estimation::begin(inputs, method, estimation.division.clone())?;
                let mut lines = Estimation { judged_as: if hopeless { method } else { options.presync }, ..lines };
                let straight = lines.settle(transport, loaded, options)?;
                current = false;
                let is_better = |straight: &Selected| {
                    straight.leaves_less_than(taken) || hopeless && straight.is_nearer_than(taken)
                };
                if let Some(straight) = straight.filter(is_better) {
                    let refused = format!("{}, but these cannot be right", taken.reason);
                    let left = || format!("another estimate would leave {}", taken.violations_left());
                    let before = if taken.clocks == SelectedClocks::Recorded { refused } else { left() };
                    let reason = format!("{before}; {}", straight.reason);
                    (estimation, selected, current) = (lines, Some(Selected { reason, ..straight }), true);
                }
            }
        }
        Ok(Attempt { estimation, selected, current })
    }

    /// Whether by estimated clocks that were taken the processes, which had these `lives`, lived at the same time.
    fn is_possible(&self, lives: &Lives) -> bool {
        self.estimation.taken.as_ref().is_some_and(|clocks| {
            !lives.are_disjoint(lives.by(|timeline, time| clocks.of(timeline).map(Ticks(time)).0))
        })
    }

    /// Whether to take it instead of another one, by which processes with these `lives` may not have lived at the same time.
    fn is_better_than(&self, other: &Attempt<'_>, lives: &Lives) -> bool {
        let no_worse = || {
            self.selected
                .as_ref()
                .zip(other.selected.as_ref())
                .is_some_and(|(own, other)| own.leaves_no_worse_than(other))
        };
        self.is_possible(lives) && (!other.is_possible(lives) || no_worse())
    }

    /// The same with another reason.
    fn because(self, more: &str) -> Self {
        let with = |selected: Selected| Selected { reason: format!("{}; {more}", selected.reason), ..selected };
        Attempt { selected: self.selected.map(with), ..self }
    }
}

/// Which processes have a clock of their own, and where clocks begin.
#[derive(Debug, Clone, Default)]
struct Division {
    /// Nodes whose processes have a clock each.
    split: Vec<u32>,
    /// Whether clocks that nobody has measured are first taken to begin together.
    together: bool,
}

/// From what clocks are estimated, the same on all ranks.
struct EstimationInputs<'a> {
    opened: &'a TraceHandle,
    presync: Method,
    wanted: RefineOptions,
    /// The node of each timeline.
    nodes: Vec<u32>,
    recorded: Vec<RecordedOffsets>,
    own: Vec<OwnTimeline>,
    /// The lives of processes, by timeline, if nobody has measured the clocks, and by them some processes had ended long before others began.
    disjoint: Option<Lives>,
    /// Curves through the recorded offsets of each process's timeline, where these take the place of lines.
    curves: Vec<Option<LinearClock>>,
}

impl<'a> EstimationInputs<'a> {
    fn new(
        transport: &mut dyn Transport,
        opened: &'a TraceHandle,
        loaded: &LocalTrace,
        presync: Method,
        wanted: RefineOptions,
    ) -> Result<Self> {
        let recorded = recorded_offsets(transport, loaded)?;
        let resolution = opened.definitions.clock.resolution;
        let disjoint = if recorded.is_empty() { disjoint(transport, opened, loaded, resolution)? } else { None };
        let (nodes, own) = (nodes(opened), loaded.own.clone());
        Ok(EstimationInputs { opened, presync, wanted, nodes, recorded, own, disjoint, curves: Vec::new() })
    }

    /// Which timelines share a clock, and what was recorded about it.
    fn map(&self, division: &Division) -> Result<ClockMap> {
        let apart = apart(self.resolution());
        let mut map = ClockMap::new(&self.nodes, &self.recorded, &self.own, &division.split, apart)?;
        map.join_by_curves(&self.curves);
        if let Some(lives) = self.disjoint.as_ref().filter(|_| division.together) {
            map.begin_together(&lives.begins())?;
        }
        Ok(map)
    }

    /// Ticks per second.
    fn resolution(&self) -> u64 {
        self.opened.definitions.clock.resolution
    }
}

/// What all ranks know while clocks are estimated.
struct Estimation<'a> {
    inputs: &'a EstimationInputs<'a>,
    /// By which clocks are made.
    method: Method,
    /// As which model they are judged beside the recorded ones: `auto` asks for evidence.
    judged_as: Method,
    division: Division,
    map: ClockMap,
    /// Works on rank 0 only.
    estimator: Estimator,
    /// The clocks of the next look, and in how many windows it is.
    refined: RefinedClocks,
    windows: usize,
    waiting: Option<WaitingCallSearch>,
    /// The clocks that were selected, unless these are the recorded ones.
    taken: Option<RefinedClocks>,
}

impl<'a> Estimation<'a> {
    /// With clocks by a `method`.
    fn begin(inputs: &'a EstimationInputs<'a>, method: Method, division: Division) -> Result<Self> {
        let (resolution, wanted) = (inputs.resolution(), &inputs.wanted);
        let map = inputs.map(&division)?;
        let estimator = Estimator::new(&map, resolution, method, wanted.reference, wanted.limits);
        let estimator = estimator.with_workers(inputs.opened.workers);
        let (refined, windows) = (RefinedClocks::new(&map, &[])?, observed_windows(map.bases.len()));
        Ok(Estimation {
            inputs,
            method,
            judged_as: inputs.presync,
            division,
            map,
            estimator,
            refined,
            windows,
            waiting: None,
            taken: None,
        })
    }

    /// Begins again, with a clock per process on the nodes of these clocks as well.
    fn split(&mut self, clocks: &[u32]) -> Result<()> {
        let node = |&clock: &u32| self.inputs.nodes[self.map.first_timeline[clock as usize] as usize];
        let known = &self.division.split;
        let split: Vec<u32> = known.iter().copied().chain(clocks.iter().map(node)).collect();
        if split[known.len()..].iter().all(|node| known.contains(node)) {
            return Err(Error::new("clocks of nodes cannot be split twice; this is a bug"));
        }
        let judged_as = self.judged_as;
        *self = Estimation {
            judged_as,
            ..Estimation::begin(self.inputs, self.method, Division { split, ..self.division })?
        };
        Ok(())
    }

    /// Estimates clocks, and keeps them if they are better than the recorded ones; none if no estimate is wanted. The times of `loaded`, which are those of the recorded clocks, may be others afterwards.
    fn settle(
        &mut self,
        transport: &mut dyn Transport,
        loaded: &mut LocalTrace,
        options: &LoadOptions,
    ) -> Result<Option<Selected>> {
        let decision = self.run(transport, loaded)?;
        // They were those of the last look.
        loaded.retime_by_locations(self.inputs.opened.workers);
        if !options.presync.refines() {
            return Ok(None);
        }
        let selected = match decision {
            Decision::Done(knots, fit) => {
                let mut selected = self.select(transport, loaded, (&knots, *fit))?;
                if selected.clocks != SelectedClocks::Estimated && self.inputs.wanted.reference != Reference::Auto {
                    selected.reason += "; time is that of these clocks, not of --reference";
                }
                selected
            }
            Decision::Nothing(reason) if options.presync == Method::Auto => {
                self.select_without_estimate(transport, loaded, reason)?
            }
            Decision::Nothing(reason) => Selected::for_want_of_others(reason),
            Decision::Split(_) | Decision::Level(..) | Decision::Inspect(_) => Selected::recorded(String::new()),
        };
        Ok(Some(selected))
    }

    /// Looks at the messages until there is a decision that is none for another look.
    fn run(&mut self, transport: &mut dyn Transport, loaded: &mut LocalTrace) -> Result<Decision> {
        let out_of_range = || Decision::Nothing(OUT_OF_RANGE.to_owned());
        let (mut asked, mut looks): (Option<Vec<ClockInterval>>, usize) = (None, 0);
        // The times are those of the recorded clocks, by which messages are seen first.
        let mut begun = loaded.has_times_of(&self.refined);
        while looks < MOST_LOOKS {
            looks += 1;
            let decision = match asked.take() {
                Some(stretches) => self.inspect(transport, loaded, &stretches)?,
                None => {
                    if !std::mem::take(&mut begun) {
                        loaded.retime(self.inputs.opened.workers, &self.refined);
                    }
                    let (first, last) = span(transport, loaded, &self.refined)?.unwrap_or((0, 0));
                    if first <= -RANGE || last >= RANGE {
                        return Ok(out_of_range());
                    }
                    self.look(transport, loaded, Grid::new(first, last, self.windows))?
                }
            };
            match broadcast_value(transport, AnalysisRank::FIRST, decision)? {
                Some(Decision::Inspect(stretches)) => asked = Some(stretches),
                Some(Decision::Split(clocks)) => {
                    self.split(&clocks)?;
                    looks = 0;
                }
                Some(Decision::Level(knots, count)) => match RefinedClocks::new(&self.map, &knots) {
                    Ok(better) => (self.refined, self.windows) = (better, count),
                    Err(_) => return Ok(out_of_range()),
                },
                Some(done) => return Ok(done),
                None => return Err(Error::new("no clocks were estimated; this is a bug")),
            }
        }
        Ok(Decision::Nothing("the estimate does not converge".to_owned()))
    }

    /// What rank 0 makes of all messages, in the windows of `grid`.
    fn look(&mut self, transport: &mut dyn Transport, loaded: &mut LocalTrace, grid: Grid) -> Result<Option<Decision>> {
        let (workers, map) = (self.inputs.opened.workers, &self.map);
        let (program, clocks, times) = (&loaded.program, &map.of_timeline, loaded.program.times());
        let begins = Begins::meet(transport, workers, program, &times, clocks)?;
        let mut table = observe(transport, workers, program, &times, &begins, clocks, &grid)?;
        if matches!(self.method, Method::Auto | Method::Network) {
            let known = match self.waiting.take() {
                Some(mut known) => {
                    known.renew(transport, map, table.as_ref())?;
                    known
                }
                None => WaitingCallSearch::new(transport, self.inputs.opened, loaded, map, table.as_ref())?,
            };
            let seen = ObservedTimes { times: &times, begins: &begins, clocks, grid: &grid };
            let waits = known.observe(transport, workers, loaded, &self.refined, seen)?;
            if let Some((table, waits)) = table.as_mut().zip(waits) {
                table.waits = QuickestWaits { measured: !self.inputs.recorded.is_empty(), ..waits };
            }
            self.waiting = Some(known);
        }
        Ok(table.map(|table| self.estimator.level(&table, grid, map)))
    }

    /// What rank 0 makes of single messages of clocks that seem to jump.
    fn inspect(
        &mut self,
        transport: &mut dyn Transport,
        loaded: &mut LocalTrace,
        stretches: &[ClockInterval],
    ) -> Result<Option<Decision>> {
        let (workers, map) = (self.inputs.opened.workers, &self.map);
        loaded.retime(workers, &RefinedClocks::new(map, &[])?);
        let times = loaded.program.times();
        let messages = inspect(transport, workers, &loaded.program, &times, &map.of_timeline, stretches)?;
        Ok(messages.map(|messages| self.estimator.inspected(&messages)))
    }

    /// Decides between the estimate and the recorded clocks.
    fn select(
        &mut self,
        transport: &mut dyn Transport,
        loaded: &mut LocalTrace,
        (knots, fit): (&[Knots], ClockFit),
    ) -> Result<Selected> {
        let (opened, resolution) = (self.inputs.opened, self.inputs.resolution());
        let Ok(refined) = RefinedClocks::new(&self.map, knots) else {
            return Ok(Selected::for_want_of_others(OUT_OF_RANGE.to_owned()));
        };
        if self.has_run_away(transport, loaded, &refined)? {
            let reason = "the estimate has run away: processes would last longer by a twentieth or more";
            return Ok(Selected::for_want_of_others(reason.to_owned()));
        }
        let fit = ClockFit { disjoint: self.inputs.disjoint.is_some(), ..fit };
        let selected = choose(transport, opened.workers, loaded, &refined, self.judged_as, fit, resolution)?;
        self.taken = match selected.clocks {
            SelectedClocks::Recorded => {
                loaded.retime_by_locations(opened.workers);
                None
            }
            SelectedClocks::Estimated => Some(refined),
            SelectedClocks::Unmeasured => Some(self.unmeasured(loaded)),
        };
        Ok(selected)
    }

    /// Whether the location that lasts longest lasts too long under other clocks. Collective over the analysis ranks.
    fn has_run_away(
        &self,
        transport: &mut dyn Transport,
        loaded: &LocalTrace,
        refined: &RefinedClocks,
    ) -> Result<bool> {
        let recorded = RefinedClocks::new(&self.map, &[])?;
        let mut longest = [0; 2];
        for (local, locations) in loaded.locations.iter().enumerate() {
            let number = loaded.program.number(LocalTimeline::at(local));
            for ends in locations.iter().filter_map(|location| location.summary.time_span) {
                let lasts = [&recorded, refined].map(|clocks| duration_by(clocks.of(number), ends));
                longest = [longest[0].max(lasts[0]), longest[1].max(lasts[1])];
            }
        }
        transport.all_reduce(ReduceOp::Max, &mut longest)?;
        Ok(has_run_away(longest[0], longest[1], self.inputs.resolution()))
    }

    /// The recorded clocks for a `reason`, or the times as they were recorded if all processes share a clock.
    fn select_without_estimate(
        &mut self,
        transport: &mut dyn Transport,
        loaded: &mut LocalTrace,
        reason: String,
    ) -> Result<Selected> {
        let within = Ticks((WITHIN_NODE * self.inputs.resolution() as f64) as i64);
        let shortest = broadcast_value(transport, AnalysisRank::FIRST, self.estimator.latency())?.same_node;
        let one = self.map.bases.len() == 1
            && are_as_one(&self.inputs.recorded, self.inputs.nodes.len(), shortest.min(within));
        let Some(selected) =
            one.then(|| undisturbed(transport, self.inputs.opened.workers, loaded)).transpose()?.flatten()
        else {
            return Ok(Selected::for_want_of_others(reason));
        };
        self.taken = Some(self.unmeasured(loaded));
        Ok(selected)
    }

    /// The clocks without recorded offsets, whose times `loaded` has then.
    fn unmeasured(&self, loaded: &mut LocalTrace) -> RefinedClocks {
        let clocks = RefinedClocks::unmeasured(&self.map);
        loaded.retime(self.inputs.opened.workers, &clocks);
        clocks
    }
}

/// Whether lines between pairs of clocks may do where recorded clocks were `selected`, and nothing but messages tells the clocks apart: there was no estimate, or `auto` has refused it although the recorded clocks leave
/// violations. Curves can run away from each other, lines keep to what messages permit.
fn may_be_straight(presync: Method, selected: &Selected) -> bool {
    let refused = selected.refused && presync == Method::Auto;
    let curves = matches!(presync, Method::Auto | Method::Network);
    curves && selected.clocks == SelectedClocks::Recorded && (selected.without_estimate || refused)
}

/// How much time passes by a clock between two recorded times.
fn duration_by(clock: &Clock, (first, last): (u64, u64)) -> i64 {
    let at = |raw: u64| clock.map(Ticks(raw.min(RANGE as u64) as i64)).0;
    at(last).saturating_sub(at(first))
}

/// Whether estimated clocks have run away by which locations last so long, and by recorded ones so long, those that last longest; `resolution` is in ticks per second.
fn has_run_away(recorded: i64, estimated: i64, resolution: u64) -> bool {
    let slack = (resolution / LONGER_PER_SECOND) as i64;
    estimated > recorded.saturating_add(recorded / LONGER).saturating_add(slack)
}

/// Whether the recorded offsets of so many `timelines` are those of processes that share a clock: they differ by no more than the bounds that were recorded with them, and by no more than the
/// shortest message takes beyond these, if there are any messages. (Where all have bounds, a message counts no more than the widest of them.) That is what measuring one clock is off by. Where no offset
/// was recorded, it is 0.
fn are_as_one(recorded: &[RecordedOffsets], timelines: usize, shortest: Ticks) -> bool {
    let unmeasured = (recorded.len() < timelines).then_some((0, 0.0));
    let measured = recorded.iter().flat_map(|record| &record.offsets).map(|found| (found.offset, found.bound()));
    let values: Vec<(i64, f64)> = measured.chain(unmeasured).collect();
    // Offsets of clocks that show the date have more digits than their differences.
    let Some(base) = values.iter().map(|(offset, _)| *offset).min() else { return false };
    let from_base = |offset: &i64| offset.saturating_sub(base) as f64;
    let most = values.iter().map(|(offset, bound)| from_base(offset) - bound).fold(f64::MIN, f64::max);
    let least = values.iter().map(|(offset, bound)| from_base(offset) + bound).fold(f64::MAX, f64::min);
    let stated = values.iter().all(|(offset, bound)| *offset == 0 || *bound > 0.0)
        && values.iter().any(|(_, bound)| *bound > 0.0);
    let widest = if stated { values.iter().map(|(_, bound)| *bound).fold(0.0, f64::max) } else { f64::INFINITY };
    !recorded.is_empty() && (shortest > Ticks(0) || stated) && most - least <= widest.min(shortest.0 as f64)
}

#[cfg(test)]
#[path = "refine_tests.rs"]
mod tests;
