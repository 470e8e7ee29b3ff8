//! The latest begins of collective operations, by which all later ends are bound.
//!
//! Of an instance only the latest begin of the logical senders says anything tight. As a receiver on the same clock learns nothing
//! from it, the latest begin on any *other* clock is kept beside it. A receiver of a prefix operation (Scan) waits for the members
//! before it only, so there each member has its own.

use crate::comm::Transport;
use crate::matching::collectives::instances::{CollectiveComm, InstanceIndex, Slot};
use crate::matching::visited_times::{TimelineTimes, VisitedTimes};
use crate::replay::homes::{self, OfInstances};
use crate::replay::program::Program;
use clc_trace::workers::Workers;
use clc_trace::{CommRank, Result};
use controlled_logical_clock::semantics::CollectiveClass;
use std::collections::BTreeMap;
use std::ops::Range;

/// The latest begin, and the latest one of those on other clocks: (time, clock).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LatestBegins([Option<(i64, u32)>; 2]);

impl LatestBegins {
    #[inline]
    fn merge(&mut self, other: LatestBegins) {
        other.0.into_iter().flatten().for_each(|begin| self.add(begin));
    }

    /// Takes in another begin.
    #[inline]
    fn add(&mut self, begin: (i64, u32)) {
        let [first, second] = &mut self.0;
        match first {
            Some(latest) if begin > *latest => {
                if begin.1 != latest.1 {
                    *second = *first;
                }
                *first = Some(begin);
            }
            Some(latest) => {
                if begin.1 != latest.1 && second.is_none_or(|second| begin > second) {
                    *second = Some(begin);
                }
            }
            None => *first = Some(begin),
        }
    }

    /// The latest begin of all.
    pub(crate) fn of_all(&self) -> Option<(i64, u32)> {
        self.0[0]
    }

    /// The latest begin that was not on `clock`.
    pub(crate) fn on_another_clock(&self, clock: u32) -> Option<(i64, u32)> {
        self.0.into_iter().flatten().find(|&(_, sender)| sender != clock)
    }

    fn encode(&self, words: &mut Vec<u64>) {
        for slot in self.0 {
            let (time, clock) = slot.unwrap_or((i64::MIN, u32::MAX));
            words.extend([time as u64, u64::from(clock)]);
        }
    }

    fn decode(words: &[u64]) -> LatestBegins {
        let mut latest = LatestBegins::default();
        for (slot, words) in latest.0.iter_mut().zip(words.chunks_exact(2)) {
            *slot = (words[1] != u64::from(u32::MAX)).then_some((words[0] as i64, words[1] as u32));
        }
        latest
    }
}

/// Begins that one thread has looked at before another has started. Chosen by hand: for fewer, starting a thread costs more than it saves.
const ALONE: usize = 1 << 15;

/// Those of all instances of a communicator.
#[derive(Debug, Clone, Default)]
pub struct Begins {
    /// Per instance, and of an inter-communicator per instance and group: of all logical senders.
    all: Vec<LatestBegins>,
    /// By prefix instance and member: its own, and once all are known of all members up to it.
    prefix: BTreeMap<InstanceIndex, BTreeMap<CommRank, LatestBegins>>,
}

impl OfInstances for Begins {
    /// The latest of every instance, number of prefix instances, and for each which one, the number of its members, and theirs.
    fn encode(&self, words: &mut Vec<u64>) {
        self.all.iter().for_each(|latest| latest.encode(words));
        words.push(self.prefix.len() as u64);
        for (&instance, members) in &self.prefix {
            words.extend([u64::from(instance.0), members.len() as u64]);
            for (&rank, latest) in members {
                words.push(u64::from(rank.0));
                latest.encode(words);
            }
        }
    }

    fn merge<'w>(&mut self, words: &'w [u64]) -> &'w [u64] {
        const WORDS: usize = 4;
        let (all, words) = words.split_at(self.all.len() * WORDS);
        for (latest, words) in self.all.iter_mut().zip(all.chunks_exact(WORDS)) {
            latest.merge(LatestBegins::decode(words));
        }
        let Some((&count, mut words)) = words.split_first() else { return words };
        for _ in 0..count {
            if let [instance, length, tail @ ..] = words {
                let (members, rest) = tail.split_at(*length as usize * (1 + WORDS));
                let own = members
                    .chunks_exact(1 + WORDS)
                    .map(|words| (CommRank(words[0] as u32), LatestBegins::decode(&words[1..])));
                self.prefix.entry(InstanceIndex(*instance as u32)).or_default().extend(own);
                words = rest;
            }
        }
        words
    }
}

impl Begins {
    /// What a receiver with this rank in the communicator waited for.
    pub(crate) fn before(&self, comm: &CollectiveComm, instance: InstanceIndex, rank: CommRank) -> LatestBegins {
        // Few are, and whether one is need not be looked up.
        if comm.instances[instance].class != CollectiveClass::Prefix {
            return self.all[comm.slot(instance, comm.group_before(rank))];
        }
        self.of_slot(comm.slot(instance, comm.group_before(rank)), instance, rank)
    }

    fn of_slot(&self, slot: Slot, instance: InstanceIndex, rank: CommRank) -> LatestBegins {
        match self.prefix.get(&instance) {
            Some(members) => members.range(..rank).next_back().map(|(_, latest)| *latest).unwrap_or_default(),
            None => self.all[slot],
        }
    }

    /// What the members hosted here contribute.
    fn of_members(workers: Workers, comm: &CollectiveComm, times: &[VisitedTimes<'_>], clocks: &[u32]) -> Begins {
        let instances = comm.instances.len();
        let shares = if instances * comm.members.len() < ALONE { 1 } else { workers.threads() };
        let parts = workers.map(shares, |share| {
            let [from, to] = [share, share + 1].map(|share| instances * share / shares);
            Begins::of_some(comm, from..to, times, clocks)
        });
        let mut parts = parts.into_iter();
        let mut begins = parts.next().unwrap_or_default();
        for part in parts {
            begins.all.extend(part.all);
            begins.prefix.extend(part.prefix);
        }
        begins
    }

    /// The same to some instances.
    fn of_some(comm: &CollectiveComm, some: Range<usize>, times: &[VisitedTimes<'_>], clocks: &[u32]) -> Begins {
        let groups = comm.groups();
        let mut begins = Begins { all: vec![LatestBegins::default(); some.len() * groups], prefix: BTreeMap::new() };
        let first = some.start * groups;
        for member in &comm.members {
            let clock = clocks[comm.begun_on(member.rank)];
            let (group, times) = (comm.group_of(member.rank), times[member.timeline]);
            for (k, instance) in comm.numbered().skip(some.start).take(some.len()) {
                if !member.sends[k] || instance.class == CollectiveClass::Unconstrained {
                    continue;
                }
                let begin = (times.at(member.begins.at(k.place())), clock);
                if instance.class == CollectiveClass::Prefix {
                    let own = LatestBegins([Some(begin), None]);
                    begins.prefix.entry(k).or_default().insert(member.rank, own);
                } else {
                    begins.all[comm.slot(k, group).0 as usize - first].add(begin);
                }
            }
        }
        begins
    }

    /// From the begins of members to those of all up to them.
    fn accumulate(&mut self) {
        for members in self.prefix.values_mut() {
            let mut latest = LatestBegins::default();
            for own in members.values_mut() {
                latest.merge(*own);
                *own = latest;
            }
        }
    }

    /// Those of all communicators with members here, under the `times` of the visited events of the hosted timelines. Contributions meet at
    /// the communicator's home. `clocks` has the clock of every timeline of the trace. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn meet(
        transport: &mut dyn Transport,
        workers: Workers,
        program: &Program,
        times: &[VisitedTimes<'_>],
        clocks: &[u32],
    ) -> Result<Vec<Begins>> {
        let comms = &program.collectives.comms;
        let mut all: Vec<Begins> = comms.iter().map(|comm| Begins::of_members(workers, comm, times, clocks)).collect();
        // What a host said itself comes back to it, and changes nothing.
        homes::meet(transport, program, &mut all)?;
        all.iter_mut().for_each(Begins::accumulate);
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_latest_of_every_other_clock_is_known(begins in prop::collection::vec((-9i64..9, 0u32..4), 0..12), cut in 0usize..12) {
            let collect = |part: &[(i64, u32)]| {
                let mut latest = LatestBegins::default();
                part.iter().for_each(|&begin| latest.merge(LatestBegins([Some(begin), None])));
                latest
            };
            let cut = cut.min(begins.len());
            let mut merged = collect(&begins[cut..]);
            let mut words = Vec::new();
            collect(&begins[..cut]).encode(&mut words);
            merged.merge(LatestBegins::decode(&words));
            for clock in 0..4 {
                let expected = begins.iter().filter(|begin| begin.1 != clock).max().copied();
                prop_assert_eq!(merged.on_another_clock(clock), expected);
            }
        }

        #[test]
        fn each_member_of_a_prefix_operation_waits_for_those_before_it(
            begins in prop::collection::btree_map(0u32..9, (-9i64..9, 0u32..3), 0..9), cut in 0u32..9, rank in 0u32..10
        ) {
            let collect = |part: &dyn Fn(u32) -> bool| {
                let members = begins.iter().filter(|(rank, _)| part(**rank));
                let members = members.map(|(&rank, &begin)| (CommRank(rank), LatestBegins([Some(begin), None]))).collect();
                Begins { all: vec![LatestBegins::default(); 2], prefix: BTreeMap::from([(InstanceIndex(1), members)]) }
            };
            // Two hosts.
            let mut merged = collect(&|rank| rank < cut);
            let mut words = Vec::new();
            collect(&|rank| rank >= cut).encode(&mut words);
            words.push(99);
            prop_assert_eq!(merged.merge(&words), &[99][..]);
            merged.accumulate();
            for clock in 0..3 {
                let expected = begins.range(..rank).map(|(_, begin)| *begin).filter(|begin| begin.1 != clock).max();
                prop_assert_eq!(merged.of_slot(Slot(1), InstanceIndex(1), CommRank(rank)).on_another_clock(clock), expected);
                prop_assert_eq!(merged.of_slot(Slot(0), InstanceIndex(0), CommRank(rank)).on_another_clock(clock), None);
            }
        }
    }
}
