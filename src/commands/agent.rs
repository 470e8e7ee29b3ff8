//! `clc-replay agent`: the agent of a node, and what is handed to the agents of a job.

use super::job::{failed, find};
use crate::cli::AgentOptions;
use clc_monitor::jobs::{self, AgentFile, Job};
use clc_monitor::query::{Question, ask};
use clc_monitor::setting::{Setting, SettingKind};
use clc_monitor::{agent, state};
use clc_trace::{Error, Result};
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// How long an agent may take to answer. Chosen by hand: longer only delays the message that it is silent; a busy node may need a second.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the agent of this node, or hands something to one that runs; returns the exit status.
pub(super) fn agent(options: &AgentOptions) -> Result<u8> {
    match &options.words[..] {
        [] => {}
        [put, key, value] if put == "put" => return give(&find(&options.job)?, key, value),
        [word, name, rest @ ..] if rest.len() < 2 && (word == "formula" || word == "sensor") => {
            let kind = if word == "formula" { SettingKind::Formula } else { SettingKind::Sensor };
            let text = rest.first().cloned().unwrap_or_default();
            return set(&find(&options.job)?, Setting { kind, name: name.clone(), text, given: given() });
        }
        _ => {
            let what = "expected `put KEY VALUE`, `formula NAME [FORMULA]` or `sensor NAME [FILE]`";
            return Err(Error::new(what).hint("quote a formula that contains blanks"));
        }
    }
    let failed = |error: std::io::Error| failed(&options.job, &error);
    if options.detach {
        let arguments = [OsString::from("agent"), options.job.clone().into_os_string()];
        return agent::start_detached(&arguments).map(|()| 0).map_err(failed);
    }
    // The recorder says so; then this process belongs to an application that is to notice nothing of it.
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<i32>().ok());
    let lock = number("CLC_RECORDER_LOCK");
    if lock.is_some() {
        agent::become_independent(lock).map_err(failed)?;
    }
    let wanted = std::env::var("CLC_RECORDER_LAUNCH").ok();
    agent::run(&options.job, wanted.as_deref(), lock.is_some()).map(|()| 0).map_err(failed)
}

/// Nanoseconds since 1970.
fn given() -> u64 {
    (state::now() * 1e9) as u64
}

/// Asks an agent of a job: that of this node, else any.
fn ask_any<T: DeserializeOwned>(job: &Job, question: &Question) -> Result<T> {
    let agents = AgentFile::all(job);
    let host = jobs::host();
    let here = agents.iter().filter(|agent| agent.ended.is_none()).min_by_key(|agent| agent.host != host);
    let agent = here.ok_or_else(|| Error::new("no agent of this job is running").in_file(&job.directory))?;
    ask(agent.query, &job.key, question, PATIENCE)
        .map_err(|error| Error::new(format!("the agent on {} does not answer: {error}", agent.host)))
}

fn give(job: &Job, key: &str, value: &str) -> Result<u8> {
    let taken: bool = ask_any(job, &Question::Put(key.to_owned(), value.to_owned()))?;
    if taken { Ok(0) } else { Err(Error::new("the agent refused it: the key or the value is too long")) }
}

fn set(job: &Job, setting: Setting) -> Result<u8> {
    let what = if setting.kind == SettingKind::Formula { "formula" } else { "sensor" };
    let (kind, name, text) = (setting.kind, setting.name.clone(), setting.text.clone());
    match ask_any::<Option<String>>(job, &Question::Set(setting))? {
        None => {
            if kind == SettingKind::Sensor && !text.is_empty() && !Path::new(&text).is_file() {
                tracing::warn!("{text} is not a file on this node; nodes without it have no data of the sensor {name}");
            }
            Ok(0)
        }
        Some(why) => Err(Error::new(format!("the agent refused the {what} {name}: {why}"))),
    }
}
