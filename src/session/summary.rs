//! Filling the report from what the stages found.

use crate::details::collective_kind;
use crate::details::regions::Regions;
use crate::pipeline::load::{LoadOptions, LocalTrace, events_by_kind};
use crate::pipeline::open::TraceHandle;
use crate::pipeline::silent::calls_without_records;
use crate::report::{
    self, CallCount, ClockCounts, ClockEstimate, CollectiveCheck, CollectiveKind, Coverage, DoubtfulChannel,
    EventCount, EventPlace, LatencyUsed, Matching, MemoryUse, ParametersUsed, PointToPointCheck, ProgramInfo, Replay,
    ReplayForm, StageViolations, TraceSummary, UnmatchedPair, Verdict, Violations, Warnings, WorstKind, WorstViolation,
};
use crate::session::Session;
use clc_clock::{Method, ModelKind};
use clc_engine::comm::{ReduceOp, Transport, merge_to_first};
use clc_engine::matching::channels::Trust;
use clc_engine::matching::collectives::CollectiveCounts;
use clc_engine::matching::communicators::name as name_of;
use clc_engine::matching::extracted::Leftovers;
use clc_engine::matching::matched::{InDoubt, MessageCounts, Unmatched};
use clc_engine::matching::steps::{ThreadCount, Unpaired};
use clc_engine::matching::undefined::UndefinedPeer;
use clc_engine::replay::passes::Passes;
use clc_engine::replay::survey::Survey;
use clc_trace::{CollectiveOp, CommMembers, Definitions, LocationId, RegionId, Result, Ticks, TimelineNumber};
use controlled_logical_clock::Parameters;
use controlled_logical_clock::latency::LatencyBasis;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What ran.
pub fn program(transport: &dyn Transport, command_line: &[String]) -> ProgramInfo {
    ProgramInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: command_line.to_vec(),
        mpi_library: transport.library(),
        analysis_ranks: transport.size() as u64,
    }
}

/// What one analysis rank knows about its part of the trace.
#[derive(Clone, Serialize, Deserialize)]
struct RankSummary {
    events: u64,
    by_kind: BTreeMap<String, u64>,
    clocks: ClockCounts,
    lone_offsets: Vec<LocationId>,
    no_offsets: Vec<LocationId>,
    messages: MessageCounts,
    collectives: CollectiveCounts,
    leftovers: Leftovers,
    undefined_peers: Vec<UndefinedPeer>,
    joined_communicators: u64,
    without_records: BTreeMap<String, u64>,
    warnings: Warnings,
}

impl RankSummary {
    /// Adds what the next ranks know.
    fn merge(&mut self, part: RankSummary) {
        self.events += part.events;
        for (kind, count) in part.by_kind {
            *self.by_kind.entry(kind).or_default() += count;
        }
        self.clocks.identity += part.clocks.identity;
        self.clocks.constant += part.clocks.constant;
        self.clocks.piecewise += part.clocks.piecewise;
        self.lone_offsets.extend(part.lone_offsets);
        self.no_offsets.extend(part.no_offsets);
        self.messages.merge(&part.messages);
        self.collectives.merge(&part.collectives);
        self.leftovers.add(&part.leftovers);
        self.undefined_peers.extend(part.undefined_peers);
        for (region, count) in part.without_records {
            *self.without_records.entry(region).or_default() += count;
        }
        self.warnings.merge(part.warnings);
    }
}

/// The trace as a whole.
pub struct Whole {
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
pub fn gather(
    session: &mut Session<'_>,
    loaded: &LocalTrace,
    presync: Method,
    estimate: Option<&ClockEstimate>,
) -> Result<Option<Whole>> {
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
    for location in loaded.locations.iter().flatten() {
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
    Ok(Some(Whole {
        trace: TraceSummary {
            path: path.display().to_string(),
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
        loose_ends: [sum.leftovers.open_collectives, sum.leftovers.inter_collectives, sum.leftovers.foreign_windows]
            .into_iter()
            .fold(0, u64::saturating_add),
        matching: Matching {
            calls_without_records: CallCount::sorted(sum.without_records),
            ..matching(definitions, &sum.messages, &sum.collectives, &sum.leftovers)
        },
        clocks: sum.clocks,
        warnings: sum.warnings,
    }))
}

/// How much of the trace was compared, and the verdict.
pub fn verdict(whole: &Whole, violations: &Violations) -> (Coverage, Verdict) {
    let coverage = Coverage::new(violations.checked(), &whole.matching, whole.loose_ends, &whole.trace.events_by_kind);
    (coverage, Verdict::new(violations, &coverage, whole.trace.processes))
}

fn mpi_communicators(definitions: &Definitions) -> u64 {
    let mpi = |members: &CommMembers| !matches!(members, CommMembers::NotMpi);
    definitions.communicators.iter().filter(|communicator| mpi(&communicator.members)).count() as u64
}

/// Names at most a few locations.
fn name(locations: &[LocationId]) -> String {
    list(locations, 8, locations.len())
}

/// Names at most `most` of `all` things.
fn list(things: &[impl ToString], most: usize, all: usize) -> String {
    let mut names: Vec<String> = things.iter().take(most).map(ToString::to_string).collect();
    if all > names.len() {
        names.push(format!("and {} more", all - names.len()));
    }
    names.join(", ")
}

fn warn(sum: &mut RankSummary, opened: &TraceHandle) {
    if !sum.no_offsets.is_empty() && opened.timelines.all.len() > 1 {
        sum.warnings.add(format!(
            "{} of {} locations have no clock offset; their recorded times are taken as global: {}",
            sum.no_offsets.len(),
            opened.definitions.locations.len(),
            name(&sum.no_offsets)
        ));
    }
    if !sum.lone_offsets.is_empty() {
        sum.warnings.add(format!(
            "{} locations have only one clock offset; it is applied as a constant, whereas libotf2 ignores it: {}",
            sum.lone_offsets.len(),
            name(&sum.lone_offsets)
        ));
    }
    if opened.timelines.processes == 0 {
        sum.warnings.add("the archive defines no MPI processes, so nothing can be compared between processes");
    }
    if sum.joined_communicators > 0 {
        sum.warnings.add(format!(
            "{} communicators have different ids on different processes; they were matched by members and order",
            sum.joined_communicators
        ));
    }
    let left = &sum.leftovers;
    if left.undefined_peer > 0 {
        sum.warnings.add_many(
            format!(
                "messages to or from an undefined rank are ignored, and their partners stay unmatched: {}",
                list(&sum.undefined_peers, UndefinedPeer::EXAMPLES, left.undefined_peer as usize)
            ),
            left.undefined_peer,
        );
    }
    for (why, count) in std::mem::take(&mut sum.messages.threads.1) {
        sum.warnings.add_many(unpaired(&why, &opened.definitions), count);
    }
    let counted = [
        (
            left.foreign_accesses,
            "one-sided operations on windows without MPI processes (such as between hosts and accelerators) order no \
            processes",
        ),
        (left.foreign_windows, "collective operations on windows without MPI processes are ignored"),
        (left.open_collectives, "collective operations without a begin or an end are ignored"),
        (left.inter_collectives, "collective operations on inter-communicators with overlapping groups are ignored"),
    ];
    for (count, text) in counted {
        sum.warnings.add_many(text, count);
    }
    for (&comm, instance) in &sum.collectives.first_inconsistent {
        sum.warnings.add(format!(
            "the members of {} disagree on the operation or root of instance {}; this and all later instances are \
            ignored",
            name_of(&opened.definitions, comm),
            instance + 1
        ));
    }
}

/// Why something that an accelerator does has no known order with its process.
fn unpaired(why: &Unpaired, definitions: &Definitions) -> String {
    let name = |region: &RegionId| {
        let found = definitions.regions.iter().find(|known| known.id == *region);
        found.map_or_else(|| format!("region {region}"), |region| region.name.clone())
    };
    match why {
        Unpaired::Numbers => {
            "kernels or copies of accelerators are compared with no call, because there are not as many \
            recorded calls that issue them"
                .into()
        }
        Unpaired::Streams => {
            "kernels or copies of accelerators are compared with no call, because the calls do not name \
            their streams, and there are several"
                .into()
        }
        Unpaired::Locations => "kernels or copies of accelerators are compared with no call, because several threads \
            issue them to one stream"
            .into(),
        Unpaired::UnknownStream(region) => {
            format!("calls of {} are compared with no work, because the trace does not name the stream", name(region))
        }
        Unpaired::UnknownDevice(region) => {
            format!("calls of {} are compared with no work, because the process has several accelerators", name(region))
        }
        Unpaired::UnknownWork(region) => format!(
            "calls of {} are compared with no work, because the calls that issued it are not known",
            name(region)
        ),
    }
}

/// Where records of messages are missing, and what is made of it.
fn warn_of_doubts(sum: &mut RankSummary, opened: &TraceHandle) {
    let messages = &sum.messages;
    let names = |shared: bool| -> Vec<String> {
        let name = |channel: &InDoubt| {
            let comm = opened.definitions.communicators[channel.comm.place()].id;
            format!("rank {} to {}, communicator {comm}, tag {}", channel.sender, channel.receiver, channel.tag)
        };
        messages.in_doubt.iter().filter(|channel| channel.shared == shared).map(name).collect()
    };
    let channels = |count: u64| if count == 1 { "one channel".to_owned() } else { format!("{count} channels") };
    let missing = messages.doubtful - messages.shared;
    if missing > 0 {
        sum.warnings.add(format!(
            "message records are missing: sends and receives differ in number or length in {}; there, only messages \
            that are unambiguous by length and order are matched: {}",
            channels(missing),
            list(&names(false), 4, missing as usize)
        ));
    }
    if messages.shared > 0 {
        sum.warnings.add(format!(
            "several threads of a process send or receive in {} in another order than they entered their calls; there, \
            only that k sends come before the k-th receive is used: {}",
            channels(messages.shared),
            list(&names(true), 4, messages.shared as usize)
        ));
    }
    if !messages.contradicted.is_empty() {
        let names: Vec<String> =
            messages.contradicted.keys().map(|(from, to)| format!("rank {from} to {to}")).collect();
        sum.warnings.add(format!(
            "what was inferred about missing message records contradicts the rest of the trace and is not used: {}",
            list(&names, 8, names.len())
        ));
    }
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
            _ if op.0 & !CollectiveOp::ON_WINDOW >= CollectiveOp::CREATE_HANDLE.0 => {
                "creating or destroying a handle does not necessarily synchronise"
            }
            _ => "no valid root",
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
pub fn stage(survey: &Survey, resolution: u64, origin: Ticks, alltoallv: bool, regions: &Regions) -> StageViolations {
    let kind_of = |op: CollectiveOp| collective_kind(op, alltoallv);
    let mut kinds: BTreeMap<CollectiveKind, CollectiveCheck> = BTreeMap::new();
    for (&op, tally) in &survey.collectives {
        let Some(kind) = kind_of(CollectiveOp(op)) else { continue };
        let check = kinds.entry(kind).or_insert(CollectiveCheck { kind, instances_checked: 0, violated: 0 });
        check.instances_checked += tally.checked;
        check.violated += tally.violated;
    }
    let place = |place: &clc_engine::replay::survey::EventPlace| EventPlace {
        process: place.process,
        location: place.location,
        event: place.number,
        ticks: place.time,
        seconds: (Ticks(place.time) - origin).seconds(resolution),
        region: regions.get(&(place.location, place.number)).cloned(),
    };
    StageViolations {
        point_to_point: PointToPointCheck { checked: survey.messages.checked, violated: survey.messages.violated },
        collectives: kinds.into_values().collect(),
        worst: survey.worst.as_ref().and_then(|worst| {
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
pub fn parameters(
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
pub fn replay(passes: &Passes, resolution: u64) -> Replay {
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
pub fn memory_use(transport: &mut dyn Transport) -> Result<MemoryUse> {
    let peak = i64::try_from(crate::pipeline::peak_memory::peak_bytes()).unwrap_or(i64::MAX);
    let (mut largest, mut sum) = ([peak], [peak]);
    transport.all_reduce(ReduceOp::Max, &mut largest)?;
    transport.all_reduce(ReduceOp::Sum, &mut sum)?;
    Ok(MemoryUse { largest_rank_bytes: largest[0] as u64, all_ranks_bytes: sum[0] as u64 })
}
