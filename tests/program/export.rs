//! Exports, and what the program says about itself: man pages and completions, as `make install` puts them into place.

use crate::common::{alone, run, with_ranks, with_recorder};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn simulated(directory: &Path) -> PathBuf {
    let trace = directory.join("trace");
    let arguments = ["--ranks", "6", "--events", "1k", "--pattern", "mix", "--clock", "ntp", "--seed", "3"];
    run(alone().arg("simulate").arg(&trace).args(arguments)).expect(0, "simulate");
    trace
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn perfetto_has_the_regions_and_messages_of_the_window() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = simulated(directory.path());
    let at = |name: &str| directory.path().join(name);
    let corrected = at("corrected");
    run(alone().arg("--quiet").arg("-o").arg(&corrected).arg(&trace)).expect(0, "correct");
    let export = |mut command: Command, window: &str, name: &str| -> String {
        let path = at(name);
        run(command.arg("export").arg(&corrected).args(["--window", window, "-o"]).arg(&path)).expect(0, window);
        read(&path)
    };
    let text = export(alone(), "1ms:2ms", "window.json");
    assert!(text == export(with_ranks(3), "1ms:2ms", "three.json"), "another file on three ranks");
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    let events = whole["traceEvents"].as_array().expect("a list");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let (regions, starts, ends) = (of("X"), of("s"), of("f"));
    assert!(regions.len() > 20 && starts.len() > 5, "{} regions, {} messages", regions.len(), starts.len());
    let number = |event: &Value, name: &str| event[name].as_f64().unwrap_or_else(|| panic!("{name}: {event}"));
    for region in &regions {
        let (from, duration) = (number(region, "ts"), number(region, "dur"));
        assert!(from >= 1000.0 && duration >= 0.0 && from + duration <= 2000.0 + 1e-6, "{region}");
    }
    // Regions of one location nest.
    let mut open: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for region in &regions {
        let stack = open.entry(region["tid"].as_u64().expect("a location")).or_default();
        let (from, to) = (number(region, "ts"), number(region, "ts") + number(region, "dur"));
        while stack.last().is_some_and(|end| *end <= from + 1e-6) {
            stack.pop();
        }
        assert!(stack.last().is_none_or(|end| to <= end + 1e-6), "{region}");
        stack.push(to);
    }
    // Every arrow has both ends, and none runs backwards: the trace is corrected.
    assert_eq!(starts.len(), ends.len());
    for (start, end) in starts.iter().zip(&ends) {
        assert_eq!(start["id"], end["id"]);
        assert!(number(start, "ts") <= number(end, "ts"), "{start} {end}");
        assert_ne!(start["pid"], end["pid"]);
        assert_eq!((&start["name"], &start["cat"]), (&end["name"], &end["cat"]));
    }
    let of_kind = |kind: &str| starts.iter().filter(|start| start["cat"] == kind).collect::<Vec<_>>();
    let ids = of_kind("order").iter().map(|start| start["id"].as_u64()).collect::<BTreeSet<_>>();
    assert!(of_kind("message").len() > 5 && ids.len() > 5 && ids.len() == of_kind("order").len(), "{ids:?}");
    let names = events.iter().filter(|event| event["name"] == "process_name").count();
    assert_eq!(names, 6);

    // The whole trace has all messages that the report counts.
    let all = run(alone().arg("export").arg(&corrected).args(["-o", "-"])).expect(0, "all").stdout;
    let all: Value = serde_json::from_str(&all).expect("JSON");
    let arrows = || all["traceEvents"].as_array().expect("a list").iter().filter(|event| event["ph"] == "s");
    let messages = arrows().filter(|event| event["cat"] == "message").count() as u64;
    run(alone().args(["check", "--quiet", "--report"]).arg(at("r.json")).arg(&corrected)).expect(0, "check");
    let report: Value = serde_json::from_str(&read(&at("r.json"))).expect("JSON");
    assert_eq!(report["matching"]["messages"].as_u64(), Some(messages));
}

/// An arrow to each end of a collective operation comes from the latest begin that it waits for: those that run backwards are the violations.
#[test]
fn perfetto_shows_what_ends_of_collective_operations_wait_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = simulated(directory.path());
    let export = |format: &str| {
        let arguments = ["--presync", "none", "--format", format, "-o", "-"];
        run(alone().arg("export").arg(&trace).args(arguments)).expect(0, format).stdout
    };
    let all: Value = serde_json::from_str(&export("perfetto")).expect("JSON");
    let of = |phase: &str| {
        let events = all["traceEvents"].as_array().expect("a list").iter();
        events.filter(|event| event["ph"] == phase && event["cat"] == "order").collect::<Vec<_>>()
    };
    let (mut arrows, mut backwards) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
    for (start, end) in of("s").into_iter().zip(of("f")) {
        let name = start["name"].as_str().expect("a name");
        *arrows.entry(name.to_owned()).or_default() += 1;
        if start["ts"].as_f64() > end["ts"].as_f64() {
            *backwards.entry(name.to_owned()).or_default() += 1;
        }
    }
    let csv = export("violations-csv");
    let mut early = BTreeMap::<String, u64>::new();
    for name in csv.lines().skip(1).filter_map(|line| line.split(',').next()).filter(|name| *name != "message") {
        *early.entry(name.to_owned()).or_default() += 1;
    }
    assert!(early.len() > 5, "{early:?}");
    assert_eq!(backwards, early);
    // Only the root waits there.
    let path = directory.path().join("r.json");
    run(alone().args(["check", "--quiet", "--presync", "none", "--report"]).arg(&path).arg(&trace)).expect(1, "check");
    let report: Value = serde_json::from_str(&read(&path)).expect("JSON");
    let collectives = report["matching"]["collectives"].as_array().expect("a list");
    for rooted in collectives.iter().filter(|of| of["operation"] == "reduce" || of["operation"] == "gather") {
        assert_eq!(arrows.get(rooted["operation"].as_str().expect("a name")).copied(), rooted["matched"].as_u64());
    }
}

/// A recording of a program with threads: an arrow for each order of steps, all of them within a process.
#[test]
fn perfetto_shows_what_threads_wait_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("corrected");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded-hybrid-3");
    run(alone().arg("--quiet").arg("-o").arg(&trace).arg(recorded)).expect(0, "correct");
    let export = |mut command: Command| {
        run(command.arg("export").arg(&trace).args(["--presync", "none", "-o", "-"])).expect(0, "export").stdout
    };
    let text = export(alone());
    assert!(text == export(with_ranks(3)), "another file on three ranks");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let of = |phase: &str| {
        let events = all["traceEvents"].as_array().expect("a list").iter();
        events.filter(|event| event["ph"] == phase && event["cat"] == "order").collect::<Vec<_>>()
    };
    let mut arrows = BTreeMap::<&str, u64>::new();
    let (mut ids, mut count) = (BTreeSet::new(), 0);
    for (start, end) in of("s").into_iter().zip(of("f")) {
        (count, _) = (count + 1, ids.insert(start["id"].as_u64()));
        assert_eq!(start["id"], end["id"]);
        if start["pid"] != end["pid"] {
            continue;
        }
        assert_ne!(start["tid"], end["tid"], "{start} {end}");
        assert!(start["ts"].as_f64() <= end["ts"].as_f64(), "{start} {end}");
        *arrows.entry(start["name"].as_str().expect("a name")).or_default() += 1;
    }
    assert_eq!(ids.len(), count);
    let path = directory.path().join("r.json");
    run(alone().args(["check", "--quiet", "--report"]).arg(&path).arg(&trace)).expect(0, "check");
    let report: Value = serde_json::from_str(&read(&path)).expect("JSON");
    let steps = report["matching"]["threads"].as_array().expect("a list");
    assert!(!steps.is_empty() && steps.len() == arrows.len(), "{steps:?} {arrows:?}");
    for of in steps {
        let pairs =
            of["one_timeline"].as_u64().expect("a number") + of["several_timelines"].as_u64().expect("a number");
        let kind = match of["kind"].as_str().expect("a name") {
            "fork" => "thread_fork_join",
            "task" => "thread_task",
            other => other,
        };
        // Every thread of a team leaves its barrier.
        let found = arrows.get(kind).copied().unwrap_or(0);
        assert!(if kind == "thread_barrier" { found > pairs } else { found == pairs }, "{kind}: {found} {pairs}");
    }
}

#[test]
fn the_csv_has_every_violation() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = simulated(directory.path());
    let at = |name: &str| directory.path().join(name);
    let csv = |mut command: Command, name: &str| -> String {
        let path = at(name);
        let arguments = ["--format", "violations-csv", "--presync", "none", "-o"];
        run(command.arg("export").arg(&trace).args(arguments).arg(&path)).expect(0, name);
        read(&path)
    };
    let text = csv(alone(), "one.csv");
    assert!(text == csv(with_ranks(4), "four.csv"), "another file on four ranks");
    run(alone().args(["check", "--quiet", "--presync", "none", "--report"]).arg(at("r.json")).arg(&trace))
        .expect(1, "check");
    let report: Value = serde_json::from_str(&read(&at("r.json"))).expect("JSON");
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert!(lines.iter().all(|line| line.len() == 11));
    let messages = lines.iter().filter(|line| line[0] == "message").count() as u64;
    assert!(messages > 0);
    assert_eq!(report["violations"]["presynchronised"]["point_to_point"]["violated"].as_u64(), Some(messages));
    let worst = &report["violations"]["presynchronised"]["worst"];
    let largest = lines.iter().map(|line| line[9].parse::<i64>().expect("ticks")).max();
    assert_eq!(worst["ticks"].as_i64(), largest);
    for line in lines.iter().filter(|line| line[0] == "message") {
        let seconds = |column: usize| line[column].parse::<f64>().expect("seconds");
        assert!((seconds(4) - seconds(8) - seconds(10)).abs() < 1e-9, "{line:?}");
    }
}

#[test]
fn nothing_is_overwritten_unless_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = simulated(directory.path());
    let file = directory.path().join("there");
    std::fs::write(&file, "mine").expect("a file");
    let refused = run(alone().arg("export").arg(&trace).arg("-o").arg(&file)).expect(2, "exists");
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(read(&file), "mine");
    run(alone().arg("export").arg(&trace).arg("--force").arg("-o").arg(&file)).expect(0, "forced");
    assert!(read(&file).starts_with('{'));
    // What was exported before is replaced.
    run(alone().arg("export").arg(&trace).arg("-o").arg(&file)).expect(0, "an earlier export");
    for window in ["5000s:", "5000s:6000s"] {
        let refused = run(alone().arg("export").arg(&trace).args(["-o", "-", "--window", window])).expect(2, window);
        assert!(refused.stderr.contains("--window is outside the trace, which ends "), "{}", refused.stderr);
        assert_eq!(refused.stdout, "");
    }
    for window in ["1ms", "2ms:1ms", "1:2", "x:"] {
        run(alone().arg("export").arg(&trace).args(["-o", "-", "--window", window])).expect(2, window);
    }
}

#[test]
fn make_installs_program_recorder_manual_and_completions() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut make = Command::new("make");
    make.current_dir(env!("CARGO_MANIFEST_DIR")).args(["--no-print-directory", "install-built", "PREFIX=/usr"]);
    make.arg(format!("DESTDIR={}", directory.path().display())).arg(format!("PROGRAM={}", with_recorder().display()));
    run(make.env("CLC_REPLAY_MPI", "never").env_remove("MAKEFLAGS")).expect(0, "make install-built");
    let usr = directory.path().join("usr");
    assert!(usr.join("bin/clc-replay").is_file());
    assert!(usr.join("lib/libclc_recorder.so").is_file());
    let pages = usr.join("share/doc/clc-replay");
    assert!(pages.join("docs/report.md").is_file());
    // With the pictures that they show.
    for picture in ["docs/report.png", "docs/clocks/sine.svg", "docs/performance/strong-scaling.svg"] {
        assert!(pages.join(picture).is_file(), "{picture}");
    }
    let manual = read(&usr.join("share/man/man1/clc-replay.1"));
    assert!(manual.starts_with(".ie") && manual.contains(".SH OPTIONS") && manual.contains("\\-\\-latency"));
    assert!(manual.contains(".SH SYNOPSIS\nclc\\-replay [OPTIONS] <TRACE>\n.br\n"), "{manual}");
    let check = read(&usr.join("share/man/man1/clc-replay-check.1"));
    assert!(check.contains(".TH clc-replay-check 1") && check.contains("clc\\-replay check"), "{check}");
    assert!(!usr.join("share/man/man1/clc-replay-man.1").exists(), "a hidden command has a page");
    let bash = usr.join("share/bash-completion/completions/clc-replay");
    // The script completes in a real shell.
    let asked = format!(
        "source {}; COMP_WORDS=(clc-replay --pres); COMP_CWORD=1; _clc-replay clc-replay --pres clc-replay 2>/dev/null || \
         _clc__replay clc-replay --pres clc-replay; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        bash.display()
    );
    let answer = run(Command::new("bash").args(["--norc", "-c", &asked])).expect(0, "completion");
    assert_eq!(answer.stdout.trim(), "--presync");
    assert!(read(&usr.join("share/zsh/site-functions/_clc-replay")).starts_with("#compdef clc-replay"));
    assert!(read(&usr.join("share/fish/vendor_completions.d/clc-replay.fish")).contains("complete -c clc-replay"));
}
