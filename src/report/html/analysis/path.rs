//! The chapter on the critical path: where it goes, what it consists of, by length and by weight.

use super::{STAGES, call_path, further, legend, length, long_table, share, time_axis};
use crate::report::html::element::{duration, escape, figure, fold, table};
use crate::report::html::plot::PlotFrame;
use crate::report::{Analysis, CriticalPath, Share};
use clc_trace::format::count;

pub(super) fn body(analysis: &Analysis) -> String {
    let stages = &analysis.critical_path;
    let all: Vec<&CriticalPath> = std::iter::once(&stages.before).chain(&stages.after).collect();
    let mut html = String::from(
        "<p>The path through the execution that contains no waiting: going back from the last event, it switches at \
        every wait to the process that was waited for. Shortening what lies on it shortens the program. By \
        <em>weight</em>, each moment counts up to n times (n processes), more the fewer processes compute at that \
        time: parts with a large weight are those where all wait for one.</p>\n",
    );
    let mut head = vec![""];
    head.extend(STAGES.iter().take(all.len()).map(|(_, name)| *name));
    let row = |name: &str, value: &dyn Fn(&CriticalPath) -> String| {
        std::iter::once(name.to_owned()).chain(all.iter().map(|stage| value(stage))).collect::<Vec<String>>()
    };
    let mut rows = vec![
        row("length", &|path| duration(path.seconds)),
        row("weight", &|path| duration(path.weight_seconds)),
        row("computation on it", &|path| duration(path.computation_seconds)),
        row("communication on it", &|path| duration(path.communication_seconds)),
        row("changes of process", &|path| count(path.changes)),
    ];
    if all.iter().any(|path| path.broken > 0) {
        rows.push(row("broken by violations", &|path| count(path.broken)));
    }
    html += &table("The critical path", &head, rows);
    html += &picture(&all, length(analysis));

    let last = stages.last();
    let of = |mut row: Vec<String>, part: &Share| {
        row.extend([
            duration(part.seconds),
            share(part.share),
            duration(part.weight_seconds),
            share(part.weight_share),
        ]);
        row
    };
    let columns = ["length", "share", "weight", "share of the weight"];
    let head = |first: &'static str| [&[first][..], &columns].concat();
    let region = |name: &str| if name.is_empty() { "(outside of any region)".to_owned() } else { escape(name) };
    let rows = last.by_region.iter().map(|entry| of(vec![region(&entry.region)], &entry.share));
    html += &long_table("By region, largest weight first", &head("region"), rows.collect());
    html += &further(last.further_regions, "region");
    let rows = last.by_process.iter().map(|entry| of(vec![count(entry.process.into())], &entry.share));
    html += &long_table("By process, largest weight first", &head("process"), rows.collect());
    html += &further(last.further_processes, "process");
    let rows = last.by_call_path.iter().map(|entry| of(vec![call_path(&entry.call_path)], &entry.share));
    let list = long_table("By call path, largest weight first", &head("call path"), rows.collect());
    html += &fold("By call path", &(list + &further(last.further_call_paths, "call path")));
    let rows = last.stretches.iter().map(|stretch| {
        vec![
            count(stretch.process.into()),
            format!("{:.9}", stretch.from_seconds),
            duration(stretch.to_seconds - stretch.from_seconds),
            duration(stretch.weight_seconds),
        ]
    });
    let list = long_table(
        "The longest stretches on one process",
        &["process", "from (s)", "length", "weight"],
        rows.collect(),
    );
    html + &fold("The longest stretches", &(list + &further(last.further_stretches, "stretch")))
}

/// Which process the path is at, over time.
fn picture(paths: &[&CriticalPath], seconds: f64) -> String {
    let at = |path: &CriticalPath| path.window_seconds * path.windows.len() as f64;
    let longest = paths.iter().map(|path| at(path)).fold(0.0, f64::max);
    let highest = paths.iter().flat_map(|path| &path.windows).flatten().copied().max();
    let (Some(highest), true) = (highest, longest > 0.0) else { return String::new() };
    let frame = PlotFrame::new(900.0, 260.0);
    let rows = f64::from(highest) + 1.0;
    let step = (rows / 8.0).ceil().max(1.0) as usize;
    let marks: Vec<_> = (0..=highest)
        .step_by(step)
        .map(|process| (1.0 - (f64::from(process) + 0.5) / rows, count(process.into())))
        .collect();
    let mut svg = frame.y_axis(&marks, "process");
    for (path, (class, _)) in paths.iter().zip(STAGES) {
        let mut line = String::new();
        let mut before = None;
        for (window, process) in path.windows.iter().enumerate() {
            let x = |window: usize| frame.x(window as f64 * path.window_seconds / longest);
            if let Some(process) = process {
                let y = frame.y(1.0 - (f64::from(*process) + 0.5) / rows);
                match before == Some(process) {
                    // The same horizontal goes on.
                    true => line += &format!("H{:.1}", x(window + 1)),
                    false => {
                        line += &format!(
                            "{}{:.1} {y:.1}H{:.1}",
                            if before.is_some() { "L" } else { "M" },
                            x(window),
                            x(window + 1)
                        )
                    }
                }
            }
            before = process.as_ref();
        }
        svg += &format!("<path class=\"line fine {class}\" d=\"{line}\"/>");
    }
    svg += &time_axis(&frame, longest.max(seconds));
    let label = "The process on the critical path over time; the tables below have the numbers.";
    let text = "Where the critical path is: the process with the largest part of it in each time window";
    figure(text, &(legend(paths.len()) + &frame.svg(label, &svg)))
}
