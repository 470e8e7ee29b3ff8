//! The description of a trace: what its definitions say, and what a scan of all events counts.

use crate::pipeline::open::TraceHandle;
use crate::report::{
    ClockInfo, CommunicatorInfo, EventCount, Info, LocationInfo, NodeInfo, SCHEMA, TraceSummary, Warnings,
};
use clc_clock::LinearClock;
use clc_engine::comm::{AnalysisRank, Transport, agree, gather_values};
use clc_trace::format::os_text;
use clc_trace::progress::Progress;
use clc_trace::{CommMembers, Definitions, LocationGroupId, MpiRank, Result, SystemTreeNodeId, Ticks};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What a scan says about one location.
#[derive(Clone, Serialize, Deserialize)]
struct ScannedLocation {
    index: usize,
    events: u64,
    by_kind: Vec<(String, u64)>,
    /// First and last pre-synchronised time.
    span: Option<(i64, i64)>,
    clock: ClockInfo,
}

/// Scans all hosted locations and describes the trace, which was named `path`. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// An event file cannot be read.
pub(crate) fn describe(
    transport: &mut dyn Transport,
    mut opened: TraceHandle,
    path: &Path,
    progress: &dyn Progress,
) -> Result<Option<Info>> {
    let mut warnings = std::mem::take(&mut opened.warnings);
    let hosted = opened.placement.hosted_by(transport.rank());
    let mut scanned = Vec::new();
    let mut outcome = Ok(());
    let claimed = |timeline: usize| {
        opened.timelines.all[timeline].locations.iter().map(|&l| opened.definitions.locations[l].claimed_events)
    };
    progress.phase("scan", hosted.clone().flat_map(claimed).fold(0, u64::saturating_add));
    for &index in hosted.clone().flat_map(|timeline| &opened.timelines.all[timeline].locations) {
        match scan(&opened, index, &mut warnings) {
            Ok(location) => {
                progress.advance(location.events);
                scanned.push(location);
            }
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    progress.finish();
    agree(transport, outcome)?;
    let all_warnings = gather_values(transport, AnalysisRank::FIRST, &warnings)?;
    let Some(scanned) = gather_values(transport, AnalysisRank::FIRST, &scanned)? else { return Ok(None) };
    let mut warnings = Warnings::default();
    all_warnings.into_iter().flatten().for_each(|part| warnings.merge(part));
    Ok(Some(description(&opened, path, scanned.into_iter().flatten().collect(), warnings)))
}

fn scan(opened: &TraceHandle, index: usize, warnings: &mut Warnings) -> Result<ScannedLocation> {
    let location = &opened.definitions.locations[index];
    let local = opened.archive.local_definitions(location.id)?;
    let place = |error: clc_trace::Error| {
        error.in_file(&opened.archive.local_definition_path(location.id)).at_location(location.id)
    };
    // A trace is described even if its offsets are useless: by its times as they were recorded.
    let clock = LinearClock::new(&local.clock_offsets).unwrap_or_else(|error| {
        let error = clc_trace::Error { hint: None, ..place(error) };
        warnings.add(format!(
            "the clock offsets of some locations cannot be used, their times are shown as recorded: {error}"
        ));
        LinearClock::identity()
    });
    let summary = opened.archive.scan_with(location.id, &local, |_, _, _| Ok(()))?;
    summary.warnings.iter().for_each(|text| warnings.add(text.clone()));
    if summary.events != location.claimed_events {
        warnings.add("the number of events of some locations differs from their definitions");
    }
    let time = |raw: u64| clock.map(Ticks(raw.min(clc_clock::RANGE as u64) as i64)).0;
    let ends = (local.clock_offsets.first(), local.clock_offsets.last());
    let drift = match ends {
        (Some(first), Some(last)) if last.time > first.time => {
            Some((last.offset as f64 - first.offset as f64) / (last.time - first.time) as f64 * 1e6)
        }
        _ => None,
    };
    Ok(ScannedLocation {
        index,
        events: summary.events,
        by_kind: summary.by_kind().collect(),
        span: summary.time_span.map(|(first, last)| (time(first), time(last))),
        clock: ClockInfo {
            measurements: local.clock_offsets.len() as u64,
            first_offset_ticks: ends.0.map(|offset| offset.offset),
            last_offset_ticks: ends.1.map(|offset| offset.offset),
            drift_ppm: drift,
        },
    })
}

/// Those of MPI.
fn communicators(definitions: &Definitions) -> Vec<CommunicatorInfo> {
    let described = definitions.communicators.iter().filter_map(|communicator| {
        let (size, inter) = match &communicator.members {
            CommMembers::Intra(members) => (members.len(), false),
            CommMembers::SelfOnly => (1, false),
            CommMembers::Inter(a, b) => (a.len() + b.len(), true),
            CommMembers::Undefined => (0, false),
            CommMembers::NotMpi => return None,
        };
        Some(CommunicatorInfo { id: communicator.id, name: communicator.name.clone(), size: size as u64, inter })
    });
    described.collect()
}

fn description(opened: &TraceHandle, path: &Path, mut scanned: Vec<ScannedLocation>, warnings: Warnings) -> Info {
    let definitions = &opened.definitions;
    let resolution = definitions.clock.resolution;
    scanned.sort_by_key(|location| location.index);
    let first = scanned.iter().filter_map(|location| location.span).map(|span| span.0).min();
    let last = scanned.iter().filter_map(|location| location.span).map(|span| span.1).max();
    let seconds = |time: i64| (Ticks(time) - Ticks(first.unwrap_or(0))).seconds(resolution);
    let mut by_kind: BTreeMap<String, u64> = BTreeMap::new();
    for (kind, count) in scanned.iter().flat_map(|location| &location.by_kind) {
        *by_kind.entry(kind.clone()).or_default() += count;
    }
    let groups: HashMap<LocationGroupId, _> =
        definitions.location_groups.iter().map(|group| (group.id, group)).collect();
    let tree: HashMap<SystemTreeNodeId, &str> =
        definitions.system_tree.iter().map(|node| (node.id, node.name.as_str())).collect();
    let rank_of: HashMap<_, _> =
        definitions.processes.iter().zip((0..).map(MpiRank)).map(|(&id, rank)| (id, rank)).collect();
    let node_name = |index: usize| {
        let parent = groups.get(&definitions.locations[index].group).and_then(|group| group.parent)?;
        tree.get(&parent).map(|name| (*name).to_owned())
    };
    let mut nodes: BTreeMap<u32, NodeInfo> = BTreeMap::new();
    for timeline in &opened.timelines.all {
        let name = timeline.locations.first().and_then(|&index| node_name(index)).unwrap_or_default();
        let node = nodes.entry(timeline.node).or_insert(NodeInfo { name, processes: 0, locations: 0 });
        node.processes += u64::from(timeline.process.is_some());
        node.locations += timeline.locations.len() as u64;
    }
    let communicators = communicators(definitions);
    let trace = TraceSummary {
        path: os_text(path),
        name: opened.archive.name(),
        creator: opened.archive.creator().to_owned(),
        timer_resolution: resolution,
        locations: definitions.locations.len() as u64,
        processes: opened.timelines.processes as u64,
        nodes: opened.timelines.nodes as u64,
        communicators: communicators.len() as u64,
        span_seconds: last.map_or(0.0, seconds),
        events: scanned.iter().map(|location| location.events).sum(),
        events_by_kind: EventCount::sorted(by_kind),
    };
    let locations = scanned
        .into_iter()
        .map(|location| {
            let definition = &definitions.locations[location.index];
            LocationInfo {
                id: definition.id,
                name: definition.name.clone(),
                group: groups.get(&definition.group).map(|group| group.name.clone()).unwrap_or_default(),
                node: node_name(location.index),
                rank: rank_of.get(&definition.id).copied(),
                events: location.events,
                first_seconds: location.span.map(|span| seconds(span.0)),
                last_seconds: location.span.map(|span| seconds(span.1)),
                clock: location.clock,
            }
        })
        .collect();
    Info {
        schema: SCHEMA,
        trace,
        nodes: nodes.into_values().collect(),
        communicators,
        locations,
        warnings: warnings.into_list(),
    }
}
