//! The chapter on the worst violations: each with a picture of both processes around it, before and after.

use super::element::{duration, escape, table};
use super::plot::{short, ticks};
use crate::report::{Case, EventPlace, Lane, Picture, Report};
use clc_trace::format::count;

const WIDTH: f64 = 560.0;
const LEFT: f64 = 64.0;
const ROW: f64 = 20.0;
/// Room between the lanes, for the arrow.
const GAP: f64 = 56.0;
const TOP: f64 = 8.0;
/// Width of a character of a label.
const CHARACTER: f64 = 6.3;

pub(super) fn body(report: &Report) -> Option<String> {
    let cases = &report.details.as_ref()?.worst;
    if cases.is_empty() {
        return None;
    }
    let stage = cases[0].stage.words();
    let mut html = format!(
        "<p>The worst violations {stage}, one per pair of processes (for a collective operation, one per process that \
        leaves it too early). An arrow pointing backwards is a receive before its send.</p>\n"
    );
    let rows = cases.iter().enumerate().map(|(index, case)| {
        vec![
            format!("<a href=\"#case-{0}\">{0}</a>", index + 1),
            escape(&case.operation),
            duration(case.seconds),
            place(&case.from),
            place(&case.to),
        ]
    });
    html += &table(&format!("The worst violations, {stage}"), &["", "operation", "too early by", "from", "to"], rows);
    let latency = &report.parameters.latency;
    let instant = latency.same_node_seconds == 0.0 || latency.other_node_seconds == 0.0;
    for (index, case) in cases.iter().enumerate() {
        html += &article(index + 1, case, instant);
    }
    Some(html)
}

fn place(at: &EventPlace) -> String {
    let region = at.region.as_ref().map(|region| format!("{} on ", escape(region))).unwrap_or_default();
    format!("{region}rank {}, location {}, event {}, {:.9} s", at.process, at.location, count(at.event.0), at.seconds)
}

fn article(number: usize, case: &Case, instant: bool) -> String {
    let what = if case.operation == "message" { "message".to_owned() } else { escape(&case.operation) };
    let mut html = format!(
        "<article class=\"case\" id=\"case-{number}\"><h3>{number}. {what} from rank {} to rank {}, {} too early</h3>\n<div class=\"pair\">\n",
        case.from.process,
        case.to.process,
        duration(case.seconds)
    );
    for picture in &case.pictures {
        let name = picture.stage.words();
        html += &format!(
            "<figure><figcaption>{name}</figcaption><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Timeline of violation {number}, {name}\">{}</div></figure>\n",
            draw(case, picture, instant)
        );
    }
    html + "</div></article>\n"
}

fn rows(lane: &Lane) -> f64 {
    f64::from(lane.bars.iter().map(|bar| bar.level + 1).max().unwrap_or(1))
}

fn draw(case: &Case, picture: &Picture, instant: bool) -> String {
    let [sender, receiver] = &picture.lanes;
    let seconds = picture.seconds.max(f64::MIN_POSITIVE);
    let x = |at: f64| LEFT + (at / seconds).clamp(0.0, 1.0) * (WIDTH - LEFT - 8.0);
    let upper = TOP + rows(sender) * ROW;
    let lower = upper + GAP;
    let bottom = lower + rows(receiver) * ROW;
    let height = bottom + 36.0;
    let mut svg = String::new();
    for (lane, top, place) in [(sender, TOP, &case.from), (receiver, lower, &case.to)] {
        svg += &format!(
            "<text class=\"label\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">rank {}</text>",
            LEFT - 8.0,
            top + 14.0,
            place.process
        );
        svg += &bars(lane, top, x);
    }
    svg += &arrow(
        [x(sender.at_seconds), x(receiver.at_seconds)],
        receiver.at_seconds < sender.at_seconds,
        [upper, lower, bottom],
    );
    svg += &axis(seconds, bottom, x);
    let relation = relation(case, receiver.at_seconds - sender.at_seconds, instant);
    format!(
        "<svg class=\"timeline\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}: rank {} in {}, rank {} in {}; {relation}.\">{svg}</svg>\
         <p class=\"relation\">{relation}</p>",
        picture.stage.words(),
        case.from.process,
        escape(case.from.region.as_deref().unwrap_or("unknown region")),
        case.to.process,
        escape(case.to.region.as_deref().unwrap_or("unknown region")),
    )
}

/// In words how far what comes later is from what it waits for; `instant` if messages may take no time.
fn relation(case: &Case, apart: f64, instant: bool) -> String {
    let (cause, effect) = if case.operation == "message" { ("send", "receive") } else { ("begin", "end") };
    if apart < 0.0 {
        format!("the {effect} is {} before the {cause}", duration(-apart))
    } else if apart > 0.0 {
        format!("the {effect} is {} after the {cause}", duration(apart))
    } else if instant {
        format!("{cause} and {effect} have the same time, since no minimum latency is given (--latency)")
    } else {
        format!("{cause} and {effect} have the same time")
    }
}

/// The regions of one side, the upper edge of which is at `top`.
fn bars(lane: &Lane, top: f64, x: impl Fn(f64) -> f64) -> String {
    let mut svg = String::new();
    for bar in &lane.bars {
        let (from, to) = (x(bar.from_seconds), x(bar.to_seconds));
        let y = top + f64::from(bar.level) * ROW;
        let class = if bar.region.starts_with("MPI_") { "mpi" } else { "user" };
        let fits = ((to - from - 6.0) / CHARACTER).max(0.0) as usize;
        let length = bar.region.chars().count();
        let text = if length <= fits {
            bar.region.clone()
        } else if fits >= 4 {
            bar.region.chars().take(fits - 1).chain(['…']).collect()
        } else {
            String::new()
        };
        svg += &format!(
            "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{} for {}</title></rect>",
            (to - from).max(0.5),
            ROW - 2.0,
            escape(&bar.region),
            duration(bar.to_seconds - bar.from_seconds)
        );
        if !text.is_empty() {
            svg +=
                &format!("<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>", from + 3.0, y + 13.0, escape(&text));
        }
    }
    svg
}

/// From the lower edge of the sender's side to the upper one of the receiver's, and the moments of both on their sides, of which the lower one ends at `bottom`.
fn arrow([from, to]: [f64; 2], backwards: bool, [upper, lower, bottom]: [f64; 3]) -> String {
    let class = if backwards { "arrow back" } else { "arrow" };
    // The head, along the line.
    let length = ((to - from).powi(2) + GAP * GAP).sqrt();
    let (along_x, along_y) = ((to - from) / length, GAP / length);
    let (base_x, base_y) = (to - 9.0 * along_x, lower - 9.0 * along_y);
    format!(
        "<line class=\"{class}\" x1=\"{from:.1}\" y1=\"{upper:.1}\" x2=\"{base_x:.1}\" y2=\"{base_y:.1}\"/>\
         <path class=\"{class} head\" d=\"M{to:.1} {lower:.1}L{:.1} {:.1}L{:.1} {:.1}z\"/>\
         <line class=\"moment\" x1=\"{from:.1}\" x2=\"{from:.1}\" y1=\"{TOP}\" y2=\"{upper:.1}\"/>\
         <line class=\"moment\" x1=\"{to:.1}\" x2=\"{to:.1}\" y1=\"{lower:.1}\" y2=\"{bottom:.1}\"/>",
        base_x - 4.0 * along_y,
        base_y + 4.0 * along_x,
        base_x + 4.0 * along_y,
        base_y - 4.0 * along_x,
    )
}

/// The axis below, in the unit that fits.
fn axis(seconds: f64, bottom: f64, x: impl Fn(f64) -> f64) -> String {
    let mut svg = String::new();
    let (unit, name) = [(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]
        .into_iter()
        .rev()
        .find(|(unit, _)| seconds >= *unit)
        .unwrap_or((1e-9, "ns"));
    for at in ticks(0.0, seconds / unit, 6) {
        let x = x(at * unit);
        svg += &format!(
            "<line class=\"base\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/><text class=\"label\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} {name}</text>",
            bottom + 2.0,
            bottom + 7.0,
            bottom + 21.0,
            short(at)
        );
    }
    svg
}
