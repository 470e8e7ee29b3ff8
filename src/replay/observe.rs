//! What messages and collectives say about the clocks: the table of [`crate::presync::windows`], from all analysis ranks.
//!
//! A message bounds the receiver's clock against the sender's. Of a collective instance only the latest begin of the logical
//! senders says anything tight: to every logical receiver it is a message from the clock of that sender. As a receiver on the same
//! clock learns nothing from it, the latest begin on any *other* clock is kept beside it.

use crate::clc::semantics::CollectiveClass;
use crate::comm::{Transport, gather_values, sparse_exchange};
use crate::matching::collectives::CollectiveComm;
use crate::presync::windows::{Bound, BoundTable, Grid};
use crate::replay::bounds::{local_message_bounds, remote_message_bounds};
use crate::replay::program::Program;
use crate::trace::Result;
use crate::trace::progress::Silent;
use crate::workers::Workers;
use std::collections::BTreeMap;
use std::ops::Range;

/// The table of all bounds under `times` (one per visited event of the hosted timelines), by windows of the receives' times; on
/// rank 0 only. `clocks` has the clock of every timeline of the trace. Collective over the analysis ranks; the same
/// for any number of them.
///
/// # Errors
/// Failures of the transport.
pub fn observe(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    times: &[Vec<i64>],
    clocks: &[u32],
    grid: &Grid,
) -> Result<Option<BoundTable>> {
    let here = transport.rank();
    let shares = shares(program, workers.threads());
    let tables = workers.run(shares.len(), &Silent, |share, _| {
        let mut collector = Collector::new(grid);
        let visit = collector.messages(program, times, clocks);
        local_message_bounds(here, program, times, shares[share].clone(), visit);
        Ok(collector.finish())
    })?;
    let mut collector = Collector::new(grid);
    tables.into_iter().for_each(|table| collector.table.merge(table));
    let visit = collector.messages(program, times, clocks);
    remote_message_bounds(transport, program, times, visit)?;
    let latest = latest_begins(transport, program, times, clocks)?;
    for (comm, latest) in program.collectives.comms.iter().zip(&latest) {
        for member in &comm.members {
            let clock = clocks[comm.processes[member.rank as usize] as usize];
            let times = &times[member.timeline as usize];
            let mut from: BTreeMap<u32, Vec<Bound>> = BTreeMap::new();
            for (k, latest) in latest.iter().enumerate() {
                if !member.receives[k] || !meets(comm, k) {
                    continue;
                }
                let at = times[member.ends[k] as usize];
                if let Some((begin, sender)) = latest.on_another_clock(clock) {
                    from.entry(sender).or_default().push(Bound { distance: at - begin, at });
                }
            }
            for (sender, bounds) in from {
                collector.pair((sender, clock));
                bounds.into_iter().for_each(|bound| collector.message(bound));
            }
        }
    }
    let parts = gather_values(transport, 0, &collector.finish())?;
    Ok(parts.map(|parts| {
        let mut whole = BoundTable::default();
        parts.into_iter().for_each(|part| whole.merge(part));
        whole
    }))
}

/// The outgoing channels in `count` parts with about as many messages each.
fn shares(program: &Program, count: usize) -> Vec<Range<usize>> {
    let channels = &program.messages.outgoing;
    let all: usize = channels.iter().map(|channel| channel.sends.len()).sum();
    let (mut shares, mut begin, mut seen) = (Vec::new(), 0, 0);
    for (index, channel) in channels.iter().enumerate() {
        seen += channel.sends.len();
        if seen * count >= all * (shares.len() + 1) {
            shares.push(begin..index + 1);
            begin = index + 1;
        }
    }
    shares.push(begin..channels.len());
    shares
}

/// Whether the instance is one in which receivers wait for the latest of the senders.
fn meets(comm: &CollectiveComm, instance: usize) -> bool {
    !matches!(comm.instances[instance].class, CollectiveClass::Prefix | CollectiveClass::Unconstrained)
}

/// Adds messages to a table, most of them in order of time: those of one pair in one window are combined first.
struct Collector<'a> {
    grid: &'a Grid,
    table: BoundTable,
    pair: (u32, u32),
    /// Messages of the pair since it was last added to the table, the window they are in, its times, and the tightest of them.
    count: u64,
    window: usize,
    span: Range<i64>,
    least: Bound,
}

/// No message.
const NONE: Bound = Bound { distance: i64::MAX, at: i64::MAX };

impl<'a> Collector<'a> {
    fn new(grid: &'a Grid) -> Self {
        Collector { grid, table: BoundTable::default(), pair: (0, 0), count: 0, window: 0, span: 0..0, least: NONE }
    }

    /// Takes messages as incoming channel, receive event and bound, those of a channel together.
    fn messages<'c>(
        &'c mut self,
        program: &'c Program,
        times: &'c [Vec<i64>],
        clocks: &'c [u32],
    ) -> impl FnMut(usize, u32, i64) + use<'a, 'c> {
        let mut channel = usize::MAX;
        let (mut latency, mut receiver) = (0, &[][..]);
        move |index, event, bound| {
            if index != channel {
                let end = &program.messages.incoming[index];
                let destination = program.first + end.destination;
                self.pair((clocks[end.source as usize], clocks[destination as usize]));
                // The bounds contain the minimum latency in force, which is no observation.
                latency = program.message_latency(end.source, destination);
                (channel, receiver) = (index, &times[end.destination as usize]);
            }
            let at = receiver[event as usize];
            self.message(Bound { distance: at - (bound - latency), at });
        }
    }

    /// The messages that follow are of this pair of clocks.
    fn pair(&mut self, pair: (u32, u32)) {
        if pair != self.pair {
            self.flush();
            self.pair = pair;
        }
    }

    #[inline]
    fn message(&mut self, bound: Bound) {
        if !self.span.contains(&bound.at) {
            self.flush();
            self.window = self.grid.window(bound.at);
            self.span = self.grid.span(self.window);
        }
        self.count += 1;
        self.least = self.least.min(bound);
    }

    fn flush(&mut self) {
        let (count, least) = (std::mem::take(&mut self.count), std::mem::replace(&mut self.least, NONE));
        if count == 0 {
            return;
        }
        if self.pair.0 == self.pair.1 {
            self.table.share(self.pair.0, least.distance);
        } else {
            self.table.pairs.entry(self.pair).or_default().add(self.window, least, count);
        }
    }

    fn finish(mut self) -> BoundTable {
        self.flush();
        self.table
    }
}

/// The latest begin of an instance, and the latest one of those on other clocks: (time, clock).
#[derive(Debug, Clone, Copy, Default)]
struct Latest([Option<(i64, u32)>; 2]);

impl Latest {
    fn merge(&mut self, other: Latest) {
        for candidate in other.0.into_iter().flatten() {
            let mut all: [Option<(i64, u32)>; 3] = [self.0[0], self.0[1], Some(candidate)];
            all.sort_unstable_by(|a, b| b.cmp(a));
            let second = all[1..].iter().flatten().find(|next| all[0].is_none_or(|first| first.1 != next.1));
            self.0 = [all[0], second.copied()];
        }
    }

    fn on_another_clock(&self, clock: u32) -> Option<(i64, u32)> {
        self.0.into_iter().flatten().find(|&(_, sender)| sender != clock)
    }

    fn encode(&self, words: &mut Vec<u64>) {
        for slot in self.0 {
            let (time, clock) = slot.unwrap_or((i64::MIN, u32::MAX));
            words.extend([time as u64, u64::from(clock)]);
        }
    }

    fn decode(words: &[u64]) -> Latest {
        let mut latest = Latest::default();
        for (slot, words) in latest.0.iter_mut().zip(words.chunks_exact(2)) {
            *slot = (words[1] != u64::from(u32::MAX)).then_some((words[0] as i64, words[1] as u32));
        }
        latest
    }
}

/// For every communicator with members here, per instance. Contributions meet at the communicator's home.
fn latest_begins(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[Vec<i64>],
    clocks: &[u32],
) -> Result<Vec<Vec<Latest>>> {
    const WORDS: usize = 4;
    let comms = &program.collectives.comms;
    let mut all: Vec<Vec<Latest>> = Vec::with_capacity(comms.len());
    for comm in comms {
        let mut latest = vec![Latest::default(); comm.instances.len()];
        for member in &comm.members {
            let clock = clocks[comm.processes[member.rank as usize] as usize];
            let times = &times[member.timeline as usize];
            for (k, latest) in latest.iter_mut().enumerate() {
                if member.sends[k] && meets(comm, k) {
                    latest.merge(Latest([Some((times[member.begins[k] as usize], clock)), None]));
                }
            }
        }
        all.push(latest);
    }
    let here = transport.rank();
    let encode = |comm: u32, latest: &[Latest], words: &mut Vec<u64>| {
        words.extend([u64::from(comm), latest.len() as u64]);
        latest.iter().for_each(|latest| latest.encode(words));
    };
    // First to the home, then back to all hosts: what the home knows replaces what a host knew.
    for to_home in [true, false] {
        let mut outgoing: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for (comm, latest) in comms.iter().zip(&all) {
            if to_home && comm.home != here {
                encode(comm.comm, latest, outgoing.entry(comm.home).or_default());
            } else if !to_home && comm.home == here {
                for &(host, _) in comm.hosts.iter().filter(|(host, _)| *host != here) {
                    encode(comm.comm, latest, outgoing.entry(host).or_default());
                }
            }
        }
        for (_, words) in sparse_exchange(transport, outgoing.into_iter().collect())? {
            let mut rest = &words[..];
            while let [comm, count, tail @ ..] = rest {
                let (values, next) = tail.split_at(*count as usize * WORDS);
                let index = program.comm_index[&(*comm as u32)] as usize;
                for (latest, words) in all[index].iter_mut().zip(values.chunks_exact(WORDS)) {
                    latest.merge(Latest::decode(words));
                }
                rest = next;
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_latest_of_every_other_clock_is_known(begins in prop::collection::vec((-9i64..9, 0u32..4), 0..12), cut in 0usize..12) {
            let collect = |part: &[(i64, u32)]| {
                let mut latest = Latest::default();
                part.iter().for_each(|&begin| latest.merge(Latest([Some(begin), None])));
                latest
            };
            let cut = cut.min(begins.len());
            let mut whole = collect(&begins[cut..]);
            let mut words = Vec::new();
            collect(&begins[..cut]).encode(&mut words);
            whole.merge(Latest::decode(&words));
            for clock in 0..4 {
                let expected = begins.iter().filter(|begin| begin.1 != clock).max().copied();
                prop_assert_eq!(whole.on_another_clock(clock), expected);
            }
        }
    }
}
