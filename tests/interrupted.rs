//! Runs that are ended from outside: they leave nothing behind, and what a killed one leaves is found by the next.

mod common;

use common::damage::Copy;
use common::{alone, run, tree, with_ranks};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The hidden directories in which outputs are made.
fn unfinished(copy: &Copy) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(copy.directory.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".out.part-")).collect()
}

/// Waits until `done`; fails after a minute.
#[track_caller]
fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A run that has begun its output, and hangs while it reads the trace: one of the event files is a pipe into which nobody writes.
fn hanging(mut command: Command, copy: &Copy) -> Child {
    let events = copy.events(0);
    std::fs::rename(&events, copy.directory.path().join("events")).unwrap();
    run(Command::new("mkfifo").arg(&events)).expect(0, "mkfifo");
    command.stdin(Stdio::null());
    command.arg(&copy.trace).arg("-o").arg(copy.output()).stdout(Stdio::null()).stderr(Stdio::null());
    // Whoever runs the tests in the background may ignore signals, and the program then leaves them ignored.
    let heed_signals = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: may be called between fork and exec.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: see above; nothing else happens in the closure.
    unsafe { command.pre_exec(heed_signals) };
    let child = command.process_group(0).spawn().unwrap();
    wait("no output is begun", || unfinished(copy).iter().any(|path| path.join("traces").is_dir()));
    child
}

fn end(copy: &Copy, mut child: Child, signal: &str) -> ExitStatus {
    run(Command::new("kill").args([signal, &child.id().to_string()])).expect(0, "kill");
    let mut status = None;
    wait("it does not end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    std::fs::remove_file(copy.events(0)).unwrap();
    std::fs::rename(copy.directory.path().join("events"), copy.events(0)).unwrap();
    status.unwrap()
}

#[test]
fn a_signal_removes_the_unfinished_output() {
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let copy = Copy::of("tracer-halo-4");
        let before = tree(copy.directory.path());
        let child = hanging(alone(), &copy);
        assert_eq!(end(&copy, child, signal).signal(), Some(number));
        assert!(before == tree(copy.directory.path()), "something is left after {signal}");
    }
}

/// A launcher may kill its processes before they can remove anything; then the next run does.
#[test]
fn nothing_is_left_for_long_after_a_signal_to_the_launcher() {
    let copy = Copy::of("tracer-halo-4");
    let child = hanging(with_ranks(3), &copy);
    assert!(!end(&copy, child, "-TERM").success());
    // The launcher need not wait for its processes either.
    let process = |path: &PathBuf| path.to_string_lossy().rsplit('-').nth(1).map(str::to_owned).unwrap();
    let runs = |path: &PathBuf| Path::new("/proc").join(process(path)).join("exe").exists();
    wait("it does not end", || !unfinished(&copy).iter().any(runs));
    run(with_ranks(3).arg(&copy.trace).arg("-o").arg(copy.output())).expect(0, "a correction");
    assert!(unfinished(&copy).is_empty());
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let copy = Copy::of("tracer-halo-4");
    let child = hanging(alone(), &copy);
    let process = child.id();
    assert_eq!(end(&copy, child, "-KILL").signal(), Some(9));
    let left = unfinished(&copy);
    assert_eq!(left.len(), 1);
    assert!(left[0].to_string_lossy().contains(&format!("-{process}-")), "{left:?}");
    // Of another computer nobody can say whether the process still runs.
    let foreign: &Path = &copy.directory.path().join(".out.part-_elsewhere-1-abcdef");
    std::fs::create_dir(foreign).unwrap();
    let finished = run(alone().arg(&copy.trace).arg("-o").arg(copy.output())).expect(0, "a correction");
    assert_eq!(unfinished(&copy), [foreign]);
    let said = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in
        ["the unfinished output of a run that was killed, was removed", "of a run on _elsewhere; if that has ended"]
    {
        assert!(said.contains(text), "{}", finished.stdout);
    }
}
