//! Writing a native trace.

use super::definitions::{TraceHeader, definition_bytes};
use super::event_file::{EventFileHeader, HEADER, offset_bytes};
use super::numbers::put;
use super::records::{LONGEST_EVENT, NativeRecord};
use super::{DEFINITIONS, EVENT_EXTENSION, EVENTS, VERSION};
use clc_trace::{ClockOffset, Definitions, Error, Event, EventNumber, LocationId, Result};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Most bytes of data in a block.
const BLOCK: usize = 16 * 1024;
/// Bytes in front of the data of a block.
const PREFIX: usize = 8;

/// The event file of a location in a trace's directory.
pub(super) fn event_path(directory: &Path, location: LocationId) -> PathBuf {
    directory.join(EVENTS).join(format!("{location}.{EVENT_EXTENSION}"))
}

/// A native trace that is being written.
#[derive(Debug, Clone)]
pub struct NativeWriter {
    directory: PathBuf,
    resolution: u64,
}

impl NativeWriter {
    /// Makes the directory of a trace with `resolution` ticks per second; it must not exist, or be empty.
    ///
    /// # Errors
    /// It holds something or cannot be made.
    pub fn create(directory: &Path, resolution: u64) -> Result<NativeWriter> {
        let failed = |error: std::io::Error| Error::io(directory, "cannot create the trace", &error);
        if !directory.is_dir() || directory.read_dir().map_err(failed)?.next().is_some() {
            std::fs::create_dir(directory).map_err(failed)?;
        }
        std::fs::create_dir(directory.join(EVENTS)).map_err(failed)?;
        Ok(NativeWriter::within(directory, resolution))
    }

    /// As [`NativeWriter::create`], in a directory that has been made already, with the one for the event files in it.
    pub fn within(directory: &Path, resolution: u64) -> NativeWriter {
        NativeWriter { directory: directory.to_path_buf(), resolution }
    }

    /// The events of one location. Writers of different locations are independent of each other, can be used by different threads,
    /// and hold neither an open file nor more than a block in memory: there can be thousands.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn events(&self, location: LocationId) -> Result<NativeEventWriter> {
        self.events_as(location, VERSION)
    }

    /// As [`NativeWriter::events`], in another version of the format: that of the file whose events are written again.
    pub(super) fn events_as(&self, location: LocationId, version: u32) -> Result<NativeEventWriter> {
        NativeEventWriter::create(&event_path(&self.directory, location), version, location, self.resolution)
    }

    /// Writes the definitions. The trace is readable from now on.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn finish(self, header: &TraceHeader, definitions: &Definitions) -> Result<()> {
        let path = self.directory.join(DEFINITIONS);
        let bytes = definition_bytes(header, definitions).map_err(|error| error.in_file(&path))?;
        std::fs::write(&path, bytes).map_err(|error| Error::io(&path, "cannot write", &error))
    }
}

/// Writes the event file of one location. Until [`NativeEventWriter::finish`] the file counts as unfinished, and no reader takes it.
#[derive(Debug)]
pub struct NativeEventWriter {
    path: PathBuf,
    version: u32,
    location: LocationId,
    resolution: u64,
    count: u64,
    /// Bytes in the file.
    written: u64,
    in_block: u32,
    time: u64,
    /// The present block, with room for its header in front.
    block: Vec<u8>,
}

impl NativeEventWriter {
    /// Begins the file `path` in that version of the format.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    fn create(path: &Path, version: u32, location: LocationId, resolution: u64) -> Result<NativeEventWriter> {
        let io = |error| Error::io(path, "cannot create", &error);
        File::create_new(path).and_then(|mut file| file.write_all(&[0; HEADER])).map_err(io)?;
        Ok(NativeEventWriter {
            path: path.to_path_buf(),
            version,
            location,
            resolution,
            count: 0,
            written: HEADER as u64,
            in_block: 0,
            time: 0,
            block: vec![0; PREFIX],
        })
    }

    /// Appends an event at local time `time`, with global ids.
    ///
    /// # Errors
    /// As [`NativeEventWriter::record`].
    #[inline]
    pub fn event(&mut self, time: u64, event: &Event) -> Result<()> {
        self.record(time, &NativeRecord::Event(*event))
    }

    /// Appends an event of any kind at local time `time`.
    ///
    /// # Errors
    /// Times decrease; the file cannot be written; the format cannot hold it.
    #[inline]
    pub fn record(&mut self, time: u64, record: &NativeRecord) -> Result<()> {
        let Some(step) = time.checked_sub(self.time) else {
            return Err(
                self.refused(Error::new(format!("time {time} is earlier than the preceding one, {}", self.time)))
            );
        };
        // The first time of a block is complete.
        put(&mut self.block, if self.in_block == 0 { time } else { step });
        record.encode(time, &mut self.block, self.version).map_err(|error| self.refused(error))?;
        self.time = time;
        self.in_block += 1;
        self.count += 1;
        if self.block.len() > PREFIX + BLOCK - LONGEST_EVENT { self.flush() } else { Ok(()) }
    }

    #[cold]
    fn refused(&self, error: Error) -> Error {
        error.in_file(&self.path).at_location(self.location).at_event(EventNumber::after(self.count))
    }

    /// Writes the present block to the end of the file.
    fn flush(&mut self) -> Result<()> {
        if self.in_block == 0 {
            return Ok(());
        }
        // Blocks are short.
        let length = u32::try_from(self.block.len() - PREFIX).unwrap_or(u32::MAX);
        if let Some(prefix) = self.block.first_chunk_mut::<PREFIX>() {
            *prefix = (u64::from(length) | u64::from(self.in_block) << 32).to_le_bytes();
        }
        let checksum = crc32fast::hash(&self.block);
        self.block.extend_from_slice(&checksum.to_le_bytes());
        let append = || OpenOptions::new().append(true).open(&self.path)?.write_all(&self.block);
        append().map_err(|error| Error::io(&self.path, "cannot write", &error))?;
        self.written += self.block.len() as u64;
        self.block.truncate(PREFIX);
        self.in_block = 0;
        Ok(())
    }

    /// Writes what is left and the clock offsets, in increasing order of time, and makes the file valid; returns the number of events.
    ///
    /// # Errors
    /// The file cannot be written; the offsets are not in order.
    pub fn finish(mut self, offsets: &[ClockOffset]) -> Result<u64> {
        self.flush()?;
        let header = EventFileHeader {
            version: self.version,
            location: self.location,
            resolution: self.resolution,
            events: self.count,
            offsets_at: self.written,
            offsets: 0,
            offsets_checksum: 0,
        };
        let file = OpenOptions::new().write(true).open(&self.path);
        let file = file.map_err(|error| Error::io(&self.path, "cannot write", &error))?;
        end(&self.path, file, header, offsets)?;
        Ok(self.count)
    }
}

/// Puts other clock offsets, in increasing order of time, in the place of those of a finished event file.
///
/// # Errors
/// The file cannot be read or written, is damaged; the offsets are not in order.
pub(super) fn replace_offsets(path: &Path, offsets: &[ClockOffset]) -> Result<()> {
    let io = |error| Error::io(path, "cannot change the clock offsets", &error);
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(io)?;
    let mut bytes = Vec::with_capacity(HEADER);
    Read::by_ref(&mut file).take(HEADER as u64).read_to_end(&mut bytes).map_err(io)?;
    let header = EventFileHeader::read(&bytes).map_err(|error| error.in_file(path))?;
    end(path, file, header, offsets)
}

/// Ends a file after its blocks.
fn end(path: &Path, mut file: File, header: EventFileHeader, offsets: &[ClockOffset]) -> Result<()> {
    if offsets.windows(2).any(|pair| matches!(pair, [a, b] if a.time >= b.time)) {
        return Err(Error::new("the clock offsets are not in order of time")
            .in_file(path)
            .at_location(header.location));
    }
    let bytes = offset_bytes(offsets);
    let count = u32::try_from(offsets.len())
        .map_err(|_| Error::new("too many clock offsets").in_file(path).at_location(header.location))?;
    let header = EventFileHeader { offsets: count, offsets_checksum: crc32fast::hash(&bytes), ..header };
    let mut write = || {
        file.set_len(header.offsets_at)?;
        file.seek(SeekFrom::Start(header.offsets_at))?;
        file.write_all(&bytes)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header.bytes())
    };
    write().map_err(|error| Error::io(path, "cannot write", &error))
}
