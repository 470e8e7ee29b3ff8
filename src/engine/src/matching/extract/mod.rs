//! From the events of one process to its synchronisation events.
//!
//! Receives match in the order in which they are *posted*, by whichever thread: a non-blocking one where its request is recorded, a
//! blocking one where the region around it is entered. The order of posting is that of these times over all locations of a process. Between threads that
//! send, or that receive, on the same channel MPI knows no order, and calls are entered in another order than the library takes them up: such channels
//! are marked ([`Extract::shared`]).

pub mod calls;
mod channel_ends;
mod collectives;
mod inside;
mod messages;
pub mod requests;
mod windows;

use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::extracted::Extract;
use crate::matching::hash::HashMap;
use crate::matching::message_ends::{MessageEnd, NO_PROCESS};
use crate::matching::nearly_sorted::sort_nearly_sorted;
use crate::matching::sync::EventCoordinates;
use crate::matching::undefined::{Gaps, UndefinedPeer};
use calls::{Calls, Inside};
use channel_ends::{Callers, ChannelEnds, ChannelLists};
use clc_trace::{CommId, Error, Event, MpiRank, Result, WindowId};
use collectives::EndedElsewhere;
use requests::OpenRequests;
use std::collections::BTreeSet;
use windows::EpochSinceFence;

/// Reads the events of one process in timeline order (see [`clc_trace::Position`]).
#[derive(Debug)]
pub struct Extractor<'a> {
    table: &'a CommTable<'a>,
    process: Option<MpiRank>,
    out: Extract,
    /// Sends and receives.
    channels: ChannelLists,
    /// Running number of posts.
    posts: u32,
    /// The post of the blocking receive that each location is in, where it is known.
    entered: HashMap<u32, u32>,
    /// Posted, incomplete receives: request -> post.
    receive_requests: OpenRequests<u32>,
    /// Incomplete sends: request -> channel, and the event of the send.
    send_requests: OpenRequests<(u32, u32)>,
    /// Incomplete non-blocking collectives: request -> begin.
    collective_requests: OpenRequests<u32>,
    /// The requests of non-blocking collectives that one location has begun and another one completed.
    handed_on: BTreeSet<u64>,
    /// Those of them that seem to be complete before they have begun, as the clocks of the two differ: request -> end.
    ended_elsewhere: HashMap<u64, EndedElsewhere>,
    /// Begin of the blocking collective that each location is in.
    open_begins: HashMap<u32, u32>,
    /// Cache of the communicator looked up last.
    last_comm: Option<(CommId, CommIndex)>,
    /// Begin of the collective operation on a window that each location is in.
    open_window_begins: HashMap<u32, u32>,
    /// What this process does on each window.
    epochs: HashMap<WindowId, EpochSinceFence>,
    /// The regions that matter, if they are read.
    calls: Option<&'a Calls>,
    /// The call that each location is in.
    inside: HashMap<u32, Inside>,
    /// Where open receives were posted: request -> event.
    posted_at: OpenRequests<u32>,
    /// Open synchronous sends: request -> send.
    synchronous: OpenRequests<u32>,
}

impl<'a> Extractor<'a> {
    /// For the timeline of `process` (`None`: a timeline outside MPI, which must not contain MPI events).
    pub fn new(table: &'a CommTable<'a>, process: Option<MpiRank>) -> Self {
        Extractor {
            table,
            process,
            out: Extract::default(),
            channels: ChannelLists::default(),
            posts: 0,
            entered: HashMap::default(),
            receive_requests: OpenRequests::default(),
            send_requests: OpenRequests::default(),
            collective_requests: OpenRequests::default(),
            handed_on: BTreeSet::new(),
            ended_elsewhere: HashMap::default(),
            open_begins: HashMap::default(),
            last_comm: None,
            open_window_begins: HashMap::default(),
            epochs: HashMap::default(),
            calls: None,
            inside: HashMap::default(),
            posted_at: OpenRequests::default(),
            synchronous: OpenRequests::default(),
        }
    }

    /// Non-blocking collectives with these requests have been begun by one location and completed by another.
    pub fn hand_on(&mut self, requests: BTreeSet<u64>) {
        self.handed_on = requests;
    }

    /// Reads regions, too.
    #[must_use]
    pub fn with_calls(self, calls: Option<&'a Calls>) -> Self {
        Extractor { calls, ..self }
    }

    /// Whether `event` can matter here.
    #[inline]
    pub fn is_relevant(event: &Event) -> bool {
        !matches!(
            event,
            Event::Other
                | Event::Enter(_)
                | Event::Leave(_)
                | Event::MpiRequestTest(_)
                | Event::Thread(_)
                | Event::Parameter(_)
                | Event::RmaOpCompleteBlocking(..)
        )
    }

    /// Adds an event that is visited only because it is close to its neighbour.
    #[inline(always)]
    pub fn near(&mut self, at: EventCoordinates) -> Result<u32> {
        self.out.sync.push(at.time, at.raw, at.number, at.location)
    }

    /// As [`Extractor::near`], unless the event is the one that was visited last.
    ///
    /// # Errors
    /// There are too many events.
    pub fn once(&mut self, at: EventCoordinates) -> Result<u32> {
        let sync = &self.out.sync;
        match sync.len().checked_sub(1) {
            Some(last) if sync.location(last) == at.location && sync.number(last) == at.number => Ok(last as u32),
            _ => self.near(at),
        }
    }

    /// Reads the next event. Returns whether it became a visited event.
    ///
    /// # Errors
    /// References to undefined communicators, MPI events outside of an MPI process.
    pub fn event(&mut self, at: EventCoordinates, event: &Event) -> Result<bool> {
        match event {
            Event::MpiSend(message)
            | Event::MpiIsend(message, _)
            | Event::MpiRecv(message)
            | Event::MpiIrecv(message, _)
                if message.is_null() =>
            {
                self.exchanged_with_nobody(at, event);
                Ok(false)
            }
            Event::MpiSend(message) => self.blocking_send(at, message),
            Event::MpiIsend(message, request) => self.begin_send(at, message, *request),
            Event::MpiIsendComplete(request) => self.end_send(at, *request),
            Event::MpiIrecvRequest(request) => self.begin_receive(at, *request),
            Event::MpiRecv(message) => self.blocking_receive(at, message),
            Event::MpiIrecv(message, request) => self.end_receive(at, message, *request),
            Event::MpiRequestCancelled(request) => {
                self.cancel(*request);
                Ok(false)
            }
            Event::MpiCollectiveBegin => self.begin_collective(at),
            Event::NonBlockingCollectiveRequest(request) => self.begin_immediate_collective(at, *request),
            Event::MpiCollectiveEnd(collective) => {
                let begin = self.open_begins.remove(&at.location);
                self.collective_end(at, begin, collective, false).map(|()| true)
            }
            Event::NonBlockingCollectiveComplete(collective, request) => {
                let begin = self.collective_requests.remove(*request);
                if begin.is_none() && self.handed_on.contains(request) {
                    return self.end_before_begin(at, collective, *request).map(|()| true);
                }
                self.collective_end(at, begin, collective, true).map(|()| true)
            }
            Event::RmaCollectiveBegin => self.begin_window_collective(at),
            Event::RmaCollectiveEnd(collective) => self.window_collective_end(at, collective).map(|()| true),
            Event::RmaPut(transfer) | Event::RmaGet(transfer) => Ok(self.access(transfer.window)),
            Event::RmaAtomic(atomic) => Ok(self.access(atomic.window)),
            Event::RmaRequestLock(lock) | Event::RmaAcquireLock(lock) => Ok(self.lock(lock, true)),
            Event::RmaReleaseLock(lock) => Ok(self.lock(lock, false)),
            Event::RmaGroupSync(sync) => Ok(self.group_sync(at, sync)),
            Event::Enter(region) => self.enter(at, *region),
            Event::Leave(region) => self.leave(at, *region),
            Event::Other
            | Event::MpiRequestTest(_)
            | Event::RmaTryLock(_)
            | Event::Thread(_)
            | Event::Parameter(_)
            | Event::RmaOpCompleteBlocking(..) => Ok(false),
        }
    }

    /// Ends the timeline.
    pub fn finish(mut self) -> Extract {
        self.out.leftovers.never_completed += self.receive_requests.count() as u64;
        self.abandon_collectives();
        let mut posted = HashMap::default();
        for ChannelEnds { key, sends, posted: mut receives, senders, receivers } in self.channels.into_channels() {
            if senders == Callers::Several {
                self.out.shared[0].insert(key);
            }
            if receivers == Callers::Several {
                self.out.shared[1].insert(key);
            }
            if !sends.is_empty() {
                self.out.sends.insert(key, sends);
            }
            if !receives.is_empty() {
                sort_nearly_sorted(&mut receives, |&posted| posted);
                posted.insert(key, receives);
            }
        }
        let (sends, receives);
        (sends, self.out.send_gaps) = Gaps::take(&mut self.out.sends);
        (receives, self.out.receive_gaps) = Gaps::take(&mut posted);
        let unplaced = self.out.unplaced.extract_if(|key, _| key.peer == NO_PROCESS).flat_map(|(_, list)| list);
        let receives: Vec<MessageEnd> = receives.into_iter().map(|(_, end)| end).chain(unplaced).collect();
        self.out.leftovers.undefined_peer = (sends.len() + receives.len()) as u64;
        let mut undefined: Vec<(u32, bool)> = sends.into_iter().map(|end| (end.event, true)).collect();
        undefined.extend(receives.into_iter().map(|end| (end.event, false)));
        undefined.sort_unstable();
        undefined.truncate(UndefinedPeer::EXAMPLES);
        self.out.undefined = undefined;
        for (key, list) in posted {
            self.out.receives.insert(key, list.into_iter().map(|(_, end)| end).collect());
        }
        for list in self.out.collectives.values_mut() {
            sort_nearly_sorted(list, |participation| participation.begin);
        }
        self.out
    }

    fn comm(&mut self, id: CommId) -> Result<CommIndex> {
        match self.last_comm {
            Some((last, index)) if last == id => Ok(index),
            _ => {
                let index = self.table.index(id)?;
                self.last_comm = Some((id, index));
                Ok(index)
            }
        }
    }

    fn own_process(&self) -> Result<MpiRank> {
        self.process.ok_or_else(outside_mpi)
    }
}

#[cold]
fn outside_mpi() -> Error {
    Error::new("MPI event on a location that does not belong to an MPI process").hint(
        "none of the locations of its location group is in the archive's COMM_LOCATIONS group of \
            paradigm MPI",
    )
}

#[cfg(test)]
mod tests;
