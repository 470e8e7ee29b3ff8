//! Writes truth files.

use super::{BLOCK, HEADER, LONGEST_NUMBER, MAGIC, VERSION};
use clc_trace::{Error, EventNumber, LocationId, Result, Ticks};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Writes the truth file of one location. It keeps one block in memory and no file open, so that thousands of locations
/// can be written at the same time.
#[derive(Debug)]
pub struct TruthWriter {
    path: PathBuf,
    location: LocationId,
    resolution: u64,
    /// Events in all blocks, and in the current one.
    count: u64,
    in_block: u32,
    last: i64,
    /// The current block, with room for its header in front.
    block: Vec<u8>,
}

/// Bytes in front of the data of a block.
const PREFIX: usize = 8;

impl TruthWriter {
    /// Begins the file `path` for a location with `resolution` ticks per second. An existing file is replaced. Until
    /// [`TruthWriter::finish`] the file counts as unfinished, and no reader takes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, location: LocationId, resolution: u64) -> Result<Self> {
        let writer = TruthWriter {
            path: path.to_path_buf(),
            location,
            resolution,
            count: 0,
            in_block: 0,
            last: 0,
            block: vec![0; PREFIX],
        };
        let io = |error| Error::io(path, "cannot create the truth file", &error);
        let mut file = File::create(path).map_err(io)?;
        file.write_all(&[0; HEADER]).map_err(io)?;
        Ok(writer)
    }

    /// Appends the true time of the next event, in ticks.
    ///
    /// # Errors
    /// The time is before that of the last event, or the file cannot be written.
    #[inline]
    pub fn push(&mut self, time: Ticks) -> Result<()> {
        if self.in_block == 0 {
            if self.count > 0 && time.0 < self.last {
                return Err(self.decreasing(time));
            }
            self.block.extend_from_slice(&time.0.to_le_bytes());
        } else {
            if time.0 < self.last {
                return Err(self.decreasing(time));
            }
            let mut rest = time.0.wrapping_sub(self.last).cast_unsigned();
            while rest >= 0x80 {
                self.block.push(rest.to_le_bytes()[0] | 0x80);
                rest >>= 7;
            }
            self.block.push(rest.to_le_bytes()[0]);
        }
        self.last = time.0;
        self.in_block += 1;
        self.count += 1;
        if self.block.len() > PREFIX + BLOCK - LONGEST_NUMBER {
            self.flush()?;
        }
        Ok(())
    }

    #[cold]
    fn decreasing(&self, time: Ticks) -> Error {
        Error::new(format!("true time {time} follows {}: the times of a location must not decrease", self.last))
            .in_file(&self.path)
            .at_location(self.location)
            .at_event(EventNumber::after(self.count))
    }

    /// Writes the current block to the end of the file.
    fn flush(&mut self) -> Result<()> {
        if self.in_block == 0 {
            return Ok(());
        }
        // Blocks are short.
        let length = u32::try_from(self.block.len() - PREFIX).unwrap_or(u32::MAX);
        self.block[0..4].copy_from_slice(&length.to_le_bytes());
        self.block[4..8].copy_from_slice(&self.in_block.to_le_bytes());
        let checksum = crc32fast::hash(&self.block);
        self.block.extend_from_slice(&checksum.to_le_bytes());
        let io = |error| Error::io(&self.path, "cannot write the truth file", &error);
        let mut file = OpenOptions::new().append(true).open(&self.path).map_err(io)?;
        file.write_all(&self.block).map_err(io)?;
        self.block.truncate(PREFIX);
        self.in_block = 0;
        Ok(())
    }

    /// Writes what is left and makes the file valid; returns the number of events.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<u64> {
        self.flush()?;
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&self.location.0.to_le_bytes());
        header.extend_from_slice(&self.resolution.to_le_bytes());
        header.extend_from_slice(&self.count.to_le_bytes());
        let checksum = crc32fast::hash(&header);
        header.extend_from_slice(&checksum.to_le_bytes());
        let io = |error| Error::io(&self.path, "cannot write the truth file", &error);
        let mut file = OpenOptions::new().write(true).open(&self.path).map_err(io)?;
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        file.write_all(&header).map_err(io)?;
        Ok(self.count)
    }
}
