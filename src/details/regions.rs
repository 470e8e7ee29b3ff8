//! In which regions the worst violations happen: a second look at the event files around just these events.

use crate::pipeline::load::LocalTrace;
use crate::pipeline::open::TraceHandle;
use clc_archive::ScanSummary;
use clc_engine::comm::{Transport, merge_values};
use clc_engine::replay::clock_condition::ClockConditionCheck;
use clc_trace::progress::Silent;
use clc_trace::{EventNumber, LocationId, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Names of the innermost regions around events, by location and event number.
pub(crate) type Regions = BTreeMap<(LocationId, EventNumber), String>;

/// Looks up the regions of the worst violations of `checks`, which are the same on all ranks. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport. What cannot be found has no name.
pub(crate) fn regions_of_worst(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    loaded: &LocalTrace,
    checks: &[&ClockConditionCheck],
) -> Result<Regions> {
    let worst = checks.iter().filter_map(|check| check.worst.as_ref());
    let places: BTreeSet<(LocationId, EventNumber)> = worst
        .flat_map(|worst| worst.send.iter().chain([&worst.receive]))
        .map(|place| (place.location, place.number))
        .collect();
    let hosted: BTreeMap<LocationId, &ScanSummary> =
        loaded.locations.iter().flatten().map(|l| (opened.definitions.locations[l.index].id, &l.summary)).collect();
    let places: Vec<(LocationId, EventNumber)> =
        places.into_iter().filter(|(location, _)| hosted.contains_key(location)).collect();
    let named = opened.workers.run(places.len(), &Silent, |job, _| {
        let (location, number) = places[job];
        Ok(name(opened, location, &hosted[&location].chunks, number))
    })?;
    let here: Regions = places.into_iter().zip(named).filter_map(|(place, name)| Some((place, name?))).collect();
    merge_values(transport, here, |all, more| all.extend(more))
}

/// The name of the region around an event. The file has been read before: failures would have been noticed then.
fn name(opened: &TraceHandle, location: LocationId, chunks: &[u64], number: EventNumber) -> Option<String> {
    let local = opened.archive.local_definitions(location).ok()?;
    let id = opened.archive.region_around(location, &local, chunks, number)?;
    let region = opened.definitions.regions.iter().find(|region| region.id == id)?;
    Some(region.name.clone()).filter(|name| !name.is_empty())
}
