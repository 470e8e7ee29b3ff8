//! The directory with the true times of a trace that was made or disturbed on purpose, and how it was made.

use clc_archive::truth;
use clc_trace::{Error, Result};
use std::path::Path;

/// File beside the truth files with all parameters of the run.
pub(crate) const PARAMETERS: &str = "parameters.json";

/// Makes `directory/truth`.
///
/// # Errors
/// The operating system refuses.
pub(crate) fn make_truth_directory(directory: &Path) -> Result<()> {
    let path = truth::directory(directory);
    std::fs::create_dir(&path).map_err(|error| Error::io(&path, "cannot create the directory", &error))
}

/// Writes the parameters of a run beside the truth, so that it can be made again.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_parameters(directory: &Path, command: &str, parameters: &[(&'static str, String)]) -> Result<()> {
    let mut object = serde_json::Map::new();
    object.insert("command".to_owned(), command.into());
    object.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    for (name, value) in parameters {
        object.insert((*name).to_owned(), value.clone().into());
    }
    let path = truth::directory(directory).join(PARAMETERS);
    let text = serde_json::to_string_pretty(&object)
        .map_err(|error| Error::new(format!("cannot write the parameters as JSON: {error}")))?;
    std::fs::write(&path, text + "\n").map_err(|error| Error::io(&path, "cannot write", &error))
}
