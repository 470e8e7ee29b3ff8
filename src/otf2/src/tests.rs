//! The buffer layer against files that are damaged, unusual, or written by libotf2.

use crate::MappedFile;
use crate::bytes::{ByteOrder, Writer};
use crate::chunks::{FileKind, RecordReader};
use crate::decode::decode;
use crate::framing::{attribute_bound, bound};
use crate::local::LocalDefinitions;
use crate::writer::{ChunkWriter, RecordSource};
use crate::{ArchiveWriter, CreateOptions, Otf2Archive, definitions};
use clc_trace::{ClockProperties, CommId, CommMembers, Communicator, Definitions, EventNumber, LocationId, Result};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

const SIZE: u64 = 1 << 18;
const ORDER: ByteOrder = ByteOrder::Little;

/// An event file of one chunk with these records.
fn file(records: &[u8], last: u64) -> Vec<u8> {
    let mut bytes = vec![3, 0x42];
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(last.to_le_bytes());
    bytes.extend(records);
    bytes
}

fn stamp(time: u64) -> Vec<u8> {
    [&[5][..], &time.to_le_bytes()].concat()
}

/// An `Enter` of region 7 at `time`.
fn enter(time: u64) -> Vec<u8> {
    [&stamp(time)[..], &[12, 1, 7]].concat()
}

/// Number, time and type of all records, decoded as well.
fn read(bytes: &[u8], kind: FileKind) -> Result<Vec<(u64, u64, u8)>> {
    let local = LocalDefinitions::default();
    let mut records = RecordReader::new(bytes, kind, SIZE);
    let mut all = Vec::new();
    while let Some(record) = records.next()? {
        decode(&record, &local)?;
        all.push((record.number, record.time, record.kind));
    }
    Ok(all)
}

fn failure(records: &[u8]) -> (String, Option<EventNumber>) {
    let error = read(&file(records, 1), FileKind::Events).unwrap_err();
    (error.message, error.event)
}

#[test]
fn groups_of_many_members_get_chunks_into_which_they_fit() {
    let communicator = |members| Communicator {
        id: CommId(0),
        name: "MPI_COMM_WORLD".into(),
        members: CommMembers::Intra(members),
        global_ranks: true,
    };
    for (count, chunk) in [(16, 1 << 18), (100_000, 1 << 20)] {
        let definitions = Definitions {
            processes: (0..count).map(LocationId).collect(),
            communicators: vec![communicator((0..count as u32).map(clc_trace::MpiRank).collect())],
            ..Definitions::empty(ClockProperties { resolution: 1, global_offset: 0, trace_length: 0, realtime: None })
        };
        let directory = tempfile::tempdir().unwrap();
        let options = CreateOptions::default().fitting(&definitions);
        let writer = ArchiveWriter::create(&directory.path().join("made"), "traces", options).unwrap();
        writer.finish(&definitions, &Default::default()).unwrap();
        let archive = Otf2Archive::open(&directory.path().join("made")).unwrap();
        assert_eq!(archive.anchor().definition_chunk, chunk);
        let members = archive.anchor().definitions;
        let bytes = MappedFile::open(&archive.definition_path()).unwrap();
        let mut records = RecordReader::new(&bytes, FileKind::Definitions, chunk);
        let mut read = 0;
        while records.next().unwrap().is_some() {
            read += 1;
        }
        assert_eq!(read, members);
    }
}

#[test]
fn events_share_a_timestamp_until_the_next() {
    let records = [enter(5), vec![13, 0], stamp(9), vec![22, 0, 200, 2, 1, 1, 2, 1]].concat();
    let all = read(&file(&records, 4), FileKind::Events).unwrap();
    assert_eq!(all, [(1, 5, 12), (2, 5, 13), (3, 9, 22), (4, 9, 200)]);
}

#[test]
fn undefined_in_a_record_without_length_is_no_long_length() {
    let records = [enter(1), vec![12, 0xFF, 16, 0xFF, 2, 1]].concat();
    assert_eq!(read(&file(&records, 3), FileKind::Events).unwrap().len(), 3);
}

#[test]
fn damage_is_named_with_its_event() {
    let named = |records: &[u8], text: &str, event: u64| {
        let (message, at) = failure(records);
        assert!(message.contains(text), "{message} does not say {text}");
        assert_eq!(at, Some(EventNumber(event)), "{message}");
    };
    named(&[enter(5), stamp(6), enter(6)].concat(), "two timestamps in a row", 2);
    named(&[enter(5), enter(4)].concat(), "timestamp 4 after timestamp 5", 2);
    named(&enter(5), "truncated", 1);
    named(&[enter(5), vec![13, 0]].concat(), "truncated", 2);
    named(&[enter(5), vec![12, 5, 1, 1, 1, 1, 1, 2]].concat(), "compressed integer has 5 bytes where at most 4", 2);
    named(&[enter(5), vec![16, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]].concat(), "compressed integer has 9 bytes", 2);
    named(&[enter(5), vec![200, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 2]].concat(), "truncated", 2);
    named(&[enter(5), vec![1]].concat(), "unexpected control byte 1", 2);
    named(&[vec![6, 1, 0], enter(5), vec![2]].concat(), "timestamp between an attribute list and its event", 1);
    named(&[enter(5), vec![6, 1, 0, 2]].concat(), "file ends between an event", 2);
}

#[test]
fn a_file_cut_anywhere_is_truncated() {
    let whole = file(&[enter(5), enter(6), vec![2]].concat(), 2);
    for length in 0..whole.len() {
        let error = read(&whole[..length], FileKind::Events).unwrap_err();
        assert!(error.message.contains("truncated"), "cut to {length} bytes: {error}");
    }
}

#[test]
fn a_record_may_not_leave_its_chunk() {
    let mut bytes = file(&enter(5), 1);
    bytes.extend([200, 0xFF]);
    bytes.extend(SIZE.to_le_bytes());
    bytes.resize(2 * SIZE as usize, 2);
    let error = read(&bytes, FileKind::Events).unwrap_err();
    assert!(error.message.contains("does not end within its chunk"), "{error}");
    assert_eq!(error.event, Some(EventNumber(2)));
}

#[test]
fn every_chunk_needs_a_header() {
    let mut bytes = file(&[enter(5), vec![0]].concat(), 1);
    bytes.resize(SIZE as usize, 0);
    bytes.extend([2, 1]);
    let error = read(&bytes, FileKind::Events).unwrap_err();
    assert!(error.message.contains("no chunk header at byte 262144"), "{error}");
}

#[test]
fn wrong_counters_are_noticed() {
    for (last, miscounted) in [(2, 0), (0, 1), (3, 1)] {
        let bytes = file(&[enter(5), enter(6), vec![2, 1]].concat(), last);
        let mut records = RecordReader::new(&bytes, FileKind::Events, SIZE);
        while records.next().unwrap().is_some() {}
        assert_eq!(records.miscounted(), miscounted, "last event {last}");
    }
}

/// Writes a file again. Events are moved to `time(number, old)`; `following` keeps the layout while that is possible.
fn rewrite(bytes: &[u8], kind: FileKind, following: bool, many: bool, time: impl Fn(u64, u64) -> u64) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut records = RecordReader::new(bytes, kind, SIZE);
    let create = if many { ChunkWriter::create_one_of_many } else { ChunkWriter::create };
    let mut writer = create(&path, SIZE, records.order(), kind != FileKind::Definitions).unwrap();
    while let Some(record) = records.next().unwrap() {
        let source = following.then(|| RecordSource::of(&record));
        let most = || {
            let mut sum = bound(record.kind, record.payload, record.order);
            if record.attributes > 0 {
                let head = if record.raw[1] == 0xFF { 10 } else { 2 };
                sum += attribute_bound(&record.raw[head..record.attributes], record.order);
            }
            sum
        };
        match kind {
            FileKind::Definitions => writer.record(record.raw, source.map(|source| source.chunk)).unwrap(),
            _ => writer.event(time(record.number, record.time), record.raw, most, source).unwrap(),
        }
    }
    let size = writer.finish().unwrap();
    let written = std::fs::read(&path).unwrap();
    assert_eq!(written.len() as u64, size);
    written
}

#[test]
fn an_unusual_layout_is_kept() {
    // Repeated times, long forms, a chunk that ends early, no timestamp at time 0.
    let mut bytes = file(&[vec![22, 0], enter(5), enter(5), vec![200, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0]].concat(), 4);
    bytes.resize(SIZE as usize, 0);
    bytes.extend([3, 0x42]);
    bytes.extend(5u64.to_le_bytes());
    bytes.extend(5u64.to_le_bytes());
    bytes.extend([enter(5), vec![2, 1]].concat());
    assert!(rewrite(&bytes, FileKind::Events, true, false, |_, time| time) == bytes);
    // Without the layout, libotf2's rules hold: one chunk is enough.
    assert!((rewrite(&bytes, FileKind::Events, false, false, |_, time| time).len() as u64) < SIZE);
}

#[test]
fn records_longer_than_any_estimate_do_not_spill_over_the_chunk() {
    // One byte of payload in the long form, 60 000 times at one time; then every event gets a time of its own.
    let long = [200, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0, 9];
    let mut records = stamp(1);
    let count = (SIZE as usize - 60) / long.len();
    for _ in 0..count {
        records.extend(long);
    }
    records.push(2);
    let bytes = file(&records, count as u64);
    let written = rewrite(&bytes, FileKind::Events, true, false, |number, _| 1 + number / 2);
    let all = read(&written, FileKind::Events).unwrap();
    let expected: Vec<_> = (1..=count as u64).map(|number| (number, 1 + number / 2, 200)).collect();
    assert!(all == expected);
    let mut records = RecordReader::new(&written, FileKind::Events, SIZE);
    while records.next().unwrap().is_some() {}
    assert_eq!(records.miscounted(), 0);
}

#[test]
fn a_record_larger_than_a_chunk_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = ChunkWriter::create(&directory.path().join("file"), SIZE, ORDER, true).unwrap();
    let raw = vec![200; SIZE as usize];
    let error = writer.event(1, &raw, || raw.len(), None).unwrap_err();
    assert!(error.message.contains("does not fit into a chunk"), "{error}");
}

/// An archive written by libotf2 that fills several chunks of every kind of file.
fn libotf2_archive(directory: &Path) -> Otf2Archive {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/libotf2_archive.py");
    let path = directory.join("libotf2");
    let output = std::process::Command::new("/usr/bin/python3").arg(script).arg(&path).output();
    let output = output.expect("python3 starts (scripts/setup.sh installs it)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Otf2Archive::open(&path).unwrap()
}

#[test]
fn the_rules_of_libotf2_are_ours() {
    let directory = tempfile::tempdir().unwrap();
    let archive = libotf2_archive(directory.path());
    let (definitions, warnings) = archive.read_definitions().unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(archive.anchor().event_chunk, SIZE);
    for location in &definitions.locations {
        let old = MappedFile::open(&archive.event_path(location.id)).unwrap();
        assert!(old.len() as u64 > 2 * SIZE);
        for (following, many) in [(false, false), (false, true), (true, false), (true, true)] {
            let new = rewrite(&old, FileKind::Events, following, many, |_, time| time);
            assert!(new == *old, "location {}, following {following}, many {many}", location.id);
        }
        let old = MappedFile::open(&archive.snapshot_path(location.id)).unwrap();
        assert!(old.len() as u64 > SIZE);
        assert!(rewrite(&old, FileKind::Snapshots, true, false, |_, time| time) == *old);
    }
    for path in [archive.definition_path(), archive.marker_path()] {
        let old = MappedFile::open(&path).unwrap();
        assert!(rewrite(&old, FileKind::Definitions, true, false, |_, _| 0) == *old, "{}", path.display());
    }
}

fn all_recorded() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let archive = Otf2Archive::open(&path).unwrap();
            let (definitions, _) = archive.read_definitions().unwrap();
            files.extend(definitions.locations.iter().map(|location| archive.event_path(location.id)));
        }
    }
    assert!(files.len() > 20);
    files
}

#[test]
fn recorded_traces_come_back_byte_for_byte() {
    for path in all_recorded() {
        let old = MappedFile::open(&path).unwrap();
        for following in [false, true] {
            assert!(rewrite(&old, FileKind::Events, following, false, |_, time| time) == *old, "{}", path.display());
        }
    }
}

/// A small definition file with a record of every interpreted kind.
fn definition_file() -> Vec<u8> {
    let mut writer = Writer::new(ORDER);
    writer.bytes = file(&[], 0);
    writer.record(5, &[2, 0, 1, 1, 5, 1, 9, 0xFF], 8);
    writer.record(10, &[0, b'a', 0], 3);
    writer.record(12, &[0, 0, 0, 0xFF], 4);
    writer.record(13, &[0, 0, 1, 0, 0xFF], 5);
    writer.record(14, &[0, 0, 1, 1, 4, 0], 6);
    writer.record(15, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0], 11);
    writer.record(18, &[0, 0, 6, 1, 1, 0, 4, 4, 0], 9);
    writer.record(18, &[1, 1, 0, 4, 1, 1, 0, 5, 4, 0], 10);
    writer.record(22, &[0, 0, 1, 1, 0xFF, 0], 6);
    writer.record(43, &[1, 1, 0, 0, 0, 0xFF, 0], 7);
    writer.bytes.extend([2, 1]);
    writer.bytes
}

/// Two id tables and two clock offsets.
fn local_file() -> Vec<u8> {
    let mut writer = Writer::new(ORDER);
    writer.bytes = file(&[], 0);
    writer.record(5, &[3, 1, 2, 0, 1, 7, 0], 7);
    writer.record(5, &[6, 1, 1, 1, 1, 4, 1, 9], 8);
    for time in [1u64, 5] {
        let mut offset = Writer::new(ORDER);
        offset.full_u64(time);
        offset.i64(-3);
        offset.full_u64(0);
        writer.record(6, &offset.bytes, 25);
    }
    writer.bytes.extend([2, 1]);
    writer.bytes
}

#[test]
fn definitions_of_the_sample_are_read() {
    let (read, warnings) = definitions::read(&definition_file(), SIZE, 10).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((read.locations.len(), read.processes.len(), read.communicators.len()), (1, 1, 2));
    let local = LocalDefinitions::read(&local_file(), SIZE).unwrap();
    assert_eq!([0, 1, 2].map(|id| local.regions.map(id)), [7, 0, 2]);
    assert_eq!([0, 4].map(|id| local.communicators.map(id)), [0, 9]);
    assert_eq!(local.clock_offsets.len(), 2);
}

#[test]
fn other_tables_are_read_in_full_only() {
    // Strings: 0 and 1 stand for 4 and 3.
    let mut bytes = local_file();
    let mut writer = Writer::new(ORDER);
    writer.record(5, &[0, 1, 2, 0, 1, 4, 1, 3], 8);
    let end = bytes.len() - 2;
    bytes.splice(end..end, writer.bytes);
    let (some, all) =
        (LocalDefinitions::read(&bytes, SIZE).unwrap(), LocalDefinitions::read_in_full(&bytes, SIZE).unwrap());
    assert_eq!(([0, 1].map(|id| some.map(0, id)), [0, 1].map(|id| all.map(0, id))), ([0, 1], [4, 3]));
    assert!(some.others.is_empty());
    assert_eq!(LocalDefinitions { others: some.others.clone(), ..all }, some);
}

fn event_file() -> Vec<u8> {
    let mut records = Vec::new();
    for (index, time) in (0u64..60).zip((3..).step_by(2)) {
        records.extend(enter(time));
        records.extend([6, 4, 1, 0, 1, 8]);
        match index % 5 {
            0 => records.extend([14, 4, 0, 0, 0, 0]),
            1 => records.extend([19, 6, 1, 1, 0, 0, 0, 0]),
            2 => records.extend([23, 6, 11, 0, 0xFF, 0, 0, 0]),
            3 => records.extend([31, 4, 0, 1, 4, 0]),
            _ => records.extend([10, 8, 1, 0, 0, 0, 0, 0, 0, 0]),
        }
    }
    records.extend([2, 1]);
    file(&records, 120)
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), last: u64, headed: bool) {
        let bytes = if headed { file(&bytes, last) } else { bytes };
        for kind in [FileKind::Events, FileKind::Snapshots, FileKind::Definitions] {
            let _ = read(&bytes, kind);
        }
        let _ = definitions::read(&bytes, SIZE, last);
        let _ = LocalDefinitions::read_in_full(&bytes, SIZE);
    }

    #[test]
    fn no_change_of_bytes_makes_a_reader_panic(
        changes in proptest::collection::vec((0usize..2000, any::<u8>()), 1..8),
        cut in 0usize..2000,
        insert in proptest::option::of((0usize..2000, any::<u8>())),
    ) {
        for (kind, bytes) in [(0, event_file()), (1, definition_file()), (2, local_file())] {
            let mut bytes = bytes;
            let length = bytes.len();
            for &(at, value) in &changes {
                bytes[at % length] = value;
            }
            if let Some((at, value)) = insert {
                bytes.insert(at % length, value);
            }
            if cut < length {
                bytes.truncate(cut);
            }
            match kind {
                0 => drop((read(&bytes, FileKind::Events), read(&bytes, FileKind::Snapshots))),
                1 => drop(definitions::read(&bytes, SIZE, 10)),
                _ => drop(LocalDefinitions::read_in_full(&bytes, SIZE)),
            }
        }
    }

    /// Times that never decrease, whatever they are, come back as written, in both modes.
    #[test]
    fn any_times_can_be_written(steps in proptest::collection::vec(0u64..3, 120), start in 0u64..3, following: bool) {
        let times: Vec<u64> = steps.iter().scan(start, |time, step| { *time += step; Some(*time) }).collect();
        let old = event_file();
        let new = rewrite(&old, FileKind::Events, following, false, |number, _| times[number as usize - 1]);
        let all = read(&new, FileKind::Events).unwrap();
        let kinds: Vec<u8> = read(&old, FileKind::Events).unwrap().iter().map(|event| event.2).collect();
        prop_assert_eq!(all.len(), 120);
        for (index, event) in all.iter().enumerate() {
            prop_assert_eq!(*event, (index as u64 + 1, times[index], kinds[index]));
        }
    }
}
