//! Streaming the event files a second time, with every timestamp mapped.

use crate::pipeline::displacement::{ChangedIntervals, DisplacementCounts, LocationSum};
use crate::pipeline::local_trace::{LoadedLocation, LocalTrace};
use crate::pipeline::location_clock::{CorrectedCursor, LocationClock, map_global};
use crate::pipeline::open::TraceHandle;
use crate::report::Warnings;
use clc_archive::{MarkerScope, Sibling, SiblingKind, TimeMap, copy};
use clc_engine::comm::{ReduceOp, Transport, agree, all_gather_values};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::sync::SyncTimeline;
use clc_engine::matching::visited_times::{TimelineTimes, VisitedTimes};
use clc_engine::replay::amortise::Corrected;
use clc_trace::format::plural;
use clc_trace::progress::{BLOCK, Progress};
use clc_trace::workers::Advance;
use clc_trace::{ClockProperties, Correction, Error, EventNumber, LocationId, Result};
use std::collections::HashMap;
use std::path::Path;

/// What came out of writing.
#[derive(Debug)]
pub(crate) struct WrittenEvents {
    /// Visited events whose time was not written as the correction has it.
    pub deviating: u64,
    /// Displacement of the hosted locations' events.
    pub displacement: DisplacementCounts,
    /// The same by location (index into the definitions).
    pub by_location: Vec<(usize, LocationSum)>,
    /// Earliest and latest written time of the hosted locations, buffer flushes included.
    pub span: Option<(i64, i64)>,
    /// Whether all hosted locations were copied as they are.
    pub unchanged: bool,
}

impl WrittenEvents {
    /// Nothing yet.
    fn nothing() -> WrittenEvents {
        WrittenEvents {
            deviating: 0,
            displacement: DisplacementCounts::default(),
            by_location: Vec::new(),
            span: None,
            unchanged: true,
        }
    }

    /// Together with what was written of the next location.
    fn and(mut self, next: WrittenEvents) -> WrittenEvents {
        self.deviating += next.deviating;
        self.displacement.merge(&next.displacement);
        self.by_location.extend(next.by_location);
        for time in next.span.into_iter().flat_map(|(first, last)| [first, last]) {
            extend(&mut self.span, time);
        }
        self.unchanged &= next.unchanged;
        self
    }

    fn count(&mut self, location: usize, displacement: DisplacementCounts) {
        self.by_location.push((location, displacement.sum()));
        self.displacement = displacement;
    }
}

/// Maps the timestamps of all hosted locations through pre-synchronisation and their corrections and writes their files to `target`;
/// without a target everything is computed and nothing written. Collective over the analysis
/// ranks; a failure is everybody's.
///
/// # Errors
/// Reading or writing fails.
pub(crate) fn write_locations(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    corrected: &Corrected,
    target: Option<&Path>,
    progress: &dyn Progress,
) -> Result<WrittenEvents> {
    progress.phase("write", loaded.events());
    let locations = (0..).map(LocalTimeline).zip(&loaded.locations);
    let places: Vec<(LocalTimeline, usize)> =
        locations.flat_map(|(timeline, list)| (0..list.len()).map(move |number| (timeline, number))).collect();
    let times = corrected.times(&loaded.program);
    let parts = opened.workers.run(places.len(), progress, |job, advance| {
        let (timeline, number) = places[job];
        let (correction, times) = (&corrected.corrections[timeline], times[timeline]);
        let location = &loaded.locations[timeline][number];
        WriteJob { opened, loaded, correction, times, timeline, number: number as u32, location, advance }.run(target)
    });
    progress.finish();
    Ok(agree(transport, parts)?.into_iter().fold(WrittenEvents::nothing(), WrittenEvents::and))
}

/// One location to write.
struct WriteJob<'a> {
    opened: &'a TraceHandle,
    loaded: &'a LocalTrace,
    correction: &'a Correction,
    /// Corrected times of the timeline's visited events.
    times: VisitedTimes<'a>,
    timeline: LocalTimeline,
    number: u32,
    location: &'a LoadedLocation,
    advance: Advance<'a>,
}

impl WriteJob<'_> {
    fn run(&self, target: Option<&Path>) -> Result<WrittenEvents> {
        let mut written = WrittenEvents::nothing();
        let archive = &self.opened.archive;
        let id = self.opened.definitions.locations[self.location.index].id;
        let place = |error: Error| error.in_file(&archive.event_path(id)).at_location(id);
        let sync = &self.loaded.program.timelines[self.timeline];
        let clock = self.loaded.clock(self.timeline, self.number as usize);
        let unchanged = self.correction.is_identity() && clock.is_identity();
        if unchanged {
            // Byte for byte, whatever the writer of the archive did.
            if let Some(target) = target {
                archive.copy_events(id, target).map_err(place)?;
            }
            written.count(self.location.index, DisplacementCounts::unchanged(self.location.summary.events));
            if let Some((first, last)) = self.location.summary.time_span {
                extend(&mut written.span, first as i64);
                extend(&mut written.span, last as i64);
            }
            (self.advance)(self.location.summary.events);
        } else {
            written.unchanged = false;
            let mut map = TimestampMap {
                clock,
                correction: self.correction,
                cursor: clock.corrected_by(self.correction),
                visited: VisitedCursor::new(sync, self.number, self.times),
                deviating: 0,
                previous: None,
                displacement: DisplacementCounts::default(),
                first: i64::MAX,
                last: i64::MIN,
                counted: 0,
                advance: self.advance,
                lists: Lists::default(),
            };
            match target {
                Some(target) => archive.rewrite_events(id, target, &mut map).map(|_| ()),
                None => archive.map_events(id, &mut map).map(|_| ()),
            }
            .map_err(place)?;
            let TimestampMap { displacement, first, last, counted, deviating, visited, .. } = map;
            written.deviating += deviating + visited.left();
            (self.advance)(counted);
            written.count(self.location.index, displacement);
            if first <= last {
                extend(&mut written.span, first);
                extend(&mut written.span, last);
            }
        }
        if let Some(target) = target {
            archive.rewrite_local_definitions(id, target).map_err(place)?;
            if archive.has_snapshots(id) {
                let mut map = |time: u64| map_global(self.correction, self.loaded.shift, self.number, time);
                archive.rewrite_snapshots(id, target, &mut map).map_err(place)?;
            }
        }
        Ok(written)
    }
}

fn extend(span: &mut Option<(i64, i64)>, time: i64) {
    *span = Some(span.map_or((time, time), |(first, last)| (first.min(time), last.max(time))));
}

/// The complete map of one location's timestamps, with everything that is counted on the way.
struct TimestampMap<'a> {
    clock: LocationClock<'a>,
    correction: &'a Correction,
    cursor: CorrectedCursor<'a>,
    visited: VisitedCursor<'a>,
    deviating: u64,
    previous: Option<(i64, i64)>,
    displacement: DisplacementCounts,
    /// Earliest and latest time written so far.
    first: i64,
    last: i64,
    counted: u64,
    advance: Advance<'a>,
    lists: Lists,
}

/// Times of events that follow each other: as recorded, pre-synchronised, and corrected.
#[derive(Default)]
struct Lists {
    recorded: Vec<i64>,
    before: Vec<i64>,
    after: Vec<i64>,
    changed: ChangedIntervals,
}

/// The visited events of one location, in order.
struct VisitedCursor<'a> {
    sync: &'a SyncTimeline,
    location: u32,
    /// Corrected times of all visited events of the timeline.
    times: VisitedTimes<'a>,
    /// Index of the next one.
    event: usize,
    /// Its number; [`EventNumber::START`] after the last one.
    number: EventNumber,
}

impl<'a> VisitedCursor<'a> {
    fn new(sync: &'a SyncTimeline, location: u32, times: VisitedTimes<'a>) -> Self {
        let mut visited = VisitedCursor { sync, location, times, event: 0, number: EventNumber::START };
        visited.seek();
        visited
    }

    /// Corrected time of the next one.
    #[inline]
    fn expected(&self) -> i64 {
        self.times.at(self.event as u32)
    }

    #[inline]
    fn go_on(&mut self) {
        self.event += 1;
        self.seek();
    }

    /// Skips the events of other locations.
    #[inline]
    fn seek(&mut self) {
        while self.event < self.sync.len() && self.sync.location(self.event) != self.location {
            self.event += 1;
        }
        self.number = if self.event < self.sync.len() { self.sync.number(self.event) } else { EventNumber::START };
    }

    /// How many have not come.
    fn left(mut self) -> u64 {
        let mut left = 0;
        while self.number != EventNumber::START {
            left += 1;
            self.go_on();
        }
        left
    }
}

impl TimeMap for TimestampMap<'_> {
    fn event(&mut self, number: EventNumber, time: u64) -> Result<u64> {
        let mut times = [time];
        self.events(number, &mut times)?;
        Ok(times[0])
    }

    /// Step by step for all of them: each step is a short loop.
    fn events(&mut self, first: EventNumber, times: &mut [u64]) -> Result<()> {
        let Lists { recorded, before, after, changed } = &mut self.lists;
        recorded.clear();
        recorded.extend(times.iter().map(|&time| time as i64));
        before.resize(times.len(), 0);
        after.resize(times.len(), 0);
        self.cursor.map_all(first, recorded, before, after);
        while let Some(place) = self.visited.number.0.checked_sub(first.0).filter(|&place| place < times.len() as u64) {
            self.deviating += u64::from(after[place as usize] != self.visited.expected());
            self.visited.go_on();
        }
        self.displacement.events(recorded, before, after, self.previous, changed);
        if let (Some(&before), Some(&after)) = (before.last(), after.last()) {
            self.previous = Some((before, after));
        }
        // One look at all of them; which one it is matters only if there is one.
        if after.iter().fold(0, |all, &after| all | after) < 0 {
            let place = after.iter().position(|&after| after < 0).unwrap_or_default();
            return Err(Error::new("a corrected time is negative; this is a bug").at_event(first + place as u64));
        }
        times.iter_mut().zip(&*after).for_each(|(time, &after)| *time = after as u64);
        // They do not decrease, as who writes them sees to.
        self.first = self.first.min(after.first().copied().unwrap_or(i64::MAX));
        self.last = self.last.max(after.last().copied().unwrap_or(i64::MIN));
        self.counted += times.len() as u64;
        if self.counted >= BLOCK {
            (self.advance)(std::mem::take(&mut self.counted));
        }
        Ok(())
    }

    fn flush_stop(&mut self, number: EventNumber, stop: u64) -> u64 {
        // It may lie beyond the events that follow, so it goes by time alone, and never before its own event.
        let at = self.clock.position(number, stop);
        let after = self.correction.map(at).0.max(self.previous.map_or(0, |(_, after)| after));
        self.last = self.last.max(after);
        after.max(0) as u64
    }
}

/// Where the markers of the archive go: begin and duration of each, in order; `None` without a marker file.
///
/// Marker times are global. One that refers to a location or a process moves with it; the others stay, but for the shift of all
/// times. Collective over the analysis ranks, since each knows its own corrections only.
///
/// # Errors
/// The marker file is damaged, failures of the transport.
pub(crate) fn map_markers(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    corrections: &[Correction],
) -> Result<Option<Vec<(u64, u64)>>> {
    let markers = agree(transport, opened.archive.markers())?;
    let Some(markers) = markers else { return Ok(None) };
    let groups: HashMap<u32, usize> = opened
        .timelines
        .all
        .iter()
        .enumerate()
        .flat_map(|(timeline, t)| t.locations.iter().map(move |&l| (timeline, l)))
        .map(|(timeline, location)| (opened.definitions.locations[location].group.0, timeline))
        .collect();
    let hosted = opened.placement.hosted_by(transport.rank());
    let local = |id: LocationId| loaded.program.locations.iter().position(|list| list.contains(&id));
    // Markers that move with a timeline of this rank: (number, begin, end).
    let mut moved: Vec<(u64, u64, u64)> = Vec::new();
    for (number, marker) in markers.iter().enumerate() {
        let timeline = match marker.scope {
            MarkerScope::Location(id) => local(id),
            MarkerScope::LocationGroup(id) => {
                groups.get(&id).filter(|timeline| hosted.contains(timeline)).map(|timeline| timeline - hosted.start)
            }
            MarkerScope::Global | MarkerScope::Other => None,
        };
        if let Some(timeline) = timeline {
            let map = |time: u64| map_global(&corrections[timeline], loaded.shift, 0, time);
            moved.push((number as u64, map(marker.time), map(marker.time.saturating_add(marker.duration))));
        }
    }
    let shift = loaded.shift.0 as u64;
    let mut times: Vec<(u64, u64)> =
        markers.iter().map(|marker| (marker.time.saturating_add(shift), marker.duration)).collect();
    for (number, begin, end) in all_gather_values(transport, &moved)?.into_iter().flatten() {
        times[number as usize] = (begin, end.saturating_sub(begin));
    }
    Ok(Some(times))
}

/// Writes everything of the archive that belongs to no location: global definitions, markers, thumbnails, the files that lie
/// beside them, and the anchor at last. For one rank only, after all locations are written.
///
/// # Errors
/// Reading or writing fails.
pub(crate) fn write_globals(
    opened: &TraceHandle,
    target: &Path,
    new_span: Option<(i64, i64)>,
    markers: Option<&[(u64, u64)]>,
    warnings: &mut Warnings,
) -> Result<()> {
    let archive = &opened.archive;
    let old = opened.definitions.clock;
    let new = new_clock_properties(&old, new_span);
    archive.rewrite_definitions(target, (new != old).then_some(&new))?;
    if let Some(markers) = markers {
        archive.rewrite_markers(target, markers)?;
    }
    let thumbnails = archive.thumbnails();
    // The samples of a thumbnail are equal slices of the trace: without a time of their own they cannot be moved.
    let stale = thumbnails > 0 && new != old;
    if stale {
        warnings.add(format!(
            "not copied, since they show the trace with its old times: {}",
            plural(u64::from(thumbnails), "thumbnail")
        ));
    } else {
        archive.copy_thumbnails(target)?;
    }
    copy_siblings(&archive.siblings(&opened.definitions)?, target, warnings)?;
    archive.rewrite_anchor(target, stale)
}

/// Copies what lies beside the trace into `target`, where that is not written already.
fn copy_siblings(siblings: &[Sibling], target: &Path, warnings: &mut Warnings) -> Result<()> {
    let others: Vec<&Sibling> = siblings.iter().filter(|sibling| sibling.kind == SiblingKind::Other).collect();
    if let Some(first) = others.first() {
        warnings.add(format!(
            "{} in the directory of the trace that are neither files nor directories (links, pipes) were not copied; the first is {}",
            others.len(),
            first.relative.display()
        ));
    }
    for sibling in siblings {
        let to = target.join(&sibling.relative);
        match sibling.kind {
            _ if to.exists() => {}
            SiblingKind::File => copy(&sibling.path, &to)?,
            SiblingKind::Directory => {
                std::fs::create_dir(&to).map_err(|error| Error::io(&to, "cannot create the directory", &error))?;
            }
            SiblingKind::Other => {}
        }
    }
    Ok(())
}

/// Clock properties for timestamps within `span`.
pub(crate) fn new_clock_properties(old: &ClockProperties, span: Option<(i64, i64)>) -> ClockProperties {
    let Some((first, last)) = span else { return *old };
    let moved = i128::from(first) - i128::from(old.global_offset);
    let realtime = old.realtime.and_then(|realtime| {
        let nanoseconds = moved * 1_000_000_000 / i128::from(old.resolution.max(1));
        u64::try_from(i128::from(realtime) + nanoseconds).ok()
    });
    ClockProperties {
        resolution: old.resolution,
        global_offset: first.max(0) as u64,
        trace_length: (last - first).max(0) as u64,
        realtime,
    }
}

/// The earliest and latest written time of the whole trace. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn whole_span(transport: &mut dyn Transport, span: Option<(i64, i64)>) -> Result<Option<(i64, i64)>> {
    let mut ends = span.map_or([i64::MAX; 2], |(first, last)| [first, -last]);
    transport.all_reduce(ReduceOp::Min, &mut ends)?;
    Ok((ends[0] != i64::MAX).then_some((ends[0], -ends[1])))
}
