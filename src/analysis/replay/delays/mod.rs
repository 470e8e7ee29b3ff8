//! Delay costs of all waits: which regions of the processes that were waited for took so long.
//!
//! Every process knows in which of its operations it has synchronised with which other one: by a wait of one of them for the other, or in a collective operation
//! of which all members wait for all. The waiter tells the delayer's host what it did since its last such operation and how long it waited, and that one compares
//! ([`clc_execution::delays`]). Then what waits have led to is followed back to its causes ([`long_term`]). Only the main locations of processes are looked at.

mod costs;
mod divided;
mod long_term;
mod messages;
mod synchronised;

pub(crate) use costs::{Costs, DelaySums};

use crate::analysis::gaps::Gaps;
use crate::analysis::replay::operations::Operations;
use crate::analysis::replay::profiles::{Done, RegionPlaces, Since};
use crate::analysis::replay::timeline_waits::{OperationWait, TimelineWaits, kind_of};
use clc_engine::comm::{AnalysisRank, ReduceOp, Transport, exchange_values};
use clc_engine::matching::collectives::instances::InstanceIndex;
use clc_engine::matching::comm_index::CommIndex;
use clc_engine::matching::hash::HashMap;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::placement::Placement;
use clc_engine::replay::program::Program;
use clc_execution::waiting::WaitKind;
use clc_trace::{Result, TimelineNumber};
use controlled_logical_clock::semantics::CollectiveClass;
use costs::CostSums;
use divided::DividedWaits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use synchronised::Synchronised;

/// Ticks by stage.
type StageTicks = [i128; 2];

/// An instance on a communicator, as all ranks can name it.
type Named = (CommIndex, InstanceIndex);

/// The operation of the delayer that was waited for, as the waiter can name it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum DelayerOperation {
    /// By its place.
    Operation(u32),
    /// The one in which it begins an instance on a communicator.
    Collective(Named),
}

/// Messages between a hosted process and another one: the operations that they belong to there and there, ascending.
type SharedMessages = Vec<(u32, u32)>;

/// Messages of a hosted process by the other one.
type ByProcess = BTreeMap<u32, SharedMessages>;

/// What is known of a wait where the waiter is hosted.
struct WaiterSide {
    /// What was waited for.
    until: DelayerOperation,
    /// The last collective operation before in which both took part and all members wait for all.
    collective: Option<Named>,
    /// Since when the waiter's time counts; from its beginning if there is nothing.
    own: Option<Since>,
}

/// For the host of a delayer.
#[derive(Debug, Serialize, Deserialize)]
struct DelayerSide {
    delayer: u32,
    waiter: u32,
    /// The operation in which it waited.
    operation: u32,
    collective: Option<Named>,
    until: DelayerOperation,
    ticks: i64,
    /// Whether no more is blamed on anything than it took.
    capped: bool,
    /// What the waiter did: time by region. Empty if it is hosted here.
    done: Vec<(u32, i64)>,
}

/// Whether a wait is one for the other end of a message.
fn is_message(kind: WaitKind) -> bool {
    matches!(kind, WaitKind::LateSender | WaitKind::LateReceiver)
}

/// So many waits are told in one round: their memory does not grow with the trace.
const ROUND: usize = 1 << 14;

/// What there is to know of the hosted part of a trace.
pub(crate) struct DelaySearch<'a> {
    program: &'a Program,
    operations: &'a [Operations],
    /// Of each hosted process: what it does between its operations.
    gaps: Vec<&'a Gaps>,
    places: RegionPlaces,
    /// By hosted process: the messages that it received in operations that have waited for a sender.
    received: Vec<ByProcess>,
    /// The same with the operation that completes a send, and the one in which its receive was posted; of operations that have waited for a receiver.
    posted: Vec<ByProcess>,
    /// By hosted process: its operation, and the communicator (by its place here) and instance that end in it; in the order in which they end.
    collectives: Vec<Vec<Took>>,
    /// The members of each communicator here, ascending.
    members: Vec<Vec<u32>>,
    /// The place of each member among those hosted here.
    hosted: HashMap<(usize, LocalTimeline), usize>,
    /// When the first process was done with initialising MPI, but not before the last one had begun, by stage.
    initialised: [i64; 2],
}

/// An operation, and the communicator (by its place) and instance that end in it.
type Took = (u32, u32, InstanceIndex);

impl<'a> DelaySearch<'a> {
    /// Finds out who communicated with whom in which operations. `processes` is what each hosted process does between its operations, and the innermost region of
    /// each node of its call tree; `canonical` gives one region for all that have a name; `waiting` the waits of all hosted timelines by stage. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn new(
        transport: &mut dyn Transport,
        program: &'a Program,
        operations: &'a [Operations],
        processes: Vec<(&'a Gaps, Vec<u32>)>,
        canonical: impl Fn(u32) -> u32,
        waiting: &[Vec<TimelineWaits>],
    ) -> Result<DelaySearch<'a>> {
        let places = RegionPlaces::new(&processes, canonical);
        let gaps: Vec<&Gaps> = processes.into_iter().map(|(gaps, _)| gaps).collect();
        let mut search = DelaySearch {
            program,
            operations,
            received: vec![ByProcess::new(); gaps.len()],
            posted: vec![ByProcess::new(); gaps.len()],
            collectives: vec![Vec::new(); gaps.len()],
            gaps,
            places,
            members: Vec::new(),
            hosted: HashMap::default(),
            initialised: [0; 2],
        };
        search.find_messages(transport, waiting)?;
        // When the last process entered, and negated when the first one left.
        let mut times = [i64::MIN; 4];
        for call in search.gaps.iter().filter_map(|gaps| gaps.initialised) {
            let own = [call.enter[0], call.enter[1], -call.leave[0], -call.leave[1]];
            times.iter_mut().zip(own).for_each(|(time, own)| *time = own.max(*time));
        }
        transport.all_reduce(ReduceOp::Max, &mut times)?;
        search.initialised = [0, 1].map(|stage| times[stage].max(times[stage + 2].wrapping_neg()));
        search.find_collectives();
        Ok(search)
    }

    /// Whether an operation of a hosted timeline is one of the main location of a process.
    fn is_main(&self, timeline: LocalTimeline, operation: u32) -> bool {
        self.gaps.get(timeline.place()).is_some_and(|gaps| operation < gaps.operations())
    }

    fn find_collectives(&mut self) {
        let mut ended: Vec<Vec<(u32, u32, u32, InstanceIndex)>> = vec![Vec::new(); self.collectives.len()];
        for (place, comm) in self.program.collectives.comms.iter().enumerate() {
            let mut members: Vec<u32> = comm.processes.iter().map(|process| process.0).collect();
            members.sort_unstable();
            self.members.push(members);
            for (number, member) in comm.members.iter().enumerate() {
                self.hosted.insert((place, member.ended_on), number);
                for (instance, end) in (0..).map(InstanceIndex).zip(member.ends.each()) {
                    let operation = self.operations[member.ended_on].of_event[end as usize];
                    if self.is_main(member.ended_on, operation) {
                        ended[member.ended_on].push((operation, end, place as u32, instance));
                    }
                }
            }
        }
        for (list, mut ended) in self.collectives.iter_mut().zip(ended) {
            ended.sort_unstable();
            list.extend(ended.into_iter().map(|(operation, _, place, instance)| (operation, place, instance)));
        }
    }

    /// Blames the `waits` of all hosted timelines in one stage. Returns what they cost, without a list of processes, and that of each hosted process. Collective over
    /// the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn blame(
        &self,
        transport: &mut dyn Transport,
        placement: &Placement,
        waits: &[TimelineWaits],
        stage: usize,
    ) -> Result<(DelaySums, Vec<Costs>)> {
        let done = Done::new(self.operations, &self.gaps, &self.places, waits, self.initialised[stage], stage);
        let synchronised = self.synchronised(transport, placement, waits, stage)?;
        let here = transport.rank();
        let host = |wait: &OperationWait| placement.host_of(TimelineNumber(wait.cause));
        let remote = waits.iter().flat_map(|own| &own.waits).filter(|wait| host(wait) != here).count();
        let mut rounds = [remote.div_ceil(ROUND) as i64];
        transport.all_reduce(ReduceOp::Max, &mut rounds)?;
        let delayer = self.places.profile();
        let divided = self.gaps.iter().map(|_| DividedWaits::default()).collect();
        let synchronised = &synchronised;
        let (sums, by_process) = (DelaySums::new(0), vec![Costs::default(); self.gaps.len()]);
        let mut costs = CostSums { search: self, done: &done, synchronised, stage, sums, by_process, delayer, divided };
        let mut known: Vec<Vec<bool>> = vec![Vec::new(); self.gaps.len()];
        let mut waiter = self.places.profile();
        let mut latest = LatestCollectives::default();
        let mut all = of_timelines(waits);
        loop {
            let mut told: BTreeMap<AnalysisRank, Vec<DelayerSide>> = BTreeMap::new();
            let mut room = ROUND;
            for (timeline, wait) in all.by_ref() {
                let own = self.told(timeline, wait, synchronised, &mut latest);
                if self.is_main(timeline, wait.operation) {
                    known[timeline.place()].push(own.is_some());
                }
                let Some(own) = own else {
                    costs.not_examined(wait.ticks);
                    continue;
                };
                done.between(&mut waiter, timeline, own.own, wait.operation);
                let mut about = DelayerSide {
                    delayer: wait.cause,
                    waiter: self.program.number(timeline).0,
                    operation: wait.operation,
                    collective: own.collective,
                    until: own.until,
                    ticks: wait.ticks,
                    capped: is_message(wait.kind),
                    done: Vec::new(),
                };
                if host(wait) == here {
                    costs.add(&about, &waiter);
                    continue;
                }
                about.done = waiter.entries().map(|(place, ticks)| (self.places.region(place), ticks)).collect();
                told.entry(host(wait)).or_default().push(about);
                room -= 1;
                if room == 0 {
                    break;
                }
            }
            rounds[0] -= 1;
            if rounds[0] < 0 {
                break;
            }
            for wait in exchange_values(transport, told)?.into_iter().flat_map(|(_, waits)| waits) {
                waiter.clear();
                // Regions that no process here is in took none of them longer.
                let known = wait.done.iter().filter_map(|&(region, ticks)| Some((self.places.place(region)?, ticks)));
                known.for_each(|(place, ticks)| waiter.add(place, ticks));
                costs.add(&wait, &waiter);
            }
        }
        long_term::follow(transport, placement, costs, waits, &known)
    }

    /// The operation of the delayer that a wait was for; nothing if it is not known, or not looked at.
    fn waited_for(&self, timeline: LocalTimeline, wait: &OperationWait) -> Option<DelayerOperation> {
        if !self.is_main(timeline, wait.operation) {
            return None;
        }
        let (operation, delayer) = (wait.operation, wait.cause);
        // The last operation of the delayer that belongs to this one.
        let last_of = |list: &ByProcess| {
            let list = list.get(&delayer)?;
            let to = list.partition_point(|&(own, _)| own <= operation);
            let last = to.checked_sub(1).and_then(|last| list.get(last));
            last.filter(|&&(own, _)| own == operation).map(|&(_, other)| other)
        };
        match wait.kind {
            WaitKind::LateSender => Some(DelayerOperation::Operation(last_of(&self.received[timeline])?)),
            WaitKind::LateReceiver => Some(DelayerOperation::Operation(last_of(&self.posted[timeline])?)),
            WaitKind::LatePost | WaitKind::EarlyWait | WaitKind::LockContention => None,
            _ => {
                let list = &self.collectives[timeline];
                let from = list.partition_point(|entry| entry.0 < operation);
                let own = list[from..].iter().take_while(|entry| entry.0 == operation);
                let instances = |place: u32| &self.program.collectives.comms[place as usize].instances;
                let of_kind = own.filter(|&&(_, place, instance)| {
                    kind_of(&instances(place)[instance]) == Some(wait.kind) && self.is_member(place, delayer)
                });
                let (_, place, instance) = of_kind.last()?;
                Some(DelayerOperation::Collective(self.named(*place, *instance)))
            }
        }
    }

    fn is_member(&self, place: u32, process: u32) -> bool {
        self.members[place as usize].binary_search(&process).is_ok()
    }

    /// What there is to tell the host of the delayer of a wait; nothing if it is not known what was waited for. The waits of a timeline come in the order of their
    /// operations.
    fn told(
        &self,
        timeline: LocalTimeline,
        wait: &OperationWait,
        synchronised: &Synchronised,
        latest: &mut LatestCollectives,
    ) -> Option<WaiterSide> {
        let until = self.waited_for(timeline, wait)?;
        latest.advance(self, timeline, wait.operation);
        let collective = latest.collectives.iter().rev().find(|&&(_, place, _)| self.is_member(place, wait.cause));
        let collective = collective.map(|&(_, place, instance)| self.named(place, instance));
        let own = [
            synchronised.before(timeline, wait.cause, wait.operation),
            collective.and_then(|collective| self.since(timeline, collective, synchronised)),
        ];
        Some(WaiterSide { until, collective, own: own.into_iter().flatten().max() })
    }

    /// Since when the time of a hosted process counts after a collective operation of which all wait for all.
    fn since(&self, process: LocalTimeline, named: Named, synchronised: &Synchronised) -> Option<Since> {
        let (place, number) = self.member(process, named.0)?;
        let member = &self.program.collectives.comms[place].members[number];
        let operation = self.operations[process].of_event[member.ends.get(named.1.place())? as usize];
        let left = synchronised.first_left[place][number].get(named.1.place()).copied().unwrap_or(i64::MAX);
        Some(Since { operation, left }).filter(|_| self.is_main(process, operation))
    }

    fn named(&self, place: u32, instance: InstanceIndex) -> Named {
        (self.program.collectives.comms[place as usize].comm, instance)
    }

    /// The place of a communicator here, and that of a hosted process among its members here.
    fn member(&self, process: LocalTimeline, comm: CommIndex) -> Option<(usize, usize)> {
        let place = self.program.comm_index.get(&comm)?.place();
        Some((place, *self.hosted.get(&(place, process))?))
    }

    /// The operation of a hosted process that was waited for, if it is one of its main location.
    fn resolve(&self, process: LocalTimeline, until: DelayerOperation) -> Option<u32> {
        let operation = match until {
            DelayerOperation::Operation(operation) => operation,
            DelayerOperation::Collective((comm, instance)) => {
                let (place, number) = self.member(process, comm)?;
                let member = &self.program.collectives.comms[place].members[number];
                if member.timeline != process {
                    return None;
                }
                self.operations[process].of_event[member.begins.get(instance.place())? as usize]
            }
        };
        Some(operation).filter(|&operation| self.is_main(process, operation))
    }
}

/// The waits of all hosted timelines.
fn of_timelines(waits: &[TimelineWaits]) -> impl Iterator<Item = (LocalTimeline, &OperationWait)> {
    let timelines = (0..).map(LocalTimeline).zip(waits);
    timelines.flat_map(|(timeline, own)| own.waits.iter().map(move |wait| (timeline, wait)))
}

/// The last collective operations of a process of which all members wait for all.
#[derive(Default)]
struct LatestCollectives {
    /// Which process.
    timeline: LocalTimeline,
    next: usize,
    /// The last one on each communicator, in their order.
    collectives: Vec<Took>,
}

impl LatestCollectives {
    /// Takes note of what was before `operation` of a timeline.
    fn advance(&mut self, search: &DelaySearch<'_>, timeline: LocalTimeline, operation: u32) {
        if timeline != self.timeline {
            *self = LatestCollectives { timeline, ..LatestCollectives::default() };
        }
        let comms = &search.program.collectives.comms;
        while let Some(&took) = search.collectives[timeline].get(self.next).filter(|entry| entry.0 < operation) {
            self.next += 1;
            if comms[took.1 as usize].instances[took.2].class != CollectiveClass::NToN {
                continue;
            }
            if let Some(known) = self.collectives.iter().rposition(|known| known.1 == took.1) {
                self.collectives.remove(known);
            }
            self.collectives.push(took);
        }
    }
}
