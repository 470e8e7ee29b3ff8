//! Event files written the way libotf2 writes them: same chunk breaks, same timestamps.

use crate::archive::otf2::bytes::ByteOrder;
use crate::archive::otf2::chunks::CHUNK_HEADER;
use crate::archive::otf2::records::control;
use crate::trace::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes one chunked file: chunks are collected in memory and written when full.
#[derive(Debug)]
pub struct ChunkWriter {
    path: PathBuf,
    file: File,
    chunk: Vec<u8>,
    size: usize,
    order: ByteOrder,
    /// Events in all chunks so far; stays 0 in files that do not count.
    count: u64,
    counted: bool,
    time: u64,
    written: u64,
}

impl ChunkWriter {
    /// Creates `path` with chunks of `size` bytes. `counted`: chunk headers hold event numbers (event and snapshot files).
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, size: u64, order: ByteOrder, counted: bool) -> Result<ChunkWriter> {
        let file = File::create_new(path).map_err(|error| Error::io(path, "cannot create", &error))?;
        let mut writer = ChunkWriter {
            path: path.to_path_buf(),
            file,
            chunk: Vec::new(),
            size: size as usize,
            order,
            count: 0,
            counted,
            time: 0,
            written: 0,
        };
        writer.begin_chunk();
        Ok(writer)
    }

    fn begin_chunk(&mut self) {
        self.chunk.clear();
        self.chunk.extend([control::CHUNK, self.order.tag()]);
        self.chunk.extend(self.order.bytes(self.count + 1));
        self.chunk.extend(self.order.bytes(0));
    }

    fn end_chunk(&mut self, padded: bool) -> Result<()> {
        let last = if self.counted { self.count } else { 0 };
        self.chunk[10..CHUNK_HEADER].copy_from_slice(&self.order.bytes(last));
        if padded {
            self.chunk.resize(self.size, 0);
        }
        self.file.write_all(&self.chunk).map_err(|error| Error::io(&self.path, "cannot write", &error))?;
        self.written += self.chunk.len() as u64;
        Ok(())
    }

    fn break_chunk(&mut self) -> Result<()> {
        self.end_chunk(true)?;
        self.begin_chunk();
        Ok(())
    }

    /// Appends an event (attribute lists and record as they are in the file) at `time`. `bound` is the upper bound of its size;
    /// `stamped` asks for a timestamp even if the time is that of the event before.
    ///
    /// # Errors
    /// The file cannot be written; a record that does not fit into a chunk.
    #[inline]
    pub fn event(&mut self, time: u64, raw: &[u8], bound: usize, stamped: bool) -> Result<()> {
        if bound + 9 >= self.size.saturating_sub(self.chunk.len()) {
            self.break_chunk()?;
            if CHUNK_HEADER + 9 + raw.len() + 2 > self.size {
                return Err(Error::new("a record larger than a chunk").in_file(&self.path));
            }
            self.stamp(time);
        } else if time > self.time || time == 0 || stamped {
            self.stamp(time);
        }
        self.chunk.extend_from_slice(raw);
        self.count += 1;
        Ok(())
    }

    /// Appends a record of a file without timestamps.
    ///
    /// # Errors
    /// As [`ChunkWriter::event`].
    pub fn record(&mut self, raw: &[u8]) -> Result<()> {
        if raw.len() + 1 >= self.size.saturating_sub(self.chunk.len()) {
            self.break_chunk()?;
            if CHUNK_HEADER + raw.len() + 2 > self.size {
                return Err(Error::new("a record larger than a chunk").in_file(&self.path));
            }
        }
        self.chunk.extend_from_slice(raw);
        Ok(())
    }

    fn stamp(&mut self, time: u64) {
        self.time = time;
        self.chunk.push(control::TIMESTAMP);
        self.chunk.extend(self.order.bytes(time));
    }

    /// Ends the file; returns its size in bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<u64> {
        self.chunk.extend([control::END_OF_FILE, control::END_OF_BUFFER]);
        self.end_chunk(false)?;
        Ok(self.written)
    }
}
