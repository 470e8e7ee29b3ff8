//! Opening a trace: rank 0 reads anchor and definitions, everybody else hears of them. All ranks look at the event files.

use crate::pipeline::inputs::Inputs;
use crate::report::Warnings;
use clc_archive::Archive;
use clc_engine::comm::{AnalysisRank, Transport, agree, broadcast_value, merge_values};
use clc_engine::matching::placement::Placement;
use clc_trace::workers::Workers;
use clc_trace::{Definitions, Result, Timeline, Timelines, WireDefinitions};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// An open trace, the same on every analysis rank.
#[derive(Debug)]
pub struct TraceHandle {
    /// Where the files are.
    pub archive: Archive,
    /// Global definitions.
    pub definitions: Definitions,
    /// Which locations are corrected together.
    pub timelines: Timelines,
    /// Which analysis rank hosts which timeline.
    pub placement: Placement,
    /// The threads of this rank for work on its event files.
    pub workers: Workers,
    /// What was odd about the definitions; on rank 0 only.
    pub warnings: Warnings,
    /// The files of the trace as they were, as far as this rank has looked at them.
    pub inputs: Inputs,
}

#[derive(Serialize, Deserialize)]
struct TraceAnnouncement {
    archive: Archive,
    definitions: WireDefinitions,
    /// The working directory of rank 0, if there is one: a launcher may give each rank another.
    here: Option<PathBuf>,
}

impl TraceHandle {
    /// Finds out whether all files of the trace are as they were when it was opened. Collective over the analysis ranks.
    ///
    /// # Errors
    /// One of them has changed.
    pub(crate) fn unchanged(&self, transport: &mut dyn Transport) -> Result<()> {
        agree(transport, self.inputs.compare(&self.archive, &self.definitions, &self.timelines.all))
    }

    /// The same for anchor, definitions and their like; on rank 0, which has read them.
    ///
    /// # Errors
    /// One of them has changed.
    pub(crate) fn definitions_unchanged(&self) -> Result<()> {
        self.inputs.compare_whole()
    }

    /// Name of the node (or of whatever stands directly above its processes) that a timeline runs on, if it has one.
    pub(crate) fn node_name(&self, timeline: &Timeline) -> Option<String> {
        let definitions = &self.definitions;
        let group = definitions.locations[*timeline.locations.first()?].group;
        let parent = definitions.location_groups.iter().find(|candidate| candidate.id == group)?.parent?;
        let node = definitions.system_tree.iter().find(|candidate| candidate.id == parent)?;
        Some(node.name.clone()).filter(|name| !name.is_empty())
    }
}

/// Opens `path` (a directory with one trace, or its anchor or definition file). Collective over the analysis ranks; a failure is everybody's.
///
/// # Errors
/// No or no readable archive, inconsistent definitions, missing event files.
pub fn open(transport: &mut dyn Transport, path: &Path) -> Result<TraceHandle> {
    let (mut warnings, mut inputs) = (Warnings::default(), Inputs::default());
    let announcement = if transport.rank() == AnalysisRank::FIRST {
        read(path, &mut warnings, &mut inputs)
    } else {
        Err(clc_trace::Error::new(""))
    };
    let TraceAnnouncement { archive, definitions, here } =
        broadcast_value(transport, AnalysisRank::FIRST, announcement)??;
    let archive = match here {
        // Where rank 0 is, the name stays as the user gave it.
        Some(here) if archive.directory().is_relative() && std::env::current_dir().ok().as_ref() != Some(&here) => {
            archive.at(&here.join(archive.directory()))
        }
        _ => archive,
    };
    let definitions = definitions.open();
    let timelines = Timelines::new(&definitions);
    // A request to the file system each: not all of them by one rank.
    let (rank, ranks, count) = (transport.rank().place(), transport.size(), timelines.all.len());
    let share = count * rank / ranks..count * (rank + 1) / ranks;
    inputs.add_share(&archive, &definitions, &timelines.all, share.clone());
    let sizes = agree(transport, sizes(&archive, &definitions, &timelines.all[share]))?;
    let sizes = merge_values(transport, sizes, |sizes, more| sizes.extend(more))?;
    let placement = Placement::new(&sizes, timelines.processes, transport.size());
    if transport.rank() == AnalysisRank::FIRST && placement.idle() > 0 {
        warnings.add(format!(
            "{} of {} analysis ranks have nothing to do: the trace has only {} timelines",
            placement.idle(),
            placement.hosts(),
            timelines.all.len()
        ));
    }
    Ok(TraceHandle { archive, definitions, timelines, placement, workers: transport.workers(), warnings, inputs })
}

fn read(path: &Path, warnings: &mut Warnings, inputs: &mut Inputs) -> Result<TraceAnnouncement> {
    let archive = Archive::open(path)?;
    *inputs = Inputs::of_whole(&archive);
    let (definitions, odd) = archive.read_definitions()?;
    odd.into_iter().for_each(|text| warnings.add(text));
    Ok(TraceAnnouncement {
        archive,
        definitions: WireDefinitions::new(definitions),
        here: std::env::current_dir().ok(),
    })
}

/// Bytes of the event files of each of these timelines.
fn sizes(archive: &Archive, definitions: &Definitions, timelines: &[Timeline]) -> Result<Vec<u64>> {
    let mut sizes = Vec::with_capacity(timelines.len());
    for timeline in timelines {
        let mut size = 0u64;
        for &location in &timeline.locations {
            size = size.saturating_add(archive.event_file_size(definitions.locations[location].id)?);
        }
        sizes.push(size);
    }
    Ok(sizes)
}
