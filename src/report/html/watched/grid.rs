//! Moments of several nodes on one axis of time.

use crate::report::html::plot::ticks;
use clc_monitor::history::{Log, Moment};

/// Most columns of a picture. Chosen by hand: more are narrower than a pixel or two.
const COLUMNS: usize = 600;

/// An axis of time in columns of the same length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeColumns {
    /// Where it begins: seconds since 1970.
    pub from: f64,
    /// Its length in seconds.
    pub span: f64,
    /// Number of columns.
    pub columns: usize,
}

impl TimeColumns {
    /// For these logs; none if there is no time in them.
    pub(super) fn new(logs: &[Log]) -> Option<TimeColumns> {
        let times = || logs.iter().flat_map(|log| &log.moments).map(|moment| moment.time);
        let (from, to) = (times().fold(f64::INFINITY, f64::min), times().fold(f64::NEG_INFINITY, f64::max));
        let most = logs.iter().map(|log| log.moments.len()).max()?;
        (to > from && (to - from).is_finite()).then(|| TimeColumns {
            from,
            span: to - from,
            columns: most.clamp(1, COLUMNS),
        })
    }

    /// The end of a column: seconds since 1970.
    fn end(&self, column: usize) -> f64 {
        self.from + self.span * (column + 1) as f64 / self.columns as f64
    }

    /// For each column the number of moments of a log that were noted until its end; none while nothing is known of the node.
    pub(super) fn until(&self, log: &Log) -> Vec<Option<usize>> {
        let mut seen = 0;
        let column = |column: usize| {
            let end = self.end(column);
            // The last one may have been rounded away.
            while log.moments.get(seen).is_some_and(|moment| moment.time <= end + 1e-9 * self.span) {
                seen += 1;
            }
            let last = log.moments.get(seen.checked_sub(1)?)?;
            let patience = 2.5 * log.interval_after(seen - 1);
            (end - last.time <= patience.max(self.span / self.columns as f64)).then_some(seen)
        };
        (0..self.columns).map(column).collect()
    }

    /// A value for each column: the latest.
    pub(super) fn values(&self, log: &Log, value: impl Fn(&Moment) -> Option<f64>) -> Vec<Option<f64>> {
        let until = self.until(log).into_iter();
        until.map(|seen| value(log.moments.get(seen? - 1)?).filter(|value| value.is_finite())).collect()
    }

    /// Labels of the axis: (share, text).
    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        let (unit, name) = match self.span {
            span if span < 180.0 => (1.0, "s"),
            span if span < 3.0 * 3600.0 => (60.0, "min"),
            _ => (3600.0, "h"),
        };
        let marks = ticks(0.0, self.span / unit, 8).into_iter();
        marks.map(|at| (at * unit / self.span, format!("{} {name}", crate::report::html::plot::short(at)))).collect()
    }
}
