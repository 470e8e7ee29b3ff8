//! Point-to-point messages: matching by posted order, eager and rendezvous transfer.

use super::{BlockedOn, Engine, Transfer};
use crate::sink::EventSink;
use clc_trace::MpiRank;

/// A completion time that is not known yet.
pub(super) const UNKNOWN: i64 = i64::MAX;
/// A sender that does not wait for its message.
pub(super) const NOBODY: u32 = u32::MAX;

/// What a request stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequestKind {
    Send,
    Receive(Transfer),
    Collective(super::CollectiveCall),
}

/// An open request of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenRequest {
    pub(super) id: u64,
    pub(super) kind: RequestKind,
    /// True time of its completion.
    pub(super) complete: i64,
    /// Waited for, or cancelled.
    pub(super) done: bool,
}

/// A message without a receive.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageInFlight {
    source: MpiRank,
    comm: u32,
    tag: u32,
    /// The sender's request that completes with the transfer (rendezvous), or [`NOBODY`] for an eager message.
    request: u32,
    sent: i64,
    /// From the start of the transfer to its arrival.
    delay: i64,
}

/// A receive without a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct PostedReceive {
    source: MpiRank,
    comm: u32,
    tag: u32,
    request: u32,
    at: i64,
}

impl<S: EventSink + ?Sized> Engine<'_, S> {
    /// Opens a request of a process and returns its index.
    pub(super) fn open(&mut self, rank: usize, kind: RequestKind) -> u32 {
        let process = &mut self.processes[rank];
        let id = process.next_request;
        process.next_request += 1;
        process.requests.push(OpenRequest { id, kind, complete: UNKNOWN, done: false });
        process.unresolved += 1;
        process.requests.len() as u32 - 1
    }

    /// Sends a message now. `request` is the sender's request that completes when its buffer is free, of a synchronous send not before the receive
    /// is posted.
    pub(super) fn send(&mut self, rank: usize, to: &Transfer, request: u32, synchronous: bool) {
        let receiver = to.process.place();
        let (from_node, to_node) = (self.processes[rank].node, self.processes[receiver].node);
        let sender = &mut self.processes[rank];
        let sent = sender.now;
        let delay = self.network.delay(from_node, to_node, to.bytes, &mut sender.random);
        let rendezvous = synchronous || to.bytes > self.network.eager_limit;
        if !rendezvous {
            let free = sent + self.network.transfer(from_node, to_node, to.bytes);
            self.resolve(rank, request, free);
        }
        let flight = MessageInFlight {
            source: MpiRank(rank as u32),
            comm: to.comm,
            tag: to.tag,
            request: if rendezvous { request } else { NOBODY },
            sent,
            delay,
        };
        let posted = &mut self.processes[receiver].posted;
        let same = |p: &PostedReceive| p.source == flight.source && p.tag == flight.tag && p.comm == flight.comm;
        match posted.iter().position(same) {
            Some(at) => {
                let receive = posted.remove(at);
                self.meet(receiver, &receive, &flight);
            }
            None => self.processes[receiver].inbox.push(flight),
        }
    }

    /// Posts a receive now; `request` completes with the message.
    pub(super) fn post(&mut self, rank: usize, from: &Transfer, request: u32) {
        let process = &mut self.processes[rank];
        let receive = PostedReceive { source: from.process, comm: from.comm, tag: from.tag, request, at: process.now };
        let same = |f: &MessageInFlight| f.source == receive.source && f.tag == receive.tag && f.comm == receive.comm;
        match process.inbox.iter().position(same) {
            Some(at) => {
                let flight = process.inbox.remove(at);
                self.meet(rank, &receive, &flight);
            }
            None => process.posted.push(receive),
        }
    }

    /// Takes back a receive that no message has matched; `false` if one has.
    pub(super) fn unpost(&mut self, rank: usize, request: u32) -> bool {
        let process = &mut self.processes[rank];
        match process.posted.iter().position(|p| p.request == request) {
            Some(at) => {
                process.posted.remove(at);
                process.unresolved -= 1;
                true
            }
            None => false,
        }
    }

    /// A receive and its message have found each other: both completion times are known.
    fn meet(&mut self, receiver: usize, receive: &PostedReceive, flight: &MessageInFlight) {
        let sender = flight.source.place();
        let start = if flight.request == NOBODY {
            flight.sent
        } else {
            // Rendezvous: the clear-to-send travels back from the receiver.
            let (from, to) = (self.processes[receiver].node, self.processes[sender].node);
            flight.sent.max(receive.at + self.network.minimum(from, to))
        };
        let arrival = start + flight.delay;
        if flight.request != NOBODY {
            self.resolve(sender, flight.request, arrival);
        }
        self.resolve(receiver, receive.request, arrival.max(receive.at));
    }

    /// The completion time of a request has become known; wakes its process if that is what it waits for.
    pub(super) fn resolve(&mut self, rank: usize, request: u32, complete: i64) {
        let process = &mut self.processes[rank];
        process.requests[request as usize].complete = complete;
        process.unresolved -= 1;
        let wake = match process.waiting {
            BlockedOn::All => process.unresolved == 0,
            BlockedOn::One(index) => index == request,
            BlockedOn::Nothing | BlockedOn::Collective => false,
        };
        if wake {
            process.waiting = BlockedOn::Nothing;
            self.ready.push_back(rank as u32);
        }
    }
}
