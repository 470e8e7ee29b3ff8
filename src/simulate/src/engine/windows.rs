//! One-sided communication: fences, epochs of groups, locks, puts. Records are those of Score-P.

use super::messages::RequestKind;
use super::ops::{Epoch, region};
use super::{BlockedOn, CollectiveCall, Engine, NO_ROOT, Transfer};
use crate::sink::EventSink;
use clc_trace::{
    CollectiveOp, Event, GroupId, MpiRank, Result, Root, WindowCollective, WindowGroup, WindowId, WindowLock,
    WindowTransfer,
};
use std::sync::Arc;

/// The window of all processes.
pub(crate) const WINDOW: WindowId = WindowId(0);
/// OTF2 `RmaSyncLevel`: processes, and memory.
const PROCESS: u32 = 1;
const MEMORY: u32 = 2;
/// Tags of what nobody records: a target has posted, an origin has completed.
const POSTED: u32 = u32::MAX - 1;
const COMPLETED: u32 = u32::MAX;

/// The processes before and after one in a chain, as a group that events can name.
pub(crate) fn group_of(rank: u32, ranks: u32) -> (GroupId, Arc<[MpiRank]>) {
    let members = [rank.checked_sub(1), Some(rank + 1).filter(|&next| next < ranks)];
    // Without a gap after the group of all locations, which is 0: otf2-print minds.
    (GroupId(rank + 1), members.into_iter().flatten().map(MpiRank).collect())
}

impl<S: EventSink + ?Sized> Engine<'_, S> {
    /// MPI_Win_fence of all processes.
    pub(super) fn run_fence(&mut self, rank: usize, first: bool) -> Result<bool> {
        let (op, rank_in_comm) = (CollectiveOp::BARRIER, rank as u32);
        let call = CollectiveCall { op, comm: 0, rank: rank_in_comm, root: NO_ROOT, sent: 0, received: 0 };
        if first {
            self.enter(rank, region::FENCE)?;
            self.emit(rank, Event::RmaCollectiveBegin)?;
        }
        if !self.meet_others(rank, &call, first) {
            return Ok(false);
        }
        let (level, root) = (PROCESS | MEMORY, Root::None);
        let ended = WindowCollective { op, level, window: WINDOW, root, sent: 0, received: 0 };
        self.emit(rank, Event::RmaCollectiveEnd(ended))?;
        self.leave(rank, region::FENCE)?;
        Ok(true)
    }

    /// MPI_Put, which returns when the data are on their way.
    pub(super) fn put(&mut self, rank: usize, target: u32, bytes: u64) -> Result<()> {
        self.enter(rank, region::PUT)?;
        let process = &mut self.processes[rank];
        let matching = process.next_request;
        process.next_request += 1;
        self.emit(rank, Event::RmaPut(WindowTransfer { window: WINDOW, remote: target, bytes, matching }))?;
        self.leave(rank, region::PUT)
    }

    /// A step of post, start, complete and wait with the neighbours in the chain. What the processes tell each other are messages that are not
    /// recorded; only complete and wait wait for them.
    pub(super) fn run_epoch(&mut self, rank: usize, step: Epoch, first: bool) -> Result<bool> {
        let (group, peers) = group_of(rank as u32, self.processes.len() as u32);
        let region = region::epoch(step);
        let opens = matches!(step, Epoch::Post | Epoch::Start);
        let sync = |level| Event::RmaGroupSync(WindowGroup { level, window: WINDOW, group });
        let hidden = |peer: MpiRank, tag| Transfer::world(peer.place(), tag, 0);
        if first {
            self.enter(rank, region)?;
            if opens {
                self.emit(rank, sync(PROCESS))?;
            }
            let awaited = match step {
                Epoch::Complete => Some(POSTED),
                Epoch::Wait => Some(COMPLETED),
                Epoch::Post | Epoch::Start => None,
            };
            for (&peer, tag) in awaited.iter().flat_map(|tag| peers.iter().map(move |peer| (peer, *tag))) {
                let from = hidden(peer, tag);
                let request = self.open(rank, RequestKind::Receive(from));
                self.post(rank, &from, request);
            }
        }
        let process = &mut self.processes[rank];
        if process.unresolved > 0 {
            process.waiting = BlockedOn::All;
            return Ok(false);
        }
        let complete = process.requests.iter().map(|request| request.complete).max();
        process.now = process.now.max(complete.unwrap_or(process.now));
        process.requests.clear();
        let told = match step {
            Epoch::Post => Some(POSTED),
            Epoch::Complete => Some(COMPLETED),
            Epoch::Start | Epoch::Wait => None,
        };
        for (&peer, tag) in told.iter().flat_map(|tag| peers.iter().map(move |peer| (peer, *tag))) {
            let request = self.open(rank, RequestKind::Send);
            self.send(rank, &hidden(peer, tag), request, false);
        }
        self.processes[rank].requests.clear();
        if !opens {
            self.emit(rank, sync(PROCESS | MEMORY))?;
        }
        self.leave(rank, region)?;
        Ok(true)
    }

    /// An exclusive lock of the window at a target that is free from `free` on, a put, and the release. Returns the true time from which on the
    /// lock is free again.
    pub(crate) fn locked_put(&mut self, rank: usize, target: u32, bytes: u64, free: i64) -> Result<i64> {
        let lock = |kind| WindowLock { window: WINDOW, remote: target, lock: 0, kind };
        let (own, other) = (self.processes[rank].node, self.processes[target as usize].node);
        self.enter(rank, region::LOCK)?;
        self.emit(rank, Event::RmaRequestLock(lock(0)))?;
        let process = &mut self.processes[rank];
        let there = process.now + self.network.delay(own, other, 0, &mut process.random);
        process.now = there.max(free) + self.network.delay(other, own, 0, &mut process.random);
        self.emit(rank, Event::RmaAcquireLock(lock(0)))?;
        self.leave(rank, region::LOCK)?;
        self.put(rank, target, bytes)?;
        self.enter(rank, region::UNLOCK)?;
        let process = &mut self.processes[rank];
        let released = process.now + self.network.delay(own, other, bytes, &mut process.random);
        process.now = released + self.network.delay(other, own, 0, &mut process.random);
        self.emit(rank, Event::RmaReleaseLock(lock(0)))?;
        self.leave(rank, region::UNLOCK)?;
        Ok(released)
    }
}
