//! Degree of parallelism, and the weight that the critical path has by it.
//!
//! P is the share of the processes that compute; here it is known as its exact average in each of some windows. An edge of the
//! execution graph of duration dt weighs dt + (1 - P)(n - 1) dt: dt while all processes compute, n dt while none does. So
//! the weight of an edge is W(end) - W(begin), W being the integral of 1 + (1 - P)(n - 1) over time.

use crate::windows::Windows;

/// The degree of parallelism over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parallelism {
    windows: Windows,
    /// Number of processes, n; at least 1.
    processes: u64,
    /// Time that processes compute, summed over the processes, by window.
    computing: Vec<i128>,
    /// n W at the beginning of each window, and at the end.
    weights: Vec<i128>,
}

impl Parallelism {
    /// For `processes` that compute for `computing` in each of the windows, summed over the processes.
    pub fn new(windows: Windows, processes: u64, mut computing: Vec<i128>) -> Parallelism {
        let processes = processes.max(1);
        let n = i128::from(processes);
        computing.resize(windows.count, 0);
        let mut weights = vec![0];
        let mut sum = 0;
        for (index, computing) in computing.iter().enumerate() {
            let length = i128::from(windows.begin(index + 1) - windows.begin(index));
            sum += n * length + (n - 1) * (n * length - computing);
            weights.push(sum);
        }
        Parallelism { windows, processes, computing, weights }
    }

    /// Its windows.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// P by window; 0 in windows without a length.
    pub fn degrees(&self) -> Vec<f64> {
        let degree = |(index, &computing): (usize, &i128)| {
            let length = self.windows.begin(index + 1) - self.windows.begin(index);
            let whole = i128::from(length) * i128::from(self.processes);
            if whole == 0 { 0.0 } else { computing as f64 / whole as f64 }
        };
        self.computing.iter().enumerate().map(degree).collect()
    }

    /// n W at `time`: exact at the boundaries of windows, linear between them, rounded down.
    pub(crate) fn scaled_weight(&self, time: i64) -> i128 {
        let time = time.clamp(self.windows.first, self.windows.last);
        let index = self.windows.window(time);
        let begin = self.windows.begin(index);
        let length = i128::from(self.windows.begin(index + 1) - begin);
        let (from, whole) = (self.weights[index], self.weights[index + 1] - self.weights[index]);
        if length == 0 {
            return from;
        }
        let passed = i128::from(time - begin);
        // In two parts, so that no product is too large.
        from + (whole / length) * passed + (whole % length) * passed / length
    }

    /// n times the weight of what lasts from `from` to `to`.
    pub fn scaled_weight_between(&self, from: i64, to: i64) -> i128 {
        self.scaled_weight(to) - self.scaled_weight(from)
    }

    /// A scaled weight in ticks.
    pub fn ticks(&self, scaled: i128) -> f64 {
        scaled as f64 / self.processes as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_computing_weighs_once_none_weighs_n_times() {
        // Four processes; all compute, two compute, none does.
        let windows = Windows::new(0, 30, 3);
        let parallelism = Parallelism::new(windows, 4, vec![40, 20, 0]);
        assert_eq!(parallelism.degrees(), [1.0, 0.5, 0.0]);
        let weight = |from, to| parallelism.ticks(parallelism.scaled_weight_between(from, to));
        assert_eq!(weight(0, 10), 10.0);
        assert_eq!(weight(10, 20), 10.0 + 0.5 * 3.0 * 10.0);
        assert_eq!(weight(20, 30), 40.0);
        assert_eq!(weight(5, 12), 5.0 + 2.0 * 2.5);
        assert_eq!(weight(0, 30), 75.0);
    }

    #[test]
    fn one_process_weighs_its_time() {
        let parallelism = Parallelism::new(Windows::new(7, 17, 3), 1, vec![0, 2, 1]);
        assert_eq!(parallelism.ticks(parallelism.scaled_weight_between(8, 15)), 7.0);
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        // Times are below 2^62 on both sides of zero.
        let last = (1 << 62) - 1;
        let parallelism = Parallelism::new(Windows::new(-last, last, 1), 1 << 20, vec![12345]);
        let half = parallelism.scaled_weight(0);
        assert!(half > 0 && half < parallelism.scaled_weight(last));
    }

    #[test]
    fn an_empty_span_has_no_weight() {
        let parallelism = Parallelism::new(Windows::new(5, 5, 10), 0, Vec::new());
        assert_eq!(parallelism.scaled_weight(5), 0);
        assert_eq!(parallelism.degrees(), [0.0; 10]);
    }
}
