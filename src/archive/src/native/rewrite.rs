//! Writing a native trace again with other times.

use super::event_file::Events;
use super::files::NativeTrace;
use super::records::NativeRecord;
use super::write::{NativeWriter, replace_offsets};
use crate::{TimeMap, copy};
use clc_trace::{ClockOffset, ClockProperties, Error, EventNumber, LocationId, Result};
use std::path::Path;

impl NativeTrace {
    /// Writes the event file of a location into `target` (the directory of another trace), with every time mapped and the same clock
    /// offsets, in the version of the format that it has. Times must not decrease.
    ///
    /// # Errors
    /// The event file is missing or damaged, the map fails or runs backwards, the target cannot be written.
    pub(crate) fn rewrite_events(&self, location: LocationId, target: &Path, map: &mut impl TimeMap) -> Result<()> {
        self.with_events(location, |events| {
            let target = NativeWriter::within(target, self.resolution());
            let mut writer = target.events_as(location, events.version())?;
            let offsets = events.clock_offsets()?;
            let mut last = 0;
            let mut batch = EventBatch::empty();
            while batch.read(events)? {
                batch.map(map)?;
                for ((number, &time), record) in batch.first.and_following().zip(&batch.times).zip(&batch.records) {
                    if time < last {
                        return Err(Error::new(format!(
                            "the corrected time {time} is earlier than the preceding one, \
                            {last}; this is a bug"
                        ))
                        .at_event(number));
                    }
                    last = time;
                    writer.record(time, record)?;
                }
            }
            writer.finish(&offsets).map(|_| ())
        })
    }

    /// Maps the times of a location like [`NativeTrace::rewrite_events`], without writing anything.
    ///
    /// # Errors
    /// The event file is missing or damaged, the map fails.
    pub(crate) fn map_events(&self, location: LocationId, map: &mut impl TimeMap) -> Result<()> {
        self.with_events(location, |events| {
            let mut batch = EventBatch::empty();
            while batch.read(events)? {
                batch.map(map)?;
            }
            Ok(())
        })
    }

    /// Copies the event file of a location into `target` byte for byte.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub(crate) fn copy_events(&self, location: LocationId, target: &Path) -> Result<()> {
        copy(&self.event_path(location), &self.at(target).event_path(location))
    }

    /// Puts `offsets`, in increasing order of time, in the place of the clock offsets of a location whose event file is in `target` already.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub(crate) fn replace_clock_offsets(
        &self,
        location: LocationId,
        target: &Path,
        offsets: &[ClockOffset],
    ) -> Result<()> {
        replace_offsets(&self.at(target).event_path(location), offsets)
    }

    /// Writes the definitions into `target`, with the clock properties `clock` in the place of the old ones.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub(crate) fn rewrite_definitions(&self, target: &Path, clock: Option<&ClockProperties>) -> Result<()> {
        let Some(clock) = clock else { return copy(&self.definition_path(), &self.at(target).definition_path()) };
        let mut definitions = self.read_definitions()?;
        definitions.clock = *clock;
        NativeWriter::within(target, clock.resolution).finish(self.header(), &definitions)
    }
}

/// Most events of an [`EventBatch`]. Chosen by hand: larger batches only take more memory, smaller ones map few timestamps at once.
const MOST: usize = 1024;

/// Events that follow each other. A `BufferFlush` is the last of its batch: its second time is mapped before the next event's.
struct EventBatch {
    /// Number of the first one.
    first: EventNumber,
    times: Vec<u64>,
    records: Vec<NativeRecord>,
}

impl EventBatch {
    fn empty() -> EventBatch {
        EventBatch { first: EventNumber::FIRST, times: Vec::new(), records: Vec::new() }
    }

    /// Reads the next events; `false` if there are none.
    fn read(&mut self, events: &mut Events<'_>) -> Result<bool> {
        self.times.clear();
        self.records.clear();
        while self.times.len() < MOST
            && let Some((number, time, record)) = events.next()?
        {
            if self.times.is_empty() {
                self.first = number;
            }
            let last = matches!(record, NativeRecord::BufferFlush(_));
            self.times.push(time);
            self.records.push(record);
            if last {
                break;
            }
        }
        Ok(!self.times.is_empty())
    }

    /// Replaces the times.
    fn map(&mut self, map: &mut impl TimeMap) -> Result<()> {
        map.events(self.first, &mut self.times)?;
        if let Some(NativeRecord::BufferFlush(stop)) = self.records.last_mut() {
            let number = self.first + (self.times.len() as u64 - 1);
            *stop = map.recorded_stop(number, *stop);
        }
        Ok(())
    }
}
