//! Copies of recorded traces, to be damaged on purpose.
//!
//! The walker knows just enough of the format to find records in files of one chunk and shares no code with the program.

use super::{copy_tree, fixture};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes of the header of a chunk.
pub(crate) const HEADER: usize = 18;
/// Record types that the tests look for.
pub(crate) const END_OF_FILE: u8 = 2;
pub(crate) const TIMESTAMP: u8 = 5;
pub(crate) const CLOCK_OFFSET: u8 = 6;
pub(crate) const ENTER: u8 = 12;
pub(crate) const LOCATION: u8 = 14;
pub(crate) const SEND: u8 = 14;
pub(crate) const COLLECTIVE_END: u8 = 23;

/// A private copy of a trace in a directory of its own.
pub(crate) struct Copy {
    /// Contains the trace, and everything that a test puts beside it.
    pub directory: tempfile::TempDir,
    /// The trace's directory.
    pub trace: PathBuf,
    /// Name of the archive.
    pub archive: String,
}

impl Copy {
    pub(crate) fn of(name: &str) -> Copy {
        Copy::made(|trace| copy_tree(&fixture(name), trace))
    }

    /// A trace that `make` writes into a directory, which it has to make.
    pub(crate) fn made(make: impl FnOnce(&Path)) -> Copy {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let trace = directory.path().join("trace");
        make(&trace);
        let archive = super::anchor(&trace).file_stem().expect("a name").to_string_lossy().into_owned();
        Copy { directory, trace, archive }
    }

    /// A file of the trace's directory, e.g. `traces.def`.
    pub(crate) fn anchor(&self) -> PathBuf {
        self.trace.join(format!("{}.otf2", self.archive))
    }

    pub(crate) fn definitions(&self) -> PathBuf {
        self.trace.join(format!("{}.def", self.archive))
    }

    pub(crate) fn events(&self, location: u64) -> PathBuf {
        self.trace.join(&self.archive).join(format!("{location}.evt"))
    }

    pub(crate) fn local(&self, location: u64) -> PathBuf {
        self.trace.join(&self.archive).join(format!("{location}.def"))
    }

    /// Where corrections go.
    pub(crate) fn output(&self) -> PathBuf {
        self.directory.path().join("out")
    }
}

/// Changes the contents of a file.
#[track_caller]
pub(crate) fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let before = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = before.clone();
    change(&mut bytes);
    assert_ne!(before, bytes, "the change to {} changes nothing", path.display());
    std::fs::write(path, bytes).expect("a writable file");
}

/// A record or mark in a file.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub kind: u8,
    /// From the type byte to the end.
    pub whole: Range<usize>,
    /// The fields.
    pub payload: Range<usize>,
    /// Number of event records up to this one, counted as otf2-print does.
    pub event: u64,
}

/// Everything between the chunk header and the end mark (included) of a file of one chunk.
pub(crate) fn items(bytes: &[u8], is_events: bool) -> Vec<Item> {
    let mut found = Vec::new();
    let mut at = HEADER;
    let mut event = 0;
    loop {
        let kind = bytes[at];
        let singleton = matches!(kind, 12 | 13 | 16 | 17 | 20 | 21 | 24 | 28..=30);
        let payload = match kind {
            END_OF_FILE => at + 1..at + 1,
            TIMESTAMP if is_events => at + 1..at + 9,
            _ if is_events && singleton => {
                at + 1..at + 2 + if bytes[at + 1] == 0xFF { 0 } else { usize::from(bytes[at + 1]) }
            }
            _ if bytes[at + 1] == 0xFF => {
                let length = u64::from_le_bytes(bytes[at + 2..at + 10].try_into().expect("8 bytes"));
                at + 10..at + 10 + length as usize
            }
            _ => at + 2..at + 2 + usize::from(bytes[at + 1]),
        };
        if kind >= 10 {
            event += 1;
        }
        found.push(Item { kind, whole: at..payload.end, payload: payload.clone(), event });
        at = payload.end;
        if kind == END_OF_FILE {
            return found;
        }
        assert_ne!(kind, 0, "the walker knows files of one chunk only");
    }
}

/// The `index`-th record of a type.
#[track_caller]
pub(crate) fn find(bytes: &[u8], is_events: bool, kind: u8, index: usize) -> Item {
    let mut matching = items(bytes, is_events).into_iter().filter(|item| item.kind == kind);
    matching.nth(index).unwrap_or_else(|| panic!("no record {index} of type {kind}"))
}

/// The packed integers that a record begins with, as (position and size of the encoding).
pub(crate) fn packed(bytes: &[u8], from: usize, count: usize) -> Vec<Range<usize>> {
    let mut at = from;
    let mut fields = Vec::new();
    for _ in 0..count {
        let size = if bytes[at] == 0xFF { 1 } else { 1 + usize::from(bytes[at]) };
        fields.push(at..at + size);
        at += size;
    }
    fields
}

/// Replaces part of a record's fields, and corrects its (short) length.
pub(crate) fn replace(bytes: &mut Vec<u8>, record: &Item, part: Range<usize>, new: &[u8]) {
    let length = record.payload.len() - part.len() + new.len();
    assert!(length < 255 && record.payload.start == record.whole.start + 2, "a record with a short length");
    bytes[record.whole.start + 1] = length as u8;
    bytes.splice(part, new.iter().copied());
}
