//! Writing an archive again with other times: whatever is no time stays byte for byte.

use crate::bytes::{ByteOrder, Reader, Writer};
use crate::chunks::{FileKind, Record, RecordReader, RecordRun};
use crate::definitions::kind;
use crate::files::Otf2Archive;
use crate::framing::{BUFFER_FLUSH, attribute_bound, bound};
use crate::local_file::{CLOCK_OFFSET, clock_offset_record};
use crate::writer::{ChunkWriter, RecordSource};
use crate::{MappedFile, Marker, MarkerScope, TimeMap, copy};
use clc_trace::{ClockOffset, ClockProperties, Error, EventNumber, LocationId, Result};
use std::path::Path;

/// OTF2 marker file record `Marker`.
const MARKER: u8 = 6;

/// More than packed integers in a snapshot record can be shorter than their upper bound.
const SNAPSHOT_SLACK: usize = 64;

impl Otf2Archive {
    /// Writes the event file of a location into `target` (the directory of another archive of the same name), with every time
    /// mapped. Times must not decrease.
    ///
    /// # Errors
    /// The event file is missing or damaged, the map fails or runs backwards, the target cannot be written.
    pub fn rewrite_events(&self, location: LocationId, target: &Path, map: &mut impl TimeMap) -> Result<()> {
        let path = self.event_path(location);
        let place = |error: Error| error.in_file(&path).at_location(location);
        let mut records = RecordReader::open(&path, FileKind::Events, self.anchor().event_chunk)?;
        let target = self.at(target).event_path(location);
        let mut writer = ChunkWriter::create(&target, self.anchor().event_chunk, records.order(), true)?;
        let mut last = 0;
        let mut patched = Vec::new();
        let mut mirrors = true;
        let mut stretch = RecordRun::default();
        loop {
            // Nearly all records come in stretches; what is special about one is seen to below.
            records.gather(&mut stretch);
            map.events(stretch.first(), stretch.times_mut())?;
            last = ascending(&stretch, last)?;
            let done = if mirrors { writer.mirror_stretch(&stretch, records.bytes_of(&stretch)) } else { 0 };
            mirrors = mirrors && done == stretch.times().len();
            if !mirrors {
                records.rewind(&stretch);
                for (index, &time) in stretch.times().iter().enumerate() {
                    let Some(record) = records.next().map_err(place)? else { break };
                    if index >= done {
                        same_order(&record, &writer).map_err(place)?;
                        writer.event(time, record.raw, || event_bound(&record), Some(RecordSource::of(&record)))?;
                    }
                }
            }
            let Some(record) = records.next().map_err(place)? else { break };
            let time = map.event(record.event(), record.time)?;
            if time < last {
                return Err(backwards(time, last, record.event()));
            }
            last = time;
            mirrors = mirrors && writer.mirror(time, &record)?;
            if record.kind == BUFFER_FLUSH && record.payload.len() >= 8 {
                patch_flush(&record, map, &mut patched);
                if mirrors {
                    writer.replace_last(&patched);
                }
            }
            if !mirrors {
                same_order(&record, &writer).map_err(place)?;
                let raw = if record.kind == BUFFER_FLUSH && record.payload.len() >= 8 { &patched } else { record.raw };
                writer.event(time, raw, || event_bound(&record), Some(RecordSource::of(&record)))?;
            }
        }
        writer.finish()?;
        Ok(())
    }

    /// Maps the times of a location like [`Otf2Archive::rewrite_events`], without writing anything.
    ///
    /// # Errors
    /// The event file is missing or damaged, the map fails.
    pub fn map_events(&self, location: LocationId, map: &mut impl TimeMap) -> Result<()> {
        let path = self.event_path(location);
        let mut records = RecordReader::open(&path, FileKind::Events, self.anchor().event_chunk)?;
        let mut patched = Vec::new();
        let mut stretch = RecordRun::default();
        loop {
            records.gather(&mut stretch);
            map.events(stretch.first(), stretch.times_mut())?;
            let record = records.next().map_err(|error| error.in_file(&path).at_location(location))?;
            let Some(record) = record else { break };
            map.event(record.event(), record.time)?;
            if record.kind == BUFFER_FLUSH && record.payload.len() >= 8 {
                patch_flush(&record, map, &mut patched);
            }
        }
        Ok(())
    }

    /// Copies the event file of a location into `target` byte for byte.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn copy_events(&self, location: LocationId, target: &Path) -> Result<()> {
        copy(&self.event_path(location), &self.at(target).event_path(location))
    }

    /// Writes the local definitions of a location into `target` without its clock offsets: the new times are global already.
    /// Nothing happens if there is no such file.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_local_definitions(&self, location: LocationId, target: &Path) -> Result<()> {
        self.replace_clock_offsets(location, target, &[])
    }

    /// Writes the local definitions of a location into `target` with `offsets`, in increasing order of time, in the place of its
    /// clock offsets. Without a file and without offsets nothing happens.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn replace_clock_offsets(&self, location: LocationId, target: &Path, offsets: &[ClockOffset]) -> Result<()> {
        let path = self.local_definition_path(location);
        let target = self.at(target).local_definition_path(location);
        let chunk = self.anchor().definition_chunk;
        if path.exists() {
            let bytes = MappedFile::open(&path)?;
            let drop_offsets = |record: &Record<'_>, _: &mut Vec<u8>| match record.kind {
                CLOCK_OFFSET => Action::Drop,
                _ => Action::Keep,
            };
            let writer = rewrite_records_open(&path, &bytes, &target, chunk, drop_offsets)?;
            return append_offsets(writer, offsets);
        }
        if offsets.is_empty() {
            return Ok(());
        }
        append_offsets(ChunkWriter::create(&target, chunk, self.anchor().order, false)?, offsets)
    }

    /// Writes the global definitions into `target`, with the clock properties `clock` in the place of the old ones.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_definitions(&self, target: &Path, clock: Option<&ClockProperties>) -> Result<()> {
        let path = self.definition_path();
        let target = self.at(target).definition_path();
        let Some(clock) = clock else { return copy(&path, &target) };
        let bytes = MappedFile::open(&path)?;
        rewrite_records(&path, &bytes, &target, self.anchor().definition_chunk, |record, new| {
            if record.kind != kind::CLOCK_PROPERTIES {
                return Action::Keep;
            }
            let mut reader = Reader::new(record.payload, record.order);
            let fixed = (reader.u64(), reader.u64(), reader.u64());
            if fixed.0.is_err() || fixed.1.is_err() || fixed.2.is_err() {
                return Action::Keep;
            }
            let mut payload = Writer::new(record.order);
            payload.u64(clock.resolution);
            payload.u64(clock.global_offset);
            payload.u64(clock.trace_length);
            if !reader.is_empty() && reader.u64().is_ok() {
                payload.u64(clock.realtime.unwrap_or(u64::MAX));
            }
            // Fields that a later version may have added.
            payload.bytes.extend(reader.rest());
            let mut writer = Writer::new(record.order);
            writer.record(record.kind, &payload.bytes, payload.bytes.len());
            *new = writer.bytes;
            Action::Replace
        })
    }

    /// Writes the anchor file into `target`; without thumbnails if `drop_thumbnails`. It makes the archive readable, so it comes last.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_anchor(&self, target: &Path, drop_thumbnails: bool) -> Result<()> {
        let path = self.anchor_path();
        let target = self.at(target).anchor_path();
        let mut bytes = std::fs::read(&path).map_err(|error| Error::io(&path, "cannot read", &error))?;
        if drop_thumbnails
            && let Some(at) = self.anchor().counts_at
            && let Some(count) = bytes.get_mut(at + 4..at + 8)
        {
            count.fill(0);
        }
        std::fs::write(&target, bytes).map_err(|error| Error::io(&target, "cannot write", &error))
    }

    /// The markers of the archive, in order; none if it has no marker file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn markers(&self) -> Result<Option<Vec<Marker>>> {
        let path = self.marker_path();
        if !path.exists() {
            return Ok(None);
        }
        let bytes = MappedFile::open(&path)?;
        let mut markers = Vec::new();
        let mut records = RecordReader::new(&bytes, FileKind::Definitions, self.anchor().definition_chunk);
        let mut run = || -> Result<()> {
            while let Some(record) = records.next()? {
                if record.kind == MARKER {
                    markers.push(read_marker(&record)?.0);
                }
            }
            Ok(())
        };
        run().map_err(|error| Error { event: None, ..error }.in_file(&path))?;
        Ok(Some(markers))
    }

    /// Writes the marker file into `target` with new (begin, duration) of every marker, in order.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_markers(&self, target: &Path, times: &[(u64, u64)]) -> Result<()> {
        let path = self.marker_path();
        let bytes = MappedFile::open(&path)?;
        let target = self.at(target).marker_path();
        let mut times = times.iter();
        rewrite_records(&path, &bytes, &target, self.anchor().definition_chunk, |record, new| {
            if record.kind != MARKER {
                return Action::Keep;
            }
            let (Ok((_, rest)), Some(&(time, duration))) = (read_marker(record), times.next()) else {
                return Action::Keep;
            };
            let mut payload = Writer::new(record.order);
            payload.u64(time);
            payload.u64(duration);
            payload.bytes.extend(rest);
            let mut writer = Writer::new(record.order);
            writer.record(record.kind, &payload.bytes, payload.bytes.len());
            *new = writer.bytes;
            Action::Replace
        })
    }

    /// Whether a location has a snapshot file that belongs to the archive.
    pub fn has_snapshots(&self, location: LocationId) -> bool {
        self.anchor().snapshots > 0 && self.snapshot_path(location).exists()
    }

    /// Writes the snapshot file of a location into `target`, its times (which are global) mapped by `map`, which must not decrease.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_snapshots(
        &self,
        location: LocationId,
        target: &Path,
        map: &mut dyn FnMut(u64) -> u64,
    ) -> Result<()> {
        let path = self.snapshot_path(location);
        let mut records = RecordReader::open(&path, FileKind::Snapshots, self.anchor().event_chunk)?;
        let target = self.at(target).snapshot_path(location);
        let mut writer = ChunkWriter::create(&target, self.anchor().event_chunk, records.order(), true)?;
        let mut raw = Vec::new();
        while let Some(record) = records.next().map_err(|error| error.in_file(&path).at_location(location))? {
            raw.clear();
            raw.extend_from_slice(record.raw);
            // From 12 on, records begin with the time of the event that they repeat.
            if (12..=29).contains(&record.kind)
                && let Some(original) = record.payload.first_chunk::<8>()
            {
                let at = raw.len() - record.payload.len();
                raw[at..at + 8].copy_from_slice(&record.order.bytes(map(record.order.u64(*original))));
            }
            same_order(&record, &writer).map_err(|error| error.in_file(&path).at_location(location))?;
            writer.event(map(record.time), &raw, || raw.len() + SNAPSHOT_SLACK, Some(RecordSource::of(&record)))?;
        }
        writer.finish()?;
        Ok(())
    }
}

/// The last of the new times of a stretch, which do not decrease, after `last`.
fn ascending(stretch: &RecordRun, mut last: u64) -> Result<u64> {
    if let (Some(&first), Some(&end), true) = (stretch.times().first(), stretch.times().last(), stretch.ascends())
        && first >= last
    {
        return Ok(end);
    }
    for (number, &time) in stretch.first().and_following().zip(stretch.times()) {
        if time < last {
            return Err(backwards(time, last, number));
        }
        last = time;
    }
    Ok(last)
}

/// Upper bound of the size of an event by the rules of libotf2.
fn event_bound(record: &Record<'_>) -> usize {
    bound(record.kind, record.payload, record.order) + attributes_bound(record)
}

#[cold]
fn backwards(time: u64, last: u64, number: EventNumber) -> Error {
    Error::new(format!(
        "the corrected time {time} is earlier than the preceding one, {last}; this is a \
        bug"
    ))
    .at_event(number)
}

/// Records are copied as they are, so all chunks of a file have to have the byte order of its first.
#[inline]
fn same_order(record: &Record<'_>, writer: &ChunkWriter) -> Result<()> {
    if record.order == writer.order() { Ok(()) } else { Err(mixed_order(record.order, record.event())) }
}

#[cold]
fn mixed_order(order: ByteOrder, number: EventNumber) -> Error {
    let order = match order {
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
    };
    Error::damaged(format!("the byte order changes to {order} endian within the file")).at_event(number)
}

/// What becomes of a record.
enum Action {
    Keep,
    Drop,
    Replace,
}

/// Copies a file of records without timestamps, asking for each what becomes of it; a replacement is put into the vector.
fn rewrite_records(
    path: &Path,
    bytes: &[u8],
    target: &Path,
    chunk_size: u64,
    decide: impl FnMut(&Record<'_>, &mut Vec<u8>) -> Action,
) -> Result<()> {
    rewrite_records_open(path, bytes, target, chunk_size, decide)?.finish().map(|_| ())
}

/// Ends a local definition file with `offsets`.
fn append_offsets(mut writer: ChunkWriter, offsets: &[ClockOffset]) -> Result<()> {
    for offset in offsets {
        writer.record(&clock_offset_record(offset, writer.order()), None)?;
    }
    writer.finish().map(|_| ())
}

/// As [`rewrite_records`], but more records can follow.
fn rewrite_records_open(
    path: &Path,
    bytes: &[u8],
    target: &Path,
    chunk_size: u64,
    mut decide: impl FnMut(&Record<'_>, &mut Vec<u8>) -> Action,
) -> Result<ChunkWriter> {
    let mut records = RecordReader::new(bytes, FileKind::Definitions, chunk_size);
    let mut writer = ChunkWriter::create(target, chunk_size, records.order(), false)?;
    let mut new = Vec::new();
    // The layout of the file can be kept until a record of another size comes.
    let mut source = Some(());
    while let Some(record) = records.next().map_err(|error| Error { event: None, ..error }.in_file(path))? {
        same_order(&record, &writer).map_err(|error| Error { event: None, ..error }.in_file(path))?;
        let raw = match decide(&record, &mut new) {
            Action::Keep => record.raw,
            Action::Drop => {
                source = None;
                continue;
            }
            Action::Replace => &new,
        };
        source = source.filter(|()| raw.len() == record.raw.len());
        writer.record(raw, source.map(|()| record.chunk))?;
    }
    Ok(writer)
}

/// A marker, and its fields after the times.
fn read_marker<'a>(record: &Record<'a>) -> Result<(Marker, &'a [u8])> {
    let mut reader = Reader::new(record.payload, record.order);
    let (time, duration) = (reader.u64()?, reader.u64()?);
    let rest = reader.rest();
    let _marker = reader.u32()?;
    let scope = reader.u8()?;
    let reference = reader.u64()?;
    let scope = match scope {
        0 => MarkerScope::Global,
        1 => MarkerScope::Location(LocationId(reference)),
        // No group has an id of more than 32 bits.
        2 => u32::try_from(reference).map_or(MarkerScope::Other, MarkerScope::LocationGroup),
        _ => MarkerScope::Other,
    };
    Ok((Marker { time, duration, scope }, rest))
}

fn patch_flush(record: &Record<'_>, map: &mut impl TimeMap, into: &mut Vec<u8>) {
    into.clear();
    into.extend_from_slice(record.raw);
    if let Some(stop) = record.payload.first_chunk::<8>() {
        let stop = map.recorded_stop(record.event(), record.order.u64(*stop));
        let at = into.len() - record.payload.len();
        into[at..at + 8].copy_from_slice(&record.order.bytes(stop));
    }
}

/// Upper bound of the attribute lists before a record.
fn attributes_bound(record: &Record<'_>) -> usize {
    let mut rest = &record.raw[..record.attributes];
    let mut sum = 0;
    while rest.len() > 1 {
        let mut reader = Reader::new(&rest[1..], record.order);
        let length = reader.record_length().unwrap_or(0).min(reader.rest().len() as u64) as usize;
        let (payload, next) = reader.rest().split_at(length);
        sum += attribute_bound(payload, record.order);
        rest = next;
    }
    sum
}
