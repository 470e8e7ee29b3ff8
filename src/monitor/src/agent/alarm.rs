//! The alarm: what is written when nothing has moved for as long as the user is patient, or when a process has ended too early.

use crate::collect;
use crate::diagnose::{Diagnosis, JobVerdict, diagnose};
use crate::jobs::{AgentFile, Alarm, Job};
use crate::state::now;
use std::collections::BTreeSet;
use std::io::{Result, Write};
use std::time::{Duration, Instant, SystemTime};

/// Between two looks at the whole job. Chosen by hand: shorter asks all agents more often, longer raises the alarm later by as much.
const LOOK: Duration = Duration::from_millis(500);
/// Between the two snapshots of a look. Chosen by hand: what moves at all shows in it; longer ones hold up the agent's thread.
const PAUSE: Duration = Duration::from_millis(200);

/// Raises the alarm once for each time that the job stands still. One agent of the job does so: that with the lowest number that is there.
pub(super) struct Watchman {
    alarm: Alarm,
    number: u32,
    looked: Instant,
    /// What was said last: it is not said again.
    raised: Option<(JobVerdict, Vec<u32>)>,
}

impl Watchman {
    /// For the agent with this number.
    pub(super) fn new(job: &Job, mut alarm: Alarm, number: u32) -> Watchman {
        if alarm.file.is_relative() {
            alarm.file = job.directory.join(alarm.file);
        }
        Watchman { alarm, number, looked: Instant::now(), raised: None }
    }

    /// Looks at the job, if that is due: `moved` is when something moved last on this node, `ended` whether a process has ended here, and `gone` which agents are not there any more.
    pub(super) fn look(&mut self, job: &Job, moved: f64, ended: bool, gone: &BTreeSet<u32>) {
        let quiet = moved > 0.0 && now() - moved >= self.alarm.seconds;
        if !(quiet || ended || self.raised.is_some()) || self.looked.elapsed() < LOOK || !self.is_first(job, gone) {
            return;
        }
        self.looked = Instant::now();
        let (first, second) = collect::twice(job, PAUSE);
        let found = diagnose(Some(&first.snapshot), &second.snapshot);
        let due = match found.verdict {
            JobVerdict::Failed => true,
            // A rank that has no core does not hang: whether it moves is known once it has had one for a while.
            JobVerdict::Still => found.quiet >= self.alarm.seconds && found.starved.is_empty(),
            _ => {
                self.raised = None;
                false
            }
        };
        let what = (found.verdict, found.ranks.clone());
        if due && self.raised.as_ref() != Some(&what) && self.write(job, &found).is_ok() {
            self.raised = Some(what);
        }
    }

    /// Whether nobody with a lower number is there.
    fn is_first(&self, job: &Job, gone: &BTreeSet<u32>) -> bool {
        let there = |agent: &AgentFile| agent.ended.is_none() && !gone.contains(&agent.number);
        let mut agents = AgentFile::all(job).into_iter().filter(there);
        agents.next().is_none_or(|first| first.number >= self.number)
    }

    fn write(&self, job: &Job, found: &Diagnosis) -> Result<()> {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&self.alarm.file)?;
        let time = humantime::format_rfc3339_seconds(SystemTime::now());
        let head = format!("clc-replay: {} ({}), {time}", job.about.name, job.about.command);
        file.write_all(format!("{head}\n{}\n", found.text()).as_bytes())
    }
}
