//! The top of the page: the verdict in one sentence, and the numbers that matter most.

use super::element::{duration, escape, facts};
use crate::report::text::analysis::verdict;
use crate::report::{Report, StageViolations, Verdict};
use clc_trace::format::{count, percent, plural};

/// The verdict in one word or two.
pub(super) fn word(report: &Report) -> &'static str {
    match report.verdict {
        _ if report.analysis.is_some() => "analysed",
        Verdict::Consistent => "consistent",
        Verdict::Corrected if report.replay.is_none() => "consistent after pre-synchronisation",
        Verdict::Corrected => "corrected",
        Verdict::Violated => "violated",
        Verdict::PartlyChecked => "partly checked",
        Verdict::NothingToCheck => "nothing to check",
    }
}

/// Title, verdict and key numbers.
pub(super) fn header(report: &Report) -> String {
    let trace = &report.trace;
    let class = match report.verdict {
        Verdict::Violated if report.analysis.is_none() => "bad",
        Verdict::PartlyChecked | Verdict::NothingToCheck if report.analysis.is_none() => "unsure",
        _ => "good",
    };
    let incomplete = report.coverage.words().map_or(String::new(), |share| {
        format!(
            " {share} of the communication in the trace was checked; for the rest see <a href=\"#run\">the run</a>."
        )
    });
    let output = match &report.output {
        Some(output) => format!(" The corrected trace is in <code>{}</code>.", escape(output)),
        None if report.analysis.is_some() => String::new(),
        None if report.replay.is_some() => " Nothing was written (dry run).".to_owned(),
        None => String::new(),
    };
    format!(
        "<header>\n<p class=\"eyebrow\">clc-replay report · {name}</p>\n<h1><span class=\"badge {class}\">{word}</span> {sentence}</h1>\n\
         <p class=\"lede\"><code>{path}</code>: {events} of {processes} on {nodes} in {span}.{output}{incomplete}</p>\n{facts}</header>\n",
        name = escape(&trace.title()),
        word = word(report),
        sentence = sentence(report),
        path = escape(&trace.path),
        events = plural(trace.events, "event"),
        processes = plural(trace.processes, "process"),
        nodes = plural(trace.nodes, "node"),
        span = duration(trace.span_seconds),
        facts = facts(&key_numbers(report)),
    )
}

fn sentence(report: &Report) -> String {
    if let Some(analysis) = &report.analysis {
        return escape(&verdict(analysis));
    }
    let stages = [&report.violations.raw, &report.violations.presynchronised, &report.violations.corrected];
    let found: Vec<&StageViolations> = stages.into_iter().flatten().collect();
    let before = found.first().map_or(0, |stage| stage.violated());
    let (left, checked) = found.last().map_or((0, 0), |stage| (stage.violated(), stage.checked()));
    let checked = plural(checked, "communication");
    match report.verdict {
        Verdict::NothingToCheck => "There is no communication to check.".to_owned(),
        Verdict::Consistent | Verdict::PartlyChecked if before == 0 => {
            format!("No violation of the clock condition in {checked}.")
        }
        Verdict::Consistent | Verdict::PartlyChecked | Verdict::Corrected => {
            let presynchronised = report.violations.presynchronised.as_ref().map_or(0, StageViolations::violated);
            let between = if report.replay.is_some() {
                format!(", {} after pre-synchronisation", count(presynchronised))
            } else {
                String::new()
            };
            format!("{} as recorded{between}, none left in {checked}.", plural(before, "violation"))
        }
        Verdict::Violated => format!("{} of the clock condition left in {checked}.", plural(left, "violation")),
    }
}

fn key_numbers(report: &Report) -> Vec<(&'static str, String)> {
    if let Some(analysis) = &report.analysis {
        let (execution, waits) = (analysis.execution.last(), &analysis.waits.total);
        return vec![
            ("Execution time", duration(execution.seconds)),
            ("Speedup", format!("{:.2}", execution.speedup)),
            ("Efficiency", percent(100.0 * execution.efficiency).replace(' ', "&nbsp;")),
            ("Waiting time, all processes", duration(waits.after_seconds.unwrap_or(waits.before_seconds))),
            ("Computation on the critical path", duration(analysis.critical_path.last().computation_seconds)),
        ];
    }
    let mut list = Vec::new();
    let worst = |stage: &Option<StageViolations>| {
        stage.as_ref().and_then(|stage| stage.worst.as_ref()).map(|worst| worst.seconds)
    };
    let shown = |seconds: Option<f64>| seconds.map_or("none".to_owned(), duration);
    list.push(("Worst violation as recorded", shown(worst(&report.violations.raw))));
    list.push(("Worst after pre-synchronisation", shown(worst(&report.violations.presynchronised))));
    if report.violations.corrected.is_some() {
        list.push(("Worst after correction", shown(worst(&report.violations.corrected))));
    }
    if let Some(displacement) = &report.displacement {
        let share = if displacement.events == 0 {
            0.0
        } else {
            100.0 * displacement.events_moved as f64 / displacement.events as f64
        };
        list.push(("Events moved", percent(share).replace(' ', "&nbsp;")));
        list.push(("Largest displacement", duration(displacement.largest_seconds)));
        list.push((
            "Median change of intervals",
            percent(displacement.interval_change.median_percent).replace('<', "&lt;"),
        ));
    }
    list
}
