//! What a process and the streams of its accelerators do with each other.
//!
//! | from | to |
//! | --- | --- |
//! | a call that launches a kernel, or copies, is entered | that work begins on its stream |
//! | work of a stream ends | a call that has waited for it is left |
//!
//! A stream works in the order in which work was issued. So what is issued is paired with what has been done one by one, wherever the trace leaves no
//! choice: the calls name their streams, or kernels and calls name the call site, or there is only one stream; all calls are of one location, and there are as many
//! of them as there is work. Whatever is not certain is left out, and counted with the reason.

mod calls;

pub use calls::AcceleratorCalls;

use crate::matching::channels::Trust;
use crate::matching::sync::EventCoordinates;
use crate::matching::within::steps::{StepOrders, Unpaired};
use calls::AcceleratorCall;
use clc_trace::{
    AcceleratorAttributes, AcceleratorReference, Definitions, Event, EventNumber, LocationGroupId, LocationId,
    LocationKind, RegionId, WindowId,
};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A kernel or a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Kernel,
    Copy,
}

/// A call that issues work.
#[derive(Debug, Clone, Copy)]
struct Issue {
    kind: Kind,
    location: u32,
    number: EventNumber,
    /// The step at which it is entered, and left if it is blocked until then.
    entered: usize,
    left: Option<usize>,
    callsite: Option<u64>,
    stream: Option<u32>,
}

/// What a stream does.
#[derive(Debug, Clone, Copy)]
struct StreamWork {
    kind: Kind,
    stream: u32,
    begin: usize,
    end: Option<usize>,
    callsite: Option<u64>,
    to_host: bool,
}

/// Calls that issue work, and the places of that work.
type IssueAndWork<'a> = (Vec<&'a Issue>, Vec<usize>);

/// For each location that issues and each stream: the numbers of the calls, and the steps at which their work ends.
type IssuedWork = BTreeMap<(u32, u32), Vec<(EventNumber, Option<usize>)>>;

/// A call that waits.
#[derive(Debug, Clone, Copy)]
struct StreamWait {
    region: RegionId,
    location: u32,
    entered: EventNumber,
    left: usize,
    target: WaitTarget,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy)]
enum WaitTarget {
    /// All streams of the device.
    Device,
    /// A stream, if the trace names it.
    Stream(Option<u32>),
    /// An event, by its address.
    Event(u64),
}

/// An event is put into a stream, if the trace names it.
#[derive(Debug, Clone, Copy)]
struct PlacedEvent {
    location: u32,
    entered: EventNumber,
    stream: Option<u32>,
}

/// A call of the present location that is open.
#[derive(Debug, Clone, Copy)]
struct OpenAcceleratorCall {
    region: RegionId,
    call: AcceleratorCall,
    entered: EventNumber,
    stream: Option<u32>,
    event: Option<u64>,
    /// Its place among all [`Issue`]s.
    issue: Option<usize>,
    /// Another one that waits was within it.
    waited: bool,
}

/// What calls and streams of a process do. Locations are read one after the other.
#[derive(Debug)]
pub struct ProcessAccelerators<'a> {
    calls: &'a AcceleratorCalls,
    /// By location: the accelerator, if it is a stream.
    groups: Vec<Option<LocationGroupId>>,
    place_of: HashMap<LocationId, u32>,
    /// The location that is read, and what is open there.
    location: u32,
    open: Vec<OpenAcceleratorCall>,
    /// On a stream: how many regions are open, the kernel, and the copies by window and matching id.
    depth: u32,
    kernel: Option<usize>,
    copies: HashMap<(WindowId, u64), VecDeque<usize>>,
    issues: Vec<Issue>,
    works: Vec<StreamWork>,
    waits: Vec<StreamWait>,
    /// By address, in the order in which they were read.
    events: HashMap<u64, Vec<PlacedEvent>>,
}

impl<'a> ProcessAccelerators<'a> {
    /// Nothing yet; `locations` are those of the process. `None` if none of them is a stream.
    pub fn new(
        calls: &'a AcceleratorCalls,
        definitions: &Definitions,
        locations: &[usize],
    ) -> Option<ProcessAccelerators<'a>> {
        let location = |&index: &usize| &definitions.locations[index];
        let group = |index: &usize| {
            let of = location(index);
            (of.kind == LocationKind::AcceleratorStream).then_some(of.group)
        };
        let groups: Vec<Option<LocationGroupId>> = locations.iter().map(group).collect();
        groups.iter().any(Option::is_some).then(|| ProcessAccelerators {
            calls,
            groups,
            place_of: locations.iter().map(|index| location(index).id).zip(0..).collect(),
            location: 0,
            open: Vec::new(),
            depth: 0,
            kernel: None,
            copies: HashMap::new(),
            issues: Vec::new(),
            works: Vec::new(),
            waits: Vec::new(),
            events: HashMap::new(),
        })
    }

    /// The attributes by which calls name what they refer to.
    pub(crate) fn attributes(&self) -> &'a AcceleratorAttributes {
        self.calls.attributes()
    }

    /// Whether a location is a stream.
    pub(super) fn is_stream(&self, location: u32) -> bool {
        self.groups[location as usize].is_some()
    }

    /// Whether an event of a location matters.
    #[inline]
    pub(crate) fn takes(&self, location: u32, event: &Event) -> bool {
        match event {
            Event::Enter(region) | Event::Leave(region) => {
                self.is_stream(location) || self.calls.regions.contains_key(region)
            }
            Event::Parameter(parameter) => self.calls.callsites.binary_search(&parameter.parameter).is_ok(),
            Event::RmaPut(_) | Event::RmaGet(_) | Event::RmaOpCompleteBlocking(..) => self.is_stream(location),
            _ => false,
        }
    }

    /// Reads an event; those of a location come in their order, one location after the other. `step` makes it a step, by which pairs name it.
    pub(super) fn read(
        &mut self,
        at: EventCoordinates,
        event: &Event,
        refers: AcceleratorReference,
        mut step: impl FnMut() -> usize,
    ) {
        if std::mem::replace(&mut self.location, at.location) != at.location {
            self.open.clear();
            self.copies.clear();
            (self.depth, self.kernel) = (0, None);
        }
        if self.is_stream(at.location) {
            return self.read_stream(at, event, step);
        }
        // A stream of another process, or none at all, is not known.
        let stream =
            refers.stream.and_then(|id| self.place_of.get(&id).copied()).filter(|&place| self.is_stream(place));
        match event {
            Event::Enter(region) => {
                let Some(&call) = self.calls.regions.get(region) else { return };
                let kind = match call {
                    AcceleratorCall::Launch => Some(Kind::Kernel),
                    AcceleratorCall::Copy { .. } => Some(Kind::Copy),
                    _ => None,
                };
                let issue = kind.map(|kind| {
                    let (location, number) = (at.location, at.number);
                    let entered = step();
                    self.issues.push(Issue { kind, location, number, entered, left: None, callsite: None, stream });
                    self.issues.len() - 1
                });
                self.open.push(OpenAcceleratorCall {
                    region: *region,
                    call,
                    entered: at.number,
                    stream,
                    event: refers.event,
                    issue,
                    waited: false,
                });
            }
            Event::Leave(region) => {
                if self.open.last().is_none_or(|open| open.region != *region) {
                    return;
                }
                let Some(open) = self.open.pop() else { return };
                let stream = stream.or(open.stream);
                if let Some(issue) = open.issue {
                    self.issues[issue].stream = stream;
                    if open.call == (AcceleratorCall::Copy { blocks: true }) {
                        self.issues[issue].left = Some(step());
                    }
                }
                let (location, entered, event) = (at.location, open.entered, refers.event.or(open.event));
                let target = match open.call {
                    AcceleratorCall::WaitForDevice => WaitTarget::Device,
                    AcceleratorCall::WaitForStream => WaitTarget::Stream(stream),
                    AcceleratorCall::WaitForEvent => event.map_or(WaitTarget::Stream(None), WaitTarget::Event),
                    AcceleratorCall::PlaceEvent => {
                        let placed = PlacedEvent { location, entered, stream };
                        event.iter().for_each(|event| self.events.entry(*event).or_default().push(placed));
                        return;
                    }
                    AcceleratorCall::Launch | AcceleratorCall::Copy { .. } | AcceleratorCall::Idle => return,
                };
                if let Some(outer) = self.open.last_mut() {
                    outer.waited = true;
                }
                // What an inner call has waited for is said by that one.
                if stream.is_some() || !open.waited {
                    self.waits.push(StreamWait { region: open.region, location, entered, left: step(), target });
                }
            }
            Event::Parameter(parameter) => {
                // It belongs to the call that was entered last.
                if let Some(issue) = self.open.last().and_then(|open| open.issue) {
                    self.issues[issue].callsite.get_or_insert(parameter.value);
                }
            }
            _ => {}
        }
    }

    fn read_stream(&mut self, at: EventCoordinates, event: &Event, mut step: impl FnMut() -> usize) {
        let stream = at.location;
        let idle =
            |region: &RegionId| self.calls.regions.get(region).is_some_and(|call| *call == AcceleratorCall::Idle);
        match event {
            Event::Enter(region) | Event::Leave(region) if idle(region) => {}
            Event::Enter(_) => {
                self.depth += 1;
                if self.depth == 1 {
                    self.kernel = Some(self.works.len());
                    let (kind, begin) = (Kind::Kernel, step());
                    self.works.push(StreamWork { kind, stream, begin, end: None, callsite: None, to_host: false });
                }
            }
            Event::Leave(_) => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0
                    && let Some(kernel) = self.kernel.take()
                {
                    self.works[kernel].end = Some(step());
                }
            }
            Event::Parameter(parameter) if self.depth == 1 => {
                if let Some(kernel) = self.kernel {
                    self.works[kernel].callsite.get_or_insert(parameter.value);
                }
            }
            Event::RmaPut(transfer) | Event::RmaGet(transfer) => {
                let open = self.copies.entry((transfer.window, transfer.matching)).or_default();
                open.push_back(self.works.len());
                let to_host = matches!(event, Event::RmaPut(_));
                let (kind, begin) = (Kind::Copy, step());
                self.works.push(StreamWork { kind, stream, begin, end: None, callsite: None, to_host });
            }
            Event::RmaOpCompleteBlocking(window, matching) => {
                if let Some(work) = self.copies.get_mut(&(*window, *matching)).and_then(VecDeque::pop_front) {
                    self.works[work].end = Some(step());
                }
            }
            _ => {}
        }
    }

    /// Finds the pairs.
    pub(super) fn find(&self, found: &mut StepOrders<'_>) {
        let mut done = IssuedWork::new();
        let mut paired = vec![false; self.works.len()];
        for kind in [Kind::Kernel, Kind::Copy] {
            let issues: Vec<&Issue> = self.issues.iter().filter(|issue| issue.kind == kind).collect();
            let named = issues.iter().all(|issue| issue.stream.is_some());
            let mut classes: BTreeMap<(Option<u32>, Option<u64>), IssueAndWork<'_>> = BTreeMap::new();
            for issue in issues {
                classes.entry((issue.stream.filter(|_| named), issue.callsite)).or_default().0.push(issue);
            }
            for (place, work) in self.works.iter().enumerate().filter(|(_, work)| work.kind == kind) {
                classes.entry((Some(work.stream).filter(|_| named), work.callsite)).or_default().1.push(place);
            }
            for (issues, works) in classes.into_values() {
                let why = if issues.len() != works.len() {
                    Some(Unpaired::Numbers)
                } else if works.iter().any(|&work| self.works[work].stream != self.works[works[0]].stream) {
                    Some(Unpaired::Streams)
                } else if issues.iter().any(|issue| issue.location != issues[0].location) {
                    Some(Unpaired::Locations)
                } else {
                    None
                };
                if let Some(why) = why {
                    // Calls whose work was not recorded have nothing to be compared with.
                    found.leave(Trust::Issued, why, works.len() as u64);
                    continue;
                }
                for (issue, place) in issues.into_iter().zip(works) {
                    let work = &self.works[place];
                    paired[place] = true;
                    found.pair(Trust::Issued, issue.entered, work.begin);
                    // A copy to a device may be complete later than its call, which has only read what is copied.
                    if let (Some(end), Some(left), true) = (work.end, issue.left, work.to_host) {
                        found.pair(Trust::Awaited, end, left);
                    }
                    done.entry((issue.location, work.stream)).or_default().push((issue.number, work.end));
                }
            }
        }
        done.values_mut().for_each(|list| list.sort_unstable());
        self.find_waits(&done, &paired, found);
    }

    /// Where the event that a call waits for was put into a stream last, if only the location of the call has done that: of several, nothing tells which was the last.
    fn placed(&self, event: u64, wait: &StreamWait) -> Option<PlacedEvent> {
        let all = self.events.get(&event)?;
        let own = all.iter().all(|placed| placed.location == wait.location);
        all.iter().rev().find(|placed| own && placed.entered < wait.entered).copied()
    }

    /// Who has waited for what was issued before by the same location.
    fn find_waits(&self, done: &IssuedWork, paired: &[bool], found: &mut StepOrders<'_>) {
        let mut unknown = vec![false; self.groups.len()];
        for (work, paired) in self.works.iter().zip(paired) {
            unknown[work.stream as usize] |= !paired;
        }
        let mut groups: Vec<LocationGroupId> = self.groups.iter().flatten().copied().collect();
        groups.sort_unstable();
        groups.dedup();
        if self.works.is_empty() {
            return;
        }
        for wait in &self.waits {
            let device = (0..).zip(&self.groups).filter(|(_, group)| group.is_some()).map(|(location, _)| location);
            // Which streams, and before which event of the location that work was issued.
            let waited: Result<(Vec<u32>, EventNumber), Unpaired> = match wait.target {
                WaitTarget::Stream(Some(stream)) => Ok((vec![stream], wait.entered)),
                WaitTarget::Stream(None) => Err(Unpaired::UnknownStream(wait.region)),
                WaitTarget::Device if groups.len() > 1 => Err(Unpaired::UnknownDevice(wait.region)),
                WaitTarget::Device => Ok((device.collect(), wait.entered)),
                WaitTarget::Event(event) => match self.placed(event, wait) {
                    Some(PlacedEvent { stream: Some(stream), entered, .. }) => Ok((vec![stream], entered)),
                    _ => Err(Unpaired::UnknownEvent(wait.region)),
                },
            };
            let (streams, until) = match waited {
                Ok(waited) => waited,
                Err(why) => {
                    found.leave(Trust::Awaited, why, 1);
                    continue;
                }
            };
            let mut known = false;
            for &stream in &streams {
                let Some(list) = done.get(&(wait.location, stream)) else { continue };
                let before = list.partition_point(|(number, _)| *number < until);
                if let Some(end) = list[..before].iter().rev().find_map(|(_, end)| *end) {
                    found.pair(Trust::Awaited, end, wait.left);
                    known = true;
                }
            }
            if !known && streams.iter().any(|&stream| unknown[stream as usize]) {
                found.leave(Trust::Awaited, Unpaired::UnknownWork(wait.region), 1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
