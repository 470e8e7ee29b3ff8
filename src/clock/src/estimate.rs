//! The clocks that were estimated from messages.

use crate::Method;
use crate::reference::Reference;
use clc_trace::Ticks;
use serde::{Deserialize, Serialize};

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
