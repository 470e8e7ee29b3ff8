//! What `convert` has written, as text.

use super::table::{TextTable, labelled, shorten};
use crate::report::Conversion;
use clc_trace::format::{bytes, count, duration, plural, rate};

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
    if conversion.losses.is_empty() {
        text += &line("Left out", "nothing".to_owned());
    } else {
        text += &format!("\nLeft out because the {} format cannot hold it:\n", conversion.to.name());
        let mut table = TextTable::default();
        for loss in &conversion.losses {
            let what = format!("  {}: {}", loss.what.name(), shorten(&loss.kind, 44));
            table.row([&what, &count(loss.count)]);
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
