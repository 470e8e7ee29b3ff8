//! The alarm: what is written when nothing has moved for as long as the user is patient, or when a process has ended too early.

use crate::collect;
use crate::diagnose::{Diagnosis, Verdict, diagnose};
use crate::jobs::{AgentFile, Alarm, Job};
use crate::state::now;
use std::collections::BTreeSet;
use std::io::{Result, Write};
use std::time::{Duration, Instant};

/// Between two looks at the whole job.
const LOOK: Duration = Duration::from_millis(500);
/// Between the two snapshots of a look.
const PAUSE: Duration = Duration::from_millis(200);

/// Raises the alarm once for each time that the job stands still. One agent of the job does so: that with the lowest number that is there.
pub struct Watchman {
    alarm: Alarm,
    number: u32,
    looked: Instant,
    /// What was said last: it is not said again.
    raised: Option<(Verdict, Vec<u32>)>,
}

impl Watchman {
    /// For the agent with this number.
    pub fn new(job: &Job, mut alarm: Alarm, number: u32) -> Watchman {
        if alarm.file.is_relative() {
            alarm.file = job.directory.join(alarm.file);
        }
        Watchman { alarm, number, looked: Instant::now(), raised: None }
    }

    /// Looks at the job, if that is due: `moved` is when something moved last on this node, `ended` whether a process has ended here, and `gone` which agents are not there any more.
    pub fn look(&mut self, job: &Job, moved: f64, ended: bool, gone: &BTreeSet<u32>) {
        let quiet = moved > 0.0 && now() - moved >= self.alarm.seconds;
        if !(quiet || ended || self.raised.is_some()) || self.looked.elapsed() < LOOK || !self.is_first(job, gone) {
            return;
        }
        self.looked = Instant::now();
        let (first, second) = collect::twice(job, PAUSE);
        let found = diagnose(Some(&first.snapshot), &second.snapshot);
        let due = match found.verdict {
            Verdict::Failed => true,
            Verdict::Still => found.quiet >= self.alarm.seconds,
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
        let head = format!("clc-replay: {} ({}), {}", job.about.name, job.about.command, utc(now()));
        file.write_all(format!("{head}\n{}\n", found.text()).as_bytes())
    }
}

/// A time as `2026-01-31 14:03:22 UTC`.
pub fn utc(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in years that begin in March (Howard Hinnant, chrono-compatible low-level date algorithms).
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + 400 * era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        assert_eq!(utc(0.0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_827_696.0), "2000-02-29 12:34:56 UTC");
        assert_eq!(utc(1_735_689_599.0), "2024-12-31 23:59:59 UTC");
    }
}
