//! Runs the programs of all processes for one step.

use super::messages::{RequestKind, UNKNOWN};
use super::ops::region;
use super::{BlockedOn, CollectiveCall, Engine, NO_ROOT, Op, Transfer, WaitOrder};
use crate::sink::EventSink;
use clc_trace::{Collective, CommId, Error, Event, Message, Result, Root};

fn message(transfer: &Transfer) -> Message {
    Message { peer: transfer.peer, comm: CommId(transfer.comm), tag: transfer.tag, length: transfer.bytes }
}

fn collective(call: &CollectiveCall) -> Collective {
    let root = if call.root == NO_ROOT { Root::None } else { Root::Rank(call.root) };
    Collective { op: call.op, comm: CommId(call.comm), root, sent: call.sent, received: call.received }
}

impl<S: EventSink + ?Sized> Engine<'_, S> {
    /// Runs every process to the end of its program.
    ///
    /// # Errors
    /// Those of the sink, and programs that wait for each other (a mistake in a pattern).
    pub(crate) fn run_step(&mut self) -> Result<()> {
        self.ready.extend(0..self.processes.len() as u32);
        while let Some(rank) = self.ready.pop_front() {
            self.run_process(rank as usize)?;
        }
        for (rank, process) in self.processes.iter_mut().enumerate() {
            if process.next_op < process.program.len() || !process.requests.is_empty() {
                let at = process.program.get(process.next_op);
                return Err(Error::new(format!("the pattern deadlocks: process {rank} waits in {at:?}")));
            }
            process.program.clear();
            process.next_op = 0;
        }
        self.check_time()
    }

    /// Runs a process until it is blocked or at its end.
    fn run_process(&mut self, rank: usize) -> Result<()> {
        loop {
            let process = &self.processes[rank];
            let Some(&op) = process.program.get(process.next_op) else { return Ok(()) };
            if !self.run_op(rank, &op)? {
                self.processes[rank].stage = 1;
                return Ok(());
            }
            let process = &mut self.processes[rank];
            process.stage = 0;
            process.next_op += 1;
        }
    }

    /// Runs an operation; `false` if it is blocked and has to be run again later, in stage 1.
    fn run_op(&mut self, rank: usize, op: &Op) -> Result<bool> {
        let first = self.processes[rank].stage == 0;
        match op {
            Op::Compute(duration) => self.compute(rank, *duration)?,
            Op::Send(to) => return self.run_send(rank, to, first, false),
            Op::Ssend(to) => return self.run_send(rank, to, first, true),
            Op::Inter(call, root) => {
                let recorded = Collective { root: *root, ..collective(call) };
                return self.run_collective(rank, call, recorded, first);
            }
            Op::Fence => return self.run_fence(rank, first),
            Op::Put(target, bytes) => self.put(rank, *target, *bytes)?,
            Op::Team(duration) => self.team(rank, *duration)?,
            Op::Offload(duration, bytes) => self.offload(rank, *duration, *bytes)?,
            Op::Epoch(step) => return self.run_epoch(rank, *step, first),
            Op::Recv(from) => return self.run_receive(rank, from, first),
            Op::Sendrecv(to, from) => return self.run_sendrecv(rank, to, from, first),
            Op::Isend(to) => {
                self.enter(rank, region::ISEND)?;
                let request = self.open(rank, RequestKind::Send);
                let id = self.id(rank, request);
                self.emit(rank, Event::MpiIsend(message(to), id))?;
                self.send(rank, to, request, false);
                self.leave(rank, region::ISEND)?;
            }
            Op::Irecv(from) => {
                self.enter(rank, region::IRECV)?;
                let request = self.open(rank, RequestKind::Receive(*from));
                let id = self.id(rank, request);
                self.emit(rank, Event::MpiIrecvRequest(id))?;
                self.post(rank, from, request);
                self.leave(rank, region::IRECV)?;
            }
            Op::Collective(call) => return self.run_collective(rank, call, collective(call), first),
            Op::NonBlocking(call) => {
                let region = region::non_blocking(call.op);
                self.enter(rank, region)?;
                let request = self.open(rank, RequestKind::Collective(*call));
                let id = self.id(rank, request);
                self.emit(rank, Event::NonBlockingCollectiveRequest(id))?;
                self.join(rank, call, request);
                self.leave(rank, region)?;
            }
            Op::WaitAll(order) => return self.run_wait_all(rank, *order, first),
            Op::Wait(request) => return self.run_wait(rank, *request, first),
            Op::Test(request) => {
                self.enter(rank, region::TEST)?;
                let id = self.id(rank, *request);
                self.emit(rank, Event::MpiRequestTest(id))?;
                self.leave(rank, region::TEST)?;
            }
            Op::Cancel(request) => {
                if !self.unpost(rank, *request) {
                    return Err(Error::new(format!("the pattern cancels a receive of process {rank} that is matched")));
                }
                self.enter(rank, region::CANCEL)?;
                self.processes[rank].requests[*request as usize].done = true;
                let id = self.id(rank, *request);
                self.emit(rank, Event::MpiRequestCancelled(id))?;
                self.leave(rank, region::CANCEL)?;
            }
        }
        Ok(true)
    }

    fn id(&self, rank: usize, request: u32) -> u64 {
        self.processes[rank].requests[request as usize].id
    }

    /// Index of the request that was opened last.
    fn last_request(&self, rank: usize) -> u32 {
        self.processes[rank].requests.len() as u32 - 1
    }

    /// Whether a request's completion is known; otherwise the process is marked as waiting for it.
    fn known(&mut self, rank: usize, request: u32) -> bool {
        let process = &mut self.processes[rank];
        let known = process.requests[request as usize].complete != UNKNOWN;
        if !known {
            process.waiting = BlockedOn::One(request);
        }
        known
    }

    /// Lets a process wait until its last request is complete and forgets that request.
    fn finish_last(&mut self, rank: usize) {
        let process = &mut self.processes[rank];
        if let Some(request) = process.requests.pop() {
            process.now = process.now.max(request.complete);
        }
    }

    fn run_send(&mut self, rank: usize, to: &Transfer, first: bool, synchronous: bool) -> Result<bool> {
        let region = if synchronous { region::SSEND } else { region::SEND };
        if first {
            self.enter(rank, region)?;
            self.emit(rank, Event::MpiSend(message(to)))?;
            let request = self.open(rank, RequestKind::Send);
            self.send(rank, to, request, synchronous);
        }
        if !self.known(rank, self.last_request(rank)) {
            return Ok(false);
        }
        self.finish_last(rank);
        self.leave(rank, region)?;
        Ok(true)
    }

    fn run_receive(&mut self, rank: usize, from: &Transfer, first: bool) -> Result<bool> {
        if first {
            self.enter(rank, region::RECV)?;
            let request = self.open(rank, RequestKind::Receive(*from));
            self.post(rank, from, request);
        }
        if !self.known(rank, self.last_request(rank)) {
            return Ok(false);
        }
        self.finish_last(rank);
        self.emit(rank, Event::MpiRecv(message(from)))?;
        self.leave(rank, region::RECV)?;
        Ok(true)
    }

    fn run_sendrecv(&mut self, rank: usize, to: &Transfer, from: &Transfer, first: bool) -> Result<bool> {
        if first {
            self.enter(rank, region::SENDRECV)?;
            self.emit(rank, Event::MpiSend(message(to)))?;
            let sending = self.open(rank, RequestKind::Send);
            let receiving = self.open(rank, RequestKind::Receive(*from));
            self.post(rank, from, receiving);
            self.send(rank, to, sending, false);
        }
        let receiving = self.last_request(rank);
        if !self.known(rank, receiving) || !self.known(rank, receiving - 1) {
            return Ok(false);
        }
        self.finish_last(rank);
        self.finish_last(rank);
        self.emit(rank, Event::MpiRecv(message(from)))?;
        self.leave(rank, region::SENDRECV)?;
        Ok(true)
    }

    fn run_collective(
        &mut self,
        rank: usize,
        call: &CollectiveCall,
        recorded: Collective,
        first: bool,
    ) -> Result<bool> {
        let region = region::blocking(call.op);
        if first {
            self.enter(rank, region)?;
            self.emit(rank, Event::MpiCollectiveBegin)?;
        }
        if !self.meet_others(rank, call, first) {
            return Ok(false);
        }
        self.emit(rank, Event::MpiCollectiveEnd(recorded))?;
        self.leave(rank, region)?;
        Ok(true)
    }

    /// Joins a blocking collective the first time; `false` until its end is known, which is the time then.
    pub(super) fn meet_others(&mut self, rank: usize, call: &CollectiveCall, first: bool) -> bool {
        if first {
            self.processes[rank].waiting = BlockedOn::Collective;
            self.join(rank, call, super::messages::NOBODY);
            // The last member to join knows the end at once.
            if self.processes[rank].waiting == BlockedOn::Collective {
                return false;
            }
        }
        let process = &mut self.processes[rank];
        process.now = process.now.max(process.collective_end);
        true
    }

    /// Records the completion of a request.
    fn complete(&mut self, rank: usize, request: u32) -> Result<()> {
        let entry = &mut self.processes[rank].requests[request as usize];
        if entry.done {
            return Ok(());
        }
        entry.done = true;
        let event = match &entry.kind {
            RequestKind::Send => Event::MpiIsendComplete(entry.id),
            RequestKind::Receive(from) => Event::MpiIrecv(message(from), entry.id),
            RequestKind::Collective(call) => Event::NonBlockingCollectiveComplete(collective(call), entry.id),
        };
        self.emit(rank, event)
    }

    fn run_wait(&mut self, rank: usize, request: u32, first: bool) -> Result<bool> {
        if first {
            self.enter(rank, region::WAIT)?;
        }
        if !self.known(rank, request) {
            return Ok(false);
        }
        let process = &mut self.processes[rank];
        process.now = process.now.max(process.requests[request as usize].complete);
        self.complete(rank, request)?;
        self.leave(rank, region::WAIT)?;
        Ok(true)
    }

    fn run_wait_all(&mut self, rank: usize, order: WaitOrder, first: bool) -> Result<bool> {
        if first && order != WaitOrder::Completion {
            self.enter(rank, region::WAITALL)?;
        }
        let process = &mut self.processes[rank];
        if process.unresolved > 0 {
            process.waiting = BlockedOn::All;
            return Ok(false);
        }
        let open = process.requests.len() as u32;
        if order == WaitOrder::Completion {
            // Requests are not needed by anyone else any more, so they may change their places.
            process.requests.retain(|request| !request.done);
            process.requests.sort_by_key(|request| (request.complete, request.id));
            for request in 0..process.requests.len() as u32 {
                self.enter(rank, region::WAITANY)?;
                let process = &mut self.processes[rank];
                process.now = process.now.max(process.requests[request as usize].complete);
                self.complete(rank, request)?;
                self.leave(rank, region::WAITANY)?;
            }
        } else {
            let latest = process.requests.iter().filter(|r| !r.done).map(|r| r.complete).max();
            process.now = process.now.max(latest.unwrap_or(process.now));
            for i in 0..open {
                self.complete(rank, if order == WaitOrder::Reversed { open - 1 - i } else { i })?;
            }
            self.leave(rank, region::WAITALL)?;
        }
        self.processes[rank].requests.clear();
        Ok(true)
    }
}

/// Blocking calls whose order is decided by the pattern itself, for receives from any source.
impl<S: EventSink + ?Sized> Engine<'_, S> {
    /// MPI_Send on the world communicator without waiting for the receiver; returns the true time of arrival.
    pub(crate) fn send_eager(&mut self, rank: usize, to: usize, tag: u32, bytes: u64) -> Result<i64> {
        self.enter(rank, region::SEND)?;
        self.emit(rank, Event::MpiSend(message(&Transfer::world(to, tag, bytes))))?;
        let (from_node, to_node) = (self.processes[rank].node, self.processes[to].node);
        let sender = &mut self.processes[rank];
        let arrival = sender.now + self.network.delay(from_node, to_node, bytes, &mut sender.random);
        sender.now += self.network.transfer(from_node, to_node, bytes);
        self.leave(rank, region::SEND)?;
        Ok(arrival)
    }

    /// MPI_Recv on the world communicator of a message that arrives at true time `arrival`.
    pub(crate) fn receive_at(&mut self, rank: usize, from: usize, tag: u32, bytes: u64, arrival: i64) -> Result<()> {
        self.enter(rank, region::RECV)?;
        let receiver = &mut self.processes[rank];
        receiver.now = receiver.now.max(arrival);
        self.emit(rank, Event::MpiRecv(message(&Transfer::world(from, tag, bytes))))?;
        self.leave(rank, region::RECV)
    }
}
