//! Calls that communicate and left no record of it: what to say when records of messages are missing, or when there is nothing to check; and those of a kind of which
//! no call has left a record, if a sample has any.

use crate::pipeline::load::LocalTrace;
use crate::pipeline::local_trace::LoadedLocation;
use crate::pipeline::open::TraceHandle;
use clc_engine::comm::{ReduceOp, Transport, agree};
use clc_engine::matching::hash::HashMap;
use clc_trace::{Definitions, Event, RegionId, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One of so many events is looked at where no record seems to be missing: that takes less than a hundredth of the scan.
const SAMPLED: u64 = 512;
/// But so many of each location in any case. Chosen by hand: of short locations that is all or most; with fewer, a kind of call that is rare there is
/// missed.
const FEW: u64 = 256;

/// Calls of one name without a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SilentCalls {
    pub(crate) count: u64,
    /// No call of this name has a record, on any rank.
    pub(crate) never: bool,
}

/// Instances of regions of MPI for sending or receiving messages, for collective operations that block and for collective access to files in which no record of a message or of a collective
/// operation is, by name. Those to or from `MPI_PROC_NULL` count, too. If no record seems to be missing anywhere and something was compared, only those of names without any instance that
/// has a record, and only if a sample has some of them. Collective over the analysis ranks.
///
/// # Errors
/// The event files cannot be read again; failures of the transport.
pub(crate) fn calls_without_records(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
) -> Result<BTreeMap<String, SilentCalls>> {
    let counts = &loaded.program.messages.counts;
    let missing = counts.doubtful > 0 || !counts.unmatched.is_empty();
    let instances = &loaded.program.collectives.counts.by_op;
    let compared = counts.matched > 0 || instances.values().any(|of| of.matched > of.unconstrained);
    let mut found = [missing, compared].map(i64::from);
    transport.all_reduce(ReduceOp::Max, &mut found)?;
    let [missing, compared] = found.map(|found| found != 0);
    let mut names = silent_regions(&opened.definitions);
    if names.is_empty() || (!missing && opened.timelines.processes < 2) {
        return Ok(BTreeMap::new());
    }
    let sampled = !missing && compared;
    if sampled {
        let sample = look(opened, loaded, &names, |location| Some((location.summary.events / SAMPLED).max(FEW)));
        let sample = agree(transport, sample)?;
        let suspicious = never_recorded(transport, &sample)?;
        names.retain(|_, name| suspicious.contains(name));
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
    }
    let all = look(opened, loaded, &names, |_| None);
    let all = agree(transport, all)?;
    let never = never_recorded(transport, &all)?;
    let calls = all.into_iter().filter(|(_, counts)| counts.silent > 0).map(|(name, counts)| {
        let calls = SilentCalls { count: counts.silent, never: never.contains(name) };
        (name.to_owned(), calls)
    });
    Ok(calls.filter(|(_, calls)| calls.never || !sampled).collect())
}

/// Instances of the regions of one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct InstanceCounts {
    /// Without a record.
    silent: u64,
    recorded: u64,
}

/// Counts the instances of the regions in `names` at the hosted locations, by name; all names are in the result. At most so many events of a location as `most` says.
fn look<'a>(
    opened: &TraceHandle,
    loaded: &LocalTrace,
    names: &'a HashMap<RegionId, String>,
    most: impl Fn(&LoadedLocation) -> Option<u64>,
) -> Result<BTreeMap<&'a str, InstanceCounts>> {
    let mut found: BTreeMap<&str, InstanceCounts> =
        names.values().map(|name| (name.as_str(), InstanceCounts::default())).collect();
    for location in loaded.locations.iter().flatten() {
        let id = opened.definitions.locations[location.index].id;
        let local = opened.archive.local_definitions(id)?;
        let mut inside: Vec<(RegionId, bool)> = Vec::new();
        let mut visit = |event: Event| match event {
            Event::Enter(region) if names.contains_key(&region) => inside.push((region, false)),
            Event::Leave(region) if names.contains_key(&region) => {
                if let Some((region, recorded)) = inside.pop() {
                    let counts = found.entry(names[&region].as_str()).or_default();
                    *(if recorded { &mut counts.recorded } else { &mut counts.silent }) += 1;
                }
            }
            Event::MpiSend(_)
            | Event::MpiIsend(..)
            | Event::MpiRecv(_)
            | Event::MpiIrecv(..)
            | Event::MpiIrecvRequest(_)
            | Event::MpiCollectiveEnd(_) => inside.iter_mut().for_each(|(_, recorded)| *recorded = true),
            _ => {}
        };
        match most(location) {
            Some(most) => opened.archive.sample(id, &local, &location.summary.chunks, most, visit)?,
            None => {
                let scan = |_, _, event| {
                    visit(event);
                    Ok(())
                };
                opened.archive.scan_with(id, &local, scan)?;
            }
        }
    }
    Ok(found)
}

/// The names of which there are instances, but none with a record at any rank; the list has the same names on all ranks. Collective over the analysis ranks.
fn never_recorded(transport: &mut dyn Transport, counts: &BTreeMap<&str, InstanceCounts>) -> Result<BTreeSet<String>> {
    let occurs = |counts: &InstanceCounts| [counts.silent, counts.recorded].map(|count| i64::from(count > 0));
    let mut all: Vec<i64> = counts.values().flat_map(occurs).collect();
    transport.all_reduce(ReduceOp::Max, &mut all)?;
    let never = counts.keys().zip(all.chunks(2)).filter(|(_, occurs)| *occurs == [1, 0]);
    Ok(never.map(|(name, _)| (*name).to_owned()).collect())
}

/// Collective operations that block, without those of neighbours.
const BLOCKING: [&str; 17] = [
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "gatherv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
    "scatterv",
];

/// Regions of MPI that communicate when they are called, and of which not every recorder writes a record: for messages (partitioned ones are sent by `MPI_Pready`), for collective
/// operations, and for files that processes open, read or write together.
fn silent_regions(definitions: &Definitions) -> HashMap<RegionId, String> {
    let communicates = |name: &str| {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix("pmpi_").or(name.strip_prefix("mpi_")).unwrap_or_default();
        let name = name.strip_suffix('_').unwrap_or(name);
        let words = ["send", "recv", "pready", "neighbor_"];
        let of_files =
            name.starts_with("file_") && (name.ends_with("_all") || matches!(name, "file_open" | "file_close"));
        let blocking = BLOCKING.contains(&name);
        blocking || (words.iter().any(|word| name.contains(word)) || of_files) && !name.contains("init")
    };
    let regions = definitions.regions.iter().filter(|region| communicates(&region.name));
    regions.map(|region| (region.id, region.name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::{ClockProperties, Region};

    #[test]
    fn calls_that_communicate_are_known_by_their_names() {
        let names = [
            "main",
            "MPI_Mrecv",
            "PMPI_Isendrecv",
            "MPI_Send_init",
            "MPI_Bcast",
            "mpi_send_",
            "MPI_Ineighbor_alltoallv",
            "MPI_Neighbor_allgather_init",
            "MPI_Dist_graph_neighbors",
            "MPI_Pready_range",
            "MPI_File_write_at_all",
            "mpi_file_open_",
            "MPI_File_write",
            // Their records are elsewhere.
            "MPI_Ibcast",
            "MPI_Bcast_init",
        ];
        let regions = (0..).zip(names).map(|(id, name)| Region { id: RegionId(id), name: name.into() }).collect();
        let clock = ClockProperties { resolution: 1, global_offset: 0, trace_length: 0, realtime: None };
        let found = silent_regions(&Definitions { regions, ..Definitions::empty(clock) });
        let mut found: Vec<u32> = found.keys().map(|region| region.0).collect();
        found.sort_unstable();
        assert_eq!(found, [1, 2, 4, 5, 6, 9, 10, 11]);
    }
}
