//! Collective instances: joining the participations of all members of a communicator.
//!
//! The k-th collective operation of one member belongs to the k-th of every other member. A *home* rank per communicator (the
//! host of its first member) compares what the members did: first how many, then a checksum of which operations, and
//! only if that differs the operations themselves (of inter-communicators always, for the sake of roots).

pub mod fences;
mod groups;
mod homes;
pub mod instances;

use crate::comm::{AnalysisRank, Transport};
use crate::matching::collectives::fences::{Fences, Ours};
use crate::matching::collectives::groups::{Word, has_two};
use crate::matching::collectives::homes::{exchange, tell_hosts};
use crate::matching::collectives::instances::{
    CollectiveComm, CollectiveCounts, Collectives, HostedComm, HostedMember, Instance, MemberPlace, Membership,
};
use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::extracted::{Extract, Participation};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::placement::Placement;
use crate::matching::sync::{SyncKind, SyncTimeline};
use clc_trace::{CollectiveOp, CommRank, Error, MpiRank, Result, Root, TimelineNumber};
use controlled_logical_clock::latency::Spread;
use controlled_logical_clock::semantics::{CollectiveClass, role_between};
use std::collections::BTreeMap;
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

/// Which operations constrain.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// Treat Alltoallv and its like as N-to-N.
    pub alltoallv: bool,
    /// Which fences of windows are barriers.
    pub fences: Fences,
}

/// Joins all collective participations. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn match_collectives(
    transport: &mut dyn Transport,
    placement: &Placement,
    table: &CommTable<'_>,
    node_of: &dyn Fn(MpiRank) -> u32,
    first: TimelineNumber,
    extracts: &mut [Extract],
    rules: Rules,
) -> Result<Collectives> {
    // Who of ours is in which communicator.
    let mut ours = Ours::new();
    for (local, extract) in (0..).map(LocalTimeline).zip(&mut *extracts) {
        let process = local.numbered_from(first).process();
        for (comm, participations) in extract.collectives.drain() {
            let rank = table
                .rank_of(comm, process)
                .ok_or_else(|| Error::new(format!("process {process} is not a member of {}", table.name(comm))))?;
            ours.entry(comm).or_default().push((rank, local, participations));
        }
    }
    let home_of = |comm: CommIndex| -> AnalysisRank {
        table.participants(comm).map_or(AnalysisRank::FIRST, |processes| placement.host_of_process(processes[0]))
    };
    let mut homes: BTreeMap<CommIndex, AtHome> = BTreeMap::new();
    let mut counts = CollectiveCounts::default();

    // How many instances does everybody have?
    let announce = ours.iter().flat_map(|(&comm, members)| {
        members.iter().map(move |(rank, _, list)| (home_of(comm), (comm, *rank, list.len() as u64)))
    });
    for (comm, rank, count) in exchange(transport, announce)? {
        let home = homes.entry(comm).or_default();
        home.counts.resize(size_of(table, comm), 0);
        home.counts[rank] = count;
    }
    let complete: BTreeMap<CommIndex, u64> =
        homes.iter().map(|(&comm, home)| (comm, home.counts.iter().copied().min().unwrap_or(0))).collect();
    let complete_here = tell_hosts(transport, placement, table, &complete)?;
    let mut valid = complete_here.clone();
    // What is left over is counted once: by the member that took part most often, the first of those.
    let most: BTreeMap<CommIndex, u64> = homes
        .iter()
        .map(|(&comm, home)| {
            let most = home.counts.iter().copied().max().unwrap_or(0);
            (comm, home.counts.iter().position(|&count| count == most).unwrap_or(0) as u64)
        })
        .collect();
    let counting = tell_hosts(transport, placement, table, &most)?;

    // Did everybody do the same in them?
    let announce = ours.iter().flat_map(|(&comm, members)| {
        let valid = valid.get(&comm).copied().unwrap_or(0) as usize;
        members.iter().map(move |(_, _, list)| (home_of(comm), (comm, checksum(&list[..valid.min(list.len())]))))
    });
    for (comm, checksum) in exchange(transport, announce)? {
        if let Some(home) = homes.get_mut(&comm) {
            home.checksums.push(checksum);
        }
    }
    let suspicious: BTreeMap<CommIndex, u64> = homes
        .iter()
        .filter(|(comm, _)| complete[comm] > 0)
        .filter(|(comm, home)| has_two(table, **comm) || home.checksums.windows(2).any(|pair| pair[0] != pair[1]))
        .map(|(&comm, _)| (comm, complete[&comm]))
        .collect();
    let asked = tell_hosts(transport, placement, table, &suspicious)?;

    // Where do they part?
    let announce = ours.iter().filter(|(comm, _)| asked.contains_key(comm)).flat_map(|(&comm, members)| {
        let valid = asked[&comm] as usize;
        members.iter().map(move |(rank, _, list)| {
            let words: Vec<u64> = match table.first_group(comm) {
                0 => list[..valid].iter().map(signature).collect(),
                first => list[..valid].iter().map(|own| Word::of(own, *rank, first).0).collect(),
            };
            (home_of(comm), (comm, words))
        })
    });
    for (comm, words) in exchange(transport, announce)? {
        if let Some(home) = homes.get_mut(&comm) {
            home.lists.push(words);
        }
    }
    let mut corrected = BTreeMap::new();
    for (&comm, home) in homes.iter_mut().filter(|(comm, _)| suspicious.contains_key(comm)) {
        if let first @ 1.. = table.first_group(comm) {
            let said = |k: usize| {
                let mut words = home.lists.iter().map(|list| Word(list[k]));
                let one = words.next()?;
                words.try_fold(one, |sum, word| sum.and(word, first))
            };
            let words: Vec<u64> = (0..complete[&comm] as usize).map_while(said).map(|word| word.0).collect();
            if (words.len() as u64) < complete[&comm] {
                corrected.insert(comm, words.len() as u64);
                counts.first_inconsistent.insert(comm, words.len() as u64);
            }
            home.words = words;
            continue;
        }
        let agree = |k: usize| home.lists.windows(2).all(|pair| pair[0][k] == pair[1][k]);
        let length = complete[&comm];
        let parting = (0..length as usize).find(|&k| !agree(k)).unwrap_or(length as usize) as u64;
        corrected.insert(comm, parting);
        counts.first_inconsistent.insert(comm, parting);
    }
    valid.extend(tell_hosts(transport, placement, table, &corrected)?);
    if table.has_two_groups() {
        let words: BTreeMap<CommIndex, Vec<u64>> = homes
            .into_iter()
            .filter(|(comm, _)| has_two(table, *comm))
            .map(|(comm, home)| (comm, home.words))
            .collect();
        for (comm, words) in tell_hosts(transport, placement, table, &words)? {
            for (_, _, list) in ours.get_mut(&comm).into_iter().flatten() {
                list.iter_mut().zip(&words).for_each(|(own, &word)| own.part.root = Word(word).root());
            }
        }
    }
    fences::settle(transport, placement, table, extracts, &mut ours, &valid, rules.fences)?;

    let mut collectives = Collectives { counts, ..Collectives::default() };
    for (comm, members) in ours {
        let valid = valid.get(&comm).copied().unwrap_or(0) as usize;
        let complete = complete_here.get(&comm).copied().unwrap_or(0) as usize;
        let counts_here = |rank: CommRank| counting.get(&comm).is_some_and(|&counting| counting == u64::from(rank.0));
        if let Some((_, _, list)) = members.iter().find(|(rank, ..)| counts_here(*rank)) {
            for (k, participation) in list.iter().enumerate().skip(valid) {
                let entry = collectives.counts.by_op.entry(participation.part.op.0).or_default();
                *(if k < complete { &mut entry.inconsistent } else { &mut entry.incomplete }) += 1;
            }
        }
        let home = home_of(comm);
        collectives.add(
            comm,
            members,
            valid,
            home,
            transport.rank(),
            placement,
            table,
            node_of,
            extracts,
            rules.alltoallv,
        )?;
    }
    Ok(collectives)
}

impl Collectives {
    /// Adds the first `valid` instances of a communicator and activates their events.
    #[allow(clippy::too_many_arguments)] // one caller; a struct for them would only hide that
    fn add(
        &mut self,
        comm: CommIndex,
        mut participants: Vec<(CommRank, LocalTimeline, Vec<Participation>)>,
        valid: usize,
        home: AnalysisRank,
        here: AnalysisRank,
        placement: &Placement,
        table: &CommTable<'_>,
        node_of: &dyn Fn(MpiRank) -> u32,
        extracts: &mut [Extract],
        alltoallv: bool,
    ) -> Result<()> {
        let Some(processes) = table.participants(comm) else { return Ok(()) };
        let (size, first_group) = (processes.len() as u32, table.first_group(comm));
        participants.sort_unstable_by_key(|(rank, ..)| *rank);
        let Some((_, _, first_list)) = participants.first() else { return Ok(()) };
        let classes: Vec<CollectiveClass> =
            first_list[..valid].iter().map(|p| class_of(p.part.op, alltoallv, first_group > 0)).collect();
        let mut instances = Vec::new();
        for (participation, &class) in first_list[..valid].iter().zip(&classes) {
            let op = participation.part.op;
            let root = match participation.part.root {
                Root::Rank(root) if class.rooted() && root < size => CommRank(root),
                // A rooted operation without a usable root constrains nobody.
                _ if class.rooted() => continue,
                _ => CommRank(0),
            };
            if class != CollectiveClass::Unconstrained {
                instances.push(Instance { op, class, root });
            }
        }
        let usable = |participation: &Participation, class: CollectiveClass| match class {
            CollectiveClass::Unconstrained => false,
            _ if class.rooted() => matches!(participation.part.root, Root::Rank(root) if root < size),
            _ => true,
        };
        if here == home {
            for (participation, &class) in first_list[..valid].iter().zip(&classes) {
                let entry = self.counts.by_op.entry(participation.part.op.0).or_default();
                if usable(participation, class) {
                    entry.matched += 1;
                } else {
                    entry.unconstrained += 1;
                }
            }
        }
        if instances.is_empty() {
            return Ok(());
        }
        let hosted = HostedComm(self.comms.len() as u32);
        let mut members = Vec::with_capacity(participants.len());
        for (rank, timeline, list) in participants {
            let link = self.memberships.len() as u32;
            if link as usize >= SyncTimeline::LINKS {
                return Err(Error::new(format!(
                    "more than {} members of communicators on one rank",
                    SyncTimeline::LINKS
                )));
            }
            self.memberships.push(Membership { comm: hosted, member: MemberPlace(members.len() as u32) });
            let (mut begins, mut ends) = (Vec::new(), Vec::new());
            let (mut sends, mut receives) = (Vec::new(), Vec::new());
            let sync = &mut extracts[timeline].sync;
            for (participation, &class) in list[..valid].iter().zip(&classes) {
                if !usable(participation, class) {
                    continue;
                }
                let role = role_between(class, rank, first_group, size, &participation.part);
                begins.push(participation.begin);
                ends.push(participation.end);
                sends.push(role.sends);
                receives.push(role.receives);
                sync.activate(participation.begin, SyncKind::Begin, link);
                sync.activate(participation.end, SyncKind::End, link);
            }
            let (begins, ends) = (begins.into(), ends.into());
            members.push(HostedMember { rank, timeline, begins, ends, sends, receives, order: Vec::new() });
        }
        let mut hosts: BTreeMap<AnalysisRank, u32> = BTreeMap::new();
        let rank_hosts: Vec<AnalysisRank> =
            processes.iter().map(|&process| placement.host_of_process(process)).collect();
        for &host in &rank_hosts {
            *hosts.entry(host).or_default() += 1;
        }
        self.comms.push(CollectiveComm {
            comm,
            size,
            first_group,
            processes: processes.clone(),
            home,
            hosts: hosts.into_iter().collect(),
            members,
            instances,
            spread: Spread::new(processes.iter().map(|&process| node_of(process)).collect()),
            rank_hosts,
            mirrored: false,
        });
        Ok(())
    }
}

fn size_of(table: &CommTable<'_>, comm: CommIndex) -> usize {
    table.participants(comm).map_or(0, |processes| processes.len())
}

/// The class of an operation; `between` the groups of an inter-communicator there are no prefix operations.
fn class_of(op: CollectiveOp, alltoallv: bool, between: bool) -> CollectiveClass {
    match CollectiveClass::of(op, alltoallv) {
        CollectiveClass::Prefix if between => CollectiveClass::Unconstrained,
        class => class,
    }
}

/// What all members have to agree on: the operation, and the root where there is one.
fn signature(participation: &Participation) -> u64 {
    let part = &participation.part;
    let root = match part.root {
        Root::Rank(root) if CollectiveClass::of(part.op, false).rooted() => u64::from(root) + 1,
        _ => 0,
    };
    root << 8 | u64::from(part.op.0)
}

fn checksum(list: &[Participation]) -> u64 {
    // `new` uses fixed keys, so that all ranks (which run the same binary) agree.
    let mut hasher = std::hash::DefaultHasher::new();
    for participation in list {
        hasher.write_u64(signature(participation));
    }
    hasher.finish()
}
