//! Resources and clocks of nodes over time: a line for each node, or the least, the median and the most of many.

use super::grid::TimeColumns;
use super::{WatchedPage, nothing};
use crate::report::html::element::{duration, escape, figure, table};
use crate::report::html::plot::{PlotFrame, short, ticks};
use clc_monitor::history::Log;

/// So many nodes have a line of their own: as many as there are colours.
const LINES: usize = 8;
/// Bytes in the unit that is shown.
const MIB: f64 = (1_u64 << 20) as f64;

/// One line: its name, and a value for each column.
struct PlottedCurve {
    name: String,
    values: Vec<Option<f64>>,
}

/// What is drawn of the resources: its name in the log, its unit there as a divisor, and what it is called.
const DRAWN: [(&str, f64, &str); 7] = [
    ("load1", 1.0, "Load average of one minute"),
    ("cpu", 1.0, "Processors, busy time in %"),
    ("memory", MIB, "Memory available, MiB"),
    ("net_in", MIB, "Network in, MiB/s"),
    ("net_out", MIB, "Network out, MiB/s"),
    ("disk_read", MIB, "Read from disks, MiB/s"),
    ("disk_written", MIB, "Written to disks, MiB/s"),
];

/// The chapter of the resources.
pub(super) fn resources(page: &WatchedPage, grid: Option<&TimeColumns>) -> String {
    let Some(grid) = grid else { return nothing("The agents have logged only one moment.") };
    let mut html = String::new();
    for (name, unit, title) in DRAWN {
        let curve = |log: &Log| PlottedCurve {
            name: log.host.clone(),
            values: grid.values(log, |moment| moment.resources.get(name).map(|value| value / unit)),
        };
        let curves: Vec<PlottedCurve> = page.logs.iter().map(curve).collect();
        html += &drawn(title, curves, grid, true, &short_value);
    }
    if html.is_empty() { nothing("The kernels of the nodes provide no resource readings.") } else { html }
}

/// The chapter of the clocks; nothing for a single node.
pub(super) fn clocks(page: &WatchedPage, grid: Option<&TimeColumns>) -> String {
    let measured = |log: &Log| log.moments.iter().map(|moment| moment.clocks.len()).sum::<usize>();
    // The one that has measured most; of several the first.
    let by = page.logs.iter().rev().max_by_key(|log| measured(log)).filter(|log| measured(log) > 0);
    let (Some(grid), Some(log)) = (grid, by) else { return String::new() };
    let hosts = page.hosts();
    let mut numbers: Vec<u32> =
        log.moments.iter().flat_map(|moment| &moment.clocks).map(|&(number, _, _)| number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let name = |number: u32| hosts.get(&number).cloned().unwrap_or_else(|| format!("agent {number}"));
    let of = |number: u32| {
        let all = log.moments.iter().flat_map(|moment| &moment.clocks);
        all.filter(move |clock| clock.0 == number && clock.1.is_finite()).map(|&(_, ahead, error)| (ahead, error))
    };
    let rows = numbers.iter().filter_map(|&number| {
        let (last, error) = of(number).next_back()?;
        let (least, most) = (of(number).map(|clock| clock.0), of(number).map(|clock| clock.0));
        let (least, most) = (least.fold(f64::INFINITY, f64::min), most.fold(f64::NEG_INFINITY, f64::max));
        let cells = [last, error, least, most].map(|seconds| escape(&duration(seconds)));
        Some([vec![escape(&name(number))], cells.to_vec()].concat())
    });
    let head = ["node", "ahead at the end", "error bound", "least", "most"];
    let caption = format!("How far clocks are ahead of that of {}, as measured there", log.host);
    let table = table(&caption, &head, rows);
    let curve = |&number: &u32| PlottedCurve {
        name: name(number),
        values: grid
            .values(log, |moment| moment.clocks.iter().find(|clock| clock.0 == number).map(|&(_, ahead, _)| ahead)),
    };
    drawn(&caption, numbers.iter().map(curve).collect(), grid, false, &|value| duration(value)) + &table
}

fn short_value(value: f64) -> String {
    short((value * 1000.0).round() / 1000.0)
}

/// A picture of curves; nothing if there is nothing in them. `from_zero`: the axis begins there.
fn drawn(
    title: &str,
    curves: Vec<PlottedCurve>,
    grid: &TimeColumns,
    from_zero: bool,
    label: &dyn Fn(f64) -> String,
) -> String {
    let curves: Vec<PlottedCurve> =
        curves.into_iter().filter(|curve| curve.values.iter().any(Option::is_some)).collect();
    let curves = if curves.len() > LINES { summary(&curves, grid) } else { curves };
    let values = || curves.iter().flat_map(|curve| curve.values.iter().flatten().copied());
    let (mut least, mut most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if least > most {
        return String::new();
    }
    if from_zero {
        (least, most) = (least.min(0.0), most.max(0.0));
    }
    if least == most {
        // Something to stand in the middle of.
        let room = if least == 0.0 { 1.0 } else { least.abs() * 0.5 };
        (least, most) = (if from_zero { least } else { least - room }, most + room);
    }
    let frame = PlotFrame::new(900.0, 220.0);
    let share = |value: f64| (value - least) / (most - least);
    let marks: Vec<(f64, String)> = ticks(least, most, 4).into_iter().map(|at| (share(at), label(at))).collect();
    let mut svg = frame.y_axis(&marks, "") + &frame.x_axis(&grid.marks(), "time since the log began");
    let mut legend = String::new();
    for (number, curve) in curves.iter().enumerate() {
        let mut path = String::new();
        let mut pen = "M";
        for (column, value) in curve.values.iter().enumerate() {
            let Some(value) = value else {
                pen = "M";
                continue;
            };
            let x = frame.x((column as f64 + 0.5) / grid.columns as f64);
            path += &format!("{pen}{x:.1} {:.1}", frame.y(share(*value)));
            // A column between gaps is a dot at least.
            path += if pen == "M" { "h1" } else { "" };
            pen = "L";
        }
        svg += &format!("<path class=\"line s{number}\" d=\"{path}\"/>");
        legend += &format!("<li><span class=\"key s{number}\"></span>{}</li>", escape(&curve.name));
    }
    format!(
        "{}<ul class=\"legend\">{legend}</ul>\n",
        figure(title, &frame.svg(&format!("{title}, over time, by node"), &svg))
    )
}

/// The least, the median and the most of many.
fn summary(curves: &[PlottedCurve], grid: &TimeColumns) -> Vec<PlottedCurve> {
    let mut summary = ["least", "median", "most"].map(|name| PlottedCurve {
        name: format!("{name} of {} nodes", curves.len()),
        values: vec![None; grid.columns],
    });
    for column in 0..grid.columns {
        let mut values: Vec<f64> = curves.iter().filter_map(|curve| curve.values[column]).collect();
        values.sort_by(f64::total_cmp);
        let places = [0, values.len() / 2, values.len().saturating_sub(1)];
        for (curve, place) in summary.iter_mut().zip(places) {
            curve.values[column] = values.get(place).copied();
        }
    }
    summary.into()
}
