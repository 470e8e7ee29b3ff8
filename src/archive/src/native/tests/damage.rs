//! Damaged and unfinished files, and contents that contradict themselves.

use super::*;

/// Reads everything of a trace as the program does.
fn read_all(directory: &Path) -> Result<(Definitions, Contents)> {
    let trace = NativeTrace::open(directory)?;
    Ok((trace.read_definitions()?, read(&trace)?))
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    let whole = read_all(directory.path()).unwrap();
    for path in [trace.event_path(HERE), trace.definition_path()] {
        let original = std::fs::read(&path).unwrap();
        let attempt = |bytes: &[u8], what: &dyn Fn() -> String| {
            std::fs::write(&path, bytes).unwrap();
            match read_all(directory.path()) {
                Ok(contents) => assert_eq!(contents, whole, "{}", what()),
                Err(error) => {
                    assert_eq!(error.file.as_deref(), Some(path.to_str().unwrap()), "{}: {error}", what());
                    if path == trace.event_path(HERE) {
                        assert_eq!(error.location, Some(HERE), "{}: {error}", what());
                    }
                    return true;
                }
            }
            false
        };
        for length in 0..original.len() {
            assert!(attempt(&original[..length], &|| format!("{length} bytes")), "{length} bytes are accepted");
        }
        for bit in 0..8 * original.len() {
            let mut bytes = original.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(attempt(&bytes, &|| format!("bit {bit}")), "{}: bit {bit} goes unnoticed", path.display());
        }
        assert!(attempt(&[original.as_slice(), &[0]].concat(), &|| "one byte more".into()));
        assert!(!attempt(&original, &|| "undamaged".into()));
    }
}

/// Replaces the only block of an event file by another one with a correct checksum.
fn with_block(trace: &NativeTrace, events: u32, data: &[u8]) -> String {
    let path = trace.event_path(HERE);
    let original = std::fs::read(&path).unwrap();
    let header = event_file::EventFileHeader::read(&original).unwrap();
    let mut block = [(data.len() as u32).to_le_bytes(), events.to_le_bytes()].concat();
    block.extend_from_slice(data);
    block.extend(crc32fast::hash(&block).to_le_bytes());
    let new = event_file::EventFileHeader { offsets_at: (event_file::HEADER + block.len()) as u64, ..header };
    let bytes = [new.bytes(), block, original[header.offsets_at as usize..].to_vec()].concat();
    std::fs::write(&path, bytes).unwrap();
    let error = read(trace).unwrap_err();
    std::fs::write(&path, original).unwrap();
    assert!(error.file.is_some() && error.location == Some(HERE), "{error}");
    error.to_string()
}

#[test]
fn wrong_contents_with_right_checksums_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    assert!(with_block(&trace, 0, &[]).contains("event 1: the event file is damaged: a block without events"));
    assert!(with_block(&trace, 1, &[5, 12]).contains(
        "event 1: the event file is damaged: it contains an invalid \
        event"
    ));
    assert!(with_block(&trace, 1, &[5, 12, 1, 1]).contains("data after its last event"));
    assert!(with_block(&trace, 2, &[5, 12, 1, 1, 9]).contains("event 2: "), "a type that is none");
    assert!(with_block(&trace, u32::MAX, &[5, 12, 1]).contains("event 2: "));
    assert!(with_block(&trace, 1, &[5, 12, 1]).contains("it holds 1 events, but its header says 6"));
    let late = [&[0xFF; 9][..], &[1, 22, 1, 22]].concat();
    assert!(with_block(&trace, 2, &late).contains("event 2: "), "a time beyond 64 bits");
    assert!(read(&trace).is_ok());
}

#[test]
fn an_unfinished_trace_is_recognised() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.clct");
    let trace = NativeWriter::create(&path, RESOLUTION).unwrap();
    let mut writer = trace.events(HERE).unwrap();
    for _ in 0..10_000 {
        writer.event(1, &Event::MpiCollectiveBegin).unwrap();
    }
    drop(writer);
    let text = |error: Error| error.to_string();
    assert!(text(crate::Archive::open(&path).unwrap_err()).contains("never completed: definitions.clcd is missing"));
    trace.finish(&TraceHeader::default(), &definitions()).unwrap();
    let trace = NativeTrace::open(&path).unwrap();
    assert_eq!((trace.name().as_str(), trace.event_file_size(HERE).unwrap() > 16_000), ("x", true));
    assert!(text(read(&trace).unwrap_err()).contains("7.clce: location 7: the event file was never finished"));
}

#[test]
fn files_of_other_locations_traces_and_versions() {
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    let path = trace.event_path(HERE);
    let original = std::fs::read(&path).unwrap();
    let header = event_file::EventFileHeader::read(&original).unwrap();
    let with = |header: Vec<u8>| {
        std::fs::write(&path, [header, original[64..].to_vec()].concat()).unwrap();
        read(&trace).unwrap_err().to_string()
    };
    assert!(with(event_file::EventFileHeader { location: LocationId(8), ..header }.bytes()).contains("of location 8"));
    assert!(with(event_file::EventFileHeader { resolution: 8, ..header }.bytes()).contains("8 ticks per second"));
    let absurd = event_file::EventFileHeader { offsets_at: u64::MAX, offsets: u32::MAX, ..header };
    assert!(with(absurd.bytes()).contains("bytes, but its header specifies 18446744073709551615 and 4294967295"));
    let absurd = event_file::EventFileHeader { events: u64::MAX, ..header };
    assert!(with(absurd.bytes()).contains("it holds 6 events, but its header says 18446744073709551615"));
    let mut newer = header.bytes();
    newer[8] = 6;
    assert!(with(newer).contains(
        "native trace of format version 6; versions 1 to 5 are supported (use the version of clc-replay that wrote \
            it)"
    ));
    let mut flagged = header.bytes();
    flagged[12] = 1;
    let checksum = crc32fast::hash(&flagged[..60]).to_le_bytes();
    flagged[60..].copy_from_slice(&checksum);
    assert!(with(flagged).contains("features that this version does not support"));
}

#[test]
fn definitions_that_contradict_themselves_are_refused() {
    let refused = |change: &dyn Fn(&mut Definitions), says: &str| {
        let mut changed = definitions();
        change(&mut changed);
        let error = crate::native::definitions::definition_bytes(&TraceHeader::default(), &changed).unwrap_err();
        assert!(error.message.contains(says), "{error}");
    };
    refused(&|d| d.clock.resolution = 0, "0 ticks per second");
    refused(&|d| d.location_groups.clear(), "location group 3 of location 7 is not defined");
    refused(&|d| d.location_groups.push(d.location_groups[0].clone()), "location group 3 is defined twice");
    refused(&|d| d.locations.push(d.locations[0].clone()), "location 7 is defined twice");
    refused(&|d| d.processes.push(HERE), "two MPI ranks");
    refused(&|d| d.processes = vec![LocationId(8)], "location 8, an MPI process, is not defined");
    refused(
        &|d| d.communicators[0].members = CommMembers::Intra([MpiRank(1)].into()),
        "MPI process 1, but there are only 1",
    );
    refused(&|d| d.communicators[0].members = CommMembers::Inter([MpiRank(0)].into(), [MpiRank(0); 2].into()), "twice");
    // One list for all, which takes little memory until each has its own.
    let many = |d: &mut Definitions| {
        let members = CommMembers::Intra(vec![MpiRank(0); 1 << 18].into());
        d.communicators = vec![Communicator { members, ..d.communicators[0].clone() }; 1025];
    };
    refused(&many, "have 268697601 members in total; a native trace");
}
