//! Time within calls of MPI, of all threads of a process: what is not in it was computed.

use clc_execution::windows::Windows;

/// Time in MPI of one process: whenever one of its locations is in MPI.
pub(super) struct Busy {
    sums: Vec<i64>,
    /// Intervals by stage, if those of several locations have to be joined.
    several: Option<Vec<Vec<(i64, i64)>>>,
}

impl Busy {
    pub(super) fn new(stages: usize, several: bool) -> Busy {
        Busy { sums: vec![0; stages], several: several.then(|| vec![Vec::new(); stages]) }
    }

    pub(super) fn add(&mut self, enter: [i64; 2], leave: [i64; 2], windows: &[Windows], computing: &mut [Vec<i128>]) {
        for stage in 0..self.sums.len() {
            let (from, to) = (enter[stage], leave[stage].max(enter[stage]));
            match &mut self.several {
                Some(all) => all[stage].push((from, to)),
                None => take(stage, from, to, &mut self.sums, windows, computing),
            }
        }
    }

    /// Time in MPI by stage.
    pub(super) fn finish(mut self, windows: &[Windows], computing: &mut [Vec<i128>]) -> Vec<i64> {
        for (stage, mut intervals) in self.several.take().unwrap_or_default().into_iter().enumerate() {
            intervals.sort_unstable();
            let mut done = i64::MIN;
            for (from, to) in intervals {
                let from = from.max(done);
                if to > from {
                    take(stage, from, to, &mut self.sums, windows, computing);
                    done = to;
                }
            }
        }
        self.sums
    }
}

/// Counts an interval in MPI and takes it off the time of computing.
fn take(stage: usize, from: i64, to: i64, sums: &mut [i64], windows: &[Windows], computing: &mut [Vec<i128>]) {
    sums[stage] += to - from;
    windows[stage].parts(from, to, |index, from, to| computing[stage][index] -= i128::from(to - from));
}
