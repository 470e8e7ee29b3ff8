//! The description of a trace as text, short even for thousands of processes.

use super::table::{TextTable, labelled, shorten};
use crate::report::{Info, LocationInfo};
use clc_trace::format::{count, duration, plural};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Rows of a table that are shown without `--all`. Chosen by hand: so that all tables fit a screen.
const ROWS: usize = 10;
const INDENT: usize = 13;

/// The description, in lines of less than 80 columns (paths may be longer). Without `all`, tables are cut after
/// the most telling rows, and say so.
pub fn info_text(info: &Info, all: bool) -> String {
    let limit = if all { usize::MAX } else { ROWS };
    let parts = [
        trace(info),
        events(info),
        nodes(info, limit),
        communicators(info, limit),
        clocks(info),
        locations(info, limit),
        warnings(info),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn trace(info: &Info) -> String {
    let trace = &info.trace;
    let mut text = format!("{:<INDENT$}{}\n", "Trace", trace.path);
    let mut line = |label: &str, content: String| text += &labelled(label, &content, INDENT);
    line("Archive", super::correction::archive(trace));
    line("Processes", count(trace.processes));
    line("Nodes", count(trace.nodes));
    line("Locations", count(trace.locations));
    line("Events", count(trace.events));
    line("Time span", duration(trace.span_seconds));
    line("Timer", format!("{} ticks/s", count(trace.timer_resolution)));
    text
}

fn events(info: &Info) -> String {
    let mut table = TextTable::default();
    table.row(["Events by kind", "count"]);
    for kind in &info.trace.events_by_kind {
        table.row([&format!("  {}", shorten(&kind.kind, 40)), &count(kind.count)]);
    }
    if info.trace.events_by_kind.is_empty() { String::new() } else { table.render(32) }
}

fn nodes(info: &Info, limit: usize) -> String {
    let mut table = TextTable::default();
    table.row(["Nodes", "processes", "locations"]);
    for node in info.nodes.iter().take(limit) {
        table.row([&format!("  {}", shorten(&node.name, 40)), &count(node.processes), &count(node.locations)]);
    }
    if info.nodes.is_empty() { String::new() } else { table.render(32) + &rest(info.nodes.len(), limit, "node") }
}

/// All communicators, or how many there are of each size.
fn communicators(info: &Info, limit: usize) -> String {
    if info.communicators.is_empty() {
        return String::new();
    }
    let mut table = TextTable::default();
    if info.communicators.len() <= limit {
        table.row(["Communicators", "id", "size"]);
        for comm in &info.communicators {
            let name = if comm.name.is_empty() { "(no name)".into() } else { shorten(&comm.name, 40) };
            let inter = if comm.inter { ", inter" } else { "" };
            table.row([&format!("  {name}{inter}"), &comm.id.to_string(), &count(comm.size)]);
        }
        return table.render(32);
    }
    let mut sizes: BTreeMap<Reverse<u64>, u64> = BTreeMap::new();
    for comm in &info.communicators {
        *sizes.entry(Reverse(comm.size)).or_default() += 1;
    }
    table.row(["Communicators by size", "count"]);
    for (Reverse(size), number) in sizes.iter().take(limit) {
        table.row([&format!("  {}", plural(*size, "member")), &count(*number)]);
    }
    table.render(32) + &rest(sizes.len(), limit, "size")
}

/// Smallest, median and largest offset and drift over all locations with measurements.
fn clocks(info: &Info) -> String {
    let resolution = info.trace.timer_resolution.max(1) as f64;
    let measured: Vec<&LocationInfo> = info.locations.iter().filter(|l| l.clock.measurements > 0).collect();
    if measured.is_empty() {
        return labelled("Clocks", "no clock offsets are recorded; local times are taken as global", INDENT);
    }
    let seconds = |ticks: Option<i64>| ticks.map(|ticks| ticks as f64 / resolution);
    let mut table = TextTable::default();
    table.row(["Clock offsets", "smallest", "median", "largest"]);
    let mut row = |name: &str, values: Vec<f64>, show: &dyn Fn(f64) -> String| {
        if let Some([smallest, median, largest]) = spread(values) {
            table.row([name, &show(smallest), &show(median), &show(largest)]);
        }
    };
    let all = |value: &dyn Fn(&LocationInfo) -> Option<f64>| measured.iter().filter_map(|l| value(l)).collect();
    row("  first", all(&|l| seconds(l.clock.first_offset_ticks)), &duration);
    row("  last", all(&|l| seconds(l.clock.last_offset_ticks)), &duration);
    row("  drift", all(&|l| l.clock.drift_ppm), &ppm);
    row("  measurements", all(&|l| Some(l.clock.measurements as f64)), &|n| count(n as u64));
    let without = info.locations.len() - measured.len();
    let mut text = table.render(32);
    if without > 0 {
        text += &format!("  none for {}\n", plural(without as u64, "location"));
    }
    text
}

/// Locations in the order of the trace, or those that drift most.
fn locations(info: &Info, limit: usize) -> String {
    if info.locations.is_empty() {
        return String::new();
    }
    let resolution = info.trace.timer_resolution.max(1) as f64;
    let mut shown: Vec<&LocationInfo> = info.locations.iter().collect();
    let cut = shown.len() > limit;
    if cut {
        // A location without a drift is the least interesting; total_cmp gives NaN, which no clock has, a place too.
        let drift = |location: &LocationInfo| location.clock.drift_ppm.map_or(-1.0, f64::abs);
        shown.sort_by(|a, b| drift(b).total_cmp(&drift(a)));
        shown.truncate(limit);
    }
    let mut table = TextTable::default();
    let title = if cut { "Locations by drift" } else { "Locations" };
    table.row([title, "rank", "events", "offset", "drift"]);
    for location in shown {
        let rank = location.rank.map_or("-".into(), |rank| rank.to_string());
        let offset = location.clock.first_offset_ticks.map_or("-".into(), |ticks| duration(ticks as f64 / resolution));
        let drift = location.clock.drift_ppm.map_or("-".into(), ppm);
        let name = format!("  {} {}", location.id, shorten(&location.group, 16));
        table.row([&name, &rank, &count(location.events), &offset, &drift]);
    }
    table.render(20) + &rest(info.locations.len(), limit, "location")
}

fn warnings(info: &Info) -> String {
    let text = |warning: &crate::report::Warning| {
        let times = if warning.count > 1 { format!(" ({} times)", count(warning.count)) } else { String::new() };
        labelled("Warning:", &format!("{}{times}", warning.text), 9)
    };
    info.warnings.iter().map(text).collect()
}

/// A line about the rows that a table leaves out.
fn rest(rows: usize, limit: usize, noun: &str) -> String {
    match rows.saturating_sub(limit) {
        0 => String::new(),
        more => format!("  and {} (--all lists them)\n", plural(more as u64, &format!("more {noun}"))),
    }
}

fn ppm(value: f64) -> String {
    // Adding zero turns a negative zero into a plain one.
    format!("{:.3} ppm", (value * 1e3).round() / 1e3 + 0.0)
}

/// Smallest, median (the upper one of two) and largest value.
fn spread(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    Some([*values.first()?, *values.get(values.len() / 2)?, *values.last()?])
}
