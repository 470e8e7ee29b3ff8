//! Processes whose threads have clocks of their own: every command sees the clocks and the times that a correction writes.

use super::{analysis, list, number, report};
use crate::common::{alone, run, with_ranks};
use crate::reference::against::write_with;
use crate::reference::model::{Recorded, Trace};
use crate::threads::{Threads, US, barrier, begin, end, fork, join, message, trace};
use clc_archive::truth::{self, TruthWriter};
use clc_trace::{ClockOffset, CommId, Event, Message, RegionId, Ticks, Window, WindowId};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The region MPI_Recv.
const RECEIVE: u32 = 6;
const PROCESSES: u32 = 3;

/// How far the clock of the worker of each process is ahead, in microseconds. That of process 1 is recorded, that of process 0 is not.
const AHEAD: [i64; 3] = [300, -500, 0];

/// Three processes of two threads. Each thread sends to that of the next process and receives from that of the one before, with tag 1 the main threads
/// and 2 the workers; then both meet at a barrier. How long they wait differs.
fn true_events(process: u32, thread: u32) -> Vec<(i64, Event)> {
    let mut events = if thread == 0 { vec![fork(900, 2), begin(901)] } else { vec![begin(910)] };
    for round in 0..60 {
        let start = 1000 + 200 * round + i64::from(7 * process + 31 * thread);
        let late = (13 * round + 11 * i64::from(process)) % 40;
        let peer = |step: u32| Message { tag: 1 + thread, ..message((process + step) % PROCESSES) };
        events.push((start + late, Event::MpiSend(peer(1))));
        events.push((start + late + 5, Event::Enter(RegionId(RECEIVE))));
        events.push((start + 90, Event::MpiRecv(peer(PROCESSES - 1))));
        events.push((start + 92, Event::Leave(RegionId(RECEIVE))));
        let together = 1000 + 200 * round + i64::from(7 * process) + 190;
        events.extend(barrier(start + 100 + (7 * round) % 30, together + i64::from(thread)));
    }
    events.extend(if thread == 0 { vec![end(20_000), join(20_030)] } else { vec![end(20_010)] });
    events
}

fn hybrid(ahead: [i64; 3]) -> Trace {
    let process = |p: u32| -> Threads { vec![(true_events(p, 0), 0), (true_events(p, 1), ahead[p as usize])] };
    trace((0..PROCESSES).map(process).collect())
}

/// The archive, with the offsets that say so of the worker of process 1.
fn written(directory: &Path, trace: &Trace) -> PathBuf {
    let path = directory.join("trace");
    let offset = |time, offset| ClockOffset { time, offset, standard_deviation: 0.0 };
    write_with(trace, &path, |process, location| {
        let ahead = if (process, location) == (1, 1) { -AHEAD[1] * US } else { 0 };
        vec![offset(0, ahead), offset(30_000_000, ahead)]
    });
    path
}

fn made() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &hybrid(AHEAD));
    (directory, path)
}

/// The corrected trace, next to the one at `path`.
fn corrected(path: &Path) -> PathBuf {
    let out = path.with_file_name("corrected");
    run(alone().args(["-q", "-o"]).arg(&out).arg(path)).expect(0, "correct");
    out
}

/// What is known of one stage: of all waits without those of the other stage.
fn stage(analysis: &Value, stage: &str) -> Value {
    let seconds = |waiting: &Value| waiting[format!("{stage}_seconds")].clone();
    let count = |waiting: &Value| waiting[format!("{stage}_count")].clone();
    let of = |from: &Value, name: &str, keys: &[&str]| -> Value {
        let entry = |entry: &Value| {
            let named: Vec<Value> = keys.iter().map(|&key| entry[key].clone()).collect();
            let waiting = if entry["waiting"].is_null() { entry } else { &entry["waiting"] };
            (named, seconds(waiting), count(waiting))
        };
        let all = list(&from[name]).iter().map(entry);
        // Some are only of the other stage.
        let mut all: Vec<_> = all.filter(|entry| entry.1.as_f64() > Some(0.0)).collect();
        all.sort_by_key(|(named, ..)| format!("{named:?}"));
        serde_json::to_value(all).expect("JSON")
    };
    let (waits, threads) = (&analysis["waits"], &analysis["waits"]["threads"]);
    let lists = [
        of(waits, "kinds", &["kind"]),
        of(waits, "details", &["kind"]),
        of(waits, "by_call_path", &["kind", "call_path"]),
        of(waits, "by_process", &["kind", "process"]),
        of(waits, "by_pair", &["kind", "process", "cause"]),
        of(threads, "kinds", &["kind"]),
        of(threads, "by_call_path", &["kind", "call_path"]),
        of(threads, "by_process", &["kind", "process"]),
    ];
    serde_json::json!({
        "waits": lists,
        "execution": analysis["execution"][stage],
        "critical_path": analysis["critical_path"][stage],
        "traffic": analysis["traffic"],
    })
}

#[test]
fn an_analysis_has_the_waits_of_the_corrected_trace() {
    let (_directory, path) = made();
    let both = analysis(&path, &[]);
    let written = analysis(&corrected(&path), &["--as-recorded", "--presync", "none"]);
    assert_eq!(stage(&both, "after"), stage(&written, "before"));
    // The times of all threads are in it, and the artefacts of their clocks.
    assert!(number(&both["waits"]["total"]["after_seconds"]) > 2e-3, "{}", both["waits"]["total"]);
    assert!(number(&both["waits"]["total"]["artefact_seconds"]) > 1e-3, "{}", both["waits"]["total"]);
    assert_eq!(both["traffic"]["messages"], 360);
    assert_eq!(both["critical_path"]["after"]["broken"], 0);
    let barriers = &both["waits"]["threads"]["kinds"][0]["waiting"];
    assert!(number(&barriers["artefact_seconds"]) > 1e-3 && number(&barriers["after_seconds"]) > 1e-3, "{barriers}");
    // Nearly what is true.
    let directory = tempfile::tempdir().expect("a directory");
    let truth = directory.path().join("truth");
    write_with(&hybrid([0; 3]), &truth, |_, _| Vec::new());
    let truth = analysis(&truth, &["--as-recorded"]);
    let of = |analysis: &Value, stage: &str| number(&analysis["waits"]["total"][stage]);
    let (found, known) = (of(&both, "after_seconds"), of(&truth, "before_seconds"));
    assert!((found - known).abs() < 0.02 * known, "{found} {known}");
    let of = |analysis: &Value, stage: &str| number(&analysis["waits"]["threads"]["kinds"][0]["waiting"][stage]);
    let (found, known) = (of(&both, "after_seconds"), of(&truth, "before_seconds"));
    assert!((found - known).abs() < 0.1 * known, "{found} {known}");
}

#[test]
fn any_number_of_ranks_finds_the_same() {
    let (_directory, path) = made();
    let one = report(alone(), &path, &[]);
    for ranks in [2, 3] {
        let more = report(with_ranks(ranks), &path, &[]);
        assert_eq!(more["analysis"], one["analysis"], "{ranks} ranks");
    }
}

#[test]
fn readers_see_recorded_offsets_before_a_correction() {
    // The clock of the worker of process 0 is put right by what its steps say; a reader of the trace does not know that.
    let (_directory, path) = made();
    let both = analysis(&path, &[]);
    let recorded = analysis(&path, &["--as-recorded", "--presync", "linear"]);
    assert_eq!(stage(&both, "before")["waits"], stage(&recorded, "before")["waits"]);
}

#[test]
fn locks_are_looked_for_where_threads_have_clocks_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut trace = hybrid(AHEAD);
    trace.windows = vec![Window { id: WindowId(0), name: String::new(), comm: CommId(0) }];
    let path = written(directory.path(), &trace);
    run(alone().args(["check", "-q", "--presync", "linear"]).arg(&path)).expect(1, "check");
    assert!(corrected(&path).is_dir());
    analysis(&path, &[]);
}

/// Writes the true times of all locations next to the trace.
fn write_truth(path: &Path, trace: &Trace) {
    std::fs::create_dir(truth::directory(path)).expect("a directory");
    for (p, process) in trace.processes.iter().enumerate() {
        for (l, events) in process.locations.iter().enumerate() {
            let id = trace.location_id(p, l);
            let mut file = TruthWriter::create(&truth::path(path, id), id, 1_000_000_000).expect("a truth file");
            for Recorded { time, .. } in events {
                file.push(Ticks(*time)).expect("a time");
            }
            file.finish().expect("a truth file");
        }
    }
}

fn evaluated(mut command: Command, trace: &Path, truth: &Path) -> Value {
    let printed = run(command.args(["evaluate", "-q", "--report", "-", "--truth"]).arg(truth).arg(trace));
    serde_json::from_str(&printed.expect(0, "evaluate").stdout).expect("JSON")
}

#[test]
fn an_evaluation_knows_the_correction_of_each_thread() {
    let (_directory, path) = made();
    write_truth(&path, &hybrid([0; 3]));
    let out = corrected(&path);
    let result = evaluated(alone(), &out, &path);
    let phases = list(&result["phases"]);
    let names: Vec<&str> = phases.iter().map(|phase| phase["phase"].as_str().expect("a name")).collect();
    // The forward phase is there only if the correction that it belongs to is the one that was written.
    assert_eq!(names, ["raw", "presync", "forward", "final"], "{}", result["warnings"]);
    let rms = |phase: usize| number(&phases[phase]["clock"]["rms_seconds"]);
    let violations = |phase: usize| phases[phase]["violations"].as_u64().expect("a number");
    assert!(rms(0) > 150e-6 && rms(1) < 30e-6 && rms(3) < 30e-6, "{} {} {}", rms(0), rms(1), rms(3));
    assert!(violations(0) > 50 && violations(3) == 0, "{} {}", violations(0), violations(3));
    for ranks in [2, 3] {
        assert_eq!(evaluated(with_ranks(ranks), &out, &path), result, "{ranks} ranks");
    }
}

fn exported(mut command: Command, trace: &Path, more: &[&str]) -> String {
    run(command.arg("export").arg(trace).args(["-o", "-"]).args(more)).expect(0, "export").stdout
}

#[test]
fn an_export_shows_the_times_of_each_thread() {
    let (_directory, path) = made();
    let out = corrected(&path);
    let written = exported(alone(), &out, &["--presync", "none"]);
    let direct = exported(alone(), &path, &["--corrected"]);
    assert!(direct == written, "another export than that of the corrected trace");
    let window = ["--window", "2ms:5ms"];
    let part = exported(alone(), &path, &[&["--corrected"], &window[..]].concat());
    assert_eq!(part, exported(alone(), &out, &[&["--presync", "none"], &window[..]].concat()));
    let linear = exported(alone(), &path, &[]);
    let threads = exported(alone(), &path, &["--format", "violations-csv", "--presync", "linear"]);
    for ranks in [2, 3] {
        assert!(exported(with_ranks(ranks), &path, &["--corrected"]) == direct, "{ranks} ranks");
        assert!(exported(with_ranks(ranks), &path, &[]) == linear, "{ranks} ranks");
        let same = exported(with_ranks(ranks), &path, &["--format", "violations-csv", "--presync", "linear"]);
        assert_eq!(same, threads, "{ranks} ranks");
    }
    // Steps of threads are no messages, and a thread with a clock of its own is still one of its process.
    let events: Value = serde_json::from_str(&direct).expect("JSON");
    let starts = list(&events["traceEvents"]).iter().filter(|event| event["ph"] == "s");
    assert_eq!(starts.filter(|start| start["cat"] == "message").count(), 360);
    let lines: Vec<Vec<&str>> = threads.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert!(lines.iter().any(|line| line[0] == "thread_fork_join") && lines.iter().any(|line| line[0] == "message"));
    for line in &lines {
        assert!(line[1].parse::<u32>().expect("a process") < PROCESSES, "{line:?}");
        assert!(line[5].parse::<u32>().expect("a process") < PROCESSES, "{line:?}");
    }
    // A correction leaves no violation.
    let none = exported(alone(), &path, &["--format", "violations-csv", "--corrected"]);
    assert_eq!(none.lines().count(), 1, "{none}");
}

#[test]
fn perturbed_threads_get_the_clock_of_their_process() {
    let directory = tempfile::tempdir().expect("a directory");
    // Both clocks that differ are recorded here, so the trace is true through its offsets.
    let path = written(directory.path(), &hybrid([0, AHEAD[1], 0]));
    let out = directory.path().join("perturbed");
    let clock = ["--clock", "ntp", "--per-process"];
    run(alone().args(["perturb", "-q"]).arg(&path).arg(&out).args(clock)).expect(0, "perturb");
    let result = evaluated(alone(), &out, &out);
    let events: usize = (0..PROCESSES).flat_map(|p| (0..2).map(move |t| true_events(p, t).len())).sum();
    assert_eq!(result["events"], events);
    // The truth of all threads is what really was, whatever clocks they had: no message comes too early in it.
    let truth = hybrid([0; 3]);
    for (p, process) in truth.processes.iter().enumerate() {
        for (l, events) in process.locations.iter().enumerate() {
            let file = truth::path(&out, truth.location_id(p, l));
            let mut file = truth::TruthReader::open(&file).expect("a truth file");
            for Recorded { time, .. } in events {
                assert_eq!(file.next_time().expect("a time"), Some(Ticks(*time)), "thread {l} of process {p}");
            }
        }
    }
    for ranks in [2, 3] {
        let same = directory.path().join(format!("perturbed-{ranks}"));
        run(with_ranks(ranks).args(["perturb", "-q"]).arg(&path).arg(&same).args(clock)).expect(0, "perturb");
        crate::common::assert_same_tree(&out, &same, "perturbed on more ranks");
    }
    // Threads that contradict each other show that its times are not true.
    let contradictory = directory.path().join("contradictory");
    std::fs::create_dir(&contradictory).expect("a directory");
    let contradictory = written(&contradictory, &hybrid(AHEAD));
    let refused = run(alone().args(["perturb", "-q"]).arg(&contradictory).arg(directory.path().join("no"))).stderr;
    assert!(refused.contains("violate the clock condition"), "{refused}");
}
