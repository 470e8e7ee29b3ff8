//! What an analysis rank replays: its timelines, and how they are tied to others.

use crate::matching::collectives::instances::{CollectiveComm, Collectives, HostedComm, HostedMember, InstanceIndex};
use crate::matching::comm_index::CommIndex;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::matched::Messages;
use crate::matching::sync::{EventClock, MirroredLinks, ReplayTimeline, SyncTimeline};
use crate::matching::undefined::UndefinedPeer;
use crate::matching::visited_times::VisitedTimes;
use clc_trace::workers::Workers;
use clc_trace::{LocationId, TimelineNumber};
use controlled_logical_clock::latency::MinimumLatency;
use controlled_logical_clock::semantics::CollectiveClass;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The matched synchronisation events of the timelines that one analysis rank hosts.
#[derive(Debug, Default)]
pub struct Program {
    /// The first hosted timeline.
    pub first: TimelineNumber,
    /// Hosted timelines as they are, also of a mirrored program, which shares them with the other one: replays go by [`Program::timeline`].
    pub timelines: Vec<Arc<SyncTimeline>>,
    /// Messages with an end here.
    pub messages: Messages,
    /// Collectives with a member here.
    pub collectives: Collectives,
    /// Minimum latencies.
    pub latency: MinimumLatency,
    /// Node of every timeline of the trace.
    pub nodes: Vec<u32>,
    /// Ids of the locations of each hosted timeline.
    pub locations: Vec<Vec<LocationId>>,
    /// The first hosted events that name no partner, in the order of the timelines.
    pub undefined_peers: Vec<UndefinedPeer>,
    /// Smallest μ over all pairs of members, per entry of `collectives.comms`.
    pub shared_latency: Vec<i64>,
    /// Of the program of a mirrored replay (`mirror`): where its links are other ones.
    pub mirrored: Option<MirroredLinks>,
    /// The communicators with members here.
    pub comm_index: HashMap<CommIndex, HostedComm>,
    /// Locations with timelines of their own.
    pub own: OwnTimelines,
    /// Fences that were taken for barriers at first.
    pub taken_back: TakenBack,
}

/// Fences that were taken for barriers and are none, by window: each by its place among the constrained operations before any was taken back.
pub type TakenBack = BTreeMap<CommIndex, BTreeSet<InstanceIndex>>;

/// Timelines of locations whose clock is not that of their process: their numbers follow those of all other timelines, and at the rank that hosts their process
/// they come last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnTimelines {
    /// The first of them that is hosted here.
    pub first: TimelineNumber,
    /// How many are.
    pub here: u32,
    /// Number of other timelines of the trace.
    pub others: u32,
    /// The timeline of the process of each of them, of the whole trace.
    pub of: Vec<TimelineNumber>,
}

/// Visited events whose times one thread has changed before another has begun.
const ALONE: u64 = 1 << 17;
/// No logical send bounds this event.
pub const NO_LOWER_BOUND: i64 = i64::MIN;
/// No logical receive bounds this event.
pub(crate) const NO_UPPER_BOUND: i64 = i64::MAX;

impl Program {
    /// A hosted timeline, in the direction of the replay.
    #[inline]
    pub fn timeline(&self, local: LocalTimeline) -> ReplayTimeline<'_> {
        ReplayTimeline::new(&self.timelines[local], self.mirrored.as_ref())
    }

    /// All hosted timelines, in the direction of the replay.
    pub(crate) fn replay_timelines(&self) -> impl Iterator<Item = ReplayTimeline<'_>> {
        self.timelines.iter().map(|timeline| ReplayTimeline::new(timeline, self.mirrored.as_ref()))
    }

    /// The number of a hosted timeline.
    #[inline]
    pub fn number(&self, local: LocalTimeline) -> TimelineNumber {
        match local.0.checked_sub(self.timelines.len() as u32 - self.own.here) {
            Some(own) => TimelineNumber(self.own.first.0 + own),
            None => TimelineNumber(self.first.0 + local.0),
        }
    }

    /// The timeline of the process that the locations of a timeline belong to: itself, unless they have one of their own.
    #[inline]
    pub fn process_of(&self, number: TimelineNumber) -> TimelineNumber {
        if self.own.of.is_empty() {
            return number;
        }
        let own = number.0.checked_sub(self.own.others).and_then(|own| self.own.of.get(own as usize));
        own.copied().unwrap_or(number)
    }

    /// Number of hosted timelines that no location has for itself: they come first.
    pub fn shared(&self) -> usize {
        self.timelines.len() - self.own.here as usize
    }

    /// The hosted timelines that have no location's own clock, in order: one per process, and those of other location groups.
    pub fn shared_timelines(&self) -> impl Iterator<Item = LocalTimeline> + use<> {
        (0..self.shared()).map(LocalTimeline::at)
    }

    /// All hosted timelines of the process of a hosted timeline that is shared: that one first, then those that its locations have of their own.
    pub fn timelines_of(&self, shared: LocalTimeline) -> impl Iterator<Item = LocalTimeline> + use<> {
        let first = self.own.first.0.saturating_sub(self.own.others) as usize;
        // In the order of their processes.
        let here = self.own.of.get(first..first + self.own.here as usize).unwrap_or_default();
        let number = self.number(shared);
        let from = here.partition_point(|&of| of < number);
        let to = here.partition_point(|&of| of <= number);
        let behind = self.shared();
        std::iter::once(shared).chain((from..to).map(move |own| LocalTimeline::at(behind + own)))
    }

    /// μ of the messages from timeline `source` to timeline `destination`; none within a process.
    pub(crate) fn message_latency(&self, source: TimelineNumber, destination: TimelineNumber) -> i64 {
        if !self.own.of.is_empty() && self.process_of(source) == self.process_of(destination) {
            return 0;
        }
        self.latency.of_pair(self.nodes[source], self.nodes[destination]).0
    }

    /// Pre-synchronised times of the visited events of each timeline.
    pub fn times(&self) -> Vec<VisitedTimes<'_>> {
        self.timelines.iter().map(|timeline| VisitedTimes::presynchronised(timeline)).collect()
    }

    /// Recorded times of the visited events of each timeline, unless they were forgotten.
    pub fn recorded_times(&self) -> Vec<VisitedTimes<'_>> {
        self.timelines.iter().map(|timeline| VisitedTimes::recorded(timeline)).collect()
    }

    /// What `work` makes of the program with the times as they were recorded in the place of the pre-synchronised ones: they take no memory.
    pub fn as_recorded<T>(&mut self, workers: Workers, work: impl FnOnce(&Program) -> T) -> T {
        self.exchange_times(workers);
        let result = work(self);
        self.exchange_times(workers);
        result
    }

    /// Other clocks: what `clock_of` a hosted timeline makes of recorded times become the pre-synchronised ones. Timelines are shared out among `workers`.
    pub fn retime<C: EventClock>(&mut self, workers: Workers, clock_of: impl Fn(LocalTimeline) -> C + Sync) {
        self.change_timelines(workers, |local, timeline| timeline.retime(clock_of(local)));
    }

    /// Makes all pre-synchronised times later by so many ticks. Timelines are shared out among `workers`.
    pub fn shift(&mut self, workers: Workers, by: i64) {
        if by != 0 {
            self.change_timelines(workers, |_, timeline| timeline.shift(by));
        }
    }

    /// Exchanges recorded and pre-synchronised times.
    fn exchange_times(&mut self, workers: Workers) {
        let few = self.events() < ALONE;
        self.change_timelines(if few { Workers::ONE } else { workers }, |_, timeline| timeline.exchange_times());
    }

    /// Shares the hosted timelines out among `workers`.
    fn change_timelines(&mut self, workers: Workers, change: impl Fn(LocalTimeline, &mut SyncTimeline) + Sync) {
        let timelines: Vec<Mutex<&mut Arc<SyncTimeline>>> = self.timelines.iter_mut().map(Mutex::new).collect();
        workers.map(timelines.len(), |local| {
            let mut timeline = timelines[local].lock().unwrap_or_else(PoisonError::into_inner);
            change(LocalTimeline::at(local), Arc::make_mut(&mut timeline));
        });
    }

    /// Frees the memory of the recorded times, which only checks of the trace as it was need.
    pub fn forget_recorded_times(&mut self) {
        self.timelines.iter_mut().for_each(|timeline| Arc::make_mut(timeline).forget_recorded_times());
    }

    /// `value` for every visited event.
    pub fn filled(&self, value: i64) -> Vec<Vec<i64>> {
        self.timelines.iter().map(|timeline| vec![value; timeline.len()]).collect()
    }

    /// Number of visited events.
    pub fn events(&self) -> u64 {
        self.timelines.iter().map(|timeline| timeline.len() as u64).sum()
    }

    /// Other minimum latencies.
    pub fn set_latency(&mut self, latency: MinimumLatency) {
        self.latency = latency;
        self.index_communicators();
    }

    /// Fills the tables that follow from the communicators: where other ranks' words find them, and their shared latency.
    pub fn index_communicators(&mut self) {
        self.shared_latency =
            self.collectives.comms.iter().map(|comm| comm.spread.all_pairs(&self.latency).0).collect();
        self.comm_index = self.collectives.numbered().map(|(place, comm)| (comm.comm, place)).collect();
    }
}

/// μ of the end of `member` in an instance of `comm`: of its pair with the root where there is exactly one sender, else
/// the smallest of the pairs that meet in the maximum. `shared` is the smallest over all pairs of the communicator
/// ([`controlled_logical_clock::latency::Spread::all_pairs`]), computed once by the caller.
pub(crate) fn instance_latency(
    comm: &CollectiveComm,
    instance: InstanceIndex,
    member: &HostedMember,
    latency: &MinimumLatency,
    shared: i64,
) -> i64 {
    let instance = &comm.instances[instance];
    if comm.mirrored {
        return match instance.class {
            // It was an N-to-1 operation.
            CollectiveClass::OneToN => comm.spread.pairs_with(instance.root, latency).0,
            CollectiveClass::NToN | CollectiveClass::Prefix => shared,
            CollectiveClass::NToOne | CollectiveClass::Unconstrained => 0,
        };
    }
    match instance.class {
        CollectiveClass::OneToN => comm.spread.pair(instance.root, member.rank, latency).0,
        CollectiveClass::NToOne => comm.spread.pairs_with(instance.root, latency).0,
        CollectiveClass::NToN | CollectiveClass::Prefix => shared,
        CollectiveClass::Unconstrained => 0,
    }
}

/// What `member` adds to its contribution to an instance of `comm`, beside the latency that all receivers add: mirrored, a 1-to-N operation
/// has become an N-to-1 one, but every pair with its root keeps its own μ.
pub(crate) fn contribution_latency(
    comm: &CollectiveComm,
    instance: InstanceIndex,
    member: &HostedMember,
    latency: &MinimumLatency,
) -> i64 {
    let instance = &comm.instances[instance];
    if !comm.mirrored || instance.class != CollectiveClass::NToOne || instance.root == member.rank {
        return 0;
    }
    comm.spread.pair(instance.root, member.rank, latency).0
}
