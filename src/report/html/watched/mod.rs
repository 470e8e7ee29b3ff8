//! A job that was watched, as a page: what is to be said of it, and what the logs of its agents say over time.
//!
//! | file | what |
//! | --- | --- |
//! | `grid` | moments of several nodes on one axis of time |
//! | `states` | ranks by state over time, and each of them |
//! | `curves` | one line per node over time |
//! | `tables` | ranks, communicators, nodes |

mod curves;
mod grid;
mod states;
mod tables;

#[cfg(test)]
mod tests;

use super::element::{escape, facts};
use super::{Chapter, Page, document};
use clc_monitor::collect::Collected;
use clc_monitor::diagnose::{Diagnosis, JobVerdict, duration, moment};
use clc_monitor::history::Log;
use clc_monitor::jobs::About;
use clc_trace::format::plural;
use grid::TimeColumns;
use std::collections::BTreeMap;

/// What the page shows.
#[derive(Debug)]
pub(crate) struct WatchedPage<'a> {
    /// The job.
    pub about: &'a About,
    /// What its agents say now, or said last.
    pub seen: &'a Collected,
    /// What that says.
    pub found: &'a Diagnosis,
    /// What they have noted over time.
    pub logs: &'a [Log],
    /// Logs that cannot be read, and why.
    pub unread: &'a [String],
}

impl WatchedPage<'_> {
    /// Names of nodes by the numbers of their agents.
    fn hosts(&self) -> BTreeMap<u32, String> {
        let known = self.seen.reports.iter().flat_map(|report| &report.members);
        let mut hosts: BTreeMap<u32, String> = known.map(|known| (known.number, known.host.clone())).collect();
        hosts.extend(self.seen.reports.iter().map(|report| (report.number, report.host.clone())));
        hosts.extend(self.logs.iter().map(|log| (log.number, log.host.clone())));
        hosts
    }
}

/// A job as a complete HTML document. The same data give the same bytes.
pub(crate) fn watched_page(page: &WatchedPage) -> String {
    let grid = TimeColumns::new(page.logs);
    let chapters: Vec<Chapter> = [
        Chapter { id: "states", title: "Ranks by state over time", body: states::body(page, grid.as_ref()) },
        Chapter { id: "ranks", title: "Ranks", body: tables::ranks(page) },
        Chapter { id: "communicators", title: "Communicators", body: tables::communicators(page) },
        Chapter { id: "nodes", title: "Nodes", body: tables::nodes(page) },
        Chapter { id: "resources", title: "Resources over time", body: curves::resources(page, grid.as_ref()) },
        Chapter { id: "clocks", title: "Clocks over time", body: curves::clocks(page, grid.as_ref()) },
        Chapter { id: "log", title: "The log", body: log(page) },
    ]
    .into_iter()
    .filter(|chapter| !chapter.body.is_empty())
    .collect();
    let (word, _) = verdict(page.found.verdict);
    document(&Page {
        title: &format!("{}: {word}", page.about.name),
        styles: &[include_str!("watched.css")],
        header: &header(page),
        chapters: &chapters,
        footer: &format!(
            "clc-replay {}. The same for scripts: <code>clc-replay watch --why --json</code>.",
            env!("CARGO_PKG_VERSION")
        ),
        version: env!("CARGO_PKG_VERSION"),
        script: "",
    })
}

/// In a word, and what the badge looks like.
fn verdict(verdict: JobVerdict) -> (&'static str, &'static str) {
    match verdict {
        JobVerdict::Unknown => ("unknown", "unsure"),
        JobVerdict::Moves => ("moves", "good"),
        JobVerdict::Still => ("still", "bad"),
        JobVerdict::Failed => ("failed", "bad"),
        JobVerdict::Finished => ("finished", "good"),
    }
}

fn header(page: &WatchedPage) -> String {
    let (word, class) = verdict(page.found.verdict);
    let moves = page.found.rows.iter().map(|row| row.moves).sum::<u64>();
    let list = [
        ("Nodes", (page.seen.reports.len() + page.seen.snapshot.silent.len()).to_string()),
        ("of which silent", page.seen.snapshot.silent.len().to_string()),
        ("Ranks", page.found.rows.len().to_string()),
        ("Completed MPI calls", moves.to_string()),
        ("Since the last one", escape(&duration(page.found.quiet))),
    ];
    format!(
        "<header>\n<p class=\"eyebrow\">clc-replay watch · {name}</p>\n<h1><span class=\"badge {class}\">{word}</span> {sentence}</h1>\n\
         <p class=\"lede\"><code>{command}</code>, started on {host} at {begun}, seen at {seen}.</p>\n{facts}</header>\n",
        name = escape(&page.about.name),
        sentence = escape(&page.found.sentence),
        command = escape(&page.about.command),
        host = escape(&page.about.host),
        begun = moment(page.about.begun),
        seen = moment(page.seen.snapshot.time),
        facts = facts(&list),
    )
}

/// Where it is all from, and what is missing.
fn log(page: &WatchedPage) -> String {
    let moments = page.logs.iter().map(|log| log.moments.len() as u64).sum();
    let mut text = format!(
        "<p>{} of {}. States are those at the logged moments; what happened in between is not known.</p>\n",
        escape(&plural(moments, "moment")),
        escape(&plural(page.logs.len() as u64, "agent")),
    );
    for log in page.logs.iter().filter(|log| log.damaged > 0) {
        let lines = plural(log.damaged as u64, "line");
        text += &format!("<p>{} of the log of {} cannot be read.</p>\n", escape(&lines), escape(&log.host));
    }
    for what in page.unread {
        text += &format!("<p>Not read: {}.</p>\n", escape(what));
    }
    text
}

/// What stands where a picture would be.
fn nothing(why: &str) -> String {
    format!("<p class=\"none\">{}</p>\n", escape(why))
}
