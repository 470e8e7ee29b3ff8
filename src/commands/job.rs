//! What the commands about jobs share: finding one, and writing what is known of it.

use crate::output::conflicts::Content;
use crate::output::files;
use crate::report;
use clc_monitor::jobs::{self, Job};
use clc_trace::{Error, Result};
use serde::Serialize;
use std::path::Path;

pub(super) fn failed(what: &Path, error: &std::io::Error) -> Error {
    // What the monitor says names the file itself.
    Error::new(format!("{error}")).in_file(what)
}

pub(super) fn find(name: &Path) -> Result<Job> {
    jobs::find(name).map_err(|error| {
        Error::new(error.to_string()).hint("`clc-replay jobs` lists them; `clc-replay record --monitor` starts one")
    })
}

/// Writes it as JSON, as all reports are.
pub(super) fn write<T: Serialize>(path: &Path, report: &T, force: bool) -> Result<()> {
    files::write(path, report::json(report)?.as_bytes(), Content::Json, force)
}
