//! The open requests of a process.
//!
//! A handle can belong to another request as soon as the one before is complete, and the recorder sees the completion a little later. So a
//! call that waits takes note of *which* requests its handles stand for when it begins: it claims them. Besides, both libraries have handles that any
//! number of requests share which are complete from the start; of those, the first one made is taken for the first one that is waited for.

use crate::recording::raw::records::{Contribution, Posted};
use clc_trace::{CommId, Message, WindowId};
use std::collections::{HashMap, HashSet, VecDeque};

/// Number of a request within a process; never used again.
pub(super) type Serial = u64;

/// What a request stands for. Ids are those of the events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RequestedOperation {
    /// Of no interest: nothing is sent or received, or the communicator is not known.
    Nothing,
    /// A send.
    Send(u64),
    /// A receive.
    Receive(u64, CommId),
    /// `MPI_Isendrecv`: a send, if there is one, and a receive; what is to be received, where its status does not tell.
    Both(Option<u64>, u64, CommId, Option<Posted>),
    /// A collective operation: function, what it was given.
    Collective(u64, usize, Contribution),
    /// A one-sided operation: its window, and by which its completion is found.
    Access(WindowId, u64),
    /// Made by `MPI_Send_init`; the id while it is active.
    PersistentSend(Message, Option<u64>),
    /// Made by `MPI_Recv_init`.
    PersistentReceive(CommId, Option<u64>),
    /// Made by a persistent collective operation.
    PersistentCollective(usize, Contribution, Option<u64>),
}

impl RequestedOperation {
    /// The id of the events, while it is open.
    pub(super) fn open(&self) -> Option<u64> {
        match *self {
            RequestedOperation::Nothing | RequestedOperation::Access(..) => None,
            RequestedOperation::Send(id)
            | RequestedOperation::Receive(id, _)
            | RequestedOperation::Both(_, id, ..)
            | RequestedOperation::Collective(id, ..) => Some(id),
            RequestedOperation::PersistentSend(_, id)
            | RequestedOperation::PersistentReceive(_, id)
            | RequestedOperation::PersistentCollective(_, _, id) => id,
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Open ones by handle, in the order of their creation.
    by_handle: HashMap<u64, VecDeque<Serial>>,
    all: HashMap<Serial, RequestedOperation>,
    claimed: HashSet<Serial>,
    next: Serial,
}

impl Requests {
    /// A new one with this handle, which no other has any more unless it is `shared`.
    pub(super) fn add(&mut self, handle: u64, request: RequestedOperation, shared: bool) {
        self.next += 1;
        let queue = self.by_handle.entry(handle).or_default();
        if !shared {
            // What had the handle before is complete, even if that was not recorded, unless somebody is about to say so.
            queue.retain(|serial| self.claimed.contains(serial) || self.all.remove(serial).is_none());
        }
        queue.push_back(self.next);
        self.all.insert(self.next, request);
    }

    /// The one that this handle stands for now. Nobody else gets it until it is released.
    pub(super) fn claim(&mut self, handle: u64) -> Option<Serial> {
        let queue = self.by_handle.get(&handle)?;
        let serial = queue.iter().copied().find(|serial| !self.claimed.contains(serial))?;
        self.claimed.insert(serial);
        Some(serial)
    }

    /// The call that has claimed it has ended.
    pub(super) fn release(&mut self, serial: Serial) {
        self.claimed.remove(&serial);
    }

    /// What it stands for.
    pub(super) fn get_mut(&mut self, serial: Serial) -> Option<&mut RequestedOperation> {
        self.all.get_mut(&serial)
    }

    /// It is complete: what it stood for. A persistent one stays, inactive.
    pub(super) fn complete(&mut self, handle: u64, serial: Serial) -> Option<RequestedOperation> {
        let request = *self.all.get(&serial)?;
        match self.all.get_mut(&serial) {
            Some(
                RequestedOperation::PersistentSend(_, id)
                | RequestedOperation::PersistentReceive(_, id)
                | RequestedOperation::PersistentCollective(_, _, id),
            ) => {
                *id = None;
            }
            _ => self.remove(handle, serial),
        }
        Some(request)
    }

    /// It does not exist any more.
    pub(super) fn remove(&mut self, handle: u64, serial: Serial) {
        self.all.remove(&serial);
        if let Some(queue) = self.by_handle.get_mut(&handle) {
            queue.retain(|&other| other != serial);
            if queue.is_empty() {
                self.by_handle.remove(&handle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_in_use_again_does_not_complete_the_new_request() {
        let mut requests = Requests::default();
        requests.add(7, RequestedOperation::Send(1), false);
        let waited_for = requests.claim(7).unwrap();
        requests.add(7, RequestedOperation::Send(2), false);
        let next = requests.claim(7).unwrap();
        assert_eq!(requests.complete(7, waited_for), Some(RequestedOperation::Send(1)));
        assert_eq!(requests.complete(7, next), Some(RequestedOperation::Send(2)));
        assert_eq!(requests.claim(7), None);
    }

    #[test]
    fn requests_that_share_a_handle_are_all_completed() {
        let mut requests = Requests::default();
        (1..=3).for_each(|id| requests.add(7, RequestedOperation::Send(id), true));
        let claims: Vec<Serial> = (0..2).filter_map(|_| requests.claim(7)).collect();
        let done: Vec<_> = claims.iter().map(|&serial| requests.complete(7, serial)).collect();
        assert_eq!(done, [Some(RequestedOperation::Send(1)), Some(RequestedOperation::Send(2))]);
        let last = requests.claim(7).unwrap();
        requests.release(last);
        assert_eq!(requests.claim(7), Some(last));
    }

    #[test]
    fn a_completion_that_was_not_recorded_does_not_shift_the_next() {
        let mut requests = Requests::default();
        requests.add(7, RequestedOperation::Send(1), false);
        requests.add(7, RequestedOperation::Send(2), false);
        let claimed = requests.claim(7).unwrap();
        assert_eq!(requests.complete(7, claimed), Some(RequestedOperation::Send(2)));
    }

    #[test]
    fn a_persistent_request_stays() {
        let message = Message { peer: 1, comm: CommId(0), tag: 0, length: 8 };
        let mut requests = Requests::default();
        requests.add(7, RequestedOperation::PersistentSend(message, Some(3)), false);
        let serial = requests.claim(7).unwrap();
        assert_eq!(requests.complete(7, serial).and_then(|request| request.open()), Some(3));
        assert_eq!(requests.complete(7, serial).and_then(|request| request.open()), None);
    }
}
