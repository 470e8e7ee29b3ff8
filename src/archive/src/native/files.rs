//! The files of a native trace, and streaming through them.

use super::definitions::{self, TraceHeader};
use super::event_file::Events;
use super::records::NativeRecord;
use super::{DEFINITIONS, EVENTS};
use crate::{MappedFile, ScanSummary};
use clc_otf2::{Sibling, event_file_size, list};
use clc_trace::{ClockOffset, Definitions, Error, Event, EventNumber, LocationId, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A native trace on disk. Small: it can be sent to all analysis ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeTrace {
    directory: PathBuf,
    header: TraceHeader,
    resolution: u64,
    whole_directory: bool,
}

impl NativeTrace {
    /// Opens `path`: the directory of a trace, or its definition file.
    ///
    /// # Errors
    /// There is no such trace, or its definition file cannot be read.
    pub fn open(path: &Path) -> Result<NativeTrace> {
        let directory = if path.is_dir() {
            path.to_path_buf()
        } else {
            match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
                _ => PathBuf::from("."),
            }
        };
        let file = directory.join(DEFINITIONS);
        if !file.exists() {
            return Err(Error::new(format!(
                "not a native trace, or one that was never completed: {DEFINITIONS} is \
                missing"
            ))
            .in_file(path));
        }
        let (header, definitions) =
            definitions::read(&MappedFile::open(&file)?).map_err(|error| error.in_file(&file))?;
        let resolution = definitions.clock.resolution;
        Ok(NativeTrace { directory, header, resolution, whole_directory: path.is_dir() })
    }

    /// Name of the trace: that of its directory without the ending.
    pub fn name(&self) -> String {
        let directory = match self.directory.file_name() {
            Some(_) => self.directory.clone(),
            None => self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone()),
        };
        let name = if super::is_named_so(&directory) { directory.file_stem() } else { directory.file_name() };
        name.map_or_else(|| "trace".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// What is known of it as a whole.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Ticks per second.
    pub(crate) fn resolution(&self) -> u64 {
        self.resolution
    }

    /// Its directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its definition file.
    pub fn definition_path(&self) -> PathBuf {
        self.directory.join(DEFINITIONS)
    }

    /// The event file of a location, which holds its clock offsets, too.
    pub fn event_path(&self, location: LocationId) -> PathBuf {
        super::write::event_path(&self.directory, location)
    }

    /// The same trace in another directory.
    pub(crate) fn at(&self, directory: &Path) -> NativeTrace {
        NativeTrace { directory: directory.to_path_buf(), ..self.clone() }
    }

    /// Reads the definitions.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn read_definitions(&self) -> Result<Definitions> {
        let path = self.definition_path();
        let (_, definitions) = definitions::read(&MappedFile::open(&path)?).map_err(|error| error.in_file(&path))?;
        Ok(definitions)
    }

    /// Size of the event file of a location in bytes.
    ///
    /// # Errors
    /// There is no such file.
    pub fn event_file_size(&self, location: LocationId) -> Result<u64> {
        event_file_size(&self.event_path(location)).map_err(|error| error.at_location(location))
    }

    /// The clock offsets of a location.
    ///
    /// # Errors
    /// The event file is missing or damaged.
    pub fn clock_offsets(&self, location: LocationId) -> Result<Vec<ClockOffset>> {
        self.with_events(location, |events| events.clock_offsets())
    }

    /// Runs `work` on the events of a location; errors get file and location.
    pub(super) fn with_events<T>(
        &self,
        location: LocationId,
        work: impl FnOnce(&mut Events<'_>) -> Result<T>,
    ) -> Result<T> {
        let path = self.event_path(location);
        let place = |error: Error| error.in_file(&path).at_location(location);
        let bytes = MappedFile::open(&path).map_err(place)?;
        let mut events = Events::new(&bytes).map_err(place)?;
        if events.location() != location {
            return Err(place(Error::new(format!("the file holds the events of location {}", events.location()))));
        }
        if events.resolution() != self.resolution {
            return Err(place(Error::new(format!(
                "the events have {} ticks per second, but the trace has {}",
                events.resolution(),
                self.resolution
            ))));
        }
        work(&mut events).map_err(place)
    }

    /// Calls `visit` with number, raw local time and contents of every event of a location, in order.
    ///
    /// # Errors
    /// The file is missing or damaged; whatever `visit` returns.
    pub fn scan_with(
        &self,
        location: LocationId,
        mut visit: impl FnMut(EventNumber, u64, Event) -> Result<()>,
    ) -> Result<ScanSummary> {
        self.scan_records(location, |number, time, record| visit(number, time, record.event()))
    }

    /// As [`NativeTrace::scan_with`], with everything that the file holds.
    ///
    /// # Errors
    /// The file is missing or damaged; whatever `visit` returns.
    pub fn scan_records(
        &self,
        location: LocationId,
        mut visit: impl FnMut(EventNumber, u64, NativeRecord) -> Result<()>,
    ) -> Result<ScanSummary> {
        let mut summary = ScanSummary {
            events: 0,
            time_span: None,
            by_type: Box::new([0; 256]),
            chunks: Vec::new(),
            sent_within: false,
            warnings: Vec::new(),
        };
        self.with_events(location, |events| {
            let (mut first, mut last, mut count) = (0, 0, 0);
            while let Some((number, time, record)) = events.next()? {
                if let Some(of_type) = summary.by_type.get_mut(usize::from(record.kind())) {
                    *of_type += 1;
                }
                visit(number, time, record).map_err(|error| error.at_event(number))?;
                if count == 0 {
                    first = time;
                }
                (last, count) = (time, number.0);
            }
            summary.events = count;
            summary.time_span = (count > 0).then_some((first, last));
            Ok(())
        })?;
        Ok(summary)
    }

    /// Files beside the trace that do not belong to the format; none if its definition file was opened instead of the directory.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn siblings(&self, definitions: &Definitions) -> Result<Vec<Sibling>> {
        let mut siblings = Vec::new();
        if !self.whole_directory {
            return Ok(siblings);
        }
        let known: std::collections::HashSet<PathBuf> =
            definitions.locations.iter().map(|location| self.event_path(location.id)).collect();
        let events = self.directory.join(EVENTS);
        list(&self.directory, Path::new(""), &|name| [DEFINITIONS, EVENTS].contains(&name), &mut siblings)?;
        if events.is_dir() {
            list(&events, Path::new(EVENTS), &|name| known.contains(&events.join(name)), &mut siblings)?;
        }
        siblings.sort_by(|a, b| a.relative.cmp(&b.relative));
        Ok(siblings)
    }
}
