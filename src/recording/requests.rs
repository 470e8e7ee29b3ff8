//! The open requests of a process.
//!
//! A handle can belong to another request as soon as the one before is complete, and the recorder sees the completion a little later. So a
//! call that waits takes note of *which* requests its handles stood for when it began.

use super::raw::Contribution;
use crate::trace::{CommId, Message};
use std::collections::HashMap;

/// Number of a request within a process; never used again.
pub type Serial = u64;

/// What a request stands for. Ids are those of the events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Request {
    /// Of no interest: nothing is sent or received, or the communicator is not known.
    Nothing,
    /// A send.
    Send(u64),
    /// A receive.
    Receive(u64, CommId),
    /// `MPI_Isendrecv`: a send, if there is one, and a receive.
    Both(Option<u64>, u64, CommId),
    /// A collective operation: function, what it was given.
    Collective(u64, usize, Contribution),
    /// Made by `MPI_Send_init`; the id while it is active.
    PersistentSend(Message, Option<u64>),
    /// Made by `MPI_Recv_init`.
    PersistentReceive(CommId, Option<u64>),
    /// Made by a persistent collective operation.
    PersistentCollective(usize, Contribution, Option<u64>),
}

impl Request {
    /// The id of the events, while it is open.
    pub fn open(&self) -> Option<u64> {
        match *self {
            Request::Nothing => None,
            Request::Send(id) | Request::Receive(id, _) | Request::Both(_, id, _) | Request::Collective(id, ..) => {
                Some(id)
            }
            Request::PersistentSend(_, id)
            | Request::PersistentReceive(_, id)
            | Request::PersistentCollective(_, _, id) => id,
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Requests {
    by_handle: HashMap<u64, Serial>,
    all: HashMap<Serial, Request>,
    next: Serial,
}

impl Requests {
    /// A new one with this handle, which no other has any more.
    pub fn add(&mut self, handle: u64, request: Request) {
        self.next += 1;
        // What had the handle before may be waited for by another thread, and stays until then.
        self.by_handle.insert(handle, self.next);
        self.all.insert(self.next, request);
    }

    /// The one that has this handle now.
    pub fn with_handle(&self, handle: u64) -> Option<Serial> {
        self.by_handle.get(&handle).copied()
    }

    /// What it stands for.
    pub fn get_mut(&mut self, serial: Serial) -> Option<&mut Request> {
        self.all.get_mut(&serial)
    }

    /// It is complete: what it stood for. A persistent one stays, inactive.
    pub fn complete(&mut self, handle: u64, serial: Serial) -> Option<Request> {
        let request = *self.all.get(&serial)?;
        match self.all.get_mut(&serial) {
            Some(
                Request::PersistentSend(_, id)
                | Request::PersistentReceive(_, id)
                | Request::PersistentCollective(_, _, id),
            ) => {
                *id = None;
            }
            _ => self.remove(handle, serial),
        }
        Some(request)
    }

    /// It does not exist any more.
    pub fn remove(&mut self, handle: u64, serial: Serial) {
        self.all.remove(&serial);
        if self.with_handle(handle) == Some(serial) {
            self.by_handle.remove(&handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_in_use_again_does_not_complete_the_new_request() {
        let mut requests = Requests::default();
        requests.add(7, Request::Send(1));
        let waited_for = requests.with_handle(7).unwrap();
        requests.add(7, Request::Send(2));
        assert_eq!(requests.complete(7, waited_for), Some(Request::Send(1)));
        let next = requests.with_handle(7).unwrap();
        assert_eq!(requests.complete(7, next), Some(Request::Send(2)));
        assert_eq!(requests.with_handle(7), None);
    }

    #[test]
    fn a_persistent_request_stays() {
        let message = Message { peer: 1, comm: CommId(0), tag: 0, length: 8 };
        let mut requests = Requests::default();
        requests.add(7, Request::PersistentSend(message, Some(3)));
        let serial = requests.with_handle(7).unwrap();
        assert_eq!(requests.complete(7, serial).and_then(|request| request.open()), Some(3));
        assert_eq!(requests.complete(7, serial).and_then(|request| request.open()), None);
    }
}
