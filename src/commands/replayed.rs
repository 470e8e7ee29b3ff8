//! What commands share that correct a trace: from the opened trace to the corrected times of its communication events.

use crate::clc::Parameters;
use crate::cli::{CorrectionOptions, SynchronisationOptions};
use crate::comm::Transport;
use crate::pipeline::clocks::refine;
use crate::pipeline::load::{LoadOptions, Loaded, load};
use crate::pipeline::open::Opened;
use crate::pipeline::timing::Timing;
use crate::replay::amortise::{self, Corrected};
use crate::replay::passes::{self, Passes};
use crate::replay::survey::{Survey, survey};
use crate::report::{ClockEstimate, Warnings};
use crate::trace::Result;
use crate::trace::progress::Progress;
use std::path::Path;

/// A trace after the replay.
pub struct Replayed {
    /// The hosted part of the trace.
    pub loaded: Loaded,
    /// How it was loaded; with the latency in force.
    pub load_options: LoadOptions,
    /// The constants of the clock; with the latency in force.
    pub parameters: Parameters,
    /// What was learnt about the clocks, on rank 0.
    pub clocks: Option<ClockEstimate>,
    /// Violations as recorded.
    pub raw: Survey,
    /// Violations after pre-synchronisation.
    pub presynchronised: Survey,
    /// The forward replay, without its logical times.
    pub passes: Passes,
    /// Corrections and corrected times.
    pub result: Corrected,
}

/// Loads, refines the clocks, and replays forward and backward; `keep` the recorded times for details. Collective over the analysis ranks.
///
/// # Errors
/// The trace cannot be read, it contradicts itself, the options do not suit it.
#[allow(clippy::too_many_arguments)] // two callers; a struct for them would only hide that
pub fn replay(
    transport: &mut dyn Transport,
    path: &Path,
    opened: &Opened,
    (correction, synchronisation): (&CorrectionOptions, &SynchronisationOptions),
    keep: bool,
    timing: &mut Timing,
    progress: &dyn Progress,
    warnings: &mut Warnings,
) -> Result<Replayed> {
    let resolution = opened.definitions.clock.resolution;
    let mut parameters = correction.parameters(synchronisation, resolution)?;
    let mut load_options = LoadOptions {
        presync: synchronisation.presync.unwrap_or_default(),
        latency: parameters.latency,
        alltoallv: synchronisation.alltoallv,
        separation: parameters.minimum_separation,
    };
    let mut loaded = load(transport, opened, &load_options, progress, warnings)?;
    timing.lap("scan", loaded.events());
    progress.step("clocks");
    let clocks = refine(transport, opened, &mut loaded, &load_options, synchronisation.wanted(), progress)?;
    load_options.latency = loaded.program.latency;
    parameters.latency = loaded.program.latency;
    timing.lap("clocks", loaded.program.events());
    progress.step("check");

    let raw = survey(transport, &loaded.program, &loaded.program.times(|timeline| &timeline.raw))?;
    if !keep {
        loaded.program.forget_recorded_times();
    }
    let program = &loaded.program;
    let presynchronised = survey(transport, program, &program.times(|timeline| &timeline.time))?;
    timing.lap("check", program.events());

    // A contradiction lies between the event files of several locations: the trace as a whole is at fault.
    let mut passes = match presynchronised.violated() {
        0 => Passes::of_consistent(),
        _ => passes::run(transport, program, &parameters, progress)
            .map_err(|error| if error.location.is_some() { error.in_file(path) } else { error })?,
    };
    let visited = if presynchronised.violated() == 0 { 0 } else { program.events() };
    timing.lap("forward", visited);
    progress.step("backward");
    let result = amortise::run(transport, program, &mut passes, &parameters)?;
    timing.lap("backward", visited);
    Ok(Replayed { loaded, load_options, parameters, clocks, raw, presynchronised, passes, result })
}
