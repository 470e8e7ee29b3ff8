//! Chrome trace events ("Trace Event Format"): complete events for regions, flow events for messages and other orders, metadata for names.

use super::ExportWindow;
use super::flows::{Flow, FlowEnd, Flows};
use super::lines::Lines;
use super::threads::ProcessFlows;
use super::times::{ExportedClock, ExportedTimes};
use crate::output::files::PendingFile;
use crate::pipeline::local_trace::LoadedLocation;
use crate::pipeline::open::TraceHandle;
use crate::report::{GENERATOR, escaped};
use clc_engine::comm::{AnalysisRank, Transport, agree, gather_values};
use clc_engine::matching::within::accelerators::AcceleratorCalls;
use clc_trace::format::plural;
use clc_trace::{Event, LocationId, RegionId, Result, Ticks};
use serde_json::json;
use std::collections::HashMap;

/// Writes regions and messages in `window` into `file`, which rank 0 has; there, returns the file and how many of each it has, in words. Processes are ranks,
/// threads are locations. Collective over the analysis ranks.
///
/// # Errors
/// The event files cannot be read, the file cannot be written, failures of the transport.
pub(crate) fn perfetto(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    times: &ExportedTimes<'_>,
    window: ExportWindow,
    file: Option<PendingFile>,
) -> Result<Option<(PendingFile, String)>> {
    let mut part = PartialExport::new(opened, times, window, Lines::new(file));
    let outcome = part.begin(transport.rank()).and_then(|()| part.locations());
    agree(transport, outcome)?;
    let mut flows = Flows { times, window, places: &part.places }.gathered(transport)?;
    let own = (part.regions, std::mem::take(&mut part.flows));
    let parts = gather_values(transport, AnalysisRank::FIRST, &own)?;
    // All regions before all arrows: which rank hosts what is not to be seen.
    let file = std::mem::replace(&mut part.lines, Lines::new(None)).joined(transport)?;
    let Some((parts, file)) = parts.zip(file) else { return agree(transport, Ok(None)) };
    let regions = parts.iter().map(|(regions, _)| regions).sum();
    flows.extend(parts.into_iter().flat_map(|(_, flows)| flows));
    flows.sort_unstable();
    part.lines = Lines::Written(file);
    let outcome = part.arrows(&flows);
    agree(transport, outcome)?;
    let Lines::Written(file) = part.lines else { return Ok(None) };
    let messages = flows.iter().filter(|flow| flow.operation.is_none()).count() as u64;
    let orders = flows.len() as u64 - messages;
    let (regions, messages) = (plural(regions, "region"), plural(messages, "message"));
    let contents = match orders {
        0 => format!("{regions} and {messages}"),
        orders => format!("{regions}, {messages} and {}", plural(orders, "other order")),
    };
    Ok(Some((file, contents)))
}

struct PartialExport<'a> {
    opened: &'a TraceHandle,
    times: &'a ExportedTimes<'a>,
    window: ExportWindow,
    /// Names of regions.
    names: HashMap<RegionId, &'a str>,
    /// Process and thread number by location.
    places: HashMap<LocationId, (u64, u64)>,
    /// One JSON object each: names and regions.
    lines: Lines,
    /// What comes before the next object.
    separator: &'static str,
    regions: u64,
    /// Arrows within processes.
    flows: Vec<Flow>,
}

impl<'a> PartialExport<'a> {
    fn new(opened: &'a TraceHandle, times: &'a ExportedTimes<'a>, window: ExportWindow, lines: Lines) -> Self {
        let definitions = &opened.definitions;
        let timelines = opened.timelines.all.iter().enumerate();
        let places = timelines.flat_map(|(process, timeline)| {
            timeline.locations.iter().map(move |&l| (definitions.locations[l].id, (process as u64, l as u64)))
        });
        PartialExport {
            opened,
            times,
            window,
            names: definitions.regions.iter().map(|region| (region.id, region.name.as_str())).collect(),
            places: places.collect(),
            lines,
            separator: ",\n",
            regions: 0,
            flows: Vec::new(),
        }
    }

    /// Adds what is before all objects, on rank 0.
    fn begin(&mut self, rank: AnalysisRank) -> Result<()> {
        if rank != AnalysisRank::FIRST {
            return Ok(());
        }
        self.separator = "";
        let head = json!({"generator": GENERATOR});
        self.lines.add(&format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{head},\"traceEvents\":[\n"))
    }

    /// Adds one object.
    fn line(&mut self, object: &serde_json::Value) -> Result<()> {
        self.lines.add(self.separator)?;
        self.separator = ",\n";
        self.lines.add(&escaped(object.to_string()))
    }

    /// Adds the arrows, and what is behind all objects.
    fn arrows(&mut self, flows: &[Flow]) -> Result<()> {
        for (place, flow) in (0..).zip(flows) {
            let [start, end] = self.flow(place, flow);
            self.line(&start)?;
            self.line(&end)?;
        }
        self.lines.add("\n]}\n")
    }

    /// Microseconds after the first event of the trace: the format's unit.
    fn microseconds(&self, time: i64) -> f64 {
        (Ticks(time) - self.times.origin()).seconds(self.opened.definitions.clock.resolution) * 1e6
    }

    fn locations(&mut self) -> Result<()> {
        let (opened, times) = (self.opened, self.times);
        let calls = AcceleratorCalls::of(&opened.definitions);
        for shared in times.loaded.program.shared_timelines() {
            let process = times.loaded.program.number(shared).place();
            let timeline = &opened.timelines.all[process];
            let node = opened.node_name(timeline).map(|node| format!(" on {node}")).unwrap_or_default();
            let name = match timeline.process {
                Some(rank) => format!("rank {rank}{node}"),
                None => format!("no MPI process{node}"),
            };
            let named = json!({"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}});
            let sorted = json!({"ph": "M", "name": "process_sort_index", "pid": process, "tid": 0, "args": {"sort_index": process}});
            self.line(&named)?;
            self.line(&sorted)?;
            let several = timeline.locations.len() > 1;
            let mut within = several.then(|| ProcessFlows::new(opened, &calls, process, &timeline.locations));
            for (place, (local, number)) in (0..).zip(times.loaded.locations_of(shared)) {
                let location = &times.loaded.locations[local][number];
                let definition = &opened.definitions.locations[location.index];
                let named = json!({"ph": "M", "name": "thread_name", "pid": process, "tid": location.index,
                    "args": {"name": definition.name}});
                self.line(&named)?;
                let within = within.as_mut().map(|within| (within, place));
                let regions = self.regions_of(location, times.location(local, number), within).map_err(|error| {
                    error.in_file(&opened.archive.event_path(definition.id)).at_location(definition.id)
                })?;
                self.write_regions((process, location.index), regions)?;
            }
            self.flows.extend(within.into_iter().flat_map(|within| within.flows(self.window)));
        }
        Ok(())
    }

    /// The regions of one location in the window, and when they begin and end, in the order of their beginning, outer ones first: tools nest them by that. Its steps with others of its process, among which it
    /// has a number, are added to those `within` it.
    fn regions_of(
        &self,
        location: &LoadedLocation,
        mut clock: ExportedClock<'_>,
        within: Option<(&mut ProcessFlows<'_>, u32)>,
    ) -> Result<Vec<(RegionId, i64, i64)>> {
        let id = self.opened.definitions.locations[location.index].id;
        let local = self.opened.archive.local_definitions(id)?;
        let mut stack: Vec<(RegionId, i64)> = Vec::new();
        let mut closed: Vec<(RegionId, i64, i64)> = Vec::new();
        let window = self.window;
        let mut last = window.from;
        let mut close = |region, from: i64, to: i64| {
            if to >= window.from && from <= window.to {
                closed.push((region, from.max(window.from), to.min(window.to)));
            }
        };
        let mut visit = |number, raw, event: &Event| {
            let now = clock.map(number, raw);
            last = now;
            match event {
                Event::Enter(region) => stack.push((*region, now)),
                Event::Leave(_) => {
                    if let Some((region, since)) = stack.pop() {
                        close(region, since, now);
                    }
                }
                _ => {}
            }
            now
        };
        match within {
            Some((within, place)) => within.read(self.opened, (id, place), &local, visit)?,
            None => {
                let scan = |number, raw, event: Event| {
                    visit(number, raw, &event);
                    Ok(())
                };
                self.opened.archive.scan_with(id, &local, scan)?;
            }
        }
        // Never left: as long as the location has events.
        while let Some((region, since)) = stack.pop() {
            close(region, since, last);
        }
        closed.sort_by_key(|&(region, from, to)| (from, std::cmp::Reverse(to), region));
        Ok(closed)
    }

    /// Adds regions of a process and thread.
    fn write_regions(&mut self, (process, thread): (usize, usize), regions: Vec<(RegionId, i64, i64)>) -> Result<()> {
        self.regions += regions.len() as u64;
        for (region, from, to) in regions {
            let name = self.names.get(&region).copied().filter(|name| !name.is_empty()).unwrap_or("unnamed region");
            let kind = if name.starts_with("MPI_") { "mpi" } else { "user" };
            let (ts, end) = (self.microseconds(from), self.microseconds(to));
            let line = json!({"ph": "X", "name": name, "cat": kind, "pid": process, "tid": thread,
                "ts": rounded(ts), "dur": rounded(end - ts)});
            self.line(&line)?;
        }
        Ok(())
    }

    /// The two ends of the `place`-th arrow.
    fn flow(&self, place: u64, flow: &Flow) -> [serde_json::Value; 2] {
        let (name, kind) = flow.operation.as_deref().map_or(("message", "message"), |operation| (operation, "order"));
        // One receive event is one message, which has the same number in every window. What waits may wait for several others.
        let id = match flow.operation {
            None => flow.to.place.1.wrapping_mul(1 << 32).wrapping_add(flow.to.number.0),
            Some(_) => place,
        };
        let FlowEnd { place: from, time: began, .. } = flow.from;
        let FlowEnd { place: to, time: ended, .. } = flow.to;
        let start = json!({"ph": "s", "name": name, "cat": kind, "id": id, "pid": from.0, "tid": from.1,
            "ts": rounded(self.microseconds(began))});
        let end = json!({"ph": "f", "bp": "e", "name": name, "cat": kind, "id": id, "pid": to.0, "tid": to.1,
            "ts": rounded(self.microseconds(ended))});
        [start, end]
    }
}

/// To picoseconds: a difference of two times keeps no digits that mean nothing.
fn rounded(microseconds: f64) -> f64 {
    (microseconds * 1e6).round() / 1e6
}
