//! A running job that is monitored, as its agents tell it: on a terminal, for Prometheus, and as JSON for programs.

mod json;
mod metrics;
mod terminal;

pub(crate) use json::{JobEntry, JobList, JobReport, word};
pub(crate) use metrics::serve_metrics;
pub(crate) use terminal::show;
