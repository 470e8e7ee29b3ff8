//! What `simulate` and `perturb` have made, as text.

use super::table::labelled;
use crate::report::Made;
use clc_trace::format::{duration, plural, rate};

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
