//! Calls that communicate and left no record of it: what to say when records of messages are missing, or when there is nothing to check.

use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use clc_engine::comm::{ReduceOp, Transport, agree};
use clc_trace::{Definitions, Event, RegionId, Result};
use std::collections::{BTreeMap, HashMap};

/// Instances of regions of MPI for sending or receiving messages, for neighbourhood collectives and for collective access to files in which no record of a message or of a collective
/// operation is, by name; nothing, at no cost, if no record seems to be missing anywhere and something was compared. Those to or from `MPI_PROC_NULL` count, too. Collective over the
/// analysis ranks.
///
/// # Errors
/// The event files cannot be read again; failures of the transport.
pub(crate) fn calls_without_records(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
) -> Result<BTreeMap<String, u64>> {
    let counts = &loaded.program.messages.counts;
    let missing = counts.doubtful > 0 || !counts.unmatched.is_empty();
    let instances = &loaded.program.collectives.counts.by_op;
    let compared = counts.matched > 0 || instances.values().any(|of| of.matched > of.unconstrained);
    let mut found = [missing, compared].map(i64::from);
    transport.all_reduce(ReduceOp::Max, &mut found)?;
    let [missing, compared] = found.map(|found| found != 0);
    if !missing && (compared || opened.timelines.processes < 2) {
        return Ok(BTreeMap::new());
    }
    let names = silent_regions(&opened.definitions);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let mut look = || -> Result<()> {
        for location in loaded.locations.iter().flatten() {
            let id = opened.definitions.locations[location.index].id;
            let local = opened.archive.local_definitions(id)?;
            let mut inside: Vec<(RegionId, bool)> = Vec::new();
            opened.archive.scan_with(id, &local, |_, _, event| {
                match event {
                    Event::Enter(region) if names.contains_key(&region) => inside.push((region, false)),
                    Event::Leave(region) if names.contains_key(&region) => {
                        if let Some((region, false)) = inside.pop() {
                            *found.entry(names[&region].clone()).or_default() += 1;
                        }
                    }
                    Event::MpiSend(_)
                    | Event::MpiIsend(..)
                    | Event::MpiRecv(_)
                    | Event::MpiIrecv(..)
                    | Event::MpiIrecvRequest(_)
                    | Event::MpiCollectiveEnd(_) => inside.iter_mut().for_each(|(_, recorded)| *recorded = true),
                    _ => {}
                }
                Ok(())
            })?;
        }
        Ok(())
    };
    let looked = look();
    agree(transport, looked)?;
    Ok(found)
}

/// Regions of MPI that communicate when they are called, and of which not every recorder writes a record: for messages (partitioned ones are sent by `MPI_Pready`), for collective
/// operations of neighbours, and for files that processes open, read or write together.
fn silent_regions(definitions: &Definitions) -> HashMap<RegionId, String> {
    let communicates = |name: &str| {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix("pmpi_").or(name.strip_prefix("mpi_")).unwrap_or_default();
        let name = name.strip_suffix('_').unwrap_or(name);
        let words = ["send", "recv", "pready", "neighbor_"];
        let of_files =
            name.starts_with("file_") && (name.ends_with("_all") || matches!(name, "file_open" | "file_close"));
        (words.iter().any(|word| name.contains(word)) || of_files) && !name.contains("init")
    };
    let regions = definitions.regions.iter().filter(|region| communicates(&region.name));
    regions.map(|region| (region.id, region.name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::{ClockProperties, Region};

    #[test]
    fn calls_that_move_messages_are_known_by_their_names() {
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
        ];
        let regions = (0..).zip(names).map(|(id, name)| Region { id: RegionId(id), name: name.into() }).collect();
        let clock = ClockProperties { resolution: 1, global_offset: 0, trace_length: 0, realtime: None };
        let found = silent_regions(&Definitions { regions, ..Definitions::empty(clock) });
        let mut found: Vec<u32> = found.keys().map(|region| region.0).collect();
        found.sort_unstable();
        assert_eq!(found, [1, 2, 5, 6, 9, 10, 11]);
    }
}
