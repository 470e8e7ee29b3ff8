//! Filling the report from what the stages found.

use crate::details::collective_kind;
use crate::details::regions::Regions;
use crate::pipeline::load::{LoadOptions, LocalTrace};
use crate::pipeline::local_trace::events_by_kind;
use crate::pipeline::silent::calls_without_records;
use crate::report::{
    self, CallCount, ClockCounts, ClockEstimate, CollectiveCheck, CollectiveKind, Coverage, DoubtfulChannel,
    EventCount, EventPlace, LatencyUsed, Matching, MemoryUse, ParametersUsed, PointToPointCheck, ProgramInfo, Replay,
    ReplayForm, StageViolations, TraceSummary, UnmatchedPair, Verdict, Violations, Warnings, WorstKind, WorstViolation,
};
use crate::session::Session;
use crate::session::rank_summary::{RankSummary, warn, warn_of_doubts};
use clc_clock::{Method, ModelKind};
use clc_engine::comm::{ReduceOp, Transport, merge_to_first};
use clc_engine::matching::channels::Trust;
use clc_engine::matching::collectives::instances::CollectiveCounts;
use clc_engine::matching::extracted::Leftovers;
use clc_engine::matching::matched::{InDoubt, MessageCounts, Unmatched};
use clc_engine::matching::within::steps::ThreadCount;
use clc_engine::replay::clock_condition::ClockConditionCheck;
use clc_engine::replay::passes::Passes;
use clc_trace::format::os_text;
use clc_trace::{CollectiveOp, CommMembers, Definitions, Result, Ticks, TimelineNumber};
use controlled_logical_clock::Parameters;
use controlled_logical_clock::latency::LatencyBasis;
use std::collections::BTreeMap;

/// What ran.
pub(super) fn program(transport: &dyn Transport, command_line: &[String]) -> ProgramInfo {
    ProgramInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: command_line.to_vec(),
        mpi_library: transport.library(),
        analysis_ranks: transport.size() as u64,
    }
}

/// What all ranks found, merged.
pub(super) struct MergedSummary {
    /// For the report.
    pub trace: TraceSummary,
    /// For the report.
    pub matching: Matching,
    /// For the report.
    pub clocks: ClockCounts,
    /// Ends of collective operations that take part in nothing and are counted nowhere else.
    pub loose_ends: u64,
    /// Of all ranks.
    pub warnings: Warnings,
}

/// Brings together what all ranks found; `None` on other ranks than 0. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport; the event files cannot be read again, where records of messages are missing.
pub(super) fn gather(
    session: &mut Session<'_>,
    loaded: &LocalTrace,
    presync: Method,
    estimate: Option<&ClockEstimate>,
) -> Result<Option<MergedSummary>> {
    let (transport, opened, path) = (&mut *session.transport, &session.opened, &session.path);
    let without_records = calls_without_records(transport, opened, loaded)?;
    let mut part = RankSummary {
        events: loaded.events(),
        by_kind: events_by_kind(loaded),
        clocks: ClockCounts::default(),
        lone_offsets: Vec::new(),
        no_offsets: Vec::new(),
        messages: loaded.program.messages.counts.clone(),
        collectives: loaded.program.collectives.counts.clone(),
        leftovers: loaded.leftovers,
        undefined_peers: loaded.program.undefined_peers.clone(),
        joined_communicators: loaded.joined_communicators as u64,
        without_records,
        warnings: std::mem::take(&mut session.warnings),
    };
    // By process, whichever of their locations have timelines of their own: lists are the same on any number of ranks.
    let of_processes = loaded.program.shared_timelines().flat_map(|timeline| loaded.locations_of(timeline));
    for location in of_processes.map(|(timeline, number)| &loaded.locations[timeline][number]) {
        let id = opened.definitions.locations[location.index].id;
        match location.clock.kind() {
            ModelKind::Identity => part.clocks.identity += 1,
            ModelKind::Constant => part.clocks.constant += 1,
            ModelKind::Piecewise => part.clocks.piecewise += 1,
        }
        if presync != Method::None && location.offsets.is_empty() {
            part.no_offsets.push(id);
        }
        if presync != Method::None && location.offsets.len() == 1 && location.recorded.is_none() {
            part.lone_offsets.push(id);
        }
    }
    part.messages.keep_examples();
    let Some(mut sum) = merge_to_first(transport, part, RankSummary::merge)? else { return Ok(None) };
    if estimate.is_some_and(|estimate| estimate.chosen != Method::Linear) {
        // Then nobody takes recorded times as they are.
        sum.no_offsets.clear();
        sum.lone_offsets.clear();
    }
    warn(&mut sum, opened);
    warn_of_doubts(&mut sum, opened);
    let definitions = &opened.definitions;
    let resolution = definitions.clock.resolution;
    Ok(Some(MergedSummary {
        trace: TraceSummary {
            path: os_text(path),
            name: opened.archive.name(),
            creator: opened.archive.creator().to_owned(),
            timer_resolution: resolution,
            locations: definitions.locations.len() as u64,
            processes: opened.timelines.processes as u64,
            nodes: opened.timelines.nodes as u64,
            communicators: mpi_communicators(definitions),
            span_seconds: loaded.span.map_or(0.0, |(first, last)| (last - first).seconds(resolution)),
            events: sum.events,
            events_by_kind: EventCount::sorted(sum.by_kind),
        },
        loose_ends: [
            sum.leftovers.open_collectives,
            sum.leftovers.unordered_collectives,
            sum.leftovers.inter_collectives,
            sum.leftovers.foreign_windows,
        ]
        .into_iter()
        .fold(0, u64::saturating_add),
        matching: Matching {
            calls_without_records: CallCount::sorted(
                sum.without_records.into_iter().map(|(region, calls)| CallCount {
                    region,
                    count: calls.count,
                    never_recorded: calls.never,
                }),
            ),
            ..matching(definitions, &sum.messages, &sum.collectives, &sum.leftovers)
        },
        clocks: sum.clocks,
        warnings: sum.warnings,
    }))
}

/// How much of the trace was compared, and the verdict. Where the trace says that it is `incomplete`, what belongs together is not certain.
pub(super) fn verdict(merged: &MergedSummary, violations: &Violations, incomplete: bool) -> (Coverage, Verdict) {
    let coverage =
        Coverage::new(violations.checked(), &merged.matching, merged.loose_ends, &merged.trace.events_by_kind);
    let verdict = match Verdict::new(violations, &coverage, merged.trace.processes) {
        Verdict::Consistent | Verdict::Corrected if incomplete => Verdict::PartlyChecked,
        verdict => verdict,
    };
    (coverage, verdict)
}

fn mpi_communicators(definitions: &Definitions) -> u64 {
    let mpi = |members: &CommMembers| !matches!(members, CommMembers::NotMpi);
    definitions.communicators.iter().filter(|communicator| mpi(&communicator.members)).count() as u64
}

fn thread_steps(kind: Trust, count: &ThreadCount) -> Option<report::ThreadSteps> {
    (*count != ThreadCount::default()).then_some(report::ThreadSteps {
        kind: collective_kind(kind.op()?, false)?,
        one_timeline: count.shared,
        several_timelines: count.apart,
        left_out: count.left_out,
    })
}

fn matching(
    definitions: &Definitions,
    messages: &MessageCounts,
    collectives: &CollectiveCounts,
    leftovers: &Leftovers,
) -> Matching {
    let channel = |channel: &InDoubt| DoubtfulChannel {
        sender: channel.sender.0,
        receiver: channel.receiver.0,
        communicator: definitions.communicators[channel.comm.place()].id.0,
        tag: channel.tag,
        sends: channel.sends,
        receives: channel.receives,
        matched: channel.matched,
        implied_orders: channel.implied,
        several_threads: channel.shared,
    };
    let mut matching = Matching {
        messages: messages.matched,
        self_messages: messages.to_self,
        unmatched_sends: messages.unmatched.values().map(|pair| pair.sends).sum(),
        unmatched_receives: messages.unmatched.values().map(|pair| pair.receives).sum(),
        implied_orders: messages.implied,
        channels_in_doubt: messages.doubtful,
        channels_of_several_threads: messages.shared,
        doubtful_channels: messages.in_doubt.iter().map(channel).collect(),
        contradicted_orders: messages.contradicted.values().sum(),
        undefined_peers: leftovers.undefined_peer,
        receives_never_completed: leftovers.never_completed,
        cancelled_requests: leftovers.cancelled,
        windows: report::WindowUse {
            fence_accesses: leftovers.fence_accesses,
            group_accesses: leftovers.group_accesses,
            lock_accesses: leftovers.lock_accesses,
            steps: messages.grouped,
            unmatched_steps: messages.loose_steps,
        },
        ..Matching::default()
    };
    let pair = |(&(sender, receiver), pair): (&(TimelineNumber, TimelineNumber), &Unmatched)| UnmatchedPair {
        sender: sender.0,
        receiver: receiver.0,
        sends: pair.sends,
        receives: pair.receives,
    };
    matching.threads = messages.threads.0.iter().filter_map(|(&kind, count)| thread_steps(kind, count)).collect();
    matching.set_unmatched_pairs(messages.unmatched.iter().map(pair).collect());
    for (&op, counts) in &collectives.by_op {
        let op = CollectiveOp(op);
        let reason = match op {
            CollectiveOp::ALLTOALLV | CollectiveOp::ALLTOALLW => {
                "the trace does not show who exchanged data with whom (see --alltoallv)"
            }
            CollectiveOp::WIN_FENCE_UNORDERED => {
                "no preceding operations; the program may have asserted that no synchronisation is needed (see \
                --fences)"
            }
            CollectiveOp::CREATE_HANDLE => {
                "creating or destroying a handle does not necessarily synchronise (see --handles)"
            }
            _ if op.name().starts_with("unknown") => "this version does not know the operation, nor what it orders",
            _ if op.0 & !CollectiveOp::ON_WINDOW >= CollectiveOp::CREATE_HANDLE.0 => {
                "creating or destroying a handle does not necessarily synchronise"
            }
            _ => "no valid root, or no sizes are recorded of what was sent and received, or nothing was",
        };
        let reasons = (counts.unconstrained > 0)
            .then(|| report::ReasonCount { reason: reason.to_owned(), count: counts.unconstrained });
        matching.collectives.push(report::CollectiveCounts {
            operation: op.name().to_owned(),
            matched: counts.matched,
            incomplete: counts.incomplete,
            inconsistent: counts.inconsistent,
            unconstrained: counts.unconstrained,
            unconstrained_reasons: reasons.into_iter().collect(),
        });
    }
    matching
}

/// One stage of the violations. `origin` is the time of the first event of the trace at this stage.
pub(super) fn stage(
    check: &ClockConditionCheck,
    resolution: u64,
    origin: Ticks,
    alltoallv: bool,
    regions: &Regions,
) -> StageViolations {
    let kind_of = |op: CollectiveOp| collective_kind(op, alltoallv);
    let mut kinds: BTreeMap<CollectiveKind, CollectiveCheck> = BTreeMap::new();
    for (&op, tally) in &check.collectives {
        let Some(kind) = kind_of(CollectiveOp(op)) else { continue };
        let check = kinds.entry(kind).or_insert(CollectiveCheck { kind, instances_checked: 0, violated: 0 });
        check.instances_checked += tally.checked;
        check.violated += tally.violated;
    }
    let place = |place: &clc_engine::replay::clock_condition::EventPlace| EventPlace {
        process: place.process,
        location: place.location,
        event: place.number,
        ticks: place.time,
        seconds: (Ticks(place.time) - origin).seconds(resolution),
        region: regions.get(&(place.location, place.number)).cloned(),
    };
    StageViolations {
        point_to_point: PointToPointCheck { checked: check.messages.checked, violated: check.messages.violated },
        collectives: kinds.into_values().collect(),
        worst: check.worst.as_ref().and_then(|worst| {
            Some(WorstViolation {
                kind: match worst.op {
                    None => WorstKind::Message,
                    Some(op) => kind_of(op)?.into(),
                },
                from: place(worst.send.as_ref()?),
                to: place(&worst.receive),
                ticks: worst.ticks,
                seconds: Ticks(worst.ticks).seconds(resolution),
            })
        }),
    }
}

/// The parameters of a job; those of the logical clock, if it is corrected.
pub(super) fn parameters(
    options: &LoadOptions,
    basis: LatencyBasis,
    clocks: ClockCounts,
    resolution: u64,
    constants: Option<&Parameters>,
) -> ParametersUsed {
    ParametersUsed {
        presync: options.presync,
        clocks,
        latency: LatencyUsed {
            same_node_seconds: options.latency.same_node.seconds(resolution),
            other_node_seconds: options.latency.other_node.seconds(resolution),
            basis,
        },
        gamma: constants.map(|constants| constants.decay.gamma()),
        max_passes: constants.map(|constants| constants.max_passes),
        max_error: constants.map(|constants| constants.max_error.value()),
        slope: constants.map(|constants| constants.slope.value()),
        alltoallv: options.alltoallv,
        handles: options.handles,
        fences: options.fences,
    }
}

/// The forward passes.
pub(super) fn replay(passes: &Passes, resolution: u64) -> Replay {
    Replay {
        form: match passes.groups {
            Some(_) => ReplayForm::Canonical,
            None => ReplayForm::Dataflow,
        },
        d0_ticks: passes.least_advance.0,
        d0_seconds: passes.least_advance.seconds(resolution),
        passes: passes
            .passes
            .iter()
            .map(|pass| report::Pass {
                gamma: controlled_logical_clock::Decay::from_units(pass.decay.bits()).unwrap_or_default().gamma(),
                largest_advance_ticks: pass.largest_advance.0,
                largest_advance_seconds: pass.largest_advance.seconds(resolution),
                error: pass.error,
                mirrored: pass.mirrored.map(|mirrored| report::MirroredPass {
                    largest_move_ticks: mirrored.largest_advance.0,
                    largest_move_seconds: mirrored.largest_advance.seconds(resolution),
                    error: mirrored.error,
                }),
                displacement_ticks: pass.displacement.map(|displacement| displacement.0),
                displacement_seconds: pass.displacement.map(|displacement| displacement.seconds(resolution)),
            })
            .collect(),
        correction: passes.form,
        common_motion: passes.shared.map(|shared| report::CommonMotion {
            largest_ticks: shared.largest.0,
            largest_seconds: shared.largest.seconds(resolution),
            steepest: shared.slope,
            restored_ticks: shared.finish.0,
            restored_seconds: shared.finish.seconds(resolution),
        }),
    }
}

/// Peak memory of all ranks. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn memory_use(transport: &mut dyn Transport) -> Result<MemoryUse> {
    let peak = i64::try_from(crate::output::peak_memory::peak_bytes()).unwrap_or(i64::MAX);
    let (mut largest, mut sum) = ([peak], [peak]);
    transport.all_reduce(ReduceOp::Max, &mut largest)?;
    transport.all_reduce(ReduceOp::Sum, &mut sum)?;
    Ok(MemoryUse { largest_rank_bytes: largest[0] as u64, all_ranks_bytes: sum[0] as u64 })
}
