//! Chrome trace events ("Trace Event Format"): complete events for regions, flow events for messages, metadata for names.

use super::times::{ExportedClock, ExportedTimes};
use super::{ExportWindow, Exported};
use crate::pipeline::local_trace::LoadedLocation;
use crate::pipeline::open::TraceHandle;
use crate::report::{GENERATOR, escaped};
use clc_engine::comm::{AnalysisRank, Transport, agree, gather_values};
use clc_engine::replay::partners::senders;
use clc_trace::format::plural;
use clc_trace::{Event, LocationId, RegionId, Result, Ticks};
use serde_json::json;
use std::collections::HashMap;

/// Regions and messages in `window`, on rank 0. Processes are ranks, threads are locations. Collective over the analysis ranks.
///
/// # Errors
/// The event files cannot be read, failures of the transport.
pub(crate) fn perfetto(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    times: &ExportedTimes<'_>,
    window: ExportWindow,
) -> Result<Option<Exported>> {
    let mut part = PartialExport::new(opened, times, window);
    let outcome = part.locations();
    agree(transport, outcome)?;
    part.messages(transport)?;
    let PartialExport { lines, flows, regions, messages, .. } = part;
    let parts = gather_values(transport, AnalysisRank::FIRST, &(lines, flows, regions, messages))?;
    Ok(parts.map(|parts| {
        let (mut of_regions, mut of_messages) = (0, 0);
        // All regions before all messages: which rank hosts what is not to be seen.
        let (mut all, mut arrows) = (Vec::new(), Vec::new());
        for (lines, flows, regions, messages) in parts {
            all.extend(lines);
            arrows.extend(flows);
            of_regions += regions;
            of_messages += messages;
        }
        all.append(&mut arrows);
        let text = escaped(format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"generator\":\"{GENERATOR}\"}},\"traceEvents\":[\n{}\n]}}\n",
            all.join(",\n")
        ));
        Exported { text, contents: format!("{} and {}", plural(of_regions, "region"), plural(of_messages, "message")) }
    }))
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
    lines: Vec<String>,
    /// One JSON object each: ends of messages.
    flows: Vec<String>,
    regions: u64,
    messages: u64,
}

impl<'a> PartialExport<'a> {
    fn new(opened: &'a TraceHandle, times: &'a ExportedTimes<'a>, window: ExportWindow) -> Self {
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
            lines: Vec::new(),
            flows: Vec::new(),
            regions: 0,
            messages: 0,
        }
    }

    /// Microseconds after the first event of the trace: the format's unit.
    fn microseconds(&self, time: i64) -> f64 {
        (Ticks(time) - self.times.origin()).seconds(self.opened.definitions.clock.resolution) * 1e6
    }

    fn locations(&mut self) -> Result<()> {
        let (opened, times) = (self.opened, self.times);
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
            self.lines.extend([named.to_string(), sorted.to_string()]);
            for (local, number) in times.loaded.locations_of(shared) {
                let location = &times.loaded.locations[local][number];
                let definition = &opened.definitions.locations[location.index];
                let named = json!({"ph": "M", "name": "thread_name", "pid": process, "tid": location.index,
                    "args": {"name": definition.name}});
                self.lines.push(named.to_string());
                self.location(process, location, times.location(local, number)).map_err(|error| {
                    error.in_file(&opened.archive.event_path(definition.id)).at_location(definition.id)
                })?;
            }
        }
        Ok(())
    }

    /// The regions of one location.
    fn location(&mut self, process: usize, location: &LoadedLocation, mut clock: ExportedClock<'_>) -> Result<()> {
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
        self.opened.archive.scan_with(id, &local, |number, raw, event| {
            let now = clock.map(number, raw);
            last = now;
            match event {
                Event::Enter(region) => stack.push((region, now)),
                Event::Leave(_) => {
                    if let Some((region, since)) = stack.pop() {
                        close(region, since, now);
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        // Never left: as long as the location has events.
        while let Some((region, since)) = stack.pop() {
            close(region, since, last);
        }
        // In the order of their beginning, outer ones first: tools nest them by that.
        closed.sort_by_key(|&(region, from, to)| (from, std::cmp::Reverse(to), region));
        self.regions += closed.len() as u64;
        for (region, from, to) in closed {
            let name = self.names.get(&region).copied().filter(|name| !name.is_empty()).unwrap_or("unnamed region");
            let kind = if name.starts_with("MPI_") { "mpi" } else { "user" };
            let (ts, end) = (self.microseconds(from), self.microseconds(to));
            let line = json!({"ph": "X", "name": name, "cat": kind, "pid": process, "tid": location.index,
                "ts": rounded(ts), "dur": rounded(end - ts)});
            self.lines.push(line.to_string());
        }
        Ok(())
    }

    /// An arrow for each message of which both ends are in the window; the receiver's rank writes both.
    fn messages(&mut self, transport: &mut dyn Transport) -> Result<()> {
        let program = &self.times.loaded.program;
        let times = self.times.visited();
        let wanted: Vec<Vec<u32>> = program
            .messages
            .incoming
            .iter()
            .map(|channel| {
                let receiver = &times[channel.destination];
                let within = channel
                    .receives
                    .each()
                    .enumerate()
                    .filter(|(_, event)| channel.is_certain() && self.window.holds(receiver[*event as usize]));
                within.map(|(k, _)| k as u32).collect()
            })
            .collect();
        let sends = senders(transport, program, &times, &wanted)?;
        let mut flows = Vec::new();
        for ((channel, wanted), sends) in program.messages.incoming.iter().zip(&wanted).zip(sends) {
            let local = channel.destination;
            let timeline = &program.timelines[local];
            for (&k, send) in wanted.iter().zip(sends) {
                if self.window.holds(send.time) {
                    let event = channel.receives.at(k as usize) as usize;
                    let receiver = program.locations[local][timeline.location(event) as usize];
                    flows.push((send, receiver, timeline.number(event), times[local][event]));
                }
            }
        }
        flows.sort_by_key(|(_, receiver, number, _)| (self.places.get(receiver).copied(), *number));
        self.messages += flows.len() as u64;
        for (send, receiver, number, time) in flows {
            let (Some(&from), Some(&to)) = (self.places.get(&send.location), self.places.get(&receiver)) else {
                continue;
            };
            // One receive event is one message: unique, and the same for any number of ranks.
            let id = to.1.wrapping_mul(1 << 32).wrapping_add(number.0);
            let start = json!({"ph": "s", "name": "message", "cat": "message", "id": id, "pid": from.0, "tid": from.1,
                "ts": rounded(self.microseconds(send.time))});
            let end = json!({"ph": "f", "bp": "e", "name": "message", "cat": "message", "id": id, "pid": to.0, "tid": to.1,
                "ts": rounded(self.microseconds(time))});
            self.flows.extend([start.to_string(), end.to_string()]);
        }
        Ok(())
    }
}

/// To picoseconds: a difference of two times keeps no digits that mean nothing.
fn rounded(microseconds: f64) -> f64 {
    (microseconds * 1e6).round() / 1e6
}
