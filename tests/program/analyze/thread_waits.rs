//! Waiting of threads, worked out by hand.

use super::{analysis, judged, list, micros, waits};
use crate::by_hand::written;
use crate::common::{alone, run};
use crate::reference::model::Trace;
use crate::threads::{Threads, barrier, begin, end, fork, join, thread, trace};
use clc_trace::{Event, RegionId, ThreadEvent, ThreadLock};
use serde_json::Value;

/// Kinds in the order of reports.
const KINDS: [&str; 4] = ["wait_at_open_mp_barrier", "thread_lock_contention", "idle_threads", "limited_parallelism"];

/// The analysis as recorded of a trace whose first process has `threads`, once the judge agrees; the sums of the kinds have to be `expected` microseconds,
/// with so many waits.
#[track_caller]
fn as_recorded(threads: Threads, expected: [(f64, u64); 4]) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &partnered(threads));
    let result = analysis(&path, &["--as-recorded", "--windows", "1"]);
    let kinds = list(&result["waits"]["threads"]["kinds"]);
    for ((kind, name), expected) in kinds.iter().zip(KINDS).zip(expected) {
        assert_eq!(kind["kind"], name);
        let waiting = &kind["waiting"];
        let found = (micros(&waiting["before_seconds"]), waiting["before_count"].as_u64().expect("a number"));
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(waits(&result, "before", 1e9), judged(&path), "the judge");
    result
}

/// The main thread goes on until 9000, and there is a second process.
fn partnered(mut threads: Threads) -> Trace {
    let last = [enter(9000, 0), leave(9000, 0)];
    threads[0].0.extend(last);
    trace(vec![threads, vec![(last.to_vec(), 0)]])
}

fn enter(time: i64, region: u32) -> (i64, Event) {
    (time, Event::Enter(RegionId(region)))
}

fn leave(time: i64, region: u32) -> (i64, Event) {
    (time, Event::Leave(RegionId(region)))
}

/// (kind, call path, microseconds) of every entry, longest first.
fn by_call_path(result: &Value) -> Vec<(String, Vec<String>, f64)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let entry = |entry: &Value| {
        let path = list(&entry["call_path"]).iter().map(text).collect();
        (text(&entry["kind"]), path, micros(&entry["waiting"]["before_seconds"]))
    };
    list(&result["waits"]["threads"]["by_call_path"]).iter().map(entry).collect()
}

#[test]
fn barriers_of_teams_and_workers_without_work() {
    // Two parallel regions, of three threads and of two.
    let [a, b] = barrier(200, 310);
    let [c, d] = barrier(600, 650);
    let first = [enter(0, 0), fork(100, 3), begin(101), a, b, end(400), join(420)];
    let second = [enter(450, 1), leave(470, 1), fork(500, 2), begin(501), c, d, end(660), join(700), leave(900, 0)];
    let main = [&first[..], &second[..]].concat();
    let [a, b] = barrier(300, 311);
    let [c, d] = barrier(640, 651);
    let worker = vec![begin(110), a, b, end(410), begin(510), c, d, end(655)];
    let [a, b] = barrier(250, 312);
    let other = vec![begin(120), a, b, end(405)];
    // Barriers: 200..300 and 250..300, 600..640. Two workers have nothing to do in 0..100, 420..500 and 700..9000; 420..500 has three call paths' parts.
    // One of them has nothing to do in 500..700.
    let serial = 100.0 + 80.0 + 8300.0;
    let result = as_recorded(
        vec![(main, 0), (worker, 0), (other, 0)],
        [(190.0, 3), (0.0, 0), (2.0 * serial, 2 * (1 + 2 + 2)), (200.0, 1)],
    );
    let at = |kind: &str, path: &[&str], time| {
        (kind.to_owned(), path.iter().map(|&region| region.to_owned()).collect::<Vec<_>>(), time)
    };
    let barrier = "!$omp implicit barrier";
    let expected = [
        at(KINDS[2], &[], 16200.0),
        at(KINDS[2], &["region 0"], 2.0 * (100.0 + 60.0 + 200.0)),
        at(KINDS[3], &["region 0"], 200.0),
        at(KINDS[0], &["region 0", barrier], 140.0),
        at(KINDS[0], &[barrier], 50.0),
        at(KINDS[2], &["region 0", "region 1"], 40.0),
    ];
    assert_eq!(by_call_path(&result), expected);
    let process = |entry: &Value| entry["process"].as_u64().expect("a process");
    assert!(list(&result["waits"]["threads"]["by_process"]).iter().all(|entry| process(entry) == 0));
    // None of it is waiting of processes.
    assert_eq!(micros(&result["waits"]["total"]["before_seconds"]), 0.0);
    assert_eq!(micros(&result["execution"]["before"]["waiting_seconds"]), 0.0);
}

#[test]
fn a_lock_that_another_thread_holds() {
    let lock = |order| ThreadLock { model: 7, lock: 1, order };
    let acquire = |time, order| thread(time, ThreadEvent::AcquireLock(lock(order)));
    let release = |time, order| thread(time, ThreadEvent::ReleaseLock(lock(order)));
    // The other thread asks at 150 for what is held until 200, the main one at 250 for what is held until 300. Afterwards it takes it again, and the
    // other one long after that.
    let main = [acquire(100, 1), release(200, 1), enter(250, 1), acquire(310, 3), release(320, 3), leave(321, 1)];
    let again = [enter(330, 1), acquire(340, 4), release(350, 4), leave(351, 1)];
    let other = [enter(150, 1), acquire(210, 2), release(300, 2), leave(301, 1)];
    let late = [enter(400, 1), acquire(401, 5), release(402, 5), leave(403, 1)];
    let threads = vec![([&main[..], &again].concat(), 0), ([&other[..], &late].concat(), 0)];
    let result = as_recorded(threads, [(0.0, 0), (100.0, 2), (0.0, 0), (0.0, 0)]);
    let found = by_call_path(&result);
    assert_eq!(found, [(KINDS[1].to_owned(), vec!["region 1".to_owned()], 100.0)]);
}

#[test]
fn a_team_whose_records_are_missing_waits_for_nobody() {
    // The worker is in more teams than were forked: nobody knows in which of its barriers it met the main thread.
    let [a, b] = barrier(200, 310);
    let main = vec![fork(100, 2), begin(101), a, b, end(400), join(420)];
    let [a, b] = barrier(300, 311);
    let worker = vec![begin(50), end(60), begin(110), a, b, end(410)];
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &partnered(vec![(main, 0), (worker, 0)]));
    let result = analysis(&path, &["--as-recorded"]);
    let waiting = &list(&result["waits"]["threads"]["kinds"])[0]["waiting"];
    assert_eq!(waiting["before_count"], 0, "{waiting}");
}

#[test]
fn what_wrong_clocks_show_is_an_artefact() {
    // The worker arrives last, at 300; its clock is 250 behind, so the main thread seems to be the last one.
    let [a, b] = barrier(200, 310);
    let [c, d] = barrier(300, 311);
    let main = vec![fork(100, 2), begin(101), a, b, end(400), join(420)];
    let worker = vec![begin(290), c, d, end(410)];
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &partnered(vec![(main, 0), (worker, -250)]));
    let result = analysis(&path, &[]);
    let waiting = &list(&result["waits"]["threads"]["kinds"])[0]["waiting"];
    // Before: the worker enters at 50 and leaves at 61, 11 at most. After: the main thread waits for it.
    let of = |name: &str| micros(&waiting[name]);
    assert_eq!((of("before_seconds"), of("artefact_seconds")), (11.0, 11.0));
    assert!(of("after_seconds") > 40.0 && of("hidden_seconds") == of("after_seconds"), "{waiting}");
    let said = run(alone().arg("analyze").arg(&path)).expect(0, "analyze").stdout;
    assert!(said.contains("Wait at OpenMP Barrier") && said.contains("Idle Threads"), "{said}");
    let tables = directory.path().join("tables");
    let page = directory.path().join("page.html");
    let files = ["--csv".as_ref(), tables.as_os_str(), "--html".as_ref(), page.as_os_str()];
    run(alone().args(["analyze", "-q"]).args(files).arg(&path)).expect(0, "analyze");
    let table = std::fs::read_to_string(tables.join("thread_waits.csv")).expect("a table");
    assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("Wait at OpenMP Barrier,0.000011,")), "{table}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("Waiting time of threads by kind"));
}
