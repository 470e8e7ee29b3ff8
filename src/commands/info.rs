//! `clc-replay info TRACE`: describes a trace.

use crate::cli::InfoOptions;
use crate::commands::Outcome;
use crate::pipeline::describe::describe;
use crate::pipeline::open::open;
use clc_engine::comm::Transport;
use clc_trace::Result;
use clc_trace::progress::Progress;

/// Describes the trace. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// The trace cannot be read.
pub fn info(transport: &mut dyn Transport, options: &InfoOptions, progress: &dyn Progress) -> Result<Option<Outcome>> {
    let opened = open(transport, &options.trace)?;
    let info = describe(transport, opened, &options.trace, progress)?;
    Ok(info.map(|info| Outcome::Info(Box::new(info))))
}
