//! The bytes of the files.

use super::*;

/// These bytes are the format: if this fails because a type of `trace::Definitions` has changed, [`VERSION`] has to grow.
#[test]
fn the_definition_file_is_what_the_documentation_says() {
    let header = TraceHeader { creator: "me".into(), description: String::new() };
    let bytes = crate::archive::native::definitions::definition_bytes(&header, &definitions()).unwrap();
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
    ];
    let payload = payload.concat();
    let mut expected = b"CLCDEFIN\x02\0\0\0".to_vec();
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
    let mut header = b"CLCEVENT\x02\0\0\0\0\0\0\0".to_vec();
    for field in [7, RESOLUTION, 6, 64 + block.len() as u64] {
        header.extend(field.to_le_bytes());
    }
    header.extend(2u32.to_le_bytes());
    header.extend(crc32fast::hash(&offsets).to_le_bytes());
    header.extend([0; 4]);
    header.extend(crc32fast::hash(&header).to_le_bytes());
    assert_eq!(bytes, [header, block, offsets].concat());
}
