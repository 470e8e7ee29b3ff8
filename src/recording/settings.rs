//! What a recording was asked to be, and where its raw files are.

use clc_trace::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
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
    /// Variables of its environment that have to do with MPI and threads: `NAME=VALUE`, with spaces in between.
    #[serde(default)]
    pub environment: String,
    /// It begins within the run: a ring, or from some moment on.
    #[serde(default)]
    pub begins_late: bool,
    /// It ends within the run, or has gaps: until some moment, or what a ring held when there was a signal.
    #[serde(default)]
    pub has_gaps: bool,
}

/// What names of variables begin with that tell MPI libraries, their networks, runtimes of OpenMP and batch systems what to do.
const TELLING: [&str; 18] = [
    "CLC_RECORDER_",
    "FI_",
    "GOMP_",
    "I_MPI_",
    "KMP_",
    "MALLOC_",
    "MPICH_",
    "MPIR_CVAR_",
    "MV2_",
    "OMPI_MCA_",
    "OMP_",
    "OPAL_",
    "PRTE_MCA_",
    "PSM2_",
    "PSM3_",
    "SLURM_",
    "UCC_",
    "UCX_",
];
/// And of those among them that are different in every process, or that a launcher tells its processes.
const UNTELLING: [&str; 10] = [
    "CLC_RECORDER_AGENT",
    "CLC_RECORDER_JOB",
    "CLC_RECORDER_LAUNCH",
    "CLC_RECORDER_STATE",
    "OMPI_MCA_ess_",
    "OMPI_MCA_initial_",
    "OMPI_MCA_orte_",
    "OMPI_MCA_pmix",
    "OMPI_MCA_shmem_RUNTIME_QUERY_hint",
    "SLURM_JWT",
];
/// So many characters of a value are kept. Chosen by hand: lists of nodes may be long.
const LONGEST: usize = 200;

/// Those of these variables that have to do with MPI and threads, in the order of their names.
pub(crate) fn telling(variables: impl Iterator<Item = (OsString, OsString)>) -> String {
    let begins = |name: &str, list: &[&str]| list.iter().any(|begin| name.starts_with(begin));
    let mut list: Vec<String> = variables
        .filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| begins(name, &TELLING) && !begins(name, &UNTELLING))?;
            let value: String = value.to_string_lossy().chars().take(LONGEST).collect();
            Some(format!("{name}={value}"))
        })
        .collect();
    list.sort();
    list.join(" ")
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
            environment: "OMP_NUM_THREADS=2".into(),
            begins_late: true,
            has_gaps: false,
        };
        settings.write(directory.path()).unwrap();
        assert_eq!(RecordingSettings::read(directory.path()).unwrap(), settings);
    }

    #[test]
    fn the_environment_that_matters_is_kept() {
        let variables = [
            ("UCX_TLS", "sm"),
            ("HOME", "/root"),
            ("OMP_NUM_THREADS", "2"),
            ("OMPI_MCA_ess_base_jobid", "7"),
            ("OMPI_MCA_btl", "self,vader"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(telling(variables.into_iter()), "OMPI_MCA_btl=self,vader OMP_NUM_THREADS=2 UCX_TLS=sm");
    }
}
