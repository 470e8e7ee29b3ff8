//! Signals to the launcher and to single ranks: those that end a run, and one that lets a rank stand still.

use crate::case::{Case, SOON, Scene, paused, send, special, wait};
use crate::common::{self, launcher, tree};
use crate::shim;
use std::path::PathBuf;
use std::time::Instant;

/// Parts of a correction in which it can be told to stand still.
const PARTS: [&str; 11] =
    ["open", "prepare", "scan", "clocks", "check", "replay", "pass", "backward", "write", "verify", "publish"];

/// As many ranks as processes: the canonical replay.
const CANONICAL: usize = 4;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = ending();
    cases.extend(reports());
    cases.extend(silent_ranks());
    cases
}

fn ending() -> Vec<Case> {
    let mut cases = Vec::new();
    for part in PARTS {
        let name = format!("killed_in_{part}");
        let fault = format!("SIGKILL to one rank, in part {part}");
        let outcome = "all end within 5 s, no output; the next run removes what is left, and succeeds";
        cases.push(special(&name, &fault, outcome, move |s| s.word = part.into(), killed).on(&[1, CANONICAL]));
    }
    for (signal, name) in [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")] {
        for part in PARTS {
            // After the first one, one part in which others wait and one in which they write are enough.
            if signal == libc::SIGHUP && !["scan", "write"].contains(&part) {
                continue;
            }
            let case = format!("{}_in_{part}", name.to_lowercase());
            let fault = format!("{name}, in part {part}");
            let outcome = "ended by the signal, nothing left (after the launcher: at the latest by the next run)";
            let make = move |s: &mut Scene| s.word = format!("{part} {signal}");
            cases.push(special(&case, &fault, outcome, make, signalled).on(&[1, CANONICAL]));
        }
    }
    cases
}

fn reports() -> Vec<Case> {
    let outcome = "ended by the signal, nothing left";
    let mut cases = Vec::new();
    for (signal, name) in [(libc::SIGINT, "sigint"), (libc::SIGTERM, "sigterm"), (libc::SIGHUP, "sighup")] {
        let case = format!("{name}_in_report");
        let fault = format!("{}, while a report is written", name.to_uppercase());
        cases.push(special(&case, &fault, outcome, move |s| s.word = signal.to_string(), ended_in_report).on(&[1]));
    }
    let outcome = "no report; the next run removes what is left, and succeeds";
    let case = special("killed_in_report", "SIGKILL, while a report is written", outcome, |_| {}, killed_in_report);
    cases.push(case.on(&[1]));
    cases
}

/// Starts to write a report to a disk that is so slow that it takes minutes.
fn reporting(scene: &Scene) -> common::Running {
    let mut command = scene.program(1);
    command.args(["check", "trace", "--report", "late.json"]);
    command.env("LD_PRELOAD", shim::library()).env("SHIM_WRITE", "late.json").env("SHIM_DELAY", "200000");
    let running = common::start(&mut command);
    // The one with number 0 is made before any work, to see whether it can be.
    let is_made =
        |path: &PathBuf| path.to_string_lossy().contains("/.late.json.part-") && path.to_string_lossy().ends_with("-1");
    wait("no report is written", || scene.unfinished().iter().any(is_made));
    running
}

fn ended_in_report(scene: &Scene, _: usize) {
    let before = tree(scene.directory());
    let running = reporting(scene);
    let signal = scene.word.parse().unwrap();
    send(signal, running.child.id());
    assert_eq!(running.finish().status, 128 + signal);
    assert!(before == tree(scene.directory()), "something is left");
}

fn killed_in_report(scene: &Scene, _: usize) {
    let running = reporting(scene);
    send(libc::SIGKILL, running.child.id());
    running.finish();
    assert_eq!(scene.unfinished().len(), 1);
    let mut command = scene.program(1);
    let next = common::run(command.args(["check", "trace", "--report", "late.json"])).expect(1, "the next run");
    assert!(next.stderr.contains("removed the unfinished output of a run that was killed"), "{next:?}");
    assert_eq!(scene.unfinished(), Vec::<PathBuf>::new());
    assert!(scene.directory().join("late.json").exists());
}

fn killed(scene: &Scene, ranks: usize) {
    // With several, one that does not write the output: the others have to be ended, too.
    let rank = ranks.min(2) - 1;
    let running = paused(scene, ranks, &scene.word, rank, &[]);
    let process = scene.processes()[&rank];
    send(libc::SIGKILL, process);
    let start = Instant::now();
    let finished = running.finish();
    assert_ne!(finished.status, 0, "{finished:?}");
    scene.nobody_is_left();
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert!(!scene.copy.output().exists());
    scene.the_next_run_succeeds();
}

fn signalled(scene: &Scene, ranks: usize) {
    let (part, signal) = scene.word.split_once(' ').unwrap();
    let signal = signal.parse().unwrap();
    let before = tree(scene.directory());
    let running = paused(scene, ranks, part, 0, &[]);
    send(signal, running.child.id());
    let finished = running.finish();
    scene.nobody_is_left();
    assert!(!scene.copy.output().exists());
    if ranks == 1 {
        assert_eq!(finished.status, 128 + signal, "{finished:?}");
        assert!(before == tree(scene.directory()), "something is left");
    } else {
        // MPICH's launcher, told to end, returns 0 for some runs, also of a program that only sleeps (docs/reliability.md). The
        // program itself must not say that it has succeeded.
        assert!(finished.status != 0 || !launcher().open_mpi, "{finished:?}");
        assert!(!finished.stdout.contains("CORRECTED"), "{finished:?}");
    }
    scene.the_next_run_succeeds();
}

fn silent_ranks() -> Vec<Case> {
    let mut cases = Vec::new();
    let outcome = "corrected; the others name the silent rank, and say when it is back";
    for (part, rank, ranks) in [
        ("scan", 1, &[3][..]),
        ("replay", 2, &[3]),
        ("pass", 1, &[3]),
        ("pass", 1, &[CANONICAL]),
        ("write", 0, &[3]),
        ("verify", 2, &[3]),
    ] {
        let form = if part == "pass" && ranks == [CANONICAL] { "_canonical" } else { "" };
        let name = format!("stopped_in_{part}{form}");
        let fault = format!("SIGSTOP to rank {rank} in part {part}, SIGCONT seconds later");
        let ranks: &'static [usize] = if ranks == [3] { &[3] } else { &[CANONICAL] };
        cases.push(special(&name, &fault, outcome, move |s| s.word = format!("{part} {rank}"), stopped).on(ranks));
    }
    cases
}

fn stopped(scene: &Scene, ranks: usize) {
    let (part, rank) = scene.word.split_once(' ').unwrap();
    let rank: usize = rank.parse().unwrap();
    let mut running = paused(scene, ranks, part, rank, &[("CLC_REPLAY_WATCH", "0.5")]);
    let process = scene.processes()[&rank];
    send(libc::SIGSTOP, process);
    std::fs::write(scene.go_on_file(), "").unwrap();
    running.wait_for(&format!("no heartbeat from rank {rank} (process {process} on "));
    running.wait_for("which is stopped");
    send(libc::SIGCONT, process);
    let finished = running.finish().expect(0, "a run whose rank went on");
    let by = usize::from(rank == 0);
    assert!(finished.stderr.contains(&format!("[rank {by}] WARN: waiting for ")), "{finished:?}");
    // The wait may be over before the rank says something again.
    assert_eq!(scene.unfinished(), Vec::<PathBuf>::new());
    scene.output_is_right();
}
