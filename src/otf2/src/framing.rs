//! How the event records of OTF2 (versions 1.0 to 3.0) lie in a file: control bytes, names, lengths, upper bounds of their size.

use crate::bytes::{ByteOrder, Reader};
use crate::event_record::EventRecord;

/// Control bytes in the place of a record type.
pub(crate) mod control {
    /// Nothing more in this chunk.
    pub(crate) const END_OF_CHUNK: u8 = 0;
    /// Follows the end of a file.
    pub(crate) const END_OF_BUFFER: u8 = 1;
    /// Nothing more in this file.
    pub(crate) const END_OF_FILE: u8 = 2;
    /// Begin of a chunk.
    pub(crate) const CHUNK: u8 = 3;
    /// The time of the events that follow.
    pub(crate) const TIMESTAMP: u8 = 5;
    /// Attributes of the event that follows.
    pub(crate) const ATTRIBUTE_LIST: u8 = 6;
}

/// OTF2 `BufferFlush`, the only event with a time among its fields.
pub(crate) const BUFFER_FLUSH: u8 = 10;

/// Number of the first event record.
const FIRST: u8 = 10;

/// Names and bounds of the fields, from the number [`FIRST`] on without a gap.
const RECORDS: &[(u8, &str, u16)] = EventRecord::TABLE;

const METRIC: u8 = 31;
const PROGRAM_BEGIN: u8 = 83;

/// Name of a record type.
pub fn name(kind: u8) -> String {
    match kind.checked_sub(FIRST).and_then(|index| RECORDS.get(usize::from(index))) {
        Some((_, name, _)) => (*name).to_owned(),
        None => format!("Unknown{kind}"),
    }
}

/// Some record types have no length: their payload is one packed integer of at most so many bytes.
#[inline]
pub(crate) const fn singleton_width(kind: u8) -> Option<u8> {
    SINGLES[kind as usize]
}

/// [`singleton_width`] of every type.
const SINGLES: [Option<u8>; 256] = {
    let mut widths = [None; 256];
    let mut index = 0;
    while index < RECORDS.len() {
        let ((number, single), (_, _, most)) = (EventRecord::SINGLES[index], RECORDS[index]);
        if single {
            // One byte of them says how many there are.
            widths[number as usize] = Some(most as u8 - 1);
        }
        index += 1;
    }
    widths
};

/// In [`FRAMING`]: the record has a length.
pub(crate) const FRAMED: u8 = 0x80;

/// In [`FRAMING`]: no record of the common form.
const UNCOMMON: u8 = 0x81;

/// How records of the common form are framed, by type: the largest length of their packed integer, or [`FRAMED`].
pub(crate) const FRAMING: [u8; 256] = framing();

const fn framing() -> [u8; 256] {
    let mut framing = [UNCOMMON; 256];
    let mut kind = 10;
    while kind < 256 {
        framing[kind] = match singleton_width(kind as u8) {
            Some(width) => width,
            None => FRAMED,
        };
        kind += 1;
    }
    framing
}

/// Upper bound of type, length and payload of a record, by which libotf2 decides whether a chunk has room.
pub(crate) fn bound(kind: u8, payload: &[u8], order: ByteOrder) -> usize {
    if let Some(width) = singleton_width(kind) {
        return 2 + usize::from(width);
    }
    let fixed = kind.checked_sub(FIRST).and_then(|index| RECORDS.get(usize::from(index)));
    let most = match (fixed, kind) {
        (Some((.., most)), METRIC) => {
            let mut reader = Reader::new(payload, order);
            let values = reader.u32().and_then(|_| reader.u8()).unwrap_or(0);
            usize::from(*most) + 10 * usize::from(values)
        }
        (Some((.., most)), PROGRAM_BEGIN) => {
            let mut reader = Reader::new(payload, order);
            let arguments = reader.u32().and_then(|_| reader.u32()).unwrap_or(0);
            // A damaged count must not become a huge number; the payload itself is the other limit.
            usize::from(*most) + 5 * (arguments as usize).min(payload.len())
        }
        (Some((.., most)), _) => usize::from(*most),
        (None, _) => 0,
    }
    .max(payload.len());
    1 + if most >= 255 { 9 } else { 1 } + most
}

/// Upper bound of an attribute list with this payload.
pub(crate) fn attribute_bound(payload: &[u8], order: ByteOrder) -> usize {
    let count = Reader::new(payload, order).u32().unwrap_or(0) as usize;
    let most = (15 * count.min(payload.len()) + 5).max(payload.len());
    1 + if most >= 255 { 9 } else { 1 } + most
}
