//! Resolution of communicators and ranks, and the repair of communicators that a tracer defined several times.

use crate::comm::{Transport, all_gather_values};
use crate::matching::extract::{Extract, MessageKey};
use crate::trace::{CommId, CommMembers, Definitions, Error, Result, Root};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Looks up communicators and the processes behind their ranks.
#[derive(Debug)]
pub struct CommTable<'a> {
    definitions: &'a Definitions,
    by_id: HashMap<CommId, u32>,
}

/// The rank with which OTF2 says "undefined".
pub const UNDEFINED_RANK: u32 = u32::MAX;

impl<'a> CommTable<'a> {
    /// Indexes the communicators of `definitions`. The first definition of an id wins.
    pub fn new(definitions: &'a Definitions) -> Self {
        let mut by_id = HashMap::new();
        for (index, communicator) in definitions.communicators.iter().enumerate() {
            by_id.entry(communicator.id).or_insert(index as u32);
        }
        CommTable { definitions, by_id }
    }

    /// Index into [`Definitions::communicators`].
    pub fn index(&self, id: CommId) -> Result<u32> {
        self.by_id.get(&id).copied().ok_or_else(|| {
            Error::new(format!("communicator {id} is not defined"))
                .hint("the archive's definitions and events do not belong together")
        })
    }

    /// Members of communicator `index`.
    pub fn members(&self, index: u32) -> &'a CommMembers {
        &self.definitions.communicators[index as usize].members
    }

    /// The id of communicator `index`, for messages.
    pub fn id(&self, index: u32) -> CommId {
        self.definitions.communicators[index as usize].id
    }

    /// The process behind `rank` as `process` sees it; `None` for a rank that is undefined or not in the communicator.
    ///
    /// # Errors
    /// It is no communicator of MPI processes, or its group is not defined.
    pub fn peer(&self, index: u32, rank: u32, process: u32) -> Result<Option<u32>> {
        if rank == UNDEFINED_RANK {
            return Ok(None);
        }
        let among = match self.members(index) {
            CommMembers::Intra(members) if self.has_global_ranks(index) => {
                return Ok(place(members, rank).map(|_| rank));
            }
            CommMembers::Intra(members) => members,
            CommMembers::Inter(a, b) => {
                if a.contains(&process) {
                    b
                } else {
                    a
                }
            }
            CommMembers::SelfOnly => return Ok((rank == 0).then_some(process)),
            CommMembers::NotMpi => {
                return Err(Error::new(format!(
                    "communicator {} is used by MPI but its group is not one of MPI processes",
                    self.id(index)
                )));
            }
            CommMembers::Undefined => {
                return Err(Error::new(format!("the group of communicator {} is not defined", self.id(index))));
            }
        };
        Ok(among.get(rank as usize).copied())
    }

    /// Whether ranks in the events of communicator `index` are global ones.
    fn has_global_ranks(&self, index: u32) -> bool {
        self.definitions.communicators[index as usize].global_ranks
    }

    /// The root of a collective on communicator `index`, as a rank of the communicator.
    pub fn root(&self, index: u32, root: Root) -> Root {
        match root {
            Root::Rank(process) if self.has_global_ranks(index) => {
                // A process that is no member becomes a rank that no member has.
                self.rank_of(index, process).map_or(Root::Rank(UNDEFINED_RANK), Root::Rank)
            }
            root => root,
        }
    }

    /// Rank of `process` in the intra-communicator `index`.
    pub fn rank_of(&self, index: u32, process: u32) -> Option<u32> {
        match self.members(index) {
            CommMembers::Intra(members) => place(members, process).map(|rank| rank as u32),
            _ => None,
        }
    }

    /// Communicators that have the same members in the same order as another one, by members.
    pub fn twins(&self) -> Vec<Vec<u32>> {
        // Lists that are shared need not be compared.
        let mut by_list: HashMap<*const u32, (&[u32], Vec<u32>)> = HashMap::new();
        for (index, communicator) in self.definitions.communicators.iter().enumerate() {
            if let CommMembers::Intra(members) = &communicator.members
                && members.len() > 1
            {
                by_list.entry(members.as_ptr()).or_insert((members, Vec::new())).1.push(index as u32);
            }
        }
        let mut by_members: BTreeMap<&[u32], Vec<u32>> = BTreeMap::new();
        for (members, twins) in by_list.into_values() {
            by_members.entry(members).or_default().extend(twins);
        }
        by_members.values_mut().for_each(|twins| twins.sort_unstable());
        by_members.into_values().filter(|twins| twins.len() > 1).collect()
    }
}

/// The rank of a process among `members`. The first look finds it in the world and its duplicates, whose members are many.
fn place(members: &[u32], process: u32) -> Option<usize> {
    match members.get(process as usize) {
        Some(&member) if member == process => Some(process as usize),
        _ => members.iter().position(|&member| member == process),
    }
}

/// Which communicator stands for which, per process: (process, communicator) -> communicator.
pub type Merged = HashMap<(u32, u32), u32>;

/// Joins communicators that a tracer defined once per process (EZTrace gives one communicator different ids on different
/// processes; members and order of creation agree).
///
/// `twins`, in ascending order, have the same `members`; `used` says which of them each process uses in its events. A communicator that all
/// members use is whole and left alone. The rest is joined only if the picture is unambiguous: every member uses the same number of
/// them, and no two fragments that would become one are used by the same process; then the k-th of one process is the
/// k-th of every other.
pub fn join_fragments(twins: &[u32], members: &[u32], used: &BTreeSet<(u32, u32)>) -> Merged {
    let uses = |process: u32, comm: u32| used.contains(&(process, comm));
    let fragments: Vec<u32> =
        twins.iter().copied().filter(|&comm| !members.iter().all(|&process| uses(process, comm))).collect();
    // In the order of the communicators, as `twins` and so the fragments are.
    let of_process = |p: u32| used.range((p, 0)..=(p, u32::MAX)).map(|&(_, comm)| comm);
    let own: Vec<Vec<u32>> =
        members.iter().map(|&p| of_process(p).filter(|comm| fragments.binary_search(comm).is_ok()).collect()).collect();
    let mut merged = Merged::new();
    let count = own.first().map_or(0, Vec::len);
    if count == 0 || own.iter().any(|list| list.len() != count) {
        return merged;
    }
    let mut class_of: HashMap<u32, usize> = HashMap::new();
    for list in &own {
        for (k, &comm) in list.iter().enumerate() {
            if *class_of.entry(comm).or_insert(k) != k {
                return Merged::new();
            }
        }
    }
    for (&process, list) in members.iter().zip(&own) {
        for (k, &comm) in list.iter().enumerate() {
            if own[0][k] != comm {
                merged.insert((process, comm), own[0][k]);
            }
        }
    }
    merged
}

/// Joins the fragments among all communicators with the same members, and renames them in `extracts`, whose first has the global
/// number `first`. Collective over the analysis ranks; without such communicators nothing is exchanged. Returns how
/// many communicators were joined to another one.
///
/// # Errors
/// Failures of the transport.
pub fn join_everywhere(
    transport: &mut dyn Transport,
    table: &CommTable<'_>,
    first: u32,
    extracts: &mut [Extract],
) -> Result<usize> {
    let twins = table.twins();
    if twins.is_empty() {
        return Ok(0);
    }
    let interesting: BTreeSet<u32> = twins.iter().flatten().copied().collect();
    let mut own = Vec::new();
    for (local, extract) in extracts.iter().enumerate() {
        let receives = extract.receives.keys().chain(extract.unplaced.keys());
        let messages = extract.sends.keys().chain(receives).map(|key| key.comm);
        let used: BTreeSet<u32> = messages.chain(extract.collectives.keys().copied()).collect();
        own.extend(used.intersection(&interesting).map(|&comm| (first + local as u32, comm)));
    }
    let used: BTreeSet<(u32, u32)> = all_gather_values(transport, &own)?.into_iter().flatten().collect();
    let mut merged = Merged::new();
    for group in &twins {
        if let CommMembers::Intra(members) = table.members(group[0]) {
            merged.extend(join_fragments(group, members, &used));
        }
    }
    for (local, extract) in extracts.iter_mut().enumerate() {
        let process = first + local as u32;
        let rename = |comm: u32| merged.get(&(process, comm)).copied().unwrap_or(comm);
        let renamed = |key: MessageKey| MessageKey { comm: rename(key.comm), ..key };
        for lists in [&mut extract.sends, &mut extract.receives, &mut extract.unplaced] {
            *lists = lists.drain().map(|(key, list)| (renamed(key), list)).collect();
        }
        for gaps in [&mut extract.send_gaps, &mut extract.receive_gaps] {
            *gaps = gaps.drain().map(|(key, gaps)| (renamed(key), gaps)).collect();
        }
        extract.collectives = extract.collectives.drain().map(|(comm, list)| (rename(comm), list)).collect();
    }
    Ok(merged.keys().map(|(_, comm)| comm).collect::<BTreeSet<_>>().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_communicator_with_an_id_per_process_becomes_one() {
        let used = BTreeSet::from([(0, 5), (1, 6), (0, 7), (1, 8)]);
        let merged = join_fragments(&[5, 6, 7, 8], &[0, 1], &used);
        assert_eq!(merged, Merged::from([((1, 6), 5), ((1, 8), 7)]));
    }

    #[test]
    fn whole_communicators_are_left_alone() {
        let used = BTreeSet::from([(0, 5), (1, 5), (0, 6), (1, 6)]);
        assert!(join_fragments(&[5, 6], &[0, 1], &used).is_empty());
    }

    #[test]
    fn nothing_is_joined_when_it_is_ambiguous() {
        let used = BTreeSet::from([(0, 5), (1, 5), (1, 6), (2, 6)]);
        assert!(join_fragments(&[5, 6], &[0, 1, 2], &used).is_empty());
    }
}
