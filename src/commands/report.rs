//! `clc-replay report FILE`: a stored report again, as text and as a page.

use crate::cli::ReportOptions;
use crate::commands::Outcome;
use crate::report::{Report, SCHEMA};
use clc_archive::open_file;
use clc_engine::comm::{AnalysisRank, Transport, broadcast_value};
use clc_trace::{Error, Result};
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What says which form the file has.
#[derive(Deserialize)]
struct StoredForm {
    schema: u32,
    verdict: Option<serde_json::Value>,
}

/// Reads a stored report. Rank 0 does it, for all.
///
/// # Errors
/// The file cannot be read, or holds no report of a correction, a check or an analysis that this version understands.
pub fn report(transport: &mut dyn Transport, options: &ReportOptions) -> Result<Option<Outcome>> {
    let read = if transport.rank() == AnalysisRank::FIRST { read(options).map(Some) } else { Ok(None) };
    let failure = broadcast_value(transport, AnalysisRank::FIRST, read.as_ref().err().cloned())?;
    match failure {
        Some(error) => Err(error),
        None => Ok(read?.map(|report| Outcome::Report(Box::new(report)))),
    }
}

fn read(options: &ReportOptions) -> Result<Report> {
    let path = &options.report;
    let text = text(path)?;
    let wrong = |message: String| Error::new(message).in_file(path);
    let hint =
        "pass a file written by `clc-replay --report`, `clc-replay check --report` or `clc-replay analyze --report`";
    let form: StoredForm =
        serde_json::from_str(&text).map_err(|error| wrong(format!("not a stored report: {error}")).hint(hint))?;
    if form.schema != SCHEMA {
        return Err(wrong(format!("a report of schema version {}; this program reads version {SCHEMA}", form.schema)));
    }
    if form.verdict.is_none() {
        return Err(wrong("not the report of a correction, a check or an analysis".to_owned()).hint(hint));
    }
    serde_json::from_str(&text).map_err(|error| wrong(format!("cannot parse the report: {error}")))
}

/// Most bytes of a stored report: its lists are bounded, so none of ours comes near.
const LONGEST: u64 = 256 << 20;

/// The whole file, if it has an end.
fn text(path: &Path) -> Result<String> {
    // What somebody has opened for this program already (`/dev/stdin`, `<(...)`) may be a pipe.
    let given = ["/dev/stdin", "/dev/fd", "/proc/self/fd"].iter().any(|start| path.starts_with(start));
    let failed = |error: std::io::Error| Error::io(path, "cannot read the report", &error);
    let file = if given { File::open(path).map_err(failed)? } else { open_file(path)?.0 };
    let mut text = String::new();
    let length = file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
    if length as u64 > LONGEST {
        return Err(Error::new("the file is too large for a stored report").in_file(path));
    }
    Ok(text)
}
