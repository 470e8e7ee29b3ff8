//! The chapter on pairs: violated messages by sender and receiver.

use super::element::{duration, escape, table};
use crate::report::{PairMatrix, PairUnit, Report, Stage};
use clc_trace::Ticks;
use clc_trace::format::{count, percent, sum};

/// Side of a picture in pixels.
const SIDE: f64 = 420.0;
/// Upper ends of the classes of colour, in percent of the pair's messages. Chosen by hand: narrower below, since most pairs have few violations; more
/// colours cannot be told apart.
const CLASSES: [f64; 4] = [1.0, 10.0, 50.0, 100.0];
/// Rows of the table. Chosen by hand: about what a screen shows; the worst come first.
const ROWS: usize = 20;

pub(super) fn body(report: &Report) -> Option<String> {
    let details = report.details.as_ref()?;
    let pairs = &details.pairs;
    if pairs.senders.is_empty() {
        return None;
    }
    let (one, what) = names(pairs.unit, pairs.block);
    let mut html = format!(
        "<p>Messages by sending and receiving {what}. The darker a field, the larger the share of its messages that \
        are received too early; a dot is a pair without any.</p>\n<div class=\"pair\">\n"
    );
    for (stage, numbers) in details.stages.iter().zip(&pairs.stages) {
        let total = sum(numbers.violated.iter().copied());
        let name = stage.stage.words();
        if total == 0 {
            html += &format!(
                "<figure><figcaption>{name}</figcaption><p class=\"none\">No message is received too \
                early.</p></figure>\n"
            );
            continue;
        }
        let label = format!(
            "Matrix of messages by sender (rows) and receiver (columns), {name}: {} are too early.",
            count(total)
        );
        html += &format!(
            "<figure><figcaption>{name}</figcaption>{}</figure>\n",
            violations(pairs, &numbers.violated, stage.stage, &label)
        );
    }
    html += "</div>\n<p class=\"legend-line\">Share too early: ";
    let names = ["none", "up to 1 %", "up to 10 %", "up to 50 %", "more"];
    html += &swatches(names);
    html += "</p>\n<p id=\"pair-readout\" class=\"readout\" role=\"status\"></p>\n";
    Some(html + &worst_pairs(report, pairs, one))
}

fn class(violated: u64, messages: u64) -> usize {
    if violated == 0 || messages == 0 {
        return 0;
    }
    let share = 100.0 * violated as f64 / messages as f64;
    CLASSES.iter().position(|&bound| share <= bound).map_or(CLASSES.len(), |class| class + 1)
}

/// Which share of each pair's messages is too early.
fn violations(pairs: &PairMatrix, violated: &[u64], stage: Stage, label: &str) -> String {
    let fields = pairs.senders.iter().zip(&pairs.receivers).enumerate().map(|(index, (&sender, &receiver))| {
        let of = |list: &[u64]| list.get(index).copied().unwrap_or(0);
        (sender, receiver, class(of(violated), of(&pairs.messages)))
    });
    picture(pairs.size, &format!(" data-stage=\"{}\"", stage.name()), label, fields)
}

/// What the rows and columns of a matrix are: one of them, all of them.
pub(super) fn names(unit: PairUnit, block: u64) -> (&'static str, String) {
    match unit {
        PairUnit::Process => ("process", "processes".to_owned()),
        PairUnit::Node => ("node", "nodes".to_owned()),
        PairUnit::Block => ("block", format!("blocks of {block} nodes")),
    }
}

/// What the classes of colour are.
pub(super) fn swatches(names: [&str; 5]) -> String {
    let item = |(class, name): (usize, &str)| {
        format!("<span class=\"item\"><span class=\"swatch c{class}\"></span>{name}</span> ")
    };
    names.into_iter().enumerate().map(item).collect()
}

/// A matrix of `size` rows and columns; fields are (row, column, class of colour 0 to 4). `attributes` are further ones of the element. One
/// path per class: small, however many fields there are.
pub(super) fn picture(
    size: u64,
    attributes: &str,
    label: &str,
    fields: impl Iterator<Item = (u32, u32, usize)>,
) -> String {
    let mut paths: [String; 5] = Default::default();
    for (row, column, class) in fields {
        paths[class] += &match class {
            0 => format!("M{column}.4 {row}.4h.2v.2h-.2z"),
            _ => format!("M{column} {row}h1v1h-1z"),
        };
    }
    let size = size.max(1);
    let paths: String =
        paths.iter().enumerate().map(|(c, path)| format!("<path class=\"c{c}\" d=\"{path}\"/>")).collect();
    let labels: String = (0..size)
        .step_by(size.div_ceil(8) as usize)
        .map(|at| {
            let place = 30.0 + (at as f64 + 0.5) * SIDE / size as f64;
            format!(
                "<text class=\"label\" x=\"{place:.1}\" y=\"22\" text-anchor=\"middle\">{at}</text>\
                 <text class=\"label\" x=\"26\" y=\"{:.1}\" text-anchor=\"end\">{at}</text>",
                place + 4.0
            )
        })
        .collect();
    format!(
        "<svg class=\"matrix\"{attributes} viewBox=\"0 0 {0} {0}\" role=\"img\" aria-label=\"{label}\">{labels}\
         <svg x=\"30\" y=\"30\" width=\"{SIDE}\" height=\"{SIDE}\" viewBox=\"0 0 {size} {size}\"><rect class=\"field\" width=\"{size}\" height=\"{size}\"/>{paths}</svg></svg>",
        SIDE + 36.0,
        label = escape(label)
    )
}

fn worst_pairs(report: &Report, pairs: &PairMatrix, one: &str) -> String {
    let Some(details) = &report.details else { return String::new() };
    let total = |index: usize| sum(pairs.stages.iter().map(|stage| stage.violated.get(index).copied().unwrap_or(0)));
    let mut order: Vec<usize> = (0..pairs.senders.len()).filter(|&index| total(index) > 0).collect();
    if order.is_empty() {
        return String::new();
    }
    // Those that a reader of the original trace sees come first.
    let at =
        |stage: usize, index: usize| pairs.stages.get(stage).and_then(|s| s.violated.get(index)).copied().unwrap_or(0);
    order.sort_by_key(|&index| std::cmp::Reverse((at(1, index), at(0, index))));
    let all = order.len();
    order.truncate(ROWS);
    let mut head = vec!["from", "to", "messages"];
    head.extend(details.stages.iter().flat_map(|stage| [stage.stage.words(), "by at most"]));
    let rows = order.into_iter().map(|index| {
        let mut row = vec![
            format!("{one} {}", pairs.senders[index]),
            format!("{one} {}", pairs.receivers[index]),
            count(pairs.messages[index]),
        ];
        for stage in &pairs.stages {
            let violated = stage.violated[index];
            let share = 100.0 * violated as f64 / pairs.messages[index].max(1) as f64;
            row.push(if violated == 0 {
                "0".into()
            } else {
                format!("{} ({})", count(violated), escape(&percent(share)))
            });
            let ticks = Ticks(stage.largest_ticks[index]);
            row.push(if violated == 0 {
                String::new()
            } else {
                duration(ticks.seconds(report.trace.timer_resolution))
            });
        }
        row
    });
    let caption = if all > ROWS {
        format!("The {ROWS} pairs with the most violations, of {}", count(all as u64))
    } else {
        "Pairs with violations".to_owned()
    };
    table(&caption, &head, rows)
}
