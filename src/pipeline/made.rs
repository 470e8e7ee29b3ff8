//! Writing traces that are made, not corrected: events from a simulation, and the truth beside them.

use crate::archive::otf2::{ArchiveWriter, CreateOptions, EventFileWriter};
use crate::archive::truth::{self, TruthWriter};
use crate::simulate::{EventSink, Scenario, Summary};
use crate::trace::{Error, Event, Result, Ticks};
use std::path::Path;

/// Archive name of a simulated trace, as Score-P calls its own.
const NAME: &str = "traces";
/// Chunk size of event files: small, since there can be many locations.
const EVENT_CHUNK: u64 = 1 << 18;
/// File beside the truth files with all parameters of the run.
pub const PARAMETERS: &str = "parameters.json";

/// Writes events, and their true times, as they are simulated.
struct Files {
    events: Vec<EventFileWriter>,
    truth: Vec<TruthWriter>,
}

impl EventSink for Files {
    #[inline]
    fn event(&mut self, location: usize, true_time: Ticks, local_time: Ticks, event: &Event) -> Result<()> {
        if let Some(truth) = self.truth.get_mut(location) {
            truth.push(true_time)?;
        }
        match self.events.get_mut(location) {
            Some(events) => events.event(local_time.0 as u64, event),
            None => Err(Error::new("an event of a location that is not defined; this is a bug")),
        }
    }
}

/// Runs a scenario into an OTF2 archive in `directory` (empty), with the truth in its `truth` directory if asked for.
///
/// # Errors
/// Those of the scenario, and of writing.
pub fn write_simulated(scenario: &Scenario, directory: &Path, with_truth: bool) -> Result<Summary> {
    let mut definitions = scenario.definitions();
    let options = CreateOptions {
        event_chunk: EVENT_CHUNK,
        description: format!(
            "simulated: {} on {} ranks, seed {}",
            scenario.pattern.name(),
            scenario.ranks,
            scenario.seed
        ),
        trace_id: scenario.seed,
        ..CreateOptions::default()
    };
    let archive = ArchiveWriter::create(directory, NAME, options)?;
    if with_truth {
        make_truth_directory(directory)?;
    }
    let mut files = Files { events: Vec::new(), truth: Vec::new() };
    for location in &definitions.locations {
        files.events.push(archive.events(location.id)?);
        if with_truth {
            let path = truth::path(directory, location.id);
            files.truth.push(TruthWriter::create(&path, location.id, scenario.resolution)?);
        }
    }
    let summary = scenario.run(&mut files)?;
    let Files { events, truth } = files;
    for events in events {
        events.finish()?;
    }
    for truth in truth {
        truth.finish()?;
    }
    let offsets = scenario.offsets(&summary)?;
    for (index, location) in definitions.locations.iter().enumerate() {
        let rank = index / scenario.threads as usize;
        archive.local_definitions(location.id, offsets.get(rank).map_or(&[], Vec::as_slice))?;
    }
    summary.complete(&mut definitions);
    archive.finish(&definitions, &Default::default())?;
    Ok(summary)
}

/// Makes `directory/truth`.
///
/// # Errors
/// The operating system refuses.
pub fn make_truth_directory(directory: &Path) -> Result<()> {
    let path = truth::directory(directory);
    std::fs::create_dir(&path).map_err(|error| Error::io(&path, "cannot make the directory", &error))
}

/// Writes the parameters of a run beside the truth, so that it can be made again.
///
/// # Errors
/// The file cannot be written.
pub fn write_parameters(directory: &Path, command: &str, parameters: &[(&'static str, String)]) -> Result<()> {
    let mut object = serde_json::Map::new();
    object.insert("command".to_owned(), command.into());
    object.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    for (name, value) in parameters {
        object.insert((*name).to_owned(), value.clone().into());
    }
    let path = truth::directory(directory).join(PARAMETERS);
    let text = serde_json::to_string_pretty(&object)
        .map_err(|error| Error::new(format!("cannot write the parameters as JSON: {error}")))?;
    std::fs::write(&path, text + "\n").map_err(|error| Error::io(&path, "cannot write", &error))
}
