//! Resolution of communicators and ranks, and the repair of communicators that a tracer defined several times.

use crate::comm::{Transport, all_gather_values};
use crate::matching::comm_index::CommIndex;
use crate::matching::extracted::Extract;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::message_ends::{MessageKey, UNDEFINED_RANK};
use clc_trace::{
    CommId, CommMembers, CommRank, Definitions, Error, GroupId, MpiRank, Result, Root, TimelineNumber, WindowId,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Looks up communicators and the processes behind their ranks. Windows have indexes, too, which follow those of the communicators: each is a
/// communicator of its own, with the members of the one that it was made on.
#[derive(Debug)]
pub struct CommTable<'a> {
    definitions: &'a Definitions,
    by_id: HashMap<CommId, CommIndex>,
    window_by_id: HashMap<WindowId, CommIndex>,
    /// Both groups one after the other, by index of the inter-communicator; not of those whose groups overlap or are empty.
    joint: HashMap<CommIndex, Arc<[MpiRank]>>,
}

impl<'a> CommTable<'a> {
    /// Indexes the communicators of `definitions`. The first definition of an id wins.
    pub fn new(definitions: &'a Definitions) -> Self {
        let mut by_id = HashMap::new();
        for (index, communicator) in definitions.communicators.iter().enumerate() {
            by_id.entry(communicator.id).or_insert(CommIndex(index as u32));
        }
        let mut window_by_id = HashMap::new();
        for (index, window) in (definitions.communicators.len() as u32..).zip(&definitions.windows) {
            window_by_id.entry(window.id).or_insert(CommIndex(index));
        }
        let mut joint = HashMap::new();
        for (index, communicator) in (0..).zip(&definitions.communicators) {
            if let CommMembers::Inter(a, b) = &communicator.members
                && !(a.is_empty() || b.is_empty())
            {
                let both: BTreeSet<MpiRank> = a.iter().chain(b.iter()).copied().collect();
                if both.len() == a.len() + b.len() {
                    joint.insert(CommIndex(index), a.iter().chain(b.iter()).copied().collect());
                }
            }
        }
        CommTable { definitions, by_id, window_by_id, joint }
    }

    /// Index into [`Definitions::communicators`].
    ///
    /// # Errors
    /// It is not defined.
    pub fn index(&self, id: CommId) -> Result<CommIndex> {
        self.by_id.get(&id).copied().ok_or_else(|| {
            Error::new(format!("communicator {id} is not defined"))
                .hint("the definitions and events of the archive are inconsistent")
        })
    }

    /// The first index that neither a communicator nor a window has.
    pub fn unused(&self) -> CommIndex {
        CommIndex((self.definitions.communicators.len() + self.definitions.windows.len()) as u32)
    }

    /// The processes of a group that events name.
    pub(crate) fn group(&self, id: GroupId) -> Option<&'a [MpiRank]> {
        let groups = &self.definitions.groups;
        let place = groups.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&groups[place].1)
    }

    /// Whether the trace has windows.
    pub(crate) fn has_windows(&self) -> bool {
        !self.definitions.windows.is_empty()
    }

    /// Whether the trace has inter-communicators.
    pub(crate) fn has_two_groups(&self) -> bool {
        !self.joint.is_empty()
    }

    /// Whether `index` is that of a window.
    pub(crate) fn is_window(&self, index: CommIndex) -> bool {
        index.place() >= self.definitions.communicators.len()
    }

    /// Index of a window; `None` if it is not defined.
    pub fn window(&self, id: WindowId) -> Option<CommIndex> {
        self.window_by_id.get(&id).copied()
    }

    /// Index of the communicator that `index` is, or that the window `index` was made on.
    fn communicator(&self, index: CommIndex) -> Option<usize> {
        let communicators = self.definitions.communicators.len();
        match self.definitions.windows.get(index.place().wrapping_sub(communicators)) {
            Some(window) => self.by_id.get(&window.comm).map(|index| index.place()),
            None => Some(index.place()).filter(|&index| index < communicators),
        }
    }

    /// Members of communicator `index`.
    pub(crate) fn members(&self, index: CommIndex) -> &'a CommMembers {
        match self.communicator(index) {
            Some(index) => &self.definitions.communicators[index].members,
            None => &CommMembers::Undefined,
        }
    }

    /// All processes that take part in collective operations on communicator `index`: of an inter-communicator both groups, one after the other.
    pub(crate) fn participants(&self, index: CommIndex) -> Option<&Arc<[MpiRank]>> {
        match self.members(index) {
            CommMembers::Intra(members) => Some(members),
            CommMembers::Inter(..) => self.joint.get(&index),
            CommMembers::SelfOnly | CommMembers::NotMpi | CommMembers::Undefined => None,
        }
    }

    /// Number of members of the first group of an inter-communicator; 0 for others.
    pub(crate) fn first_group(&self, index: CommIndex) -> u32 {
        match self.members(index) {
            CommMembers::Inter(a, _) => a.len() as u32,
            _ => 0,
        }
    }

    /// Communicator or window `index`, for messages.
    pub fn name(&self, index: CommIndex) -> String {
        name(self.definitions, index)
    }

    /// The process behind `rank` as `process` sees it; `None` for a rank that is undefined or not in the communicator.
    ///
    /// # Errors
    /// It is no communicator of MPI processes, or its group is not defined.
    pub(crate) fn peer(&self, index: CommIndex, rank: u32, process: MpiRank) -> Result<Option<MpiRank>> {
        if rank == UNDEFINED_RANK {
            return Ok(None);
        }
        let among = match self.members(index) {
            CommMembers::Intra(members) if self.has_global_ranks(index) => {
                return Ok(Some(MpiRank(rank)).filter(|&rank| place(members, rank).is_some()));
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
                    "communicator {} is used by MPI, but its group does not consist of MPI processes",
                    self.definitions.communicators[index.place()].id
                )));
            }
            CommMembers::Undefined => {
                return Err(Error::new(format!("the group of {} is not defined", self.name(index))));
            }
        };
        Ok(among.get(rank as usize).copied())
    }

    /// Whether ranks in the events of communicator `index` are global ones.
    fn has_global_ranks(&self, index: CommIndex) -> bool {
        self.communicator(index).is_some_and(|index| self.definitions.communicators[index].global_ranks)
    }

    /// The root of a collective on communicator `index`, as a rank of the communicator.
    pub(crate) fn root(&self, index: CommIndex, root: Root) -> Root {
        match root {
            Root::Rank(process) if self.has_global_ranks(index) => {
                // A process that is no member becomes a rank that no member has.
                self.rank_of(index, MpiRank(process)).map_or(Root::Rank(UNDEFINED_RANK), |rank| Root::Rank(rank.0))
            }
            root => root,
        }
    }

    /// Rank of `process` among the participants of communicator `index`.
    pub(crate) fn rank_of(&self, index: CommIndex, process: MpiRank) -> Option<CommRank> {
        place(self.participants(index)?, process).map(|rank| CommRank(rank as u32))
    }

    /// Communicators that have the same members in the same order as another one, by members.
    pub(crate) fn twins(&self) -> Vec<Vec<CommIndex>> {
        // Lists that are shared need not be compared.
        let mut by_list: HashMap<*const MpiRank, (&[MpiRank], Vec<CommIndex>)> = HashMap::new();
        for (index, communicator) in self.definitions.communicators.iter().enumerate() {
            if let CommMembers::Intra(members) = &communicator.members
                && members.len() > 1
            {
                by_list.entry(members.as_ptr()).or_insert((members, Vec::new())).1.push(CommIndex(index as u32));
            }
        }
        let mut by_members: BTreeMap<&[MpiRank], Vec<CommIndex>> = BTreeMap::new();
        for (members, twins) in by_list.into_values() {
            by_members.entry(members).or_default().extend(twins);
        }
        by_members.values_mut().for_each(|twins| twins.sort_unstable());
        by_members.into_values().filter(|twins| twins.len() > 1).collect()
    }
}

/// What the index of a [`CommTable`] stands for.
pub fn name(definitions: &Definitions, index: CommIndex) -> String {
    match definitions.communicators.get(index.place()) {
        Some(communicator) => format!("communicator {}", communicator.id),
        None => {
            let window = definitions.windows.get(index.place() - definitions.communicators.len());
            window.map_or_else(|| "an unknown window".to_owned(), |window| format!("window {}", window.id))
        }
    }
}

/// The rank of a process among `members`. The first look finds it in the world and its duplicates, whose members are many.
fn place(members: &[MpiRank], process: MpiRank) -> Option<usize> {
    match members.get(process.place()) {
        Some(&member) if member == process => Some(process.place()),
        _ => members.iter().position(|&member| member == process),
    }
}

/// Which communicator stands for which, per process: (process, communicator) -> communicator.
pub(crate) type Merged = HashMap<(MpiRank, CommIndex), CommIndex>;

/// Joins communicators that a tracer defined once per process (EZTrace gives one communicator different ids on different
/// processes; members and order of creation agree).
///
/// `twins`, in ascending order, have the same `members`; `used` says which of them each process uses in its events. A communicator that all
/// members use is whole and left alone. The rest is joined only if the picture is unambiguous: every member uses the same number of
/// them, and no two fragments that would become one are used by the same process; then the k-th of one process is the
/// k-th of every other.
pub(crate) fn join_fragments(
    twins: &[CommIndex],
    members: &[MpiRank],
    used: &BTreeSet<(MpiRank, CommIndex)>,
) -> Merged {
    let uses = |process: MpiRank, comm: CommIndex| used.contains(&(process, comm));
    let fragments: Vec<CommIndex> =
        twins.iter().copied().filter(|&comm| !members.iter().all(|&process| uses(process, comm))).collect();
    // In the order of the communicators, as `twins` and so the fragments are.
    let of_process = |p: MpiRank| used.range((p, CommIndex(0))..=(p, CommIndex(u32::MAX))).map(|&(_, comm)| comm);
    let own: Vec<Vec<CommIndex>> =
        members.iter().map(|&p| of_process(p).filter(|comm| fragments.binary_search(comm).is_ok()).collect()).collect();
    let mut merged = Merged::new();
    let count = own.first().map_or(0, Vec::len);
    if count == 0 || own.iter().any(|list| list.len() != count) {
        return merged;
    }
    let mut class_of: HashMap<CommIndex, usize> = HashMap::new();
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
    first: TimelineNumber,
    extracts: &mut [Extract],
) -> Result<usize> {
    let twins = table.twins();
    if twins.is_empty() {
        return Ok(0);
    }
    let interesting: BTreeSet<CommIndex> = twins.iter().flatten().copied().collect();
    let mut own = Vec::new();
    for (local, extract) in (0..).map(LocalTimeline).zip(&*extracts) {
        let receives = extract.receives.keys().chain(extract.unplaced.keys());
        let messages = extract.sends.keys().chain(receives).map(|key| key.comm);
        let used: BTreeSet<CommIndex> = messages.chain(extract.collectives.keys().copied()).collect();
        let process = local.numbered_from(first).process();
        own.extend(used.intersection(&interesting).map(|&comm| (process, comm)));
    }
    let used: BTreeSet<(MpiRank, CommIndex)> = all_gather_values(transport, &own)?.into_iter().flatten().collect();
    let mut merged = Merged::new();
    for group in &twins {
        if let CommMembers::Intra(members) = table.members(group[0]) {
            merged.extend(join_fragments(group, members, &used));
        }
    }
    for (local, extract) in (0..).map(LocalTimeline).zip(extracts) {
        let process = local.numbered_from(first).process();
        let rename = |comm: CommIndex| merged.get(&(process, comm)).copied().unwrap_or(comm);
        let renamed = |key: MessageKey| MessageKey { comm: rename(key.comm), ..key };
        for lists in [&mut extract.sends, &mut extract.receives, &mut extract.unplaced] {
            *lists = lists.drain().map(|(key, list)| (renamed(key), list)).collect();
        }
        for gaps in [&mut extract.send_gaps, &mut extract.receive_gaps] {
            *gaps = gaps.drain().map(|(key, gaps)| (renamed(key), gaps)).collect();
        }
        extract.collectives = extract.collectives.drain().map(|(comm, list)| (rename(comm), list)).collect();
        extract.loose =
            std::mem::take(&mut extract.loose).into_iter().map(|(comm, list)| (rename(comm), list)).collect();
        let ends = std::mem::take(&mut extract.half_recorded.ends);
        extract.half_recorded.ends = ends.into_iter().map(|(comm, ends)| (rename(comm), ends)).collect();
    }
    Ok(merged.keys().map(|(_, comm)| comm).collect::<BTreeSet<_>>().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used<const N: usize>(by: [(u32, u32); N]) -> BTreeSet<(MpiRank, CommIndex)> {
        by.map(|(process, comm)| (MpiRank(process), CommIndex(comm))).into()
    }

    #[test]
    fn a_communicator_with_an_id_per_process_becomes_one() {
        let used = used([(0, 5), (1, 6), (0, 7), (1, 8)]);
        let merged = join_fragments(&[5, 6, 7, 8].map(CommIndex), &[0, 1].map(MpiRank), &used);
        assert_eq!(
            merged,
            Merged::from([((MpiRank(1), CommIndex(6)), CommIndex(5)), ((MpiRank(1), CommIndex(8)), CommIndex(7))])
        );
    }

    #[test]
    fn whole_communicators_are_left_alone() {
        let used = used([(0, 5), (1, 5), (0, 6), (1, 6)]);
        assert!(join_fragments(&[5, 6].map(CommIndex), &[0, 1].map(MpiRank), &used).is_empty());
    }

    #[test]
    fn nothing_is_joined_when_it_is_ambiguous() {
        let used = used([(0, 5), (1, 5), (1, 6), (2, 6)]);
        assert!(join_fragments(&[5, 6].map(CommIndex), &[0, 1, 2].map(MpiRank), &used).is_empty());
    }
}
