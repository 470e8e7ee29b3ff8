//! `--presync auto`, the default: when estimated clocks are taken, and when recorded ones stay.

use crate::by_hand::written;
use crate::common::{alone, assert_same_tree, run, with_ranks};
use crate::missing_records::{receive, send, trace};
use clc_otf2::Otf2Archive;
use clc_trace::{Event, LocationId, RegionId};
use serde_json::Value;
use std::path::Path;

#[track_caller]
fn clc(arguments: &str, directory: &Path) -> crate::common::Finished {
    run(alone().args(arguments.split_whitespace()).current_dir(directory)).expect(0, arguments)
}

#[track_caller]
fn json(finished: &crate::common::Finished) -> Value {
    serde_json::from_str(&finished.stdout).expect("JSON")
}

/// Corrects DIRECTORY/trace; root mean square of the clock error of the result in seconds, and the model in force.
#[track_caller]
fn judge(presync: &str, directory: &Path) -> (f64, String) {
    let report = json(&clc(&format!("trace -o {presync} -q --presync {presync} --report -"), directory));
    let chosen = report["clocks"]["chosen"].as_str().unwrap_or(presync).to_owned();
    let result = json(&clc(&format!("evaluate {presync} --truth trace --presync {presync} --report -"), directory));
    let last = result["phases"].as_array().and_then(|phases| phases.last()).expect("phases");
    (last["clock"]["rms_seconds"].as_f64().expect("a number"), chosen)
}

#[test]
fn the_reference_does_not_change_which_clocks_are_taken() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    // Perfect clocks, and messages that go one way: the estimate is tens of microseconds off.
    clc("simulate trace --ranks 8 --events 3k --pattern pipeline --clock perfect --seed 3 -q", path);
    for reference in ["auto", "0", "5", "median", "mean"] {
        let report = json(&clc(&format!("trace -o {reference} -q --reference {reference} --report -"), path));
        assert_eq!(report["clocks"]["chosen"], "none", "{reference}");
        let reason = report["clocks"]["reason"].as_str().expect("a reason");
        assert_eq!(reason.contains("not of --reference"), reference != "auto", "{reason}");
    }
}

#[test]
fn auto_is_the_default_of_a_correction_and_linear_that_of_a_check() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc("simulate trace --ranks 8 --ranks-per-node 2 --events 4k --compute 1ms --clock sine -q", path);
    let report = json(&clc("trace -o plain -q --report -", path));
    assert_eq!((&report["parameters"]["presync"], &report["clocks"]["chosen"]), (&"auto".into(), &"network".into()));
    clc("trace -o auto -q --presync auto", path);
    assert_same_tree(&path.join("plain"), &path.join("auto"), "the default");
    // The trace as it is: what a reader sees is broken, whatever could be made of it.
    let check = run(alone().args(["check", "trace", "--report", "-"]).current_dir(path)).expect(1, "check");
    assert_eq!(json(&check)["parameters"]["presync"], "linear");
    assert_eq!(json(&clc("check trace --presync auto --report -", path))["verdict"], "corrected");
}

#[test]
fn offsets_that_were_measured_of_perfect_clocks_are_not_used() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern butterfly --clock perfect --ranks 8 --ranks-per-node 4 --events 1k --compute 50us \
         --imbalance 0.1 --measurements 2 --seed 335662234 -q",
        path,
    );
    let ((linear, _), (auto, chosen)) = (judge("linear", path), judge("auto", path));
    assert!(linear > 50e-9, "the trace is no test: {linear}");
    assert_eq!((chosen.as_str(), auto), ("none", 0.0));
    assert_eq!(json(&clc("trace -o again -q --report -", path))["moves"]["events_moved"], 0);
}

/// Messages that wait tell nothing of them either: 0.1 us, half of what the measurements scatter by.
#[test]
fn offsets_that_are_no_more_than_the_scatter_of_their_measurements_are_not_used() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let simulate = |clock: &str| {
        clc(
            &format!(
                "simulate trace --pattern mix --clock {clock} --ranks 8 --ranks-per-node 4 --events 2k --compute 3ms --imbalance 0 --measurements 5 --seed 1 --force -q"
            ),
            path,
        );
    };
    simulate("perfect");
    let ((linear, _), (auto, chosen)) = (judge("linear", path), judge("auto", path));
    assert!(linear > 50e-9, "the trace is no test: {linear}");
    assert_eq!((chosen.as_str(), auto), ("none", 0.0));
    let report = json(&clc("trace -o again -q --report -", path));
    assert!(report["clocks"]["reason"].as_str().is_some_and(|reason| reason.contains("scatter")), "{report}");
    assert_eq!(report["moves"]["events_moved"], 0);
    // Twenty times as much is no scatter.
    simulate("offset=10us");
    assert_ne!(json(&clc("trace -o offset -q --report -", path))["clocks"]["chosen"], "none");
}

/// Bumps in clocks beside those that jump stayed where one-way traffic left room for them (6.2 us), and steps were placed at the message before them.
#[test]
fn a_ring_whose_clocks_jump_is_straight_beside_the_jumps() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc("simulate trace --pattern ring --clock jump --ranks 16 --ranks-per-node 2 --events 10k --compute 1ms -q", path);
    let (auto, chosen) = judge("auto", path);
    assert_eq!(chosen, "network");
    assert!(auto < 2e-6, "{auto}");
}

/// In a pipeline that nobody measured, what waits told had clocks drift apart by 2,346 ppm: 112 us from the truth.
#[test]
fn waits_do_not_make_clocks_drift_as_no_crystals_do() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern pipeline --clock coarse --ranks 8 --ranks-per-node 1 --events 3k --compute 300us --imbalance 0 --measurements 0 --seed 353204930 -q",
        path,
    );
    let (auto, chosen) = judge("auto", path);
    assert!(auto < 10e-6, "{auto}, {chosen}");
}

/// Pipelines that nobody measured, whose short messages are waited for: the clocks stayed as they were, or were shifted so that nothing is early, 212 and 1,373 us from the truth.
#[test]
fn short_messages_that_are_waited_for_tell_where_clocks_are_that_nobody_measured() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    for (clock, events) in [("offset=1ms", "20k"), ("walk", "60k")] {
        let pattern = format!("--pattern pipeline --clock {clock} --events {events} --ranks 4 --ranks-per-node 1");
        clc(&format!("simulate trace {pattern} --imbalance 0.1 --message-bytes 512 --measurements 0 --force -q"), path);
        std::fs::remove_dir_all(path.join("auto")).unwrap_or_default();
        let (auto, chosen) = judge("auto", path);
        assert!(auto < 8e-6 && chosen == "network", "{clock}: {auto}, {chosen}");
    }
    // Clocks that are right stay as they are, however slow the network is.
    clc(
        "simulate trace --pattern pipeline --clock perfect --events 20k --ranks 4 --ranks-per-node 1 --message-bytes 512 --latency other-node=100us --measurements 0 --force -q",
        path,
    );
    std::fs::remove_dir_all(path.join("auto")).unwrap_or_default();
    let (auto, chosen) = judge("auto", path);
    assert!(auto < 1e-12, "{auto}, {chosen}");
}

/// Real messages, between clocks that drift evenly and that nobody has measured. Curves followed what was late: 592, 124 and 9 us from the truth; 22, 8 and 4 us are lines that no message contradicts.
#[test]
fn recordings_without_offsets_have_straight_clocks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    for (name, most) in [("recorded-stencil-4", 40e-6), ("recorded-halo-4", 20e-6), ("recorded-hybrid-3", 6e-6)] {
        let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        clc(&format!("{} -o right --force -q", recording.display()), path);
        clc("perturb right trace --clock linear --per-process --seed 1 --measurements 0 --force -q", path);
        std::fs::remove_dir_all(path.join("auto")).unwrap_or_default();
        let (auto, chosen) = judge("auto", path);
        assert!(auto < most, "{name}: {auto}, {chosen}");
    }
}

/// Clocks that swing, with nothing but late messages between them: curves went wherever these look prompt, 210 us from the truth.
#[test]
fn estimates_that_run_away_give_way_to_straight_lines() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tracer-halo-4");
    let perturb = "trace --clock mixed --per-process --seed 8 --measurements 0 --anyway -q";
    clc(&format!("perturb {} {perturb}", recording.display()), path);
    for presync in ["auto", "network"] {
        let (rms, chosen) = judge(presync, path);
        assert!(rms < 100e-6 && chosen == "hull", "{presync}: {rms}, {chosen}");
    }
}

/// Processes that wait actively and share cores, with clocks that nobody has measured: between the few quick round trips curves went wherever late messages look prompt, 0.2 to 0.7 ms from the truth. Lines of regression are 16 to 46 us from it.
#[test]
fn late_messages_do_not_bend_clocks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/late/mg-4");
    for (clock, seed) in [("ntp", 71_003), ("ntp", 73_001), ("mixed", 71_003), ("mixed", 72_001)] {
        let perturb = format!("--clock {clock} --per-process --seed {seed} --measurements 0 --anyway --force -q");
        clc(&format!("perturb {} trace {perturb}", recording.display()), path);
        std::fs::remove_dir_all(path.join("auto")).unwrap_or_default();
        clc("trace -o auto -q", path);
        let result = json(&clc("evaluate auto --truth trace --report -", path));
        let last = result["phases"].as_array().and_then(|phases| phases.last()).expect("phases");
        let rms = last["between_processes"]["rms_seconds"].as_f64().expect("a number");
        assert!(rms < 80e-6, "{clock} {seed}: {rms}");
    }
}

/// Processes of one node whose clocks differ, as nothing but collective operations shows.
#[test]
fn collective_operations_show_that_a_node_has_several_clocks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate right --pattern collectives --clock perfect --ranks 4 --ranks-per-node 4 --events 2k --seed 3 -q",
        path,
    );
    clc("perturb right trace --clock linear --per-process --seed 1 --measurements 0 -q", path);
    let (auto, chosen) = judge("auto", path);
    assert!(auto < 6e-7 && chosen == "network", "{auto}, {chosen}");
}

#[test]
fn times_that_leave_no_violation_stay_where_offsets_and_estimate_leave_some() {
    // Each offset from one exchange over a network that is slow now and then; synchronous sends that wait feign clocks that are not there.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern ssend-pipeline --clock perfect --ranks 6 --ranks-per-node 1 --events 3k --compute 20us --imbalance 0.5 \
         --tail same-node=100ns,other-node=20us --exchanges 1 --seed 660340 -q",
        path,
    );
    let ((linear, _), (network, _), (auto, chosen)) =
        (judge("linear", path), judge("network", path), judge("auto", path));
    assert!(linear > 1e-6 && network > 1e-6, "the trace is no test: {linear} {network}");
    assert_eq!((chosen.as_str(), auto), ("none", 0.0));
}

#[test]
fn offsets_of_processes_that_share_a_clock_are_not_used() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc("simulate base --pattern halo2d --clock perfect --ranks 6 --ranks-per-node 6 --events 3k -q", path);
    clc("perturb base trace --per-process --clock perfect --measurements 2 -q", path);
    let ((linear, _), (auto, chosen)) = (judge("linear", path), judge("auto", path));
    assert!(linear > 1e-8, "the trace is no test: {linear}");
    assert_eq!((chosen.as_str(), auto), ("none", 0.0));
    // Processes that do not share a clock, on what is called one node.
    clc("perturb base apart --per-process --clock offset=5us --measurements 2 -q", path);
    let apart = json(&clc("apart -o fixed -q --report -", path));
    assert_ne!(apart["clocks"]["chosen"], "none", "{}", apart["clocks"]["reason"]);
}

#[test]
fn offsets_that_are_much_larger_than_any_violation_are_no_errors_of_measurement() {
    // A pipeline whose messages wait for longer than clocks are apart: as recorded, none of them is early, while a millisecond lies between the clocks.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern pipeline --clock sine --ranks 8 --ranks-per-node 4 --events 8k --compute 3ms --imbalance 0.5 --seed 575409866 -q",
        path,
    );
    let ((none, _), (linear, _), (auto, chosen)) = (judge("none", path), judge("linear", path), judge("auto", path));
    assert!(none > 1e-3 && linear < 20e-6, "the trace is no test: {none} {linear}");
    assert!(chosen != "none" && auto <= 1.1 * linear, "{chosen} {auto} {linear}");
}

#[test]
fn clocks_that_nobody_measured_may_be_further_apart_than_the_run_is_long() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --ranks 8 --ranks-per-node 2 --events 4k --compute 10ms --clock offset=400s,drift=100ppm --measurements 0 -q",
        path,
    );
    let (auto, chosen) = judge("auto", path);
    assert_eq!(chosen, "network");
    // Global time is the mean of the clocks. What is not set right is off by seconds.
    assert!(auto < 1e-3, "{auto}");
}

/// By clocks that are minutes apart, what happened together lies in different windows, and the processes of a node have a clock each: 3 and 27 s off as long as nothing but messages set them.
#[test]
fn clocks_by_which_processes_had_ended_before_others_began_begin_together() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    for program in
        ["--pattern master-worker --ranks 4 --ranks-per-node 2", "--pattern ring --ranks 64 --ranks-per-node 4"]
    {
        clc(
            &format!("simulate right {program} --events 1k --clock perfect --measurements 0 --seed 3 --force -q"),
            path,
        );
        clc(
            "perturb right trace --per-process --clock all:offset=500s,all:drift=20ppm --seed 4 --measurements 0 --force -q",
            path,
        );
        let _ = std::fs::remove_dir_all(path.join("auto"));
        let (auto, chosen) = judge("auto", path);
        assert!(auto < 1e-6 && chosen != "linear", "{program}: {auto} {chosen}");
        let clocks = &json(&clc("trace --dry-run -q --report -", path))["clocks"];
        assert!(clocks["reason"].as_str().is_some_and(|reason| reason.contains("begin together")), "{clocks}");
        // What the recorded clocks disagree by is told of these.
        assert!(clocks["skew_recorded_seconds"].as_f64().is_some_and(|skew| skew > 100.0), "{clocks}");
    }
}

/// Nothing but the begin of the program tells how far apart the clocks of two groups are.
#[test]
fn groups_that_exchange_nothing_begin_together() {
    const MS: i64 = 1_000_000;
    const DAY: i64 = 86_400_000 * MS;
    // Of four processes on four nodes, the first two exchange messages, and the last two.
    let process = |number: u32, partner: u32, ahead: i64| -> Vec<(i64, Event)> {
        let mut events = vec![(0, Event::Enter(RegionId(1)))];
        for k in 1..60 {
            let at = MS * k + 30_000 * i64::from(number % 2);
            let answer = MS * k + 30_000 * i64::from(partner % 2);
            let (sent, received) = (send(at, partner), receive(answer, answer + 5_000, partner));
            events.extend(if number < partner { [sent, received] } else { [received, sent] }.into_iter().flatten());
        }
        events.push((70 * MS, Event::Leave(RegionId(1))));
        events.into_iter().map(|(time, event)| (time + ahead, event)).collect()
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let all = [(0, 1, 0), (1, 0, DAY), (2, 3, 9 * DAY), (3, 2, 4 * DAY)];
    written(path, &trace(all.iter().map(|&(own, other, ahead)| vec![process(own, other, ahead)]).collect()));
    let report = json(&clc("trace -o result -q --report -", path));
    assert_eq!(report["verdict"], "corrected");
    let check = json(&clc("check result --report -", path));
    let seconds = check["trace"]["span_seconds"].as_f64().expect("a duration");
    assert!((0.0699..0.0701).contains(&seconds), "{seconds}");
}

/// A century lies between these clocks: more than a correction may add.
#[test]
fn clocks_that_cannot_begin_together_are_no_failure() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let far = (1_i64 << 62) - 1_000_000_000_000;
    let process = |partner: u32, ahead: i64| -> Vec<(i64, Event)> {
        let events = (1..40).flat_map(|k| {
            let at = 1_000_000 * k;
            if partner == 1 { send(at, partner) } else { receive(at, at + 5_000, partner) }
        });
        let begin = [(0, Event::Enter(RegionId(1)))].into_iter();
        begin
            .chain(events)
            .chain([(50_000_000, Event::Leave(RegionId(1)))])
            .map(|(at, event)| (at + ahead, event))
            .collect()
    };
    written(path, &trace(vec![vec![process(1, far)], vec![process(0, 0)]]));
    let report = json(&clc("trace --dry-run -q --report -", path));
    let reason = report["clocks"]["reason"].as_str().expect("a reason");
    assert!(!reason.contains("begin together"), "{reason}");
    assert_eq!(report["verdict"], "corrected", "{reason}");
}

/// As EZTrace records: the run is longer than any of its processes, which is no reason to refuse an estimate.
#[test]
fn clocks_that_count_from_the_begin_of_each_process_are_set_apart() {
    const MS: i64 = 1_000_000;
    // The second process begins 100 ms after the first one, and goes on for as long once that has ended.
    let own = |begin: i64, messages: Vec<(i64, Event)>| -> Vec<(i64, Event)> {
        let in_region = [(begin, Event::Enter(RegionId(1)))].into_iter().chain(messages);
        let all = in_region.chain([(begin + 150 * MS, Event::Leave(RegionId(1)))]);
        all.map(|(time, event)| (time - begin, event)).collect()
    };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for k in 0..60 {
        let (at, late) = (101 * MS + 700_000 * k, 100 * (37 * k % 11));
        first.extend(send(at, 1));
        second.extend(receive(at, at + 5_000 + late, 0));
        second.extend(send(at + 20_000, 0));
        first.extend(receive(at + 20_000, at + 25_000 + 900 - late, 1));
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    written(path, &trace(vec![vec![own(0, first)], vec![own(100 * MS, second)]]));
    let report = json(&clc("trace --dry-run -q --report -", path));
    assert_eq!((report["clocks"]["chosen"].as_str(), &report["verdict"]), (Some("network"), &"corrected".into()));
    let apart = report["clocks"]["pairs"][0]["offset_seconds"].as_f64().expect("an offset");
    assert!((apart.abs() - 0.1).abs() < 1e-5, "{apart}");
}

/// Few messages, and nobody has measured the clocks: curves follow some of them, and leave violations that are twice as bad as those of lines.
#[test]
fn lines_take_the_place_of_curves_that_leave_worse_violations() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern mix --clock walk --ranks 12 --ranks-per-node 2 --events 500 --compute 50us --imbalance 0.1 --measurements 0 --asymmetry 0.2 --seed 187657023 -q",
        path,
    );
    let curves = json(&clc("trace --dry-run -q --presync network --report -", path));
    let lines = json(&clc("trace -o alone -q --report -", path));
    let worst = |of: &Value| of["violations"]["presynchronised"]["worst"]["ticks"].as_f64().expect("ticks");
    assert!(worst(&lines) < worst(&curves) / 2.0, "{} {}", worst(&lines), worst(&curves));
    assert_ne!(lines["clocks"]["chosen"], "network");
    let reason = lines["clocks"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("another estimate would leave"), "{reason}");
    run(with_ranks(3).args(["trace", "-o", "three", "-q"]).current_dir(path)).expect(0, "on three ranks");
    assert_same_tree(&path.join("alone"), &path.join("three"), "on three ranks");
}

#[test]
fn recorded_offsets_hold_clocks_where_receivers_always_wait() {
    // Compute time is so unbalanced that messages hold clocks to a waiting time only: without recorded offsets they are several times as far off.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern halo1d --clock linear,jump=20us --ranks 6 --ranks-per-node 2 --events 1k --compute 3ms \
         --imbalance 0.5 --seed 830585415 -q",
        path,
    );
    let ((linear, _), (network, _), (auto, chosen)) =
        (judge("linear", path), judge("network", path), judge("auto", path));
    assert!(network < 1.5 * linear, "{network} {linear}");
    // By more than a tenth would be worse, as in scripts/accuracy_random.
    assert!(auto <= 1.1 * linear, "{chosen}: {auto} {linear}");
}

#[test]
fn recorded_offsets_tell_on_which_way_messages_always_wait() {
    // Two nodes and a ring: one process of each sends to the other node, and one of the two receivers waits in every round, by hundreds of microseconds.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern ring --clock ntp --ranks 8 --ranks-per-node 4 --events 8k --compute 1ms --imbalance 0.5 \
         --seed 221149471 -q",
        path,
    );
    let ((linear, _), (auto, chosen)) = (judge("linear", path), judge("auto", path));
    assert!(linear > 20e-6, "the trace is no test: {linear}");
    assert_eq!(chosen, "network");
    // The middle of both ways would be 192 us away.
    assert!(auto < 12e-6, "{auto}");
}

#[test]
fn collective_operations_for_which_the_same_processes_always_wait_tell_the_clocks() {
    // The ends of those that waited come at about the same time.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern collectives --clock linear,sine=20us/0.5s --ranks 16 --ranks-per-node 1 --events 5k --compute 1ms \
         --imbalance 0.5 --seed 6 -q",
        path,
    );
    let ((linear, _), (auto, chosen)) = (judge("linear", path), judge("auto", path));
    assert!(linear > 5e-6, "the trace is no test: {linear}");
    assert_eq!(chosen, "network");
    assert!(auto < 2e-6, "{auto}");
}

#[test]
fn a_jump_does_not_hide_that_estimated_clocks_are_better() {
    // A few messages in the window of the jump are violated under the estimated clocks, too; all others are much better there.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern halo2d --clock jump,sine=5us/0.3s --ranks 4 --ranks-per-node 2 --events 8k --compute 300us \
         --imbalance 0.5 --measurements 5 --seed 49009525 -q",
        path,
    );
    let ((linear, _), (network, _), (auto, chosen)) =
        (judge("linear", path), judge("network", path), judge("auto", path));
    assert!(linear > 1.5 * network, "the trace is no test: {network} {linear}");
    assert_eq!((chosen.as_str(), auto), ("network", network));
}

/// Clocks that swing, in a program that hardly communicates: the offsets themselves show that they bend between one and the next.
#[test]
fn many_offsets_of_clocks_that_swing_are_joined_by_curves() {
    // Error with the default and with straight lines, and whether there are curves.
    let of = |clock: &str| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let simulate = "simulate trace --ranks 4 --ranks-per-node 1 --pattern ring --events 200 --compute 20ms --measurements 20 --seed 5";
        clc(&format!("{simulate} --quiet --clock {clock}"), path);
        let [(own, chosen), (lines, _)] = ["auto", "linear"].map(|presync| judge(presync, path));
        assert_eq!(chosen, "linear", "{clock}");
        let reason = json(&clc("trace --dry-run -q --report -", path))["clocks"]["reason"].to_string();
        (own, lines, reason.contains("joined by curves"))
    };
    let (own, lines, curved) = of("sine=200us/300ms");
    assert!(curved && own < lines / 4.0, "{own} {lines}");
    // Nothing shows that of clocks that only drift, or that walk.
    for clock in ["drift=20ppm", "walk"] {
        let (own, lines, curved) = of(clock);
        assert!(!curved && own <= lines * 1.01, "{clock}: {own} {lines}");
    }
}

/// An estimate has to be better than curves, and corrects these.
#[test]
fn estimated_clocks_are_on_top_of_curves_through_recorded_offsets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    clc(
        "simulate trace --pattern master-worker --clock linear,sine=200us/0.30s --ranks 8 --ranks-per-node 2 --events 5k --compute 1ms \
         --imbalance 0.1 --measurements 24 --seed 149 --quiet",
        path,
    );
    let ((own, chosen), (lines, _), (linear, _)) = (judge("auto", path), judge("network", path), judge("linear", path));
    assert_eq!(chosen, "network");
    assert!(own < lines / 2.0 && own < linear / 10.0, "{own} {lines} {linear}");
    let report = json(&clc("trace --dry-run -q --report -", path));
    assert!(report["clocks"]["reason"].as_str().is_some_and(|reason| reason.contains("joined by curves")));
}

/// Five offsets show nothing by themselves; that violations vanish does.
#[test]
fn a_few_offsets_are_joined_by_curves_where_violations_show_that_clocks_bend() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    clc(
        "simulate trace --pattern alltoall --clock sine=50us/0.20s --ranks 4 --ranks-per-node 1 --events 5k --compute 200us --imbalance 0.5 \
         --measurements 5 --seed 41 --quiet",
        path,
    );
    let ((own, chosen), (lines, _)) = (judge("auto", path), judge("linear", path));
    assert_eq!(chosen, "linear");
    assert!(own < lines / 3.0, "{own} {lines}");
    let report = json(&clc("trace --dry-run -q --report -", path));
    assert!(report["clocks"]["reason"].as_str().is_some_and(|reason| reason.contains("leave a fourth")));
}

/// Offsets from a single exchange each are off by microseconds, in which no message is early: prompt round trips tell straight clocks better.
#[test]
fn lines_take_the_place_of_recorded_offsets_that_prompt_round_trips_contradict() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let simulate = |clock: &str, exchanges: u32| {
        clc(
            &format!(
                "simulate trace --pattern master-worker --clock {clock} --ranks 4 --ranks-per-node 1 --events 1k --compute 1ms --imbalance 0.1 --exchanges {exchanges} --tail same-node=100ns,other-node=3us --seed 25 --force -q"
            ),
            path,
        );
    };
    simulate("linear", 1);
    let ((linear, _), (auto, chosen)) = (judge("linear", path), judge("auto", path));
    assert_eq!(chosen, "hull");
    assert!(auto < linear / 4.0 && auto < 0.1e-6, "{auto} {linear}");
    let report = json(&clc("trace --dry-run -q --report -", path));
    assert!(
        report["clocks"]["reason"].as_str().is_some_and(|reason| reason.contains("but straight lines")),
        "{report}"
    );
    run(crate::common::with_ranks(3).args(["trace", "-o", "three", "-q"]).current_dir(path)).expect(0, "three ranks");
    assert_same_tree(&path.join("auto"), &path.join("three"), "three ranks");
    // The quickest of a hundred exchanges leaves nothing to contradict.
    simulate("linear", 100);
    assert_ne!(json(&clc("trace --dry-run -q --report -", path))["clocks"]["chosen"], "hull");
}

/// By ten half round trips at least, as it was, these jumps of 20 us were no jumps, but bends over the windows around: 1.3 us.
#[test]
fn jumps_by_little_more_than_messages_take_are_found() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    clc(
        "simulate trace --pattern butterfly --clock linear,jump=20us --ranks 12 --ranks-per-node 2 --events 3k --compute 1ms --imbalance 0.2 --seed 867513398 -q",
        path,
    );
    let (auto, chosen) = judge("auto", path);
    assert_eq!(chosen, "network");
    assert!(auto < 0.3e-6, "{auto}");
}

/// Clocks that are right were moved by what two measurements of each, one exchange per measurement, were off.
#[test]
fn offsets_that_do_not_repeat_are_errors_of_measurement() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let simulate = |clock: &str| {
        clc(
            &format!(
                "simulate trace --pattern halo3d --clock {clock} --ranks 8 --ranks-per-node 1 --events 1k --compute 1ms --imbalance 0.2 --exchanges 1 --asymmetry 0.1 --seed 9 --force -q"
            ),
            path,
        );
    };
    simulate("perfect");
    let ((linear, _), (auto, chosen)) = (judge("linear", path), judge("auto", path));
    assert!(linear > 0.2e-6, "the trace is no test: {linear}");
    assert_eq!((chosen.as_str(), auto), ("none", 0.0));
    let report = json(&clc("trace --dry-run -q --report -", path));
    assert!(report["clocks"]["reason"].as_str().is_some_and(|reason| reason.contains("one may be off")), "{report}");
    // Those of clocks that show other times repeat.
    simulate("offset=10us");
    assert_ne!(json(&clc("trace --dry-run -q --report -", path))["clocks"]["chosen"], "none");
}

/// Each was measured three times, by one exchange, in a network with long delays: some offsets are off by more than messages take, and put receives before their sends.
#[test]
fn offsets_that_do_not_repeat_and_leave_violations_are_errors_of_measurement() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let simulate = |clock: &str| {
        clc(
            &format!(
                "simulate trace --pattern halo3d --clock {clock} --ranks 8 --ranks-per-node 1 --events 1k --compute 1ms --imbalance 0.2 --exchanges 1 --tail 20us --measurements 3 --seed 2 --force -q"
            ),
            path,
        );
    };
    simulate("perfect");
    let ((linear, _), (auto, chosen)) = (judge("linear", path), judge("auto", path));
    assert!(linear > 1e-6, "the trace is no test: {linear}");
    assert_eq!((chosen.as_str(), auto), ("none", 0.0));
    simulate("offset=1ms");
    assert_ne!(json(&clc("trace --dry-run -q --report -", path))["clocks"]["chosen"], "none");
}

/// Makes a recorded offset of a location (the first, the second, ...) larger by so much, or smaller if it is negative, in a file of the same length.
fn disturb(trace: &Path, location: u64, number: usize, by: i64) {
    let archive = Otf2Archive::open(trace).expect("an archive");
    let offset = archive.local_definitions(LocationId(location)).expect("definitions").clock_offsets[number].offset;
    // Integers come without the zeros in front, behind their length.
    let packed = |offset: i64| -> Vec<u8> {
        let length = 8 - offset.leading_zeros() as usize / 8;
        [&[length as u8], &offset.to_le_bytes()[..length]].concat()
    };
    let (old, new) = (packed(offset), packed(offset + if offset < 0 { -by } else { by }));
    assert_eq!(old.len(), new.len(), "{offset}");
    let file = archive.local_definition_path(LocationId(location));
    let mut bytes = std::fs::read(&file).expect("local definitions");
    let at = bytes.windows(old.len()).position(|bytes| bytes == old).expect("the offset");
    bytes[at..at + new.len()].copy_from_slice(&new);
    std::fs::write(&file, bytes).expect("local definitions");
}

#[test]
fn offsets_that_others_contradict_are_left_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let simulate = |nodes: &str| {
        // What was changed by hand is not replaced.
        let _ = std::fs::remove_dir_all(path.join("trace"));
        clc(&format!("simulate trace --pattern halo2d --ranks 8 {nodes} --events 2k --seed 5 -q"), path);
    };
    let reason = || -> String {
        let report = json(&clc("trace --dry-run -q --report -", path));
        report["clocks"]["reason"].as_str().expect("a reason").to_owned()
    };
    // The others on the node of process 5 have measured the same clock.
    simulate("--ranks-per-node 4 --measurements 2");
    let right = judge("auto", path).0;
    disturb(&path.join("trace"), 5, 0, 3_000_000);
    let said = reason();
    assert!(said.contains("1 recorded offset is left out: others contradict that of process 5 by 3.00 ms"), "{said}");
    run(with_ranks(3).args(["trace", "-o", "three", "-q"]).current_dir(path)).expect(0, "three ranks");
    std::fs::remove_dir_all(path.join("auto")).expect("the first result");
    let ((linear, _), (auto, _)) = (judge("linear", path), judge("auto", path));
    assert!(auto < right + 1e-6 && linear > 100e-6, "{auto} {right} {linear}");
    assert_same_tree(&path.join("auto"), &path.join("three"), "three ranks");
    // A clock of its own that jumps in between is no error; nor can one of two measurements be told.
    simulate("--ranks-per-node 1 --measurements 9 --clock offset=1ms,jump=2ms@50%");
    assert!(!reason().contains("left out"));
    simulate("--ranks-per-node 1 --measurements 9 --clock offset=1ms,drift=5ppm");
    disturb(&path.join("trace"), 5, 2, 300_000);
    assert!(reason().contains("of process 5 by 30"), "{}", reason());
    // The last one: it is wrong if nothing else is, and right where clocks have jumped shortly before.
    simulate("--ranks-per-node 1 --measurements 9 --clock offset=1ms,drift=5ppm");
    disturb(&path.join("trace"), 5, 8, 300_000);
    assert!(reason().contains("of process 5 by 30"), "{}", reason());
    let jumps =
        "--clock jump,sine=5us/0.3s --ranks 16 --ranks-per-node 1 --measurements 5 --events 500 --compute 300us";
    std::fs::remove_dir_all(path.join("trace")).expect("the trace before");
    clc(&format!("simulate trace --pattern halo2d {jumps} --imbalance 0 --asymmetry 0.2 --seed 39938287 -q"), path);
    assert!(!reason().contains("left out"), "{}", reason());
    simulate("--ranks-per-node 1 --measurements 2");
    disturb(&path.join("trace"), 5, 0, 3_000_000);
    assert!(!reason().contains("left out"));
}

#[test]
fn offsets_by_which_time_would_run_backwards_are_left_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    for (measurements, left) in [(2, "two"), (5, "one of five")] {
        let _ = std::fs::remove_dir_all(path.join("trace"));
        let options =
            "--pattern halo2d --ranks 4 --ranks-per-node 1 --events 2k --seed 5 -q --clock offset=100s,drift=5ppm";
        clc(&format!("simulate trace {options} --measurements {measurements}"), path);
        let right = judge("auto", path).0;
        // The first one too late, or the last one too early.
        let archive = Otf2Archive::open(&path.join("trace")).expect("an archive");
        let first = archive.local_definitions(LocationId(2)).expect("definitions").clock_offsets[0];
        let wrong = if first.offset > 0 { 0 } else { measurements - 1 };
        disturb(&path.join("trace"), 2, wrong, 90_000_000_000);
        let report = json(&clc("trace --dry-run -q --report -", path));
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains("time would run backwards are left out"), "{left}: {warnings}");
        run(with_ranks(3).args(["trace", "-o", "three", "-q"]).current_dir(path)).expect(0, "three ranks");
        std::fs::remove_dir_all(path.join("auto")).expect("the first result");
        let auto = judge("auto", path).0;
        assert!(auto < right + 1e-6, "{left}: {auto} {right}");
        assert_same_tree(&path.join("auto"), &path.join("three"), "three ranks");
        for result in ["auto", "three"] {
            std::fs::remove_dir_all(path.join(result)).expect("the result");
        }
        // Before and after are shown; who asks for the recorded offsets is told that they cannot be.
        clc("analyze trace -q", path);
        let asked = run(alone().args(["trace", "--presync", "linear", "--dry-run"]).current_dir(path));
        let asked = asked.expect(2, "an impossible clock");
        assert!(asked.stderr.contains("time would run backwards"), "{}", asked.stderr);
    }
}
