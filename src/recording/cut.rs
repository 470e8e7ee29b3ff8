//! Recordings that begin within the run (a ring, or from some moment on): communication of which one process has recorded its part and another one has not, since it began to record later.
//!
//! Whoever reads the archive tells messages and collective operations by their order. So what lacks its counterpart must not be in it, or all that follows would be put together
//! wrongly. Where every process recorded until `MPI_Finalize`, all lists are complete at their ends: of the sends and the receives of a channel, and of the operations of the members of
//! a communicator or window, those that one side has more are its first ones. What makes and frees communicators and windows is recorded from the beginning, and does not count.

use crate::recording::extra::EventOrExtra;
use clc_trace::{CollectiveOp, CommId, CommMembers, Definitions, Event, Message, MpiRank, WindowId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Sender, receiver, communicator, tag.
type Channel = (MpiRank, MpiRank, CommId, u32);

/// What members of a communicator or window do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Together {
    Comm(CommId),
    Window(WindowId),
}

/// An operation of one process: one with a request has its number, another one a number among those of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Send(u64),
    Receive(u64),
    Collective(u64),
    OnWindow(u64),
    Requested(u64),
}

/// Operations, with the places of the events at which they were sent, posted or begun; in the order in which they were recorded.
type Placed = Vec<(u64, Operation)>;

/// The first ones of a list, by their places.
fn first(list: &[(u64, Operation)], count: usize) -> impl Iterator<Item = Operation> {
    let mut sorted = if count > 0 { list.to_vec() } else { Vec::new() };
    sorted.sort_unstable();
    sorted.into_iter().take(count).map(|(_, operation)| operation)
}

/// What a thread is in.
#[derive(Debug, Default)]
struct ThreadState {
    /// When the regions began that it is in, the outermost first.
    regions: Vec<u64>,
    /// Collective operations that it has begun.
    collectives: Vec<(u64, Operation)>,
    windows: Vec<(u64, Operation)>,
    communicates: bool,
}

/// What a process has recorded of its communication, in the order of the events.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    rank: MpiRank,
    groups: &'a Groups<'a>,
    threads: BTreeMap<usize, ThreadState>,
    /// Events so far.
    place: u64,
    counts: Counts,
    /// Groups have been synchronised on windows.
    has_groups: bool,
    /// Places at which requests began.
    began: HashMap<u64, u64>,
    sends: BTreeMap<Channel, Placed>,
    receives: BTreeMap<Channel, Placed>,
    together: BTreeMap<Together, Placed>,
}

/// How many operations without requests there were.
#[derive(Debug, Default)]
struct Counts {
    sends: u64,
    receives: u64,
    collectives: u64,
    on_windows: u64,
}

fn next(count: &mut u64) -> u64 {
    *count += 1;
    *count
}

/// The members of all communicators, and the communicators of all windows.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    comms: HashMap<CommId, &'a CommMembers>,
    windows: HashMap<WindowId, CommId>,
}

impl<'a> Groups<'a> {
    /// Those of a trace.
    pub(super) fn new(definitions: &'a Definitions) -> Groups<'a> {
        Groups {
            comms: definitions.communicators.iter().map(|comm| (comm.id, &comm.members)).collect(),
            windows: definitions.windows.iter().map(|window| (window.id, window.comm)).collect(),
        }
    }

    /// Whose operations have to be as many. Those of a process by itself have no counterpart.
    fn of(&self, who: Together) -> Vec<MpiRank> {
        let comm = match who {
            Together::Comm(comm) => Some(comm),
            Together::Window(window) => self.windows.get(&window).copied(),
        };
        match comm.and_then(|comm| self.comms.get(&comm)) {
            Some(CommMembers::Intra(members)) => members.to_vec(),
            Some(CommMembers::Inter(a, b)) => a.iter().chain(&**b).copied().collect(),
            _ => Vec::new(),
        }
    }
}

/// What is made or freed is recorded from the beginning.
fn is_kept(op: CollectiveOp) -> bool {
    op.0 & !CollectiveOp::ON_WINDOW >= CollectiveOp::CREATE_HANDLE.0
}

impl<'a> Tally<'a> {
    /// Of a process.
    pub(super) fn new(rank: u32, groups: &'a Groups<'a>) -> Tally<'a> {
        Tally {
            rank: MpiRank(rank),
            groups,
            threads: BTreeMap::new(),
            place: 0,
            counts: Counts::default(),
            has_groups: false,
            began: HashMap::new(),
            sends: BTreeMap::new(),
            receives: BTreeMap::new(),
            together: BTreeMap::new(),
        }
    }

    /// Whether its lists cannot be compared by their ends: more than one thread has communicated, each of which began to record when it happened to, or groups of processes
    /// were synchronised on windows, where each step belongs to others of many processes.
    pub(super) fn is_unclear(&self) -> bool {
        self.has_groups || self.threads.values().filter(|thread| thread.communicates).count() > 1
    }

    /// The process that a message of this one is from or to.
    fn peer(&self, message: &Message) -> Option<MpiRank> {
        let peer = message.peer as usize;
        match self.groups.comms.get(&message.comm)? {
            CommMembers::Intra(members) => members.get(peer).copied(),
            CommMembers::Inter(a, b) => if a.contains(&self.rank) { b } else { a }.get(peer).copied(),
            CommMembers::SelfOnly => Some(self.rank),
            CommMembers::NotMpi | CommMembers::Undefined => None,
        }
    }

    fn send(&mut self, message: &Message, operation: Operation) {
        if let Some(to) = self.peer(message) {
            let channel = (self.rank, to, message.comm, message.tag);
            self.sends.entry(channel).or_default().push((self.place, operation));
        }
    }

    fn receive(&mut self, message: &Message, posted: u64, operation: Operation) {
        if let Some(from) = self.peer(message) {
            let channel = (from, self.rank, message.comm, message.tag);
            self.receives.entry(channel).or_default().push((posted, operation));
        }
    }

    fn together(&mut self, who: Together, op: CollectiveOp, (place, operation): (u64, Operation)) {
        if !is_kept(op) {
            self.together.entry(who).or_default().push((place, operation));
        }
    }

    /// The next event of a thread.
    pub(super) fn add(&mut self, thread: usize, event: &EventOrExtra) {
        let EventOrExtra::Event(event) = event else { return };
        self.place += 1;
        let place = self.place;
        let own = self.threads.entry(thread).or_default();
        match event {
            Event::Enter(_) => own.regions.push(place),
            Event::Leave(_) => {
                own.regions.pop();
            }
            _ => {}
        }
        own.communicates |=
            !matches!(event, Event::Enter(_) | Event::Leave(_) | Event::Thread(_) | Event::Parameter(_));
        match event {
            Event::MpiSend(message) => {
                let operation = Operation::Send(next(&mut self.counts.sends));
                self.send(message, operation);
            }
            Event::MpiIsend(message, request) => self.send(message, Operation::Requested(*request)),
            Event::MpiRecv(message) => {
                // It was posted when its call began.
                let posted = own.regions.last().copied().unwrap_or(place);
                let operation = Operation::Receive(next(&mut self.counts.receives));
                self.receive(message, posted, operation);
            }
            Event::MpiIrecvRequest(request) | Event::NonBlockingCollectiveRequest(request) => {
                self.began.insert(*request, place);
            }
            Event::MpiIrecv(message, request) => {
                let posted = self.began.get(request).copied().unwrap_or(place);
                self.receive(message, posted, Operation::Requested(*request));
            }
            Event::NonBlockingCollectiveComplete(collective, request) => {
                let began = self.began.get(request).copied().unwrap_or(place);
                self.together(Together::Comm(collective.comm), collective.op, (began, Operation::Requested(*request)));
            }
            Event::MpiCollectiveBegin => {
                own.collectives.push((place, Operation::Collective(next(&mut self.counts.collectives))));
            }
            Event::MpiCollectiveEnd(collective) => {
                if let Some(begun) = own.collectives.pop() {
                    self.together(Together::Comm(collective.comm), collective.op, begun);
                }
            }
            Event::RmaGroupSync(_) => self.has_groups = true,
            Event::RmaCollectiveBegin => {
                own.windows.push((place, Operation::OnWindow(next(&mut self.counts.on_windows))));
            }
            Event::RmaCollectiveEnd(collective) => {
                if let Some(begun) = own.windows.pop() {
                    self.together(Together::Window(collective.window), collective.op, begun);
                }
            }
            _ => {}
        }
    }
}

/// What one process has recorded without its counterpart.
#[derive(Debug, Default, Clone)]
pub(super) struct LeftOut {
    operations: BTreeSet<Operation>,
}

/// How many operations are left out, by what they are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeftOutCounts {
    /// Sends and receives.
    pub messages: u64,
    /// Parts in collective operations.
    pub collectives: u64,
}

/// What the processes, by their ranks, have recorded without its counterpart.
pub(super) fn without_counterparts(tallies: &[Tally<'_>], groups: &Groups<'_>) -> (Vec<LeftOut>, LeftOutCounts) {
    let mut left_out = vec![LeftOut::default(); tallies.len()];
    let mut counts = LeftOutCounts::default();
    let count = |lists: &BTreeMap<Channel, Placed>, channel: &Channel| lists.get(channel).map_or(0, Vec::len);
    let mut both: BTreeMap<Channel, usize> = BTreeMap::new();
    let of = |rank: MpiRank| tallies.get(rank.0 as usize);
    for tally in tallies {
        for channel in tally.sends.keys().chain(tally.receives.keys()) {
            let (from, to, ..) = *channel;
            let sends = of(from).map_or(0, |tally| count(&tally.sends, channel));
            let receives = of(to).map_or(0, |tally| count(&tally.receives, channel));
            both.insert(*channel, sends.min(receives));
        }
    }
    let all: BTreeSet<Together> = tallies.iter().flat_map(|tally| tally.together.keys().copied()).collect();
    let least = |who: Together| {
        let members = groups.of(who);
        let own = |rank: &MpiRank| of(*rank).and_then(|tally| tally.together.get(&who)).map_or(0, Vec::len);
        members.iter().map(own).min()
    };
    let together: BTreeMap<Together, usize> = all.into_iter().filter_map(|who| Some((who, least(who)?))).collect();
    for (tally, left_out) in tallies.iter().zip(&mut left_out) {
        for (channel, list) in tally.sends.iter().chain(&tally.receives) {
            let more = list.len().saturating_sub(both.get(channel).copied().unwrap_or(0));
            left_out.operations.extend(first(list, more));
            counts.messages += more as u64;
        }
        for (who, list) in &tally.together {
            let more = together.get(who).map_or(0, |least| list.len().saturating_sub(*least));
            left_out.operations.extend(first(list, more));
            counts.collectives += more as u64;
        }
    }
    (left_out, counts)
}

/// Goes along with the events of a process a second time: which of them belong to what is left out.
#[derive(Debug)]
pub(super) struct Filter<'a> {
    left_out: &'a LeftOut,
    counts: Counts,
    /// Collective operations that threads have begun, and whether they are left out.
    collectives: BTreeMap<usize, Vec<bool>>,
    on_windows: BTreeMap<usize, Vec<bool>>,
}

impl<'a> Filter<'a> {
    /// Of a process.
    pub(super) fn new(left_out: &'a LeftOut) -> Filter<'a> {
        Filter { left_out, counts: Counts::default(), collectives: BTreeMap::new(), on_windows: BTreeMap::new() }
    }

    /// Whether the next event of a thread stays.
    pub(super) fn keeps(&mut self, thread: usize, event: &EventOrExtra) -> bool {
        let EventOrExtra::Event(event) = event else { return true };
        let is_out = |operation| self.left_out.operations.contains(&operation);
        let out = match event {
            Event::MpiSend(_) => is_out(Operation::Send(next(&mut self.counts.sends))),
            Event::MpiRecv(_) => is_out(Operation::Receive(next(&mut self.counts.receives))),
            Event::MpiIsend(_, request)
            | Event::MpiIsendComplete(request)
            | Event::MpiIrecvRequest(request)
            | Event::MpiIrecv(_, request)
            | Event::MpiRequestTest(request)
            | Event::MpiRequestCancelled(request)
            | Event::NonBlockingCollectiveRequest(request)
            | Event::NonBlockingCollectiveComplete(_, request) => is_out(Operation::Requested(*request)),
            Event::MpiCollectiveBegin => {
                let out = is_out(Operation::Collective(next(&mut self.counts.collectives)));
                self.collectives.entry(thread).or_default().push(out);
                out
            }
            Event::MpiCollectiveEnd(_) => self.collectives.entry(thread).or_default().pop().unwrap_or(false),
            Event::RmaCollectiveBegin => {
                let out = is_out(Operation::OnWindow(next(&mut self.counts.on_windows)));
                self.on_windows.entry(thread).or_default().push(out);
                out
            }
            Event::RmaCollectiveEnd(_) => self.on_windows.entry(thread).or_default().pop().unwrap_or(false),
            _ => false,
        };
        !out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::{Collective, RegionId, Root};

    const WORLD: CommId = CommId(0);

    fn message(peer: u32) -> Message {
        Message { peer, comm: WORLD, tag: 7, length: 8 }
    }

    fn barrier() -> Event {
        Event::MpiCollectiveEnd(Collective {
            op: CollectiveOp::BARRIER,
            comm: WORLD,
            root: Root::None,
            sent: 0,
            received: 0,
        })
    }

    /// What is left of the events of two processes, as numbers of the events.
    fn left(events: [&[Event]; 2]) -> ([Vec<usize>; 2], LeftOutCounts) {
        let members = CommMembers::Intra([0, 1].map(MpiRank).into());
        let groups = Groups { comms: HashMap::from([(WORLD, &members)]), windows: HashMap::new() };
        let tallies: Vec<Tally> = (0..2)
            .map(|rank| {
                let mut tally = Tally::new(rank, &groups);
                events[rank as usize].iter().for_each(|event| tally.add(0, &EventOrExtra::Event(*event)));
                tally
            })
            .collect();
        let (left_out, counts) = without_counterparts(&tallies, &groups);
        let kept = |rank: usize| {
            let mut filter = Filter::new(&left_out[rank]);
            let all = events[rank].iter().enumerate();
            all.filter(|(_, event)| filter.keeps(0, &EventOrExtra::Event(**event))).map(|(place, _)| place).collect()
        };
        ([kept(0), kept(1)], counts)
    }

    #[test]
    fn the_first_ends_without_a_counterpart_are_left_out() {
        let send = Event::MpiSend(message(1));
        let receive = Event::MpiRecv(message(0));
        let (kept, counts) = left([&[send, send, send], &[receive, receive]]);
        assert_eq!(kept, [vec![1, 2], vec![0, 1]]);
        assert_eq!(counts, LeftOutCounts { messages: 1, collectives: 0 });
        // The receiver began earlier; receives are in the order in which they were posted.
        let region = RegionId(0);
        let posted = [
            Event::MpiIrecvRequest(5),
            Event::MpiIrecvRequest(6),
            Event::Enter(region),
            receive,
            Event::Leave(region),
            Event::MpiIrecv(message(0), 6),
            Event::MpiIrecv(message(0), 5),
        ];
        let (kept, counts) = left([&[send, send], &posted]);
        assert_eq!(kept, [vec![0, 1], vec![1, 2, 3, 4, 5]]);
        assert_eq!(counts.messages, 1);
        let (kept, _) = left([&[Event::MpiIsend(message(1), 1), Event::MpiIsendComplete(1)], &[]]);
        assert!(kept.iter().all(Vec::is_empty), "{kept:?}");
    }

    #[test]
    fn lists_of_several_threads_cannot_be_compared_by_their_ends() {
        let members = CommMembers::Intra([0, 1].map(MpiRank).into());
        let groups = Groups { comms: HashMap::from([(WORLD, &members)]), windows: HashMap::new() };
        let mut tally = Tally::new(0, &groups);
        tally.add(0, &EventOrExtra::Event(Event::MpiSend(message(1))));
        tally.add(1, &EventOrExtra::Event(Event::Enter(RegionId(0))));
        assert!(!tally.is_unclear());
        tally.add(1, &EventOrExtra::Event(Event::MpiRecv(message(1))));
        assert!(tally.is_unclear());
    }

    #[test]
    fn the_first_collective_operations_that_others_lack_are_left_out() {
        let begin = Event::MpiCollectiveBegin;
        let made = Event::MpiCollectiveEnd(Collective {
            op: CollectiveOp::CREATE_HANDLE,
            comm: WORLD,
            root: Root::None,
            sent: 0,
            received: 0,
        });
        let (kept, counts) =
            left([&[begin, made, begin, barrier(), begin, barrier()], &[begin, made, begin, barrier()]]);
        assert_eq!(kept, [vec![0, 1, 4, 5], vec![0, 1, 2, 3]]);
        assert_eq!(counts, LeftOutCounts { messages: 0, collectives: 1 });
        let (kept, _) = left([&[begin, barrier()], &[begin, made]]);
        assert_eq!(kept, [Vec::new(), vec![0, 1]]);
    }
}
