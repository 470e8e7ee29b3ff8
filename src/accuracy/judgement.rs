//! What the errors of all ranks amount to, phase by phase.

use crate::accuracy::between::{Between, TrueTimeWindows};
use crate::accuracy::compare::{LocationErrors, OverallErrors, PhaseErrors, VisitedTimes};
use crate::accuracy::distribution::{Distribution, Sum};
use crate::accuracy::phase::CorrectionPhase;
use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use crate::report::{LocationAccuracy, PhaseAccuracy, Slice, WaitAccuracy};
use clc_engine::comm::{AnalysisRank, Transport, gather_values};
use clc_engine::matching::sync::SyncKind;
use clc_engine::replay::bounds::bounds;
use clc_engine::replay::clock_condition::check_clock_condition;
use clc_engine::replay::program::{NO_LOWER_BOUND, Program};
use clc_trace::Result;

/// Locations with more than this many neighbours do not get their errors over time listed. Chosen by hand: with more, the report grows by 200 numbers
/// a location and phase, and its plot cannot be read.
const LISTED: usize = 64;
/// So many windows are gathered at once. Chosen by hand: more take more memory on rank 0, in proportion to the ranks; fewer take more rounds of
/// messages.
const GATHERED: usize = 1024;

/// Puts the phases' results together on rank 0.
pub(crate) struct Judgement<'a> {
    /// The analysis ranks.
    pub transport: &'a mut dyn Transport,
    /// The trace before its correction.
    pub base: &'a TraceHandle,
    /// The same, scanned and matched.
    pub loaded: &'a LocalTrace,
    /// Of all ranks.
    pub overall: &'a OverallErrors,
    /// Windows of true time.
    pub windows: TrueTimeWindows,
    /// Seconds.
    pub tick: f64,
}

impl Judgement<'_> {
    /// The accuracy of a phase, on rank 0.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn phase(
        &mut self,
        phase: CorrectionPhase,
        mut errors: PhaseErrors,
        visited: &VisitedTimes,
        true_waits: &[Vec<i64>],
    ) -> Result<Option<PhaseAccuracy>> {
        let program = &self.loaded.program;
        let order = check_clock_condition(self.transport, self.base.workers, program, &visited.times[phase])?;
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
        let Some(parts) = gather_values(self.transport, AnalysisRank::FIRST, &packed)? else { return Ok(None) };
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
            phase: phase.name().to_owned(),
            offset_seconds: self.overall.sums[phase].mean() as f64 * tick,
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
            let parts = gather_values(self.transport, AnalysisRank::FIRST, &own)?;
            // Rank 0 has its own already.
            parts.into_iter().flatten().skip(1).for_each(|part| between.merge(part));
        }
        Ok(())
    }

    /// Error of the latency of every message that is received here.
    fn latency_errors(&mut self, visited: &VisitedTimes, phase: CorrectionPhase) -> Result<Distribution> {
        let program = &self.loaded.program;
        let now = bounds(self.transport, program, &visited.times[phase])?;
        let truth = bounds(self.transport, program, &visited.times[CorrectionPhase::Truth])?;
        let mut errors = Distribution::new()?;
        for (timeline, event) in receives(program, &now) {
            let latency = visited.times[phase][timeline][event] - now[timeline][event];
            let true_latency = visited.times[CorrectionPhase::Truth][timeline][event] - truth[timeline][event];
            errors.add(latency - true_latency);
        }
        Ok(errors)
    }

    /// Late Sender waiting time of every message that is received here, by timeline in the order of the receives.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn late_sender(&mut self, visited: &VisitedTimes, phase: CorrectionPhase) -> Result<Vec<Vec<i64>>> {
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
        let length = self.overall.span.map_or(0.0, |(first, last)| (last - first) as f64 * self.tick);
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
