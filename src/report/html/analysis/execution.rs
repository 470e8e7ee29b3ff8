//! The chapter on computation and communication: metrics of the execution graph, degree of parallelism over time.

use super::{STAGES, further, legend, long_table, share, time_axis};
use crate::report::html::element::{duration, figure, fold, table};
use crate::report::html::plot::PlotFrame;
use crate::report::{Execution, Stages};
use clc_trace::format::count;

pub(super) fn body(stages: &Stages<Execution>) -> String {
    let all: Vec<&Execution> = std::iter::once(&stages.before).chain(&stages.after).collect();
    let mut html = String::from(
        "<p>A process computes while it is outside MPI. Speedup is the total computation time of all processes \
        divided by the execution time; efficiency is speedup divided by the number of processes, which is the mean \
        degree of parallelism. It is the product of load balance (mean computation time of a process divided by the \
        largest) and communication efficiency (largest computation time divided by the execution time).</p>\n",
    );
    let mut head = vec![""];
    head.extend(STAGES.iter().take(all.len()).map(|(_, name)| *name));
    let row = |name: &str, value: &dyn Fn(&Execution) -> String| {
        std::iter::once(name.to_owned()).chain(all.iter().map(|stage| value(stage))).collect::<Vec<String>>()
    };
    let ratio = |ratio: Option<f64>| ratio.map_or("none".to_owned(), |ratio| format!("{ratio:.2}"));
    let rows = [
        row("execution time", &|stage| duration(stage.seconds)),
        row("computation, all processes", &|stage| duration(stage.computation_seconds)),
        row("communication, all processes", &|stage| duration(stage.communication_seconds)),
        row("of which waiting", &|stage| duration(stage.waiting_seconds)),
        row("before the first and after the last event", &|stage| duration(stage.idle_seconds)),
        row("computation to communication", &|stage| ratio(stage.computation_to_communication)),
        row("computation per message", &|stage| stage.granularity_seconds.map_or("none".to_owned(), duration)),
        row("speedup", &|stage| format!("{:.2} of {}", stage.speedup, count(stage.processes))),
        row("efficiency", &|stage| share(stage.efficiency)),
        row("load balance", &|stage| stage.load_balance.map_or_else(|| "none".to_owned(), share)),
        row("communication efficiency", &|stage| share(stage.communication_efficiency)),
    ];
    html += &table("The execution", &head, rows);
    html += &parallelism(&all);

    let last = stages.last();
    let rows = last.by_process.iter().map(|process| {
        vec![
            count(process.process.into()),
            duration(process.computation_seconds),
            duration(process.communication_seconds),
            duration(process.waiting_seconds),
            duration(process.idle_seconds),
            ratio(process.computation_to_communication),
        ]
    });
    let head = ["process", "computation", "communication", "of which waiting", "idle", "ratio"];
    let list = long_table("Time of the processes", &head, rows.collect());
    html + &fold("By process", &(list + &further(last.further_processes, "process")))
}

/// Degree of parallelism over time, as steps.
fn parallelism(stages: &[&Execution]) -> String {
    let length = |stage: &Execution| stage.window_seconds * stage.parallelism.len() as f64;
    let longest = stages.iter().map(|stage| length(stage)).fold(0.0, f64::max);
    if longest <= 0.0 {
        return String::new();
    }
    let frame = PlotFrame::new(900.0, 240.0);
    let marks: Vec<_> = (0..=4).map(|quarter| f64::from(quarter) / 4.0).map(|at| (at, format!("{at}"))).collect();
    let mut svg = frame.y_axis(&marks, "computing processes / n");
    for (stage, (class, _)) in stages.iter().zip(STAGES) {
        let mut path = String::new();
        for (window, value) in stage.parallelism.iter().enumerate() {
            let x = |window: usize| frame.x(window as f64 * stage.window_seconds / longest);
            let y = frame.y(value.clamp(0.0, 1.0));
            path += &format!("{}{:.1} {y:.1}H{:.1}", if window == 0 { "M" } else { "L" }, x(window), x(window + 1));
        }
        svg += &format!("<path class=\"line fine {class}\" d=\"{path}\"/>");
    }
    svg += &time_axis(&frame, longest);
    let means: Vec<String> = stages
        .iter()
        .zip(STAGES)
        .map(|(stage, (_, name))| format!("{name} {:.2} on average", stage.efficiency))
        .collect();
    let label = format!("Degree of parallelism over time: {}.", means.join(", "));
    figure("Degree of parallelism over time", &(legend(stages.len()) + &frame.svg(&label, &svg)))
}
