//! MPI calls that fail: the message names the call and is written once, and all ranks end within seconds.

use crate::case::{Case, SOON, Scene, error_lines, special};
use crate::common;
use crate::shim;
use std::time::Instant;

pub(crate) fn cases() -> Vec<Case> {
    let fails = |name: &str, fault: &str, setting: &'static str| {
        special(
            name,
            fault,
            "status not 0, one line with the call, all end within 5 s",
            move |s| {
                s.word = setting.into();
            },
            act,
        )
    };
    vec![
        // The call, the ranks on which it fails (all if there are none), and how often it succeeds before.
        fails("call_at_start", "MPI_Comm_dup fails on rank 1 while MPI is set up", "MPI_Comm_dup 1 1").on(&[3]),
        fails("call_while_opening", "MPI_Ibcast fails on rank 1 while the definitions are sent", "MPI_Ibcast 1 0")
            .on(&[3]),
        fails("call_on_rank_0", "MPI_Ibcast fails on rank 0", "MPI_Ibcast 0 1").on(&[3]),
        fails("call_on_all", "MPI_Iallreduce fails on all ranks", "MPI_Iallreduce - 3").on(&[3]),
        fails("call_on_some", "MPI_Iallreduce fails on ranks 1 and 2 of 4", "MPI_Iallreduce 1,2 5").on(&[4]),
        fails("call_while_matching", "MPI_Improbe fails on rank 2 while messages are matched", "MPI_Improbe 2 40")
            .on(&[3]),
        fails("call_in_dataflow", "MPI_Isend fails on rank 1 in the dataflow replay", "MPI_Isend 1 25").on(&[3]),
        fails("call_in_canonical", "MPI_Irecv fails on rank 1 in the canonical replay", "MPI_Irecv 1 10").on(&[4]),
        fails("call_making_groups", "MPI_Comm_create_group fails on rank 3", "MPI_Comm_create_group 3 0").on(&[4]),
        fails("call_gathering", "MPI_Iallgatherv fails on rank 2", "MPI_Iallgatherv 2 0").on(&[3]),
    ]
}

fn act(scene: &Scene, ranks: usize) {
    let words: Vec<&str> = scene.word.split_whitespace().collect();
    let (call, failing, after) = (words[0], words[1], words[2]);
    let mut command = scene.correction(ranks);
    command.env("LD_PRELOAD", shim::library()).env("SHIM_MPI", call).env("SHIM_AFTER", after);
    if failing != "-" {
        command.env("SHIM_RANKS", failing);
    }
    let mut running = common::start(&mut command);
    running.wait_for(&format!("shim: {call} fails"));
    let start = Instant::now();
    let finished = running.finish();
    let took = start.elapsed();
    // Nobody waits for long; but the launcher of Open MPI takes up to five seconds of its own to end the others on a busy machine.
    assert!(took < 3 * SOON, "{took:?}: {finished:?}");
    assert_ne!(finished.status, 0, "{finished:?}");
    let errors = error_lines(&finished);
    assert_eq!(errors.len(), 1, "not one line: {finished:?}");
    assert!(errors[0].starts_with(&format!("clc-replay: error: {call} failed: ")), "{}", errors[0]);
    assert!(!finished.stderr.contains("panicked"), "{finished:?}");
    assert!(!scene.copy.output().exists());
    scene.nobody_is_left();
    // A launcher may kill rank 0 before it can clean up.
    scene.the_next_run_succeeds();
}
