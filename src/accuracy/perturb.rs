//! Applying wrong clocks to the locations of a recorded trace, and keeping its own times as the truth.

use crate::output::truth::write_parameters;
use crate::pipeline::local_trace::{LoadOptions, LoadedLocation, LocalTrace};
use crate::pipeline::location_clock::{LocationClock, LocationCursor};
use crate::pipeline::open::TraceHandle;
use crate::pipeline::write::write_globals;
use crate::report::{Generated, SCHEMA};
use crate::session::{Prepared, Session};
use clc_archive::TimeMap;
use clc_archive::truth::{self, TruthWriter};
use clc_clock::Method;
use clc_engine::comm::{ReduceOp, Transport, agree};
use clc_engine::matching::collectives::fences::Fences;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::replay::clock_condition::check_clock_condition;
use clc_simulate::units::{EPOCH, SECOND};
use clc_simulate::{Disturbance, OffsetMeter};
use clc_trace::progress::Progress;
use clc_trace::{ClockOffset, Error, EventNumber, Result, Ticks};
use controlled_logical_clock::Parameters;
use controlled_logical_clock::latency::MinimumLatency;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How to disturb the clocks of a trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disturb<'a> {
    /// The clocks, the network of the measurements, and when they are made.
    pub meter: OffsetMeter<'a>,
    /// Node of every timeline: which clock it gets.
    pub nodes: &'a [u32],
    /// True (pre-synchronised) time of the first event of the trace.
    pub origin: Ticks,
}

/// What came out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disturbed {
    /// Added to all local times, so that none is negative.
    pub shift: Ticks,
    /// Earliest and latest time of the disturbed trace, local or global.
    pub span: Option<(i64, i64)>,
    /// Largest difference between a local and the true time, in ticks.
    pub largest: i64,
    /// Events of all locations.
    pub events: u64,
}

/// Loads the trace with the times that a reader sees, which become the true ones. A trace that violates the clock condition has none: it is refused,
/// or `anyway` makes that a warning.
///
/// # Errors
/// The trace cannot be read, or has violations.
pub(crate) fn load_true_times(session: &mut Session<'_>, anyway: bool) -> Result<LocalTrace> {
    let loaded = session.load(&LoadOptions {
        presync: Method::Linear,
        latency: MinimumLatency::default(),
        alltoallv: false,
        handles: false,
        fences: Fences::default(),
        separation: Parameters::default().minimum_separation,
    })?;
    let program = &loaded.program;
    let found = check_clock_condition(session.transport, session.opened.workers, program, &program.times())?;
    if found.violated() > 0 {
        let message = format!(
            "{} of {} messages and collectives in the trace itself violate the clock condition, so its times are not \
            true",
            found.violated(),
            found.checked()
        );
        if !anyway {
            return Err(Error::new(message)
                .in_file(session.path())
                .hint("correct it first and perturb the result, or pass --anyway"));
        }
        session.warnings.add(message);
    }
    Ok(loaded)
}

/// How long the trace is, in picoseconds.
///
/// # Errors
/// Longer than 26 days.
pub(crate) fn length(session: &Session<'_>, loaded: &LocalTrace) -> Result<i64> {
    let (first, last) = loaded.span.unwrap_or((Ticks::ZERO, Ticks::ZERO));
    let run = i128::from(last.0 - first.0) * i128::from(SECOND) / i128::from(session.resolution().max(1));
    i64::try_from(run).map_err(|_| Error::new("the trace is longer than 26 days").in_file(session.path()))
}

/// Writes what the locations have in common, and publishes the output. Where it is, on rank 0.
///
/// # Errors
/// The trace has changed meanwhile; writing fails.
pub(crate) fn publish(
    session: &mut Session<'_>,
    prepared: Prepared,
    (loaded, disturbed): (&LocalTrace, &Disturbed),
    truth_parameters: Option<&[(&'static str, String)]>,
) -> Result<Option<PathBuf>> {
    let markers = agree(session.transport, session.opened.archive.markers())?;
    let shift = (loaded.shift + disturbed.shift).0 as u64;
    let markers: Option<Vec<(u64, u64)>> =
        markers.map(|markers| markers.iter().map(|m| (m.time.saturating_add(shift), m.duration)).collect());
    let published = session.publish_with(prepared, |opened, making, warnings| {
        write_globals(opened, making, disturbed.span, markers.as_deref(), warnings)?;
        truth_parameters.map_or(Ok(()), |given| write_parameters(making, "perturb", given))
    })?;
    Ok(published.map(|(path, ())| path))
}

/// Writes the hosted locations with disturbed times to `target`, and their truth if asked for. Collective over the analysis
/// ranks; a failure is everybody's.
///
/// # Errors
/// Reading or writing fails; the trace is too long.
pub(crate) fn disturb_locations(
    transport: &mut dyn Transport,
    (opened, loaded): (&TraceHandle, &LocalTrace),
    disturb: &Disturb<'_>,
    (target, with_truth): (&Path, bool),
    progress: &dyn Progress,
) -> Result<Disturbed> {
    // A clock never runs backwards, so each is earliest at its first event or at its first measurement.
    let mut earliest = i64::MAX;
    let mut outcome = Ok(());
    // A location gets the clock of its process, even if it has shown that it had one of its own.
    let node_of = |local| disturb.nodes[loaded.program.process_of(loaded.program.number(local)).place()];
    for (local, locations) in (0..).map(LocalTimeline).zip(&loaded.locations) {
        let node = node_of(local);
        earliest = earliest.min(disturb.offsets(node, loaded).first().map_or(i64::MAX, |offset| offset.0));
        for (number, location) in locations.iter().enumerate() {
            if let Some((first, _)) = location.summary.time_span {
                match disturb.clock(node).local(loaded.clock(local, number).presynchronised(first)) {
                    Ok(local) => earliest = earliest.min(local.0),
                    Err(error) => outcome = Err(error),
                }
            }
        }
    }
    agree(transport, outcome)?;
    let mut bound = [earliest];
    transport.all_reduce(ReduceOp::Min, &mut bound)?;
    let shift = Ticks(if bound[0] < 0 { -bound[0] } else { 0 });

    progress.phase("perturb", loaded.events());
    let (mut first, mut last, mut largest) = (i64::MAX, i64::MIN, 0);
    let mut outcome = Ok(());
    'all: for (local, locations) in (0..).map(LocalTimeline).zip(&loaded.locations) {
        for (number, location) in locations.iter().enumerate() {
            let clock = loaded.clock(local, number);
            let result = PerturbJob { opened, loaded, disturb, location, clock, node: node_of(local), shift }
                .run(target, with_truth, progress);
            match result {
                Ok((location_span, most)) => {
                    if let Some((from, to)) = location_span {
                        (first, last) = (first.min(from), last.max(to));
                    }
                    largest = most.max(largest);
                }
                Err(error) => {
                    outcome = Err(error);
                    break 'all;
                }
            }
        }
    }
    progress.finish();
    agree(transport, outcome)?;
    let mut ends = [first, last.saturating_neg(), -largest];
    transport.all_reduce(ReduceOp::Min, &mut ends)?;
    let span = (ends[0] != i64::MAX).then_some((ends[0], ends[1].saturating_neg()));
    let mut events = [loaded.events() as i64];
    transport.all_reduce(ReduceOp::Sum, &mut events)?;
    Ok(Disturbed { shift, span, largest: -ends[2], events: events[0].unsigned_abs() })
}

/// What the disturbed trace is, on rank 0, except where it lies and how long it took. Ends the session.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn describe(
    session: Session<'_>,
    disturb: &Disturb<'_>,
    disturbed: &Disturbed,
    parameters: Vec<(&'static str, String)>,
) -> Result<Option<Generated>> {
    let processes = session.opened.timelines.processes as u64;
    let locations = session.opened.definitions.locations.len() as u64;
    let resolution = session.resolution().max(1) as f64;
    Ok(session.finish()?.map(|finished| Generated {
        schema: SCHEMA,
        command: "perturb".into(),
        output: String::new(),
        truth: false,
        processes,
        nodes: disturb.nodes.iter().collect::<BTreeSet<_>>().len() as u64,
        locations,
        events: disturbed.events,
        true_seconds: disturb.meter.length as f64 / SECOND as f64,
        largest_error_seconds: Some(disturbed.largest as f64 / resolution),
        parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        seconds: 0.0,
        warnings: finished.warnings,
    }))
}

impl Disturb<'_> {
    fn clock(&self, node: u32) -> Disturbance {
        let meter = &self.meter;
        let start = meter.duration();
        Disturbance::new(meter.clock, (node, meter.seed), meter.resolution, self.origin, start, meter.length)
    }

    /// The measurements of a node as (local time, offset, standard deviation), with local times on the trace's own scale.
    fn offsets(&self, node: u32, loaded: &LocalTrace) -> Vec<(i64, i64, f64)> {
        let Some((_, last)) = loaded.span else { return Vec::new() };
        let per_second = i128::from(SECOND);
        let resolution = i128::from(self.meter.resolution);
        let ticks = |picoseconds: i64| (i128::from(picoseconds) * resolution).div_euclid(per_second) as i64;
        let length = (i128::from(last.0 - self.origin.0) * per_second / resolution) as i64;
        let end = self.meter.duration().saturating_add(length);
        // Clocks of the simulation show the epoch where the trace shows its origin, less the time of the first measurement.
        let base = self.origin.0 - ticks(self.meter.duration()) - ticks(EPOCH);
        let measured = self.meter.measure(node, end);
        measured.iter().map(|m| (m.time as i64 + base, m.offset, m.standard_deviation)).collect()
    }
}

/// One location to disturb.
struct PerturbJob<'a> {
    opened: &'a TraceHandle,
    loaded: &'a LocalTrace,
    disturb: &'a Disturb<'a>,
    location: &'a LoadedLocation,
    clock: LocationClock<'a>,
    node: u32,
    shift: Ticks,
}

impl PerturbJob<'_> {
    /// Returns the span of local and global times, and the largest error.
    fn run(&self, target: &Path, with_truth: bool, progress: &dyn Progress) -> Result<(Option<(i64, i64)>, i64)> {
        let archive = &self.opened.archive;
        let id = self.opened.definitions.locations[self.location.index].id;
        let place = |error: Error| error.in_file(&archive.event_path(id)).at_location(id);
        let truth = if with_truth {
            let resolution = self.opened.definitions.clock.resolution;
            Some(TruthWriter::create(&truth::path(target, id), id, resolution)?)
        } else {
            None
        };
        let mut map = DisturbedTimes {
            recorded: self.clock,
            cursor: self.clock.cursor(),
            clock: self.disturb.clock(self.node),
            shift: self.shift,
            truth,
            error: 0,
            first: i64::MAX,
            last: i64::MIN,
            largest: 0,
        };
        archive.rewrite_events(id, target, &mut map).map_err(place)?;
        let DisturbedTimes { truth, first, last, largest, .. } = map;
        if let Some(truth) = truth {
            truth.finish()?;
        }
        let offsets: Vec<ClockOffset> = self
            .disturb
            .offsets(self.node, self.loaded)
            .into_iter()
            .map(|(time, offset, standard_deviation)| ClockOffset {
                time: (time + self.shift.0).max(0) as u64,
                offset,
                standard_deviation,
            })
            .collect();
        archive.replace_clock_offsets(id, target, &offsets).map_err(place)?;
        if archive.has_snapshots(id) {
            let shift = (self.loaded.shift + self.shift).0 as u64;
            archive.rewrite_snapshots(id, target, &mut |time| time.saturating_add(shift)).map_err(place)?;
        }
        progress.advance(self.location.summary.events);
        Ok(((first <= last).then_some((first, last)), largest))
    }
}

/// From recorded to disturbed times; the true ones go to the truth file.
struct DisturbedTimes<'a> {
    recorded: LocationClock<'a>,
    cursor: LocationCursor<'a>,
    clock: Disturbance,
    shift: Ticks,
    truth: Option<TruthWriter>,
    /// Local minus true time of the last event.
    error: i64,
    first: i64,
    last: i64,
    largest: i64,
}

impl TimeMap for DisturbedTimes<'_> {
    #[inline]
    fn event(&mut self, number: EventNumber, time: u64) -> Result<u64> {
        let true_time = self.cursor.position(number, time).time;
        if let Some(truth) = &mut self.truth {
            truth.push(true_time)?;
        }
        let local = self.clock.local(true_time)? + self.shift;
        self.error = local.0 - true_time.0;
        let clock_error = (self.error - self.shift.0).abs();
        self.largest = self.largest.max(clock_error);
        self.first = self.first.min(local.0).min(true_time.0 + self.shift.0);
        self.last = self.last.max(local.0).max(true_time.0 + self.shift.0);
        u64::try_from(local.0).map_err(|_| Error::new("a disturbed time is negative; this is a bug").at_event(number))
    }

    fn flush_stop(&mut self, _number: EventNumber, stop: u64) -> u64 {
        let stop = self.recorded.presynchronised(stop);
        (stop.0 + self.error).max(0) as u64
    }
}

/// The clock of every timeline: as many as asked for, in blocks of processes; else one per node of the machine, or per
/// process if there is only one node.
pub(crate) fn assign_nodes(opened: &TraceHandle, nodes: Option<u32>, per_process: bool) -> Vec<u32> {
    let timelines = &opened.timelines;
    let processes = timelines.processes.max(1) as u64;
    let own: Vec<u32> = timelines.all.iter().map(|timeline| timeline.node).collect();
    match nodes {
        Some(nodes) => (0..timelines.all.len() as u64)
            .map(|i| if i < processes { (i * u64::from(nodes) / processes) as u32 } else { 0 })
            .collect(),
        None if per_process || timelines.nodes <= 1 => (0..timelines.all.len() as u32).collect(),
        None => own,
    }
}
