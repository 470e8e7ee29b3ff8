//! All events of a location, one after the other, with everything that is recorded of them.

use crate::bytes::Reader;
use crate::chunks::{FileKind, Record, RecordReader};
use crate::definition_record::DefinitionRecord;
use crate::event_record::EventRecord;
use crate::fields::{Field, Typed};
use crate::files::Otf2Archive;
use crate::local::LocalDefinitions;
use crate::mapped::MappedFile;
use crate::source::Blocks;
use clc_trace::{Error, EventNumber, LocationId, Result};
use std::path::PathBuf;

/// An event as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Its number in its location.
    pub number: EventNumber,
    /// When, in ticks of the location's own clock.
    pub time: u64,
    /// What, with global ids.
    pub record: EventRecord,
    /// Its attributes: the id of each (of the location) and its value.
    pub attributes: Vec<(u32, Typed)>,
}

/// Iterates over the events of a location, from [`Otf2Archive::events`]. After an error there is nothing more.
#[derive(Debug)]
pub struct Events {
    records: RecordReader<Blocks>,
    local: LocalDefinitions,
    location: LocationId,
    path: PathBuf,
    failed: bool,
}

impl Otf2Archive {
    /// All events of a location, in order.
    ///
    /// # Errors
    /// The event file is missing, or the local definitions are damaged. Damage of the event file itself is found on the way.
    pub fn events(&self, location: LocationId) -> Result<Events> {
        let (path, local) = (self.event_path(location), self.local_definitions_in_full(location)?);
        let records = RecordReader::open(&path, FileKind::Events, self.anchor().event_chunk)
            .map_err(|error| error.in_file(&path).at_location(location))?;
        Ok(Events { records, local, location, path, failed: false })
    }

    /// All global definitions as they stand in the file, in its order.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn definition_records(&self) -> Result<Vec<DefinitionRecord>> {
        let path = self.definition_path();
        let bytes = MappedFile::open(&path)?;
        let mut records = RecordReader::new(&bytes, FileKind::Definitions, self.anchor().definition_chunk);
        let mut all = Vec::new();
        let mut run = || -> Result<()> {
            while let Some(record) = records.next()? {
                let mut reader = Reader::new(record.payload, record.order);
                let read = DefinitionRecord::read(record.kind, &mut reader).map_err(|error| {
                    Error::damaged(format!("definition record {} (type {}): {error}", record.number, record.kind))
                })?;
                all.push(read);
            }
            Ok(())
        };
        run().map_err(|error| error.in_file(&path))?;
        Ok(all)
    }
}

impl Events {
    /// What the location calls the things that events refer to, and its clock offsets.
    pub fn local_definitions(&self) -> &LocalDefinitions {
        &self.local
    }

    fn read(&mut self) -> Result<Option<RecordedEvent>> {
        let Some(record) = self.records.next()? else { return Ok(None) };
        let number = record.event();
        let read = || -> Result<RecordedEvent> {
            let mut reader = Reader::new(record.payload, record.order);
            Ok(RecordedEvent {
                number,
                time: record.time,
                record: EventRecord::read(record.kind, &mut reader)?.globalised(&self.local),
                attributes: attributes(&record)?,
            })
        };
        read().map(Some).map_err(|error| error.at_event(number))
    }
}

impl Iterator for Events {
    type Item = Result<RecordedEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let event = self.read().map_err(|error| error.in_file(&self.path).at_location(self.location));
        self.failed = event.is_err();
        event.transpose()
    }
}

/// The attributes before a record.
pub(crate) fn attributes(record: &Record<'_>) -> Result<Vec<(u32, Typed)>> {
    let mut rest = Reader::new(record.raw.get(..record.attributes).unwrap_or_default(), record.order);
    let mut all = Vec::new();
    while !rest.is_empty() {
        rest.u8()?;
        let length = usize::try_from(rest.record_length()?).unwrap_or(usize::MAX);
        let mut list = Reader::new(rest.take(length)?, record.order);
        for _ in 0..list.u32()? {
            all.push((list.u32()?, Typed::read(&mut list)?));
        }
    }
    Ok(all)
}
