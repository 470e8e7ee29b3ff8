//! `clc-replay analyze TRACE`: what did the program wait for, what decided how long it took, and how much of that were the clocks?

use crate::analysis::{AnalysisOptions, analyse};
use crate::cli::AnalyzeOptions;
use crate::commands::{Outcome, as_recorded, command_line, corrected};
use crate::output::conflicts::Content;
use crate::output::files;
use crate::report::{Analysis, analysis_csv};
use crate::session::{BeforeAndAfter, Findings, Session};
use clc_engine::comm::{Transport, agree};
use clc_trace::Result;
use clc_trace::progress::Progress;
use controlled_logical_clock::latency::MinimumLatency;

/// Analyses the trace with the times that a reader sees and with corrected ones; writes no trace. Collective over the analysis ranks; the
/// outcome is on rank 0.
///
/// # Errors
/// The trace cannot be read or changes meanwhile, it contradicts itself, the tables cannot be written.
pub fn analyze(
    transport: &mut dyn Transport,
    options: &AnalyzeOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let mut session = Session::open(transport, &options.trace, options.common.threads, progress)?;
    session.lap("open", 0);
    let (synchronisation, resolution) = (&options.synchronisation, session.resolution());
    let (examination, parameters) = match options.as_recorded {
        true => (as_recorded(synchronisation, resolution)?, None),
        false => corrected(&options.correction, synchronisation, resolution).map(|(job, given)| (job, Some(given)))?,
    };
    let BeforeAndAfter { mut examined, corrected, corrections } = session.before_and_after(examination, parameters)?;
    let mut checks = vec![&examined.raw, &examined.presynchronised];
    checks.extend(corrected.iter().map(|(_, _, check, _)| check));
    let regions = session.regions(&examined.loaded, &checks)?;

    // A wait is no shorter for the time that a message takes at least.
    examined.loaded.program.set_latency(MinimumLatency::default());
    let wanted =
        AnalysisOptions { windows: options.windows as usize, entries: Analysis::ENTRIES.max(options.top as usize) };
    let analysis = analyse(&mut session, &examined.loaded, corrections.as_deref(), wanted)?;
    session.lap("analyse", examined.loaded.events());
    session.unchanged()?;
    let mut written = Ok(());
    if let (Some(directory), Some(analysis)) = (&options.csv, &analysis) {
        written = files::write_all(directory, &analysis_csv(analysis), Content::AnalysisTables, options.common.force);
    }
    agree(session.transport, written)?;

    let (left, line) = (examined.presynchronised.violated(), command_line());
    let mut findings = Findings::of_examined(examined, regions, &line);
    if options.as_recorded && left > 0 {
        findings.remarks.push(format!(
            "{left} communications violate the clock condition, so waiting times are partly artefacts of the clocks \
            (omit --as-recorded to see how much)"
        ));
    }
    let report = session.report(Findings { corrected, analysis, ..findings })?;
    Ok(report.map(|report| Outcome::Report(Box::new(report))))
}
