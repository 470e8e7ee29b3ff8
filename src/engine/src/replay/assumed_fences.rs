//! Fences without operations that are taken for barriers although the rest of the trace speaks against it.
//!
//! Matching ([`crate::matching::collectives::fences`]) asks how long processes took from one fence to the next, which needs no agreement between clocks. Here it is asked what clocks
//! say: where everything else agrees with them, they are right, and a fence that somebody left before another came was no barrier.

use crate::comm::{ReduceOp, Transport, merge_values};
use crate::matching::collectives::instances::{CollectiveComm, CollectiveCounts, InstanceIndex};
use crate::matching::comm_index::CommIndex;
use crate::matching::sync::SyncKind;
use crate::matching::visited_times::TimelineTimes;
use crate::replay::bounds::collective_bounds;
use crate::replay::clock_condition::check_clock_condition;
use crate::replay::dataflow;
use crate::replay::program::{Program, TakenBack};
use clc_trace::workers::Workers;
use clc_trace::{CollectiveOp, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

const ASSUMED: CollectiveOp = CollectiveOp::WIN_FENCE_ASSUMED;

/// If events wait for each other in a cycle, no fence without operations is taken for a barrier any more. Costs nothing where there are none. Collective over the analysis ranks.
pub(super) fn take_back_in_cycles(transport: &mut dyn Transport, program: &mut Program) -> Result<()> {
    if any(transport, program)? && dataflow::stopped_at(transport, program)?.is_some() {
        let all = here(program);
        take_back(transport, program, all);
    }
    Ok(())
}

/// If all that is violated under the times of `program` are fences without operations, and more holds than is violated, those are no barriers. Costs nothing where there are none. Collective over the
/// analysis ranks.
pub(super) fn take_back_by_clocks(transport: &mut dyn Transport, program: &mut Program) -> Result<()> {
    if any(transport, program)? {
        let contradicted = contradicted(transport, program)?;
        take_back(transport, program, contradicted);
    }
    Ok(())
}

/// Whether there are any, on any rank.
fn any(transport: &mut dyn Transport, program: &Program) -> Result<bool> {
    let mut any = [i64::from(!here(program).is_empty())];
    transport.all_reduce(ReduceOp::Max, &mut any)?;
    Ok(any[0] != 0)
}

/// Those of the windows with members here.
fn here(program: &Program) -> TakenBack {
    let of = |comm: &CollectiveComm| {
        let assumed = comm.numbered().filter(|(_, instance)| instance.op == ASSUMED).map(|(place, _)| place);
        (comm.comm, assumed.collect::<BTreeSet<InstanceIndex>>())
    };
    let comms = program.collectives.comms.iter().map(of);
    comms.filter(|(_, assumed)| !assumed.is_empty()).collect()
}

/// Those that clocks contradict, the same on all ranks.
fn contradicted(transport: &mut dyn Transport, program: &Program) -> Result<TakenBack> {
    let times = program.times();
    let check = check_clock_condition(transport, Workers::ONE, program, &times)?;
    // What happens within a process says nothing of the clocks of several.
    let between = check.collectives.iter().filter(|(op, _)| !CollectiveOp(**op).is_within_process());
    let holds = between.map(|(_, tally)| tally.checked - tally.violated).sum::<u64>();
    let holds = holds + check.messages.checked - check.messages.violated;
    let violated = check.collectives.get(&ASSUMED.0).map_or(0, |tally| tally.violated);
    let mut found = TakenBack::new();
    if violated == 0 || violated < check.violated() || violated > holds {
        return Ok(found);
    }
    collective_bounds(transport, program, &times, |comm, instance, member, event, bound| {
        let comm = &program.collectives.comms[comm];
        if comm.instances[instance].op == ASSUMED && bound > times[member.ended_on].at(event) {
            found.entry(comm.comm).or_default().insert(instance);
        }
    })?;
    merge_values(transport, found, |all, part| {
        part.into_iter().for_each(|(comm, instances)| all.entry(comm).or_default().extend(instances));
    })
}

/// Takes fences out of the replay.
pub(super) fn take_back(transport: &mut dyn Transport, program: &mut Program, fences: TakenBack) {
    take_out(transport, program, &fences, |counts, _, taken| {
        counts.by_op.entry(ASSUMED.0).or_default().matched -= taken.len() as u64;
        counts.by_op.entry(CollectiveOp::WIN_FENCE_UNORDERED.0).or_default().unconstrained += taken.len() as u64;
    });
    for (comm, places) in fences {
        let before = program.taken_back.entry(comm).or_default();
        let stayed = (0..).map(InstanceIndex).filter(|place| !before.contains(place));
        let all: Vec<InstanceIndex> = (0..)
            .map(InstanceIndex)
            .zip(stayed)
            .filter(|(place, _)| places.contains(place))
            .map(|(_, first)| first)
            .take(places.len())
            .collect();
        before.extend(all);
    }
}

/// Takes all operations on some communicators out of the replay, which contradict the rest of the trace in the order in which threads that share them seem to have called them.
pub(super) fn take_communicators_back(
    transport: &mut dyn Transport,
    program: &mut Program,
    comms: &BTreeSet<CommIndex>,
) {
    let of = |comm: &CollectiveComm| (comm.comm, comm.numbered().map(|(place, _)| place).collect());
    let all = program.collectives.comms.iter().filter(|comm| comms.contains(&comm.comm)).map(of).collect();
    take_out(transport, program, &all, |counts, comm, taken| {
        counts.contradicted.insert(comm);
        for op in taken {
            let of_op = counts.by_op.entry(op.0).or_default();
            of_op.matched -= 1;
            of_op.inconsistent += 1;
        }
    });
}

/// Takes operations out of the replay; `counted` is told of those of each communicator that has its home here.
fn take_out(
    transport: &mut dyn Transport,
    program: &mut Program,
    places: &TakenBack,
    counted: impl Fn(&mut CollectiveCounts, CommIndex, &[CollectiveOp]),
) {
    let rank = transport.rank();
    let Program { collectives, timelines, .. } = program;
    for comm in &mut collectives.comms {
        let Some(taken) = places.get(&comm.comm) else { continue };
        let stays: Vec<bool> = comm.numbered().map(|(place, _)| !taken.contains(&place)).collect();
        for member in &mut comm.members {
            for (k, _) in stays.iter().enumerate().filter(|(_, stays)| !**stays) {
                for (timeline, event) in [(member.timeline, member.begins.at(k)), (member.ended_on, member.ends.at(k))]
                {
                    Arc::make_mut(&mut timelines[timeline]).activate(event, SyncKind::Local, 0);
                }
            }
            keep(member.begins.to_mut(), &stays);
            keep(member.ends.to_mut(), &stays);
            keep(&mut member.sends, &stays);
            keep(&mut member.receives, &stays);
        }
        let ops = comm.numbered().zip(&stays).filter(|(_, stays)| !**stays).map(|((_, instance), _)| instance.op);
        let ops: Vec<CollectiveOp> = ops.collect();
        keep(&mut comm.instances, &stays);
        if comm.home == rank {
            counted(&mut collectives.counts, comm.comm, &ops);
        }
    }
    collectives.counts.by_op.retain(|_, counts| *counts != Default::default());
}

/// Those elements of a list that stay.
fn keep<T>(list: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    list.retain(|_| stays.next().is_none_or(|stays| *stays));
}
