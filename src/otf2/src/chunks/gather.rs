//! Many plain records at once, for those who change times only: where they stand and when they were.

use super::{COMMON, FileKind, RecordReader};
use crate::bytes::{ByteOrder, Reader};
use crate::framing::{BUFFER_FLUSH, FRAMED, FRAMING, control};
use crate::source::Source;
use clc_trace::EventNumber;
use clc_trace::vector::widest;

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
pub(crate) struct RecordRun {
    /// Number of the first one.
    first: EventNumber,
    /// The time in force at each, in ticks, then whatever it is replaced by. Only the first `length` count, as in `places`.
    times: Box<[u64; RecordRun::MOST]>,
    /// Where each begins in its chunk, with its timestamp if it has one, else with [`UNSTAMPED`].
    places: Box<[u32; RecordRun::MOST]>,
    /// Record type of each.
    kinds: Box<[u8; RecordRun::MOST]>,
    length: usize,
    /// Where the last one ends.
    end: usize,
    /// Place and time in force before the first one.
    before: (usize, u64),
}

impl Default for RecordRun {
    fn default() -> Self {
        RecordRun {
            first: EventNumber::FIRST,
            times: Box::new([0; RecordRun::MOST]),
            places: Box::new([0; RecordRun::MOST]),
            kinds: Box::new([0; RecordRun::MOST]),
            length: 0,
            end: 0,
            before: (0, 0),
        }
    }
}

impl RecordRun {
    /// Most records of one: its lists stay in the nearest cache.
    pub(crate) const MOST: usize = 256;

    /// Number of the first event.
    pub(crate) fn first(&self) -> EventNumber {
        self.first
    }

    /// The time of each record.
    pub(crate) fn times(&self) -> &[u64] {
        &self.times[..self.length]
    }

    /// The same, to be replaced.
    pub(crate) fn times_mut(&mut self) -> &mut [u64] {
        &mut self.times[..self.length]
    }

    /// The type of each record.
    pub(crate) fn kinds(&self) -> &[u8] {
        &self.kinds[..self.length]
    }

    /// Of each record: where it begins in its chunk, whether a timestamp of nine bytes is the first of it, and its time.
    #[inline]
    pub(crate) fn placed(&self) -> impl Iterator<Item = (usize, bool, u64)> {
        let places = self.places[..self.length].iter();
        places.zip(self.times()).map(|(&place, &time)| ((place & !UNSTAMPED) as usize, place & UNSTAMPED == 0, time))
    }

    /// Reads records of the common form from byte `at` of a chunk on, where `time` is in force, whether or not times ascend; returns where they end.
    #[inline(always)]
    fn read(&mut self, bytes: &[u8], at: usize, mut time: u64, digits: impl Fn([u8; 8]) -> u64) -> usize {
        let mut rest = bytes.get(at..).unwrap_or_default();
        let end = at + rest.len();
        self.length = RecordRun::MOST;
        for index in 0..RecordRun::MOST {
            // One byte more, since at least a mark has to follow within the chunk.
            let Some(head) = rest.first_chunk::<{ COMMON + 1 }>() else {
                self.length = index;
                break;
            };
            let place = (end - rest.len()) as u32;
            // One way or the other, and not by a number of bytes to be worked out: the processor guesses the way, and goes on to the next record before it has
            // read this one.
            let bytes_after;
            if head[0] == control::TIMESTAMP {
                let mut own = [0; 8];
                own.copy_from_slice(&head[1..TIMESTAMP]);
                bytes_after = head[TIMESTAMP + 1];
                (self.times[index], self.kinds[index], self.places[index]) = (digits(own), head[TIMESTAMP], place);
                rest = &rest[TIMESTAMP + 2..];
            } else {
                bytes_after = head[1];
                (self.times[index], self.kinds[index], self.places[index]) = (time, head[0], place | UNSTAMPED);
                rest = &rest[2..];
            }
            if i16::from(bytes_after) > LONGEST[usize::from(self.kinds[index])] {
                self.length = index;
                return (place & !UNSTAMPED) as usize;
            }
            time = self.times[index];
            rest = &rest[usize::from(bytes_after)..];
        }
        end - rest.len()
    }

    /// Whether no time is earlier than the one before it.
    pub(crate) fn ascends(&self) -> bool {
        let times = self.times();
        widest(
            #[inline(always)]
            // All are looked at, which is faster than to stop.
            || times.iter().zip(times.iter().skip(1)).fold(true, |all, (before, time)| all & (before <= time)),
        )
    }

    /// Leaves out the first record whose time is earlier than that before it, and all that follow; returns where that one begins. At `time` is what is
    /// before the first one.
    fn cut_before_decrease(&mut self, time: u64) -> Option<usize> {
        let times = self.times();
        if self.ascends() && times.first().is_none_or(|&first| first >= time) {
            return None;
        }
        let before = std::iter::once(&time).chain(times);
        self.length = before.zip(times).position(|(before, own)| own < before)?;
        Some((self.places[self.length] & !UNSTAMPED) as usize)
    }
}

/// The fields of a record of the common form.
#[derive(Debug)]
pub(crate) struct RecordFields<'a> {
    /// Begins with them. For speed it goes on into what follows the record.
    pub reader: Reader<'a>,
    /// How many bytes are left where the record ends.
    left: usize,
}

impl RecordFields<'_> {
    /// Whether fields of this record only have been read.
    #[inline(always)]
    pub(crate) fn are_enough(&self) -> bool {
        self.reader.rest().len() >= self.left
    }
}

impl<S: Source> RecordReader<S> {
    /// Reads records as long as they are of the common form and in the same chunk, and there is room for them. Where it stops,
    /// [`RecordReader::next`] goes on, with whatever is there.
    pub(crate) fn gather(&mut self, stretch: &mut RecordRun) {
        (stretch.first, stretch.length, stretch.end, stretch.before) =
            (EventNumber::after(self.number), 0, self.at, (self.at, self.time));
        let bytes = self.source.present();
        // Chunks so large do not occur; their records go the other way.
        if self.kind != FileKind::Events || bytes.len() >= UNSTAMPED as usize {
            return;
        }
        // A loop for each byte order, or every record would ask for it.
        let end = match self.order {
            ByteOrder::Little => stretch.read(bytes, self.at, self.time, u64::from_le_bytes),
            ByteOrder::Big => stretch.read(bytes, self.at, self.time, u64::from_be_bytes),
        };
        stretch.end = stretch.cut_before_decrease(self.time).unwrap_or(end);
        self.at = stretch.end;
        self.time = stretch.times().last().copied().unwrap_or(self.time);
        self.number += stretch.length as u64;
    }

    /// Type, time and fields of record `index` of the `stretch` that was read last.
    #[inline(always)]
    pub(crate) fn at<'a>(&'a self, stretch: &RecordRun, index: u8) -> (u8, u64, RecordFields<'a>) {
        // Lists of 256 elements, so that every index is one of them.
        let index = usize::from(index);
        let (place, kind) = (stretch.places[index], stretch.kinds[index]);
        let stamp = if place & UNSTAMPED == 0 { TIMESTAMP } else { 0 };
        let from = (place & !UNSTAMPED) as usize + stamp;
        // Type and length, which is also the first byte of an integer without a length.
        let Some(record @ [_, length, rest @ ..]) = self.source.present().get(from..) else {
            return (kind, stretch.times[index], RecordFields { reader: Reader::new(&[], self.order), left: 0 });
        };
        let fields = &record[if FRAMING[usize::from(kind)] == FRAMED { 2 } else { 1 }..];
        let left = rest.len().saturating_sub(usize::from(*length));
        (kind, stretch.times[index], RecordFields { reader: Reader::new(fields, self.order), left })
    }

    /// The `stretch` that was read last, as it is in the file.
    pub(crate) fn bytes_of(&self, stretch: &RecordRun) -> &[u8] {
        self.source.present().get(stretch.before.0..stretch.end).unwrap_or_default()
    }

    /// Goes back to the first record of the `stretch` that was read last.
    pub(crate) fn rewind(&mut self, stretch: &RecordRun) {
        (self.at, self.time) = stretch.before;
        self.number = stretch.first.preceding();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Writer;
    use crate::chunks::Record;
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
                    for (index, (place, stamped, own)) in stretch.placed().enumerate() {
                        let (kind, time, fields) = records.at(&stretch, index as u8);
                        prop_assert_eq!(time, own);
                        let start = place + if stamped { TIMESTAMP } else { 0 };
                        let payload = bytes.len() - fields.reader.rest().len()..bytes.len() - fields.left;
                        found.push(show(Record {
                            number: stretch.first().0 + index as u64,
                            time,
                            stamped,
                            raw: &bytes[start..payload.end],
                            attributes: 0,
                            kind,
                            payload: &bytes[payload],
                            order,
                            chunk: 0,
                            bytes: &bytes,
                            start,
                        }));
                    }
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
