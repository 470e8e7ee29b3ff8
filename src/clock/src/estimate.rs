//! The clocks that were estimated from messages.

use crate::Method;
use crate::reference::Reference;
use clc_trace::Ticks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the messages told about the clocks, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockEstimate {
    /// `--presync`.
    pub requested: Method,
    /// The model in force.
    pub chosen: Method,
    /// Why.
    pub reason: String,
    /// `--reference`: what is global time.
    pub reference: Reference,
    /// `--confidence`: share of the round trips that regression puts a line through.
    pub confidence: f64,
    /// `--segment`: longest straight line.
    pub segment_seconds: f64,
    /// `--max-delay`; null without a limit.
    pub max_delay_seconds: Option<f64>,
    /// Windows of time in which the clocks were estimated.
    pub windows: u64,
    /// Length of a window.
    pub window_seconds: f64,
    /// Half the round trip of the quickest pair of clocks.
    pub latency_seconds: f64,
    /// Mean cost of the messages under the estimated clocks, in units of their spread (delayed ones count little, impossible
    /// ones much); smaller is better, null if there were no messages between nodes.
    pub misfit_estimated: Option<f64>,
    /// The same for the recorded clocks.
    pub misfit_recorded: Option<f64>,
    /// Round trips that were discarded because their transport took longer than `--max-delay`.
    pub discarded: u64,
    /// Total disagreement of the clocks under the recorded offsets, as the estimate sees it: the sum over all pairs that
    /// exchange messages of what one is off the other, mean over the run.
    pub skew_recorded_seconds: f64,
    /// What is left of it: the sum of the residuals of the same pairs.
    pub skew_estimated_seconds: f64,
    /// The same of all clocks against their median (the Skew of Umansky and Leontev): the sum over all clocks of what one is off the
    /// median of all, mean over the run.
    #[serde(default)]
    pub skew_median_recorded_seconds: f64,
    /// What is left of it: the sum of the residuals of all clocks.
    #[serde(default)]
    pub skew_median_estimated_seconds: f64,
    /// Every pair of clocks that exchange messages.
    pub pairs: Vec<ClockPair>,
    /// Every clock: of a node, or of a process where a node has no common clock.
    pub clocks: Vec<NodeClock>,
    /// What is left out of these two ([`ClockEstimate::bounded`]).
    #[serde(default)]
    pub further: FurtherClocks,
}

/// Pairs and clocks that are left out of the lists of an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FurtherClocks {
    /// Number of pairs.
    pub pairs: u64,
    /// Number of clocks.
    pub clocks: u64,
    /// Their largest drift, in millionths, whether slow or fast.
    pub drift_ppm: f64,
    /// Their largest residual.
    pub residual_seconds: f64,
    /// Their largest uncertainty that is known.
    pub uncertainty_seconds: f64,
    /// Number of them whose uncertainty is not known.
    pub uncertainty_unknown: u64,
}

impl FurtherClocks {
    /// With one more clock left out.
    fn and(self, clock: &NodeClock) -> FurtherClocks {
        FurtherClocks {
            pairs: self.pairs,
            clocks: self.clocks + 1,
            drift_ppm: self.drift_ppm.max(clock.drift_ppm.abs()),
            residual_seconds: self.residual_seconds.max(clock.residual_seconds),
            uncertainty_seconds: self.uncertainty_seconds.max(clock.uncertainty_seconds.unwrap_or(0.0)),
            uncertainty_unknown: self.uncertainty_unknown + u64::from(clock.uncertainty_seconds.is_none()),
        }
    }
}

impl ClockEstimate {
    /// The same with at most `most` pairs and as many clocks: the pairs that agree least with the estimate, the clocks that are known least, and of all others what
    /// [`FurtherClocks`] has. Their order stays.
    #[must_use]
    pub fn bounded(mut self, most: usize) -> ClockEstimate {
        let hull = self.chosen == Method::Hull;
        let worst = |pair: &ClockPair| if hull { -pair.deviation_seconds } else { pair.deviation_seconds };
        let left = keep_largest(&mut self.pairs, most, worst);
        self.further.pairs += left.len() as u64;
        let unknown = |clock: &NodeClock| clock.uncertainty_seconds.unwrap_or(f64::INFINITY);
        let left = keep_largest(&mut self.clocks, most, unknown);
        self.further = left.iter().fold(self.further, FurtherClocks::and);
        self
    }

    /// Of all clocks, listed or not: what would be left out if none were listed.
    pub fn all_clocks(&self) -> FurtherClocks {
        self.clocks.iter().fold(self.further, FurtherClocks::and)
    }
}

/// Leaves the `most` elements with the largest values in a list, in their order, and returns the others.
fn keep_largest<T>(list: &mut Vec<T>, most: usize, value: impl Fn(&T) -> f64) -> Vec<T> {
    if list.len() <= most {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..list.len()).collect();
    order.sort_by(|&x, &y| value(&list[y]).total_cmp(&value(&list[x])));
    let kept: BTreeSet<usize> = order.into_iter().take(most).collect();
    let (listed, left): (Vec<_>, Vec<_>) =
        std::mem::take(list).into_iter().enumerate().partition(|(place, _)| kept.contains(place));
    *list = listed.into_iter().map(|(_, element)| element).collect();
    left.into_iter().map(|(_, element)| element).collect()
}

/// What the quickest messages take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortestMessages {
    /// The shortest message between processes that share a clock; zero if there are none.
    pub same_node: Ticks,
    /// Half the shortest round trip between different clocks, if it is clear; else zero.
    pub other_node: Ticks,
}

/// One estimated clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeClock {
    /// The first process that has it.
    pub first_process: u32,
    /// Whether it was taken as global time.
    pub reference: bool,
    /// Messages that it was estimated from: the quickest of each window, pair and direction.
    pub observations: u64,
    /// Pairs on the best path to the reference; null where no path has messages in both directions.
    pub hops: Option<u32>,
    /// Mean change of its offset to global time, in millionths; positive if the clock is slow.
    pub drift_ppm: f64,
    /// Root mean square of what those of its messages that met no delay are off the estimate.
    pub residual_seconds: f64,
    /// How well it is known against the reference (with a time made from several clocks: against the clock that the estimate started
    /// from): along the best path to it, half the shortest round trip of each pair and its residual, for `regression` also
    /// the standard error of the line, for `hull` the margin where that is wider; null where no path has messages in both directions.
    pub uncertainty_seconds: Option<f64>,
    /// Where it jumps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<ClockStep>,
}

/// A jump of a clock, found by the messages around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockStep {
    /// When, since the beginning of the trace.
    pub at_seconds: f64,
    /// By how much it was set forward; negative if it was set back or stood still.
    pub forward_seconds: f64,
}

/// Two clocks that exchange messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockPair {
    /// The first process of one clock.
    pub a: u32,
    /// The first process of the other.
    pub b: u32,
    /// The quickest messages of each window and direction; for `regression` the round trips that lines were put through.
    pub samples: u64,
    /// What b's clock shows less than a's at the beginning.
    pub offset_seconds: f64,
    /// Mean change of that offset, in millionths.
    pub drift_ppm: f64,
    /// Root mean square of what undelayed messages are off the estimate.
    pub residual_seconds: f64,
    /// The same; of a straight line, the standard deviation of the
    /// residuals (`regression`) or the margin to the messages (`hull`: negative if no line is feasible), largest over the segments.
    pub deviation_seconds: f64,
    /// Standard error of the offset; for `regression` only.
    pub offset_error_seconds: Option<f64>,
    /// Standard error of the drift; for `regression` only.
    pub drift_error_ppm: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(first_process: u32, drift_ppm: f64, uncertainty_seconds: Option<f64>) -> NodeClock {
        let residual_seconds = f64::from(first_process);
        NodeClock {
            first_process,
            reference: false,
            observations: 1,
            hops: None,
            drift_ppm,
            residual_seconds,
            uncertainty_seconds,
            steps: Vec::new(),
        }
    }

    #[test]
    fn the_least_known_clocks_are_listed_and_all_are_counted() {
        let mut clocks = vec![
            clock(0, -9.0, Some(1.0)),
            clock(1, 2.0, Some(5.0)),
            clock(2, 3.0, None),
            clock(3, 1.0, Some(3.0)),
            clock(4, 1.0, Some(2.0)),
        ];
        let all = clocks.iter().fold(FurtherClocks::default(), FurtherClocks::and);
        let left = keep_largest(&mut clocks, 2, |clock| clock.uncertainty_seconds.unwrap_or(f64::INFINITY));
        assert_eq!(clocks.iter().map(|clock| clock.first_process).collect::<Vec<_>>(), [1, 2]);
        let further = left.iter().fold(FurtherClocks::default(), FurtherClocks::and);
        let expected = FurtherClocks {
            pairs: 0,
            clocks: 3,
            drift_ppm: 9.0,
            residual_seconds: 4.0,
            uncertainty_seconds: 3.0,
            uncertainty_unknown: 0,
        };
        assert_eq!(further, expected);
        // Listed or not, the extremes of all are the same.
        assert_eq!(clocks.iter().fold(further, FurtherClocks::and), all);
        assert_eq!(keep_largest(&mut clocks, 2, |_| 0.0), []);
    }
}
