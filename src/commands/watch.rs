//! `clc-replay watch`: what a job is doing, and whom it waits for.

use super::job::{find, write};
use crate::cli::WatchOptions;
use crate::live::{JobReport, serve_metrics, show};
use crate::output::conflicts::{self, Content};
use crate::output::files;
use crate::report::{WatchedPage, watched_page};
use clc_monitor::collect::{stacks, twice};
use clc_monitor::diagnose::{JobVerdict, diagnose};
use clc_monitor::history::Log;
use clc_trace::format::printable;
use clc_trace::{Error, Result};
use std::io::IsTerminal;
use std::time::Duration;

/// Between two snapshots. Chosen by hand: what moves at all shows in it, and who asks does not notice the wait.
const PAUSE: Duration = Duration::from_millis(250);

/// Tells it once, or shows it until somebody ends that; returns the exit status.
pub(super) fn watch(options: &WatchOptions) -> Result<u8> {
    let job = find(&options.job)?;
    if let Some(address) = options.metrics {
        let ready = |address| {
            let line = format!("metrics of {} are at http://{address}/metrics\n", job.about.name);
            if !options.log.quiet {
                let _ = files::print(printable(&line).as_bytes());
            }
        };
        return serve_metrics(&job, address, ready).map(|()| 0);
    }
    if !options.why && options.html.is_none() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return Ok(status(show(&job)?.verdict));
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
