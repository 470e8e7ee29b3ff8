//! Reads truth files.

use super::{BLOCK, HEADER, MAGIC, VERSION};
use crate::open_file;
use clc_trace::{Error, EventNumber, LocationId, Result, Ticks};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Reads the true times of one location in order, one block at a time. A block is handed out only when its checksum holds.
#[derive(Debug)]
pub struct TruthReader {
    path: PathBuf,
    file: BufReader<File>,
    location: LocationId,
    resolution: u64,
    /// Events that the header promises, and events in the blocks read so far.
    count: u64,
    seen: u64,
    /// The current block: its data, how far it is decoded, and the events left in it.
    data: Vec<u8>,
    at: usize,
    left: u32,
    last: i64,
}

/// Up to eight bytes as a little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

impl TruthReader {
    /// Opens a truth file and checks its header.
    ///
    /// # Errors
    /// The file cannot be read, is no truth file, is unfinished or damaged, or is of another version.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |error| Error::io(path, "cannot read the truth file", &error);
        let mut file = BufReader::new(open_file(path)?.0);
        let mut header = [0; HEADER];
        if let Err(error) = file.read_exact(&mut header) {
            return Err(match error.kind() {
                ErrorKind::UnexpectedEof => Error::damaged("too short for a truth file").in_file(path),
                _ => io(error),
            });
        }
        if header.iter().all(|&byte| byte == 0) {
            return Err(Error::damaged("the truth file was never finished")
                .in_file(path)
                .hint("run the simulation again"));
        }
        let (magic, rest) = header.split_at(8);
        if magic != MAGIC {
            return Err(Error::damaged("this is not a truth file").in_file(path));
        }
        let (version, rest) = rest.split_at(4);
        if number(version) != u64::from(VERSION) {
            let message =
                format!("truth file of format version {}; only version {VERSION} is supported", number(version));
            return Err(Error::new(message).in_file(path).hint("use the version of clc-replay that wrote it"));
        }
        let (content, checksum) = header.split_at(HEADER - 4);
        if number(checksum) != u64::from(crc32fast::hash(content)) {
            return Err(damaged("its header does not match its checksum").in_file(path));
        }
        let (location, rest) = rest.split_at(8);
        let (resolution, rest) = rest.split_at(8);
        let (count, _) = rest.split_at(8);
        Ok(TruthReader {
            path: path.to_path_buf(),
            file,
            location: LocationId(number(location)),
            resolution: number(resolution),
            count: number(count),
            seen: 0,
            data: Vec::new(),
            at: 0,
            left: 0,
            last: 0,
        })
    }

    /// The location whose truth this is.
    pub fn location(&self) -> LocationId {
        self.location
    }

    /// Ticks per second.
    pub fn resolution(&self) -> u64 {
        self.resolution
    }

    /// Number of events.
    pub fn events(&self) -> u64 {
        self.count
    }

    /// The true time of the next event in ticks, or nothing after the last one.
    ///
    /// # Errors
    /// The file cannot be read, is truncated or damaged.
    #[inline]
    pub fn next_time(&mut self) -> Result<Option<Ticks>> {
        if self.left == 0 {
            if self.seen == self.count {
                return self.end().map(|()| None);
            }
            self.read_block()?;
        }
        self.left -= 1;
        if self.at == 0 {
            // read_block has checked that the first time is there.
            self.last = number(self.data.get(..8).unwrap_or_default()).cast_signed();
            self.at = 8;
        } else {
            let step = self.varint().ok_or_else(|| self.fail("a block ends in the middle of a time"))?;
            self.last = i64::try_from(step)
                .ok()
                .and_then(|step| self.last.checked_add(step))
                .ok_or_else(|| self.fail("a time is out of range"))?;
        }
        if self.left == 0 && self.at != self.data.len() {
            return Err(self.fail("a block holds data after its last event"));
        }
        Ok(Some(Ticks(self.last)))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.data.get(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn read_block(&mut self) -> Result<()> {
        let mut prefix = [0; 8];
        self.fill(&mut prefix)?;
        let [a, b, c, d, more @ ..] = prefix;
        let (length, events) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes(more));
        // Every event but the first takes at least a byte.
        let fits = (8..=BLOCK).contains(&length) && events >= 1 && events as usize <= length - 7;
        if !fits || u64::from(events) > self.count - self.seen {
            return Err(self.fail("a block has impossible sizes"));
        }
        let mut data = std::mem::take(&mut self.data);
        data.resize(length, 0);
        self.fill(&mut data)?;
        let mut checksum = [0; 4];
        self.fill(&mut checksum)?;
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&prefix);
        hasher.update(&data);
        if number(&checksum) != u64::from(hasher.finalize()) {
            return Err(self.fail("a block does not match its checksum"));
        }
        let first = number(data.get(..8).unwrap_or_default()).cast_signed();
        if self.seen > 0 && first < self.last {
            return Err(self.fail("times decrease"));
        }
        self.seen += u64::from(events);
        self.left = events;
        self.data = data;
        self.at = 0;
        Ok(())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact(buffer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.fail("it ends too early"),
            _ => Error::io(&self.path, "cannot read the truth file", &error),
        })
    }

    /// After the last event there must be nothing.
    fn end(&mut self) -> Result<()> {
        match self.file.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.fail("there is data after its last event")),
            Err(error) => Err(Error::io(&self.path, "cannot read the truth file", &error)),
        }
    }

    #[cold]
    fn fail(&self, what: &str) -> Error {
        damaged(what)
            .in_file(&self.path)
            .at_location(self.location)
            .at_event(EventNumber::after(self.seen - u64::from(self.left)))
    }
}

fn damaged(what: &str) -> Error {
    Error::damaged(format!("the truth file is damaged: {what}"))
}

impl Iterator for TruthReader {
    type Item = Result<Ticks>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_time().transpose()
    }
}
