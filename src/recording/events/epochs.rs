//! Events of one-sided communication, as Score-P writes them.
//!
//! A lock is taken for acquired when `MPI_Win_lock` returns, which an MPI library may put off until the first operation needs it. An operation is complete at its
//! target when the call that ends its epoch, or a flush, returns; at its origin at the same time, or when a local flush or its request says so earlier.

use crate::recording::events::ProcessEvents;
use crate::recording::events::on_window::OnWindow;
use crate::recording::extra::{Completion, Extra};
use crate::recording::raw::format::calls::Effect;
use crate::recording::windows::PendingAccess;
use clc_trace::{
    CollectiveOp, Event, MpiRank, Result, Root, WindowAtomic, WindowCollective, WindowGroup, WindowId, WindowLock,
    WindowTransfer,
};
use std::sync::Arc;

/// OTF2 `RmaSyncLevel`, flags.
const PROCESSES: u32 = 1;
const MEMORY: u32 = 2;
/// All processes of a window.
const EVERYBODY: u32 = u32::MAX;

impl ProcessEvents<'_, '_> {
    /// Number of a window; none if its communicator is not known.
    fn window(&mut self, handle: u64) -> Option<WindowId> {
        let id = self.windows.get_mut(handle).and_then(|window| self.shared.windows.id(&window.key));
        if id.is_none() {
            self.unplaced.on_unknown_windows += 1;
        }
        id
    }

    /// A call on a window begins.
    pub(super) fn enter_window(&mut self, thread: usize, time: u64, effect: Effect, call: &OnWindow) -> Result<()> {
        match (effect, call) {
            (Effect::WinCreate | Effect::WinAllocate | Effect::WinFree | Effect::WinFence, _) => {
                self.emit(thread, time, &Event::RmaCollectiveBegin)
            }
            (Effect::WinLock | Effect::WinLockAll, &OnWindow::Uses(handle, target, exclusive)) => {
                match self.lock(handle, effect, target, exclusive) {
                    Some(lock) => self.emit(thread, time, &Event::RmaRequestLock(lock)),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn lock(&mut self, handle: u64, effect: Effect, target: i64, exclusive: bool) -> Option<WindowLock> {
        let all = matches!(effect, Effect::WinLockAll | Effect::WinUnlockAll);
        let remote = if all { EVERYBODY } else { u32::try_from(target).ok()? };
        let kind = u8::from(!exclusive && matches!(effect, Effect::WinLock | Effect::WinLockAll));
        Some(WindowLock { window: self.window(handle)?, remote, lock: 0, kind })
    }

    /// It has ended; `happened` unless a test found that what it asks for has not.
    pub(super) fn leave_window(
        &mut self,
        thread: usize,
        time: u64,
        effect: Effect,
        call: &OnWindow,
        happened: bool,
    ) -> Result<()> {
        let collective = |op, level, window| {
            Event::RmaCollectiveEnd(WindowCollective { op, level, window, root: Root::None, sent: 0, received: 0 })
        };
        match (effect, call) {
            (Effect::WinCreate | Effect::WinAllocate, OnWindow::Makes(key, allocated)) => {
                let Some(window) = self.shared.windows.id(key) else { return Ok(()) };
                let op =
                    if *allocated { CollectiveOp::CREATE_HANDLE_AND_ALLOCATE } else { CollectiveOp::CREATE_HANDLE };
                self.extra(thread, time, Extra::WindowCreate(window))?;
                self.emit(thread, time, &collective(op, PROCESSES, window))
            }
            (Effect::WinFree, &OnWindow::Uses(handle, ..)) => {
                let Some(window) = self.window(handle) else { return Ok(()) };
                self.completed(thread, time, handle, window, None, true)?;
                let allocated = self.windows.remove(handle).is_some_and(|window| window.allocated);
                let op =
                    if allocated { CollectiveOp::DESTROY_HANDLE_AND_DEALLOCATE } else { CollectiveOp::DESTROY_HANDLE };
                self.extra(thread, time, Extra::WindowDestroy(window))?;
                self.emit(thread, time, &collective(op, PROCESSES, window))
            }
            (Effect::WinFence, &OnWindow::Uses(handle, ..)) => {
                let Some(window) = self.window(handle) else { return Ok(()) };
                self.completed(thread, time, handle, window, None, true)?;
                self.emit(thread, time, &collective(CollectiveOp::BARRIER, PROCESSES | MEMORY, window))
            }
            (Effect::WinLock | Effect::WinLockAll, &OnWindow::Uses(handle, target, exclusive)) => {
                match self.lock(handle, effect, target, exclusive) {
                    Some(lock) => self.emit(thread, time, &Event::RmaAcquireLock(lock)),
                    None => Ok(()),
                }
            }
            (Effect::WinUnlock | Effect::WinUnlockAll, &OnWindow::Uses(handle, target, _)) => {
                let Some(lock) = self.lock(handle, effect, target, false) else { return Ok(()) };
                let of = Some(lock.remote).filter(|&remote| remote != EVERYBODY);
                self.completed(thread, time, handle, lock.window, of, true)?;
                self.emit(thread, time, &Event::RmaReleaseLock(lock))
            }
            (
                Effect::WinFlush | Effect::WinFlushAll | Effect::WinFlushLocal | Effect::WinFlushLocalAll,
                &OnWindow::Uses(handle, target, _),
            ) => {
                let Some(window) = self.window(handle) else { return Ok(()) };
                let remote = matches!(effect, Effect::WinFlush | Effect::WinFlushAll);
                let all = matches!(effect, Effect::WinFlushAll | Effect::WinFlushLocalAll);
                match u32::try_from(target) {
                    _ if all => self.completed(thread, time, handle, window, None, remote),
                    Ok(target) => self.completed(thread, time, handle, window, Some(target), remote),
                    Err(_) => Ok(()),
                }
            }
            (Effect::WinStart | Effect::WinPost, OnWindow::Epoch(handle, group)) => {
                let Some(id) = self.window(*handle) else { return Ok(()) };
                if let Some(window) = self.windows.get_mut(*handle) {
                    let epoch = if effect == Effect::WinStart { &mut window.started } else { &mut window.posted };
                    *epoch = Some(Arc::clone(group));
                }
                self.group_sync(thread, time, id, PROCESSES, Some(group))
            }
            (Effect::WinComplete | Effect::WinWait | Effect::WinTest, &OnWindow::Uses(handle, ..)) if happened => {
                let Some(id) = self.window(handle) else { return Ok(()) };
                if effect == Effect::WinComplete {
                    self.completed(thread, time, handle, id, None, true)?;
                }
                let group = self.windows.get_mut(handle).and_then(|window| {
                    if effect == Effect::WinComplete { window.started.take() } else { window.posted.take() }
                });
                self.group_sync(thread, time, id, PROCESSES | MEMORY, group.as_ref())
            }
            _ => Ok(()),
        }
    }

    fn group_sync(
        &mut self,
        thread: usize,
        time: u64,
        window: WindowId,
        level: u32,
        group: Option<&Arc<[MpiRank]>>,
    ) -> Result<()> {
        match group.and_then(|group| self.shared.windows.group_id(group)) {
            Some(group) => self.emit(thread, time, &Event::RmaGroupSync(WindowGroup { level, window, group })),
            None => Ok(()),
        }
    }

    /// Operations on a target, or on all, are complete, here or (`remote`) there as well.
    fn completed(
        &mut self,
        thread: usize,
        time: u64,
        handle: u64,
        id: WindowId,
        target: Option<u32>,
        remote: bool,
    ) -> Result<()> {
        let Some(window) = self.windows.get_mut(handle) else { return Ok(()) };
        let (here, there) = window.complete(target, remote);
        for matching in here {
            self.emit(thread, time, &Event::RmaOpCompleteBlocking(id, matching))?;
        }
        for matching in there {
            self.extra(thread, time, Extra::Operation(Completion::Remote, id, matching))?;
        }
        Ok(())
    }

    /// A one-sided operation begins. Returns its window and by which its completion is found.
    pub(super) fn access(
        &mut self,
        thread: usize,
        time: u64,
        effect: Effect,
        (handle, target, sent, received): (u64, i64, u64, u64),
        request: bool,
    ) -> Result<Option<(WindowId, u64)>> {
        let Ok(remote) = u32::try_from(target) else { return Ok(None) };
        let Some(window) = self.window(handle) else { return Ok(None) };
        let matching = self.windows.new_matching();
        if let Some(window) = self.windows.get_mut(handle) {
            window.pending.push(PendingAccess { matching, target: remote, local: false, request });
        }
        let transfer = |bytes| WindowTransfer { window, remote, bytes, matching };
        // OTF2 `RmaAtomicType`.
        let atomic = |kind| WindowAtomic { window, remote, kind, sent, received, matching };
        let event = match effect {
            Effect::Put => Event::RmaPut(transfer(sent)),
            Effect::Get => Event::RmaGet(transfer(received)),
            Effect::Accumulate => Event::RmaAtomic(atomic(0)),
            Effect::CompareAndSwap => Event::RmaAtomic(atomic(3)),
            _ => Event::RmaAtomic(atomic(7)),
        };
        self.emit(thread, time, &event)?;
        Ok(Some((window, matching)))
    }
}
