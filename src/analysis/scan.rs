//! The second scan of the hosted event files: operations that can wait, time in MPI, traffic.

use crate::analysis::busy::Busy;
use crate::analysis::epochs::{EpochChange, EpochTracker, OpenEpochs, in_order};
use crate::analysis::gaps::{GapRecorder, Gaps};
use crate::analysis::lock_tracker::{Tracker, has_locks, of_process};
use crate::analysis::replay::operations::Operations;
use crate::analysis::scanned::{ScannedOperations, ScannedProcess};
use crate::analysis::stages::{StageMapper, StagedTrace};
use crate::analysis::threads::ProcessThreads;
use clc_engine::matching::extract::calls::{Calls, SynchronisingCall};
use clc_engine::matching::extract::requests::OpenRequests;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::sync::{SyncKind, SyncTimeline};
use clc_execution::call_tree::CallTree;
use clc_execution::windows::Windows;
use clc_trace::progress::{BLOCK, Progress};
use clc_trace::workers::Advance;
use clc_trace::{Definitions, Error, Event, EventNumber, RegionId, Result, WindowId};
use std::collections::HashSet;

/// Deepest nesting of regions that is followed: bounds the memory that a damaged trace, or one of a runaway recursion, can take.
pub(super) const DEPTH: usize = 1 << 16;

/// Regions that are functions of MPI, by their names: the paradigm that archives give is not reliable (EZTrace says "user" for all).
pub(super) fn mpi_regions(definitions: &Definitions) -> HashSet<RegionId> {
    let is_mpi = |name: &str| {
        let name = name.as_bytes();
        let begins = |with: &[u8]| name.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
        begins(b"mpi_") || begins(b"pmpi_")
    };
    definitions.regions.iter().filter(|region| is_mpi(&region.name)).map(|region| region.id).collect()
}

/// Regions in which MPI is initialised.
fn initialising_regions(definitions: &Definitions) -> HashSet<RegionId> {
    let initialises = |name: &str| {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix('p').unwrap_or(&name);
        matches!(name.trim_end_matches('_'), "mpi_init" | "mpi_init_thread")
    };
    definitions.regions.iter().filter(|region| initialises(&region.name)).map(|region| region.id).collect()
}

/// Scans all hosted processes, as many of them at a time as there are threads.
///
/// # Errors
/// The event files cannot be read again.
pub(super) fn scan(
    stages: &StagedTrace<'_>,
    windows: &[Windows],
    progress: &dyn Progress,
) -> Result<ScannedOperations> {
    let definitions = &stages.opened.definitions;
    let known = KnownRegions {
        mpi: mpi_regions(definitions),
        initialising: initialising_regions(definitions),
        calls: Calls::of(definitions),
    };
    let shares = stages.shares();
    let parts = stages.opened.workers.run(shares.len(), progress, |share, advance| {
        let mut scanned = ScannedOperations::new(stages, windows);
        for process in shares[share].clone().map(LocalTimeline::at) {
            let own = scan_process(stages, windows, &known, process, &mut scanned, advance)?;
            scanned.processes.push(own);
        }
        Ok(scanned)
    })?;
    let mut scanned = ScannedOperations::new(stages, windows);
    for (share, part) in shares.into_iter().zip(parts) {
        scanned.merge(stages, share, part);
    }
    scanned.no_regions = known.mpi.is_empty() && stages.opened.timelines.processes > 0;
    Ok(scanned)
}

/// What regions are.
struct KnownRegions {
    mpi: HashSet<RegionId>,
    initialising: HashSet<RegionId>,
    calls: Calls,
}

/// Scans the locations of one process.
fn scan_process(
    stages: &StagedTrace<'_>,
    windows: &[Windows],
    known: &KnownRegions,
    process: LocalTimeline,
    scanned: &mut ScannedOperations,
    advance: Advance<'_>,
) -> Result<ScannedProcess> {
    let program = &stages.loaded.program;
    let mut own = ScannedProcess { communication: vec![0; windows.len()], ..ScannedProcess::default() };
    if !stages.is_process(process) {
        return Ok(own);
    }
    own.spans = stages.process_span(process);
    for timeline in program.timelines_of(process) {
        scanned.operations[timeline] = Operations::new(program.timelines[timeline].len(), windows.len());
    }
    let locations = stages.loaded.locations_of(process);
    let several = locations.len() > 1;
    let mut busy = Busy::new(windows.len(), several);
    let barriers = &stages.opened.definitions.thread_barriers;
    let mut threads = several.then(|| ProcessThreads::new(barriers));
    let (mut locks, mut epochs) = (Vec::new(), Vec::new());
    for (place, (timeline, number)) in (0..).zip(locations) {
        let sync = &program.timelines[timeline];
        let mut operations = std::mem::take(&mut scanned.operations[timeline]);
        let mut location = LocationScan {
            stages,
            timeline,
            number: number as u32,
            known,
            barriers,
            threads: threads.as_mut(),
            gaps: (place == 0).then(GapRecorder::default),
            sync,
            next: next_of(sync, number as u32, 0),
            times: stages.times(timeline, number),
            stack: Vec::new(),
            deeper: 0,
            operations: &mut operations,
            tree: &mut own.tree,
            busy: &mut busy,
            windows,
            scanned,
            sends: OpenRequests::default(),
            receives: OpenRequests::default(),
            epochs: EpochTracker::new(timeline, several),
            locks: None,
        };
        location.run(place, advance)?;
        let gaps = location.gaps.take();
        locks.extend(location.locks.take());
        epochs.extend(location.epochs.into_steps());
        scanned.operations[timeline] = operations;
        if let Some(gaps) = gaps {
            own.gaps = gaps.finish();
        }
    }
    let mut open = OpenEpochs::default();
    in_order(epochs).iter().for_each(|step| open.apply(step, &mut scanned.operations[step.timeline]));
    scanned.locks.extend(of_process(program.process_of(program.number(process)).0, locks));
    own.threads = threads.map(ProcessThreads::finish).unwrap_or_default();
    own.communication = busy.finish(windows, &mut scanned.computing);
    scanned.add_spans(&own, windows);
    Ok(own)
}

/// The first visited event of location `number` from `event` on.
fn next_of(sync: &SyncTimeline, number: u32, event: usize) -> usize {
    (event..sync.len()).find(|&event| sync.location(event) == number).unwrap_or(sync.len())
}

/// A region that has been entered.
#[derive(Clone, Copy)]
struct EnteredRegion {
    node: u32,
    /// Index of the innermost frame of MPI, this one included.
    mpi: Option<usize>,
    /// When it was entered; of frames of MPI only.
    enter: [i64; 2],
    operation: u32,
    region: RegionId,
    /// The visited event where it was entered, if that is one.
    visited: Option<u32>,
    /// Its visited end, if it completes an epoch.
    ended: Option<u32>,
    /// The window that it accesses, or of which it starts or completes an epoch.
    window: Option<WindowId>,
}

/// Scans one location.
struct LocationScan<'a, 'b> {
    stages: &'a StagedTrace<'a>,
    timeline: LocalTimeline,
    number: u32,
    known: &'a KnownRegions,
    /// Barriers of threads (ascending), where a timeline of its own is tied to others: no communication.
    barriers: &'a [RegionId],
    /// Of processes with several locations.
    threads: Option<&'b mut ProcessThreads<'a>>,
    /// Of the main location.
    gaps: Option<GapRecorder>,
    sync: &'a SyncTimeline,
    /// The next visited event of this location.
    next: usize,
    times: StageMapper<'a>,
    stack: Vec<EnteredRegion>,
    /// Regions entered that are nested too deeply to be kept.
    deeper: u64,
    operations: &'b mut Operations,
    tree: &'b mut CallTree,
    busy: &'b mut Busy,
    windows: &'a [Windows],
    scanned: &'b mut ScannedOperations,
    /// Incomplete sends: request -> visited event.
    sends: OpenRequests<u32>,
    /// Posted receives: request -> operation.
    receives: OpenRequests<u32>,
    epochs: EpochTracker,
    /// If it has any.
    locks: Option<Tracker>,
}

impl LocationScan<'_, '_> {
    /// Reads the events of the location, which has this `place` among those of its process.
    fn run(&mut self, place: u32, advance: Advance<'_>) -> Result<()> {
        let (archive, definitions) = (&self.stages.opened.archive, &self.stages.opened.definitions);
        let location = &self.stages.loaded.locations[self.timeline][self.number as usize];
        let id = definitions.locations[location.index].id;
        if let Some(threads) = &mut self.threads {
            threads.location(place, &location.summary.by_type);
        }
        let place = |error: Error| error.in_file(&archive.event_path(id)).at_location(id);
        let local = archive.local_definitions(id)?;
        self.locks = has_locks(&location.summary.by_type).then(|| Tracker::new(self.timeline, id));
        let mut counted = 0u64;
        let mut last = None;
        archive
            .scan_with(id, &local, |number, raw, event| {
                counted += 1;
                if counted == BLOCK {
                    advance(std::mem::take(&mut counted));
                }
                last = Some((number, raw));
                self.event(number, raw, &event)
            })
            .map_err(place)?;
        advance(counted);
        // What is still open ends with the last event.
        if let Some((number, raw)) = last {
            let end = self.times.map(number, raw);
            if let Some(threads) = &mut self.threads {
                threads.end(self.stack.last().map_or(CallTree::ROOT, |frame| frame.node), end);
            }
            while !self.stack.is_empty() {
                self.leave(end);
            }
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, number: EventNumber, raw: u64, event: &Event) -> Result<()> {
        if let Some(threads) = &mut self.threads {
            let node = self.stack.last().map_or(CallTree::ROOT, |frame| frame.node);
            threads.event((number, raw), event, &mut self.times, self.tree, node);
        }
        match event {
            Event::Enter(region) => {
                self.gap(number, raw);
                self.enter(number, raw, *region);
                self.boundary(number, raw)?;
            }
            Event::Leave(_) if self.deeper > 0 => {
                self.gap(number, raw);
                self.deeper -= 1;
            }
            Event::Leave(_) => {
                // It may begin an operation only here, which is no time between operations then.
                self.boundary(number, raw)?;
                self.gap(number, raw);
                let is_mpi = self.stack.len().checked_sub(1).is_some_and(|top| self.stack[top].mpi == Some(top));
                let time = if is_mpi { self.times.map(number, raw) } else { [0; 2] };
                self.leave(time);
            }
            Event::Other | Event::Thread(_) | Event::Parameter(_) | Event::RmaOpCompleteBlocking(..) => {}
            _ => self.communication(number, raw, event)?,
        }
        while self.next < self.sync.len() && self.sync.number(self.next) <= number {
            self.next = next_of(self.sync, self.number, self.next + 1);
        }
        Ok(())
    }

    /// Until this event the location was in its innermost region.
    fn gap(&mut self, number: EventNumber, raw: u64) {
        if self.gaps.is_none() {
            return;
        }
        let top = self.stack.last();
        let in_operation =
            top.and_then(|frame| frame.mpi).is_some_and(|mpi| self.stack[mpi].operation != Operations::NONE);
        let region = top.map_or(Gaps::OUTSIDE, |frame| frame.region.0);
        let time = self.times.map(number, raw);
        if let Some(gaps) = &mut self.gaps {
            gaps.until((!in_operation).then_some(region), time);
        }
    }

    fn enter(&mut self, number: EventNumber, raw: u64, region: RegionId) {
        if self.stack.len() >= DEPTH {
            self.deeper += 1;
            return;
        }
        let caller = self.stack.last();
        let node = self.tree.call(caller.map_or(CallTree::ROOT, |caller| caller.node), region.0);
        let (mpi, enter) = if self.known.mpi.contains(&region) {
            let time = self.times.map(number, raw);
            if let Some(locks) = &mut self.locks {
                locks.enter(time);
            }
            (Some(self.stack.len()), time)
        } else {
            (caller.and_then(|caller| caller.mpi), [0; 2])
        };
        let operation = Operations::NONE;
        self.stack.push(EnteredRegion {
            node,
            mpi,
            enter,
            operation,
            region,
            visited: None,
            ended: None,
            window: None,
        });
    }

    fn leave(&mut self, time: [i64; 2]) {
        let Some(frame) = self.stack.pop() else { return };
        if frame.mpi != Some(self.stack.len()) {
            return;
        }
        if let Some(gaps) =
            self.gaps.as_mut().filter(|gaps| gaps.is_first() && self.known.initialising.contains(&frame.region))
        {
            gaps.initialised(frame.region.0, frame.enter, time);
        }
        if let Some(locks) = &mut self.locks {
            locks.leave(time);
        }
        if frame.operation != Operations::NONE {
            self.operations.leave(frame.operation, time);
        }
        if let Some(window) = frame.window {
            let operation = frame.operation;
            let change = match self.known.calls.get(frame.region) {
                None => Some(EpochChange::Accessed),
                Some(SynchronisingCall::WinStart) => Some(EpochChange::Started(operation)),
                Some(SynchronisingCall::WinComplete) => {
                    Some(EpochChange::Completed { operation, entered: frame.visited, left: frame.ended })
                }
                Some(_) => None,
            };
            if let Some(change) = change {
                self.epochs.step(window, time, change, self.operations);
            }
        }
        // The outermost region of MPI.
        if self.stack.last().is_none_or(|caller| caller.mpi.is_none()) {
            self.busy.add(frame.enter, time, self.windows, &mut self.scanned.computing);
        }
    }

    /// The operation that the present event belongs to.
    fn operation(&mut self) -> Result<u32> {
        let Some(index) = self.stack.last().and_then(|frame| frame.mpi) else { return Ok(Operations::NONE) };
        let frame = &mut self.stack[index];
        if frame.operation == Operations::NONE {
            frame.operation = self.operations.enter(frame.node, frame.enter)?;
            if let Some(gaps) = &mut self.gaps {
                gaps.operation();
            }
        }
        Ok(frame.operation)
    }

    /// Whether the event with this number is a visited one that waits, or that others wait for.
    #[inline]
    fn is_visited(&self, number: EventNumber) -> bool {
        let (index, sync) = (self.next, self.sync);
        index < sync.len() && sync.number(index) == number && sync.kind(index) != SyncKind::Local
    }

    /// Where a region is entered or left, if that is a visited event: it belongs to the operation that begins or ends there.
    #[inline]
    fn boundary(&mut self, number: EventNumber, raw: u64) -> Result<()> {
        if !self.is_visited(number) {
            return Ok(());
        }
        let index = self.next;
        if self.stack.last().is_some_and(|frame| self.barriers.binary_search(&frame.region).is_ok()) {
            return Ok(());
        }
        let times = self.times.map(number, raw);
        for (stage, time) in self.operations.stages.iter_mut().zip(times) {
            stage.event[index] = time;
        }
        let operation = self.operation()?;
        self.operations.of_event[index] = operation;
        self.operations.partner[index] = operation;
        let Some(frame) = self.stack.last_mut() else { return Ok(()) };
        match (self.sync.kind(index), self.known.calls.get(frame.region)) {
            (SyncKind::Send | SyncKind::Fan, _) => frame.visited = Some(index as u32),
            // The end of an exposure epoch was started by nothing that waits.
            (_, Some(SynchronisingCall::WinWait)) => self.operations.partner[index] = Operations::NONE,
            (_, Some(SynchronisingCall::WinComplete)) => frame.ended = Some(index as u32),
            _ => {}
        }
        Ok(())
    }

    /// An access to a window, which is over when its call is.
    fn access(&mut self, number: EventNumber, raw: u64, window: WindowId) {
        match self.stack.last_mut().filter(|frame| frame.mpi.is_some()) {
            Some(frame) => frame.window = Some(window),
            None => {
                let time = self.times.map(number, raw);
                self.epochs.step(window, time, EpochChange::Accessed, self.operations);
            }
        }
    }

    /// A step of an epoch of a group on a window.
    fn group_sync(&mut self, window: WindowId) -> Result<()> {
        let Some(frame) = self.stack.last_mut() else { return Ok(()) };
        frame.window = Some(window);
        if self.known.calls.get(frame.region) == Some(SynchronisingCall::WinStart) {
            self.operation()?;
        }
        Ok(())
    }

    fn communication(&mut self, number: EventNumber, raw: u64, event: &Event) -> Result<()> {
        match event {
            Event::MpiIrecvRequest(request) => {
                let operation = self.operation()?;
                self.receives.insert(*request, operation);
            }
            Event::MpiIsendComplete(request) => {
                if let Some(send) = self.sends.remove(*request) {
                    self.operations.partner[send as usize] = self.operation()?;
                    if self.is_visited(number) {
                        self.operations.acknowledged.insert(send);
                    }
                }
            }
            Event::MpiRequestCancelled(request) => {
                self.sends.remove(*request);
                self.receives.remove(*request);
            }
            Event::RmaRequestLock(_) | Event::RmaAcquireLock(_) | Event::RmaReleaseLock(_) => {
                let (time, operation) = (self.times.map(number, raw), self.operation()?);
                if let Some(locks) = &mut self.locks {
                    locks.event(number, time, event, operation);
                }
            }
            Event::RmaGroupSync(sync) => self.group_sync(sync.window)?,
            Event::RmaPut(access) | Event::RmaGet(access) => self.access(number, raw, access.window),
            Event::RmaAtomic(access) => self.access(number, raw, access.window),
            _ => {}
        }
        if !self.is_visited(number) {
            return Ok(());
        }
        let (index, sync, times) = (self.next, self.sync, self.times.map(number, raw));
        for (stage, time) in self.operations.stages.iter_mut().zip(times) {
            stage.event[index] = time;
        }
        let operation = self.operation()?;
        self.scanned.without_region += u64::from(operation == Operations::NONE);
        self.operations.of_event[index] = operation;
        let posted = match event {
            Event::MpiIrecv(_, request) => self.receives.remove(*request),
            _ => None,
        };
        match event {
            Event::MpiIsend(_, request) => drop(self.sends.insert(*request, index as u32)),
            _ => self.operations.partner[index] = posted.unwrap_or(operation),
        }
        if let (Event::MpiSend(message) | Event::MpiIsend(message, _), SyncKind::Send) = (event, sync.kind(index)) {
            let program = &self.stages.loaded.program;
            let channel = &program.messages.outgoing[sync.link(index)];
            let process = |number| program.process_of(number);
            let (source, destination) = (process(program.number(channel.source)), process(channel.destination));
            let last = times[self.windows.len() - 1];
            self.scanned.traffic.add(source, destination, message.length, last);
        }
        Ok(())
    }
}
