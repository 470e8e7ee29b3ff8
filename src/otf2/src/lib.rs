//! OTF2 archives (trace formats 1 to 3, POSIX substrate) in pure Rust: read them, write them, or give them other times and leave every other byte as it is.
//!
//! | to | use |
//! | --- | --- |
//! | open an archive, read definitions | [`Otf2Archive::open`], [`Otf2Archive::read_definitions`], [`Otf2Archive::definition_records`] |
//! | walk through all events of a location, with all fields | [`Otf2Archive::events`], [`EventRecord`] |
//! | stream what a replay needs, fast | [`Otf2Archive::scan_with`] |
//! | write an archive | [`ArchiveWriter`], [`EventFileWriter`] |
//! | copy one with other times | [`Otf2Archive::rewrite_events`] and its siblings, [`TimeMap`] |
//!
//! One table of records ([`EventRecord::TABLE`], [`DefinitionRecord::TABLE`]) makes types, readers, writers and bounds; records of later versions pass through as
//! they are. Nothing is read beyond the end of a record, a chunk or a file, whatever the bytes say. The facts of the format are those of the OTF2
//! library's sources and of files written by it; `docs/formats.md` of clc-replay has them.
//!
//! ```
//! use clc_otf2::{ArchiveWriter, CreateOptions, EventRecord, Otf2Archive};
//! use clc_trace::*;
//! use std::collections::HashMap;
//!
//! # fn main() -> Result<()> {
//! # let directory = tempfile::tempdir().expect("a directory");
//! let path = directory.path().join("trace");
//! let definitions = Definitions {
//!     clock: ClockProperties { resolution: 1_000_000_000, global_offset: 0, trace_length: 100, realtime: None },
//!     locations: vec![Location {
//!         id: LocationId(0),
//!         name: "main".into(),
//!         kind: LocationKind::CpuThread,
//!         group: LocationGroupId(0),
//!         claimed_events: 2,
//!     }],
//!     location_groups: vec![LocationGroup {
//!         id: LocationGroupId(0),
//!         name: "process".into(),
//!         accelerator: false,
//!         parent: None,
//!         creator: None,
//!     }],
//!     regions: vec![Region { id: RegionId(0), name: "work".into() }],
//!     system_tree: Vec::new(),
//!     processes: Vec::new(),
//!     communicators: Vec::new(),
//!     windows: Vec::new(),
//!     groups: Vec::new(),
//!     thread_barriers: Vec::new(),
//!     callsites: Vec::new(),
//!     accelerator_attributes: Default::default(),
//! };
//! let archive = ArchiveWriter::create(&path, "traces", CreateOptions::default())?;
//! let mut events = archive.events(LocationId(0))?;
//! events.event(10, &Event::Enter(RegionId(0)))?;
//! events.record(90, &EventRecord::Leave { region: RegionId(0) })?;
//! let count = events.finish()?;
//! archive.local_definitions(LocationId(0), &[])?;
//! archive.finish(&definitions, &HashMap::from([(LocationId(0), count)]))?;
//!
//! let archive = Otf2Archive::open(&path)?;
//! let times: Vec<u64> = archive.events(LocationId(0))?.map(|event| event.map(|event| event.time)).collect::<Result<_>>()?;
//! assert_eq!(times, [10, 90]);
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]
#![deny(clippy::cast_lossless)]

mod anchor;
mod bytes;
mod chunks;
mod conversion_loss;
mod create;
mod created_definitions;
mod decode;
mod definition_record;
mod definition_writer;
mod definitions;
mod event_record;
mod event_writer;
mod events;
mod fields;
mod files;
mod framing;
mod interpret;
mod interpreted;
mod local;
mod local_file;
mod mapped;
mod metric_definitions;
mod metrics;
mod options;
mod region_roles;
mod regions;
mod rewrite;
mod scan;
mod siblings;
mod source;
mod summary;
mod synchronisation;
mod table;
#[cfg(test)]
mod tests;
mod times;
mod writer;

pub use anchor::{AnchorFile, COMMUNICATION_COMPLETE};
pub use bytes::{ByteOrder, Reader as FieldReader, Writer as FieldWriter};
pub use create::{ArchiveWriter, MappingTable};
pub use definition_record::DefinitionRecord;
pub use event_record::EventRecord;
pub use event_writer::EventFileWriter;
pub use events::{Events, RecordedEvent};
pub use fields::{
    CallingContextId, Few, Field, InterruptGeneratorId, IoFileId, IoHandleId, Many, MetricId, MetricValue, Properties,
    Stamp, StringId, Typed,
};
pub use files::{Otf2Archive, event_file_size};
pub use framing::name as event_name;
pub use interpreted::EventParts;
pub use local::{IdMap, LocalDefinitions};
pub use metrics::NodeMetrics;
pub use options::CreateOptions;
pub use region_roles::JOINED_POLLS;
pub use regions::RegionVisitor;

pub use conversion_loss::{ConversionLoss, Lost};
pub use mapped::{MappedFile, mapped_at, open_file};
pub use siblings::{Sibling, SiblingKind, copy, list};
pub use summary::ScanSummary;
pub use synchronisation::SynchronisationVisitor;
pub use times::{Marker, MarkerScope, TimeMap, UNDEFINED_TIME};

/// What definitions, events and errors consist of: who only reads archives needs no other crate.
pub use clc_trace::{
    ClockOffset, ClockProperties, CommId, CommMembers, Communicator, Definitions, Error, ErrorKind, Event, Location,
    LocationGroup, LocationGroupId, LocationId, LocationKind, MpiRank, Region, RegionId, Result, SystemTreeNode,
    SystemTreeNodeId, Ticks,
};
