//! How far events were moved, and what that did to the intervals between them.

use serde::{Deserialize, Serialize};

/// Differences of the corrected from the pre-synchronised times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Displacement {
    /// Number of events.
    pub events: u64,
    /// Number of events whose time was changed.
    pub events_moved: u64,
    /// Largest displacement of an event, in ticks.
    pub largest_ticks: i64,
    /// The same in seconds.
    pub largest_seconds: f64,
    /// Mean displacement of the moved events, in seconds.
    pub mean_seconds: f64,
    /// Number of events whose time is not the recorded one: pre-synchronisation moves them as well.
    #[serde(default)]
    pub from_recorded_events: u64,
    /// Largest difference of a corrected from a recorded time, in ticks.
    #[serde(default)]
    pub from_recorded_largest_ticks: i64,
    /// The same in seconds.
    #[serde(default)]
    pub from_recorded_largest_seconds: f64,
    /// Change of the intervals between neighbouring events of a location.
    pub interval_change: IntervalChange,
}

/// By how much the interval between two neighbouring events of a location got longer or shorter, in percent of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalChange {
    /// The largest change, in percent; infinite (null in JSON) where an interval of no length got one.
    #[serde(deserialize_with = "crate::report::json::number_or_infinity")]
    pub largest_percent: f64,
    /// The median of all intervals, in percent.
    pub median_percent: f64,
    /// Number of intervals by change, in the order of [`IntervalChange::BOUNDS`], then those beyond.
    pub classes: Vec<ChangeClass>,
    /// Changed intervals by powers of two of their change, in rising order.
    pub histogram: Vec<ChangeOctave>,
}

/// Intervals whose change is at least [`ChangeOctave::from_percent`] and less than twice that. What lies beyond either end of the
/// range that is told apart counts in the class at that end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChangeOctave {
    /// Smallest change of the class, in percent.
    pub from_percent: f64,
    /// How many intervals are in it.
    pub intervals: u64,
}

/// Number of intervals whose change lies in one class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChangeClass {
    /// Largest change of the class in percent, inclusive; none for the last class, which is open.
    pub up_to_percent: Option<f64>,
    /// How many intervals are in this class and in no earlier one.
    pub intervals: u64,
}

impl IntervalChange {
    /// Upper bounds of the classes in percent; one more class lies beyond.
    pub const BOUNDS: [f64; 6] = [0.0, 0.01, 0.1, 1.0, 10.0, 100.0];

    /// The class of an interval that was `before` ticks and is `after` ticks long, exactly: an index into
    /// [`IntervalChange::BOUNDS`], or its length for the class beyond (also an interval that was zero and is not).
    pub fn class(before: i64, after: i64) -> usize {
        let (change, before) = (after.abs_diff(before), before.unsigned_abs());
        // Bounds as fractions of the interval: 0.01 % is 1/10,000. Each that is exceeded is one class more.
        let beyond = match change.checked_mul(10_000) {
            Some(many) => [many > before, change * 1_000 > before, change * 100 > before, change * 10 > before],
            None => [10_000_u128, 1_000, 100, 10].map(|times| u128::from(change) * times > u128::from(before)),
        };
        usize::from(change > 0) + beyond.into_iter().map(usize::from).sum::<usize>() + usize::from(change > before)
    }

    /// The classes with these counts, in the order of [`IntervalChange::class`].
    pub fn classes(counts: [u64; 7]) -> Vec<ChangeClass> {
        let bounds = Self::BOUNDS.into_iter().map(Some).chain([None]);
        bounds.zip(counts).map(|(up_to_percent, intervals)| ChangeClass { up_to_percent, intervals }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_include_their_upper_bound() {
        let classes = |cases: &[(i64, i64)]| -> Vec<usize> {
            cases.iter().map(|&(before, after)| IntervalChange::class(before, after)).collect()
        };
        assert_eq!(classes(&[(10_000, 10_000), (10_000, 10_001), (10_000, 9_999), (10_000, 10_002)]), [0, 1, 1, 2]);
        assert_eq!(classes(&[(1000, 1010), (1000, 1011), (1000, 900), (1000, 899)]), [3, 4, 4, 5]);
        assert_eq!(classes(&[(1000, 2000), (1000, 2001), (1000, 0), (0, 0), (0, 1)]), [5, 6, 5, 0, 6]);
        assert_eq!(classes(&[(i64::MIN, i64::MAX), (i64::MAX, i64::MIN)]), [6, 6]);
    }

    #[test]
    fn classes_have_their_bounds() {
        let classes = IntervalChange::classes([1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(classes.len(), 7);
        assert_eq!(classes[2], ChangeClass { up_to_percent: Some(0.1), intervals: 3 });
        assert_eq!(classes[6], ChangeClass { up_to_percent: None, intervals: 7 });
    }
}
