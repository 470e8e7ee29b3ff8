//! Round trips of random events, and damage.

use super::*;
use crate::archive::TimeMap;
use crate::trace::{
    ClockOffset, ClockProperties, Collective, CollectiveOp, CommId, CommMembers, Communicator, Definitions, Error,
    Event, Location, LocationGroup, LocationGroupId, LocationId, LocationKind, Message, Region, RegionId, Result, Root,
    SystemTreeNode, SystemTreeNodeId,
};
use proptest::prelude::*;

const HERE: LocationId = LocationId(7);
const RESOLUTION: u64 = 1_000_000;

fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

fn number32() -> impl Strategy<Value = u32> {
    (any::<u32>(), 0u32..32).prop_map(|(value, shift)| value >> shift)
}

fn message() -> impl Strategy<Value = Message> {
    (number32(), number32(), number32(), number()).prop_map(|(peer, comm, tag, length)| Message {
        peer,
        comm: CommId(comm),
        tag,
        length,
    })
}

fn collective() -> impl Strategy<Value = Collective> {
    let root = prop_oneof![
        Just(Root::None),
        Just(Root::ThisProcess),
        Just(Root::OwnGroup),
        number32().prop_map(|rank| Root::Rank(rank.min(u32::MAX - 3)))
    ];
    (any::<u8>(), number32(), root, number(), number()).prop_map(|(op, comm, root, sent, received)| Collective {
        op: CollectiveOp(op),
        comm: CommId(comm),
        root,
        sent,
        received,
    })
}

fn record() -> impl Strategy<Value = Record> {
    let event = prop_oneof![
        number32().prop_map(|region| Event::Enter(RegionId(region))),
        number32().prop_map(|region| Event::Leave(RegionId(region))),
        message().prop_map(Event::MpiSend),
        (message(), number()).prop_map(|(m, request)| Event::MpiIsend(m, request)),
        number().prop_map(Event::MpiIsendComplete),
        number().prop_map(Event::MpiIrecvRequest),
        message().prop_map(Event::MpiRecv),
        (message(), number()).prop_map(|(m, request)| Event::MpiIrecv(m, request)),
        number().prop_map(Event::MpiRequestTest),
        number().prop_map(Event::MpiRequestCancelled),
        Just(Event::MpiCollectiveBegin),
        collective().prop_map(Event::MpiCollectiveEnd),
        number().prop_map(Event::NonBlockingCollectiveRequest),
        (collective(), number()).prop_map(|(c, request)| Event::NonBlockingCollectiveComplete(c, request)),
    ];
    prop_oneof![
        8 => event.prop_map(Record::Event),
        1 => number().prop_map(Record::BufferFlush),
        1 => any::<u8>().prop_filter_map("a type of its own", Record::other),
    ]
}

/// Events with decreasing probability of large steps, and clock offsets.
fn events() -> impl Strategy<Value = (Vec<(u64, Record)>, Vec<ClockOffset>)> {
    let step = prop_oneof![4 => 0u64..300, 1 => 0u64..(1 << 50)];
    let offsets = prop::collection::vec((1u64..1 << 40, any::<i64>(), 0.0f64..1e9), 0..4);
    (prop::collection::vec((step, record()), 0..200), offsets).prop_map(|(steps, offsets)| {
        let mut time = 0;
        let add = |(step, record)| {
            time += step;
            (time, record)
        };
        let events = steps.into_iter().map(add).collect();
        let mut time = 0;
        let offset = |(step, offset, standard_deviation)| {
            time += step;
            ClockOffset { time, offset, standard_deviation }
        };
        (events, offsets.into_iter().map(offset).collect())
    })
}

fn definitions() -> Definitions {
    Definitions {
        clock: ClockProperties { resolution: RESOLUTION, global_offset: 5, trace_length: 300, realtime: Some(1 << 60) },
        locations: vec![Location {
            id: HERE,
            name: "Master thread".into(),
            kind: LocationKind::CpuThread,
            group: LocationGroupId(3),
            claimed_events: 2,
        }],
        location_groups: vec![LocationGroup {
            id: LocationGroupId(3),
            name: "rank 0".into(),
            accelerator: false,
            parent: Some(SystemTreeNodeId(0)),
            creator: None,
        }],
        system_tree: vec![SystemTreeNode {
            id: SystemTreeNodeId(0),
            name: "n1".into(),
            class: "node".into(),
            parent: None,
        }],
        processes: vec![HERE],
        communicators: vec![Communicator {
            id: CommId(0),
            name: "world".into(),
            members: CommMembers::Intra(vec![0]),
            global_ranks: false,
        }],
        regions: vec![Region { id: RegionId(9), name: "main".into() }],
    }
}

fn write(directory: &Path, events: &[(u64, Record)], offsets: &[ClockOffset]) -> Result<NativeTrace> {
    let trace = NativeWriter::create(directory, RESOLUTION)?;
    let mut writer = trace.events(HERE)?;
    for (time, record) in events {
        writer.record(*time, record)?;
    }
    assert_eq!(writer.finish(offsets)?, events.len() as u64);
    trace.finish(&TraceHeader { creator: "test".into(), description: String::new() }, &definitions())?;
    NativeTrace::open(directory)
}

type Contents = (Vec<(u64, Record)>, Vec<ClockOffset>);

fn read(trace: &NativeTrace) -> Result<Contents> {
    let mut events = Vec::new();
    trace.scan_records(HERE, |number, time, record| {
        assert_eq!(number, events.len() as u64 + 1);
        events.push((time, record));
        Ok(())
    })?;
    Ok((events, trace.clock_offsets(HERE)?))
}

struct Shift(u64);

impl TimeMap for Shift {
    fn event(&mut self, _: u64, time: u64) -> Result<u64> {
        Ok(time + self.0)
    }

    fn flush_stop(&mut self, _: u64, stop: u64) -> u64 {
        stop.wrapping_add(self.0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_events_come_back((events, offsets) in events()) {
        let directory = tempfile::tempdir().unwrap();
        let trace = write(directory.path(), &events, &offsets).unwrap();
        prop_assert_eq!(read(&trace).unwrap(), (events.clone(), offsets.clone()));
        prop_assert_eq!(trace.read_definitions().unwrap(), definitions());

        // And again, with other times and without offsets.
        let other = tempfile::tempdir().unwrap();
        std::fs::create_dir(other.path().join(EVENTS)).unwrap();
        trace.rewrite_events(HERE, other.path(), &mut Shift(3)).unwrap();
        trace.rewrite_definitions(other.path(), None).unwrap();
        let shifted = NativeTrace::open(other.path()).unwrap();
        let moved = events.iter().map(|&(time, record)| match record {
            Record::BufferFlush(stop) => (time + 3, Record::BufferFlush(stop.wrapping_add(3))),
            _ => (time + 3, record),
        });
        prop_assert_eq!(read(&shifted).unwrap(), (moved.clone().collect::<Vec<_>>(), offsets));
        trace.replace_clock_offsets(HERE, other.path(), &[]).unwrap();
        prop_assert_eq!(read(&shifted).unwrap(), (moved.collect::<Vec<_>>(), Vec::new()));
    }
}

#[test]
fn a_file_of_many_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let events: Vec<(u64, Record)> =
        (0..40_000).map(|i| (i * 200, Record::Event(Event::Enter(RegionId(i as u32 % 300))))).collect();
    let trace = write(directory.path(), &events, &[]).unwrap();
    let size = trace.event_file_size(HERE).unwrap();
    assert!((4 * 40_000..6 * 40_000).contains(&size), "{size} bytes");
    assert_eq!(read(&trace).unwrap().0, events);
}

/// A small trace with several kinds of events and two clock offsets.
fn small(directory: &Path) -> NativeTrace {
    let m = Message { peer: 0, comm: CommId(0), tag: 1, length: 700 };
    let events = [
        (100, Record::Event(Event::Enter(RegionId(9)))),
        (120, Record::Event(Event::MpiSend(m))),
        (120, Record::Other(31)),
        (900, Record::BufferFlush(950)),
        (1000, Record::Event(Event::MpiRecv(m))),
        (1001, Record::Event(Event::Leave(RegionId(9)))),
    ];
    let offset = |time, offset| ClockOffset { time, offset, standard_deviation: 1.5 };
    write(directory, &events, &[offset(50, -3), offset(2000, 4)]).unwrap()
}

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
    let header = event_file::Header::read(&original).unwrap();
    let mut block = [(data.len() as u32).to_le_bytes(), events.to_le_bytes()].concat();
    block.extend_from_slice(data);
    block.extend(crc32fast::hash(&block).to_le_bytes());
    let new = event_file::Header { offsets_at: (event_file::HEADER + block.len()) as u64, ..header };
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
    assert!(with_block(&trace, 1, &[5, 12]).contains("event 1: the event file is damaged: an event is no valid one"));
    assert!(with_block(&trace, 1, &[5, 12, 1, 1]).contains("more than its events"));
    assert!(with_block(&trace, 2, &[5, 12, 1, 1, 9]).contains("event 2: "), "a type that is none");
    assert!(with_block(&trace, u32::MAX, &[5, 12, 1]).contains("event 2: "));
    assert!(with_block(&trace, 1, &[5, 12, 1]).contains("it holds 1 events, its header counts 6"));
    let late = [&[0xFF; 9][..], &[1, 22, 1, 22]].concat();
    assert!(with_block(&trace, 2, &late).contains("event 2: "), "a time beyond 64 bits");
    assert!(read(&trace).is_ok());
}

#[test]
fn time_does_not_run_backwards_between_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let trace = NativeWriter::create(directory.path(), RESOLUTION).unwrap();
    let mut writer = trace.events(HERE).unwrap();
    writer.event(5, &Event::MpiCollectiveBegin).unwrap();
    let error = writer.event(4, &Event::MpiCollectiveBegin).unwrap_err();
    assert!(error.to_string().contains("location 7, event 2: time 4 before 5"), "{error}");
    let unordered = [9, 9].map(|time| ClockOffset { time, offset: 0, standard_deviation: 0.0 });
    assert!(writer.finish(&unordered).unwrap_err().message.contains("not in order"));
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
    assert!(text(crate::archive::Archive::open(&path).unwrap_err()).contains("never finished: no definitions.clcd"));
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
    let header = event_file::Header::read(&original).unwrap();
    let with = |header: Vec<u8>| {
        std::fs::write(&path, [header, original[64..].to_vec()].concat()).unwrap();
        read(&trace).unwrap_err().to_string()
    };
    assert!(with(event_file::Header { location: LocationId(8), ..header }.bytes()).contains("of location 8"));
    assert!(with(event_file::Header { resolution: 8, ..header }.bytes()).contains("8 ticks per second"));
    let absurd = event_file::Header { offsets_at: u64::MAX, offsets: u32::MAX, ..header };
    assert!(with(absurd.bytes()).contains("bytes, its header speaks of 18446744073709551615 and 4294967295"));
    let absurd = event_file::Header { events: u64::MAX, ..header };
    assert!(with(absurd.bytes()).contains("it holds 6 events, its header counts 18446744073709551615"));
    let mut newer = header.bytes();
    newer[8] = 2;
    assert!(with(newer).contains("native trace of version 2, only 1 is known (use the program version that wrote it)"));
    let mut flagged = header.bytes();
    flagged[12] = 1;
    let checksum = crc32fast::hash(&flagged[..60]).to_le_bytes();
    flagged[60..].copy_from_slice(&checksum);
    assert!(with(flagged).contains("features that this program does not know"));
}

#[test]
fn definitions_that_contradict_themselves_are_refused() {
    let refused = |change: &dyn Fn(&mut Definitions), says: &str| {
        let mut changed = definitions();
        change(&mut changed);
        let error = super::definitions::definition_bytes(&TraceHeader::default(), &changed).unwrap_err();
        assert!(error.message.contains(says), "{error}");
    };
    refused(&|d| d.clock.resolution = 0, "0 ticks per second");
    refused(&|d| d.location_groups.clear(), "location group 3 of location 7 is not defined");
    refused(&|d| d.location_groups.push(d.location_groups[0].clone()), "location group 3 is defined twice");
    refused(&|d| d.locations.push(d.locations[0].clone()), "location 7 is defined twice");
    refused(&|d| d.processes.push(HERE), "two MPI processes");
    refused(&|d| d.processes = vec![LocationId(8)], "location 8, an MPI process, is not defined");
    refused(&|d| d.communicators[0].members = CommMembers::Intra(vec![1]), "MPI process 1, but there are only 1");
    refused(&|d| d.communicators[0].members = CommMembers::Inter(vec![0], vec![0, 0]), "twice");
}

/// These bytes are the format: if this fails because a type of `trace::Definitions` has changed, [`VERSION`] has to grow.
#[test]
fn the_definition_file_is_what_the_documentation_says() {
    let header = TraceHeader { creator: "me".into(), description: String::new() };
    let bytes = super::definitions::definition_bytes(&header, &definitions()).unwrap();
    let payload: &[&[u8]] = &[
        b"\x02me\x00",
        // Clock: resolution and realtime do not fit into 16 bits.
        b"\xFC\x40\x42\x0F\x00\x05\xFB\x2C\x01\x01\xFD\x00\x00\x00\x00\x00\x00\x00\x10",
        b"\x01\x07\x0DMaster thread\x00\x03\x02",
        b"\x01\x03\x06rank 0\x00\x01\x00\x00",
        b"\x01\x00\x02n1\x04node\x00",
        b"\x01\x07",
        b"\x01\x00\x05world\x00\x01\x00\x00",
        b"\x01\x09\x04main",
    ];
    let payload = payload.concat();
    let mut expected = b"CLCDEFIN\x01\0\0\0".to_vec();
    expected.extend((payload.len() as u64).to_le_bytes());
    expected.extend(payload);
    expected.extend(crc32fast::hash(&expected).to_le_bytes());
    assert_eq!(bytes, expected);
}

/// These bytes are the format, too.
#[test]
fn the_event_file_is_what_the_documentation_says() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(small(directory.path()).event_path(HERE)).unwrap();
    let data: &[&[u8]] = &[
        &[100, 12, 9],
        &[20, 14, 0, 0, 1, 0xBC, 5],
        &[0, 31],
        &[0x8C, 6, 10, 50],
        &[100, 18, 0, 0, 1, 0xBC, 5],
        &[1, 13, 9],
    ];
    let data = data.concat();
    let mut block = [(data.len() as u32).to_le_bytes(), 6u32.to_le_bytes()].concat();
    block.extend(data);
    block.extend(crc32fast::hash(&block).to_le_bytes());
    let mut offsets = Vec::new();
    for (time, offset) in [(50u64, -3i64), (2000, 4)] {
        offsets.extend(time.to_le_bytes());
        offsets.extend(offset.to_le_bytes());
        offsets.extend(1.5f64.to_le_bytes());
    }
    let mut header = b"CLCEVENT\x01\0\0\0\0\0\0\0".to_vec();
    for field in [7, RESOLUTION, 6, 64 + block.len() as u64] {
        header.extend(field.to_le_bytes());
    }
    header.extend(2u32.to_le_bytes());
    header.extend(crc32fast::hash(&offsets).to_le_bytes());
    header.extend([0; 4]);
    header.extend(crc32fast::hash(&header).to_le_bytes());
    assert_eq!(bytes, [header, block, offsets].concat());
}
