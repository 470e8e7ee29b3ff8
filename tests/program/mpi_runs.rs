//! The real program under the real launcher: the corrected trace does not depend on the number of analysis ranks.

use crate::common::damage::{Copy, edit};
use crate::common::{
    alone, anchor, assert_same_tree, clean, fixture, fixtures, launcher, name, program, run, tool, tree, violated,
    with_ranks,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

/// Sixteen processes at a time are enough for a small machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone_on_the_machine() -> MutexGuard<'static, ()> {
    // A test that failed has let go of the machine, too.
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

struct Corrected {
    directory: tempfile::TempDir,
    report: Value,
}

impl Corrected {
    fn trace(&self) -> PathBuf {
        self.directory.path().join("out")
    }
}

/// Corrects `trace` with the command given; it has to succeed.
fn correct(mut command: Command, trace: &Path, options: &[&str]) -> Corrected {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.json");
    command.arg(trace).arg("-o").arg(directory.path().join("out")).arg("--report").arg(&report).args(options);
    let finished = run(&mut command).expect(clean(trace), &name(trace));
    assert!(!finished.stderr.contains("clc-replay:"), "{}", finished.stderr);
    let made = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut made: Vec<_> = made.collect();
    made.sort();
    assert_eq!(made, ["out", "report.json"], "something is left behind");
    let report = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    Corrected { directory, report }
}

/// The part of a report that depends on the trace only, and the warnings that depend on the number of ranks.
fn essence(report: &Value) -> (Value, Vec<String>) {
    let mut report = report.clone();
    let map = report.as_object_mut().expect("an object");
    for part in ["program", "phases", "memory", "output"] {
        assert!(map.remove(part).is_some(), "no '{part}' in the report");
    }
    if let Some(replay) = map["replay"].as_object_mut() {
        assert!(replay.remove("form").is_some(), "no 'form' of the replay in the report");
    }
    let warnings: Vec<Value> = serde_json::from_value(map.remove("warnings").expect("warnings")).expect("a list");
    let (surplus, others) = warnings
        .into_iter()
        .partition(|warning| warning["text"].to_string().contains("analysis ranks have nothing to do"));
    map.insert("warnings".into(), Value::Array(others));
    let surplus: Vec<Value> = surplus;
    let surplus = surplus.iter().map(|warning| warning["text"].as_str().expect("a text").to_owned()).collect();
    (report, surplus)
}

/// Corrects with one process without MPI and with these numbers of ranks, and compares everything.
fn same_with(trace: &Path, ranks: &[usize], options: &[&str]) -> Corrected {
    let expected = correct(alone(), trace, options);
    let (essential, surplus) = essence(&expected.report);
    assert_eq!(surplus, [""; 0]);
    let verdict = if clean(trace) == 0 { "corrected" } else { "partly_checked" };
    assert_eq!(essential["verdict"], verdict, "{}", name(trace));
    let timelines = essential["trace"]["processes"].as_u64().unwrap() as usize;
    for &count in ranks {
        let what = format!("{} with {count} ranks {options:?}", name(trace));
        let got = correct(with_ranks(count), trace, options);
        assert_same_tree(&expected.trace(), &got.trace(), &what);
        let (report, surplus) = essence(&got.report);
        assert_eq!(report, essential, "{what}");
        assert_eq!(got.report["program"]["analysis_ranks"], count, "{what}");
        let idle = count.saturating_sub(timelines);
        let expected_note = format!("{idle} of {count} analysis ranks have nothing to do");
        match (idle, surplus.as_slice()) {
            (0, []) => {}
            (1.., [note]) => assert!(note.starts_with(&expected_note), "{what}: {note}"),
            _ => panic!("{what}: {surplus:?}"),
        }
    }
    expected
}

fn check(mut command: Command, trace: &Path, options: &[&str], status: i32) -> Value {
    let finished = run(command.args(["check", "--report", "-"]).args(options).arg(trace)).expect(status, &name(trace));
    let json = finished.stdout.find('{').map(|start| &finished.stdout[start..]).expect("a report");
    serde_json::from_str(json).unwrap()
}

#[test]
fn the_result_does_not_depend_on_the_number_of_ranks() {
    let _machine = alone_on_the_machine();
    // Each number of ranks with every kind of trace; not all combinations, for time.
    let ranks = |trace: &Path| match name(trace).as_str() {
        "tracer-halo-4" | "eztrace-collectives-4" => vec![1, 2, 3, 4, 7, 16],
        "tracer-collectives-7" => vec![2, 3, 7, 16],
        "eztrace-halo-8" => vec![3, 7, 16],
        _ => vec![1, 3, 4],
    };
    for trace in fixtures() {
        let before = tree(&trace);
        let corrected = same_with(&trace, &ranks(&trace), &[]);
        assert!(before == tree(&trace), "{}: the input has changed", name(&trace));
        let status = clean(&trace);
        let report = check(alone(), &corrected.trace(), &[], status);
        assert_eq!(report["verdict"], if status == 0 { "consistent" } else { "partly_checked" });
        assert_eq!(essence(&check(with_ranks(3), &corrected.trace(), &[], status)), essence(&report));
    }
}

#[test]
fn nor_on_the_number_of_threads() {
    let _machine = alone_on_the_machine();
    for trace in fixtures() {
        let expected = correct(alone(), &trace, &["--threads", "1"]);
        for threads in ["2", "5", "64"] {
            let what = format!("{} with {threads} threads", name(&trace));
            let got = correct(alone(), &trace, &["--threads", threads]);
            assert_same_tree(&expected.trace(), &got.trace(), &what);
            assert_eq!(essence(&got.report), essence(&expected.report), "{what}");
        }
    }
    let trace = fixture("tracer-collectives-7");
    let expected = correct(alone(), &trace, &["--threads", "1"]);
    let got = correct(with_ranks(2), &trace, &["--threads", "3"]);
    assert_same_tree(&expected.trace(), &got.trace(), "2 ranks with 3 threads each");
}

/// Small traces are looked at by one thread.
#[test]
fn nor_do_threads_change_what_is_said_of_many_messages() {
    let _machine = alone_on_the_machine();
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("solver");
    let solver = ["--pattern", "solver", "--ranks", "6", "--ranks-per-node", "1", "--events", "150k"];
    let clock = ["--clock", "linear,sine=20us/0.5s"];
    run(alone().arg("simulate").arg(&trace).args(solver).args(clock)).expect(0, "simulate");
    for model in ["auto", "linear"] {
        let correct = |threads| correct(alone(), &trace, &["--presync", model, "--threads", threads]);
        let (expected, got) = (correct("1"), correct("3"));
        assert_same_tree(&expected.trace(), &got.trace(), model);
        assert_eq!(essence(&got.report), essence(&expected.report), "{model}");
        let checked = &got.report["violations"]["raw"]["point_to_point"];
        assert!(checked["violated"].as_u64().unwrap() > 1000, "{checked}");
        assert!(checked["checked"].as_u64().unwrap() > 32768, "{checked}");
    }
}

#[test]
fn of_several_damaged_files_the_first_is_named() {
    let _machine = alone_on_the_machine();
    let copy = Copy::of("tracer-collectives-7");
    for location in [2, 3, 5, 6] {
        edit(&copy.events(location), |bytes| bytes.truncate(bytes.len() - 3));
    }
    let said: Vec<String> = ["1", "2", "7"]
        .map(|threads| run(alone().arg(&copy.trace).args(["--threads", threads])).expect(2, threads).stderr)
        .to_vec();
    assert!(said[0].contains("2.evt"), "{}", said[0]);
    assert_eq!(said[1..], [said[0].clone(), said[0].clone()]);
}

#[test]
fn the_report_says_which_form_of_the_replay_ran() {
    let _machine = alone_on_the_machine();
    let trace = fixture("tracer-halo-4");
    for (command, form) in [(alone(), "dataflow"), (with_ranks(3), "dataflow"), (with_ranks(4), "canonical")] {
        assert_eq!(correct(command, &trace, &[]).report["replay"]["form"], form);
    }
}

#[test]
fn nor_with_other_options() {
    let _machine = alone_on_the_machine();
    let latency = ["--latency", "same-node=200ns,other-node=1us", "--alltoallv"];
    for (trace, ranks) in [("tracer-halo-4", [2, 4]), ("tracer-collectives-7", [3, 16]), ("eztrace-halo-8", [1, 7])] {
        let trace = fixture(trace);
        let corrected = same_with(&trace, &ranks, &latency);
        assert_eq!(corrected.report["parameters"]["latency"]["same_node_seconds"], 200e-9);
        assert_eq!(corrected.report["parameters"]["alltoallv"], true);
        check(with_ranks(2), &corrected.trace(), &latency, clean(&trace));
    }
    let trace = fixture("tracer-collectives-4");
    let options = ["--gamma", "0.99", "--slope", "0.1", "--presync", "none", "--max-passes", "2"];
    let corrected = same_with(&trace, &[2, 4], &options);
    check(alone(), &corrected.trace(), &[], 0);
}

#[test]
fn violations_are_found_alike_before_the_correction() {
    let _machine = alone_on_the_machine();
    for trace in fixtures() {
        let status = violated(&trace);
        let report = check(alone(), &trace, &[], status);
        assert_eq!(report["verdict"], if status == 1 { "violated" } else { "corrected" });
        // The regions of both events of the worst violation, which are calls of MPI, or of threads.
        for stage in ["raw", "presynchronised"].into_iter().take(1 + status as usize) {
            let worst = &report["violations"][stage]["worst"];
            for end in ["from", "to"] {
                let region = worst[end]["region"].as_str().unwrap_or_default();
                let known = region.starts_with("MPI_") || region.starts_with("!$omp ");
                assert!(known, "{}: {worst}", name(&trace));
            }
        }
        assert_eq!(essence(&check(with_ranks(2), &trace, &[], status)).0, essence(&report).0, "{}", name(&trace));
    }
}

/// Programs that share no code with this one read input and output through libotf2.
#[test]
fn independent_judges_agree() {
    for trace in fixtures() {
        let corrected = correct(alone(), &trace, &[]);
        let (before, after) = (anchor(&trace), anchor(&corrected.trace()));
        run(tool("compare_otf2.py").arg(&before).arg(&after)).expect(0, &name(&trace));
        run(tool("check_clock_condition.py").arg(&after)).expect(0, &name(&trace));
        // The judge can tell: what was recorded is wrong.
        run(tool("check_clock_condition.py").arg(&before)).expect(violated(&trace), &name(&trace));
    }
}

#[test]
fn a_dry_run_and_info_need_no_output() {
    let _machine = alone_on_the_machine();
    let trace = fixture("tracer-halo-4");
    let before = tree(&trace);
    let directory = tempfile::tempdir().unwrap();
    for mut command in [alone(), with_ranks(3)] {
        command.current_dir(directory.path());
        run(command.arg(&trace).arg("--dry-run")).expect(0, "a dry run");
    }
    for mut command in [alone(), with_ranks(3)] {
        command.current_dir(directory.path());
        let finished = run(command.arg("info").arg(&trace)).expect(0, "info");
        assert!(finished.stdout.contains("otf2_tracer"), "{}", finished.stdout);
    }
    assert_eq!(tree(directory.path()).len(), 0);
    assert!(before == tree(&trace), "the input has changed");
}

/// Each process that a launcher of another MPI library starts is alone in its world, and would correct the whole trace.
#[test]
fn a_launcher_of_another_library_is_noticed() {
    let _machine = alone_on_the_machine();
    let trace = fixture("tracer-halo-4");
    // A process without launcher that is told it was launched.
    let directory = tempfile::tempdir().unwrap();
    for sign in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"] {
        let mut command = alone();
        command.env("CLC_REPLAY_MPI", "always").env(sign, "4").current_dir(directory.path());
        let finished = run(command.arg(&trace).args(["-o", "out"])).expect(2, sign);
        let lines: Vec<&str> = finished.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{}", finished.stderr);
        assert!(
            lines[0].starts_with("clc-replay: error: the launcher started 4 processes, but MPI sees only this one"),
            "{}",
            lines[0]
        );
        assert_eq!(tree(directory.path()).len(), 0);
    }
}

/// The same with a real one, where both are installed under names of their own.
#[test]
fn the_other_librarys_launcher_is_noticed() {
    let _machine = alone_on_the_machine();
    let other = if launcher().open_mpi { "mpiexec.mpich" } else { "mpirun.openmpi" };
    let exists = Command::new(other).arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(exists, "{other} is missing; scripts/setup.sh --tests installs it");
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(other);
    if !launcher().open_mpi {
        command.arg("--oversubscribe");
    }
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["-n", "2"]).arg(program()).arg(fixture("tracer-halo-4")).args(["-o", "out"]);
    let finished = run(command.current_dir(directory.path()));
    assert_ne!(finished.status, 0, "{finished:?}");
    assert!(finished.stderr.contains("clc-replay: error: "), "{finished:?}");
    assert_eq!(tree(directory.path()).len(), 0);
}
