//! Filling [`Details`]: what a report needs for its pictures. Collective over the analysis ranks, the same for any number of them,
//! and bounded: nothing here grows with the number of events.

mod clock_error;
mod pictures;
pub(crate) mod regions;
mod slopes;

use crate::pipeline::displacement::LocationSum;
use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use crate::report::{
    Case, CollectiveKind, Details, DistanceClass, EventPlace, LocationDisplacement, OperationCheck, PairMatrix,
    PairStage, PairUnit, Stage, StageDetails, WorstKind, distances,
};
use clc_clock::grid::Grid;
use clc_engine::comm::{AnalysisRank, Transport, gather_values};
use clc_engine::matching::visited_times::VisitedTimes;
use clc_engine::replay::clock_condition::{ClockConditionCheck, Worst};
use clc_engine::replay::profile::{Classes, Profile, profile};
use clc_trace::{CollectiveOp, Correction, MpiRank, Result, Ticks, Timeline, Timelines};
use controlled_logical_clock::semantics::CollectiveClass;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Windows that violations are counted in. Chosen by hand: about as many as bars can be told apart in the picture; counts per pair and window grow
/// with them.
const WINDOWS: usize = 200;

/// One stage of the correction, with its check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckedStage<'a> {
    /// Which one.
    pub stage: Stage,
    /// Its violations.
    pub check: &'a ClockConditionCheck,
    /// Times of the visited events.
    pub times: &'a [VisitedTimes<'a>],
    /// Time of the first event of the trace.
    pub origin: Ticks,
}

/// What the correction did; not for `check`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CorrectionEffect<'a> {
    /// One correction per hosted timeline.
    pub corrections: &'a [Correction],
    /// Moves by hosted location (index into the definitions).
    pub displacement: &'a [(usize, LocationSum)],
}

/// Everything for the pictures of the report, on rank 0.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn details(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    stages: &[CheckedStage<'_>],
    corrected: Option<CorrectionEffect<'_>>,
    alltoallv: bool,
) -> Result<Option<Details>> {
    let resolution = opened.definitions.clock.resolution;
    let (first, last) = loaded.span.map_or((0, 0), |(first, last)| (first.0, last.0));
    let corrections = corrected.map(|corrected| corrected.corrections);
    let clock_error = clock_error::clock_error(transport, opened, loaded, corrections, first, last)?;

    let grid = Grid::new(first, last, WINDOWS);
    let (mut pairs, group_of) = groups(opened);
    let bounds = distances::bounds();
    let distance = |ticks: i64| distances::class(&bounds, Ticks(ticks).seconds(resolution));
    let mut profiles = Vec::new();
    for stage in stages {
        let classes = Classes {
            grid: &grid,
            group_of: &group_of,
            distance: &distance,
            distances: distances::CLASSES,
            worst: Case::MOST,
        };
        profiles.push(profile(transport, opened.workers, &loaded.program, stage.times, &classes)?);
    }
    // The cases of what a reader of the original sees; if there are none, of the recorded times.
    let shown = [1, 0].into_iter().find(|&stage| profiles.get(stage).is_some_and(|profile| !profile.worst.is_empty()));
    let cases = match shown {
        Some(stage) => {
            cases(transport, opened, loaded, &stages[stage], &profiles[stage].worst, corrections, alltoallv)?
        }
        None => Vec::new(),
    };
    let slopes = match corrections {
        Some(corrections) => slopes::slopes(transport, corrections)?,
        None => None,
    };
    let locations = match corrected {
        Some(corrected) => location_moves(transport, opened, corrected.displacement)?,
        None => Some((Vec::new(), 0)),
    };
    let (Some(clock_error), Some((locations, further_locations))) = (clock_error, locations) else { return Ok(None) };

    fill_pairs(&mut pairs, &profiles);
    Ok(Some(Details {
        clock_error,
        window_seconds: Ticks(grid.width).seconds(resolution),
        stages: stages.iter().zip(profiles).map(|(stage, profile)| stage_details(stage, profile)).collect(),
        pairs,
        worst: cases,
        slopes,
        locations,
        further_locations,
    }))
}

/// The kind of a collective operation in the report; `None` if it does not constrain.
pub(crate) fn collective_kind(op: CollectiveOp, alltoallv: bool) -> Option<CollectiveKind> {
    match op {
        CollectiveOp::WIN_FENCE | CollectiveOp::WIN_FENCE_ASSUMED => return Some(CollectiveKind::Fence),
        CollectiveOp::WIN_GROUP => return Some(CollectiveKind::Group),
        CollectiveOp::SYNCHRONOUS_SEND => return Some(CollectiveKind::SynchronousSend),
        CollectiveOp::THREAD_FORK => return Some(CollectiveKind::Fork),
        CollectiveOp::THREAD_BARRIER => return Some(CollectiveKind::ThreadBarrier),
        CollectiveOp::THREAD_CREATE => return Some(CollectiveKind::ThreadCreation),
        CollectiveOp::THREAD_TASK => return Some(CollectiveKind::Task),
        CollectiveOp::THREAD_LOCK => return Some(CollectiveKind::ThreadLock),
        CollectiveOp::ACCELERATOR_ISSUE => return Some(CollectiveKind::AcceleratorIssue),
        CollectiveOp::ACCELERATOR_WAIT => return Some(CollectiveKind::AcceleratorWait),
        _ => {}
    }
    match CollectiveClass::of(op, alltoallv) {
        CollectiveClass::OneToN => Some(CollectiveKind::OneToN),
        CollectiveClass::NToOne => Some(CollectiveKind::NToOne),
        CollectiveClass::NToN => Some(CollectiveKind::NToN),
        CollectiveClass::Prefix => Some(CollectiveKind::Prefix),
        CollectiveClass::Unconstrained => None,
    }
}

/// Timelines in few groups.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    /// What a group is.
    pub unit: PairUnit,
    /// Number of groups.
    pub size: usize,
    /// Nodes in one block; 1 but for blocks.
    pub block: usize,
    /// Group of every timeline.
    pub of: Vec<u32>,
}

/// Processes, nodes, or blocks of nodes, whatever is few enough for `most`.
pub(crate) fn grouping(timelines: &Timelines, most: usize) -> Grouping {
    let (unit, size, block) = if timelines.all.len() <= most {
        (PairUnit::Process, timelines.all.len(), 1)
    } else if timelines.nodes <= most {
        (PairUnit::Node, timelines.nodes, 1)
    } else {
        let block = timelines.nodes.div_ceil(most);
        (PairUnit::Block, timelines.nodes.div_ceil(block), block)
    };
    let group = |(index, timeline): (usize, &Timeline)| match unit {
        PairUnit::Process => index as u32,
        PairUnit::Node | PairUnit::Block => timeline.node / block as u32,
    };
    let of = timelines.all.iter().enumerate().map(group).collect();
    Grouping { unit, size, block, of }
}

/// Rows of the matrix of pairs.
fn groups(opened: &TraceHandle) -> (PairMatrix, Vec<u32>) {
    let Grouping { unit, size, block, of } = grouping(&opened.timelines, PairMatrix::SIZE);
    (PairMatrix { unit, size: size as u64, block: block as u64, ..PairMatrix::default() }, of)
}

/// The entries are those of the first stage: which messages there are does not depend on times.
fn fill_pairs(matrix: &mut PairMatrix, profiles: &[Profile]) {
    let Some(first) = profiles.first() else { return };
    for (&(sender, receiver), pair) in &first.pairs {
        matrix.senders.push(sender);
        matrix.receivers.push(receiver);
        matrix.messages.push(pair.messages);
    }
    for profile in profiles {
        let entries = first.pairs.keys().map(|key| profile.pairs.get(key).copied().unwrap_or_default());
        let (violated, largest_ticks) = entries.map(|pair| (pair.violated, pair.largest)).unzip();
        matrix.stages.push(PairStage { violated, largest_ticks });
    }
}

fn stage_details(stage: &CheckedStage<'_>, profile: Profile) -> StageDetails {
    let messages = &stage.check.messages;
    let check =
        |operation: &str, checked, violated| OperationCheck { operation: operation.to_owned(), checked, violated };
    let collectives = stage.check.collectives.iter();
    let bounds = distances::bounds();
    // Without the empty classes at either end.
    let first = profile.distances.iter().position(|class| *class != [0, 0]).unwrap_or(distances::CLASSES);
    let last = profile.distances.iter().rposition(|class| *class != [0, 0]).map_or(0, |last| last + 1);
    StageDetails {
        stage: stage.stage,
        operations: std::iter::once(check("message", messages.checked, messages.violated))
            .chain(collectives.map(|(&op, tally)| check(CollectiveOp(op).name(), tally.checked, tally.violated)))
            .collect(),
        checked: profile.checked,
        violated: profile.violated,
        distances: (first..last)
            .map(|class| DistanceClass {
                over_seconds: class.checked_sub(1).map_or(0.0, |below| bounds[below]),
                up_to_seconds: bounds.get(class).copied(),
                messages: profile.distances[class][0],
                collective_ends: profile.distances[class][1],
            })
            .collect(),
    }
}

/// The worst violations with their surroundings; meaningful on rank 0.
fn cases(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    stage: &CheckedStage<'_>,
    worst: &[Worst],
    corrections: Option<&[Correction]>,
    alltoallv: bool,
) -> Result<Vec<Case>> {
    let resolution = opened.definitions.clock.resolution;
    let surroundings = pictures::surroundings(transport, opened, loaded, stage, worst, corrections)?;
    let place = |place: &clc_engine::replay::clock_condition::EventPlace, region: &Option<String>| EventPlace {
        process: place.process,
        location: place.location,
        event: place.number,
        ticks: place.time,
        seconds: (Ticks(place.time) - stage.origin).seconds(resolution),
        region: region.clone(),
    };
    let cases = worst.iter().zip(surroundings).filter_map(|(worst, around)| {
        Some(Case {
            stage: stage.stage,
            kind: match worst.op {
                None => WorstKind::Message,
                Some(op) => collective_kind(op, alltoallv)?.into(),
            },
            operation: worst.op.map_or("message", CollectiveOp::name).to_owned(),
            from: place(worst.send.as_ref()?, &around.regions[0]),
            to: place(&worst.receive, &around.regions[1]),
            ticks: worst.ticks,
            seconds: Ticks(worst.ticks).seconds(resolution),
            pictures: around.pictures,
        })
    });
    Ok(cases.collect())
}

/// Displacement of the locations with the largest ones, and how many locations there are beside them; on rank 0.
fn location_moves(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    displacement: &[(usize, LocationSum)],
) -> Result<Option<(Vec<LocationDisplacement>, u64)>> {
    let shorten = |list: &mut Vec<(usize, LocationSum)>| {
        list.sort_by_key(|(index, sum)| (Reverse(sum.largest), *index));
        list.truncate(LocationDisplacement::MOST);
    };
    let mut largest = displacement.to_vec();
    shorten(&mut largest);
    let Some(parts) = gather_values(transport, AnalysisRank::FIRST, &largest)? else { return Ok(None) };
    let mut all: Vec<(usize, LocationSum)> = parts.into_iter().flatten().collect();
    shorten(&mut all);
    let definitions = &opened.definitions;
    let resolution = definitions.clock.resolution;
    let process_of: BTreeMap<usize, MpiRank> = opened
        .timelines
        .all
        .iter()
        .flat_map(|timeline| timeline.locations.iter().filter_map(|&index| Some((index, timeline.process?))))
        .collect();
    let further = definitions.locations.len() - all.len();
    let list = all.into_iter().map(|(index, sum)| LocationDisplacement {
        location: definitions.locations[index].id,
        process: process_of.get(&index).copied(),
        events: sum.events,
        events_moved: sum.moved,
        largest_ticks: sum.largest,
        largest_seconds: Ticks(sum.largest).seconds(resolution),
        mean_seconds: sum.mean_ticks() / resolution as f64,
    });
    Ok(Some((list.collect(), further as u64)))
}
