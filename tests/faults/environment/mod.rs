//! The machine: full disks, missing permissions, limits, files that vanish, several runs at once.

mod outputs;
mod permissions;
mod space;
mod vanishing;

use crate::case::{Case, SOON, Scene, corrected, one_line, paused, send, special, wait};
use crate::common::{self, Finished, alone, run, tree};
use crate::shim;
use crate::signals;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = outputs::outputs();
    cases.extend(space::space());
    cases.extend(permissions::permissions());
    cases.extend(vanishing::vanishing());
    cases.extend(signals::cases());
    cases.extend(several_runs());
    cases
}

const REFUSED: &str = "status 2, one line";

/// The correction is refused, and nothing on disk has changed.
fn unchanged(scene: &Scene, ranks: usize) {
    let before = tree(scene.directory());
    one_line(&run(&mut scene.correction(ranks)), ranks, &scene.says);
    assert!(before == tree(scene.directory()), "something on disk has changed");
}

/// A run that failed has said so once, and has left nothing.
fn refused_cleanly(scene: &Scene, ranks: usize, finished: &Finished, says: &[&str]) {
    let says: Vec<String> = says.iter().map(|&text| text.to_owned()).collect();
    one_line(finished, ranks, &says);
    scene.nobody_is_left();
    wait("something is left", || scene.unfinished().is_empty());
    assert!(!scene.copy.output().exists());
}

/// Ends a run that stands still.
#[allow(unsafe_code)]
fn end(scene: &Scene, running: common::Running) {
    let processes = scene.processes();
    send(libc::SIGKILL, running.child.id());
    running.finish();
    for process in processes.into_values() {
        // SAFETY: no memory is involved; most have ended already.
        unsafe { libc::kill(process as libc::pid_t, libc::SIGKILL) };
    }
    scene.nobody_is_left();
}

/// Lets a run that stands still go on, and waits for its end.
fn go_on(scene: &Scene, running: common::Running) -> Finished {
    std::fs::write(scene.go_on_file(), "").unwrap();
    running.finish()
}

fn several_runs() -> Vec<Case> {
    vec![
        special(
            "two_runs",
            "two runs on the same output at once",
            "one succeeds, the other: status 2, one line",
            |_| {},
            |s, ranks| {
                let first = paused(s, ranks, "publish", 0, &[]);
                // It sees the first one's unfinished output.
                let second = run(&mut s.correction(ranks)).expect(0, "the faster run");
                assert!(second.stdout.contains("appears to be writing the same output"), "{second:?}");
                let there = tree(&s.copy.output());
                let finished = go_on(s, first);
                one_line(&finished, ranks, &["out: the output appeared during this run".into()]);
                assert!(there == tree(&s.copy.output()), "the output of the other run was touched");
                assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
                s.output_is_right();
            },
        ),
        special(
            "two_runs_force",
            "two runs on the same output at once, with --force",
            "both succeed",
            |s| s.options(&["--force"]),
            |s, ranks| {
                let first = paused(s, ranks, "publish", 0, &[]);
                run(&mut s.correction(ranks)).expect(0, "the faster run");
                go_on(s, first).expect(0, "the slower run");
                assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
                assert!(s.copy.output().join("traces.otf2").exists());
            },
        ),
        special(
            "stale_output",
            "unfinished outputs of a killed run and of another computer",
            "corrected; the one is removed, the other named",
            |_| {},
            |s, ranks| {
                let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
                let usable = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
                let host: String = host.trim().chars().map(usable).take(40).collect();
                // No process has a number that large.
                for name in [format!(".out.part-{host}-4294967295-abc"), ".out.part-_elsewhere-1-abc".into()] {
                    std::fs::create_dir(s.directory().join(&name)).unwrap();
                    std::fs::write(s.directory().join(&name).join("file"), "").unwrap();
                }
                let finished = run(&mut s.correction(ranks)).expect(0, "a run after others");
                let said = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
                for text in [
                    "removed the unfinished output of a run that was killed",
                    "of a run on _elsewhere; if that has ended",
                ] {
                    assert!(said.contains(text), "{said}");
                }
                assert_eq!(s.unfinished(), [s.directory().join(".out.part-_elsewhere-1-abc")]);
                s.output_is_right();
            },
        ),
        special(
            "killed_replacing",
            "SIGKILL while an earlier output is being replaced",
            "the earlier output is still there",
            |s| {
                run(&mut s.correction(1)).expect(0, "an earlier output");
                s.options(&["--force"]);
            },
            |s, ranks| {
                let there = tree(&s.copy.output());
                let running = paused(s, ranks, "publish", 0, &[]);
                send(libc::SIGKILL, s.processes()[&0]);
                assert_ne!(running.finish().status, 0);
                s.nobody_is_left();
                assert!(there == tree(&s.copy.output()), "the earlier output has changed");
                run(&mut s.correction(1)).expect(0, "the next run");
                assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
            },
        ),
        special(
            "launcher_foreign",
            "started by the launcher of another MPI library",
            REFUSED,
            |_| {},
            |s, _| {
                let mut command = s.correction(1);
                command.env("CLC_REPLAY_MPI", "always").env("MV2_COMM_WORLD_SIZE", "3");
                one_line(
                    &run(&mut command),
                    1,
                    &["the launcher started 3 processes, but MPI sees only this one".into()],
                );
            },
        )
        .on(&[1]),
    ]
}
