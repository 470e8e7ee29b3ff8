//! Simulated programs that synchronise by more than messages: each goes through `check`, the correction, `analyze` and `evaluate`, and independent
//! judges read what comes out.

use crate::common::{alone, anchor, run, tool};
use serde_json::Value;
use std::path::Path;

/// The report of a job, which ends with `status`.
#[track_caller]
fn report(arguments: &str, directory: &Path, status: i32) -> Value {
    let arguments = arguments.split_whitespace().chain(["--report", "-", "--quiet"]);
    let said = run(alone().args(arguments).current_dir(directory)).expect(status, "a job").stdout;
    serde_json::from_str(&said).expect("JSON")
}

/// Checked and violated of a kind at a stage.
fn found(report: &Value, stage: &str, kind: &str) -> (u64, u64) {
    let kinds = report["violations"][stage]["collectives"].as_array().expect("a list");
    let of = |check: &Value, field: &str| check[field].as_u64().expect("a number");
    kinds
        .iter()
        .find(|check| check["kind"] == kind)
        .map_or((0, 0), |check| (of(check, "instances_checked"), of(check, "violated")))
}

/// What the judge of waiting times says: sum in ticks and count by kind, of what is told beside them, and of threads.
#[track_caller]
fn judged(trace: &Path) -> Vec<(i64, i64)> {
    let printed = run(tool("waiting_times.py").arg(anchor(trace))).expect(0, "the judge").stdout;
    let number = |text: &str| text.parse::<i64>().expect("a number");
    let line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (number(cells[1]), number(cells[2]))
    };
    printed.lines().map(line).collect()
}

/// The same of the analysis with corrected times.
fn analysed(report: &Value) -> Vec<(i64, i64)> {
    let waits = &report["analysis"]["waits"];
    let lists = [&waits["kinds"], &waits["details"], &waits["threads"]["kinds"]]
        .map(|list| list.as_array().expect("a list").clone());
    let of = |kind: &Value| {
        let seconds = kind["waiting"]["after_seconds"].as_f64().expect("seconds");
        ((seconds * 1e9).round() as i64, kind["waiting"]["after_count"].as_i64().expect("a count"))
    };
    lists.iter().flatten().map(of).collect()
}

/// `kind` is violated in the pattern's trace as recorded and not in the corrected one, whose clocks are better; `waits` is what the processes wait
/// for, by its place among the kinds.
#[track_caller]
fn pattern(name: &str, kind: &str, waits: usize) -> Value {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    // Offsets that nobody has measured, and clocks that bend.
    let simulate = format!("simulate in --pattern {name} --ranks 5 --ranks-per-node 2 --events 1500 --clock ntp");
    let more = "--seed 4 --measurements 0 -q";
    run(alone().args(simulate.split_whitespace()).args(more.split_whitespace()).current_dir(at)).expect(0, name);
    let judge = |trace: &str, status: i32| {
        run(tool("check_clock_condition.py").arg(anchor(&at.join(trace)))).expect(status, name).stdout
    };
    judge("in", 1);
    let checked = report("check in", at, 1);
    // Accesses under locks have no order that could be checked.
    let corrected = report("in -o out", at, if name == "rma-lock" { 3 } else { 0 });
    let (instances, violated) = found(&checked, "raw", kind);
    assert!(instances > 0 && violated > 0, "{name}: {violated} of {instances}");
    assert_eq!(found(&corrected, "corrected", kind), (instances, 0), "{name}");
    assert!(judge("out", 0).contains("total violations: 0"), "{name}");
    let analysis = report("analyze in", at, 0);
    let after = analysed(&analysis);
    assert!(after[waits].0 > 0 && after[waits].1 > 0, "{name}: {after:?}");
    // libotf2's Python cannot read archives with inter-communicators.
    if name != "coupled" {
        assert_eq!(after, judged(&at.join("out")), "{name}");
    }
    // Processes agree better than before, says the truth.
    let evaluated = report("evaluate out --truth in/truth", at, 0);
    let phases = evaluated["phases"].as_array().expect("phases");
    let spread = |phase: &Value| phase["between_processes"]["rms_seconds"].as_f64().expect("an error");
    let errors: Vec<f64> = phases.iter().map(spread).collect();
    assert!(errors.len() >= 2 && errors[errors.len() - 1] < errors[0] / 4.0, "{name}: {errors:?}");
    corrected
}

#[test]
fn fences_of_a_window() {
    pattern("rma-fence", "fence", 7);
}

#[test]
fn epochs_of_groups() {
    pattern("rma-pscw", "group", 9);
}

#[test]
fn locks_are_findings() {
    let corrected = pattern("rma-lock", "n_to_n", 10);
    // As recorded they seem to be held at the same time.
    let locks = &corrected["locks"];
    assert!(locks["before"]["overlapping"].as_u64() > Some(0), "{locks}");
    assert!(locks["after"]["overlapping"].as_u64() < locks["before"]["overlapping"].as_u64(), "{locks}");
    assert_eq!(locks["before"]["assumed"], 0);
    let worst = &locks["before"]["worst"];
    assert!(
        worst["seconds"].as_f64() > Some(0.0) && worst["held"]["process"] != worst["acquired"]["process"],
        "{worst}"
    );
}

#[test]
fn coupled_groups() {
    pattern("coupled", "n_to_n", 0);
}

#[test]
fn synchronous_sends() {
    pattern("ssend-pipeline", "synchronous_send", 1);
}

#[test]
fn the_truth_of_locks_has_no_overlap() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path();
    run(alone()
        .args("simulate in --pattern rma-lock --ranks 4 --events 500 --clock perfect -q".split_whitespace())
        .current_dir(at))
    .expect(0, "simulate");
    let checked = report("check in", at, 3);
    let before = &checked["locks"]["before"];
    assert!(before["compared"].as_u64() > Some(100), "{before}");
    assert_eq!((&before["overlapping"], &before["worst"]), (&Value::from(0), &Value::Null));
    let text = run(alone().args(["check", "in"]).current_dir(at)).expect(3, "check").stdout;
    assert!(text.contains("Locks"), "{text}");
    // In native form, and on the page.
    run(alone().args(["convert", "in", "in.clct", "-q"]).current_dir(at)).expect(0, "convert");
    assert_eq!(report("check in.clct", at, 3)["locks"], checked["locks"]);
    run(alone().args(["check", "in", "-q", "--html", "page.html"]).current_dir(at)).expect(3, "the page");
    let page = std::fs::read_to_string(at.join("page.html")).expect("a page");
    assert!(page.contains("Locks of windows"));
}
