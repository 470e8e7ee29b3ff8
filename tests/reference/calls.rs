//! Calls of MPI that synchronise by more than the records in them: synchronous sends, postings of receives, and steps on windows.
//!
//! A call is from its enter to its leave on one location, on which the calls in it do not count by themselves.

use super::model::{REGION_NAMES, Timeline, Trace};
use clc_trace::{Event, GroupId, RegionId, WindowGroup, WindowId};
use std::collections::{BTreeMap, BTreeSet};

/// A call: its name, where it is entered and left, and the events in it.
struct Call {
    name: &'static str,
    enter: usize,
    leave: Option<usize>,
    inside: Vec<usize>,
}

const POSTS: [&str; 6] = ["MPI_Recv", "MPI_Sendrecv", "MPI_Sendrecv_replace", "MPI_Irecv", "MPI_Start", "MPI_Startall"];

fn name(region: RegionId) -> Option<&'static str> {
    REGION_NAMES.get(region.0 as usize).copied().filter(|name| {
        let others = ["MPI_Ssend", "MPI_Issend", "MPI_Win_post", "MPI_Win_start", "MPI_Win_complete", "MPI_Win_wait"];
        POSTS.contains(name) || others.contains(name)
    })
}

fn calls_of(timeline: &Timeline) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut open: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (index, entry) in timeline.iter().enumerate() {
        match (entry.event, open.get_mut(&entry.location)) {
            (Event::Enter(region), None) => {
                if let Some(name) = name(region) {
                    open.insert(entry.location, (calls.len(), 0));
                    calls.push(Call { name, enter: index, leave: None, inside: Vec::new() });
                }
            }
            (Event::Enter(region), Some((_, deeper))) => *deeper += usize::from(name(region).is_some()),
            (Event::Leave(region), Some((_, deeper))) if *deeper > 0 => *deeper -= usize::from(name(region).is_some()),
            (Event::Leave(region), Some((call, _))) if name(region).is_some() => {
                calls[*call].leave = Some(index);
                open.remove(&entry.location);
            }
            (_, Some((call, _))) => calls[*call].inside.push(index),
            _ => {}
        }
    }
    calls
}

/// The name of the call that an event is inside of.
pub(crate) fn around(timeline: &Timeline, index: usize) -> Option<&'static str> {
    calls_of(timeline).into_iter().find(|call| call.inside.contains(&index)).map(|call| call.name)
}

/// Ends of collective operations that are inside of a call by which all members of a communicator make others, on the location of that call.
pub(crate) fn made_by_all(timeline: &Timeline) -> BTreeSet<usize> {
    let makes =
        |region: RegionId| matches!(REGION_NAMES.get(region.0 as usize), Some(&("MPI_Comm_split" | "pmpi_comm_dup_")));
    let mut made = BTreeSet::new();
    for (index, entry) in timeline.iter().enumerate() {
        let before = timeline[..index].iter().filter(|other| other.location == entry.location);
        let inside = before.fold(0, |depth, other| match other.event {
            Event::Enter(region) if makes(region) => depth + 1,
            Event::Leave(region) if makes(region) => depth - 1,
            _ => depth,
        });
        if inside > 0 && matches!(entry.event, Event::MpiCollectiveEnd(_)) {
            made.insert(index);
        }
    }
    made
}

/// Where the synchronous sends of a process end, by the send.
pub(crate) fn ends_of(timeline: &Timeline) -> BTreeMap<usize, usize> {
    let calls = calls_of(timeline);
    let mut ends = BTreeMap::new();
    for call in calls.iter().filter(|call| call.name == "MPI_Ssend") {
        let sent = call.inside.iter().rev().find(|&&index| matches!(timeline[index].event, Event::MpiSend(_)));
        ends.extend(sent.zip(call.leave).map(|(&send, leave)| (send, leave)));
    }
    let synchronous = |index: usize| calls.iter().any(|call| call.name == "MPI_Issend" && call.inside.contains(&index));
    let mut open: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, entry) in timeline.iter().enumerate() {
        match entry.event {
            Event::MpiIsend(_, request) if synchronous(index) => {
                open.insert(request, index);
            }
            Event::MpiIsendComplete(request) => ends.extend(open.remove(&request).map(|send| (send, index))),
            Event::MpiRequestCancelled(request) => {
                open.remove(&request);
            }
            _ => {}
        }
    }
    ends
}

/// Where receives of a process were posted, by the receive; those of which that is known.
pub(crate) fn posts_of(timeline: &Timeline) -> BTreeMap<usize, usize> {
    let calls = calls_of(timeline);
    let around = |index: usize| calls.iter().find(|call| POSTS.contains(&call.name) && call.inside.contains(&index));
    let is_receive = |index: &&usize| matches!(timeline[**index].event, Event::MpiRecv(_));
    let mut posts = BTreeMap::new();
    let mut open: BTreeMap<u64, usize> = BTreeMap::new();
    for (index, entry) in timeline.iter().enumerate() {
        match entry.event {
            Event::MpiRecv(_) => {
                let call = around(index).filter(|call| call.inside.iter().find(is_receive) == Some(&index));
                posts.extend(call.map(|call| (index, call.enter)));
            }
            Event::MpiIrecvRequest(request) => {
                open.insert(request, around(index).map_or(index, |call| call.enter));
            }
            Event::MpiIrecv(_, request) => posts.extend(open.remove(&request).map(|post| (index, post))),
            Event::MpiRequestCancelled(request) => {
                open.remove(&request);
            }
            _ => {}
        }
    }
    posts
}

/// What two processes do on a window: from, to, the window, and whether it is complete and wait (else post and complete).
pub(crate) type Steps = (usize, usize, WindowId, bool);

/// Who waits for whom: events that others wait for, and events that wait.
pub(crate) type Waiting = BTreeMap<Steps, Both>;

/// Events of two processes, those that are waited for and those that wait.
type Both = (Vec<(usize, usize)>, Vec<(usize, usize)>);

fn list(waiting: &mut Waiting, (from, to, window): (usize, usize, WindowId), completes: bool) -> &mut Both {
    waiting.entry((from, to, window, completes)).or_default()
}

/// All steps of post, start, complete and wait, as (process, index).
pub(crate) fn steps(trace: &Trace, timelines: &[Timeline]) -> Waiting {
    let mut waiting = Waiting::new();
    let members = |group: GroupId| -> Vec<usize> {
        let found = trace.groups.iter().find(|(id, _)| *id == group);
        found.map_or(Vec::new(), |(_, members)| members.iter().map(|process| process.place()).collect())
    };
    for (process, timeline) in timelines.iter().enumerate() {
        for call in calls_of(timeline) {
            let Some(leave) = call.leave else { continue };
            for &index in &call.inside {
                let Event::RmaGroupSync(WindowGroup { window, group, .. }) = timeline[index].event else { continue };
                for peer in members(group).into_iter().filter(|&peer| peer != process) {
                    let (told, heard) = ((process, peer, window), (peer, process, window));
                    let (enter, leave) = ((process, call.enter), (process, leave));
                    match call.name {
                        "MPI_Win_post" => list(&mut waiting, told, false).0.push(enter),
                        "MPI_Win_complete" => {
                            list(&mut waiting, heard, false).1.push(leave);
                            list(&mut waiting, told, true).0.push(enter);
                        }
                        "MPI_Win_wait" => list(&mut waiting, heard, true).1.push(leave),
                        _ => {}
                    }
                }
            }
        }
    }
    waiting
}
