//! One-sided communication: every operation and every epoch is in the recording, windows and communicators have their names, and what epochs order is checked.

use super::{App, MPICH, OPEN_MPI, clc_replay, events};
use crate::common::run;
use std::collections::BTreeMap;
use std::process::Command;

#[test]
fn windows_are_recorded_as_their_standard_has_them() {
    for library in [OPEN_MPI, MPICH] {
        let app = App::build(library, library.compiler, "windows.c", &[]);
        let recorded = run(&mut app.record(&[], 4, &[])).expect(0, "the program recorded");
        let counts = events(&app.recorded());
        let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
        let done: BTreeMap<&str, u64> = recorded
            .stdout
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, number)| (name, number.parse().expect("a number")))
            .collect();
        assert_eq!(count("RMA_PUT"), done["puts"], "{}", recorded.stdout);
        assert_eq!(count("RMA_GET"), done["gets"]);
        assert_eq!(count("RMA_ATOMIC"), done["atomics"]);
        // Beside fences, windows are made and freed.
        assert_eq!(count("RMA_COLLECTIVE_END"), done["fences"] + 2 * done["windows"]);
        assert_eq!(count("RMA_COLLECTIVE_BEGIN"), count("RMA_COLLECTIVE_END"));
        assert_eq!(count("RMA_WIN_CREATE"), done["windows"]);
        assert_eq!(count("RMA_WIN_DESTROY"), done["windows"]);
        assert_eq!(count("RMA_GROUP_SYNC"), done["groups"]);
        for kind in ["RMA_REQUEST_LOCK", "RMA_ACQUIRE_LOCK", "RMA_RELEASE_LOCK"] {
            assert_eq!(count(kind), done["locks"], "{kind}");
        }
        let operations = done["puts"] + done["gets"] + done["atomics"];
        assert_eq!(count("RMA_OP_COMPLETE_REMOTE"), operations);
        assert_eq!(count("RMA_OP_COMPLETE_BLOCKING"), operations - done["requests"]);
        assert_eq!(count("RMA_OP_COMPLETE_NON_BLOCKING"), done["requests"]);

        let anchor = app.recorded().join("traces.otf2");
        let definitions = run(Command::new("otf2-print").arg("-G").arg(anchor)).expect(0, "otf2-print").stdout;
        for name in ["\"halo\"", "\"part\"", "\"reversed\""] {
            assert!(definitions.contains(name), "{name} in {definitions}");
        }
        let windows = definitions.lines().filter(|line| line.starts_with("RMA_WIN ")).count();
        assert_eq!(windows as u64 * 4, done["windows"], "every process has a part of every one: {definitions}");

        // The clock of one node: fences and epochs of groups are in order, and all of them are looked at.
        let report = app.path("check.json");
        let checked = run(clc_replay("check").arg(app.recorded()).arg("--report").arg(&report));
        // Accesses under locks cannot be checked, which makes the status 3.
        assert!(checked.status == 3 && checked.stdout.contains("No violation"), "{}", checked.stdout);
        let text = std::fs::read_to_string(report).expect("a report");
        for name in ["win_fence", "win_post_start_complete_wait"] {
            assert!(text.contains(name), "{name} in {text}");
        }
    }
}
