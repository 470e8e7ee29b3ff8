//! Canonical replay: one analysis rank per process, timestamps exchanged with the blocking MPI operation of the same kind.
//!
//! | recorded operation | forward | backward |
//! | --- | --- | --- |
//! | message | `Send` of the send's LC to the receiver | `Send` of the receive's LC to the sender |
//! | 1-to-N | `Bcast` from the root | `Reduce` to the root |
//! | N-to-1 | `Reduce` to the root | `Bcast` from the root |
//! | N-to-N | `Allreduce` | `Allreduce` |
//! | Scan, Exscan | `Exscan` MAX | `Exscan` in reversed rank order |
//!
//! Blocking collectives synchronise all members, more than the trace may: a root that has left its broadcast can have
//! talked to a member before that member entered. So this form is used only where it is known to get through: if every
//! collective's end directly follows its begin, and a rehearsal with the synchronising rules reaches the end
//! (see [`prepare`]; it tells D₀, too). Otherwise the replay of [`crate::replay::dataflow`], which needs no such condition, gives the same result.

use crate::comm::{AnalysisRank, GroupId, MaxExcluding, ReduceOp, Transport};
use crate::matching::collectives::instances::{CollectiveComm, HostedComm, HostedMember, Instance, InstanceIndex};
use crate::matching::sync::SyncKind;
use crate::matching::visited_times::{TimelineTimes, VisitedTimes};
use crate::replay::contributions::Direction;
use crate::replay::dataflow;
use crate::replay::forward::{Forward, TimelineClock};
use crate::replay::program::{NO_LOWER_BOUND, NO_UPPER_BOUND, Program, contribution_latency, instance_latency};
use clc_trace::{CommRank, Result, Ticks, TimelineNumber};
use controlled_logical_clock::forward::ForwardParameters;
use controlled_logical_clock::semantics::CollectiveClass;
use std::collections::HashMap;

/// MPI libraries have a limited number of communicators (MPICH: 2,048 ids per process, and all members need a common one), and
/// making one blocks its members; beyond this many on any rank the dataflow replay is used.
const MOST_GROUPS: usize = 128;

/// The MPI communicators on which collectives are replayed.
#[derive(Debug)]
pub struct Groups {
    /// Per entry of `collectives.comms`: members in rank order.
    forward: Vec<GroupId>,
    /// The same in reversed rank order, for communicators with prefix operations.
    reversed: HashMap<HostedComm, GroupId>,
    /// The largest advance of the plain Lamport clock on the hosted timelines, if the rehearsal has told it: on all ranks or on none.
    pub lamport_advance: Option<Ticks>,
}

/// Creates the communicators if this program can be replayed with blocking operations: one process per analysis rank, and
/// no operation that could block another. All ranks come to the same decision. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn prepare(transport: &mut dyn Transport, program: &Program) -> Result<Option<Groups>> {
    let one_each = host_of(program.first) == transport.rank() && program.timelines.len() <= 1;
    let comms = &program.collectives.comms;
    let needed = comms.len() + comms.iter().filter(|comm| has_prefix(comm)).count();
    // The operations of MPI on inter-communicators say less than is needed here.
    let two_groups = comms.iter().any(|comm| comm.groups() > 1);
    let orders = program.messages.incoming.iter().any(|channel| channel.trust.op().is_some());
    let fits = one_each && needed <= MOST_GROUPS && !two_groups && !orders && tight(program);
    let mut vote = [i64::from(fits), i64::from(!comms.iter().any(has_prefix))];
    transport.all_reduce(ReduceOp::Min, &mut vote)?;
    let [fits, no_prefix] = vote.map(|vote| vote != 0);
    if !fits || transport.size() == 1 {
        return Ok(None);
    }
    let Some(advance) = dataflow::rehearse(transport, program)? else { return Ok(None) };
    let lamport_advance = no_prefix.then_some(advance);
    let mut groups = Groups { forward: Vec::new(), reversed: HashMap::new(), lamport_advance };
    // All ranks create their groups in the same order, so that no two wait for each other crosswise.
    for (index, comm) in program.collectives.numbered() {
        let hosts: Vec<AnalysisRank> = (0..comm.size).map(|rank| comm.host_of(CommRank(rank))).collect();
        groups.forward.push(transport.create_group(&hosts, 2 * comm.comm.0)?);
        if has_prefix(comm) {
            let reversed: Vec<AnalysisRank> = hosts.into_iter().rev().collect();
            groups.reversed.insert(index, transport.create_group(&reversed, 2 * comm.comm.0 + 1)?);
        }
    }
    Ok(Some(groups))
}

impl Groups {
    /// Those of the mirrored replay of the same `program`: where ranks are reversed, so are the groups.
    pub(crate) fn mirrored(&self, program: &Program) -> Groups {
        let comms = program.collectives.numbered().zip(&self.forward);
        let forward = comms.map(|((index, comm), group)| match self.reversed.get(&index) {
            Some(reversed) if has_prefix(comm) => *reversed,
            _ => *group,
        });
        let reversed = self.reversed.keys().map(|&index| (index, self.forward[index])).collect();
        Groups { forward: forward.collect(), reversed, lamport_advance: None }
    }
}

/// One process per rank.
fn host_of(process: TimelineNumber) -> AnalysisRank {
    AnalysisRank(process.0)
}

/// Whether a communicator has operations that are replayed in reversed order, too.
fn has_prefix(comm: &CollectiveComm) -> bool {
    comm.instances.iter().any(|instance| instance.class == CollectiveClass::Prefix)
}

/// Whether every collective's end directly follows its begin among the events that synchronise.
fn tight(program: &Program) -> bool {
    program.timelines.iter().all(|timeline| {
        let mut open = None;
        timeline.parts().filter(|(kind, _)| *kind != SyncKind::Local).all(|(kind, link)| match (kind, open) {
            (SyncKind::Begin, None) => {
                open = Some(link);
                true
            }
            (SyncKind::End, Some(begun)) if begun == link => {
                open = None;
                true
            }
            (SyncKind::Send | SyncKind::Receive, None) => true,
            _ => false,
        })
    })
}

/// Words of one timestamp message: which channel (and, backward, which of its messages), and the time.
type TimestampWords = [i64; 2];

/// Forward replay of the one hosted process.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn forward(
    transport: &mut dyn Transport,
    program: &Program,
    groups: &Groups,
    parameters: ForwardParameters,
) -> Result<Forward> {
    replay(transport, program, None, groups, parameters)
}

/// As [`forward`], but from the times `base` of the visited events.
///
/// # Errors
/// As [`forward`].
pub(crate) fn forward_from(
    transport: &mut dyn Transport,
    program: &Program,
    base: &[VisitedTimes<'_>],
    groups: &Groups,
    parameters: ForwardParameters,
) -> Result<Forward> {
    replay(transport, program, base.first().copied(), groups, parameters)
}

/// As [`forward`], from its own times or those of `base`.
fn replay(
    transport: &mut dyn Transport,
    program: &Program,
    base: Option<VisitedTimes<'_>>,
    groups: &Groups,
    parameters: ForwardParameters,
) -> Result<Forward> {
    let mut forward = Forward::new(program);
    let Some(timeline) = program.replay_timelines().next() else { return Ok(forward) };
    let from = |event: usize| base.map_or_else(|| timeline.time(event), |base| base.at(event as u32));
    let mut clock = TimelineClock::new(parameters);
    let mut arrived = vec![0usize; program.messages.incoming.len()];
    let mut begun = vec![0u32; program.collectives.memberships.len()];
    let mut own_begin = NO_LOWER_BOUND;
    let bounds = &mut forward.advances[0];
    for event in 0..timeline.len() {
        let link = timeline.link(event);
        match timeline.kind(event) {
            SyncKind::Receive => {
                let source = program.messages.incoming[link].source;
                // A partner's timestamps come in the order of its sends, which need not be the order of our receives.
                while bounds.known(event).is_none() {
                    let [channel, time]: TimestampWords = transport.receive_time(host_of(source))?;
                    let channel = channel as usize;
                    let end = &program.messages.incoming[channel];
                    let latency = program.message_latency(end.source, program.first);
                    let receive = end.receives.at(arrived[channel]) as usize;
                    bounds.set(receive, time + latency - from(receive));
                    arrived[channel] += 1;
                }
            }
            SyncKind::End => {
                let (index, comm, member) = program.collectives.linked(link);
                let instance = InstanceIndex(begun[link]);
                begun[link] += 1;
                let contribution = if member.sends[instance] {
                    own_begin + contribution_latency(comm, instance, member, &program.latency)
                } else {
                    NO_LOWER_BOUND
                };
                let largest =
                    exchange(transport, groups, index, comm, member, instance, contribution, Direction::Forward)?;
                if member.receives[instance] && largest != NO_LOWER_BOUND {
                    let shared = program.shared_latency[index];
                    let bound = largest + instance_latency(comm, instance, member, &program.latency, shared);
                    bounds.set(event, bound - from(event));
                } else {
                    bounds.set(event, 0);
                }
            }
            // Programs with several are not replayed here.
            SyncKind::Local | SyncKind::Send | SyncKind::Begin | SyncKind::Fan | SyncKind::Join => {}
        }
        let time = from(event);
        let step = clock.step(timeline.location(event), time, timeline.time(event), time + bounds.of(event));
        bounds.set(event, step.time.0 - time);
        match timeline.kind(event) {
            SyncKind::Send => {
                let channel = &program.messages.outgoing[link];
                transport.send_time(host_of(channel.destination), [i64::from(channel.remote), step.time.0])?;
            }
            SyncKind::Begin => own_begin = step.time.0,
            _ => {}
        }
    }
    forward.largest_advance = clock.largest_advance();
    forward.jumps = clock.jumps();
    Ok(forward)
}

/// Backward replay of the one hosted process: the upper bounds of its logical sends under the logical times of `forward`
/// ([`NO_UPPER_BOUND`] for other events).
///
/// # Errors
/// Failures of the transport.
pub(crate) fn backward(
    transport: &mut dyn Transport,
    program: &Program,
    groups: &Groups,
    forward: &Forward,
) -> Result<Vec<Vec<i64>>> {
    let mut upper_bounds = program.filled(NO_UPPER_BOUND);
    let Some(timeline) = program.replay_timelines().next() else { return Ok(upper_bounds) };
    let logical = |event: usize| timeline.time(event) + forward.advances[0].of(event);
    let bounds_here = &mut upper_bounds[0];
    let mut begun: Vec<u32> = program
        .collectives
        .memberships
        .iter()
        .map(|membership| program.collectives.comms[membership.comm].instances.len() as u32)
        .collect();
    // Which message of its channel each receive is: the channel lists them as posted.
    let mut number = vec![0u32; timeline.len()];
    for channel in &program.messages.incoming {
        for (k, event) in channel.receives.each().enumerate() {
            number[event as usize] = k as u32;
        }
    }
    let mut own_end = NO_LOWER_BOUND;
    for event in (0..timeline.len()).rev() {
        let link = timeline.link(event);
        match timeline.kind(event) {
            SyncKind::Receive => {
                let channel = &program.messages.incoming[link];
                let latest = logical(event) - program.message_latency(channel.source, program.first);
                let which = i64::from(channel.remote) << 32 | i64::from(number[event]);
                transport.send_time(host_of(channel.source), [which, latest])?;
            }
            SyncKind::Send => {
                let destination = program.messages.outgoing[link].destination;
                while bounds_here[event] == NO_UPPER_BOUND {
                    let [which, latest]: TimestampWords = transport.receive_time(host_of(destination))?;
                    let channel = &program.messages.outgoing[(which >> 32) as usize];
                    bounds_here[channel.sends.at((which & 0xffff_ffff) as usize) as usize] = latest;
                }
            }
            SyncKind::End => own_end = logical(event),
            SyncKind::Begin => {
                let (index, comm, member) = program.collectives.linked(link);
                begun[link] -= 1;
                let instance = InstanceIndex(begun[link]);
                let shared = program.shared_latency[index];
                // Negated, so that the minimum of the paper is the same maximum as forward.
                let contribution = if member.receives[instance] {
                    -(own_end - instance_latency(comm, instance, member, &program.latency, shared))
                } else {
                    NO_LOWER_BOUND
                };
                let largest =
                    exchange(transport, groups, index, comm, member, instance, contribution, Direction::Backward)?;
                if member.sends[instance] && largest != NO_LOWER_BOUND {
                    bounds_here[event] = -largest - contribution_latency(comm, instance, member, &program.latency);
                }
            }
            SyncKind::Local | SyncKind::Fan | SyncKind::Join => {}
        }
    }
    Ok(upper_bounds)
}

/// The MPI operation of one collective instance: gives this member's contribution, returns the largest contribution of the
/// members it depends on ([`NO_LOWER_BOUND`] if there is none).
#[allow(clippy::too_many_arguments)] // the coordinates of one MPI call
fn exchange(
    transport: &mut dyn Transport,
    groups: &Groups,
    index: HostedComm,
    comm: &CollectiveComm,
    member: &HostedMember,
    instance: InstanceIndex,
    contribution: i64,
    direction: Direction,
) -> Result<i64> {
    let group = groups.forward[index];
    let rank = i64::from(member.rank.0);
    let own = if contribution == NO_LOWER_BOUND { MaxExcluding::NONE } else { MaxExcluding::one(contribution, rank) };
    let Instance { class, root, .. } = comm.instances[instance];
    let is_root = root == member.rank;
    Ok(match (class, direction) {
        (CollectiveClass::OneToN, Direction::Forward) | (CollectiveClass::NToOne, Direction::Backward) => {
            let value = transport.group_bcast(group, root, contribution)?;
            if is_root { NO_LOWER_BOUND } else { value }
        }
        (CollectiveClass::NToOne, Direction::Forward) | (CollectiveClass::OneToN, Direction::Backward) => {
            transport.group_reduce(group, root, own)?.map_or(NO_LOWER_BOUND, |top| top.excluding(rank))
        }
        (CollectiveClass::NToN, _) => transport.group_all_reduce(group, own)?.excluding(rank),
        (CollectiveClass::Prefix, Direction::Forward) => {
            transport.group_exscan(group, contribution)?.unwrap_or(NO_LOWER_BOUND)
        }
        (CollectiveClass::Prefix, Direction::Backward) => {
            let reversed = groups.reversed.get(&index).copied().unwrap_or(group);
            transport.group_exscan(reversed, contribution)?.unwrap_or(NO_LOWER_BOUND)
        }
        (CollectiveClass::Unconstrained, _) => NO_LOWER_BOUND,
    })
}
