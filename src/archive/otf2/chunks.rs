//! The buffer layer: files are sequences of chunks, chunks are sequences of records.

use crate::archive::otf2::bytes::{ByteOrder, Reader};
use crate::archive::otf2::records::{FRAMED, FRAMING, control, singleton_width};
use crate::trace::{Error, Result};

/// Bytes of a chunk header: tag, byte order, number of the first and of the last event.
pub const CHUNK_HEADER: usize = 18;

/// A record of the common form lies within so many bytes: timestamp, type, a length below 255 and a payload of that length.
const COMMON: usize = 9 + 2 + 254;

/// What kind of file it is: in event files (and snapshots) timestamps and attribute lists precede records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `.evt`
    Events,
    /// `.snap`: as events, but every record has a length.
    Snapshots,
    /// `.def` and `.marker`
    Definitions,
}

/// One record with what precedes it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
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
}

/// Iterates over the records of a file.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    kind: FileKind,
    chunk_size: usize,
    chunk: usize,
    /// The unread part of the present chunk; empty before the first.
    rest: &'a [u8],
    order: ByteOrder,
    number: u64,
    time: u64,
    done: bool,
    /// Numbers of the first and last event of the present chunk, as its header says.
    counters: (u64, u64),
    /// Events before the present chunk.
    before_chunk: u64,
    /// Chunks whose header counts other events than there are.
    miscounted: u64,
}

impl<'a> Records<'a> {
    /// Over the whole contents of a file with the given chunk size (validated by the anchor).
    pub fn new(bytes: &'a [u8], kind: FileKind, chunk_size: u64) -> Self {
        Records {
            bytes,
            kind,
            chunk_size: chunk_size as usize,
            chunk: 0,
            rest: &[],
            order: ByteOrder::Little,
            number: 0,
            time: 0,
            done: false,
            counters: (1, 0),
            before_chunk: 0,
            miscounted: 0,
        }
    }

    /// Byte order of the present chunk (of the first one before reading; little for a file too short to say).
    pub fn order(&self) -> ByteOrder {
        if self.chunk > 0 {
            return self.order;
        }
        self.bytes.get(1).and_then(|&tag| ByteOrder::from_tag(tag)).unwrap_or(ByteOrder::Little)
    }

    /// Offset of the next unread byte.
    pub fn offset(&self) -> usize {
        let end = (self.chunk * self.chunk_size).min(self.bytes.len());
        end - self.rest.len()
    }

    /// Number of finished chunks whose header counts other events than there are. Reading forward does not need the counters,
    /// seeking does.
    pub fn miscounted(&self) -> u64 {
        self.miscounted
    }

    #[cold]
    fn close_chunk(&mut self) {
        if self.kind != FileKind::Definitions && self.counters != (self.before_chunk + 1, self.number) {
            self.miscounted += 1;
        }
        self.before_chunk = self.number;
    }

    #[cold]
    fn open_chunk(&mut self) -> Result<()> {
        let start = self.chunk * self.chunk_size;
        let Some(bytes) = self.bytes.get(start..) else {
            return Err(Error::new("the file is truncated: it ends without an end-of-file mark"));
        };
        let mut bytes = &bytes[..bytes.len().min(self.chunk_size)];
        match bytes {
            [] | [control::CHUNK] => {
                return Err(Error::new("the file is truncated: it ends without an end-of-file mark"));
            }
            [control::CHUNK, tag, ..] if ByteOrder::from_tag(*tag).is_some() => {
                self.order = ByteOrder::from_tag(*tag).unwrap_or(ByteOrder::Little);
            }
            _ => return Err(Error::new(format!("no chunk header at byte {start}"))),
        }
        if bytes.len() < CHUNK_HEADER {
            return Err(Error::new("the file is truncated in the middle of a chunk header"));
        }
        let mut header = Reader::new(&bytes[2..CHUNK_HEADER], self.order);
        self.counters = (header.full_u64()?, header.full_u64()?);
        bytes = &bytes[CHUNK_HEADER..];
        self.chunk += 1;
        self.rest = bytes;
        Ok(())
    }

    #[cold]
    fn truncated(&self) -> Error {
        let end = self.bytes.len();
        if self.chunk * self.chunk_size >= end {
            Error::new(format!("the file is truncated: it ends at byte {end} in the middle of a record"))
        } else {
            Error::new(format!("a record at byte {} does not end within its chunk", self.offset()))
        }
        .at_event(self.number + 1)
    }

    /// The next record, or `None` at the end of the file.
    ///
    /// # Errors
    /// Truncated file, bad chunk header, record beyond its chunk, two timestamps in a row, time running backwards; with the number of
    /// the event.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)] // fallible, and the record borrows from the file
    pub fn next(&mut self) -> Result<Option<Record<'a>>> {
        match self.common() {
            Some(record) => Ok(Some(record)),
            None => self.any(),
        }
    }

    /// The next record of an event file if it has the common form, with all that follows it in doubt left to
    /// [`Records::any`]: nearly all records go this way, and it has to be short enough to become part of the loops that read them.
    #[inline(always)]
    fn common(&mut self) -> Option<Record<'a>> {
        // One byte more, since at least a mark has to follow within the chunk.
        let head = self.rest.first_chunk::<{ COMMON + 1 }>()?;
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
        let (record, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.number += 1;
        self.time = time;
        Some(Record {
            number: self.number,
            time,
            stamped,
            raw: &record[at..],
            attributes: 0,
            kind,
            payload: &record[payload..],
            order: self.order,
            chunk: self.chunk - 1,
        })
    }

    /// The next record of any file, whatever its form.
    #[inline(never)]
    fn any(&mut self) -> Result<Option<Record<'a>>> {
        if self.done {
            return Ok(None);
        }
        let events = self.kind != FileKind::Definitions;
        let mut stamped = false;
        let mut start: Option<&'a [u8]> = None;
        loop {
            let Some((&kind, rest)) = self.rest.split_first() else {
                if self.chunk == 0 {
                    self.open_chunk()?;
                    continue;
                }
                return Err(self.truncated());
            };
            match kind {
                control::END_OF_CHUNK => {
                    if start.is_some() || stamped {
                        return Err(
                            Error::new("a chunk ends between an event and what precedes it").at_event(self.number + 1)
                        );
                    }
                    self.close_chunk();
                    self.open_chunk()?;
                }
                control::END_OF_FILE => {
                    if start.is_some() || stamped {
                        return Err(
                            Error::new("the file ends between an event and what precedes it").at_event(self.number + 1)
                        );
                    }
                    self.close_chunk();
                    self.done = true;
                    return Ok(None);
                }
                control::TIMESTAMP if events => {
                    if stamped {
                        return Err(Error::new("two timestamps in a row").at_event(self.number + 1));
                    }
                    if start.is_some() {
                        // No writer does this, and a copy of the event would keep the old time in its middle.
                        return Err(
                            Error::new("a timestamp between an attribute list and its event").at_event(self.number + 1)
                        );
                    }
                    let Some((time, rest)) = rest.split_first_chunk::<8>() else { return Err(self.truncated()) };
                    let time = self.order.u64(*time);
                    if time < self.time {
                        return Err(Error::new(format!(
                            "time runs backwards: timestamp {time} after timestamp {}",
                            self.time
                        ))
                        .at_event(self.number + 1));
                    }
                    self.time = time;
                    stamped = true;
                    self.rest = rest;
                }
                control::ATTRIBUTE_LIST if events => {
                    start.get_or_insert(self.rest);
                    self.rest = self.skip_length_framed(rest)?.1;
                }
                control::END_OF_BUFFER | control::CHUNK | 4 => {
                    return Err(Error::new(format!("unexpected control byte {kind} at byte {}", self.offset()))
                        .at_event(self.number + 1));
                }
                _ => {
                    let begin = start.unwrap_or(self.rest);
                    let attributes = begin.len() - self.rest.len();
                    let width = if self.kind == FileKind::Events { singleton_width(kind) } else { None };
                    let (payload, after) = if let Some(width) = width {
                        let length = match rest.first() {
                            None => return Err(self.truncated()),
                            Some(0 | 0xFF) => 1,
                            Some(&length) if length <= width => usize::from(length) + 1,
                            Some(length) => {
                                return Err(Error::new(format!(
                                    "a packed integer of {length} bytes where at most {width} are allowed"
                                ))
                                .at_event(self.number + 1));
                            }
                        };
                        rest.split_at_checked(length).ok_or_else(|| self.truncated())?
                    } else {
                        self.skip_length_framed(rest)?
                    };
                    if after.is_empty() {
                        // Something has to follow within the chunk, at least a mark.
                        return Err(self.truncated());
                    }
                    let raw = &begin[..begin.len() - after.len()];
                    self.rest = after;
                    self.number += 1;
                    return Ok(Some(Record {
                        number: self.number,
                        time: self.time,
                        stamped,
                        raw,
                        attributes,
                        kind,
                        payload,
                        order: self.order,
                        chunk: self.chunk - 1,
                    }));
                }
            }
        }
    }

    /// Splits a length and a payload of that length off `bytes`.
    #[inline]
    fn skip_length_framed(&self, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
        match bytes.split_first() {
            Some((&length, rest)) if length != 0xFF => {
                rest.split_at_checked(usize::from(length)).ok_or_else(|| self.truncated())
            }
            _ => {
                let mut reader = Reader::new(bytes, self.order);
                let length = reader.record_length().map_err(|_| self.truncated())?;
                let length = usize::try_from(length).map_err(|_| self.truncated())?;
                reader.rest().split_at_checked(length).ok_or_else(|| self.truncated())
            }
        }
    }
}
