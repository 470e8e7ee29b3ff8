//! `clc-replay report FILE`: a stored report again, as text and as a page.

use crate::cli::ReportOptions;
use crate::comm::{Transport, broadcast_value};
use crate::commands::Outcome;
use crate::report::{Report, SCHEMA};
use crate::trace::{Error, Result};
use serde::Deserialize;

/// What says which form the file has.
#[derive(Deserialize)]
struct Form {
    schema: u32,
    verdict: Option<serde_json::Value>,
}

/// Reads a stored report. Rank 0 does it, for all.
///
/// # Errors
/// The file cannot be read, or holds no report of a correction or a check that this version understands.
pub fn report(transport: &mut dyn Transport, options: &ReportOptions) -> Result<Option<Outcome>> {
    let read = if transport.rank() == 0 { read(options).map(Some) } else { Ok(None) };
    let failure = broadcast_value(transport, 0, read.as_ref().err().cloned())?;
    match failure {
        Some(error) => Err(error),
        None => Ok(read?.map(|report| Outcome::Report(Box::new(report)))),
    }
}

fn read(options: &ReportOptions) -> Result<Report> {
    let path = &options.report;
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, "cannot read the report", &error))?;
    let wrong = |message: String| Error::new(message).in_file(path);
    let hint = "give a file that `clc-replay --report` or `clc-replay check --report` has written";
    let form: Form =
        serde_json::from_str(&text).map_err(|error| wrong(format!("no stored report: {error}")).hint(hint))?;
    if form.schema != SCHEMA {
        return Err(wrong(format!("a report of version {}, this program reads version {SCHEMA}", form.schema)));
    }
    if form.verdict.is_none() {
        return Err(wrong("not the report of a correction or a check".to_owned()).hint(hint));
    }
    serde_json::from_str(&text).map_err(|error| wrong(format!("cannot understand the report: {error}")))
}
