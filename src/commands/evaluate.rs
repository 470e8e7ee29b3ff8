//! `clc-replay evaluate TRACE --truth DIR`: how far is this trace from the truth?

use crate::accuracy::between::{Between, Windows};
use crate::accuracy::compare::{COUNT, Comparison, FORWARD, LocationErrors, PHASES, PhaseErrors, Survey, VisitedTimes};
use crate::accuracy::distribution::{Distribution, Sum};
use crate::cli::EvaluateOptions;
use crate::clocks::refine::refine;
use crate::commands::Outcome;
use crate::output::conflicts::Content;
use crate::output::files;
use crate::pipeline::load::{LoadOptions, Loaded, load};
use crate::pipeline::open::{Opened, open};
use crate::report::{
    Evaluation, LocationAccuracy, PhaseAccuracy, SCHEMA, Slice, WaitAccuracy, Warnings, evaluation_plot,
};
use clc_archive::truth;
use clc_engine::comm::{ReduceOp, Transport, agree, all_gather_values, gather_values};
use clc_engine::matching::sync::SyncKind;
use clc_engine::replay::bounds::bounds;
use clc_engine::replay::program::{NO_LOWER_BOUND, Program};
use clc_engine::replay::survey::survey;
use clc_engine::replay::{amortise, passes};
use clc_trace::progress::Progress;
use clc_trace::{Error, Result, Ticks};
use controlled_logical_clock::latency::MinimumLatency;
use std::path::Path;

/// Locations with more than this many neighbours do not get their errors over time listed.
const LISTED: usize = 64;
/// So many windows are gathered at once.
const GATHERED: usize = 1024;

/// Compares a trace with the truth. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// A trace or a truth file cannot be read, or they do not belong together; the plot cannot be written.
pub fn evaluate(
    transport: &mut dyn Transport,
    options: &EvaluateOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let mut judged = open(transport, &options.trace)?;
    judged.workers = options.common.workers(judged.workers);
    let truth = agree(transport, truth_directory(&options.truth))?;
    // The trace with the truth is the one before the correction, if it is another one.
    let same = judged.archive.directory().canonicalize().ok() == truth.canonicalize().ok();
    let original = if same || !holds_archive(&truth) { None } else { Some(open(transport, &truth)?) };
    let original = original.map(|original| Opened { workers: judged.workers, ..original });
    let base = original.as_ref().unwrap_or(&judged);
    let mut warnings = Warnings::default();
    let resolution = base.definitions.clock.resolution;
    let mut parameters = options.correction.parameters(&options.synchronisation, resolution)?;
    let load_options = LoadOptions {
        presync: options.synchronisation.presync.unwrap_or_default(),
        latency: parameters.latency,
        alltoallv: options.synchronisation.alltoallv,
        fences: options.synchronisation.fences,
        separation: parameters.minimum_separation,
        own_timelines: false,
    };
    let mut loaded = load(transport, base, &load_options, progress, &mut warnings)?;
    let wanted = options.synchronisation.wanted();
    refine(transport, base, &mut loaded, &load_options, wanted, progress)?;
    parameters.latency = loaded.program.latency;
    let corrections = match &original {
        Some(_) => {
            let mut passes = passes::run(transport, &loaded.program, &parameters, progress)?;
            let earliest = loaded.span.map_or(Ticks::ZERO, |(first, _)| first);
            let whole = amortise::run(transport, judged.workers, &loaded.program, &mut passes, &parameters, earliest)?;
            Some(whole.corrections.into_iter().map(|whole| (whole.forward_part(), whole)).collect::<Vec<_>>())
        }
        None => None,
    };
    let comparison = Comparison {
        opened: base,
        loaded: &loaded,
        corrections: corrections.as_deref(),
        corrected: original.as_ref().map(|_| &judged),
        truth: &truth,
    };
    progress.phase("compare", 2 * loaded.events());
    let own = agree(transport, comparison.survey())?;
    progress.advance(loaded.events());
    let mut whole = Survey::new();
    all_gather_values(transport, &own)?.iter().for_each(|part| whole.merge(part));
    let mut phases = comparison.phases();
    if corrections.is_some() && !whole.same {
        phases.retain(|&phase| phase != FORWARD);
        warnings.add("the corrected trace was not made with these options: the forward phase is left out");
    }
    let windows = comparison.windows(&whole, options.window.to_ticks(resolution)?.0.unsigned_abs());
    let (errors, visited) = agree(transport, comparison.errors(&whole, &phases, &windows))?;
    progress.advance(loaded.events());
    progress.finish();

    // From here on, the clock condition is that of a latency of zero.
    loaded.program.latency = MinimumLatency::default();
    loaded.program.index_communicators();
    let tick = 1.0 / resolution as f64;
    let mut judgement = Judgement { transport, base, loaded: &loaded, survey: &whole, windows, tick };
    let mut results = Vec::new();
    let true_waits = judgement.late_sender(&visited, COUNT)?;
    for (errors, &phase) in errors.into_iter().zip(&phases) {
        if let Some(result) = judgement.phase(phase, errors, &visited, &true_waits)? {
            results.push(result);
        }
    }
    let mut totals = [loaded.events() as i64, 0, 0];
    for wait in true_waits.iter().flatten() {
        totals[1] += 1;
        totals[2] = totals[2].saturating_add(*wait);
    }
    transport.all_reduce(ReduceOp::Sum, &mut totals)?;
    let evaluation = (transport.rank() == 0).then(|| Evaluation {
        schema: SCHEMA,
        trace: options.trace.display().to_string(),
        truth: options.truth.display().to_string(),
        original: original.as_ref().map(|original| original.archive.directory().display().to_string()),
        events: totals[0] as u64,
        messages: totals[1] as u64,
        true_seconds: whole.span.map_or(0.0, |(first, last)| (last - first) as f64 * tick),
        late_sender_seconds: totals[2] as f64 * tick,
        window_seconds: windows.ticks() as f64 * tick,
        phases: results,
        warnings: warnings.into_list(),
    });
    let mut plotted = Ok(());
    if let (Some(evaluation), Some(path)) = (&evaluation, &options.plot) {
        plotted = evaluation_plot(evaluation)
            .and_then(|svg| files::write(path, svg.as_bytes(), Content::Plot, options.common.force));
    }
    agree(transport, plotted)?;
    Ok(evaluation.map(|evaluation| Outcome::Evaluation(Box::new(evaluation))))
}

/// The archive directory whose `truth` lies there, from what the user gave: it, an anchor file in it, or the `truth` directory.
fn truth_directory(given: &Path) -> Result<std::path::PathBuf> {
    let beside = |path: &Path| truth::directory(path).is_dir().then(|| path.to_path_buf());
    let parent = given.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    beside(given)
        .or_else(|| parent.filter(|_| given.is_file()).and_then(beside))
        .or_else(|| parent.filter(|_| given.file_name().is_some_and(|name| name == "truth")).and_then(beside))
        .ok_or_else(|| {
            Error::new("there is no directory `truth` with the true times")
                .in_file(given)
                .hint("give the directory of a trace that `clc-replay simulate` or `perturb` has made")
        })
}

fn holds_archive(directory: &Path) -> bool {
    clc_archive::Archive::open(directory).is_ok()
}

/// Puts the phases' results together on rank 0.
struct Judgement<'a> {
    transport: &'a mut dyn Transport,
    base: &'a Opened,
    loaded: &'a Loaded,
    survey: &'a Survey,
    windows: Windows,
    tick: f64,
}

impl Judgement<'_> {
    fn phase(
        &mut self,
        phase: usize,
        mut errors: PhaseErrors,
        visited: &VisitedTimes,
        true_waits: &[Vec<i64>],
    ) -> Result<Option<PhaseAccuracy>> {
        let program = &self.loaded.program;
        let order = survey(self.transport, program, &visited.times[phase])?;
        let latency = self.latency_errors(visited, phase)?;
        let waits = self.late_sender(visited, phase)?;
        let mut wait_errors = Distribution::new()?;
        let mut total = 0i64;
        for (now, truth) in waits.iter().flatten().zip(true_waits.iter().flatten()) {
            wait_errors.add(now - truth);
            total = total.saturating_add(*now);
        }
        self.gather(&mut errors.between)?;
        let packed = (errors.pack(), latency.pack(), wait_errors.pack(), total);
        let Some(parts) = gather_values(self.transport, 0, &packed)? else { return Ok(None) };
        let (mut latency, mut wait_errors, mut total) = (Distribution::new()?, Distribution::new()?, 0i64);
        for (number, (own, own_latency, own_waits, own_total)) in parts.into_iter().enumerate() {
            // Rank 0 has its own already.
            if number > 0 {
                errors.merge(own);
            }
            latency.merge(&own_latency);
            wait_errors.merge(&own_waits);
            total = total.saturating_add(own_total);
        }
        let tick = self.tick;
        let waits = wait_errors.statistics(tick);
        errors.locations.sort_by_key(|location| location.0);
        Ok(Some(PhaseAccuracy {
            phase: PHASES[phase].to_owned(),
            offset_seconds: self.survey.sums[phase].mean() as f64 * tick,
            clock: errors.clock.statistics(tick),
            between_processes: errors.between.report(tick),
            latency: latency.statistics(tick),
            late_sender: WaitAccuracy {
                total_seconds: total as f64 * tick,
                mean_error_seconds: waits.mean_seconds,
                max_error_seconds: waits.max_seconds,
            },
            violations: order.violated(),
            checked: order.checked(),
            intervals: errors.intervals.report(),
            over_time: self.over_time(&errors.locations),
            locations: self.locations(&errors.locations),
        }))
    }

    /// Adds what the other ranks have counted, on rank 0; by parts, since there may be many ranks and windows.
    fn gather(&mut self, between: &mut Between) -> Result<()> {
        for from in (0..self.windows.count()).step_by(GATHERED) {
            let own = between.part(from, from.saturating_add(GATHERED as u32));
            let parts = gather_values(self.transport, 0, &own)?;
            // Rank 0 has its own already.
            parts.into_iter().flatten().skip(1).for_each(|part| between.merge(part));
        }
        Ok(())
    }

    /// Error of the latency of every message that is received here.
    fn latency_errors(&mut self, visited: &VisitedTimes, phase: usize) -> Result<Distribution> {
        let program = &self.loaded.program;
        let now = bounds(self.transport, program, &visited.times[phase])?;
        let truth = bounds(self.transport, program, &visited.times[COUNT])?;
        let mut errors = Distribution::new()?;
        for (timeline, event) in receives(program, &now) {
            let latency = visited.times[phase][timeline][event] - now[timeline][event];
            let true_latency = visited.times[COUNT][timeline][event] - truth[timeline][event];
            errors.add(latency - true_latency);
        }
        Ok(errors)
    }

    /// Late Sender waiting time of every message that is received here, by timeline in the order of the receives.
    fn late_sender(&mut self, visited: &VisitedTimes, phase: usize) -> Result<Vec<Vec<i64>>> {
        let program = &self.loaded.program;
        // The bound of a receive under the times at which regions were entered is when its sender entered the send.
        let entered = bounds(self.transport, program, &visited.enters[phase])?;
        let mut waits = vec![Vec::new(); program.timelines.len()];
        for (timeline, event) in receives(program, &entered) {
            let begin = visited.enters[phase][timeline][event];
            let end = visited.times[phase][timeline][event];
            waits[timeline].push((entered[timeline][event].min(end) - begin).max(0));
        }
        Ok(waits)
    }

    fn over_time(&self, locations: &[(usize, LocationErrors)]) -> Vec<Slice> {
        let slices = locations.first().map_or(0, |(_, errors)| errors.slices.len());
        (0..slices)
            .map(|slice| {
                let mut sum = Sum::default();
                locations.iter().for_each(|(_, errors)| sum.merge(&errors.slices[slice]));
                Slice { at_seconds: self.middle(slice, slices), rms_seconds: sum.rms() * self.tick }
            })
            .collect()
    }

    fn middle(&self, slice: usize, slices: usize) -> f64 {
        let length = self.survey.span.map_or(0.0, |(first, last)| (last - first) as f64 * self.tick);
        (slice as f64 + 0.5) / slices as f64 * length
    }

    fn locations(&self, locations: &[(usize, LocationErrors)]) -> Vec<LocationAccuracy> {
        let definitions = &self.base.definitions;
        let listed = locations.len() <= LISTED;
        let one = |(index, errors): &(usize, LocationErrors)| {
            let id = definitions.locations[*index].id;
            let timeline = self.base.timelines.of_location(definitions, id);
            let mean = |sum: &Sum| (sum.count > 0).then(|| sum.exact_mean() * self.tick);
            LocationAccuracy {
                location: id,
                rank: timeline.and_then(|timeline| self.base.timelines.all[timeline].process),
                events: errors.sum.count,
                mean_seconds: errors.sum.exact_mean() * self.tick,
                rms_seconds: errors.sum.rms() * self.tick,
                max_seconds: errors.largest as f64 * self.tick,
                over_time: if listed { errors.slices.iter().map(mean).collect() } else { Vec::new() },
            }
        };
        locations.iter().map(one).collect()
    }
}

/// Matched receives of messages, as (timeline, event).
fn receives<'a>(program: &'a Program, bounds: &'a [Vec<i64>]) -> impl Iterator<Item = (usize, usize)> + 'a {
    program.timelines.iter().enumerate().flat_map(move |(timeline, sync)| {
        let is_message = |event: usize| program.messages.incoming[sync.link(event)].trust.op().is_none();
        let is_receive = move |&event: &usize| {
            sync.kind(event) == SyncKind::Receive && is_message(event) && bounds[timeline][event] != NO_LOWER_BOUND
        };
        (0..sync.len()).filter(is_receive).map(move |event| (timeline, event))
    })
}
