//! Many plain records at once, for those who change times only: where they stand and when they were.

use super::{COMMON, FileKind, Record, RecordReader};
use crate::framing::{BUFFER_FLUSH, FRAMED, FRAMING, control};
use crate::source::Source;
use clc_trace::EventNumber;

/// Bytes of a timestamp and its mark.
const TIMESTAMP: usize = 9;

/// In [`RecordRun::places`]: no timestamp stands before the record.
const UNSTAMPED: u32 = 1 << 31;

/// Most bytes after the length of a record of the common form, by type; -1 if there is none, or if it does not belong into a stretch.
static LONGEST: [i16; 256] = {
    let mut longest = [-1; 256];
    let mut kind = 0;
    while kind < 256 {
        longest[kind] = match FRAMING[kind] {
            _ if kind as u8 == BUFFER_FLUSH => -1,
            FRAMED => 0xFE,
            width if width < FRAMED => width as i16,
            _ => -1,
        };
        kind += 1;
    }
    longest
};

/// Records of the common form that follow each other in one chunk, none of them a `BufferFlush`, which has a further time.
#[derive(Debug)]
pub struct RecordRun {
    /// Number of the first one.
    first: EventNumber,
    /// The time in force at each, in ticks, then whatever it is replaced by. Only the first `length` count, as in `places`.
    times: Vec<u64>,
    /// Where each begins in its chunk, with its timestamp if it has one, else with [`UNSTAMPED`].
    places: Vec<u32>,
    /// Record type of each.
    kinds: Vec<u8>,
    length: usize,
    /// Where the last one ends.
    end: usize,
    /// Place and time in force before the first one.
    before: (usize, u64),
}

impl Default for RecordRun {
    fn default() -> Self {
        let (times, places, kinds) = (vec![0; RecordRun::MOST], vec![0; RecordRun::MOST], vec![0; RecordRun::MOST]);
        RecordRun { first: EventNumber::FIRST, times, places, kinds, length: 0, end: 0, before: (0, 0) }
    }
}

impl RecordRun {
    /// Most records of one: its lists stay in the nearest cache.
    pub const MOST: usize = 256;

    /// Number of the first event.
    pub fn first(&self) -> EventNumber {
        self.first
    }

    /// The time of each record.
    pub fn times(&self) -> &[u64] {
        &self.times[..self.length]
    }

    /// The same, to be replaced.
    pub fn times_mut(&mut self) -> &mut [u64] {
        &mut self.times[..self.length]
    }

    /// The type of each record.
    pub fn kinds(&self) -> &[u8] {
        &self.kinds[..self.length]
    }

    /// Of each record: where it begins in its chunk, whether a timestamp of nine bytes is the first of it, and its time.
    #[inline]
    pub fn placed(&self) -> impl Iterator<Item = (usize, bool, u64)> {
        let places = self.places[..self.length].iter();
        places.zip(self.times()).map(|(&place, &time)| ((place & !UNSTAMPED) as usize, place & UNSTAMPED == 0, time))
    }

    /// Where the last record ends in its chunk.
    pub fn end(&self) -> usize {
        self.end
    }
}

impl<S: Source> RecordReader<S> {
    /// Reads records as long as they are of the common form and in the same chunk, and there is room for them. Where it stops,
    /// [`RecordReader::next`] goes on, with whatever is there.
    pub fn gather(&mut self, stretch: &mut RecordRun) {
        (stretch.first, stretch.length, stretch.end, stretch.before) =
            (EventNumber::after(self.number), 0, self.at, (self.at, self.time));
        let bytes = self.source.present();
        // Chunks so large do not occur; their records go the other way.
        if self.kind != FileKind::Events || bytes.len() >= UNSTAMPED as usize {
            return;
        }
        let (mut at, mut time, order) = (self.at, self.time, self.order);
        let mut length = 0;
        let places = stretch.places.iter_mut().zip(&mut stretch.kinds);
        for (own_time, (own_place, own_kind)) in stretch.times.iter_mut().zip(places) {
            // One byte more, since at least a mark has to follow within the chunk.
            let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<{ COMMON + 1 }>()) else { break };
            let stamped = head[0] == control::TIMESTAMP;
            let mut own = time;
            let begin = if stamped {
                let mut digits = [0; 8];
                digits.copy_from_slice(&head[1..TIMESTAMP]);
                own = order.u64(digits);
                TIMESTAMP
            } else {
                0
            };
            let (kind, bytes_after) = (head[begin], head[begin + 1]);
            if i16::from(bytes_after) > LONGEST[usize::from(kind)] || own < time {
                break;
            }
            (*own_time, *own_kind, *own_place) = (own, kind, at as u32 | if stamped { 0 } else { UNSTAMPED });
            at += begin + 2 + usize::from(bytes_after);
            time = own;
            length += 1;
        }
        (stretch.length, stretch.end) = (length, at);
        (self.at, self.time) = (at, time);
        self.number += length as u64;
    }

    /// Record `index` of the `stretch` that was read last, as [`RecordReader::next`] would have returned it.
    #[inline(always)]
    pub fn at<'a>(&'a self, stretch: &RecordRun, index: usize) -> Record<'a> {
        let (place, time, kind) = (stretch.places[index], stretch.times[index], stretch.kinds[index]);
        let bytes = self.source.present();
        let stamped = place & UNSTAMPED == 0;
        let start = (place & !UNSTAMPED) as usize + if stamped { TIMESTAMP } else { 0 };
        let length = bytes.get(start + 1).map_or(0, |length| usize::from(*length));
        let fields = if FRAMING[usize::from(kind)] == FRAMED { start + 2 } else { start + 1 };
        let part = |from: usize| bytes.get(from..start + 2 + length).unwrap_or_default();
        Record {
            number: stretch.first.0 + index as u64,
            time,
            stamped,
            raw: part(start),
            attributes: 0,
            kind,
            payload: part(fields),
            order: self.order,
            chunk: self.chunk.saturating_sub(1),
            bytes,
            start,
        }
    }

    /// Goes back to the first record of the `stretch` that was read last.
    pub fn rewind(&mut self, stretch: &RecordRun) {
        (self.at, self.time) = stretch.before;
        self.number = stretch.first.preceding();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{ByteOrder, Writer};
    use proptest::prelude::*;

    /// An event file of one chunk: per record its type, whether a timestamp stands before it, and how many bytes it has.
    fn file(records: &[(u8, bool, u8)], order: ByteOrder) -> Vec<u8> {
        let mut writer = Writer::new(order);
        writer.bytes.extend([control::CHUNK, order.tag()]);
        writer.full_u64(1);
        writer.full_u64(records.len() as u64);
        for (number, &(kind, stamped, length)) in (1_u64..).zip(records) {
            if stamped || number == 1 {
                writer.u8(control::TIMESTAMP);
                writer.full_u64(1000 * number);
            }
            writer.bytes.extend([kind, length]);
            writer.bytes.extend(vec![1; usize::from(length)]);
        }
        writer.bytes.extend([control::END_OF_FILE, control::END_OF_BUFFER]);
        // Room for the common form to the last record.
        writer.bytes.extend([0; COMMON]);
        writer.bytes
    }

    proptest! {
        #[test]
        fn stretches_and_single_records_are_the_same(
            records in prop::collection::vec((prop_oneof![Just(12u8), Just(13), Just(14), Just(10), 14u8..90], any::<bool>(), 0u8..12), 1..60),
            big in any::<bool>(), back in any::<bool>(),
        ) {
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let bytes = file(&records, order);
            let show = |record: Record<'_>| format!("{record:?}");
            let mut expected = Vec::new();
            let mut single = RecordReader::new(&bytes, FileKind::Events, bytes.len() as u64);
            let failed = loop {
                match single.next() {
                    Ok(Some(record)) => expected.push(show(record)),
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            let mut found = Vec::new();
            let (mut records, mut stretch) = (RecordReader::new(&bytes, FileKind::Events, bytes.len() as u64), RecordRun::default());
            let failed_here = loop {
                records.gather(&mut stretch);
                prop_assert_eq!(stretch.times().len(), stretch.placed().count());
                if back {
                    records.rewind(&stretch);
                    for (place, stamped, time) in stretch.placed() {
                        let record = records.next().unwrap().unwrap();
                        prop_assert_eq!((record.start - if stamped { TIMESTAMP } else { 0 }, record.time), (place, time));
                        found.push(show(record));
                    }
                } else {
                    found.extend((0..stretch.times().len()).map(|index| show(records.at(&stretch, index))));
                }
                match records.next() {
                    Ok(Some(record)) => found.push(show(record)),
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            prop_assert_eq!(found, expected);
            prop_assert_eq!(failed_here, failed);
        }
    }
}
