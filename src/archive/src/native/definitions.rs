//! The definition file `definitions.clcd`.

use super::event_file::check_version;
use super::numbers::ByteReader;
use super::{FIRST_VERSION, VERSION, WITH_STREAMS, WITH_THREADS, WITH_WINDOWS};
use clc_trace::{CommMembers, Communicator, Definitions, Error, LocationId, MpiRank, Result, codec};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The first bytes of a definition file.
const MAGIC: [u8; 8] = *b"CLCDEFIN";

/// The file is made in memory, and each communicator has a list of members of its own in it.
const MOST_MEMBERS: u64 = 1 << 28;

/// What is known of a trace as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// The tool that recorded or made it.
    pub creator: String,
    /// Free text.
    pub description: String,
}

/// A definition file as it is on disk.
///
/// # Errors
/// Definitions that the reader would refuse.
pub(super) fn definition_bytes(header: &TraceHeader, definitions: &Definitions) -> Result<Vec<u8>> {
    let members: u64 = definitions.communicators.iter().flat_map(lists).map(|list| list.len() as u64).sum();
    let members = definitions.groups.iter().fold(members, |sum, (_, list)| sum + list.len() as u64);
    if members > MOST_MEMBERS {
        return Err(Error::new(format!(
            "the communicators have {members} members in total; a native trace, which stores a list for each, can \
            hold {MOST_MEMBERS} at most"
        ))
        .hint("keep the trace in the OTF2 format"));
    }
    check(definitions)?;
    let payload = codec::encode(&(header, definitions))?;
    let mut bytes = Vec::with_capacity(payload.len() + 24);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&payload);
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Reads a definition file.
///
/// # Errors
/// It is no such file, truncated, damaged, of another version; references to things that are not defined.
pub(super) fn read(bytes: &[u8]) -> Result<(TraceHeader, Definitions)> {
    let damaged = |what: &str| Error::damaged(format!("the definition file is damaged: {what}"));
    if !bytes.starts_with(&MAGIC) {
        return Err(Error::damaged("this is not the definition file of a native trace"));
    }
    let mut rest = ByteReader(bytes.get(MAGIC.len()..).unwrap_or_default());
    let version = rest.u32().ok_or_else(|| damaged("it is truncated"))?;
    check_version(version)?;
    let length = rest.u64().and_then(|length| usize::try_from(length).ok());
    let parts = length.and_then(|length| Some((rest.take(length)?, rest.u32()?)));
    let Some((payload, checksum)) = parts.filter(|_| rest.0.is_empty()) else {
        return Err(damaged("its size differs from the one in its header"));
    };
    if crc32fast::hash(bytes.get(..bytes.len() - 4).unwrap_or_default()) != checksum {
        return Err(damaged("it does not match its checksum"));
    }
    // What older versions lack are lists at the end: windows and groups, then barriers of threads, then parameters and attributes of calls, then attributes
    // that name events of accelerators. They are empty.
    let lists = match version {
        FIRST_VERSION => 6,
        WITH_WINDOWS => 4,
        WITH_THREADS => 3,
        WITH_STREAMS => 1,
        _ => 0,
    };
    let layout = |_| damaged(&format!("its payload does not have the layout of version {version}"));
    let (header, definitions): (TraceHeader, Definitions) =
        codec::decode(&[payload, &[0; 6][..lists]].concat()).map_err(layout)?;
    check(&definitions)?;
    Ok((header, definitions))
}

/// The lists of members of a communicator.
fn lists(communicator: &Communicator) -> [&[MpiRank]; 2] {
    match &communicator.members {
        CommMembers::Intra(members) => [members, &[]],
        CommMembers::Inter(a, b) => [a, b],
        CommMembers::SelfOnly | CommMembers::NotMpi | CommMembers::Undefined => [&[], &[]],
    }
}

/// What everything above relies on, as for definitions from an OTF2 archive.
fn check(definitions: &Definitions) -> Result<()> {
    if definitions.clock.resolution == 0 {
        return Err(Error::damaged("the timer resolution is 0 ticks per second"));
    }
    let mut groups = HashSet::new();
    if let Some(group) = definitions.location_groups.iter().find(|group| !groups.insert(group.id)) {
        return Err(Error::damaged(format!("location group {} is defined twice", group.id)));
    }
    let mut locations: HashSet<LocationId> = HashSet::new();
    for location in &definitions.locations {
        if !groups.contains(&location.group) {
            return Err(Error::damaged(format!(
                "location group {} of location {} is not defined",
                location.group, location.id
            )));
        }
        if !locations.insert(location.id) {
            return Err(Error::damaged(format!("location {} is defined twice", location.id)));
        }
    }
    let mut processes = HashSet::new();
    for id in &definitions.processes {
        if !locations.contains(id) {
            return Err(Error::damaged(format!("location {id}, an MPI process, is not defined")));
        }
        if !processes.insert(id) {
            return Err(Error::damaged(format!("location {id} is listed for two MPI ranks")));
        }
    }
    let count = definitions.processes.len();
    for (id, list) in &definitions.groups {
        if let Some(rank) = list.iter().find(|&&rank| rank.place() >= count) {
            return Err(Error::damaged(format!("group {id} refers to MPI process {rank}, but there are only {count}")));
        }
    }
    let mut seen = HashSet::new();
    for communicator in &definitions.communicators {
        // Those that are shared are looked at once.
        for list in lists(communicator).into_iter().filter(|list| seen.insert(list.as_ptr())) {
            let mut members = HashSet::new();
            for &rank in list {
                if rank.place() >= count {
                    return Err(Error::damaged(format!(
                        "communicator {} refers to MPI process {rank}, but there are only {count}",
                        communicator.id
                    )));
                }
                if !members.insert(rank) {
                    return Err(Error::damaged(format!("communicator {} lists an MPI process twice", communicator.id)));
                }
            }
        }
    }
    Ok(())
}
