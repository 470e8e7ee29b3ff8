//! Why events wait for those of other processes, as arrows: messages, steps of windows and synchronous sends, and the begins that the ends of collective operations wait for. Those within a process are
//! in [`super::threads`].

use super::{ExportWindow, ExportedTimes};
use clc_engine::comm::{AnalysisRank, Transport, gather_values};
use clc_engine::matching::channels::Trust;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::visited_times::{TimelineTimes, VisitedTimes};
use clc_engine::replay::partners::senders;
use clc_trace::{EventNumber, LocationId, Result};
use controlled_logical_clock::semantics::CollectiveClass;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// One end of an arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct FlowEnd {
    /// Process and location, as numbers of process and thread.
    pub place: (u64, u64),
    /// The event.
    pub number: EventNumber,
    /// Its time, in ticks.
    pub time: i64,
}

/// An arrow from an event to one that waits for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Flow {
    /// The event that waits.
    pub to: FlowEnd,
    /// The operation; none of messages.
    pub operation: Option<String>,
    /// What it waits for.
    pub from: FlowEnd,
}

/// A begin of a collective operation that others may wait for: communicator, instance, and group of the member; its rank; where it is.
type Arrival = ((u32, u32, u32), u32, FlowEnd);

/// An end that waits for the members of a group.
#[derive(Debug, Serialize, Deserialize)]
struct Departure {
    operation: String,
    /// Communicator, instance, and the group that it waits for.
    of: (u32, u32, u32),
    rank: u32,
    /// Whether it waits for lower ranks only.
    prefix: bool,
    at: FlowEnd,
}

/// Whose flows are found.
pub(super) struct Flows<'a> {
    /// The trace and its times.
    pub times: &'a ExportedTimes<'a>,
    /// Both ends are in it.
    pub window: ExportWindow,
    /// Process and thread number by location.
    pub places: &'a HashMap<LocationId, (u64, u64)>,
}

impl Flows<'_> {
    /// All arrows with both ends in the window, on rank 0: in the order of the events that wait. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(super) fn gathered(&self, transport: &mut dyn Transport) -> Result<Vec<Flow>> {
        let channels = self.of_channels(transport)?;
        let (arrivals, departures) = self.of_collectives();
        let parts = gather_values(transport, AnalysisRank::FIRST, &(channels, arrivals, departures))?;
        let (mut flows, mut begins, mut ends) = (Vec::new(), BTreeMap::new(), Vec::new());
        for (more, arrivals, departures) in parts.into_iter().flatten() {
            flows.extend(more);
            for (of, rank, at) in arrivals {
                begins.entry(of).or_insert_with(Vec::new).push((rank, at));
            }
            ends.extend(departures);
        }
        flows.extend(self.latest(begins, ends));
        flows.sort_unstable();
        Ok(flows)
    }

    /// The end at a visited event; none if the location is unknown.
    fn end(&self, timeline: LocalTimeline, event: u32, times: &[VisitedTimes<'_>]) -> Option<FlowEnd> {
        let program = &self.times.loaded.program;
        let visited = &program.timelines[timeline];
        let location = program.locations[timeline][visited.location(event as usize) as usize];
        let place = *self.places.get(&location)?;
        Some(FlowEnd { place, number: visited.number(event as usize), time: times[timeline].at(event) })
    }

    /// An arrow for each pair of a channel; the receiver's rank has them.
    fn of_channels(&self, transport: &mut dyn Transport) -> Result<Vec<Flow>> {
        let program = &self.times.loaded.program;
        let times = self.times.visited();
        let channels = || program.messages.incoming.iter();
        let wanted = channels().map(|channel| {
            // Steps of threads and streams are drawn wherever they are, and what only follows from others is nobody's operation.
            let drawn = channel.is_certain() || matches!(channel.trust, Trust::Acknowledged | Trust::Grouped);
            let receiver = &times[channel.destination];
            let within = channel.receives.each().enumerate();
            let within = within.filter(|(_, event)| drawn && self.window.holds(receiver.at(*event)));
            within.map(|(k, _)| k as u32).collect()
        });
        let wanted: Vec<Vec<u32>> = wanted.collect();
        let sends = senders(transport, program, &times, &wanted)?;
        let mut flows = Vec::new();
        for ((channel, wanted), sends) in channels().zip(&wanted).zip(sends) {
            let operation = channel.trust.op().map(|op| op.name().to_owned());
            for (&k, send) in wanted.iter().zip(sends).filter(|(_, send)| self.window.holds(send.time)) {
                let to = self.end(channel.destination, channel.receives.at(k as usize), &times);
                if let Some((to, &place)) = to.zip(self.places.get(&send.location)) {
                    let from = FlowEnd { place, number: send.number, time: send.time };
                    flows.push(Flow { to, operation: operation.clone(), from });
                }
            }
        }
        Ok(flows)
    }

    /// The begins that others may wait for, and the ends in the window that wait, of members hosted here.
    fn of_collectives(&self) -> (Vec<Arrival>, Vec<Departure>) {
        let times = self.times.visited();
        let (mut arrivals, mut departures) = (Vec::new(), Vec::new());
        for comm in &self.times.loaded.program.collectives.comms {
            for member in &comm.members {
                let [own, other] = [comm.group_of(member.rank), comm.group_before(member.rank)];
                for (k, instance) in comm.instances.iter().enumerate() {
                    if instance.class == CollectiveClass::Unconstrained {
                        continue;
                    }
                    let of = |group| (comm.comm.0, k as u32, group as u32);
                    let [begin, end] = [&member.begins, &member.ends].map(|list| list.at(k));
                    // A later one is the latest as well, though it is not drawn.
                    let begin = self.end(member.timeline, begin, &times).filter(|begin| begin.time >= self.window.from);
                    if let Some(at) = begin.filter(|_| member.sends[k]) {
                        arrivals.push((of(own), member.rank.0, at));
                    }
                    let end = self.end(member.ended_on, end, &times).filter(|end| self.window.holds(end.time));
                    if let Some(at) = end.filter(|_| member.receives[k]) {
                        let (operation, prefix) =
                            (instance.op.name().to_owned(), instance.class == CollectiveClass::Prefix);
                        departures.push(Departure { operation, of: of(other), rank: member.rank.0, prefix, at });
                    }
                }
            }
        }
        (arrivals, departures)
    }

    /// An arrow to each end, from the latest begin that it waits for. The replay finds the time and the clock of these, but not the event.
    fn latest(
        &self,
        mut begins: BTreeMap<(u32, u32, u32), Vec<(u32, FlowEnd)>>,
        ends: Vec<Departure>,
    ) -> impl Iterator<Item = Flow> {
        begins.values_mut().for_each(|members| members.sort_unstable_by_key(|&(rank, at)| Reverse((at.time, rank))));
        ends.into_iter().filter_map(move |end| {
            let waits = |rank: u32| if end.prefix { rank < end.rank } else { rank != end.rank };
            let &(_, from) = begins.get(&end.of)?.iter().find(|(rank, _)| waits(*rank))?;
            self.window.holds(from.time).then_some(Flow { to: end.at, operation: Some(end.operation), from })
        })
    }
}
