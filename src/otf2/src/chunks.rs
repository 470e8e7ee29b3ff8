//! The buffer layer: files are sequences of chunks, chunks are sequences of records.

mod gather;

pub(crate) use gather::{RecordFields, RecordRun};

use crate::bytes::{ByteOrder, Reader};
use crate::framing::{FRAMED, FRAMING, control, singleton_width};
use crate::source::{Blocks, ByteSource, Source};
use clc_trace::{Error, EventNumber, Result};
use std::ops::Range;
use std::path::Path;

/// Bytes of a chunk header: tag, byte order, number of the first and of the last event.
pub(crate) const CHUNK_HEADER: usize = 18;

/// A record of the common form lies within so many bytes: timestamp, type, a length below 255 and a payload of that length.
const COMMON: usize = 9 + 2 + 254;

/// What kind of file it is: in event files (and snapshots) timestamps and attribute lists precede records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// `.evt`
    Events,
    /// `.snap`: as events, but every record has a length.
    Snapshots,
    /// `.def` and `.marker`
    Definitions,
}

/// One record with what precedes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// Its 1-based number in the file.
    pub number: u64,
    /// The time that is in force, in ticks; 0 before the first timestamp.
    pub time: u64,
    /// Whether a timestamp stands directly before the record.
    pub stamped: bool,
    /// Attribute lists and record as they are in the file.
    pub raw: &'a [u8],
    /// Length of the attribute lists in `raw`.
    pub attributes: usize,
    /// Record type.
    pub kind: u8,
    /// The record's fields.
    pub payload: &'a [u8],
    /// Byte order of the chunk.
    pub order: ByteOrder,
    /// The chunk it stands in, from 0.
    pub chunk: usize,
    /// That chunk as it is in the file, its header included.
    pub bytes: &'a [u8],
    /// Where `raw` begins in it.
    pub start: usize,
}

impl<'a> Record<'a> {
    /// Which event of the location it is, in an event file.
    #[inline(always)]
    pub(crate) fn event(&self) -> EventNumber {
        EventNumber(self.number)
    }

    /// A reader of the record's fields. For speed it goes on into what follows the record; [`Record::within`] tells whether it did.
    #[inline(always)]
    pub(crate) fn fields(&self) -> Reader<'a> {
        let payload = self.start + self.raw.len() - self.payload.len();
        Reader::new(self.bytes.get(payload..).unwrap_or_default(), self.order)
    }

    /// Whether a reader that was made by [`Record::fields`] has read fields of this record only.
    #[inline(always)]
    pub(crate) fn within(&self, reader: &Reader<'_>) -> bool {
        let end = self.start + self.raw.len();
        self.bytes.len() - reader.rest().len() <= end
    }
}

/// Iterates over the records of a file.
#[derive(Debug, Clone)]
pub(crate) struct RecordReader<S> {
    source: S,
    kind: FileKind,
    chunk_size: usize,
    /// Chunks begun.
    chunk: usize,
    /// Where the unread part of the present chunk begins.
    at: usize,
    order: ByteOrder,
    /// Records read.
    number: u64,
    time: u64,
    done: bool,
    /// Numbers of the first and last event of the present chunk, as its header says.
    counters: (u64, u64),
    /// Events before each chunk begun.
    starts: Vec<u64>,
    /// Chunks whose header counts other events than there are.
    miscounted: u64,
}

impl<'a> RecordReader<ByteSource<'a>> {
    /// Over the whole contents of a file with the given chunk size (validated by the anchor).
    pub(crate) fn new(bytes: &'a [u8], kind: FileKind, chunk_size: u64) -> Self {
        let mut records = RecordReader::over(ByteSource::new(bytes), kind, chunk_size);
        records.source.begin(records.chunk_size);
        records
    }
}

impl RecordReader<Blocks> {
    /// Over the file `path`, of which one chunk at a time is in memory.
    ///
    /// # Errors
    /// The file is missing, not readable or not a regular file.
    pub(crate) fn open(path: &Path, kind: FileKind, chunk_size: u64) -> Result<Self> {
        let mut records = RecordReader::over(Blocks::open(path)?, kind, chunk_size);
        records.source.advance(records.chunk_size)?;
        Ok(records)
    }

    /// As [`RecordReader::open`], but from chunk `chunk` on, before which there are `before` events. Times before the first timestamp are 0.
    ///
    /// # Errors
    /// As [`RecordReader::open`].
    pub(crate) fn open_at(path: &Path, kind: FileKind, chunk_size: u64, chunk: usize, before: u64) -> Result<Self> {
        let mut records = RecordReader::open(path, kind, chunk_size)?;
        if chunk > 0 {
            records.source.seek((chunk as u64).saturating_mul(chunk_size))?;
            (records.chunk, records.number) = (chunk, before);
            records.open_chunk()?;
        }
        Ok(records)
    }
}

impl<S: Source> RecordReader<S> {
    fn over(source: S, kind: FileKind, chunk_size: u64) -> Self {
        RecordReader {
            source,
            kind,
            chunk_size: usize::try_from(chunk_size).unwrap_or(usize::MAX),
            chunk: 0,
            // Nothing is read before the header of the first chunk.
            at: usize::MAX,
            order: ByteOrder::Little,
            number: 0,
            time: 0,
            done: false,
            counters: (1, 0),
            starts: Vec::new(),
            miscounted: 0,
        }
    }

    /// Byte order of the present chunk (of the first one before reading; little for a file too short to say).
    pub(crate) fn order(&self) -> ByteOrder {
        if self.chunk > 0 {
            return self.order;
        }
        self.source.present().get(1).and_then(|&tag| ByteOrder::from_tag(tag)).unwrap_or(ByteOrder::Little)
    }

    /// Offset of the next unread byte.
    pub(crate) fn offset(&self) -> usize {
        match self.chunk {
            0 => 0,
            chunk => (chunk - 1).saturating_mul(self.chunk_size) + self.at,
        }
    }

    /// How many records have been read.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Number of finished chunks whose header counts other events than there are. Reading forward does not need the counters,
    /// seeking does.
    pub(crate) fn miscounted(&self) -> u64 {
        self.miscounted
    }

    /// Number of events before each chunk begun so far.
    pub(crate) fn chunk_starts(&self) -> &[u64] {
        &self.starts
    }

    #[cold]
    fn close_chunk(&mut self) {
        let before = self.starts.last().copied().unwrap_or(0);
        if self.kind != FileKind::Definitions && self.counters != (before + 1, self.number) {
            self.miscounted += 1;
        }
    }

    #[cold]
    fn open_chunk(&mut self) -> Result<()> {
        // The first chunk is there from the beginning on.
        if self.chunk > 0 {
            self.source.advance(self.chunk_size)?;
        }
        self.at = 0;
        let bytes = self.source.present();
        match bytes {
            [] | [control::CHUNK] => {
                return Err(Error::damaged("the file is truncated: it ends without an end-of-file mark"));
            }
            [control::CHUNK, tag, ..] if ByteOrder::from_tag(*tag).is_some() => {
                self.order = ByteOrder::from_tag(*tag).unwrap_or(ByteOrder::Little);
            }
            _ => {
                let start = self.chunk.saturating_mul(self.chunk_size);
                return Err(Error::damaged(format!("no chunk header at byte {start}")));
            }
        }
        if bytes.len() < CHUNK_HEADER {
            return Err(Error::damaged("the file is truncated in the middle of a chunk header"));
        }
        let mut header = Reader::new(&bytes[2..CHUNK_HEADER], self.order);
        self.counters = (header.full_u64()?, header.full_u64()?);
        self.chunk += 1;
        self.starts.push(self.number);
        self.at = CHUNK_HEADER;
        Ok(())
    }

    #[cold]
    fn truncated(&self) -> Error {
        let end = self.source.length();
        if (self.chunk as u64).saturating_mul(self.chunk_size as u64) >= end {
            Error::damaged(format!("the file is truncated: it ends at byte {end} in the middle of a record"))
        } else {
            Error::damaged(format!("a record at byte {} does not end within its chunk", self.offset()))
        }
        .at_event(EventNumber::after(self.number))
    }

    /// The next record, or `None` at the end of the file.
    ///
    /// # Errors
    /// Truncated file, bad chunk header, record beyond its chunk, two timestamps in a row, time running backwards; with the number of
    /// the event.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)] // fallible, and the record borrows from the chunk
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>> {
        match self.common() {
            Some(place) => Ok(Some(self.record(place))),
            None => match self.any()? {
                Some(place) => Ok(Some(self.record(place))),
                None => Ok(None),
            },
        }
    }

    #[inline(always)]
    fn record(&self, place: RecordLayout) -> Record<'_> {
        let bytes = self.source.present();
        Record {
            number: self.number,
            time: self.time,
            stamped: place.stamped,
            raw: &bytes[place.start..place.payload.end],
            attributes: place.attributes,
            kind: place.kind,
            payload: &bytes[place.payload],
            order: self.order,
            chunk: self.chunk - 1,
            bytes,
            start: place.start,
        }
    }

    /// The next record of an event file if it has the common form, with everything that is in doubt left to
    /// [`RecordReader::any`]: nearly all records go this way, and it has to be short enough to become part of the loops that read them.
    #[inline(always)]
    fn common(&mut self) -> Option<RecordLayout> {
        // One byte more, since at least a mark has to follow within the chunk.
        let head = self.source.present().get(self.at..)?.first_chunk::<{ COMMON + 1 }>()?;
        let (stamped, time, at) = if head[0] == control::TIMESTAMP {
            let mut time = [0; 8];
            time.copy_from_slice(&head[1..9]);
            (true, self.order.u64(time), 9)
        } else {
            (false, self.time, 0)
        };
        let (kind, length) = (head[at], head[at + 1]);
        let framing = FRAMING[usize::from(kind)];
        let (payload, end) = if framing == FRAMED && length != 0xFF {
            (at + 2, at + 2 + usize::from(length))
        } else if framing < FRAMED && length <= framing {
            (at + 1, at + 2 + usize::from(length))
        } else {
            return None;
        };
        if time < self.time || self.kind != FileKind::Events {
            return None;
        }
        let start = self.at;
        self.at = start + end;
        self.number += 1;
        self.time = time;
        Some(RecordLayout { stamped, kind, attributes: 0, start: start + at, payload: start + payload..start + end })
    }

    /// The next record of any file, whatever its form.
    #[inline(never)]
    fn any(&mut self) -> Result<Option<RecordLayout>> {
        if self.done {
            return Ok(None);
        }
        let events = self.kind != FileKind::Definitions;
        let mut stamped = false;
        let mut start: Option<usize> = None;
        if self.chunk == 0 {
            self.open_chunk()?;
        }
        loop {
            let Some(&kind) = self.source.present().get(self.at) else { return Err(self.truncated()) };
            let next = self.at + 1;
            match kind {
                control::END_OF_CHUNK => {
                    if start.is_some() || stamped {
                        return Err(self.damaged("a chunk ends between an event and what precedes it"));
                    }
                    self.close_chunk();
                    self.open_chunk()?;
                }
                control::END_OF_FILE => {
                    if start.is_some() || stamped {
                        return Err(self.damaged("the file ends between an event and what precedes it"));
                    }
                    self.close_chunk();
                    self.done = true;
                    return Ok(None);
                }
                control::TIMESTAMP if events => {
                    if stamped {
                        return Err(self.damaged("two timestamps in a row"));
                    }
                    if start.is_some() {
                        // No writer does this, and a copy of the event would keep the old time in its middle.
                        return Err(self.damaged("a timestamp between an attribute list and its event"));
                    }
                    let time = self.source.present().get(next..).and_then(|rest| rest.first_chunk::<8>());
                    let time = self.order.u64(*time.ok_or_else(|| self.truncated())?);
                    if time < self.time {
                        let before = self.time;
                        return Err(
                            self.damaged(format!("time runs backwards: timestamp {time} after timestamp {before}"))
                        );
                    }
                    self.time = time;
                    stamped = true;
                    self.at = next + 8;
                }
                control::ATTRIBUTE_LIST if events => {
                    let list = self.length_framed(next)?;
                    start.get_or_insert(self.at);
                    self.at = list.end;
                }
                control::END_OF_BUFFER | control::CHUNK | 4 => {
                    return Err(self.damaged(format!("unexpected control byte {kind} at byte {}", self.offset())));
                }
                _ => {
                    let width = if self.kind == FileKind::Events { singleton_width(kind) } else { None };
                    let payload = match width {
                        Some(width) => self.singleton(next, width)?,
                        None => self.length_framed(next)?,
                    };
                    if payload.end >= self.source.present().len() {
                        // Something has to follow within the chunk, at least a mark.
                        return Err(self.truncated());
                    }
                    let begin = start.unwrap_or(self.at);
                    let attributes = self.at - begin;
                    self.at = payload.end;
                    self.number += 1;
                    return Ok(Some(RecordLayout { stamped, kind, attributes, start: begin, payload }));
                }
            }
        }
    }

    /// An error at the next event.
    #[cold]
    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(what).at_event(EventNumber::after(self.number))
    }

    /// A packed integer of at most `width` bytes at `at`, its length included.
    fn singleton(&self, at: usize, width: u8) -> Result<Range<usize>> {
        let length = match self.source.present().get(at) {
            None => return Err(self.truncated()),
            Some(0 | 0xFF) => 1,
            Some(&length) if length <= width => usize::from(length) + 1,
            Some(length) => {
                return Err(Error::damaged(format!(
                    "a compressed integer has {length} bytes where at most {width} are allowed"
                ))
                .at_event(EventNumber::after(self.number)));
            }
        };
        self.within_chunk(at, length as u64)
    }

    /// A payload of the length that stands before it, at `at`.
    fn length_framed(&self, at: usize) -> Result<Range<usize>> {
        let bytes = self.source.present().get(at..).unwrap_or(&[]);
        let mut reader = Reader::new(bytes, self.order);
        let length = reader.record_length().map_err(|_| self.truncated())?;
        self.within_chunk(at + bytes.len() - reader.rest().len(), length)
    }

    fn within_chunk(&self, at: usize, length: u64) -> Result<Range<usize>> {
        let room = self.source.present().len().saturating_sub(at);
        match usize::try_from(length) {
            Ok(length) if length <= room => Ok(at..at + length),
            _ => Err(self.truncated()),
        }
    }
}

/// Where a record stands in the present chunk.
struct RecordLayout {
    stamped: bool,
    kind: u8,
    attributes: usize,
    start: usize,
    payload: Range<usize>,
}
