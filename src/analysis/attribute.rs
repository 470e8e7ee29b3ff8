//! The third scan: what the processes on the critical path did while it was at them. Only those files are read.
//!
//! A process does what its main location does; between the events of a location it is in the region that it entered last and has not
//! left.

use crate::analysis::replay::walk::Path;
use crate::analysis::scan::{DEPTH, mpi_regions};
use crate::analysis::stages::{StageMapper, StagedTrace};
use crate::analysis::sums::{AnalysisSums, PathPart, PathSum, longer};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_execution::call_tree::CallTree;
use clc_execution::parallelism::Parallelism;
use clc_trace::progress::Progress;
use clc_trace::{Event, EventNumber, RegionId, Result};
use std::collections::{BTreeMap, HashSet};

/// Kinds of time on the path, as in [`PathPart::length`].
const COMPUTING: usize = 0;
const COMMUNICATING: usize = 1;
const IDLE: usize = 2;

/// Adds the `paths` of all stages, as far as they are at hosted processes, to `part`.
///
/// # Errors
/// The event files cannot be read again.
pub(super) fn attribute(
    stages: &StagedTrace<'_>,
    paths: &[Path],
    parallelism: &[Parallelism],
    progress: &dyn Progress,
    part: &mut AnalysisSums,
) -> Result<()> {
    let mpi = mpi_regions(&stages.opened.definitions);
    let shares = stages.shares();
    let nothing = || -> Vec<PathPart> { parallelism.iter().map(|own| part.new_path(own.windows().count)).collect() };
    let parts = stages.opened.workers.run(shares.len(), progress, |share, advance| {
        let mut sums = nothing();
        for timeline in shares[share].clone().map(LocalTimeline::at) {
            follow(stages, paths, parallelism, &mpi, timeline, &mut sums)?;
            let locations = stages.loaded.locations_of(timeline).into_iter();
            advance(locations.map(|(own, number)| stages.loaded.locations[own][number].summary.events).sum());
        }
        Ok(sums)
    })?;
    let mut whole = nothing();
    for part in parts {
        whole.iter_mut().zip(part).for_each(|(whole, part)| whole.merge(part));
    }
    part.paths = whole;
    Ok(())
}

/// Adds the `paths` of all stages, as far as they are at the process of `timeline`, which its locations share.
fn follow(
    stages: &StagedTrace<'_>,
    paths: &[Path],
    parallelism: &[Parallelism],
    mpi: &HashSet<RegionId>,
    timeline: LocalTimeline,
    sums: &mut [PathPart],
) -> Result<()> {
    let stretches: Vec<&[(i64, i64)]> = paths.iter().map(|path| path.stretches[timeline].as_slice()).collect();
    if stretches.iter().all(|stretches| stretches.is_empty()) {
        return Ok(());
    }
    let process = stages.loaded.program.number(timeline).0;
    for ((stretches, parallelism), path) in stretches.iter().zip(parallelism).zip(&mut *sums) {
        add_process(process, stretches, parallelism, path);
    }
    let sweeps = stretches.iter().zip(parallelism);
    let sweeps = sweeps.map(|(&stretches, parallelism)| Sweep::new(stretches, parallelism)).collect();
    let follow = Follow {
        mpi,
        // Its main location is in the timeline that the locations of a process share.
        times: stages.times(timeline, 0),
        tree: CallTree::default(),
        stack: Vec::new(),
        deeper: 0,
        sweeps,
    };
    follow.run(stages, timeline, sums)
}

/// What does not depend on regions.
fn add_process(process: u32, stretches: &[(i64, i64)], parallelism: &Parallelism, path: &mut PathPart) {
    let mut sum: PathSum = [0; 2];
    // Stretches are in order of time: one window after the other.
    let mut window: Option<(usize, i64)> = None;
    for &(from, to) in stretches {
        let weight = parallelism.scaled_weight_between(from, to);
        sum[0] += i128::from(to - from);
        sum[1] += weight;
        path.stretches.add(i128::from(to - from), ((from, to), process, weight));
        parallelism.windows().parts(from, to, |index, from, to| {
            let length = match window {
                Some((same, length)) if same == index => length + to - from,
                _ => to - from,
            };
            window = Some((index, length));
            path.windows[index] = longer(path.windows[index], Some((length, process)));
        });
    }
    if !stretches.is_empty() {
        path.by_process.add(sum[1], (process, sum));
    }
}

/// One stage of one process: goes along its stretches.
struct Sweep<'a> {
    stretches: &'a [(i64, i64)],
    parallelism: &'a Parallelism,
    /// Until when time is accounted for.
    time: i64,
    /// By kind of time and node of the call tree.
    sums: BTreeMap<(usize, u32), PathSum>,
}

impl<'a> Sweep<'a> {
    fn new(stretches: &'a [(i64, i64)], parallelism: &'a Parallelism) -> Sweep<'a> {
        Sweep { stretches, parallelism, time: parallelism.windows().first, sums: BTreeMap::new() }
    }

    /// Until `time` the process was at `node`.
    #[inline]
    fn until(&mut self, time: i64, kind: usize, node: u32) {
        while let Some((&(from, to), rest)) = self.stretches.split_first() {
            let (begin, end) = (from.max(self.time), to.min(time));
            if begin < end {
                let sum = self.sums.entry((kind, node)).or_default();
                sum[0] += i128::from(end - begin);
                sum[1] += self.parallelism.scaled_weight_between(begin, end);
            }
            if to > time {
                break;
            }
            self.stretches = rest;
        }
        self.time = self.time.max(time);
    }
}

/// Scans the main location of one process.
struct Follow<'a> {
    mpi: &'a HashSet<RegionId>,
    times: StageMapper<'a>,
    tree: CallTree,
    /// Node, and whether it is in MPI.
    stack: Vec<(u32, bool)>,
    deeper: u64,
    sweeps: Vec<Sweep<'a>>,
}

impl Follow<'_> {
    fn run(mut self, stages: &StagedTrace<'_>, timeline: LocalTimeline, sums: &mut [PathPart]) -> Result<()> {
        let archive = &stages.opened.archive;
        let location = &stages.loaded.locations[timeline][0];
        let id = stages.opened.definitions.locations[location.index].id;
        let local = archive.local_definitions(id)?;
        let last = EventNumber(location.summary.events);
        archive
            .scan_with(id, &local, |number, raw, event| {
                let (enters, leaves) = (matches!(event, Event::Enter(_)), matches!(event, Event::Leave(_)));
                if number == EventNumber::FIRST || number == last || enters || leaves {
                    let times = self.times.map(number, raw);
                    self.until(times, number == EventNumber::FIRST);
                }
                match event {
                    Event::Enter(region) => self.enter(region),
                    Event::Leave(_) if self.deeper > 0 => self.deeper -= 1,
                    Event::Leave(_) => drop(self.stack.pop()),
                    _ => {}
                }
                Ok(())
            })
            .map_err(|error| error.in_file(&archive.event_path(id)).at_location(id))?;
        self.until([i64::MAX; 2], true);
        for (sweep, path) in self.sweeps.into_iter().zip(sums) {
            for ((kind, node), sum) in sweep.sums {
                path.length[kind] += sum[0];
                let whole = path.by_call_path.at(&self.tree, node, ());
                whole.iter_mut().zip(sum).for_each(|(whole, more)| *whole += more);
            }
        }
        Ok(())
    }

    /// Accounts for the time until `times`, by stage; `idle`: before the first or after the last event.
    #[inline]
    fn until(&mut self, times: [i64; 2], idle: bool) {
        let (node, in_mpi) = self.stack.last().copied().unwrap_or((CallTree::ROOT, false));
        let kind = match (idle, in_mpi) {
            (true, _) => IDLE,
            (false, true) => COMMUNICATING,
            (false, false) => COMPUTING,
        };
        let node = if idle { CallTree::ROOT } else { node };
        for (sweep, time) in self.sweeps.iter_mut().zip(times) {
            sweep.until(time, kind, node);
        }
    }

    fn enter(&mut self, region: RegionId) {
        if self.stack.len() >= DEPTH {
            self.deeper += 1;
            return;
        }
        let (caller, in_mpi) = self.stack.last().copied().unwrap_or((CallTree::ROOT, false));
        self.stack.push((self.tree.call(caller, region.0), in_mpi || self.mpi.contains(&region)));
    }
}
