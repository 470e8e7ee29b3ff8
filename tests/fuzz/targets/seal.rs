//! Right checksums for files that have some, so that changed contents are read, not refused for their checksum.
//!
//! The layouts are those of `docs/formats.md`; no code of the program is used.

/// Header of a native event file: where it says how long the blocks are, where the checksum of the clock offsets stands, and its own.
const EVENTS: (usize, usize, usize) = (40, 52, 60);
/// Where the checksum of a truth file's header stands.
const TRUTH: usize = 36;

/// The file with right checksums, as far as it has the parts that they are in.
pub(crate) fn seal(file: &mut [u8]) {
    if file.starts_with(b"CLCEVENT") {
        let end = file.get(EVENTS.0..EVENTS.0 + 8).map_or(0, |bytes| number(bytes) as usize).min(file.len());
        let offsets = checksum(&file[end..]);
        put(file, EVENTS.1, offsets);
        seal_up_to(file, EVENTS.2);
        seal_blocks(file, EVENTS.2 + 4, end);
    } else if file.starts_with(b"CLCTRUTH") {
        seal_up_to(file, TRUTH);
        seal_blocks(file, TRUTH + 4, file.len());
    } else if file.starts_with(b"CLCDEFIN") && file.len() >= 24 {
        let end = file.len() - 4;
        let length = (end - 20) as u64;
        file[12..20].copy_from_slice(&length.to_le_bytes());
        seal_up_to(file, end);
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |value: u32| value >> 1 ^ if value & 1 == 1 { 0xEDB8_8320 } else { 0 };
    !bytes.iter().fold(!0, |value, &byte| (0..8).fold(value ^ u32::from(byte), |value, _| step(value)))
}

fn put(file: &mut [u8], at: usize, value: u32) {
    if let Some(place) = file.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

/// The checksum at a place is of everything before it.
fn seal_up_to(file: &mut [u8], at: usize) {
    if let Some(before) = file.get(..at) {
        let value = checksum(before);
        put(file, at, value);
    }
}

/// Blocks of a length, a number and data, each with a checksum behind it.
fn seal_blocks(file: &mut [u8], mut at: usize, end: usize) {
    while at + 12 <= end {
        let data = at + 8 + number(&file[at..at + 4]) as usize;
        if data + 4 > end {
            return;
        }
        let value = checksum(&file[at..data]);
        put(file, data, value);
        at = data + 4;
    }
}
