//! The agents of a job, as its directory names them.

use super::{Job, read_json, write_json};
use crate::clocks::log::EXTENSION;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Result};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Most nodes of a job. Chosen by hand: more than any machine has; ends the search where no number can be claimed.
const MOST: u32 = 1 << 20;

/// An agent of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentFile {
    /// Its number in the job.
    pub number: u32,
    /// Its node.
    pub host: String,
    /// Its process.
    pub process: u32,
    /// Where gossip reaches it (UDP).
    pub gossip: SocketAddr,
    /// Where it answers questions (TCP).
    pub query: SocketAddr,
    /// When it began: seconds since 1970.
    pub begun: f64,
    /// When it ended by itself.
    pub ended: Option<f64>,
    /// The ranks that are there.
    pub ranks: Vec<u32>,
}

/// A number that no other agent of the job has.
///
/// # Errors
/// The directory cannot be written.
pub fn claim(job: &Job) -> Result<u32> {
    for number in 0..MOST {
        let path = job.directory.join("agents").join(format!("{number}.claim"));
        match std::fs::OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(_) => return Ok(number),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::StorageFull.into())
}

impl AgentFile {
    fn path(job: &Job, number: u32) -> PathBuf {
        job.directory.join("agents").join(format!("{number}.json"))
    }

    /// Where an agent keeps what it knew when it ended.
    pub(crate) fn last(job: &Job, number: u32) -> PathBuf {
        job.directory.join("agents").join(format!("{number}.last"))
    }

    /// Where an agent notes when packets went and came.
    pub fn clocks(job: &Job, number: u32) -> PathBuf {
        job.directory.join("agents").join(format!("{number}.{EXTENSION}"))
    }

    /// Tells others.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn write(&self, job: &Job) -> Result<()> {
        write_json(&AgentFile::path(job, self.number), self)
    }

    /// All agents of a job, in the order of their numbers.
    pub fn all(job: &Job) -> Vec<AgentFile> {
        AgentFile::those(job, |_| true)
    }

    /// The agents with these numbers; the files of others are not read.
    pub(crate) fn those(job: &Job, wanted: impl Fn(u32) -> bool) -> Vec<AgentFile> {
        let entries = job.directory.join("agents").read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        let number = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        let files = files.filter(|path| number(path).is_some_and(&wanted));
        let mut agents: Vec<AgentFile> = files.filter_map(|path| read_json(&path).ok()).collect();
        agents.sort_by_key(|agent| agent.number);
        agents
    }
}

/// A node whose agent could not start, or has failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedAgent {
    /// Its name.
    pub host: String,
    /// What was wrong.
    pub why: String,
}

/// How the name of a file ends that says why there is no agent on a node.
const FAILED: &str = "failed";

fn failure(job: &Job, host: &str) -> PathBuf {
    job.directory.join("agents").join(format!("{}.{FAILED}", host.replace('/', "_")))
}

/// Notes why there is no agent on a node.
pub(crate) fn note_failure(job: &Job, host: &str, why: &str) {
    // If it cannot be written, nobody hears of it.
    let _ = write_json(&failure(job, host), &FailedAgent { host: host.to_owned(), why: why.to_owned() });
}

/// There is one now.
pub(crate) fn forget_failure(job: &Job, host: &str) {
    let _ = std::fs::remove_file(failure(job, host));
}

/// The nodes without an agent, as far as they have said so.
pub fn failures(job: &Job) -> Vec<FailedAgent> {
    let entries = job.directory.join("agents").read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == FAILED));
    let mut failed: Vec<FailedAgent> = files.filter_map(|path| read_json(&path).ok()).collect();
    failed.sort_by(|one, other| one.host.cmp(&other.host));
    failed
}
