//! From the opened trace to the corrected times of its communication events.

use crate::session::{Examination, Examined, Session, origin};
use clc_engine::replay::amortise::Corrected;
use clc_engine::replay::clock_condition::{ClockConditionCheck, check_clock_condition};
use clc_engine::replay::correct::{Step, correct};
use clc_engine::replay::passes::Passes;
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

        if examined.presynchronised.violated() == 0 {
            let (passes, result) = (Passes::of_consistent(parameters.form), Corrected::nothing(program));
            self.lap("forward", 0);
            self.lap("backward", 0);
            return Ok(Replayed { examined, parameters, passes, result });
        }
        let earliest = examined.loaded.span.map_or(Ticks::ZERO, |(first, _)| first);
        let corrected = {
            let Session { transport, opened, progress, timing, .. } = self;
            let mut ended = |step: Step| match step {
                Step::Forward => {
                    timing.lap("forward", program.events());
                    progress.step("backward");
                }
                Step::Backward => timing.lap("backward", program.events()),
            };
            correct(*transport, opened.workers, program, &parameters, earliest, *progress, &mut ended)
        };
        // A contradiction lies between the event files of several locations: the trace as a whole is at fault.
        let (passes, result) =
            corrected.map_err(|error| if error.location.is_some() { error.in_file(self.path()) } else { error })?;
        Ok(Replayed { examined, parameters, passes, result })
    }
}
