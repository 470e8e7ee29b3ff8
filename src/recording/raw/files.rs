//! The raw files of a recording.

use crate::recording::raw::RawFile;
use crate::recording::raw::format::RUNNING;
use clc_trace::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of one process, by thread.
pub(crate) type Files = Vec<RawFile>;

/// Whether a process has recorded anything there, readable or not. A directory that cannot be read may hold something.
pub(crate) fn holds_records(directory: &Path) -> bool {
    let Ok(entries) = directory.read_dir() else { return true };
    entries.into_iter().any(|entry| entry.map_or(true, |entry| is_raw(&entry.path())))
}

fn is_raw(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "raw")
}

/// Raw files in a directory, by rank. What cannot be read becomes a warning.
///
/// # Errors
/// There is none that can be read.
pub(crate) fn open_all(directory: &Path, warnings: &mut Vec<String>) -> Result<BTreeMap<u32, Files>> {
    let failed = |error: std::io::Error| Error::io(directory, "cannot read the recording", &error);
    let mut processes: BTreeMap<u32, Files> = BTreeMap::new();
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in directory.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_raw(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut first_error = None;
    for path in &paths {
        match RawFile::open(path) {
            Ok(file) => processes.entry(file.header.rank).or_default().push(file),
            Err(error) => {
                warnings.push(error.to_string());
                first_error.get_or_insert(error);
            }
        }
    }
    if processes.is_empty() {
        let nothing = Error::new("no process recorded anything").in_file(directory);
        return Err(first_error.unwrap_or_else(|| {
            nothing.hint("is the application dynamically linked with Open MPI or MPICH, and did it call MPI_Init? Programs that use sessions alone are not recorded")
        }));
    }
    processes.values_mut().for_each(|files| files.sort_by_key(|file| file.header.thread));
    Ok(processes)
}

/// A process of a recording that may still run on this machine, if there is one: its id.
///
/// # Errors
/// The recording cannot be read.
pub(crate) fn still_running(directory: &Path) -> Result<Option<u32>> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let processes = open_all(directory, &mut Vec::new())?;
    let mut files = processes.values().flatten().map(|file| &file.header);
    Ok(files
        .find(|header| {
            let maps = PathBuf::from(format!("/proc/{}/maps", header.process));
            header.state == RUNNING
                && header.host == host.trim()
                && std::fs::read_to_string(maps).is_ok_and(|maps| maps.contains("libclc_recorder"))
        })
        .map(|header| header.process))
}
