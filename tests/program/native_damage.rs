//! Whatever is in the files of a native trace, with right checksums or with wrong ones: reading them ends with contents or with an
//! error that names the file.

use crate::common::{alone, fixture, run};
use crate::mutate::{Mutation, mutate, mutations};
use clc_archive::native::NativeTrace;
use clc_engine::matching::communicators::CommTable;
use clc_trace::{Definitions, LocationId, Timelines};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// Bytes of the header of an event file, where it says how long the blocks are, and where its checksum stands.
const HEADER: usize = 64;
const BLOCKS_END: usize = 40;
const CHECKSUM: usize = 60;

struct Target {
    _directory: tempfile::TempDir,
    path: PathBuf,
    trace: NativeTrace,
}

fn target(trace: &str) -> Target {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.clct");
    run(alone().arg("convert").arg(fixture(trace)).arg(&path).arg("-q")).expect(0, trace);
    let trace = NativeTrace::open(&path).unwrap();
    Target { _directory: directory, path, trace }
}

fn torment(cases: u32, attempt: impl Fn(&[Mutation]) -> std::result::Result<(), TestCaseError>) {
    let mut config = ProptestConfig::with_cases(cases);
    config.failure_persistence = None;
    proptest!(config, |(mutations in mutations())| attempt(&mutations)?);
}

const CASES: u32 = 1500;
const LOCATION: LocationId = LocationId(2);

/// Scans, and checks what comes out of it.
fn scan(trace: &NativeTrace) -> std::result::Result<(), TestCaseError> {
    let mut last = 0;
    let scanned = trace.scan_with(LOCATION, |_, time, _| {
        assert!(time >= last);
        last = time;
        Ok(())
    });
    for error in [scanned.err(), trace.clock_offsets(LOCATION).err()].into_iter().flatten() {
        prop_assert!(error.file.is_some() && error.location == Some(LOCATION), "{}", error);
    }
    Ok(())
}

#[test]
fn any_event_file_is_read_or_refused_with_its_place() {
    let target = target("tracer-collectives-4");
    let path = target.trace.event_path(LOCATION);
    let original = std::fs::read(&path).unwrap();
    torment(CASES, |mutations| {
        let mut bytes = original.clone();
        mutate(&mut bytes, &original, mutations);
        std::fs::write(&path, &bytes).unwrap();
        scan(&target.trace)
    });
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn any_events_with_right_checksums_are_read_or_refused_with_their_place() {
    let target = target("tracer-collectives-4");
    let path = target.trace.event_path(LOCATION);
    let original = std::fs::read(&path).unwrap();
    let end = u64::from_le_bytes(original[BLOCKS_END..BLOCKS_END + 8].try_into().unwrap()) as usize;
    let data = HEADER + 8..HEADER + 8 + u32_at(&original, HEADER) as usize;
    assert_eq!(data.end + 4, end, "the test knows files of one block only");
    torment(CASES, |mutations| {
        let mut changed = original[data.clone()].to_vec();
        mutate(&mut changed, &original, mutations);
        let mut block = (changed.len() as u32).to_le_bytes().to_vec();
        block.extend(&original[HEADER + 4..HEADER + 8]);
        block.extend(changed);
        block.extend(crc32fast::hash(&block).to_le_bytes());
        let mut bytes = original[..HEADER].to_vec();
        bytes[BLOCKS_END..BLOCKS_END + 8].copy_from_slice(&((HEADER + block.len()) as u64).to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..CHECKSUM]).to_le_bytes();
        bytes[CHECKSUM..].copy_from_slice(&checksum);
        bytes.extend(block);
        bytes.extend(&original[end..]);
        std::fs::write(&path, &bytes).unwrap();
        scan(&target.trace)
    });
}

#[test]
fn any_header_with_a_right_checksum_is_read_or_refused_with_its_place() {
    let target = target("tracer-collectives-4");
    let path = target.trace.event_path(LOCATION);
    let original = std::fs::read(&path).unwrap();
    torment(CASES, |mutations| {
        let mut header = original[..CHECKSUM].to_vec();
        mutate(&mut header, &original, mutations);
        header.resize(CHECKSUM, 0);
        header.extend(crc32fast::hash(&header).to_le_bytes());
        std::fs::write(&path, [&header, &original[HEADER..]].concat()).unwrap();
        scan(&target.trace)
    });
}

/// What a correction does first with definitions.
fn use_definitions(definitions: &Definitions) {
    let timelines = Timelines::new(definitions);
    assert!(timelines.processes <= timelines.all.len());
    let _ = CommTable::new(definitions);
}

fn read_definitions(path: &Path) -> std::result::Result<(), TestCaseError> {
    match NativeTrace::open(path).and_then(|trace| trace.read_definitions()) {
        Ok(definitions) => use_definitions(&definitions),
        Err(error) => prop_assert!(error.file.is_some(), "{}", error),
    }
    Ok(())
}

#[test]
fn any_definition_file_is_read_or_refused_with_its_name() {
    for trace in ["eztrace-collectives-4", "tracer-halo-4"] {
        let target = target(trace);
        let path = target.trace.definition_path();
        let original = std::fs::read(&path).unwrap();
        torment(CASES, |mutations| {
            let mut bytes = original.clone();
            mutate(&mut bytes, &original, mutations);
            std::fs::write(&path, &bytes).unwrap();
            read_definitions(&target.path)
        });
        // The same with sizes and checksums that are right.
        torment(CASES, |mutations| {
            let mut payload = original[20..original.len() - 4].to_vec();
            mutate(&mut payload, &original, mutations);
            let mut bytes = original[..12].to_vec();
            bytes.extend((payload.len() as u64).to_le_bytes());
            bytes.extend(payload);
            bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
            std::fs::write(&path, &bytes).unwrap();
            read_definitions(&target.path)
        });
    }
}
