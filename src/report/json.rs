//! The JSON rendering of every report.

use crate::trace::{Error, Result};
use serde::Serialize;

/// `report` ([`super::Report`] or [`super::Info`]) as indented JSON, with a line break at the end.
/// Its fields are documented in `docs/report.md`.
///
/// # Errors
/// The report cannot be represented, which does not happen for these two types.
pub fn json<T: Serialize>(report: &T) -> Result<String> {
    let text = serde_json::to_string_pretty(report);
    text.map(|text| text + "\n").map_err(|error| Error::new(format!("cannot write the report as JSON: {error}")))
}
