//! Traces whose true times are known: simulated applications on machines with wrong clocks.
//!
//! A [`Scenario`] says what runs where and how wrong the clocks are; [`Scenario::run`] streams every event with its true
//! time and its local time into an [`EventSink`], in constant memory. [`Scenario::definitions`] and [`Scenario::offsets`]
//! give the definitions and the clock offset measurements of the same run. `archive::truth` keeps the true times in a file per location.
//!
//! Everything follows from the seed: the same scenario gives the same events, on every machine.
//! This layer knows the vocabulary of traces, but no archive format and no command line.

pub mod clocks;
mod definitions;
mod disturb;
mod engine;
pub mod latency;
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
pub use offsets::{MeasurementPlan, OffsetMeter};
pub use patterns::PatternKind;
pub use scenario::{Scenario, Summary};
pub use sink::{Discard, EventSink};
