//! The clock error over time per location, before and after, as SVG (as figure 2 of the CLC paper shows it).

use super::element::escape;
use super::plot::{PlotFrame, short, ticks};
use crate::report::{Evaluation, GENERATOR, PhaseAccuracy};
use clc_trace::format::{count, duration};
use clc_trace::{Error, Result};

const WIDTH: f64 = 900.0;
/// Height of the title, and of a panel.
const TITLE: f64 = 40.0;
const PANEL: f64 = 300.0;
/// Width of the names of the curves.
const LEGEND: f64 = 90.0;
/// More curves than this have no names. Chosen by hand: a longer legend does not fit beside the plot.
const NAMED: usize = 12;
/// More curves than this are not drawn. Chosen by hand: more only cover each other.
const CURVES: usize = 64;
/// The picture stands alone, so it brings its own style, in the classes of [`PlotFrame`].
const STYLE: &str = "text { font: 12px sans-serif; fill: #57606a; } text.title { font-size: 18px; fill: #1b1f24; } \
    text.caption { font-size: 15px; fill: #1b1f24; } .paper { fill: #ffffff; } .grid { stroke: #d8dee4; } \
    .base { stroke: #57606a; } polyline { fill: none; stroke-width: 1; } .key { stroke-width: 2; }";

/// Moments and errors, in seconds.
type ErrorCurve = Vec<(f64, f64)>;

/// One panel per phase but the raw one, all with the same scale of time; each has its own scale of error.
///
/// # Errors
/// There is nothing to draw.
pub fn evaluation_plot(evaluation: &Evaluation) -> Result<String> {
    let shown = match evaluation.phases.len() {
        0 => return Err(Error::new("nothing to plot: the trace has no events")),
        1 | 2 => &evaluation.phases[..],
        _ => &evaluation.phases[1..],
    };
    let height = TITLE + PANEL * shown.len() as f64;
    let title = format!("Clock error against the truth: {}", evaluation.trace);
    // Tools know one of our plots by how it begins.
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n\
        <!-- {GENERATOR} -->\n<style>{STYLE}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
        <text class=\"title\" x=\"{}\" y=\"26\" text-anchor=\"middle\">{}</text>\n",
        WIDTH / 2.0,
        escape(&title)
    );
    for (number, phase) in shown.iter().enumerate() {
        let top = TITLE + PANEL * number as f64;
        svg += &format!("<g transform=\"translate(0 {top})\">\n{}</g>\n", panel(evaluation, phase));
    }
    Ok(svg + "</svg>\n")
}

fn panel(evaluation: &Evaluation, phase: &PhaseAccuracy) -> String {
    let curves = curves(phase);
    let named = (2..=NAMED).contains(&curves.len());
    let frame = PlotFrame { top: 32.0, ..PlotFrame::new(if named { WIDTH - LEGEND } else { WIDTH }, PANEL) };
    let values = || curves.iter().flatten().map(|point| point.1);
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let (scale, unit) = unit_of(low.abs().max(high));
    let room = (high - low) * 0.05;
    let (low, high) = if high > low { (low - room, high + room) } else { (-scale, scale) };
    let share = |error: f64| (error - low) / (high - low);
    let length = evaluation.true_seconds.max(f64::MIN_POSITIVE);
    let (time_scale, time_unit) = unit_of(evaluation.true_seconds);
    let errors = ticks(low / scale, high / scale, 6).into_iter().map(|at| (share(at * scale), short(at)));
    let times = ticks(0.0, length / time_scale, 10).into_iter().map(|at| (at * time_scale / length, short(at)));
    let mut svg = format!(
        "<text class=\"caption\" x=\"{}\" y=\"18\" text-anchor=\"middle\">{}: rms {}, largest {}, {} of {} in wrong order</text>\n",
        WIDTH / 2.0,
        escape(&phase.phase),
        duration(phase.clock.rms_seconds),
        duration(phase.clock.max_seconds),
        count(phase.violations),
        count(phase.checked),
    );
    svg += &frame.y_axis(&errors.collect::<Vec<_>>(), &format!("clock error [{unit}]"));
    svg += &frame.x_axis(&times.collect::<Vec<_>>(), &format!("true time [{time_unit}]"));
    for (number, curve) in curves.iter().enumerate() {
        let hue = 360 * number / curves.len();
        let place = |&(time, error): &(f64, f64)| {
            format!("{:.1},{:.1}", frame.x((time / length).clamp(0.0, 1.0)), frame.y(share(error)))
        };
        let points: Vec<String> = curve.iter().map(place).collect();
        svg += &format!("\n<polyline stroke=\"hsl({hue},75%,42%)\" points=\"{}\"/>", points.join(" "));
        if let Some(location) = phase.locations.get(number).filter(|_| named) {
            let (x, y) = (frame.width, 44.0 + 16.0 * number as f64);
            let name = match location.rank {
                Some(rank) => format!("rank {rank}"),
                None => format!("location {}", location.location),
            };
            svg += &format!(
                "<line class=\"key\" stroke=\"hsl({hue},75%,42%)\" x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/><text x=\"{}\" y=\"{}\">{name}</text>",
                x + 16.0,
                x + 22.0,
                y + 4.0
            );
        }
    }
    svg + "\n"
}

/// One curve per location, or one for all of them if locations are not listed.
fn curves(phase: &PhaseAccuracy) -> Vec<ErrorCurve> {
    let of_locations: Vec<ErrorCurve> = phase
        .locations
        .iter()
        .take(CURVES)
        .map(|location| {
            let points = phase.over_time.iter().zip(&location.over_time);
            points.filter_map(|(slice, error)| error.map(|error| (slice.at_seconds, error))).collect()
        })
        .collect();
    if of_locations.iter().any(|curve| !curve.is_empty()) {
        return of_locations;
    }
    vec![phase.over_time.iter().map(|slice| (slice.at_seconds, slice.rms_seconds)).collect()]
}

/// The unit in which numbers up to `largest` seconds are short.
fn unit_of(largest: f64) -> (f64, &'static str) {
    let units = [(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms")];
    units.into_iter().find(|(unit, _)| largest < 1000.0 * unit).unwrap_or((1.0, "s"))
}
