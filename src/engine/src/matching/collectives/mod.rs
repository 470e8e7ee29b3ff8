//! Collective instances: joining the participations of all members of a communicator.
//!
//! The k-th collective operation of one member belongs to the k-th of every other member. A *home* rank per communicator (the
//! host of its first member) compares what the members did: first how many, then a checksum of which operations, and
//! only if that differs the operations themselves (of inter-communicators always, for the sake of roots). Before that, operations of which one end only was
//! recorded get their numbers (`half_recorded`); where the numbers of operations differ, times and kinds tell which are the same (`uneven`).

mod comparison;
pub mod fences;
mod groups;
mod half_recorded;
mod homes;
pub mod instances;
mod kinds;
pub(crate) mod split;
mod uneven;

use crate::comm::{AnalysisRank, Transport};
use crate::matching::collectives::comparison::Comparison;
use crate::matching::collectives::fences::Fences;
use crate::matching::collectives::homes::{home_of, tell_hosts};
use crate::matching::collectives::instances::{
    CollectiveComm, CollectiveCounts, Collectives, HostedComm, HostedMember, Instance, MemberPlace, Membership,
};
use crate::matching::collectives::kinds::class_of;
use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::extracted::{Extract, Participation};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::operation_begin::CertainEnds;
use crate::matching::placement::Placement;
use crate::matching::sync::{SyncKind, SyncTimeline};
use clc_trace::{CollectiveOp, CommRank, Error, MpiRank, Result, Root, TimelineNumber};
use controlled_logical_clock::latency::Spread;
use controlled_logical_clock::semantics::{CollectiveClass, role_between};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
    let mut comparison = Comparison::of(placement, table, first, extracts)?;
    let mut left_out = Vec::new();
    let ours = &mut comparison.ours;
    let doubt = half_recorded::settle(transport, (placement, table), extracts, ours, &mut left_out)?;
    let complete = comparison.count(transport, &doubt, extracts, rules.alltoallv)?;
    let counting = comparison.most_frequent(transport)?;
    let suspicious = comparison.suspicious(transport, &complete)?;
    comparison.compare(transport, &suspicious)?;
    let parted = comparison.parted(&suspicious);
    let mut valid = complete.clone();
    valid.extend(tell_hosts(transport, placement, table, &parted.corrected)?);
    if table.has_two_groups() {
        comparison.tell_roots(transport)?;
    }
    fences::settle(transport, placement, table, extracts, &mut comparison.ours, &valid, rules.fences)?;
    let without_sizes = comparison.without_sizes(transport, &valid, rules.alltoallv)?;

    let counts = CollectiveCounts { first_inconsistent: parted.first_inconsistent, ..CollectiveCounts::default() };
    let mut collectives = Collectives { counts, ..Collectives::default() };
    for op in left_out {
        collectives.counts.by_op.entry(op.0).or_default().incomplete += 1;
    }
    for (comm, members) in comparison.ours {
        let valid = valid.get(&comm).copied().unwrap_or(0) as usize;
        let complete = complete.get(&comm).copied().unwrap_or(0) as usize;
        let counts_here = |rank: CommRank| counting.get(&comm).is_some_and(|&counting| counting == u64::from(rank.0));
        if let Some((_, _, list)) = members.iter().find(|(rank, ..)| counts_here(*rank)) {
            for (k, participation) in list.iter().enumerate().skip(valid) {
                let entry = collectives.counts.by_op.entry(participation.part.op.0).or_default();
                *(if k < complete { &mut entry.inconsistent } else { &mut entry.incomplete }) += 1;
            }
        }
        let Some(processes) = table.participants(comm) else { continue };
        let home = home_of(placement, table, comm);
        let (first_group, silent) = (table.first_group(comm), without_sizes.get(&comm));
        let joining = Joining { comm, processes, first_group, alltoallv: rules.alltoallv, silent };
        let here = home == transport.rank();
        let Some((instances, members)) = collectives.join(joining, members, valid, here, extracts)? else { continue };
        collectives.add(joining, home, instances, members, placement, node_of);
    }
    Ok(collectives)
}

/// A communicator whose collective operations are joined.
#[derive(Clone, Copy)]
struct Joining<'a> {
    comm: CommIndex,
    processes: &'a Arc<[MpiRank]>,
    first_group: u32,
    alltoallv: bool,
    /// At its home: operations that constrain nobody, since no sizes were recorded.
    silent: Option<&'a BTreeSet<u8>>,
}

impl Joining<'_> {
    fn size(&self) -> u32 {
        self.processes.len() as u32
    }

    fn is_silent(&self, op: CollectiveOp) -> bool {
        self.silent.is_some_and(|silent| silent.contains(&op.0))
    }

    /// Whether a participation in an operation of this class constrains anybody.
    fn usable(&self, participation: &Participation, class: CollectiveClass) -> bool {
        match class {
            CollectiveClass::Unconstrained => false,
            _ if class.rooted() => matches!(participation.part.root, Root::Rank(root) if root < self.size()),
            _ => true,
        }
    }

    /// The instances that constrain, of `list` with these classes.
    fn instances(&self, list: &[Participation], classes: &[CollectiveClass]) -> Vec<Instance> {
        let mut instances = Vec::new();
        for (participation, &class) in list.iter().zip(classes) {
            let op = participation.part.op;
            let root = match participation.part.root {
                Root::Rank(root) if class.rooted() && root < self.size() => CommRank(root),
                // A rooted operation without a usable root constrains nobody.
                _ if class.rooted() => continue,
                _ => CommRank(0),
            };
            if class != CollectiveClass::Unconstrained {
                instances.push(Instance { op, class, root, constrains: !self.is_silent(op) });
            }
        }
        instances
    }
}

impl Collectives {
    /// The first `valid` instances of a communicator, and its hosted members, whose events are activated; none if nothing constrains. `home`: whether they are
    /// counted here.
    fn join(
        &mut self,
        joining: Joining<'_>,
        mut participants: Vec<(CommRank, LocalTimeline, Vec<Participation>)>,
        valid: usize,
        home: bool,
        extracts: &mut [Extract],
    ) -> Result<Option<(Vec<Instance>, Vec<HostedMember>)>> {
        participants.sort_unstable_by_key(|(rank, ..)| *rank);
        let Some((_, _, first_list)) = participants.first() else { return Ok(None) };
        let first_list = &first_list[..valid];
        let class = |p: &Participation| class_of(p.part.op, joining.alltoallv, joining.first_group > 0);
        let classes: Vec<CollectiveClass> = first_list.iter().map(class).collect();
        let instances = joining.instances(first_list, &classes);
        if home {
            for (participation, &class) in first_list.iter().zip(&classes) {
                let entry = self.counts.by_op.entry(participation.part.op.0).or_default();
                if joining.usable(participation, class) && !joining.is_silent(participation.part.op) {
                    entry.matched += 1;
                } else {
                    entry.unconstrained += 1;
                }
            }
        }
        if instances.is_empty() {
            return Ok(None);
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
            let Extract { sync, loose, .. } = &mut extracts[timeline];
            let loose = loose.get(&joining.comm);
            for (k, (participation, &class)) in list[..valid].iter().zip(&classes).enumerate() {
                if !joining.usable(participation, class) {
                    continue;
                }
                let role = role_between(class, rank, joining.first_group, joining.size(), &participation.part);
                begins.push(participation.begin);
                ends.push(participation.end);
                let certain = loose.map_or(CertainEnds::BOTH, |loose| loose[k]);
                sends.push(role.sends && certain.begin);
                receives.push(role.receives && certain.end);
                sync.activate(participation.begin, SyncKind::Begin, link);
                sync.activate(participation.end, SyncKind::End, link);
            }
            let (begins, ends) = (begins.into(), ends.into());
            let (ended_on, loose, order) = (timeline, loose.is_some(), Vec::new());
            members.push(HostedMember { rank, timeline, ended_on, loose, begins, ends, sends, receives, order });
        }
        Ok(Some((instances, members)))
    }

    /// Adds a communicator with what was joined of it.
    fn add(
        &mut self,
        joining: Joining<'_>,
        home: AnalysisRank,
        instances: Vec<Instance>,
        members: Vec<HostedMember>,
        placement: &Placement,
        node_of: &dyn Fn(MpiRank) -> u32,
    ) {
        let processes = joining.processes;
        let mut hosts: BTreeMap<AnalysisRank, u32> = BTreeMap::new();
        let rank_hosts: Vec<AnalysisRank> =
            processes.iter().map(|&process| placement.host_of_process(process)).collect();
        for &host in &rank_hosts {
            *hosts.entry(host).or_default() += 1;
        }
        self.comms.push(CollectiveComm {
            comm: joining.comm,
            size: joining.size(),
            first_group: joining.first_group,
            processes: processes.clone(),
            home,
            hosts: hosts.into_iter().collect(),
            members,
            instances,
            spread: Spread::new(processes.iter().map(|&process| node_of(process)).collect()),
            rank_hosts,
            own: Vec::new(),
            mirrored: false,
        });
    }
}
