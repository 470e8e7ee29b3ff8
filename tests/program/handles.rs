//! Creation of communicators as all-to-all, on request.

use crate::analyze::hand_made::{Events, hand_made_of, region};
use crate::common::{alone, found, report, run, tree, with_ranks};
use clc_trace::{Collective, CollectiveOp, CommId, Event, Root};
use std::path::PathBuf;
use tempfile::TempDir;

const SPLIT: u32 = 0;
const GROUP: u32 = 1;
const WRAPPER: u32 = 2;

/// A call that creates a handle, by all.
fn create(number: u32, enter: u64, leave: u64) -> Events {
    let end = Collective { op: CollectiveOp::CREATE_HANDLE, comm: CommId(0), root: Root::None, sent: 0, received: 0 };
    region(number, enter, leave, &[(enter, Event::MpiCollectiveBegin), (leave, Event::MpiCollectiveEnd(end))])
}

/// Processes whose clocks are `behind`: five calls of each region, which all leave when the last one has entered.
fn made(behind: [u64; 3]) -> (TempDir, PathBuf) {
    let of_process = |behind: u64| -> Events {
        let round = |k: u64| {
            let t = 10_000 * k - behind;
            // One within a function that is none of MPI.
            let mut inner = create(SPLIT, t + 200, t + 210);
            inner.insert(0, (t + 190, Event::Enter(clc_trace::RegionId(WRAPPER))));
            inner.push((t + 220, Event::Leave(clc_trace::RegionId(WRAPPER))));
            [inner, create(GROUP, t + 300, t + 310)].concat()
        };
        (1..=5).flat_map(round).collect()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let names = ["MPI_Comm_split", "MPI_Comm_create_group", "setup"];
    let trace = hand_made_of(directory.path(), &names, &behind.map(of_process));
    (directory, trace)
}

#[test]
fn creation_of_communicators_synchronises_on_request() {
    let (directory, trace) = made([0, 500, 100]);
    // Nothing else can be checked.
    let without = report(&trace, &["check", "--presync", "none"], 3);
    assert_eq!(found(&without, "n_to_n"), (0, 0));
    assert_eq!(without["parameters"]["handles"], false);
    let with = report(&trace, &["check", "--presync", "none", "--handles"], 1);
    assert_eq!(found(&with, "n_to_n"), (5, 5), "{}", with["violations"]);
    assert_eq!(with["parameters"]["handles"], true);
    let of = |name: &str| {
        let all = with["matching"]["collectives"].as_array().expect("a list");
        let of = all.iter().find(|op| op["operation"] == name).unwrap_or_else(|| panic!("{name} in {all:?}"));
        (of["matched"].as_u64(), of["unconstrained"].as_u64())
    };
    assert_eq!(of("create_handle_of_all"), (Some(5), Some(0)));
    assert_eq!(of("create_handle"), (Some(0), Some(5)));
    let mut outputs = Vec::new();
    for ranks in [1, 2, 3] {
        let out = directory.path().join(format!("out-{ranks}"));
        let mut command = if ranks == 1 { alone() } else { with_ranks(ranks) };
        run(command.args(["-q", "--handles", "--presync", "none", "-o"]).arg(&out).arg(&trace)).expect(0, "correct");
        let after = report(&out, &["check", "--presync", "none", "--handles"], 0);
        assert_eq!(found(&after, "n_to_n"), (5, 0), "{ranks} ranks");
        let mut files = tree(&out.join("traces"));
        files.retain(|name, _| name.extension().is_some_and(|extension| extension == "evt"));
        assert_eq!(files.len(), 3, "event files");
        outputs.push(files);
    }
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]), "other results on more ranks");
    // The native form says the same.
    let native = directory.path().join("trace.clct");
    run(alone().args(["convert", "-q"]).arg(&trace).arg(&native)).expect(0, "convert");
    let same = report(&native, &["check", "--presync", "none", "--handles"], 1);
    assert_eq!(same["violations"], with["violations"]);
    assert_eq!(same["matching"], with["matching"]);
}
