//! Calls that send or receive and left no record of it: what to say when records of messages are missing.

use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use clc_engine::comm::{ReduceOp, Transport, agree};
use clc_trace::{Definitions, Event, RegionId, Result};
use std::collections::{BTreeMap, HashMap};

/// Instances of regions of MPI for sending or receiving messages in which no record of a message is, by name; nothing if no record seems to be missing
/// anywhere, which costs nothing. Those to or from `MPI_PROC_NULL` count, too. Collective over the analysis ranks.
///
/// # Errors
/// The event files cannot be read again; failures of the transport.
pub fn calls_without_records(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
) -> Result<BTreeMap<String, u64>> {
    let counts = &loaded.program.messages.counts;
    let mut missing = [i64::from(counts.doubtful > 0 || !counts.unmatched.is_empty())];
    transport.all_reduce(ReduceOp::Max, &mut missing)?;
    if missing[0] == 0 {
        return Ok(BTreeMap::new());
    }
    let names = message_regions(&opened.definitions);
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
                    | Event::MpiIrecvRequest(_) => inside.iter_mut().for_each(|(_, recorded)| *recorded = true),
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

/// Regions of MPI that send or receive messages when they are called.
fn message_regions(definitions: &Definitions) -> HashMap<RegionId, String> {
    let sends_or_receives = |name: &str| {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix("pmpi_").or(name.strip_prefix("mpi_")).unwrap_or_default();
        (name.contains("send") || name.contains("recv")) && !name.contains("init")
    };
    let regions = definitions.regions.iter().filter(|region| sends_or_receives(&region.name));
    regions.map(|region| (region.id, region.name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::{ClockProperties, Region};

    #[test]
    fn calls_that_move_messages_are_known_by_their_names() {
        let names = ["main", "MPI_Mrecv", "PMPI_Isendrecv", "MPI_Send_init", "MPI_Bcast", "mpi_send_"];
        let regions = (0..).zip(names).map(|(id, name)| Region { id: RegionId(id), name: name.into() }).collect();
        let clock = ClockProperties { resolution: 1, global_offset: 0, trace_length: 0, realtime: None };
        let found = message_regions(&Definitions { regions, ..Definitions::empty(clock) });
        let mut found: Vec<u32> = found.keys().map(|region| region.0).collect();
        found.sort_unstable();
        assert_eq!(found, [1, 2, 5]);
    }
}
