//! `clc-replay agent`, `jobs` and `watch`: jobs that run, as `clc-replay record --monitor` has started them.

use super::metrics;
use super::watch_live::live;
use super::watched::{JobEntry, JobList, JobReport, word};
use crate::cli::{AgentOptions, JobsOptions, MonitorJob, WatchOptions};
use crate::output::conflicts::{self, Content};
use crate::output::files;
use crate::report::{self, SCHEMA, WatchedPage, watched_page};
use clc_monitor::collect::{collect, stacks, twice};
use clc_monitor::diagnose::{JobVerdict, diagnose, duration};
use clc_monitor::history::Log;
use clc_monitor::jobs::{self, AgentFile, Job};
use clc_monitor::query::{Question, ask};
use clc_monitor::setting::{Setting, SettingKind};
use clc_monitor::{agent, state};
use clc_trace::format::printable;
use clc_trace::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

/// Between two snapshots.
const PAUSE: Duration = Duration::from_millis(250);
/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does what is asked; returns the exit status. This process must not have started MPI.
///
/// # Errors
/// There is no such job, or its agents do not answer.
pub fn monitor(job: &MonitorJob) -> Result<u8> {
    match job {
        MonitorJob::Agent(options) => run_agent(options),
        MonitorJob::Jobs(options) => list(options),
        MonitorJob::Watch(options) => watch(options),
    }
}

fn failed(what: &Path, error: &std::io::Error) -> Error {
    // What the monitor says names the file itself.
    Error::new(format!("{error}")).in_file(what)
}

fn find(name: &Path) -> Result<Job> {
    jobs::find(name).map_err(|error| {
        Error::new(error.to_string()).hint("`clc-replay jobs` lists them; `clc-replay record --monitor` starts one")
    })
}

fn run_agent(options: &AgentOptions) -> Result<u8> {
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
    let name = setting.name.clone();
    match ask_any::<Option<String>>(job, &Question::Set(setting))? {
        None => Ok(0),
        Some(why) => Err(Error::new(format!("the agent refused the {what} {name}: {why}"))),
    }
}

fn list(options: &JobsOptions) -> Result<u8> {
    // What is left of jobs whose agents were killed takes memory only.
    let _ = jobs::sweep();
    let jobs = jobs::list().map_err(|error| Error::new(format!("cannot read the list of jobs: {error}")))?;
    if let Some(path) = &options.json {
        conflicts::allow(path, Content::Json, options.force)?;
    }
    let mut text = format!("{:<16} {:>5} {:>6} {:>9}  {:<9} command\n", "job", "nodes", "ranks", "since", "state");
    let mut entries = Vec::new();
    for (name, job) in jobs {
        let seen = collect(&job, &BTreeSet::new());
        let found = diagnose(None, &seen.snapshot);
        let state = match (seen.alive, found.verdict) {
            (0, JobVerdict::Finished | JobVerdict::Unknown) => "finished",
            (0, _) => "ended",
            (_, verdict) => word(verdict),
        };
        if seen.alive == 0 && !options.all {
            continue;
        }
        let since = duration(state::now() - job.about.begun);
        let (nodes, ranks) = (seen.reports.len() + seen.snapshot.silent.len(), seen.snapshot.ranks.len());
        text += &format!("{name:<16} {nodes:>5} {ranks:>6} {since:>9}  {state:<9} {}\n", job.about.command);
        entries.push(JobEntry {
            name,
            directory: job.directory.display().to_string(),
            command: job.about.command,
            begun: job.about.begun,
            nodes,
            ranks,
            state,
            sentence: found.sentence,
        });
    }
    match &options.json {
        Some(path) => write(path, &JobList { schema: SCHEMA, jobs: entries }, options.force)?,
        None if entries.is_empty() => {
            files::print(b"no job is being monitored (start one with `clc-replay record --monitor`)\n")?
        }
        None => files::print(printable(&text).as_bytes())?,
    }
    Ok(0)
}

fn watch(options: &WatchOptions) -> Result<u8> {
    let job = find(&options.job)?;
    if let Some(address) = options.metrics {
        let ready = |address| tracing::info!("metrics of {} are at http://{address}/metrics", job.about.name);
        return metrics::serve(&job, address, ready).map(|()| 0);
    }
    if !options.why && options.html.is_none() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return Ok(status(live(&job)?.verdict));
    }
    if let Some(path) = &options.json {
        conflicts::allow(path, Content::Json, options.force)?;
    }
    if let Some(path) = &options.html {
        conflicts::allow(path, Content::Page, options.force)?;
        if options.json.as_ref().is_some_and(|json| json == path) {
            return Err(Error::new("--json and --html cannot have the same file").in_file(path));
        }
    }
    let (first, second) = twice(&job, PAUSE);
    let found = diagnose(Some(&first.snapshot), &second.snapshot);
    let ranks = if options.stacks { &found.ranks } else { &options.stack };
    let stacks = if ranks.is_empty() { Vec::new() } else { stacks(&job, &second, ranks) };
    if let Some(path) = &options.html {
        let (logs, unread) = Log::all(&job);
        let page = WatchedPage { about: &job.about, seen: &second, found: &found, logs: &logs, unread: &unread };
        files::write(path, watched_page(&page).as_bytes(), Content::Page, options.force)?;
    }
    let text = match &options.json {
        Some(path) => {
            write(path, &JobReport::new(&job, &second, &found, &stacks), options.force)?;
            String::new()
        }
        None if options.html.is_some() && !options.why => String::new(),
        None => stacks.iter().fold(found.text() + &second.text(), |text, stack| text + "\n" + &stack.text()),
    };
    if !options.log.quiet {
        files::print(printable(&text).as_bytes())?;
    }
    Ok(status(found.verdict))
}

/// The exit status for a verdict.
fn status(verdict: JobVerdict) -> u8 {
    match verdict {
        JobVerdict::Moves | JobVerdict::Finished => 0,
        JobVerdict::Still => 1,
        JobVerdict::Failed | JobVerdict::Unknown => 3,
    }
}

/// Writes it as JSON, as all reports are.
fn write<T: Serialize>(path: &Path, report: &T, force: bool) -> Result<()> {
    files::write(path, report::json(report)?.as_bytes(), Content::Json, force)
}
