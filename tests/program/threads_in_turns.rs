//! Threads with clocks of their own that take turns on a window, complete each other's operations, or share a communicator in an order that nothing tells.

use crate::by_hand::written;
use crate::common::{alone, found, report, run};
use crate::reference::model::Trace;
use crate::threads::{Threads, barrier, begin, end, fork, join, trace};
use clc_trace::{Collective, CollectiveOp, CommId, Event, Root, Window, WindowCollective, WindowId, WindowTransfer};

const WINDOW: WindowId = WindowId(1);
const BARRIER: Collective =
    Collective { op: CollectiveOp::BARRIER, comm: CommId(0), root: Root::None, sent: 0, received: 0 };

/// How far the clocks of the workers of two processes are ahead, in microseconds.
const AHEAD: [[i64; 2]; 3] = [[-7000, 9000], [4000, 4000], [0, 130]];

/// Two processes of two threads, of which one makes each turn, between barriers of the team.
fn in_turns(ahead: [i64; 2], turn: impl Fn(i64, usize) -> [Vec<(i64, Event)>; 2]) -> Trace {
    let process = |(process, ahead): (usize, i64)| -> Threads {
        let mut threads: [Vec<(i64, Event)>; 2] = [vec![fork(10_010, 2), begin(10_020)], vec![begin(10_030)]];
        for k in 0..20_i64 {
            let time = 10_000 + 100 * (k + 1);
            // Not always in turns of the same length.
            let first = usize::from((k + process as i64) % 5 < 3);
            for (part, own) in turn(time, process).into_iter().enumerate() {
                threads[(first + part) % 2].extend(own);
                let between = time + 40 * (part as i64 + 1);
                threads[0].extend(barrier(between, between + 5));
                threads[1].extend(barrier(between + 1, between + 6));
            }
        }
        threads[0].extend([end(15_000), join(15_020)]);
        threads[1].push(end(15_010));
        let [main, worker] = threads;
        vec![(main, 0), (worker, ahead)]
    };
    trace(ahead.into_iter().enumerate().map(process).collect())
}

/// With each of these clocks, `checked` of a kind are checked and some violated, and after a correction none of the kind nor of the threads.
#[track_caller]
fn assert_kept(make: impl Fn([i64; 2]) -> Trace, kind: &str, checked: u64) {
    for ahead in AHEAD {
        let directory = tempfile::tempdir().expect("a directory");
        let path = written(directory.path(), &make(ahead));
        let before = report(&path, &["check", "--presync", "none"], 1);
        assert_eq!(before["matching"]["threads"][0]["left_out"], 0, "{}", before["matching"]);
        for presync in ["none", "auto"] {
            let out = directory.path().join(presync);
            run(alone().args(["-q", "--presync", presync, "-o"]).arg(&out).arg(&path)).expect(0, presync);
            let after = report(&out, &["check", "--presync", "none"], 0);
            assert_eq!(found(&after, kind), (checked, 0), "{ahead:?}, {presync}: {}", after["matching"]);
            for of_threads in ["fork", "thread_barrier"] {
                assert_eq!(found(&after, of_threads).1, 0, "{ahead:?}, {presync}");
            }
        }
    }
}

/// One thread accesses the window, and the other one fences.
#[test]
fn fences_of_threads_are_those_that_their_steps_tell() {
    let fence = WindowCollective {
        op: CollectiveOp::BARRIER,
        level: 3,
        window: WINDOW,
        root: Root::None,
        sent: 0,
        received: 0,
    };
    let put = |remote| Event::RmaPut(WindowTransfer { window: WINDOW, remote, bytes: 8, matching: 1 });
    let turn = |time: i64, process: usize| {
        let accessed = vec![(time, put(1 - process as u32))];
        [accessed, vec![(time + 50, Event::RmaCollectiveBegin), (time + 60, Event::RmaCollectiveEnd(fence))]]
    };
    let make = |ahead| {
        let mut trace = in_turns(ahead, turn);
        trace.windows = vec![Window { id: WINDOW, name: "w".into(), comm: CommId(0) }];
        trace
    };
    assert_kept(make, "fence", 20);
}

/// One thread begins an operation, the other one completes it.
#[test]
fn operations_that_threads_hand_on_are_kept() {
    let make = |ahead| {
        in_turns(ahead, |time, _| {
            let request = time as u64;
            let complete = Event::NonBlockingCollectiveComplete(BARRIER, request);
            [vec![(time, Event::NonBlockingCollectiveRequest(request))], vec![(time + 50, complete)]]
        })
    };
    assert_kept(make, "n_to_n", 20);
}

/// The worker begins in the team before that is forked, so its clock is another one. In the team it meets the partner before the main thread does, but nothing tells that: the
/// partner may leave the first operation when it wants, and the second one when both have begun theirs.
#[test]
fn of_operations_in_an_unknown_order_only_what_is_certain_is_kept() {
    let meet = |t: i64| vec![(t, Event::MpiCollectiveBegin), (t + 50, Event::MpiCollectiveEnd(BARRIER))];
    let main = [vec![fork(200, 2), begin(201)], meet(310), vec![end(400), join(420)]].concat();
    let worker = [vec![begin(150)], meet(210), vec![end(300)]].concat();
    let directory = tempfile::tempdir().expect("a directory");
    let partner = vec![([meet(211), meet(311)].concat(), 0)];
    let path = written(directory.path(), &trace(vec![vec![(main, 0), (worker, 0)], partner]));
    let before = report(&path, &["check", "--presync", "none"], 1);
    assert_eq!(before["matching"]["threads"][0]["left_out"], 0, "{}", before["matching"]);
    let warnings = before["warnings"].to_string();
    assert!(warnings.contains("what all possible orders have in common"), "{warnings}");
    let out = directory.path().join("out");
    run(alone().args(["-q", "--presync", "none", "-o"]).arg(&out).arg(&path)).expect(3, "only a part is known");
    let after = report(&out, &["check", "--presync", "none"], 0);
    assert_eq!(found(&after, "fork").1, 0, "{}", after["violations"]);
}
