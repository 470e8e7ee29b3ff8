//! Traces whose true times are known: simulated applications on machines with wrong clocks.
//!
//! A [`Scenario`] says what runs where and how wrong the clocks are; [`Scenario::run`] streams every event with its true
//! time and its local time into an [`EventSink`], in constant memory. [`Scenario::definitions`] and [`Scenario::offsets`]
//! give the definitions and the clock offset measurements of the same run.
//!
//! Everything follows from the seed: the same scenario gives the same events, on every machine.
//! This crate knows the vocabulary of traces, but no archive format and no command line.
//!
//! ```
//! use clc_simulate::{Discard, PatternKind, Scenario};
//!
//! let scenario = Scenario { ranks: 4, events: 200, pattern: PatternKind::Ring, clock: "drift".parse()?, ..Scenario::default() };
//! let summary = scenario.run(&mut Discard)?;
//! assert!(summary.events.iter().all(|&events| events >= 200));
//! # Ok::<(), clc_trace::Error>(())
//! ```
#![deny(missing_docs)]
#![deny(clippy::cast_lossless)]

pub mod clocks;
mod definitions;
mod disturb;
mod engine;
mod latency;
mod measurement_plan;
mod offsets;
mod patterns;
mod random;
mod scenario;
mod sink;
pub mod units;

#[cfg(test)]
mod tests;

pub use clocks::ClockSpec;
pub use disturb::Disturbance;
pub use latency::{LatencyModel, PairClass};
pub use measurement_plan::MeasurementPlan;
pub use offsets::OffsetMeter;
pub use patterns::PatternKind;
pub use scenario::{RunSummary, Scenario};
pub use sink::{Discard, EventSink};
