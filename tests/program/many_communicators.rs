//! Programs with thousands of communicators. An MPI library has few: MPICH about 2,000 per process, Open MPI 4 about 65,000,
//! and making one costs a round of messages among its members. So no form of the replay may make one for each.

use crate::common::{alone, assert_same_tree, run, tool, with_ranks};
use clc_engine::comm::local::LocalTransport;
use clc_replay::pipeline::load::{LoadOptions, load};
use clc_replay::pipeline::open::open;
use clc_replay::report::Warnings;
use clc_trace::progress::Silent;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// One job at a time: ranks of several would wait for each other's processors.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A trace whose program uses `communicators` communicators, each at least once.
fn trace(directory: &Path, ranks: u32, communicators: u32, events: u32) -> PathBuf {
    let path = directory.join("trace");
    let words = [
        "--pattern=subsets".to_owned(),
        format!("--ranks={ranks}"),
        format!("--communicators={communicators}"),
        format!("--events={events}"),
        "--ranks-per-node=1".to_owned(),
        "--clock=linear,sine=20us/20ms".to_owned(),
        "--no-truth".to_owned(),
    ];
    run(alone().arg("simulate").arg(&path).args(words)).expect(0, "simulate");
    path
}

fn correct(mut command: Command, trace: &Path, out: &Path) -> Value {
    let report = out.with_extension("json");
    // Estimated clocks could leave nothing to replay.
    let command = command.arg(trace).arg("-o").arg(out).arg("--report").arg(&report).args(["--presync", "linear"]);
    run(command).expect(0, "correct");
    serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap()
}

/// How many communicators constrain, of the whole trace and at most in one process.
fn used(path: &Path, ranks: usize) -> (usize, usize) {
    let mut transport = LocalTransport::alone();
    let opened = open(&mut transport, path).unwrap();
    let parameters = controlled_logical_clock::Parameters::default();
    let options = LoadOptions {
        presync: clc_clock::Method::Linear,
        latency: parameters.latency,
        alltoallv: false,
        handles: false,
        fences: clc_engine::matching::collectives::fences::Fences::default(),
        separation: parameters.minimum_separation,
    };
    let loaded = load(&mut transport, &opened, &options, &Silent, &mut Warnings::default()).unwrap();
    let mut by_process = vec![0; ranks];
    for member in loaded.program.collectives.comms.iter().flat_map(|comm| &comm.members) {
        by_process[member.timeline] += 1;
    }
    (loaded.program.collectives.comms.len(), by_process.into_iter().max().unwrap_or(0))
}

/// One rank per process, each of which is in more communicators than MPICH has context ids ("Too many communicators (0/2048 free
/// on this process)").
#[test]
fn five_thousand_communicators_do_not_exhaust_the_context_ids_of_mpi() {
    let _machine = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let trace = trace(directory.path(), 2, 5000, 32_000);
    assert_eq!(used(&trace, 2), (5000, 5000));
    let expected = directory.path().join("alone");
    let before = correct(alone(), &trace, &expected);
    assert_eq!((&before["verdict"], &before["trace"]["communicators"]), (&"corrected".into(), &5001.into()));
    let out = directory.path().join("on2");
    let report = correct(with_ranks(2), &trace, &out);
    assert_same_tree(&expected, &out, "2 ranks");
    assert_eq!(report["replay"]["form"], "dataflow");
    assert_eq!((&report["violations"], &report["matching"]), (&before["violations"], &before["matching"]));
    run(tool("check_clock_condition.py").arg(crate::common::anchor(&expected))).expect(0, "the independent judge");
}

/// Communicators of two to eight members that overlap, several of them hosted by each rank or by more than one.
#[test]
fn five_thousand_overlapping_communicators_give_the_same_result_on_any_number_of_ranks() {
    let _machine = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let trace = trace(directory.path(), 12, 5000, 14_000);
    assert_eq!(used(&trace, 12).0, 5000);
    let expected = directory.path().join("alone");
    let before = correct(alone(), &trace, &expected);
    for ranks in [2, 5] {
        let out = directory.path().join(format!("on{ranks}"));
        let report = correct(with_ranks(ranks), &trace, &out);
        assert_same_tree(&expected, &out, &format!("{ranks} ranks"));
        assert_eq!((&report["violations"], &report["matching"]), (&before["violations"], &before["matching"]));
    }
    run(tool("check_clock_condition.py").arg(crate::common::anchor(&expected))).expect(0, "the independent judge");
}

/// Each process is in few communicators, so that the canonical form makes them in MPI: hundreds in the whole job, with ids that
/// have to be free at all members of each.
#[test]
fn many_communicators_of_few_per_process_are_replayed_in_the_canonical_form() {
    let _machine = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let trace = trace(directory.path(), 16, 256, 600);
    let (all, most) = used(&trace, 16);
    assert!(all == 256 && (50..=100).contains(&most), "{all} communicators, {most} in one process");
    let expected = directory.path().join("alone");
    correct(alone(), &trace, &expected);
    let out = directory.path().join("on16");
    let report = correct(with_ranks(16), &trace, &out);
    assert_eq!(report["replay"]["form"], "canonical");
    assert_same_tree(&expected, &out, "16 ranks");
}
