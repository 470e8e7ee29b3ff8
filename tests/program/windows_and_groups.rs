//! What a trace records of synchronisation beside messages and collective operations on one group: fences and epochs of windows, synchronous sends,
//! inter-communicators. Small traces made by hand, in microseconds, whose processes run on nodes with clocks that are off by a known time.

use crate::by_hand::{self, written};
use crate::common::{alone, found, report, run, with_ranks};
use crate::reference::model::{Process, REGION_NAMES, Recorded, Trace};
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::{
    Collective, CollectiveOp, CommId, CommMembers, Communicator, Event, GroupId, Message, MpiRank, RegionId, Root,
    Window, WindowCollective, WindowGroup, WindowId, WindowLock, WindowTransfer,
};
use serde_json::Value;

const US: i64 = 1000;
const WORLD: CommId = CommId(0);
const BETWEEN: CommId = CommId(1);
const WINDOW: WindowId = WindowId(4);

/// The events of a process at true times in microseconds, and how far its clock is behind.
type Recording = (Vec<(i64, Event)>, i64);

/// One process after the other.
fn trace(processes: &[Recording]) -> Trace {
    let count = processes.len() as u32;
    let world: Vec<MpiRank> = (0..count).map(MpiRank).collect();
    let communicator = |id, members| Communicator { id, name: String::new(), members, global_ranks: false };
    let process = |(node, (events, behind)): (usize, &Recording)| Process {
        node: node as u32,
        locations: vec![events.iter().map(|&(time, event)| Recorded { time: (time - behind) * US, event }).collect()],
    };
    let single = |process: u32| (GroupId(process + 2), [MpiRank(process)].into());
    Trace {
        processes: processes.iter().enumerate().map(process).collect(),
        communicators: vec![
            communicator(WORLD, CommMembers::Intra(world.into())),
            communicator(BETWEEN, CommMembers::Inter([MpiRank(0)].into(), (1..count).map(MpiRank).collect())),
        ],
        windows: vec![Window { id: WINDOW, name: "w".into(), comm: WORLD }],
        groups: (0..count).map(single).collect(),
        ..Trace::default()
    }
}

fn region(name: &str) -> RegionId {
    RegionId(REGION_NAMES.iter().position(|known| *known == name).expect("a region") as u32)
}

/// A call from `enter` to `leave`.
fn call(name: &str, enter: i64, leave: i64, inside: &[(i64, Event)]) -> Vec<(i64, Event)> {
    [&[(enter, Event::Enter(region(name)))], inside, &[(leave, Event::Leave(region(name)))]].concat()
}

fn fence(begin: i64, end: i64) -> Vec<(i64, Event)> {
    let (op, root) = (CollectiveOp::BARRIER, Root::None);
    let ended = WindowCollective { op, level: 3, window: WINDOW, root, sent: 0, received: 0 };
    vec![(begin, Event::RmaCollectiveBegin), (end, Event::RmaCollectiveEnd(ended))]
}

/// A call that begins or ends an epoch with the group of one process.
fn sync(name: &str, enter: i64, leave: i64, level: u32, process: u32) -> Vec<(i64, Event)> {
    let event = Event::RmaGroupSync(WindowGroup { level, window: WINDOW, group: GroupId(process + 2) });
    call(name, enter, leave, &[(enter, event)])
}

fn put(time: i64) -> (i64, Event) {
    (time, Event::RmaPut(WindowTransfer { window: WINDOW, remote: 0, bytes: 8, matching: 1 }))
}

fn assert_corrected(trace: &Trace, kind: &str, checked: u64, violated: u64) {
    assert_eq!(by_hand::assert_corrected(trace, kind, checked, violated, &["auto"]), [checked]);
}

#[test]
fn fences_alone_are_something_to_check() {
    // Process 1 is 500 behind; nothing is accessed.
    let fences: Vec<(i64, Event)> = (1..=5).flat_map(|k| fence(1000 * k, 1000 * k + 5)).collect();
    assert_corrected(&trace(&[(fences.clone(), 0), (fences, 500)]), "fence", 5, 5);
}

#[test]
fn a_fence_that_somebody_left_before_another_came_is_none() {
    // Every second one is left early by process 0, which must have been asserted; accesses end at the others.
    let fences = |early: bool| -> Vec<(i64, Event)> {
        let one = |k: i64| match k % 2 {
            0 => [vec![put(1000 * k - 100)], fence(1000 * k, 1000 * k + 10)].concat(),
            _ if early => fence(1000 * k, 1000 * k + 10),
            _ => fence(1000 * k + 300, 1000 * k + 310),
        };
        (1..=8).flat_map(one).collect()
    };
    let trace = trace(&[(fences(true), 0), (fences(false), 0)]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace);
    for (choice, expected) in [("auto", (4, 0)), ("operations", (4, 0)), ("all", (8, 4)), ("none", (0, 0))] {
        let arguments = ["check", "--presync", "none", "--fences", choice];
        let said = run(alone().args(arguments).args(["--report", "-", "-q"]).arg(&path));
        let report: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!(found(&report, "fence"), expected, "{choice}");
        assert_eq!(report["parameters"]["fences"], choice);
    }
}

/// Twenty fences that last for 300, all but the third with accesses before. That one lasts for 50, and process 1 comes 50 after process 0 has left. Until the fifth the clock of process 1 is behind.
fn one_that_was_left_early(behind: i64) -> Trace {
    let fences = |late: i64, behind: i64| -> Vec<(i64, Event)> {
        let one = |k: i64| {
            let time = 1000 * k - if k <= 5 { behind } else { 0 };
            match k {
                3 => fence(time + late, time + late + 50),
                _ => [vec![put(time - 100)], fence(time, time + 300)].concat(),
            }
        };
        (1..=20).flat_map(one).collect()
    };
    trace(&[(fences(0, 0), 0), (fences(100, behind), 0)])
}

#[test]
fn where_clocks_are_right_a_fence_that_somebody_left_early_is_none() {
    for (name, behind, choice, expected) in [
        ("right", 0, "auto", (19, 0)),
        // How long the fences beside it take leaves room for it.
        ("right", 0, "all", (20, 1)),
        // Others show that the clocks are wrong, too.
        ("wrong", 400, "auto", (20, 5)),
        ("wrong", -400, "auto", (20, 5)),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = written(directory.path(), &one_that_was_left_early(behind));
        for ranks in [1, 2] {
            let mut command = if ranks == 1 { alone() } else { with_ranks(ranks) };
            let arguments = ["check", "--presync", "none", "--fences", choice, "--report", "-", "-q"];
            let said = run(command.args(arguments).arg(&path));
            let report: Value = serde_json::from_str(&said.stdout).expect("JSON");
            assert_eq!(found(&report, "fence"), expected, "{name} {choice} {ranks}");
        }
    }
}

#[test]
fn more_fences_that_are_violated_than_anything_that_holds_show_wrong_clocks() {
    // Process 1 is 500 behind, and nothing is accessed; a few messages say nothing against that, as many as fences do.
    let message = |peer| Message { peer, comm: WORLD, tag: 7, length: 8 };
    for (messages, expected) in [(4, (5, 5)), (5, (0, 0))] {
        let own = |sends: bool| -> Vec<(i64, Event)> {
            let fences = (1..=5).flat_map(|k| fence(1000 * k, 1000 * k + 5));
            let one = |k: i64| match sends {
                true => (10_000 + 10 * k, Event::MpiSend(message(1))),
                false => (20_000 + 10 * k, Event::MpiRecv(message(0))),
            };
            fences.chain((0..messages).map(one)).collect()
        };
        let directory = tempfile::tempdir().expect("a directory");
        let path = written(directory.path(), &trace(&[(own(true), 0), (own(false), 500)]));
        let said = run(alone().args(["check", "--presync", "none", "--report", "-", "-q"]).arg(&path));
        let report: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!(found(&report, "fence"), expected, "{messages} messages");
    }
}

#[test]
fn accesses_under_a_lock_end_at_no_fence_and_are_named() {
    let lock = WindowLock { window: WINDOW, remote: 0, lock: 0, kind: 0 };
    let own = |k: i64| {
        let locked =
            [(1000 * k, Event::RmaRequestLock(lock)), put(1000 * k + 1), (1000 * k + 2, Event::RmaReleaseLock(lock))];
        [locked.to_vec(), fence(1000 * k + 10, 1000 * k + 20)].concat()
    };
    let events: Vec<(i64, Event)> = (1..=3).flat_map(own).collect();
    let trace = trace(&[(events.clone(), 0), (events, 0)]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace);
    let said = run(alone().args(["check", "--presync", "none", "--fences", "operations"]).arg(&path)).stdout;
    assert!(said.contains("6  accesses to windows under locks"), "{said}");
    assert!(said.contains("3  win_fence_unordered"), "{said}");
}

#[test]
fn where_nothing_can_be_checked_calls_without_records_are_named() {
    let own: Vec<(i64, Event)> =
        (1..=3).flat_map(|k| call("MPI_Neighbor_alltoall", 1000 * k, 1000 * k + 5, &[])).collect();
    let trace = trace(&[(own.clone(), 0), (own, 0)]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace);
    let said = run(alone().args(["check", "--presync", "none"]).arg(&path)).expect(3, "nothing to check").stdout;
    assert!(said.contains("NOTHING TO CHECK") && said.contains("6  MPI_Neighbor_alltoall without a record"), "{said}");
}

#[test]
fn calls_that_never_left_a_record_are_named_beside_others_that_did() {
    // Every round has a message, whose calls are recorded but for one to nobody, and a neighbourhood collective that is not.
    let message = |peer| Message { peer, comm: WORLD, tag: 7, length: 8 };
    let own = |name: &str, event: Event, k: i64| {
        let t = 1000 * k;
        [call(name, t, t + 5, &[(t + 4, event)]), call("MPI_Neighbor_alltoall", t + 10, t + 15, &[])].concat()
    };
    let mut sends: Vec<(i64, Event)> = (1..=3).flat_map(|k| own("MPI_Send", Event::MpiSend(message(1)), k)).collect();
    sends.extend(call("MPI_Send", 5000, 5001, &[]));
    // The other process has sent to nobody else.
    let receives = (1..=3).flat_map(|k| own("MPI_Recv", Event::MpiRecv(message(0)), k));
    let receives = receives.chain(call("MPI_Send", 5000, 5001, &[])).collect();
    let trace = trace(&[(sends, 0), (receives, 0)]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace);
    for ranks in [1, 2] {
        let mut command = if ranks == 1 { alone() } else { with_ranks(ranks) };
        let said = run(command.args(["check", "--presync", "none", "--latency", "0"]).arg(&path)).stdout;
        assert!(said.contains("6  MPI_Neighbor_alltoall without a record"), "{said}");
        assert!(!said.contains("MPI_Send without"), "{said}");
    }
}

#[test]
fn calls_that_leave_a_record_later_are_not_named() {
    // The sample of 256 events has sends to nobody only.
    let message = |peer| Message { peer, comm: WORLD, tag: 7, length: 8 };
    let silent = (1..=300).flat_map(|k| call("MPI_Send", 10 * k, 10 * k + 1, &[]));
    let sends = silent.chain(call("MPI_Send", 5000, 5005, &[(5004, Event::MpiSend(message(1)))])).collect();
    let receives = call("MPI_Recv", 5000, 5010, &[(5009, Event::MpiRecv(message(0)))]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace(&[(sends, 0), (receives, 0)]));
    let said = run(alone().args(["check", "--presync", "none"]).arg(&path)).expect(0, "check").stdout;
    assert!(!said.contains("without a record"), "{said}");
}

#[test]
fn a_synchronous_send_does_not_end_before_its_receive_is_posted() {
    // Process 1 is 400 ahead, so its receives are posted after the sends are over.
    let message = |peer| Message { peer, comm: WORLD, tag: 7, length: 8 };
    let rounds = 1..=10;
    let sends = |k: i64| call("MPI_Ssend", 1000 * k, 1000 * k + 5, &[(1000 * k, Event::MpiSend(message(1)))]);
    let receives = |k: i64| call("MPI_Recv", 1000 * k, 1000 * k + 5, &[(1000 * k + 4, Event::MpiRecv(message(0)))]);
    let ends = (rounds.clone().flat_map(sends).collect(), rounds.flat_map(receives).collect());
    assert_corrected(&trace(&[(ends.0, 0), (ends.1, -400)]), "synchronous_send", 10, 10);
}

#[test]
fn nor_is_a_non_blocking_one_complete() {
    let message = |peer| Message { peer, comm: WORLD, tag: 7, length: 8 };
    let sends = |k: i64| {
        let t = 1000 * k;
        let begin = call("MPI_Issend", t, t + 1, &[(t, Event::MpiIsend(message(1), 3))]);
        [begin, vec![(t + 50, Event::MpiIsendComplete(3))]].concat()
    };
    let receives = |k: i64| {
        let t = 1000 * k;
        let posted = call("MPI_Irecv", t + 20, t + 21, &[(t + 21, Event::MpiIrecvRequest(5))]);
        [posted, vec![(t + 60, Event::MpiIrecv(message(0), 5))]].concat()
    };
    let ends = ((1..=10).flat_map(sends).collect(), (1..=10).flat_map(receives).collect());
    assert_corrected(&trace(&[(ends.0, 0), (ends.1, -400)]), "synchronous_send", 10, 10);
}

#[test]
fn a_request_that_is_freed_is_not_complete() {
    // Perfect clocks: the receive is posted long after nobody asks for the send any more.
    let message = |peer| Message { peer, comm: WORLD, tag: 7, length: 8 };
    let sends = |k: i64| {
        let t = 1000 * k;
        let begin = call("MPI_Issend", t, t + 3, &[(t + 1, Event::MpiIsend(message(1), 3))]);
        [begin, call("MPI_Request_free", t + 10, t + 12, &[(t + 11, Event::MpiIsendComplete(3))])].concat()
    };
    let receives =
        |k: i64| call("MPI_Recv", 1000 * k + 500, 1000 * k + 510, &[(1000 * k + 509, Event::MpiRecv(message(0)))]);
    let ends = ((1..=10).flat_map(sends).collect(), (1..=10).flat_map(receives).collect());
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace(&[(ends.0, 0), (ends.1, 0)]));
    run(alone().args(["check", "--presync", "none"]).arg(&path)).expect(0, "check");
}

#[test]
fn threads_that_overtake_each_other_wait_for_as_many_receives_as_sends() {
    // The second thread sends later, but what it sends is received first, and the next receive is posted when its send is over.
    let message = |peer| Message { peer, comm: WORLD, tag: 7, length: 8 };
    let send = |t: i64, end: i64| call("MPI_Ssend", t, end, &[(t, Event::MpiSend(message(1)))]);
    let receive = |t: i64, end: i64| call("MPI_Recv", t, end, &[(end, Event::MpiRecv(message(0)))]);
    let rounds = || (1..=10).map(|k| 1000 * k);
    let first = rounds().flat_map(|t| send(t + 10, t + 100)).collect();
    let second: Vec<(i64, Event)> = rounds().flat_map(|t| send(t + 20, t + 30)).collect();
    let receives = rounds().flat_map(|t| [receive(t + 5, t + 25), receive(t + 90, t + 99)].concat()).collect();
    let with_threads = |behind: i64| {
        let mut both = trace(&[(Vec::clone(&first), 0), (Vec::clone(&receives), behind)]);
        let recorded = |&(time, event): &(i64, Event)| Recorded { time: time * US, event };
        both.processes[0].locations.push(second.iter().map(recorded).collect());
        both
    };
    assert_corrected(&with_threads(0), "synchronous_send", 20, 0);
    // If the receiver is 15 ahead, the second posting is after the second end, which is that of the first thread.
    assert_corrected(&with_threads(-15), "synchronous_send", 20, 10);
}

#[test]
fn epochs_wait_for_posts_and_completions() {
    // 0 is the target of 1 and then of 2, whose clock is 300 ahead of theirs: it seems to post late.
    let target = |k: i64| {
        let (t, origin) = (1000 * k, 1 + (k % 2) as u32);
        [sync("MPI_Win_post", t, t + 1, 1, origin), sync("MPI_Win_wait", t + 50, t + 60, 3, origin)].concat()
    };
    let origin = |rank: i64| {
        let one = move |k: i64| {
            let t = 1000 * k;
            [sync("MPI_Win_start", t, t + 5, 1, 0), vec![put(t + 6)], sync("MPI_Win_complete", t + 10, t + 40, 3, 0)]
                .concat()
        };
        (1..=6).filter(move |k| 1 + k % 2 == rank).flat_map(one).collect::<Vec<_>>()
    };
    let trace = trace(&[((1..=6).flat_map(target).collect(), -300), (origin(1), 0), (origin(2), 0)]);
    // Six times post and complete are in the wrong order, six times complete and wait are not.
    assert_corrected(&trace, "group", 12, 6);
}

#[test]
fn calls_tell_which_accesses_are_of_groups() {
    // All records have the same level.
    let sync = |name, enter, leave, group| sync(name, enter, leave, 3, group);
    let target = |k: i64| {
        let t = 1000 * k;
        [sync("MPI_Win_post", t, t + 1, 1), sync("MPI_Win_wait", t + 50, t + 60, 1)].concat()
    };
    let origin = |k: i64| {
        let t = 1000 * k;
        [sync("MPI_Win_start", t, t + 5, 0), vec![put(t + 6)], sync("MPI_Win_complete", t + 10, t + 40, 0)].concat()
    };
    let trace = trace(&[((1..=6).flat_map(target).collect(), 0), ((1..=6).flat_map(origin).collect(), 0)]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace);
    let found = report(&path, &["check", "--presync", "none"], 0);
    let windows = &found["matching"]["windows"];
    assert_eq!((&windows["group_accesses"], &windows["fence_accesses"]), (&6.into(), &0.into()), "{windows}");
}

#[test]
fn accesses_of_an_epoch_without_a_begin_are_of_no_fence() {
    // Perfect clocks. The target leaves the fences of each round before the origin comes, which the program has asserted.
    let target = |k: i64| {
        let t = 1000 * k;
        let epoch = [sync("MPI_Win_post", t, t + 1, 1, 1), sync("MPI_Win_wait", t + 50, t + 60, 3, 1)].concat();
        [epoch, fence(t + 70, t + 75)].concat()
    };
    let origin = |k: i64| {
        let t = 1000 * k;
        let start = if k == 3 { call("MPI_Win_start", t, t + 5, &[]) } else { sync("MPI_Win_start", t, t + 5, 1, 0) };
        let complete = sync("MPI_Win_complete", t + 10, t + 40, 3, 0);
        [start, vec![put(t + 6)], complete, fence(t + 80, t + 85)].concat()
    };
    let trace = trace(&[((1..=6).flat_map(target).collect(), 0), ((1..=6).flat_map(origin).collect(), 0)]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace);
    // Fences that may not have synchronised are not checked.
    let report = report(&path, &["check", "--presync", "none"], 3);
    assert_eq!((found(&report, "fence").1, found(&report, "group").1), (0, 0), "{report}");
}

#[test]
fn groups_of_an_inter_communicator_wait_for_each_other() {
    // 1 and 2 are one group; 2 is 200 behind. 1 leaves before 2 comes, which it need not wait for.
    let operation = |op, root, begin: i64, end: i64| {
        let ended = Collective { op, comm: BETWEEN, root, sent: 8, received: 8 };
        vec![(begin, Event::MpiCollectiveBegin), (end, Event::MpiCollectiveEnd(ended))]
    };
    let all = |enter: i64, leave: i64| {
        (1..=4)
            .flat_map(|k| operation(CollectiveOp::ALLREDUCE, Root::None, 1000 * k + enter, 1000 * k + leave))
            .collect()
    };
    assert_corrected(&trace(&[(all(0, 150), 0), (all(5, 50), 0), (all(100, 160), 200)]), "n_to_n", 4, 4);
    let right: Vec<(i64, Event)> = all(100, 160);
    assert_corrected(&trace(&[(all(0, 150), 0), (all(5, 50), 0), (right, 0)]), "n_to_n", 4, 0);

    // The root is in the group of two: the other one of it does not wait.
    let rooted = |root, enter: i64, leave: i64| {
        (1..=4).flat_map(|k| operation(CollectiveOp::BCAST, root, 1000 * k + enter, 1000 * k + leave)).collect()
    };
    let members = |behind| {
        trace(&[
            (rooted(Root::Rank(1), 0, 150), behind),
            (rooted(Root::OwnGroup, 5, 6), 0),
            (rooted(Root::ThisProcess, 100, 110), 0),
        ])
    };
    assert_corrected(&members(0), "one_to_n", 4, 0);
    assert_corrected(&members(200), "one_to_n", 4, 4);
}

#[test]
fn these_traces_agree_with_the_oracle() {
    use crate::reference::against::{Choice, compare};
    use controlled_logical_clock::CorrectionForm;
    let fences = |late: i64| -> Vec<(i64, Event)> {
        (1..=5).flat_map(|k| fence(1000 * k + late, 1000 * k + late + 5 * k)).collect()
    };
    for (form, choice) in [(CorrectionForm::Paper, Fences::All), (CorrectionForm::Common, Fences::Auto)] {
        let choice = Choice {
            decay: 10_995_116,
            slope: 10_995_116_278,
            delta: 1,
            same_node: 0,
            other_node: 100,
            alltoallv: false,
            form,
            median: false,
            fences: choice,
            handles: false,
        };
        let processes = [(fences(0), 0), (fences(2), 500), (fences(1), -70)];
        let mut trace = trace(&processes);
        trace.processes.iter_mut().flat_map(|p| &mut p.locations[0]).for_each(|r| r.time += 1_000_000);
        assert_eq!(compare(&trace, choice, &[1, 2, 3]), Ok(true));
    }
}
