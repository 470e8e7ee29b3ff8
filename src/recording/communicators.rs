//! Which communicators of different processes are the same one.
//!
//! The recorder does not let processes agree on a name for a communicator: that would cost messages, and a killed process would have none. Instead,
//! a communicator is told by how it was made: MPI requires that all members of a communicator create others from it in the same order,
//! so its own identity, the number of the call and the first member of the new one are the same in all processes. What is not created by all members of
//! a communicator is told by its members, its tag, and how many of them the same members have created with that before.

use crate::recording::raw::format::calls::Effect;
use crate::recording::raw::records::NewComm;
use clc_trace::{CommId, MpiRank};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How a communicator was made: equal for all its members.
pub(super) type Identity = Arc<[u64]>;

/// Members of a communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Members {
    /// In order of their ranks.
    Intra(Arc<[MpiRank]>),
    /// Both groups, first the one whose first member comes first in the application.
    Inter(Arc<[MpiRank]>, Arc<[MpiRank]>),
}

/// A communicator as a process knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JoinedCommunicator {
    /// How it was made.
    pub identity: Identity,
    /// Rank of the process in it.
    pub rank: u32,
}

/// First numbers of identities.
const WORLD: u64 = 0;
const SELF: u64 = 1;
const CHILD: u64 = 2;
const GROUP: u64 = 3;
const INTER: u64 = 4;

/// Identity of `MPI_COMM_WORLD`.
pub(super) fn world() -> Identity {
    Arc::from([WORLD])
}

/// Identity of `MPI_COMM_SELF`.
pub(super) fn own() -> Identity {
    Arc::from([SELF])
}

/// A call that makes a communicator and has begun.
#[derive(Debug, Clone)]
pub(super) struct Making {
    effect: Effect,
    parent: Option<Identity>,
    number: u64,
    /// Tells apart those that threads make at the same time.
    tag: i64,
}

/// The communicators of one process at a moment.
#[derive(Debug)]
pub(super) struct Communicators {
    by_handle: HashMap<u64, JoinedCommunicator>,
    /// How many have been made of, or by, what the key says.
    made: HashMap<Identity, u64>,
}

impl Communicators {
    /// At the beginning: the handles of the predefined ones.
    pub(super) fn new(world_handle: u64, own_handle: u64, rank: u32) -> Communicators {
        let predefined = [
            (world_handle, JoinedCommunicator { identity: world(), rank }),
            (own_handle, JoinedCommunicator { identity: own(), rank: 0 }),
        ];
        Communicators { by_handle: predefined.into_iter().collect(), made: HashMap::new() }
    }

    /// The one with this handle, if it is known.
    pub(super) fn get(&self, handle: u64) -> Option<&JoinedCommunicator> {
        self.by_handle.get(&handle)
    }

    fn count(&mut self, of: &Identity) -> u64 {
        let count = self.made.entry(Arc::clone(of)).or_insert(0);
        *count += 1;
        *count
    }

    /// A call begins that may make one from the one with this handle, with a tag, or 0.
    pub(super) fn begin(&mut self, effect: Effect, handle: u64, tag: i64) -> Making {
        let parent = self.get(handle).map(|known| Arc::clone(&known.identity));
        let collective = matches!(effect, Effect::CommCreate | Effect::CommIdup | Effect::IntercommMerge);
        let number = parent.as_ref().filter(|_| collective).map(|parent| self.count(parent)).unwrap_or(0);
        Making { effect, parent, number, tag }
    }

    /// The process has become a member of one. Returns its identity, and its members if they are listed; none if it cannot be told.
    pub(super) fn add(&mut self, making: &Making, new: NewComm) -> Option<(Identity, Option<Members>)> {
        let mut groups: Vec<Vec<MpiRank>> = vec![new.members];
        groups.extend(new.remote);
        let first = |group: &Vec<MpiRank>| group.first().copied().unwrap_or(MpiRank(u32::MAX));
        groups.sort_by_key(first);
        let inter = groups.len() > 1;
        let listed = groups.iter().all(|group| !group.is_empty());
        let alone = matches!(making.effect, Effect::CommCreateGroup | Effect::IntercommCreate);
        let mut identity: Vec<u64> = Vec::new();
        if alone {
            identity.push(if inter { INTER } else { GROUP });
            for group in &groups {
                identity.push(group.len() as u64);
                identity.extend(group.iter().map(|rank| u64::from(rank.0)));
            }
            identity.push(making.tag as u64);
            let number = self.count(&Arc::from(identity.as_slice()));
            identity.push(number);
        } else {
            identity.push(CHILD);
            identity.extend(making.parent.as_ref()?.iter());
            identity.push(making.number);
            let leader = if inter { groups.first().map(first) } else { Some(new.leader) };
            identity.push(u64::from(leader.map_or(u32::MAX, |rank| rank.0)));
        }
        let identity: Identity = Arc::from(identity);
        let mut groups = groups.into_iter().map(Arc::<[MpiRank]>::from);
        let members = match (groups.next(), groups.next()) {
            (Some(one), Some(other)) => Some(Members::Inter(one, other)),
            (Some(one), None) => Some(Members::Intra(one)).filter(|_| listed),
            _ => None,
        };
        self.by_handle.insert(new.handle, JoinedCommunicator { identity: Arc::clone(&identity), rank: new.rank });
        Some((identity, members))
    }

    /// The one with this handle is freed, if it is still the one that the call was given.
    pub(super) fn remove(&mut self, handle: u64, identity: &Identity) {
        if self.get(handle).is_some_and(|known| known.identity == *identity) {
            self.by_handle.remove(&handle);
        }
    }
}

/// All communicators of a recording.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    /// Members where some process has listed them.
    pub members: BTreeMap<Identity, Option<Members>>,
    names: HashMap<Identity, String>,
    ids: HashMap<Identity, CommId>,
}

impl Catalogue {
    /// Some process is a member.
    pub(super) fn add(&mut self, identity: Identity, members: Option<Members>, size: u32) {
        // Ranks outside of the application have no name here.
        let valid = |group: &Arc<[MpiRank]>| group.iter().all(|rank| rank.0 < size);
        let members = members.filter(|members| match members {
            Members::Intra(group) => valid(group),
            Members::Inter(one, other) => valid(one) && valid(other),
        });
        let known = self.members.entry(identity).or_insert(None);
        if known.is_none() {
            *known = members;
        }
    }

    /// A process gives it a name: the first one does.
    pub(super) fn give_name(&mut self, identity: &Identity, name: &str) {
        if !name.is_empty() {
            self.names.entry(Arc::clone(identity)).or_insert_with(|| name.to_owned());
        }
    }

    /// The name that the program has given it.
    pub(super) fn name(&self, identity: &Identity) -> Option<&str> {
        self.names.get(identity).map(String::as_str)
    }

    /// Numbers them: 0 is the world, 1 the process itself, the others follow in the order of their identities.
    pub(super) fn number(&mut self) {
        let made = self.members.iter().filter(|(_, members)| members.is_some()).map(|(identity, _)| identity);
        let all = [world(), own()].into_iter().chain(made.cloned());
        self.ids = all.zip(0..).map(|(identity, id)| (identity, CommId(id))).collect();
    }

    /// Number of a communicator; none if its members are not known.
    pub(super) fn id(&self, identity: &Identity) -> Option<CommId> {
        self.ids.get(identity).copied()
    }

    /// Whether it is an inter-communicator.
    pub(super) fn is_inter(&self, identity: &Identity) -> bool {
        matches!(self.members.get(identity), Some(Some(Members::Inter(..))))
    }

    /// How many processes exchange data in a collective operation on it.
    pub(super) fn size(&self, identity: &Identity, world_size: u32) -> u64 {
        match self.members.get(identity) {
            Some(Some(Members::Intra(group))) => group.len() as u64,
            Some(Some(Members::Inter(one, other))) => one.len().max(other.len()) as u64,
            _ if identity[..] == [WORLD] => u64::from(world_size),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(numbers: &[u32]) -> Vec<MpiRank> {
        numbers.iter().copied().map(MpiRank).collect()
    }

    fn new(handle: u64, rank: u32, members: &[u32], leader: u32) -> NewComm {
        NewComm { handle, rank, members: ranks(members), leader: MpiRank(leader), remote: None }
    }

    #[test]
    fn members_agree_on_a_split_whatever_their_handles_are() {
        // Ranks 0 and 2 get one communicator, rank 1 another one; then all duplicate the world.
        let made = |rank: u32, leader: u32, handles: [u64; 2]| {
            let mut communicators = Communicators::new(100, 101, rank);
            let making = communicators.begin(Effect::CommCreate, 100, 0);
            let split = communicators.add(&making, new(handles[0], rank / 2, &[], leader)).unwrap().0;
            let making = communicators.begin(Effect::CommCreate, 100, 0);
            let duplicate = communicators.add(&making, new(handles[1], rank, &[], 0)).unwrap().0;
            (split, duplicate)
        };
        let (zero, one, two) = (made(0, 0, [7, 8]), made(1, 1, [9, 7]), made(2, 0, [8, 7]));
        assert_eq!(zero, two);
        assert_ne!(zero.0, one.0);
        assert_eq!(zero.1, one.1);
    }

    #[test]
    fn a_freed_handle_can_be_used_again() {
        let mut communicators = Communicators::new(100, 101, 0);
        let mut identities = Vec::new();
        for _ in 0..2 {
            let making = communicators.begin(Effect::CommCreate, 100, 0);
            let identity = communicators.add(&making, new(5, 0, &[0, 1], 0)).unwrap().0;
            assert_eq!(communicators.get(5).map(|known| &known.identity), Some(&identity));
            communicators.remove(5, &identity);
            assert_eq!(communicators.get(5), None);
            identities.push(identity);
        }
        assert_ne!(identities[0], identities[1]);
    }

    #[test]
    fn both_groups_call_an_inter_communicator_the_same() {
        let side = |own: &[u32], other: &[u32]| {
            let mut communicators = Communicators::new(100, 101, own[0]);
            let making = communicators.begin(Effect::IntercommCreate, 100, 0);
            let new = NewComm { remote: Some(ranks(other)), ..new(5, 0, own, own[0]) };
            communicators.add(&making, new).unwrap()
        };
        assert_eq!(side(&[0, 2], &[1, 3]), side(&[1, 3], &[0, 2]));
        assert_ne!(side(&[0, 2], &[1, 3]), side(&[0, 3], &[1, 2]));
    }
}
