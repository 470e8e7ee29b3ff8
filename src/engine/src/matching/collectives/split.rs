//! Collective operations of locations that have got timelines of their own.
//!
//! A member of a [`CollectiveComm`] begins its operations on one timeline, and ends them on one, mostly the same. So a communicator whose operations a process makes on several timelines becomes several: one for each group of
//! timelines that have met in an operation, with the operations in which just those have met. The first of them keeps the index of the communicator, the
//! others get indexes that nothing else has. Operations of one communicator do not wait for each other, so nothing is lost by that.

use crate::comm::{AnalysisRank, Transport, all_gather_values, exchange_values};
use crate::matching::collectives::instances::{
    CollectiveComm, Collectives, HostedComm, HostedMember, InstanceIndex, MemberPlace, Membership,
};
use crate::matching::comm_index::CommIndex;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::sync::SyncTimeline;
use clc_trace::{CommRank, Error, Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the events of timelines that were taken apart have gone: timeline and event.
pub(crate) type MovedEvents = BTreeMap<LocalTimeline, Vec<(LocalTimeline, u32)>>;

/// What the host of a member tells the home of its communicator: the timelines on which each of its operations begins and ends.
#[derive(Serialize, Deserialize)]
struct MemberTimelines {
    comm: CommIndex,
    rank: CommRank,
    timelines: Vec<[TimelineNumber; 2]>,
}

/// What the home of a communicator tells its hosts: into what it is divided.
#[derive(Clone, Serialize, Deserialize)]
struct Pieces {
    comm: CommIndex,
    /// The index of the second piece, which those of the others follow.
    further: CommIndex,
    /// The piece of each instance.
    of: Vec<u32>,
    /// Of each piece the members with timelines of their own, by rank.
    own: Vec<Vec<(CommRank, [TimelineNumber; 2])>>,
}

/// Divides communicators, of which `moved` events have got other places; `number` is that of a timeline hosted here, and no communicator has an index from `unused` on.
/// Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport; too many members.
pub(crate) fn split(
    transport: &mut dyn Transport,
    number: &dyn Fn(LocalTimeline) -> TimelineNumber,
    moved: &MovedEvents,
    unused: CommIndex,
    collectives: &mut Collectives,
) -> Result<()> {
    let pieces = pieces(transport, number, moved, unused, &collectives.comms)?;
    let mut comms: Vec<CollectiveComm> = Vec::with_capacity(collectives.comms.len());
    let mut further: Vec<CollectiveComm> = Vec::new();
    for comm in std::mem::take(&mut collectives.comms) {
        match pieces.get(&comm.comm) {
            None => comms.push(piece_of(&comm, moved, Vec::new(), |_| true)?),
            Some(pieces) => {
                for (piece, own) in (0..).zip(&pieces.own) {
                    let mut found =
                        piece_of(&comm, moved, own.clone(), |instance| pieces.of[instance.place()] == piece)?;
                    if piece > 0 {
                        found.comm = CommIndex(pieces.further.0 + piece - 1);
                    }
                    if piece > 0 { &mut further } else { &mut comms }.push(found);
                }
            }
        }
    }
    comms.append(&mut further);
    collectives.comms = comms;
    let members = |(comm, of): (HostedComm, &CollectiveComm)| {
        (0..of.members.len() as u32).map(move |member| Membership { comm, member: MemberPlace(member) })
    };
    let memberships: Vec<Membership> = collectives.numbered().flat_map(members).collect();
    if memberships.len() > SyncTimeline::LINKS {
        return Err(Error::new(format!("more than {} members of communicators on one rank", SyncTimeline::LINKS)));
    }
    collectives.memberships = memberships;
    Ok(())
}

/// Into what communicators with members here are divided; nothing for those that stay whole, as all operations of each process are in the timeline of the process.
fn pieces(
    transport: &mut dyn Transport,
    number: &dyn Fn(LocalTimeline) -> TimelineNumber,
    moved: &MovedEvents,
    unused: CommIndex,
    comms: &[CollectiveComm],
) -> Result<BTreeMap<CommIndex, Pieces>> {
    let mut told: BTreeMap<AnalysisRank, Vec<MemberTimelines>> = BTreeMap::new();
    for comm in comms {
        for member in &comm.members {
            let Some(moved) = moved.get(&member.timeline) else { continue };
            let of = |event: u32| number(moved[event as usize].0);
            let ends = member.begins.each().zip(member.ends.each());
            let timelines: Vec<[TimelineNumber; 2]> = ends.map(|(begin, end)| [of(begin), of(end)]).collect();
            if timelines.iter().flatten().any(|&timeline| timeline != number(member.timeline)) {
                let own = MemberTimelines { comm: comm.comm, rank: member.rank, timelines };
                told.entry(comm.home).or_default().push(own);
            }
        }
    }
    let mut members: BTreeMap<CommIndex, BTreeMap<CommRank, Vec<[TimelineNumber; 2]>>> = BTreeMap::new();
    for own in exchange_values(transport, told)?.into_iter().flat_map(|(_, told)| told) {
        members.entry(own.comm).or_default().insert(own.rank, own.timelines);
    }
    let at_home = comms.iter().filter_map(|comm| Some((comm, divided(comm, members.get(&comm.comm)?))));
    let mut at_home: Vec<(&CollectiveComm, Pieces)> = at_home.collect();
    // Indexes in the order of the communicators, wherever their homes are.
    let counts: Vec<(CommIndex, u32)> =
        at_home.iter().map(|(comm, pieces)| (comm.comm, pieces.own.len() as u32 - 1)).collect();
    let mut counts: Vec<(CommIndex, u32)> = all_gather_values(transport, &counts)?.into_iter().flatten().collect();
    counts.sort_unstable();
    let mut next = unused;
    let mut further: BTreeMap<CommIndex, CommIndex> = BTreeMap::new();
    for (comm, count) in counts {
        further.insert(comm, next);
        next.0 += count;
    }
    let mut answers: BTreeMap<AnalysisRank, Vec<Pieces>> = BTreeMap::new();
    for (comm, pieces) in &mut at_home {
        pieces.further = further[&comm.comm];
        for &(host, _) in &comm.hosts {
            answers.entry(host).or_default().push(pieces.clone());
        }
    }
    let answers = exchange_values(transport, answers)?.into_iter().flat_map(|(_, pieces)| pieces);
    Ok(answers.map(|pieces| (pieces.comm, pieces)).collect())
}

/// Divides a communicator, some of whose `members` have operated on timelines of their own.
fn divided(comm: &CollectiveComm, members: &BTreeMap<CommRank, Vec<[TimelineNumber; 2]>>) -> Pieces {
    let mut numbers: BTreeMap<Vec<[TimelineNumber; 2]>, u32> = BTreeMap::new();
    let mut pieces = Pieces { comm: comm.comm, further: comm.comm, of: Vec::new(), own: Vec::new() };
    for (instance, _) in comm.numbered() {
        let met: Vec<[TimelineNumber; 2]> = members.values().map(|timelines| timelines[instance.place()]).collect();
        let next = pieces.own.len() as u32;
        let piece = *numbers.entry(met).or_insert_with_key(|met| {
            let all = members.keys().zip(met).map(|(&rank, &timeline)| (rank, timeline));
            let has_own = |&(rank, timelines): &(CommRank, [TimelineNumber; 2])| {
                timelines != [TimelineNumber::of_process(comm.processes[rank]); 2]
            };
            pieces.own.push(all.filter(has_own).collect());
            next
        });
        pieces.of.push(piece);
    }
    pieces
}

/// The operations of a communicator that `takes` says, whose members have the timelines `own`, or those of their processes.
fn piece_of(
    comm: &CollectiveComm,
    moved: &MovedEvents,
    own: Vec<(CommRank, [TimelineNumber; 2])>,
    takes: impl Fn(InstanceIndex) -> bool,
) -> Result<CollectiveComm> {
    let taken: Vec<usize> =
        comm.numbered().map(|(instance, _)| instance).filter(|&one| takes(one)).map(InstanceIndex::place).collect();
    let member_of = |member: &HostedMember| -> Result<HostedMember> {
        let place = |event: u32| match moved.get(&member.timeline) {
            Some(moved) => moved[event as usize],
            None => (member.timeline, event),
        };
        let begins: Vec<_> = taken.iter().map(|&instance| place(member.begins.at(instance))).collect();
        let ends: Vec<_> = taken.iter().map(|&instance| place(member.ends.at(instance))).collect();
        let timeline_of = |places: &[(LocalTimeline, u32)]| places.first().map_or(member.timeline, |&(first, _)| first);
        let (timeline, ended_on) = (timeline_of(&begins), timeline_of(&ends));
        if begins.iter().any(|&(other, _)| other != timeline) || ends.iter().any(|&(other, _)| other != ended_on) {
            return Err(Error::new("collective operations of a member in several timelines; this is a bug"));
        }
        let events = |places: Vec<(LocalTimeline, u32)>| -> Vec<u32> { places.into_iter().map(|(_, e)| e).collect() };
        let flags = |flags: &[bool]| taken.iter().map(|&instance| flags[instance]).collect();
        Ok(HostedMember {
            rank: member.rank,
            timeline,
            ended_on,
            loose: member.loose,
            begins: events(begins).into(),
            ends: events(ends).into(),
            sends: flags(&member.sends),
            receives: flags(&member.receives),
            order: Vec::new(),
        })
    };
    Ok(CollectiveComm {
        members: comm.members.iter().map(member_of).collect::<Result<_>>()?,
        instances: taken.iter().map(|&instance| comm.instances[InstanceIndex(instance as u32)]).collect(),
        own,
        ..comm.clone_without_lists()
    })
}
