//! What is kept of the events of one process: its synchronisation events, and what they refer to.

use crate::matching::comm_index::CommIndex;
use crate::matching::hash::HashMap;
use crate::matching::message_ends::{MessageEnd, MessageKey};
use crate::matching::operation_begin::{CertainEnds, OperationBegin};
use crate::matching::sync::SyncTimeline;
use crate::matching::undefined::Gaps;
use crate::matching::within::steps::ThreadCounts;
use crate::matching::within::threads::ThreadOrder;
use clc_trace::{CollectiveOp, EventNumber, MpiRank};
use controlled_logical_clock::semantics::MemberRecord;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One process's part in one collective instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Participation {
    /// Index of the begin event.
    pub begin: u32,
    /// Index of the end event.
    pub end: u32,
    /// What of its end record decides who waits for whom.
    pub part: MemberRecord,
}

/// The end of a collective operation whose begin was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoneEnd {
    /// Its index among the visited events.
    pub event: u32,
    /// The operation.
    pub op: CollectiveOp,
    /// Whether it is that of a non-blocking one, which other operations may have begun behind.
    pub immediate: bool,
}

/// Collective operations of which one end only was recorded: they took place, and have a number among those of their communicator.
#[derive(Debug, Default)]
pub struct HalfRecorded {
    /// Ends without a begin, by communicator or window.
    pub ends: BTreeMap<CommIndex, Vec<LoneEnd>>,
    /// Begins without an end, on some communicator: visited events in order.
    pub begins: Vec<u32>,
    /// The same on some window.
    pub window_begins: Vec<u32>,
}

/// What a process did that cannot take part in the replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// Receives posted whose completion was never recorded.
    pub never_completed: u64,
    /// Requests that were cancelled.
    pub cancelled: u64,
    /// Messages to or from a rank that is undefined or not in the communicator.
    pub undefined_peer: u64,
    /// Collectives whose end was never recorded (or whose begin was not).
    pub open_collectives: u64,
    /// Collectives of threads with clocks of their own, in an order that nothing tells, of which not both ends are certain.
    pub unordered_collectives: u64,
    /// Collectives on inter-communicators.
    pub inter_collectives: u64,
    /// Collectives on communicators of one member.
    pub solo_collectives: u64,
    /// Collectives on windows that are not defined or belong to no MPI processes.
    pub foreign_windows: u64,
    /// One-sided operations on windows that are not defined or belong to no MPI processes, as transfers between hosts and accelerators are.
    pub foreign_accesses: u64,
    /// One-sided operations between two fences, which are synchronised by them.
    pub fence_accesses: u64,
    /// One-sided operations of a process that held a lock, which are ordered with those of others by nothing that a trace has.
    pub lock_accesses: u64,
    /// One-sided operations between `MPI_Win_start` and `MPI_Win_complete`.
    pub group_accesses: u64,
}

impl Leftovers {
    /// Adds those of another process.
    pub fn add(&mut self, other: &Leftovers) {
        self.never_completed += other.never_completed;
        self.cancelled += other.cancelled;
        self.undefined_peer += other.undefined_peer;
        self.open_collectives += other.open_collectives;
        self.unordered_collectives += other.unordered_collectives;
        self.inter_collectives += other.inter_collectives;
        self.solo_collectives += other.solo_collectives;
        self.foreign_windows += other.foreign_windows;
        self.foreign_accesses += other.foreign_accesses;
        self.fence_accesses += other.fence_accesses;
        self.lock_accesses += other.lock_accesses;
        self.group_accesses += other.group_accesses;
    }
}

/// What orders of a group are between two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// The other process.
    pub peer: MpiRank,
    /// The window, as index of the table of communicators.
    pub window: CommIndex,
    /// Of the two orders of an epoch: from post to complete, or from complete to wait.
    pub completes: bool,
}

/// The synchronisation events of one process and what they refer to.
#[derive(Debug, Default)]
pub struct Extract {
    /// Visited events.
    pub sync: SyncTimeline,
    /// Sends by message key, in program order.
    pub sends: HashMap<MessageKey, Vec<MessageEnd>>,
    /// Receives by message key, in the order in which they were posted.
    pub receives: HashMap<MessageKey, Vec<MessageEnd>>,
    /// Completed non-blocking receives whose request was not recorded: nobody knows when they were posted. Not in `receives`.
    pub unplaced: HashMap<MessageKey, Vec<MessageEnd>>,
    /// The keys of sends, and of receives, that several threads share, between which MPI knows no order.
    pub shared: [BTreeSet<MessageKey>; 2],
    /// Where sends without a peer may be missing in `sends`.
    pub send_gaps: HashMap<MessageKey, Gaps>,
    /// Where receives without a peer may be missing in `receives`.
    pub receive_gaps: HashMap<MessageKey, Gaps>,
    /// The first events without a peer, in program order, and whether they are sends.
    pub undefined: Vec<(u32, bool)>,
    /// Collective participations by communicator (index into the definitions), in program order of the begins.
    pub collectives: HashMap<CommIndex, Vec<Participation>>,
    /// Of communicators and windows on which threads with clocks of their own operate in an order that is not known: what is certain of each participation.
    pub loose: BTreeMap<CommIndex, Vec<CertainEnds>>,
    /// Collective operations of which one end only was recorded; not in `collectives`.
    pub half_recorded: HalfRecorded,
    /// The ends of synchronous sends, by the send.
    pub synchronous: HashMap<u32, u32>,
    /// Where receives were posted, by the receive; filled only where regions are read.
    pub posts: HashMap<u32, u32>,
    /// Steps on windows that others wait for, in program order.
    pub group_sends: HashMap<GroupKey, Vec<u32>>,
    /// Steps on windows that wait for others, in program order.
    pub group_receives: HashMap<GroupKey, Vec<u32>>,
    /// Of these windows the steps are in the order that the threads have shown, whatever their clocks show.
    pub ordered_windows: BTreeSet<CommIndex>,
    /// By location: 0 if it is in the timeline of its process, else the number of its own one. Empty if all are.
    pub part_of: Vec<u32>,
    /// What orders threads with timelines of their own.
    pub thread_orders: Vec<ThreadOrder>,
    /// Steps of threads.
    pub threads: ThreadCounts,
    /// Everything else.
    pub leftovers: Leftovers,
}

impl Extract {
    /// Puts the operations on a communicator or window in the order that the steps of the threads tell. It stays as it is
    /// if operations of one timeline would be in another order than that has: then their times are equal, or the locations had to stay together.
    pub fn order_operations(&mut self, comm: CommIndex, begins: &[OperationBegin]) {
        let Some(list) = self.collectives.get_mut(&comm) else { return };
        if begins.len() < list.len() || begins.iter().any(|begin| begin.certain != CertainEnds::BOTH) {
            self.loosen_operations(comm, begins);
            return;
        }
        let place_of: HashMap<(u32, EventNumber), usize> =
            begins.iter().enumerate().map(|(place, begin)| (begin.at(), place)).collect();
        let sync = &self.sync;
        let begin = |one: &Participation| (sync.location(one.begin as usize), sync.number(one.begin as usize));
        let mut ordered = list.clone();
        ordered.sort_by_key(|one| place_of.get(&begin(one)).copied().unwrap_or(usize::MAX));
        let mut last: HashMap<u32, u32> = HashMap::default();
        let ascend = ordered.iter().all(|one| {
            let part = self.part_of.get(begin(one).0 as usize).copied().unwrap_or(0);
            last.insert(part, one.begin).is_none_or(|before| before < one.begin)
        });
        if ascend {
            for one in &mut ordered {
                let place = place_of.get(&begin(one));
                one.part.accessed = place.is_some_and(|&place| begins[place].accessed);
            }
            *list = ordered;
        }
    }

    /// Puts begins and ends of the operations on a communicator or window each in the order of the places that are certain.
    fn loosen_operations(&mut self, comm: CommIndex, begins: &[OperationBegin]) {
        let Some(list) = self.collectives.get_mut(&comm) else { return };
        let sync = &self.sync;
        let begin = |one: &Participation| (sync.location(one.begin as usize), sync.number(one.begin as usize));
        let by_begin: HashMap<(u32, EventNumber), Participation> = list.iter().map(|one| (begin(one), *one)).collect();
        let placed = |at: &OperationBegin| {
            let (begun, ended) = (by_begin.get(&at.at())?, by_begin.get(&at.ended)?);
            let part = MemberRecord { received: ended.part.received, accessed: false, ..begun.part };
            Some(Participation { begin: begun.begin, end: ended.end, part })
        };
        // Without an end they are no operations for anybody.
        let placed: Vec<Participation> = begins.iter().map_while(placed).collect();
        let certain: Vec<CertainEnds> = begins[..placed.len()].iter().map(|begin| begin.certain).collect();
        let uncertain = certain.iter().filter(|&&certain| certain != CertainEnds::BOTH).count();
        self.leftovers.unordered_collectives += (list.len() - placed.len() + uncertain) as u64;
        *list = placed;
        self.loose.insert(comm, certain);
    }

    /// Puts the steps of epochs on a window in the order that the steps of the threads tell, given by their records. They stay as they are if those of
    /// one timeline would be in another order than that has.
    pub fn order_epochs(&mut self, window: CommIndex, records: &[OperationBegin]) {
        let place_of: BTreeMap<(u32, EventNumber), usize> =
            records.iter().enumerate().map(|(place, record)| (record.at(), place)).collect();
        let (sync, part_of) = (&self.sync, &self.part_of);
        // The record is between the two ends of its call.
        let place = |event: u32, entered: bool| {
            let at = (sync.location(event as usize), sync.number(event as usize));
            let mut near = if entered { place_of.range(at..) } else { place_of.range(..=at) };
            let found = if entered { near.next() } else { near.next_back() };
            found.filter(|((location, _), _)| *location == at.0).map_or(usize::MAX, |(_, place)| *place)
        };
        let ascend = |list: &[u32]| {
            let mut last: HashMap<u32, u32> = HashMap::default();
            list.iter().all(|&event| {
                let part = part_of.get(sync.location(event as usize) as usize).copied().unwrap_or(0);
                last.insert(part, event).is_none_or(|before| before <= event)
            })
        };
        let ends = [(&self.group_sends, true), (&self.group_receives, false)];
        let [sends, receives] = ends.map(|(steps, entered)| {
            let of_window = steps.iter().filter(|(key, _)| key.window == window);
            let ordered = of_window.map(|(key, list)| {
                let mut list = list.clone();
                list.sort_by_key(|&event| place(event, entered));
                (*key, list)
            });
            ordered.collect::<Vec<(GroupKey, Vec<u32>)>>()
        });
        if sends.iter().chain(&receives).all(|(_, list)| ascend(list)) {
            self.group_sends.extend(sends);
            self.group_receives.extend(receives);
            self.ordered_windows.insert(window);
        }
    }
}
