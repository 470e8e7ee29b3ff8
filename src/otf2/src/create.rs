//! Writing an archive from nothing: for simulated traces and for tests.

use crate::anchor::{AnchorFile, CHUNK_SIZES, COMMUNICATION_COMPLETE};
use crate::bytes::Writer;
use crate::definition_writer::{DefinitionWriter, framed};
use crate::event_writer::EventFileWriter;
use crate::local_file::{MAPPING_TABLE, clock_offset_record};
use crate::options::CreateOptions;
use crate::writer::ChunkWriter;
use clc_trace::{ClockOffset, Definitions, Error, LocationId, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// From the ids in the events of one location to global ones (OTF2 local definition `MappingTable`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingTable {
    /// What it maps (OTF2 `MappingType`: 3 regions, 6 communicators).
    pub kind: u8,
    /// Local and global id, by increasing local id.
    pub ids: Vec<(u64, u64)>,
}

/// An archive that is being written.
#[derive(Debug, Clone)]
pub struct ArchiveWriter {
    directory: PathBuf,
    name: String,
    options: CreateOptions,
}

impl ArchiveWriter {
    /// Makes the directory for an archive called `name`; it must not exist, or be empty.
    ///
    /// # Errors
    /// It holds something or cannot be made; a chunk size is out of range.
    pub fn create(directory: &Path, name: &str, options: CreateOptions) -> Result<ArchiveWriter> {
        for size in [options.event_chunk, options.definition_chunk] {
            if !CHUNK_SIZES.contains(&size) {
                return Err(Error::new(format!("the chunk size {size} is not between 256 KiB and 16 MiB")));
            }
        }
        let events = directory.join(name);
        let failed = |error: std::io::Error| Error::io(directory, "cannot create the archive", &error);
        if !directory.is_dir() || directory.read_dir().map_err(failed)?.next().is_some() {
            std::fs::create_dir(directory).map_err(failed)?;
        }
        std::fs::create_dir(&events).map_err(failed)?;
        Ok(ArchiveWriter { directory: directory.to_path_buf(), name: name.to_owned(), options })
    }

    /// As [`ArchiveWriter::create`], in a directory that has been made already, with one called `name` for the event files in it.
    pub fn within(directory: &Path, name: &str, options: CreateOptions) -> ArchiveWriter {
        ArchiveWriter { directory: directory.to_path_buf(), name: name.to_owned(), options }
    }

    fn path(&self, location: LocationId, extension: &str) -> PathBuf {
        self.directory.join(&self.name).join(format!("{location}.{extension}"))
    }

    /// The events of one location. Writers of different locations are independent of each other, can be used by different threads,
    /// and hold neither an open file nor much memory: there can be thousands.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn events(&self, location: LocationId) -> Result<EventFileWriter> {
        let path = self.path(location, "evt");
        let chunks = ChunkWriter::create_one_of_many(&path, self.options.event_chunk, self.options.order, true)?;
        Ok(EventFileWriter::new(chunks))
    }

    /// The local definitions of one location: its clock offsets, in increasing order of time.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn local_definitions(&self, location: LocationId, offsets: &[ClockOffset]) -> Result<()> {
        self.local_definitions_with_tables(location, &[], offsets)
    }

    /// As [`ArchiveWriter::local_definitions`], with tables from local to global ids, if the events of the location use ids of their own.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn local_definitions_with_tables(
        &self,
        location: LocationId,
        tables: &[MappingTable],
        offsets: &[ClockOffset],
    ) -> Result<()> {
        let path = self.path(location, "def");
        let mut chunks = ChunkWriter::create(&path, self.options.definition_chunk, self.options.order, false)?;
        // The format has no empty table.
        for table in tables.iter().filter(|table| !table.ids.is_empty()) {
            let mut payload = Writer::new(self.options.order);
            let dense = table.ids.iter().zip(0..).all(|(&(local, _), index)| local == index);
            payload.u8(table.kind);
            payload.u64(table.ids.len() as u64);
            payload.u8(if dense { 0 } else { 1 });
            for &(local, global) in &table.ids {
                if !dense {
                    payload.u64(local);
                }
                payload.u64(global);
            }
            chunks.record(&framed(MAPPING_TABLE, &payload, self.options.order), None)?;
        }
        for offset in offsets {
            chunks.record(&clock_offset_record(offset, self.options.order), None)?;
        }
        chunks.finish().map(|_| ())
    }

    /// Writes the global definitions and the anchor; `events` is the number of events by location. The archive is readable from now on.
    ///
    /// # Errors
    /// A file exists or cannot be made.
    pub fn finish(self, definitions: &Definitions, events: &HashMap<LocationId, u64>) -> Result<()> {
        let path = self.directory.join(format!("{}.def", self.name));
        let mut file = DefinitionWriter::create(&path, &self.options)?;
        file.all(definitions, events)?;
        let records = file.finish()?;
        let anchor = AnchorFile {
            order: self.options.order,
            format: 3,
            trace_format: 2,
            version: [3, 0, 2],
            event_chunk: self.options.event_chunk,
            definition_chunk: self.options.definition_chunk,
            locations: definitions.locations.len() as u64,
            definitions: records,
            machine: String::new(),
            creator: self.options.creator.clone(),
            description: self.options.description.clone(),
            properties: Vec::new(),
            trace_id: self.options.trace_id,
            snapshots: 0,
            thumbnails: 0,
            counts_at: None,
        };
        let mut anchor = anchor;
        if self.options.properties.iter().all(|(name, _)| name != COMMUNICATION_COMPLETE) {
            anchor.properties.push((COMMUNICATION_COMPLETE.to_owned(), "true".to_owned()));
        }
        anchor.properties.extend(self.options.properties.iter().cloned());
        let path = self.directory.join(format!("{}.otf2", self.name));
        std::fs::write(&path, anchor.write()).map_err(|error| Error::io(&path, "cannot write", &error))
    }
}
