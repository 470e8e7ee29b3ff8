//! Several nodes: `scripts/nodes` makes them on one machine, and recordings measure their clocks. Where the kernel forbids it, these tests say so and do nothing.
#![allow(clippy::print_stdout)] // that it has been skipped

use crate::common::{Finished, run, start, with_recorder};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The exit status that means that the kernel does not allow it.
const SKIPPED: i32 = 77;

pub(crate) fn nodes(count: u32) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/nodes"));
    command.arg(count.to_string()).env("CLC_REPLAY_MPI", "never").env_remove("RUST_LOG");
    command
}

/// Whether there can be nodes here.
pub(crate) fn possible() -> bool {
    let tried = run(nodes(2).args(["--", "true"]));
    if tried.status == SKIPPED {
        assert!(tried.stderr.starts_with("nodes: skipped: ") && tried.stderr.lines().count() == 1, "{}", tried.stderr);
        println!("{}", tried.stderr.trim_end());
        return false;
    }
    tried.expect(0, "two nodes");
    true
}

/// Compiles a program of `tests/apps`.
pub(crate) fn build(compiler: &str, name: &str, directory: &Path) -> PathBuf {
    let program = directory.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/apps/{name}.c"));
    run(Command::new(compiler)
        .args(["-O1", "-w", concat!("-I", env!("CARGO_MANIFEST_DIR"), "/src/marks")])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-lm"))
    .expect(0, "a compiled program");
    program
}

#[test]
fn the_status_of_the_command_is_passed_on() {
    if !possible() {
        return;
    }
    let said = run(nodes(3).args(["--", "sh", "-c", "hostname; exit 7"]));
    assert_eq!((said.status, said.stdout.as_str()), (7, "node1\n"), "{}", said.stderr);
    assert_eq!(run(nodes(2).args(["--", "sh", "-c", "kill -9 $$"])).status, 128 + 9);
    assert_eq!(run(nodes(2).args(["--", "no such program"])).status, 127);
    for wrong in [&["--"][..], &["nonsense", "--", "true"], &["--slots", "0", "--", "true"]] {
        assert_eq!(run(nodes(2).args(wrong)).status, 2, "{wrong:?}");
    }
}

#[test]
fn launchers_reach_all_nodes() {
    if !possible() {
        return;
    }
    for launcher in [&["mpirun.openmpi", "-n", "4"][..], &["mpiexec.mpich", "-n", "4"]] {
        let launch = || run(nodes(2).args(["--slots", "2", "--"]).args(launcher).arg("hostname"));
        // On a busy machine launchers have been killed by SIGPIPE, once in some hundred runs, before they had started anything.
        let said = (0..3).map(|_| launch()).find(|said| said.status != 128 + 13).unwrap_or_else(launch);
        let said = said.expect(0, launcher[0]);
        let mut hosts: Vec<&str> = said.stdout.lines().collect();
        hosts.sort_unstable();
        assert_eq!(hosts, ["node1", "node1", "node2", "node2"], "{}", said.stderr);
    }
}

#[test]
fn nothing_is_left_after_a_signal() {
    if !possible() {
        return;
    }
    for signal in ["INT", "TERM", "KILL"] {
        // A duration that nothing else on this machine sleeps for.
        let duration = format!("7{}.{}", std::process::id(), signal.len());
        let script = format!("echo ready >&2; exec sleep {duration}");
        let mut running = start(nodes(2).args(["--", "sh", "-c", &script]));
        running.wait_for("ready");
        // Ctrl-C reaches the whole process group of the terminal, the other signals this one process.
        let to = if signal == "INT" { format!("-{}", running.child.id()) } else { running.child.id().to_string() };
        run(Command::new("kill").args([&format!("-{signal}"), "--", &to])).expect(0, "kill");
        assert_ne!(running.finish().status, 0);
        let left = || !run(Command::new("pgrep").args(["-f", &format!("sleep {duration}")])).stdout.is_empty();
        for _ in 0..100 {
            if !left() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!left(), "{signal}");
    }
}

/// Offset and standard deviation of each measurement, as the OTF2 library's own tool prints them, of clocks other than the reference.
fn offsets(archive: &Path) -> Vec<(f64, f64)> {
    let printed = run(Command::new("otf2-print").arg("-C").arg(archive.join("traces.otf2"))).expect(0, "otf2-print");
    let fields = |line: &str| {
        let (_, rest) = line.strip_prefix("CLOCK_OFFSET")?.split_once("Offset: ")?;
        let (offset, deviation) = rest.split_once(", StdDev: ")?;
        Some((offset.trim().parse().ok()?, deviation.trim().parse().ok()?))
    };
    printed.stdout.lines().filter_map(fields).filter(|&(_, deviation)| deviation > 0.0).collect()
}

/// A recording of 10 rounds of `halo` on so many nodes with two processes each.
fn record(compiler: &str, launcher: &str, count: u32, options: &[&str], directory: &Path) -> Finished {
    let app = build(compiler, "halo", directory);
    let mut command = nodes(count);
    command.args(["--slots", "2", "--"]).arg(with_recorder()).args(["record", "-o"]).arg(directory.join("run"));
    command.args(options).args(["--", launcher, "-n", &(2 * count).to_string()]).arg(app).args(["10", "600"]);
    run(&mut command).expect(0, "a recording")
}

#[test]
fn measured_offsets_are_as_wrong_as_they_say_at_most() {
    if !possible() {
        return;
    }
    let cases = [
        ("mpicc.openmpi", "mpirun.openmpi", "start-end", 2),
        ("mpicc.mpich", "mpiexec.mpich", "start-end", 2),
        ("mpicc.openmpi", "mpirun.openmpi", "ring", 2),
    ];
    for (compiler, launcher, schedule, times) in cases {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // All nodes share the counter of the machine, so all offsets are zero.
        let options = ["--clock", "perfect", "--clock-per-node", "--offsets", schedule];
        let recorded = record(compiler, launcher, 3, &options, directory.path());
        assert!(recorded.stderr.contains("6 processes on 3 nodes, 6 locations"), "{}", recorded.stderr);
        let found = offsets(&directory.path().join("run"));
        assert_eq!(found.len(), 4 * times, "of the four processes on other nodes: {found:?}");
        for (offset, deviation) in found {
            // Nothing is beyond a uniform distribution; a millisecond would be a measurement that has not worked, however busy the machine is.
            assert!(offset.abs() <= 1.8 * deviation && offset.abs() < 1e6, "{offset} ns, deviation {deviation}");
        }
    }
}

#[test]
fn clocks_are_measured_in_between_as_well() {
    if !possible() {
        return;
    }
    // Those in between that are far worse than the best one are left out: all of them may be, where the machine is busy and then, at the end, is not.
    let kept = || {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let app = build("mpicc.openmpi", "halo", directory.path());
        let mut command = nodes(2);
        command.arg("--").arg(with_recorder()).args(["record", "-o"]).arg(directory.path().join("run"));
        command.args(["--offsets", "every=50ms", "--", "mpirun.openmpi", "-n", "2"]).arg(app).args(["40", "60000"]);
        let recorded = run(&mut command).expect(0, "a recording");
        assert!(!recorded.stderr.contains("warning"), "{}", recorded.stderr);
        offsets(&directory.path().join("run"))
    };
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(kept());
        if all.iter().any(|offsets| offsets.len() > 3) {
            return;
        }
    }
    panic!("{all:?}");
}

#[test]
fn all_nodes_are_sampled_at_the_same_times() {
    if !possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let app = build("mpicc.openmpi", "unbalanced", directory.path());
    let mut command = nodes(3);
    command.args(["--slots", "2", "--"]).arg(with_recorder()).args(["record", "-o"]).arg(directory.path().join("run"));
    command.args(["--sample", "100ms,20ms", "--", "mpirun.openmpi", "-n", "6"]).arg(app).args(["60"]);
    let recorded = run(&mut command).expect(0, "a recording");
    assert!(recorded.stderr.contains("6 processes on 3 nodes, 9 locations"), "{}", recorded.stderr);
    let anchor = directory.path().join("run/traces.otf2");
    let printed = run(Command::new("otf2-print").arg(&anchor)).expect(0, "otf2-print").stdout;
    let mut turns: BTreeMap<i64, Vec<(String, i64)>> = BTreeMap::new();
    let mut first = None;
    for line in printed.lines().filter(|line| line.starts_with("METRIC ")) {
        let mut words = line.split_whitespace().skip(1);
        let (location, time) = (words.next().expect("a location"), words.next().expect("a time"));
        let time: i64 = time.parse().expect("a time");
        let turn = (time - *first.get_or_insert(time) + 50_000_000).div_euclid(100_000_000);
        turns.entry(turn).or_default().push((location.to_owned(), time));
    }
    // Nodes with the counter of one machine: the times in the archive are the true ones.
    let complete: Vec<_> = turns.values().filter(|samples| samples.len() == 3).collect();
    assert!(complete.len() >= 5, "{turns:?}");
    for samples in complete {
        let times = || samples.iter().map(|(_, time)| *time);
        let apart = times().max().expect("a time") - times().min().expect("a time");
        assert!(apart <= 20_000_000, "{apart} ns apart");
    }
    let definitions = run(Command::new("otf2-print").arg("-G").arg(&anchor)).stdout;
    assert_eq!(definitions.lines().filter(|line| line.starts_with("METRIC_INSTANCE")).count(), 3, "{definitions}");
}

#[test]
fn packets_of_the_monitor_keep_the_clocks_of_a_silent_program() {
    if !possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    let app = build("mpicc.openmpi", "silent", directory.path());
    let mut command = nodes(3);
    command.env("CLC_REPLAY_JOBS", path("jobs")).arg("--").arg(with_recorder()).args(["record", "--monitor", "-o"]);
    command.arg(path("run")).args(["--clock", "drift=20ppm,sine=50us/5s", "--clock-per-node", "--keep-raw", "--"]);
    command.args(["mpirun.openmpi", "-n", "3"]).arg(app).args(["pipeline", "8"]);
    let recorded = run(&mut command).expect(0, "a recording");
    assert!(
        recorded.stderr.contains("3 processes on 3 nodes") && !recorded.stderr.contains("warning"),
        "{}",
        recorded.stderr
    );
    let (before, with, violations) = corrected(&path("run"), directory.path());
    assert!(before > 2e-5 && violations == 0, "{before} s before, {violations} violations");
    // The same without the logs of the agents.
    std::fs::rename(path("run.raw"), path("without.raw")).expect("the raw files");
    let logs: Vec<PathBuf> =
        path("without.raw").read_dir().expect("raw files").map(|entry| entry.expect("a file").path()).collect();
    let logs: Vec<&PathBuf> = logs.iter().filter(|path| path.extension().is_some_and(|end| end == "clocks")).collect();
    assert_eq!(logs.len(), 3);
    logs.into_iter().for_each(|path| std::fs::remove_file(path).expect("removed"));
    run(Command::new(with_recorder()).arg("recover").arg(path("without")).env("CLC_REPLAY_MPI", "never"))
        .expect(0, "an archive");
    std::fs::create_dir(path("second")).expect("a directory");
    let (_, without, _) = corrected(&path("without"), &path("second"));
    // Far less than that where the machine is not busy with other things.
    assert!(with < 5e-6 && with < without / 2.0, "{with} s with the logs, {without} s without");
}

/// Error of the clocks (root mean square) as recorded and corrected, and violations in the corrected trace: of a recording with its truth.
fn corrected(recording: &Path, directory: &Path) -> (f64, f64, u64) {
    let alone = || {
        let mut command = Command::new(with_recorder());
        command.env("CLC_REPLAY_MPI", "never").env_remove("RUST_LOG");
        command
    };
    let (fixed, report) = (directory.join("fixed"), directory.join("report.json"));
    run(alone().arg(recording).arg("-o").arg(&fixed)).expect(0, "a correction");
    run(alone().arg("evaluate").arg(&fixed).arg("--truth").arg(recording).arg("--report").arg(&report))
        .expect(0, "an evaluation");
    let text = std::fs::read_to_string(report).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let phases = report["phases"].as_array().expect("phases");
    let phase = |name: &str| phases.iter().find(|phase| phase["phase"] == name).expect("the phase");
    let error = |name: &str| phase(name)["clock"]["rms_seconds"].as_f64().expect("a number");
    (error("raw"), error("final"), phase("final")["violations"].as_u64().expect("a number"))
}

#[test]
fn wrong_clocks_of_nodes_have_a_truth() {
    if !possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    record("mpicc.openmpi", "mpirun.openmpi", 2, &["--clock", "linear", "--clock-per-node"], directory.path());
    let (before, after, violations) = corrected(&directory.path().join("run"), directory.path());
    // Clocks are up to 5 ms apart; what is left is what the measurements are off, and the network's delays.
    assert!(before > 1e-4 && after < 2e-5 && violations == 0, "{before} s before, {after} s after, {violations}");
}

#[test]
fn recordings_with_truth_are_corrected_towards_it() {
    // Clocks are wrong by milliseconds; a sine of 100 us is left by offsets that were measured at the ends only.
    for (name, most) in [("recorded-stencil-4", 5e-5), ("recorded-halo-4", 1.5e-4)] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (before, after, violations) = corrected(&crate::common::fixture(name), directory.path());
        assert!(before > 5e-4 && after < most && violations == 0, "{name}: {before} s, {after} s, {violations}");
    }
}
