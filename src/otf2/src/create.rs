//! Writing an archive from nothing: for simulated traces and for tests.

use crate::anchor::{Anchor, CHUNK_SIZES};
use crate::bytes::{ByteOrder, Writer};
use crate::definitions::{BARRIERS, OPENMP, kind};
use crate::event_writer::EventFileWriter;
use crate::local::{MAPPING_TABLE, clock_offset_record};
use crate::metrics::NodeMetrics;
use crate::writer::ChunkWriter;
use clc_trace::{ClockOffset, CommMembers, Definitions, Error, LocationId, LocationKind, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How to write an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateOptions {
    /// Byte order of all files.
    pub order: ByteOrder,
    /// Chunk size of event files in bytes, 256 KiB to 16 MiB.
    pub event_chunk: u64,
    /// Chunk size of definition files in bytes, likewise.
    pub definition_chunk: u64,
    /// The tool that writes it.
    pub creator: String,
    /// Free text.
    pub description: String,
    /// Identifies the trace.
    pub trace_id: u64,
    /// Properties of the trace, by names such as `NAMESPACE::KEY`.
    pub properties: Vec<(String, String)>,
    /// Names of metrics that events give values (doubles) to: each has the class of its place in this list.
    pub metrics: Vec<String>,
    /// Metrics of nodes of the system tree; their references follow those.
    pub node_metrics: NodeMetrics,
}

impl Default for CreateOptions {
    fn default() -> Self {
        CreateOptions {
            order: ByteOrder::Little,
            event_chunk: 1 << 20,
            definition_chunk: 1 << 18,
            creator: concat!("clc-replay ", env!("CARGO_PKG_VERSION")).to_owned(),
            description: String::new(),
            trace_id: 0x636c_632d_7265_706c,
            properties: Vec::new(),
            metrics: Vec::new(),
            node_metrics: NodeMetrics::default(),
        }
    }
}

/// Most bytes of one member of a group: a packed 64-bit number.
const MEMBER: u64 = 9;

/// Bytes of a group or string definition beside its members or its text, and of the marks of a chunk; generously.
const FRAME: u64 = 256;

impl CreateOptions {
    /// With chunks into which every one of these definitions fits: a group has all its members in one record.
    #[must_use]
    pub fn fitting(self, definitions: &Definitions) -> CreateOptions {
        let members = definitions.communicators.iter().map(|communicator| match &communicator.members {
            CommMembers::Intra(members) => members.len(),
            CommMembers::Inter(a, b) => a.len().max(b.len()),
            CommMembers::SelfOnly | CommMembers::NotMpi | CommMembers::Undefined => 0,
        });
        let members = members.chain(definitions.groups.iter().map(|(_, members)| members.len()));
        let members = members.chain([definitions.processes.len(), definitions.locations.len()]).max().unwrap_or(0);
        let names = definitions.regions.iter().map(|region| region.name.len());
        let names = names.chain(definitions.locations.iter().map(|location| location.name.len()));
        let longest = (members as u64).saturating_mul(MEMBER).max(names.max().unwrap_or(0) as u64);
        let needed = longest.saturating_add(FRAME).next_power_of_two();
        // What does not fit into the largest is refused when it is written.
        CreateOptions { definition_chunk: self.definition_chunk.max(needed).min(*CHUNK_SIZES.end()), ..self }
    }
}

/// From the ids in the events of one location to global ones (OTF2 local definition `MappingTable`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingTable {
    /// What it maps (OTF2 `MappingType`: 3 regions, 6 communicators).
    pub kind: u8,
    /// Local and global id, by increasing local id.
    pub ids: Vec<(u64, u64)>,
}

/// An archive that is being written.
#[derive(Debug, Clone)]
pub struct ArchiveWriter {
    directory: PathBuf,
    name: String,
    pub(crate) options: CreateOptions,
}

impl ArchiveWriter {
    /// Makes the directory for an archive called `name`; it must not exist, or be empty.
    ///
    /// # Errors
    /// It holds something or cannot be made; a chunk size is out of range.
    pub fn create(directory: &Path, name: &str, options: CreateOptions) -> Result<ArchiveWriter> {
        for size in [options.event_chunk, options.definition_chunk] {
            if !CHUNK_SIZES.contains(&size) {
                return Err(Error::new(format!("the chunk size {size} is not between 256 KiB and 16 MiB")));
            }
        }
        let events = directory.join(name);
        let failed = |error: std::io::Error| Error::io(directory, "cannot create the archive", &error);
        if !directory.is_dir() || directory.read_dir().map_err(failed)?.next().is_some() {
            std::fs::create_dir(directory).map_err(failed)?;
        }
        std::fs::create_dir(&events).map_err(failed)?;
        Ok(ArchiveWriter { directory: directory.to_path_buf(), name: name.to_owned(), options })
    }

    /// As [`ArchiveWriter::create`], in a directory that has been made already, with one called `name` for the event files in it.
    pub fn within(directory: &Path, name: &str, options: CreateOptions) -> ArchiveWriter {
        ArchiveWriter { directory: directory.to_path_buf(), name: name.to_owned(), options }
    }

    fn path(&self, location: LocationId, extension: &str) -> PathBuf {
        self.directory.join(&self.name).join(format!("{location}.{extension}"))
    }

    /// The events of one location. Writers of different locations are independent of each other, can be used by different threads,
    /// and hold neither an open file nor much memory: there can be thousands.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn events(&self, location: LocationId) -> Result<EventFileWriter> {
        let path = self.path(location, "evt");
        let chunks = ChunkWriter::create_one_of_many(&path, self.options.event_chunk, self.options.order, true)?;
        Ok(EventFileWriter::new(chunks))
    }

    /// The local definitions of one location: its clock offsets, in increasing order of time.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn local_definitions(&self, location: LocationId, offsets: &[ClockOffset]) -> Result<()> {
        self.local_definitions_with_tables(location, &[], offsets)
    }

    /// As [`ArchiveWriter::local_definitions`], with tables from local to global ids, if the events of the location use ids of their own.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn local_definitions_with_tables(
        &self,
        location: LocationId,
        tables: &[MappingTable],
        offsets: &[ClockOffset],
    ) -> Result<()> {
        let path = self.path(location, "def");
        let mut chunks = ChunkWriter::create(&path, self.options.definition_chunk, self.options.order, false)?;
        // The format has no empty table.
        for table in tables.iter().filter(|table| !table.ids.is_empty()) {
            let mut payload = Writer::new(self.options.order);
            let dense = table.ids.iter().zip(0..).all(|(&(local, _), index)| local == index);
            payload.u8(table.kind);
            payload.u64(table.ids.len() as u64);
            payload.u8(if dense { 0 } else { 1 });
            for &(local, global) in &table.ids {
                if !dense {
                    payload.u64(local);
                }
                payload.u64(global);
            }
            chunks.record(&self.record(MAPPING_TABLE, &payload), None)?;
        }
        for offset in offsets {
            chunks.record(&clock_offset_record(offset, self.options.order), None)?;
        }
        chunks.finish().map(|_| ())
    }

    fn record(&self, kind: u8, payload: &Writer) -> Vec<u8> {
        let mut record = Writer::new(self.options.order);
        record.record(kind, &payload.bytes, payload.bytes.len());
        record.bytes
    }

    /// Writes the global definitions and the anchor; `events` is the number of events by location. The archive is readable from now on.
    ///
    /// # Errors
    /// A file exists or cannot be made.
    pub fn finish(self, definitions: &Definitions, events: &HashMap<LocationId, u64>) -> Result<()> {
        let mut file = DefinitionWriter {
            archive: &self,
            chunks: ChunkWriter::create(
                &self.directory.join(format!("{}.def", self.name)),
                self.options.definition_chunk,
                self.options.order,
                false,
            )?,
            strings: HashMap::new(),
            records: 0,
        };
        file.all(definitions, events)?;
        let records = file.records;
        file.chunks.finish()?;
        let anchor = Anchor {
            order: self.options.order,
            format: 3,
            trace_format: 2,
            version: [3, 0, 2],
            event_chunk: self.options.event_chunk,
            definition_chunk: self.options.definition_chunk,
            locations: definitions.locations.len() as u64,
            definitions: records,
            machine: String::new(),
            creator: self.options.creator.clone(),
            description: self.options.description.clone(),
            properties: vec![("OTF2::MPI_COMMUNICATION_COMPLETE".to_owned(), "true".to_owned())],
            trace_id: self.options.trace_id,
            snapshots: 0,
            thumbnails: 0,
            counts_at: None,
        };
        let mut anchor = anchor;
        anchor.properties.extend(self.options.properties.iter().cloned());
        let path = self.directory.join(format!("{}.otf2", self.name));
        std::fs::write(&path, anchor.write()).map_err(|error| Error::io(&path, "cannot write", &error))
    }
}

/// The global definition file.
pub(crate) struct DefinitionWriter<'a> {
    pub(crate) archive: &'a ArchiveWriter,
    chunks: ChunkWriter,
    strings: HashMap<String, u32>,
    records: u64,
}

const UNDEFINED: u32 = u32::MAX;
/// OTF2 `Paradigm` MPI.
const MPI: u8 = 4;
/// OTF2 `Paradigm` user.
const USER: u8 = 1;
/// OTF2 `Paradigm` measurement system.
const MEASUREMENT_SYSTEM: u8 = 6;
/// OTF2 definition record `Paradigm`, and its class of processes.
const PARADIGM: u8 = 6;
const PROCESS: u8 = 0;
/// OTF2 definition record `SystemTreeNodeDomain`, and two of its values.
const SYSTEM_TREE_NODE_DOMAIN: u8 = 27;
const MACHINE: u8 = 0;
const SHARED_MEMORY: u8 = 1;

impl DefinitionWriter<'_> {
    pub(crate) fn write(&mut self, kind: u8, fill: impl FnOnce(&mut Writer)) -> Result<()> {
        let mut payload = Writer::new(self.archive.options.order);
        fill(&mut payload);
        self.records += 1;
        self.chunks.record(&self.archive.record(kind, &payload), None)
    }

    pub(crate) fn string(&mut self, text: &str) -> Result<u32> {
        if let Some(&id) = self.strings.get(text) {
            return Ok(id);
        }
        let id = self.strings.len() as u32;
        self.strings.insert(text.to_owned(), id);
        self.write(kind::STRING, |payload| {
            payload.u32(id);
            payload.string(text);
        })?;
        Ok(id)
    }

    fn all(&mut self, definitions: &Definitions, events: &HashMap<LocationId, u64>) -> Result<()> {
        let clock = definitions.clock;
        self.write(kind::CLOCK_PROPERTIES, |payload| {
            payload.u64(clock.resolution);
            payload.u64(clock.global_offset);
            payload.u64(clock.trace_length);
            payload.u64(clock.realtime.unwrap_or(u64::MAX));
        })?;
        let empty = self.string("")?;
        self.paradigm(MPI, "MPI")?;
        if !definitions.thread_barriers.is_empty() {
            self.paradigm(OPENMP, "OpenMP")?;
        }
        for node in &definitions.system_tree {
            let (name, class) = (self.string(&node.name)?, self.string(&node.class)?);
            self.write(kind::SYSTEM_TREE_NODE, |payload| {
                payload.u32(node.id.0);
                payload.u32(name);
                payload.u32(class);
                payload.u32(node.parent.map_or(UNDEFINED, |parent| parent.0));
            })?;
            let domain = match node.class.as_str() {
                "machine" => MACHINE,
                "node" => SHARED_MEMORY,
                _ => continue,
            };
            self.write(SYSTEM_TREE_NODE_DOMAIN, |payload| {
                payload.u32(node.id.0);
                payload.u8(domain);
            })?;
        }
        for group in &definitions.location_groups {
            let name = self.string(&group.name)?;
            self.write(kind::LOCATION_GROUP, |payload| {
                payload.u32(group.id.0);
                payload.u32(name);
                payload.u8(if group.accelerator { 2 } else { 1 });
                payload.u32(group.parent.map_or(UNDEFINED, |parent| parent.0));
                payload.u32(group.creator.map_or(UNDEFINED, |creator| creator.0));
            })?;
        }
        for location in &definitions.locations {
            let name = self.string(&location.name)?;
            self.write(kind::LOCATION, |payload| {
                payload.u64(location.id.0);
                payload.u32(name);
                payload.u8(match location.kind {
                    LocationKind::CpuThread => 1,
                    LocationKind::AcceleratorStream => 2,
                    LocationKind::Metric => 3,
                    LocationKind::Other(kind) => kind,
                });
                payload.u64(events.get(&location.id).copied().unwrap_or(location.claimed_events));
                payload.u32(location.group.0);
            })?;
        }
        for region in &definitions.regions {
            let name = self.string(&region.name)?;
            let barrier = definitions.thread_barriers.binary_search(&region.id).is_ok();
            let (role, paradigm) = match region.name.starts_with("MPI_") {
                _ if barrier => (BARRIERS[0], OPENMP),
                true => (0, MPI),
                false => (0, USER),
            };
            self.write(kind::REGION, |payload| {
                payload.u32(region.id.0);
                payload.u32(name);
                payload.u32(empty);
                payload.u8(0);
                payload.u32(UNDEFINED);
                payload.u32(0);
                payload.u32(0);
                payload.u32(name);
                payload.u8(role);
                payload.u8(paradigm);
                payload.u32(0);
            })?;
        }
        self.metrics()?;
        self.communicators(definitions, empty)
    }

    fn paradigm(&mut self, paradigm: u8, name: &str) -> Result<()> {
        let name = self.string(name)?;
        self.write(PARADIGM, |payload| {
            payload.u8(paradigm);
            payload.u32(name);
            payload.u8(PROCESS);
        })
    }

    /// Groups and communicators; every communicator has a group of its own.
    fn communicators(&mut self, definitions: &Definitions, empty: u32) -> Result<()> {
        const COMM_LOCATIONS: u8 = 4;
        const COMM_GROUP: u8 = 5;
        const COMM_SELF: u8 = 6;
        // After those that events name, unless these have left the first place to the locations: readers expect ids in their order.
        let first = definitions.groups.iter().all(|(id, _)| id.0 > 0) && !definitions.groups.is_empty();
        let mut next = definitions.groups.iter().map(|(id, _)| id.0.saturating_add(1)).max().unwrap_or(0);
        let define = |file: &mut Self,
                      id: u32,
                      kind: u8,
                      paradigm: u8,
                      members: &mut dyn Iterator<Item = u64>,
                      global: bool|
         -> Result<u32> {
            let members: Vec<u64> = members.collect();
            file.write(kind::GROUP, |payload| {
                payload.u32(id);
                payload.u32(empty);
                // The kinds of before OTF2 1.2: communicator, self, locations.
                payload.u8(match kind {
                    COMM_GROUP => 4,
                    COMM_SELF => 5,
                    _ => 6,
                });
                payload.u32(members.len() as u32);
                members.iter().for_each(|&member| payload.u64(member));
                payload.u8(kind);
                payload.u8(paradigm);
                payload.u32(u32::from(global));
            })?;
            Ok(id)
        };
        let mut group =
            |file: &mut Self, kind: u8, paradigm: u8, members: &mut dyn Iterator<Item = u64>, global: bool| {
                next += 1;
                define(file, next - 1, kind, paradigm, members, global)
            };
        if !definitions.processes.is_empty() {
            let mut processes = definitions.processes.iter().map(|id| id.0);
            match first {
                true => define(self, 0, COMM_LOCATIONS, MPI, &mut processes, false)?,
                false => group(self, COMM_LOCATIONS, MPI, &mut processes, false)?,
            };
        }
        // Their members refer to the locations.
        for (id, members) in &definitions.groups {
            define(self, id.0, COMM_GROUP, MPI, &mut members.iter().map(|&rank| u64::from(rank)), false)?;
        }
        // Readers expect the locations of every paradigm that has communicators.
        if definitions.communicators.iter().any(|communicator| communicator.members == CommMembers::NotMpi) {
            self.paradigm(MEASUREMENT_SYSTEM, "Measurement system")?;
            let mut locations = definitions.locations.iter().map(|location| location.id.0);
            group(self, COMM_LOCATIONS, MEASUREMENT_SYSTEM, &mut locations, false)?;
        }
        for communicator in &definitions.communicators {
            let name = self.string(&communicator.name)?;
            let global = communicator.global_ranks;
            let ranks = |members: &[u32]| members.iter().map(|&rank| u64::from(rank)).collect::<Vec<_>>().into_iter();
            let (a, b) = match &communicator.members {
                CommMembers::Intra(members) => (group(self, COMM_GROUP, MPI, &mut ranks(members), global)?, None),
                CommMembers::SelfOnly => (group(self, COMM_SELF, MPI, &mut std::iter::empty(), false)?, None),
                CommMembers::Inter(a, b) => {
                    let a = group(self, COMM_GROUP, MPI, &mut ranks(a), false)?;
                    (a, Some(group(self, COMM_GROUP, MPI, &mut ranks(b), false)?))
                }
                CommMembers::NotMpi => {
                    (group(self, COMM_GROUP, MEASUREMENT_SYSTEM, &mut std::iter::empty(), false)?, None)
                }
                CommMembers::Undefined => continue,
            };
            let id = communicator.id.0;
            match b {
                None => self.write(kind::COMM, |payload| {
                    payload.u32(id);
                    payload.u32(name);
                    payload.u32(a);
                    payload.u32(UNDEFINED);
                    payload.u32(0);
                })?,
                Some(b) => self.write(kind::INTER_COMM, |payload| {
                    payload.u32(id);
                    payload.u32(name);
                    payload.u32(a);
                    payload.u32(b);
                    payload.u32(UNDEFINED);
                    payload.u32(0);
                })?,
            }
        }
        for window in &definitions.windows {
            let name = self.string(&window.name)?;
            self.write(kind::RMA_WIN, |payload| {
                payload.u32(window.id.0);
                payload.u32(name);
                payload.u32(window.comm.0);
                payload.u32(0);
            })?;
        }
        Ok(())
    }
}
