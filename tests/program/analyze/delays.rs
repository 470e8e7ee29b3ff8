//! Delay costs, worked out by hand.

use super::hand_made::*;
use super::{analysis, check_sums, list, micros, number, report, simulated};
use crate::common::{alone, anchor, fixtures, name, run, tool, with_ranks};
use clc_trace::{CollectiveOp, Event, Root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const ASSEMBLE: u32 = 7;
const SOLVE: u32 = 8;
const INITIALISE: u32 = 9;

fn made(ranks: &[Events]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let names = [&NAMES[..], &["assemble", "solve", "PMPI_Init_thread"]].concat();
    let trace = hand_made_of(directory.path(), &names, ranks);
    (directory, trace)
}

/// What the waiting is blamed on, in microseconds: regions, processes, and what is propagated, unexplained, not examined.
type Blamed = (Vec<(String, f64)>, Vec<(u64, f64)>, [f64; 3]);

/// Long-term costs of regions and processes, those that have any.
type LongTerm = (BTreeMap<String, f64>, BTreeMap<u64, f64>);

fn long_term(analysis: &Value) -> LongTerm {
    let delays = &analysis["waits"]["delays"];
    let cost = |entry: &Value| micros(&entry["long_term"]["before_seconds"]);
    let region = |entry: &Value| (entry["region"].as_str().expect("a name").to_owned(), cost(entry));
    let process = |entry: &Value| (entry["process"].as_u64().expect("a process"), cost(entry));
    let (mut regions, mut processes): LongTerm = (
        list(&delays["by_region"]).iter().map(region).collect(),
        list(&delays["by_process"]).iter().map(process).collect(),
    );
    let whole = cost(delays);
    assert!(
        (regions.values().sum::<f64>() - whole).abs() < 1e-3 && (processes.values().sum::<f64>() - whole).abs() < 1e-3
    );
    assert!(whole <= micros(&delays["propagated"]["before_seconds"]));
    regions.retain(|_, cost| *cost > 0.0);
    processes.retain(|_, cost| *cost > 0.0);
    (regions, processes)
}

fn blamed(analysis: &Value) -> Blamed {
    let delays = &analysis["waits"]["delays"];
    let cost = |entry: &Value| micros(&entry["cost"]["before_seconds"]);
    let region = |entry: &Value| (entry["region"].as_str().expect("a name").to_owned(), cost(entry));
    let process = |entry: &Value| (entry["process"].as_u64().expect("a process"), cost(entry));
    (
        list(&delays["by_region"]).iter().map(region).collect(),
        list(&delays["by_process"]).iter().map(process).collect(),
        ["propagated", "unexplained", "not_examined"].map(|name| micros(&delays[name]["before_seconds"])),
    )
}

/// What waiting in an archive is blamed on, in ticks: by the judge, and by the program. Regions of one name together.
#[track_caller]
pub(super) fn judged(trace: &Path, analysis: &Value, resolution: f64) -> [BTreeMap<String, i64>; 2] {
    let printed = run(tool("waiting_times.py").arg(anchor(trace)).arg("--delays")).expect(0, "the judge").stdout;
    let line = |line: &str| {
        let (name, ticks) = line.rsplit_once(',').expect("a name and a number");
        (name.to_owned(), ticks.parse().expect("a number"))
    };
    let judged: BTreeMap<String, i64> = printed.lines().map(line).collect();
    let delays = &analysis["waits"]["delays"];
    assert_eq!(delays["further_regions"], 0);
    let ticks = |cost: &Value| (number(&cost["before_seconds"]) * resolution).round() as i64;
    let mut found = BTreeMap::new();
    for entry in list(&delays["by_region"]) {
        let region = entry["region"].as_str().expect("a name");
        *found.entry(region.to_owned()).or_default() += ticks(&entry["cost"]);
        *found.entry(format!("long-term {region}")).or_default() += ticks(&entry["long_term"]);
    }
    found.retain(|_, ticks| *ticks > 0);
    for (name, field) in
        [("propagated", "propagated"), ("unexplained", "unexplained"), ("not examined", "not_examined")]
    {
        found.insert(name.to_owned(), ticks(&delays[field]));
    }
    [judged, found]
}

#[test]
fn an_independent_judge_blames_the_same() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut traces = Vec::new();
    for pattern in ["mix", "halo2d", "wavefront", "master-worker", "pipeline", "solver"] {
        for clock in ["ntp", "perfect"] {
            let more = format!("--pattern {pattern} --ranks 6 --events 2k --clock {clock} --seed 4 --measurements 2");
            traces.push(simulated(directory.path(), &format!("{pattern}-{clock}"), &more));
        }
    }
    for recorded in fixtures() {
        // As libotf2's Python can read it.
        let (native, archive) = (format!("{}.clct", name(&recorded)), directory.path().join(name(&recorded)));
        run(alone().arg("convert").arg(&recorded).arg(directory.path().join(&native)).arg("-q")).expect(0, &native);
        run(alone().arg("convert").arg(directory.path().join(&native)).arg(&archive).arg("-q")).expect(0, &native);
        traces.push(archive);
    }
    for trace in traces {
        let analysis = analysis(&trace, &["--as-recorded", "--top", "1000"]);
        let [judged, found] = judged(&trace, &analysis, 1e9);
        assert_eq!(found, judged, "{}", trace.display());
    }
}

#[track_caller]
fn assert_blamed(ranks: &[Events], regions: &[(&str, f64)], processes: &[(u64, f64)], others: [f64; 3]) -> LongTerm {
    let (_directory, trace) = made(ranks);
    let mut found = None;
    let expected: Blamed =
        (regions.iter().map(|&(name, cost)| (name.to_owned(), cost)).collect(), processes.to_vec(), others);
    for ranks in [1, 2, 3] {
        let command = if ranks == 1 { alone() } else { with_ranks(ranks) };
        let result = report(command, &trace, &["--as-recorded", "--windows", "1"])["analysis"].take();
        check_sums(&result, "by hand");
        assert_eq!(blamed(&result), expected, "{ranks} ranks");
        let [judged, program] = judged(&trace, &result, 1e6);
        assert_eq!(program, judged, "the judge");
        let long_term = long_term(&result);
        assert_eq!(*found.get_or_insert_with(|| long_term.clone()), long_term, "{ranks} ranks");
    }
    found.expect("a result")
}

fn barrier(enter: u64, leave: u64) -> Events {
    collective(CollectiveOp::BARRIER, Root::None, enter, leave)
}

fn send(peer: u32, tag: u32, enter: u64, leave: u64) -> Events {
    region(SEND, enter, leave, &[(enter, Event::MpiSend(message(peer, tag)))])
}

fn receive(peer: u32, tag: u32, enter: u64, leave: u64) -> Events {
    region(RECEIVE, enter, leave, &[(leave - 1, Event::MpiRecv(message(peer, tag)))])
}

#[test]
fn what_took_the_sender_longer_is_to_blame() {
    // 0 assembles 30 and solves 20, 1 assembles 10 and solves 15: 25 of waiting for 20 and 5. At the barrier 0 waits for 1, which begins with it.
    let first = [barrier(0, 10), region(ASSEMBLE, 10, 40, &[]), region(SOLVE, 40, 60, &[]), send(1, 0, 60, 62)];
    let second = [barrier(5, 10), region(ASSEMBLE, 10, 20, &[]), region(SOLVE, 20, 35, &[]), receive(0, 0, 35, 65)];
    let regions = [("assemble", 20.0), ("solve", 5.0)];
    assert_blamed(&[first.concat(), second.concat()], &regions, &[(0, 25.0)], [0.0, 5.0, 0.0]);
}

#[test]
fn who_has_waited_passes_it_on() {
    // 1 waits 30 for 0, which solves 40 instead of 10. 2 waits 45 for 1: that has waited 30, received for 5 more, and solved 10 more.
    let first = [barrier(0, 10), region(SOLVE, 10, 50, &[]), send(1, 0, 50, 52)];
    let second = [
        barrier(0, 10),
        region(SOLVE, 10, 20, &[]),
        receive(0, 0, 20, 55),
        region(SOLVE, 55, 65, &[]),
        send(2, 1, 65, 66),
    ];
    let third = [barrier(0, 10), region(SOLVE, 10, 20, &[]), receive(1, 1, 20, 70)];
    let ranks = [first.concat(), second.concat(), third.concat()];
    let regions = [("solve", 40.0), ("MPI_Recv", 5.0)];
    let (regions, processes) = assert_blamed(&ranks, &regions, &[(0, 30.0), (1, 15.0)], [30.0, 0.0, 0.0]);
    // The 30 that 1 passes on are for what 0 has solved.
    assert_eq!(regions, BTreeMap::from([("solve".to_owned(), 30.0)]));
    assert_eq!(processes, BTreeMap::from([(0, 30.0)]));
}

#[test]
fn what_is_passed_on_is_divided_as_the_wait_that_it_came_from() {
    // 1 waits 40 for 0: 30 of solving and 10 of assembling. 2 waits 61 for 1: 40 of waiting, 20 of solving and 1 of receiving. 3 waits 92 for 2: 61 of waiting, 30 of solving and 1 of receiving.
    let first = [barrier(0, 10), region(SOLVE, 10, 40, &[]), region(ASSEMBLE, 40, 50, &[]), send(1, 0, 50, 51)];
    let second = [barrier(0, 10), receive(0, 0, 10, 51), region(SOLVE, 51, 71, &[]), send(2, 1, 71, 72)];
    let third = [barrier(0, 10), receive(1, 1, 10, 72), region(SOLVE, 72, 102, &[]), send(3, 2, 102, 103)];
    let fourth = [barrier(0, 10), receive(2, 2, 10, 103)];
    let ranks = [first.concat(), second.concat(), third.concat(), fourth.concat()];
    let (regions, processes) = assert_blamed(
        &ranks,
        &[("solve", 80.0), ("assemble", 10.0), ("MPI_Recv", 2.0)],
        &[(0, 40.0), (1, 21.0), (2, 31.0)],
        [101.0, 0.0, 0.0],
    );
    // The wait of 2 has led to 61 at 3: 20 for solving, 1 for receiving, and 40 for the wait of 1. That has led to 40 at 2 and these 40: 60 for solving, 20 for assembling.
    let expected = [("solve", 80.0), ("assemble", 20.0), ("MPI_Recv", 1.0)];
    assert_eq!(regions, expected.map(|(name, cost)| (name.to_owned(), cost)).into());
    assert_eq!(processes, BTreeMap::from([(0, 80.0), (1, 21.0)]));
}

#[test]
fn what_was_before_the_last_message_does_not_count() {
    // The first wait is for 10 of solving since the beginning, the second one for what came after the first message: 30 of solving, while 1 assembled.
    let first = [region(SOLVE, 0, 10, &[]), send(1, 0, 10, 11), region(SOLVE, 11, 41, &[]), send(1, 1, 41, 42)];
    let second = [receive(0, 0, 0, 12), region(ASSEMBLE, 12, 22, &[]), receive(0, 1, 22, 45)];
    assert_blamed(&[first.concat(), second.concat()], &[("solve", 29.0)], &[(0, 29.0)], [0.0; 3]);
}

#[test]
fn a_receiver_can_be_to_blame() {
    let first = send(1, 0, 10, 40);
    let second = [region(SOLVE, 0, 30, &[]), receive(0, 0, 30, 42)].concat();
    assert_blamed(&[first, second], &[("solve", 20.0)], &[(1, 20.0)], [0.0; 3]);
}

#[test]
fn the_last_one_at_a_barrier_is_to_blame_for_all() {
    // Since the first barrier 2 solves 30 and assembles 10, 0 solves 10 and waits 30, 1 solves 25 and assembles 5, and waits 10. After it nobody is in a region.
    let own = |solve: u64, assemble: u64| {
        let (solved, assembled) = (10 + solve, 10 + solve + assemble);
        let mut events = [barrier(0, 10), region(SOLVE, 10, solved, &[])].concat();
        if assemble > 0 {
            events.extend(region(ASSEMBLE, solved, assembled, &[]));
        }
        events.extend(barrier(assembled, 52));
        events
    };
    let ranks = [own(10, 0), own(25, 5), own(30, 10)];
    // Of the 30 of 0, 20 are for solving and 10 for assembling; of the 10 of 1, 5 and 5.
    assert_blamed(&ranks, &[("solve", 25.0), ("assemble", 15.0)], &[(2, 40.0)], [0.0; 3]);
}

#[test]
fn exchanges_of_non_blocking_messages_count_from_the_one_before() {
    // Both exchange twice; the second time 0 comes later, since it solves 30 instead of 10. What it does within its first exchange does not matter.
    let exchange = |peer: u32, begin: u64, assemble: u64, wait: u64, leave: u64| {
        let (mine, other) = if peer == 1 { (0, 1) } else { (1, 0) };
        let inside = [(leave - 1, Event::MpiIrecv(message(peer, other), 1)), (leave - 1, Event::MpiIsendComplete(2))];
        [
            region(IRECEIVE, begin, begin + 1, &[(begin, Event::MpiIrecvRequest(1))]),
            region(ISEND, begin + 1, begin + 2, &[(begin + 1, Event::MpiIsend(message(peer, mine), 2))]),
            region(ASSEMBLE, begin + 2, begin + 2 + assemble, &[]),
            region(WAIT, wait, leave, &inside),
        ]
        .concat()
    };
    let first = [exchange(1, 0, 8, 10, 12), region(SOLVE, 12, 42, &[]), exchange(1, 42, 6, 50, 52)];
    let second = [exchange(0, 0, 6, 10, 12), region(SOLVE, 12, 22, &[]), exchange(0, 22, 6, 30, 46)];
    assert_blamed(&[first.concat(), second.concat()], &[("solve", 13.0)], &[(0, 13.0)], [0.0; 3]);
}

#[test]
fn long_intervals_have_all_that_was_done() {
    // Twice 0 solves 700 times for 1 and sends to 2 for 1, which waits for nothing, and then it sends to 1, which has solved for 10.
    let sends = |begin: u64, last: u32| {
        let one = |k: u64| {
            let at = begin + 2 * k;
            [region(SOLVE, at, at + 1, &[]), send(2, 2, at + 1, at + 2)].concat()
        };
        let mut events: Events = (0..700).flat_map(one).collect();
        events.extend(send(1, last, begin + 1400, begin + 1401));
        events
    };
    let first = [sends(0, 0), sends(1401, 1)];
    let second =
        [region(SOLVE, 0, 10, &[]), receive(0, 0, 10, 1402), region(SOLVE, 1402, 1412, &[]), receive(0, 1, 1412, 2803)];
    let third = (0..1400).flat_map(|k| receive(0, 2, 4000 + 2 * k, 4002 + 2 * k)).collect();
    // 1390 of waiting for 690 and 700; then 1389, of which 689.5 and 699.5.
    let regions = [("MPI_Send", 700.0 + 699.0), ("solve", 690.0 + 689.0)];
    assert_blamed(&[first.concat(), second.concat(), third], &regions, &[(0, 2778.0)], [0.0, 1.0, 0.0]);
}

#[test]
fn a_message_that_nobody_waited_for_synchronises_nobody() {
    // 1 receives at 19 what was sent at 10, and then waits 20 for the next: since the beginning 0 has solved 36 and sent 4.
    let first = [region(SOLVE, 0, 10, &[]), send(1, 0, 10, 14), region(SOLVE, 14, 40, &[]), send(1, 1, 40, 41)];
    let second = [region(ASSEMBLE, 0, 19, &[]), receive(0, 0, 19, 20), receive(0, 1, 20, 45)];
    assert_blamed(&[first.concat(), second.concat()], &[("solve", 18.0), ("MPI_Send", 2.0)], &[(0, 20.0)], [0.0; 3]);
}

#[test]
fn no_more_is_blamed_on_a_sender_than_what_it_took_longer() {
    // 0 begins at 25 only.
    let first = [region(SOLVE, 25, 30, &[]), send(1, 0, 30, 31)].concat();
    assert_blamed(&[first, receive(0, 0, 0, 32)], &[("solve", 5.0)], &[(0, 5.0)], [0.0, 25.0, 0.0]);
}

#[test]
fn what_follows_the_synchronisation_in_its_operation_counts() {
    // 1 leaves the barrier 15 after 0.
    let first = [barrier(0, 10), receive(1, 0, 10, 27)].concat();
    let second = [barrier(0, 25), send(0, 0, 25, 26)].concat();
    assert_blamed(&[first, second], &[("MPI_Collective", 15.0)], &[(1, 15.0)], [0.0; 3]);
}

#[test]
fn waiting_for_a_third_process_in_the_synchronising_operation_is_passed_on() {
    // In one call 1 sends to 0 and receives from 2, for which it waits 10..30; 0 has received at 12, and waits then 28 for the next message of 1: 18 of them for 2.
    let both = [(10, Event::MpiSend(message(0, 0))), (39, Event::MpiRecv(message(2, 0)))];
    let first = [receive(1, 0, 5, 12), receive(1, 1, 12, 42)].concat();
    let second = [region(SEND, 10, 40, &both), send(0, 1, 40, 41)].concat();
    let third = [region(SOLVE, 0, 30, &[]), send(1, 0, 30, 31)].concat();
    let regions = [("solve", 20.0), ("MPI_Send", 10.0)];
    assert_blamed(&[first, second, third], &regions, &[(2, 20.0), (1, 10.0)], [18.0, 5.0, 0.0]);
}

#[test]
fn a_root_is_synchronised_with_those_that_waited_for_it() {
    // 0 enters the broadcast at 20, 1 at 10, 2 at 21. Then 1 waits 11 for what 0 did since, 2 waits 9 for all that 0 did.
    let broadcast = |enter: u64, leave: u64| collective(CollectiveOp::BCAST, Root::Rank(0), enter, leave);
    let first = [
        region(ASSEMBLE, 0, 20, &[]),
        broadcast(20, 22),
        region(SOLVE, 22, 32, &[]),
        send(2, 0, 32, 33),
        send(1, 0, 33, 34),
    ];
    let second = [broadcast(10, 22), receive(0, 0, 22, 36)];
    let third = [broadcast(21, 23), receive(0, 0, 23, 36)];
    let ranks = [first.concat(), second.concat(), third.concat()];
    let regions = [("assemble", 16.0), ("solve", 13.0), ("MPI_Send", 1.0)];
    assert_blamed(&ranks, &regions, &[(0, 30.0)], [0.0; 3]);
}

#[test]
fn processes_begin_together_when_mpi_is_initialised() {
    // What was before does not count, but that 0 was done with it 30 later than 1 does.
    let first =
        [region(SOLVE, 0, 20, &[]), region(INITIALISE, 20, 50, &[]), region(SOLVE, 50, 60, &[]), send(1, 0, 60, 62)];
    let second = [region(INITIALISE, 5, 20, &[]), receive(0, 0, 20, 65)];
    let regions = [("PMPI_Init_thread", 30.0), ("solve", 10.0)];
    assert_blamed(&[first.concat(), second.concat()], &regions, &[(0, 40.0)], [0.0; 3]);
}

#[test]
fn tables_text_and_page_have_them() {
    let first = [barrier(0, 10), region(SOLVE, 10, 60, &[]), send(1, 0, 60, 62)];
    let second = [barrier(0, 10), region(ASSEMBLE, 10, 35, &[]), receive(0, 0, 35, 65)];
    let (directory, trace) = made(&[first.concat(), second.concat()]);
    let (tables, page) = (directory.path().join("tables"), directory.path().join("page.html"));
    let files = ["--csv".as_ref(), tables.as_os_str(), "--html".as_ref(), page.as_os_str()];
    let said = run(alone().args(["analyze", "--as-recorded"]).args(files).arg(&trace)).expect(0, "analyze").stdout;
    assert!(said.contains("What made others wait"), "{said}");
    let table = std::fs::read_to_string(tables.join("delays_by_region.csv")).expect("a table");
    assert!(table.lines().nth(1).is_some_and(|line| line == "delay,solve,0.000025,,0,"), "{table}");
    let table = std::fs::read_to_string(tables.join("delays_by_process.csv")).expect("a table");
    assert!(table.lines().nth(1).is_some_and(|line| line == "0,0.000025,,0,"), "{table}");
    assert!(std::fs::read_to_string(page).expect("a page").contains("Delay costs by region"));
    // Both stages are blamed.
    let both = analysis(&trace, &[]);
    check_sums(&both, "both stages");
    assert!(list(&both["waits"]["delays"]["by_region"])[0]["cost"]["after_seconds"].is_number());
}
