//! What commands share that correct a trace: from the opened trace to the corrected times of its communication events.

use crate::cli::{CorrectionOptions, SynchronisationOptions};
use crate::commands::examined::{Examined, Run};
use crate::pipeline::load::LoadOptions;
use clc_engine::replay::amortise::{self, Corrected};
use clc_engine::replay::passes::{self, Passes};
use clc_trace::{Result, Ticks};
use controlled_logical_clock::Parameters;
use std::path::Path;

/// A trace after the replay.
pub struct Replayed {
    /// The trace before it.
    pub examined: Examined,
    /// The constants of the clock; with the latency in force.
    pub parameters: Parameters,
    /// The forward replay, without its logical times.
    pub passes: Passes,
    /// Corrections and corrected times.
    pub result: Corrected,
}

impl Run<'_> {
    /// Examines the trace (at `path`) and replays forward and backward; `keep` the recorded times for details. Locations
    /// can have timelines of their own if `own_timelines`. Collective over the analysis
    /// ranks.
    ///
    /// # Errors
    /// The trace cannot be read, it contradicts itself, the options do not suit it.
    pub fn replay(
        &mut self,
        path: &Path,
        correction: &CorrectionOptions,
        synchronisation: &SynchronisationOptions,
        keep: bool,
        own_timelines: bool,
    ) -> Result<Replayed> {
        let resolution = self.opened.definitions.clock.resolution;
        let mut parameters = correction.parameters(synchronisation, resolution)?;
        let load_options = LoadOptions {
            presync: synchronisation.presync.unwrap_or_default(),
            latency: parameters.latency,
            alltoallv: synchronisation.alltoallv,
            fences: synchronisation.fences,
            separation: parameters.minimum_separation,
            own_timelines,
        };
        let examined = self.examine(load_options, synchronisation, keep)?;
        let program = &examined.loaded.program;
        parameters.latency = program.latency;
        self.timing.lap("check", program.events());

        let consistent = examined.presynchronised.violated() == 0;
        // A contradiction lies between the event files of several locations: the trace as a whole is at fault.
        let mut passes = if consistent {
            Passes::of_consistent(parameters.form)
        } else {
            passes::run(self.transport, program, &parameters, self.progress)
                .map_err(|error| if error.location.is_some() { error.in_file(path) } else { error })?
        };
        let visited = if consistent { 0 } else { program.events() };
        self.timing.lap("forward", visited);
        self.progress.step("backward");
        let earliest = examined.loaded.span.map_or(Ticks::ZERO, |(first, _)| first);
        let result = amortise::run(self.transport, self.opened.workers, program, &mut passes, &parameters, earliest)?;
        self.timing.lap("backward", visited);
        Ok(Replayed { examined, parameters, passes, result })
    }
}
