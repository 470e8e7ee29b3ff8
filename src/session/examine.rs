//! From the opened trace to its violations with recorded and with pre-synchronised times.

use crate::clocks::refine::RefineOptions;
use crate::details::regions::{Regions, regions_of_worst};
use crate::output::memory::return_gaps;
use crate::pipeline::load::{LoadOptions, LocalTrace};
use crate::report::ClockEstimate;
use crate::session::Session;
use clc_engine::replay::clock_condition::{ClockConditionCheck, check_clock_condition};
use clc_trace::Result;

/// How a trace is examined.
#[derive(Debug, Clone, Copy)]
pub struct Examination {
    /// How it is loaded.
    pub load: LoadOptions,
    /// What the clocks are refined to.
    pub clocks: RefineOptions,
    /// Whether recorded times are kept for details.
    pub keep_recorded: bool,
}

/// A trace whose violations are known.
pub struct Examined {
    /// The hosted part of the trace.
    pub loaded: LocalTrace,
    /// How it was loaded; with the latency in force.
    pub load_options: LoadOptions,
    /// What was learnt about the clocks, on rank 0.
    pub clocks: Option<ClockEstimate>,
    /// Violations as recorded.
    pub raw: ClockConditionCheck,
    /// Violations after pre-synchronisation.
    pub presynchronised: ClockConditionCheck,
}

impl Session<'_> {
    /// Loads, refines the clocks, and looks for violations. The time since the phase "clocks" is left to the caller to name.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn examine(&mut self, examination: Examination) -> Result<Examined> {
        let mut load_options = examination.load;
        let mut loaded = self.load(&load_options)?;
        let clocks = self.refine(&mut loaded, &load_options, examination.clocks)?;
        load_options.latency = loaded.program.latency;

        self.progress.step("check");
        let (transport, workers) = (&mut *self.transport, self.opened.workers);
        let raw = loaded
            .program
            .as_recorded(workers, |program| check_clock_condition(transport, workers, program, &program.times()))?;
        if !examination.keep_recorded {
            loaded.program.forget_recorded_times();
        }
        return_gaps();
        let times = loaded.program.times();
        let presynchronised = check_clock_condition(self.transport, workers, &loaded.program, &times)?;
        Ok(Examined { loaded, load_options, clocks, raw, presynchronised })
    }

    /// The regions in which the worst violations of `checks` happen.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn regions(&mut self, loaded: &LocalTrace, checks: &[&ClockConditionCheck]) -> Result<Regions> {
        regions_of_worst(self.transport, &self.opened, loaded, checks)
    }
}
