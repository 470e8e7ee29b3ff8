//! Violations as comma-separated values, one line each.

use super::{ExportWindow, ExportedTimes};
use crate::output::files::PendingFile;
use crate::pipeline::open::TraceHandle;
use crate::report::CsvTable;
use clc_engine::comm::{AnalysisRank, Transport, agree, gather_owned};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::visited_times::TimelineTimes;
use clc_engine::replay::bounds::bounds;
use clc_engine::replay::partners::senders;
use clc_engine::replay::program::NO_LOWER_BOUND;
use clc_trace::format::plural;
use clc_trace::{EventNumber, LocationId, Result, Ticks};
use serde::{Deserialize, Serialize};

/// The first line.
pub(crate) const HEAD: &str = "operation,sender_rank,sender_location,sender_event,sender_seconds,\
receiver_rank,receiver_location,receiver_event,receiver_seconds,too_early_ticks,too_early_seconds";

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ViolationRow {
    /// Process, location and event of the receive.
    receiver: (u32, LocationId, EventNumber),
    message: bool,
    operation: String,
    /// Process, location, event and time of what it waits for; none of collective operations.
    sender: Option<(u32, LocationId, EventNumber, i64)>,
    /// When it was received.
    time: i64,
    /// By how many ticks that is too early.
    early: i64,
}

impl ViolationRow {
    /// The line of the table; `origin` is the time of the first event.
    fn fields(&self, origin: Ticks, resolution: u64) -> Vec<String> {
        let seconds = |time: i64| format!("{:.12}", (Ticks(time) - origin).seconds(resolution));
        let mut fields = vec![self.operation.clone()];
        match self.sender {
            Some((process, location, number, time)) => {
                fields.extend([process.to_string(), location.to_string(), number.to_string(), seconds(time)]);
            }
            None => fields.extend([const { String::new() }; 4]),
        }
        let (process, location, number) = self.receiver;
        fields.extend([process.to_string(), location.to_string(), number.to_string(), seconds(self.time)]);
        fields.extend([self.early.to_string(), format!("{:.12}", Ticks(self.early).seconds(resolution))]);
        fields
    }
}

/// Lines of text that are written at once.
const LINES: usize = 4096;

/// Writes into `file`, which rank 0 has, every message, and every end of a collective operation, that is too early and whose receive is in `window`, in the order of
/// receiving process, location and event; there, returns the file and how many there are, in words. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn violations(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    exported: &ExportedTimes<'_>,
    window: ExportWindow,
    file: Option<PendingFile>,
) -> Result<Option<(PendingFile, String)>> {
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
            let time = |event: usize| times[local].at(event as u32);
            let early = |event: usize| time(event) < bounds[local][event] && window.holds(time(event));
            let found = channel.receives.each().enumerate().filter(|(_, event)| early(*event as usize));
            found.map(|(k, _)| k as u32).collect()
        })
        .collect();
    let sends = senders(transport, program, &times, &wanted)?;

    let violation = |operation: &str, sender, local: LocalTimeline, event: usize| {
        let timeline = &program.timelines[local];
        let process = program.process_of(program.number(local)).0;
        let location = program.locations[local][timeline.location(event) as usize];
        let (number, time) = (timeline.number(event), times[local].at(event as u32));
        let early = bounds[local][event] - time;
        let (receiver, message) = ((process, location, number), operation == "message");
        ViolationRow { receiver, message, operation: operation.to_owned(), sender, time, early }
    };
    let mut lines = Vec::new();
    for ((channel, wanted), sends) in program.messages.incoming.iter().zip(&wanted).zip(sends) {
        for (&k, send) in wanted.iter().zip(sends) {
            let sender = Some((program.process_of(send.process).0, send.location, send.number, send.time));
            let event = channel.receives.at(k as usize) as usize;
            let what = match channel.trust.op() {
                Some(op) => op.name(),
                None if channel.is_certain() => "message",
                None => "implied order",
            };
            lines.push(violation(what, sender, channel.destination, event));
        }
    }
    for comm in &program.collectives.comms {
        for member in &comm.members {
            let local = member.ended_on;
            for (instance, end) in comm.instances.iter().zip(member.ends.each()) {
                let event = end as usize;
                let (time, bound) = (times[local].at(event as u32), bounds[local][event]);
                if bound != NO_LOWER_BOUND && time < bound && window.holds(time) {
                    lines.push(violation(instance.op.name(), None, local, event));
                }
            }
        }
    }
    let Some(parts) = gather_owned(transport, AnalysisRank::FIRST, lines)? else { return agree(transport, Ok(None)) };
    let mut lines: Vec<ViolationRow> = parts.into_iter().flatten().collect();
    let fields = |line: &ViolationRow| line.fields(origin, resolution);
    let place = |line: &ViolationRow| (line.receiver, line.message);
    lines.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| fields(a).cmp(&fields(b))));
    let messages = lines.iter().filter(|line| line.message).count() as u64;
    let contents = format!("{}, {} of them", plural(lines.len() as u64, "violation"), plural(messages, "message"));
    let written = file.map(|mut file| {
        let mut records = CsvTable::new(HEAD.split(','));
        for chunk in lines.chunks(LINES) {
            chunk.iter().for_each(|line| records.add(fields(line)));
            file.add(records.take_text().as_bytes())?;
        }
        // Without violations it is the heading alone.
        file.add(records.take_text().as_bytes())?;
        Ok((file, contents))
    });
    agree(transport, written.transpose())
}
