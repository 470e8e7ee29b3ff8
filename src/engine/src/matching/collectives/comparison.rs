//! Comparing what the members of communicators did: first how often, then by checksums, and only where these differ one by one.

use crate::comm::{AnalysisRank, ReduceOp, Transport};
use crate::matching::collectives::fences::Ours;
use crate::matching::collectives::groups::{Word, has_two};
use crate::matching::collectives::half_recorded::{Doubt, certain};
use crate::matching::collectives::homes::{exchange, home_of, tell_hosts};
use crate::matching::collectives::kinds::{class_of, signature};
use crate::matching::collectives::uneven::{self, Called};
use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::extracted::{Extract, Participation};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::placement::Placement;
use clc_trace::{CommRank, Error, Result, TimelineNumber};
use controlled_logical_clock::semantics::{Role, role_between};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

/// What is known of a communicator at its home while its members are compared.
#[derive(Default)]
struct AtHome {
    counts: Vec<u64>,
    checksums: Vec<u64>,
    lists: Vec<Vec<u64>>,
    /// Of an inter-communicator: what the members together say.
    words: Vec<u64>,
}

/// Operations of all members of a communicator whose times its home compares, at most: it has 32 bytes for each.
const MOST_CALLED: u64 = 10_000_000;

/// A number by communicator.
type ByComm = BTreeMap<CommIndex, u64>;

/// Whether some member of an operation is at either end of it: by its role, and by the sizes that were recorded.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Ends {
    /// Sends, and receives.
    roles: [bool; 2],
    /// The same.
    sizes: [bool; 2],
}

impl Ends {
    fn are_both(&self) -> bool {
        [self.roles, self.sizes] == [[true; 2]; 2]
    }

    fn add(&mut self, other: Ends) {
        for (own, other) in [(&mut self.roles, other.roles), (&mut self.sizes, other.sizes)] {
            own.iter_mut().zip(other).for_each(|(own, other)| *own |= other);
        }
    }
}

/// Up to where members did the same.
#[derive(Default)]
pub(super) struct Parted {
    /// By communicator, where it is less than all have: so many instances.
    pub(super) corrected: ByComm,
    /// The first instance in which members differ.
    pub(super) first_inconsistent: ByComm,
}

/// The participations of all members while they are compared.
pub(super) struct Comparison<'a, 'b> {
    placement: &'a Placement,
    table: &'a CommTable<'b>,
    /// Who of ours is in which communicator.
    pub(super) ours: Ours,
    /// Communicators whose home is here.
    homes: BTreeMap<CommIndex, AtHome>,
    /// How many instances all of their members have.
    complete: ByComm,
}

impl<'a, 'b> Comparison<'a, 'b> {
    /// Takes the participations out of the `extracts` of the hosted timelines.
    pub(super) fn of(
        placement: &'a Placement,
        table: &'a CommTable<'b>,
        first: TimelineNumber,
        extracts: &mut [Extract],
    ) -> Result<Comparison<'a, 'b>> {
        let mut ours = Ours::new();
        for (local, extract) in (0..).map(LocalTimeline).zip(extracts) {
            let process = local.numbered_from(first).process();
            for (comm, participations) in extract.collectives.drain() {
                let rank = table
                    .rank_of(comm, process)
                    .ok_or_else(|| Error::new(format!("process {process} is not a member of {}", table.name(comm))))?;
                ours.entry(comm).or_default().push((rank, local, participations));
            }
        }
        Ok(Comparison { placement, table, ours, homes: BTreeMap::new(), complete: ByComm::new() })
    }

    /// How many instances everybody has, up to where members lack some, by what is in `doubt` at the homes, and by what times and kinds of operations tell where members have recorded different numbers of them.
    pub(super) fn count(
        &mut self,
        transport: &mut dyn Transport,
        doubt: &BTreeMap<CommIndex, BTreeMap<CommRank, Doubt>>,
        extracts: &[Extract],
        alltoallv: bool,
    ) -> Result<ByComm> {
        let (placement, table) = (self.placement, self.table);
        let announce = self.ours.iter().flat_map(|(&comm, members)| {
            let home = home_of(placement, table, comm);
            members.iter().map(move |(rank, _, list)| (home, (comm, *rank, list.len() as u64)))
        });
        for (comm, rank, count) in exchange(transport, announce)? {
            let home = self.homes.entry(comm).or_default();
            home.counts.resize(size_of(table, comm), 0);
            home.counts[rank] = count;
        }
        let even = self.even(transport, extracts, alltoallv)?;
        let complete = |(&comm, home): (&CommIndex, &AtHome)| {
            let all = home.counts.iter().copied().min().unwrap_or(0);
            let all = even.get(&comm).map_or(all, |&even| all.min(even));
            let certain = doubt.get(&comm).and_then(|doubts| certain(&home.counts, doubts));
            (comm, certain.map_or(all, |certain| certain.min(all)))
        };
        self.complete = self.homes.iter().map(complete).collect();
        tell_hosts(transport, placement, table, &self.complete)
    }

    /// At the homes: so many instances have the same number with all members, where these have recorded different numbers of them. The groups of an inter-communicator are not compared, nor are very many
    /// operations.
    fn even(&self, transport: &mut dyn Transport, extracts: &[Extract], alltoallv: bool) -> Result<ByComm> {
        let (placement, table) = (self.placement, self.table);
        let uneven = self.homes.iter().filter(|(comm, home)| {
            home.counts.windows(2).any(|pair| pair[0] != pair[1])
                && !home.counts.contains(&0)
                && home.counts.iter().sum::<u64>() <= MOST_CALLED
                && !has_two(table, **comm)
        });
        let uneven: ByComm = uneven.map(|(&comm, _)| (comm, 0)).collect();
        let asked = tell_hosts(transport, placement, table, &uneven)?;
        let announce = self.ours.iter().filter(|(comm, _)| asked.contains_key(comm)).flat_map(|(&comm, members)| {
            let (size, window) = (size_of(table, comm) as u32, table.is_window(comm));
            members.iter().map(move |(rank, local, list)| {
                let called = |own| Called::of(own, &extracts[*local], (*rank, size), alltoallv, window);
                (home_of(placement, table, comm), (comm, *rank, list.iter().map(called).collect::<Vec<Called>>()))
            })
        });
        let mut lists: BTreeMap<CommIndex, BTreeMap<CommRank, Vec<Called>>> = BTreeMap::new();
        for (comm, rank, list) in exchange(transport, announce)? {
            lists.entry(comm).or_default().insert(rank, list);
        }
        let certain = |(comm, lists): (CommIndex, BTreeMap<CommRank, Vec<Called>>)| {
            (comm, uneven::certain(&lists.into_values().collect::<Vec<_>>()) as u64)
        };
        Ok(lists.into_iter().map(certain).collect())
    }

    /// What is left over is counted once: by the member that took part most often, the first of those.
    pub(super) fn most_frequent(&self, transport: &mut dyn Transport) -> Result<ByComm> {
        let most: ByComm = self
            .homes
            .iter()
            .map(|(&comm, home)| {
                let most = home.counts.iter().copied().max().unwrap_or(0);
                (comm, home.counts.iter().position(|&count| count == most).unwrap_or(0) as u64)
            })
            .collect();
        tell_hosts(transport, self.placement, self.table, &most)
    }

    /// Whether everybody did the same in the `valid` instances: at home, the number of instances of those communicators where that is not sure.
    pub(super) fn suspicious(&mut self, transport: &mut dyn Transport, valid: &ByComm) -> Result<ByComm> {
        let (placement, table) = (self.placement, self.table);
        let announce = self.ours.iter().flat_map(|(&comm, members)| {
            let valid = valid.get(&comm).copied().unwrap_or(0) as usize;
            let home = home_of(placement, table, comm);
            members.iter().map(move |(_, _, list)| (home, (comm, checksum(&list[..valid.min(list.len())]))))
        });
        for (comm, checksum) in exchange(transport, announce)? {
            if let Some(home) = self.homes.get_mut(&comm) {
                home.checksums.push(checksum);
            }
        }
        let differ = |home: &AtHome| home.checksums.windows(2).any(|pair| pair[0] != pair[1]);
        Ok(self
            .homes
            .iter()
            .filter(|(comm, _)| self.complete[comm] > 0)
            .filter(|(comm, home)| has_two(table, **comm) || differ(home))
            .map(|(&comm, _)| (comm, self.complete[&comm]))
            .collect())
    }

    /// Brings the operations of `suspicious` communicators to their homes.
    pub(super) fn compare(&mut self, transport: &mut dyn Transport, suspicious: &ByComm) -> Result<()> {
        let (placement, table) = (self.placement, self.table);
        let asked = tell_hosts(transport, placement, table, suspicious)?;
        let announce = self.ours.iter().filter(|(comm, _)| asked.contains_key(comm)).flat_map(|(&comm, members)| {
            let valid = asked[&comm] as usize;
            let home = home_of(placement, table, comm);
            members.iter().map(move |(rank, _, list)| {
                let words: Vec<u64> = match table.first_group(comm) {
                    0 => list[..valid].iter().map(signature).collect(),
                    first => list[..valid].iter().map(|own| Word::of(own, *rank, first).0).collect(),
                };
                (home, (comm, words))
            })
        });
        for (comm, words) in exchange(transport, announce)? {
            if let Some(home) = self.homes.get_mut(&comm) {
                home.lists.push(words);
            }
        }
        Ok(())
    }

    /// Where the members of `suspicious` communicators part; of inter-communicators also what they together say.
    pub(super) fn parted(&mut self, suspicious: &ByComm) -> Parted {
        let mut parted = Parted::default();
        for (&comm, home) in self.homes.iter_mut().filter(|(comm, _)| suspicious.contains_key(comm)) {
            if let first @ 1.. = self.table.first_group(comm) {
                let said = |k: usize| {
                    let mut words = home.lists.iter().map(|list| Word(list[k]));
                    let one = words.next()?;
                    words.try_fold(one, |sum, word| sum.and(word, first))
                };
                let words: Vec<u64> = (0..self.complete[&comm] as usize).map_while(said).map(|word| word.0).collect();
                if (words.len() as u64) < self.complete[&comm] {
                    parted.corrected.insert(comm, words.len() as u64);
                    parted.first_inconsistent.insert(comm, words.len() as u64);
                }
                home.words = words;
                continue;
            }
            let agree = |k: usize| home.lists.windows(2).all(|pair| pair[0][k] == pair[1][k]);
            let length = self.complete[&comm];
            let parting = (0..length as usize).find(|&k| !agree(k)).unwrap_or(length as usize) as u64;
            parted.corrected.insert(comm, parting);
            parted.first_inconsistent.insert(comm, parting);
        }
        parted
    }

    /// Of a trace without sizes, by communicator whose home is here: the operations among the `valid` ones in which nobody has sent or nobody received anything, so that they constrain nobody.
    /// None if some operation has both: then sizes are recorded, and these are operations without data.
    pub(super) fn without_sizes(
        &self,
        transport: &mut dyn Transport,
        valid: &ByComm,
        alltoallv: bool,
    ) -> Result<BTreeMap<CommIndex, BTreeSet<u8>>> {
        let (placement, table) = (self.placement, self.table);
        let mut own: Vec<(AnalysisRank, (CommIndex, u8, Ends))> = Vec::new();
        let mut by_op: [Option<Ends>; 256] = [None; 256];
        for (&comm, members) in &self.ours {
            by_op.fill(None);
            let (first, size) = (table.first_group(comm), size_of(table, comm) as u32);
            let valid = valid.get(&comm).copied().unwrap_or(0) as usize;
            for (rank, _, list) in members {
                for own in &list[..valid.min(list.len())] {
                    let all = by_op[usize::from(own.part.op.0)].get_or_insert_default();
                    if all.are_both() {
                        continue;
                    }
                    let class = class_of(own.part.op, alltoallv, first > 0);
                    let Role { sends, receives } = role_between(class, *rank, first, size, &own.part);
                    all.add(Ends { roles: [sends, receives], sizes: [own.part.sent, own.part.received] });
                }
            }
            let home = home_of(placement, table, comm);
            own.extend((0..=u8::MAX).zip(by_op).filter_map(|(op, ends)| Some((home, (comm, op, ends?)))));
        }
        let mut all: BTreeMap<(CommIndex, u8), Ends> = BTreeMap::new();
        for (comm, op, ends) in exchange(transport, own.into_iter())? {
            all.entry((comm, op)).or_default().add(ends);
        }
        let mut sizes = [i64::from(all.values().any(|ends| ends.sizes == [true; 2]))];
        transport.all_reduce(ReduceOp::Max, &mut sizes)?;
        let mut silent: BTreeMap<CommIndex, BTreeSet<u8>> = BTreeMap::new();
        for ((comm, op), _) in all.into_iter().filter(|(_, ends)| sizes[0] == 0 && ends.roles != [true; 2]) {
            silent.entry(comm).or_default().insert(op);
        }
        Ok(silent)
    }

    /// Tells the members of inter-communicators which roots both groups together say.
    pub(super) fn tell_roots(&mut self, transport: &mut dyn Transport) -> Result<()> {
        let words: BTreeMap<CommIndex, Vec<u64>> = std::mem::take(&mut self.homes)
            .into_iter()
            .filter(|(comm, _)| has_two(self.table, *comm))
            .map(|(comm, home)| (comm, home.words))
            .collect();
        for (comm, words) in tell_hosts(transport, self.placement, self.table, &words)? {
            for (_, _, list) in self.ours.get_mut(&comm).into_iter().flatten() {
                list.iter_mut().zip(&words).for_each(|(own, &word)| own.part.root = Word(word).root());
            }
        }
        Ok(())
    }
}

fn size_of(table: &CommTable<'_>, comm: CommIndex) -> usize {
    table.participants(comm).map_or(0, |processes| processes.len())
}

fn checksum(list: &[Participation]) -> u64 {
    // `new` uses fixed keys, so that all ranks (which run the same binary) agree.
    let mut hasher = std::hash::DefaultHasher::new();
    for participation in list {
        hasher.write_u64(signature(participation));
    }
    hasher.finish()
}
