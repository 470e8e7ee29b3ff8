//! What the members of communicators contribute to their collective instances, and what each is bounded by.

use crate::comm::{MaxExcluding, Transport};
use crate::matching::collectives::instances::{CollectiveComm, HostedMember, InstanceIndex};
use crate::replay::advances::EventTimes;
use crate::replay::homes::{self, OfInstances};
use crate::replay::program::{NO_LOWER_BOUND, Program, contribution_latency, instance_latency};
use clc_trace::{CommRank, Result};
use controlled_logical_clock::semantics::CollectiveClass;
use std::collections::BTreeMap;

/// Which way timestamps travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From logical sends to logical receives: the earliest time that each receive may have.
    Forward,
    /// From logical receives to logical sends: the latest time that each send may have.
    Backward,
}

/// Contributions of a communicator's members to all its instances. Backward, times are negated: a minimum becomes a maximum.
#[derive(Debug)]
pub struct Contributions {
    /// Per instance, and of an inter-communicator per instance and group: the two largest, for every class but prefix operations.
    largest: Vec<MaxExcluding>,
    /// Per prefix instance (in order) and member: its contribution, [`NO_LOWER_BOUND`] if it makes none.
    prefix: Vec<BTreeMap<CommRank, i64>>,
}

/// Each instance, and its index among the prefix instances, if it is one.
fn prefix_indexes(comm: &CollectiveComm) -> impl Iterator<Item = (InstanceIndex, Option<usize>)> + '_ {
    let mut next = 0;
    comm.numbered().map(move |(number, instance)| {
        let prefix = (instance.class == CollectiveClass::Prefix).then(|| {
            next += 1;
            next - 1
        });
        (number, prefix)
    })
}

/// The event at which `member` contributes to `instance`, and the one that the result bounds; `None` where it has no part.
fn ends_of(member: &HostedMember, instance: InstanceIndex, direction: Direction) -> (Option<u32>, Option<u32>) {
    let begin = member.sends[instance].then(|| member.begins.at(instance.place()));
    let end = member.receives[instance].then(|| member.ends.at(instance.place()));
    match direction {
        Direction::Forward => (begin, end),
        Direction::Backward => (end, begin),
    }
}

impl OfInstances for Contributions {
    fn clear(&mut self) {
        self.largest.fill(MaxExcluding::NONE);
        self.prefix.iter_mut().for_each(BTreeMap::clear);
    }

    /// Three words per instance, then per prefix instance a count and (rank, value) pairs.
    fn encode(&self, words: &mut Vec<u64>) {
        for top in &self.largest {
            words.extend([top.max as u64, top.holder as u64, top.second as u64]);
        }
        for members in &self.prefix {
            words.push(members.len() as u64);
            words.extend(members.iter().flat_map(|(&rank, &value)| [u64::from(rank.0), value as u64]));
        }
    }

    fn merge<'w>(&mut self, mut words: &'w [u64]) -> &'w [u64] {
        for top in &mut self.largest {
            if let [max, holder, second, tail @ ..] = words {
                *top = top.merge(MaxExcluding { max: *max as i64, holder: *holder as i64, second: *second as i64 });
                words = tail;
            }
        }
        for members in &mut self.prefix {
            if let [length, tail @ ..] = words {
                let (pairs, next) = tail.split_at(2 * *length as usize);
                members.extend(pairs.chunks_exact(2).map(|pair| (CommRank(pair[0] as u32), pair[1] as i64)));
                words = next;
            }
        }
        words
    }
}

impl Contributions {
    fn of_members(
        program: &Program,
        comm: &CollectiveComm,
        times: &(impl EventTimes + ?Sized),
        direction: Direction,
    ) -> Self {
        let prefixes = prefix_indexes(comm).filter(|(_, prefix)| prefix.is_some()).count();
        let mut contributions = Contributions {
            largest: vec![MaxExcluding::NONE; comm.instances.len() * comm.groups()],
            prefix: vec![BTreeMap::new(); prefixes],
        };
        let shared = program.shared_latency[program.comm_index[&comm.comm]];
        for member in &comm.members {
            for (k, prefix) in prefix_indexes(comm) {
                let (Some(event), _) = ends_of(member, k, direction) else { continue };
                let timeline = match direction {
                    Direction::Forward => member.timeline,
                    Direction::Backward => member.ended_on,
                };
                let time = times.at(timeline, event);
                let value = match direction {
                    Direction::Forward => time + contribution_latency(comm, k, member, &program.latency),
                    Direction::Backward => -(time - instance_latency(comm, k, member, &program.latency, shared)),
                };
                match prefix {
                    Some(prefix) => {
                        contributions.prefix[prefix].insert(member.rank, value);
                    }
                    None => {
                        let largest = &mut contributions.largest[comm.slot(k, comm.group_of(member.rank))];
                        *largest = largest.merge(MaxExcluding::one(value, member.rank.0.into()));
                    }
                }
            }
        }
        contributions
    }

    /// Those of all communicators with members here under the given `times` of the visited events, complete: contributions of several
    /// hosts meet at the communicator's home. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn meet(
        transport: &mut dyn Transport,
        program: &Program,
        times: &(impl EventTimes + ?Sized),
        direction: Direction,
    ) -> Result<Vec<Contributions>> {
        let comms = &program.collectives.comms;
        let mut contributions: Vec<Contributions> =
            comms.iter().map(|comm| Contributions::of_members(program, comm, times, direction)).collect();

        homes::meet(transport, program, &mut contributions)?;
        Ok(contributions)
    }

    /// For every member hosted here and every instance in which something bounds it: member, instance, bounded event and the largest
    /// contribution of the members it depends on.
    pub fn results(
        &self,
        comm: &CollectiveComm,
        direction: Direction,
        visit: &mut impl FnMut(&HostedMember, InstanceIndex, u32, i64),
    ) {
        let prefix_bounds = self.prefix_bounds(comm, direction);
        for member in &comm.members {
            for (k, prefix) in prefix_indexes(comm) {
                let (_, Some(event)) = ends_of(member, k, direction) else { continue };
                let largest = match prefix {
                    Some(prefix) => prefix_bounds[prefix].get(&member.rank).copied().unwrap_or(NO_LOWER_BOUND),
                    None => self.before(comm, k, member).excluding(member.rank.0.into()),
                };
                if largest != NO_LOWER_BOUND {
                    visit(member, k, event, largest);
                }
            }
        }
    }

    /// The same to be asked for one member and instance after the other.
    pub(crate) fn into_bounds(self, comm: &CollectiveComm, direction: Direction) -> ContributedBounds {
        let prefix = prefix_indexes(comm).filter(|(_, prefix)| prefix.is_some()).map(|(instance, _)| instance);
        // One after the other: they take more memory than all else.
        let bounds = self.prefix.into_iter().map(|members| running_maxima(&members, comm, direction));
        let prefix = prefix.zip(bounds).collect();
        ContributedBounds { largest: self.largest, prefix }
    }

    /// For every member hosted here and every instance that is no prefix operation, whether something bounds it or not: member, instance and the largest
    /// contribution of the others, if there is one.
    pub fn of_others(&self, comm: &CollectiveComm, visit: &mut impl FnMut(&HostedMember, InstanceIndex, Option<i64>)) {
        for member in &comm.members {
            for (k, _) in prefix_indexes(comm).filter(|(_, prefix)| prefix.is_none()) {
                let largest = self.before(comm, k, member).excluding(member.rank.0.into());
                visit(member, k, Some(largest).filter(|&largest| largest != NO_LOWER_BOUND));
            }
        }
    }

    /// As [`Contributions::results`] forward, and who made the largest contribution: member, instance, bounded event, the contribution
    /// and the communicator rank of the other member that made it (of several, the lowest).
    pub fn latest(
        &self,
        comm: &CollectiveComm,
        visit: &mut impl FnMut(&HostedMember, InstanceIndex, u32, i64, CommRank),
    ) {
        for (k, prefix) in prefix_indexes(comm) {
            let mut lower = prefix.map(|prefix| self.prefix[prefix].iter().peekable());
            let mut latest: Option<(i64, CommRank)> = None;
            for member in &comm.members {
                if let Some(lower) = &mut lower {
                    while let Some((&rank, &value)) = lower.next_if(|(rank, _)| **rank < member.rank) {
                        latest = latest.filter(|(largest, _)| *largest >= value).or(Some((value, rank)));
                    }
                } else {
                    // The holder's own bound comes from somebody else, who came no later: it does not matter who.
                    let top = self.before(comm, k, member);
                    latest = Some((top.excluding(member.rank.0.into()), CommRank(top.holder as u32)));
                }
                let (_, Some(event)) = ends_of(member, k, Direction::Forward) else { continue };
                if let Some((value, rank)) = latest.filter(|(value, _)| *value != NO_LOWER_BOUND) {
                    visit(member, k, event, value, rank);
                }
            }
        }
    }

    /// What members contribute that `member` depends on, and perhaps itself.
    fn before(&self, comm: &CollectiveComm, instance: InstanceIndex, member: &HostedMember) -> MaxExcluding {
        self.largest[comm.slot(instance, comm.group_before(member.rank))]
    }

    /// Per prefix instance and member hosted here: the largest contribution of those it depends on.
    fn prefix_bounds(&self, comm: &CollectiveComm, direction: Direction) -> Vec<BTreeMap<CommRank, i64>> {
        self.prefix.iter().map(|members| running_maxima(members, comm, direction)).collect()
    }
}

/// The largest contributions to all instances of a communicator that its members depend on.
#[derive(Debug)]
pub(crate) struct ContributedBounds {
    /// As those of [`Contributions`].
    largest: Vec<MaxExcluding>,
    /// By prefix instance and member hosted here.
    prefix: BTreeMap<InstanceIndex, BTreeMap<CommRank, i64>>,
}

impl ContributedBounds {
    /// The largest contribution to `instance` that `member` depends on, if there is one.
    pub(crate) fn of(&self, comm: &CollectiveComm, member: &HostedMember, instance: InstanceIndex) -> Option<i64> {
        let largest = match comm.instances[instance].class {
            CollectiveClass::Prefix => *self.prefix.get(&instance)?.get(&member.rank)?,
            _ => self.largest[comm.slot(instance, comm.group_before(member.rank))].excluding(member.rank.0.into()),
        };
        Some(largest).filter(|&largest| largest != NO_LOWER_BOUND)
    }
}

/// For each member hosted here: the largest contribution of lower ranks (forward) or higher ranks (backward).
fn running_maxima(
    members: &BTreeMap<CommRank, i64>,
    comm: &CollectiveComm,
    direction: Direction,
) -> BTreeMap<CommRank, i64> {
    let mut result = BTreeMap::new();
    let mut largest = NO_LOWER_BOUND;
    let mut visit = |contributions: &mut dyn Iterator<Item = (&CommRank, &i64)>,
                     ours: &mut dyn Iterator<Item = CommRank>,
                     before: fn(CommRank, CommRank) -> bool| {
        let mut next = contributions.next();
        for rank in ours {
            while let Some((&contributor, &value)) = next {
                if !before(contributor, rank) {
                    break;
                }
                largest = largest.max(value);
                next = contributions.next();
            }
            result.insert(rank, largest);
        }
    };
    let ranks = comm.members.iter().map(|member| member.rank);
    match direction {
        Direction::Forward => visit(&mut members.iter(), &mut ranks.into_iter(), |a, b| a < b),
        Direction::Backward => visit(&mut members.iter().rev(), &mut ranks.rev(), |a, b| a > b),
    }
    result
}
