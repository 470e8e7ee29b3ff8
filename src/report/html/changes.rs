//! The chapter on what the correction changed: intervals, slopes, displacements by location.

use super::element::{duration, escape, facts, figure, table};
use super::plot::{PlotFrame, ticks};
use crate::report::{Displacement, IntervalChange, Report, Slopes};
use clc_trace::format::{count, percent, sum};

pub(super) fn body(report: &Report) -> Option<String> {
    let displacement = report.displacement.as_ref()?;
    let mut html = facts(&[
        ("Events moved", format!("{} of {}", count(displacement.events_moved), count(displacement.events))),
        ("Largest displacement", duration(displacement.largest_seconds)),
        ("Mean displacement of these events", duration(displacement.mean_seconds)),
        ("Largest displacement from the recorded times", duration(displacement.from_recorded_largest_seconds)),
    ]);
    html += &intervals(displacement);
    if let Some(details) = &report.details {
        if let Some(slopes) = &details.slopes {
            html += &steepness(slopes, report.parameters.slope);
        }
        if !details.locations.is_empty() {
            let rows = details.locations.iter().map(|location| {
                let process = location.process.map_or("none".to_owned(), |process| count(process.0.into()));
                vec![
                    location.location.to_string(),
                    process,
                    count(location.events),
                    count(location.events_moved),
                    duration(location.largest_seconds),
                    duration(location.mean_seconds),
                ]
            });
            let caption = match details.further_locations {
                0 => "Displacements by location".to_owned(),
                further => {
                    format!("Displacements by location: the largest; {} more locations moved less", count(further))
                }
            };
            let head = ["location", "rank", "events", "moved", "largest displacement", "mean displacement"];
            html += &format!("<div class=\"long\">{}</div>", table(&caption, &head, rows));
        }
    }
    Some(html)
}

fn intervals(displacement: &Displacement) -> String {
    let change = &displacement.interval_change;
    let all = sum(change.classes.iter().map(|class| class.intervals));
    let rows = change.classes.iter().map(|class| {
        let name = match class.up_to_percent {
            Some(0.0) => "unchanged".to_owned(),
            Some(bound) => format!("up to {bound} %"),
            None => "more".to_owned(),
        };
        let share = if all == 0 { 0.0 } else { 100.0 * class.intervals as f64 / all as f64 };
        vec![name, count(class.intervals), escape(&percent(share))]
    });
    format!(
        "<p>Intervals between neighbouring events of a location changed by at most {} of their length, with a median \
        of {}.</p>\n",
        escape(&percent(change.largest_percent)),
        escape(&percent(change.median_percent))
    ) + &table("Change of local intervals", &["change", "intervals", "share"], rows)
        + &histogram(change)
}

fn histogram(change: &IntervalChange) -> String {
    let most = change.histogram.iter().map(|class| class.intervals).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let frame = PlotFrame::new(900.0, 210.0);
    let marks: Vec<_> = ticks(0.0, most as f64, 3).into_iter().map(|at| (at / most as f64, count(at as u64))).collect();
    let mut svg = frame.y_axis(&marks, "intervals");
    let width = 1.0 / change.histogram.len() as f64;
    for (index, class) in change.histogram.iter().enumerate().filter(|(_, class)| class.intervals > 0) {
        let (x, y) = (frame.x(index as f64 * width), frame.y(class.intervals as f64 / most as f64));
        svg += &format!(
            "<rect class=\"bar corrected\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>from {}: {}</title></rect>",
            ((frame.right - frame.left) * width - 1.0).max(0.5),
            (frame.bottom - y).max(0.5),
            escape(&percent(class.from_percent)),
            count(class.intervals)
        );
    }
    let every = change.histogram.len().div_ceil(10);
    let labels: Vec<_> = change
        .histogram
        .iter()
        .enumerate()
        .filter(|(index, _)| index.is_multiple_of(every))
        .map(|(index, class)| (index as f64 * width, percent(class.from_percent)))
        .collect();
    svg += &frame.x_axis(&labels, "change of the interval, in classes that double");
    let label = "Histogram of the changed intervals by the size of the change; the table above has the classes.";
    figure("Changed intervals by size of the change", &frame.svg(label, &svg))
}

fn steepness(slopes: &Slopes, asked: Option<f64>) -> String {
    let slope = asked.map_or(String::new(), |slope| format!(" ({slope})"));
    let rows = [
        (format!("rises with the requested slope{slope}"), count(slopes.ordinary)),
        ("steeper ones, because a send must not overtake its receive".to_owned(), count(slopes.steeper)),
        ("of zero length: several events at the same time".to_owned(), count(slopes.vertical)),
        ("steepest rise".to_owned(), percent(100.0 * slopes.steepest)),
        ("decay after a corrected receive (1 − γ)".to_owned(), percent(100.0 * slopes.decay)),
    ];
    let rows = rows.into_iter().map(|(name, value)| vec![name, escape(&value)]);
    table("Slopes: how much intervals are stretched before, and shortened after, a corrected receive", &["", ""], rows)
}
