//! Requests that send and receive at once, and partitioned messages.

use super::{App, MPICH, events};
use crate::common::run;
use std::process::Command;

#[test]
fn what_one_request_sends_and_receives_has_both_ends() {
    let app = App::build(MPICH, MPICH.compiler, "exchanges.c", &[]);
    let ended = run(&mut app.record(&[], 2, &[])).expect(0, "record");
    let said = |name: &str| {
        ended.stdout.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).expect("a number")
    };
    let counts = events(&app.recorded());
    let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    assert_eq!(count("MPI_SEND") + count("MPI_ISEND"), said("sends "), "{counts:?}");
    assert_eq!(count("MPI_RECV") + count("MPI_IRECV"), said("receives "), "{counts:?}");
    assert_eq!(count("MPI_ISEND_COMPLETE"), count("MPI_ISEND"));
    assert_eq!(count("MPI_IRECV_REQUEST"), count("MPI_IRECV"));
    // All messages but those of processes to themselves are compared: they match by length and order, and none is left over.
    let report = crate::common::report(&app.recorded(), &["check"], 0);
    let checked = report["violations"]["raw"]["point_to_point"]["checked"].as_u64();
    assert_eq!(checked, Some(said("receives ") - said("itself ")), "{report}");
    let printed = run(Command::new("otf2-print").arg(app.recorded().join("traces.otf2"))).expect(0, "otf2-print");
    let partitions = |line: &&str| line.starts_with("ENTER") && line.contains("\"MPI_Pready\"");
    assert_eq!(printed.stdout.lines().filter(partitions).count() as u64, said("partitions "));
}
