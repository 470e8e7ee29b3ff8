//! The chapter on clocks: the frame of the diagram that the script draws, and the same in numbers.

use super::element::{duration, escape, fold, table};
use crate::report::{ClockError, ClockEstimate, NodeCurve, Report};
use clc_clock::Method;
use clc_trace::Ticks;
use clc_trace::format::{count, plural};

/// Most rows of a table; more of them are in the JSON report. Chosen by hand: more make the page slow to open.
const MOST_ROWS: usize = 256;

pub(super) fn body(report: &Report) -> Option<String> {
    let error = &report.details.as_ref()?.clock_error;
    if error.nodes.is_empty() || error.windows == 0 {
        return None;
    }
    let corrected = report.replay.is_some();
    let mut html = String::from(
        "<p>Local minus corrected time of each clock, as far as the correction shows: zero is the corrected \
        time itself. ",
    );
    html += if corrected {
        "With all three parts, the curves show the clocks as recorded; with <em>forward</em> and <em>backward</em> \
        only, what was still wrong after pre-synchronisation. The error that remains after the correction is not \
        visible in a trace; it can only be measured where the true times are known (<code>clc-replay \
        evaluate</code>).</p>\n"
    } else {
        "Before a correction only the pre-synchronisation is known.</p>\n"
    };
    html += &controls(error, corrected);
    html += "<div id=\"clock-plot\" class=\"interactive\" tabindex=\"0\" role=\"group\" aria-label=\"Clock error over time. Arrow keys move, plus and minus zoom, 0 shows all.\"></div>\n\
             <p id=\"clock-readout\" class=\"readout\" role=\"status\"></p>\n\
             <noscript><p>The diagram requires JavaScript; the table has its numbers.</p></noscript>\n";
    if error.further_nodes > 0 {
        html += &format!(
            "<p>Shown are the {} that were corrected most; {} are not shown.</p>\n",
            plural(error.nodes.len() as u64, "clock"),
            count(error.further_nodes)
        );
    }
    html += &fold("The numbers", &numbers(report, error, corrected));
    if let Some(estimate) = &report.clocks {
        html += &estimated(estimate);
    }
    Some(html)
}

fn controls(error: &ClockError, corrected: bool) -> String {
    let part = |id: &str, name: &str, on: bool| {
        let checked = if on { " checked" } else { "" };
        format!("<label><input type=\"checkbox\" id=\"part-{id}\"{checked}> {name}</label>")
    };
    // Where the replay had nothing to do, its part would be a line at zero.
    let moved =
        |node: &NodeCurve| node.forward_ticks.iter().chain(&node.backward_ticks).flatten().any(|ticks| *ticks != 0);
    let moved = error.nodes.iter().any(moved);
    let mut html = String::from("<div class=\"controls\"><fieldset><legend>Parts</legend>");
    html += &part("presync", "pre-synchronisation", !corrected || !moved);
    if corrected {
        html += &part("forward", "forward", true);
        html += &part("backward", "backward", true);
    }
    html += "</fieldset><fieldset><legend>Each clock</legend>";
    if corrected {
        html += "<label><input type=\"radio\" name=\"statistic\" value=\"mean\" checked> mean</label>\
                 <label><input type=\"radio\" name=\"statistic\" value=\"largest\"> largest</label>";
    }
    html += "<label><input type=\"checkbox\" id=\"without-offset\" checked> without constant offset</label>";
    html += "<label>show <select id=\"node\"><option value=\"\">all</option>";
    for (index, node) in error.nodes.iter().enumerate() {
        html += &format!("<option value=\"{index}\">{}</option>", escape(&name(node)));
    }
    html += "</select></label></fieldset><fieldset><legend>Zoom</legend>";
    for (id, label, text) in [
        ("zoom-in", "Zoom in", "+"),
        ("zoom-out", "Zoom out", "−"),
        ("zoom-left", "Earlier", "←"),
        ("zoom-right", "Later", "→"),
        ("zoom-all", "Show all", "all"),
    ] {
        html += &format!("<button type=\"button\" id=\"{id}\" aria-label=\"{label}\">{text}</button>");
    }
    html + "</fieldset></div>\n"
}

/// The node of a clock, and who has it if that are not all processes there.
fn name(node: &NodeCurve) -> String {
    let name = match node.first_process {
        Some(first) if node.name.is_empty() => format!("node of rank {first}"),
        _ if node.name.is_empty() => "node".to_owned(),
        _ => node.name.clone(),
    };
    match (node.location, node.first_process) {
        (Some(location), _) => format!("{name} (location {location})"),
        (None, Some(rank)) if node.processes == 1 => format!("{name} (rank {rank})"),
        _ => name,
    }
}

fn numbers(report: &Report, error: &ClockError, corrected: bool) -> String {
    let resolution = report.trace.timer_resolution;
    let seconds = |ticks: i64| Ticks(ticks).seconds(resolution);
    let mut head = vec!["clock", "processes", "offset at the beginning", "drift"];
    if corrected {
        head.extend(["largest forward", "largest backward"]);
    }
    let rows = error.nodes.iter().map(|node| {
        // The clock's error is what has to be taken off it.
        let known: Vec<(usize, i64)> =
            node.presync_ticks.iter().enumerate().filter_map(|(at, ticks)| Some((at, (*ticks)?))).collect();
        let (first, last) = (known.first().copied(), known.last().copied());
        let drift = match (first, last) {
            (Some(first), Some(last)) if last.0 > first.0 => {
                let time = (last.0 - first.0) as f64 * error.window_seconds;
                format!("{:.3} ppm", -seconds(last.1 - first.1) / time * 1e6)
            }
            _ => "unknown".to_owned(),
        };
        let mut row = vec![
            escape(&name(node)),
            count(node.processes),
            first.map_or("unknown".to_owned(), |(_, ticks)| duration(-seconds(ticks))),
            drift,
        ];
        if corrected {
            let most = |list: &[Option<i64>]| duration(seconds(list.iter().flatten().copied().max().unwrap_or(0)));
            row.extend([most(&node.forward_largest_ticks), most(&node.backward_largest_ticks)]);
        }
        row
    });
    table("Clocks: error according to the pre-synchronisation, and largest advances by the replay", &head, rows)
}

fn estimated(estimate: &ClockEstimate) -> String {
    let rows = estimate.clocks.iter().take(MOST_ROWS).map(|clock| {
        vec![
            format!("of rank {}{}", clock.first_process, if clock.reference { " (reference)" } else { "" }),
            count(clock.observations),
            format!("{:.3} ppm", clock.drift_ppm),
            duration(clock.residual_seconds),
            clock.uncertainty_seconds.map_or("unknown".to_owned(), duration),
            clock.hops.map_or("unknown".to_owned(), |hops| count(hops.into())),
        ]
    });
    if estimate.pairs.is_empty() {
        return format!(
            "<p>No clocks were estimated from messages. <em>{}</em> was requested, <em>{}</em> was used: {}.</p>\n",
            escape(estimate.requested.name()),
            escape(estimate.chosen.name()),
            escape(&estimate.reason)
        );
    }
    let text = format!(
        "<p>Clocks were estimated from messages in {} of {}. <em>{}</em> was requested, <em>{}</em> was used: \
        {}.</p>\n",
        plural(estimate.windows, "window"),
        duration(estimate.window_seconds),
        escape(estimate.requested.name()),
        escape(estimate.chosen.name()),
        escape(&estimate.reason)
    );
    let head = ["clock", "observations", "drift", "residual", "uncertainty", "hops"];
    text + &fold("Estimated clocks", &table("Estimated clocks", &head, rows)) + &pairs(estimate)
}

/// The pairs of clocks, those first that agree least with the estimate.
fn pairs(estimate: &ClockEstimate) -> String {
    if estimate.pairs.is_empty() {
        return String::new();
    }
    let mut pairs: Vec<_> = estimate.pairs.iter().collect();
    pairs.sort_by(|x, y| y.residual_seconds.total_cmp(&x.residual_seconds));
    let with_error = |value: String, error: Option<String>| match error {
        Some(error) => format!("{value} ± {error}"),
        None => value,
    };
    let rows = pairs.iter().take(MOST_ROWS).map(|pair| {
        vec![
            format!("of ranks {} and {}", pair.a, pair.b),
            with_error(duration(pair.offset_seconds), pair.offset_error_seconds.map(duration)),
            with_error(
                format!("{:.3} ppm", pair.drift_ppm),
                pair.drift_error_ppm.map(|error| format!("{error:.3} ppm")),
            ),
            duration(pair.deviation_seconds),
            duration(pair.residual_seconds),
            count(pair.samples),
        ]
    });
    let deviation = if estimate.chosen == Method::Hull { "margin" } else { "deviation" };
    let head = ["clocks", "offset at the beginning", "drift", deviation, "residual", "samples"];
    let (shown, all) = (pairs.len().min(MOST_ROWS), pairs.len() as u64 + estimate.further.pairs);
    let caption = format!("Pairs of clocks that exchange messages, {shown} of {all}");
    fold("Pairs of clocks", &table(&caption, &head, rows))
}
