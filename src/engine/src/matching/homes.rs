//! What the home of a communicator and the hosts of its members tell each other.

use crate::comm::{Transport, sparse_exchange};
use crate::matching::communicators::CommTable;
use crate::matching::placement::Placement;
use clc_trace::Result;
use std::collections::BTreeMap;

/// Sends words to ranks and returns what came back.
pub(super) fn exchange<W: AsRef<[u64]>>(
    transport: &mut dyn Transport,
    items: impl Iterator<Item = (usize, W)>,
) -> Result<Vec<(usize, Vec<u64>)>> {
    let mut outgoing: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (host, words) in items {
        outgoing.entry(host).or_default().extend_from_slice(words.as_ref());
    }
    sparse_exchange(transport, outgoing.into_iter().collect())
}

/// From the home of each communicator to all ranks that host members of it.
pub(super) fn tell_hosts(
    transport: &mut dyn Transport,
    placement: &Placement,
    table: &CommTable<'_>,
    values: &BTreeMap<u32, u64>,
) -> Result<BTreeMap<u32, u64>> {
    let mut outgoing: Vec<(usize, [u64; 2])> = Vec::new();
    for (&comm, &value) in values {
        outgoing.extend(hosts_of(placement, table, comm).into_iter().map(|host| (host, [u64::from(comm), value])));
    }
    let mut told = BTreeMap::new();
    for (_, words) in exchange(transport, outgoing.into_iter())? {
        told.extend(words.chunks_exact(2).map(|record| (record[0] as u32, record[1])));
    }
    Ok(told)
}

/// As [`tell_hosts`], a list each.
pub(super) fn tell_hosts_lists(
    transport: &mut dyn Transport,
    placement: &Placement,
    table: &CommTable<'_>,
    lists: &BTreeMap<u32, Vec<u64>>,
) -> Result<BTreeMap<u32, Vec<u64>>> {
    let mut outgoing: Vec<(usize, Vec<u64>)> = Vec::new();
    for (&comm, list) in lists {
        let words = [&[u64::from(comm), list.len() as u64], &list[..]].concat();
        outgoing.extend(hosts_of(placement, table, comm).into_iter().map(|host| (host, words.clone())));
    }
    let mut told = BTreeMap::new();
    for (_, words) in exchange(transport, outgoing.into_iter())? {
        let mut rest = &words[..];
        while let [comm, length, tail @ ..] = rest {
            let (list, next) = tail.split_at(*length as usize);
            told.insert(*comm as u32, list.to_vec());
            rest = next;
        }
    }
    Ok(told)
}

/// The analysis ranks that host members of a communicator.
fn hosts_of(placement: &Placement, table: &CommTable<'_>, comm: u32) -> Vec<usize> {
    let processes = table.participants(comm).map_or(&[][..], |processes| processes);
    let mut hosts: Vec<usize> = processes.iter().map(|&process| placement.host_of(process)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}
