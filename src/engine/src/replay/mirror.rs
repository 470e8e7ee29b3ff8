//! The program of the mirrored replay: the same one on negated times, with logical sends and receives exchanged.
//!
//! What is sent back in time there is delayed nothing here: a forward replay of it moves sends before their receives, and everything
//! before a send with it. Its result LC_b, negated again, is at or before C, and satisfies the same constraints as LC.
//!
//! Indexes of events count from the end. The k-th message of a channel is the k-th one *sent*, here as there; ranks of communicators with
//! prefix operations are renumbered from the end, so that a contribution still goes from lower to higher ranks.

use crate::comm::{AnalysisRank, Transport, exchange_values};
use crate::matching::channels::{InChannel, Lengths, OutChannel};
use crate::matching::collectives::instances::{
    CollectiveComm, Collectives, HostedMember, Instance, InstanceIndex, MemberPlace, Membership,
};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::matched::Messages;
use crate::matching::nearly_sorted::sort_nearly_sorted;
use crate::matching::sync::{MirroredLinks, SyncTimeline};
use crate::replay::program::Program;
use clc_trace::{CommRank, Result};
use controlled_logical_clock::semantics::CollectiveClass;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The mirrored `program`. Collective over the analysis ranks: receivers tell in which order messages were received, where that is
/// not the order in which they were sent.
///
/// # Errors
/// Failures of the transport.
pub(super) fn mirrored(transport: &mut dyn Transport, program: &Program) -> Result<Program> {
    let (messages, place) = messages(transport, program)?;
    let collectives = collectives(program);
    let mut mirrored = Program {
        first: program.first,
        timelines: program.timelines.clone(),
        messages,
        collectives,
        latency: program.latency,
        nodes: program.nodes.clone(),
        locations: program.locations.clone(),
        own: program.own.clone(),
        mirrored: Some(MirroredLinks { outgoing: place }),
        ..Program::default()
    };
    mirrored.index_communicators();
    Ok(mirrored)
}

/// An event of `timeline`, counted from its end.
fn from_end(timeline: &SyncTimeline, event: u32) -> u32 {
    timeline.len() as u32 - 1 - event
}

/// Of an outgoing channel at its host: where its other end goes.
#[derive(Serialize, Deserialize)]
struct OtherEnd {
    channel: u32,
    place: u32,
    /// The order of its messages there; empty if it is as here, from the end.
    order: Vec<u32>,
}

/// All channels the other way round, and for each incoming channel its place among the outgoing ones of the mirrored program, which are in the
/// order of the timelines.
fn messages(transport: &mut dyn Transport, program: &Program) -> Result<(Messages, Vec<u32>)> {
    let channels = &program.messages;
    let mut order: Vec<usize> = (0..channels.incoming.len()).collect();
    order.sort_by_key(|&index| channels.incoming[index].destination);
    let mut place = vec![0; order.len()];
    for (new, &index) in (0..).zip(&order) {
        place[index] = new;
    }
    let mut outgoing: BTreeMap<AnalysisRank, Vec<OtherEnd>> = BTreeMap::new();
    let mut sends: Vec<OutChannel> = Vec::with_capacity(order.len());
    for &index in &order {
        let channel = &channels.incoming[index];
        let timeline = &program.timelines[channel.destination];
        let mut messages: Vec<u32> = Vec::new();
        let mut events = channel.receives.mirrored(timeline.len());
        if !channel.receives.each().is_sorted() {
            messages.extend((0..channel.receives.len() as u32).rev());
            sort_nearly_sorted(&mut messages, |&k| Reverse(channel.receives.at(k as usize)));
            events = messages.iter().map(|&k| from_end(timeline, channel.receives.at(k as usize))).collect();
        }
        outgoing.entry(channel.host).or_default().push(OtherEnd {
            channel: channel.remote,
            place: place[index],
            order: messages,
        });
        sends.push(OutChannel {
            source: channel.destination,
            destination: channel.source,
            host: channel.host,
            remote: channel.remote,
            trust: channel.trust,
            sends: events,
        });
    }
    let mut receives: Vec<InChannel> = channels
        .outgoing
        .iter()
        .map(|channel| {
            let timeline = &program.timelines[channel.source];
            InChannel {
                source: channel.destination,
                host: channel.host,
                remote: channel.remote,
                destination: channel.source,
                trust: channel.trust,
                receives: channel.sends.mirrored(timeline.len()),
                lengths: Lengths::default(),
            }
        })
        .collect();
    for end in exchange_values(transport, outgoing)?.into_iter().flat_map(|(_, ends)| ends) {
        let (channel, mirrored) = (&channels.outgoing[end.channel as usize], &mut receives[end.channel as usize]);
        mirrored.remote = end.place;
        if !end.order.is_empty() {
            let timeline = &program.timelines[channel.source];
            mirrored.receives = end.order.iter().map(|&k| from_end(timeline, channel.sends.at(k as usize))).collect();
        }
    }
    let joins = channels.fans.clone();
    let fans = channels.joins.iter().map(|list| list.iter().map(|&index| place[index as usize]).collect()).collect();
    let messages = Messages { outgoing: sends, incoming: receives, fans, joins, ..Messages::default() };
    Ok((messages, place))
}

/// All collective instances from the last to the first, with ends that send and begins that receive.
fn collectives(program: &Program) -> Collectives {
    let collectives = &program.collectives;
    let mut reversed = Vec::with_capacity(collectives.comms.len());
    let comms = collectives.comms.iter().map(|comm| {
        let renumbered = comm.instances.iter().any(|instance| instance.class == CollectiveClass::Prefix);
        reversed.push(renumbered);
        comm_of(program, comm, renumbered)
    });
    let comms: Vec<CollectiveComm> = comms.collect();
    let memberships = collectives.memberships.iter().map(|&Membership { comm, member }| {
        let members = comms[comm].members.len() as u32;
        let member = if reversed[comm] { MemberPlace(members - 1 - member.0) } else { member };
        Membership { comm, member }
    });
    Collectives { memberships: memberships.collect(), comms, ..Collectives::default() }
}

fn comm_of(program: &Program, comm: &CollectiveComm, renumbered: bool) -> CollectiveComm {
    let rank = |rank: CommRank| if renumbered { CommRank(comm.size - 1 - rank.0) } else { rank };
    let instances = comm.instances.iter().rev().map(|instance| Instance {
        op: instance.op,
        class: match instance.class {
            CollectiveClass::OneToN => CollectiveClass::NToOne,
            CollectiveClass::NToOne => CollectiveClass::OneToN,
            class => class,
        },
        root: if instance.class.rooted() { rank(instance.root) } else { instance.root },
        constrains: instance.constrains,
    });
    let mut members: Vec<HostedMember> = comm
        .members
        .iter()
        .map(|member| {
            let length = |timeline: LocalTimeline| program.timelines[timeline].len();
            let flags = |flags: &[bool]| flags.iter().rev().copied().collect();
            let begins = member.ends.mirrored(length(member.ended_on));
            let mut order: Vec<InstanceIndex> = Vec::new();
            if !begins.each().is_sorted() {
                order = (0..begins.len() as u32).map(InstanceIndex).collect();
                sort_nearly_sorted(&mut order, |&instance| begins.at(instance.place()));
            }
            HostedMember {
                rank: rank(member.rank),
                timeline: member.ended_on,
                ended_on: member.timeline,
                loose: member.loose,
                begins,
                order,
                ends: member.begins.mirrored(length(member.timeline)),
                sends: flags(&member.receives),
                receives: flags(&member.sends),
            }
        })
        .collect();
    let mut mirrored = CollectiveComm { instances: instances.collect(), mirrored: true, ..comm.clone_without_lists() };
    mirrored.own.iter_mut().for_each(|(_, timelines)| timelines.reverse());
    if renumbered {
        members.reverse();
        mirrored.processes = comm.processes.iter().rev().copied().collect();
        mirrored.spread = comm.spread.reversed();
        mirrored.rank_hosts.reverse();
        mirrored.own = mirrored.own.iter().rev().map(|&(own, timelines)| (rank(own), timelines)).collect();
    }
    CollectiveComm { members, ..mirrored }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local::LocalTransport;
    use crate::matching::channels::Trust;
    use crate::matching::sync::SyncKind;
    use clc_trace::{EventNumber, Ticks, TimelineNumber};
    use std::sync::Arc;

    /// Process 0 sends three messages to process 1, which completes the second one last.
    fn program() -> Program {
        let mut timelines = [SyncTimeline::default(), SyncTimeline::default()];
        for (timeline, kind) in timelines.iter_mut().zip([SyncKind::Send, SyncKind::Receive]) {
            for event in 0..3 {
                timeline.push(10 * i64::from(event), 0, EventNumber::after(u64::from(event)), 0).unwrap();
                timeline.activate(event, kind, 0);
            }
        }
        let out = OutChannel {
            source: LocalTimeline(0),
            destination: TimelineNumber(1),
            host: AnalysisRank(0),
            remote: 0,
            trust: Trust::Sound,
            sends: vec![0, 1, 2].into(),
        };
        let into = InChannel {
            source: TimelineNumber(0),
            host: AnalysisRank(0),
            remote: 0,
            destination: LocalTimeline(1),
            trust: Trust::Sound,
            receives: vec![0, 2, 1].into(),
            lengths: Lengths::default(),
        };
        let messages = Messages { outgoing: vec![out], incoming: vec![into], ..Messages::default() };
        Program { timelines: timelines.map(Arc::new).into(), messages, nodes: vec![0, 1], ..Program::default() }
    }

    #[test]
    fn messages_keep_their_pairs_in_the_order_of_their_new_sends() {
        let mirrored = mirrored(&mut LocalTransport::alone(), &program()).unwrap();
        let (out, into) = (&mirrored.messages.outgoing[0], &mirrored.messages.incoming[0]);
        assert_eq!((out.source, out.destination), (LocalTimeline(1), TimelineNumber(0)));
        assert_eq!((into.source, into.destination), (TimelineNumber(1), LocalTimeline(0)));
        // Received first, last, in the middle: the last event of either process is number 0.
        let events = [&out.sends, &into.receives].map(|list| list.each().collect::<Vec<u32>>());
        assert_eq!(events, [[0, 1, 2], [1, 0, 2]]);
        let timelines = [0, 1].map(|process| mirrored.timeline(LocalTimeline(process)));
        assert_eq!([0, 1, 2].map(|event| timelines[0].time(event)), [-20, -10, 0]);
        assert_eq!((timelines[0].number(0), timelines[0].position(1).time), (EventNumber(3), Ticks(-10)));
        assert_eq!(timelines.map(|timeline| timeline.kind(0)), [SyncKind::Receive, SyncKind::Send]);
    }

    #[test]
    fn links_are_those_of_the_channels_there() {
        // A second channel, whose receiver comes first.
        let mut program = program();
        let back = OutChannel {
            source: LocalTimeline(1),
            destination: TimelineNumber(0),
            remote: 1,
            sends: vec![3].into(),
            ..program.messages.outgoing[0].clone()
        };
        let into = InChannel {
            source: TimelineNumber(1),
            destination: LocalTimeline(0),
            remote: 1,
            receives: vec![3].into(),
            ..program.messages.incoming[0].clone()
        };
        for (timeline, kind) in program.timelines.iter_mut().zip([SyncKind::Receive, SyncKind::Send]) {
            let timeline = Arc::make_mut(timeline);
            let event = timeline.push(30, 0, EventNumber(4), 0).unwrap();
            timeline.activate(event, kind, 1);
        }
        program.messages.outgoing.push(back);
        program.messages.incoming.push(into);
        let mirrored = mirrored(&mut LocalTransport::alone(), &program).unwrap();
        for local in [0, 1].map(LocalTimeline) {
            let timeline = mirrored.timeline(local);
            for event in 0..timeline.len() {
                let link = timeline.link(event);
                let list = match timeline.kind(event) {
                    SyncKind::Send => &mirrored.messages.outgoing[link].sends,
                    _ => &mirrored.messages.incoming[link].receives,
                };
                assert!(list.each().any(|other| other == event as u32), "{local:?} {event}");
            }
        }
    }
}
