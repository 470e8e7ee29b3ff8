//! The jobs of this user: a directory with a link to that of each job.

use super::{Job, user};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// Where links to the jobs are: `CLC_REPLAY_JOBS`, or `clc-replay/jobs` in `XDG_STATE_HOME` or `~/.local/state`, or in `/tmp`.
fn directory() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(directory) = variable("CLC_REPLAY_JOBS") {
        return Ok(directory);
    }
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
    match state {
        Some(state) => Ok(state.join("clc-replay/jobs")),
        None => Ok(PathBuf::from(format!("/tmp/clc-replay-{}/jobs", user()?))),
    }
}

/// Puts a job on the list. An entry of the same name whose directory is another one stays; then this one gets a number.
///
/// # Errors
/// The list cannot be written.
pub fn register(job: &Job) -> Result<String> {
    let list = directory()?;
    std::fs::create_dir_all(&list)?;
    let target = job.directory.canonicalize()?;
    for number in 1..10_000 {
        let name = if number == 1 { job.about.name.clone() } else { format!("{}-{number}", job.about.name) };
        let link = list.join(&name);
        match std::os::unix::fs::symlink(&target, &link) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Err(_) if std::fs::read_link(&link).is_ok_and(|known| known == target) => return Ok(name),
            // What it names is not there any more.
            Err(_) if Job::open(&link).is_err() => {
                std::fs::remove_file(&link)?;
                std::os::unix::fs::symlink(&target, &link)?;
                return Ok(name);
            }
            Err(_) => {}
        }
    }
    Err(ErrorKind::StorageFull.into())
}

/// The jobs of this user with their names, the latest one first. Those whose directory has been removed are forgotten.
///
/// # Errors
/// The list is there and cannot be read.
pub fn list() -> Result<Vec<(String, Job)>> {
    let entries = match directory()?.read_dir() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut jobs = Vec::new();
    for entry in entries.flatten() {
        match Job::open(&entry.path()) {
            Ok(job) => {
                let directory = std::fs::read_link(entry.path()).unwrap_or(entry.path());
                jobs.push((entry.file_name().to_string_lossy().into_owned(), Job { directory, ..job }));
            }
            Err(_) if !entry.path().exists() => drop(std::fs::remove_file(entry.path())),
            Err(_) => {}
        }
    }
    jobs.sort_by(|(_, one), (_, other)| other.about.begun.total_cmp(&one.about.begun));
    Ok(jobs)
}

/// A job by its name on the list, its directory, or the recording that is made of it.
///
/// # Errors
/// There is no such job.
pub fn find(name: &Path) -> Result<Job> {
    let mut beside = name.as_os_str().to_owned();
    beside.push(".monitor");
    let mut places = vec![name.to_owned(), PathBuf::from(beside)];
    if name.components().count() == 1 {
        places.push(directory()?.join(name));
    }
    match places.iter().find(|place| place.join("job.json").is_file()) {
        Some(place) => Job::open(place),
        None => Err(Error::new(ErrorKind::NotFound, format!("there is no monitored job '{}'", name.display()))),
    }
}
