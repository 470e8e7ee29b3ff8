//! Errors against a truth, counted while events stream by; mergeable sums of integers, the same for any distribution over ranks.

use crate::report::{ErrorStatistics, IntervalAccuracy, IntervalChange};
use clc_trace::{Error, Result};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Slices of the run in which errors are kept apart. Chosen by hand: with more, a slice holds too few events for a mean; with fewer, errors that come
/// and go within a slice average out.
pub(crate) const SLICES: usize = 200;

/// Count and sum of errors, for their mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sum {
    /// How many.
    pub count: u64,
    /// Their sum in ticks, with signs.
    pub sum: i128,
    /// Sum of their squares.
    pub squares: u128,
}

impl Sum {
    /// Adds an error in ticks.
    #[inline]
    pub(crate) fn add(&mut self, error: i64) {
        self.count += 1;
        self.sum += i128::from(error);
        let magnitude = u128::from(error.unsigned_abs());
        self.squares = self.squares.saturating_add(magnitude * magnitude);
    }

    /// Adds the errors of another sum.
    pub(crate) fn merge(&mut self, other: &Sum) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The mean in ticks, rounded down.
    pub(crate) fn mean(&self) -> i64 {
        if self.count == 0 { 0 } else { self.sum.div_euclid(i128::from(self.count)) as i64 }
    }

    /// The mean in ticks with its fraction.
    pub(crate) fn exact_mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Root of the mean square in ticks.
    pub(crate) fn rms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { (self.squares as f64 / self.count as f64).sqrt() }
    }
}

/// The distribution of errors.
#[derive(Debug, Clone)]
pub(crate) struct Distribution {
    sum: Sum,
    magnitudes: u128,
    largest: u64,
    histogram: Histogram<u64>,
}

/// A distribution on its way between ranks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PackedDistribution {
    sum: Sum,
    magnitudes: u128,
    largest: u64,
    counts: BTreeMap<u64, u64>,
}

impl Distribution {
    /// Without any error yet.
    ///
    /// # Errors
    /// Never, but the library says so.
    pub(crate) fn new() -> Result<Self> {
        let histogram = Histogram::new_with_bounds(1, 1 << 62, 3)
            .map_err(|error| Error::new(format!("cannot create a histogram: {error}")))?;
        Ok(Distribution { sum: Sum::default(), magnitudes: 0, largest: 0, histogram })
    }

    /// Adds an error in ticks.
    #[inline]
    pub(crate) fn add(&mut self, error: i64) {
        self.sum.add(error);
        let magnitude = error.unsigned_abs();
        self.magnitudes += u128::from(magnitude);
        self.largest = self.largest.max(magnitude);
        self.histogram.saturating_record(magnitude);
    }

    /// For another rank.
    pub(crate) fn pack(&self) -> PackedDistribution {
        let counts = self.histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        PackedDistribution {
            sum: self.sum,
            magnitudes: self.magnitudes,
            largest: self.largest,
            counts: counts.collect(),
        }
    }

    /// Adds what another rank has counted.
    pub(crate) fn merge(&mut self, other: &PackedDistribution) {
        self.sum.merge(&other.sum);
        self.magnitudes += other.magnitudes;
        self.largest = self.largest.max(other.largest);
        for (&value, &count) in &other.counts {
            self.histogram.saturating_record_n(value, count);
        }
    }

    /// How many errors there are.
    pub(crate) fn count(&self) -> u64 {
        self.sum.count
    }

    /// The statistics in seconds, for `tick` seconds per tick.
    pub(crate) fn statistics(&self, tick: f64) -> ErrorStatistics {
        let quantile = |q| {
            if self.count() == 0 { 0.0 } else { self.histogram.value_at_quantile(q).min(self.largest) as f64 * tick }
        };
        ErrorStatistics {
            rms_seconds: self.sum.rms() * tick,
            mean_seconds: self.magnitudes as f64 / self.count().max(1) as f64 * tick,
            p50_seconds: quantile(0.5),
            p95_seconds: quantile(0.95),
            p99_seconds: quantile(0.99),
            max_seconds: self.largest as f64 * tick,
        }
    }
}

/// Intervals between neighbouring events, against their true lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(crate) struct IntervalCounts {
    classes: [u64; 7],
    durations: [u128; 7],
    /// Largest change of an interval that is long enough, as change and true length.
    steepest: (u64, u64),
}

impl IntervalCounts {
    /// An interval of `truth` ticks that became `now` ticks; slopes are taken from intervals of at least `long` ticks.
    #[inline]
    pub(crate) fn add(&mut self, truth: i64, now: i64, long: i64) {
        let class = IntervalChange::class(truth, now);
        self.classes[class] += 1;
        self.durations[class] += u128::from(truth.unsigned_abs());
        if truth >= long {
            self.steeper((now.abs_diff(truth), truth as u64));
        }
    }

    fn steeper(&mut self, other: (u64, u64)) {
        let (change, length) = self.steepest;
        if u128::from(other.0) * u128::from(length.max(1)) > u128::from(change) * u128::from(other.1.max(1)) {
            self.steepest = other;
        }
    }

    /// Adds the counts of others.
    pub(crate) fn merge(&mut self, other: &IntervalCounts) {
        for class in 0..7 {
            self.classes[class] += other.classes[class];
            self.durations[class] += other.durations[class];
        }
        self.steeper(other.steepest);
    }

    /// For the report.
    pub(crate) fn report(&self) -> IntervalAccuracy {
        let total: u128 = self.durations.iter().sum();
        IntervalAccuracy {
            classes: IntervalChange::classes(self.classes),
            duration_percent: self.durations.iter().map(|&d| d as f64 * 100.0 / total.max(1) as f64).collect(),
            largest_slope_percent: self.steepest.0 as f64 * 100.0 / self.steepest.1.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_few_errors_are_exact() -> Result<()> {
        let mut whole = Distribution::new()?;
        let mut half = Distribution::new()?;
        for error in [-3, 0, 4] {
            whole.add(error);
        }
        half.add(5);
        whole.merge(&half.pack());
        let statistics = whole.statistics(2.0);
        assert_eq!(whole.count(), 4);
        assert_eq!(statistics.rms_seconds, (50.0f64 / 4.0).sqrt() * 2.0);
        assert_eq!(statistics.mean_seconds, 6.0);
        assert_eq!((statistics.p50_seconds, statistics.p95_seconds, statistics.max_seconds), (6.0, 10.0, 10.0));
        assert_eq!(Distribution::new()?.statistics(1.0), ErrorStatistics::default());
        Ok(())
    }

    #[test]
    fn large_errors_keep_three_digits() -> Result<()> {
        let mut distribution = Distribution::new()?;
        distribution.add(123_456_789_012);
        distribution.add(1 << 61);
        let statistics = distribution.statistics(1.0);
        assert!((statistics.p50_seconds / 123_456_789_012.0 - 1.0).abs() < 0.001);
        assert_eq!(statistics.max_seconds, (1u64 << 61) as f64);
        Ok(())
    }

    #[test]
    fn intervals_are_classed_by_number_and_duration() {
        let mut counts = IntervalCounts::default();
        counts.add(100, 100, 10);
        counts.add(100, 150, 10);
        counts.add(5, 500, 10);
        let report = counts.report();
        let numbers: Vec<u64> = report.classes.iter().map(|class| class.intervals).collect();
        assert_eq!(numbers, [1, 0, 0, 0, 0, 1, 1]);
        assert_eq!(report.largest_slope_percent, 50.0, "short intervals are rounding");
        assert!((report.duration_percent[5] - 100.0 * 100.0 / 205.0).abs() < 1e-9);
    }
}
