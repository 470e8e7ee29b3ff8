//! For whom a rank waits in an epoch of a window: as far as the state tells who holds a lock, and which groups have come.

use super::words::Comms;
use crate::state::layout::NOBODY;
use crate::state::{EpochKind, Life, Operation, Phase, RankState, WindowEpoch};
use std::collections::{BTreeMap, BTreeSet};

/// What one who waits in an epoch of a window needs of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// That they give a lock back.
    Unlock,
    /// That they are in MPI, where its library does its part for others.
    Attention,
    /// `MPI_Win_post`.
    Post,
    /// `MPI_Win_complete`.
    Complete,
}

/// What is known of the ranks.
pub(super) struct RankStates<'a> {
    /// States by ranks.
    pub states: &'a BTreeMap<u32, &'a RankState>,
    /// Communicators.
    pub comms: &'a Comms,
}

/// What a rank needs in this call, and of whom; none if it waits for nobody who is known.
pub(super) fn waits_for(known: &RankStates, rank: u32, operation: &Operation) -> Option<(Missing, BTreeSet<u32>)> {
    let window = operation.comm?;
    let (missing, on) = match operation.function.strip_prefix("MPI_Win_")? {
        "start" | "complete" => (Missing::Post, known.not_posted(window, rank)),
        "wait" | "test" => (Missing::Complete, known.not_completed(window, rank)),
        "post" => return None,
        _ => match known.holders(window, rank, operation) {
            on if on.is_empty() => (Missing::Attention, known.elsewhere(rank, operation)),
            on => (Missing::Unlock, on),
        },
    };
    (!on.is_empty()).then_some((missing, on))
}

impl RankStates<'_> {
    fn epochs(&self, rank: u32, window: u64) -> impl Iterator<Item = &WindowEpoch> {
        let epochs = self.states.get(&rank).into_iter().flat_map(|state| &state.epochs);
        epochs.filter(move |epoch| epoch.window == window)
    }

    fn latest(&self, rank: u32, window: u64, kind: EpochKind) -> Option<&WindowEpoch> {
        self.epochs(rank, window).find(|epoch| epoch.kind == kind)
    }

    /// Of the targets of its group, those that have not let it in.
    fn not_posted(&self, window: u64, rank: u32) -> BTreeSet<u32> {
        let Some(own) = self.latest(rank, window, EpochKind::Access) else { return BTreeSet::new() };
        let lets_in = |epoch: &WindowEpoch| epoch.ended.is_none() && epoch.members.contains(&rank);
        let closed = |target: &u32| !self.latest(*target, window, EpochKind::Exposure).is_some_and(lets_in);
        own.members.iter().copied().filter(closed).collect()
    }

    /// Of those that it has let in, those that have not gone again: they are in, or have not come since.
    fn not_completed(&self, window: u64, rank: u32) -> BTreeSet<u32> {
        let Some(own) = self.latest(rank, window, EpochKind::Exposure) else { return BTreeSet::new() };
        let is_missing = |origin: &u32| match self.latest(*origin, window, EpochKind::Access) {
            None => true,
            Some(other) if other.members.contains(&rank) => other.ended.is_none_or(|ended| ended < own.since),
            // What it did before that is not known.
            Some(other) => other.since < own.since,
        };
        own.members.iter().copied().filter(is_missing).collect()
    }

    /// Who holds a lock that is in the way, and does not itself wait for one of the same part.
    fn holders(&self, window: u64, rank: u32, operation: &Operation) -> BTreeSet<u32> {
        let own = self.epochs(rank, window).find(|epoch| is_lock(epoch) && covers(epoch, operation.peer));
        let exclusive = if operation.function == "MPI_Win_lock" {
            operation.tag == 1
        } else {
            own.is_some_and(|own| own.kind == EpochKind::Exclusive)
        };
        let in_the_way = |epoch: &WindowEpoch| {
            is_lock(epoch) && covers(epoch, operation.peer) && (exclusive || epoch.kind == EpochKind::Exclusive)
        };
        let waits = |state: &RankState| {
            let what = state.call.as_ref().and_then(|call| call.what.as_ref());
            what.is_some_and(|what| {
                let same = what.peer == operation.peer || what.peer == NOBODY || operation.peer == NOBODY;
                what.on_epoch() && what.comm == Some(window) && same
            })
        };
        let others = self.states.iter().filter(|(other, state)| **other != rank && !waits(state));
        let holds = |other: u32| self.epochs(other, window).any(in_the_way);
        others.map(|(&other, _)| other).filter(|&other| holds(other)).collect()
    }

    /// The targets that are outside of MPI: of an operation on all parts of the window, any of its ranks may be one.
    fn elsewhere(&self, rank: u32, operation: &Operation) -> BTreeSet<u32> {
        let targets: Vec<u32> = match (operation.peer, operation.comm) {
            (NOBODY, Some(window)) => self.comms.all_members(window),
            _ => self.comms.global(operation.comm, operation.peer, rank).into_iter().collect(),
        };
        self.outside(targets, rank)
    }

    /// Those of these ranks that are outside of MPI, but for one.
    pub(super) fn outside(&self, ranks: Vec<u32>, own: u32) -> BTreeSet<u32> {
        let outside = |target: &u32| {
            self.states.get(target).is_some_and(|state| {
                state.phase == Phase::Running && state.call.is_none() || state.life == Life::Stopped
            })
        };
        ranks.into_iter().filter(|rank| *rank != own).filter(outside).collect()
    }
}

fn is_lock(epoch: &WindowEpoch) -> bool {
    epoch.ended.is_none() && matches!(epoch.kind, EpochKind::All | EpochKind::Shared | EpochKind::Exclusive)
}

/// Whether a lock is one of this part of the window, or of any if all are meant.
fn covers(epoch: &WindowEpoch, target: i32) -> bool {
    epoch.kind == EpochKind::All || target == NOBODY || epoch.target == target
}
