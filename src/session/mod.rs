//! One way through a trace: open, load, refine, examine, replay, write, verify, finish.
//!
//! A [`Session`] owns what all stages share: the analysis ranks, the open trace, warnings, progress, and where the time goes. Every command that reads a
//! trace is such a session, and so is whoever embeds the correction ([`crate::corrector`]). Everything in here is collective over the analysis ranks:
//! all of them have to call the same stages in the same order, and a failure of one is everybody's.

mod examine;
mod output;
mod rank_summary;
mod replay;
mod report;
mod summary;
mod write;

pub(crate) use examine::{Examination, Examined};
pub(crate) use output::{OutputRequest, Prepared};
pub(crate) use replay::{BeforeAndAfter, Replayed};
pub(crate) use report::{Findings, origin};
pub(crate) use write::{Verified, Written};

use crate::clocks::refine::{self, refine};
use crate::output::memory::{keep_large_blocks, return_gaps, return_large_blocks};
use crate::pipeline::load::{LoadOptions, LocalTrace, load};
use crate::pipeline::open::{TraceHandle, open};
use crate::pipeline::timing::Timing;
use crate::report::{ClockEstimate, MemoryUse, Phase, Warning, Warnings};
use clc_engine::comm::{Transport, merge_to_first};
use clc_trace::Result;
use clc_trace::progress::Progress;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// A run over an opened trace.
pub struct Session<'a> {
    /// The analysis ranks.
    pub transport: &'a mut dyn Transport,
    /// The trace.
    pub opened: TraceHandle,
    /// What was odd, as far as this rank knows.
    pub warnings: Warnings,
    /// Whom to tell how far it is.
    pub progress: &'a dyn Progress,
    /// The trace, as it was named.
    path: PathBuf,
    timing: Timing,
}

/// The end of a session, on rank 0.
#[derive(Debug)]
pub struct Finished {
    /// Where the time went.
    pub phases: Vec<Phase>,
    /// Where the memory went.
    pub memory: MemoryUse,
    /// What was odd, as all ranks know it.
    pub warnings: Vec<Warning>,
}

impl<'a> Session<'a> {
    /// Opens the trace at `path`, to be worked on by so many threads of each rank (as many as the transport says, if not told otherwise).
    ///
    /// # Errors
    /// No or no readable archive, inconsistent definitions, missing event files.
    pub fn open(
        transport: &'a mut dyn Transport,
        path: &Path,
        threads: Option<NonZero<usize>>,
        progress: &'a dyn Progress,
    ) -> Result<Session<'a>> {
        let timing = Timing::start();
        progress.step("open");
        let mut opened = open(transport, path)?;
        if let Some(threads) = threads {
            opened.workers = clc_trace::workers::Workers::new(threads);
        }
        let warnings = std::mem::take(&mut opened.warnings);
        Ok(Session { transport, opened, warnings, progress, path: path.to_path_buf(), timing })
    }

    /// Ticks per second of the trace's timer.
    pub fn resolution(&self) -> u64 {
        self.opened.definitions.clock.resolution
    }

    /// The trace, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The stage so far was `name`, in which this rank has handled so many events.
    pub fn lap(&mut self, name: &'static str, events: u64) {
        self.timing.lap(name, events);
    }

    /// Scans the event files and matches who communicated with whom.
    ///
    /// # Errors
    /// Anything wrong with the event files or local definitions, references to undefined ids.
    pub fn load(&mut self, options: &LoadOptions) -> Result<LocalTrace> {
        let loaded = load(self.transport, &self.opened, options, self.progress, &mut self.warnings)?;
        return_gaps();
        self.lap("scan", loaded.events());
        Ok(loaded)
    }

    /// Gives `loaded` better clocks and minimum latencies, if they are wanted and its messages tell of any. What was found is on rank 0.
    ///
    /// # Errors
    /// The trace cannot be read a second time, options that do not go together.
    pub fn refine(
        &mut self,
        loaded: &mut LocalTrace,
        options: &LoadOptions,
        wanted: refine::RefineOptions,
    ) -> Result<Option<ClockEstimate>> {
        self.progress.step("clocks");
        keep_large_blocks();
        let found = refine(self.transport, &self.opened, loaded, options, wanted, self.progress)?;
        return_large_blocks();
        self.lap("clocks", loaded.program.events());
        Ok(found)
    }

    /// Finds out whether all files of the trace are as they were when it was opened.
    ///
    /// # Errors
    /// One of them has changed.
    pub fn unchanged(&mut self) -> Result<()> {
        self.opened.unchanged(self.transport)
    }

    /// Ends the session of a command that makes no [`crate::report::Report`]; the outcome is on rank 0.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn finish(self) -> Result<Option<Finished>> {
        let phases = self.timing.gather(self.transport)?;
        let memory = summary::memory_use(self.transport)?;
        let warnings = merge_to_first(self.transport, self.warnings, Warnings::merge)?;
        Ok(warnings.map(|warnings| Finished { phases, memory, warnings: warnings.into_list() }))
    }
}
