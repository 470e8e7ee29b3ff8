//! Options that make no sense, and jobs beside the correction on damaged traces: exit status 2, one line that says what, and nothing on disk
//! has changed. Everything else that can be wrong is in `tests/faults`.

mod common;

use common::damage::{Copy, edit};
use common::{Finished, alone, run, tree, with_ranks};
use std::ffi::OsStr;
use std::process::Command;

const HALO: &str = "tracer-halo-4";

#[track_caller]
fn refused_by<S: AsRef<OsStr>>(
    mut command: Command,
    copy: &Copy,
    arguments: impl IntoIterator<Item = S>,
    says: &[&str],
) {
    let launched = command.get_program() != OsStr::new(env!("CARGO_BIN_EXE_clc-replay"));
    let before = tree(copy.directory.path());
    let finished = run(command.args(arguments).current_dir(copy.directory.path()));
    // Neither an output, nor a `.out.part-*`, nor another byte in the trace.
    assert!(before == tree(copy.directory.path()), "something on disk has changed: {finished:?}");
    refusal(finished, launched, says);
}

/// Checks status and message. A launcher adds its own lines on a failure, the program alone must not.
#[track_caller]
fn refusal(finished: Finished, launched: bool, says: &[&str]) {
    let Finished { stderr, .. } = finished.expect(2, "not refused");
    let errors: Vec<&str> = stderr.lines().filter(|line| !launched || line.starts_with("clc-replay: error:")).collect();
    assert_eq!(errors.len(), 1, "not one line: {stderr}");
    assert!(errors[0].starts_with("clc-replay: error: "), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for text in says {
        assert!(errors[0].contains(text), "'{text}' is missing in: {}", errors[0]);
    }
}

#[test]
fn options_that_make_no_sense() {
    let copy = Copy::of(HALO);
    let cases: [(&[&str], &str); 20] = [
        (&["trace", "--latency", "5"], "--latency"),
        (&["trace", "--latency", "-1us"], "--latency"),
        (&["trace", "--latency", "1fortnight"], "--latency"),
        (&["trace", "--latency", "same-node=1us,same-node=2us"], "--latency"),
        (&["trace", "--latency", "1000000000000000000000s"], "latency"),
        (&["trace", "--gamma", "2"], "--gamma"),
        (&["trace", "--gamma", "0.1"], "--gamma"),
        (&["trace", "--gamma", "nan"], "--gamma"),
        (&["trace", "--slope", "0"], "--slope"),
        (&["trace", "--slope", "2"], "--slope"),
        (&["trace", "--max-passes", "0"], "--max-passes"),
        (&["trace", "--max-error", "0.5"], "--max-error"),
        (&["trace", "--presync", "cubic"], "--presync"),
        (&["trace", "--log", "loud,=,"], "--log"),
        (&["trace", "--unknown"], "--unknown"),
        (&["check", "trace", "--gamma", "0.9"], "--gamma"),
        (&["info", "trace", "--latency", "1us"], "--latency"),
        (&["trace", "other"], "other"),
        (&["trace", "--dry-run", "--force"], "--force"),
        (&[], "TRACE"),
    ];
    for (arguments, says) in cases {
        refused_by(alone(), &copy, arguments, &[says]);
    }
    for arguments in [&["trace", "--gamma", "2"][..], &["check", "trace", "--gamma", "0.9"]] {
        refused_by(with_ranks(3), &copy, arguments, &["--gamma"]);
    }
    let mut command = alone();
    command.env("CLC_REPLAY_MPI", "perhaps");
    refused_by(command, &copy, ["trace"], &["CLC_REPLAY_MPI is 'perhaps'"]);
}

#[test]
fn check_and_info_refuse_damage_too() {
    let copy = Copy::of(HALO);
    edit(&copy.events(1), |bytes| bytes.truncate(bytes.len() / 2));
    for job in ["check", "info"] {
        for command in [alone(), with_ranks(3)] {
            refused_by(command, &copy, [job, "trace"], &["1.evt: location 1, event ", "truncated"]);
        }
    }
}
