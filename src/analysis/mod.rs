//! `clc-replay analyze` after the replay: waiting times, execution metrics, critical path, traffic.
//!
//! Two more scans of the hosted event files: one keeps the operations that can wait (`scan.rs`), one follows the critical path through
//! the call paths (`attribute.rs`). Between them the exchanges of [`replay`]. Everything is summed in integers and merged
//! along a tree, so the result is the same on any number of analysis ranks.

mod attribute;
mod busy;
mod epochs;
mod gaps;
mod largest;
mod lock_tracker;
pub(crate) mod locks;
pub(crate) mod replay;
mod report;
mod same_regions;
mod scan;
mod scanned;
mod stages;
mod sums;
mod threads;
mod traffic;

use crate::analysis::replay::delays::{Costs, DelaySearch, DelaySums};
use crate::analysis::replay::timeline_waits::TimelineWaits;
use crate::analysis::replay::waits::waits;
use crate::analysis::replay::walk::{PathEnds, walk};
use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use crate::report::Analysis;
use crate::session::Session;
use clc_engine::comm::local::LocalTransport;
use clc_engine::comm::{AnalysisRank, Transport, agree, merge_to_first, merge_values};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::replay::program::Program;
use clc_execution::parallelism::Parallelism;
use clc_execution::path::PathWait;
use clc_execution::windows::Windows;
use clc_trace::workers::Workers;
use clc_trace::{Correction, Result};
use gaps::Gaps;
use same_regions::SameRegions;
use scanned::{ScannedOperations, ScannedProcess};
use stages::StagedTrace;
use std::cmp::Reverse;
use sums::AnalysisSums;

/// How much is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnalysisOptions {
    /// Windows of time.
    pub windows: usize,
    /// Entries of a list.
    pub entries: usize,
}

/// Analyses a loaded trace, whose minimum latency has to be zero; with corrected times if there are `corrections`, one per hosted
/// timeline. The result is on rank 0. Collective over the analysis ranks.
///
/// # Errors
/// The event files cannot be read again, failures of the transport.
pub(crate) fn analyse(
    session: &mut Session<'_>,
    loaded: &LocalTrace,
    corrections: Option<&[Correction]>,
    options: AnalysisOptions,
) -> Result<Option<Analysis>> {
    let (opened, progress, transport) = (&session.opened, session.progress, &mut *session.transport);
    let stages = StagedTrace::new(opened, loaded, corrections);
    let stages = agree(transport, stages)?;
    let windows = stages.windows(transport, options.windows)?;

    progress.phase("regions", loaded.events());
    let scanned = scan::scan(&stages, &windows, progress);
    progress.finish();
    let scanned = agree(transport, scanned)?;
    let computing: Vec<Vec<i128>> = scanned.computing.clone();
    let computing = merge_values(transport, computing, |sums, more| {
        for (sums, more) in sums.iter_mut().zip(more) {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    })?;
    let processes = opened.timelines.processes as u64;
    let parallelism: Vec<Parallelism> =
        windows.iter().zip(computing).map(|(&windows, sums)| Parallelism::new(windows, processes, sums)).collect();

    progress.step("waits");
    let waiting: Vec<Vec<TimelineWaits>> = by_stage(transport, opened.workers, stages.count(), |transport, stage| {
        let locks = match locks::possible(opened) {
            true => locks::contention(transport, &scanned.locks, stage)?,
            false => Vec::new(),
        };
        let mut found = waits(transport, &loaded.program, &scanned.operations, &locks, stage)?;
        join_paths(&loaded.program, &mut found);
        Ok(found)
    })?;
    progress.step("delays");
    let delays = delays(transport, opened, loaded, &scanned, &waiting, options.entries)?;
    progress.step("path");
    let ends = ends(transport, loaded, &scanned, &windows)?;
    let processes = ..loaded.program.shared();
    let path_waits: Vec<Vec<&[PathWait]>> =
        waiting.iter().map(|stage| stage[processes].iter().map(|own| own.path.as_slice()).collect()).collect();
    let paths = walk(transport, &opened.placement, loaded.program.first, &path_waits, &ends)?;

    let mut part = AnalysisSums::new(options.entries);
    part.add_scan(loaded, &scanned, &waiting);
    part.add_waits(loaded, &scanned, &waiting);
    part.add_threads(loaded, &scanned);
    part.delays = delays;
    progress.phase("path", loaded.events());
    let attributed = attribute::attribute(&stages, &paths, &parallelism, progress, &mut part);
    progress.finish();
    agree(transport, attributed)?;
    if transport.rank() == AnalysisRank::FIRST && scanned.no_regions {
        session.warnings.add(
            "no region has the name of an MPI function (MPI_...), so computation, communication and waiting cannot be \
            told apart",
        );
    }
    let Some(whole) = merge_to_first(transport, part, AnalysisSums::merge)? else { return Ok(None) };
    Ok(Some(report::report(opened, whole, &parallelism, &paths)))
}

/// What `work` makes of every stage: of one after the other, or of both at the same time if there is no other rank to exchange anything with. Collective over the
/// analysis ranks.
///
/// # Errors
/// Those of `work`.
fn by_stage<R: Send>(
    transport: &mut dyn Transport,
    workers: Workers,
    stages: usize,
    work: impl Fn(&mut dyn Transport, usize) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if transport.size() > 1 || stages != 2 {
        return (0..stages).map(|stage| work(transport, stage)).collect();
    }
    let (first, second) = workers.both(|| work(transport, 0), || work(&mut LocalTransport::alone(), 1));
    Ok(vec![first?, second?])
}

/// What the waits of all stages are blamed on.
fn delays(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    scanned: &ScannedOperations,
    waiting: &[Vec<TimelineWaits>],
    entries: usize,
) -> Result<DelaySums> {
    let regions = |process: &ScannedProcess| process.tree.innermost(Gaps::OUTSIDE);
    let processes = scanned.processes.iter().map(|process| (&process.gaps, regions(process))).collect();
    let same = SameRegions::new(&opened.definitions);
    let canonical = |region: u32| same.first(region);
    let search = DelaySearch::new(transport, &loaded.program, &scanned.operations, processes, canonical, waiting)?;
    let blamed = by_stage(transport, opened.workers, waiting.len(), |transport, stage| {
        search.blame(transport, &opened.placement, &waiting[stage], stage)
    })?;
    let mut sums = DelaySums::new(entries);
    let mut by_process = vec![Costs::default(); scanned.processes.len()];
    for (of_stage, costs) in blamed {
        sums.merge(of_stage);
        by_process.iter_mut().zip(&costs).for_each(|(sum, more)| sum.add(more));
    }
    for (process, costs) in (0..).map(LocalTimeline).zip(by_process) {
        let largest = costs.largest();
        if largest > 0 {
            sums.by_process.add(largest, (loaded.program.number(process).0, costs));
        }
    }
    Ok(sums)
}

/// The critical path goes from process to process: what it follows of all timelines of a process is put together at the shared one.
fn join_paths(program: &Program, waits: &mut [TimelineWaits]) {
    for process in program.shared_timelines() {
        for own in program.timelines_of(process).skip(1) {
            let further = std::mem::take(&mut waits[own].path);
            waits[process].path.extend(further);
        }
        waits[process].path.sort_unstable();
    }
}

/// Where the critical path of every stage ends: with the last event of any process, the lowest one of several. The same on all ranks.
fn ends(
    transport: &mut dyn Transport,
    loaded: &LocalTrace,
    scanned: &ScannedOperations,
    windows: &[Windows],
) -> Result<Vec<Option<PathEnds>>> {
    let last = |stage: usize| {
        let processes = scanned.processes.iter().enumerate();
        let ends =
            processes.filter_map(|(local, process)| Some((process.spans.as_ref()?[stage].1, LocalTimeline::at(local))));
        ends.map(|(time, local)| (time, Reverse(loaded.program.number(local).0))).max()
    };
    let own: Vec<Option<(i64, Reverse<u32>)>> = (0..windows.len()).map(last).collect();
    let all = merge_values(transport, own, |latest, more| {
        latest.iter_mut().zip(more).for_each(|(latest, more)| *latest = (*latest).max(more));
    })?;
    let end = |(windows, last): (&Windows, Option<(i64, Reverse<u32>)>)| {
        last.map(|(time, Reverse(process))| PathEnds { last: (process, time), first: windows.first })
    };
    Ok(windows.iter().zip(all).map(end).collect())
}
