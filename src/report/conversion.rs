//! What `convert` has written, and what it could not.

use super::Warning;
use super::table::{Table, labelled, shorten};
use clc_archive::{Format, Thing};
use clc_trace::format::{bytes, count, duration, plural, rate};
use serde::{Deserialize, Serialize};

/// A trace in another format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversion {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The trace that was read.
    pub trace: String,
    /// Its format.
    pub from: Format,
    /// The trace that was written.
    pub output: String,
    /// Its format.
    pub to: Format,
    /// Event streams.
    pub locations: u64,
    /// Events that were written.
    pub events: u64,
    /// Size of all event files that were read.
    pub event_bytes_before: u64,
    /// Size of all event files that were written.
    pub event_bytes: u64,
    /// Whether true times were taken along.
    pub truth: bool,
    /// What the new format cannot hold.
    pub left_out: Vec<LeftOutCount>,
    /// Time that it took, in seconds.
    pub seconds: f64,
    /// What is odd about the trace.
    pub warnings: Vec<Warning>,
}

/// Things of one kind that were left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutCount {
    /// What they are.
    pub what: Thing,
    /// Type of record, name of the property or file.
    pub kind: String,
    /// How many.
    pub count: u64,
}

/// The summary for people.
pub fn conversion_text(conversion: &Conversion) -> String {
    const INDENT: usize = 12;
    let line = |label: &str, text: String| labelled(label, &text, INDENT);
    let mut text = String::new();
    text += &line("Trace", conversion.trace.clone());
    text += &line("", format!("{}, {} of events", conversion.from.name(), bytes(conversion.event_bytes_before)));
    text += &line("Output", conversion.output.clone());
    text += &line(
        "",
        format!(
            "{}, {}, {}, {} of events",
            conversion.to.name(),
            plural(conversion.locations, "location"),
            plural(conversion.events, "event"),
            bytes(conversion.event_bytes)
        ),
    );
    if conversion.truth {
        text += &line("Truth", format!("{}/truth", conversion.output));
    }
    let speed = conversion.events as f64 / conversion.seconds.max(1e-9);
    text += &line("Time", format!("{}, {}", duration(conversion.seconds), rate(speed, "events/s")));
    if conversion.left_out.is_empty() {
        text += &line("Left out", "nothing".to_owned());
    } else {
        text += &format!("\nLeft out, since the {} format cannot hold it:\n", conversion.to.name());
        let mut table = Table::default();
        for left_out in &conversion.left_out {
            let what = format!("  {}: {}", left_out.what.name(), shorten(&left_out.kind, 44));
            table.row([&what, &count(left_out.count)]);
        }
        text += &table.render(0);
    }
    if !conversion.warnings.is_empty() {
        text.push('\n');
    }
    for warning in &conversion.warnings {
        text += &line("Warning", warning.text.clone());
    }
    text
}
