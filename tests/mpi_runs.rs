//! The real binary under the real launcher: same bits on any number of ranks, judged by independent readers.
//!
//! The launcher is `$MPIEXEC` (default: `mpirun.openmpi`, else `mpirun`). It has to exist; nothing is skipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_clc-replay");
const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const RANKS: [usize; 6] = [1, 2, 3, 4, 7, 16];

fn launcher() -> String {
    std::env::var("MPIEXEC").unwrap_or_else(|_| {
        let known = ["/usr/bin/mpirun.openmpi", "/usr/bin/mpirun"];
        known.iter().find(|path| Path::new(path).exists()).unwrap_or(&"mpirun").to_string()
    })
}

/// Runs a command, and fails if it takes longer than two minutes.
fn run(command: &mut Command) -> Output {
    let mut limited = Command::new("timeout");
    limited.args(["--kill-after=5", "120"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    let output = limited.output().expect("timeout(1) can be run");
    assert_ne!(output.status.code(), Some(124), "timed out: {command:?}");
    output
}

fn on_ranks(ranks: usize, arguments: &[&str]) -> Output {
    let launcher = launcher();
    let version = Command::new(&launcher).arg("--version").output().expect("the MPI launcher can be run");
    let mut command = Command::new(&launcher);
    if String::from_utf8_lossy(&version.stdout).contains("Open MPI")
        || String::from_utf8_lossy(&version.stdout).contains("OpenRTE")
    {
        command.arg("--oversubscribe");
    }
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    run(command.args(["-n", &ranks.to_string(), PROGRAM]).args(arguments))
}

fn alone(arguments: &[&str]) -> Output {
    run(Command::new(PROGRAM).env("CLC_REPLAY_MPI", "never").args(arguments))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// All files below a directory.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.insert(path.strip_prefix(directory).unwrap().to_path_buf(), std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// What of a report must not depend on how the program was run.
fn essence(report: &Path) -> serde_json::Value {
    let mut report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let fields = report.as_object_mut().unwrap();
    for name in ["program", "phases", "memory", "output"] {
        fields.remove(name).unwrap();
    }
    let warnings = fields["warnings"].as_array_mut().unwrap();
    warnings.retain(|warning| !warning["text"].as_str().unwrap().contains("analysis ranks have nothing to do"));
    report
}

fn anchor(directory: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "otf2")).unwrap()
}

fn judge(tool: &str, arguments: &[&Path]) {
    let output = run(Command::new("/usr/bin/python3").arg(format!("{ROOT}/tests/tools/{tool}")).args(arguments));
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {said}");
}

fn check_fixture(name: &str, options: &[&str]) {
    let trace = Path::new(ROOT).join("tests/data").join(name);
    let before = contents(&trace);
    let directory = tempfile::tempdir().unwrap();
    let expected = directory.path().join("expected");
    let report = directory.path().join("expected.json");
    let output = alone(&[&[text(&trace), "-o", text(&expected), "--report", text(&report)], options].concat());
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let expected_files = contents(&expected);
    for ranks in RANKS {
        let target = directory.path().join(format!("on-{ranks}"));
        let again = directory.path().join(format!("on-{ranks}.json"));
        let arguments = [&[text(&trace), "-o", text(&target), "--report", text(&again)], options].concat();
        let output = on_ranks(ranks, &arguments);
        assert!(output.status.success(), "{name} on {ranks}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(contents(&target) == expected_files, "{name}: other bytes on {ranks} ranks than on one");
        assert_eq!(essence(&again), essence(&report), "{name}: another report on {ranks} ranks");
    }
    let output = alone(&["check", text(&expected), "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{name}: not clean after the correction");
    judge("compare_otf2.py", &[&anchor(&trace), &anchor(&expected)]);
    judge("check_clock_condition.py", &[&anchor(&expected)]);
    assert!(contents(&trace) == before, "{name}: the input was changed");
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "temporary files are left: {left:?}");
}

#[test]
fn every_collective_on_four_processes() {
    check_fixture("tracer-collectives-4", &[]);
}

#[test]
fn every_collective_on_seven_processes_with_latencies() {
    check_fixture("tracer-collectives-7", &["--latency", "same-node=200ns,other-node=1us", "--alltoallv"]);
}

#[test]
fn a_halo_exchange() {
    check_fixture("tracer-halo-4", &["--gamma", "0.999", "--slope", "0.05"]);
}

#[test]
fn a_trace_of_eztrace() {
    check_fixture("eztrace-halo-8", &[]);
}

#[test]
fn a_broken_trace_is_one_line_and_status_2_on_every_rank() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("nothing");
    let output = on_ranks(3, &[text(&missing)]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("clc-replay: error: ").count(), 1, "{said}");
}
