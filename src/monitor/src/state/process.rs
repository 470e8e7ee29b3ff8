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

/// How much of a processor a process has had, and how much it has waited for one: its first thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreTime {
    /// For so many seconds it ran.
    pub ran: f64,
    /// For so many it was ready to run, but all cores were taken by others.
    pub waited: f64,
    /// So often it was given one.
    pub turns: u64,
}

impl CoreTime {
    /// Of the process with this id since its start; none if it is gone, or the kernel does not count that (`CONFIG_SCHED_INFO`).
    pub(crate) fn look(id: u32) -> Option<CoreTime> {
        CoreTime::of_schedstat(&std::fs::read_to_string(format!("/proc/{id}/schedstat")).ok()?)
    }

    /// From the text of `/proc/PID/schedstat`: nanoseconds on a core, nanoseconds without one, and how often it got one.
    fn of_schedstat(text: &str) -> Option<CoreTime> {
        let mut numbers = text.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let mut seconds = || numbers.next().map(|ns| ns as f64 * 1e-9);
        Some(CoreTime { ran: seconds()?, waited: seconds()?, turns: numbers.next()? })
    }

    /// What came after an earlier look.
    pub(crate) fn since(self, earlier: CoreTime) -> CoreTime {
        CoreTime {
            ran: (self.ran - earlier.ran).max(0.0),
            waited: (self.waited - earlier.waited).max(0.0),
            turns: self.turns.saturating_sub(earlier.turns),
        }
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
        assert_eq!(time, CoreTime { ran: 2.5, waited: 0.5, turns: 17 });
        let earlier = CoreTime { ran: 2.0, waited: 0.5, turns: 16 };
        assert_eq!(time.since(earlier), CoreTime { ran: 0.5, waited: 0.0, turns: 1 });
        assert_eq!(CoreTime::of_schedstat("nonsense"), None);
        assert_eq!(CoreTime::of_schedstat("1 2"), None);
    }
}
