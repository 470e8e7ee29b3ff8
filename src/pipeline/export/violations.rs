//! Violations as comma-separated values, one line each.

use super::{ExportWindow, Exported, ExportedTimes};
use crate::pipeline::open::TraceHandle;
use crate::report::CsvTable;
use clc_engine::comm::{AnalysisRank, Transport, gather_values};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::replay::bounds::bounds;
use clc_engine::replay::partners::senders;
use clc_engine::replay::program::NO_LOWER_BOUND;
use clc_trace::format::plural;
use clc_trace::{EventNumber, LocationId, Result, Ticks};
use serde::{Deserialize, Serialize};

/// The first line.
pub(crate) const HEAD: &str = "operation,sender_rank,sender_location,sender_event,sender_seconds,\
receiver_rank,receiver_location,receiver_event,receiver_seconds,too_early_ticks,too_early_seconds";

/// Where a line goes: location and event of the receive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ViolationLine {
    receiver: (u32, LocationId, EventNumber),
    message: bool,
    fields: Vec<String>,
}

/// Every message, and every end of a collective operation, that is too early and whose receive is in `window`, in the order of
/// receiving process, location and event; on rank 0. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn violations(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    exported: &ExportedTimes<'_>,
    window: ExportWindow,
) -> Result<Option<Exported>> {
    let program = &exported.loaded.program;
    let resolution = opened.definitions.clock.resolution;
    let origin = exported.origin();
    let times = exported.visited();
    let bounds = bounds(transport, program, &times)?;
    let wanted: Vec<Vec<u32>> = program
        .messages
        .incoming
        .iter()
        .map(|channel| {
            let local = channel.destination;
            let early = |event: usize| times[local][event] < bounds[local][event] && window.holds(times[local][event]);
            let found = channel.receives.each().enumerate().filter(|(_, event)| early(*event as usize));
            found.map(|(k, _)| k as u32).collect()
        })
        .collect();
    let sends = senders(transport, program, &times, &wanted)?;

    let seconds = |time: i64| (Ticks(time) - origin).seconds(resolution);
    let line = |operation: &str, sender: [String; 4], local: LocalTimeline, event: usize| {
        let timeline = &program.timelines[local];
        let process = program.process_of(program.number(local)).0;
        let location = program.locations[local][timeline.location(event) as usize];
        let (number, time) = (timeline.number(event), times[local][event]);
        let early = bounds[local][event] - time;
        let mut fields = vec![operation.to_owned()];
        fields.extend(sender);
        fields.extend([
            process.to_string(),
            location.to_string(),
            number.to_string(),
            format!("{:.12}", seconds(time)),
        ]);
        fields.extend([early.to_string(), format!("{:.12}", Ticks(early).seconds(resolution))]);
        ViolationLine { receiver: (process, location, number), message: operation == "message", fields }
    };
    let mut lines = Vec::new();
    for ((channel, wanted), sends) in program.messages.incoming.iter().zip(&wanted).zip(sends) {
        for (&k, send) in wanted.iter().zip(sends) {
            let time = format!("{:.12}", seconds(send.time));
            let sender = [send.process.to_string(), send.location.to_string(), send.number.to_string(), time];
            let event = channel.receives.at(k as usize) as usize;
            let what = match channel.trust.op() {
                Some(op) => op.name(),
                None if channel.is_certain() => "message",
                None => "implied order",
            };
            lines.push(line(what, sender, channel.destination, event));
        }
    }
    for comm in &program.collectives.comms {
        for member in &comm.members {
            let local = member.ended_on;
            for (instance, end) in comm.instances.iter().zip(member.ends.each()) {
                let event = end as usize;
                let (time, bound) = (times[local][event], bounds[local][event]);
                if bound != NO_LOWER_BOUND && time < bound && window.holds(time) {
                    lines.push(line(instance.op.name(), Default::default(), local, event));
                }
            }
        }
    }
    let Some(parts) = gather_values(transport, AnalysisRank::FIRST, &lines)? else { return Ok(None) };
    let mut lines: Vec<ViolationLine> = parts.into_iter().flatten().collect();
    lines.sort();
    let mut records = CsvTable::new(HEAD.split(','));
    lines.iter().for_each(|line| records.add(&line.fields));
    let text = records.into_text();
    let messages = lines.iter().filter(|line| line.message).count() as u64;
    let contents = format!("{}, {} of them", plural(lines.len() as u64, "violation"), plural(messages, "message"));
    Ok(Some(Exported { text, contents }))
}
