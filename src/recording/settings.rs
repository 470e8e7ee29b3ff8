//! What a recording was asked to be, and where its raw files are.

use clc_trace::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The file in the raw directory with the [`RecordingSettings`].
const SETTINGS: &str = "settings.json";

/// What a recording was asked to be; kept with the raw files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordingSettings {
    /// Clocks that are wrong on purpose: a specification.
    pub clock: Option<String>,
    /// What is random about them.
    pub seed: u64,
    /// Every process has a clock of its own, not every node.
    pub per_process: bool,
    /// And every thread.
    #[serde(default)]
    pub per_thread: bool,
    /// The command that was started.
    pub command: String,
}

impl RecordingSettings {
    /// Keeps them in a raw directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(SETTINGS);
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::new(error.to_string()).in_file(&path))?;
        std::fs::write(&path, text).map_err(|error| Error::io(&path, "cannot write", &error))
    }

    /// Reads them again.
    ///
    /// # Errors
    /// There are none, or they cannot be read.
    pub(crate) fn read(directory: &Path) -> Result<RecordingSettings> {
        let path = directory.join(SETTINGS);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Error::io(&path, "cannot read the settings of the recording", &error))?;
        serde_json::from_str(&text).map_err(|error| Error::new(error.to_string()).in_file(&path))
    }
}

/// Where the raw files of a recording lie: beside it.
pub(crate) fn raw_directory(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".raw");
    output.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_files_lie_beside_the_archive() {
        assert_eq!(raw_directory(Path::new("runs/one")), Path::new("runs/one.raw"));
    }

    #[test]
    fn settings_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let settings = RecordingSettings {
            clock: Some("walk".into()),
            seed: 7,
            per_process: true,
            per_thread: true,
            command: "mpirun -n 2 a".into(),
        };
        settings.write(directory.path()).unwrap();
        assert_eq!(RecordingSettings::read(directory.path()).unwrap(), settings);
    }
}
