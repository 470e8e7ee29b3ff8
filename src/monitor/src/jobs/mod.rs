//! Jobs that are monitored: a directory for each, with its key and its agents' addresses, and a list of them per user.
//!
//! ```text
//! run1.monitor/job.json        what it is
//!              key             shared by its agents and those who ask them; for its owner only
//!              agents/0.json   an agent of a node: where it is reached
//!              agents/0.last   what it knew when it ended
//!              agents/0.clocks when packets of gossip left and came
//! ```

mod agents;
mod list;
mod swept;

pub use agents::{AgentFile, FailedAgent, claim, failures};
pub(crate) use agents::{forget_failure, note_failure};
pub use list::{find, list, register};
pub use swept::{hold, sweep};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Key of a job.
pub(crate) type Key = [u8; 32];

/// When the alarm is raised, and where it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// After so many seconds in which nothing has moved.
    pub seconds: f64,
    /// Into this file.
    pub file: PathBuf,
}

/// What a job is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Tells it from an earlier one in the same place.
    pub id: String,
    /// What it is called: the name of the recording.
    pub name: String,
    /// Its command.
    pub command: String,
    /// The node on which it was started.
    pub host: String,
    /// When that was: seconds since 1970.
    pub begun: f64,
    /// Name or address of the network interface on which agents listen; if there is none, one is chosen.
    pub interface: Option<String>,
    /// Time between two gossip messages of an agent, in seconds.
    pub interval: f64,
    /// Number of nodes, if the launcher or the batch system says so: groups of agents follow from it.
    pub nodes: Option<u32>,
    /// When the alarm is raised.
    pub alarm: Option<Alarm>,
}

/// A job that is monitored.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its directory.
    pub directory: PathBuf,
    /// What it is.
    pub about: About,
    /// Its key.
    pub key: Key,
}

impl Job {
    /// Makes its directory, in place of that of an earlier job.
    ///
    /// # Errors
    /// It cannot be written; something else is there.
    pub fn create(directory: &Path, about: About) -> Result<Job> {
        if directory.exists() {
            remove(directory)?;
        }
        std::fs::DirBuilder::new().mode(0o700).create(directory)?;
        std::fs::create_dir(directory.join("agents"))?;
        let key = random()?;
        let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(directory.join("key"))?;
        file.write_all(text.as_bytes())?;
        write_json(&directory.join("job.json"), &about)?;
        Ok(Job { directory: directory.to_owned(), about, key })
    }

    /// Reads it.
    ///
    /// # Errors
    /// There is none, or it cannot be read; its key can be read by others.
    pub fn open(directory: &Path) -> Result<Job> {
        let about: About = read_json(&directory.join("job.json"))?;
        let path = directory.join("key");
        let wrong = |what: &str| Error::new(ErrorKind::InvalidData, format!("{}: {what}", path.display()));
        let mut file = std::fs::File::open(&path)
            .map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        let meta = file.metadata()?;
        if meta.mode() & 0o077 != 0 || meta.uid() != user()? {
            return Err(wrong("the key file has to belong to you, and nobody else may read it (chmod 600)"));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|_| wrong("not a key"))?;
        let mut key = [0; 32];
        for (place, pair) in key.iter_mut().zip(text.trim().as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong("not a key"))?;
            *place = u8::from_str_radix(pair, 16).map_err(|_| wrong("not a key"))?;
        }
        if text.trim().len() != 64 {
            return Err(wrong("not a key"));
        }
        Ok(Job { directory: directory.to_owned(), about, key })
    }

    /// Whether the directory of the job is still that of this one.
    pub(crate) fn is_there(&self) -> bool {
        Job::open(&self.directory).is_ok_and(|job| job.about.id == self.about.id)
    }

    /// Where the state files of its processes on a node are.
    ///
    /// # Errors
    /// There is no place for them.
    pub(crate) fn states(&self, host: &str) -> Result<PathBuf> {
        Ok(state_directory(&self.about.id)?.join(host.replace('/', "_")))
    }
}

/// Removes the directory of a job; only what is its own.
///
/// # Errors
/// There is something else in it.
pub fn remove(directory: &Path) -> Result<()> {
    if !directory.join("job.json").is_file() {
        return Err(Error::new(ErrorKind::AlreadyExists, "it exists and is not the directory of a monitored job"));
    }
    let agents = directory.join("agents");
    for entry in agents.read_dir()?.flatten() {
        std::fs::remove_file(entry.path())?;
    }
    std::fs::remove_dir(agents)?;
    for name in ["key", "alarm.txt", "clocks.log", "job.json"] {
        match std::fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::remove_dir(directory)
}

/// Where the processes of a job keep their states, on each node: in memory, for this user only.
///
/// # Errors
/// There is no such place, or it belongs to somebody else.
pub fn state_directory(id: &str) -> Result<PathBuf> {
    Ok(own_directory()?.join(id))
}

/// Where the states of all jobs of this user are.
fn own_directory() -> Result<PathBuf> {
    let shared = Path::new("/dev/shm");
    let base = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let own = base.join(format!("clc-replay-{}", user()?));
    match std::fs::DirBuilder::new().mode(0o700).create(&own) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let meta = std::fs::symlink_metadata(&own)?;
    if !meta.is_dir() || meta.uid() != user()? || meta.mode() & 0o022 != 0 {
        return Err(Error::new(ErrorKind::PermissionDenied, format!("{} belongs to another user", own.display())));
    }
    Ok(own)
}

/// What several processes find out without asking each other, if all know these words, and others do not: 16 digits.
pub fn identity(words: &[String]) -> String {
    let hash = blake3::hash(words.join("\0").as_bytes()).to_hex();
    hash.get(..16).unwrap_or_default().to_owned()
}

/// Number of this user.
pub(crate) fn user() -> Result<u32> {
    Ok(std::fs::metadata("/proc/self")?.uid())
}

/// Name of this node.
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read(path).map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::new(ErrorKind::InvalidData, format!("{}: {error}", path.display())))
}

/// Writes it so that nobody sees half of it.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let temporary = path.with_extension(format!("{}.part", std::process::id()));
    std::fs::write(&temporary, serde_json::to_vec_pretty(value)?)?;
    std::fs::rename(&temporary, path)
}
