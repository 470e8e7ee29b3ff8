//! What messages and collectives say about the clocks: the table of [`clc_clock::windows`], from all analysis ranks.
//!
//! A message bounds the receiver's clock against the sender's. Of a collective instance only the latest begin of the logical
//! senders says anything tight (`latest`): to every logical receiver it is a message from the clock of that sender.

use crate::comm::{AnalysisRank, Transport, gather_owned, gather_values};
use crate::matching::channels::Lengths;
use crate::matching::collectives::instances::HostedMember;
use crate::matching::hash::HashMap;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::visited_times::{TimelineTimes, VisitedTimes};
use crate::replay::bounds::{local_message_bounds, message_bounds, remote_message_bounds};
use crate::replay::latest::Begins;
use crate::replay::program::Program;
use clc_clock::bounds::Bound;
use clc_clock::grid::Grid;
use clc_clock::kind::BoundKind;
use clc_clock::windows::BoundTable;
use clc_clock::{ClockInterval, Collector, Inspected};
use clc_trace::progress::Silent;
use clc_trace::workers::{Workers, shares};
use clc_trace::{CollectiveOp, LengthClass, Result};
use std::collections::BTreeMap;
use std::ops::Range;

/// The table of all bounds under `times` (one per visited event of the hosted timelines), by windows of the receives' times; on
/// rank 0 only. `begins` are those of the collectives under these times. `clocks` has the clock of every timeline of the trace. Collective over the analysis ranks;
/// the same for any number of them.
///
/// # Errors
/// Failures of the transport.
pub fn observe(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    times: &[VisitedTimes<'_>],
    begins: &[Begins],
    clocks: &[u32],
    grid: &Grid,
) -> Result<Option<BoundTable>> {
    let here = transport.rank();
    let (shares, members) = (channel_shares(program, workers.threads()), hosted_members(program));
    let tables = workers.run(shares.len(), &Silent, |share, _| {
        let mut collector = Collector::new(grid);
        let visit = messages(&mut collector, program, times, clocks);
        local_message_bounds(here, program, times, shares[share].clone(), visit);
        let [from, to] = [share, share + 1].map(|share| members.len() * share / shares.len());
        for member in &members[from..to] {
            for (pair, bounds) in bounds_of_member(program, *member, times, begins, clocks) {
                collector.pair(pair);
                bounds.into_iter().for_each(|bound| collector.message(bound));
            }
        }
        Ok(collector.finish())
    })?;
    let mut collector = Collector::new(grid);
    tables.into_iter().for_each(|table| collector.merge(table));
    let visit = messages(&mut collector, program, times, clocks);
    remote_message_bounds(transport, program, times, visit)?;
    let parts = gather_owned(transport, AnalysisRank::FIRST, collector.finish())?;
    Ok(parts.map(|parts| {
        let mut merged = BoundTable::default();
        parts.into_iter().for_each(|part| merged.merge(part));
        merged
    }))
}

/// The members of collectives that are hosted here, communicator by communicator.
pub(super) fn hosted_members(program: &Program) -> Vec<(usize, &HostedMember)> {
    let comms = program.collectives.comms.iter().enumerate();
    comms.flat_map(|(comm, of)| of.members.iter().map(move |member| (comm, member))).collect()
}

/// What the collectives of a communicator say to a member, by (sending clock, receiving clock).
fn bounds_of_member(
    program: &Program,
    (comm, member): (usize, &HostedMember),
    times: &[VisitedTimes<'_>],
    begins: &[Begins],
    clocks: &[u32],
) -> impl Iterator<Item = ((u32, u32), Vec<Bound>)> {
    let (comm, begins) = (&program.collectives.comms[comm], &begins[comm]);
    let clock = clocks[comm.ended_on(member.rank)];
    let times = times[member.ended_on];
    let mut from = BySender::default();
    for instance in member.received() {
        let at = times.at(member.ends.at(instance.place()));
        let (latest, op) = (begins.before(comm, instance, member.rank), comm.instances[instance].op);
        let kind = BoundKind::collective(op, comm.size);
        let mut bound = |(begin, sender): (i64, u32)| {
            from.of(sender).push(Bound { distance: at - begin, at, kind });
        };
        latest.on_another_clock(clock).map(&mut bound);
        // One that ends before it began on its own clock shows that this is not one clock. A fence may not have synchronised.
        if op != CollectiveOp::WIN_FENCE_ASSUMED {
            latest.of_all().filter(|(_, sender)| *sender == clock).map(bound);
        }
    }
    from.lists.sort_unstable_by_key(|list| list.0);
    from.lists.into_iter().map(move |(sender, bounds)| ((sender, clock), bounds))
}

/// Bounds of one receiver by the clock of their sender, which often is the one of the bound before.
#[derive(Default)]
struct BySender {
    lists: Vec<(u32, Vec<Bound>)>,
    /// Where in `lists` a sender is, and where the last one was.
    places: HashMap<u32, usize>,
    last: usize,
}

impl BySender {
    fn of(&mut self, sender: u32) -> &mut Vec<Bound> {
        if self.lists.get(self.last).is_none_or(|last| last.0 != sender) {
            self.last = *self.places.entry(sender).or_insert_with(|| {
                self.lists.push((sender, Vec::new()));
                self.lists.len() - 1
            });
        }
        &mut self.lists[self.last].1
    }
}

/// Messages of a stretch that a rank tells of at most. Chosen by hand: rank 0 holds those of all ranks; with fewer, a step may be placed less
/// closely, and by another number of ranks differently.
const MOST: usize = 1 << 14;

/// The messages (and latest begins of collectives) of some clocks in some stretches of time, under `times`; on rank 0 only, in order. Collective over the
/// analysis ranks; the same for any number of them, unless there are more than can be told.
///
/// # Errors
/// Failures of the transport.
pub fn inspect(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    times: &[VisitedTimes<'_>],
    clocks: &[u32],
    stretches: &[ClockInterval],
) -> Result<Option<Vec<Inspected>>> {
    let mut found: Vec<Vec<Inspected>> = vec![Vec::new(); stretches.len()];
    let mut see = |(a, b): (u32, u32), sent: i64, received: i64| {
        if a == b {
            return;
        }
        for (index, (stretch, found)) in stretches.iter().zip(&mut found).enumerate() {
            let (own, partner, other, incoming) = match stretch.clock {
                clock if clock == a => (sent, b, received, false),
                clock if clock == b => (received, a, sent, true),
                _ => continue,
            };
            if (stretch.from..=stretch.until).contains(&own) && found.len() < MOST {
                found.push(Inspected { stretch: index as u32, own, partner, other, received: incoming });
            }
        }
    };
    message_bounds(transport, program, times, |index, event, bound| {
        let end = &program.messages.incoming[index];
        if end.is_certain() {
            let destination = program.number(end.destination);
            let pair = (clocks[end.source], clocks[destination]);
            let sent = bound - program.message_latency(end.source, destination);
            see(pair, sent, times[end.destination].at(event));
        }
    })?;
    let begins = Begins::meet(transport, workers, program, times, clocks)?;
    for member in hosted_members(program) {
        for (pair, bounds) in bounds_of_member(program, member, times, &begins, clocks) {
            bounds.into_iter().for_each(|bound| see(pair, bound.at - bound.distance, bound.at));
        }
    }
    let parts = gather_values(transport, AnalysisRank::FIRST, &found.concat())?;
    Ok(parts.map(|parts| {
        let mut all: Vec<Inspected> = parts.into_iter().flatten().collect();
        all.sort_unstable();
        all
    }))
}

/// The outgoing channels in `count` parts with about as many messages each.
pub(crate) fn channel_shares(program: &Program, count: usize) -> Vec<Range<usize>> {
    let messages: Vec<u64> = program.messages.outgoing.iter().map(|channel| channel.sends.len() as u64).collect();
    shares(&messages, count)
}

/// Adds messages to a table, given as incoming channel, receive event and bound, those of a channel in its order.
fn messages<'a, 'c>(
    collector: &'c mut Collector<'a>,
    program: &'c Program,
    times: &'c [VisitedTimes<'c>],
    clocks: &'c [u32],
) -> impl FnMut(usize, u32, i64) + use<'a, 'c> {
    let mut channel = usize::MAX;
    let (mut latency, mut receiver) = (0, LocalTimeline(0));
    // The kind of all messages of the channel; or the rest of their lengths, if these differ. Of channels of which parts have come, what is left.
    let (mut kind, mut lengths) = (BoundKind::MESSAGE, [].iter());
    let mut left: BTreeMap<usize, std::slice::Iter<'c, LengthClass>> = BTreeMap::new();
    move |index, event, bound| {
        if !program.messages.incoming[index].is_certain() {
            return;
        }
        if index != channel {
            let end = &program.messages.incoming[index];
            let destination = program.number(end.destination);
            collector.pair((clocks[end.source], clocks[destination]));
            // The bounds contain the minimum latency in force, which is no observation.
            latency = program.message_latency(end.source, destination);
            if lengths.len() > 0 {
                left.insert(channel, std::mem::take(&mut lengths));
            }
            (kind, lengths) = match &end.lengths {
                Lengths::All(length) => (BoundKind::message(*length), [].iter()),
                Lengths::Each(all) => (BoundKind::MESSAGE, left.remove(&index).unwrap_or(all.iter())),
            };
            (channel, receiver) = (index, end.destination);
        }
        let at = times[receiver].at(event);
        let kind = lengths.next().map_or(kind, |length| BoundKind::message(*length));
        collector.message(Bound { distance: at - (bound - latency), at, kind });
    }
}
