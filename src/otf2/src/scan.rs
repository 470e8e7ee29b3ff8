//! Streaming through the events of a location.

use crate::ScanSummary;
use crate::chunks::{FileKind, Record, RecordReader};
use crate::decode::decode;
use crate::definitions::{TYPE_LOCATION, TYPES_UNSIGNED};
use crate::events::attributes;
use crate::fields::Typed;
use crate::files::Otf2Archive;
use crate::local::LocalDefinitions;
use crate::source::Source;
use clc_trace::{AcceleratorAttributes, AcceleratorReference, AttributeId, Event, EventNumber, LocationId, Result};

/// What is known before the first record.
pub(crate) fn empty(local: &LocalDefinitions) -> ScanSummary {
    ScanSummary {
        events: 0,
        time_span: None,
        by_type: Box::new([0; 256]),
        chunks: Vec::new(),
        sent_within: false,
        warnings: local.warnings.clone(),
    }
}

/// What is known when all records have been read.
pub(crate) fn finish<S: Source>(summary: &mut ScanSummary, records: &RecordReader<S>) {
    summary.events = records.number();
    summary.chunks = records.chunk_starts().to_vec();
    if records.miscounted() > 0 {
        summary.warnings.push("the event counters in the chunk headers of event files are wrong".into());
    }
}

/// What the attributes among `references` before a record refer to.
#[inline]
pub(crate) fn reference_of(
    record: &Record<'_>,
    local: &LocalDefinitions,
    references: &AcceleratorAttributes,
) -> Result<AcceleratorReference> {
    if record.attributes == 0 || references.is_empty() {
        return Ok(AcceleratorReference::default());
    }
    let list = attributes(record)?;
    let of = |known: &[AttributeId], is_type: fn(u8) -> bool| {
        let refers = |&&(id, value): &&(u32, Typed)| {
            is_type(value.kind) && known.binary_search(&AttributeId(local.attributes.map(id))).is_ok()
        };
        list.iter().find(refers).map(|(_, value)| value.bits)
    };
    let stream = of(&references.streams, |kind| kind == TYPE_LOCATION);
    let stream = stream.map(|id| LocationId(local.locations.get(&id).copied().unwrap_or(id)));
    Ok(AcceleratorReference { stream, event: of(&references.events, |kind| TYPES_UNSIGNED.contains(&kind)) })
}

impl Otf2Archive {
    /// Calls `visit` with number, raw local time and contents of every event of a location, in order.
    ///
    /// # Errors
    /// The file is missing or damaged; whatever `visit` returns.
    pub fn scan_with(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        mut visit: impl FnMut(EventNumber, u64, Event) -> Result<()>,
    ) -> Result<ScanSummary> {
        self.scan_records(location, local, |record, event| visit(record.event(), record.time, event))
    }

    /// As [`Otf2Archive::scan_with`], with what an event refers to by the attributes `references` ([`clc_trace::Definitions::accelerator_attributes`]).
    ///
    /// # Errors
    /// As [`Otf2Archive::scan_with`].
    pub fn scan_with_references(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        references: &AcceleratorAttributes,
        mut visit: impl FnMut(EventNumber, u64, Event, AcceleratorReference) -> Result<()>,
    ) -> Result<ScanSummary> {
        self.scan_records(location, local, |record, event| {
            let refers = reference_of(record, local, references)?;
            visit(record.event(), record.time, event, refers)
        })
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
        mut visit: impl FnMut(EventNumber, Event) -> bool,
    ) -> Result<()> {
        let (path, size) = (self.event_path(location), self.anchor().event_chunk);
        let mut run = || -> Result<()> {
            let mut records = RecordReader::open_at(&path, FileKind::Events, size, chunk, before)?;
            while let Some(record) = records.next()? {
                if !visit(record.event(), decode(&record, local)?) {
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
        let mut summary = empty(local);
        let mut run = || -> Result<()> {
            let mut records = RecordReader::open(&path, FileKind::Events, self.anchor().event_chunk)?;
            let (mut first, mut last, mut events) = (0, 0, 0);
            while let Some(record) = records.next()? {
                summary.by_type[usize::from(record.kind)] += 1;
                let (number, time) = (record.event(), record.time);
                visit(record).map_err(|error| error.at_event(number))?;
                if events == 0 {
                    first = time;
                }
                (last, events) = (time, events + 1);
            }
            summary.time_span = (events > 0).then_some((first, last));
            finish(&mut summary, &records);
            Ok(())
        };
        run().map_err(|error| error.in_file(&path).at_location(location))?;
        Ok(summary)
    }
}
