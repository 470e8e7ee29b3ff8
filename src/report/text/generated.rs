//! What `simulate` and `perturb` have made, as text.

use super::table::labelled;
use crate::report::Generated;
use clc_trace::format::{duration, plural, rate};

/// The summary for people.
pub fn generated_text(generated: &Generated) -> String {
    const INDENT: usize = 12;
    let mut text = String::new();
    text += &labelled("Trace", &generated.output, INDENT);
    text += &labelled(
        "",
        &format!(
            "{} on {}, {}, {}",
            plural(generated.processes, "process"),
            plural(generated.nodes, "clock"),
            plural(generated.locations, "location"),
            plural(generated.events, "event"),
        ),
        INDENT,
    );
    text += &labelled("Run", &format!("{} of true time", duration(generated.true_seconds)), INDENT);
    let parameter = |name: &str| generated.parameters.get(name).map(String::as_str).unwrap_or_default();
    let error = generated.largest_error_seconds.map(|error| format!("; wrong by up to {}", duration(error)));
    let clocks = format!("{} (seed {}){}", parameter("clock"), parameter("seed"), error.unwrap_or_default());
    text += &labelled("Clocks", &clocks, INDENT);
    let truth = if generated.truth { format!("{}/truth", generated.output) } else { "not kept".to_owned() };
    text += &labelled("Truth", &truth, INDENT);
    let speed = generated.events as f64 / generated.seconds.max(1e-9);
    text += &labelled("Time", &format!("{}, {}", duration(generated.seconds), rate(speed, "events/s")), INDENT);
    for warning in &generated.warnings {
        text += &labelled("Warning", &warning.text, INDENT);
    }
    text
}
