//! Which times of a trace are exported: pre-synchronised ones, or those that a correction gives.

use super::ExportWindow;
use crate::pipeline::load::LocalTrace;
use crate::pipeline::location_clock::CorrectedCursor;
use clc_engine::comm::{ReduceOp, Transport};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::visited_times::VisitedTimes;
use clc_engine::replay::amortise::Corrected;
use clc_trace::format::duration;
use clc_trace::{Correction, Error, EventNumber, Result, Ticks};

/// The times of the hosted part of a trace.
pub(crate) struct ExportedTimes<'a> {
    /// The trace.
    pub loaded: &'a LocalTrace,
    corrected: Option<&'a Corrected>,
    /// Without a correction.
    identity: Correction,
    /// First and last event of the whole trace; 0 without events.
    span: (i64, i64),
}

impl<'a> ExportedTimes<'a> {
    /// Those of `loaded`, which are pre-synchronised, or those that `corrected` makes of them. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn new(
        transport: &mut dyn Transport,
        loaded: &'a LocalTrace,
        corrected: Option<&'a Corrected>,
    ) -> Result<ExportedTimes<'a>> {
        let span = loaded.span.map_or((0, 0), |(first, last)| (first.0, last.0));
        let mut times = ExportedTimes { loaded, corrected, identity: Correction::identity(), span };
        if corrected.is_none() {
            return Ok(times);
        }
        // The latest is negated: one minimum for both.
        let mut ends = [i64::MAX; 2];
        for (timeline, locations) in (0..).map(LocalTimeline).zip(&loaded.locations) {
            for (number, location) in locations.iter().enumerate() {
                if let Some((first, last)) = location.summary.time_span {
                    let mut mapper = times.location(timeline, number);
                    ends[0] = ends[0].min(mapper.map(EventNumber::FIRST, first));
                    ends[1] = ends[1].min(-mapper.map(EventNumber(location.summary.events), last));
                }
            }
        }
        transport.all_reduce(ReduceOp::Min, &mut ends)?;
        times.span = if ends[0] == i64::MAX { (0, 0) } else { (ends[0], -ends[1]) };
        Ok(times)
    }

    /// From and to are counted from the first event; the ends of the trace where they are not given. A second has `resolution` ticks.
    ///
    /// # Errors
    /// The window lies outside the trace.
    pub(crate) fn window(&self, from: Option<Ticks>, to: Option<Ticks>, resolution: u64) -> Result<ExportWindow> {
        let (first, last) = self.span;
        let window = ExportWindow {
            from: from.map_or(first, |from| first.saturating_add(from.0)),
            to: to.map_or(last, |to| first.saturating_add(to.0)),
        };
        if window.from > last || window.to < first {
            let length = duration((Ticks(last) - Ticks(first)).seconds(resolution));
            return Err(Error::new(format!(
                "--window is outside the trace, which ends {length} after its first event"
            )));
        }
        Ok(window)
    }

    /// Time of the first event.
    pub(crate) fn origin(&self) -> Ticks {
        Ticks(self.span.0)
    }

    /// For the events of a hosted location, in order.
    pub(crate) fn location(&self, timeline: LocalTimeline, number: usize) -> ExportedClock<'_> {
        let correction = self.corrected.map_or(&self.identity, |corrected| &corrected.corrections[timeline]);
        ExportedClock(self.loaded.clock(timeline, number).corrected_by(correction))
    }

    /// Times of all visited events.
    pub(crate) fn visited(&self) -> Vec<VisitedTimes<'a>> {
        let program = &self.loaded.program;
        match self.corrected {
            Some(corrected) => corrected.times(program),
            None => program.times(),
        }
    }
}

/// The times of one location.
pub(crate) struct ExportedClock<'a>(CorrectedCursor<'a>);

impl ExportedClock<'_> {
    /// Event `number`, recorded no earlier than the one asked for last.
    pub(crate) fn map(&mut self, number: EventNumber, recorded: u64) -> i64 {
        self.0.map(number, recorded).1
    }
}
