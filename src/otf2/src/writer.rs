//! Chunked files written the way libotf2 writes them: same chunk breaks, same timestamps.

use crate::bytes::ByteOrder;
use crate::chunks::{CHUNK_HEADER, Record, RecordRun};
use crate::framing::control;
use clc_trace::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where in a chunk its last event's number stands.
const LAST_EVENT: u64 = 10;
/// Bytes of a timestamp record.
const TIMESTAMP: usize = 9;
/// With many files at once, so many bytes of a chunk stay in memory.
const SPILL: usize = 16 * 1024;

/// Where a record that is written again stood in its old file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordSource {
    /// Its chunk, from 0.
    pub chunk: usize,
    /// Whether a timestamp stood before it.
    pub stamped: bool,
}

impl RecordSource {
    /// The place of a record that has been read.
    pub(crate) fn of(record: &Record<'_>) -> RecordSource {
        RecordSource { chunk: record.chunk, stamped: record.stamped }
    }
}

/// Writes one chunked file: chunks are collected in memory and written when full.
///
/// A file that is written again keeps its layout (chunk breaks, timestamps that repeat the time before them) as long as no byte
/// has to be inserted or left out before; from there on, and in new files, libotf2's own rules hold.
#[derive(Debug)]
pub(crate) struct ChunkWriter {
    path: PathBuf,
    /// `None` between writes, if many files are written at once.
    file: Option<File>,
    many: bool,
    /// The end of the present chunk, from byte `spilled` on.
    chunk: Vec<u8>,
    spilled: usize,
    size: usize,
    order: ByteOrder,
    /// Finished chunks.
    chunks: usize,
    /// Events in all chunks so far; stays 0 in files that do not count.
    count: u64,
    counted: bool,
    time: u64,
    /// Bytes in the file.
    written: u64,
    /// Whether the layout is that of the source up to here.
    following: bool,
    /// Whether the present chunk is, so far, a copy of one of the source in which times are replaced.
    mirrors: bool,
}

impl ChunkWriter {
    /// Creates `path` with chunks of `size` bytes. `counted`: chunk headers hold event numbers (event and snapshot files).
    ///
    /// # Errors
    /// The file exists or cannot be created.
    pub(crate) fn create(path: &Path, size: u64, order: ByteOrder, counted: bool) -> Result<ChunkWriter> {
        let file = File::create_new(path).map_err(|error| Error::io(path, "cannot create", &error))?;
        let mut writer = ChunkWriter {
            path: path.to_path_buf(),
            file: Some(file),
            many: false,
            chunk: Vec::new(),
            spilled: 0,
            size: size as usize,
            order,
            chunks: 0,
            count: 0,
            counted,
            time: 0,
            written: 0,
            following: true,
            mirrors: false,
        };
        writer.begin_chunk();
        Ok(writer)
    }

    /// As [`ChunkWriter::create`], but holds neither an open file nor a whole chunk in memory between two writes: thousands of
    /// files can be written at once.
    ///
    /// # Errors
    /// The file exists or cannot be created.
    pub(crate) fn create_one_of_many(path: &Path, size: u64, order: ByteOrder, counted: bool) -> Result<ChunkWriter> {
        let mut writer = ChunkWriter::create(path, size, order, counted)?;
        writer.many = true;
        writer.file = None;
        Ok(writer)
    }

    /// Number of events so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Time of the last event so far, in ticks.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// Byte order of the file.
    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// The file being written.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    #[inline]
    fn room(&self) -> usize {
        self.size.saturating_sub(self.spilled + self.chunk.len())
    }

    fn begin_chunk(&mut self) {
        self.spilled = 0;
        self.chunk.clear();
        self.chunk.extend([control::CHUNK, self.order.tag()]);
        self.chunk.extend(self.order.bytes(self.count + 1));
        self.chunk.extend(self.order.bytes(0));
    }

    /// Writes the rest of the chunk, with the number of its last event in its header.
    fn end_chunk(&mut self, padded: bool) -> Result<()> {
        let last = self.order.bytes(if self.counted { self.count } else { 0 });
        if self.spilled == 0 {
            self.chunk[LAST_EVENT as usize..CHUNK_HEADER].copy_from_slice(&last);
        } else {
            self.write(self.written - self.spilled as u64 + LAST_EVENT, &last)?;
        }
        if padded {
            self.chunk.resize(self.size - self.spilled, 0);
        }
        self.spill()
    }

    /// Appends what is in memory to the file.
    fn spill(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.chunk);
        let outcome = self.write(self.written, &bytes);
        self.written += bytes.len() as u64;
        self.spilled += bytes.len();
        self.chunk = bytes;
        self.chunk.clear();
        outcome
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let mut write = || -> std::io::Result<File> {
            let mut file = match self.file.take() {
                Some(file) => file,
                None => OpenOptions::new().write(true).open(&self.path)?,
            };
            file.seek(SeekFrom::Start(at))?;
            file.write_all(bytes)?;
            Ok(file)
        };
        let file = write().map_err(|error| Error::io(&self.path, "cannot write", &error))?;
        self.file = (!self.many).then_some(file);
        Ok(())
    }

    fn break_chunk(&mut self) -> Result<()> {
        self.end_chunk(true)?;
        self.chunks += 1;
        self.begin_chunk();
        Ok(())
    }

    /// Appends an event (attribute lists and record as they are in the file) at `time`, which must not decrease. `bound`
    /// gives the upper bound of its size by libotf2's rules; `source` is the place it had if it is written again with the same size.
    ///
    /// # Errors
    /// The file cannot be written; a record that does not fit into a chunk.
    #[inline]
    pub(crate) fn event(
        &mut self,
        time: u64,
        raw: &[u8],
        bound: impl FnOnce() -> usize,
        source: Option<RecordSource>,
    ) -> Result<()> {
        if self.following {
            if let Some(source) = source
                && (source.chunk == self.chunks || source.chunk == self.chunks + 1)
                && (source.stamped || (time == self.time && source.chunk == self.chunks))
            {
                if source.chunk != self.chunks {
                    self.break_chunk()?;
                }
                let stamp = if source.stamped { TIMESTAMP } else { 0 };
                if raw.len() + stamp < self.room() {
                    if source.stamped {
                        self.stamp(time);
                    }
                    return self.append(raw);
                }
            }
            self.following = false;
        }
        // A long form where the short one would do makes a record longer than any estimate.
        if bound().max(raw.len()) + TIMESTAMP >= self.room() {
            // An empty chunk gains nothing by another one.
            if self.spilled + self.chunk.len() > CHUNK_HEADER {
                self.break_chunk()?;
            }
            if raw.len() + TIMESTAMP >= self.room() {
                return Err(self.too_large());
            }
            self.stamp(time);
        } else if time > self.time || time == 0 {
            self.stamp(time);
        }
        self.append(raw)
    }

    #[inline]
    fn append(&mut self, raw: &[u8]) -> Result<()> {
        self.chunk.extend_from_slice(raw);
        self.count += 1;
        if self.many && self.chunk.len() >= SPILL { self.spill() } else { Ok(()) }
    }

    /// Appends an event of a file that is written again, unchanged but for its time, as long as the layout of the source can be kept: where it stood
    /// there, with what precedes it. Returns whether that was possible; if not, [`ChunkWriter::event`] has to go on, here and to the end of the file.
    ///
    /// # Errors
    /// The file cannot be written.
    #[inline(always)]
    pub(crate) fn mirror(&mut self, time: u64, record: &Record<'_>) -> Result<bool> {
        if (!self.mirrors || record.chunk != self.chunks) && !self.mirror_chunk(record)? {
            return Ok(false);
        }
        if !record.stamped && time != self.time {
            self.mirrors = false;
            return Ok(false);
        }
        if record.stamped {
            self.stamp(time);
        }
        self.chunk.extend_from_slice(record.raw);
        self.count += 1;
        Ok(true)
    }

    /// As [`ChunkWriter::mirror`] for the records of a stretch, whose `bytes` follow those that are in the present chunk already; returns how many of them
    /// could be appended.
    pub(crate) fn mirror_stretch(&mut self, stretch: &RecordRun, bytes: &[u8]) -> usize {
        if !self.mirrors {
            return 0;
        }
        // Copied as one, while it is still at hand, then the times are put in.
        self.chunk.extend_from_slice(bytes);
        let (order, mut last, mut done, mut end) = (self.order, self.time, 0, None);
        let chunk = &mut self.chunk[..];
        for (place, stamped, time) in stretch.placed() {
            if stamped {
                chunk[place + 1..place + TIMESTAMP].copy_from_slice(&order.bytes(time));
                last = time;
            } else if time != last {
                end = Some(place);
                break;
            }
            done += 1;
        }
        self.time = last;
        self.count += done as u64;
        if let Some(end) = end {
            self.chunk.truncate(end);
            self.mirrors = false;
        }
        done
    }

    /// Begins with the chunk of `record`, which has to be its first one; returns whether the layout can be kept there.
    #[cold]
    fn mirror_chunk(&mut self, record: &Record<'_>) -> Result<bool> {
        let first = self.count == 0 && record.chunk == 0;
        let next = self.mirrors && record.chunk == self.chunks + 1;
        // What stands between the header and the first event is its timestamp and nothing else.
        let plain = record.stamped && record.start == CHUNK_HEADER + TIMESTAMP;
        self.mirrors = plain && (first || next) && record.order == self.order;
        if self.mirrors && next {
            self.break_chunk()?;
        }
        if self.mirrors {
            self.chunk.reserve_exact(record.bytes.len().saturating_sub(self.chunk.len()));
        }
        Ok(self.mirrors)
    }

    /// Replaces the event appended last by one of the same length.
    pub(crate) fn replace_last(&mut self, raw: &[u8]) {
        if let Some(begin) = self.chunk.len().checked_sub(raw.len()) {
            self.chunk[begin..].copy_from_slice(raw);
        }
    }

    /// Appends a record of a file without timestamps. `source` is the chunk it stood in if it is written again as it was.
    ///
    /// # Errors
    /// As [`ChunkWriter::event`].
    pub(crate) fn record(&mut self, raw: &[u8], source: Option<usize>) -> Result<()> {
        self.following &= source.is_some_and(|chunk| chunk == self.chunks || chunk == self.chunks + 1);
        let full = raw.len() + 1 >= self.room();
        let breaks = if self.following { source != Some(self.chunks) || raw.len() >= self.room() } else { full };
        if breaks {
            self.break_chunk()?;
            if raw.len() >= self.room() {
                return Err(self.too_large());
            }
        }
        self.chunk.extend_from_slice(raw);
        Ok(())
    }

    #[cold]
    fn too_large(&self) -> Error {
        Error::new(format!("a record does not fit into a chunk of {} bytes", self.size)).in_file(&self.path)
    }

    #[inline]
    fn stamp(&mut self, time: u64) {
        self.time = time;
        let mut record = [control::TIMESTAMP; TIMESTAMP];
        record[1..].copy_from_slice(&self.order.bytes(time));
        self.chunk.extend_from_slice(&record);
    }

    /// Ends the file; returns its size in bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.chunk.extend([control::END_OF_FILE, control::END_OF_BUFFER]);
        self.end_chunk(false)?;
        Ok(self.written)
    }
}
