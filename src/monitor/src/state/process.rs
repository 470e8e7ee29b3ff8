//! What the kernel knows of a process, and the time.

use super::Life;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// Seconds since 1970.
pub fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Ticks per second in `/proc/PID/stat`: the same on every Linux (`USER_HZ`).
const TICKS: f64 = 100.0;

/// A process at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProcessStatus {
    /// Whether it is there.
    pub life: Life,
    /// Processor time that it has used, in seconds; 0 if it is gone.
    pub cpu: f64,
}

impl ProcessStatus {
    const GONE: ProcessStatus = ProcessStatus { life: Life::Gone, cpu: 0.0 };

    /// Looks at the process with this id that was started at this tick since boot.
    pub(crate) fn look(id: u32, started: u64) -> ProcessStatus {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"));
        stat.ok().and_then(|stat| ProcessStatus::of_stat(&stat, started)).unwrap_or(ProcessStatus::GONE)
    }

    /// From the text of `/proc/PID/stat`.
    fn of_stat(stat: &str, started: u64) -> Option<ProcessStatus> {
        // The name of the process may contain anything.
        let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |place: usize| words.get(place)?.parse::<u64>().ok();
        if started != 0 && number(19)? != started {
            return Some(ProcessStatus::GONE);
        }
        let life = match *words.first()? {
            "Z" | "X" | "x" => return Some(ProcessStatus::GONE),
            "T" | "t" => Life::Stopped,
            _ => Life::Runs,
        };
        Some(ProcessStatus { life, cpu: (number(11)? + number(12)?) as f64 / TICKS })
    }
}

/// In so many seconds a process that computes has been seen to do so. Chosen by hand: shorter calls one asleep that has just begun, longer says it later than that nothing moves.
const ASLEEP: f64 = 0.5;
/// Part of the time that a process runs at most, or is ready to, if it sleeps. Chosen by hand: the threads of MPI libraries take some thousandths.
const IDLE: f64 = 0.02;
/// So often per second its first thread is woken at most. Chosen by hand: a program that looks for something wakes itself more often.
const WOKEN: f64 = 1.0;

/// How much of a processor a process has had, and how much it has waited for one: its first thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreTime {
    /// For so many seconds it ran.
    pub ran: f64,
    /// For so many it was ready to run, but all cores were taken by others.
    pub waited: f64,
    /// So often it was given one.
    pub turns: u64,
    /// All of its threads together ran for so many seconds.
    #[serde(default)]
    pub used: f64,
    /// In so many seconds.
    #[serde(default)]
    pub within: f64,
}

impl CoreTime {
    /// Of the process with this id, whose threads have used so many seconds, since its start; none if it is gone, or the kernel does not count that (`CONFIG_SCHED_INFO`).
    pub(crate) fn look(id: u32, used: f64) -> Option<CoreTime> {
        let time = CoreTime::of_schedstat(&std::fs::read_to_string(format!("/proc/{id}/schedstat")).ok()?)?;
        Some(CoreTime { used, within: now(), ..time })
    }

    /// From the text of `/proc/PID/schedstat`: nanoseconds on a core, nanoseconds without one, and how often it got one.
    fn of_schedstat(text: &str) -> Option<CoreTime> {
        let mut numbers = text.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let mut seconds = || numbers.next().map(|ns| ns as f64 * 1e-9);
        let (ran, waited) = (seconds()?, seconds()?);
        Some(CoreTime { ran, waited, turns: numbers.next()?, ..CoreTime::default() })
    }

    /// What came after an earlier look.
    pub(crate) fn since(self, earlier: CoreTime) -> CoreTime {
        CoreTime {
            ran: (self.ran - earlier.ran).max(0.0),
            waited: (self.waited - earlier.waited).max(0.0),
            turns: self.turns.saturating_sub(earlier.turns),
            used: (self.used - earlier.used).max(0.0),
            within: (self.within - earlier.within).max(0.0),
        }
    }

    /// It has neither run nor been ready to, nor has it looked for anything.
    pub(crate) fn slept(&self) -> bool {
        let little = |seconds: f64| seconds < IDLE * self.within;
        self.within >= ASLEEP
            && little(self.ran)
            && little(self.waited)
            // The kernel counts in hundredths of a second.
            && little(self.used - 1.0 / TICKS)
            && (self.turns as f64) <= 1.0 + WOKEN * self.within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_told_by_when_they_started() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 1 0 4711 0 0";
        assert_eq!(ProcessStatus::of_stat(stat, 4711), Some(ProcessStatus { life: Life::Runs, cpu: 2.0 }));
        assert_eq!(ProcessStatus::of_stat(stat, 4712), Some(ProcessStatus::GONE));
        assert_eq!(ProcessStatus::of_stat(&stat.replace(" S ", " T "), 4711).map(|p| p.life), Some(Life::Stopped));
        assert_eq!(ProcessStatus::of_stat(&stat.replace(" S ", " Z "), 4711), Some(ProcessStatus::GONE));
        assert_eq!(ProcessStatus::of_stat("nonsense", 1), None);
        assert_eq!(ProcessStatus::look(std::process::id(), 0).life, Life::Runs);
        assert_eq!(ProcessStatus::look(std::process::id(), 1), ProcessStatus::GONE);
    }

    #[test]
    fn times_with_and_without_a_core_are_read() {
        let time = CoreTime::of_schedstat("2500000000 500000000 17\n").unwrap();
        assert_eq!(time, CoreTime { ran: 2.5, waited: 0.5, turns: 17, ..CoreTime::default() });
        let earlier = CoreTime { ran: 2.0, waited: 0.5, turns: 16, ..CoreTime::default() };
        assert_eq!(time.since(earlier), CoreTime { ran: 0.5, waited: 0.0, turns: 1, ..CoreTime::default() });
        assert!(!time.slept() && CoreTime { turns: 3, within: 4.0, ..CoreTime::default() }.slept());
        for awake in [CoreTime { ran: 0.1, ..CoreTime::default() }, CoreTime { waited: 0.1, ..CoreTime::default() }] {
            assert!(!CoreTime { within: 4.0, ..awake }.slept());
        }
        // Another thread works for it, or it looks for something now and then.
        assert!(!CoreTime { used: 0.1, within: 4.0, ..CoreTime::default() }.slept());
        assert!(!CoreTime { turns: 10, within: 4.0, ..CoreTime::default() }.slept());
        assert_eq!(CoreTime::of_schedstat("nonsense"), None);
        assert_eq!(CoreTime::of_schedstat("1 2"), None);
    }
}
