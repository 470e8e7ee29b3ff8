//! The critical path, found backwards.
//!
//! Without waiting, an operation that waits for others starts when the last of them is ready, so every path through the execution graph
//! that jumps at each wait to the process that ended it covers time without a gap: it is as long as the execution, and no path
//! is longer. The same holds for any weight that is an integral over time, so the weighted critical path is this path as well. It is
//! found from its end: on the present process back to the last wait, from there to its cause, and so on. The argument in full:
//! `docs/analysis.md`.

use serde::{Deserialize, Serialize};

/// A wait that ended when another process was ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathWait {
    /// When it ended.
    pub end: i64,
    /// The process that was ready then.
    pub cause: u32,
    /// It ended before that process was ready: the clock condition is violated.
    pub broken: bool,
}

/// Where the search is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSearch {
    /// The present process.
    pub process: u32,
    /// The present time; everything after it is done.
    pub time: i64,
    /// Processes that the path has left at exactly this time.
    left: Vec<u32>,
    /// How often the path went from one process to another.
    pub changes: u64,
    /// How often it did so although the cause comes after its effect, or because causes are in a cycle.
    pub broken: u64,
}

impl PathSearch {
    /// So many processes at one time are a cycle: more than that many steps without any duration are not followed.
    const SAME_TIME: usize = 256;

    /// From the last event of the trace, at `time` on `process`.
    pub fn new(process: u32, time: i64) -> PathSearch {
        PathSearch { process, time, left: Vec::new(), changes: 0, broken: 0 }
    }

    /// Goes back over one stretch on the present process, whose `waits` are sorted. Returns where the stretch begins: at the end of
    /// a wait, and then the search has gone to its cause; or `None` if there is no wait before, and the path ends here.
    pub fn step(&mut self, waits: &[PathWait]) -> Option<i64> {
        let mut next = waits.partition_point(|wait| wait.end <= self.time);
        // A cause that the path has been at in this very moment would lead around in a cycle.
        while let Some(wait) = next.checked_sub(1).map(|last| waits[last]) {
            let same = wait.end == self.time;
            let cycle = wait.cause == self.process
                || same && (self.left.contains(&wait.cause) || self.left.len() >= Self::SAME_TIME);
            if !cycle {
                if !same {
                    self.left.clear();
                }
                self.left.push(self.process);
                self.changes += 1;
                self.broken += u64::from(wait.broken);
                (self.process, self.time) = (wait.cause, wait.end);
                return Some(wait.end);
            }
            self.broken += 1;
            next -= 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(end: i64, cause: u32) -> PathWait {
        PathWait { end, cause, broken: false }
    }

    /// The whole path, from its end: (process, from, to).
    fn path(waits: &[Vec<PathWait>], process: u32, time: i64) -> (Vec<(u32, i64, i64)>, PathSearch) {
        let mut search = PathSearch::new(process, time);
        let mut stretches = Vec::new();
        loop {
            let (process, to) = (search.process, search.time);
            let from = search.step(&waits[process as usize]);
            stretches.push((process, from.unwrap_or(0), to));
            if from.is_none() {
                return (stretches, search);
            }
        }
    }

    #[test]
    fn from_wait_to_cause() {
        // 0 waits for 1 until 20, 1 has waited for 2 until 12; a later wait of 1 and an earlier one of 0 do not matter.
        let waits = vec![vec![wait(5, 2), wait(20, 1)], vec![wait(12, 2), wait(25, 0)], vec![]];
        let (stretches, search) = path(&waits, 0, 30);
        assert_eq!(stretches, [(0, 20, 30), (1, 12, 20), (2, 0, 12)]);
        assert_eq!((search.changes, search.broken), (2, 0));
    }

    #[test]
    fn a_chain_in_no_time_is_followed() {
        let waits = vec![vec![wait(20, 1)], vec![wait(20, 2)], vec![]];
        let (stretches, search) = path(&waits, 0, 30);
        assert_eq!(stretches, [(0, 20, 30), (1, 20, 20), (2, 0, 20)]);
        assert_eq!(search.broken, 0);
    }

    #[test]
    fn a_cycle_ends() {
        let broken = |end, cause| PathWait { end, cause, broken: true };
        let waits = vec![vec![broken(20, 1)], vec![broken(20, 0)]];
        let (stretches, search) = path(&waits, 0, 30);
        assert_eq!(stretches, [(0, 20, 30), (1, 0, 20)]);
        assert_eq!((search.changes, search.broken), (1, 2));
        let (stretches, _) = path(&[vec![wait(20, 0)]], 0, 30);
        assert_eq!(stretches, [(0, 0, 30)]);
    }
}
