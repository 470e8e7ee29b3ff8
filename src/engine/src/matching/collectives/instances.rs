//! Collective operations as they are replayed: communicators with members here, their instances, and what each member does in them.

use crate::comm::AnalysisRank;
use crate::matching::comm_index::CommIndex;
use crate::matching::event_list::EventList;
use crate::matching::local_timeline::LocalTimeline;
use clc_trace::{CollectiveOp, CommRank, MpiRank, TimelineNumber, number};
use controlled_logical_clock::latency::Spread;
use controlled_logical_clock::semantics::CollectiveClass;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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
    /// The timeline of its begins.
    pub timeline: LocalTimeline,
    /// That of its ends: a thread may complete what another one, with another clock, has begun.
    pub ended_on: LocalTimeline,
    /// The begin and the end of an instance need not be of one operation of this process, as threads have made them in an order that is not known.
    pub loose: bool,
    /// Begin event per instance.
    pub begins: EventList,
    /// End event per instance.
    pub ends: EventList,
    /// Whether its begin is a logical send, per instance.
    pub sends: Vec<bool>,
    /// Whether its end is a logical receive, per instance.
    pub receives: Vec<bool>,
    /// The instances in the order of their begins, if that is not their own: only mirrored, where non-blocking operations may begin as
    /// they had ended.
    pub order: Vec<InstanceIndex>,
}

impl HostedMember {
    /// Whether begin and end of an instance are of one operation and on one timeline.
    pub fn is_of_one(&self) -> bool {
        self.timeline == self.ended_on && !self.loose
    }

    /// The instance that ends at the visited event `event` of the timeline of its ends.
    pub(crate) fn ended_at(&self, event: usize) -> InstanceIndex {
        let place = self.ends.each().position(|end| end as usize == event);
        InstanceIndex(place.unwrap_or(0) as u32)
    }

    /// The instances whose end is a logical receive.
    pub(crate) fn received(&self) -> impl Iterator<Item = InstanceIndex> {
        (0..).map(InstanceIndex).zip(&self.receives).filter(|(_, receives)| **receives).map(|(instance, _)| instance)
    }

    /// The instance that the `count`-th begin of this member (from 0) belongs to.
    #[inline]
    pub(crate) fn begun(&self, count: u32) -> InstanceIndex {
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
    /// Known at its home: whether anybody can be too early, as far as the trace shows.
    pub constrains: bool,
}

/// The constrained collective instances of one communicator, as seen by an analysis rank that hosts members.
#[derive(Debug, Clone)]
pub struct CollectiveComm {
    /// The communicator, as index into the definitions; windows follow the communicators, and then what was divided since threads with clocks of their own operate on
    /// it (`split`).
    pub comm: CommIndex,
    /// Number of members, of an inter-communicator in both groups.
    pub size: u32,
    /// Of an inter-communicator: the number of members of its first group, whose ranks come first. 0 for others.
    pub first_group: u32,
    /// The process of every member, in communicator-rank order; shared with the definitions.
    pub processes: Arc<[MpiRank]>,
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
    /// The members whose operations here are on timelines of their own, by rank, with those of the begins and of the ends; those of all others are on the timelines of their processes.
    pub own: Vec<(CommRank, [TimelineNumber; 2])>,
    /// Whether this is the communicator of the mirrored replay, in which ends send and begins receive.
    pub mirrored: bool,
}

impl CollectiveComm {
    /// The analysis rank that hosts member `rank`.
    pub(crate) fn host_of(&self, rank: CommRank) -> AnalysisRank {
        self.rank_hosts[rank]
    }

    /// The timelines on which member `rank` begins operations and ends them.
    #[inline]
    fn timelines_of(&self, rank: CommRank) -> [TimelineNumber; 2] {
        let own = self.own.binary_search_by_key(&rank, |&(rank, _)| rank);
        own.map_or_else(|_| [TimelineNumber::of_process(self.processes[rank]); 2], |place| self.own[place].1)
    }

    /// The timeline on which member `rank` begins operations.
    #[inline]
    pub(crate) fn begun_on(&self, rank: CommRank) -> TimelineNumber {
        self.timelines_of(rank)[0]
    }

    /// The timeline on which member `rank` ends operations.
    #[inline]
    pub(crate) fn ended_on(&self, rank: CommRank) -> TimelineNumber {
        self.timelines_of(rank)[1]
    }

    /// The timelines on which the members begin operations, by rank.
    pub(crate) fn timelines(&self) -> impl Iterator<Item = TimelineNumber> + Clone {
        (0..self.size).map(|rank| self.begun_on(CommRank(rank)))
    }

    /// Number of groups of members that constrain each other, but nobody of their own: 2 of an inter-communicator, else 1.
    pub(crate) fn groups(&self) -> usize {
        1 + usize::from(self.first_group > 0)
    }

    /// The group of member `rank`.
    pub fn group_of(&self, rank: CommRank) -> usize {
        usize::from(self.first_group > 0 && rank.0 >= self.first_group)
    }

    /// The group by which member `rank` is constrained.
    pub fn group_before(&self, rank: CommRank) -> usize {
        self.groups() - 1 - self.group_of(rank)
    }

    /// Where contributions of the members of a group to an instance meet.
    #[inline]
    pub(crate) fn slot(&self, instance: InstanceIndex, group: usize) -> Slot {
        Slot(instance.0 * self.groups() as u32 + group as u32)
    }

    /// Which instance it is that contributions to `slot` belong to, and the group that contributes.
    #[inline]
    pub(crate) fn instance_of(&self, slot: Slot) -> (InstanceIndex, usize) {
        let groups = self.groups() as u32;
        (InstanceIndex(slot.0 / groups), (slot.0 % groups) as usize)
    }

    /// The constrained instances with their places.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (InstanceIndex, &Instance)> {
        (0..).map(InstanceIndex).zip(&self.instances)
    }

    /// Whether the begin of one member can bound the end of another.
    pub(crate) fn constrains(&self, begin: CommRank, end: CommRank) -> bool {
        begin != end && self.group_of(begin) == self.group_before(end)
    }

    /// Who contributes for [`crate::comm::MaxExcluding`], which leaves out what comes from the one that it bounds: the member itself, or its group.
    pub(crate) fn holder(&self, rank: CommRank) -> i64 {
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
            own: self.own.clone(),
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
    /// Communicators that several threads of a process share whose operations contradict the rest of the trace, in the order that clocks tell.
    pub contradicted: BTreeSet<CommIndex>,
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
        self.contradicted.extend(&other.contradicted);
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
