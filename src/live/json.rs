//! What `clc-replay jobs --json` and `watch --why --json` write, for programs. `docs/report.md` has the fields.

use crate::report::SCHEMA;
use clc_monitor::collect::Collected;
use clc_monitor::diagnose::{CommRow, Diagnosis, JobVerdict, RankRow, SilentNode};
use clc_monitor::jobs::Job;
use clc_monitor::query::{AgentReport, AgentTraffic, ClockRemark, Computed, PeerAgent, SystemClocks};
use clc_monitor::stacks::ProcessStacks;
use serde::Serialize;

/// What a verdict is called.
pub(crate) fn word(verdict: JobVerdict) -> &'static str {
    match verdict {
        JobVerdict::Unknown => "unknown",
        JobVerdict::Moves => "moves",
        JobVerdict::Still => "still",
        JobVerdict::Failed => "failed",
        JobVerdict::Finished => "finished",
    }
}

/// The jobs that are monitored.
#[derive(Debug, Serialize)]
pub(crate) struct JobList {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The latest one first.
    pub jobs: Vec<JobEntry>,
}

/// A job that is monitored.
#[derive(Debug, Serialize)]
pub(crate) struct JobEntry {
    /// What it is called.
    pub name: String,
    /// Its directory.
    pub directory: String,
    /// Its command.
    pub command: String,
    /// When it was started: seconds since 1970.
    pub begun: f64,
    /// Nodes that are known.
    pub nodes: usize,
    /// Ranks that are known.
    pub ranks: usize,
    /// As `verdict` in [`JobReport`], or `ended`: no agent is there any more.
    pub state: &'static str,
    /// Who is missing where.
    pub sentence: String,
}

/// A job as it is now.
#[derive(Debug, Serialize)]
pub(crate) struct JobReport<'a> {
    schema: u32,
    job: &'a str,
    command: &'a str,
    /// Seconds since 1970.
    time: f64,
    verdict: &'static str,
    sentence: &'a str,
    quiet_seconds: f64,
    ranks_to_blame: &'a [u32],
    starved_ranks: &'a [u32],
    ranks: &'a [RankRow],
    communicators: &'a [CommRow],
    silent_nodes: &'a [SilentNode],
    stacks: &'a [ProcessStacks],
    agents: Vec<Agent<'a>>,
}

/// What an agent has answered.
#[derive(Debug, Serialize)]
struct Agent<'a> {
    number: u32,
    host: &'a str,
    members: &'a [PeerAgent],
    data: &'a [(String, String)],
    resources: &'a [(String, f64, String)],
    traffic: &'a AgentTraffic,
    job: &'a [(String, f64, String)],
    formulas: &'a [Computed],
    clocks: &'a SystemClocks,
    remarks: &'a [ClockRemark],
}

impl<'a> JobReport<'a> {
    /// Of what was seen of a job, what is to be said of it, and the stacks that were asked for.
    pub(crate) fn new(
        job: &'a Job,
        seen: &'a Collected,
        found: &'a Diagnosis,
        stacks: &'a [ProcessStacks],
    ) -> JobReport<'a> {
        let agent = |report: &'a AgentReport| Agent {
            number: report.number,
            host: &report.host,
            members: &report.members,
            data: &report.data,
            resources: &report.resources,
            traffic: &report.traffic,
            job: &report.job,
            formulas: &report.formulas,
            clocks: &report.clocks,
            remarks: &report.remarks,
        };
        JobReport {
            schema: SCHEMA,
            job: &job.about.name,
            command: &job.about.command,
            time: seen.snapshot.time,
            verdict: word(found.verdict),
            sentence: &found.sentence,
            quiet_seconds: found.quiet,
            ranks_to_blame: &found.ranks,
            starved_ranks: &found.starved,
            ranks: &found.rows,
            communicators: &found.comms,
            silent_nodes: &seen.snapshot.silent,
            stacks,
            agents: seen.reports.iter().map(agent).collect(),
        }
    }
}
