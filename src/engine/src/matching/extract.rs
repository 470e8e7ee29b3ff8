//! From the events of one process to its synchronisation events.
//!
//! Receives match in the order in which they are *posted*, by whichever thread: a non-blocking one where its request is recorded, a
//! blocking one where the region around it is entered. The order of posting is that of these times over all locations of a process. Between threads that
//! send, or that receive, on the same channel MPI knows no order, and calls are entered in another order than the library takes them up: such channels
//! are marked ([`Extract::shared`]).

use crate::matching::calls::{Calls, Inside, SynchronisingCall};
use crate::matching::channel_ends::{Callers, ChannelEnds, ChannelLists};
use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::extracted::{Extract, GroupKey, Participation};
use crate::matching::hash::HashMap;
use crate::matching::message_ends::{MessageEnd, MessageKey, NO_PROCESS, short};
use crate::matching::requests::OpenRequests;
use crate::matching::sync::EventCoordinates;
use crate::matching::undefined::{Gaps, UndefinedPeer};
use clc_trace::{
    Collective, CollectiveOp, CommId, CommMembers, Error, Event, EventNumber, Message, MpiRank, RegionId, Result,
    WindowCollective, WindowGroup, WindowId, WindowLock,
};
use controlled_logical_clock::semantics::MemberRecord;

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

/// What a process has done on a window since its last fence.
#[derive(Debug, Default)]
struct EpochSinceFence {
    /// One-sided operations that a fence completes.
    accesses: u64,
    /// Targets that it has locked.
    locked: Vec<u32>,
    /// Groups with which it has begun an epoch.
    groups: u32,
}

/// OTF2 `RmaSyncLevel`: memory is synchronised, too. Where the call is not known, an epoch with a group begins without that and ends with it.
const MEMORY: u32 = 2;

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

    /// Reads the next event. Returns whether it became a visited event.
    ///
    /// # Errors
    /// References to undefined communicators, MPI events outside of an MPI process.
    pub fn event(&mut self, at: EventCoordinates, event: &Event) -> Result<bool> {
        match event {
            Event::MpiSend(message) => {
                let (_, sent) = self.send(at, message)?;
                if let Some(inside) = self.inside_of(at, SynchronisingCall::SynchronousSend) {
                    inside.sent = Some(sent);
                }
                Ok(true)
            }
            Event::MpiIsend(message, request) => {
                let sent = self.send(at, message)?;
                self.send_requests.insert(*request, sent);
                if self.inside_of(at, SynchronisingCall::SynchronousRequest).is_some() {
                    self.synchronous.insert(*request, sent.1);
                }
                Ok(true)
            }
            Event::MpiIsendComplete(request) => {
                self.send_requests.remove(*request);
                let Some(sent) = self.calls.and_then(|_| self.synchronous.remove(*request)) else { return Ok(false) };
                let end = self.near(at)?;
                self.out.synchronous.insert(sent, end);
                Ok(true)
            }
            Event::MpiIrecvRequest(request) => {
                let visited = self.calls.is_some();
                if visited {
                    let event = match self.inside_of(at, SynchronisingCall::Posts).and_then(|inside| inside.entered) {
                        Some(entered) => entered,
                        None => self.near(at)?,
                    };
                    self.posted_at.insert(*request, event);
                }
                self.posted(*request, at.number)?;
                Ok(visited
                    && self.inside_of(at, SynchronisingCall::Posts).is_none_or(|inside| inside.entered.is_none()))
            }
            Event::MpiRecv(message) => {
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
            Event::MpiIrecv(message, request) => {
                let post = self.receive_requests.remove(*request);
                let event = self.receive(at, message, post)?;
                if let Some(post) = self.calls.and_then(|_| self.posted_at.remove(*request)) {
                    self.out.posts.insert(event, post);
                }
                Ok(true)
            }
            Event::MpiRequestCancelled(request) => {
                self.cancel(*request);
                Ok(false)
            }
            Event::MpiCollectiveBegin => {
                let begin = self.near(at)?;
                if self.open_begins.insert(at.location, begin).is_some() {
                    self.out.leftovers.open_collectives += 1;
                }
                Ok(true)
            }
            Event::NonBlockingCollectiveRequest(request) => {
                let begin = self.near(at)?;
                if self.collective_requests.insert(*request, begin).is_some() {
                    self.out.leftovers.open_collectives += 1;
                }
                Ok(true)
            }
            Event::MpiCollectiveEnd(collective) => {
                let begin = self.open_begins.remove(&at.location);
                self.collective_end(at, begin, collective).map(|_| true)
            }
            Event::NonBlockingCollectiveComplete(collective, request) => {
                let begin = self.collective_requests.remove(*request);
                self.collective_end(at, begin, collective).map(|_| true)
            }
            Event::RmaCollectiveBegin => {
                let begin = self.near(at)?;
                if self.open_window_begins.insert(at.location, begin).is_some() {
                    self.out.leftovers.open_collectives += 1;
                }
                Ok(true)
            }
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
        let open = self.open_begins.len() + self.open_window_begins.len() + self.collective_requests.count();
        self.out.leftovers.open_collectives += open as u64;
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
                receives.sort_unstable();
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
            list.sort_by_key(|participation| participation.begin);
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

    fn cancel(&mut self, request: u64) {
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
        if self.collective_requests.remove(request).is_some() {
            self.out.leftovers.open_collectives += 1;
        }
    }

    fn collective_end(&mut self, at: EventCoordinates, begin: Option<u32>, collective: &Collective) -> Result<()> {
        let process = self.own_process()?;
        let comm = self.comm(collective.comm)?;
        let end = self.near(at)?;
        let Some(begin) = begin else {
            self.out.leftovers.open_collectives += 1;
            return Ok(());
        };
        let part = MemberRecord { root: collective.root, ..MemberRecord::from(collective) };
        let op = match part.op.on_communicator() {
            CollectiveOp::CREATE_HANDLE if self.inside_of(at, SynchronisingCall::CreatesHandle).is_some() => {
                CollectiveOp::CREATE_HANDLE_OF_ALL
            }
            op => op,
        };
        let part = MemberRecord { op, ..part };
        self.participate(process, comm, Participation { begin, end, part })
    }

    /// A collective operation on communicator or window `comm` that has both ends.
    fn participate(&mut self, process: MpiRank, comm: CommIndex, mut own: Participation) -> Result<()> {
        match self.table.members(comm) {
            CommMembers::Intra(members) if members.len() == 1 => self.out.leftovers.solo_collectives += 1,
            CommMembers::SelfOnly => self.out.leftovers.solo_collectives += 1,
            CommMembers::Intra(members) => {
                let participations = self.out.collectives.entry(comm).or_default();
                // Once per communicator: member lists can be long.
                if participations.is_empty() && !members.contains(&process) {
                    return Err(Error::new(format!(
                        "collective operation on {}, of which process {process} is not a member",
                        self.table.name(comm)
                    )));
                }
                own.part.root = self.table.root(comm, own.part.root);
                participations.push(own);
            }
            // Of two groups that overlap nobody could say which one a process speaks for.
            CommMembers::Inter(..) if self.table.rank_of(comm, process).is_none() => {
                self.out.leftovers.inter_collectives += 1;
            }
            CommMembers::Inter(..) => self.out.collectives.entry(comm).or_default().push(own),
            // Not a communicator of MPI processes: the same errors as for messages.
            CommMembers::NotMpi | CommMembers::Undefined => {
                self.table.peer(comm, 0, process)?;
            }
        }
        Ok(())
    }

    fn window_collective_end(&mut self, at: EventCoordinates, collective: &WindowCollective) -> Result<()> {
        let end = self.near(at)?;
        let begin = self.open_window_begins.remove(&at.location);
        let epoch = self.epochs.entry(collective.window).or_default();
        let fence = collective.op == CollectiveOp::BARRIER && collective.level != 0;
        // A fence ends the epoch, whatever else is wrong with it.
        let accesses = if fence { std::mem::take(&mut epoch.accesses) } else { 0 };
        let Some(begin) = begin else {
            self.out.leftovers.open_collectives += 1;
            return Ok(());
        };
        let place = self.table.window(collective.window).and_then(|window| Some((window, self.process?)));
        let Some((window, process)) = place
            .filter(|(window, _)| !matches!(self.table.members(*window), CommMembers::NotMpi | CommMembers::Undefined))
        else {
            self.out.leftovers.foreign_windows += 1;
            return Ok(());
        };
        let op = match collective.op.on_window() {
            // One that does not synchronise processes.
            CollectiveOp::WIN_FENCE if !fence => CollectiveOp::UNKNOWN.on_window(),
            op => op,
        };
        let (sent, received) = (collective.sent > 0, collective.received > 0);
        let part = MemberRecord { op, root: collective.root, sent, received, accessed: accesses > 0 };
        self.participate(process, window, Participation { begin, end, part })
    }

    /// A one-sided operation.
    fn access(&mut self, window: WindowId) -> bool {
        let of_mpi =
            |index: CommIndex| !matches!(self.table.members(index), CommMembers::NotMpi | CommMembers::Undefined);
        if !self.table.window(window).is_some_and(of_mpi) {
            self.out.leftovers.foreign_accesses += 1;
            return false;
        }
        let epoch = self.epochs.entry(window).or_default();
        if !epoch.locked.is_empty() {
            self.out.leftovers.lock_accesses += 1;
        } else if epoch.groups > 0 {
            self.out.leftovers.group_accesses += 1;
        } else {
            epoch.accesses += 1;
            self.out.leftovers.fence_accesses += 1;
        }
        false
    }

    fn lock(&mut self, lock: &WindowLock, acquired: bool) -> bool {
        let locked = &mut self.epochs.entry(lock.window).or_default().locked;
        let place = locked.iter().position(|&remote| remote == lock.remote);
        match place {
            None if acquired => locked.push(lock.remote),
            Some(place) if !acquired => drop(locked.swap_remove(place)),
            _ => {}
        }
        false
    }

    /// The call that the location is in, if it is this one.
    #[inline]
    fn inside_of(&mut self, at: EventCoordinates, call: SynchronisingCall) -> Option<&mut Inside> {
        self.calls?;
        self.inside.get_mut(&at.location).filter(|inside| inside.call == call)
    }

    fn enter(&mut self, at: EventCoordinates, region: RegionId) -> Result<bool> {
        let Some(call) = self.calls.and_then(|calls| calls.get(region)) else { return Ok(false) };
        if let Some(inside) = self.inside.get_mut(&at.location) {
            inside.deeper += 1;
            return Ok(false);
        }
        let mut inside = Inside::new(call);
        if matches!(call, SynchronisingCall::Posts | SynchronisingCall::WinPost | SynchronisingCall::WinComplete) {
            inside.entered = Some(self.near(at)?);
        }
        let visited = inside.entered.is_some();
        self.inside.insert(at.location, inside);
        Ok(visited)
    }

    fn leave(&mut self, at: EventCoordinates, region: RegionId) -> Result<bool> {
        if self.calls.and_then(|calls| calls.get(region)).is_none() {
            return Ok(false);
        }
        match self.inside.get_mut(&at.location) {
            Some(inside) if inside.deeper > 0 => {
                inside.deeper -= 1;
                return Ok(false);
            }
            _ => {}
        }
        let Some(inside) = self.inside.remove(&at.location) else { return Ok(false) };
        match inside.call {
            SynchronisingCall::SynchronousSend => {
                let Some(sent) = inside.sent else { return Ok(false) };
                let end = self.near(at)?;
                self.out.synchronous.insert(sent, end);
                Ok(true)
            }
            SynchronisingCall::WinPost => {
                self.steps(&inside.groups, inside.entered, None);
                Ok(false)
            }
            SynchronisingCall::WinComplete | SynchronisingCall::WinWait if !inside.groups.is_empty() => {
                let end = self.near(at)?;
                self.steps(&inside.groups, inside.entered, Some((end, inside.call == SynchronisingCall::WinWait)));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The orders of steps with `groups`: others wait for `entered`, and `left` waits for others (with whether it ends an epoch of a target).
    fn steps(&mut self, groups: &[WindowGroup], entered: Option<u32>, left: Option<(u32, bool)>) {
        for sync in groups {
            let (Some(own), Some(window)) = (self.process, self.table.window(sync.window)) else { continue };
            let peers: Vec<MpiRank> = self.table.group(sync.group).unwrap_or_default().to_vec();
            for peer in peers.into_iter().filter(|&peer| peer != own) {
                let key = |completes: bool| GroupKey { peer, window, completes };
                if let Some(event) = entered {
                    // Complete tells a target what post has told the origins.
                    self.out.group_sends.entry(key(left.is_some())).or_default().push(event);
                }
                if let Some((event, completes)) = left {
                    self.out.group_receives.entry(key(completes)).or_default().push(event);
                }
            }
        }
    }

    fn group_sync(&mut self, at: EventCoordinates, sync: &WindowGroup) -> bool {
        let mut begins = sync.level & MEMORY == 0;
        if let Some(inside) = self.calls.and_then(|_| self.inside.get_mut(&at.location)) {
            inside.groups.push(*sync);
            // The call knows better than the level, which not every tracer tells alike.
            begins = match inside.call {
                SynchronisingCall::WinPost | SynchronisingCall::WinStart => true,
                SynchronisingCall::WinComplete | SynchronisingCall::WinWait => false,
                _ => begins,
            };
        }
        let groups = &mut self.epochs.entry(sync.window).or_default().groups;
        *groups = if begins { *groups + 1 } else { groups.saturating_sub(1) };
        false
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
mod tests {
    use super::*;
    use clc_trace::{ClockProperties, CollectiveOp, Communicator, Definitions, LocationId, Root};

    fn definitions() -> Definitions {
        Definitions {
            clock: ClockProperties { resolution: 1_000_000_000, global_offset: 0, trace_length: 0, realtime: None },
            locations: vec![],
            location_groups: vec![],
            system_tree: vec![],
            processes: vec![LocationId(0), LocationId(1)],
            communicators: vec![Communicator {
                id: CommId(4),
                name: String::new(),
                members: CommMembers::Intra([1, 0].map(MpiRank).into()),
                global_ranks: false,
            }],
            regions: vec![],
            windows: Vec::new(),
            groups: Vec::new(),
            thread_barriers: Vec::new(),
            callsites: Vec::new(),
            stream_references: Vec::new(),
        }
    }

    fn extract(events: &[Event]) -> Result<Extract> {
        let definitions = definitions();
        let table = CommTable::new(&definitions);
        let mut extractor = Extractor::new(&table, Some(MpiRank(0)));
        for (i, event) in events.iter().enumerate() {
            let at =
                EventCoordinates { time: i as i64, raw: i as i64, number: EventNumber::after(i as u64), location: 0 };
            extractor.event(at, event)?;
        }
        Ok(extractor.finish())
    }

    fn ends(list: &[MessageEnd]) -> Vec<u32> {
        list.iter().map(|end| end.event).collect()
    }

    fn message(tag: u32) -> Message {
        Message { peer: 0, comm: CommId(4), tag, length: 8 }
    }

    #[test]
    fn receives_are_listed_as_posted_not_as_completed() {
        let events = [
            Event::MpiIrecvRequest(1),
            Event::MpiIrecvRequest(2),
            Event::MpiIrecv(message(7), 2),
            Event::MpiIrecv(message(7), 1),
        ];
        let extract = extract(&events).unwrap();
        assert_eq!(ends(&extract.receives[&MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 }]), [1, 0]);
    }

    #[test]
    fn a_receive_without_a_recorded_request_has_no_place_in_the_order() {
        let events_of = [Event::MpiIrecvRequest(1), Event::MpiIrecv(message(7), 2), Event::MpiIrecv(message(7), 1)];
        let extract = extract(&events_of).unwrap();
        let key = MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 };
        assert_eq!((ends(&extract.receives[&key]), ends(&extract.unplaced[&key])), (vec![1], vec![0]));
    }

    #[test]
    fn blocking_receives_are_posted_where_their_region_is_entered() {
        let definitions = definitions();
        let table = CommTable::new(&definitions);
        let mut extractor = Extractor::new(&table, Some(MpiRank(0)));
        let at = |time: i64, location: u32| EventCoordinates {
            time,
            raw: time,
            number: EventNumber::after(time as u64),
            location,
        };
        extractor.enter_receive(at(1, 0)).unwrap();
        extractor.event(at(2, 1), &Event::MpiIrecvRequest(9)).unwrap();
        extractor.event(at(3, 1), &Event::MpiIrecv(message(7), 9)).unwrap();
        extractor.event(at(4, 0), &Event::MpiRecv(message(7))).unwrap();
        extractor.event(at(5, 0), &Event::MpiRecv(message(7))).unwrap();
        let extract = extractor.finish();
        assert_eq!(ends(&extract.receives[&MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 }]), [1, 0, 2]);
    }

    #[test]
    fn a_cancelled_send_is_no_send() {
        let events = [
            Event::MpiIsend(message(7), 1),
            Event::MpiIsend(message(7), 2),
            Event::MpiRequestCancelled(1),
            Event::MpiIsendComplete(2),
        ];
        let extract = extract(&events).unwrap();
        assert_eq!(ends(&extract.sends[&MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 }]), [1]);
        assert_eq!(extract.leftovers.cancelled, 1);
    }

    #[test]
    fn messages_without_a_peer_leave_gaps() {
        let undefined = |peer| Message { peer, ..message(7) };
        let events = [
            Event::MpiSend(message(7)),
            // Undefined, not in the communicator, cancelled.
            Event::MpiSend(undefined(u32::MAX)),
            Event::MpiSend(undefined(2)),
            Event::MpiIsend(undefined(u32::MAX), 1),
            Event::MpiRequestCancelled(1),
            Event::MpiSend(message(7)),
            Event::MpiIrecvRequest(2),
            Event::MpiRecv(message(7)),
            // Posted before the one above.
            Event::MpiIrecv(undefined(u32::MAX), 2),
        ];
        let extract = extract(&events).unwrap();
        let key = MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 };
        assert_eq!((extract.sends.len(), ends(&extract.sends[&key])), (1, vec![0, 4]));
        assert_eq!(extract.send_gaps[&key], Gaps { count: 2, after: vec![1, 1] });
        assert_eq!((extract.receives.len(), ends(&extract.receives[&key])), (1, vec![5]));
        assert_eq!(extract.receive_gaps[&key], Gaps { count: 1, after: vec![0] });
        assert_eq!(extract.undefined, [(1, true), (2, true), (6, false)]);
        assert_eq!((extract.leftovers.undefined_peer, extract.leftovers.cancelled), (3, 1));
    }

    #[test]
    fn a_posted_receive_without_completion_is_counted() {
        let extract = extract(&[Event::MpiIrecvRequest(1)]).unwrap();
        assert_eq!(extract.leftovers.never_completed, 1);
        assert!(extract.receives.is_empty());
    }

    #[test]
    fn non_blocking_collectives_are_ordered_by_their_begin() {
        let end = Collective { op: CollectiveOp::BARRIER, comm: CommId(4), root: Root::None, sent: 0, received: 0 };
        let events = [
            Event::NonBlockingCollectiveRequest(1),
            Event::NonBlockingCollectiveRequest(2),
            Event::NonBlockingCollectiveComplete(end, 2),
            Event::NonBlockingCollectiveComplete(end, 1),
        ];
        let extract = extract(&events).unwrap();
        let begins: Vec<_> = extract.collectives[&CommIndex(0)].iter().map(|p| (p.begin, p.end)).collect();
        assert_eq!(begins, [(0, 3), (1, 2)]);
    }
}
