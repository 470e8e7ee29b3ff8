//! The output of sessions that make a trace of a trace: rank 0 prepares it, and all ranks learn where to write.

use crate::output::directory::Output;
use crate::output::signals::{SetAside, Unfinished};
use crate::output::truth::make_truth_directory;
use crate::pipeline::open::TraceHandle;
use crate::report::Warnings;
use crate::session::Session;
use clc_engine::comm::{AnalysisRank, Transport, agree, broadcast_value};
use clc_trace::Result;
use std::path::{Path, PathBuf};

/// An output that is being made.
pub struct Prepared {
    /// On rank 0.
    output: Option<Output>,
    /// Where all ranks write, until it is published.
    pub making: PathBuf,
    /// On the other ranks: each of them removes what is unfinished if it is the one that ends first. A launcher that kills the rest may give
    /// rank 0 no time for it.
    unfinished: Option<(SetAside, Unfinished)>,
}

impl Prepared {
    /// Says that this rank has written its part, and waits for the others: from here on the output belongs to rank 0, which publishes or
    /// drops it. Collective over the analysis ranks.
    ///
    /// # Errors
    /// The ranks cannot talk to each other.
    pub fn hand_over(self, transport: &mut dyn Transport) -> Result<Option<Output>> {
        drop(self.unfinished);
        agree(transport, Ok(()))?;
        Ok(self.output)
    }
}

/// What the output shall be.
pub struct OutputRequest<'a> {
    /// Its place.
    pub path: &'a Path,
    /// Whether it may take the place of an older one.
    pub force: bool,
    /// The directory for event files in it; as in the trace if none is named.
    pub events: Option<&'a str>,
    /// Whether it has a directory for the truth.
    pub with_truth: bool,
    /// Whether its times are corrected ones.
    pub corrected: bool,
}

impl Session<'_> {
    /// Prepares an output, before any work is done for it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn prepare(&mut self, wanted: OutputRequest<'_>) -> Result<Prepared> {
        let transport = &mut *self.transport;
        // Rank 0 does so with its output, and is the last: there is nothing to remove before.
        let set_aside = (transport.rank() != AnalysisRank::FIRST).then(SetAside::new).transpose();
        let set_aside = agree(transport, set_aside)?;
        let mut output = None;
        let prepared = if transport.rank() == AnalysisRank::FIRST {
            let input = self.opened.archive.directory();
            let events = wanted.events.unwrap_or(self.opened.archive.event_directory());
            Output::prepare(wanted.path, input, events, wanted.force).and_then(|mut prepared| {
                prepared.corrected = wanted.corrected;
                prepared.warnings.drain(..).for_each(|text| self.warnings.add(text));
                if wanted.with_truth {
                    make_truth_directory(prepared.making())?;
                }
                Ok(output.insert(prepared).making().to_path_buf())
            })
        } else {
            Ok(PathBuf::new())
        };
        let making: Result<PathBuf> = broadcast_value(transport, AnalysisRank::FIRST, prepared)?;
        let making = making?;
        let unfinished = set_aside.map(|set_aside| {
            let unfinished = Unfinished::new(&making, &set_aside);
            (set_aside, unfinished)
        });
        Ok(Prepared { output, making, unfinished })
    }

    /// Ends an output: when all ranks have written their parts, rank 0 writes what they have in common with `rest`, given the directory, and publishes it. On rank 0
    /// where it is, and what `rest` told.
    ///
    /// # Errors
    /// The trace has changed since it was opened; writing fails; the output cannot be published.
    pub fn publish_with<T>(
        &mut self,
        prepared: Prepared,
        rest: impl FnOnce(&TraceHandle, &Path, &mut Warnings) -> Result<T>,
    ) -> Result<Option<(PathBuf, T)>> {
        self.progress.step("publish");
        self.unchanged()?;
        let making = prepared.making.clone();
        let mut published = None;
        let mut outcome = Ok(());
        if let Some(output) = prepared.hand_over(self.transport)? {
            let path = output.path.clone();
            outcome = rest(&self.opened, &making, &mut self.warnings)
                .and_then(|told| self.opened.definitions_unchanged().map(|()| told))
                .and_then(|told| output.publish().map(|()| published = Some((path, told))));
        }
        agree(self.transport, outcome)?;
        Ok(published)
    }
}
