//! The clock log of an agent: when each packet of gossip left a node, and when it arrived, so that the clocks can be compared after the run. The two ends of a
//! packet are in two logs, each by the clock of its node, and come together by sender and sequence number.
//!
//! A file is [`MAGIC`] and entries of 32 bytes, each of four u64, little-endian: what it is (lower half) and of whom (upper half), the sender's start, the sequence number, the time.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

/// First bytes.
pub const MAGIC: [u8; 8] = *b"CLCGOS01";
/// End of the file names.
pub const EXTENSION: &str = "clocks";
/// Bytes of an entry.
const LENGTH: usize = 32;
/// No log is longer. The first half takes two hours with packets every 10 ms; then there are fewer, and the second half takes nine hours.
const MOST: usize = 128 << 20;

const SENT: u64 = 1;
const CAME: u64 = 2;
const RANK: u64 = 3;

/// A packet, as its header names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// The sender's start.
    pub incarnation: u64,
    /// Its number among the packets of the sender.
    pub sequence: u64,
}

/// What an agent has noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockLogEntry {
    /// This node has sent a packet at that time.
    Sent(Name, u64),
    /// A packet of another node has arrived at that time.
    Came(Name, u64),
    /// A rank of the job is on this node.
    Rank(u32),
}

impl ClockLogEntry {
    fn encode(self) -> [u8; LENGTH] {
        let words = match self {
            ClockLogEntry::Sent(name, time) => [SENT, name.incarnation, name.sequence, time],
            ClockLogEntry::Came(name, time) => [CAME, name.incarnation, name.sequence, time],
            ClockLogEntry::Rank(rank) => [RANK | u64::from(rank) << 32, 0, 0, 0],
        };
        let mut bytes = [0; LENGTH];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<ClockLogEntry> {
        let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
        let [what, incarnation, sequence, time] = [words.next()?, words.next()?, words.next()?, words.next()?];
        let name = Name { incarnation, sequence };
        match what & u64::from(u32::MAX) {
            // A reading of a clock fits; anything else is damage.
            SENT if time < 1 << 62 => Some(ClockLogEntry::Sent(name, time)),
            CAME if time < 1 << 62 => Some(ClockLogEntry::Came(name, time)),
            RANK => Some(ClockLogEntry::Rank((what >> 32) as u32)),
            _ => None,
        }
    }
}

/// A log that is written.
#[derive(Debug)]
pub(crate) struct ClockLog {
    /// None when it is full, or the disk is: what was written stays.
    file: Option<BufWriter<File>>,
    written: usize,
}

impl ClockLog {
    /// A new one.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn create(path: &Path) -> Result<ClockLog> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&MAGIC)?;
        Ok(ClockLog { file: Some(file), written: 0 })
    }

    /// Notes an entry. Nobody is told if there is no room for it.
    pub(crate) fn push(&mut self, entry: ClockLogEntry) {
        self.written += LENGTH;
        if self.written > MOST {
            self.flush();
            self.file = None;
        }
        if self.file.as_mut().is_some_and(|file| file.write_all(&entry.encode()).is_err()) {
            self.give_up();
        }
    }

    /// Whether half of the room is used up, so that packets had better be fewer from now on.
    pub(crate) fn is_half_full(&self) -> bool {
        self.written > MOST / 2
    }

    /// Whoever reads it sees what has been noted.
    pub(crate) fn flush(&mut self) {
        if self.file.as_mut().is_some_and(|file| file.flush().is_err()) {
            self.give_up();
        }
    }

    /// Without trying again when it is dropped.
    fn give_up(&mut self) {
        drop(self.file.take().map(BufWriter::into_parts));
    }
}

/// What an agent has noted. Half an entry at the end, where it was killed or the disk was full, is left out, and so is what makes no sense.
///
/// # Errors
/// The file cannot be read, or is none.
pub fn read(path: &Path) -> Result<Vec<ClockLogEntry>> {
    let bytes = std::fs::read(path)?;
    let entries = bytes.strip_prefix(&MAGIC).ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(entries.chunks_exact(LENGTH).filter_map(ClockLogEntry::decode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_as_far_as_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.clocks");
        let name = Name { incarnation: 1 << 60, sequence: 7 };
        let entries = [
            ClockLogEntry::Rank(3),
            ClockLogEntry::Sent(name, 10),
            ClockLogEntry::Came(Name { sequence: 8, ..name }, 20),
        ];
        let mut log = ClockLog::create(&path).unwrap();
        entries.into_iter().for_each(|entry| log.push(entry));
        log.flush();
        assert_eq!(read(&path).unwrap(), entries);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend([9; 40]);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap(), entries);
        std::fs::write(&path, &bytes[..bytes.len() - 45]).unwrap();
        assert_eq!(read(&path).unwrap(), entries[..2]);
        std::fs::write(&path, "nonsense, and more of it").unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn a_full_disk_ends_a_log_and_nothing_else() {
        let Ok(full) = File::options().write(true).open("/dev/full") else { return };
        let mut log = ClockLog { file: Some(BufWriter::new(full)), written: 0 };
        (0..10_000).for_each(|rank| log.push(ClockLogEntry::Rank(rank)));
        log.flush();
        assert!(log.file.is_none() && !log.is_half_full());
        (0..(MOST / LENGTH / 2) as u32).for_each(|rank| log.push(ClockLogEntry::Rank(rank)));
        assert!(log.is_half_full());
    }
}
