//! Small traces whose waiting times, metrics and critical path are worked out by hand.

use super::hand_made::*;
use super::{analysis, check_sums, judged, list, micros, number, waits};
use crate::common::{alone, run};
use clc_trace::{Collective, CollectiveOp, CommId, Event, RegionId, Root};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn made(ranks: &[Events]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let trace = hand_made(directory.path(), ranks);
    (directory, trace)
}

/// The analysis with the times as they are, once the judge has found the waiting times `expected`: sums in microseconds by kind.
#[track_caller]
fn as_recorded(ranks: &[Events], expected: [i64; 7], more: &[&str]) -> Value {
    let (_directory, trace) = made(ranks);
    judged_as(&trace, &expected, more)
}

/// The same of a trace that is there; `expected` are the first of the kinds, the others are what the judge says.
#[track_caller]
pub(super) fn judged_as(trace: &Path, expected: &[i64], more: &[&str]) -> Value {
    let result = analysis(trace, &[&["--as-recorded"], more].concat());
    check_sums(&result, "by hand");
    let found = waits(&result, "before", 1e6);
    assert_eq!(found.iter().take(expected.len()).map(|(sum, _)| *sum).collect::<Vec<_>>(), expected);
    assert_eq!(found, judged(trace), "the judge");
    let [judged, found] = super::delays::judged(trace, &result, 1e6);
    assert_eq!(found, judged, "the judge of delays");
    result
}

/// (process, from, to) of every stretch of the critical path before, in microseconds.
fn stretches(result: &Value) -> Vec<(u64, f64, f64)> {
    let path = &result["critical_path"]["before"];
    assert_eq!(path["further_stretches"], 0);
    let stretch =
        |s: &Value| (s["process"].as_u64().expect("a process"), micros(&s["from_seconds"]), micros(&s["to_seconds"]));
    list(&path["stretches"]).iter().map(stretch).collect()
}

/// (process, cause, microseconds) of every pair, longest first.
fn pairs(result: &Value) -> Vec<(u64, u64, f64)> {
    let pair = |p: &Value| {
        let process = |field: &str| p[field].as_u64().expect("a process");
        (process("process"), process("cause"), micros(&p["before_seconds"]))
    };
    list(&result["waits"]["by_pair"]).iter().map(pair).collect()
}

#[test]
fn blocking_messages_and_a_barrier() {
    // 0: computes 0..30, sends 30..32 (received at 35), computes to 40, barrier 40..61, ends 70.
    // 1: computes 0..10, receives 10..36, computes to 60 but for a second receive 45..50, barrier 60..62, ends 64.
    // 2: begins at 5, computes to 20, sends 20..58 to 1, whose receive is posted at 45, barrier 58..61.
    let first = [
        vec![(0, Event::Enter(RegionId(USER)))],
        region(SEND, 30, 32, &[(30, Event::MpiSend(message(1, 0)))]),
        collective(CollectiveOp::BARRIER, Root::None, 40, 61),
        vec![(70, Event::Leave(RegionId(USER)))],
    ];
    let second = [
        vec![(0, Event::Enter(RegionId(USER)))],
        region(RECEIVE, 10, 36, &[(35, Event::MpiRecv(message(0, 0)))]),
        region(RECEIVE, 45, 50, &[(49, Event::MpiRecv(message(2, 1)))]),
        collective(CollectiveOp::BARRIER, Root::None, 60, 62),
        vec![(64, Event::Leave(RegionId(USER)))],
    ];
    let third = [
        vec![(5, Event::Enter(RegionId(USER)))],
        region(SEND, 20, 58, &[(20, Event::MpiSend(message(1, 1)))]),
        collective(CollectiveOp::BARRIER, Root::None, 58, 61),
        vec![(61, Event::Leave(RegionId(USER)))],
    ];
    let ranks = [first.concat(), second.concat(), third.concat()];
    // Late Sender 10..30 at 1; Late Receiver 20..45 at 2; barrier: 40..60 at 0, 58..60 at 2.
    let result = as_recorded(&ranks, [20, 25, 0, 22, 0, 0, 0], &["--windows", "7"]);
    assert_eq!(pairs(&result), [(2, 1, 25.0), (1, 0, 20.0), (0, 1, 20.0), (2, 1, 2.0)]);

    let execution = &result["execution"]["before"];
    assert_eq!(micros(&execution["seconds"]), 70.0);
    // MPI: 2 + 21, 26 + 5 + 2, 38 + 3. Idle: 0, 6, 5 + 9. The rest, 47 + 31 + 15, is computing.
    assert_eq!(micros(&execution["communication_seconds"]), 97.0);
    assert_eq!(micros(&execution["idle_seconds"]), 20.0);
    assert_eq!(micros(&execution["computation_seconds"]), 93.0);
    assert_eq!(micros(&execution["waiting_seconds"]), 67.0);
    let close = |field: &str, expected: f64| {
        let found = number(&execution[field]);
        assert!((found - expected).abs() < 1e-12, "{field}: {found} {expected}");
    };
    close("speedup", 93.0 / 70.0);
    close("efficiency", 93.0 / 210.0);
    close("load_balance", 31.0 / 47.0);
    close("communication_efficiency", 47.0 / 70.0);
    close("computation_to_communication", 93.0 / 97.0);
    // Two messages.
    assert_eq!(micros(&execution["granularity_seconds"]), 46.5);
    let own: Vec<f64> = list(&execution["by_process"]).iter().map(|p| micros(&p["computation_seconds"])).collect();
    assert_eq!(own, [47.0, 31.0, 15.0]);
    // Windows of 10 at three processes: 10 + 10 + 5 of 30, ...
    let degrees: Vec<f64> =
        list(&execution["parallelism"]).iter().map(|degree| (number(degree) * 30.0).round()).collect();
    assert_eq!(degrees, [25.0, 20.0, 10.0, 8.0 + 4.0, 5.0, 10.0, 9.0 + 2.0]);

    // Back from 70 on 0: to 60, when 1 came to the barrier; there to 30, when 0 sent; there to the beginning.
    let path = &result["critical_path"]["before"];
    assert_eq!((&path["changes"], &path["broken"]), (&Value::from(2), &Value::from(0)));
    assert_eq!(stretches(&result), [(0, 0.0, 30.0), (1, 30.0, 60.0), (0, 60.0, 70.0)]);
    // 0: user 0..30 and 61..70, barrier 60..61. 1: receives 30..36 and 45..50, user 36..45 and 50..60.
    let at = |name: &str| -> f64 {
        let regions = list(&path["by_region"]).iter();
        regions.filter(|entry| entry["region"] == name).map(|entry| micros(&entry["share"]["seconds"])).sum()
    };
    assert_eq!([at("user"), at("MPI_Recv"), at("MPI_Collective")], [58.0, 11.0, 1.0]);
    // Every window of 10 weighs 10 + 2 (10 - computing / 3).
    let weight = |degree: f64| 10.0 + 2.0 * (10.0 - degree / 3.0);
    let weights = list(&path["stretches"]).iter().map(|s| micros(&s["weight_seconds"]));
    let expected =
        [weight(25.0) + weight(20.0) + weight(10.0), weight(12.0) + weight(5.0) + weight(10.0), weight(11.0)];
    for (got, expected) in weights.zip(expected) {
        assert!((got - expected).abs() < 0.001, "{got} {expected}");
    }
    let windows: Vec<Option<u64>> = list(&path["windows"]).iter().map(Value::as_u64).collect();
    assert_eq!(windows, [0, 0, 0, 1, 1, 1, 0].map(Some));
    assert_eq!((&result["traffic"]["messages"], &result["traffic"]["bytes"]), (&Value::from(2), &Value::from(200)));
}

#[test]
fn blocking_collective_operations() {
    // Enters 10, 20, 30, all leave at 40; one operation after the other.
    let program = |rank: u64| {
        let mut events = Vec::new();
        let ops = [
            (CollectiveOp::ALLREDUCE, Root::None),
            (CollectiveOp::BCAST, Root::Rank(2)),
            (CollectiveOp::REDUCE, Root::Rank(0)),
            (CollectiveOp::SCAN, Root::None),
        ];
        for (number, (op, root)) in (0u64..).zip(ops) {
            // In the scan the lowest rank comes last.
            let place = if op == CollectiveOp::SCAN { 2 - rank } else { rank };
            events.extend(collective(op, root, 100 * number + 10 * place + 10, 100 * number + 40));
        }
        events
    };
    // Allreduce: 20 + 10. Bcast from the last one: 20 + 10. Reduce: the root comes first, the last one 20 later. Scan: 1 waits 10,
    // 2 waits 20 for rank 0.
    let ranks = [program(0), program(1), program(2)];
    let result = as_recorded(&ranks, [0, 0, 30, 0, 30, 20, 30], &["--windows", "1"]);
    // The scan does not end for rank 0 before the reduction did: that waited for its last sender, 2, until 230. 2 was the last one
    // before, too. It begins at 30, all others at 10.
    assert_eq!(stretches(&result), [(2, 0.0, 220.0), (0, 220.0, 330.0)]);
    let path = &result["critical_path"]["before"];
    assert_eq!(micros(&path["idle_seconds"]), 20.0);
    // They compute 70 + 70 + 90, 80 + 80 + 80 and 90 + 90 + 70.
    assert_eq!(result["execution"]["before"]["load_balance"].as_f64(), Some(240.0 / 250.0));
}

#[test]
fn members_without_data_keep_nobody_waiting() {
    let gather = |sent: u64, received: u64, enter: u64| {
        let end = Collective { op: CollectiveOp::GATHERV, comm: CommId(0), root: Root::Rank(0), sent, received };
        region(COLLECTIVE, enter, 40, &[(enter, Event::MpiCollectiveBegin), (40, Event::MpiCollectiveEnd(end))])
    };
    // 1 comes first but sends nothing: the root waits for 2.
    let result = as_recorded(
        &[gather(8, 16, 10), gather(0, 0, 15), gather(8, 0, 30)],
        [0, 0, 0, 0, 0, 20, 0],
        &["--windows", "1"],
    );
    assert_eq!(pairs(&result), [(0, 2, 20.0)]);
}

#[test]
fn an_operation_that_waits_for_what_it_receives_waits_for_no_receiver() {
    // Both send and receive, and complete both in one call 20..60. What 0 receives is sent at 50, what it sends is posted at 40.
    let first = [
        region(IRECEIVE, 5, 6, &[(5, Event::MpiIrecvRequest(1))]),
        region(ISEND, 10, 11, &[(10, Event::MpiIsend(message(1, 0), 2))]),
        region(WAIT, 20, 60, &[(59, Event::MpiIsendComplete(2)), (59, Event::MpiIrecv(message(1, 1), 1))]),
    ];
    let second = [
        region(IRECEIVE, 40, 41, &[(40, Event::MpiIrecvRequest(1))]),
        region(ISEND, 50, 51, &[(50, Event::MpiIsend(message(0, 1), 2))]),
        region(WAIT, 55, 60, &[(59, Event::MpiIsendComplete(2)), (59, Event::MpiIrecv(message(0, 0), 1))]),
    ];
    let result = as_recorded(&[first.concat(), second.concat()], [30, 0, 0, 0, 0, 0, 0], &["--windows", "1"]);
    assert_eq!(pairs(&result), [(0, 1, 30.0)]);
}

#[test]
fn an_operation_that_receives_what_was_sent_before_waits_for_a_receiver() {
    // Both complete what they send and what they receive in one call. What 0 receives is sent at 15, before it waits 20..60; what it sends is posted at 40. Then
    // the same again with a receive that is posted at 75, when 0 does not wait any more for what it sends.
    let exchange = |at: u64, mine: u32, leave: u64| {
        [
            region(ISEND, at, at + 1, &[(at, Event::MpiIsend(message(1, mine), 2))]),
            region(IRECEIVE, at + 1, at + 2, &[(at + 1, Event::MpiIrecvRequest(1))]),
            region(
                WAIT,
                at + 10,
                leave,
                &[(leave - 1, Event::MpiIsendComplete(2)), (leave - 1, Event::MpiIrecv(message(1, mine), 1))],
            ),
        ]
        .concat()
    };
    let first = [exchange(10, 0, 60), exchange(61, 1, 73)];
    let second = [
        region(ISEND, 15, 16, &[(15, Event::MpiIsend(message(0, 0), 1))]),
        region(RECEIVE, 40, 60, &[(59, Event::MpiRecv(message(0, 0)))]),
        region(ISEND, 62, 63, &[(62, Event::MpiIsend(message(0, 1), 2))]),
        region(RECEIVE, 75, 76, &[(75, Event::MpiRecv(message(0, 1)))]),
    ];
    let result = as_recorded(&[first.concat(), second.concat()], [0, 20, 0, 0, 0, 0, 0], &["--windows", "1"]);
    assert_eq!(pairs(&result), [(0, 1, 20.0)]);
}

#[test]
fn a_call_that_sends_and_receives_waits_for_no_receiver() {
    // What 0 receives 20..60 is sent before, what it sends in the same call is posted at 40.
    let both = [(20, Event::MpiSend(message(1, 0))), (59, Event::MpiRecv(message(1, 1)))];
    let first = region(SEND, 20, 60, &both);
    let second = [
        region(SEND, 10, 11, &[(10, Event::MpiSend(message(0, 1)))]),
        region(RECEIVE, 40, 60, &[(59, Event::MpiRecv(message(0, 0)))]),
    ];
    as_recorded(&[first, second.concat()], [0, 0, 0, 0, 0, 0, 0], &["--windows", "1"]);
}

#[test]
fn an_operation_that_completes_several_messages_waits_once() {
    // 1 posts two receives at once and waits for both 10..60; 0 sends at 30, 2 at 55. Later 0 sends again with a wait 72..95, the receive
    // of which 1 enters at 90.
    let first = [
        region(ISEND, 30, 31, &[(30, Event::MpiIsend(message(1, 0), 1))]),
        region(WAIT, 32, 33, &[(33, Event::MpiIsendComplete(1))]),
        region(ISEND, 70, 71, &[(70, Event::MpiIsend(message(1, 2), 2))]),
        region(WAIT, 72, 95, &[(95, Event::MpiIsendComplete(2))]),
    ];
    let second = [
        region(IRECEIVE, 5, 6, &[(5, Event::MpiIrecvRequest(1))]),
        region(IRECEIVE, 6, 7, &[(6, Event::MpiIrecvRequest(2))]),
        region(WAIT, 10, 60, &[(40, Event::MpiIrecv(message(0, 0), 1)), (58, Event::MpiIrecv(message(2, 1), 2))]),
        region(RECEIVE, 90, 96, &[(94, Event::MpiRecv(message(0, 2)))]),
    ];
    let third = region(SEND, 55, 57, &[(55, Event::MpiSend(message(1, 1)))]);
    // 10..55 for 2, not also 10..30 for 0. The second send of 0 waits 72..90.
    let result = as_recorded(&[first.concat(), second.concat(), third], [45, 18, 0, 0, 0, 0, 0], &["--windows", "1"]);
    assert_eq!(pairs(&result), [(1, 2, 45.0), (0, 1, 18.0)]);
    // From the last event, of 1 at 96, back to its wait for 2 until 55. What 0 waited for delays nobody.
    assert_eq!(stretches(&result), [(2, 0.0, 50.0), (1, 50.0, 91.0)]);
}

#[test]
fn a_non_blocking_collective_waits_in_its_wait() {
    // Begun at 10 and 40; 0 waits from 20, 1 from 50.
    let member = |begin: u64, wait: u64| {
        let end = Collective { op: CollectiveOp::ALLREDUCE, comm: CommId(0), root: Root::None, sent: 8, received: 8 };
        let request = region(COLLECTIVE, begin, begin + 5, &[(begin, Event::NonBlockingCollectiveRequest(1))]);
        let complete = region(WAIT, wait, 60, &[(59, Event::NonBlockingCollectiveComplete(end, 1))]);
        [request, complete].concat()
    };
    let result = as_recorded(&[member(10, 20), member(40, 50)], [0, 0, 20, 0, 0, 0, 0], &["--windows", "1"]);
    assert_eq!(pairs(&result), [(0, 1, 20.0)]);
    assert_eq!(stretches(&result), [(1, 0.0, 30.0), (0, 30.0, 50.0)]);
}

#[test]
fn a_wait_that_contradicts_itself_breaks_the_path_only_before() {
    // Sent at 50, received at 20: the wait lasts until 20 at most.
    let sender = region(SEND, 50, 52, &[(50, Event::MpiSend(message(1, 0)))]);
    let receiver =
        [region(RECEIVE, 10, 25, &[(20, Event::MpiRecv(message(0, 0)))]), region(USER, 30, 100, &[])].concat();
    let (_directory, trace) = made(&[sender, receiver]);
    let result = analysis(&trace, &["--presync", "linear", "--windows", "1"]);
    check_sums(&result, "broken");
    assert_eq!(result["critical_path"]["before"]["broken"], 1);
    assert_eq!(result["critical_path"]["after"]["broken"], 0);
    // As far as the receive allows before. The correction moves the receive by 30, and with it (backward amortisation, by 29.9) its
    // enter: the wait is as long as before, but now it ends when the message is sent.
    let total = &result["waits"]["total"];
    assert_eq!((micros(&total["before_seconds"]), micros(&total["after_seconds"])), (10.0, 10.0));
    assert_eq!((micros(&total["artefact_seconds"]), micros(&total["hidden_seconds"])), (0.0, 0.0));
    let recorded = run(alone().arg("analyze").arg(&trace).arg("--as-recorded")).expect(0, "as recorded");
    assert!(recorded.stdout.contains("broken by 1 violation"), "{}", recorded.stdout);
    assert!(recorded.stdout.contains("1 communications violate"), "{}", recorded.stdout);
}

#[test]
fn traces_without_anything() {
    let (_directory, empty) = made(&[vec![], vec![]]);
    let result = analysis(&empty, &[]);
    check_sums(&result, "empty");
    assert_eq!(result["waits"]["operations"], 0);
    assert_eq!(result["execution"]["before"]["load_balance"], Value::Null);
    run(alone().arg("analyze").arg(&empty)).expect(0, "an empty trace");
}

#[test]
fn traces_without_communication() {
    // Regions only; one event only. Ten ticks make ten windows, none of them empty.
    let ranks = [region(USER, 0, 10, &[]), vec![(5, Event::Enter(RegionId(USER)))]];
    let (_directory, quiet) = made(&ranks);
    let result = analysis(&quiet, &["--windows", "1"]);
    check_sums(&result, "no communication");
    let windows = &analysis(&quiet, &["--windows", "1000"])["execution"]["before"]["parallelism"];
    assert_eq!(list(windows).iter().map(number).collect::<Vec<_>>(), [0.5; 10]);
    assert_eq!(result["execution"]["after"]["communication_seconds"], 0.0);
    assert_eq!(result["critical_path"]["after"]["changes"], 0);
    let printed = run(alone().arg("analyze").arg(&quiet)).expect(0, "no communication");
    assert!(printed.stdout.contains("No process waited for another"), "{}", printed.stdout);
    assert!(!printed.stdout.contains("no region has the name"), "{}", printed.stdout);

    // No region is named like a function of MPI.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plain = hand_made_of(directory.path(), &["user", "simpi_send"], &ranks);
    let result = analysis(&plain, &["--windows", "1"]);
    check_sums(&result, "no MPI");
    assert_eq!(micros(&result["execution"]["before"]["computation_seconds"]), 10.0);
    let printed = run(alone().arg("analyze").arg(&plain)).expect(0, "no MPI");
    assert!(printed.stdout.contains("no region has the name of an MPI function"), "{}", printed.stdout);
}

#[test]
fn unmatched_messages_and_events_outside_of_regions_wait_for_nobody() {
    let lonely = region(RECEIVE, 10, 40, &[(35, Event::MpiRecv(message(0, 7)))]);
    let bare = vec![(60, Event::MpiRecv(message(0, 1)))];
    let sender = region(SEND, 50, 51, &[(50, Event::MpiSend(message(1, 1)))]);
    let (_directory, trace) = made(&[sender, [lonely, bare].concat()]);
    let result = analysis(&trace, &["--windows", "1"]);
    check_sums(&result, "unmatched");
    assert_eq!(micros(&result["waits"]["total"]["before_seconds"]), 0.0);
    assert_eq!(result["waits"]["without_region"], 1);
    let printed = run(alone().arg("analyze").arg(&trace)).expect(0, "unmatched");
    assert!(printed.stdout.contains("receives without a send"), "{}", printed.stdout);
}

#[test]
fn a_region_that_is_never_left_ends_with_the_last_event() {
    let sender = region(SEND, 30, 31, &[(30, Event::MpiSend(message(1, 0)))]);
    let receiver = vec![
        (10, Event::Enter(RegionId(RECEIVE))),
        (40, Event::MpiRecv(message(0, 0))),
        // Left once too often, elsewhere, and entered again.
        (42, Event::Leave(RegionId(RECEIVE))),
        (43, Event::Leave(RegionId(USER))),
        (45, Event::Enter(RegionId(RECEIVE))),
        (50, Event::MpiRequestTest(9)),
    ];
    let (_directory, trace) = made(&[sender, receiver]);
    let result = analysis(&trace, &["--as-recorded", "--windows", "1"]);
    check_sums(&result, "open regions");
    assert_eq!(micros(&result["waits"]["total"]["before_seconds"]), 20.0);
    // 30..31 at 0; 10..42 and 45..50 at 1.
    assert_eq!(micros(&result["execution"]["before"]["communication_seconds"]), 38.0);
}
