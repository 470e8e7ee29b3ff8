//! Bounds in one sparse exchange, when all times are known.
//!
//! Once every event has a time, what a logical receive must not precede (and what a logical send must not overtake) follows
//! without any order of execution: all messages of a pair in one vector, all instances of a communicator in one vector reduction.
//! This serves the backward amortisation (caps of the sends) and every check of the clock condition.

use crate::clc::semantics::CollectiveClass;
use crate::comm::{Top2, Transport, sparse_exchange};
use crate::matching::collectives::{CollectiveComm, Member};
use crate::replay::program::{NO_LOWER_BOUND, NO_UPPER_BOUND, Program, instance_latency};
use crate::trace::Result;
use std::collections::BTreeMap;

/// Which way timestamps travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From logical sends to logical receives: the earliest time that each receive may have.
    Forward,
    /// From logical receives to logical sends: the latest time that each send may have.
    Backward,
}

/// For each visited event of the hosted timelines its bound under the given `times`: forward, the latest logical send plus μ
/// for each logical receive ([`NO_LOWER_BOUND`] for other events); backward, the earliest logical receive minus μ for each
/// logical send ([`NO_UPPER_BOUND`] for others). Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn bounds(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[Vec<i64>],
    direction: Direction,
) -> Result<Vec<Vec<i64>>> {
    let mut bounds = program.filled(match direction {
        Direction::Forward => NO_LOWER_BOUND,
        Direction::Backward => NO_UPPER_BOUND,
    });
    message_bounds(transport, program, times, direction, &mut bounds)?;
    collective_bounds(transport, program, times, direction, &mut bounds)?;
    Ok(bounds)
}

pub(super) fn message_bounds(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[Vec<i64>],
    direction: Direction,
    bounds: &mut [Vec<i64>],
) -> Result<()> {
    let here = transport.rank();
    let messages = &program.messages;
    let mut outgoing: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    match direction {
        Direction::Forward => {
            for channel in &messages.outgoing {
                if channel.sends.is_empty() {
                    continue;
                }
                let sender = &times[channel.source as usize];
                let latency = program.message_latency(program.first + channel.source, channel.destination);
                let values = channel.sends.iter().map(|&event| sender[event as usize] + latency);
                if channel.host as usize == here {
                    let end = &messages.incoming[channel.remote as usize];
                    let receiver = &mut bounds[end.destination as usize];
                    for (&event, value) in end.receives.iter().zip(values) {
                        receiver[event as usize] = value;
                    }
                } else {
                    let words = outgoing.entry(channel.host as usize).or_default();
                    words.extend([u64::from(channel.remote), channel.sends.len() as u64]);
                    words.extend(values.map(|value| value as u64));
                }
            }
        }
        Direction::Backward => {
            for channel in &messages.incoming {
                if channel.receives.is_empty() {
                    continue;
                }
                let receiver = &times[channel.destination as usize];
                let latency = program.message_latency(channel.source, program.first + channel.destination);
                let values = channel.receives.iter().map(|&event| receiver[event as usize] - latency);
                if channel.host as usize == here {
                    let end = &messages.outgoing[channel.remote as usize];
                    let sender = &mut bounds[end.source as usize];
                    for (&event, value) in end.sends.iter().zip(values) {
                        sender[event as usize] = value;
                    }
                } else {
                    let words = outgoing.entry(channel.host as usize).or_default();
                    words.extend([u64::from(channel.remote), channel.receives.len() as u64]);
                    words.extend(values.map(|value| value as u64));
                }
            }
        }
    }
    for (_, words) in sparse_exchange(transport, outgoing.into_iter().collect())? {
        let mut rest = &words[..];
        while let [channel, length, tail @ ..] = rest {
            let (values, next) = tail.split_at(*length as usize);
            let (timeline, events) = match direction {
                Direction::Forward => {
                    let end = &messages.incoming[*channel as usize];
                    (end.destination, &end.receives)
                }
                Direction::Backward => {
                    let end = &messages.outgoing[*channel as usize];
                    (end.source, &end.sends)
                }
            };
            for (&event, &value) in events.iter().zip(values) {
                bounds[timeline as usize][event as usize] = value as i64;
            }
            rest = next;
        }
    }
    Ok(())
}

/// Contributions of a communicator's members to all its instances. Backward, times are negated: a minimum becomes a maximum.
struct Contributions {
    /// Per instance: the two largest, for every class but prefix operations.
    largest: Vec<Top2>,
    /// Per prefix instance (in order) and member: its contribution, [`NO_LOWER_BOUND`] if it makes none.
    prefix: Vec<BTreeMap<u32, i64>>,
}

fn collective_bounds(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[Vec<i64>],
    direction: Direction,
    bounds: &mut [Vec<i64>],
) -> Result<()> {
    let comms = &program.collectives.comms;
    let mut contributions: Vec<Contributions> =
        comms.iter().map(|comm| Contributions::of_members(program, comm, times, direction)).collect();

    // What hosts contribute to communicators whose home is elsewhere, and what homes hand out.
    let here = transport.rank();
    let mut outgoing: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (comm, contribution) in comms.iter().zip(&contributions) {
        if comm.home != here {
            contribution.encode(comm.comm, outgoing.entry(comm.home).or_default());
        }
    }
    for (_, words) in sparse_exchange(transport, outgoing.into_iter().collect())? {
        let mut rest = &words[..];
        while let [comm, tail @ ..] = rest {
            let index = program.comm_index[&(*comm as u32)] as usize;
            rest = contributions[index].merge(tail);
        }
    }
    let mut outgoing: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (comm, contribution) in comms.iter().zip(&contributions) {
        if comm.home == here {
            for &(host, _) in comm.hosts.iter().filter(|(host, _)| *host != here) {
                contribution.encode(comm.comm, outgoing.entry(host).or_default());
            }
        }
    }
    for (_, words) in sparse_exchange(transport, outgoing.into_iter().collect())? {
        let mut rest = &words[..];
        while let [comm, tail @ ..] = rest {
            let index = program.comm_index[&(*comm as u32)] as usize;
            contributions[index].clear();
            rest = contributions[index].merge(tail);
        }
    }
    for (comm, contribution) in comms.iter().zip(&contributions) {
        contribution.apply(program, comm, direction, bounds);
    }
    Ok(())
}

/// For each instance its index among the prefix instances, if it is one.
fn prefix_indexes(comm: &CollectiveComm) -> impl Iterator<Item = Option<usize>> + '_ {
    let mut next = 0;
    comm.instances.iter().map(move |instance| {
        (instance.class == CollectiveClass::Prefix).then(|| {
            next += 1;
            next - 1
        })
    })
}

/// The event at which `member` contributes to `instance`, and the one that the result bounds; `None` where it has no part.
fn ends_of(member: &Member, instance: usize, direction: Direction) -> (Option<u32>, Option<u32>) {
    let begin = member.sends[instance].then(|| member.begins[instance]);
    let end = member.receives[instance].then(|| member.ends[instance]);
    match direction {
        Direction::Forward => (begin, end),
        Direction::Backward => (end, begin),
    }
}

impl Contributions {
    fn of_members(program: &Program, comm: &CollectiveComm, times: &[Vec<i64>], direction: Direction) -> Self {
        let prefixes = prefix_indexes(comm).flatten().count();
        let mut contributions =
            Contributions { largest: vec![Top2::NONE; comm.instances.len()], prefix: vec![BTreeMap::new(); prefixes] };
        let shared = program.shared_latency[program.comm_index[&comm.comm] as usize];
        for member in &comm.members {
            let times = &times[member.timeline as usize];
            for (k, prefix) in prefix_indexes(comm).enumerate() {
                let (Some(event), _) = ends_of(member, k, direction) else { continue };
                let time = times[event as usize];
                let value = match direction {
                    Direction::Forward => time,
                    Direction::Backward => -(time - instance_latency(comm, k, member, &program.latency, shared)),
                };
                match prefix {
                    Some(prefix) => {
                        contributions.prefix[prefix].insert(member.rank, value);
                    }
                    None => {
                        contributions.largest[k] = contributions.largest[k].merge(Top2::one(value, member.rank.into()))
                    }
                }
            }
        }
        contributions
    }

    fn clear(&mut self) {
        self.largest.fill(Top2::NONE);
        self.prefix.iter_mut().for_each(BTreeMap::clear);
    }

    /// Layout: communicator, then three words per instance, then per prefix instance a count and (rank, value) pairs.
    fn encode(&self, comm: u32, words: &mut Vec<u64>) {
        words.push(u64::from(comm));
        for top in &self.largest {
            words.extend([top.max as u64, top.holder as u64, top.second as u64]);
        }
        for members in &self.prefix {
            words.push(members.len() as u64);
            words.extend(members.iter().flat_map(|(&rank, &value)| [u64::from(rank), value as u64]));
        }
    }

    /// Adds what [`Contributions::encode`] wrote (without the communicator) and returns the rest.
    fn merge<'w>(&mut self, mut words: &'w [u64]) -> &'w [u64] {
        for top in &mut self.largest {
            if let [max, holder, second, tail @ ..] = words {
                *top = top.merge(Top2 { max: *max as i64, holder: *holder as i64, second: *second as i64 });
                words = tail;
            }
        }
        for members in &mut self.prefix {
            if let [length, tail @ ..] = words {
                let (pairs, next) = tail.split_at(2 * *length as usize);
                members.extend(pairs.chunks_exact(2).map(|pair| (pair[0] as u32, pair[1] as i64)));
                words = next;
            }
        }
        words
    }

    fn apply(&self, program: &Program, comm: &CollectiveComm, direction: Direction, bounds: &mut [Vec<i64>]) {
        let shared = program.shared_latency[program.comm_index[&comm.comm] as usize];
        let prefix_bounds: Vec<BTreeMap<u32, i64>> =
            self.prefix.iter().map(|members| running_maxima(members, comm, direction)).collect();
        for member in &comm.members {
            let bounds = &mut bounds[member.timeline as usize];
            for (k, prefix) in prefix_indexes(comm).enumerate() {
                let (_, Some(event)) = ends_of(member, k, direction) else { continue };
                let largest = match prefix {
                    Some(prefix) => prefix_bounds[prefix].get(&member.rank).copied().unwrap_or(NO_LOWER_BOUND),
                    None => self.largest[k].excluding(member.rank.into()),
                };
                if largest != NO_LOWER_BOUND {
                    bounds[event as usize] = match direction {
                        Direction::Forward => largest + instance_latency(comm, k, member, &program.latency, shared),
                        Direction::Backward => -largest,
                    };
                }
            }
        }
    }
}

/// For each member hosted here: the largest contribution of lower ranks (forward) or higher ranks (backward).
fn running_maxima(members: &BTreeMap<u32, i64>, comm: &CollectiveComm, direction: Direction) -> BTreeMap<u32, i64> {
    let mut result = BTreeMap::new();
    let mut largest = NO_LOWER_BOUND;
    let mut visit = |contributions: &mut dyn Iterator<Item = (&u32, &i64)>,
                     ours: &mut dyn Iterator<Item = u32>,
                     before: fn(u32, u32) -> bool| {
        let mut next = contributions.next();
        for rank in ours {
            while let Some((&contributor, &value)) = next {
                if !before(contributor, rank) {
                    break;
                }
                largest = largest.max(value);
                next = contributions.next();
            }
            result.insert(rank, largest);
        }
    };
    let ranks = comm.members.iter().map(|member| member.rank);
    match direction {
        Direction::Forward => visit(&mut members.iter(), &mut ranks.into_iter(), |a, b| a < b),
        Direction::Backward => visit(&mut members.iter().rev(), &mut ranks.rev(), |a, b| a > b),
    }
    result
}
