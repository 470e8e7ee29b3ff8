//! `clc-replay jobs`: the jobs of this user that are monitored.

use super::job::write;
use crate::cli::JobsOptions;
use crate::live::{JobEntry, JobList, word};
use crate::output::conflicts::{self, Content};
use crate::output::files;
use crate::report::SCHEMA;
use clc_monitor::collect::collect;
use clc_monitor::diagnose::{JobVerdict, diagnose, duration};
use clc_monitor::{jobs, state};
use clc_trace::format::{os_text, printable};
use clc_trace::{Error, Result};
use std::collections::BTreeSet;

/// Lists them; returns the exit status.
pub(super) fn list(options: &JobsOptions) -> Result<u8> {
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
            directory: os_text(&job.directory),
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
