//! Where the chunks of a file come from: memory, or a file that is read chunk by chunk.

use clc_trace::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Gives one chunk of a file after the other.
pub(crate) trait Source {
    /// Bytes of the whole file.
    fn length(&self) -> u64;

    /// Makes the next `size` bytes (fewer at the end of the file) the present ones. The first call is for the beginning of the file.
    ///
    /// # Errors
    /// Reading fails.
    fn advance(&mut self, size: usize) -> Result<()>;

    /// The present bytes; none before the first [`Source::advance`] and at the end of the file.
    fn present(&self) -> &[u8];
}

/// Bytes in memory.
#[derive(Debug, Clone)]
pub(crate) struct ByteSource<'a> {
    length: u64,
    present: &'a [u8],
    rest: &'a [u8],
}

impl<'a> ByteSource<'a> {
    /// The whole contents of a file.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        ByteSource { length: bytes.len() as u64, present: &[], rest: bytes }
    }

    /// [`Source::advance`], which cannot fail here.
    pub(crate) fn begin(&mut self, size: usize) {
        (self.present, self.rest) = self.rest.split_at(size.min(self.rest.len()));
    }
}

impl Source for ByteSource<'_> {
    fn length(&self) -> u64 {
        self.length
    }

    fn advance(&mut self, size: usize) -> Result<()> {
        self.begin(size);
        Ok(())
    }

    #[inline(always)]
    fn present(&self) -> &[u8] {
        self.present
    }
}

/// Bytes that a reader of the rest of a file wants to have free.
const SPARE: usize = 64;

/// A file of which one chunk at a time is in memory. Beside a memory map it needs no address space for the whole file, no page faults,
/// and a file that shrinks while it is read is an error instead of a signal.
#[derive(Debug)]
pub(crate) struct Blocks {
    file: File,
    length: u64,
    read: u64,
    present: Vec<u8>,
}

impl Blocks {
    /// Opens `path`.
    ///
    /// # Errors
    /// The file is missing, not readable or not a regular file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (file, length) = crate::open_file(path)?;
        Ok(Blocks { file, length, read: 0, present: Vec::new() })
    }

    /// Makes [`Source::advance`] go on at byte `offset`.
    ///
    /// # Errors
    /// The file ends before that.
    pub(crate) fn seek(&mut self, offset: u64) -> Result<()> {
        if offset > self.length {
            return Err(Error::new("the file has become shorter since it was read"));
        }
        self.read = offset;
        let place = self.file.seek(SeekFrom::Start(self.read));
        place.map(|_| ()).map_err(|error| Error::caused_by(format!("cannot read: {error}"), &error))
    }
}

impl Source for Blocks {
    fn length(&self) -> u64 {
        self.length
    }

    fn advance(&mut self, size: usize) -> Result<()> {
        let size = (self.length - self.read).min(size as u64) as usize;
        self.present.clear();
        // With room for more, or the reader would look for the end with a small read first.
        self.present.reserve_exact(size + SPARE);
        let read = (&self.file).take(size as u64).read_to_end(&mut self.present);
        let read = read.map_err(|error| Error::caused_by(format!("cannot read: {error}"), &error))?;
        if read < size {
            return Err(Error::new("the file became shorter while it was being read"));
        }
        self.read += size as u64;
        Ok(())
    }

    #[inline(always)]
    fn present(&self) -> &[u8] {
        &self.present
    }
}
