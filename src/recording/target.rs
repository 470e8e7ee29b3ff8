//! The trace that a recording becomes: an OTF2 archive, or a native trace.

use crate::recording::definitions::RESOLUTION;
use crate::recording::extra::{EventOrExtra, Extra};
use clc_archive::Format;
use clc_archive::native::{NativeEventWriter, NativeRecord, NativeWriter, TraceHeader};
use clc_otf2::{ArchiveWriter, CreateOptions, EventFileWriter};
use clc_trace::{ClockOffset, Definitions, LocationId, Result};
use std::collections::HashMap;
use std::path::Path;

/// Name of an archive's files.
const NAME: &str = "traces";

/// A trace that is being written.
pub(super) enum TraceTarget {
    Otf2(ArchiveWriter),
    Native(NativeWriter, TraceHeader),
}

/// Events of one location of it.
pub(super) enum EventWriter {
    Otf2(EventFileWriter),
    /// With the number of events whose fields have been left out.
    Native(NativeEventWriter, u64),
}

impl TraceTarget {
    /// Makes one in an empty directory.
    pub(super) fn create(directory: &Path, format: Format, options: CreateOptions) -> Result<TraceTarget> {
        match format {
            Format::Otf2 => ArchiveWriter::create(directory, NAME, options).map(TraceTarget::Otf2),
            Format::Native => {
                let header = TraceHeader { creator: options.creator, description: options.description };
                NativeWriter::create(directory, RESOLUTION).map(|writer| TraceTarget::Native(writer, header))
            }
        }
    }

    /// The events of a location.
    pub(super) fn events(&self, location: LocationId) -> Result<EventWriter> {
        match self {
            TraceTarget::Otf2(archive) => archive.events(location).map(EventWriter::Otf2),
            TraceTarget::Native(writer, _) => writer.events(location).map(|events| EventWriter::Native(events, 0)),
        }
    }

    /// Ends the events of a location: how many there were, and how many of them have lost their fields.
    pub(super) fn end(&self, location: LocationId, writer: EventWriter, offsets: &[ClockOffset]) -> Result<(u64, u64)> {
        match writer {
            EventWriter::Otf2(events) => {
                let count = events.finish()?;
                if let TraceTarget::Otf2(archive) = self {
                    archive.local_definitions(location, offsets)?;
                }
                Ok((count, 0))
            }
            EventWriter::Native(events, without_fields) => Ok((events.finish(offsets)?, without_fields)),
        }
    }

    /// Writes the definitions; the trace is complete.
    pub(super) fn finish(self, definitions: &Definitions, events: &HashMap<LocationId, u64>) -> Result<()> {
        match self {
            TraceTarget::Otf2(archive) => archive.finish(definitions, events),
            TraceTarget::Native(writer, header) => writer.finish(&header, definitions),
        }
    }
}

impl EventWriter {
    /// Appends an event.
    pub(super) fn write(&mut self, time: u64, event: EventOrExtra) -> Result<()> {
        match (self, event) {
            (EventWriter::Otf2(writer), EventOrExtra::Event(event)) => writer.event(time, &event),
            (EventWriter::Otf2(writer), EventOrExtra::Extra(extra)) => {
                let (kind, fields) = extra.encode(writer.order());
                writer.raw(time, kind, &fields)
            }
            (EventWriter::Native(writer, _), EventOrExtra::Event(event)) => writer.event(time, &event),
            (EventWriter::Native(writer, without_fields), EventOrExtra::Extra(extra)) => {
                *without_fields += 1;
                writer.record(time, &NativeRecord::Other(kind(extra)))
            }
        }
    }
}

/// The type of a record of no interest to corrections, none of which has fields in a native trace.
fn kind(extra: Extra) -> u8 {
    extra.encode(clc_otf2::ByteOrder::Little).0
}
