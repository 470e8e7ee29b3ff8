//! The chapters of `clc-replay analyze`: waiting times, execution, critical path, traffic.

mod execution;
mod path;
mod traffic;
mod waits;

use super::Chapter;
use super::element::escape;
use super::plot::{PlotFrame, short, ticks};
use crate::report::{Analysis, Report};

/// Class (of colour) and name of the stages; those of a report without a correction are one.
const STAGES: [(&str, &str); 2] = [("presynchronised", "as a reader of the trace sees it"), ("corrected", "corrected")];

/// The chapters, if the report has an analysis.
pub(super) fn chapters(report: &Report) -> Vec<Chapter> {
    let Some(analysis) = &report.analysis else { return Vec::new() };
    vec![
        Chapter { id: "waits", title: "Waiting times", body: waits::body(&analysis.waits) },
        Chapter { id: "execution", title: "Computation and communication", body: execution::body(&analysis.execution) },
        Chapter { id: "path", title: "Critical path", body: path::body(analysis) },
        Chapter { id: "traffic", title: "Traffic", body: traffic::body(&analysis.traffic) },
    ]
}

/// Names of the stages that there are, as a legend.
fn legend(stages: usize) -> String {
    let item = |(class, name): &(&str, &str)| format!("<li><span class=\"key {class}\"></span>{name}</li>");
    format!("<ul class=\"legend\">{}</ul>", STAGES.iter().take(stages).map(item).collect::<String>())
}

/// The axis of time over `seconds`.
fn time_axis(frame: &PlotFrame, seconds: f64) -> String {
    let length = seconds.max(f64::MIN_POSITIVE);
    let marks: Vec<_> = ticks(0.0, seconds, 8).into_iter().map(|at| (at / length, short(at))).collect();
    frame.x_axis(&marks, "time since the first event [s]")
}

/// Part of one, as a percentage.
fn share(part: f64) -> String {
    escape(&clc_trace::format::percent(100.0 * part))
}

/// A call path as one text, the operation last.
fn call_path(regions: &[String]) -> String {
    match regions {
        [] => "(outside of any region)".to_owned(),
        regions => regions.iter().map(|region| escape(region)).collect::<Vec<_>>().join(" › "),
    }
}

/// What a list leaves out, in a sentence.
fn further(number: u64, what: &str) -> String {
    match number {
        0 => String::new(),
        number => format!("<p>{} are not listed.</p>\n", escape(&clc_trace::format::plural(number, what))),
    }
}

/// Longest list that is a table of its own; what comes behind is folded away. Chosen by hand: about what a screen shows beside the text; the rest is
/// a click away.
const ROWS: usize = 12;

/// A table with its first rows in sight and all others behind a click.
fn long_table(caption: &str, head: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let all = rows.len();
    let mut rows = rows;
    let rest = rows.split_off(all.min(ROWS));
    let mut html = super::element::table(caption, head, rows);
    if !rest.is_empty() {
        let title = format!("{} more", clc_trace::format::count(rest.len() as u64));
        html += &super::element::fold(&title, &super::element::table(&format!("{caption}, continued"), head, rest));
    }
    html
}

/// Length of the trace as far as the analysis tells.
fn length(analysis: &Analysis) -> f64 {
    analysis.execution.last().seconds
}
