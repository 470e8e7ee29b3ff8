//! The native trace format: a directory `NAME.clct` with a definition file and one file of events per location.
//!
//! It holds what this program interprets, and no more: definitions, clock offsets, and of each event the time, the type and, if the
//! type is interpreted, the fields. All numbers are little-endian, everything is covered by checksums, and files that were not
//! finished are recognised.
//!
//! ```text
//! definitions.clcd        header, definitions
//! events/<location>.clce  header, blocks of events, clock offsets
//! ```
//!
//! `docs/formats.md` has every byte.

mod definitions;
mod event_file;
mod files;
mod numbers;
mod records;
mod rewrite;
#[cfg(test)]
mod tests;
mod write;

pub use definitions::TraceHeader;
pub use event_file::Events;
pub use files::NativeTrace;
pub use records::NativeRecord;
pub use write::{NativeEventWriter, NativeWriter};

use std::path::Path;

/// The version that is written; those before it are read as well.
pub(crate) const VERSION: u32 = 5;
/// The first version: without windows, and with their events as types without fields.
const FIRST_VERSION: u32 = 1;
/// Since when windows are in definitions, and their events have fields; barriers and events of threads; parameters of calls and streams of accelerators; events that are put into these streams.
const WITH_WINDOWS: u32 = 2;
const WITH_THREADS: u32 = 3;
const WITH_STREAMS: u32 = 4;
const WITH_EVENTS: u32 = 5;
/// Ending of the name of a trace's directory.
pub const EXTENSION: &str = "clct";
/// Name of the definition file.
pub const DEFINITIONS: &str = "definitions.clcd";
/// Directory of the event files.
pub const EVENTS: &str = "events";
/// Ending of the names of event files.
const EVENT_EXTENSION: &str = "clce";

/// Whether a path is named like a native trace.
pub fn is_named_so(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION)
}

/// Whether a directory holds a native trace.
pub fn is_native(directory: &Path) -> bool {
    directory.join(DEFINITIONS).is_file()
}
