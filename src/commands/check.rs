//! `clc-replay check TRACE`: is this trace broken, where, how badly?

use crate::analysis::locks::overlaps;
use crate::cli::CheckOptions;
use crate::commands::{Outcome, as_recorded, command_line};
use crate::session::{Examination, Findings, Session};
use clc_engine::comm::Transport;
use clc_trace::Result;
use clc_trace::progress::Progress;

/// Counts the violations with the recorded and with the pre-synchronised times. Collective over the analysis ranks; the outcome is
/// on rank 0.
///
/// # Errors
/// The trace cannot be read, or changes meanwhile.
pub fn check(
    transport: &mut dyn Transport,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let mut session = Session::open(transport, &options.trace, options.common.threads, progress)?;
    session.lap("open", 0);
    let examination = as_recorded(&options.synchronisation, session.resolution())?;
    let examined = session.examine(Examination { keep_recorded: options.wants_details(), ..examination })?;
    let regions = session.regions(&examined.loaded, &[&examined.raw, &examined.presynchronised])?;
    session.lap("check", examined.loaded.program.events());
    let details = if options.wants_details() { session.details(&examined, None)? } else { None };
    let locks = overlaps(session.transport, &session.opened, &examined.loaded, None)?;
    session.unchanged()?;
    let line = command_line();
    let findings = Findings::of_examined(examined, regions, &line);
    let report = session.report(Findings { details, locks, ..findings })?;
    Ok(report.map(|report| Outcome::Report(Box::new(report))))
}
