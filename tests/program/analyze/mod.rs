//! `clc-replay analyze`: numbers worked out by hand, an independent judge, the truth of simulated traces, any number of analysis ranks,
//! and what is not as it should be.

mod by_hand;
mod delays;
pub(crate) mod hand_made;
mod output;
mod scalasca;
mod thread_clocks;
mod thread_waits;
mod traces;
mod windows;

use crate::common::{alone, anchor, run, tool};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

#[track_caller]
fn clc(arguments: &str, directory: &Path, status: i32) -> crate::common::Finished {
    run(alone().args(arguments.split_whitespace()).current_dir(directory)).expect(status, arguments)
}

/// The report that `command` makes of an analysis of `trace`.
#[track_caller]
fn report(mut command: Command, trace: &Path, more: &[&str]) -> Value {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("report.json");
    run(command.arg("analyze").arg(trace).args(more).arg("--quiet").arg("--report").arg(&path)).expect(0, "analyze");
    serde_json::from_slice(&std::fs::read(&path).expect("a report")).expect("JSON")
}

#[track_caller]
fn analysis(trace: &Path, more: &[&str]) -> Value {
    report(alone(), trace, more)["analysis"].take()
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[track_caller]
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

/// Seconds in microseconds, exact in nanoseconds.
fn micros(value: &Value) -> f64 {
    (number(value) * 1e9).round() / 1e3
}

/// Sum in ticks, and count, of every kind of waiting, of what is told beside them, and of the waiting of threads, at a stage; `resolution` is ticks per second.
fn waits(analysis: &Value, stage: &str, resolution: f64) -> Vec<(i64, i64)> {
    let of = |kind: &Value| {
        let ticks = (number(&kind["waiting"][format!("{stage}_seconds")]) * resolution).round() as i64;
        (ticks, kind["waiting"][format!("{stage}_count")].as_i64().expect("a count"))
    };
    let kinds = list(&analysis["waits"]["kinds"]).iter();
    let threads = list(&analysis["waits"]["threads"]["kinds"]);
    kinds.chain(list(&analysis["waits"]["details"])).chain(threads).map(of).collect()
}

/// What the judge says of an archive, in the same order.
#[track_caller]
fn judged(trace: &Path) -> Vec<(i64, i64)> {
    let printed = run(tool("waiting_times.py").arg(anchor(trace))).expect(0, "the judge");
    let lines = printed.stdout.lines().map(|line| line.split(',').skip(1).map(|n| n.parse().expect("a number")));
    lines.map(|mut numbers| (numbers.next().expect("a sum"), numbers.next().expect("a count"))).collect()
}

/// A trace `name` of `clc-replay simulate`.
fn simulated(directory: &Path, name: &str, more: &str) -> PathBuf {
    clc(&format!("simulate {name} {more} -q"), directory, 0);
    directory.join(name)
}

/// Times that have to add up, whatever the trace.
fn check_sums(analysis: &Value, name: &str) {
    let close =
        |a: f64, b: f64, what: &str| assert!((a - b).abs() <= 1e-9 * (1.0 + b.abs()), "{name}: {what}: {a} {b}");
    for stage in ["before", "after"] {
        let (execution, path) = (&analysis["execution"][stage], &analysis["critical_path"][stage]);
        if execution.is_null() {
            continue;
        }
        let (seconds, processes) = (number(&execution["seconds"]), number(&execution["processes"]));
        let of = |field: &str| number(&execution[field]);
        let times = of("computation_seconds") + of("communication_seconds") + of("idle_seconds");
        close(times, seconds * processes, "all times of all processes");
        assert!(of("waiting_seconds") <= of("communication_seconds") + 1e-9, "{name}: waits outside of MPI");
        if seconds > 0.0 {
            close(of("speedup"), of("computation_seconds") / seconds, "speedup");
            let degrees: Vec<f64> = list(&execution["parallelism"]).iter().map(number).collect();
            assert!(degrees.iter().all(|degree| (0.0..=1.0).contains(degree)), "{name}");
            let mean = degrees.iter().sum::<f64>() / degrees.len() as f64;
            // Windows differ by a tick at most.
            assert!((mean - of("efficiency")).abs() < 1e-3, "{name}: {mean} {}", of("efficiency"));
            let balance = execution["load_balance"].as_f64().unwrap_or(0.0);
            close(balance * of("communication_efficiency"), of("efficiency"), "factors of the efficiency");
        }
        close(number(&path["seconds"]), seconds, "length of the critical path");
        let weight = number(&path["weight_seconds"]);
        close(weight, seconds + (processes - 1.0) * (seconds - of("efficiency") * seconds), "weight of the path");
        for by in ["by_call_path", "by_process", "by_region"] {
            let sum = |field: &str| -> f64 { list(&path[by]).iter().map(|entry| number(&entry["share"][field])).sum() };
            close(sum("seconds"), seconds, by);
            close(sum("weight_seconds"), weight, by);
        }
        let parts = ["computation_seconds", "communication_seconds", "idle_seconds"];
        close(parts.iter().map(|part| number(&path[part])).sum(), seconds, "parts of the critical path");
    }
    let (total, delays) = (&analysis["waits"]["total"], &analysis["waits"]["delays"]);
    for stage in ["before_seconds", "after_seconds"].into_iter().filter(|stage| !total[stage].is_null()) {
        let regions: f64 = list(&delays["by_region"]).iter().map(|entry| number(&entry["cost"][stage])).sum();
        let others = ["propagated", "unexplained", "not_examined"].iter().map(|&name| number(&delays[name][stage]));
        close(regions + others.sum::<f64>(), number(&total[stage]), "what waiting is blamed on");
    }
    if !total["after_seconds"].is_null() {
        let of = |field: &str| number(&total[field]);
        close(of("before_seconds") - of("artefact_seconds") + of("hidden_seconds"), of("after_seconds"), "artefacts");
    }
}
