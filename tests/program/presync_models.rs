//! Clocks estimated from messages, judged by simulated traces whose true times are known.

use crate::common::{alone, assert_same_tree, run, with_ranks};
use serde_json::Value;
use std::path::Path;

const USUAL: &str = "--ranks 16 --ranks-per-node 2 --events 10k --compute 1ms -q";

#[track_caller]
fn clc(arguments: &str, directory: &Path) -> crate::common::Finished {
    run(alone().args(arguments.split_whitespace()).current_dir(directory)).expect(0, arguments)
}

#[track_caller]
fn json(finished: &crate::common::Finished) -> Value {
    serde_json::from_str(&finished.stdout).expect("JSON")
}

/// Root mean square of the clock error in seconds and violations, of the phases presync and final; and of the error between processes in
/// the last one.
#[derive(Debug, Clone, Copy)]
struct Accuracy {
    presync: (f64, u64),
    last: (f64, u64),
    between: f64,
}

/// Corrects DIRECTORY/TRACE and judges the result.
#[track_caller]
fn judge(trace: &str, presync: &str, directory: &Path) -> Accuracy {
    clc(&format!("{trace} -o {trace}-{presync} -q --presync {presync}"), directory);
    let line = format!("evaluate {trace}-{presync} --truth {trace} --presync {presync} --report -");
    let result = json(&clc(&line, directory));
    let named = |name: &str| {
        let phases = result["phases"].as_array().expect("phases");
        phases.iter().find(|phase| phase["phase"] == name).expect(name)
    };
    let rms = |errors: &Value| errors["rms_seconds"].as_f64().expect("a number");
    let phase = |name: &str| (rms(&named(name)["clock"]), named(name)["violations"].as_u64().expect("a count"));
    Accuracy { presync: phase("presync"), last: phase("final"), between: rms(&named("final")["between_processes"]) }
}

#[test]
fn network_is_far_better_than_linear_where_clocks_are_not_linear() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    for clock in ["sine", "linear,walk=50ppm", "ntp"] {
        clc(&format!("simulate {} --clock {clock} {USUAL}", &clock[..3]), path);
        let (linear, network) = (judge(&clock[..3], "linear", path), judge(&clock[..3], "network", path));
        // Beside the recorded clocks as they are: the logical clock makes up for a part of what is wrong with them.
        assert!(network.last.0 < linear.presync.0 / 7.0, "{clock}: {network:?} {linear:?}");
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
    assert!(without.between < 1.2 * with.between, "{with:?} {without:?}");
    // Nothing says that clock 0 is the one that is right: global time is the mean of all.
    assert!(without.last.0 < 2e-6, "{without:?}");
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

/// Corrects a simulated trace alone and with several ranks: the same bits.
fn same_on_any_number_of_ranks(simulated: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(&format!("simulate trace {simulated} -q"), path);
    let line = "trace --presync network --latency auto -q";
    clc(&format!("{line} -o alone"), path);
    for ranks in [1, 2, 4] {
        let arguments = format!("{line} -o with{ranks}");
        run(with_ranks(ranks).args(arguments.split_whitespace()).current_dir(path)).expect(0, &arguments);
        assert_same_tree(&path.join("alone"), &path.join(format!("with{ranks}")), &arguments);
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_ranks() {
    // Messages and collectives, threads, clocks of all kinds.
    same_on_any_number_of_ranks("--pattern mix --ranks 9 --ranks-per-node 2 --threads 2 --events 4k --clock mixed");
}

#[test]
fn a_node_without_a_common_clock_gets_one_per_process() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(&format!("simulate base --clock perfect --measurements 0 {USUAL}"), path);
    clc("perturb base trace --per-process --clock offset=1ms,sine=20us/0.5s --measurements 0 -q", path);
    let network = judge("trace", "network", path);
    assert!(network.between < 1e-6 && network.last.0 < 2e-6, "{network:?}");
    let report = json(&clc("trace --presync network --dry-run --report -", path));
    assert_eq!(report["clocks"]["clocks"].as_array().expect("clocks").len(), 16);
}

#[test]
fn answers_that_take_longer_than_questions_are_no_clock_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let requests = "--pattern requests --message-bytes 100k --eager-limit 1M --ranks 8 --events 8k --compute 300us -q";
    clc(&format!("simulate trace --clock sine {requests}"), path);
    // Answers take 10 us longer: half of that per process, if it were taken for clocks.
    let found = judge("trace", "auto", path);
    assert!(found.between < 0.5e-6, "{found:?}");
}

#[test]
fn offsets_count_where_messages_wait_for_longer_than_clocks_are_apart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let waits = "--pattern alltoall --ranks 12 --ranks-per-node 4 --events 8k --compute 3ms --imbalance 0.5 --seed 593034644 -q";
    clc(&format!("simulate trace --clock coarse {waits}"), directory.path());
    // No violation without offsets either, and 96 us.
    let found = judge("trace", "auto", directory.path());
    assert!(found.between < 1e-6, "{found:?}");
}

#[test]
fn one_way_traffic_tells_the_clocks_by_who_waited() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(&format!("simulate trace --pattern pipeline --clock mixed {USUAL}"), path);
    let linear = judge("trace", "linear", path);
    for presync in ["network", "auto"] {
        let found = judge("trace", presync, path);
        // Linear interpolation leaves 16 us.
        assert!(found.last.0 < 4e-6 && found.last.0 < linear.last.0 / 4.0, "{presync}: {found:?} {linear:?}");
        assert_eq!(found.last.1, 0);
    }
}

#[test]
fn who_waited_does_not_depend_on_the_number_of_ranks() {
    same_on_any_number_of_ranks(
        "--pattern pipeline --ranks 6 --ranks-per-node 1 --events 4k --clock sine --compute 1ms",
    );
}

/// A latency that the trace shows makes no violation where clocks are right, whatever the network is like.
#[test]
fn perfect_clocks_are_never_found_wrong_by_a_latency_of_the_trace() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    // A generator of no quality (Knuth's), for what differs between the runs.
    let mut state = 20u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let patterns = ["halo1d", "halo2d", "ring", "pipeline", "master-worker", "butterfly", "random", "alltoall", "mix"];
    let (mut known, mut bases) = (0, Vec::new());
    for run in 0..27 {
        let pattern = patterns[run % patterns.len()];
        let (other, tail) = (200 + below(20_000), below(5_000));
        let (same, asymmetry, seed) = (50 + below(2_000), below(10), below(1_000));
        let network = format!(
            "--latency same-node={same}ns,other-node={other}ns --tail {tail}ns --asymmetry 0.{asymmetry} --imbalance 0.{}",
            below(6)
        );
        let line = format!(
            "simulate trace --force -q --clock perfect --pattern {pattern} --ranks 8 --ranks-per-node 2 --events 1k --compute 200us --seed {seed} {network}"
        );
        clc(&line, path);
        for presync in ["auto", "linear", "none"] {
            let report = json(&clc(&format!("check trace -q --presync {presync} --latency auto --report -"), path));
            let violated = |stage: &str| {
                let stage = &report["violations"][stage];
                let kinds = stage["collectives"].as_array().expect("collectives");
                kinds
                    .iter()
                    .chain([&stage["point_to_point"]])
                    .map(|kind| kind["violated"].as_u64().expect("a number"))
                    .sum()
            };
            let latency = &report["parameters"]["latency"];
            if presync != "linear" {
                assert_eq!((violated("raw"), violated("presynchronised")), (0u64, 0u64), "{line}: {presync} {latency}");
            }
            let between = 1e9 * latency["other_node_seconds"].as_f64().expect("a number");
            assert!(between <= (other + 1) as f64 * (1.0 + asymmetry as f64 / 10.0) + 2e3, "{line}: {latency}");
            known += u32::from(between > 0.0);
            bases.push(latency["basis"].as_str().expect("a basis").to_owned());
        }
    }
    // That is no test if there are none.
    assert!(known > 20, "{known} {bases:?}");
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

/// Clocks that drift evenly, seldom messages, receivers that wait: what straight lines are for, and hard for them.
const SELDOM: &str = "--ranks 4 --ranks-per-node 1 --events 300 --compute 10ms --pattern halo1d --measurements 0 -q";
/// The same with many messages.
const OFTEN: &str = "--ranks 16 --ranks-per-node 2 --events 20k --compute 1ms --clock linear -q";

/// What `check` says about clocks.
#[track_caller]
fn clocks(arguments: &str, directory: &Path) -> Value {
    let line = format!("check {arguments} --report -");
    let finished = run(alone().args(line.split_whitespace()).current_dir(directory));
    assert!(finished.status <= 1, "{line}: {finished:?}");
    json(&finished)["clocks"].clone()
}

fn numbers(clocks: &Value, list: &str, field: &str) -> Vec<f64> {
    clocks[list].as_array().expect(list).iter().map(|clock| clock[field].as_f64().unwrap_or(f64::INFINITY)).collect()
}

#[test]
fn no_message_violates_hulls_of_clocks_that_drift_evenly() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    for (number, seed) in [3, 5, 9, 11].into_iter().enumerate() {
        for (clock, name) in [("drift=1000ppm", "steep"), ("linear", "usual")] {
            let trace = format!("{name}{number}");
            clc(&format!("simulate {trace} {SELDOM} --clock {clock} --seed {seed}"), path);
            let hull = judge(&trace, "hull", path);
            assert_eq!(hull.presync.1, 0, "{clock} {seed}: {hull:?}");
            let clocks = clocks(&format!("{trace} --presync hull"), path);
            assert!(numbers(&clocks, "pairs", "deviation_seconds").iter().all(|margin| *margin > 0.0), "{clocks}");
            assert!(!clocks["reason"].as_str().expect("a reason").contains("feasible"), "{clocks}");
        }
    }
}

#[test]
fn a_hull_says_where_no_line_is_feasible() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    clc(&format!("simulate trace --clock sine {USUAL}"), directory.path());
    let clocks = clocks("trace --presync hull", directory.path());
    assert!(numbers(&clocks, "pairs", "deviation_seconds").iter().any(|margin| *margin < 0.0), "{clocks}");
    assert!(clocks["reason"].as_str().expect("a reason").contains("no line is feasible"), "{clocks}");
}

#[test]
fn regression_finds_straight_clocks_and_their_drifts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(&format!("simulate with {OFTEN}"), path);
    clc(&format!("simulate without --measurements 0 {OFTEN}"), path);
    for model in ["regression", "hull", "network"] {
        let found = judge("without", model, path);
        assert!(found.presync.0 < 6e-6 && found.presync.1 == 0, "{model}: {found:?}");
        // Measured at the beginning and at the end, seen through all messages between.
        let measured = numbers(&clocks("with --presync network --reference 0", path), "clocks", "drift_ppm");
        let found = numbers(&clocks(&format!("without --presync {model} --reference 0"), path), "clocks", "drift_ppm");
        assert!(measured.iter().any(|drift| drift.abs() > 5.0), "{measured:?}");
        for (found, measured) in found.iter().zip(&measured) {
            assert!((found - measured).abs() < 4.0, "{model}: {found} {measured}");
        }
    }
}

#[test]
fn the_uncertainty_is_no_smaller_than_the_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    for seed in 1..=4 {
        clc(&format!("simulate seldom{seed} {SELDOM} --clock linear --seed {seed}"), path);
        clc(&format!("simulate often{seed} --measurements 0 {OFTEN} --seed {seed}"), path);
        for trace in ["seldom", "often"] {
            for model in ["regression", "hull", "network"] {
                let trace = format!("{trace}{seed}");
                let error = judge(&trace, model, path).presync.0;
                let clocks = clocks(&format!("{trace} --presync {model}"), path);
                let known = numbers(&clocks, "clocks", "uncertainty_seconds").into_iter().fold(0.0, f64::max);
                assert!(known.is_finite() && known >= error, "{trace} {model}: known to {known}, off by {error}");
            }
        }
    }
}

#[test]
fn what_has_no_lines_is_not_called_a_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(&format!("simulate trace --clock linear --measurements 0 {USUAL}"), path);
    let lines = clocks("trace --presync regression", path);
    assert_eq!(lines["chosen"], "regression");
    // Segments with two windows each, and a line needs three round trips.
    let none = clocks("trace --presync regression --segment 1ms", path);
    assert_eq!(none["chosen"], "network", "{none}");
    assert!(none["reason"].as_str().expect("a reason").contains("too few round trips"), "{none}");
}

#[test]
fn any_clock_can_be_global_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(&format!("simulate trace --clock linear {USUAL}"), path);
    let reference = |clocks: &Value| -> Vec<u64> {
        let clocks = clocks["clocks"].as_array().expect("clocks").iter();
        clocks.filter(|clock| clock["reference"] == true).filter_map(|clock| clock["first_process"].as_u64()).collect()
    };
    for model in ["network", "regression", "hull"] {
        // Recorded offsets refer to process 0. Processes 6 and 7 are on one node.
        let zero = clocks(&format!("trace --presync {model} --reference 0"), path);
        let other = clocks(&format!("trace --presync {model} --reference 7"), path);
        assert_eq!((reference(&zero), reference(&other)), (vec![0], vec![6]), "{model}");
        let [zero, other] = [&zero, &other].map(|clocks| numbers(clocks, "clocks", "drift_ppm"));
        assert!(zero[0].abs() < 0.1 && other[3].abs() < 0.1 && zero[3].abs() > 1.0, "{model}: {zero:?} {other:?}");
        assert!((other[0] + zero[3]).abs() < 0.5, "{model}: {zero:?} {other:?}");
        // No clock is global time, and they drift against the one that they make together.
        let mean = clocks(&format!("trace --presync {model} --reference mean"), path);
        assert!(reference(&mean).is_empty(), "{mean}");
        let drifts = numbers(&mean, "clocks", "drift_ppm");
        assert!(drifts.iter().sum::<f64>().abs() < 1.0, "{model}: {drifts:?}");
    }
}

#[test]
fn processes_of_a_node_whose_clocks_drift_apart_have_a_clock_each() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate base --pattern pipeline --ranks 6 --ranks-per-node 3 --events 2k --compute 1ms --clock perfect -q",
        path,
    );
    clc("perturb base trace --per-process --clock drift=300ppm -q", path);
    assert_eq!(clocks("trace --presync network", path)["clocks"].as_array().expect("clocks").len(), 6);
    clc("perturb base common --clock drift=300ppm -q", path);
    assert_eq!(clocks("common --presync network", path)["clocks"].as_array().expect("clocks").len(), 2);
}
