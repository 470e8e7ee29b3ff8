//! What a process does on windows: collective operations, accesses, locks, and epochs with groups.

use super::Extractor;
use crate::matching::comm_index::CommIndex;
use crate::matching::extract::calls::SynchronisingCall;
use crate::matching::extracted::{GroupKey, LoneEnd, Participation};
use crate::matching::sync::EventCoordinates;
use clc_trace::{CollectiveOp, CommMembers, MpiRank, Result, WindowCollective, WindowGroup, WindowId, WindowLock};
use controlled_logical_clock::semantics::MemberRecord;

/// What a process has done on a window since its last fence.
#[derive(Debug, Default)]
pub(super) struct EpochSinceFence {
    /// One-sided operations that a fence completes.
    accesses: u64,
    /// Targets that it has locked.
    locked: Vec<u32>,
    /// Groups with which it has begun an epoch.
    groups: u32,
}

/// OTF2 `RmaSyncLevel`: memory is synchronised, too. Where the call is not known, an epoch with a group begins without that and ends with it.
const MEMORY: u32 = 2;

impl Extractor<'_> {
    pub(super) fn begin_window_collective(&mut self, at: EventCoordinates) -> Result<bool> {
        let begin = self.near(at)?;
        let before = self.open_window_begins.insert(at.location, begin);
        self.out.half_recorded.window_begins.extend(before);
        Ok(true)
    }

    pub(super) fn window_collective_end(&mut self, at: EventCoordinates, collective: &WindowCollective) -> Result<()> {
        let end = self.near(at)?;
        let begin = self.open_window_begins.remove(&at.location);
        let epoch = self.epochs.entry(collective.window).or_default();
        let fence = collective.op == CollectiveOp::BARRIER && collective.level != 0;
        // A fence ends the epoch, whatever else is wrong with it.
        let accesses = if fence { std::mem::take(&mut epoch.accesses) } else { 0 };
        let place = self.table.window(collective.window).and_then(|window| Some((window, self.process?)));
        let Some((window, process)) = place
            .filter(|(window, _)| !matches!(self.table.members(*window), CommMembers::NotMpi | CommMembers::Undefined))
        else {
            self.out.leftovers.foreign_windows += 1;
            return Ok(());
        };
        let op = match collective.op.on_window() {
            // One that does not synchronise processes.
            CollectiveOp::WIN_FENCE if !fence => CollectiveOp::UNKNOWN.on_window(),
            op => op,
        };
        let Some(begin) = begin else {
            self.lone_end(window, LoneEnd { event: end, op, immediate: false });
            return Ok(());
        };
        let (sent, received) = (collective.sent > 0, collective.received > 0);
        let part = MemberRecord { op, root: collective.root, sent, received, accessed: accesses > 0 };
        self.participate(process, window, Participation { begin, end, part })
    }

    /// A one-sided operation.
    pub(super) fn access(&mut self, window: WindowId) -> bool {
        let of_mpi =
            |index: CommIndex| !matches!(self.table.members(index), CommMembers::NotMpi | CommMembers::Undefined);
        if !self.table.window(window).is_some_and(of_mpi) {
            self.out.leftovers.foreign_accesses += 1;
            return false;
        }
        let epoch = self.epochs.entry(window).or_default();
        if !epoch.locked.is_empty() {
            self.out.leftovers.lock_accesses += 1;
        } else if epoch.groups > 0 {
            self.out.leftovers.group_accesses += 1;
        } else {
            epoch.accesses += 1;
            self.out.leftovers.fence_accesses += 1;
        }
        false
    }

    pub(super) fn lock(&mut self, lock: &WindowLock, acquired: bool) -> bool {
        let locked = &mut self.epochs.entry(lock.window).or_default().locked;
        let place = locked.iter().position(|&remote| remote == lock.remote);
        match place {
            None if acquired => locked.push(lock.remote),
            Some(place) if !acquired => drop(locked.swap_remove(place)),
            _ => {}
        }
        false
    }

    pub(super) fn group_sync(&mut self, at: EventCoordinates, sync: &WindowGroup) -> bool {
        let mut begins = sync.level & MEMORY == 0;
        if let Some(inside) = self.calls.and_then(|_| self.inside.get_mut(&at.location)) {
            inside.groups.push(*sync);
            // The call knows better than the level, which not every tracer tells alike.
            begins = match inside.call {
                SynchronisingCall::WinPost | SynchronisingCall::WinStart => true,
                SynchronisingCall::WinComplete | SynchronisingCall::WinWait => false,
                _ => begins,
            };
        }
        let epoch = self.epochs.entry(sync.window).or_default();
        match epoch.groups.checked_sub(1) {
            _ if begins => epoch.groups += 1,
            Some(left) => epoch.groups = left,
            // Its begin is missing: accesses may be those of this epoch.
            None => epoch.accesses = 0,
        }
        false
    }

    /// The orders of steps with `groups`: others wait for `entered`, and `left` waits for others (with whether it ends an epoch of a target).
    pub(super) fn steps(&mut self, groups: &[WindowGroup], entered: Option<u32>, left: Option<(u32, bool)>) {
        for sync in groups {
            let (Some(own), Some(window)) = (self.process, self.table.window(sync.window)) else { continue };
            let peers: Vec<MpiRank> = self.table.group(sync.group).unwrap_or_default().to_vec();
            for peer in peers.into_iter().filter(|&peer| peer != own) {
                let key = |completes: bool| GroupKey { peer, window, completes };
                if let Some(event) = entered {
                    // Complete tells a target what post has told the origins.
                    self.out.group_sends.entry(key(left.is_some())).or_default().push(event);
                }
                if let Some((event, completes)) = left {
                    self.out.group_receives.entry(key(completes)).or_default().push(event);
                }
            }
        }
    }
}
