//! Global definitions `NAME.def`.

use crate::bytes::Reader;
use crate::chunks::{FileKind, RecordReader};
use clc_trace::{
    AcceleratorAttributes, AttributeId, ClockProperties, CommId, CommMembers, Communicator, Definitions, Error,
    GroupId, Location, LocationGroup, LocationGroupId, LocationId, LocationKind, MpiRank, ParameterId, Region,
    RegionId, Result, SystemTreeNode, SystemTreeNodeId, Window, WindowId,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Record types of global definitions that are interpreted.
pub(crate) mod kind {
    #![allow(missing_docs)] // the names are those of the OTF2 records
    pub(crate) const CLOCK_PROPERTIES: u8 = 5;
    pub(crate) const STRING: u8 = 10;
    pub(crate) const SYSTEM_TREE_NODE: u8 = 12;
    pub(crate) const ATTRIBUTE: u8 = 11;
    pub(crate) const LOCATION_GROUP: u8 = 13;
    pub(crate) const LOCATION: u8 = 14;
    pub(crate) const REGION: u8 = 15;
    pub(crate) const GROUP: u8 = 18;
    pub(crate) const COMM: u8 = 22;
    pub(crate) const PARAMETER: u8 = 23;
    pub(crate) const RMA_WIN: u8 = 24;
    pub(crate) const INTER_COMM: u8 = 43;
}

const MPI: u8 = 4;
const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;
const COMM_SELF: u8 = 6;
const UNDEFINED: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct GroupDefinition {
    id: u32,
    kind: u8,
    paradigm: u8,
    global_members: bool,
    members: Vec<u64>,
}

/// What has been read so far, before references are resolved.
#[derive(Default)]
pub(super) struct Tables {
    clock: Option<ClockProperties>,
    strings: HashMap<u32, String>,
    system_tree: Vec<(u32, u32, u32, u32)>,
    location_groups: Vec<(u32, u32, u8, u32, u32)>,
    locations: Vec<(u64, u32, u8, u64, u32)>,
    regions: Vec<(u32, u32)>,
    thread_barriers: Vec<u32>,
    /// Parameters of unsigned integers, attributes that are locations, and attributes that are unsigned integers: ids and names.
    parameters: Vec<(u32, u32)>,
    location_attributes: Vec<(u32, u32)>,
    unsigned_attributes: Vec<(u32, u32)>,
    groups: Vec<GroupDefinition>,
    comms: Vec<(u32, u32, u32)>,
    inter_comms: Vec<(u32, u32, u32, u32)>,
    windows: Vec<(u32, u32, u32)>,
    records: u64,
}

/// Reads the contents of a global definition file. `announced` is the number of records according to the anchor.
///
/// # Errors
/// Damaged records, no clock properties, references to undefined locations or location groups.
pub(crate) fn read(bytes: &[u8], chunk_size: u64, announced: u64) -> Result<(Definitions, Vec<String>)> {
    let mut tables = Tables::default();
    let mut records = RecordReader::new(bytes, FileKind::Definitions, chunk_size);
    while let Some(record) = records.next()? {
        tables.records += 1;
        tables.record(record.kind, Reader::new(record.payload, record.order)).map_err(|error| {
            Error::damaged(format!("definition record {} (type {}): {}", record.number, record.kind, error.message))
        })?;
    }
    tables.check_texts(bytes.len())?;
    tables.resolve(announced)
}

/// OTF2 `RegionRole`: barrier, implicit barrier.
pub(super) const BARRIERS: [u8; 2] = [15, 16];
/// OTF2 `Paradigm`: OpenMP.
pub(super) const OPENMP: u8 = 3;

/// OTF2 `ParameterType`: unsigned 64-bit integer.
pub(super) const UNSIGNED: u8 = 2;
/// OTF2 `Type`: a location.
pub(super) const TYPE_LOCATION: u8 = 13;
/// OTF2 `Type`: unsigned integers of 8 to 64 bits.
pub(super) const TYPES_UNSIGNED: std::ops::RangeInclusive<u8> = 1..=4;
/// The parameter by which Score-P tells where kernels of accelerators are launched.
pub(super) const CALLSITE: &str = "callsite id";
/// The attribute by which Score-P names the CUDA stream that a call refers to.
pub(super) const STREAM_REFERENCE: &str = "CUDA_STREAM_REF";
/// The attribute by which Score-P names the CUDA event that a call refers to.
pub(super) const EVENT_REFERENCE: &str = "CUDA_EVENT_REF";

/// Whether the definition of a region, of which id and name have been read, is that of a barrier of OpenMP. Records of OTF2 1.0 do not tell.
fn is_thread_barrier(reader: &mut Reader<'_>) -> bool {
    let mut role = || -> Result<(u8, u8)> {
        reader.u32()?;
        reader.u8()?;
        for _ in 0..4 {
            reader.u32()?;
        }
        Ok((reader.u8()?, reader.u8()?))
    };
    role().is_ok_and(|(role, paradigm)| BARRIERS.contains(&role) && paradigm == OPENMP)
}

/// Texts of this many bytes are no reason to refuse definitions, however often they use the same one.
const SOME_TEXT: u64 = 64 << 20;

/// Nor are so many bytes of text for each byte of the file: a definition takes about ten bytes, and names seldom more than hundreds.
const TEXT_PER_BYTE: u64 = 64;

impl Tables {
    pub(super) fn record(&mut self, kind: u8, mut reader: Reader<'_>) -> Result<()> {
        let reader = &mut reader;
        match kind {
            kind::CLOCK_PROPERTIES => {
                let mut clock = ClockProperties {
                    resolution: reader.u64()?,
                    global_offset: reader.u64()?,
                    trace_length: reader.u64()?,
                    realtime: None,
                };
                clock.realtime = reader.u64().ok().filter(|&time| time != u64::MAX);
                if clock.resolution == 0 {
                    return Err(Error::damaged("the timer resolution is 0 ticks per second"));
                }
                self.clock.get_or_insert(clock);
            }
            kind::STRING => {
                let id = reader.u32()?;
                self.strings.insert(id, reader.string()?);
            }
            kind::SYSTEM_TREE_NODE => {
                self.system_tree.push((reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?));
            }
            kind::LOCATION_GROUP => {
                let fields = (reader.u32()?, reader.u32()?, reader.u8()?, reader.u32()?);
                let creator = reader.u32().unwrap_or(UNDEFINED);
                self.location_groups.push((fields.0, fields.1, fields.2, fields.3, creator));
            }
            kind::LOCATION => {
                self.locations.push((reader.u64()?, reader.u32()?, reader.u8()?, reader.u64()?, reader.u32()?));
            }
            kind::REGION => {
                let (id, name) = (reader.u32()?, reader.u32()?);
                self.regions.push((id, name));
                if is_thread_barrier(reader) {
                    self.thread_barriers.push(id);
                }
            }
            // Nothing that every trace needs depends on these: damage is no reason to refuse it.
            kind::PARAMETER | kind::ATTRIBUTE => {
                if let (Ok(id), Ok(name), Ok(of)) = (reader.u32(), reader.u32(), reader.u8()) {
                    match (kind, of) {
                        (kind::PARAMETER, UNSIGNED) => self.parameters.push((id, name)),
                        (kind::ATTRIBUTE, TYPE_LOCATION) => self.location_attributes.push((id, name)),
                        (kind::ATTRIBUTE, of) if TYPES_UNSIGNED.contains(&of) => {
                            self.unsigned_attributes.push((id, name));
                        }
                        _ => {}
                    }
                }
            }
            kind::GROUP => self.group(reader)?,
            kind::COMM => self.comms.push((reader.u32()?, reader.u32()?, reader.u32()?)),
            kind::RMA_WIN => self.windows.push((reader.u32()?, reader.u32()?, reader.u32()?)),
            kind::INTER_COMM => {
                self.inter_comms.push((reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?));
            }
            _ => {}
        }
        Ok(())
    }

    fn group(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let id = reader.u32()?;
        let _name = reader.u32()?;
        let old_kind = reader.u8()?;
        let count = reader.u32()?;
        // Each member takes at least a byte, so a wrong count ends in an error, not in an allocation.
        let mut members = Vec::new();
        for _ in 0..count {
            members.push(reader.u64()?);
        }
        let tail =
            |reader: &mut Reader<'_>| -> Result<(u8, u8, u32)> { Ok((reader.u8()?, reader.u8()?, reader.u32()?)) };
        let (kind, paradigm, flags) = tail(reader).unwrap_or(match old_kind {
            4 => (COMM_GROUP, MPI, 0),
            5 => (COMM_SELF, MPI, 0),
            6 => (COMM_LOCATIONS, MPI, 0),
            other => (other, 0, 0),
        });
        self.groups.push(GroupDefinition { id, kind, paradigm, global_members: flags & 1 != 0, members });
        Ok(())
    }

    /// Number of groups that are neither the MPI processes nor the members of an MPI communicator.
    pub(super) fn other_groups(&self) -> u64 {
        let of_comms = self.comms.iter().map(|comm| comm.2);
        let used: HashSet<u32> = of_comms.chain(self.inter_comms.iter().flat_map(|comm| [comm.2, comm.3])).collect();
        let kept = |group: &&GroupDefinition| {
            // Events on windows name groups by themselves.
            let named = group.kind == COMM_GROUP && !self.windows.is_empty();
            let members = matches!(group.kind, COMM_GROUP | COMM_SELF) && (named || used.contains(&group.id));
            group.paradigm == MPI && (group.kind == COMM_LOCATIONS || members)
        };
        self.groups.iter().filter(|group| !kept(group)).count() as u64
    }

    /// The parameters and attributes that tell what calls do with accelerators, ascending.
    pub(super) fn of_accelerators(&self) -> (Vec<ParameterId>, AcceleratorAttributes) {
        let named = |list: &[(u32, u32)], wanted: &str| -> Vec<u32> {
            let is = |&&(_, name): &&(u32, u32)| self.strings.get(&name).is_some_and(|name| name == wanted);
            let mut ids: Vec<u32> = list.iter().filter(is).map(|&(id, _)| id).collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let callsites = named(&self.parameters, CALLSITE).into_iter().map(ParameterId).collect();
        let attributes = |list, wanted| named(list, wanted).into_iter().map(AttributeId).collect();
        let streams = attributes(&self.location_attributes, STREAM_REFERENCE);
        let events = attributes(&self.unsigned_attributes, EVENT_REFERENCE);
        (callsites, AcceleratorAttributes { streams, events })
    }

    /// Refuses a file of few bytes in which a long text is the name of many things: each of them has its own copy.
    fn check_texts(&self, length: usize) -> Result<()> {
        let names = self.system_tree.iter().flat_map(|node| [node.1, node.2]);
        let names = names.chain(self.location_groups.iter().map(|group| group.1));
        let names = names.chain(self.locations.iter().map(|location| location.1));
        let names = names.chain(self.regions.iter().map(|region| region.1));
        let names = names.chain(self.windows.iter().map(|window| window.1));
        let names = names.chain(self.comms.iter().map(|comm| comm.1));
        let names = names.chain(self.inter_comms.iter().map(|comm| comm.1));
        let total: u64 = names.filter_map(|id| self.strings.get(&id)).map(|text| text.len() as u64).sum();
        if total <= SOME_TEXT.max(length as u64 * TEXT_PER_BYTE) {
            return Ok(());
        }
        Err(Error::damaged(format!("definitions of {length} bytes use names of {total} bytes in total"))
            .hint("such names are implausible: the file is damaged or malicious"))
    }

    fn text(&self, id: u32) -> String {
        self.strings.get(&id).cloned().unwrap_or_default()
    }

    fn resolve(self, announced: u64) -> Result<(Definitions, Vec<String>)> {
        let mut warnings = Vec::new();
        if self.records != announced {
            warnings.push(format!(
                "the anchor file announces {announced} global definitions, but the file has {}; other readers may \
                reject it",
                self.records
            ));
        }
        self.warn_of_duplicates(&mut warnings);
        let clock = self.clock.ok_or_else(|| Error::damaged("no clock properties (timer resolution) are defined"))?;
        let (location_groups, groups_seen) = self.location_groups();
        let (locations, locations_seen) = self.locations(&groups_seen)?;
        let processes = self.processes(&locations_seen)?;
        let (communicators, groups) = self.communicators(processes.len())?;
        let system_tree = self
            .system_tree
            .iter()
            .map(|&(id, name, class, parent)| SystemTreeNode {
                id: SystemTreeNodeId(id),
                name: self.text(name),
                class: self.text(class),
                parent: (parent != UNDEFINED).then_some(SystemTreeNodeId(parent)),
            })
            .collect();
        let regions =
            self.regions.iter().map(|&(id, name)| Region { id: RegionId(id), name: self.text(name) }).collect();
        let window = |&(id, name, comm): &(u32, u32, u32)| Window {
            id: WindowId(id),
            name: self.text(name),
            comm: CommId(comm),
        };
        let windows = self.windows.iter().map(window).collect();
        let mut thread_barriers: Vec<RegionId> = self.thread_barriers.iter().map(|&id| RegionId(id)).collect();
        thread_barriers.sort_unstable();
        thread_barriers.dedup();
        let (callsites, accelerator_attributes) = self.of_accelerators();
        let definitions = Definitions {
            clock,
            locations,
            location_groups,
            system_tree,
            processes,
            communicators,
            regions,
            windows,
            groups,
            thread_barriers,
            callsites,
            accelerator_attributes,
        };
        Ok((definitions, warnings))
    }

    /// Location groups, of several with one id the first, and their ids.
    fn location_groups(&self) -> (Vec<LocationGroup>, HashSet<u32>) {
        let mut seen = HashSet::new();
        let mut location_groups = Vec::new();
        for &(id, name, kind, parent, creator) in &self.location_groups {
            if seen.insert(id) {
                location_groups.push(LocationGroup {
                    id: LocationGroupId(id),
                    name: self.text(name),
                    accelerator: kind == 2,
                    parent: (parent != UNDEFINED).then_some(SystemTreeNodeId(parent)),
                    creator: (creator != UNDEFINED).then_some(LocationGroupId(creator)),
                });
            }
        }
        (location_groups, seen)
    }

    /// Locations, of several with one id the first, and their ids.
    fn locations(&self, groups: &HashSet<u32>) -> Result<(Vec<Location>, HashSet<u64>)> {
        let mut seen = HashSet::new();
        let mut locations = Vec::new();
        for &(id, name, kind, claimed_events, group) in &self.locations {
            if !groups.contains(&group) {
                return Err(Error::damaged(format!("location group {group} of location {id} is not defined")));
            }
            if seen.insert(id) {
                locations.push(Location {
                    id: LocationId(id),
                    name: self.text(name),
                    kind: match kind {
                        1 => LocationKind::CpuThread,
                        2 => LocationKind::AcceleratorStream,
                        3 => LocationKind::Metric,
                        other => LocationKind::Other(other),
                    },
                    group: LocationGroupId(group),
                    claimed_events,
                });
            }
        }
        Ok((locations, seen))
    }

    fn warn_of_duplicates(&self, warnings: &mut Vec<String>) {
        let mut count = |what: &str, ids: &mut dyn Iterator<Item = u64>| {
            let mut seen = HashSet::new();
            let twice = ids.filter(|id| !seen.insert(*id)).count();
            if twice > 0 {
                let ids = if twice == 1 { "1 id".to_owned() } else { format!("{twice} ids") };
                let are = if twice == 1 { "is" } else { "are" };
                warnings.push(format!("{ids} of type {what} {are} defined twice; other readers may reject this"));
            }
        };
        count("group", &mut self.groups.iter().map(|group| u64::from(group.id)));
        count("communicator", &mut self.comms.iter().map(|comm| u64::from(comm.0)));
        count("location", &mut self.locations.iter().map(|location| location.0));
        count("location group", &mut self.location_groups.iter().map(|group| u64::from(group.0)));
    }

    /// The location behind each MPI rank.
    fn processes(&self, defined: &HashSet<u64>) -> Result<Vec<LocationId>> {
        let Some(group) = self.groups.iter().find(|group| group.kind == COMM_LOCATIONS && group.paradigm == MPI) else {
            return Ok(Vec::new());
        };
        let mut seen = HashSet::new();
        for &member in &group.members {
            if !defined.contains(&member) {
                return Err(Error::damaged(format!(
                    "location {member}, an MPI process by group {}, is not defined",
                    group.id
                )));
            }
            if !seen.insert(member) {
                return Err(Error::damaged(format!(
                    "location {member} is listed for two MPI ranks in group {}",
                    group.id
                )));
            }
        }
        Ok(group.members.iter().map(|&member| LocationId(member)).collect())
    }

    /// The communicators, and the groups that events on windows may name.
    #[allow(clippy::type_complexity)] // the fields of `Definitions`
    fn communicators(&self, processes: usize) -> Result<(Vec<Communicator>, Vec<(GroupId, Arc<[MpiRank]>)>)> {
        // Ids of groups can be taken twice (EZTrace): the one that can be a communicator's counts.
        let mut groups: BTreeMap<u32, &GroupDefinition> = BTreeMap::new();
        for group in &self.groups {
            let fits = |group: &GroupDefinition| matches!(group.kind, COMM_GROUP | COMM_SELF);
            groups
                .entry(group.id)
                .and_modify(|known| {
                    if !fits(known) && fits(group) {
                        *known = group;
                    }
                })
                .or_insert(group);
        }
        let members = |id: u32| -> Result<CommMembers> {
            let Some(group) = groups.get(&id) else { return Ok(CommMembers::Undefined) };
            if group.paradigm != MPI {
                return Ok(CommMembers::NotMpi);
            }
            match group.kind {
                COMM_SELF => Ok(CommMembers::SelfOnly),
                COMM_GROUP => {
                    let mut ranks = Vec::with_capacity(group.members.len());
                    for &member in &group.members {
                        if member >= processes as u64 {
                            return Err(Error::damaged(format!(
                                "group {id} refers to MPI process {member}, but there are only {processes}"
                            )));
                        }
                        ranks.push(MpiRank(member as u32));
                    }
                    let distinct: HashSet<MpiRank> = ranks.iter().copied().collect();
                    if distinct.len() < ranks.len() {
                        return Err(Error::damaged(format!("group {id} lists an MPI process twice")));
                    }
                    Ok(CommMembers::Intra(ranks.into()))
                }
                // All processes, in the order of the group itself.
                COMM_LOCATIONS => Ok(CommMembers::Intra((0..processes as u32).map(MpiRank).collect())),
                _ => Ok(CommMembers::NotMpi),
            }
        };
        // Each group is looked at once; the communicators share its list.
        let mut known: HashMap<u32, CommMembers> = HashMap::new();
        let mut members = |id: u32| -> Result<CommMembers> {
            if let Some(members) = known.get(&id) {
                return Ok(members.clone());
            }
            let found = members(id)?;
            known.insert(id, found.clone());
            Ok(found)
        };
        let mut communicators = Vec::new();
        for &(id, name, group) in &self.comms {
            let global_ranks = groups.get(&group).is_some_and(|group| group.global_members);
            communicators.push(Communicator {
                id: CommId(id),
                name: self.text(name),
                members: members(group)?,
                global_ranks,
            });
        }
        for &(id, name, a, b) in &self.inter_comms {
            let members = match (members(a)?, members(b)?) {
                (CommMembers::Intra(a), CommMembers::Intra(b)) => CommMembers::Inter(a, b),
                (CommMembers::NotMpi, _) | (_, CommMembers::NotMpi) => CommMembers::NotMpi,
                _ => CommMembers::Undefined,
            };
            communicators.push(Communicator { id: CommId(id), name: self.text(name), members, global_ranks: false });
        }
        let mut named = Vec::new();
        if !self.windows.is_empty() {
            for (&id, _) in groups.iter().filter(|(_, group)| group.kind == COMM_GROUP && group.paradigm == MPI) {
                if let Ok(CommMembers::Intra(list)) = members(id) {
                    named.push((GroupId(id), list));
                }
            }
        }
        Ok((communicators, named))
    }
}

#[cfg(test)]
#[path = "definitions_tests.rs"]
mod tests;
