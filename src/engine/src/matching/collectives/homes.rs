//! What the home of a communicator and the hosts of its members tell each other.

use crate::comm::{AnalysisRank, Transport, exchange_values};
use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::placement::Placement;
use clc_trace::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Sends values to ranks and returns what came back, in the order of the ranks that sent it.
pub(super) fn exchange<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    items: impl Iterator<Item = (AnalysisRank, T)>,
) -> Result<impl Iterator<Item = T>> {
    let mut outgoing: BTreeMap<AnalysisRank, Vec<T>> = BTreeMap::new();
    for (host, value) in items {
        outgoing.entry(host).or_default().push(value);
    }
    Ok(exchange_values(transport, outgoing)?.into_iter().flat_map(|(_, values)| values))
}

/// From the home of each communicator to all ranks that host members of it: a value each.
pub(super) fn tell_hosts<T: Clone + Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    placement: &Placement,
    table: &CommTable<'_>,
    values: &BTreeMap<CommIndex, T>,
) -> Result<BTreeMap<CommIndex, T>> {
    let of_comm = |(&comm, value): (&CommIndex, &T)| -> Vec<(AnalysisRank, (CommIndex, T))> {
        hosts_of(placement, table, comm).into_iter().map(|host| (host, (comm, value.clone()))).collect()
    };
    Ok(exchange(transport, values.iter().flat_map(of_comm))?.collect())
}

/// The analysis ranks that host members of a communicator.
fn hosts_of(placement: &Placement, table: &CommTable<'_>, comm: CommIndex) -> Vec<AnalysisRank> {
    let processes = table.participants(comm).map_or(&[][..], |processes| processes);
    let mut hosts: Vec<AnalysisRank> = processes.iter().map(|&process| placement.host_of_process(process)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// The home of a communicator: the host of its first member.
pub(super) fn home_of(placement: &Placement, table: &CommTable<'_>, comm: CommIndex) -> AnalysisRank {
    table.participants(comm).map_or(AnalysisRank::FIRST, |processes| placement.host_of_process(processes[0]))
}
