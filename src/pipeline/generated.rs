//! Writing traces that are made, not corrected: events from a simulation, and the truth beside them.

use crate::output::truth::make_truth_directory;
use clc_archive::Format;
use clc_archive::native::{NativeEventWriter, NativeWriter, TraceHeader};
use clc_archive::truth::{self, TruthWriter};
use clc_otf2::{ArchiveWriter, CreateOptions, EventFileWriter};
use clc_simulate::{EventSink, RunSummary, Scenario};
use clc_trace::{ClockOffset, Definitions, Error, Event, Result, Ticks};
use std::path::Path;

/// Archive name of a simulated trace, as Score-P calls its own.
const NAME: &str = "traces";
/// Chunk size of event files: small, since there can be many locations.
const EVENT_CHUNK: u64 = 1 << 18;

/// The trace that is being written, with the events of every location.
enum Trace {
    Otf2(Box<ArchiveWriter>, Vec<EventFileWriter>),
    Native(NativeWriter, Vec<NativeEventWriter>),
}

/// Writes events, and their true times, as they are simulated.
struct GeneratedFiles {
    trace: Trace,
    truth: Vec<TruthWriter>,
}

impl EventSink for GeneratedFiles {
    #[inline]
    fn event(&mut self, location: usize, true_time: Ticks, local_time: Ticks, event: &Event) -> Result<()> {
        if let Some(truth) = self.truth.get_mut(location) {
            truth.push(true_time)?;
        }
        let time = local_time.0 as u64;
        let undefined = || Error::new("an event of a location that is not defined; this is a bug");
        match &mut self.trace {
            Trace::Otf2(_, events) => events.get_mut(location).ok_or_else(undefined)?.event(time, event),
            Trace::Native(_, events) => events.get_mut(location).ok_or_else(undefined)?.event(time, event),
        }
    }
}

impl Trace {
    fn create(scenario: &Scenario, definitions: &Definitions, directory: &Path, format: Format) -> Result<Trace> {
        let locations = definitions.locations.iter().map(|location| location.id);
        Ok(match format {
            Format::Otf2 => {
                let options = CreateOptions {
                    event_chunk: EVENT_CHUNK,
                    description: description(scenario),
                    trace_id: scenario.seed,
                    ..CreateOptions::default()
                }
                .fitting(definitions);
                let archive = ArchiveWriter::create(directory, NAME, options)?;
                let events = locations.map(|location| archive.events(location)).collect::<Result<_>>()?;
                Trace::Otf2(Box::new(archive), events)
            }
            Format::Native => {
                let writer = NativeWriter::create(directory, scenario.resolution)?;
                let events = locations.map(|location| writer.events(location)).collect::<Result<_>>()?;
                Trace::Native(writer, events)
            }
        })
    }

    /// Ends the event files, with the clock offsets of each location, and writes the definitions.
    fn finish(self, scenario: &Scenario, definitions: &Definitions, offsets: &[Vec<ClockOffset>]) -> Result<()> {
        let offsets_of =
            |index: usize| offsets.get(index / scenario.locations() as usize).map_or(&[][..], Vec::as_slice);
        match self {
            Trace::Otf2(archive, events) => {
                for (index, (events, location)) in events.into_iter().zip(&definitions.locations).enumerate() {
                    events.finish()?;
                    archive.local_definitions(location.id, offsets_of(index))?;
                }
                archive.finish(definitions, &Default::default())
            }
            Trace::Native(writer, events) => {
                for (index, events) in events.into_iter().enumerate() {
                    events.finish(offsets_of(index))?;
                }
                let creator = CreateOptions::default().creator;
                writer.finish(&TraceHeader { creator, description: description(scenario) }, definitions)
            }
        }
    }
}

fn description(scenario: &Scenario) -> String {
    format!("simulated: {} on {} ranks, seed {}", scenario.pattern.name(), scenario.ranks, scenario.seed)
}

/// Runs a scenario into a trace in `directory` (empty), with the truth in its `truth` directory if asked for.
///
/// # Errors
/// Those of the scenario, and of writing.
pub fn write_simulated(scenario: &Scenario, directory: &Path, format: Format, with_truth: bool) -> Result<RunSummary> {
    let mut definitions = scenario.definitions();
    let mut files =
        GeneratedFiles { trace: Trace::create(scenario, &definitions, directory, format)?, truth: Vec::new() };
    if with_truth {
        make_truth_directory(directory)?;
        for location in &definitions.locations {
            let path = truth::path(directory, location.id);
            files.truth.push(TruthWriter::create(&path, location.id, scenario.resolution)?);
        }
    }
    let summary = scenario.run(&mut files)?;
    let GeneratedFiles { trace, truth } = files;
    for truth in truth {
        truth.finish()?;
    }
    let offsets = scenario.offsets(&summary)?;
    summary.complete(&mut definitions);
    trace.finish(scenario, &definitions, &offsets)?;
    Ok(summary)
}
