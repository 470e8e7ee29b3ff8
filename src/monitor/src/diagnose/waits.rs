//! Who waits for whom.

use super::Snapshot;
use super::windows::{self, Missing, RankStates};
use super::words::Comms;
use crate::state::layout::{ANY, NOBODY};
use crate::state::{Life, Operation, Phase, RankState};
use std::collections::{BTreeMap, BTreeSet};

/// How sure it is that a rank cannot go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// It looks for something again and again, and may do other things in between; or its target may not be needed at all.
    #[default]
    Looks,
    /// Some of those that it waits for may have done their part.
    Partial,
    /// It needs all of them.
    Certain,
}

/// For whom a rank waits.
#[derive(Debug, Clone, Default)]
pub(super) struct RankWait {
    /// For all of them, as far as it is known. Ranks of which no state is known may be among them.
    pub on: BTreeSet<u32>,
    /// How sure that is.
    pub strength: Strength,
    /// For a message of anybody.
    pub anybody: bool,
    /// What is missing of those that it waits for, in an epoch of a window.
    pub epoch: Option<Missing>,
    /// Since when: seconds since 1970.
    pub since: f64,
}

/// Who waits for whom in a snapshot.
#[derive(Debug)]
pub(super) struct WaitGraph<'a> {
    /// What is known of each rank.
    pub states: BTreeMap<u32, &'a RankState>,
    /// Ranks that wait.
    pub waits: BTreeMap<u32, RankWait>,
    /// Communicators.
    pub comms: Comms,
    /// Number of ranks of the job.
    pub size: u32,
}

impl<'a> WaitGraph<'a> {
    /// Of a snapshot.
    pub(super) fn new(now: &'a Snapshot) -> WaitGraph<'a> {
        let states: BTreeMap<u32, &RankState> =
            now.ranks.iter().filter_map(|state| Some((state.rank?, state))).collect();
        let silent = now.silent.iter().flat_map(|node| node.ranks.iter().copied()).max();
        let size = now.ranks.iter().filter_map(|state| state.size).max().unwrap_or(0);
        let size = size.max(states.keys().copied().chain(silent).max().map_or(0, |last| last + 1));
        let mut all = WaitGraph { states, waits: BTreeMap::new(), comms: Comms::new(&now.ranks), size };
        let states: Vec<(u32, &RankState)> = all.states.iter().map(|(&rank, &state)| (rank, state)).collect();
        for (rank, state) in states {
            if state.life == Life::Runs
                && let Some(wait) = all.wait(rank, state)
            {
                all.waits.insert(rank, wait);
            }
        }
        all
    }

    fn wait(&self, rank: u32, state: &RankState) -> Option<RankWait> {
        let mut wait = RankWait { since: state.phase_since, strength: Strength::Certain, ..RankWait::default() };
        match state.phase {
            // Both wait for everybody who is not as far.
            Phase::Init => wait.on = self.not_yet(|phase| phase == Phase::Init || phase == Phase::Running),
            Phase::Finalizing => wait.on = self.not_yet(|phase| matches!(phase, Phase::Finalizing | Phase::Finalized)),
            Phase::Running => {
                let call = state.call.as_ref()?;
                wait.since = call.since;
                for operation in call.what.iter().chain(&call.waits) {
                    self.add(&mut wait, rank, operation);
                }
                match wait.epoch {
                    Some(Missing::Attention) => wait.strength = Strength::Looks,
                    Some(_) => wait.strength = Strength::Partial,
                    None => {}
                }
                // Of several that have not come some may be no neighbours.
                if wait.on.len() > 1 && call.what.iter().chain(&call.waits).any(Operation::of_neighbours) {
                    wait.strength = Strength::Partial;
                }
                // Of several requests some may be complete, and what one sends to in MPI_Sendrecv is not known.
                if call.requests > 1 || call.function.starts_with("MPI_Sendrecv") {
                    wait.strength = Strength::Partial;
                }
                if call.what.as_ref().is_some_and(Operation::only_looks) {
                    wait.strength = Strength::Looks;
                    // Who would take a message of anybody is not held up by somebody.
                    wait.on.remove(&rank);
                    return (!wait.on.is_empty()).then_some(wait);
                }
                // A call that returns at once does not wait, nor does one of which nothing is known; but who is in it for long is looked at.
                if wait.on.is_empty() && !wait.anybody && call.what.is_none() && call.waits.is_empty() {
                    return None;
                }
            }
            Phase::Finalized | Phase::Unwatched => return None,
        }
        wait.on.remove(&rank);
        Some(wait)
    }

    fn not_yet(&self, is_there: impl Fn(Phase) -> bool) -> BTreeSet<u32> {
        (0..self.size).filter(|rank| !self.states.get(rank).is_some_and(|state| is_there(state.phase))).collect()
    }

    fn add(&self, wait: &mut RankWait, rank: u32, operation: &Operation) {
        if operation.sequence > 0 {
            wait.on.extend(self.behind(rank, operation));
            return;
        }
        if operation.on_epoch() {
            if let Some((epoch, on)) =
                windows::waits_for(&RankStates { states: &self.states, comms: &self.comms }, rank, operation)
            {
                wait.epoch = Some(epoch);
                wait.on.extend(on);
            }
            return;
        }
        if operation.of_some_members() {
            let known = RankStates { states: &self.states, comms: &self.comms };
            wait.on
                .extend(operation.comm.into_iter().flat_map(|comm| known.outside(self.comms.all_members(comm), rank)));
            wait.epoch = (!wait.on.is_empty()).then_some(Missing::Attention);
            return;
        }
        match operation.peer {
            NOBODY => {}
            ANY => wait.anybody = true,
            peer => {
                let peer = self.comms.global(operation.comm, peer, rank);
                wait.on.extend(peer.filter(|&peer| !self.on_its_way(rank, operation, peer)));
            }
        }
    }

    /// For whom a rank waits because of this operation of its call.
    pub(super) fn needs(&self, rank: u32, operation: &Operation) -> BTreeSet<u32> {
        let mut wait = RankWait::default();
        self.add(&mut wait, rank, operation);
        wait.on.remove(&rank);
        wait.on
    }

    /// Whether the other side of a message is in the call that belongs to it: then it is on its way, and neither waits for the other one.
    fn on_its_way(&self, rank: u32, operation: &Operation, peer: u32) -> bool {
        let calls = self.states.get(&peer).and_then(|state| state.call.as_ref());
        let mut others = calls.into_iter().flat_map(|call| call.what.iter().chain(&call.waits));
        others.any(|other| {
            let to_it = other.peer == ANY || self.comms.global(other.comm, other.peer, peer) == Some(rank);
            let tags = other.tag == operation.tag || other.tag == ANY || operation.tag == ANY;
            other.sequence == 0
                && other.comm == operation.comm
                && other.receives() != operation.receives()
                && !other.function.contains("Sendrecv")
                && to_it
                && tags
        })
    }

    /// Members of a communicator that have not come to an operation, and that a rank needs there.
    fn behind(&self, rank: u32, operation: &Operation) -> Vec<u32> {
        let Some(comm) = operation.comm else { return Vec::new() };
        // Between two groups data go from one root to all of the other group, or back.
        let root = self.comms.global(operation.comm, operation.peer, rank);
        let needs = |other: u32| {
            !self.comms.is_inter(comm)
                || !operation.has_root()
                || root.map_or_else(|| self.comms.apart(comm, rank, other), |root| root == other)
        };
        let members = self.states.iter().filter_map(|(&other, state)| {
            let membership = state.comms.iter().find(|membership| membership.comm == comm)?;
            (membership.sequence < operation.sequence && needs(other)).then_some(other)
        });
        let mut behind: Vec<u32> = members.collect();
        // Who is not known at all has not come either; of the whole job one knows who that is.
        if comm == crate::state::layout::WORLD {
            behind.extend((0..self.size).filter(|rank| !self.states.contains_key(rank)));
        }
        behind
    }

    /// All for whom a rank waits in the end, over others that wait themselves; waits of this strength at least.
    pub(super) fn closure(&self, rank: u32, least: Strength) -> BTreeSet<u32> {
        let (mut seen, mut next) = (BTreeSet::new(), vec![rank]);
        while let Some(rank) = next.pop() {
            for &other in self.at_least(rank, least).iter().flat_map(|wait| &wait.on) {
                if seen.insert(other) {
                    next.push(other);
                }
            }
        }
        seen
    }

    fn at_least(&self, rank: u32, least: Strength) -> Option<&RankWait> {
        self.waits.get(&rank).filter(|wait| wait.strength >= least)
    }

    /// Whether a rank waits for nobody who is known: what others wait for ends there.
    pub(super) fn is_end(&self, rank: u32) -> bool {
        self.waits.get(&rank).is_none_or(|wait| wait.on.is_empty())
    }

    /// Ranks that wait in a cycle, each for the next one: the cycle with the least rank. Only waits of this strength at least.
    pub(super) fn cycle(&self, least: Strength) -> Option<Vec<u32>> {
        // The shortest way from a rank to itself.
        self.waits.keys().find_map(|&start| {
            let mut before: BTreeMap<u32, u32> = BTreeMap::new();
            let mut next = std::collections::VecDeque::from([start]);
            while let Some(rank) = next.pop_front() {
                for &other in self.at_least(rank, least).iter().flat_map(|wait| &wait.on) {
                    if other == start {
                        let mut cycle = vec![rank];
                        while let Some(&earlier) = cycle.last().and_then(|last| before.get(last)) {
                            cycle.push(earlier);
                        }
                        cycle.reverse();
                        return Some(cycle);
                    }
                    if !before.contains_key(&other) && self.waits.contains_key(&other) {
                        before.insert(other, rank);
                        next.push_back(other);
                    }
                }
            }
            None
        })
    }
}
