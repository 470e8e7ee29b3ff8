//! OTF2 archives (trace formats 1 and 2, POSIX substrate) in pure Rust: a streaming codec for the buffer layer, the definitions
//! and the records that a correction needs. Every other record passes through byte for byte.
//!
//! The facts of the format are those of the OTF2 library's sources and of files written by it; `docs/formats.md` has
//! them.

mod anchor;
mod bytes;
mod chunks;
mod conversion_loss;
mod create;
mod definitions;
mod encode;
mod event_writer;
mod files;
mod left_out;
mod local;
mod mapped;
mod records;
mod rewrite;
mod scan;
mod siblings;
mod source;
mod summary;
#[cfg(test)]
mod tests;
mod times;
mod writer;

pub use anchor::Anchor;
pub use bytes::{ByteOrder, Writer as FieldWriter};
pub use create::{ArchiveWriter, CreateOptions, MappingTable};
pub use event_writer::EventFileWriter;
pub use files::Otf2Archive;
pub use left_out::EventParts;
pub use local::{IdMap, LocalDefinitions};
pub use records::name as event_name;

pub use conversion_loss::{LeftOut, Thing};
pub use mapped::{MappedFile, mapped_at, open_file};
pub use siblings::{Sibling, SiblingKind, copy, list};
pub use summary::ScanSummary;
pub use times::{Marker, MarkerScope, TimeMap};
