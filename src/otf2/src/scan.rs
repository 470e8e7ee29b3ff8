//! Streaming through the events of a location.

use crate::ScanSummary;
use crate::bytes::Reader;
use crate::chunks::{FileKind, Record, Records};
use crate::decode::{decode, synchronises};
use crate::files::Otf2Archive;
use crate::local::LocalDefinitions;
use clc_trace::{Event, LocationId, RegionId, Result};

/// Types of records.
const ENTER: u8 = 12;
const LEAVE: u8 = 13;
const MPI_SEND: u8 = 14;
const MPI_ISEND: u8 = 15;

/// Most bytes of the field of an enter.
const ENTERED: usize = 8;

impl Otf2Archive {
    /// Calls `visit` with number (from 1), raw local time and contents of every event of a location, in order.
    ///
    /// # Errors
    /// The file is missing or damaged; whatever `visit` returns.
    pub fn scan_with(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        mut visit: impl FnMut(u64, u64, Event) -> Result<()>,
    ) -> Result<ScanSummary> {
        self.scan_records(location, local, |record, event| visit(record.number, record.time, event))
    }

    /// As [`Otf2Archive::scan_with`], but events that synchronise nobody are all [`Event::Other`]. The summary says whether a message was sent in one
    /// of the `regions` (ascending).
    ///
    /// # Errors
    /// As [`Otf2Archive::scan_with`].
    #[inline]
    pub fn scan_synchronisation(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        regions: &[RegionId],
        mut visit: impl FnMut(u64, u64, Event) -> Result<()>,
    ) -> Result<ScanSummary> {
        // The field of the last enter, and where no region was left since.
        let (mut entered, mut sent_within) = ([0; ENTERED], false);
        let summary = self.scan(location, local, |record| {
            let event = if synchronises(record.kind) { decode(&record, local)? } else { Event::Other };
            match record.kind {
                ENTER if record.payload.len() <= ENTERED => {
                    entered = [0; ENTERED];
                    entered[..record.payload.len()].copy_from_slice(record.payload);
                }
                ENTER | LEAVE => entered = [0xFF; ENTERED],
                MPI_SEND | MPI_ISEND if !sent_within && !regions.is_empty() => {
                    let region = Reader::new(&entered, record.order).u32().unwrap_or(u32::MAX);
                    sent_within = regions.binary_search(&RegionId(local.regions.map(region))).is_ok();
                }
                _ => {}
            }
            visit(record.number, record.time, event)
        });
        summary.map(|summary| ScanSummary { sent_within, ..summary })
    }

    /// As [`Otf2Archive::scan_with`], with the record itself.
    #[inline]
    pub(super) fn scan_records(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        mut visit: impl FnMut(&Record<'_>, Event) -> Result<()>,
    ) -> Result<ScanSummary> {
        self.scan(location, local, |record| {
            let event = decode(&record, local)?;
            visit(&record, event)
        })
    }

    /// Calls `visit` with number and contents of the events from chunk `chunk` on, before which there are `before` events, as long as it
    /// returns true.
    ///
    /// # Errors
    /// As [`Otf2Archive::scan_with`].
    pub fn scan_from(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        (chunk, before): (usize, u64),
        mut visit: impl FnMut(u64, Event) -> bool,
    ) -> Result<()> {
        let (path, size) = (self.event_path(location), self.anchor().event_chunk);
        let mut run = || -> Result<()> {
            let mut records = Records::open_at(&path, FileKind::Events, size, chunk, before)?;
            while let Some(record) = records.next()? {
                if !visit(record.number, decode(&record, local)?) {
                    break;
                }
            }
            Ok(())
        };
        run().map_err(|error| error.in_file(&path).at_location(location))
    }

    #[inline(always)]
    fn scan(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        mut visit: impl FnMut(Record<'_>) -> Result<()>,
    ) -> Result<ScanSummary> {
        let path = self.event_path(location);
        let mut summary = ScanSummary {
            events: 0,
            time_span: None,
            by_type: Box::new([0; 256]),
            chunks: Vec::new(),
            sent_within: false,
            warnings: local.warnings.clone(),
        };
        let mut run = || -> Result<()> {
            let mut records = Records::open(&path, FileKind::Events, self.anchor().event_chunk)?;
            let (mut first, mut last, mut events) = (0, 0, 0);
            while let Some(record) = records.next()? {
                summary.by_type[usize::from(record.kind)] += 1;
                let (number, time) = (record.number, record.time);
                visit(record).map_err(|error| error.at_event(number))?;
                if events == 0 {
                    first = time;
                }
                (last, events) = (time, number);
            }
            summary.events = events;
            summary.chunks = records.chunk_starts().to_vec();
            summary.time_span = (events > 0).then_some((first, last));
            if records.miscounted() > 0 {
                summary.warnings.push("the event counters in the chunk headers of event files are wrong".into());
            }
            Ok(())
        };
        run().map_err(|error| error.in_file(&path).at_location(location))?;
        Ok(summary)
    }
}
