//! From the opened trace to the corrected times of its communication events.

use crate::session::{Examination, Examined, Session, origin};
use clc_engine::replay::amortise::{self, Corrected};
use clc_engine::replay::clock_condition::{ClockConditionCheck, check_clock_condition};
use clc_engine::replay::passes::{self, Passes};
use clc_trace::{Correction, Result, Ticks};
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

/// A trace before a correction and, if there is one, after it.
pub struct BeforeAndAfter {
    /// Before it.
    pub examined: Examined,
    /// The constants of the clock, the passes, the violations left, and the time of the first event as written.
    pub corrected: Option<(Parameters, Passes, ClockConditionCheck, Ticks)>,
    /// The corrections of the hosted timelines.
    pub corrections: Option<Vec<Correction>>,
}

impl Session<'_> {
    /// Examines the trace; with `parameters`, replays it as well and checks what the corrected times leave.
    ///
    /// # Errors
    /// As [`Session::replay`].
    pub fn before_and_after(
        &mut self,
        examination: Examination,
        parameters: Option<Parameters>,
    ) -> Result<BeforeAndAfter> {
        let Some(parameters) = parameters else {
            let examined = self.examine(examination)?;
            self.lap("check", examined.loaded.program.events());
            return Ok(BeforeAndAfter { examined, corrected: None, corrections: None });
        };
        let Replayed { examined, parameters, passes, result } = self.replay(examination, parameters)?;
        let program = &examined.loaded.program;
        let left = check_clock_condition(self.transport, self.opened.workers, program, &result.times(program))?;
        let corrected = Some((parameters, passes, left, origin(&examined.loaded)));
        Ok(BeforeAndAfter { examined, corrected, corrections: Some(result.corrections) })
    }

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
