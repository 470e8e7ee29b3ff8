//! What a command that makes a trace has made.

use super::Warning;
use super::table::labelled;
use clc_trace::format::{duration, plural, rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A trace that was simulated or perturbed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The subcommand: `simulate` or `perturb`.
    pub command: String,
    /// Directory of the trace.
    pub output: String,
    /// Whether the true times lie in its `truth` directory.
    pub truth: bool,
    /// MPI processes.
    pub processes: u64,
    /// Nodes; each has a clock of its own.
    pub nodes: u64,
    /// Event streams.
    pub locations: u64,
    /// Events of all locations.
    pub events: u64,
    /// Length of the run in true time, in seconds.
    pub true_seconds: f64,
    /// Largest difference between a local and the true time, in seconds; none if it was not measured.
    pub largest_error_seconds: Option<f64>,
    /// The parameters by the name of their option.
    pub parameters: BTreeMap<String, String>,
    /// Time that making it took, in seconds.
    pub seconds: f64,
    /// What is odd about it.
    pub warnings: Vec<Warning>,
}

/// The summary for people.
pub fn made_text(made: &Made) -> String {
    const INDENT: usize = 12;
    let mut text = String::new();
    text += &labelled("Trace", &made.output, INDENT);
    text += &labelled(
        "",
        &format!(
            "{} on {}, {}, {}",
            plural(made.processes, "process"),
            plural(made.nodes, "clock"),
            plural(made.locations, "location"),
            plural(made.events, "event"),
        ),
        INDENT,
    );
    text += &labelled("Run", &format!("{} of true time", duration(made.true_seconds)), INDENT);
    let parameter = |name: &str| made.parameters.get(name).map(String::as_str).unwrap_or_default();
    let error = made.largest_error_seconds.map(|error| format!("; wrong by up to {}", duration(error)));
    let clocks = format!("{} (seed {}){}", parameter("clock"), parameter("seed"), error.unwrap_or_default());
    text += &labelled("Clocks", &clocks, INDENT);
    let truth = if made.truth { format!("{}/truth", made.output) } else { "not kept".to_owned() };
    text += &labelled("Truth", &truth, INDENT);
    let speed = made.events as f64 / made.seconds.max(1e-9);
    text += &labelled("Time", &format!("{}, {}", duration(made.seconds), rate(speed, "events/s")), INDENT);
    for warning in &made.warnings {
        text += &labelled("Warning", &warning.text, INDENT);
    }
    text
}
