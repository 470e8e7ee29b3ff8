//! The end of a call: what it gave back becomes receives, completions, and ends of collective operations.

use super::{OpenCall, ProcessEvents};
use crate::recording::events::requests::{RequestedOperation, Serial};
use crate::recording::extra::{Completion, Extra};
use crate::recording::raw::format::calls::Effect;
use crate::recording::raw::format::{MPICH, NOBODY};
use crate::recording::raw::records::{Gave, Posted, Status};
use clc_trace::{Collective, CollectiveOp, CommId, Event, Message, Result, Root};

impl ProcessEvents<'_, '_> {
    /// A call has ended, and gave something back.
    pub(super) fn leave(&mut self, thread: usize, time: u64, open: OpenCall, gave: Gave) -> Result<()> {
        let Some(&called) = self.shared.functions.get(open.function) else { return Ok(()) };
        if let Some((handle, identity)) = &open.freed {
            self.communicators.remove(*handle, identity);
        }
        if let Some(call) = &open.window {
            return self.leave_window(thread, time, called.effect, call, gave != Gave::NotYet);
        }
        let plain = |op, comm| Collective { op, comm, root: Root::None, sent: 0, received: 0 };
        match called.effect {
            Effect::CommFree | Effect::CommCreate => {
                let op = if called.effect == Effect::CommFree {
                    CollectiveOp::DESTROY_HANDLE
                } else {
                    CollectiveOp::CREATE_HANDLE
                };
                if let Some(comm) = open.comm {
                    self.emit(thread, time, &Event::MpiCollectiveEnd(plain(op, comm)))?;
                }
                return Ok(());
            }
            Effect::Init | Effect::InitThread => {
                return self.emit(
                    thread,
                    time,
                    &Event::MpiCollectiveEnd(plain(CollectiveOp::CREATE_HANDLE, CommId(0))),
                );
            }
            Effect::Finalize => {
                let end = plain(CollectiveOp::DESTROY_HANDLE, CommId(0));
                return self.emit(thread, time, &Event::MpiCollectiveEnd(end));
            }
            Effect::RequestFree => {
                for &(handle, serial) in open.requests.iter().flatten() {
                    self.requests.remove(handle, serial);
                }
                return Ok(());
            }
            _ => {}
        }
        if let Some(contribution) = open.contribution
            && let Some(collective) = self.collective(open.function, contribution)
        {
            return self.emit(thread, time, &Event::MpiCollectiveEnd(collective));
        }
        match gave {
            Gave::Nothing | Gave::Happened => Ok(()),
            Gave::Message(handle) => {
                self.messages.insert(handle, open.comm);
                Ok(())
            }
            Gave::Request(handle) => self.made(thread, time, open, handle),
            Gave::NotYet => self.tested(thread, time, called.effect, &open.requests),
            Gave::Complete(complete) => self.leave_complete(thread, time, called.effect, open, complete),
        }
    }

    /// A call has ended that has completed something: requests, or what it has received itself.
    fn leave_complete(
        &mut self,
        thread: usize,
        time: u64,
        effect: Effect,
        open: OpenCall,
        complete: Vec<(usize, Status)>,
    ) -> Result<()> {
        let waits = matches!(
            effect,
            Effect::Wait
                | Effect::Waitall
                | Effect::Waitany
                | Effect::Waitsome
                | Effect::Test
                | Effect::GetStatus
                | Effect::Testall
                | Effect::Testany
                | Effect::Testsome
        );
        if !waits {
            let status = complete.first().map(|&(_, status)| status);
            return match open.comm.zip(status.and_then(received)) {
                Some((comm, message)) => self.emit(thread, time, &Event::MpiRecv(Message { comm, ..message })),
                None => Ok(()),
            };
        }
        let mut rest = open.requests;
        for (index, status) in complete {
            // A request that is looked at stays: with a handle that others have, too, it would be found again in place of one of these.
            let stays = |handle| effect == Effect::GetStatus && self.header.shares(handle);
            if let Some((handle, serial)) = rest.get_mut(index).and_then(Option::take)
                && !stays(handle)
            {
                self.complete(thread, time, handle, serial, status)?;
            }
        }
        self.tested(thread, time, effect, &rest)
    }

    /// A call has made a request.
    fn made(&mut self, thread: usize, time: u64, open: OpenCall, handle: Option<u64>) -> Result<()> {
        let mut request = open.request;
        if let (Some(posted), Some(comm)) = (open.posted.filter(|posted| posted.source != NOBODY), open.comm) {
            let id = self.ids.begin(thread);
            let sent = request.and_then(|request| request.open());
            let untold = Some(posted).filter(|_| sent.is_some() && self.leaves_statuses_of_both());
            request = Some(RequestedOperation::Both(sent, id, comm, untold));
            self.emit(thread, time, &Event::MpiIrecvRequest(id))?;
        }
        if let Some(RequestedOperation::Receive(id, _)) = request {
            self.emit(thread, time, &Event::MpiIrecvRequest(id))?;
        }
        if let Some(handle) = handle {
            self.requests.add(handle, request.unwrap_or(RequestedOperation::Nothing), self.header.shares(handle));
        }
        Ok(())
    }

    /// MPICH, up to 5.0 at least, and what is made of it never write the status of an `MPI_Isendrecv` that sends and receives: the program finds there what was there before.
    fn leaves_statuses_of_both(&self) -> bool {
        self.header.abi == MPICH || self.header.library.contains("MPICH")
    }

    /// Requests that were looked at and are not complete.
    fn tested(&mut self, thread: usize, time: u64, effect: Effect, rest: &[Option<(u64, Serial)>]) -> Result<()> {
        if matches!(effect, Effect::Wait | Effect::Waitall) {
            return Ok(());
        }
        for &(_, serial) in rest.iter().flatten() {
            let request = self.requests.get_mut(serial).copied();
            if let Some(RequestedOperation::Access(window, matching)) = request {
                self.extra(thread, time, Extra::Operation(Completion::Tested, window, matching))?;
            }
            if let Some(id) = request.and_then(|request| request.open()) {
                self.emit(thread, time, &Event::MpiRequestTest(id))?;
            }
        }
        Ok(())
    }

    /// A request is complete.
    fn complete(&mut self, thread: usize, time: u64, handle: u64, serial: Serial, status: Status) -> Result<()> {
        let Some(request) = self.requests.complete(handle, serial) else { return Ok(()) };
        if let RequestedOperation::Access(window, matching) = request {
            return self.extra(thread, time, Extra::Operation(Completion::NonBlocking, window, matching));
        }
        let Some(id) = request.open() else { return Ok(()) };
        let status = match request {
            RequestedOperation::Both(.., Some(posted)) => told_by(posted),
            _ => status,
        };
        self.ids.end(thread, id);
        if let RequestedOperation::Both(Some(sent), ..) = request {
            self.ids.end(thread, sent);
        }
        if status.cancelled
            && !matches!(request, RequestedOperation::Collective(..) | RequestedOperation::PersistentCollective(..))
        {
            return self.emit(thread, time, &Event::MpiRequestCancelled(id));
        }
        match request {
            RequestedOperation::Nothing | RequestedOperation::Access(..) => Ok(()),
            RequestedOperation::Send(_) | RequestedOperation::PersistentSend(..) => {
                self.emit(thread, time, &Event::MpiIsendComplete(id))
            }
            RequestedOperation::Receive(_, comm)
            | RequestedOperation::PersistentReceive(comm, _)
            | RequestedOperation::Both(_, _, comm, _) => {
                if let RequestedOperation::Both(Some(sent), ..) = request {
                    self.emit(thread, time, &Event::MpiIsendComplete(sent))?;
                }
                match received(status) {
                    Some(message) => self.emit(thread, time, &Event::MpiIrecv(Message { comm, ..message }, id)),
                    // It was from nobody, or nothing tells from whom: what was posted takes part in nothing.
                    None => self.emit(thread, time, &Event::MpiRequestCancelled(id)),
                }
            }
            RequestedOperation::Collective(_, function, contribution)
            | RequestedOperation::PersistentCollective(function, contribution, _) => {
                match self.collective(function, contribution) {
                    Some(end) => self.emit(thread, time, &Event::NonBlockingCollectiveComplete(end, id)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// What a status would say: as much was received as there was room for. From nobody, if the source or the tag might be any.
fn told_by(posted: Posted) -> Status {
    let Posted { source, tag, bytes } = posted;
    Status { source: if tag < 0 { NOBODY } else { source }, tag, bytes, cancelled: false }
}

/// A message that has been received, but for its communicator; none from nobody.
fn received(status: Status) -> Option<Message> {
    let peer = u32::try_from(status.source).ok()?;
    Some(Message { peer, comm: CommId(0), tag: status.tag as u32, length: status.bytes })
}
