//! Clocks estimated from messages, judged by simulated traces whose true times are known.

mod common;

use common::{alone, assert_same_tree, run, with_ranks};
use serde_json::Value;
use std::path::Path;

const USUAL: &str = "--ranks 16 --ranks-per-node 2 --events 10k --compute 1ms -q";

#[track_caller]
fn clc(arguments: &str, directory: &Path) -> common::Finished {
    run(alone().args(arguments.split_whitespace()).current_dir(directory)).expect(0, arguments)
}

#[track_caller]
fn json(finished: &common::Finished) -> Value {
    serde_json::from_str(&finished.stdout).expect("JSON")
}

/// Root mean square of the clock error in seconds and violations, of the phases presync and final.
#[derive(Debug, Clone, Copy)]
struct Accuracy {
    presync: (f64, u64),
    last: (f64, u64),
}

/// Corrects DIRECTORY/TRACE and judges the result.
#[track_caller]
fn judge(trace: &str, presync: &str, directory: &Path) -> Accuracy {
    clc(&format!("{trace} -o {trace}-{presync} -q --presync {presync}"), directory);
    let line = format!("evaluate {trace}-{presync} --truth {trace} --presync {presync} --report -");
    let result = json(&clc(&line, directory));
    let phase = |name: &str| {
        let phases = result["phases"].as_array().expect("phases");
        let phase = phases.iter().find(|phase| phase["phase"] == name).expect(name);
        (phase["clock"]["rms_seconds"].as_f64().expect("a number"), phase["violations"].as_u64().expect("a count"))
    };
    Accuracy { presync: phase("presync"), last: phase("final") }
}

#[test]
fn network_is_ten_times_better_than_linear_where_clocks_are_not_linear() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    for clock in ["sine", "linear,walk=50ppm", "ntp"] {
        clc(&format!("simulate {} --clock {clock} {USUAL}", &clock[..3]), path);
        let (linear, network) = (judge(&clock[..3], "linear", path), judge(&clock[..3], "network", path));
        assert!(network.last.0 < linear.last.0 / 10.0, "{clock}: {network:?} {linear:?}");
        assert!(network.presync.1 * 20 <= linear.presync.1, "{clock}: {network:?} {linear:?}");
        // The tail of the simulated network's delays is a microsecond.
        assert!(network.last.0 < 2e-6, "{clock}: {network:?}");
    }
}

#[test]
fn without_measurements_it_is_as_good_as_with_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    clc(&format!("simulate with --clock sine {USUAL}"), directory.path());
    clc(&format!("simulate without --clock sine --measurements 0 {USUAL}"), directory.path());
    let (with, without) = (judge("with", "network", directory.path()), judge("without", "network", directory.path()));
    assert!(without.last.0 < 2.0 * with.last.0, "{with:?} {without:?}");
}

#[test]
fn accurate_clocks_stay_accurate() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    clc(&format!("simulate trace --clock perfect {USUAL}"), directory.path());
    for presync in ["network", "auto"] {
        let accuracy = judge("trace", presync, directory.path());
        assert!(accuracy.last.0 < 1e-7 && accuracy.presync.1 == 0, "{presync}: {accuracy:?}");
    }
}

#[test]
fn one_way_traffic_is_left_to_the_recorded_offsets() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    clc(&format!("simulate trace --pattern pipeline --clock mixed {USUAL}"), directory.path());
    let linear = judge("trace", "linear", directory.path());
    for presync in ["network", "auto"] {
        let other = judge("trace", presync, directory.path());
        assert!(other.last.0 <= 1.01 * linear.last.0, "{presync}: {other:?} {linear:?}");
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_ranks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    // Messages and collectives, threads, clocks of all kinds.
    clc("simulate trace --pattern mix --ranks 9 --ranks-per-node 2 --threads 2 --events 4k --clock mixed -q", path);
    let line = "trace --presync network --latency auto -q";
    clc(&format!("{line} -o alone"), path);
    for ranks in [1, 2, 4] {
        let arguments = format!("{line} -o with{ranks}");
        run(with_ranks(ranks).args(arguments.split_whitespace()).current_dir(path)).expect(0, &arguments);
        assert_same_tree(&path.join("alone"), &path.join(format!("with{ranks}")), &arguments);
    }
}

#[test]
fn a_node_without_a_common_clock_gets_one_per_process() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(&format!("simulate base --clock perfect --measurements 0 {USUAL}"), path);
    clc("perturb base trace --per-process --clock offset=1ms,sine=20us/0.5s --measurements 0 -q", path);
    let network = judge("trace", "network", path);
    assert!(network.last.0 < 1e-6, "{network:?}");
    let report = json(&clc("check trace --presync network --report -", path));
    assert_eq!(report["clocks"]["clocks"].as_array().expect("clocks").len(), 16);
}

#[test]
fn the_latency_is_that_of_the_network() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    clc(&format!("simulate trace --clock sine {USUAL}"), directory.path());
    let report = json(&clc("check trace --presync network --latency auto --report -", directory.path()));
    let latency = &report["parameters"]["latency"];
    let microseconds = |class: &str| 1e6 * latency[class].as_f64().expect("a number");
    // Simulated with at least 0.3 and 2 us, and the time for the bytes.
    assert!((0.3..1.5).contains(&microseconds("same_node_seconds")), "{latency}");
    assert!((1.7..2.5).contains(&microseconds("other_node_seconds")), "{latency}");
}
