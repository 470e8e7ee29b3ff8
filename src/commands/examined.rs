//! What commands share that look for violations: from the opened trace to those with recorded and with pre-synchronised times.

use crate::cli::SynchronisationOptions;
use crate::clocks::refine::refine;
use crate::pipeline::load::{LoadOptions, Loaded, load};
use crate::pipeline::open::Opened;
use crate::pipeline::timing::Timing;
use crate::report::{ClockEstimate, Warnings};
use clc_clock::Method;
use clc_engine::comm::Transport;
use clc_engine::replay::survey::{Survey, survey};
use clc_trace::progress::Progress;
use clc_trace::{Result, Ticks};

/// A run over an opened trace.
pub struct Run<'a> {
    /// The analysis ranks.
    pub transport: &'a mut dyn Transport,
    /// The trace.
    pub opened: &'a Opened,
    /// The phases of the run so far.
    pub timing: &'a mut Timing,
    /// Whom to tell how far it is.
    pub progress: &'a dyn Progress,
    /// What was odd.
    pub warnings: &'a mut Warnings,
}

/// A trace whose violations are known.
pub struct Examined {
    /// The hosted part of the trace.
    pub loaded: Loaded,
    /// How it was loaded; with the latency in force.
    pub load_options: LoadOptions,
    /// What was learnt about the clocks, on rank 0.
    pub clocks: Option<ClockEstimate>,
    /// Violations as recorded.
    pub raw: Survey,
    /// Violations after pre-synchronisation.
    pub presynchronised: Survey,
}

/// Loads what a reader of the trace sees, if nothing else is asked for.
///
/// # Errors
/// A latency is too long for a clock with `resolution` ticks per second.
pub fn as_recorded(synchronisation: &SynchronisationOptions, resolution: u64) -> Result<LoadOptions> {
    Ok(LoadOptions {
        presync: synchronisation.presync.unwrap_or(Method::Linear),
        latency: synchronisation.latency.to_ticks(resolution)?,
        alltoallv: synchronisation.alltoallv,
        fences: synchronisation.fences,
        separation: Ticks::ZERO,
        own_timelines: true,
    })
}

impl Run<'_> {
    /// Loads, refines the clocks, and looks for violations; `keep` the recorded times for details. The time since the phase "clocks" is left to the
    /// caller to name. Collective over the analysis ranks.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn examine(
        &mut self,
        mut load_options: LoadOptions,
        synchronisation: &SynchronisationOptions,
        keep: bool,
    ) -> Result<Examined> {
        let mut loaded = load(self.transport, self.opened, &load_options, self.progress, self.warnings)?;
        self.timing.lap("scan", loaded.events());
        self.progress.step("clocks");
        let wanted = synchronisation.wanted();
        let clocks = refine(self.transport, self.opened, &mut loaded, &load_options, wanted, self.progress)?;
        load_options.latency = loaded.program.latency;
        self.timing.lap("clocks", loaded.program.events());

        self.progress.step("check");
        let raw = survey(self.transport, &loaded.program, &loaded.program.times(|timeline| &timeline.raw))?;
        if !keep {
            loaded.program.forget_recorded_times();
        }
        let times = loaded.program.times(|timeline| &timeline.time);
        let presynchronised = survey(self.transport, &loaded.program, &times)?;
        Ok(Examined { loaded, load_options, clocks, raw, presynchronised })
    }
}
