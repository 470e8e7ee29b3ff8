//! What the main location of a process does between its operations: time by region, which delay costs compare.

/// Time between operations by region, in the order of the operations.
#[derive(Debug, Default)]
pub struct Gaps {
    /// Where the entries before each operation end; those of the next one begin there.
    ends: Vec<usize>,
    /// Region and time by stage; of a region at most one before each operation.
    entries: Vec<(u32, [i64; 2])>,
}

impl Gaps {
    /// In the place of a region: outside of all.
    pub const OUTSIDE: u32 = u32::MAX;

    /// Number of operations of the main location, which are the first ones of its timeline.
    pub fn operations(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Time by region and stage before one of the operations, after the one before it.
    pub fn before(&self, operation: u32) -> &[(u32, [i64; 2])] {
        let end = |operation: usize| self.ends.get(operation).copied().unwrap_or(self.entries.len());
        let from = (operation as usize).checked_sub(1).map_or(0, end);
        &self.entries[from..end(operation as usize)]
    }
}

/// Finds them, event by event.
#[derive(Debug, Default)]
pub struct GapRecorder {
    /// Until when time is accounted for; none before the first event.
    until: Option<[i64; 2]>,
    /// Since the last operation, by region.
    sums: Vec<(u32, [i64; 2])>,
    gaps: Gaps,
}

impl GapRecorder {
    /// Until `time` the location was in `region`; in an operation if there is none.
    pub fn until(&mut self, region: Option<u32>, time: [i64; 2]) {
        let (Some(since), Some(region)) = (self.until.replace(time), region) else { return };
        let last = [0, 1].map(|stage| (time[stage] - since[stage]).max(0));
        if last == [0, 0] {
            return;
        }
        match self.sums.iter_mut().find(|(known, _)| *known == region) {
            Some((_, sums)) => (0..2).for_each(|stage| sums[stage] += last[stage]),
            None => self.sums.push((region, last)),
        }
    }

    /// The next operation begins.
    pub fn operation(&mut self) {
        self.gaps.entries.append(&mut self.sums);
        self.gaps.ends.push(self.gaps.entries.len());
    }

    /// All of them.
    pub fn finish(self) -> Gaps {
        self.gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_operations() {
        let mut recorder = GapRecorder::default();
        recorder.until(Some(7), [10, 11]);
        recorder.until(Some(7), [15, 16]);
        recorder.until(Some(8), [17, 18]);
        recorder.until(Some(7), [20, 24]);
        recorder.operation();
        recorder.until(None, [30, 30]);
        recorder.operation();
        recorder.until(None, [31, 31]);
        recorder.until(Some(Gaps::OUTSIDE), [32, 33]);
        recorder.operation();
        let gaps = recorder.finish();
        assert_eq!(gaps.operations(), 3);
        assert_eq!(gaps.before(0), [(7, [8, 11]), (8, [2, 2])]);
        assert_eq!(gaps.before(1), []);
        assert_eq!(gaps.before(2), [(Gaps::OUTSIDE, [1, 2])]);
    }
}
