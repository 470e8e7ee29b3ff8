//! The bytes of the files.

use super::*;

/// These bytes are the format: if this fails because a type of `trace::Definitions` has changed, [`VERSION`] has to grow.
#[test]
fn the_definition_file_is_what_the_documentation_says() {
    let header = TraceHeader { creator: "me".into(), description: String::new() };
    let bytes = crate::native::definitions::definition_bytes(&header, &definitions()).unwrap();
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
        b"\x01\x03\x01w\x04",
        b"\x01\x06\x01\x00",
        b"\x01\x09",
        b"\x01\x02",
        b"\x01\x05",
        b"\x01\x06",
    ];
    let payload = payload.concat();
    let mut expected = b"CLCDEFIN\x05\0\0\0".to_vec();
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
    let mut header = b"CLCEVENT\x05\0\0\0\0\0\0\0".to_vec();
    for field in [7, RESOLUTION, 6, 64 + block.len() as u64] {
        header.extend(field.to_le_bytes());
    }
    header.extend(2u32.to_le_bytes());
    header.extend(crc32fast::hash(&offsets).to_le_bytes());
    header.extend([0; 4]);
    header.extend(crc32fast::hash(&header).to_le_bytes());
    assert_eq!(bytes, [header, block, offsets].concat());
}

/// What version 1 has of the definitions.
fn first_definitions() -> Definitions {
    let (windows, groups, thread_barriers) = (Vec::new(), Vec::new(), Vec::new());
    let (callsites, accelerator_attributes) = (Vec::new(), AcceleratorAttributes::default());
    Definitions { windows, groups, thread_barriers, callsites, accelerator_attributes, ..definitions() }
}

/// A definition file of an older version, which ends before so many lists: they are empty in `definitions`.
fn of_version(version: u8, lists: usize, header: &TraceHeader, definitions: &Definitions) -> Vec<u8> {
    let mut bytes = crate::native::definitions::definition_bytes(header, definitions).unwrap();
    let kept = bytes.len() - 4 - lists;
    assert_eq!(bytes[kept..kept + lists], vec![0; lists]);
    bytes.truncate(kept);
    bytes[8] = version;
    let length = bytes.len() as u64 - 20;
    bytes[12..20].copy_from_slice(&length.to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// Definitions of version 3 end before the parameters and attributes, and its events of type 34 have no fields; it has no events of types 1 and 2.
#[test]
fn version_3_is_read() {
    let header = TraceHeader { creator: "test".into(), description: String::new() };
    let without = Definitions {
        callsites: Vec::new(),
        accelerator_attributes: AcceleratorAttributes::default(),
        ..definitions()
    };
    let bytes = of_version(3, 3, &header, &without);
    assert_eq!(crate::native::definitions::read(&bytes).unwrap(), (header, without));

    let decode = |bytes: &[u8], version| {
        let mut reader = crate::native::numbers::ByteReader(bytes);
        NativeRecord::decode(&mut reader, 0, version).map(|record| (record, reader.0.len()))
    };
    assert_eq!(decode(&[34, 2, 7], 3), Some((NativeRecord::Other(34), 2)));
    let parameter = CallParameter { parameter: ParameterId(2), value: 7 };
    assert_eq!(decode(&[34, 2, 7], 4), Some((NativeRecord::Event(Event::Parameter(parameter)), 0)));
    assert_eq!(decode(&[1, 9, 7], 3), None);
    let on_stream = AcceleratorReference { stream: Some(HERE), event: None };
    assert_eq!(decode(&[1, 9, 7], 4), Some((NativeRecord::Referring(RegionId(9), on_stream, true), 0)));
    assert_eq!(decode(&[2, 9, 7], 4), Some((NativeRecord::Referring(RegionId(9), on_stream, false), 0)));
    // Since version 5 calls may name events.
    assert_eq!(decode(&[3, 9, 0, 0, 8], 4), None);
    let of_event = |stream| AcceleratorReference { stream, event: Some(8) };
    assert_eq!(decode(&[3, 9, 0, 0, 8], 5), Some((NativeRecord::Referring(RegionId(9), of_event(None), true), 0)));
    let leave = NativeRecord::Referring(RegionId(9), of_event(Some(HERE)), false);
    assert_eq!(decode(&[4, 9, 1, 7, 8], 5), Some((leave, 0)));
    assert_eq!(decode(&[4, 9, 2, 7, 8], 5), None);
}

/// Definitions of version 4 end before the attributes that name events.
#[test]
fn version_4_is_read() {
    let header = TraceHeader { creator: "test".into(), description: String::new() };
    let mut without = definitions();
    without.accelerator_attributes.events.clear();
    let bytes = of_version(4, 1, &header, &without);
    assert_eq!(crate::native::definitions::read(&bytes).unwrap(), (header, without));
}

/// A trace of version 1, as its documentation said: no windows and groups, and events of windows without fields.
fn first_version(directory: &Path) -> NativeTrace {
    let header = TraceHeader { creator: "test".into(), description: String::new() };
    let without = first_definitions();
    let bytes = of_version(1, 6, &header, &without);
    std::fs::write(directory.join(DEFINITIONS), bytes).unwrap();

    let data: &[&[u8]] = &[&[100, 12, 9], &[1, 37], &[2, 38], &[3, 46], &[4, 22], &[5, 55], &[0x8C, 6, 13, 9]];
    let data = data.concat();
    let mut block = [(data.len() as u32).to_le_bytes(), 7u32.to_le_bytes()].concat();
    block.extend(data);
    block.extend(crc32fast::hash(&block).to_le_bytes());
    let mut header = b"CLCEVENT\x01\0\0\0\0\0\0\0".to_vec();
    for field in [7, RESOLUTION, 7, 64 + block.len() as u64] {
        header.extend(field.to_le_bytes());
    }
    header.extend([0; 12]);
    header.extend(crc32fast::hash(&header).to_le_bytes());
    std::fs::create_dir_all(directory.join(EVENTS)).unwrap();
    std::fs::write(directory.join(EVENTS).join("7.clce"), [header, block].concat()).unwrap();
    NativeTrace::open(directory).unwrap()
}

#[test]
fn the_first_version_is_read_and_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let trace = first_version(directory.path());
    let event = NativeRecord::Event;
    let expected = vec![
        (100, event(Event::Enter(RegionId(9)))),
        (101, NativeRecord::Other(37)),
        (103, NativeRecord::Other(38)),
        (106, NativeRecord::Other(46)),
        (110, event(Event::MpiCollectiveBegin)),
        (115, NativeRecord::Other(55)),
        (895, event(Event::Leave(RegionId(9)))),
    ];
    assert_eq!(read(&trace).unwrap(), (expected.clone(), Vec::new()));
    let without = first_definitions();
    assert_eq!(trace.read_definitions().unwrap(), without);

    // Types that have fields by now stay what they are: events are written again in the version that they have.
    let other = tempfile::tempdir().unwrap();
    std::fs::create_dir(other.path().join(EVENTS)).unwrap();
    trace.rewrite_events(HERE, other.path(), &mut Shift(3)).unwrap();
    trace.rewrite_definitions(other.path(), Some(&without.clock)).unwrap();
    let shifted = NativeTrace::open(other.path()).unwrap();
    let moved: Vec<_> = expected.into_iter().map(|(time, record)| (time + 3, record)).collect();
    assert_eq!(read(&shifted).unwrap(), (moved, Vec::new()));
    assert_eq!(std::fs::read(other.path().join(DEFINITIONS)).unwrap()[8], 5);
    let offsets = [ClockOffset { time: 5, offset: 6, standard_deviation: 0.0 }];
    trace.replace_clock_offsets(HERE, other.path(), &offsets).unwrap();
    assert_eq!(shifted.clock_offsets(HERE).unwrap(), offsets);
    assert_eq!(std::fs::read(other.path().join(EVENTS).join("7.clce")).unwrap()[8], 1);
}
