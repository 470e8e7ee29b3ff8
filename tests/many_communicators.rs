//! Programs with thousands of communicators. An MPI library has few: MPICH about 2,000 per process, Open MPI 4 about 65,000,
//! and making one costs a round of messages among its members. So no form of the replay may make one for each.

mod common;

use clc_replay::comm::local::LocalTransport;
use clc_replay::pipeline::load::{LoadOptions, load};
use clc_replay::pipeline::open::open;
use clc_replay::report::Warnings;
use clc_replay::trace::progress::Silent;
use common::{alone, assert_same_tree, run, tool, with_ranks};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A trace whose program uses `communicators` communicators, each at least once.
fn trace(directory: &Path, ranks: u32, communicators: u32, events: u32) -> PathBuf {
    let path = directory.join("trace");
    let words = [
        "--pattern=subsets".to_owned(),
        format!("--ranks={ranks}"),
        format!("--communicators={communicators}"),
        format!("--events={events}"),
        "--clock=linear,sine=20us/20ms".to_owned(),
        "--no-truth".to_owned(),
    ];
    run(alone().arg("simulate").arg(&path).args(words)).expect(0, "simulate");
    path
}

fn correct(mut command: Command, trace: &Path, out: &Path) -> Value {
    let report = out.with_extension("json");
    run(command.arg(trace).arg("-o").arg(out).arg("--report").arg(&report)).expect(0, "correct");
    serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap()
}

/// How many communicators constrain, of the whole trace and at most in one process.
fn used(path: &Path, ranks: usize) -> (usize, usize) {
    let mut transport = LocalTransport::alone();
    let opened = open(&mut transport, path).unwrap();
    let parameters = clc_replay::clc::Parameters::default();
    let options = LoadOptions {
        presync: clc_replay::presync::Method::Linear,
        latency: parameters.latency,
        alltoallv: false,
        separation: parameters.minimum_separation,
    };
    let loaded = load(&mut transport, &opened, &options, &Silent, &mut Warnings::default()).unwrap();
    let mut by_process = vec![0; ranks];
    for member in loaded.program.collectives.comms.iter().flat_map(|comm| &comm.members) {
        by_process[member.timeline as usize] += 1;
    }
    (loaded.program.collectives.comms.len(), by_process.into_iter().max().unwrap_or(0))
}

/// A process of this trace is in more communicators than the library has context ids.
#[test]
fn five_thousand_communicators_do_not_exhaust_the_context_ids_of_mpi() {
    let directory = tempfile::tempdir().unwrap();
    let trace = trace(directory.path(), 8, 5000, 20_000);
    let (all, most) = used(&trace, 8);
    assert_eq!(all, 5000);
    assert!(most > 2100, "{most} communicators in one process would be no strain");
    let expected = directory.path().join("alone");
    let before = correct(alone(), &trace, &expected);
    assert_eq!(before["verdict"], "corrected");
    assert_eq!(before["trace"]["communicators"], 5001);
    for ranks in [3, 8] {
        let out = directory.path().join(format!("on{ranks}"));
        let report = correct(with_ranks(ranks), &trace, &out);
        assert_same_tree(&expected, &out, &format!("{ranks} ranks"));
        assert_eq!(report["replay"]["form"], "dataflow");
        assert_eq!(report["violations"], before["violations"]);
        assert_eq!(report["matching"], before["matching"]);
    }
    run(tool("check_clock_condition.py").arg(common::anchor(&expected))).expect(0, "the independent judge");
}

/// Each process is in few of them, so the canonical form does make MPI communicators: far more in the whole job than one process
/// may have, and a process's ids have to be free at all members.
#[test]
fn the_canonical_form_frees_no_ids_and_still_has_enough() {
    let directory = tempfile::tempdir().unwrap();
    let trace = trace(directory.path(), 32, 1000, 1000);
    let (all, most) = used(&trace, 32);
    assert_eq!(all, 1000);
    assert!((100..=256).contains(&most), "{most} communicators in one process");
    let expected = directory.path().join("alone");
    correct(alone(), &trace, &expected);
    let out = directory.path().join("on32");
    let report = correct(with_ranks(32), &trace, &out);
    assert_eq!(report["replay"]["form"], "canonical");
    assert_same_tree(&expected, &out, "32 ranks");
}
