//! Collective operations of an in-process world: each member contributes to a round and waits for those it needs.

use crate::comm::ReduceOp;
use crate::comm::local::departures::{Departures, departed, lock, wait};
use clc_trace::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// What a round does; all members have to say the same. Roots are ranks in the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Everybody waits for everybody.
    Barrier,
    /// Everybody gets the combination.
    AllReduce(ReduceOp),
    /// Everybody gets the two largest.
    AllReduceTop,
    /// The root gets the two largest.
    ReduceTop(usize),
    /// Everybody gets what the root has.
    Broadcast(usize),
    /// The root gets everything.
    Gather(usize),
    /// Everybody gets everything.
    AllGather,
    /// Everybody gets the combination of the lower ranks.
    Exscan,
}

/// Whose contributions a member needs before it can go on.
enum NeededMembers {
    Nobody,
    Everybody,
    Only(usize),
    Below(usize),
}

impl Operation {
    /// As MPI allows: roots that only give, and others that only give to the root, do not wait.
    fn needs(self, member: usize) -> NeededMembers {
        match self {
            Operation::Broadcast(root) if root == member => NeededMembers::Nobody,
            Operation::Broadcast(root) => NeededMembers::Only(root),
            Operation::ReduceTop(root) | Operation::Gather(root) if root != member => NeededMembers::Nobody,
            Operation::Exscan => NeededMembers::Below(member),
            _ => NeededMembers::Everybody,
        }
    }
}

/// What a member gives.
#[derive(Debug, Clone)]
pub(super) enum Payload {
    /// Numbers.
    Words(Arc<[i64]>),
    /// Bytes.
    Bytes(Arc<[u8]>),
}

impl Payload {
    /// The numbers; none if these are bytes.
    pub(super) fn words(&self) -> &[i64] {
        match self {
            Payload::Words(words) => words,
            Payload::Bytes(_) => &[],
        }
    }

    /// The bytes; none if these are numbers.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Payload::Bytes(bytes) => bytes,
            Payload::Words(_) => &[],
        }
    }
}

/// One operation under way.
#[derive(Debug)]
pub(super) struct Round {
    operation: Operation,
    given: Vec<Option<Payload>>,
    arrived: usize,
    /// Contributions without a gap from rank 0 on.
    prefix: usize,
    left: usize,
    combined: Option<Arc<[i64]>>,
}

impl Round {
    /// What has been given so far, by rank in the group.
    pub(super) fn given(&self) -> impl Iterator<Item = &Payload> {
        self.given.iter().flatten()
    }

    /// The contribution of one member.
    pub(super) fn of(&self, member: usize) -> Option<&Payload> {
        self.given.get(member)?.as_ref()
    }

    /// The combination of all contributions, made by the first who asks.
    pub(super) fn combined(&mut self, combine: impl FnOnce(&Round) -> Vec<i64>) -> Arc<[i64]> {
        if let Some(combined) = &self.combined {
            return combined.clone();
        }
        let combined: Arc<[i64]> = combine(self).into();
        self.combined = Some(combined.clone());
        combined
    }

    fn missing(&self, needs: &NeededMembers) -> std::ops::Range<usize> {
        match *needs {
            NeededMembers::Nobody => 0..0,
            NeededMembers::Everybody if self.arrived == self.given.len() => 0..0,
            NeededMembers::Everybody => self.prefix..self.given.len(),
            NeededMembers::Only(member) if self.of(member).is_some() => 0..0,
            NeededMembers::Only(member) => member..member + 1,
            NeededMembers::Below(member) => self.prefix.min(member)..member,
        }
    }
}

/// The collective operations of a group, one round each.
#[derive(Debug)]
pub(super) struct CollectiveRounds {
    members: Vec<usize>,
    rounds: Mutex<HashMap<u64, Round>>,
    changed: Condvar,
}

impl CollectiveRounds {
    /// Of these ranks of the world, in the order of the group.
    pub(super) fn new(members: Vec<usize>) -> CollectiveRounds {
        CollectiveRounds { members, rounds: Mutex::default(), changed: Condvar::new() }
    }

    /// Number of members.
    pub(super) fn size(&self) -> usize {
        self.members.len()
    }

    /// Contributes to a round, without waiting.
    ///
    /// # Errors
    /// Another member takes this round for another operation.
    pub(super) fn give(&self, round: u64, member: usize, operation: Operation, payload: Payload) -> Result<()> {
        let size = self.size();
        if let Operation::Broadcast(root) | Operation::Gather(root) | Operation::ReduceTop(root) = operation
            && root >= size
        {
            return Err(Error::new(format!("rank {root} is not a member of a group of {size}")));
        }
        let mut rounds = lock(&self.rounds);
        let round = rounds.entry(round).or_insert_with(|| Round {
            operation,
            given: vec![None; size],
            arrived: 0,
            prefix: 0,
            left: 0,
            combined: None,
        });
        if round.operation != operation {
            let other = round.operation;
            return Err(Error::new(format!("analysis ranks disagree: one is in {operation:?}, another in {other:?}")));
        }
        round.given[member] = Some(payload);
        round.arrived += 1;
        let before = round.prefix;
        while round.given.get(round.prefix).is_some_and(Option::is_some) {
            round.prefix += 1;
        }
        let someone_goes_on = round.arrived == size
            || operation == Operation::Broadcast(member)
            || (operation == Operation::Exscan && round.prefix > before);
        if someone_goes_on {
            self.changed.notify_all();
        }
        Ok(())
    }

    fn taken<T>(rounds: &mut HashMap<u64, Round>, number: u64, take: impl FnOnce(&mut Round) -> T) -> Option<T> {
        let round = rounds.get_mut(&number)?;
        let value = take(round);
        round.left += 1;
        if round.left == round.given.len() {
            rounds.remove(&number);
        }
        Some(value)
    }

    /// The outcome of a round that `member` has contributed to, if what it needs is there; with `until`, waits for it
    /// until then, with `Some(None)` as long as it takes.
    ///
    /// # Errors
    /// A rank that is needed has left, or any has panicked.
    pub(super) fn take<T>(
        &self,
        departures: &Departures,
        number: u64,
        member: usize,
        until: Option<Option<Instant>>,
        take: impl FnOnce(&mut Round) -> T,
    ) -> Result<Option<T>> {
        let mut rounds = lock(&self.rounds);
        loop {
            let Some(round) = rounds.get_mut(&number) else {
                return Err(Error::new("an operation was awaited before it was started"));
            };
            let missing = round.missing(&round.operation.needs(member));
            if missing.is_empty() {
                return Ok(Self::taken(&mut rounds, number, take));
            }
            departures.check()?;
            let absent = missing.filter(|&rank| round.of(rank).is_none()).filter_map(|rank| self.members.get(rank));
            if let Some(rank) = departures.first_of(absent.copied()) {
                return Err(departed(rank));
            }
            rounds = match until {
                None => return Ok(None),
                Some(None) => wait(&self.changed, rounds),
                Some(Some(deadline)) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    let waited = self.changed.wait_timeout(rounds, left);
                    waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
                }
            };
        }
    }

    /// Makes all who wait look again.
    pub(super) fn wake(&self) {
        drop(lock(&self.rounds));
        self.changed.notify_all();
    }
}
