//! `clc-replay TRACE`: corrects a trace.

use crate::cli::CorrectOptions;
use crate::commands::{Outcome, command_line, corrected};
use crate::corrector;
use crate::session::{Examination, Session};
use clc_engine::comm::Transport;
use clc_trace::Result;
use clc_trace::progress::Progress;

/// Corrects the trace and writes the result. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// As [`corrector::correct`].
pub fn correct(
    transport: &mut dyn Transport,
    options: &CorrectOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let session = Session::open(transport, &options.trace, options.common.threads, progress)?;
    let (examination, parameters) = corrected(&options.correction, &options.synchronisation, session.resolution())?;
    let examination = Examination { keep_recorded: options.wants_details(), ..examination };
    let path = if options.dry_run { None } else { Some(options.output_directory()?) };
    let output = path.as_deref().map(|path| (path, options.common.force));
    let report = corrector::correct(session, examination, parameters, output, &command_line())?;
    Ok(report.map(|report| Outcome::Report(Box::new(report))))
}
