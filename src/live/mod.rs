//! A running job that is monitored, as its agents tell it: on a terminal, for Prometheus, and as JSON for programs.

mod json;
mod metrics;
mod terminal;

pub use json::{JobEntry, JobList, JobReport, word};
pub use metrics::serve_metrics;
pub use terminal::show;
