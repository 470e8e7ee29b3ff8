//! An archive as seen by a format that holds what this program interprets: the parts of its events, and what else there is.

use crate::bytes::Reader;
use crate::chunks::{FileKind, Record, RecordReader};
use crate::conversion_loss::{ConversionLoss, Lost};
use crate::definition_record::DefinitionRecord;
use crate::definitions::{Tables, kind};
use crate::files::Otf2Archive;
use crate::framing::BUFFER_FLUSH;
use crate::local::LocalDefinitions;
use crate::local_file::{CLOCK_OFFSET, MAPPING_TABLE};
use crate::scan::reference_of;
use crate::{MappedFile, ScanSummary};
use clc_trace::{AcceleratorAttributes, AcceleratorReference, Error, Event, LocationId, Result};
use std::path::Path;

/// Name of a definition record.
fn definition_name(number: u8) -> String {
    match DefinitionRecord::TABLE.iter().find(|record| record.0 == number) {
        Some((_, name, _)) => (*name).to_owned(),
        None => format!("Unknown{number}"),
    }
}

/// An event with all that is interpreted of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventParts {
    /// Raw local time.
    pub time: u64,
    /// Record type.
    pub kind: u8,
    /// Its fields, with global ids; [`Event::Other`] if they are not interpreted.
    pub event: Event,
    /// The stop time of a `BufferFlush`.
    pub flush_stop: Option<u64>,
    /// Number of attributes.
    pub attributes: u64,
    /// What some of them refer to.
    pub refers: AcceleratorReference,
}

impl Otf2Archive {
    /// Calls `visit` with the parts of every event of a location, in order; `references` are [`clc_trace::Definitions::accelerator_attributes`].
    ///
    /// # Errors
    /// The file is missing or damaged; whatever `visit` returns.
    pub fn scan_parts(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        references: &AcceleratorAttributes,
        mut visit: impl FnMut(&EventParts) -> Result<()>,
    ) -> Result<ScanSummary> {
        self.scan_records(location, local, |record, event| {
            let flush_stop = match record.kind {
                BUFFER_FLUSH => record.payload.first_chunk::<8>().map(|stop| record.order.u64(*stop)),
                _ => None,
            };
            let attributes = if record.attributes == 0 { 0 } else { attributes(record) };
            let refers = reference_of(record, local, references)?;
            visit(&EventParts { time: record.time, kind: record.kind, event, flush_stop, attributes, refers })
        })
    }

    /// Counts what [`Otf2Archive::read_definitions`] and the events do not tell: other definitions, and everything in the
    /// archive that is no event; not the files that lie beside it. What belongs to a location is counted by [`Otf2Archive::conversion_loss_of`].
    ///
    /// # Errors
    /// A file is damaged.
    pub fn conversion_loss(&self) -> Result<ConversionLoss> {
        let mut loss = ConversionLoss::default();
        self.definitions_lost(&mut loss)?;
        let markers = self.markers()?.map_or(0, |markers| markers.len() as u64);
        loss.add(Lost::Markers, "Marker", markers);
        loss.add(Lost::Thumbnails, "Thumbnail", u64::from(self.anchor().thumbnails));
        for (name, _) in &self.anchor().properties {
            loss.add(Lost::Properties, name, 1);
        }
        loss.add(Lost::Properties, "name of the machine", u64::from(!self.anchor().machine.is_empty()));
        Ok(loss)
    }

    fn definitions_lost(&self, loss: &mut ConversionLoss) -> Result<()> {
        let path = self.definition_path();
        let bytes = MappedFile::open(&path)?;
        let mut tables = Tables::default();
        let mut of_calls = [0u64; 2];
        each_definition(&path, &bytes, self.anchor().definition_chunk, |record| {
            let mut reader = Reader::new(record.payload, record.order);
            match record.kind {
                kind::STRING => tables.record(record.kind, reader)?,
                kind::PARAMETER | kind::ATTRIBUTE => {
                    of_calls[usize::from(record.kind == kind::ATTRIBUTE)] += 1;
                    tables.record(record.kind, reader)?;
                }
                kind::CLOCK_PROPERTIES | kind::SYSTEM_TREE_NODE | kind::LOCATION_GROUP | kind::LOCATION => {}
                kind::REGION => loss.add(Lost::DefinitionFields, "Region: all but id and name", 1),
                kind::GROUP | kind::COMM | kind::INTER_COMM | kind::RMA_WIN => {
                    tables.record(record.kind, reader)?;
                    if record.kind == kind::COMM {
                        let (_, _, _, parent) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
                        let more = parent != u32::MAX || reader.u32().unwrap_or(0) != 0;
                        loss.add(Lost::DefinitionFields, "Comm: parent and flags", u64::from(more));
                    }
                }
                other => loss.add(Lost::Definitions, definition_name(other), 1),
            }
            Ok(())
        })?;
        let (callsites, references) = tables.of_accelerators();
        let references = references.streams.len() + references.events.len();
        loss.add(Lost::Definitions, "Parameter", of_calls[0].saturating_sub(callsites.len() as u64));
        loss.add(Lost::Definitions, "Attribute", of_calls[1].saturating_sub(references as u64));
        loss.add(Lost::Definitions, "Group (none of an MPI communicator)", tables.other_groups());
        Ok(())
    }

    /// Counts what [`Otf2Archive::local_definitions`] and the events of a location do not tell.
    ///
    /// # Errors
    /// The local definition file is damaged.
    pub fn conversion_loss_of(&self, location: LocationId) -> Result<ConversionLoss> {
        let mut loss = ConversionLoss::default();
        loss.add(Lost::Snapshots, "Snapshot file", u64::from(self.has_snapshots(location)));
        let path = self.local_definition_path(location);
        if path.exists() {
            let bytes = MappedFile::open(&path)?;
            each_definition(&path, &bytes, self.anchor().definition_chunk, |record| {
                if !matches!(record.kind, MAPPING_TABLE | CLOCK_OFFSET) {
                    loss.add(Lost::Definitions, format!("{} (local)", definition_name(record.kind)), 1);
                }
                Ok(())
            })
            .map_err(|error| error.at_location(location))?;
        }
        Ok(loss)
    }
}

fn each_definition(
    path: &Path,
    bytes: &[u8],
    chunk_size: u64,
    mut visit: impl FnMut(&Record<'_>) -> Result<()>,
) -> Result<()> {
    let mut records = RecordReader::new(bytes, FileKind::Definitions, chunk_size);
    let mut run = || -> Result<()> {
        while let Some(record) = records.next()? {
            visit(&record)?;
        }
        Ok(())
    };
    run().map_err(|error| Error { event: None, ..error }.in_file(path))
}

/// Number of attributes before a record.
fn attributes(record: &Record<'_>) -> u64 {
    let mut rest = record.raw.get(..record.attributes).unwrap_or_default();
    let mut sum = 0;
    while let Some((_, list)) = rest.split_first() {
        let mut reader = Reader::new(list, record.order);
        let length = reader.record_length().unwrap_or(0).min(reader.rest().len() as u64) as usize;
        let (payload, next) = reader.rest().split_at(length);
        sum += u64::from(Reader::new(payload, record.order).u32().unwrap_or(0));
        rest = next;
    }
    sum
}
