//! Sends and receives of a process, as it posts them.

use super::{Extractor, outside_mpi};
use crate::matching::extract::calls::SynchronisingCall;
use crate::matching::message_ends::{MessageEnd, MessageKey, NO_PROCESS, short};
use crate::matching::sync::EventCoordinates;
use clc_trace::{Error, Event, EventNumber, Message, Result};

impl Extractor<'_> {
    /// The region around the next blocking receive of a location is entered at `at`. Where that is not told, the receive is posted at its
    /// own event: the same, as long as one location makes all calls.
    ///
    /// # Errors
    /// There are too many receives.
    pub fn enter_receive(&mut self, at: EventCoordinates) -> Result<()> {
        let post = self.post(at.number)?;
        self.entered.insert(at.location, post);
        Ok(())
    }

    /// Whether events that only begin or end a request may come as [`Extractor::sent`] and [`Extractor::posted`], since their times do not matter.
    #[inline(always)]
    pub fn takes_requests(&self) -> bool {
        self.calls.is_none()
    }

    /// An [`Event::MpiIsendComplete`].
    #[inline(always)]
    pub fn sent(&mut self, request: u64) {
        self.send_requests.remove(request);
    }

    /// An [`Event::MpiIrecvRequest`], number `number` of its location.
    ///
    /// # Errors
    /// There are too many receives.
    #[inline(always)]
    pub fn posted(&mut self, request: u64, number: EventNumber) -> Result<()> {
        let post = self.post(number)?;
        if self.receive_requests.insert(request, post).is_some() {
            self.out.leftovers.never_completed += 1;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn blocking_send(&mut self, at: EventCoordinates, message: &Message) -> Result<bool> {
        let (_, sent) = self.send(at, message)?;
        if let Some(inside) = self.inside_of(at, SynchronisingCall::SynchronousSend) {
            inside.sent = Some(sent);
        }
        Ok(true)
    }

    #[inline]
    pub(super) fn begin_send(&mut self, at: EventCoordinates, message: &Message, request: u64) -> Result<bool> {
        let sent = self.send(at, message)?;
        self.send_requests.insert(request, sent);
        if self.inside_of(at, SynchronisingCall::SynchronousRequest).is_some() {
            self.synchronous.insert(request, sent.1);
        }
        Ok(true)
    }

    #[inline]
    pub(super) fn end_send(&mut self, at: EventCoordinates, request: u64) -> Result<bool> {
        self.send_requests.remove(request);
        let Some(sent) = self.calls.and_then(|_| self.synchronous.remove(request)) else { return Ok(false) };
        // The record says that the request is released; its receive may be posted later.
        if self.inside_of(at, SynchronisingCall::FreesRequest).is_some() {
            return Ok(false);
        }
        let end = self.near(at)?;
        self.out.synchronous.insert(sent, end);
        Ok(true)
    }

    #[inline]
    pub(super) fn begin_receive(&mut self, at: EventCoordinates, request: u64) -> Result<bool> {
        let visited = self.calls.is_some();
        if visited {
            let event = match self.inside_of(at, SynchronisingCall::Posts).and_then(|inside| inside.entered) {
                Some(entered) => entered,
                None => self.near(at)?,
            };
            self.posted_at.insert(request, event);
        }
        self.posted(request, at.number)?;
        Ok(visited && self.inside_of(at, SynchronisingCall::Posts).is_none_or(|inside| inside.entered.is_none()))
    }

    /// A message to or from `MPI_PROC_NULL`, which is none: whatever was posted for it is done.
    pub(super) fn exchanged_with_nobody(&mut self, at: EventCoordinates, event: &Event) {
        match event {
            Event::MpiRecv(_) => drop(self.entered.remove(&at.location)),
            Event::MpiIrecv(_, request) => {
                self.receive_requests.remove(*request);
                self.posted_at.remove(*request);
            }
            _ => {}
        }
    }

    #[inline]
    pub(super) fn blocking_receive(&mut self, at: EventCoordinates, message: &Message) -> Result<bool> {
        let post = if self.entered.is_empty() { None } else { self.entered.remove(&at.location) };
        let post = match post {
            Some(post) => post,
            None => self.post(at.number)?,
        };
        let event = self.receive(at, message, Some(post))?;
        if let Some(inside) = self.inside_of(at, SynchronisingCall::Posts)
            && !std::mem::replace(&mut inside.received, true)
            && let Some(entered) = inside.entered
        {
            self.out.posts.insert(event, entered);
        }
        Ok(true)
    }

    #[inline]
    pub(super) fn end_receive(&mut self, at: EventCoordinates, message: &Message, request: u64) -> Result<bool> {
        let post = self.receive_requests.remove(request);
        let event = self.receive(at, message, post)?;
        if let Some(post) = self.calls.and_then(|_| self.posted_at.remove(request)) {
            self.out.posts.insert(event, post);
        }
        Ok(true)
    }

    /// The channel of a message.
    #[inline(always)]
    fn channel(&mut self, message: &Message) -> Result<u32> {
        let (table, process) = (self.table, self.process);
        self.channels.number(message, || {
            let process = process.ok_or_else(outside_mpi)?;
            let comm = table.index(message.comm)?;
            let peer = table.peer(comm, message.peer, process)?.unwrap_or(NO_PROCESS);
            Ok(MessageKey { peer, comm, tag: message.tag })
        })
    }

    /// Returns channel and event.
    #[inline]
    fn send(&mut self, at: EventCoordinates, message: &Message) -> Result<(u32, u32)> {
        let event = self.near(at)?;
        let channel = self.channel(message)?;
        let ends = self.channels.at(channel);
        ends.senders.add(at.location);
        ends.sends.push(MessageEnd { event, length: short(message.length) });
        Ok((channel, event))
    }

    #[inline]
    fn receive(&mut self, at: EventCoordinates, message: &Message, post: Option<u32>) -> Result<u32> {
        let event = self.near(at)?;
        let channel = self.channel(message)?;
        let end = MessageEnd { event, length: short(message.length) };
        let channel = self.channels.at(channel);
        channel.receivers.add(at.location);
        match post {
            Some(post) => channel.posted.push((post, end)),
            None => self.out.unplaced.entry(channel.key).or_default().push(end),
        }
        Ok(event)
    }

    #[inline]
    fn post(&mut self, number: EventNumber) -> Result<u32> {
        self.posts = self
            .posts
            .checked_add(1)
            .ok_or_else(|| Error::new("more than 2^32 receives in one process").at_event(number))?;
        Ok(self.posts)
    }

    pub(super) fn cancel(&mut self, request: u64) {
        self.out.leftovers.cancelled += 1;
        self.receive_requests.remove(request);
        self.posted_at.remove(request);
        self.synchronous.remove(request);
        if let Some((channel, event)) = self.send_requests.remove(request) {
            let sends = &mut self.channels.at(channel).sends;
            if let Ok(position) = sends.binary_search_by_key(&event, |end| end.event) {
                sends.remove(position);
            }
        }
        let begun = self.collective_requests.remove(request);
        self.lone_begins(begun);
    }
}
