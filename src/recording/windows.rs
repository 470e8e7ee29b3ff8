//! Windows of one-sided communication: which ones of different processes are the same, and what is going on on them in one process.
//!
//! All members of a communicator make windows on it in the same order, so a window is told by the identity of its communicator and its number among those
//! made there.

use crate::recording::communicators::Identity;
use clc_trace::{GroupId, MpiRank, WindowId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A window: its communicator, and its number among those made on that.
pub(super) type WindowKey = (Identity, u64);

/// An operation that is not known to be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingAccess {
    /// By which its completion is found.
    pub matching: u64,
    /// Its target.
    pub target: u32,
    /// It is complete at its origin.
    pub local: bool,
    /// It has a request, which tells when it is complete at its origin.
    pub request: bool,
}

/// A window as a process knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessWindow {
    /// Which one it is.
    pub key: WindowKey,
    /// Its memory was allocated with it.
    pub allocated: bool,
    /// The group with which an epoch of an origin was started.
    pub started: Option<Arc<[MpiRank]>>,
    /// The group for which an epoch of a target was posted.
    pub posted: Option<Arc<[MpiRank]>>,
    /// Operations that are not known to be complete, the oldest first.
    pub pending: Vec<PendingAccess>,
}

/// The windows of one process at a moment.
#[derive(Debug, Default)]
pub(super) struct ProcessWindows {
    by_handle: HashMap<u64, ProcessWindow>,
    made: HashMap<Identity, u64>,
    matching: u64,
}

impl ProcessWindows {
    /// A call begins that makes one on a communicator.
    pub(super) fn begin(&mut self, comm: Option<Identity>) -> Option<WindowKey> {
        let comm = comm?;
        let number = self.made.entry(Arc::clone(&comm)).or_insert(0);
        *number += 1;
        Some((comm, *number))
    }

    /// It has this handle.
    pub(super) fn add(&mut self, handle: u64, key: WindowKey, allocated: bool) {
        let window = ProcessWindow { key, allocated, started: None, posted: None, pending: Vec::new() };
        self.by_handle.insert(handle, window);
    }

    /// The one with this handle, if it is known.
    pub(super) fn get_mut(&mut self, handle: u64) -> Option<&mut ProcessWindow> {
        self.by_handle.get_mut(&handle)
    }

    /// It is freed.
    pub(super) fn remove(&mut self, handle: u64) -> Option<ProcessWindow> {
        self.by_handle.remove(&handle)
    }

    /// A number by which the completion of an operation is found.
    pub(super) fn new_matching(&mut self) -> u64 {
        self.matching += 1;
        self.matching
    }
}

impl ProcessWindow {
    /// Operations on a target, or on all, are complete: here, or (`remote`) at the target as well, and forgotten then. Returns which have become so here,
    /// and which there.
    pub(super) fn complete(&mut self, target: Option<u32>, remote: bool) -> (Vec<u64>, Vec<u64>) {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        self.pending.retain_mut(|operation| {
            if target.is_some_and(|target| target != operation.target) {
                return true;
            }
            if !operation.local && !operation.request {
                operation.local = true;
                here.push(operation.matching);
            }
            if remote {
                there.push(operation.matching);
            }
            !remote
        });
        (here, there)
    }
}

/// All windows of a recording, and the groups that epochs on them name.
#[derive(Debug, Default)]
pub(super) struct WindowCatalogue {
    names: BTreeMap<WindowKey, String>,
    groups: BTreeSet<Arc<[MpiRank]>>,
    ids: HashMap<WindowKey, WindowId>,
    group_ids: HashMap<Arc<[MpiRank]>, GroupId>,
}

impl WindowCatalogue {
    /// Some process has a part of it.
    pub(super) fn add(&mut self, key: WindowKey) {
        self.names.entry(key).or_default();
    }

    /// A process gives it a name: the first one does.
    pub(super) fn name(&mut self, key: &WindowKey, name: &str) {
        if let Some(known) = self.names.get_mut(key).filter(|known| known.is_empty()) {
            name.clone_into(known);
        }
    }

    /// An epoch names this group.
    pub(super) fn group(&mut self, members: Arc<[MpiRank]>) {
        self.groups.insert(members);
    }

    /// Numbers them.
    pub(super) fn number(&mut self) {
        self.ids = self.names.keys().cloned().zip((0..).map(WindowId)).collect();
        // 0 is that of all processes.
        self.group_ids = self.groups.iter().cloned().zip((1..).map(GroupId)).collect();
    }

    /// Number of a window.
    pub(super) fn id(&self, key: &WindowKey) -> Option<WindowId> {
        self.ids.get(key).copied()
    }

    /// Number of a group.
    pub(super) fn group_id(&self, members: &Arc<[MpiRank]>) -> Option<GroupId> {
        self.group_ids.get(members).copied()
    }

    /// The windows with their communicators and names, in the order of their numbers.
    pub(super) fn windows(&self) -> impl Iterator<Item = (WindowId, &Identity, &str)> {
        self.names.iter().zip(0..).map(|(((comm, _), name), id)| (WindowId(id), comm, name.as_str()))
    }

    /// The groups, in the order of their numbers.
    pub(super) fn groups(&self) -> Vec<(GroupId, Arc<[MpiRank]>)> {
        (1..).map(GroupId).zip(self.groups.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::communicators::world;

    #[test]
    fn windows_of_a_communicator_are_told_by_their_order() {
        let made = |handles: [u64; 2]| {
            let mut windows = ProcessWindows::default();
            handles.map(|handle| {
                let key = windows.begin(Some(world())).unwrap();
                windows.add(handle, key.clone(), false);
                key
            })
        };
        assert_eq!(made([5, 7]), made([9, 5]));
    }

    #[test]
    fn operations_are_complete_once() {
        let mut windows = ProcessWindows::default();
        windows.add(5, (world(), 1), false);
        let window = windows.get_mut(5).unwrap();
        let operation = |matching, target, request| PendingAccess { matching, target, local: false, request };
        window.pending = vec![operation(1, 0, false), operation(2, 3, false), operation(3, 3, true)];
        assert_eq!(window.complete(Some(3), false), (vec![2], vec![]));
        assert_eq!(window.complete(None, true), (vec![1], vec![1, 2, 3]));
        assert_eq!(window.complete(None, true), (vec![], vec![]));
    }

    #[test]
    fn the_first_process_gives_a_window_its_name() {
        let mut catalogue = WindowCatalogue::default();
        catalogue.add((world(), 1));
        ["", "halo", "other"].into_iter().for_each(|name| catalogue.name(&(world(), 1), name));
        catalogue.number();
        let list: Vec<_> = catalogue.windows().map(|(id, _, name)| (id.0, name)).collect();
        assert_eq!(list, [(0, "halo")]);
    }
}
