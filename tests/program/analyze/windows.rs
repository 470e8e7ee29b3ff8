//! Waiting at windows, for synchronous sends, and what is told beside the kinds of waiting: small traces worked out by hand.

use super::by_hand::judged_as;
use super::hand_made::*;
use super::{list, micros};
use clc_trace::{
    Collective, CollectiveOp, CommId, Event, GroupId, MpiRank, Root, Window, WindowCollective, WindowGroup, WindowId,
    WindowLock, WindowTransfer,
};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

const WINDOW: WindowId = WindowId(3);
const OTHERS: [&str; 11] = [
    "MPI_Ssend",
    "MPI_Issend",
    "MPI_Win_fence",
    "MPI_Win_post",
    "MPI_Win_start",
    "MPI_Win_complete",
    "MPI_Win_wait",
    "MPI_Put",
    "MPI_Win_lock",
    "MPI_Win_unlock",
    "MPI_Barrier",
];
const SSEND: u32 = 7;
const ISSEND: u32 = 8;
const FENCE: u32 = 9;
const POST: u32 = 10;
const START: u32 = 11;
const COMPLETE: u32 = 12;
const WIN_WAIT: u32 = 13;
const PUT: u32 = 14;
const LOCK: u32 = 15;
const UNLOCK: u32 = 16;
const BARRIER: u32 = 17;

/// The kinds of waiting in the order of reports, then what is told beside them.
const NAMES_OF_ALL: [&str; 16] = [
    "late_sender",
    "late_receiver",
    "wait_at_nxn",
    "wait_at_barrier",
    "late_broadcast",
    "early_reduce",
    "early_scan",
    "wait_at_fence",
    "late_post",
    "early_wait",
    "lock_contention",
    "wrong_order_different_source",
    "wrong_order_same_source",
    "late_complete",
    "barrier_completion",
    "nxn_completion",
];

/// A trace with a window of all, and groups of one process each: group 2 is process 0, group 3 process 1 and so on.
fn made(ranks: &[Events]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let names = [&NAMES[..], &OTHERS].concat();
    let trace = hand_made_with(directory.path(), &names, ranks, |definitions| {
        definitions.windows = vec![Window { id: WINDOW, name: "w".into(), comm: CommId(0) }];
        definitions.groups = (0..ranks.len() as u32).map(|rank| (GroupId(rank + 2), [MpiRank(rank)].into())).collect();
    });
    (directory, trace)
}

/// The analysis of a trace as it is; the judge finds the same, and that is what `expected` has, in microseconds, and nothing else.
#[track_caller]
fn waits_of(ranks: &[Events], expected: &[(&str, i64)]) -> Value {
    let (_directory, trace) = made(ranks);
    let of = |name: &str| expected.iter().find(|(kind, _)| *kind == name).map_or(0, |(_, ticks)| *ticks);
    assert!(expected.iter().all(|(kind, _)| NAMES_OF_ALL.contains(kind)));
    judged_as(&trace, &NAMES_OF_ALL.map(of), &["--windows", "1"])
}

fn pairs(result: &Value) -> Vec<(String, u64, u64, f64)> {
    let pair = |p: &Value| {
        let process = |field: &str| p[field].as_u64().expect("a process");
        let kind = p["kind"].as_str().expect("a kind").to_owned();
        (kind, process("process"), process("cause"), micros(&p["before_seconds"]))
    };
    list(&result["waits"]["by_pair"]).iter().map(pair).collect()
}

fn fence(enter: u64, leave: u64) -> Events {
    let (op, root) = (CollectiveOp::BARRIER, Root::None);
    let end = WindowCollective { op, level: 3, window: WINDOW, root, sent: 0, received: 0 };
    region(FENCE, enter, leave, &[(enter, Event::RmaCollectiveBegin), (leave, Event::RmaCollectiveEnd(end))])
}

/// A step of an epoch with the group of one process; with memory where an epoch ends.
fn step(name: u32, enter: u64, leave: u64, with: u32) -> Events {
    let level = if matches!(name, POST | START) { 1 } else { 3 };
    let sync = WindowGroup { level, window: WINDOW, group: GroupId(with + 2) };
    let at = if matches!(name, POST | START) { enter } else { leave };
    region(name, enter, leave, &[(at, Event::RmaGroupSync(sync))])
}

fn put(enter: u64, leave: u64) -> Events {
    let transfer = WindowTransfer { window: WINDOW, remote: 0, bytes: 8, matching: 1 };
    region(PUT, enter, leave, &[(enter, Event::RmaPut(transfer))])
}

#[test]
fn a_fence_waits_for_the_last_one() {
    let ranks = [[put(5, 6), fence(10, 41)].concat(), fence(25, 40), fence(38, 42)];
    let result = waits_of(&ranks, &[("wait_at_fence", 28 + 13)]);
    assert_eq!(pairs(&result), [("wait_at_fence".into(), 0, 2, 28.0), ("wait_at_fence".into(), 1, 2, 13.0)]);
}

#[test]
fn an_exposure_waits_for_completion() {
    // 0 exposes from 10 and waits from 20; 1 accesses until 30 and completes at 45 only.
    let target = [step(POST, 10, 11, 1), step(WIN_WAIT, 20, 50, 1)].concat();
    let origin = [step(START, 12, 13, 0), put(25, 30), step(COMPLETE, 45, 47, 0)].concat();
    let result = waits_of(&[target, origin], &[("early_wait", 25), ("late_complete", 15)]);
    assert_eq!(pairs(&result), [("early_wait".into(), 0, 1, 25.0)]);
    // The target waits on the critical path, too.
    assert_eq!(result["critical_path"]["before"]["changes"], 1);
}

#[test]
fn an_access_without_operations_is_late_from_its_start_on() {
    let target = [step(POST, 10, 11, 1), step(WIN_WAIT, 20, 50, 1)].concat();
    let origin = [step(START, 24, 26, 0), step(COMPLETE, 45, 47, 0)].concat();
    waits_of(&[target, origin], &[("early_wait", 25), ("late_complete", 19)]);
}

#[test]
fn an_access_waits_for_the_post_where_it_blocks() {
    // The first start returns at once and complete blocks until the post at 40; the second start blocks until the post at 90.
    let target = [step(POST, 40, 41, 1), step(WIN_WAIT, 60, 61, 1), step(POST, 90, 91, 1), step(WIN_WAIT, 105, 106, 1)];
    let origin = [
        step(START, 10, 11, 0),
        put(12, 13),
        step(COMPLETE, 20, 45, 0),
        step(START, 70, 92, 0),
        put(93, 94),
        step(COMPLETE, 95, 96, 0),
    ];
    let result = waits_of(&[target.concat(), origin.concat()], &[("late_post", 20 + 20)]);
    assert_eq!(pairs(&result), [("late_post".into(), 1, 0, 40.0)]);
}

#[test]
fn a_synchronous_send_waits_for_its_receiver() {
    // 0 sends synchronously 10..50, the receive is posted at 45; then a request that is completed together with a receive.
    let first = [
        region(SSEND, 10, 50, &[(11, Event::MpiSend(message(1, 0)))]),
        region(IRECEIVE, 52, 53, &[(52, Event::MpiIrecvRequest(2))]),
        region(ISSEND, 55, 56, &[(55, Event::MpiIsend(message(1, 1), 1))]),
        region(WAIT, 60, 99, &[(80, Event::MpiIrecv(message(1, 2), 2)), (98, Event::MpiIsendComplete(1))]),
    ];
    let second = [
        region(RECEIVE, 45, 49, &[(48, Event::MpiRecv(message(0, 0)))]),
        region(SEND, 70, 71, &[(70, Event::MpiSend(message(0, 2)))]),
        region(RECEIVE, 95, 97, &[(97, Event::MpiRecv(message(0, 1)))]),
    ];
    let result = waits_of(&[first.concat(), second.concat()], &[("late_receiver", 35 + 35)]);
    assert_eq!(pairs(&result), [("late_receiver".into(), 0, 1, 70.0)]);
}

#[test]
fn a_synchronous_request_that_is_complete_before_its_receive_is_posted_waits_until_then() {
    // With wrong clocks: complete at 70, the receive is posted at 80, and the call is left at 99 for another reason.
    let first = [
        region(ISSEND, 55, 56, &[(55, Event::MpiIsend(message(1, 0), 1))]),
        region(WAIT, 60, 99, &[(70, Event::MpiIsendComplete(1))]),
    ];
    let second = region(RECEIVE, 80, 97, &[(96, Event::MpiRecv(message(0, 0)))]);
    waits_of(&[first.concat(), second.clone()], &[("late_receiver", 10)]);
    // One that need not be synchronous waits as long as its call is known to.
    let first = [
        region(ISEND, 55, 56, &[(55, Event::MpiIsend(message(1, 0), 1))]),
        region(WAIT, 60, 99, &[(70, Event::MpiIsendComplete(1))]),
    ];
    waits_of(&[first.concat(), second], &[("late_receiver", 20)]);
}

#[test]
fn messages_in_the_wrong_order() {
    // 0 receives tag 0 of 1 first, which is sent last; meanwhile 2 and then 1 have sent what it takes afterwards.
    let receive = |enter: u64, leave: u64, peer: u32, tag: u32| {
        region(RECEIVE, enter, leave, &[(leave - 1, Event::MpiRecv(message(peer, tag)))])
    };
    let first = [receive(10, 42, 1, 0), receive(43, 45, 2, 1), receive(46, 48, 1, 2)].concat();
    let send = |at: u64, tag: u32| region(SEND, at, at + 1, &[(at, Event::MpiSend(message(0, tag)))]);
    let ranks = [first.clone(), [send(30, 2), send(40, 0)].concat(), send(20, 1)];
    waits_of(&ranks, &[("late_sender", 30), ("wrong_order_different_source", 30)]);
    // If the first one that was taken later was of the same process, that is the case.
    let first = [receive(10, 42, 1, 0), receive(43, 45, 1, 2), receive(46, 48, 2, 1)].concat();
    let ranks = [first, [send(30, 2), send(40, 0)].concat(), send(20, 1)];
    waits_of(&ranks, &[("late_sender", 30), ("wrong_order_same_source", 30)]);
    // In order: late, but not for that.
    let first = [receive(10, 42, 1, 0), receive(43, 45, 2, 1)].concat();
    waits_of(&[first, send(40, 0), send(41, 1)], &[("late_sender", 30)]);
}

#[test]
fn what_a_barrier_takes_after_the_first_has_left() {
    let barrier = |enter: u64, leave: u64| {
        let mut events = collective(CollectiveOp::BARRIER, Root::None, enter, leave);
        events[0].1 = Event::Enter(clc_trace::RegionId(BARRIER));
        events
    };
    let reduce = |enter: u64, leave: u64| collective(CollectiveOp::ALLREDUCE, Root::None, enter, leave);
    // Enter 10, 20, 30; leave 35, 32, 40: 3 and 8 after the first one. Then 50, 55 and 52; leave 60, 70, 58: 2 and 12.
    let ranks = [
        [barrier(10, 35), reduce(50, 60)].concat(),
        [barrier(20, 32), reduce(55, 70)].concat(),
        [barrier(30, 40), reduce(52, 58)].concat(),
    ];
    let expected =
        [("wait_at_barrier", 30), ("barrier_completion", 11), ("wait_at_nxn", 5 + 3), ("nxn_completion", 14)];
    waits_of(&ranks, &expected);
}

#[test]
fn who_gives_nothing_completes_an_operation_as_others_do() {
    // 0 gives nothing, and 2 takes nothing: it may leave when it likes, and nobody counts from then.
    let part = |sent: u64, received: u64, enter: u64, leave: u64| {
        let end = Collective { op: CollectiveOp::ALLTOALL, comm: CommId(0), root: Root::None, sent, received };
        region(COLLECTIVE, enter, leave, &[(enter, Event::MpiCollectiveBegin), (leave, Event::MpiCollectiveEnd(end))])
    };
    // 0 waits 10..30 and takes 43..50 after 1 has left it; 1 waits 20..30 and nobody else that takes has left before it; 2 takes 43..45.
    let ranks = [part(0, 8, 10, 50), part(8, 8, 20, 43), part(8, 0, 30, 45)];
    waits_of(&ranks, &[("wait_at_nxn", 20 + 10), ("nxn_completion", 7 + 2)]);
    // Who neither gives nor takes has none.
    let ranks = [part(0, 0, 10, 50), part(8, 8, 20, 43), part(8, 8, 30, 45)];
    waits_of(&ranks, &[("wait_at_nxn", 10), ("nxn_completion", 2)]);
}

#[test]
fn a_lock_waits_for_the_one_that_holds_it() {
    let lock = |kind: u8, target: u32| WindowLock { window: WINDOW, remote: target, lock: 0, kind };
    // Request, acquisition and release; the record of the release is the last one of its call.
    let held = |kind: u8, target: u32, enter: u64, acquired: u64, release: u64| {
        let (request, acquire) = (Event::RmaRequestLock(lock(kind, target)), Event::RmaAcquireLock(lock(kind, target)));
        let taken = region(LOCK, enter, acquired + 1, &[(enter, request), (acquired, acquire)]);
        let ended = (release + 2, Event::RmaReleaseLock(lock(0, target)));
        [taken, region(UNLOCK, release, release + 2, &[ended])].concat()
    };
    let (exclusive, shared) = (0, 1);
    // 0 holds 10..30, 1 waits from 15 until that is released at 32; 2 takes another target. Afterwards two shared ones, which exclude nobody.
    let ranks = [
        [held(exclusive, 2, 10, 11, 30), held(shared, 2, 70, 71, 90)].concat(),
        [held(exclusive, 2, 15, 33, 50), held(shared, 2, 72, 73, 92)].concat(),
        held(exclusive, 0, 12, 13, 60),
    ];
    let result = waits_of(&ranks, &[("lock_contention", 17)]);
    assert_eq!(pairs(&result), [("lock_contention".into(), 1, 0, 17.0)]);
}
