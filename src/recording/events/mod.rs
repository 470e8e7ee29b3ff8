//! The second pass over the records of a process: its events, as a measurement system would have written them.
//!
//! An event has the time of one end of its call: sends and beginnings that of the Enter, receives, completions and ends that of the Leave.

mod collectives;
mod epochs;
mod on_window;
mod openmp;
mod polls;
mod process;
mod pthreads;
mod request_ids;
mod requests;
mod returns;
mod thread_numbers;

use crate::recording::clocks::Counter;
use crate::recording::communicators::{Catalogue, Communicators, Identity, Making};
use crate::recording::events::collectives::{CollectiveCaller, collective};
use crate::recording::events::on_window::OnWindow;
use crate::recording::events::openmp::state::OpenMpState;
pub(super) use crate::recording::events::process::{EventsOf, UnplacedCalls};
use crate::recording::events::request_ids::RequestIds;
use crate::recording::events::requests::{RequestedOperation, Requests, Serial};
use crate::recording::events::thread_numbers::ThreadNumbers;
use crate::recording::extra::{EventOrExtra, Extra};
use crate::recording::own::OwnNames;
use crate::recording::polls::PollNames;
use crate::recording::raw::RawFileHeader;
use crate::recording::raw::format::calls::{Effect, Form, Function};
use crate::recording::raw::merge::Merge;
use crate::recording::raw::records::{Contribution, Given, Own, Posted, RawRecord};
use crate::recording::survey::makes;
use crate::recording::survey::openmp::ProcessTeams;
use crate::recording::survey::pthreads::ProcessPthreads;
use crate::recording::windows::{ProcessWindows, WindowCatalogue};
use clc_trace::{Collective, CommId, Event, Message, RegionId, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What the events of all processes are made with.
#[derive(Debug)]
pub(super) struct EventContext<'a> {
    /// The table.
    pub functions: &'a [Function<'static>],
    /// The communicators.
    pub catalogue: &'a Catalogue,
    /// The windows, and groups on them.
    pub windows: &'a WindowCatalogue,
    /// Functions, regions and metrics of the program.
    pub own: &'a OwnNames,
    /// The region of joined polls.
    pub polls: &'a PollNames,
    /// The region of each function that occurs.
    pub regions: &'a HashMap<usize, RegionId>,
    /// Teams of threads, by the rank of the process.
    pub teams: &'a BTreeMap<u32, ProcessTeams<'a>>,
    /// Threads that processes made themselves, likewise.
    pub pthreads: &'a BTreeMap<u32, ProcessPthreads<'a>>,
}

impl EventContext<'_> {
    pub(super) fn teams(&self, rank: u32) -> Option<&ProcessTeams<'_>> {
        self.teams.get(&rank)
    }
}

/// A call that has begun, with what its end needs.
#[derive(Debug, Default)]
struct OpenCall {
    function: usize,
    /// Requests that it was given: their handles, and which these were.
    requests: Vec<Option<(u64, Serial)>>,
    /// Communicator of a receive; it is freed, or the operation is on it.
    comm: Option<CommId>,
    freed: Option<(u64, Identity)>,
    /// What a request will stand for that it makes.
    request: Option<RequestedOperation>,
    contribution: Option<Contribution>,
    window: Option<OnWindow>,
    /// What it is to receive besides what it sends.
    posted: Option<Posted>,
}

/// Where the events of a process go: index of the thread, reading of the counter, event.
pub(super) type Sink<'a> = dyn FnMut(usize, u64, EventOrExtra) -> Result<()> + 'a;

/// The events of one process, while its raw files are read.
pub(super) struct ProcessEvents<'a, 'b> {
    pub(super) shared: &'a EventContext<'a>,
    pub(super) header: &'a RawFileHeader,
    communicators: Communicators,
    requests: Requests,
    pub(super) windows: ProcessWindows,
    /// Regions that each thread is in, the outermost first.
    regions: Vec<Vec<RegionId>>,
    /// Communicators of matched messages.
    messages: HashMap<u64, Option<CommId>>,
    ids: RequestIds,
    making: Vec<Option<Making>>,
    pub(super) openmp: OpenMpState,
    pthreads: ThreadNumbers,
    open: Vec<Option<OpenCall>>,
    /// How many calls each thread has made, and those that failed.
    calls: Vec<u64>,
    failed: &'a BTreeSet<(usize, u64)>,
    counter: Option<Counter>,
    pub(super) unplaced: UnplacedCalls,
    sink: &'b mut Sink<'b>,
}

/// Writes the events of a process into `sink`. Calls that have not ended do so at the last event of the process; those that failed have communicated nothing.
///
/// # Errors
/// Those of `sink`.
pub(super) fn events<'b>(
    shared: &EventContext<'_>,
    EventsOf { header, threads, failed, counter }: EventsOf<'_>,
    merge: &mut Merge<'_>,
    sink: &'b mut Sink<'b>,
) -> Result<UnplacedCalls> {
    let mut process = ProcessEvents {
        shared,
        header,
        communicators: Communicators::new(header.world, header.own, header.rank),
        requests: Requests::default(),
        windows: ProcessWindows::default(),
        regions: vec![Vec::new(); threads],
        messages: HashMap::new(),
        ids: RequestIds::new(threads),
        making: vec![None; threads],
        openmp: OpenMpState::new(threads),
        pthreads: ThreadNumbers::default(),
        open: (0..threads).map(|_| None).collect(),
        calls: vec![0; threads],
        failed,
        counter,
        unplaced: UnplacedCalls::default(),
        sink,
    };
    let mut last = 0;
    merge.each(|thread, time, record| {
        last = time;
        process.record(thread, time, record)
    })?;
    for thread in 0..threads {
        process.leave_barrier(thread, false)?;
        process.leave_to(thread, last, 0)?;
    }
    Ok(process.unplaced)
}

impl ProcessEvents<'_, '_> {
    pub(super) fn emit(&mut self, thread: usize, time: u64, event: &Event) -> Result<()> {
        (self.sink)(thread, time, EventOrExtra::Event(*event))
    }

    pub(super) fn extra(&mut self, thread: usize, time: u64, extra: Extra) -> Result<()> {
        (self.sink)(thread, time, EventOrExtra::Extra(extra))
    }

    /// In how many regions a thread is.
    pub(super) fn depth(&self, thread: usize) -> usize {
        self.regions.get(thread).map_or(0, Vec::len)
    }

    pub(super) fn enter_region(&mut self, thread: usize, time: u64, region: RegionId) -> Result<()> {
        if let Some(regions) = self.regions.get_mut(thread) {
            regions.push(region);
        }
        self.emit(thread, time, &Event::Enter(region))
    }

    /// Leaves regions until so many are left.
    pub(super) fn leave_to(&mut self, thread: usize, time: u64, depth: usize) -> Result<()> {
        while let Some(regions) = self.regions.get_mut(thread).filter(|regions| regions.len() > depth) {
            let Some(region) = regions.pop() else { break };
            self.emit(thread, time, &Event::Leave(region))?;
        }
        Ok(())
    }

    /// Leaves the innermost of these regions that the thread is in, and what is inside of it: that has been left by a jump.
    fn leave_this(&mut self, thread: usize, time: u64, region: RegionId) -> Result<()> {
        let regions = self.regions.get(thread);
        let depth = regions.and_then(|regions| regions.iter().rposition(|&open| open == region));
        match depth {
            Some(depth) => self.leave_to(thread, time, depth),
            None => Ok(()),
        }
    }

    /// What the program tells of itself.
    fn own(&mut self, thread: usize, time: u64, own: &Own) -> Result<()> {
        if let Own::Metric(name, value) = own {
            return match self.shared.own.metric(name) {
                Some(metric) => self.extra(thread, time, Extra::Metric(metric, *value)),
                None => Ok(()),
            };
        }
        let Some(region) = self.shared.own.region(self.header.rank, own) else { return Ok(()) };
        match own {
            Own::Function(_) | Own::Region(_) => self.enter_region(thread, time, region),
            Own::Marker(_) => {
                self.emit(thread, time, &Event::Enter(region))?;
                self.emit(thread, time, &Event::Leave(region))
            }
            _ => self.leave_this(thread, time, region),
        }
    }

    /// Number of a communicator; an event on one without a number is left out.
    fn comm(&mut self, handle: u64) -> Option<CommId> {
        let known = self.communicators.get(handle);
        let id = known.and_then(|known| self.shared.catalogue.id(&known.identity));
        if id.is_none() {
            self.unplaced.on_unknown_communicators += 1;
        }
        id
    }

    fn leave_region(&mut self, thread: usize, time: u64, function: usize) -> Result<()> {
        match self.shared.regions.get(&function) {
            Some(&region) => self.leave_this(thread, time, region),
            None => Ok(()),
        }
    }

    fn record(&mut self, thread: usize, time: u64, record: RawRecord) -> Result<()> {
        if let RawRecord::OpenMp(_, step) = record {
            return self.openmp(thread, time, step);
        }
        self.leave_barrier(thread, false)?;
        match record {
            RawRecord::OpenMp(..) => Ok(()),
            RawRecord::Enter(function, _, given) => self.enter(thread, time, function, given),
            RawRecord::Leave(_, gave) => {
                let Some(open) = self.open.get_mut(thread).and_then(Option::take) else { return Ok(()) };
                let function = open.function;
                let claimed: Vec<Serial> = open.requests.iter().flatten().map(|&(_, serial)| serial).collect();
                self.leave(thread, time, open, gave)?;
                claimed.into_iter().for_each(|serial| self.requests.release(serial));
                self.leave_region(thread, time, function)
            }
            RawRecord::Failed(_) => {
                let Some(open) = self.open.get_mut(thread).and_then(Option::take) else { return Ok(()) };
                open.requests.iter().flatten().for_each(|&(_, serial)| self.requests.release(serial));
                self.leave_region(thread, time, open.function)
            }
            RawRecord::Comm(new) => {
                if let Some(Some(making)) = self.making.get(thread) {
                    self.communicators.add(making, new);
                }
                Ok(())
            }
            RawRecord::Window(handle) => {
                if let Some(Some(open)) = self.open.get(thread)
                    && let Some(OnWindow::Makes(key, allocated)) = &open.window
                {
                    self.windows.add(handle, key.clone(), *allocated);
                }
                Ok(())
            }
            RawRecord::CommName(..) | RawRecord::WindowName(..) => Ok(()),
            RawRecord::Own(_, own) => self.own(thread, time, &own),
            RawRecord::Pthread(_, step) => self.pthread(thread, time, step),
            RawRecord::Polls(_, polls) => self.polls(thread, time, &polls),
            RawRecord::PollsEnd(_) => self.polls_end(thread, time),
        }
    }

    fn enter(&mut self, thread: usize, time: u64, function: usize, given: Given) -> Result<()> {
        let Some(&called) = self.shared.functions.get(function) else { return Ok(()) };
        if let Some(&region) = self.shared.regions.get(&function) {
            self.enter_region(thread, time, region)?;
        }
        let mut open = OpenCall { function, ..OpenCall::default() };
        let given = if self.fails(thread) { self.without_communication(called.effect, &given) } else { given };
        match (called.effect, given) {
            (effect, Given::Send(peer, tag, handle, length)) => {
                self.send(thread, time, effect, (peer, tag, handle, length), &mut open)?;
            }
            (effect, Given::SendReceive(peer, tag, handle, length, posted)) => {
                open.posted = Some(posted);
                self.send(thread, time, effect, (peer, tag, handle, length), &mut open)?;
            }
            (Effect::Mprobe | Effect::Improbe, Given::Receive(handle, nobody)) => {
                open.comm = self.comm(handle).filter(|_| !nobody);
            }
            (effect, Given::Receive(handle, nobody)) => {
                let comm = self.comm(handle).filter(|_| !nobody);
                open.request = comm.map(|comm| match effect {
                    Effect::RecvInit => RequestedOperation::PersistentReceive(comm, None),
                    _ => RequestedOperation::Receive(self.ids.begin(thread), comm),
                });
            }
            (effect, Given::Window(handle, target, exclusive)) => {
                let call = OnWindow::Uses(handle, target, exclusive);
                if self.windows.get_mut(handle).is_some() {
                    self.enter_window(thread, time, effect, &call)?;
                }
                open.window = Some(call);
            }
            (_, Given::Epoch(handle, group)) => open.window = Some(OnWindow::Epoch(handle, Arc::from(group))),
            (effect, Given::Access(window, target, sent, received)) => {
                let request = called.form != Form::Blocking;
                let made = self.access(thread, time, effect, (window, target, sent, received), request)?;
                open.request = made.map(|(window, matching)| RequestedOperation::Access(window, matching));
            }
            (effect, Given::Comm(handle)) => self.enter_communicator(thread, time, effect, (handle, 0), &mut open)?,
            (effect, Given::Group(handle, tag)) => {
                self.enter_communicator(thread, time, effect, (handle, tag), &mut open)?;
            }
            (effect, Given::Requests(handles)) => {
                let mut which = |handle: Option<u64>| Some((handle?, self.requests.claim(handle?)?));
                open.requests = handles.into_iter().map(&mut which).collect();
                if let Effect::Start | Effect::Startall = effect {
                    self.start(thread, time, &open.requests)?;
                }
            }
            (_, Given::Message(handle)) => {
                open.comm = self.messages.remove(&handle).flatten();
                let made = open.comm.filter(|_| called.effect == Effect::Imrecv);
                open.request = made.map(|comm| RequestedOperation::Receive(self.ids.begin(thread), comm));
            }
            (_, Given::Collective(contribution)) => {
                self.begin_collective(thread, time, called.form, contribution, &mut open)?;
            }
            (Effect::Init | Effect::InitThread | Effect::Finalize, _) => {
                self.emit(thread, time, &Event::MpiCollectiveBegin)?;
            }
            (_, Given::Nothing) => {}
        }
        if let Some(place) = self.open.get_mut(thread) {
            *place = Some(open);
        }
        Ok(())
    }

    /// A call begins that makes or frees a communicator, makes a window of one, or takes one.
    fn enter_communicator(
        &mut self,
        thread: usize,
        time: u64,
        effect: Effect,
        (handle, tag): (u64, i64),
        open: &mut OpenCall,
    ) -> Result<()> {
        match effect {
            Effect::CommFree => {
                open.freed = self.communicators.get(handle).map(|known| (handle, known.identity.clone()));
                open.comm = self.comm(handle);
                // Without a communicator it has no end.
                if open.comm.is_some() {
                    self.emit(thread, time, &Event::MpiCollectiveBegin)?;
                }
            }
            Effect::WinCreate | Effect::WinAllocate => {
                let comm = self.communicators.get(handle).map(|known| Arc::clone(&known.identity));
                let made = self.windows.begin(comm).map(|key| OnWindow::Makes(key, effect == Effect::WinAllocate));
                open.window = made.filter(|_| self.comm(handle).is_some());
                if let Some(call) = &open.window {
                    self.enter_window(thread, time, effect, call)?;
                }
            }
            _ => {
                if makes(effect) {
                    let making = self.communicators.begin(effect, handle, tag);
                    if let Some(place) = self.making.get_mut(thread) {
                        *place = Some(making);
                    }
                }
                // One that is made of groups has no other that it comes from, with sessions.
                let from_groups = matches!(effect, Effect::CommCreateGroup | Effect::IntercommCreate);
                if !from_groups || self.communicators.get(handle).is_some() {
                    open.comm = self.comm(handle);
                }
                if effect == Effect::CommCreate && open.comm.is_some() {
                    self.emit(thread, time, &Event::MpiCollectiveBegin)?;
                }
            }
        }
        Ok(())
    }

    /// Another call begins. Whether it is one that failed.
    fn fails(&mut self, thread: usize) -> bool {
        let Some(calls) = self.calls.get_mut(thread) else { return false };
        *calls += 1;
        self.failed.contains(&(thread, *calls))
    }

    /// What a call that failed was given, of which only what is counted happens.
    fn without_communication(&mut self, effect: Effect, given: &Given) -> Given {
        if let Given::Group(handle, tag) = *given {
            self.communicators.begin(effect, handle, tag);
        } else if let Given::Comm(handle) = *given {
            if makes(effect) {
                self.communicators.begin(effect, handle, 0);
            } else if let Effect::WinCreate | Effect::WinAllocate = effect {
                let comm = self.communicators.get(handle).map(|known| Arc::clone(&known.identity));
                self.windows.begin(comm);
            }
        }
        Given::Nothing
    }

    /// The send of a call, if it sends to somebody: peer, tag, communicator, bytes.
    fn send(
        &mut self,
        thread: usize,
        time: u64,
        effect: Effect,
        (peer, tag, handle, length): (i64, i64, u64, u64),
        open: &mut OpenCall,
    ) -> Result<()> {
        open.comm = self.comm(handle);
        let to = open.comm.zip(u32::try_from(peer).ok());
        let Some(message) = to.map(|(comm, peer)| Message { peer, comm, tag: tag as u32, length }) else {
            return Ok(());
        };
        match effect {
            Effect::SendInit => open.request = Some(RequestedOperation::PersistentSend(message, None)),
            Effect::Isend | Effect::Isendrecv | Effect::IsendrecvReplace => {
                let id = self.ids.begin(thread);
                open.request = Some(RequestedOperation::Send(id));
                self.emit(thread, time, &Event::MpiIsend(message, id))?;
            }
            _ => self.emit(thread, time, &Event::MpiSend(message))?,
        }
        Ok(())
    }

    /// Persistent requests become active.
    fn start(&mut self, thread: usize, time: u64, requests: &[Option<(u64, Serial)>]) -> Result<()> {
        for &(_, serial) in requests.iter().flatten() {
            let id = self.ids.begin(thread);
            let event = match self.requests.get_mut(serial) {
                Some(RequestedOperation::PersistentSend(message, active)) => {
                    *active = Some(id);
                    Event::MpiIsend(*message, id)
                }
                Some(RequestedOperation::PersistentReceive(_, active)) => {
                    *active = Some(id);
                    Event::MpiIrecvRequest(id)
                }
                Some(RequestedOperation::PersistentCollective(_, _, active)) => {
                    *active = Some(id);
                    Event::NonBlockingCollectiveRequest(id)
                }
                _ => continue,
            };
            self.emit(thread, time, &event)?;
        }
        Ok(())
    }

    fn begin_collective(
        &mut self,
        thread: usize,
        time: u64,
        form: Form,
        contribution: Contribution,
        open: &mut OpenCall,
    ) -> Result<()> {
        open.comm = self.comm(contribution.comm);
        if open.comm.is_none() {
            return Ok(());
        }
        match form {
            Form::Blocking => {
                open.contribution = Some(contribution);
                self.emit(thread, time, &Event::MpiCollectiveBegin)
            }
            Form::Immediate => {
                let id = self.ids.begin(thread);
                open.request = Some(RequestedOperation::Collective(id, open.function, contribution));
                self.emit(thread, time, &Event::NonBlockingCollectiveRequest(id))
            }
            Form::Persistent => {
                open.request = Some(RequestedOperation::PersistentCollective(open.function, contribution, None));
                Ok(())
            }
        }
    }

    /// The end of a collective operation.
    fn collective(&self, function: usize, given: Contribution) -> Option<Collective> {
        let effect = self.shared.functions.get(function)?.effect;
        let known = self.communicators.get(given.comm)?;
        let catalogue = self.shared.catalogue;
        let place = CollectiveCaller {
            comm: catalogue.id(&known.identity)?,
            members: catalogue.size(&known.identity, self.header.size),
            rank: u64::from(known.rank),
            inter: catalogue.is_inter(&known.identity),
        };
        collective(effect, given, place)
    }
}
