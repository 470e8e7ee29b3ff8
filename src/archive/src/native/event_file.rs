//! Reading event files `events/<location>.clce`: a header, blocks of events, clock offsets.

use super::numbers::ByteReader;
use super::records::NativeRecord;
use super::{FIRST_VERSION, VERSION};
use clc_trace::{ClockOffset, Error, EventNumber, LocationId, Result};

/// The first bytes of an event file.
pub(super) const MAGIC: [u8; 8] = *b"CLCEVENT";
/// Size of the header in bytes.
pub(super) const HEADER: usize = 64;
/// Bytes of a clock offset.
const OFFSET: usize = 24;

/// What the header of an event file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventFileHeader {
    /// The version of the file, which decides what its events look like.
    pub version: u32,
    /// Whose events these are.
    pub location: LocationId,
    /// Ticks per second.
    pub resolution: u64,
    /// Number of events.
    pub events: u64,
    /// Where the blocks end and the clock offsets begin.
    pub offsets_at: u64,
    /// Number of clock offsets.
    pub offsets: u32,
    /// CRC-32 of the clock offsets.
    pub offsets_checksum: u32,
}

impl EventFileHeader {
    /// The header as it is in the file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&0u32.to_le_bytes());
        bytes.extend_from_slice(&self.location.0.to_le_bytes());
        bytes.extend_from_slice(&self.resolution.to_le_bytes());
        bytes.extend_from_slice(&self.events.to_le_bytes());
        bytes.extend_from_slice(&self.offsets_at.to_le_bytes());
        bytes.extend_from_slice(&self.offsets.to_le_bytes());
        bytes.extend_from_slice(&self.offsets_checksum.to_le_bytes());
        bytes.extend_from_slice(&0u32.to_le_bytes());
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header at the begin of a file.
    ///
    /// # Errors
    /// The file is none of this kind, was never finished, is of another version, or damaged.
    pub(super) fn read(bytes: &[u8]) -> Result<EventFileHeader> {
        let Some(whole) = bytes.first_chunk::<HEADER>() else {
            return Err(Error::damaged("too short for an event file: it is truncated"));
        };
        if whole.iter().all(|&byte| byte == 0) {
            return Err(Error::damaged("the event file was never finished").hint("write the trace again"));
        }
        if !whole.starts_with(&MAGIC) {
            return Err(Error::damaged("this is not an event file of a native trace"));
        }
        let mut rest = ByteReader(whole.get(MAGIC.len()..).unwrap_or_default());
        let version = rest.u32().unwrap_or_default();
        check_version(version)?;
        let checksum = whole.last_chunk::<4>().map_or(0, |last| u32::from_le_bytes(*last));
        if checksum != crc32fast::hash(whole.get(..HEADER - 4).unwrap_or_default()) {
            return Err(damaged("its header does not match its checksum"));
        }
        let flags = rest.u32();
        let mut fields = || {
            Some(EventFileHeader {
                version,
                location: LocationId(rest.u64()?),
                resolution: rest.u64()?,
                events: rest.u64()?,
                offsets_at: rest.u64()?,
                offsets: rest.u32()?,
                offsets_checksum: rest.u32()?,
            })
        };
        let header = fields().ok_or_else(|| damaged("its header is incomplete"))?;
        if flags != Some(0) || rest.u32() != Some(0) {
            return Err(Error::unsupported("the event file uses features that this version does not support")
                .hint("use the version of clc-replay that wrote it"));
        }
        Ok(header)
    }
}

/// That a version of the format is known.
///
/// # Errors
/// It is not.
pub(super) fn check_version(version: u32) -> Result<()> {
    if (FIRST_VERSION..=VERSION).contains(&version) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "native trace of format version {version}; versions {FIRST_VERSION} to {VERSION} are \
        supported"
    ))
    .hint("use the version of clc-replay that wrote it"))
}

fn damaged(what: &str) -> Error {
    Error::damaged(format!("the event file is damaged: {what}"))
}

/// Clock offsets as they are in the file.
pub(super) fn offset_bytes(offsets: &[ClockOffset]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(offsets.len() * OFFSET);
    for offset in offsets {
        bytes.extend_from_slice(&offset.time.to_le_bytes());
        bytes.extend_from_slice(&offset.offset.to_le_bytes());
        bytes.extend_from_slice(&offset.standard_deviation.to_bits().to_le_bytes());
    }
    bytes
}

/// Iterates over the events of a file in order.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    header: EventFileHeader,
    /// What follows the present block, up to the clock offsets.
    blocks: ByteReader<'a>,
    /// What is left of the present block, in bytes and events.
    data: ByteReader<'a>,
    left: u32,
    /// Number and time of the last event.
    number: u64,
    time: u64,
    offsets: &'a [u8],
}

impl<'a> Events<'a> {
    /// Over the whole contents of a file.
    ///
    /// # Errors
    /// Those of the header; sizes that do not fit together.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Events<'a>> {
        let header = EventFileHeader::read(bytes)?;
        let sizes = || {
            let end = usize::try_from(header.offsets_at).ok()?;
            let (front, offsets) = bytes.split_at_checked(end)?;
            let fits = offsets.len() as u64 == u64::from(header.offsets) * OFFSET as u64;
            fits.then_some((front.get(HEADER..)?, offsets))
        };
        let (blocks, offsets) = sizes().ok_or_else(|| {
            damaged(&format!(
                "it has {} bytes, but its header specifies {} and {} clock offsets",
                bytes.len(),
                header.offsets_at,
                header.offsets
            ))
        })?;
        Ok(Events { header, blocks: ByteReader(blocks), data: ByteReader(&[]), left: 0, number: 0, time: 0, offsets })
    }

    /// The location whose events these are.
    pub(crate) fn location(&self) -> LocationId {
        self.header.location
    }

    /// The version of the file.
    pub(crate) fn version(&self) -> u32 {
        self.header.version
    }

    /// Ticks per second.
    pub(crate) fn resolution(&self) -> u64 {
        self.header.resolution
    }

    /// The measured clock offsets, in strictly increasing order of time.
    ///
    /// # Errors
    /// They are damaged or not in order.
    pub(crate) fn clock_offsets(&self) -> Result<Vec<ClockOffset>> {
        if crc32fast::hash(self.offsets) != self.header.offsets_checksum {
            return Err(damaged("its clock offsets do not match their checksum"));
        }
        let mut offsets: Vec<ClockOffset> = Vec::with_capacity(self.offsets.len() / OFFSET);
        let mut rest = ByteReader(self.offsets);
        while let (Some(time), Some(offset), Some(deviation)) = (rest.u64(), rest.u64(), rest.u64()) {
            if let Some(last) = offsets.last()
                && time <= last.time
            {
                return Err(Error::damaged(format!(
                    "clock offset {} was measured at {time}, which is not after the previous one at {}",
                    offsets.len() + 1,
                    last.time
                )));
            }
            let standard_deviation = f64::from_bits(deviation);
            offsets.push(ClockOffset { time, offset: offset.cast_signed(), standard_deviation });
        }
        Ok(offsets)
    }

    /// The next event as number, raw local time and contents; nothing after the last one.
    ///
    /// # Errors
    /// The file is damaged.
    #[inline]
    #[allow(clippy::should_implement_trait)] // an error ends it, so it is no iterator of results
    pub(crate) fn next(&mut self) -> Result<Option<(EventNumber, u64, NativeRecord)>> {
        if self.left == 0 && !self.open_block()? {
            return Ok(None);
        }
        let event = self.data.number().and_then(|step| {
            let time = self.time.checked_add(step)?;
            Some((time, NativeRecord::decode(&mut self.data, time, self.header.version)?))
        });
        let Some((time, record)) = event else { return Err(self.fail("it contains an invalid event")) };
        self.left -= 1;
        if self.left == 0 && !self.data.0.is_empty() {
            return Err(self.fail("a block holds data after its last event"));
        }
        self.time = time;
        self.number += 1;
        Ok(Some((EventNumber(self.number), time, record)))
    }

    /// Begins with the next block; `false` if there is none.
    #[cold]
    fn open_block(&mut self) -> Result<bool> {
        if self.blocks.0.is_empty() {
            if self.number != self.header.events {
                let message = format!("it holds {} events, but its header says {}", self.number, self.header.events);
                return Err(self.fail(&message));
            }
            return Ok(false);
        }
        let start = self.blocks.0;
        let mut read = || {
            let (length, events) = (self.blocks.u32()? as usize, self.blocks.u32()?);
            let data = self.blocks.take(length)?;
            Some((data, events, start.get(..8 + length)?, self.blocks.u32()?))
        };
        let Some((data, events, covered, checksum)) = read() else {
            return Err(self.fail("a block extends past the end of the file"));
        };
        if crc32fast::hash(covered) != checksum {
            return Err(self.fail("a block does not match its checksum"));
        }
        if events == 0 {
            return Err(self.fail("a block without events"));
        }
        // The first time of a block is complete, so that a block can be read by itself.
        let last = std::mem::take(&mut self.time);
        if ByteReader(data).number().is_some_and(|first| first < last) {
            return Err(self.fail("time runs backwards"));
        }
        self.data = ByteReader(data);
        self.left = events;
        Ok(true)
    }

    #[cold]
    fn fail(&self, what: &str) -> Error {
        damaged(what).at_event(EventNumber::after(self.number))
    }
}
