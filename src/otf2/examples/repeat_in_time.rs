//! Makes a long trace of a short one: the same events again and again, each time later by the length of the trace, with its clock offsets likewise.
//! Attributes of events, local names and snapshots are left out.
//!
//!     cargo run --release -p clc-otf2 --example repeat_in_time -- TRACE TIMES OUTPUT
//!
//! `scripts/bench recordings` measures with such traces what simulated ones might not show.
#![allow(clippy::print_stdout)]

use clc_otf2::{
    ArchiveWriter, ClockOffset, CreateOptions, Error, EventRecord, Otf2Archive, Result, Stamp, UNDEFINED_TIME,
};
use std::collections::HashMap;
use std::path::Path;

/// Writes `trace`, `times` over, to `output`; returns the number of events.
///
/// # Errors
/// The trace is damaged or has no events; the output cannot be written.
pub(crate) fn repeat(trace: &Path, times: u64, output: &Path) -> Result<u64> {
    let archive = Otf2Archive::open(trace)?;
    let (definitions, _) = archive.read_definitions()?;
    let mut locations = Vec::new();
    for location in &definitions.locations {
        let events = archive.events(location.id)?;
        let offsets = events.local_definitions().clock_offsets.clone();
        let events = events.map(|event| event.map(|event| (event.time, event.record)));
        locations.push((location.id, offsets, events.collect::<Result<Vec<(u64, EventRecord)>>>()?));
    }
    let ends = || locations.iter().filter_map(|(.., events)| Some((events.first()?.0, events.last()?.0)));
    let (Some(first), Some(last)) = (ends().map(|ends| ends.0).min(), ends().map(|ends| ends.1).max()) else {
        return Err(Error::new("the trace has no events"));
    };
    // Offsets are measured before the first and after the last event.
    let measured = || locations.iter().flat_map(|(_, offsets, _)| offsets.iter().map(|offset| offset.time));
    let (first, last) = (measured().min().unwrap_or(first).min(first), measured().max().unwrap_or(last).max(last));
    let period = (last - first) / 100 * 101 + 1;

    let options = CreateOptions::default().fitting(&definitions);
    let target = ArchiveWriter::create(output, "traces", options)?;
    let mut counts = HashMap::new();
    for (id, offsets, events) in &locations {
        let mut writer = target.events(*id)?;
        for later in (0..times).map(|time| time * period) {
            for (time, record) in events {
                let record = match record {
                    EventRecord::BufferFlush { stop_time } if stop_time.0 != UNDEFINED_TIME => {
                        &EventRecord::BufferFlush { stop_time: Stamp(stop_time.0 + later) }
                    }
                    record => record,
                };
                writer.record(time + later, record)?;
            }
        }
        counts.insert(*id, writer.finish()?);
        let offsets = (0..times).flat_map(|time| {
            offsets.iter().map(move |offset| ClockOffset { time: offset.time + time * period, ..*offset })
        });
        target.local_definitions(*id, &offsets.collect::<Vec<_>>())?;
    }
    target.finish(&definitions, &counts)?;
    Ok(counts.values().sum())
}

#[allow(dead_code)] // the tests only want the function
fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [trace, times, output] = &arguments[..] else { return Err(Error::new("usage: TRACE TIMES OUTPUT")) };
    let times = times.parse().map_err(|_| Error::new("TIMES is a number"))?;
    println!("{} events", repeat(Path::new(trace), times, Path::new(output))?);
    Ok(())
}
