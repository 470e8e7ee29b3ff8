//! Collective instances: joining the participations of all members of a communicator.
//!
//! The k-th collective operation of one member belongs to the k-th of every other member. A *home* rank per communicator (the
//! host of its first member) compares what the members did: first how many, then a checksum of which operations, and
//! only if that differs the operations themselves (of inter-communicators always, for the sake of roots).

use crate::comm::{AnalysisRank, Transport};
use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::extracted::{Extract, Participation};
use crate::matching::fences::{self, Fences, Ours};
use crate::matching::groups::{Word, has_two};
use crate::matching::homes::{exchange, tell_hosts};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::placement::Placement;
use crate::matching::sync::{SyncKind, SyncTimeline};
use clc_trace::{CollectiveOp, CommRank, Error, Result, Root, TimelineNumber, number};
use controlled_logical_clock::latency::Spread;
use controlled_logical_clock::semantics::{CollectiveClass, role_between};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::Arc;

number! {
    /// A constrained instance of a communicator by its place among those ([`CollectiveComm::instances`]), which is the same on all analysis ranks.
    InstanceIndex(u32), one per "instance"
}

number! {
    /// A communicator with members whose timelines are hosted here, by its place among those ([`Collectives::comms`]).
    HostedComm(u32), one per "communicator with members here"
}
number! {
    /// A member of a communicator by its place among those hosted here ([`CollectiveComm::members`]); other than its [`CommRank`].
    MemberPlace(u32), one per "member hosted here"
}
number! {
    /// Where contributions to an instance meet: those of the two groups of an inter-communicator by themselves, since nobody waits for their own
    /// ([`CollectiveComm::slot`]).
    Slot(u32), one per "instance and group"
}

/// One member of a communicator whose timeline is hosted here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedMember {
    /// Its rank in the communicator.
    pub rank: CommRank,
    /// Its timeline.
    pub timeline: LocalTimeline,
    /// Begin event per instance.
    pub begins: Vec<u32>,
    /// End event per instance.
    pub ends: Vec<u32>,
    /// Whether its begin is a logical send, per instance.
    pub sends: Vec<bool>,
    /// Whether its end is a logical receive, per instance.
    pub receives: Vec<bool>,
    /// The instances in the order of their begins, if that is not their own: only mirrored, where non-blocking operations may begin as
    /// they had ended.
    pub order: Vec<InstanceIndex>,
}

impl HostedMember {
    /// The instance that ends at the visited event `event` of the member's timeline.
    pub(crate) fn ended_at(&self, event: usize) -> InstanceIndex {
        let place = self.ends.iter().position(|&end| end as usize == event);
        InstanceIndex(place.unwrap_or(0) as u32)
    }

    /// The instances whose end is a logical receive.
    pub(crate) fn received(&self) -> impl Iterator<Item = InstanceIndex> {
        (0..).map(InstanceIndex).zip(&self.receives).filter(|(_, receives)| **receives).map(|(instance, _)| instance)
    }

    /// The instance that the `count`-th begin of this member (from 0) belongs to.
    #[inline]
    pub fn begun(&self, count: u32) -> InstanceIndex {
        self.order.get(count as usize).map_or(InstanceIndex(count), |&instance| instance)
    }
}

/// One constrained instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance {
    /// The operation.
    pub op: CollectiveOp,
    /// How its members depend on each other.
    pub class: CollectiveClass,
    /// The root; the first member if it has none.
    pub root: CommRank,
}

/// The constrained collective instances of one communicator, as seen by an analysis rank that hosts members.
#[derive(Debug, Clone)]
pub struct CollectiveComm {
    /// The communicator, as index into the definitions; windows follow the communicators.
    pub comm: CommIndex,
    /// Number of members, of an inter-communicator in both groups.
    pub size: u32,
    /// Of an inter-communicator: the number of members of its first group, whose ranks come first. 0 for others.
    pub first_group: u32,
    /// Process (global timeline number) of every member, in communicator-rank order; shared with the definitions.
    pub processes: Arc<[u32]>,
    /// Analysis rank where contributions of several hosts meet.
    pub home: AnalysisRank,
    /// Analysis ranks that host members, ascending, with the number of members each.
    pub hosts: Vec<(AnalysisRank, u32)>,
    /// Members hosted here, by rank.
    pub members: Vec<HostedMember>,
    /// Constrained instances, in order.
    pub instances: Vec<Instance>,
    /// Distribution over nodes, for minimum latencies.
    pub spread: Spread,
    /// Analysis rank that hosts each member, in communicator-rank order.
    pub rank_hosts: Vec<AnalysisRank>,
    /// Whether this is the communicator of the mirrored replay, in which ends send and begins receive.
    pub mirrored: bool,
}

impl CollectiveComm {
    /// The analysis rank that hosts member `rank`.
    pub fn host_of(&self, rank: CommRank) -> AnalysisRank {
        self.rank_hosts[rank]
    }

    /// Number of groups of members that constrain each other, but nobody of their own: 2 of an inter-communicator, else 1.
    pub fn groups(&self) -> usize {
        1 + usize::from(self.first_group > 0)
    }

    /// The group of member `rank`.
    pub fn group_of(&self, rank: CommRank) -> usize {
        usize::from(self.first_group > 0 && rank.0 >= self.first_group)
    }

    /// The group by which member `rank` is constrained.
    pub(crate) fn group_before(&self, rank: CommRank) -> usize {
        self.groups() - 1 - self.group_of(rank)
    }

    /// Where contributions of the members of a group to an instance meet.
    #[inline]
    pub fn slot(&self, instance: InstanceIndex, group: usize) -> Slot {
        Slot(instance.0 * self.groups() as u32 + group as u32)
    }

    /// Which instance it is that contributions to `slot` belong to, and the group that contributes.
    #[inline]
    pub fn instance_of(&self, slot: Slot) -> (InstanceIndex, usize) {
        let groups = self.groups() as u32;
        (InstanceIndex(slot.0 / groups), (slot.0 % groups) as usize)
    }

    /// The constrained instances with their places.
    pub fn numbered(&self) -> impl Iterator<Item = (InstanceIndex, &Instance)> {
        (0..).map(InstanceIndex).zip(&self.instances)
    }

    /// Whether the begin of one member can bound the end of another.
    pub fn constrains(&self, begin: CommRank, end: CommRank) -> bool {
        begin != end && self.group_of(begin) == self.group_before(end)
    }

    /// Who contributes for [`crate::comm::Top2`], which leaves out what comes from the one that it bounds: the member itself, or its group.
    pub fn holder(&self, rank: CommRank) -> i64 {
        if self.first_group > 0 { self.group_of(rank) as i64 } else { i64::from(rank.0) }
    }

    /// The same communicator without members and instances.
    pub(crate) fn clone_without_lists(&self) -> CollectiveComm {
        CollectiveComm {
            comm: self.comm,
            size: self.size,
            first_group: self.first_group,
            processes: self.processes.clone(),
            home: self.home,
            hosts: self.hosts.clone(),
            members: Vec::new(),
            instances: Vec::new(),
            spread: self.spread.clone(),
            rank_hosts: self.rank_hosts.clone(),
            mirrored: self.mirrored,
        }
    }
}

/// Instance counts of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceCounts {
    /// Complete instances that constrain.
    pub matched: u64,
    /// Complete instances without a constraint (the trace does not say who exchanged data with whom).
    pub unconstrained: u64,
    /// Instances in which not all members took part.
    pub incomplete: u64,
    /// Instances from the first one on in which the members did different things.
    pub inconsistent: u64,
}

/// What the collectives came to; each communicator is counted by its home only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveCounts {
    /// By operation (OTF2 number).
    pub by_op: BTreeMap<u8, InstanceCounts>,
    /// Communicators (definition index) with inconsistent instances, with the number of the first one (0-based).
    pub first_inconsistent: BTreeMap<CommIndex, u64>,
}

impl CollectiveCounts {
    /// Adds the counts of another analysis rank.
    pub fn merge(&mut self, other: &CollectiveCounts) {
        for (&op, counts) in &other.by_op {
            let entry = self.by_op.entry(op).or_default();
            entry.matched += counts.matched;
            entry.unconstrained += counts.unconstrained;
            entry.incomplete += counts.incomplete;
            entry.inconsistent += counts.inconsistent;
        }
        self.first_inconsistent.extend(&other.first_inconsistent);
    }
}

/// A timeline's membership in a communicator; what the links of begin and end events point at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// The communicator.
    pub comm: HostedComm,
    /// The member, which the timeline is.
    pub member: MemberPlace,
}

/// All collectives with members hosted here.
#[derive(Debug, Default)]
pub struct Collectives {
    /// By communicator, ascending definition index.
    pub comms: Vec<CollectiveComm>,
    /// What begin and end events link to.
    pub memberships: Vec<Membership>,
    /// Counts for the report.
    pub counts: CollectiveCounts,
}

impl Collectives {
    /// What the link of a begin or end event points at.
    pub(crate) fn linked(&self, link: usize) -> (HostedComm, &CollectiveComm, &HostedMember) {
        let Membership { comm, member } = self.memberships[link];
        (comm, &self.comms[comm], &self.comms[comm].members[member])
    }

    /// All communicators with members here, with their places.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (HostedComm, &CollectiveComm)> {
        (0..).map(HostedComm).zip(&self.comms)
    }
}

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
    node_of: &dyn Fn(u32) -> u32,
    first: TimelineNumber,
    extracts: &mut [Extract],
    rules: Rules,
) -> Result<Collectives> {
    // Who of ours is in which communicator.
    let mut ours = Ours::new();
    for (local, extract) in (0..).map(LocalTimeline).zip(&mut *extracts) {
        let process = local.numbered_from(first).0;
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
        node_of: &dyn Fn(u32) -> u32,
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
            let (begins, ends, sends, receives) = Default::default();
            let mut member = HostedMember { rank, timeline, begins, ends, sends, receives, order: Vec::new() };
            let sync = &mut extracts[timeline].sync;
            for (participation, &class) in list[..valid].iter().zip(&classes) {
                if !usable(participation, class) {
                    continue;
                }
                let role = role_between(class, rank, first_group, size, &participation.part);
                member.begins.push(participation.begin);
                member.ends.push(participation.end);
                member.sends.push(role.sends);
                member.receives.push(role.receives);
                sync.activate(participation.begin, SyncKind::Begin, link);
                sync.activate(participation.end, SyncKind::End, link);
            }
            members.push(member);
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
