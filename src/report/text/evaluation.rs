//! The judgement of a trace against the truth, as text.

use super::table::{TextTable, labelled};
use crate::report::{ErrorStatistics, Evaluation, PhaseAccuracy};
use clc_trace::format::{count, duration, percent, plural, sum};

const INDENT: usize = 13;

/// The summary for people.
pub fn evaluation_text(evaluation: &Evaluation) -> String {
    let mut text = labelled("Evaluation", &evaluation.trace, INDENT);
    text += &labelled("Truth", &evaluation.truth, INDENT);
    if let Some(original) = &evaluation.original {
        text += &labelled("Original", original, INDENT);
    }
    let locations = evaluation.phases.first().map_or(0, |phase| phase.locations.len() as u64);
    let contents = format!(
        "{}, {}, {}, {} of true time",
        plural(locations, "location"),
        plural(evaluation.events, "event"),
        plural(evaluation.messages, "message"),
        duration(evaluation.true_seconds)
    );
    text += &labelled("", &contents, INDENT);
    text.push('\n');

    let phases = &evaluation.phases;
    let mut table = TextTable::default();
    let mut header = vec![String::new()];
    header.extend(phases.iter().map(|phase| phase.phase.clone()));
    table.push(header);
    let section = |table: &mut TextTable, title: &str| table.push(vec![title.to_owned()]);
    let row = |table: &mut TextTable, label: &str, value: &dyn Fn(&PhaseAccuracy) -> String| {
        let mut cells = vec![format!("  {label}")];
        cells.extend(phases.iter().map(value));
        table.push(cells);
    };
    let statistics = |table: &mut TextTable, of: &dyn Fn(&PhaseAccuracy) -> ErrorStatistics| {
        row(table, "root mean square", &|phase| duration(of(phase).rms_seconds));
        row(table, "mean", &|phase| duration(of(phase).mean_seconds));
        row(table, "median", &|phase| duration(of(phase).p50_seconds));
        row(table, "95 %", &|phase| duration(of(phase).p95_seconds));
        row(table, "99 %", &|phase| duration(of(phase).p99_seconds));
        row(table, "largest", &|phase| duration(of(phase).max_seconds));
    };
    section(&mut table, "Error of the events' times");
    statistics(&mut table, &|phase| phase.clock);
    section(&mut table, &format!("Error between processes, in windows of {}", duration(evaluation.window_seconds)));
    row(&mut table, "root mean square", &|phase| duration(phase.between_processes.rms_seconds));
    row(&mut table, "largest", &|phase| duration(phase.between_processes.max_seconds));
    if evaluation.messages > 0 {
        section(&mut table, "Error of the messages' latencies");
        statistics(&mut table, &|phase| phase.latency);
        section(&mut table, &format!("Late Sender, in truth {}", duration(evaluation.late_sender_seconds)));
        row(&mut table, "total", &|phase| duration(phase.late_sender.total_seconds));
        row(&mut table, "mean error", &|phase| duration(phase.late_sender.mean_error_seconds));
        row(&mut table, "largest error", &|phase| duration(phase.late_sender.max_error_seconds));
    }
    section(&mut table, "Order");
    row(&mut table, "violations", &|phase| count(phase.violations));
    row(&mut table, "checked", &|phase| count(phase.checked));
    section(&mut table, "Local intervals changed by");
    let classes = phases.first().map_or(0, |phase| phase.intervals.classes.len());
    for class in 0..classes {
        let bound = phases.first().and_then(|phase| phase.intervals.classes.get(class)?.up_to_percent);
        let label = match bound {
            Some(0.0) => "nothing".to_owned(),
            Some(bound) => format!("up to {bound} %"),
            None => "more".to_owned(),
        };
        row(&mut table, &label, &|phase| {
            let total = sum(phase.intervals.classes.iter().map(|class| class.intervals));
            let own = phase.intervals.classes.get(class).map_or(0, |class| class.intervals);
            percent(own as f64 * 100.0 / total.max(1) as f64)
        });
    }
    row(&mut table, "largest slope", &|phase| percent(phase.intervals.largest_slope_percent));
    text += &table.render(0);
    if !evaluation.warnings.is_empty() {
        text.push('\n');
    }
    for warning in &evaluation.warnings {
        text += &labelled("Warning", &warning.text, INDENT);
    }
    text
}
