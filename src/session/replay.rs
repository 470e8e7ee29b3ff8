//! From the opened trace to the corrected times of its communication events.

use crate::session::{Examination, Examined, Session};
use clc_engine::replay::amortise::{self, Corrected};
use clc_engine::replay::passes::{self, Passes};
use clc_trace::{Result, Ticks};
use controlled_logical_clock::Parameters;

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

impl Session<'_> {
    /// Examines the trace and replays forward and backward.
    ///
    /// # Errors
    /// The trace cannot be read, it contradicts itself, the options do not suit it.
    pub fn replay(&mut self, examination: Examination, mut parameters: Parameters) -> Result<Replayed> {
        let examined = self.examine(examination)?;
        let program = &examined.loaded.program;
        parameters.latency = program.latency;
        self.lap("check", program.events());

        let consistent = examined.presynchronised.violated() == 0;
        // A contradiction lies between the event files of several locations: the trace as a whole is at fault.
        let mut passes = if consistent {
            Passes::of_consistent(parameters.form)
        } else {
            passes::run(self.transport, self.opened.workers, program, &parameters, self.progress)
                .map_err(|error| if error.location.is_some() { error.in_file(self.path()) } else { error })?
        };
        let visited = if consistent { 0 } else { program.events() };
        self.lap("forward", visited);
        self.progress.step("backward");
        let earliest = examined.loaded.span.map_or(Ticks::ZERO, |(first, _)| first);
        let workers = self.opened.workers;
        let result = amortise::run(self.transport, workers, program, &mut passes, &parameters, earliest)?;
        self.lap("backward", visited);
        Ok(Replayed { examined, parameters, passes, result })
    }
}
