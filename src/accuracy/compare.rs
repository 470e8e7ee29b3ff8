//! Streaming the events of a trace beside their true times.

use crate::accuracy::between::{Between, TimelineErrors, TrueTimeWindows};
use crate::accuracy::distribution::{Distribution, IntervalCounts, PackedDistribution, SLICES, Sum};
use crate::accuracy::phase::{ByPhase, CorrectionPhase};
use crate::pipeline::local_trace::{LoadedLocation, LocalTrace};
use crate::pipeline::open::TraceHandle;
use clc_archive::truth::{self, TruthReader};
use clc_clock::Method;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_trace::{Correction, Error, Event, EventNumber, LocationId, Result, Ticks};
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// What the locations of a rank are compared with.
pub(crate) struct Comparison<'a> {
    /// The trace before its correction (or the only one).
    pub opened: &'a TraceHandle,
    /// The same, scanned and matched.
    pub loaded: &'a LocalTrace,
    /// Forward part and whole of the correction of each hosted timeline, if there is one to compare with.
    pub corrections: Option<&'a [(Correction, Correction)]>,
    /// The corrected trace.
    pub corrected: Option<&'a TraceHandle>,
    /// Archive directory whose `truth` holds the true times.
    pub truth: &'a Path,
}

/// What is known before errors can be counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverallErrors {
    /// Errors per phase, for the common offset.
    pub sums: ByPhase<Sum>,
    /// Earliest and latest true time.
    pub span: Option<(i64, i64)>,
    /// Whether the corrected trace has the times that the correction gives here.
    pub same: bool,
}

impl OverallErrors {
    /// Nothing seen yet.
    pub(crate) fn new() -> Self {
        OverallErrors { sums: ByPhase::default(), span: None, same: true }
    }

    /// Adds what was seen elsewhere.
    pub(crate) fn merge(&mut self, other: &OverallErrors) {
        for (phase, more) in other.sums.iter() {
            self.sums[phase].merge(more);
        }
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.same &= other.same;
    }
}

impl Default for OverallErrors {
    fn default() -> Self {
        OverallErrors::new()
    }
}

/// Times of the visited events of the hosted timelines, and of the entry into the region around each.
#[derive(Debug)]
pub(crate) struct VisitedTimes {
    /// `[phase][timeline][visited event]`.
    pub times: ByPhase<Vec<Vec<i64>>>,
    /// The same for the entry into the innermost region.
    pub enters: ByPhase<Vec<Vec<i64>>>,
}

/// The errors of one location in one phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LocationErrors {
    /// All events.
    pub sum: Sum,
    /// Largest magnitude.
    pub largest: u64,
    /// By slice of the run.
    pub slices: Vec<Sum>,
}

/// The errors of one phase on one rank.
#[derive(Debug)]
pub(crate) struct PhaseErrors {
    /// Of all events.
    pub clock: Distribution,
    /// Local intervals.
    pub intervals: IntervalCounts,
    /// Of the timelines against each other.
    pub between: Between,
    /// By hosted location, in order of the definitions' index.
    pub locations: Vec<(usize, LocationErrors)>,
}

/// The same on its way to rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PackedErrors {
    /// Of all events.
    pub clock: PackedDistribution,
    /// Local intervals.
    pub intervals: IntervalCounts,
    /// By location index.
    pub locations: Vec<(usize, LocationErrors)>,
}

impl PhaseErrors {
    /// Nothing yet.
    ///
    /// # Errors
    /// As [`Distribution::new`].
    pub(crate) fn new() -> Result<Self> {
        Ok(PhaseErrors {
            clock: Distribution::new()?,
            intervals: IntervalCounts::default(),
            between: Between::default(),
            locations: Vec::new(),
        })
    }

    /// For another rank.
    pub(crate) fn pack(&self) -> PackedErrors {
        PackedErrors { clock: self.clock.pack(), intervals: self.intervals, locations: self.locations.clone() }
    }

    /// Adds what another rank has counted.
    pub(crate) fn merge(&mut self, other: PackedErrors) {
        self.clock.merge(&other.clock);
        self.intervals.merge(&other.intervals);
        self.locations.extend(other.locations);
    }
}

impl Comparison<'_> {
    /// The phases that can be judged.
    pub(crate) fn phases(&self) -> Vec<CorrectionPhase> {
        let mut phases = vec![CorrectionPhase::Raw, CorrectionPhase::Presync];
        if self.corrections.is_some() {
            phases.push(CorrectionPhase::Forward);
        }
        if self.corrected.is_some() {
            phases.push(CorrectionPhase::Final);
        }
        phases
    }

    /// Windows of `ticks` over the true span of the run.
    pub(crate) fn windows(&self, overall: &OverallErrors, ticks: u64) -> TrueTimeWindows {
        TrueTimeWindows::new(overall.span.unwrap_or((0, 0)), ticks)
    }

    /// First reading: common offsets, span, and whether the corrected trace is the one that the parameters give.
    ///
    /// # Errors
    /// A file cannot be read, or holds other events than the others.
    pub(crate) fn overall(&self) -> Result<OverallErrors> {
        let mut overall = OverallErrors::new();
        let phases = self.phases();
        self.each(|place, _| {
            self.stream(place, &mut |sample| {
                for &phase in &phases {
                    overall.sums[phase].add(sample.times[phase] - sample.times[CorrectionPhase::Truth]);
                }
                let truth = sample.times[CorrectionPhase::Truth];
                overall.span = Some(overall.span.map_or((truth, truth), |(a, b)| (a.min(truth), b.max(truth))));
                overall.same &= sample.same;
                Ok(())
            })
        })?;
        Ok(overall)
    }

    /// Second reading: errors once the common offsets are removed, and the times of the visited events.
    ///
    /// # Errors
    /// As [`Comparison::overall`].
    pub(crate) fn errors(
        &self,
        overall: &OverallErrors,
        phases: &[CorrectionPhase],
        windows: &TrueTimeWindows,
    ) -> Result<(Vec<PhaseErrors>, VisitedTimes)> {
        let program = &self.loaded.program;
        let empty = || ByPhase::new(|_| program.filled(0));
        let mut visited = VisitedTimes { times: empty(), enters: empty() };
        let mut errors: Vec<PhaseErrors> = phases.iter().map(|_| PhaseErrors::new()).collect::<Result<_>>()?;
        let offsets: Vec<i64> = phases.iter().map(|&phase| overall.sums[phase].mean()).collect();
        let (first, last) = overall.span.unwrap_or((0, 0));
        let length = i128::from(last) - i128::from(first) + 1;
        // A microsecond, but at least ten ticks.
        let long = (self.opened.definitions.clock.resolution / 1_000_000).max(10) as i64;
        // Of the timeline whose locations are being read.
        let mut whose = None;
        let mut averages = vec![TimelineErrors::default(); phases.len()];
        self.each(|(timeline, number), location| {
            if whose.replace(timeline).is_some_and(|before| before != timeline) {
                finish(&mut errors, &mut averages);
            }
            let sync = &program.timelines[timeline];
            let mut next = (0..sync.len()).filter(|&event| sync.location(event) as usize == number).peekable();
            let fresh = || LocationErrors { sum: Sum::default(), largest: 0, slices: vec![Sum::default(); SLICES] };
            let mut own: Vec<LocationErrors> = phases.iter().map(|_| fresh()).collect();
            let mut open: Vec<ByPhase<i64>> = Vec::new();
            let mut before: Option<ByPhase<i64>> = None;
            self.stream((timeline, number), &mut |sample| {
                let truth = sample.times[CorrectionPhase::Truth];
                let slice = ((i128::from(truth) - i128::from(first)) * SLICES as i128 / length) as usize;
                let window = windows.of(truth);
                for (((&phase, own), averages), (errors, offset)) in
                    phases.iter().zip(&mut own).zip(&mut averages).zip(errors.iter_mut().zip(&offsets))
                {
                    let error = sample.times[phase] - truth - offset;
                    errors.clock.add(error);
                    own.sum.add(error);
                    averages.add(window, error);
                    own.largest = own.largest.max(error.unsigned_abs());
                    own.slices[slice.min(SLICES - 1)].add(error);
                    if let Some(before) = before {
                        errors.intervals.add(
                            truth - before[CorrectionPhase::Truth],
                            sample.times[phase] - before[phase],
                            long,
                        );
                    }
                }
                before = Some(sample.times);
                match sample.event {
                    Event::Enter(_) => open.push(sample.times),
                    Event::Leave(_) => {
                        open.pop();
                    }
                    _ => {}
                }
                if let Some(event) = next.next_if(|&event| sync.number(event) == sample.number) {
                    let enter = open.last().unwrap_or(&sample.times);
                    for phase in CorrectionPhase::ALL {
                        visited.times[phase][timeline][event] = sample.times[phase];
                        visited.enters[phase][timeline][event] = enter[phase];
                    }
                }
                Ok(())
            })?;
            for (errors, own) in errors.iter_mut().zip(own) {
                errors.locations.push((location.index, own));
            }
            Ok(())
        })?;
        finish(&mut errors, &mut averages);
        Ok((errors, visited))
    }

    /// Calls `visit` with (timeline, location number) and location of every hosted location.
    fn each(&self, mut visit: impl FnMut((LocalTimeline, usize), &LoadedLocation) -> Result<()>) -> Result<()> {
        for (timeline, locations) in (0..).map(LocalTimeline).zip(&self.loaded.locations) {
            for (number, location) in locations.iter().enumerate() {
                visit((timeline, number), location)?;
            }
        }
        Ok(())
    }

    /// Streams one location: all its times side by side.
    fn stream(
        &self,
        (timeline, number): (LocalTimeline, usize),
        visit: &mut dyn FnMut(&ComparedEvent) -> Result<()>,
    ) -> Result<()> {
        let archive = &self.opened.archive;
        let location = &self.loaded.locations[timeline][number];
        let id = self.opened.definitions.locations[location.index].id;
        let path = truth::path(self.truth, id);
        let mut truth = TruthReader::open(&path)?;
        check_truth(&truth, id, self.opened.definitions.clock.resolution).map_err(|e| e.in_file(&path))?;
        let written = self.corrected.map(|corrected| CorrectedEvents::read(corrected, id)).transpose()?;
        let mut kinds = EventKinds::default();
        let mut clock = self.loaded.clock(timeline, number).cursor();
        let mut cursors = self.corrections.map(|list| (list[timeline].0.cursor(), list[timeline].1.cursor()));
        let local = archive.local_definitions(id)?;
        archive.scan_with(id, &local, |number, raw, event| {
            let true_time = truth.next_time()?.ok_or_else(|| {
                Error::new(
                    "the truth has fewer times than the location has \
                    events",
                )
                .in_file(&path)
                .at_location(id)
            })?;
            let mut sample = ComparedEvent { number, event, times: ByPhase::new(|_| raw as i64), same: true };
            sample.times[CorrectionPhase::Truth] = true_time.0;
            let at = clock.position(number, raw);
            sample.times[CorrectionPhase::Presync] = at.time.0;
            kinds.add(&event);
            if let Some(written) = &written {
                let time = written.times.get(number.preceding() as usize);
                sample.times[CorrectionPhase::Final] =
                    *time.ok_or_else(|| Error::new("the corrected trace has fewer events").at_location(id))?;
            }
            if let Some((forward, whole)) = &mut cursors {
                sample.times[CorrectionPhase::Forward] = forward.map(at).0;
                sample.same = whole.map(at).0 == sample.times[CorrectionPhase::Final];
            }
            visit(&sample)
        })?;
        if truth.next_time()?.is_some() {
            return Err(Error::new(
                "the truth has more times than the location has \
                events",
            )
            .in_file(&path)
            .at_location(id));
        }
        let Some(written) = written else { return Ok(()) };
        if written.times.len() as u64 != location.summary.events {
            return Err(Error::new("the corrected trace has more events than the original").at_location(id));
        }
        if written.kinds.digest() != kinds.digest() {
            return Err(Error::new("the corrected trace has other events than the one with the truth")
                .at_location(id)
                .hint("--truth needs the trace that it was made from"));
        }
        Ok(())
    }
}

/// Closes the averages of a timeline.
fn finish(errors: &mut [PhaseErrors], averages: &mut [TimelineErrors]) {
    for (errors, averages) in errors.iter_mut().zip(averages) {
        errors.between.timeline(std::mem::take(averages));
    }
}

/// One event, with its times in all phases.
struct ComparedEvent {
    number: EventNumber,
    event: Event,
    times: ByPhase<i64>,
    /// Whether the written time is the one that the correction gives.
    same: bool,
}

fn check_truth(truth: &TruthReader, id: LocationId, resolution: u64) -> Result<()> {
    if truth.location() != id {
        return Err(Error::new(format!("the truth file belongs to location {}, not {id}", truth.location())));
    }
    if truth.resolution() != resolution {
        return Err(Error::new(format!(
            "the truth has {} ticks per second, but the trace has {resolution}",
            truth.resolution()
        )));
    }
    Ok(())
}

/// What kinds of events a location has, in their order: two traces with different ones are not of the same run.
#[derive(Default)]
struct EventKinds(DefaultHasher);

impl EventKinds {
    fn add(&mut self, event: &Event) {
        std::mem::discriminant(event).hash(&mut self.0);
    }

    fn digest(&self) -> u64 {
        self.0.finish()
    }
}

/// A location of the corrected trace: the times of its events as readers see them, and what events they are.
struct CorrectedEvents {
    times: Vec<i64>,
    kinds: EventKinds,
}

impl CorrectedEvents {
    fn read(corrected: &TraceHandle, id: LocationId) -> Result<CorrectedEvents> {
        let archive = &corrected.archive;
        if !corrected.definitions.locations.iter().any(|location| location.id == id) {
            return Err(Error::new("this location is missing from the corrected trace").at_location(id));
        }
        let local = archive.local_definitions(id)?;
        let clock = Method::Linear
            .clock(&local.clock_offsets)
            .map_err(|error| error.in_file(&archive.local_definition_path(id)).at_location(id))?;
        let mut written = CorrectedEvents { times: Vec::new(), kinds: EventKinds::default() };
        let mut cursor = clock.cursor();
        archive.scan_with(id, &local, |_, raw, event| {
            written.times.push(cursor.map(Ticks(raw as i64)).0);
            written.kinds.add(&event);
            Ok(())
        })?;
        Ok(written)
    }
}
