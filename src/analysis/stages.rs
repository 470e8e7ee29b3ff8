//! Times of one event in up to two stages: as a reader of the trace sees it, and corrected.

use crate::pipeline::local_trace::{LoadedLocation, LocalTrace};
use crate::pipeline::location_clock::LocationCursor;
use crate::pipeline::open::TraceHandle;
use clc_clock::Clock;
use clc_engine::comm::{ReduceOp, Transport};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_execution::windows::Windows;
use clc_trace::workers::shares;
use clc_trace::{Correction, CorrectionCursor, Error, EventNumber, Result, Ticks};
use std::ops::Range;

/// First and last time by stage.
pub(super) type Spans = Vec<(i64, i64)>;

/// The hosted part of a trace with the clocks of both stages.
pub(super) struct StagedTrace<'a> {
    /// The trace.
    pub opened: &'a TraceHandle,
    /// Its hosted part.
    pub loaded: &'a LocalTrace,
    corrections: Option<&'a [Correction]>,
    /// What a reader of the trace sees, by timeline and location; empty if that is what was loaded.
    readers: Vec<Vec<Clock>>,
}

impl<'a> StagedTrace<'a> {
    /// Two stages with `corrections`, else one.
    ///
    /// # Errors
    /// Recorded clock offsets that cannot be used.
    pub(super) fn new(
        opened: &'a TraceHandle,
        loaded: &'a LocalTrace,
        corrections: Option<&'a [Correction]>,
    ) -> Result<StagedTrace<'a>> {
        let clock = |location: &LoadedLocation| {
            let id = opened.definitions.locations[location.index].id;
            let place = |error: Error| error.in_file(&opened.archive.local_definition_path(id)).at_location(id);
            location.readers_clock().map_err(place)
        };
        let readers = match corrections {
            Some(_) => loaded.locations.iter().map(|list| list.iter().map(clock).collect()).collect::<Result<_>>()?,
            None => Vec::new(),
        };
        Ok(StagedTrace { opened, loaded, corrections, readers })
    }

    /// How many stages there are.
    pub(super) fn count(&self) -> usize {
        1 + usize::from(self.corrections.is_some())
    }

    /// Whether a hosted timeline is that of a process, or of a location of one.
    pub(super) fn is_process(&self, timeline: LocalTimeline) -> bool {
        let program = &self.loaded.program;
        self.opened.timelines.all[program.process_of(program.number(timeline))].process.is_some()
    }

    /// The hosted shared timelines in as many parts as there are threads, with about as many events each.
    pub(super) fn shares(&self) -> Vec<Range<usize>> {
        let loaded = self.loaded;
        let events = |process: LocalTimeline| -> u64 {
            let locations = loaded.locations_of(process).into_iter();
            locations.map(|(timeline, number)| loaded.locations[timeline][number].summary.events).sum()
        };
        let events: Vec<u64> = loaded.program.shared_timelines().map(events).collect();
        shares(&events, self.opened.workers.threads())
    }

    /// For the events of location `number` of a hosted timeline, in order.
    pub(super) fn times(&self, timeline: LocalTimeline, number: usize) -> StageMapper<'_> {
        StageMapper {
            loaded: self.loaded.clock(timeline, number).cursor(),
            corrected: self
                .corrections
                .map(|corrections| (self.readers[timeline][number].cursor(), corrections[timeline].cursor())),
            last: None,
        }
    }

    /// First and last event of a hosted location by stage; `None` without events.
    pub(super) fn span(&self, timeline: LocalTimeline, number: usize) -> Option<Spans> {
        let summary = &self.loaded.locations[timeline][number].summary;
        let (first, last) = summary.time_span?;
        let mut times = self.times(timeline, number);
        let first = times.map(EventNumber::FIRST, first);
        let last = times.map(EventNumber(summary.events), last);
        Some((0..self.count()).map(|stage| (first[stage], last[stage].max(first[stage]))).collect())
    }

    /// First and last event of a process by stage; `process` is its shared timeline.
    pub(super) fn process_span(&self, process: LocalTimeline) -> Option<Spans> {
        let places = self.loaded.locations_of(process).into_iter();
        let spans = places.filter_map(|(timeline, number)| self.span(timeline, number));
        spans.reduce(|whole, span| whole.into_iter().zip(span).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))).collect())
    }

    /// `count` windows over the events of all processes, by stage; fewer if the trace has fewer ticks, so that none is empty. Collective
    /// over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(super) fn windows(&self, transport: &mut dyn Transport, count: usize) -> Result<Vec<Windows>> {
        // The latest is negated: one minimum for both.
        let mut ends = vec![i64::MAX; 2 * self.count()];
        for process in self.loaded.program.shared_timelines().filter(|&timeline| self.is_process(timeline)) {
            for (ends, (first, last)) in ends.chunks_exact_mut(2).zip(self.process_span(process).unwrap_or_default()) {
                ends[0] = ends[0].min(first);
                ends[1] = ends[1].min(-last);
            }
        }
        transport.all_reduce(ReduceOp::Min, &mut ends)?;
        let windows = |ends: &[i64]| match ends[0] {
            i64::MAX => Windows::new(0, 0, 1),
            first => Windows::new(first, -ends[1], count),
        };
        let mut windows: Vec<Windows> = ends.chunks_exact(2).map(windows).collect();
        // As many in all stages.
        let shortest = windows.iter().map(Windows::length).min().unwrap_or(0);
        let count = usize::try_from(shortest).map_or(count, |ticks| count.min(ticks)).max(1);
        windows.iter_mut().for_each(|windows| windows.count = count);
        Ok(windows)
    }
}

/// Maps the times of one location.
pub(super) struct StageMapper<'a> {
    loaded: LocationCursor<'a>,
    corrected: Option<(clc_clock::ClockCursor<'a>, CorrectionCursor<'a>)>,
    /// The event asked for last: several ask for the same one.
    last: Option<(EventNumber, [i64; 2])>,
}

impl StageMapper<'_> {
    /// Before and after of event `number`, recorded at `raw`, which comes no earlier than the one asked for last. Both are the same if
    /// there is one stage only.
    #[inline]
    pub(super) fn map(&mut self, number: EventNumber, raw: u64) -> [i64; 2] {
        if let Some((last, times)) = self.last
            && last == number
        {
            return times;
        }
        let at = self.loaded.position(number, raw);
        let times = match &mut self.corrected {
            None => [at.time.0; 2],
            Some((reader, correction)) => [reader.map(Ticks(raw as i64)).0, correction.map(at).0],
        };
        self.last = Some((number, times));
        times
    }
}
