//! Threads whose clocks are not those of their processes, by hand: what is a timeline of its own, and what ties it to the others.

use crate::accelerators::arrows;
use crate::by_hand::{self, written};
use crate::common::{alone, found, report, run};
use crate::reference::against::write_with;
use crate::reference::model::{BARRIER, Process, REGION_NAMES, Recorded, Trace};
use clc_trace::{
    ClockOffset, Collective, CollectiveOp, CommId, CommMembers, Communicator, Event, GroupId, Message, MpiRank,
    RegionId, Root, ThreadEvent, ThreadLock, ThreadStart, ThreadTask, Window, WindowGroup, WindowId,
};
use serde_json::Value;
use std::path::Path;

pub(crate) const US: i64 = 1000;
const TEAM: CommId = CommId(5);

/// Threads of a process: events at true times in microseconds, and how far the thread's clock is ahead.
pub(crate) type Threads = Vec<(Vec<(i64, Event)>, i64)>;

pub(crate) fn trace(processes: Vec<Threads>) -> Trace {
    let world: Vec<MpiRank> = (0..processes.len() as u32).map(MpiRank).collect();
    let communicator = |id, members| Communicator { id, name: String::new(), members, global_ranks: false };
    let location = |(events, ahead): (Vec<(i64, Event)>, i64)| -> Vec<Recorded> {
        events.into_iter().map(|(time, event)| Recorded { time: (time + ahead) * US, event }).collect()
    };
    let process = |(node, threads): (usize, Threads)| Process {
        node: node as u32,
        locations: threads.into_iter().map(location).collect(),
    };
    Trace {
        processes: processes.into_iter().enumerate().map(process).collect(),
        communicators: vec![
            communicator(CommId(0), CommMembers::Intra(world.into())),
            communicator(TEAM, CommMembers::NotMpi),
        ],
        ..Trace::default()
    }
}

pub(crate) fn thread(time: i64, step: ThreadEvent) -> (i64, Event) {
    (time, Event::Thread(step))
}

pub(crate) fn fork(time: i64, threads: u32) -> (i64, Event) {
    thread(time, ThreadEvent::Fork { model: 3, threads })
}

pub(crate) fn join(time: i64) -> (i64, Event) {
    thread(time, ThreadEvent::Join { model: 3 })
}

pub(crate) fn begin(time: i64) -> (i64, Event) {
    thread(time, ThreadEvent::TeamBegin(TEAM))
}

pub(crate) fn end(time: i64) -> (i64, Event) {
    thread(time, ThreadEvent::TeamEnd(TEAM))
}

pub(crate) fn barrier(arrive: i64, depart: i64) -> [(i64, Event); 2] {
    [(arrive, Event::Enter(RegionId(BARRIER))), (depart, Event::Leave(RegionId(BARRIER)))]
}

pub(crate) fn message(peer: u32) -> Message {
    Message { peer, comm: CommId(0), tag: 1, length: 8 }
}

/// Two processes that exchange a message; the first has `threads`.
fn with_partner(mut threads: Threads) -> Trace {
    threads[0].0.push((9000, Event::MpiSend(message(1))));
    trace(vec![threads, vec![(vec![(9010, Event::MpiRecv(message(0)))], 0)]])
}

fn assert_corrected(trace: &Trace, kind: &str, checked: u64, violated: u64) {
    by_hand::assert_corrected(trace, kind, checked, violated, &["none", "auto"]);
}

fn team(ahead: i64) -> Trace {
    let [a, b] = barrier(200, 310);
    let [c, d] = barrier(300, 311);
    let main = vec![fork(100, 2), begin(101), a, b, end(400), join(420)];
    let worker = vec![begin(110), c, d, end(410)];
    with_partner(vec![(main, 0), (worker, ahead)])
}

#[test]
fn threads_that_share_a_clock_are_checked_and_stay_together() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &team(0));
    let report = report(&path, &["check"], 0);
    assert_eq!((found(&report, "fork"), found(&report, "thread_barrier")), ((2, 0), (1, 0)));
    assert_eq!(report["matching"]["threads"][0]["one_timeline"], 2);
    assert_eq!(report["matching"]["threads"][0]["several_timelines"], 0);
}

#[test]
fn a_team_that_begins_before_its_fork_has_another_clock() {
    assert_corrected(&team(-50), "fork", 2, 1);
}

#[test]
fn a_team_that_ends_after_its_join_has_another_clock() {
    assert_corrected(&team(50), "fork", 2, 1);
}

#[test]
fn nobody_leaves_a_barrier_before_all_have_arrived() {
    // The fork and the join allow it, the barrier does not: the worker arrives at 320, and the main thread leaves at 310.
    let [a, b] = barrier(200, 310);
    let [c, d] = barrier(300, 311);
    let main = vec![fork(10, 2), begin(11), a, b, end(400), join(900)];
    let worker = vec![begin(110), c, d, end(410)];
    assert_corrected(&with_partner(vec![(main, 0), (worker, 20)]), "thread_barrier", 2, 1);
}

/// Perfetto shows for each thread the last of the others that has entered the barrier.
#[test]
fn who_leaves_a_barrier_waits_for_the_last_of_the_others() {
    let thread = |entered: i64, left: i64| [vec![begin(110)], barrier(entered, left).to_vec(), vec![end(500)]].concat();
    let main = [vec![fork(100, 3)], thread(300, 402), vec![join(510)]].concat();
    let all = with_partner(vec![(main, 0), (thread(200, 401), 0), (thread(250, 400), 0)]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &all);
    let found = arrows(&path, "thread_barrier", &[]);
    // Locations, and times since the first event.
    let expected: [[(u64, f64); 2]; 3] = [[(2, 150.0), (0, 302.0)], [(0, 200.0), (1, 301.0)], [(0, 200.0), (2, 300.0)]];
    assert_eq!(found, expected);
}

#[test]
fn a_thread_begins_after_its_creation_and_ends_before_the_wait_for_it() {
    let start = ThreadStart { contingent: TEAM, sequence: 3 };
    let main = vec![thread(100, ThreadEvent::Create(start)), thread(500, ThreadEvent::Wait(start))];
    let other = vec![thread(110, ThreadEvent::Begin(start)), thread(490, ThreadEvent::End(start))];
    assert_corrected(&with_partner(vec![(main.clone(), 0), (other.clone(), -30)]), "thread_creation", 2, 1);
    assert_corrected(&with_partner(vec![(main, 0), (other, 30)]), "thread_creation", 2, 1);
}

#[test]
fn a_task_runs_after_it_was_created() {
    let task = ThreadTask { team: TEAM, creator: 0, generation: 4 };
    let main = vec![thread(100, ThreadEvent::TaskCreate(task))];
    let other = vec![thread(110, ThreadEvent::TaskSwitch(task)), thread(150, ThreadEvent::TaskComplete(task))];
    assert_corrected(&with_partner(vec![(main, 0), (other, -30)]), "task", 1, 1);
}

#[test]
fn a_lock_is_acquired_after_its_release() {
    let lock = |order| ThreadLock { model: 7, lock: 1, order };
    let acquire = |time, order| thread(time, ThreadEvent::AcquireLock(lock(order)));
    let release = |time, order| thread(time, ThreadEvent::ReleaseLock(lock(order)));
    let main = vec![acquire(100, 1), release(200, 1), acquire(400, 3), release(500, 3)];
    let other = vec![acquire(210, 2), release(300, 2)];
    assert_corrected(&with_partner(vec![(main, 0), (other, -30)]), "thread_lock", 2, 1);
}

/// The worker arrives at a barrier in the same microsecond in which the main thread leaves it and sends, and what it had received in that microsecond was sent later. The
/// location of the main thread comes first, but what it does at that time comes last.
#[test]
fn steps_at_one_time_stay_in_order() {
    let [a, b] = barrier(250, 300);
    let [c, d] = barrier(300, 320);
    let main = vec![fork(100, 2), begin(101), a, b, (300, Event::MpiSend(message(2))), end(400), join(420)];
    let worker = vec![begin(110), (300, Event::MpiRecv(message(1))), c, d, end(410)];
    let others = [(400, Event::MpiSend(message(0))), (301, Event::MpiRecv(message(0)))];
    let others = others.map(|event| vec![(vec![event], 0)]);
    let trace = trace([vec![vec![(main, 0), (worker, 0)]], others.into()].concat());
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace);
    let messages = |report: &Value| report["violations"]["presynchronised"]["point_to_point"]["violated"].clone();
    let before = report(&path, &["check", "--presync", "none"], 1);
    assert_eq!((found(&before, "thread_barrier"), messages(&before)), ((1, 0), 1.into()));
    for presync in ["none", "auto"] {
        let out = directory.path().join(presync);
        run(alone().args(["-q", "--presync", presync, "-o"]).arg(&out).arg(&path)).expect(0, presync);
        let after = report(&out, &["check", "--presync", "none"], 0);
        assert_eq!((found(&after, "thread_barrier"), messages(&after)), ((1, 0), 0.into()), "{presync}");
    }
}

/// The second thread has steps only with the first one, whose clock is seen to be wrong by those of the main thread; merged with the main thread, it would have to acquire
/// the lock before that releases it.
#[test]
fn a_clock_that_only_another_wrong_one_contradicts_is_found() {
    let lock = |order| ThreadLock { model: 7, lock: 1, order };
    let held = |from, until, order| {
        vec![thread(from, ThreadEvent::AcquireLock(lock(order))), thread(until, ThreadEvent::ReleaseLock(lock(order)))]
    };
    let (main, first, second) = (held(100, 200, 1), held(210, 300, 2), held(310, 400, 3));
    assert_corrected(&with_partner(vec![(main, 0), (first, -50), (second, -130)]), "thread_lock", 2, 2);
}

/// Threads with clocks of their own, which are wrong by several rounds, that send and receive by one tag: nobody knows in which order, while all know when a team was forked, met
/// and was joined. (How many had been sent when so many were received may still be wrong in the output: it was counted with the clocks of before.)
#[test]
fn what_threads_share_yields_to_their_steps() {
    let process = |peer: u32, ahead: [i64; 2]| -> Threads {
        let rounds = || (0..20).map(|round| 100_000 + 1000 * round);
        let main = rounds().flat_map(|t| {
            let [a, b] = barrier(t + 300, t + 330);
            let messages = [(t + 200, Event::MpiSend(message(peer))), (t + 260, Event::MpiRecv(message(peer)))];
            [vec![fork(t + 100, 3), begin(t + 101)], messages.into(), vec![a, b, end(t + 340), join(t + 360)]].concat()
        });
        let worker = |k: i64| {
            rounds().flat_map(move |t| {
                let [a, b] = barrier(t + 300 + 3 * k, t + 331 + k);
                let messages = [
                    (t + 200 + 7 * k, Event::MpiSend(message(peer))),
                    (t + 250 + 5 * k, Event::MpiRecv(message(peer))),
                ];
                [vec![begin(t + 110 + k)], messages.into(), vec![a, b, end(t + 341 + k)]].concat()
            })
        };
        let workers = (1..).zip(ahead).map(|(k, ahead)| (worker(k).collect(), ahead));
        [(main.collect(), 0)].into_iter().chain(workers).collect()
    };
    let trace = trace(vec![process(1, [-7000, 9000]), process(0, [6000, -8000])]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace);
    for presync in ["none", "auto"] {
        let out = directory.path().join(presync);
        // What is taken back is not checked.
        let (corrected, checked) = if presync == "none" { (3, 1) } else { (0, 0) };
        run(alone().args(["-q", "--presync", presync, "-o"]).arg(&out).arg(&path)).expect(corrected, presync);
        let after = report(&out, &["check", "--presync", "none"], checked);
        let violated: Vec<u64> = ["fork", "thread_barrier"].iter().map(|kind| found(&after, kind).1).collect();
        assert_eq!(violated, [0, 0], "{presync}");
        let left_out = after["matching"]["threads"].as_array().expect("a list").iter().map(|of| &of["left_out"]);
        assert!(left_out.into_iter().all(|count| count == 0), "{presync}: {}", after["matching"]["threads"]);
    }
}

#[test]
fn steps_without_a_partner_are_counted() {
    // A worker that was in the team of a fork which is not in the trace.
    let main = vec![fork(100, 2), begin(101), end(400), join(420)];
    let worker = vec![begin(90), end(95), begin(110), end(410)];
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &with_partner(vec![(main, 0), (worker, 0)]));
    let said = run(alone().args(["check", "--report", "-", "-q"]).arg(&path)).stdout;
    let report: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(report["matching"]["threads"][0]["left_out"], 2, "{}", report["matching"]);
    assert_eq!(found(&report, "fork").1, 0);
}

#[test]
fn why_threads_with_collective_operations_stay_together_is_said() {
    let (op, root) = (CollectiveOp::BARRIER, Root::None);
    let ended = Collective { op, comm: CommId(0), root, sent: 0, received: 0 };
    let complete = |t: i64| (t, Event::NonBlockingCollectiveComplete(ended, 7));
    let started = |t: i64| (t, Event::NonBlockingCollectiveRequest(7));
    // The first worker is in the team before it is forked, and nothing tells which of both requests of the workers the main thread completes first.
    let main = vec![fork(200, 3), begin(201), complete(350), complete(360), end(400), join(420)];
    let worker = |t: i64| vec![begin(t), started(t + 60), end(300)];
    let partner = vec![(211, started(0).1), complete(351), (352, started(0).1), complete(361)];
    let directory = tempfile::tempdir().expect("a directory");
    let threads = vec![(main, 0), (worker(150), 0), (worker(210), 0)];
    let path = written(directory.path(), &trace(vec![threads, vec![(partner, 0)]]));
    let report = report(&path, &["check", "--presync", "none"], 3);
    assert_eq!(report["matching"]["threads"][0]["left_out"], 1, "{}", report["matching"]);
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("the threads share collective operations"), "{warnings}");
}

/// The threads of each process take turns on one communicator, between barriers of their team, and their clocks are farther apart than the turns.
#[test]
fn operations_of_threads_are_those_that_their_steps_tell() {
    let process = |ahead: i64| -> Threads {
        let mut threads: [Vec<(i64, Event)>; 2] = [vec![fork(10_010, 2), begin(10_020)], vec![begin(10_030)]];
        for turn in 0..20_i64 {
            let time = 10_000 + 100 * (turn + 1);
            let op = if turn % 3 == 0 { CollectiveOp::BARRIER } else { CollectiveOp::ALLREDUCE };
            let bytes = if turn % 3 == 0 { 0 } else { 8 };
            let ended = Collective { op, comm: CommId(0), root: Root::None, sent: bytes, received: bytes };
            // Not always in turns of the same length.
            let own = &mut threads[usize::from(turn % 5 < 3)];
            own.extend([(time, Event::MpiCollectiveBegin), (time + 20, Event::MpiCollectiveEnd(ended))]);
            threads[0].extend(barrier(time + 40, time + 60));
            threads[1].extend(barrier(time + 45, time + 61));
        }
        threads[0].extend([end(15_000), join(15_020)]);
        threads[1].push(end(15_010));
        let [main, worker] = threads;
        vec![(main, 0), (worker, ahead)]
    };
    for ahead in [[-7000, 9000], [4000, 4000], [0, 130]] {
        let trace = trace(ahead.map(process).to_vec());
        let directory = tempfile::tempdir().expect("a directory");
        let path = written(directory.path(), &trace);
        let before = report(&path, &["check", "--presync", "none"], 1);
        let of = |operation: &str| {
            let all = before["matching"]["collectives"].as_array().expect("a list").iter();
            let of = all.clone().find(|of| of["operation"] == operation).expect("the operation");
            (of["matched"].as_u64(), of["inconsistent"].as_u64(), of["incomplete"].as_u64())
        };
        assert_eq!(of("barrier"), (Some(7), Some(0), Some(0)), "{}", before["matching"]);
        assert_eq!(of("allreduce"), (Some(13), Some(0), Some(0)), "{}", before["matching"]);
        assert_eq!(before["matching"]["threads"][0]["left_out"], 0, "{}", before["matching"]);
        for presync in ["none", "auto"] {
            let out = directory.path().join(presync);
            run(alone().args(["-q", "--presync", presync, "-o"]).arg(&out).arg(&path)).expect(0, presync);
            let after = report(&out, &["check", "--presync", "none"], 0);
            assert_eq!(found(&after, "n_to_n"), (20, 0), "{presync}");
            assert_eq!(found(&after, "thread_barrier").1, 0, "{presync}");
        }
    }
}

/// Two threads post in turns, and the clock of one is behind by more than a turn: a barrier tells which epoch is whose. Without it nobody knows, and the orders are in doubt.
#[test]
fn epochs_of_threads_are_those_that_their_steps_tell() {
    let named = |name: &str| {
        let place = REGION_NAMES.iter().position(|known| *known == name).expect("a region");
        RegionId(place as u32)
    };
    let sync = |name: &str, enter: i64, leave: i64, peer: u32| {
        let event = Event::RmaGroupSync(WindowGroup { level: 3, window: WindowId(1), group: GroupId(peer + 2) });
        vec![(enter, Event::Enter(named(name))), (enter + 1, event), (leave, Event::Leave(named(name)))]
    };
    let posted =
        |time: i64| [sync("MPI_Win_post", time, time + 2, 1), sync("MPI_Win_wait", time + 10, time + 40, 1)].concat();
    let origin = |time: i64| {
        [sync("MPI_Win_start", time, time + 5, 0), sync("MPI_Win_complete", time + 20, time + 35, 0)].concat()
    };
    let trace = |ahead: i64, turns: bool| {
        let turn = |arrive: i64, depart: i64| if turns { barrier(arrive, depart).to_vec() } else { Vec::new() };
        let began = vec![fork(10_010, 2), begin(10_020)];
        let received = vec![(10_160, Event::MpiRecv(message(1)))];
        let ended = vec![end(10_400), join(10_420)];
        let main = [began, posted(10_100), received, turn(10_170, 10_190), ended].concat();
        let worker = [vec![begin(10_030)], turn(10_175, 10_191), posted(10_200), vec![end(10_410)]].concat();
        let other = [origin(10_090), vec![(10_130, Event::MpiSend(message(0)))], origin(10_190)].concat();
        let mut trace = trace(vec![vec![(main, 0), (worker, ahead)], vec![(other, 0)]]);
        trace.windows = vec![Window { id: WindowId(1), name: "w".into(), comm: CommId(0) }];
        trace.groups = (0..2).map(|process| (GroupId(process + 2), [MpiRank(process)].into())).collect();
        trace
    };
    assert_corrected(&trace(0, true), "group", 4, 0);
    assert_corrected(&trace(-150, true), "group", 4, 1);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace(-150, false));
    let matching = report(&path, &["check", "--presync", "none"], 1)["matching"].take();
    let orders = (&matching["windows"]["steps"], &matching["implied_orders"], &matching["contradicted_orders"]);
    assert_eq!(orders, (&Value::from(0), &Value::from(4), &Value::from(0)), "{matching}");
}

/// The recorded time of the first event of a location after `job`.
fn first_time(path: &Path, location: u64) -> i64 {
    use clc_otf2::Otf2Archive;
    use clc_trace::LocationId;
    let archive = Otf2Archive::open(path).unwrap();
    let local = archive.local_definitions(LocationId(location)).unwrap();
    let mut first = None;
    archive
        .scan_with(LocationId(location), &local, |_, time, _| {
            first.get_or_insert(time as i64);
            Ok(())
        })
        .unwrap();
    first.unwrap()
}

/// Two threads of a process have clocks that are apart by 300 us, and their recorded offsets say so. All models respect that, also those that estimate clocks.
#[test]
fn recorded_offsets_of_threads_are_their_own() {
    let mut trace = team(0);
    // Many messages, so that there is something to estimate from.
    for k in 0..200 {
        let time = (10_000 + 100 * k) * US;
        let mut add = |process: usize, time, event| {
            trace.processes[process].locations[0].push(Recorded { time, event });
        };
        add(0, time, Event::MpiSend(message(1)));
        add(1, time + 5 * US, Event::MpiRecv(message(0)));
        add(1, time + 20 * US, Event::MpiSend(message(0)));
        add(0, time + 25 * US, Event::MpiRecv(message(1)));
    }
    let truth = trace.processes[0].locations[1][0].time;
    trace.processes[0].locations[1].iter_mut().for_each(|recorded| recorded.time += 300 * US);
    let offsets = |process: usize, location: usize| {
        let offset = if (process, location) == (0, 1) { -300 * US } else { 0 };
        let at = |time| ClockOffset { time, offset, standard_deviation: 0.0 };
        vec![at(0), at(40_000_000)]
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    write_with(&trace, &path, offsets);
    for presync in ["linear", "auto", "network", "regression", "hull"] {
        let out = directory.path().join(presync);
        run(alone().args(["-q", "--presync", presync, "-o"]).arg(&out).arg(&path)).expect(0, presync);
        let off = first_time(&out, trace.location_id(0, 1).0) - truth;
        assert!(off.abs() < 10 * US, "{presync}: {off}");
        let checked = report(&out, &["check", "--presync", "none"], 0);
        assert_eq!(found(&checked, "fork"), (2, 0), "{presync}");
    }
    let checked = report(&path, &["check"], 0);
    assert_eq!(found(&checked, "fork"), (2, 0));
    let said = checked["warnings"].to_string();
    assert!(said.contains("their own clocks"), "{said}");
}

/// Two threads whose clocks are 50 us apart, as recorded offsets say, take part in operations of one communicator at the same time, and give their requests the same numbers, so that some operations have no
/// begin. In the order that is left, a thread waits for what only the other one can bring about: then the operations are left out, the rest is corrected, and a warning says so.
#[test]
fn operations_of_threads_that_cannot_be_told_apart_are_left_out() {
    let mut trace = team(-50);
    let mut add = |process: usize, location: usize, time, event| {
        trace.processes[process].locations[location].push(Recorded { time, event });
    };
    let all = Collective { op: CollectiveOp::ALLREDUCE, comm: CommId(0), root: Root::None, sent: 8, received: 8 };
    let complete = |request| Event::NonBlockingCollectiveComplete(all, request);
    for k in 0..200 {
        let time = (10_000 + 100 * k as i64) * US;
        add(0, 0, time, Event::MpiSend(message(1)));
        add(1, 0, time + 5 * US, Event::MpiRecv(message(0)));
        add(1, 0, time + 20 * US, Event::MpiSend(message(0)));
        add(0, 0, time + 25 * US, Event::MpiRecv(message(1)));
        add(0, 0, time + 40 * US, Event::NonBlockingCollectiveRequest(2 * k));
        add(0, 0, time + 90 * US, complete(2 * k));
        // The two threads use the same number: by the clock of the second one, its operation begins and ends while that of the first one is open.
        add(0, 1, time, Event::NonBlockingCollectiveRequest(2 * k));
        add(0, 1, time + 10 * US, complete(2 * k));
        add(1, 0, time + 40 * US, Event::NonBlockingCollectiveRequest(2 * k));
        add(1, 0, time + 51 * US, Event::NonBlockingCollectiveRequest(2 * k + 1));
        add(1, 0, time + 62 * US, complete(2 * k + 1));
        add(1, 0, time + 90 * US, complete(2 * k));
    }
    let offsets = |process: usize, location: usize| {
        let offset = if (process, location) == (0, 1) { 50 * US } else { 0 };
        [0, 40_000_000].map(|time| ClockOffset { time, offset, standard_deviation: 0.0 }).to_vec()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    write_with(&trace, &path, offsets);
    for presync in ["linear", "auto"] {
        let (out, told) = (directory.path().join(presync), directory.path().join(format!("{presync}.json")));
        let mut correct = alone();
        correct.args(["-q", "--presync", presync, "-o"]).arg(&out).arg("--report").arg(&told).arg(&path);
        run(&mut correct).expect(3, "only a part can be checked");
        let told: Value = serde_json::from_slice(&std::fs::read(&told).expect("a report")).expect("JSON");
        let warnings = told["warnings"].to_string();
        assert!(warnings.contains("without a begin or an end are left out"), "{warnings}");
        let messages = &told["violations"]["corrected"]["point_to_point"];
        assert_eq!((&messages["checked"], &messages["violated"]), (&401.into(), &0.into()), "{presync}");
    }
}
