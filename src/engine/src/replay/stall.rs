//! What to say when a replay cannot go on, and which channels in doubt may be at fault.

use crate::comm::{AnalysisRank, Transport, all_gather_values};
use crate::matching::channels::Trust;
use crate::matching::collectives::instances::InstanceIndex;
use crate::matching::comm_index::CommIndex;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::sync::SyncKind;
use crate::matching::undefined::UndefinedPeer;
use crate::replay::advances::Advances;
use crate::replay::program::Program;
use clc_trace::{CollectiveOp, CommRank, Error, EventNumber, LocationId, Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Most events of a cycle that the error names. Chosen by hand: with more, the message cannot be read; the number of the others follows.
const NAMED: usize = 32;

/// Where a replay stopped before the end.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// The next event of every hosted timeline.
    pub position: Vec<usize>,
    /// What every event has got, see [`crate::replay::forward::Forward::advances`].
    pub bounds: Vec<Advances>,
    /// How many timestamps have arrived, by incoming channel.
    pub arrived: Vec<u32>,
}

/// What waits in an instance of a communicator: definition index, number, and the group of those who wait (of an inter-communicator; else 0).
type StalledInstance = (CommIndex, InstanceIndex, u32);

/// An event that waits for a timestamp which will never come.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StalledEvent {
    timeline: TimelineNumber,
    location: LocationId,
    event: EventNumber,
    cause: StallCause,
    /// Whether several locations share the timeline.
    shared: bool,
}

/// What it waits for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum StallCause {
    /// The send of a message.
    Message { source: TimelineNumber, channel: ChannelId },
    /// The begins of other members.
    Collective { op: CollectiveOp, instance: StalledInstance },
}

/// The two ends of a channel: analysis rank, and index of the end there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ChannelId {
    /// What its pairs are.
    pub trust: Trust,
    /// In [`crate::matching::matched::Messages::outgoing`].
    pub sending: (AnalysisRank, u32),
    /// In [`crate::matching::matched::Messages::incoming`].
    pub receiving: (AnalysisRank, u32),
}

/// The process that each instance waits for: of those that have not begun, the one with the lowest rank in the communicator. Whoever waits
/// at the end of a prefix operation waits for that one, too.
type MissingMembers = BTreeMap<StalledInstance, TimelineNumber>;

impl StalledEvent {
    fn waits_for(&self, missing: &MissingMembers) -> Option<TimelineNumber> {
        match self.cause {
            StallCause::Message { source, .. } => Some(source),
            StallCause::Collective { instance, .. } => missing.get(&instance).copied(),
        }
    }

    /// What it does and waits for. `waiting` are all of its kind, in the order of timelines.
    fn describe(&self, program: &Program, waiting: &[StalledEvent], missing: &MissingMembers) -> String {
        let name = |timeline| name(program, waiting, timeline);
        let what = match (self.cause, self.waits_for(missing)) {
            (StallCause::Message { source, .. }, _) => format!("receives a message from {}", name(source)),
            (StallCause::Collective { op, .. }, Some(other)) => {
                format!("ends {op}, which {} has not begun", name(other))
            }
            (StallCause::Collective { op, .. }, None) => format!("ends {op}"),
        };
        let who = name(self.timeline);
        if program.process_of(self.timeline) == self.timeline {
            format!("{who} {what} (location {}, event {})", self.location, self.event)
        } else {
            format!("{who} {what} (event {})", self.event)
        }
    }
}

/// What a timeline is called: as the process that it is of, or as the location if that has a clock of its own. Then its id is known from its event in `waiting`,
/// which is in the order of timelines.
fn name(program: &Program, waiting: &[StalledEvent], timeline: TimelineNumber) -> String {
    let process = program.process_of(timeline);
    if process == timeline {
        return format!("process {process}");
    }
    match waiting.binary_search_by_key(&timeline, |w| w.timeline) {
        Ok(index) => format!("location {} of process {process}", waiting[index].location),
        Err(_) => format!("a location of process {process}"),
    }
}

/// The replay has stopped before the end, so some events wait for each other in a cycle, which only a trace that contradicts itself can contain: this error
/// names the cycle, and events whose absence may have shifted messages. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn contradiction(transport: &mut dyn Transport, program: &Program, stopped: &Stopped) -> Result<Error> {
    let (waiting, missing) = everywhere(transport, program, stopped)?;
    let suspects: Vec<UndefinedPeer> =
        all_gather_values(transport, &program.undefined_peers)?.into_iter().flatten().collect();
    let cycles = cycles(&waiting, &missing);
    let Some((cycle, first)) = cycles.first().and_then(|cycle| Some((cycle, cycle.first()?))) else {
        let list: Vec<String> = waiting.iter().take(NAMED).map(|w| w.describe(program, &waiting, &missing)).collect();
        return Ok(Error::new(format!("the trace is contradictory: events wait for each other: {}", list.join("; "))));
    };
    let mut list: Vec<String> = cycle.iter().take(NAMED).map(|w| w.describe(program, &waiting, &missing)).collect();
    if cycle.len() > NAMED {
        list.push(format!("and {} more processes", cycle.len() - NAMED));
    }
    let error =
        Error::new(format!("the trace is contradictory: events wait for each other in a cycle: {}", list.join("; ")))
            .at_location(first.location)
            .at_event(first.event);
    Ok(if suspects.is_empty() {
        error
    } else {
        let names: Vec<String> = suspects.iter().take(UndefinedPeer::EXAMPLES).map(ToString::to_string).collect();
        error.hint(format!(
            "messages to or from an undefined rank may have shifted the matching of later ones with the same tag: {}",
            names.join(", ")
        ))
    })
}

/// The channels in doubt that take part in cycles, when the replay has stopped before the end: of each cycle the least certain ones
/// ([`Trust::doubt`]). Collective over the analysis ranks, which all get the same.
///
/// # Errors
/// Failures of the transport.
pub(super) fn doubtful(transport: &mut dyn Transport, program: &Program, stopped: &Stopped) -> Result<Vec<ChannelId>> {
    let (waiting, missing) = everywhere(transport, program, stopped)?;
    let mut doubtful = Vec::new();
    for cycle in cycles(&waiting, &missing) {
        let channels = || {
            cycle.iter().filter_map(|w| match w.cause {
                StallCause::Message { channel, .. } => Some(channel),
                StallCause::Collective { .. } => None,
            })
        };
        let least = channels().map(|channel| channel.trust.doubt()).max();
        doubtful.extend(channels().filter(|channel| Some(channel.trust.doubt()) == least && channel.trust.in_doubt()));
    }
    doubtful.sort_unstable();
    doubtful.dedup();
    Ok(doubtful)
}

/// What takes part in cycles with a timeline that several locations share, when the replay has stopped before the end: the communicators of each cycle, its channels if it has none. Collective
/// over the analysis ranks, which all get the same.
///
/// # Errors
/// Failures of the transport.
pub(super) fn of_threads(
    transport: &mut dyn Transport,
    program: &Program,
    stopped: &Stopped,
) -> Result<(BTreeSet<CommIndex>, Vec<ChannelId>)> {
    let (waiting, missing) = everywhere(transport, program, stopped)?;
    let (mut comms, mut channels) = (BTreeSet::new(), BTreeSet::new());
    for cycle in cycles(&waiting, &missing).iter().filter(|cycle| cycle.iter().any(|event| event.shared)) {
        let operations = cycle.iter().filter_map(|event| match event.cause {
            StallCause::Collective { instance, .. } => Some(instance.0),
            StallCause::Message { .. } => None,
        });
        let operations: BTreeSet<CommIndex> = operations.collect();
        if operations.is_empty() {
            channels.extend(cycle.iter().filter_map(|event| match event.cause {
                StallCause::Message { channel, .. } => Some(channel),
                StallCause::Collective { .. } => None,
            }));
        }
        comms.extend(operations);
    }
    Ok((comms, channels.into_iter().collect()))
}

/// All waiting events, in the order of processes, and whom the collectives wait for.
fn everywhere(
    transport: &mut dyn Transport,
    program: &Program,
    stopped: &Stopped,
) -> Result<(Vec<StalledEvent>, MissingMembers)> {
    let here = waiting_here(transport.rank(), program, stopped);
    let mut waiting: Vec<StalledEvent> = all_gather_values(transport, &here)?.into_iter().flatten().collect();
    waiting.sort_by_key(|w| w.timeline);
    let missing = missing(transport, program, &stopped.position, &waiting)?;
    Ok((waiting, missing))
}

/// The waiting events of the hosted timelines.
fn waiting_here(here: AnalysisRank, program: &Program, stopped: &Stopped) -> Vec<StalledEvent> {
    let Stopped { position, bounds, arrived } = stopped;
    let mut waiting = Vec::new();
    for (local, (timeline, &at)) in (0..).map(LocalTimeline).zip(program.replay_timelines().zip(position)) {
        if at >= timeline.len() || bounds[local].known(at).is_some() {
            continue;
        }
        let link = timeline.link(at);
        let cause = match timeline.kind(at) {
            kind @ (SyncKind::Receive | SyncKind::Join) => {
                // Of several that have not arrived, one is as good as another: the first of the least trusted.
                let several = if kind == SyncKind::Join { &program.messages.joins[link][..] } else { &[link as u32] };
                let is_pending = |&&channel: &&u32| {
                    let receives = &program.messages.incoming[channel as usize].receives;
                    !receives.each().take(arrived[channel as usize] as usize).any(|event| event == at as u32)
                };
                let doubt = |&&channel: &&u32| program.messages.incoming[channel as usize].trust.doubt();
                let link = several.iter().filter(is_pending).max_by_key(doubt).map_or(0, |&channel| channel as usize);
                let channel = &program.messages.incoming[link];
                let sending = (channel.host, channel.remote);
                let ends = ChannelId { trust: channel.trust, sending, receiving: (here, link as u32) };
                StallCause::Message { source: channel.source, channel: ends }
            }
            _ => {
                let (_, comm, member) = program.collectives.linked(link);
                let instance = member.ended_at(at);
                let group = comm.group_of(member.rank) as u32;
                StallCause::Collective { op: comm.instances[instance].op, instance: (comm.comm, instance, group) }
            }
        };
        waiting.push(StalledEvent {
            timeline: program.number(local),
            location: program.locations[local][timeline.location(at) as usize],
            event: timeline.number(at),
            cause,
            shared: (1..timeline.len()).any(|event| timeline.location(event) != timeline.location(0)),
        });
    }
    waiting
}

/// Finds out whom the collectives that `waiting` events belong to wait for.
fn missing(
    transport: &mut dyn Transport,
    program: &Program,
    position: &[usize],
    waiting: &[StalledEvent],
) -> Result<MissingMembers> {
    let wanted: BTreeSet<StalledInstance> = waiting
        .iter()
        .filter_map(|w| match w.cause {
            StallCause::Message { .. } => None,
            StallCause::Collective { instance, .. } => Some(instance),
        })
        .collect();
    let mut here: Vec<(StalledInstance, CommRank, TimelineNumber)> = Vec::new();
    for &(comm, instance, waits) in &wanted {
        let Some(&index) = program.comm_index.get(&comm) else { continue };
        // Members are in the order of their ranks.
        let comm_of = &program.collectives.comms[index];
        let before = comm_of.groups() - 1 - waits as usize;
        let late = comm_of.members.iter().filter(|member| comm_of.group_of(member.rank) == before).find(|member| {
            let begin = member.begins.at(instance.place()) as usize;
            member.sends[instance] && begin >= position[member.timeline]
        });
        here.extend(late.map(|member| ((comm, instance, waits), member.rank, program.number(member.timeline))));
    }
    let mut all: Vec<(StalledInstance, CommRank, TimelineNumber)> =
        all_gather_values(transport, &here)?.into_iter().flatten().collect();
    // The lowest rank is put in last, and stays.
    all.sort_unstable();
    Ok(all.into_iter().rev().map(|(instance, _, process)| (instance, process)).collect())
}

/// The cycles of processes that wait for one another, each from its lowest one on, in the order of these. `waiting` is in the order of
/// processes; everybody waits for somebody who waits, so that there is one.
fn cycles<'a>(waiting: &'a [StalledEvent], missing: &MissingMembers) -> Vec<Vec<&'a StalledEvent>> {
    let mut cycles: Vec<Vec<&StalledEvent>> = Vec::new();
    let mut seen = vec![false; waiting.len()];
    for start in 0..waiting.len() {
        let (mut path, mut at) = (Vec::new(), Some(start));
        while let Some(index) = at.filter(|&index| !seen[index]) {
            seen[index] = true;
            path.push(index);
            let next = waiting[index].waits_for(missing);
            at = next.and_then(|next| waiting.binary_search_by_key(&next, |w| w.timeline).ok());
        }
        let Some(begin) = at.and_then(|at| path.iter().position(|&index| index == at)) else { continue };
        let mut cycle = path.split_off(begin);
        let lowest = (0..cycle.len()).min_by_key(|&i| cycle[i]).unwrap_or(0);
        cycle.rotate_left(lowest);
        cycles.push(cycle.into_iter().map(|index| &waiting[index]).collect());
    }
    cycles.sort_by_key(|cycle| cycle.first().map(|first| first.timeline));
    cycles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::program::OwnTimelines;

    fn message(timeline: u32, location: u64, source: u32) -> StalledEvent {
        let channel = ChannelId { trust: Trust::Sound, sending: (AnalysisRank(0), 0), receiving: (AnalysisRank(0), 0) };
        let cause = StallCause::Message { source: TimelineNumber(source), channel };
        StalledEvent {
            timeline: TimelineNumber(timeline),
            location: LocationId(location),
            event: EventNumber(7),
            cause,
            shared: false,
        }
    }

    #[test]
    fn locations_with_their_own_clocks_are_named() {
        // Two processes, each with a location that has a timeline of its own.
        let of = vec![TimelineNumber(0), TimelineNumber(1)];
        let own = OwnTimelines { first: TimelineNumber(2), here: 2, others: 2, of };
        let program = Program { own, ..Program::default() };
        let waiting = [message(0, 10, 2), message(1, 11, 3), message(2, 20, 0)];
        let said = waiting.each_ref().map(|event| event.describe(&program, &waiting, &MissingMembers::new()));
        assert_eq!(said[0], "process 0 receives a message from location 20 of process 0 (location 10, event 7)");
        assert_eq!(said[1], "process 1 receives a message from a location of process 1 (location 11, event 7)");
        assert_eq!(said[2], "location 20 of process 0 receives a message from process 0 (event 7)");
    }

    #[test]
    fn without_them_all_are_processes() {
        let waiting = [message(0, 10, 1), message(1, 11, 0)];
        let said = waiting[0].describe(&Program::default(), &waiting, &MissingMembers::new());
        assert_eq!(said, "process 0 receives a message from process 1 (location 10, event 7)");
    }
}
